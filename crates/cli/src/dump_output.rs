//! What `redact`, `extract`, `convert` and `dump` have in common: a dump is written, packed if its name ends with `.gz`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::output::warn_of_findings;
use crate::output_file::OutputFile;
use crate::session::Session;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use hprof::source::{Control, Source, Unpack, split_number};
use hprof::{Rewriter, Rewritten};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The decoded bytes of a dump file, with all of its dumps, or of one dump of an archive; `-` is standard input.
pub(crate) fn source(session: &Session, path: &Path) -> Result<Source> {
    let (file, number) = split_number(path);
    let open = |control: &Control<'_>| {
        let unpack = Unpack {
            dir: session.global.cache_dir.as_deref(),
            threads: session.global.threads,
            dump: number.unwrap_or_default(),
            control: *control,
        };
        Source::open(file, &unpack)
    };
    Ok(session.with_control(open)?)
}

/// The same, but `FILE#2` is refused unless it is a dump of an archive, because all dumps of a file are written.
pub(crate) fn source_of_all(session: &Session, path: &Path) -> Result<Source> {
    let source = source(session, path)?;
    let (file, number) = split_number(path);
    if number.is_some() && !source.is_one_of_several() {
        let (path, file) = (path.display(), file.display());
        let what = format!("{path}: all dumps of the file are written: give {file}");
        return Err(Usage(what).into());
    }
    Ok(source)
}

/// Whether the name of an output requests gzip; other packings are not written.
pub(crate) fn is_packed(output: &Path) -> Result<bool> {
    const OTHERS: [&str; 7] = ["zst", "xz", "bz2", "zip", "tar", "tgz", "7z"];
    let extension = output.extension().and_then(|e| e.to_str());
    let extension = extension.unwrap_or_default().to_lowercase();
    if OTHERS.contains(&extension.as_str()) {
        let output = output.display();
        let what = format!("{output}: .{extension} is not written: name it .hprof or .hprof.gz");
        return Err(Usage(what).into());
    }
    Ok(extension == "gz")
}

/// Standard output without a buffer.
fn stdout() -> io::Result<File> {
    #[cfg(unix)]
    let stdout = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
    #[cfg(windows)]
    let stdout = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
    stdout.map(File::from)
}

/// A dump that is being written: to a file, or to standard output for `-`.
pub(crate) struct DumpOutput {
    pub(crate) file: OutputFile,
    is_packed: bool,
}

impl DumpOutput {
    /// Begins it.
    pub(crate) fn create(path: &Path, force: bool, inputs: &[&Path]) -> Result<DumpOutput> {
        let is_packed = is_packed(path)?;
        let file = match path.as_os_str() == "-" {
            true => OutputFile::direct(stdout()?, path),
            false => OutputFile::create(path, force, inputs)?,
        };
        Ok(DumpOutput { file, is_packed })
    }

    /// Begins one that is read before it is whole.
    pub(crate) fn create_with_part(
        path: &Path,
        force: bool,
        inputs: &[&Path],
    ) -> Result<DumpOutput> {
        let is_packed = is_packed(path)?;
        let file = OutputFile::create_with_part(path, force, inputs)?;
        Ok(DumpOutput { file, is_packed })
    }

    /// Begins one that is read before it is sent to standard output.
    pub(crate) fn create_for_stdout() -> Result<DumpOutput> {
        Ok(DumpOutput {
            file: OutputFile::temporary(Path::new("-"))?,
            is_packed: false,
        })
    }

    /// Writes it, packed if its name ends with `.gz`.
    pub(crate) fn write(&mut self, data: &[u8], rewriter: &dyn Rewriter) -> Result<Rewritten> {
        let wrong = format!("cannot write {}", self.file.path().display());
        let wrong = || wrong.clone();
        let mut out = BufWriter::with_capacity(1 << 20, &mut self.file);
        let done = if self.is_packed {
            let mut gz = GzEncoder::new(&mut out, Compression::default());
            let done = hprof::rewrite(data, rewriter, &mut gz).with_context(wrong)?;
            gz.finish().with_context(wrong)?;
            done
        } else {
            hprof::rewrite(data, rewriter, &mut out).with_context(wrong)?
        };
        out.flush().with_context(wrong)?;
        Ok(done)
    }
}

/// Lists the damage of the input, and gives the exit code.
pub(crate) fn finish(session: &Session, source: &Source, done: Rewritten) -> Outcome {
    let mut damage = source.diagnostics().clone();
    damage.extend(done.damage);
    if !damage.any_damage() {
        return Ok(Exit::Ok);
    }
    if !session.global.json {
        damage.sort();
        warn_of_findings(&damage);
    }
    Ok(Exit::Damaged)
}
