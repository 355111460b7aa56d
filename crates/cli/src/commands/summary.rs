//! `tenure summary`.

use super::target::Dump;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::tables::summary::{summary, without_heap};
use heap_graph::{HeapError, Summary};

/// Contents of the file: records, roots, objects by kind, damage
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure summary heap.hprof\n  tenure summary --json heap.hprof | jq .gc_roots\n  tenure summary both.hprof#2"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
}

impl Args {
    /// Prints the summary.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        match session.open(&self.dump.file) {
            Ok(heap) => session.answer(&summary(&heap), heap.summary()),
            Err(HeapError::NoHeap { .. }) => self.without_heap(session),
            Err(error) => Err(error.into()),
        }
    }

    /// The records of a file that has no heap are still an answer.
    fn without_heap(&self, session: &Session) -> Outcome {
        let source = crate::dump_output::source(session, &self.dump.file)?;
        let map = hprof::map_file(source.bytes(), |_| {})?;
        let mut known = Summary {
            diagnostics: map.diagnostics.clone(),
            ..Summary::default()
        };
        known.layout.model = session.global.layout.into();
        known.diagnostics.extend(source.diagnostics().clone());
        let answer = without_heap(&map, source.bytes().len() as u64);
        session.answer(&answer, &known)
    }
}
