//! The VM's native memory tracking, as `VM.native_memory summary` prints it, in the categories of
//! a memory timeline.

/// Committed bytes by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeMemory {
    /// The Java heap.
    pub java: u64,
    /// Memory that programs request: direct buffers, `Unsafe.allocateMemory`, and the VM's own use of them.
    pub native: u64,
    /// Compiled code and the compilers.
    pub code: u64,
    /// Stacks of threads.
    pub stack: u64,
    /// Memory of the collector, except for the heap.
    pub gc: u64,
    /// Classes and their metadata, symbols.
    pub class: u64,
    /// Everything else that is tracked: tables of the VM.
    pub other: u64,
}

/// Reads the summary (in KB, the default scale, or in bytes). `None` if tracking is off or the text has another format.
pub fn parse(text: &str) -> Option<NativeMemory> {
    let mut memory = NativeMemory::default();
    let mut found = false;
    for line in text.lines() {
        // `-                 Java Heap (reserved=262144KB, committed=262144KB)`
        let Some(rest) = line.strip_prefix('-') else {
            continue;
        };
        let Some((name, numbers)) = rest.trim().split_once(" (reserved=") else {
            continue;
        };
        let committed = numbers.split_once("committed=");
        let Some(committed) = committed.and_then(|(_, n)| size(n)) else {
            continue;
        };
        found = true;
        *match name.trim() {
            "Java Heap" => &mut memory.java,
            "Code" | "Compiler" | "JVMCI" => &mut memory.code,
            "Thread" | "Thread Stack" => &mut memory.stack,
            "Class" | "Metaspace" | "Symbol" | "Shared class space" => &mut memory.class,
            // Memory from `Unsafe` is in the category `Internal` up to JDK 10, and in `Other` from then on.
            "Other" | "Internal" => &mut memory.native,
            name if name.starts_with("GC") => &mut memory.gc,
            _ => &mut memory.other,
        } += committed;
    }
    found.then_some(memory)
}

/// `1024KB`, or a number of bytes, which a VM prints at its end from JDK 17 on.
fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let unit = if text[end..].starts_with("KB") {
        1024
    } else {
        1
    };
    text[..end].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_is_counted_once() {
        let text = "Native Memory Tracking:\n\nTotal: reserved=1KB, committed=330067KB\n\
            -                 Java Heap (reserved=262144KB, committed=1024KB)\n\
            \x20                            (mmap: reserved=262144KB, committed=262144KB, at peak)\n\
            -                     Class (reserved=1048637KB, committed=189KB)\n\
            -                    Thread (reserved=19518KB, committed=934KB)\n\
            -                      Code (reserved=247751KB, committed=7607KB)\n\
            -                        GC (reserved=42262KB, committed=42262KB)\n\
            -                 GCCardSet (reserved=2KB, committed=2KB)\n\
            -                  Internal (reserved=1242KB, committed=1242KB)\n\
            -                    Module (reserved=30KB, committed=30KB)\n";
        let memory = parse(text).unwrap();
        assert_eq!(size("12, at peak"), Some(12));
        let kb = |n: u64| n * 1024;
        assert_eq!(memory.java, kb(1024));
        assert_eq!((memory.gc, memory.class), (kb(42264), kb(189)));
        assert_eq!(
            (memory.stack, memory.code, memory.native, memory.other),
            (kb(934), kb(7607), kb(1242), kb(30))
        );
        assert_eq!(parse("Native memory tracking is not enabled\n"), None);
    }
}
