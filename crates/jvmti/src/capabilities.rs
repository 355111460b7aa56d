//! Capabilities of the VM: 45 of them, each granted or not.
//!
//! `AddCapabilities` refuses the whole set if one bit is unknown (JDK 8 lacks 41 to 44), so
//! [`Env::add_capabilities`](crate::Env::add_capabilities) requests each separately and returns those granted.

use crate::sys::RawCapabilities;

/// One capability: its bit in `jvmtiCapabilities`.
#[expect(missing_docs, reason = "named as in the JVMTI specification")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    TagObjects = 0,
    GetOwnedMonitorInfo = 5,
    GetCurrentContendedMonitor = 6,
    GetMonitorInfo = 7,
    GetSourceFileName = 11,
    GetLineNumbers = 12,
    AccessLocalVariables = 14,
    GenerateExceptionEvents = 17,
    Suspend = 20,
    GenerateMethodEntryEvents = 24,
    GenerateMethodExitEvents = 25,
    GenerateCompiledMethodLoadEvents = 27,
    GenerateNativeMethodBindEvents = 30,
    SignalThread = 10,
    RedefineAnyClass = 21,
    GetCurrentThreadCpuTime = 22,
    GetThreadCpuTime = 23,
    GenerateAllClassHookEvents = 26,
    GenerateMonitorEvents = 28,
    GenerateVmObjectAllocEvents = 29,
    GenerateGarbageCollectionEvents = 31,
    GenerateObjectFreeEvents = 32,
    RetransformClasses = 37,
    RetransformAnyClass = 38,
    GenerateResourceExhaustionHeapEvents = 39,
    GenerateEarlyVmstart = 41,
    GenerateEarlyClassHookEvents = 42,
    GenerateSampledObjectAllocEvents = 43,
    SupportVirtualThreads = 44,
}

impl Capability {
    /// All capabilities that this crate defines, with the field names of the header.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::TagObjects, "can_tag_objects"),
        (Self::GetOwnedMonitorInfo, "can_get_owned_monitor_info"),
        (
            Self::GetCurrentContendedMonitor,
            "can_get_current_contended_monitor",
        ),
        (Self::GetMonitorInfo, "can_get_monitor_info"),
        (Self::GetSourceFileName, "can_get_source_file_name"),
        (Self::GetLineNumbers, "can_get_line_numbers"),
        (Self::AccessLocalVariables, "can_access_local_variables"),
        (Self::Suspend, "can_suspend"),
        (
            Self::GenerateMethodEntryEvents,
            "can_generate_method_entry_events",
        ),
        (
            Self::GenerateMethodExitEvents,
            "can_generate_method_exit_events",
        ),
        (
            Self::GenerateCompiledMethodLoadEvents,
            "can_generate_compiled_method_load_events",
        ),
        (
            Self::GenerateNativeMethodBindEvents,
            "can_generate_native_method_bind_events",
        ),
        (
            Self::GenerateExceptionEvents,
            "can_generate_exception_events",
        ),
        (Self::SignalThread, "can_signal_thread"),
        (Self::RedefineAnyClass, "can_redefine_any_class"),
        (
            Self::GetCurrentThreadCpuTime,
            "can_get_current_thread_cpu_time",
        ),
        (Self::GetThreadCpuTime, "can_get_thread_cpu_time"),
        (
            Self::GenerateAllClassHookEvents,
            "can_generate_all_class_hook_events",
        ),
        (Self::GenerateMonitorEvents, "can_generate_monitor_events"),
        (
            Self::GenerateVmObjectAllocEvents,
            "can_generate_vm_object_alloc_events",
        ),
        (
            Self::GenerateGarbageCollectionEvents,
            "can_generate_garbage_collection_events",
        ),
        (
            Self::GenerateObjectFreeEvents,
            "can_generate_object_free_events",
        ),
        (Self::RetransformClasses, "can_retransform_classes"),
        (Self::RetransformAnyClass, "can_retransform_any_class"),
        (
            Self::GenerateResourceExhaustionHeapEvents,
            "can_generate_resource_exhaustion_heap_events",
        ),
        (Self::GenerateEarlyVmstart, "can_generate_early_vmstart"),
        (
            Self::GenerateEarlyClassHookEvents,
            "can_generate_early_class_hook_events",
        ),
        (
            Self::GenerateSampledObjectAllocEvents,
            "can_generate_sampled_object_alloc_events",
        ),
        (Self::SupportVirtualThreads, "can_support_virtual_threads"),
    ];
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub(crate) RawCapabilities);

impl Capabilities {
    /// Whether the set contains `capability`.
    #[must_use]
    pub fn has(self, capability: Capability) -> bool {
        let bit = capability as usize;
        self.0.0[bit / 32] >> (bit % 32) & 1 == 1
    }

    /// The set with `capability` added.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Self {
        let bit = capability as usize;
        self.0.0[bit / 32] |= 1 << (bit % 32);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_exactly_what_was_put_in() {
        let set = Capabilities::default()
            .with(Capability::TagObjects)
            .with(Capability::GenerateSampledObjectAllocEvents);
        for (capability, _) in Capability::ALL {
            let expected = matches!(
                capability,
                Capability::TagObjects | Capability::GenerateSampledObjectAllocEvents
            );
            assert_eq!(set.has(*capability), expected, "{capability:?}");
        }
    }
}
