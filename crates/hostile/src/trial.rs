//! One mutant through every analysis, in this process.

use std::path::PathBuf;

use crate::analyses::{ANALYSES, Turn, ask, rewrite};
use crate::mutate::index::Indexed;
use crate::mutate::random::Random;
use crate::mutate::shapes::LARGEST;
use crate::mutate::{Base, Mutant, mutant, seeds};
use heap_graph::{Control, Heap, HeapError, Options, Tuning};

/// How a mutant was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// Answered, and no damage was seen.
    Whole,
    /// Answered from a damaged file.
    Damaged,
    /// Not a dump, or none with objects.
    Refused,
    /// Opened, and then an analysis could not read what it needed.
    Unreadable,
}

impl Taken {
    /// All of them.
    pub const ALL: [Taken; 4] = [
        Taken::Whole,
        Taken::Damaged,
        Taken::Refused,
        Taken::Unreadable,
    ];
}

/// What a run of mutants keeps between two of them.
#[derive(Debug)]
pub struct Trial {
    bases: Vec<Base>,
    indexed: Vec<Indexed>,
    folder: tempfile::TempDir,
    seed: u64,
}

/// One in so many mutants is that of an index.
const INDEX: u64 = 10;

/// One in so many is written anew as a dump, by every way there is.
const REWRITE: u64 = 4;

impl Trial {
    /// Writes the good dumps that are needed on disk.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn new(seed: u64) -> Trial {
        let memory = PathBuf::from("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let folder = folder.expect("a temporary folder");
        let bases: Vec<Base> = seeds().into_iter().map(Base::new).collect();
        let indexed = bases.iter().enumerate();
        let indexed =
            indexed.map(|(n, b)| Indexed::new(folder.path(), &format!("good{n}"), &b.data));
        Trial {
            indexed: indexed.collect(),
            bases,
            folder,
            seed,
        }
    }

    /// The file of a number, unless it is one with a damaged index.
    pub fn mutant(&self, number: u64) -> Option<Mutant> {
        let is_index = number.is_multiple_of(INDEX) && number >= LARGEST.len() as u64;
        (!is_index).then(|| mutant(&self.bases, self.seed, number))
    }

    /// Runs one; gives its kind and how it was taken.
    ///
    /// # Panics
    /// When an analysis does, or an answer contradicts itself.
    pub fn run(&self, number: u64) -> (String, Taken) {
        let Some(made) = self.mutant(number) else {
            return self.run_index(number);
        };
        let file = self.folder.path().join("mutant.hprof");
        std::fs::write(&file, &made.data).expect("writing the mutant");
        let options = Options {
            no_index: true,
            // Threads divide small heaps, too; starting them is most of the time it takes.
            threads: if number % 8 == 1 { 2 } else { 1 },
            tuning: Tuning {
                wide: number % 16 == 3,
                ..Tuning::default()
            },
            ..Options::default()
        };
        let taken = match Heap::open(&file, &options, &Control::quiet()) {
            Err(error) => refused(&error),
            Ok(heap) => {
                // What is packed is read by its packing once; the commands unpack it for these.
                if number % REWRITE == 2 {
                    rewrite(&heap, &made.data);
                }
                analyse(heap, Turn(number))
            }
        };
        (made.kind, taken)
    }

    fn run_index(&self, number: u64) -> (String, Taken) {
        let mut r = Random::new(self.seed, number);
        let one = r.of(&self.indexed);
        let kind = one.damage(&mut r).to_owned();
        let heap = one.open().expect("a good dump, whatever its index is");
        let taken = analyse(heap, Turn(number));
        assert_eq!(
            taken,
            Taken::Whole,
            "the dump is good, whatever its index is"
        );
        (kind, taken)
    }
}

/// Only what the file is may be a reason.
fn refused(error: &HeapError) -> Taken {
    assert!(error.is_unusable_input(), "{error}");
    Taken::Refused
}

fn analyse(heap: Heap, turn: Turn) -> Taken {
    let mut taken = match heap.summary().diagnostics.any_damage() {
        true => Taken::Damaged,
        false => Taken::Whole,
    };
    for (name, analysis) in ANALYSES {
        match analysis(&heap, turn) {
            Ok(()) => {}
            Err(HeapError::Object { .. }) => taken = Taken::Unreadable,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    ask(heap, turn);
    taken
}
