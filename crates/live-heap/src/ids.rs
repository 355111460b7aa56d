//! Maps an object's id to the position of its row.
//!
//! Ids that are addresses come in order: objects are allocated side by side, and collectors process them in this order.
//! Hashing single ids would scatter neighbours, so ids are stored in pages of 64 neighbours, and only pages are hashed.

use rustc_hash::FxHashMap;

/// No row.
const NONE: u64 = u64::MAX;

const SLOTS: usize = 64;
const NO_PAGE: u64 = u64::MAX;

#[derive(Debug)]
struct Page {
    used: u32,
    rows: [u64; SLOTS],
}

/// A map from ids to rows.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The binary logarithm of the distance between neighbouring ids, which is 8 for addresses and 1 for tags.
    shift: u32,
    pages: Vec<Page>,
    free: Vec<u32>,
    by_key: FxHashMap<u64, u32>,
    last: (u64, u32),
    /// Ids that are not multiples of the distance.
    odd: FxHashMap<u64, u64>,
    len: usize,
}

impl Ids {
    pub(crate) fn new(shift: u32) -> Self {
        Self {
            shift,
            pages: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            last: (NO_PAGE, 0),
            odd: FxHashMap::default(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Page and slot of an id, or `None` if it is not a multiple of the distance.
    #[inline]
    fn place(&self, id: u64) -> Option<(u64, usize)> {
        let step = id >> self.shift;
        (step << self.shift == id).then_some((step / SLOTS as u64, step as usize % SLOTS))
    }

    #[inline]
    fn page(&mut self, key: u64) -> Option<u32> {
        if self.last.0 == key {
            return Some(self.last.1);
        }
        let page = *self.by_key.get(&key)?;
        self.last = (key, page);
        Some(page)
    }

    pub(crate) fn get(&self, id: u64) -> Option<u64> {
        let Some((key, slot)) = self.place(id) else {
            return self.odd.get(&id).copied();
        };
        let page = *self.by_key.get(&key)?;
        Some(self.pages[page as usize].rows[slot]).filter(|row| *row != NONE)
    }

    /// Sets the row of an id and returns the previous one.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, row: u64) -> Option<u64> {
        let Some((key, slot)) = self.place(id) else {
            let old = self.odd.insert(id, row);
            self.len += usize::from(old.is_none());
            return old;
        };
        let page = match self.page(key) {
            Some(page) => page,
            None => self.new_page(key),
        };
        let page = &mut self.pages[page as usize];
        let old = std::mem::replace(&mut page.rows[slot], row);
        if old != NONE {
            return Some(old);
        }
        page.used += 1;
        self.len += 1;
        None
    }

    /// Removes an id and returns its row.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<u64> {
        let Some((key, slot)) = self.place(id) else {
            let old = self.odd.remove(&id);
            self.len -= usize::from(old.is_some());
            return old;
        };
        let number = self.page(key)?;
        let page = &mut self.pages[number as usize];
        let old = std::mem::replace(&mut page.rows[slot], NONE);
        if old == NONE {
            return None;
        }
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.by_key.remove(&key);
            self.free.push(number);
            self.last = (NO_PAGE, 0);
        }
        Some(old)
    }

    fn new_page(&mut self, key: u64) -> u32 {
        let page = Page {
            used: 0,
            rows: [NONE; SLOTS],
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.pages[number as usize] = page;
                number
            }
            None => {
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        };
        self.by_key.insert(key, number);
        self.last = (key, number);
        number
    }
}
