//! The text form (`format=a`) of the JDK agent: lines to records and records to lines.
//!
//! ```
//! use hprof_text::{TextReader, TextRecord, write_record};
//!
//! let text = b"CPU SAMPLES BEGIN (total = 2) Sat Nov 21 04:57:27 2026\nCPU SAMPLES END\n";
//! let mut reader = TextReader::new(text);
//! let mut again = Vec::new();
//! for record in reader.by_ref() {
//!     write_record(&mut again, &record).unwrap();
//! }
//! assert_eq!(again, text);
//! assert!(reader.diagnostics().is_empty());
//! ```
//!
//! Reading order: [`TextRecord`], [`TextReader`], [`write_record`].

mod lines;
mod read;
mod read_heap;
mod read_tables;
mod record;
#[cfg(test)]
mod tests;
mod write;
mod write_heap;

pub use read::TextReader;
pub use record::{
    AllocationStackRow, CpuKind, EstimateRow, Frame, Header, HeapArray, HeapClass, HeapObject,
    Monitor, MonitorThread, MonitorWait, OldRow, RankRow, ReferenceRow, Root, RootKind, SiteOrder,
    SiteRow, TextLine, TextRecord, ThreadStart, Trace,
};
pub use write::{PRELUDE, write_record};

/// True when the first bytes of a file are those of the text form (or of the table of `cpu=old`, which has no header).
pub fn is_text(start: &[u8]) -> bool {
    if let Some(rest) = start.strip_prefix(b"JAVA PROFILE ") {
        // In the binary form a NUL follows the version, in the text form a comma.
        let version = rest
            .iter()
            .take_while(|b| b.is_ascii_digit() || **b == b'.')
            .count();
        return rest.get(version) == Some(&b',');
    }
    const STARTS: [&[u8]; 6] = [
        b"count callee caller time",
        b"THREAD START (",
        b"TRACE ",
        b"CPU SAMPLES BEGIN",
        b"CPU TIME (ms) BEGIN",
        b"SITES BEGIN",
    ];
    STARTS.iter().any(|known| start.starts_with(known))
}
