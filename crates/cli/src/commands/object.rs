//! `tenure object`.

use super::target::{file_and_id, find_object, limit};
use crate::Outcome;
use crate::exit::Usage;
use crate::session::Session;
use heap_analysis::objects::object::{ObjectOptions, details};

/// One object: fields, text, referrers, what keeps it alive, where it was allocated
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure object heap.hprof 0x7f001000\n  tenure object heap.hprof 0x7f001000 --limit 100\n  tenure object heap.hprof 0x7f001000 --no-inbound --json"
)]
pub struct Args {
    /// The dump and the object
    #[arg(value_names = ["FILE", "ID"], num_args = 2, required = true)]
    target: Vec<String>,
    /// Elements, referrers and dominated objects to list, 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Do not look up referrers (saves reading all references once)
    #[arg(long)]
    no_inbound: bool,
}

impl Args {
    /// Prints the object.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let (file, id) = file_and_id(&self.target)?;
        let id = id.ok_or_else(|| Usage("which object? (an id such as 0x7f001000)".to_owned()))?;
        let heap = session.open(&file)?;
        let object = find_object(&heap, id)?;
        let options = ObjectOptions {
            limit: limit(Some(self.limit), false, 20).unwrap_or(usize::MAX),
            inbound: !self.no_inbound,
        };
        session.answer(&details(&heap, object, &options)?, heap.summary())
    }
}
