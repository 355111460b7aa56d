//! `tenure extract`.

use super::target::{find_classes, find_object, parse_id};
use crate::Outcome;
use crate::dump_output::{DumpOutput, finish, source};
use crate::exit::{Exit, NotFound, Usage};
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, Result};
use heap_analysis::share::extract::Extract;
use heap_graph::{Heap, ObjIdx};
use report::Provenance;
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
    /// All reachable objects of this class; with --unreachable all its objects
    #[arg(long, value_name = "CLASS")]
    class: Vec<String>,
    /// The object ids in this file: the first `0x...` of each line, otherwise its first word, after a line of titles, lines that begin with `#` left out; `-` is standard input
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    ids: Option<PathBuf>,
    /// Only these objects, without those they retain
    #[arg(long)]
    only: bool,
}

impl Args {
    /// The objects, and how many of the classes are left out because they are unreachable.
    fn objects(&self, heap: &Heap, unreachable: bool) -> Result<(Vec<ObjIdx>, u64)> {
        let id = |text: &str| find_object(heap, parse_id(text)?);
        let mut list = Vec::new();
        let mut left_out = 0;
        for text in &self.object {
            list.push(id(text)?);
        }
        for name in &self.class {
            for class in find_classes(heap, name)? {
                for object in heap.objects_of(class) {
                    match unreachable || heap.is_reachable(object) {
                        true => list.push(object),
                        false => left_out += 1,
                    }
                }
            }
        }
        if let Some(path) = &self.ids {
            let mut text = String::new();
            if path.as_os_str() == "-" {
                std::io::stdin().read_to_string(&mut text)?;
            } else {
                text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            }
            for (number, row) in rows(&text) {
                let mut words = row.split(|c: char| c.is_whitespace() || ",;\"".contains(c));
                let is_marked = |word: &str| word.starts_with("0x") || word.starts_with('@');
                let first = words.clone().find(|word| !word.is_empty());
                let Some(word) = words.find(|word| is_marked(word)).or(first) else {
                    continue;
                };
                // Tables of ids, such as the CSV of `tenure objects`, have a line of titles.
                let is_title = number == 1 && parse_id(word).is_err();
                if row.starts_with('#') || is_title {
                    continue;
                }
                let found = id(word);
                list.push(found.with_context(|| format!("{}, line {number}", path.display()))?);
            }
        }
        Ok((list, left_out))
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
        let inputs = std::iter::once(&self.input).chain(&self.ids);
        let inputs = session.inputs(inputs.map(PathBuf::as_path));
        let mut out = DumpOutput::create(&self.output, force, &inputs)?;
        let heap = session.open(&self.input)?;
        let (objects, left_out) = self.objects(&heap, session.global.unreachable)?;
        let left_out = (left_out > 0).then(|| {
            let objects = plural(left_out, "unreachable object is", "unreachable objects are");
            format!("{objects} left out (--unreachable includes them)")
        });
        if objects.is_empty() {
            let none = "none of these classes and ids has an object".to_owned();
            return Err(NotFound(left_out.unwrap_or(none)).into());
        }
        let extract = Extract::new(&heap, &objects, !self.only);
        let source = source(session, &self.input)?;
        let done = out.write(source.bytes(), &extract)?;
        out.file.finish()?;
        if !session.global.quiet {
            left_out.as_deref().map(note);
            note(&format!(
                "wrote {} ({} bytes): {} and all classes",
                self.output.display(),
                done.bytes,
                plural(extract.objects(), "object", "objects")
            ));
        }
        // The analysis finds more damage than the writing of records.
        match session.finish(&Provenance::of(heap.summary())) {
            Exit::Ok => finish(session, &source, done),
            exit => Ok(exit),
        }
    }
}

/// The rows of a text with the numbers of their first lines.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text;
    let mut line = 1;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (row, after) = rest.split_at(end_of_row(rest));
        let number = line;
        line += row.matches('\n').count();
        rest = after;
        Some((number, row.trim()))
    })
}

/// The end of the first row of a text, its line break included. As in CSV, a field in quotation marks may have several
/// lines; a mark that is not at the beginning of a field, or is never closed, is an ordinary character.
fn end_of_row(text: &str) -> usize {
    let mut is_quoted = false;
    let mut previous = if text.starts_with('#') { ' ' } else { ',' };
    for (at, c) in text.char_indices() {
        match c {
            '"' if is_quoted || matches!(previous, ',' | ';' | '"') => is_quoted = !is_quoted,
            '\n' if !is_quoted => return at + 1,
            _ => {}
        }
        previous = c;
    }
    let line = text.find('\n').filter(|_| is_quoted);
    line.map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_in_quotation_marks_have_several_lines() {
        let rows = |text: &str| -> Vec<(usize, String)> {
            rows(text)
                .map(|(line, row)| (line, row.to_owned()))
                .collect()
        };
        let row = |line, text: &str| (line, text.to_owned());
        let table = "a,b\n1,\"x \"\"0x1\"\"\ny\",2\n3,4";
        let want = [
            row(1, "a,b"),
            row(2, "1,\"x \"\"0x1\"\"\ny\",2"),
            row(4, "3,4"),
        ];
        assert_eq!(rows(table), want);
        let marks = "# 5\" x\n0x1 5\" disk\n0x2 6\" disk\n\"never closed\n0x3\n";
        let lines: Vec<_> = (1..).zip(marks.lines()).map(|(n, l)| row(n, l)).collect();
        assert_eq!(rows(marks), lines);
    }
}
