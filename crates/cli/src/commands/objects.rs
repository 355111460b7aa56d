//! `tenure objects`.

use super::described::{help, word};
use super::histogram::{By, Sort};
use super::part::{members as members_of, parse};
use super::target::{Dump, exclusions, limit};
use crate::Outcome;
use crate::exit::Exit;
use crate::session::Session;
use heap_analysis::paths::Exclusions;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::sets::members::{self, PageOptions};
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::histogram::{HistogramOptions, SortBy};
use heap_graph::Heap;
use regex::Regex;
use std::sync::Arc;

/// The objects of a set: listed, grouped, what keeps them alive
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Sets: CLASS, 0xID, class:NAME, sub:NAME, package:NAME, loader:0xID, heap:NAME, site:N, object:0xID,0xID, roots:KIND,\nunreachable, all, stack:0xID (virtual threads with that stack); of a set: in:SET, out:SET, dominated:SET, dominators:SET, retained:SET; SET and SET;\nwhat a query gives: sql:(TEXT), oql:(TEXT), jhat:(TEXT).\n\nExamples:\n  tenure objects heap.hprof com.example.Session\n  tenure objects heap.hprof retained:object:0x7f001000 --by class\n  tenure objects heap.hprof 'in:class:java.lang.String and package:com.example' --by class\n  tenure objects heap.hprof class:com.example.Session --dominators --skip '^java'\n  tenure objects heap.hprof 'retained:sql:(select id from objects where shallow > 1000000)' --by class"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// The set
    #[arg(value_name = "SET", value_parser = parse)]
    set: SetSpec,
    #[arg(long, value_enum, help = help("objects", "by"), conflicts_with_all = ["dominators", "paths"])]
    by: Option<By>,
    #[arg(long, value_name = "REGEX", help = help("histogram", "filter"), requires = "by")]
    filter: Option<Regex>,
    /// The classes that immediately dominate the objects
    #[arg(long, conflicts_with = "paths")]
    dominators: bool,
    #[arg(long, value_name = "REGEX", help = help("immediate_dominators", "skip"), requires = "dominators")]
    skip: Option<Regex>,
    /// Merged shortest paths from the roots to the objects
    #[arg(long)]
    paths: bool,
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = Exclusions::WORDS, hide_possible_values = true, help = help("merged_paths", "exclude"), requires = "paths")]
    exclude: Vec<String>,
    #[arg(long, value_name = "N", help = help("merged_paths", "depth"), default_value_t = 24, requires = "paths")]
    depth: usize,
    #[arg(long, value_name = "N", help = help("merged_paths", "max_paths"), default_value_t = 10_000, requires = "paths")]
    max_paths: usize,
    #[arg(long, value_enum, help = help("objects", "sort"), default_value = word("objects", "sort"), conflicts_with_all = ["dominators", "paths"])]
    sort: Sort,
    /// Number of rows [default: 40, all with --json and --csv], with --paths children per node [default: 5, all with --json and --csv]; 0 for all
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
    #[arg(long, value_name = "N", help = help("objects", "offset"), default_value_t = 0, conflicts_with_all = ["dominators", "paths"])]
    skip_rows: usize,
    #[arg(long, help = help("objects", "all"))]
    all: bool,
}

impl Args {
    /// Prints what was asked about the set.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let all = self.all || session.global.unreachable;
        let heap = Arc::new(session.open(&self.dump.file)?);
        let objects = members_of(session, &heap, &self.set, all)?;
        let top = limit(self.limit, session.is_data(), 40);
        let name = self.set.to_string();
        let exit = if let Some(by) = self.by {
            let options = HistogramOptions {
                by: by.into(),
                filter: self.filter.clone(),
                sort: self.sort.into(),
                skip: self.skip_rows,
                top,
                all,
                ..HistogramOptions::default()
            };
            let answer = members::histogram_of(&heap, &objects, &options);
            session.answer(&answer, heap.summary())?
        } else if self.dominators {
            let answer = members::immediate_dominators(&heap, name, &objects, self.skip.as_ref());
            session.answer(&answer.first(top), heap.summary())?
        } else if self.paths {
            self.say_paths(session, &heap, &name, &objects)?
        } else {
            let total = members::total(&heap, &objects);
            let page = PageOptions {
                sort: SortBy::from(self.sort),
                offset: self.skip_rows,
                limit: top.unwrap_or(usize::MAX),
            };
            let answer = members::page(&heap, name, &objects, total, &page);
            session.answer(&answer, heap.summary())?
        };
        Ok(if objects.is_empty() { Exit::No } else { exit })
    }

    fn say_paths(
        &self,
        session: &Session,
        heap: &Heap,
        name: &str,
        objects: &Selection,
    ) -> Outcome {
        let mut found = None;
        for exclude in exclusions(&self.exclude)? {
            let options = MergedOptions {
                max_paths: self.max_paths,
                depth: self.depth,
                top: limit(self.limit, session.is_data(), 5).unwrap_or(usize::MAX),
                exclude,
                exact: EXACT_VISITS,
            };
            let merged = session.with_control(|c| to_objects(heap, name, objects, &options, c))?;
            let done = !merged.nodes.is_empty();
            found = Some(merged);
            if done {
                break;
            }
        }
        match found {
            Some(answer) => session.answer(&answer, heap.summary()),
            None => Ok(Exit::No),
        }
    }
}
