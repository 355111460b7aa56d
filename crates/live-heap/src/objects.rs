//! The live objects: one row each, found by id.
//!
//! Rows are stored by arena, as the objects themselves are: the nursery's rows stay close together, whatever was
//! promoted, and a deleted arena is processed from end to end. When an object changes its arena, its row moves, too.

use crate::ids::Ids;

/// No row, kind or collection.
pub(crate) const NONE: u32 = u32::MAX;

/// One object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: u64,
    pub(crate) size: u64,
    /// Bytes that all objects had allocated when this one was allocated.
    pub(crate) born_bytes: u64,
    /// Its number in the order of allocation, from 1, which stays the same when the id changes.
    pub(crate) serial: u64,
    /// Its class and site together; [`NONE`] in a free row.
    pub(crate) kind: u32,
    pub(crate) arena: u32,
    /// Collections finished when it was allocated.
    pub(crate) born_gc: u32,
    /// Collections finished when it moved into its arena, otherwise [`NONE`].
    pub(crate) entered_gc: u32,
    /// The collection in which it moved last, [`NONE`] if it never moved.
    pub(crate) moved_gc: u32,
    pub(crate) moves: u32,
}

impl Row {
    /// A row without history.
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
        }
    }
}

/// The rows of one arena.
#[derive(Debug, Default)]
struct Slab {
    rows: Vec<Row>,
    free: Vec<u32>,
}

impl Slab {
    #[inline]
    fn add(&mut self, row: Row) -> u32 {
        if let Some(at) = self.free.pop() {
            self.rows[at as usize] = row;
            at
        } else {
            self.rows.push(row);
            (self.rows.len() - 1) as u32
        }
    }

    #[inline]
    fn take(&mut self, at: u32) -> Row {
        let row = self.rows[at as usize];
        self.rows[at as usize].kind = NONE;
        self.free.push(at);
        row
    }

    fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.kind != NONE)
    }
}

/// All rows.
#[derive(Debug)]
pub(crate) struct Objects {
    slabs: Vec<Slab>,
    by_id: Ids,
}

/// The position of a row: its arena and its index there.
fn place(arena: u32, at: u32) -> u64 {
    u64::from(arena) << 32 | u64::from(at)
}

fn parts(place: u64) -> (usize, u32) {
    ((place >> 32) as usize, place as u32)
}

impl Objects {
    /// Ids that are addresses are multiples of 8.
    pub(crate) fn new(ids_are_addresses: bool) -> Self {
        Self {
            slabs: Vec::new(),
            by_id: Ids::new(if ids_are_addresses { 3 } else { 0 }),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn find(&self, id: u64) -> Option<&Row> {
        let (arena, at) = parts(self.by_id.get(id)?);
        Some(&self.slabs[arena].rows[at as usize])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.slabs.iter().flat_map(Slab::iter)
    }

    /// Adds a row; returns the previous row with its id, if any.
    #[inline]
    pub(crate) fn insert(&mut self, row: Row) -> Option<Row> {
        let arena = row.arena as usize;
        if self.slabs.len() <= arena {
            self.slabs.resize_with(arena + 1, Slab::default);
        }
        let at = self.slabs[arena].add(row);
        let old = self.by_id.insert(row.id, place(row.arena, at))?;
        let (arena, at) = parts(old);
        Some(self.slabs[arena].take(at))
    }

    /// Removes a row.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<Row> {
        let (arena, at) = parts(self.by_id.remove(id)?);
        Some(self.slabs[arena].take(at))
    }

    /// Removes all rows of an arena, including free ones. Return the vector with [`Self::give_back`] afterwards, so
    /// that its memory is reused.
    pub(crate) fn take_arena(&mut self, arena: u32) -> Vec<Row> {
        let Some(slab) = self.slabs.get_mut(arena as usize) else {
            return Vec::new();
        };
        slab.free.clear();
        let rows = std::mem::take(&mut slab.rows);
        for row in rows.iter().filter(|row| row.kind != NONE) {
            self.by_id.remove(row.id);
        }
        rows
    }

    /// Returns the vector of an emptied arena.
    pub(crate) fn give_back(&mut self, arena: u32, mut rows: Vec<Row>) {
        if let Some(slab) = self.slabs.get_mut(arena as usize) {
            rows.clear();
            slab.rows = rows;
        }
    }

    /// The rows of an arena, in no particular order.
    pub(crate) fn of_arena(&self, arena: u32) -> impl Iterator<Item = &Row> {
        self.slabs
            .get(arena as usize)
            .into_iter()
            .flat_map(Slab::iter)
    }
}
