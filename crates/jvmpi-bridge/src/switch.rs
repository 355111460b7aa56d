//! EnableEvent and DisableEvent: which JVMTI events each event comes from.

use std::sync::atomic::Ordering;

use jvmti::{Capability, EventKind};

use crate::bridge::{Bridge, say, with_profiler_paused};
use crate::jni_refs;
use vmpi::c_interface::layout::{FAIL, NOT_AVAILABLE, SUCCESS, event};

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// JVMTI events, with what the VM must have granted for each.
    Jvmti(&'static [(EventKind, Option<Capability>)]),
    /// Replaced functions of JNI.
    Jni,
    /// Listened to all the time, or made by the bridge.
    Always,
    /// HotSpot has nothing of the kind.
    Nowhere,
}

fn source(kind: i32) -> Source {
    use Capability as C;
    use EventKind as E;
    match kind {
        event::METHOD_ENTRY => {
            Source::Jvmti(&[(E::MethodEntry, Some(C::GenerateMethodEntryEvents))])
        }
        event::METHOD_ENTRY2 => Source::Jvmti(&[
            (E::MethodEntry, Some(C::AccessLocalVariables)),
            (E::MethodEntry, Some(C::GenerateMethodEntryEvents)),
        ]),
        event::METHOD_EXIT => Source::Jvmti(&[(E::MethodExit, Some(C::GenerateMethodExitEvents))]),
        event::OBJECT_ALLOC => Source::Jvmti(&[
            (E::VmObjectAlloc, Some(C::GenerateVmObjectAllocEvents)),
            (
                E::SampledObjectAlloc,
                Some(C::GenerateSampledObjectAllocEvents),
            ),
        ]),
        event::COMPILED_METHOD_LOAD => Source::Jvmti(&[(
            E::CompiledMethodLoad,
            Some(C::GenerateCompiledMethodLoadEvents),
        )]),
        event::COMPILED_METHOD_UNLOAD => Source::Jvmti(&[(
            E::CompiledMethodUnload,
            Some(C::GenerateCompiledMethodLoadEvents),
        )]),
        event::CLASS_LOAD_HOOK => Source::Jvmti(&[(E::ClassFileLoadHook, None)]),
        event::CLASS_LOAD => Source::Jvmti(&[(E::ClassPrepare, None)]),
        event::DATA_DUMP_REQUEST => Source::Jvmti(&[(E::DataDumpRequest, None)]),
        event::MONITOR_CONTENDED_ENTER => {
            Source::Jvmti(&[(E::MonitorContendedEnter, Some(C::GenerateMonitorEvents))])
        }
        event::MONITOR_CONTENDED_ENTERED => {
            Source::Jvmti(&[(E::MonitorContendedEntered, Some(C::GenerateMonitorEvents))])
        }
        event::MONITOR_CONTENDED_EXIT => Source::Jvmti(&[
            (E::MonitorContendedEnter, Some(C::GetMonitorInfo)),
            (E::MonitorContendedEntered, Some(C::GenerateMonitorEvents)),
        ]),
        event::MONITOR_WAIT => Source::Jvmti(&[(E::MonitorWait, Some(C::GenerateMonitorEvents))]),
        event::MONITOR_WAITED => Source::Jvmti(&[
            (E::MonitorWait, Some(C::GenerateMonitorEvents)),
            (E::MonitorWaited, Some(C::GenerateMonitorEvents)),
        ]),
        event::GC_START | event::GC_FINISH | event::OBJECT_FREE | event::CLASS_UNLOAD => {
            Source::Jvmti(&[(
                E::GarbageCollectionFinish,
                Some(C::GenerateGarbageCollectionEvents),
            )])
        }
        event::JNI_GLOBALREF_ALLOC..=event::JNI_WEAK_GLOBALREF_FREE => Source::Jni,
        event::THREAD_START
        | event::THREAD_END
        | event::JVM_INIT_DONE
        | event::JVM_SHUT_DOWN
        | event::ARENA_NEW
        | event::RAW_MONITOR_CONTENDED_ENTER
        | event::RAW_MONITOR_CONTENDED_ENTERED
        | event::RAW_MONITOR_CONTENDED_EXIT => Source::Always,
        _ => Source::Nowhere,
    }
}

impl Bridge {
    /// Whether the VM has granted something, asking once more where that is still
    /// possible.
    fn has(&self, capability: Capability) -> bool {
        let mut granted = self.granted.lock();
        if granted.has(capability) {
            return true;
        }
        let more = self.env.add_capabilities(&[capability]);
        if more.is_ok_and(|more| more.has(capability)) {
            *granted = granted.with(capability);
        }
        granted.has(capability)
    }

    /// Switches an event; the answer is one of the interface's.
    pub(crate) fn switch(&self, kind: i32, on: bool) -> i32 {
        let needs = match source(kind) {
            Source::Nowhere => return NOT_AVAILABLE,
            Source::Jvmti(needs) => needs,
            Source::Jni | Source::Always => &[],
        };
        let is_granted = |need: &Option<Capability>| need.is_none_or(|need| self.has(need));
        let granted = needs.iter().filter(|(_, need)| is_granted(need)).count();
        // Older VMs report at least the allocations they make themselves.
        let enough = match kind {
            event::OBJECT_ALLOC => granted > 0,
            _ => granted == needs.len(),
        };
        if !enough {
            return NOT_AVAILABLE;
        }
        let bit = 1_u64 << kind;
        if on {
            self.enabled.fetch_or(bit, Ordering::SeqCst);
        } else {
            self.enabled.fetch_and(!bit, Ordering::SeqCst);
        }
        match self.apply(kind) {
            Ok(()) => SUCCESS,
            Err(error) => {
                self.enabled.fetch_and(!bit, Ordering::SeqCst);
                say(&format!("event {kind} cannot be switched on: {error}"));
                FAIL
            }
        }
    }

    /// Makes the VM send what the agent wants of `kind`; before the VM is up that
    /// is only noted, and done at its initialisation.
    pub(crate) fn apply(&self, kind: i32) -> jvmti::Result<()> {
        // Class files are wanted from the first one on.
        let is_early = kind == event::CLASS_LOAD_HOOK;
        let here = self.here();
        if here.is_none() && !is_early {
            return Ok(());
        }
        match source(kind) {
            Source::Jvmti(needs) => {
                for (vm_event, need) in needs {
                    if need.is_none_or(|need| self.has(need)) {
                        self.switch_vm_event(*vm_event)?;
                    }
                }
            }
            Source::Jni => {
                if let Some((env, jni)) = here.filter(|_| self.is_on(kind)) {
                    with_profiler_paused(|| jni_refs::watch(env, jni))?;
                }
            }
            Source::Always | Source::Nowhere => {}
        }
        if let Some((env, jni)) = here
            && kind == event::OBJECT_ALLOC
        {
            self.switch_new_objects(env, jni, self.is_on(kind))?;
        }
        if let Some((env, _)) = here
            && kind == event::COMPILED_METHOD_LOAD
            && self.is_on(kind)
        {
            // What was compiled before is reported now.
            env.generate(EventKind::CompiledMethodLoad)?;
        }
        Ok(())
    }

    /// A VM event is on while some event that comes from it is.
    fn switch_vm_event(&self, vm_event: EventKind) -> jvmti::Result<()> {
        let comes_from = |kind: &i32| match source(*kind) {
            Source::Jvmti(needs) => needs.iter().any(|(needed, _)| *needed == vm_event),
            _ => false,
        };
        let is_ours = vm_event == EventKind::ClassFileLoadHook && self.inserts();
        let on =
            is_ours || (1..=event::GC_FINISH).any(|kind| comes_from(&kind) && self.is_on(kind));
        with_profiler_paused(|| self.env.enable(vm_event, on))?;
        if on
            && vm_event == EventKind::SampledObjectAlloc
            && let Some((env, _)) = self.here()
        {
            // Threads continue to allocate unseen in the memory they have in hand; a
            // collection takes it from them.
            env.force_gc()?;
        }
        Ok(())
    }

    /// Applies all that was wanted before the VM was up.
    pub(crate) fn apply_all(&self) {
        for kind in 1..=event::GC_FINISH {
            if self.is_on(kind)
                && let Err(error) = self.apply(kind)
            {
                say(&format!("event {kind} cannot be switched on: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_from_somewhere_or_not_available() {
        let available: Vec<i32> = (-1..=70)
            .filter(|kind| source(*kind) != Source::Nowhere)
            .collect();
        // All of jvmpi.h but moves (ids do not move), instructions, the reset that no
        // VM requests, the arena that is never deleted, and dumps, which are requested.
        let expected: Vec<i32> = (1..=61)
            .filter(|kind| !matches!(kind, 6 | 9..=32 | 36 | 37 | 45 | 49 | 50 | 59))
            .collect();
        assert_eq!(available, expected);
        assert_eq!(source(2000), Source::Nowhere);
    }
}
