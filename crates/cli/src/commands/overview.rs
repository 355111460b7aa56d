//! `tenure overview`.

use super::target::Dump;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::overview::{OverviewOptions, overview};
use report::Provenance;

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
        let mut next = vec!["leaks FILE".to_owned()];
        let largest = answer.objects.first().map(|o| o.object.object);
        next.extend(largest.map(|id| format!("dominators FILE {id}")));
        next.push("report FILE -o report.html".to_owned());
        session.say_next(&self.dump.file, &next)?;
        Ok(session.finish(&provenance))
    }
}
