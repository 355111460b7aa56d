//! Which threads are sampled.

use rustc_hash::FxHashSet;
use vmpi::ThreadId;

/// Which threads are sampled.
#[derive(Debug)]
pub(super) struct Choice {
    all: bool,
    /// Threads that are treated differently from the others.
    except: FxHashSet<ThreadId>,
}

impl Choice {
    pub(super) fn of_all(all: bool) -> Self {
        Self {
            all,
            except: FxHashSet::default(),
        }
    }

    pub(super) fn switch(&mut self, on: bool, thread: Option<ThreadId>) {
        match thread {
            None => *self = Self::of_all(on),
            Some(thread) if on == self.all => drop(self.except.remove(&thread)),
            Some(thread) => drop(self.except.insert(thread)),
        }
    }

    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.all != self.except.contains(&thread)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.all && self.except.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_chosen_by_itself_stays_so_until_all_are_switched() {
        let mut choice = Choice::of_all(false);
        let (one, other) = (ThreadId(1), ThreadId(2));
        let mut check = |on, thread, expected: [bool; 2], is_empty| {
            choice.switch(on, thread);
            let found = [choice.has(one), choice.has(other)];
            assert_eq!((found, choice.is_empty()), (expected, is_empty));
        };
        check(true, Some(one), [true, false], false);
        check(false, Some(one), [false, false], true);
        check(true, None, [true, true], false);
        check(false, Some(other), [true, false], false);
        check(false, Some(other), [true, false], false);
        check(false, None, [false, false], true);
    }
}
