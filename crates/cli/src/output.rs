//! Where words go: standard output, standard error, and files that only their owner can read.

use anyhow::{Context, Result};
use report::Provenance;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Buffered standard output.
pub(crate) type Stdout = BufWriter<io::Stdout>;

/// Standard output with a buffer that suits tables of millions of lines.
pub(crate) fn stdout() -> Stdout {
    BufWriter::with_capacity(1 << 16, io::stdout())
}

/// Creates an output file, mode 0600: reports hold what the heap held. Never overwrites unless
/// told to.
pub(crate) fn create(path: &Path, force: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let made = options.open(path).and_then(|file| {
        #[cfg(unix)]
        if force && file.metadata()?.is_file() {
            use std::os::unix::fs::PermissionsExt;
            // One that was there may have been for others to read.
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(file)
    });
    made.map_err(|error| {
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let error = anyhow::Error::new(error);
        if exists {
            error.context(format!("{} exists (--force overwrites)", path.display()))
        } else {
            error.context(format!("cannot write {}", path.display()))
        }
    })
}

/// Writes a whole output file.
pub(crate) fn write_file(path: &Path, force: bool, bytes: &[u8]) -> Result<()> {
    let mut file = create(path, force)?;
    file.write_all(bytes)
        .with_context(|| format!("cannot write {}", path.display()))
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
