//! `tenure histogram`.

use super::described::{help, word};
use super::target::{Dump, limit};
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use clap::ValueEnum;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::{
    Histogram, HistogramOptions, SortBy, from_quick, histogram,
};
use heap_graph::Summary;
use regex::Regex;

/// Objects, shallow and retained size by class, package, loader, ...
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure histogram heap.hprof\n  tenure histogram --by package --sort shallow heap.hprof\n  tenure histogram --no-retained --json heap.hprof   (at reading speed, without an index)"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[arg(long, value_enum, help = help("histogram", "by"), default_value = word("histogram", "by"))]
    by: By,
    #[arg(long, value_name = "REGEX", help = help("histogram", "filter"))]
    filter: Option<Regex>,
    #[arg(long, value_enum, help = help("histogram", "sort"), default_value = word("histogram", "sort"))]
    sort: Sort,
    /// Number of rows, 0 for all [default: 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
    #[arg(long, value_name = "N", help = help("histogram", "offset"), default_value_t = 0)]
    skip_rows: usize,
    #[arg(long, help = help("histogram", "all"))]
    all: bool,
    #[arg(long, help = help("histogram", "empty"))]
    empty: bool,
    /// Count in one pass over the file: all objects, no retained sizes, no index
    #[arg(long)]
    no_retained: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    Class,
    Superclass,
    Loader,
    Package,
    Heap,
    Site,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    Retained,
    Shallow,
    Objects,
    Name,
}

impl From<By> for GroupBy {
    fn from(by: By) -> Self {
        match by {
            By::Class => GroupBy::Class,
            By::Superclass => GroupBy::Superclass,
            By::Loader => GroupBy::Loader,
            By::Package => GroupBy::Package,
            By::Heap => GroupBy::Heap,
            By::Site => GroupBy::Site,
        }
    }
}

impl From<Sort> for SortBy {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Retained => SortBy::Retained,
            Sort::Shallow => SortBy::Shallow,
            Sort::Objects => SortBy::Objects,
            Sort::Name => SortBy::Name,
        }
    }
}

impl Args {
    fn options(&self, session: &Session) -> HistogramOptions {
        HistogramOptions {
            by: self.by.into(),
            filter: self.filter.clone(),
            sort: self.sort.into(),
            skip: self.skip_rows,
            top: limit(self.limit, session.is_data(), 40),
            all: self.all || session.global.unreachable,
            empty: self.empty,
        }
    }

    /// Prints rows; a filter that matches none of them is a search without a result.
    fn answer(&self, session: &Session, found: &Histogram, summary: &Summary) -> Outcome {
        let exit = session.answer(found, summary)?;
        let is_match = !found.rows.is_empty() || found.omitted_rows > 0;
        Ok(match self.filter.is_some() && !is_match {
            true => Exit::No,
            false => exit,
        })
    }

    /// Prints the histogram.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let options = self.options(session);
        if self.no_retained {
            if self.by != By::Class {
                return Err(Usage("--no-retained counts by class only".to_owned()).into());
            }
            let quick = session.quick_histogram(&self.dump.file)?;
            return self.answer(session, &from_quick(&quick, &options), &quick.summary);
        }
        let heap = session.open(&self.dump.file)?;
        self.answer(session, &histogram(&heap, &options)?, heap.summary())
    }
}
