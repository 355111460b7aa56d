//! `tenure overview`.

use super::target::Dump;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::tables::histogram::{HistogramOptions, from_quick};
use heap_analysis::tables::overview::{Overview, OverviewOptions, overview};
use heap_graph::QuickHistogram;
use report::{Doc, Provenance, Say, Span};

/// Overview (the default): what the file is, what fills the heap, leak suspects
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
}

impl Args {
    /// Prints the first screen and what to ask next.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open_with_first_look(&self.dump.file, first_look)?;
        let answer = session.with_control(|c| overview(&heap, &OverviewOptions::default(), c))?;
        let provenance = Provenance::of(heap.summary());
        session.say(&answer, &provenance)?;
        session.say_next(&self.dump.file, &next(&answer, provenance.damaged))?;
        Ok(session.finish(&provenance))
    }
}

/// What is known of a large dump long before its analysis has ended.
fn first_look(quick: &QuickHistogram) -> Doc {
    const CLASSES: usize = 10;
    let options = HistogramOptions {
        top: Some(CLASSES),
        all: true,
        ..HistogramOptions::default()
    };
    Doc::new()
        .text([Span::from(
            "A first pass over the file, by shallow size; the analysis is running.",
        )])
        .append(from_quick(quick, &options).doc())
}

/// Unreachable objects are worth a look from this share of the heap on.
const MANY_UNREACHABLE: f64 = 0.25;
/// Commands that are named.
const MOST: usize = 3;

/// The commands that lead on from what this dump shows.
fn next(answer: &Overview, is_damaged: bool) -> Vec<String> {
    let facts = &answer.facts;
    let unreachable = 1.0 - facts.reachable_shallow.0 as f64 / facts.shallow.0.max(1) as f64;
    let largest = answer.objects.first().map(|largest| largest.object.object);
    let commands = [
        is_damaged.then(|| "validate FILE".to_owned()),
        (!answer.leaks.suspects.is_empty()).then(|| "leaks FILE".to_owned()),
        (unreachable >= MANY_UNREACHABLE).then(|| "unreachable FILE".to_owned()),
        largest.map(|id| format!("dominators FILE {id}")),
        Some("report FILE -o report.html".to_owned()),
        Some("waste FILE".to_owned()),
    ];
    commands.into_iter().flatten().take(MOST).collect()
}
