//! `tenure report`.

use super::target::{Dump, limit};
use crate::Outcome;
use crate::exit::Usage;
use crate::output::note;
use crate::output_file::{OutputFile, named_after};
use crate::session::Session;
use anyhow::Result;
use clap::ValueEnum;
use heap_analysis::tables::dossier::{DossierOptions, dossier};
use report::{Provenance, html, json, markdown, say};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One self-contained page (or Markdown, or JSON) with everything
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure report heap.hprof                    (writes heap.html)\n  tenure report heap.hprof -o - --format md >> issue.md\n  tenure report heap.hprof -o heap.json --force"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Output file; the format follows its extension, `-` is standard output [default: FILE with .html]
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Format; overrides the extension
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Rows per table, 0 for all; the dominator tree (8 per object), the GC roots (5 per kind) and the local variables (5 per frame) have fixed numbers
    #[arg(
        short = 'n',
        long,
        alias = "rows",
        value_name = "N",
        default_value_t = 100
    )]
    limit: usize,
    /// Also system properties and environment variables (they often contain passwords)
    #[arg(long)]
    properties: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Html,
    Md,
    Json,
}

impl Args {
    fn format(&self, json: bool) -> Result<Format> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        if json {
            return Ok(Format::Json);
        }
        let Some(output) = &self.output else {
            return Ok(Format::Html);
        };
        let extension = output.extension().and_then(|e| e.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("html" | "htm") => Ok(Format::Html),
            Some("md" | "markdown") => Ok(Format::Md),
            Some("json") => Ok(Format::Json),
            _ => Err(Usage(format!(
                "{}: which form? (.html, .md, .json, or --format)",
                output.display()
            ))
            .into()),
        }
    }

    /// Writes the report.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if session.global.csv {
            let what = "a report has no CSV form; `tenure export --format csv` writes all tables";
            return Err(Usage(what.to_owned()).into());
        }
        let format = self.format(session.global.json)?;
        let ending = match format {
            Format::Html => ".html",
            Format::Md => ".md",
            Format::Json => ".json",
        };
        let output = self.output.clone();
        let output = output.unwrap_or_else(|| named_after(&self.dump.file, ending));
        let to_stdout = output == Path::new("-");
        let out = match to_stdout {
            true => None,
            false => {
                let force = session.global.force;
                let inputs = session.inputs([&*self.dump.file]);
                Some(OutputFile::create(&output, force, &inputs)?)
            }
        };
        let heap = session.open(&self.dump.file)?;
        let options = DossierOptions {
            rows: limit(Some(self.limit), false, 100).unwrap_or(usize::MAX),
            properties: self.properties,
        };
        let answer = session.with_control(|c| dossier(&heap, &options, c))?;
        let provenance = Provenance::of(heap.summary());
        let name = self
            .dump
            .file
            .file_name()
            .map_or_else(|| "heap".to_owned(), |n| n.to_string_lossy().into_owned());
        let text = match format {
            Format::Html => html::page(&name, &answer, &provenance).into_bytes(),
            Format::Md => {
                let doc = say::whole(&answer, &provenance);
                markdown::render(&doc, session.global.bytes).into_bytes()
            }
            Format::Json => {
                let mut out = Vec::new();
                json::write(&mut out, &answer, &provenance)?;
                out
            }
        };
        match out {
            None => session.write(&text)?,
            Some(mut out) => {
                out.write_all(&text)?;
                out.finish()?;
                if !session.global.quiet {
                    note(&format!("wrote {}", output.display()));
                }
            }
        }
        Ok(session.finish(&provenance))
    }
}
