//! Things by number.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

/// Things by number, from 1 on. Numbers are not reused, so the number of a removed thing never refers to another thing.
pub(crate) struct Numbered<T> {
    all: FxHashMap<u32, T>,
    last: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            all: FxHashMap::default(),
            last: 0,
        }
    }
}

impl<T> Numbered<T> {
    /// Adds a thing; returns its number.
    pub(crate) fn add(&mut self, thing: T) -> u32 {
        self.last += 1;
        self.all.insert(self.last, thing);
        self.last
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.all.get(&number)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.all.get_mut(&number)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        self.all.remove(&number)
    }

    /// Removes all things, in no order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.all.drain().map(|(_, thing)| thing)
    }

    /// The last number that was given, 0 if none was.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// All things, in no order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut()
    }
}

impl<T> Index<u32> for Numbered<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.all[&number]
    }
}

impl<T> IndexMut<u32> for Numbered<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.all.get_mut(&number).expect("a number that was given")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_once() {
        let mut things = Numbered::default();
        assert_eq!((things.add("a"), things.add("b")), (1, 2));
        assert_eq!(things.remove(2), Some("b"));
        assert_eq!((things.get(2), things.get(0)), (None, None));
        assert_eq!((things.add("c"), things.last()), (3, 3));
        assert_eq!(things.drain().count(), 2);
        assert_eq!((things.add("d"), things[4]), (4, "d"));
    }
}
