//! EnableEvent and DisableEvent: the JVMTI events that produce each event.

use std::sync::atomic::Ordering;

use jvmti::{Capability, EventKind};

use crate::bridge::{Bridge, say, with_profiler_paused};
use crate::jni_refs;
use vmpi::c_interface::layout::{FAIL, NOT_AVAILABLE, SUCCESS, event};

/// JVMTI's error of a function that the VM does not allow at the moment.
const WRONG_PHASE: i32 = 112;

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// JVMTI events, with the capability that each of them needs.
    Jvmti(&'static [(EventKind, Option<Capability>)]),
    /// Replaced JNI functions.
    Jni,
    /// A source that is always active, or the bridge itself.
    Always,
    /// HotSpot has no source for it.
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
    /// Whether the VM has granted a capability; requests it once more if that is still possible.
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

    /// Enables or disables an event; returns a result code of the interface.
    pub(crate) fn switch(&self, kind: i32, on: bool) -> i32 {
        let needs = match source(kind) {
            Source::Nowhere => return NOT_AVAILABLE,
            Source::Jvmti(needs) => needs,
            Source::Jni | Source::Always => &[],
        };
        let is_granted = |need: &Option<Capability>| need.is_none_or(|need| self.has(need));
        let granted = needs.iter().filter(|(_, need)| is_granted(need)).count();
        // Older VMs report at least the allocations that the VM itself makes.
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

    /// Makes the VM send the events that the agent wants of `kind`. Before the VM is initialized this does nothing, and
    /// [`Bridge::apply_all`] does it then.
    pub(crate) fn apply(&self, kind: i32) -> jvmti::Result<()> {
        // Class files are needed from the first one on.
        let is_early = kind == event::CLASS_LOAD_HOOK;
        let here = self.here();
        if here.is_none() && !is_early {
            return Ok(());
        }
        match source(kind) {
            Source::Jvmti(needs) => {
                for (vm_event, need) in needs {
                    if need.is_none_or(|need| self.has(need)) {
                        match self.switch_vm_event(*vm_event) {
                            // JDK 9 and later load an agent of -Xrun when events cannot be switched any more. For such
                            // agents, class files are reported from the beginning.
                            Err(error) if here.is_none() && error.code() == Some(WRONG_PHASE) => {}
                            switched => switched?,
                        }
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
            // Reports methods that were compiled before.
            env.generate(EventKind::CompiledMethodLoad)?;
        }
        Ok(())
    }

    /// A VM event is enabled while any event that it produces is enabled.
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
            // Threads continue to allocate without events in their current allocation buffers; a collection retires
            // these buffers.
            env.force_gc()?;
        }
        Ok(())
    }

    /// Applies all settings made before the VM was initialized.
    pub(crate) fn apply_all(&self) {
        for kind in 1..=event::GC_FINISH {
            // Class files were reported before in case that an agent of -Xrun wants them.
            if (self.is_on(kind) || kind == event::CLASS_LOAD_HOOK)
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
        // All events of jvmpi.h except moves (ids never change), instructions, the reset that no VM requests, the
        // deletion of arenas, which never happens, and dumps, which are only requested.
        let expected: Vec<i32> = (1..=61)
            .filter(|kind| !matches!(kind, 6 | 9..=32 | 36 | 37 | 45 | 49 | 50 | 59))
            .collect();
        assert_eq!(available, expected);
        assert_eq!(source(2000), Source::Nowhere);
    }
}
