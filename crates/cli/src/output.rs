//! Where words go: standard output and standard error. Files are in [`output_file`](crate::output_file).

use hprof::Diagnostics;
use report::Provenance;
use std::io::{self, BufWriter, Write};

/// Buffered standard output.
pub(crate) type Stdout = BufWriter<io::Stdout>;

/// Standard output with a buffer that suits tables of millions of lines.
pub(crate) fn stdout() -> Stdout {
    BufWriter::with_capacity(1 << 16, io::stdout())
}

/// Passes on what is written, and has a copy of it as long as that is short.
pub(crate) struct Copied<'a> {
    out: &'a mut dyn Write,
    copy: Option<Vec<u8>>,
    most: usize,
}

impl<'a> Copied<'a> {
    /// Copies at most so many bytes.
    pub(crate) fn new(out: &'a mut dyn Write, most: usize) -> Copied<'a> {
        Copied {
            out,
            copy: Some(Vec::new()),
            most,
        }
    }

    /// All that was written, unless it was longer or no text.
    pub(crate) fn text(self) -> Option<String> {
        String::from_utf8(self.copy?).ok()
    }
}

impl Write for Copied<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        let most = self.most;
        self.copy = self.copy.take().filter(|copy| copy.len() + count <= most);
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(&bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A line on standard error.
pub(crate) fn note(text: &str) {
    // A terminal that was closed takes no notes, and the recording is written all the same.
    let _ = writeln!(io::stderr(), "tenure: {}", report::escape::visible(text));
}

/// How many notes of the agent are printed.
pub(crate) const SHOWN_NOTES: usize = 20;

/// How many findings are listed; `validate` lists all.
const FINDINGS: usize = 5;

/// Lists the damage of an input whose readable part was written.
pub(crate) fn warn_of_findings(findings: &Diagnostics) {
    note("the input is damaged; the output has the rest of it:");
    let damage: Vec<_> = findings.iter().filter(|f| f.kind.is_damage()).collect();
    for finding in damage.iter().take(FINDINGS) {
        note(&format!("  {finding}"));
    }
    let more = damage.len().saturating_sub(FINDINGS) as u64 + findings.dropped();
    if more > 0 {
        note(&format!("  and {more} more (tenure validate lists them)"));
    }
}

/// Says what is wrong with the input.
pub(crate) fn warn_of_damage(provenance: &Provenance) {
    note("the input is damaged; the answer is about the rest of it:");
    let damage = provenance.diagnostics.iter().filter(|f| f.kind.is_damage());
    for finding in damage.clone().take(FINDINGS) {
        note(&format!(
            "  at {}: {}: {}",
            finding.offset, finding.record, finding.message
        ));
    }
    let more = damage.count().saturating_sub(FINDINGS) as u64 + provenance.omitted_diagnostics;
    if more > 0 {
        note(&format!("  and {more} more (tenure validate lists them)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_copied_and_all_of_it_is_passed_on() {
        for (text, copy) in [("12345", Some("12345")), ("123456", None)] {
            let mut out = Vec::new();
            let mut copied = Copied::new(&mut out, 5);
            for byte in text.as_bytes() {
                copied.write_all(&[*byte]).expect("memory");
            }
            assert_eq!(copied.text().as_deref(), copy);
            assert_eq!(out, text.as_bytes());
        }
    }
}
