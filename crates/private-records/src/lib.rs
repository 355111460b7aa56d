//! The records of Tenure's agent that the HPROF format does not have. Their tags are in the range that `hprof` reserves
//! for private records ([`hprof::PRIVATE_TAGS`]), so that `hprof` and other readers skip them by their length.
//!
//! ```
//! use hprof::RecordTag;
//! use private_records::{PrivateTag, Tag, record_name};
//!
//! assert_eq!(Tag::from_u8(0x01), Some(RecordTag::Utf8.into()));
//! assert_eq!(Tag::from_u8(0x71), Some(PrivateTag::CpuTimes.into()));
//! assert_eq!([record_name(0x71), record_name(0x60)], ["CPU_TIMES", "0x60"]);
//! ```

use hprof::RecordTag;

/// The beginning of a text (UTF8 record) that the number of nanoseconds of CPU time follows that a CPU sample stands for.
/// A text, because some readers of files stop at a private record.
pub const SAMPLE_INTERVAL: &str = "tenure: nanoseconds of CPU time per sample: ";

/// Tag of a private record. The text form is that of the JDK's agent, with Tenure's additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PrivateTag {
    /// ALLOCATION STACKS of the text form, of the preceding ALLOC SITES. u8 samples, then rows of u4 rank, class
    /// serial, trace of the site and trace of the stack, u8 samples, objects and bytes, f8 share of the site with the
    /// ends of its interval (1: all).
    AllocationStacks = 0x6f,
    /// LOCK TIME of the text form; as MONITOR_TIMES, for locks that are not monitors.
    LockTimes = 0x70,
    /// CPU TIME of the text form. u8 total, then rows of u4 trace, u8 calls, u8 self and u8 total nanoseconds.
    CpuTimes = 0x71,
    /// MONITOR TIME of the text form. u8 total, then rows of u4 class serial, u4 trace, u8 count and u8 nanoseconds
    /// blocked.
    MonitorTimes = 0x72,
    /// The preceding ALLOC SITES with wide numbers. Rows of u4 class serial, u4 trace, u8 live bytes, live objects,
    /// bytes and objects.
    WideAllocSites = 0x73,
    /// JNI REFERENCES of the text form. Rows of u4 class serial, trace, thread serial and flags (1: weak), u8 created,
    /// deleted, cleared, bytes, milliseconds of the oldest.
    JniReferences = 0x74,
    /// The existing references of the preceding JNI REFERENCES. Rows of u4 row of that record and u8 reference, as in
    /// the root records of a dump.
    JniHandles = 0x75,
    /// NATIVE of the text form. u8 mean bytes between two recorded blocks, then rows as in WIDE_ALLOC_SITES, whose
    /// class is a library.
    NativeSites = 0x76,
    /// WALL RUNNING or WALL WAITING of the text form. u4 0 for RUNNING, 1 for WAITING, u8 total nanoseconds, then rows
    /// of u4 trace, u8 samples and u8 nanoseconds.
    WallTimes = 0x77,
    /// The loaders and modules of the classes of the sites. Rows of u4 class serial, name id of the loader and of the
    /// module; 0 for the boot loader and for no named module.
    ClassPlaces = 0x78,
    /// The uncertainty of the following ALLOC SITES, when some of its counts are estimates. Rows of f8 variances of
    /// live and of allocated objects, in the order of its rows.
    SiteVariances = 0x79,
    /// MONITOR DUMP of the text form, all in u4. Number of threads; of each its serial, trace and status
    /// ([`thread_status`]). Number of monitors; of each the class serial, owner's serial (0: no one), entries, number
    /// of threads that want to enter, number that wait to be notified, and the serials of these threads.
    MonitorDump = 0x7a,
    /// WAIT and WAITED of the text form. u4 0 for WAIT, 1 for WAITED, u4 class serial, u4 thread serial, i8
    /// milliseconds.
    MonitorWait = 0x7b,
    /// The live objects of a class that a collector requested, as `vmpi::instances` writes them.
    Instances = 0x7c,
    /// Results of factories in class filters since the last such record; without rows, all earlier results are void.
    /// Rows of u4 class serial, u1 bits as in `vmpi::ClassOptions` (128: not recorded), u4 share in millionths.
    ClassOptions = 0x7d,
    /// The sizes of all live objects and their use, by class and stack, as a collector requested them and
    /// `vmpi::fills` writes them.
    Fills = 0x7e,
}

impl PrivateTag {
    /// Every tag, in the order of the bytes from [`hprof::PRIVATE_TAGS`].
    pub const ALL: [PrivateTag; 16] = [
        PrivateTag::AllocationStacks,
        PrivateTag::LockTimes,
        PrivateTag::CpuTimes,
        PrivateTag::MonitorTimes,
        PrivateTag::WideAllocSites,
        PrivateTag::JniReferences,
        PrivateTag::JniHandles,
        PrivateTag::NativeSites,
        PrivateTag::WallTimes,
        PrivateTag::ClassPlaces,
        PrivateTag::SiteVariances,
        PrivateTag::MonitorDump,
        PrivateTag::MonitorWait,
        PrivateTag::Instances,
        PrivateTag::ClassOptions,
        PrivateTag::Fills,
    ];

    /// The tag of a byte in the file, if it is one.
    pub fn from_u8(byte: u8) -> Option<PrivateTag> {
        let place = byte.checked_sub(*hprof::PRIVATE_TAGS.start())?;
        PrivateTag::ALL.get(usize::from(place)).copied()
    }

    /// The name, upper case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            PrivateTag::AllocationStacks => "ALLOCATION_STACKS",
            PrivateTag::LockTimes => "LOCK_TIMES",
            PrivateTag::CpuTimes => "CPU_TIMES",
            PrivateTag::MonitorTimes => "MONITOR_TIMES",
            PrivateTag::WideAllocSites => "WIDE_ALLOC_SITES",
            PrivateTag::JniReferences => "JNI_REFERENCES",
            PrivateTag::JniHandles => "JNI_HANDLES",
            PrivateTag::NativeSites => "NATIVE_SITES",
            PrivateTag::WallTimes => "WALL_TIMES",
            PrivateTag::ClassPlaces => "CLASS_PLACES",
            PrivateTag::SiteVariances => "SITE_VARIANCES",
            PrivateTag::MonitorDump => "MONITOR_DUMP",
            PrivateTag::MonitorWait => "MONITOR_WAIT",
            PrivateTag::Instances => "INSTANCES",
            PrivateTag::ClassOptions => "CLASS_OPTIONS",
            PrivateTag::Fills => "FILLS",
        }
    }
}

/// Tag of any record in a stream of Tenure's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A record of the HPROF format.
    Format(RecordTag),
    /// A private record.
    Private(PrivateTag),
}

impl Tag {
    /// The tag of a byte in the file, if it is one.
    pub fn from_u8(byte: u8) -> Option<Tag> {
        match RecordTag::from_u8(byte) {
            Some(tag) => Some(Tag::Format(tag)),
            None => PrivateTag::from_u8(byte).map(Tag::Private),
        }
    }

    /// The byte in the file.
    pub const fn byte(self) -> u8 {
        match self {
            Tag::Format(tag) => tag as u8,
            Tag::Private(tag) => tag as u8,
        }
    }

    /// The name, upper case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Tag::Format(tag) => tag.name(),
            Tag::Private(tag) => tag.name(),
        }
    }
}

impl From<RecordTag> for Tag {
    fn from(tag: RecordTag) -> Tag {
        Tag::Format(tag)
    }
}

impl From<PrivateTag> for Tag {
    fn from(tag: PrivateTag) -> Tag {
        Tag::Private(tag)
    }
}

/// Name of a record with this tag byte, or `0x60` for an unknown one.
pub fn record_name(byte: u8) -> String {
    Tag::from_u8(byte).map_or_else(|| format!("0x{byte:02x}"), |tag| tag.name().to_owned())
}

/// A thread's status in MONITOR DUMP as in the text form (`R`, `intr|CW`). The low byte enumerates ended, sleeping,
/// waiting to enter, waiting to be notified, running, unknown; bits 8 to 10 are suspended, interrupted, in native
/// code.
pub fn thread_status(word: u32) -> String {
    const STATES: [&str; 5] = ["ZO", "SL", "MW", "CW", "R"];
    let mut text = String::new();
    for (bit, prefix) in [(8, "S|"), (9, "intr|"), (10, "native|")] {
        if word >> bit & 1 == 1 {
            text.push_str(prefix);
        }
    }
    text.push_str(STATES.get((word & 0xff) as usize).unwrap_or(&"UN"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tags_are_those_that_are_reserved() {
        let found: Vec<u8> = (0..=255)
            .filter(|byte| PrivateTag::from_u8(*byte).is_some_and(|tag| tag as u8 == *byte))
            .collect();
        assert_eq!(found, hprof::PRIVATE_TAGS.collect::<Vec<u8>>());
    }
}
