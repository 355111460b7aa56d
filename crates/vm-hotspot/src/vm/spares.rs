//! Java objects that are made before the state is locked.
//!
//! An allocation may begin a collection, for which JDK 8 takes a monitor (`Reference.lock`), and a thread that holds
//! this monitor may wait for the state. So nothing is allocated in the program's heap while the state is locked: code
//! that finds a table full requests a larger one, releases the lock, and starts again when the table has been made.

use std::cell::RefCell;

use jvmti::{Error, Jni, Object, Result};

use crate::instrument::counters::Want;
use crate::instrument::tracker::Tracker;

/// What may be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spare {
    /// A `long[]` of this length.
    Longs(usize),
    /// An array of trackers of this length, filled with `HprofTracker.noThread`.
    Trackers(usize),
    /// A tracker with tables.
    Tables(Want),
}

/// Why an operation was not completed.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It starts again when the requested objects are made.
    Missing,
    /// It has failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The objects that have been made (local references), and those that are requested.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    /// `None` where the program's heap is full.
    made: RefCell<Vec<(Spare, Option<Object>)>>,
    wanted: RefCell<Vec<Spare>>,
}

impl Spares {
    /// Takes all of these objects, or none: then all are requested, and the caller starts again.
    pub(crate) fn take(&self, all: &[Spare]) -> std::result::Result<Vec<Option<Object>>, Stop> {
        let mut made = self.made.borrow_mut();
        let mut left = made.clone();
        let mut taken = Vec::with_capacity(all.len());
        for spare in all {
            let Some(at) = left.iter().position(|(known, _)| known == spare) else {
                *self.wanted.borrow_mut() = all.to_vec();
                return Err(Stop::Missing);
            };
            taken.push(left.swap_remove(at).1);
        }
        *made = left;
        Ok(taken)
    }

    /// Takes one object; it is an error if it could not be made.
    pub(crate) fn one(&self, spare: Spare) -> std::result::Result<Object, Stop> {
        let taken = self.take(&[spare])?;
        let object = taken.into_iter().next().flatten();
        Ok(object.ok_or(Error::Jni("room in the program's heap"))?)
    }

    fn make(&self, jni: Jni, tracker: &Tracker) {
        let mut made = self.made.borrow_mut();
        for (_, object) in made.drain(..) {
            object
                .into_iter()
                .for_each(|object| jni.delete_local(object));
        }
        for spare in self.wanted.borrow_mut().drain(..) {
            let object = match spare {
                Spare::Longs(len) => jni.new_longs(len),
                Spare::Trackers(len) => tracker.new_trackers(jni, len),
                Spare::Tables(want) => tracker.with_tables(jni, want),
            };
            made.push((spare, object.ok()));
        }
    }
}

/// Runs `body` until it has all objects that it needs; missing ones are made between two runs. `body` locks what it
/// needs, and must take its objects before it changes anything.
///
/// # Errors
/// Those of `body`.
pub(crate) fn with_spares<T>(
    (jni, tracker): (Jni, &Tracker),
    mut body: impl FnMut(&Spares) -> std::result::Result<T, Stop>,
) -> Result<T> {
    let spares = Spares::default();
    loop {
        match body(&spares) {
            Ok(done) => return Ok(done),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Missing) => spares.make(jni, tracker),
        }
    }
}
