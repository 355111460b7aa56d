//! A cache of recent answers, limited by size, because users go back and forth between pages.

use std::sync::{Arc, Mutex, PoisonError};

type Entry<K, V> = (K, Arc<V>, usize);

/// The most recently used values, newest first.
pub(super) struct Recent<K, V> {
    budget: usize,
    kept: Mutex<Vec<Entry<K, V>>>,
}

/// More entries than a user returns to.
const MOST: usize = 256;

impl<K: PartialEq, V> Recent<K, V> {
    /// Caches values of at most `budget` bytes in total, but always the newest one.
    pub(super) fn new(budget: usize) -> Recent<K, V> {
        Recent {
            budget,
            kept: Mutex::new(Vec::new()),
        }
    }

    /// The cached value of a key.
    pub(super) fn find(&self, key: &K) -> Option<Arc<V>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(k, ..)| k == key)?;
        let found = kept.remove(at);
        let value = Arc::clone(&found.1);
        kept.insert(0, found);
        Some(value)
    }

    /// The value of a key: the cached one, or the result of `make` with its size in bytes. Two threads with the same
    /// key may both call `make`.
    pub(super) fn get<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<(V, usize), E>,
    ) -> Result<Arc<V>, E> {
        if let Some(value) = self.find(&key) {
            return Ok(value);
        }
        let (value, size) = make()?;
        let value = Arc::new(value);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(0, (key, Arc::clone(&value), size));
        kept.truncate(MOST);
        let mut sum = 0;
        let fits = kept.iter().take_while(|(_, _, size)| {
            sum += size;
            sum <= self.budget
        });
        let count = fits.count().max(1);
        kept.truncate(count);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        let recent = Recent::new(10);
        let get = |key: u32, size: usize| {
            let mut made = false;
            let value = recent.get(key, || {
                made = true;
                Ok::<_, ()>((key * 2, size))
            });
            assert_eq!(*value.unwrap(), key * 2);
            made
        };
        assert!(get(1, 4));
        assert!(get(2, 4));
        assert!(!get(1, 4));
        assert!(get(3, 4), "makes room by dropping 2");
        assert!(!get(1, 4));
        assert!(get(2, 4));
        assert!(get(4, 100), "kept although it is too large");
        assert!(!get(4, 100));
        assert!(get(1, 4));
    }
}
