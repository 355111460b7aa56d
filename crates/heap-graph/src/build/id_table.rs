//! A flat hash table from class id to a small number: the look-up on the hot path of both passes.

/// Open addressing, power of two, never more than half full.
#[derive(Debug)]
pub(crate) struct IdTable {
    entries: Vec<(u64, u32)>,
    len: usize,
    zero: Option<u32>,
}

impl IdTable {
    pub(crate) fn new() -> IdTable {
        IdTable {
            entries: vec![(0, 0); 1 << 10],
            len: 0,
            zero: None,
        }
    }

    #[inline(always)]
    fn slot(&self, id: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let key = self.entries[at].0;
            if key == id || key == 0 {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of an id.
    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        if id == 0 {
            return self.zero;
        }
        let (key, value) = self.entries[self.slot(id)];
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
            for (key, value) in old.into_iter().filter(|(key, _)| *key != 0) {
                let slot = self.slot(key);
                self.entries[slot] = (key, value);
            }
        }
        let slot = self.slot(id);
        self.len += usize::from(self.entries[slot].0 == 0);
        self.entries[slot] = (id, value);
    }
}
