//! Java objects that are made before the state is locked.
//!
//! An allocation may begin a collection, for which JDK 8 takes a monitor (`Reference.lock`). A
//! thread that holds this monitor may wait for the state. So nothing is allocated in the program's
//! heap while the state is locked: code that finds a table full requests a larger one and begins again
//! when that has been made.

use std::cell::RefCell;

use jvmti::{Error, Jni, Object, Result};

use crate::instrument::counters::Want;
use crate::instrument::tracker::Tracker;

/// What may be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spare {
    /// A `long[]` of this length.
    Longs(usize),
    /// An array of tracker objects of this length, with the tracker's `none` in each place.
    Trackers(usize),
    /// A tracker object with tables.
    Tables(Want),
}

/// Why something has not been done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It begins again when what it has requested is made.
    Missing,
    /// It cannot be done.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What has been made, and what is to be made; local references.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    /// `None` where the program's heap is full.
    made: RefCell<Vec<(Spare, Option<Object>)>>,
    wanted: RefCell<Vec<Spare>>,
}

impl Spares {
    /// All of these, or none: then they are made, and the caller begins again.
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

    /// One, which has to be had.
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

/// Runs `body` until it misses nothing. It locks what it needs, changes nothing before it has taken
/// all that it needs at a time, and what it misses is made between two runs.
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
