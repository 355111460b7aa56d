//! Class loaders by number: found by their identity hash, removed when they are freed.

use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;

/// Loaders that are examined for each new one, so that freed ones are dropped without a long scan of all of them.
const LOOKS: usize = 4;

/// A loader.
#[derive(Clone, Copy)]
struct Loader {
    weak: Object,
    /// Its identity hash.
    hash: i32,
}

#[derive(Default)]
pub(crate) struct Loaders {
    /// By number.
    all: Vec<Option<Loader>>,
    /// Numbers by identity hash.
    by_hash: FxHashMap<i32, Vec<usize>>,
    /// Numbers of loaders that were freed.
    free: Vec<usize>,
    /// The number that is examined next.
    next: usize,
}

impl Loaders {
    /// The number of a loader, found or given.
    pub(crate) fn number(&mut self, env: Env<Live>, jni: Jni, loader: Object) -> Option<usize> {
        let hash = env.object_hash(loader).unwrap_or(0);
        let mut same_hash = self.by_hash.get(&hash).into_iter().flatten();
        let is_it = |number: &&usize| {
            let known = self.all.get(**number).copied().flatten();
            known.is_some_and(|known| jni.is_same(known.weak, loader))
        };
        if let Some(number) = same_hash.find(is_it) {
            return Some(*number);
        }
        self.drop_freed(|weak| {
            let is_dead = jni.is_dead(weak);
            if is_dead {
                jni.delete_weak(weak);
            }
            is_dead
        });
        let weak = jni.new_weak(loader).ok()?;
        Some(self.add(Loader { weak, hash }))
    }

    fn add(&mut self, loader: Loader) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[number] = Some(loader);
        self.by_hash.entry(loader.hash).or_default().push(number);
        number
    }

    /// How many numbers have been given.
    pub(crate) fn numbers(&self) -> usize {
        self.all.len()
    }

    /// Loaders with numbers from `first` on that are alive or were freed recently: numbers and weak references.
    pub(crate) fn some(&self, first: usize, count: usize) -> impl Iterator<Item = (usize, Object)> {
        let some = self.all.iter().enumerate().skip(first).take(count);
        some.filter_map(|(number, loader)| loader.map(|loader| (number, loader.weak)))
    }

    /// Examines the next few loaders, and drops those that are `gone`; `gone` deletes their weak references.
    fn drop_freed(&mut self, gone: impl Fn(Object) -> bool) {
        for _ in 0..LOOKS.min(self.all.len()) {
            let number = self.next % self.all.len();
            self.next = number + 1;
            let Some(loader) = self.all[number].filter(|loader| gone(loader.weak)) else {
                continue;
            };
            self.all[number] = None;
            self.free.push(number);
            if let Some(numbers) = self.by_hash.get_mut(&loader.hash) {
                numbers.retain(|known| *known != number);
                if numbers.is_empty() {
                    self.by_hash.remove(&loader.hash);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn dead_loaders_give_their_numbers_to_others_a_few_looks_at_a_time() {
        /// Loaders that live at a time.
        const ALIVE: usize = 1000;
        let mut loaders = Loaders::default();
        let number_of = |weak: Object| weak.raw() as usize / 8;
        for made in 1..=20 * ALIVE {
            let looks = Cell::new(0);
            loaders.drop_freed(|weak| {
                looks.set(looks.get() + 1);
                number_of(weak) + ALIVE < made
            });
            assert!(looks.get() <= LOOKS);
            // SAFETY: the reference is never used; it is a number here.
            let weak = unsafe { Object::from_raw(std::ptr::without_provenance_mut(8 * made)) };
            let weak = weak.expect("not null");
            let hash = (made % 700) as i32;
            loaders.add(Loader { weak, hash });
        }
        let all = loaders.some(0, usize::MAX).count();
        assert!((ALIVE..2 * ALIVE).contains(&all), "{all}");
        assert!(loaders.numbers() < 2 * ALIVE, "{}", loaders.numbers());
        assert_eq!(loaders.by_hash.values().flatten().count(), all);
    }
}
