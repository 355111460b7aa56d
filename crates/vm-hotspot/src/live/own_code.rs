//! Runs code of the program for the agent (`tracker/HprofAsk.java`) on threads of the agent, because it may not return,
//! may throw or may wait for a lock. The caller waits with a time limit; a call that has not returned by then costs
//! only its thread.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jvmti::sys::Value;
use jvmti::{Env, Jni, Live, Object, Result};
use locks::{Mutex, Rank};
use vmpi::{ClassId, ClassOptions, Share};

use crate::alloc::choices::{Chosen, Question};
use crate::instrument::natives::with_agent_guard;
use crate::vm::hotspot::HotSpot;

/// A factory that takes longer for a class is never called again.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the thread checks for new classes.
const STEP: Duration = Duration::from_millis(20);
/// Classes that are examined under one lock of the state.
const AT_ONCE: u32 = 256;

/// The helper's class, defined when it is first needed; a weak reference, so that it adds no root.
pub(crate) fn helper(jni: Jni) -> Result<Object> {
    const CLASS: &[u8] = include_bytes!("../../tracker/HprofAsk.class");
    static HELPER: OnceLock<Object> = OnceLock::new();
    static DEFINING: Mutex<()> = Mutex::new(Rank::Defining, ());
    let _one = DEFINING.lock();
    if let Some(helper) = HELPER.get() {
        return Ok(*helper);
    }
    jni.local_frame(8, || {
        let class = jni.define_boot_class("java/lang/HprofAsk", CLASS)?;
        Ok(*HELPER.get_or_init(|| jni.new_weak(class).unwrap_or(class)))
    })
}

/// The present question to a factory.
#[derive(Debug)]
pub(crate) struct Asking(Mutex<Option<(Instant, String)>>);

impl Default for Asking {
    fn default() -> Self {
        Self(Mutex::new(Rank::Asking, None))
    }
}

impl Asking {
    fn begin(&self, factory: &str) {
        *self.0.lock() = Some((Instant::now(), factory.to_owned()));
    }

    /// Ends the question; false if no thread waits for the answer any longer.
    fn end(&self) -> bool {
        self.0.lock().take().is_some()
    }

    /// The factory that has not answered within the time limit; returned once.
    fn overdue(&self) -> Option<String> {
        let mut asked = self.0.lock();
        let is_late = |(since, _): &mut (Instant, String)| since.elapsed() > PATIENCE;
        asked.take_if(is_late).map(|(_, factory)| factory)
    }
}

/// Calls a factory for a class.
fn ask(jni: Jni, question: &Question) -> std::result::Result<Chosen, String> {
    let answer = jni.local_frame(16, || {
        let class = helper(jni)?;
        let string = "Ljava/lang/String;";
        let options = format!("({string}{string}{string}){string}");
        let options = jni.static_method(class, "options", &options)?;
        let text = |text: &str| jni.new_string(text).map(|text| Value { l: text.raw() });
        let module = match question.module.as_str() {
            "" => Value {
                l: std::ptr::null_mut(),
            },
            module => text(module)?,
        };
        let arguments = [text(&question.factory)?, module, text(&question.name)?];
        let answer = jni.call_static_object(class, options, &arguments)?;
        answer.map(|answer| jni.string(answer)).transpose()
    });
    let answer: Result<Option<String>> = answer;
    let answer = answer.map_err(|error| error.to_string())?;
    let answer = answer.ok_or("it gives no answer")?;
    if let Some(fault) = answer.strip_prefix('!') {
        return Err(fault.replace(char::is_control, " "));
    }
    if answer == "off" {
        return Ok(Chosen::Off);
    }
    let wrong = || format!("options {answer}");
    let (bits, ratio) = answer.split_once(' ').ok_or_else(wrong)?;
    let bits: i32 = bits.parse().map_err(|_| wrong())?;
    let ratio: f64 = ratio.parse().map_err(|_| wrong())?;
    // As in the original, a share of 0 means that nothing is tracked.
    if ratio <= 0.0 {
        return Ok(Chosen::Off);
    }
    let share = Share::new(ratio.min(1.0)).ok_or_else(wrong)?;
    let options = ClassOptions::from_bits((bits & 31) as u8, share);
    Ok(Chosen::Record(options))
}

impl HotSpot {
    /// Makes sure that factories are called, if the class filters name any.
    ///
    /// They are code of the program, which runs only where that is allowed.
    pub(crate) fn ask_factories(&self, env: Env<Live>, jni: Jni) {
        if !crate::live::own_answers::is_allowed() {
            if self.lock().choices.asks() {
                self.degrade(
                    "factory= in the class filters runs code of the program, which only own=y \
                     allows; default options hold",
                );
            }
            return;
        }
        let begins = self.lock().choices.begin_asking();
        if !begins {
            return;
        }
        let hotspot = self.forever();
        let body = move |_, jni| with_agent_guard(|| answer_questions(hotspot, jni));
        if let Err(error) = self.spawn(env, jni, "HPROF options", body) {
            self.lock().choices.end_asking();
            (self.message)(&format!("no options factory is asked: {error}"));
        }
    }

    /// Reports a factory that does not answer; the default options are used instead.
    pub(crate) fn give_up_factory(&self) {
        let asking = self.lock().choices.asking();
        if let Some(factory) = asking.overdue() {
            self.lock().choices.never_ask(&factory);
            (self.message)(&format!(
                "{factory}.getOptions does not return; default options hold"
            ));
        }
    }
}

/// The thread that calls factories, until no options name one.
fn answer_questions(hotspot: &HotSpot, jni: Jni) {
    let mut next = 1;
    while !hotspot.dead.load(Ordering::Relaxed) {
        // Loaded classes come first, before they make objects.
        next = ask_about_loaded(hotspot, jni, next);
        let (questions, asking) = {
            let mut state = hotspot.lock();
            match state.choices.take_questions() {
                Some(questions) => (questions, state.choices.asking()),
                None => return,
            }
        };
        let mut answers = Vec::new();
        for question in questions {
            asking.begin(&question.factory);
            let answer = ask(jni, &question);
            let is_late = !asking.end();
            if let Err(fault) = &answer
                && hotspot.lock().choices.is_first_fault(&question.factory)
            {
                let (factory, name) = (&question.factory, &question.name);
                (hotspot.message)(&format!("{factory}.getOptions({name}): {fault}"));
            }
            answers.push((
                question,
                answer.unwrap_or(Chosen::Record(ClassOptions::FULL)),
            ));
            if is_late || hotspot.dead.load(Ordering::Relaxed) {
                break;
            }
        }
        let tracker = hotspot.tracker();
        hotspot.lock().answered(jni, tracker, answers);
        std::thread::sleep(STEP);
    }
}

/// Looks up classes from number `next` on, which may add questions; returns the next number.
fn ask_about_loaded(hotspot: &HotSpot, jni: Jni, mut next: u32) -> u32 {
    loop {
        let mut state = hotspot.lock();
        let end = (next + AT_ONCE).min(state.registry.classes.last() + 1);
        if next >= end {
            return next;
        }
        for class in next..end {
            jni.local_frame(8, || {
                let weak = state
                    .registry
                    .classes
                    .get(class)
                    .and_then(|entry| entry.mirror);
                if let Some(mirror) = weak.and_then(|weak| jni.new_local(weak)) {
                    state.look_up(jni, (ClassId(class), mirror));
                }
            });
        }
        next = end;
    }
}
