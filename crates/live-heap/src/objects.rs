//! The objects that are alive: a row each, found by id.
//!
//! Rows lie by arena, as the objects themselves do: the nursery's rows stay close
//! together, whatever has been promoted, and a deleted arena is walked from end
//! to end. An object that changes its arena changes its row.

use crate::ids::Ids;

/// No row, no kind, no collection.
pub(crate) const NONE: u32 = u32::MAX;

/// One object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: u64,
    pub(crate) size: u64,
    /// Bytes allocated by all when it was born.
    pub(crate) born_bytes: u64,
    /// Place in the order of allocation, from 1: what stays when the id changes.
    pub(crate) serial: u64,
    /// Its class and site together; [`NONE`] in a row that is free.
    pub(crate) kind: u32,
    pub(crate) arena: u32,
    /// Collections finished when it was born.
    pub(crate) born_gc: u32,
    /// Collections finished when it entered its arena by a move, else [`NONE`].
    pub(crate) entered_gc: u32,
    /// Collection in which it moved last, [`NONE`] for never.
    pub(crate) moved_gc: u32,
    pub(crate) moves: u32,
}

impl Row {
    /// A row that has no history yet.
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

/// Where a row is: its arena and its place there.
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

    /// Adds a row; gives back the one that had its id, if any.
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

    /// Takes a row out.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<Row> {
        let (arena, at) = parts(self.by_id.remove(id)?);
        Some(self.slabs[arena].take(at))
    }

    /// Takes all rows of an arena out, free ones among them. Give the vector back
    /// afterwards, so that the next ones find room.
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

    /// The room of an emptied arena.
    pub(crate) fn give_back(&mut self, arena: u32, mut rows: Vec<Row>) {
        if let Some(slab) = self.slabs.get_mut(arena as usize) {
            rows.clear();
            slab.rows = rows;
        }
    }

    /// The rows of an arena, in no order.
    pub(crate) fn of_arena(&self, arena: u32) -> impl Iterator<Item = &Row> {
        self.slabs
            .get(arena as usize)
            .into_iter()
            .flat_map(Slab::iter)
    }
}
