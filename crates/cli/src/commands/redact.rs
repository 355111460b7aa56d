//! `tenure redact`.

use super::target::no_class;
use crate::Outcome;
use crate::dump_output::{DumpOutput, finish, source_of_all};
use crate::exit::{Exit, Usage};
use crate::output::note;
use crate::output_file::{OutputFile, of_reader};
use crate::session::Session;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use heap_analysis::share::redact::{Method, PLATFORM, RedactOptions, Redactor, verify};
use hprof::source::{Source, Unpack};
use std::fs::File;
use std::io::Write;
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
    /// The dump to write; the extension `.gz` compresses it, and `-` is standard output
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// How contents are replaced
    #[arg(long, value_enum, default_value_t = How::Tokens)]
    method: How,
    /// Key of the tokens: 32 bytes, so that several dumps get the same tokens [default: random]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    key_file: Option<PathBuf>,
    /// Leave contents of this class readable (* stands for any characters)
    #[arg(long, value_name = "CLASS")]
    keep: Vec<String>,
    /// Also replace numbers in boxes and in fields of application classes
    #[arg(long)]
    numbers: bool,
    /// Rename application classes, fields and methods, and write the map (ProGuard's form)
    #[arg(long, value_name = "MAP", value_hint = clap::ValueHint::FilePath)]
    rename: Option<PathBuf>,
    /// With --rename: names to leave unchanged (* stands for any characters)
    #[arg(long, value_name = "CLASS", requires = "rename")]
    keep_name: Vec<String>,
}

/// How contents are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// Equal contents get equal tokens of the same length.
    Tokens,
    /// Zeros.
    Zero,
}

impl How {
    /// With the key in a file, or a random one.
    pub(crate) fn method(self, key_file: Option<&Path>) -> Result<Method> {
        if self == How::Zero {
            return Ok(Method::Zero);
        }
        let mut key = [0u8; 32];
        match key_file {
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
}

impl Args {
    /// Writes the dump and verifies it.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let (input, force) = (&*self.input, session.global.force);
        let inputs = std::iter::once(input).chain(self.key_file.as_deref());
        let mut inputs = session.inputs(inputs);
        // What is sent on is verified before, so that it is a file first.
        let is_stdout = self.output.as_os_str() == "-";
        let mut out = match is_stdout {
            true => DumpOutput::create_for_stdout()?,
            false => DumpOutput::create_with_part(&self.output, force, &inputs)?,
        };
        let map = self.rename.as_deref();
        inputs.push(&self.output);
        let map = map.map(|map| OutputFile::create(map, force, &inputs));
        let map = map.transpose()?;
        let rename_except = self.rename.as_ref().map(|_| {
            let platform = PLATFORM.iter().map(|p| (*p).to_owned());
            platform.chain(self.keep_name.iter().cloned()).collect()
        });
        let options = RedactOptions {
            method: self.method.method(self.key_file.as_deref())?,
            keep: self.keep.clone(),
            numbers: self.numbers,
            rename_except,
        };
        let source = source_of_all(session, input)?;
        let redactor = Redactor::new(source.bytes(), &options)?;
        if redactor.dumps() == 0 {
            let input = input.display();
            note(&format!(
                "{input} has no heap dump in it: its other records are written"
            ));
        } else if let Some((class, similar)) = redactor.unknown_class() {
            return Err(no_class(class, similar).into());
        }
        let done = out.write(source.bytes(), &redactor)?;
        let unpack = Unpack {
            dir: session.global.cache_dir.as_deref(),
            ..Unpack::default()
        };
        let written = Source::open(out.file.part()?, &unpack)?;
        let found = verify(source.bytes(), written.bytes(), &redactor)?;
        if !found.clean() {
            // What cannot be vouched for must not be there to be sent.
            bail!(
                "the second look found {} arrays unchanged, {} remains of texts, {} objects with unknown contents and {} missing objects; {} is not written",
                found.unchanged,
                found.remains,
                found.strays,
                found.differences,
                self.output.display()
            );
        }
        if let (Some(mut map), Some(names)) = (map, redactor.names()) {
            map.write_all(names.mapping().as_bytes())?;
            map.finish()?;
        }
        if is_stdout {
            let mut stdout = crate::output::stdout();
            let copied = std::io::copy(&mut File::open(out.file.part()?)?, &mut stdout);
            copied.and_then(|_| stdout.flush()).map_err(of_reader)?;
        } else {
            out.file.finish()?;
        }
        if !session.global.quiet {
            note(&format!(
                "wrote {} ({} bytes): {} arrays replaced, and the output verified",
                self.output.display(),
                done.bytes,
                found.arrays
            ));
        }
        let cleared = redactor.cleared_objects();
        let exit = finish(session, &source, done)?;
        if cleared == 0 {
            return Ok(exit);
        }
        note(&format!(
            "objects whose fields are not those of their class, without contents or left out: {cleared}"
        ));
        Ok(Exit::Damaged)
    }
}
