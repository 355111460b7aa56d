//! The objects that are alive: a row each, found by id, and linked by arena so
//! that a deleted arena costs only its own objects.

use crate::ids::Ids;

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// One object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: u64,
    pub(crate) size: u64,
    /// Bytes allocated by all when it was born.
    pub(crate) born_bytes: u64,
    /// Place in the order of births, from 1: what stays when the id changes.
    pub(crate) serial: u64,
    /// Its class and site together.
    pub(crate) kind: u32,
    pub(crate) arena: u32,
    /// Collections finished when it was born.
    pub(crate) born_gc: u32,
    /// Collections finished when it entered its arena by a move, else [`NONE`].
    pub(crate) entered_gc: u32,
    /// Collection in which it moved last, [`NONE`] for never.
    pub(crate) moved_gc: u32,
    pub(crate) moves: u32,
    previous: u32,
    next: u32,
}

impl Row {
    /// A row that is in no list yet.
    pub(crate) fn new(id: u64, size: u64) -> Self {
        Self {
            id,
            size,
            born_bytes: 0,
            serial: 0,
            kind: 0,
            arena: 0,
            born_gc: 0,
            entered_gc: NONE,
            moved_gc: NONE,
            moves: 0,
            previous: NONE,
            next: NONE,
        }
    }
}

/// All rows.
#[derive(Debug)]
pub(crate) struct Objects {
    rows: Vec<Row>,
    free: Vec<u32>,
    by_id: Ids,
    heads: Vec<u32>,
}

impl Objects {
    /// Ids that are addresses are multiples of 8.
    pub(crate) fn new(ids_are_addresses: bool) -> Self {
        Self {
            rows: Vec::new(),
            free: Vec::new(),
            by_id: Ids::new(if ids_are_addresses { 3 } else { 0 }),
            heads: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn find(&self, id: u64) -> Option<&Row> {
        self.by_id.get(id).map(|at| &self.rows[at as usize])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.by_id.rows().map(|at| &self.rows[at as usize])
    }

    /// Adds a row; gives back the one that had its id, if any.
    #[inline]
    pub(crate) fn insert(&mut self, row: Row) -> Option<Row> {
        let at = if let Some(at) = self.free.pop() {
            self.rows[at as usize] = row;
            at
        } else {
            self.rows.push(row);
            (self.rows.len() - 1) as u32
        };
        let old = self.by_id.insert(row.id, at);
        let old = old.map(|old| self.release(old));
        self.link(at);
        old
    }

    /// Takes a row out.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<Row> {
        let at = self.by_id.remove(id)?;
        Some(self.release(at))
    }

    /// Gives a row another id and arena. `change` sees it before it is linked
    /// again. Gives back what had the new id, if anything did.
    #[inline]
    pub(crate) fn rename(
        &mut self,
        id: u64,
        new_id: u64,
        change: impl FnOnce(&mut Row),
    ) -> Option<Option<Row>> {
        let at = self.by_id.remove(id)?;
        self.unlink(at);
        let row = &mut self.rows[at as usize];
        row.id = new_id;
        change(row);
        let old = self.by_id.insert(new_id, at);
        let old = old.map(|old| self.release(old));
        self.link(at);
        Some(old)
    }

    /// Takes the row that came last into an arena out of it, until none is left.
    #[inline]
    pub(crate) fn pop_of_arena(&mut self, arena: u32) -> Option<Row> {
        let head = self.heads.get_mut(arena as usize)?;
        let at = *head;
        let row = *self.rows.get(at as usize)?;
        *head = row.next;
        if row.next != NONE {
            self.rows[row.next as usize].previous = NONE;
        }
        self.by_id.remove(row.id);
        self.free.push(at);
        Some(row)
    }

    /// The rows of an arena, in no order.
    pub(crate) fn of_arena(&self, arena: u32) -> impl Iterator<Item = &Row> {
        let mut at = self.heads.get(arena as usize).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let row = self.rows.get(at as usize)?;
            at = row.next;
            Some(row)
        })
    }

    fn release(&mut self, at: u32) -> Row {
        self.unlink(at);
        self.free.push(at);
        self.rows[at as usize]
    }

    #[inline]
    fn link(&mut self, at: u32) {
        let arena = self.rows[at as usize].arena as usize;
        if self.heads.len() <= arena {
            self.heads.resize(arena + 1, NONE);
        }
        let head = std::mem::replace(&mut self.heads[arena], at);
        let row = &mut self.rows[at as usize];
        row.previous = NONE;
        row.next = head;
        if head != NONE {
            self.rows[head as usize].previous = at;
        }
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let Row {
            previous,
            next,
            arena,
            ..
        } = self.rows[at as usize];
        if next != NONE {
            self.rows[next as usize].previous = previous;
        }
        if previous == NONE {
            self.heads[arena as usize] = next;
        } else {
            self.rows[previous as usize].next = next;
        }
    }
}
