//! `tenure extract`.

use super::target::{find_classes, find_object, parse_id};
use crate::Outcome;
use crate::dump_output::{DumpOutput, finish, source};
use crate::exit::{NotFound, Usage};
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, Result};
use heap_analysis::share::extract::Extract;
use heap_graph::{Heap, ObjIdx};
use report::units::plural;
use std::io::Read;
use std::path::PathBuf;

/// Write a part of a dump as a dump: objects with everything they retain
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure extract heap.hprof part.hprof --object 0x7f001000\n  tenure extract heap.hprof part.hprof --class shop.Session\n  tenure extract heap.hprof part.hprof --ids ids.txt --only"
)]
pub struct Args {
    /// The dump
    #[arg(value_name = "IN", value_hint = clap::ValueHint::FilePath)]
    input: PathBuf,
    /// The dump to write; the extension `.gz` compresses it, and `-` is standard output
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// This object
    #[arg(long, value_name = "ID")]
    object: Vec<String>,
    /// All objects of this class
    #[arg(long, value_name = "CLASS")]
    class: Vec<String>,
    /// The object ids in this file, the first word of each line after a line of titles, lines that begin with `#` left out; `-` is standard input
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    ids: Option<PathBuf>,
    /// Only these objects, without those they retain
    #[arg(long)]
    only: bool,
}

impl Args {
    fn objects(&self, heap: &Heap) -> Result<Vec<ObjIdx>> {
        let id = |text: &str| find_object(heap, parse_id(text)?);
        let mut list = Vec::new();
        for text in &self.object {
            list.push(id(text)?);
        }
        for name in &self.class {
            for class in find_classes(heap, name)? {
                list.extend(heap.objects_of(class));
            }
        }
        if let Some(path) = &self.ids {
            let mut text = String::new();
            if path.as_os_str() == "-" {
                std::io::stdin().read_to_string(&mut text)?;
            } else {
                text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            }
            for (line, number) in text.lines().zip(1..) {
                let mut words = line.trim().split([' ', '\t', ',', ';']);
                let word = words.next().unwrap_or_default();
                // Tables of ids, such as the CSV of `tenure objects`, have a line of titles.
                let is_title = number == 1 && parse_id(word).is_err();
                if word.is_empty() || word.starts_with('#') || is_title {
                    continue;
                }
                let found = id(word);
                list.push(found.with_context(|| format!("{}, line {number}", path.display()))?);
            }
        }
        Ok(list)
    }

    /// Writes the part.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if self.object.is_empty() && self.class.is_empty() && self.ids.is_none() {
            return Err(Usage("which objects? (--object, --class or --ids)".to_owned()).into());
        }
        let is_pipe = std::fs::metadata(&self.input).is_ok_and(|found| !found.is_file());
        if self.input.as_os_str() == "-" || is_pipe {
            let what = "the dump is read twice, which a pipe cannot be: give a file";
            return Err(Usage(what.to_owned()).into());
        }
        let force = session.global.force;
        let mut out = DumpOutput::create(&self.output, force, &[&self.input])?;
        let heap = session.open(&self.input)?;
        let objects = self.objects(&heap)?;
        if objects.is_empty() {
            return Err(NotFound("none of these classes and ids has an object".to_owned()).into());
        }
        let extract = Extract::new(&heap, &objects, !self.only);
        let source = source(session, &self.input)?;
        let done = out.write(source.bytes(), &extract)?;
        out.file.finish()?;
        if !session.global.quiet {
            note(&format!(
                "wrote {} ({} bytes): {} and all classes",
                self.output.display(),
                done.bytes,
                plural(extract.objects(), "object", "objects")
            ));
        }
        finish(session, &source, done)
    }
}
