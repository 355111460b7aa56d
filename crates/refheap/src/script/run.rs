//! Runs a script: threads take turns, one line each, always in the same order.

use vmpi::JMethodId;

use super::{Index, Op, Script, ScriptError, Variable, What};
use crate::object::{ClassIdx, Shape};
use crate::vm::{RefVm, ThreadIdx, VmFault};

/// How a script ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Lines that were run.
    pub steps: u64,
}

/// The position of one thread.
struct Running {
    thread: ThreadIdx,
    decl: usize,
    next: usize,
    /// Remaining rounds of the open loops.
    loops: Vec<u64>,
    counters: Vec<u64>,
    done: bool,
}

struct Machine<'m, 's> {
    vm: &'m mut RefVm<'s>,
    script: &'m Script,
    classes: Vec<ClassIdx>,
}

/// Runs a script to its end. Each thread's variables are roots until its last line.
///
/// # Errors
/// A line cannot be carried out (a null reference, no such slot, no memory), or a profiler suspended all threads.
/// Events before it have been emitted.
pub fn run(script: &Script, vm: &mut RefVm<'_>) -> Result<RunEnd, ScriptError> {
    run_between(script, vm, |_| {})
}

/// As [`run`], with a function that is called after each line.
///
/// # Errors
/// Those of [`run`].
pub fn run_between<'s>(
    script: &Script,
    vm: &mut RefVm<'s>,
    mut between: impl FnMut(&mut RefVm<'s>),
) -> Result<RunEnd, ScriptError> {
    let mut classes = Vec::new();
    for class in &script.classes {
        let methods: Vec<_> = class.methods.iter().map(String::as_str).collect();
        classes.push(vm.define_class(&class.name, class.slots, class.data, &methods));
    }
    let mut running = Vec::new();
    for (decl, thread) in script.threads.iter().enumerate() {
        let started = vm
            .start_thread(&thread.name)
            .map_err(|fault| at(0, &fault))?;
        running.push(Running {
            thread: started,
            decl,
            next: 0,
            loops: Vec::new(),
            counters: vec![0; thread.counters as usize],
            done: false,
        });
    }
    let mut machine = Machine {
        vm,
        script,
        classes,
    };
    let mut end = RunEnd::default();
    while running.iter().any(|thread| !thread.done) {
        let before = end.steps;
        for thread in running.iter_mut().filter(|thread| !thread.done) {
            if machine.vm.is_suspended(thread.thread) {
                continue;
            }
            end.steps += 1;
            machine.step(thread)?;
            between(machine.vm);
            if !machine.vm.serve() {
                return Ok(end);
            }
        }
        if end.steps == before {
            // Only a running thread could resume another.
            return Err(ScriptError {
                line: 0,
                what: "every thread is suspended".to_owned(),
            });
        }
    }
    Ok(end)
}

fn at(line: i32, fault: &VmFault) -> ScriptError {
    ScriptError {
        line,
        what: fault.to_string(),
    }
}

impl Machine<'_, '_> {
    fn step(&mut self, running: &mut Running) -> Result<(), ScriptError> {
        let steps = &self.script.threads[running.decl].steps;
        let Some(step) = steps.get(running.next) else {
            running.done = true;
            let ended = self.vm.end_thread(running.thread);
            return ended.map_err(|fault| at(0, &fault));
        };
        running.next += 1;
        self.vm.at_line(running.thread, step.line);
        self.perform(running, step.op, step.line)
            .map_err(|fault| at(step.line, &fault))
    }

    fn perform(&mut self, running: &mut Running, op: Op, line: i32) -> Result<(), VmFault> {
        let thread = running.thread;
        match op {
            Op::New(into, what) => {
                let shape = match what {
                    What::Instance(class) => Shape::Instance(self.classes[class]),
                    What::Array(class, len) => Shape::Array(self.classes[class], len),
                    What::Primitive(kind, len) => Shape::Primitive(kind, len),
                };
                self.vm.new_object(thread, into, shape)
            }
            Op::Set(into, from) => self.vm.set(thread, into, from),
            Op::Load(into, holder, index) => {
                let slot = self.slot(running, holder, index)?;
                self.vm.load(thread, into, holder, slot)
            }
            Op::Store(holder, index, from) => {
                let slot = self.slot(running, holder, index)?;
                self.vm.store(thread, holder, slot, from)
            }
            Op::Gc(kind) => {
                self.vm.collect(kind);
                Ok(())
            }
            Op::Repeat { times: 0, end, .. } => {
                running.next = end + 1;
                Ok(())
            }
            Op::Repeat { times, counter, .. } => {
                running.loops.push(times);
                running.counters[counter as usize] = 0;
                Ok(())
            }
            Op::EndRepeat { start } => {
                self.next_round(running, start);
                Ok(())
            }
            Op::Call(class, method) => {
                let class = self.classes[class];
                let (method, _): (JMethodId, _) =
                    self.vm.classes()[class.0 as usize].methods[method].clone();
                self.vm.enter(thread, method, line)
            }
            Op::EndCall => self.vm.exit(thread),
        }
    }

    fn next_round(&self, running: &mut Running, start: usize) {
        let Op::Repeat { counter, .. } = self.script.threads[running.decl].steps[start].op else {
            return;
        };
        let Some(left) = running.loops.last_mut() else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            running.loops.pop();
        } else {
            running.counters[counter as usize] += 1;
            running.next = start + 1;
        }
    }

    fn slot(&self, running: &Running, holder: Variable, index: Index) -> Result<u32, VmFault> {
        match index {
            Index::Number(number) => Ok(number),
            Index::Counter(counter) => {
                let slots = self.vm.slots(running.thread, holder);
                let slots = slots.ok_or(VmFault::NullReference)?;
                let count = running.counters[counter as usize];
                Ok((count % u64::from(slots.max(1))) as u32)
            }
        }
    }
}
