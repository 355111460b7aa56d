//! The replay: converts events to the current population and its history.

use vmpi::wire::{Hello, Item, MoveRange};
use vmpi::{Body, EventKind, GcInfo, GcKind, ObjectAlloc, ObjectMove};

use crate::cycles::CycleLeaks;
use crate::dumps::Dumps;
use crate::history::{Collection, History};
use crate::names::Names;
use crate::objects::{NONE, Objects, Row};
use crate::survival::Ages;
use crate::trail::{Fate, Step, Trail, Watch};

/// The counts of one kind of objects: of one class from one site.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) allocated: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) live: u64,
    pub(crate) live_bytes: u64,
    pub(crate) moves: u64,
    pub(crate) moved_bytes: u64,
    pub(crate) ages: Ages,
    /// By arena: objects that moved into it, and those of them that were freed soon after.
    pub(crate) entered: Vec<(u32, Entered)>,
}

impl Group {
    /// A kind's objects enter only a few arenas, so a linear search is fast enough.
    fn entered(&mut self, arena: u32) -> &mut Entered {
        let at = self.entered.iter().position(|(number, _)| *number == arena);
        let at = at.unwrap_or_else(|| {
            self.entered.push((arena, Entered::default()));
            self.entered.len() - 1
        });
        &mut self.entered[at].1
    }

    /// Adds the counts of another kind.
    pub(crate) fn add(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.allocated_bytes += other.allocated_bytes;
        self.live += other.live;
        self.live_bytes += other.live_bytes;
        self.moves += other.moves;
        self.moved_bytes += other.moved_bytes;
        self.ages.merge(&other.ages);
        for (arena, entered) in &other.entered {
            let own = self.entered(*arena);
            own.objects += entered.objects;
            own.bytes += entered.bytes;
            own.soon_freed += entered.soon_freed;
            own.soon_freed_bytes += entered.soon_freed_bytes;
        }
    }
}

/// Objects that moved into an arena from another one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entered {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// Those of them that were freed within [`SOON`] collections.
    pub(crate) soon_freed: u64,
    pub(crate) soon_freed_bytes: u64,
}

/// An object that is freed within this many collections after its promotion was promoted too early.
pub(crate) const SOON: u32 = 3;

/// One arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    pub(crate) name: String,
    pub(crate) exists: bool,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) deletions: u64,
    pub(crate) start: u64,
    pub(crate) used: Option<u64>,
    pub(crate) capacity: u64,
    pub(crate) entered: Entered,
    /// Objects in it when the current collection started, and how many of these were freed.
    at_start: u64,
    freed_in_gc: u64,
    /// Objects that were in it before a collection and survived it, summed over all collections; and how many of these
    /// the collection moved.
    pub(crate) survived: u64,
    pub(crate) moved_on: u64,
}

/// Inconsistent and dropped events, which show how reliable the results are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oddities {
    pub(crate) unknown_ids: u64,
    pub(crate) reused_ids: u64,
    pub(crate) lost: std::collections::BTreeMap<String, u64>,
}

/// Sums over the whole stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) allocated: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) freed: u64,
    pub(crate) freed_bytes: u64,
    /// Collections that report no freed or surviving objects.
    pub(crate) pauses: u64,
    pub(crate) ages: Ages,
    /// Freed objects by the number of their moves; index 8 counts 8 and more.
    pub(crate) moves_of_freed: [u64; 9],
    pub(crate) ns: u64,
}

/// Replays a stream of items, from any source.
///
/// ```
/// use live_heap::LiveHeap;
/// use vmpi::wire::{Hello, Item};
/// use vmpi::{ArenaId, Body, ObjectAlloc, ObjectHandle, TraceId};
///
/// let mut heap = LiveHeap::new(&Hello::default());
/// heap.apply(&Item::event(Body::ArenaNew { arena: ArenaId(1), name: "heap".into() }));
/// heap.apply(&Item::event(Body::ObjectAlloc(ObjectAlloc {
///     object: ObjectHandle(0x10),
///     class: ObjectHandle::NULL,
///     size: 24,
///     arena: ArenaId(1),
///     trace: TraceId::EMPTY,
///     array: Some(vmpi::BasicType::Byte),
/// })));
/// assert_eq!(heap.population().count(), 1);
/// ```
#[derive(Debug)]
pub struct LiveHeap {
    pub(crate) hello: Hello,
    pub(crate) names: Names,
    pub(crate) objects: Objects,
    pub(crate) kinds: Vec<Group>,
    pub(crate) arenas: Vec<Arena>,
    pub(crate) totals: Totals,
    pub(crate) oddities: Oddities,
    pub(crate) history: History,
    pub(crate) leaks: Option<CycleLeaks>,
    pub(crate) dumps: Dumps,
    pub(crate) gc_count: u32,
    pub(crate) in_gc: Option<Collection>,
    /// A collection is in progress that neither frees objects nor reports survivors.
    passed_over: bool,
    ranges: Vec<MoveRange>,
    pub(crate) watch: Option<Box<Watch>>,
}

/// The current state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Its current id.
    pub id: u64,
    /// Its number in the order of allocation, from 1, which is the same after all moves.
    pub serial: u64,
    /// Its bytes.
    pub size: u64,
    /// The arena it is in.
    pub arena: u32,
    /// Collections it has survived.
    pub age: u32,
    /// How often it has moved.
    pub moves: u32,
}

/// The highest arena number with its own entry. A stream that claims more is invalid, and a table by number must not
/// become as large as a claim.
const ARENAS: u32 = 1 << 10;

/// The most ranges that are collected before they are applied: each is compared with all others.
const RANGES: usize = 1024;

impl LiveHeap {
    /// An empty heap of the VM that sent this `Hello`.
    #[must_use]
    pub fn new(hello: &Hello) -> Self {
        Self {
            hello: hello.clone(),
            names: Names::default(),
            objects: Objects::new(!hello.stable_ids),
            kinds: Vec::new(),
            arenas: Vec::new(),
            totals: Totals::default(),
            oddities: Oddities::default(),
            history: History::default(),
            leaks: None,
            dumps: Dumps::default(),
            gc_count: 0,
            in_gc: None,
            passed_over: false,
            ranges: Vec::new(),
            watch: None,
        }
    }

    /// Every live object, in no particular order.
    pub fn population(&self) -> impl Iterator<Item = Present> {
        self.objects.iter().map(|row| self.present(row))
    }

    /// The object that has this id now.
    #[must_use]
    pub fn object(&self, id: u64) -> Option<Present> {
        self.objects.find(id).map(|row| self.present(row))
    }

    /// Collections finished so far.
    #[must_use]
    pub fn collections(&self) -> u32 {
        self.gc_count
    }

    /// Frees and moves of ids that were not valid, and allocations of ids that were: 0 for a VM that follows the rules
    /// and a stream without losses.
    #[must_use]
    pub fn contradictions(&self) -> u64 {
        self.oddities.unknown_ids + self.oddities.reused_ids
    }

    /// Serials of the objects that had the id of a [`Watch`].
    #[must_use]
    pub fn watched(&self) -> &[u64] {
        self.watch.as_deref().map_or(&[], Watch::serials)
    }

    /// The histories of the objects of a [`Watch`], in the order of their allocation.
    #[must_use]
    pub fn trails(&self) -> Vec<Trail> {
        let trails = self.watch.as_deref().map_or(&[][..], Watch::trails);
        let named = |trail: &Trail| {
            let (class, site) = self.names.kinds[trail.kind as usize];
            Trail {
                class: self.names.class_name(class),
                frames: self.names.site_frames(site),
                ..trail.clone()
            }
        };
        trails.iter().map(named).collect()
    }

    /// Reports to a watch, if there is one, what happened to an object.
    #[inline]
    fn emit_watch(&mut self, row: &Row, fate: Fate) {
        if self.watch.is_some() {
            self.emit_watch_now(row, fate);
        }
    }

    #[cold]
    fn emit_watch_now(&mut self, row: &Row, fate: Fate) {
        let arena = self.arenas.get(row.arena as usize);
        let step = Step {
            fate,
            id: row.id,
            arena: row.arena,
            arena_name: arena.map(|arena| arena.name.clone()).unwrap_or_default(),
            collections: self.gc_count,
            at_bytes: self.totals.allocated_bytes,
            ns: self.totals.ns,
        };
        if let Some(watch) = &mut self.watch {
            watch.saw(row, step);
        }
    }

    fn present(&self, row: &Row) -> Present {
        Present {
            id: row.id,
            serial: row.serial,
            size: row.size,
            arena: row.arena,
            age: self.gc_count - row.born_gc,
            moves: row.moves,
        }
    }

    /// Applies one item.
    #[inline]
    pub fn apply(&mut self, item: &Item) {
        self.totals.events += 1;
        if !self.ranges.is_empty() && !matches!(item, Item::MoveRange(_)) {
            self.apply_ranges();
        }
        match item {
            Item::Event { requested, body } => match body {
                Body::ObjectAlloc(alloc) => self.alloc(alloc, *requested),
                Body::ObjectFree { object } => self.free(object.0),
                Body::ObjectMove(one) => self.moved(one),
                other => self.other(other),
            },
            Item::Clock { ns } => self.totals.ns = self.totals.ns.max(*ns),
            Item::Trace { id, trace } => self.names.trace(id.0, trace.frames.clone()),
            Item::MoveRange(range) => self.range(range),
            Item::ArenaState(state) => {
                if let Some(arena) = self.arena(state.arena.0) {
                    arena.start = state.start;
                    arena.used = Some(state.used);
                    arena.capacity = state.capacity;
                }
                self.history.reported_used(state.arena.0, state.used);
            }
            Item::Lost { kind, count } => {
                let name = kind.map_or("MOVE_RANGE", EventKind::name);
                *self.oddities.lost.entry(name.into()).or_default() += count;
            }
        }
    }

    /// Ends the stream: applies delayed items, and takes a last sample.
    pub fn finish(&mut self) {
        self.apply_ranges();
        self.sample();
    }

    fn other(&mut self, body: &Body) {
        match body {
            Body::ArenaNew { arena, name } => {
                if let Some(arena) = self.arena(arena.0) {
                    arena.name.clone_from(name);
                    arena.exists = true;
                }
            }
            Body::ArenaDelete { arena } => self.delete_arena(arena.0),
            Body::ClassLoad(class) => self.names.load(class),
            Body::ClassUnload { class } => self.names.unload(*class),
            Body::GcStart { kind } => self.gc_start(*kind),
            Body::GcFinish(info) => self.gc_finish(info),
            Body::ThreadStart(thread) => self.names.start(thread),
            Body::HeapDump(dump) => self.heap_dump(dump),
            Body::ObjectDump { data } => self.object_dump(data),
            Body::MonitorDump(dump) => self.monitor_dump(dump),
            _ => {}
        }
    }

    #[inline]
    fn arena(&mut self, number: u32) -> Option<&mut Arena> {
        let at = number as usize;
        if at >= self.arenas.len() {
            if number >= ARENAS {
                self.oddities.unknown_ids += 1;
                return None;
            }
            self.arenas.resize_with(at + 1, Arena::default);
        }
        Some(&mut self.arenas[at])
    }

    /// The bytes that an object represents: its own, or in a sampled stream also those of the objects that were not
    /// reported.
    #[inline]
    pub(crate) fn weight(&self, size: u64) -> u64 {
        weight(self.hello.sample_interval, size)
    }

    #[inline]
    fn alloc(&mut self, alloc: &ObjectAlloc, requested: bool) {
        let id = alloc.object.0;
        if requested {
            let is_known = self.objects.find(id).is_some();
            // An object in no arena is not tracked.
            if !is_known && alloc.arena.0 == 0 {
                self.describe(alloc);
            }
            if is_known || alloc.arena.0 == 0 {
                return;
            }
        }
        let bytes = self.weight(alloc.size);
        let Some(arena) = self.arena(alloc.arena.0) else {
            return;
        };
        arena.objects += 1;
        arena.bytes += bytes;
        arena.allocated_bytes += bytes;
        let (kind, fresh) = self.names.kind_of(alloc.class, alloc.array, alloc.trace.0);
        if fresh {
            self.kinds.push(Group::default());
        }
        let group = &mut self.kinds[kind as usize];
        group.allocated += 1;
        group.allocated_bytes += bytes;
        group.live += 1;
        group.live_bytes += bytes;
        self.totals.allocated += 1;
        let mut row = Row::new(id, alloc.size);
        row.born_bytes = self.totals.allocated_bytes;
        row.serial = self.totals.allocated;
        row.kind = kind;
        row.arena = alloc.arena.0;
        row.born_gc = self.gc_count;
        self.totals.allocated_bytes += bytes;
        self.totals.live_bytes += bytes;
        if let Some(old) = self.objects.insert(row) {
            self.replaced(&old);
        }
        self.emit_watch(&row, Fate::Born);
        if self.history.is_due(self.totals.allocated_bytes) {
            self.sample();
        }
    }

    #[inline]
    fn free(&mut self, id: u64) {
        match self.objects.remove(id) {
            Some(row) => {
                self.emit_watch(&row, Fate::Freed);
                self.dead(&row);
            }
            None => self.oddities.unknown_ids += 1,
        }
    }

    /// An object whose free was not reported: another object has its id now.
    #[cold]
    fn replaced(&mut self, row: &Row) {
        self.oddities.reused_ids += 1;
        self.emit_watch(row, Fate::Replaced);
        self.dead(row);
    }

    /// Counts a freed object. Its row has already been removed from the table.
    #[inline]
    fn dead(&mut self, row: &Row) {
        let bytes = self.weight(row.size);
        let age = self.gc_count - row.born_gc;
        let age_bytes = self.totals.allocated_bytes - row.born_bytes;
        let buckets = Ages::buckets(age, age_bytes);
        let soon = row.entered_gc != NONE && self.gc_count - row.entered_gc <= SOON;
        if let Some(arena) = self.arenas.get_mut(row.arena as usize) {
            arena.objects -= 1;
            arena.bytes -= bytes;
            arena.freed_in_gc += u64::from(row.moved_gc != self.gc_count);
            if soon {
                arena.entered.soon_freed += 1;
                arena.entered.soon_freed_bytes += bytes;
            }
        }
        let group = &mut self.kinds[row.kind as usize];
        group.live -= 1;
        group.live_bytes -= bytes;
        group.ages.add(buckets);
        if soon {
            let entered = group.entered(row.arena);
            entered.soon_freed += 1;
            entered.soon_freed_bytes += bytes;
        }
        self.totals.freed += 1;
        self.totals.freed_bytes += bytes;
        self.totals.live_bytes -= bytes;
        self.totals.ages.add(buckets);
        self.totals.moves_of_freed[(row.moves as usize).min(8)] += 1;
        if let Some(gc) = &mut self.in_gc {
            gc.freed_objects += 1;
            gc.freed_bytes += bytes;
        }
    }

    #[inline]
    fn moved(&mut self, one: &ObjectMove) {
        self.move_row(one.object.0, one.new_object.0, one.new_arena.0);
        self.names.class_moved(one.object.0, one.new_object.0);
    }

    #[inline]
    fn move_row(&mut self, id: u64, new_id: u64, new_arena: u32) {
        if self.arena(new_arena).is_none() {
            return;
        }
        match self.objects.remove(id) {
            Some(before) => self.arrive(&before, new_id, new_arena),
            None => self.oddities.unknown_ids += 1,
        }
    }

    /// Gives an object that has left its arena its new id and arena.
    #[inline]
    fn arrive(&mut self, before: &Row, new_id: u64, new_arena: u32) {
        let mut row = *before;
        row.id = new_id;
        if row.arena != new_arena {
            row.entered_gc = self.gc_count;
        }
        row.arena = new_arena;
        row.moves = row.moves.saturating_add(1);
        row.moved_gc = self.gc_count;
        self.count_move(before, new_arena);
        if let Some(old) = self.objects.insert(row) {
            self.replaced(&old);
        }
        self.emit_watch(&row, Fate::Moved);
    }

    /// Counts a move of the object whose old row is `before`.
    #[inline]
    fn count_move(&mut self, before: &Row, new_arena: u32) {
        let bytes = self.weight(before.size);
        let crosses = before.arena != new_arena;
        let first = before.moved_gc != self.gc_count;
        self.arenas[before.arena as usize].moved_on += u64::from(first);
        if crosses {
            let old = &mut self.arenas[before.arena as usize];
            old.objects -= 1;
            old.bytes -= bytes;
            let arena = &mut self.arenas[new_arena as usize];
            arena.objects += 1;
            arena.bytes += bytes;
            arena.entered.objects += 1;
            arena.entered.bytes += bytes;
        }
        let group = &mut self.kinds[before.kind as usize];
        group.moves += 1;
        group.moved_bytes += bytes;
        if crosses {
            let entered = group.entered(new_arena);
            entered.objects += 1;
            entered.bytes += bytes;
        }
        if let Some(gc) = &mut self.in_gc {
            gc.moves += 1;
            gc.moved_bytes += bytes;
            gc.moved_again += u64::from(before.moved_gc == self.gc_count);
            if crosses {
                gc.changed_arena_bytes += bytes;
            }
        }
    }

    /// Ranges are collected and applied together, so that each costs time for its objects and not for its arena. They
    /// are applied in order; a range whose source overlaps the target of an earlier one is applied after it.
    fn range(&mut self, range: &MoveRange) {
        let end = |start: u64, len: u64| start.saturating_add(len);
        let overlaps = |one: &MoveRange| {
            range.from.0 < end(one.to.0, one.len) && one.to.0 < end(range.from.0, range.len)
        };
        if self.ranges.len() >= RANGES || self.ranges.iter().any(overlaps) {
            self.apply_ranges();
        }
        self.ranges.push(*range);
    }

    fn apply_ranges(&mut self) {
        if self.ranges.is_empty() {
            return;
        }
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.sort_by_key(|range| (range.arena, range.from));
        let mut moves = Vec::new();
        for same_arena in ranges.chunk_by(|a, b| a.arena == b.arena) {
            for row in self.objects.of_arena(same_arena[0].arena.0) {
                let after = same_arena.partition_point(|range| range.from.0 <= row.id);
                let Some(range) = after.checked_sub(1).map(|at| &same_arena[at]) else {
                    continue;
                };
                let distance = row.id - range.from.0;
                if distance < range.len {
                    moves.push((row.id, range.to.0.wrapping_add(distance), range.new_arena.0));
                }
            }
        }
        // All objects leave before the first one arrives, because a new id may be another object's old id.
        moves.retain(|(_, _, arena)| self.arena(*arena).is_some());
        let leaving: Vec<_> = moves
            .iter()
            .filter_map(|(id, ..)| self.objects.remove(*id))
            .collect();
        for (before, (id, new_id, arena)) in leaving.iter().zip(moves) {
            self.arrive(before, new_id, arena);
            self.names.class_moved(id, new_id);
        }
    }

    fn delete_arena(&mut self, number: u32) {
        if self.arena(number).is_none() {
            return;
        }
        let rows = self.objects.take_arena(number);
        for row in rows.iter().filter(|row| row.kind != NONE) {
            self.emit_watch(row, Fate::ArenaDeleted);
            self.dead(row);
        }
        self.objects.give_back(number, rows);
        let arena = &mut self.arenas[number as usize];
        arena.exists = false;
        arena.deletions += 1;
    }

    fn gc_start(&mut self, kind: GcKind) {
        if self.hello.full_gc_frees && kind != GcKind::Full {
            self.passed_over = true;
            return;
        }
        self.sample();
        for arena in &mut self.arenas {
            arena.at_start = arena.objects;
            arena.freed_in_gc = 0;
        }
        self.in_gc = Some(Collection {
            kind: match kind {
                GcKind::Unknown => "unknown",
                GcKind::Young => "young",
                GcKind::Full => "full",
            },
            at_bytes: self.totals.allocated_bytes,
            start_ns: self.totals.ns,
            objects_before: self.objects.len() as u64,
            bytes_before: self.totals.live_bytes,
            ..Collection::default()
        });
    }

    fn gc_finish(&mut self, info: &GcInfo) {
        if std::mem::take(&mut self.passed_over) {
            self.totals.pauses += 1;
            return;
        }
        self.gc_count += 1;
        for arena in &mut self.arenas {
            arena.survived += arena.at_start.saturating_sub(arena.freed_in_gc);
            arena.at_start = 0;
        }
        let Some(mut gc) = self.in_gc.take() else {
            self.oddities.unknown_ids += 1;
            return;
        };
        gc.number = self.gc_count;
        gc.end_ns = self.totals.ns;
        gc.objects_after = self.objects.len() as u64;
        gc.bytes_after = self.totals.live_bytes;
        gc.vm_used_bytes = info.used_space;
        gc.vm_total_bytes = info.total_space;
        self.history.collection(gc);
        self.sample();
    }

    fn sample(&mut self) {
        let arenas = self
            .arenas
            .iter()
            .map(|arena| (arena.objects, arena.bytes))
            .collect();
        let totals = &self.totals;
        self.history
            .sample(totals.allocated_bytes, totals.ns, self.gc_count, arenas);
    }
}

/// The bytes that one reported object represents if one byte in `interval` is sampled.
pub(crate) fn weight(interval: u64, size: u64) -> u64 {
    if interval == 0 {
        return size;
    }
    let probability = 1.0 - (-(size as f64) / interval as f64).exp();
    if probability <= 0.0 {
        return size;
    }
    (size as f64 / probability).round() as u64
}
