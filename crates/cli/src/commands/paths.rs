//! `tenure paths`.

use super::described::help;
use super::target::{exclusions, file_and_id, find_classes, find_object, limit};
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::session::Session;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_analysis::sets::selection::Selection;
use heap_graph::Heap;
use hprof::ObjectId;

/// Shortest paths from GC roots to an object, or merged to all objects of a class
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure paths heap.hprof 0x7f001000 -n 5\n  tenure paths heap.hprof 0x7f001000 --exclude none\n  tenure paths --class 'com.example.Session' heap.hprof"
)]
pub struct Args {
    /// The dump and the object
    #[arg(value_names = ["FILE", "ID"], num_args = 1..=2, required = true)]
    target: Vec<String>,
    /// Merge the paths to all objects of this class
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Number of paths [default: 1, of an object that is itself a root 2], with --class children per node [default: 5, all with --json and --csv]; 0 for all
    #[arg(short = 'n', long, aliases = ["count", "top"], value_name = "N")]
    limit: Option<usize>,
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = Exclusions::WORDS, hide_possible_values = true, help = help("paths", "exclude"))]
    exclude: Vec<String>,
    /// With --class: levels of the merged tree
    #[arg(long, value_name = "N", default_value_t = 24)]
    depth: usize,
    /// With --class: maximum number of objects to follow
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_paths: usize,
}

impl Args {
    /// Prints the paths.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let (file, id) = file_and_id(&self.target)?;
        match (&self.class, id) {
            (Some(name), None) => {
                let heap = session.open(&file)?;
                self.of_class(session, &heap, name)
            }
            (None, Some(id)) => {
                let heap = session.open(&file)?;
                self.of_object(session, &heap, id)
            }
            _ => Err(Usage("give an object id, or --class NAME".to_owned()).into()),
        }
    }

    fn of_object(&self, session: &Session, heap: &Heap, id: ObjectId) -> Outcome {
        let target = find_object(heap, id)?;
        // The first path to a root is only the root.
        let is_root = heap.roots().iter().any(|root| root.object == target);
        let default = if is_root { 2 } else { 1 };
        let mut answer = None;
        for exclude in exclusions(&self.exclude)? {
            let options = PathOptions {
                count: limit(self.limit, false, default).unwrap_or(usize::MAX),
                exclude,
            };
            let paths = session.with_control(|c| to_roots(heap, target, &options, c))?;
            let found = !paths.paths.is_empty();
            answer = Some(paths);
            if found || !heap.is_reachable(target) {
                break;
            }
        }
        let Some(answer) = answer else {
            return Ok(Exit::No);
        };
        let exit = session.answer(&answer, heap.summary())?;
        Ok(if answer.paths.is_empty() {
            Exit::No
        } else {
            exit
        })
    }

    fn of_class(&self, session: &Session, heap: &Heap, name: &str) -> Outcome {
        let classes = find_classes(heap, name)?;
        let objects = Selection::by(heap, |columns, o| classes.contains(&columns.class_of(o)));
        let mut answer = None;
        for exclude in exclusions(&self.exclude)? {
            let options = MergedOptions {
                max_paths: self.max_paths,
                depth: self.depth,
                top: limit(self.limit, session.is_data(), 5).unwrap_or(usize::MAX),
                exclude,
                exact: EXACT_VISITS,
            };
            let merged = session.with_control(|c| to_objects(heap, name, &objects, &options, c))?;
            let found = !merged.nodes.is_empty();
            answer = Some(merged);
            if found {
                break;
            }
        }
        let Some(answer) = answer else {
            return Ok(Exit::No);
        };
        let exit = session.answer(&answer, heap.summary())?;
        Ok(if answer.nodes.is_empty() {
            Exit::No
        } else {
            exit
        })
    }
}
