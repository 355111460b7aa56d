//! `tenure redact`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::output::{create, note, write_file};
use crate::session::Session;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use heap_analysis::redact::{Method, PLATFORM, RedactOptions, Redactor, verify};
use hprof::source::{Control, Source, Unpack};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Write a dump without its contents: lengths, references and equality stay, no text or number
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure redact heap.hprof shared.hprof\n  tenure redact heap.hprof shared.hprof --method zero --numbers\n  tenure redact heap.hprof shared.hprof --keep java.lang.Thread --rename map.txt"
)]
pub struct Args {
    /// The dump
    #[arg(value_name = "IN", value_hint = clap::ValueHint::FilePath)]
    input: PathBuf,
    /// The dump to write
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// How contents are replaced
    #[arg(long, value_enum, default_value_t = How::Tokens)]
    method: How,
    /// Key of the tokens: 32 bytes, so that several dumps get the same tokens [default: random]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    key_file: Option<PathBuf>,
    /// Leave the strings, arrays and chars of this class readable (* stands for any characters)
    #[arg(long, value_name = "CLASS")]
    keep: Vec<String>,
    /// Numbers in boxes and in fields of application classes too
    #[arg(long)]
    numbers: bool,
    /// Rename application classes, fields and methods, and write the map (ProGuard's form)
    #[arg(long, value_name = "MAP", value_hint = clap::ValueHint::FilePath)]
    rename: Option<PathBuf>,
    /// With --rename: leave these names too (* stands for any characters)
    #[arg(long, value_name = "CLASS", requires = "rename")]
    keep_name: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// Equal contents get equal tokens of the same length.
    Tokens,
    /// Zeros.
    Zero,
}

/// The decoded bytes of a dump; `-` is standard input.
pub(crate) fn source(session: &Session, path: &Path) -> Result<Source> {
    let open = |control: &Control<'_>| {
        let unpack = Unpack {
            dir: session.global.cache_dir.as_deref(),
            threads: session.global.threads,
            control: *control,
        };
        Source::open(path, &unpack)
    };
    Ok(session.with_control(open)?)
}

/// Refuses to write over the dump that is being read, whatever `--force` says.
pub(crate) fn not_itself(input: &Path, output: &Path) -> Result<()> {
    let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
    if same(input, output) == Some(true) {
        return Err(Usage(format!("{} is the input", output.display())).into());
    }
    Ok(())
}

impl Args {
    fn method(&self) -> Result<Method> {
        if self.method == How::Zero {
            return Ok(Method::Zero);
        }
        let mut key = [0u8; 32];
        match &self.key_file {
            None => getrandom::fill(&mut key)?,
            Some(path) => {
                let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
                key = bytes.try_into().map_err(|b: Vec<u8>| {
                    let path = path.display();
                    Usage(format!("{path}: a key has 32 bytes, this file {}", b.len()))
                })?;
            }
        }
        Ok(Method::Tokens(key))
    }

    /// Writes the dump and looks at it again.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        not_itself(&self.input, &self.output)?;
        let rename_except = self.rename.as_ref().map(|_| {
            let platform = PLATFORM.iter().map(|p| (*p).to_owned());
            platform.chain(self.keep_name.iter().cloned()).collect()
        });
        let options = RedactOptions {
            method: self.method()?,
            keep: self.keep.clone(),
            numbers: self.numbers,
            rename_except,
        };
        let source = source(session, &self.input)?;
        let redactor = Redactor::new(source.bytes(), &options)?;
        let mut out =
            BufWriter::with_capacity(1 << 20, create(&self.output, session.global.force)?);
        let done = hprof::rewrite(source.bytes(), &redactor, &mut out);
        let done = done.with_context(|| format!("cannot write {}", self.output.display()))?;
        out.flush()?;
        drop(out);
        if let (Some(path), Some(names)) = (&self.rename, redactor.names()) {
            write_file(path, session.global.force, names.mapping().as_bytes())?;
        }
        let written = Source::open(&self.output, &Unpack::default())?;
        let found = verify(source.bytes(), written.bytes(), &redactor)?;
        if !found.clean() {
            // What cannot be vouched for must not be there to be sent.
            std::fs::remove_file(&self.output)?;
            bail!(
                "the second look found {} arrays unchanged, {} remains of texts and {} missing objects; {} was removed",
                found.unchanged,
                found.remains,
                found.differences,
                self.output.display()
            );
        }
        if !session.global.quiet {
            note(&format!(
                "wrote {} ({} bytes): {} arrays replaced and looked at again, nothing of them is left",
                self.output.display(),
                done.bytes,
                found.arrays
            ));
        }
        Ok(if done.skipped > 0 {
            Exit::Damaged
        } else {
            Exit::Ok
        })
    }
}
