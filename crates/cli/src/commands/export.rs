//! `tenure export`.

use super::target::Dump;
use crate::Outcome;
use crate::exit::Usage;
use crate::output::note;
use crate::output_file::OutputFile;
use crate::session::Session;
use anyhow::{Context, Result};
use clap::ValueEnum;
use heap_analysis::share::export::{Origin, Table, aggregates, objects, references};
use heap_graph::Heap;
use report::Provenance;
use report::tables::{TableForm, TableWriter};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Write tables for other programs: Parquet, CSV, NDJSON, Neo4j
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure export heap.hprof -o fleet --service shop      (DuckDB, Spark: fleet/README.md)\n  tenure export heap.hprof -o tables --format csv\n  tenure export heap.hprof -o graph --format neo4j      (objects and references)"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// Output folder; each table gets a folder in it, with a file for each dump
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output: PathBuf,
    /// Format of the files
    #[arg(long, value_enum, default_value_t = Format::Parquet)]
    format: Format,
    /// Also all objects and references
    #[arg(long)]
    objects: bool,
    /// Name of the program of the dump
    #[arg(long, value_name = "NAME", default_value = "")]
    service: String,
    /// Name of the dump [default: its file name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Parquet,
    Csv,
    Ndjson,
    Neo4j,
}

impl Args {
    fn form(&self) -> TableForm {
        match self.format {
            Format::Parquet => TableForm::Parquet,
            Format::Csv => TableForm::Csv,
            Format::Ndjson => TableForm::Ndjson,
            Format::Neo4j => TableForm::Neo4j,
        }
    }

    /// `DIR/classes/NAME.parquet`
    fn path(&self, table: &str, dump: &str) -> PathBuf {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        };
        let dump: String = dump.chars().map(plain).collect();
        let file = format!("{dump}.{}", self.form().extension());
        self.output.join(table).join(file)
    }

    /// Writes a file in pieces. It gets its name when all tables are written.
    fn write(
        &self,
        session: &Session,
        path: &Path,
        pieces: impl FnOnce(&mut dyn FnMut(&Table) -> Result<()>) -> Result<()>,
    ) -> Result<OutputFile> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let inputs = session.inputs([&*self.dump.file]);
        let mut file = OutputFile::create(path, session.global.force, &inputs)?;
        let buffered = BufWriter::with_capacity(1 << 18, &mut file);
        let mut out = TableWriter::new(self.form(), buffered);
        pieces(&mut |piece| Ok(out.write(piece)?))?;
        out.finish()?;
        Ok(file)
    }

    /// Writes the tables.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        if self.output == Path::new("-") {
            let message =
                "export writes several files, so -o takes a folder, not - for standard output";
            return Err(Usage(message.to_owned()).into());
        }
        let stem = self
            .dump
            .file
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        let dump = self.name.clone().or(stem);
        let dump = dump.filter(|d| d != "-");
        let dump = dump.ok_or_else(|| Usage("standard input needs --name".to_owned()))?;
        let origin = Origin {
            service: self.service.clone(),
            dump,
        };
        let heap = session.open(&self.dump.file)?;
        let mut files = Vec::new();
        if self.format != Format::Neo4j {
            for table in session.with_control(|c| aggregates(&heap, &origin, c))? {
                let path = self.path(table.name, &origin.dump);
                files.push(self.write(session, &path, |write| write(&table))?);
            }
        }
        if self.objects || self.format == Format::Neo4j {
            files.extend(self.write_objects(session, &heap, &origin)?);
        }
        files.into_iter().try_for_each(OutputFile::finish)?;
        if !session.global.quiet {
            note(&format!("wrote {}", self.output.display()));
        }
        Ok(session.finish(&Provenance::of(heap.summary())))
    }

    fn write_objects(
        &self,
        session: &Session,
        heap: &Heap,
        origin: &Origin,
    ) -> Result<[OutputFile; 2]> {
        let all = session.global.unreachable;
        let path = |table| self.path(table, &origin.dump);
        Ok([
            self.write(session, &path("objects"), |write| {
                objects(heap, origin, all, |piece| write(piece))
            })?,
            self.write(session, &path("references"), |write| {
                references(heap, origin, all, |piece| write(piece))
            })?,
        ])
    }
}
