//! Where words go: standard output and standard error. Files are in [`output_file`](crate::output_file).

use report::Provenance;
use std::io::{self, BufWriter};

/// Buffered standard output.
pub(crate) type Stdout = BufWriter<io::Stdout>;

/// Standard output with a buffer that suits tables of millions of lines.
pub(crate) fn stdout() -> Stdout {
    BufWriter::with_capacity(1 << 16, io::stdout())
}

/// A line on standard error.
#[expect(clippy::print_stderr, reason = "the one place where notes are said")]
pub(crate) fn note(text: &str) {
    eprintln!("tenure: {}", report::escape::visible(text));
}

/// How many findings are listed; `validate` lists all.
const FINDINGS: usize = 5;

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
