//! `tenure diff`.

use super::target::limit;
use crate::Outcome;
use crate::session::Session;
use heap_analysis::compare::diff::{DiffOptions, diff};
use report::Provenance;
use requests::percent;
use std::path::PathBuf;

/// What grew between dumps: places matched by structure, classes, new and removed groups
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure diff before.hprof after.hprof\n  tenure diff monday.hprof tuesday.hprof wednesday.hprof\n  tenure diff --threshold 0.1 --json before.hprof after.hprof"
)]
pub struct Args {
    /// Two or more dumps of one program, in the order of time
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    /// Percent of the first heap that a place must have grown or shrunk by
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    threshold: f64,
    /// Rows per table, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints what changed.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        session.refuse_unreachable("diff")?;
        let mut heaps = Vec::new();
        for file in &self.files {
            heaps.push((file.display().to_string(), session.open(file)?));
        }
        let dumps: Vec<_> = heaps.iter().map(|(n, h)| (n.clone(), h)).collect();
        let options = DiffOptions {
            top: limit(self.limit, session.is_data(), 20),
            threshold: self.threshold,
        };
        let answer = session.with_control(|control| diff(&dumps, &options, control))?;
        // The sizes are those of the last dump's layout; damage of any dump counts.
        let all = heaps.iter().map(|(_, h)| Provenance::of(h.summary()));
        let provenance = all.reduce(|all, one| Provenance {
            damaged: all.damaged || one.damaged,
            diagnostics: [all.diagnostics, one.diagnostics].concat(),
            omitted_diagnostics: all.omitted_diagnostics + one.omitted_diagnostics,
            ..one
        });
        let provenance = provenance.unwrap_or_default();
        session.say(&answer, &provenance)?;
        Ok(session.finish(&provenance))
    }
}
