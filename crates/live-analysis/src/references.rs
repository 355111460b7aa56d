//! Global references of native code: how many there are, which code created them, and which objects of a heap dump they
//! keep alive.

use crate::columns::{Column, Kind, Tabular};
use crate::history::{Delta, History};
use crate::names::stack_text;
use crate::range::Range;
use heap_graph::{Heap, ObjIdx};
use hprof::ObjectId;
use profile::{NameId, Profile, Reference, ReferenceTable, Site, SiteTable, TraceId, Volume};
use rustc_hash::{FxHashMap, FxHashSet};

/// The references of native code when a dump was taken: reference, class and stack of each.
pub type Held = Vec<(u64, NameId, TraceId)>;

/// The objects in a dump that references of one class and stack refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Distinct objects.
    pub objects: u64,
    /// Their shallow bytes.
    pub shallow: u64,
    /// Bytes that would be freed with them: retained sizes, each object counted once.
    pub retained: u64,
}

/// The kind of weak references.
const WEAK: &str = "weak";

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Class of the objects.
    pub name: String,
    /// `global` or `weak`.
    pub kind: &'static str,
    /// Created in the range.
    pub created: u64,
    /// Deleted by the program in the range.
    pub deleted: u64,
    /// Those that existed at its end.
    pub remaining: u64,
    /// Existing weak ones whose objects were freed.
    pub cleared: u64,
    /// Shallow bytes of their objects at creation, once per reference.
    pub bytes: u64,
    /// Milliseconds since the oldest existing one was created.
    pub oldest_ms: u64,
    /// Name of the thread that created the last one.
    pub thread: String,
    /// Distinct objects that they refer to in the dump; unknown without a dump, and for weak ones.
    pub held: Option<u64>,
    /// Bytes that these objects retain.
    pub retained: Option<u64>,
    /// The stack that created them, innermost frame first.
    pub stack: Vec<String>,
}

impl Tabular for Row {
    const SCHEMA: &'static str = "tenure.live.references/1";
    const ABOUT: &'static str = "Global and weak references of native code, by class and stack.";
    const SORT: &'static str = "remaining";
    const COLUMNS: &'static [Column<Row>] = &[
        Column::new(
            Kind::Name,
            "name",
            "Class and stack",
            "Class of the objects.",
            |row| row.name.as_str().into(),
        ),
        Column::new(
            Kind::Text,
            "kind",
            "Kind",
            "Kind of the references: `global` or `weak`.",
            |row| row.kind.into(),
        ),
        Column::new(
            Kind::Count,
            "created",
            "Created",
            "References created in the range.",
            |row| row.created.into(),
        ),
        Column::new(
            Kind::Count,
            "deleted",
            "Deleted",
            "References that the program deleted in the range.",
            |row| row.deleted.into(),
        ),
        Column::new(
            Kind::Count,
            "remaining",
            "Remaining",
            "References that exist at the end of the range.",
            |row| row.remaining.into(),
        ),
        Column::new(
            Kind::Count,
            "cleared",
            "Cleared",
            "Existing weak references whose objects were freed.",
            |row| Some(row.cleared).filter(|_| row.kind == WEAK).into(),
        ),
        Column::new(
            Kind::Bytes,
            "bytes",
            "Shallow",
            "Shallow size of the objects when the references were created; an object counts once for each reference.",
            |row| row.bytes.into(),
        ),
        Column::new(
            Kind::Count,
            "held",
            "Objects",
            "Different objects that the global references refer to in the heap dump; not known without a dump.",
            |row| row.held.into(),
        ),
        Column::new(
            Kind::Bytes,
            "retained",
            "Retained",
            "Bytes that these objects retain.",
            |row| row.retained.into(),
        ),
        Column::new(
            Kind::Milliseconds,
            "oldest_ms",
            "Oldest",
            "Time since the oldest existing reference was created.",
            |row| Some(row.oldest_ms).filter(|_| row.remaining > 0).into(),
        ),
        Column::new(
            Kind::Text,
            "thread",
            "Last thread",
            "Name of the thread that created the last reference.",
            |row| row.thread.as_str().into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "The stack that created the references, innermost frame first.",
            |row| (&row.stack).into(),
        ),
    ];
}

/// The references that exist now, which are stored with a dump.
pub fn held(profile: &Profile) -> Held {
    let Some(table) = &profile.references else {
        return Held::new();
    };
    let of = |(row, reference): &(u32, u64)| {
        let row = table.rows.get(*row as usize)?;
        (!row.weak).then_some((*reference, row.class, row.trace))
    };
    table.handles.iter().filter_map(of).collect()
}

/// The roots of a dump, by the reference that makes them roots.
pub type Roots = FxHashMap<u64, ObjectId>;

/// The objects that the references of each class and stack refer to. A reference counts only if its object in the dump
/// has the recorded class, because another reference may use its slot by now.
pub fn holdings(
    heap: &Heap,
    roots: &Roots,
    held: &Held,
    names: &dyn Fn(NameId) -> String,
) -> FxHashMap<(NameId, TraceId), Holding> {
    let mut sets: FxHashMap<(NameId, TraceId), FxHashSet<ObjIdx>> = FxHashMap::default();
    for (reference, class, trace) in held {
        let object = roots.get(reference);
        let Some(object) = object.and_then(|id| heap.find(*id)) else {
            continue;
        };
        if heap.class(heap.class_of(object)).name == names(*class) {
            sets.entry((*class, *trace)).or_default().insert(object);
        }
    }
    let sum = |set: &FxHashSet<ObjIdx>| {
        let mut sum = Holding::default();
        for object in set {
            sum.objects += 1;
            sum.shallow += heap.shallow(*object).0;
            // No root is below another one in the dominator tree.
            sum.retained += heap.retained(*object).0;
        }
        sum
    };
    sets.iter().map(|(key, set)| (*key, sum(set))).collect()
}

/// References of one kind as sites, so that [`crate::history`] can store their history.
pub fn as_sites(table: &ReferenceTable, weak: bool) -> SiteTable {
    let mut sites = SiteTable::default();
    for row in table.rows.iter().filter(|row| row.weak == weak) {
        let volume = |objects| Volume {
            objects,
            bytes: row.bytes,
        };
        sites.add(Site {
            class: row.class,
            trace: row.trace,
            live: volume(row.remaining()),
            allocated: volume(row.created),
        });
    }
    sites
}

/// The rows with references created or deleted in the range; `made` are the histories of global and of weak references.
pub fn rows(
    profile: &Profile,
    table: &ReferenceTable,
    made: &[History; 2],
    range: Range,
) -> Vec<(Reference, Row)> {
    let [global, weak] = made.each_ref().map(|history| {
        let deltas = history.range(range.from, range.to).into_iter();
        let by_site = deltas.map(|delta| ((delta.class, delta.trace), delta));
        by_site.collect::<FxHashMap<_, Delta>>()
    });
    let row = |row: &Reference| {
        let of = if row.weak { &weak } else { &global };
        let delta = of.get(&(row.class, row.trace))?;
        (delta.allocated.objects > 0 || delta.freed.objects > 0)
            .then(|| (*row, row_of(profile, row, delta)))
    };
    table.rows.iter().filter_map(row).collect()
}

/// Adds the objects in a dump to the rows of global references.
pub fn add_holdings(
    rows: &mut [(Reference, Row)],
    holdings: &FxHashMap<(NameId, TraceId), Holding>,
) {
    for (reference, row) in rows.iter_mut().filter(|(reference, _)| !reference.weak) {
        let of = holdings.get(&(reference.class, reference.trace));
        row.held = Some(of.map_or(0, |of| of.objects));
        row.retained = Some(of.map_or(0, |of| of.retained));
    }
}

fn row_of(profile: &Profile, row: &Reference, delta: &Delta) -> Row {
    let thread = profile.thread(row.thread);
    Row {
        name: profile.names.get(row.class).to_owned(),
        kind: if row.weak { WEAK } else { "global" },
        created: delta.allocated.objects,
        deleted: delta.freed.objects,
        remaining: delta.live.objects,
        cleared: row.cleared,
        bytes: delta.live.bytes,
        oldest_ms: row.oldest_ms,
        thread: thread.map_or_else(String::new, |t| profile.names.get(t.name).to_owned()),
        held: None,
        retained: None,
        stack: stack_text(profile, row.trace),
    }
}
