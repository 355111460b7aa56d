//! A flat hash table from class id to a small number, for the hot path of both passes.

use std::collections::BTreeMap;

/// Open addressing, power of two, never more than half full.
#[derive(Debug)]
pub(crate) struct IdTable {
    entries: Vec<(u64, u32)>,
    len: usize,
    zero: Option<u32>,
    /// Ids without a free slot near their first one. This never happens with addresses, but ids can be crafted for it.
    crowded: BTreeMap<u64, u32>,
}

/// How many slots are examined for an id.
const NEAR: usize = 64;

impl IdTable {
    pub(crate) fn new() -> IdTable {
        IdTable {
            entries: vec![(0, 0); 1 << 10],
            len: 0,
            zero: None,
            crowded: BTreeMap::new(),
        }
    }

    /// The slot of an id, or a free one for it.
    #[inline(always)]
    fn slot(&self, id: u64) -> Option<usize> {
        let mask = self.entries.len() - 1;
        let first = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        for at in first..first + NEAR {
            let key = self.entries[at & mask].0;
            if key == id || key == 0 {
                return Some(at & mask);
            }
        }
        None
    }

    /// The number of an id.
    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        if id == 0 {
            return self.zero;
        }
        let Some(slot) = self.slot(id) else {
            return self.crowded.get(&id).copied();
        };
        let (key, value) = self.entries[slot];
        (key == id).then_some(value)
    }

    /// Sets the number of an id.
    pub(crate) fn insert(&mut self, id: u64, value: u32) {
        if id == 0 {
            self.zero = Some(value);
            return;
        }
        if self.len * 2 >= self.entries.len() {
            let bigger = vec![(0, 0); self.entries.len() * 2];
            let old = std::mem::replace(&mut self.entries, bigger);
            let crowded = std::mem::take(&mut self.crowded);
            self.len = 0;
            let old = old.into_iter().filter(|(key, _)| *key != 0);
            for (key, value) in old.chain(crowded) {
                self.put(key, value);
            }
        }
        self.put(id, value);
    }

    fn put(&mut self, id: u64, value: u32) {
        match self.slot(id) {
            Some(slot) => {
                self.len += usize::from(self.entries[slot].0 == 0);
                self.entries[slot] = (id, value);
            }
            None => {
                self.crowded.insert(id, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids whose hash is their own number: all of them begin at the first place.
    #[test]
    fn ids_that_were_made_to_collide_are_found_without_looking_at_all_of_them() {
        let mut inverse: u64 = 1;
        for _ in 0..6 {
            let twice = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(inverse);
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(twice));
        }
        assert_eq!(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(inverse), 1);
        let ids = || (1..20_000).map(|n: u64| n.wrapping_mul(inverse));
        let mut table = IdTable::new();
        for (n, id) in ids().enumerate() {
            table.insert(id, n as u32);
        }
        for (n, id) in ids().enumerate() {
            assert_eq!(table.get(id), Some(n as u32));
        }
        assert!(table.len <= NEAR, "no longer than what is looked at");
        table.insert(inverse, 7);
        assert_eq!(table.get(inverse), Some(7));
        assert_eq!(table.get(20_001_u64.wrapping_mul(inverse)), None);
    }

    #[test]
    fn addresses_stay_in_the_flat_table() {
        let mut table = IdTable::new();
        for n in 0..100_000 {
            table.insert(0x7f00_0000 + n * 104, n as u32);
        }
        assert_eq!(table.get(0x7f00_0000 + 99_999 * 104), Some(99_999));
        assert!(table.crowded.is_empty());
    }
}
