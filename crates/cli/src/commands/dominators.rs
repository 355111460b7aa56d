//! `tenure dominators`.

use super::described::help;
use super::target::{file_and_id, find_object, limit};
use crate::Outcome;
use crate::exit::Usage;
use crate::session::Session;
use clap::ValueEnum;
use heap_analysis::tables::dominators::{TreeOptions, by_group, tree};
use heap_analysis::tables::group::GroupBy;
use heap_graph::{Dominator, Heap};
use report::Provenance;
use std::io::{self, Write};

/// The dominator tree: which objects keep others alive
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure dominators heap.hprof --depth 4 -n 5\n  tenure dominators heap.hprof 0x7f001000   (below one object)\n  tenure dominators --tsv --all heap.hprof   (object, dominator, retained)"
)]
pub struct Args {
    /// The dump, and an object to start below
    #[arg(value_names = ["FILE", "ID"], num_args = 1..=2, required = true)]
    target: Vec<String>,
    #[arg(long, value_name = "N", help = help("dominators", "depth"), default_value_t = 3)]
    depth: usize,
    /// Children per node or rows, 0 for all [default: 10; with --by 40, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
    #[arg(long, value_enum, help = help("dominator_groups", "by"))]
    by: Option<By>,
    /// A line per reachable object: id, dominator (0: root) in hex, retained size
    #[arg(long)]
    tsv: bool,
    /// With --tsv: all objects (implied)
    #[arg(long, requires = "tsv")]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Class,
    Package,
    Loader,
}

impl Args {
    /// Prints the tree, groups, or every object.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let (file, id) = file_and_id(&self.target)?;
        if id.is_some() && (self.tsv || self.by.is_some()) {
            let what = "--by and --tsv are about the whole tree: use them without an object id";
            return Err(Usage(what.to_owned()).into());
        }
        let heap = session.open(&file)?;
        if self.tsv {
            write_all(&heap, session)?;
            return Ok(session.finish(&Provenance::of(heap.summary())));
        }
        if let Some(by) = self.by {
            let by = match by {
                By::Class => GroupBy::Class,
                By::Package => GroupBy::Package,
                By::Loader => GroupBy::Loader,
            };
            let top = limit(self.limit, session.is_data(), 40);
            return session.answer(&by_group(&heap, by, top), heap.summary());
        }
        let options = TreeOptions {
            root: id.map(|id| find_object(&heap, id)).transpose()?,
            depth: self.depth,
            top: limit(self.limit, false, 10).unwrap_or(usize::MAX),
        };
        session.answer(&tree(&heap, &options), heap.summary())
    }
}

/// One line per reachable object in the order of ids, written as it goes.
fn write_all(heap: &Heap, session: &Session) -> io::Result<()> {
    let mut lines = Vec::with_capacity(1 << 16);
    for (object, id) in heap.all_ids() {
        let dominator = match heap.dominator(object) {
            Dominator::Unreachable => continue,
            Dominator::Root => 0,
            Dominator::Object(above) => heap.id(above).0,
        };
        writeln!(
            lines,
            "{:x}\t{dominator:x}\t{}",
            id.0,
            heap.retained(object).0
        )?;
        if lines.len() > (1 << 16) - 64 {
            session.write(&lines)?;
            lines.clear();
        }
    }
    session.write(&lines)
}
