//! `tenure overview`.

use super::target::Dump;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::overview::{OverviewOptions, overview};
use report::{Doc, Provenance, Span};

/// Overview (the default): what the file is, what fills the heap, leak suspects
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
}

impl Args {
    /// Says the first screen and what to ask next.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let answer = session.with_control(|c| overview(&heap, &OverviewOptions::default(), c))?;
        let provenance = Provenance::of(heap.summary());
        session.say(&answer, &provenance)?;
        if !session.global.json {
            let file = self.dump.file.display().to_string();
            let object = answer
                .objects
                .first()
                .map(|o| o.object.object.to_string())
                .unwrap_or_default();
            let mut next = Vec::new();
            for command in [
                format!("tenure leaks {file}"),
                format!("tenure dominators {file} {object}"),
                format!("tenure report {file} -o report.html"),
            ] {
                next.push(("next", vec![Span::Value(command)]));
            }
            session.say_doc(&Doc::new().facts(next))?;
        }
        Ok(session.finish(&provenance))
    }
}
