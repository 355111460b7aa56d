//! `tenure query`.

use super::described::help;
use super::target::limit;
use crate::Outcome;
use crate::args::parse_size;
use crate::exit::{Exit, Usage};
use crate::output::note;
use crate::progress::Meter;
use crate::session::Session;
use clap::ValueEnum;
use heap_graph::Heap;
use heap_query::{Cell, Cut, Lang, Limits, QueryError, Session as Queries, Sink, Table, Watch};
use report::say::{Tables, cut_text};
use report::{Provenance, json};
use std::io::{self, BufWriter, IsTerminal, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::SpooledTempFile;

/// Query the heap in SQL, MAT's OQL or jhat's OQL
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dump: a file, `file#2`, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// The query, or `-` to read it from standard input
    #[arg(value_name = "TEXT", required_unless_present = "tables")]
    text: Option<String>,
    #[arg(long, value_enum, help = help("query", "lang"))]
    lang: Option<LangArg>,
    /// Number of rows, 0 for all [default: 100, all with --json and --csv]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Time limit (30s, 5m); the rows found until then are shown, with exit code 5
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
    /// Limit for the bytes of temporary files [default: 8G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    max_temporary: Option<u64>,
    /// Explain the plan instead of running the query
    #[arg(long)]
    explain: bool,
    /// List tables, functions and columns
    #[arg(long)]
    tables: bool,
}

const EXAMPLES: &str = "\
Examples:
  tenure query heap.hprof 'select class, count(*), sum(shallow) from objects group by class'
  tenure query heap.hprof 'select id, class, retained from objects order by retained desc limit 10'
  tenure query heap.hprof 'select this, toString(name) from \"java.lang.Thread\"'
  tenure query heap.hprof 'SELECT * FROM INSTANCEOF java.lang.Thread'
  tenure query heap.hprof --tables

docs/reference/query.md describes the tables, functions and languages.";

/// `--lang`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LangArg {
    /// SQL, with the names of Perfetto and the MAT Calcite plug-in.
    Sql,
    /// The OQL of Eclipse MAT.
    Oql,
    /// The OQL of jhat and VisualVM: JavaScript.
    Jhat,
}

impl From<LangArg> for Lang {
    fn from(lang: LangArg) -> Lang {
        match lang {
            LangArg::Sql => Lang::Sql,
            LangArg::Oql => Lang::Oql,
            LangArg::Jhat => Lang::Jhat,
        }
    }
}

/// Reads `30`, `30s`, `500ms`, `5m`, `1h`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()]
        .parse()
        .map_err(|_| format!("{text}: expected a time such as 30s"))?;
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{text}: expected a time such as 30s")),
    };
    Ok(Duration::from_millis(number.saturating_mul(milliseconds)))
}

impl Args {
    /// Runs the query.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let text = match self.text.as_deref() {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text)?;
                text
            }
            text => text.unwrap_or_default().to_owned(),
        };
        let heap = session.open(&self.file)?;
        let queries = Queries::open(heap.into()).with_unreachable(session.global.unreachable);
        let heap = queries.heap().clone();
        if self.tables {
            let tables = Tables {
                tables: queries.tables(),
            };
            return session.answer(&tables, heap.summary());
        }
        // Rows that run over a terminal leave no place for a line that is redrawn.
        let meter = match session.global.csv && std::io::stdout().is_terminal() {
            true => Meter::new(false),
            false => session.meter(),
        };
        let meter = Arc::new(meter.announcing(!session.global.quiet));
        let shown = meter.clone();
        let mut limits = Limits {
            rows: limit(self.limit, session.is_data(), 100),
            time: self.timeout,
            watch: Some(Watch(Arc::new(move |progress| shown.show(progress)))),
            ..Limits::default()
        };
        limits.temporary = self.max_temporary.unwrap_or(limits.temporary);
        let lang = self.lang.map(Lang::from);
        if self.explain {
            let table = queries.explain(&text, lang, &limits).map_err(fault)?;
            return session.answer(&table, heap.summary());
        }
        let (exit, cut) = if session.is_data() {
            let provenance = Provenance::of(heap.summary());
            let mut rows = Rows::new(session, &heap, limits.temporary);
            let result = queries.each(&text, lang, &limits, &mut rows);
            meter.clear();
            let (lang, cut) = result.map_err(fault)?;
            rows.finish(lang, cut, &provenance)?;
            (session.finish(&provenance), cut)
        } else {
            let result = queries.run(&text, lang, &limits);
            meter.clear();
            let table = result.map_err(fault)?;
            (session.answer(&table, heap.summary())?, table.cut)
        };
        Ok(match cut {
            Some(Cut::Time | Cut::Cancelled) => Exit::Partial,
            _ => exit,
        })
    }
}

/// A query that is wrong is a fault of the command line; its place is shown under the text if it is known.
pub(super) fn fault(error: QueryError) -> anyhow::Error {
    let Some(place) = error.place() else {
        return match error {
            QueryError::Run(message) | QueryError::Limit(message) => Usage(message).into(),
            other => other.into(),
        };
    };
    note(&place.text);
    note(&format!("{}^", " ".repeat(place.column - 1)));
    Usage(error.to_string()).into()
}

/// Rows that are not all in memory: those of CSV on their way to standard output, those of JSON in a temporary file,
/// because what precedes them depends on all of them.
struct Rows<'a> {
    session: &'a Session,
    json: Option<BufWriter<SpooledTempFile>>,
    /// The most bytes of the temporary file.
    most: u64,
    columns: Vec<String>,
    /// By column: whether a row has an object there.
    holds_object: Vec<bool>,
    rows: u64,
    notes: Vec<String>,
    failed: Option<io::Error>,
}

/// Bytes of the rows of JSON that stay in memory.
const IN_MEMORY: usize = 1 << 20;

impl<'a> Rows<'a> {
    fn new(session: &'a Session, heap: &Heap, most: u64) -> Rows<'a> {
        let file = || SpooledTempFile::new_in(IN_MEMORY, heap.temporary_folder());
        let json = session.global.json;
        Rows {
            session,
            json: json.then(|| BufWriter::new(file())),
            most,
            columns: Vec::new(),
            holds_object: Vec::new(),
            rows: 0,
            notes: Vec::new(),
            failed: None,
        }
    }

    fn keep(&mut self, done: io::Result<()>) -> bool {
        self.failed = done.err();
        self.failed.is_none()
    }

    /// Writes what follows the rows, and with JSON all.
    fn finish(self, lang: Lang, cut: Option<Cut>, provenance: &Provenance) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(json) = self.json else {
            self.notes.iter().for_each(|text| note(text));
            if let Some(cut) = cut {
                note(&cut_text(cut, self.rows));
            }
            return Ok(());
        };
        let mut rows = json.into_inner().map_err(io::IntoInnerError::into_error)?;
        rows.rewind()?;
        let columns = self.holds_object.iter().enumerate();
        let answer = Table {
            lang,
            object_columns: columns.filter(|c| *c.1).map(|c| c.0).collect(),
            columns: self.columns,
            rows: Vec::new(),
            cut,
            notes: self.notes,
        };
        let mut out = self.session.writer();
        json::write_with_rows(&mut *out, &answer, provenance, &mut rows)
    }
}

/// Adds a row to those of JSON.
fn push(
    json: &mut BufWriter<SpooledTempFile>,
    cells: &[Cell],
    is_first: bool,
    most: u64,
) -> io::Result<()> {
    json::push_element(json, &cells, is_first)?;
    if json.get_mut().stream_position()? > most {
        let message =
            format!("the temporary file for the rows exceeds --max-temporary, {most} bytes");
        return Err(io::Error::other(message));
    }
    Ok(())
}

impl Sink for Rows<'_> {
    fn columns(&mut self, names: &[String]) {
        self.columns = names.to_vec();
        self.holds_object = vec![false; names.len()];
        if self.json.is_none() {
            let done = self.session.write(report::csv::line(names).as_bytes());
            self.keep(done);
        }
    }

    fn row(&mut self, cells: Vec<Cell>) -> bool {
        if self.failed.is_some() {
            return false;
        }
        for (holds, cell) in self.holds_object.iter_mut().zip(&cells) {
            *holds |= cell.holds_object();
        }
        let done = match &mut self.json {
            Some(json) => push(json, &cells, self.rows == 0, self.most),
            None => self.session.write(report::csv::row(&cells).as_bytes()),
        };
        let written = self.keep(done);
        self.rows += u64::from(written);
        written
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}
