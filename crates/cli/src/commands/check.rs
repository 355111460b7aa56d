//! `tenure check`.

use super::target::Dump;
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::output::note;
use crate::output_file::write_file;
use crate::session::Session;
use anyhow::{Context, Result};
use clap::ValueEnum;
use heap_analysis::compare::baseline::{BASELINE, Baseline};
use heap_analysis::compare::check::{Check, RuleError, Rules, check};
use heap_graph::Heap;
use hprof::{Header, HeaderError};
use report::{Provenance, check as forms, json, markdown, say, sheet, terminal};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Check a dump against rules and a baseline: exit code 1 if a check fails
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure check good.hprof --write-baseline base.json\n  tenure check heap.hprof --baseline base.json --max-growth 10\n  tenure check heap.hprof --rules rules.toml --format junit -o heap.xml   (docs/guides/ci.md)"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Rules (docs/guides/ci.md) [default with a baseline: no new leak suspect, and --max-growth]
    #[arg(long, value_name = "TOML", value_hint = clap::ValueHint::FilePath)]
    rules: Option<PathBuf>,
    /// The baseline, written from an earlier, healthy dump
    #[arg(long, value_name = "JSON", value_hint = clap::ValueHint::FilePath)]
    baseline: Option<PathBuf>,
    /// Write the baseline of this dump
    #[arg(long, value_name = "JSON", value_hint = clap::ValueHint::FilePath)]
    write_baseline: Option<PathBuf>,
    /// Percent that the heap may be larger than the baseline's, without --rules [default: 20]
    #[arg(long, value_name = "PERCENT")]
    max_growth: Option<f64>,
    /// Output format [default: that of the extension of --output (.json .xml .sarif .md), otherwise text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
    Sarif,
    Github,
    Md,
}

impl Format {
    /// The format that a file with this name has.
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Self::Json,
            Some("xml") => Self::Junit,
            Some("sarif") => Self::Sarif,
            Some("md") => Self::Md,
            _ => Self::Text,
        }
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// What a file is that begins like this.
fn kind_of(start: &[u8]) -> String {
    match Header::parse(start) {
        _ if start.starts_with(b"\x1f\x8b") => "a file packed with gzip".to_owned(),
        Ok(_) | Err(HeaderError::Cut { .. } | HeaderError::IdSize { .. }) => {
            "a heap dump (HPROF)".to_owned()
        }
        Err(HeaderError::Empty) => "an empty file".to_owned(),
        Err(HeaderError::Foreign(kind)) => kind.to_owned(),
        Err(HeaderError::Magic { found } | HeaderError::TextProfile { found }) => found,
        Err(other) => other.to_string(),
    }
}

impl Args {
    /// The files that an output must not replace. A new baseline may replace the one that was read.
    fn inputs<'a>(&'a self, session: &'a Session, with_baseline: bool) -> Vec<&'a Path> {
        let baseline = self.baseline.as_deref().filter(|_| with_baseline);
        let own = [Some(&*self.dump.file), self.rules.as_deref(), baseline];
        session.inputs(own.into_iter().flatten())
    }

    fn rules(&self) -> Result<Rules> {
        let Some(path) = &self.rules else {
            return Ok(match self.baseline {
                Some(_) => Rules::against_baseline(self.max_growth.unwrap_or(20.0)),
                None => Rules::default(),
            });
        };
        let fault = |e: RuleError| Usage(format!("{}: {e}", path.display()));
        Ok(Rules::parse(&read(path)?).map_err(fault)?)
    }

    fn baseline(&self) -> Result<Option<Baseline>> {
        let Some(path) = &self.baseline else {
            return Ok(None);
        };
        let file = File::open(path).with_context(|| path.display().to_string())?;
        let mut file = BufReader::new(file);
        let start = file
            .fill_buf()
            .with_context(|| path.display().to_string())?;
        let fault = |found: &str| {
            let path = path.display();
            let expected = "expected the JSON that `tenure check DUMP --write-baseline` writes";
            Usage(format!(
                "{path} is not a baseline: {expected}, found {found}"
            ))
        };
        if !start.trim_ascii_start().starts_with(b"{") {
            return Err(fault(&kind_of(start)).into());
        }
        let json: serde_json::Value =
            serde_json::from_reader(file).map_err(|e| fault(&format!("no JSON ({e})")))?;
        match json["schema"].as_str() {
            Some(BASELINE) => {}
            Some(other) if other.starts_with("tenure.baseline/") => {
                return Err(fault(&format!("that of another version of Tenure ({other})")).into());
            }
            Some(other) => return Err(fault(other).into()),
            None => return Err(fault("JSON without a \"schema\"").into()),
        }
        let base = serde_json::from_value(json).map_err(|e| fault(&format!("a damaged one: {e}")));
        Ok(Some(base?))
    }

    /// Prints the verdict.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if self.rules.is_none() && self.baseline.is_none() && self.write_baseline.is_none() {
            let what = "nothing to check: give --rules, --baseline or --write-baseline";
            return Err(Usage(what.to_owned()).into());
        }
        if self.max_growth.is_some() && (self.rules.is_some() || self.baseline.is_none()) {
            let what = "--max-growth needs --baseline and no --rules; a rule has limits such as shallow = \"+10%\"";
            return Err(Usage(what.to_owned()).into());
        }
        session.refuse_unreachable("check")?;
        let (rules, mut baseline) = (self.rules()?, self.baseline()?);
        let heap = session.open(&self.dump.file)?;
        if let Some(path) = &self.write_baseline {
            let written = session.with_control(|c| Baseline::of(&heap, &rules.patterns(), c))?;
            let mut out = Vec::new();
            json::write_value(&mut out, &written)?;
            write_file(
                path,
                session.global.force,
                &self.inputs(session, false),
                &out,
            )?;
            if !session.global.quiet {
                note(&format!("wrote {}", path.display()));
            }
            if self.rules.is_none() && self.baseline.is_none() {
                return Ok(session.finish(&Provenance::of(heap.summary())));
            }
            // Rules that compare with a baseline can be written with their first one.
            baseline.get_or_insert(written);
        }
        let verdict = match session.with_control(|c| check(&heap, &rules, baseline.as_ref(), c)) {
            Err(RuleError::Heap(error)) => return Err(error.into()),
            Err(error) => return Err(Usage(error.to_string()).into()),
            Ok(verdict) => verdict,
        };
        self.say(session, &heap, &verdict)?;
        let exit = session.finish(&Provenance::of(heap.summary()));
        Ok(if verdict.passed { exit } else { Exit::No })
    }

    fn say(&self, session: &Session, heap: &Heap, verdict: &Check) -> Result<()> {
        let provenance = Provenance::of(heap.summary());
        let file = self.dump.file.to_string_lossy();
        let format = match self.format {
            Some(Format::Text) | None if session.global.json => Format::Json,
            Some(format) => format,
            None => self.output.as_deref().map_or(Format::Text, Format::of),
        };
        let doc = || say::whole(verdict, &provenance);
        let text = match format {
            Format::Text if session.global.csv => sheet::render(&doc()),
            Format::Text => terminal::render(&doc(), &session.look),
            Format::Md => markdown::render(&doc(), session.global.bytes),
            Format::Junit => forms::junit(verdict, &file),
            Format::Sarif => forms::sarif(verdict, &file, env!("CARGO_PKG_VERSION")),
            Format::Github => forms::github(verdict, &file),
            Format::Json => {
                let mut out = Vec::new();
                json::write(&mut out, verdict, &provenance)?;
                String::from_utf8_lossy(&out).into_owned()
            }
        };
        match &self.output {
            Some(path) if path.as_os_str() != "-" => {
                let mut inputs = self.inputs(session, true);
                inputs.extend(self.write_baseline.as_deref());
                write_file(path, session.global.force, &inputs, text.as_bytes())
            }
            _ => Ok(session.write(text.as_bytes())?),
        }
    }
}
