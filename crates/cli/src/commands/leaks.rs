//! `tenure leaks`.

use super::described::{help, number};
use super::target::Dump;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::leaks::{LeakOptions, Suspect, find};
use report::Provenance;
use requests::percent;

/// Leak suspects: what fills the heap, where it accumulates, what holds it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure leaks heap.hprof\n  tenure leaks --threshold 0.5% --deep heap.hprof\n  tenure leaks --json heap.hprof | jq '.suspects[0].holder'"
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    #[arg(long, value_name = "PERCENT", help = help("leaks", "threshold"),
        default_value_t = number("leaks", "threshold") as f64, value_parser = percent)]
    threshold: f64,
    #[arg(long, help = help("leaks", "deep"))]
    deep: bool,
}

impl Args {
    /// Prints the suspects.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let heap = session.open(&self.dump.file)?;
        let options = LeakOptions {
            threshold: self.threshold,
            deep: self.deep,
        };
        let found = session.with_control(|c| find(&heap, &options, c))?;
        let provenance = Provenance::of(heap.summary());
        session.say(&found, &provenance)?;
        let next = found.suspects.first().map(next).unwrap_or_default();
        session.say_next(&self.dump.file, &next)?;
        Ok(session.finish(&provenance))
    }
}

/// What to look at next: the fields of the object that holds the memory, or the path to one of many
/// objects.
fn next(suspect: &Suspect) -> Vec<String> {
    let report = "report FILE -o report.html".to_owned();
    let look = match (suspect.largest.first(), &suspect.accumulation_point) {
        (Some(one), _) => format!("paths FILE {one}"),
        (None, Some(point)) => format!("object FILE {}", point.object),
        (None, None) => format!("object FILE {}", suspect.object),
    };
    vec![look, report]
}
