//! Global references of native code: how many there are, which code made them, and what they hold in a heap dump.

use crate::columns::{Column, Kind, Tabular};
use crate::history::{Delta, History};
use crate::names::stack_text;
use crate::range::Range;
use heap_graph::{Heap, ObjIdx};
use hprof::ObjectId;
use profile::{NameId, Profile, Reference, ReferenceTable, Site, SiteTable, TraceId, Volume};
use rustc_hash::{FxHashMap, FxHashSet};

/// What native code held when a dump was taken: reference, class and stack of each.
pub type Held = Vec<(u64, NameId, TraceId)>;

/// The objects that references of one class and stack hold in a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Distinct objects.
    pub objects: u64,
    /// Their shallow bytes.
    pub shallow: u64,
    /// Bytes that would go with them: retained sizes, each object counted once.
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
    /// Made in the range.
    pub created: u64,
    /// Deleted by the program in the range.
    pub deleted: u64,
    /// Those that existed at its end.
    pub remaining: u64,
    /// Weak ones that exist now and whose objects are gone.
    pub cleared: u64,
    /// Shallow bytes of their objects when they were made, one for each reference.
    pub bytes: u64,
    /// Milliseconds since the oldest that exists was made.
    pub oldest_ms: u64,
    /// Name of the thread that made the last.
    pub thread: String,
    /// Distinct objects they hold in the dump; unknown without one, and for weak ones.
    pub held: Option<u64>,
    /// Bytes that these retain.
    pub retained: Option<u64>,
    /// The frames that made them, innermost first.
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
        Column::new(Kind::Text, "kind", "Kind", "`global` or `weak`.", |row| {
            row.kind.into()
        }),
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
            "Weak references that exist now and whose objects are freed.",
            |row| Some(row.cleared).filter(|_| row.kind == WEAK).into(),
        ),
        Column::new(
            Kind::Bytes,
            "bytes",
            "Shallow",
            "Shallow bytes of the objects when the references were created, once for each reference.",
            |row| row.bytes.into(),
        ),
        Column::new(
            Kind::Count,
            "held",
            "Objects",
            "Different objects that they refer to in the heap dump; not known without one, and for weak references.",
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
            "Name of the thread that created the last one.",
            |row| row.thread.as_str().into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "The frames that created them, innermost first.",
            |row| (&row.stack).into(),
        ),
    ];
}

/// What exists now, as it is kept with a dump.
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

/// The objects that are roots of a dump, by the reference that makes them roots.
pub type Roots = FxHashMap<u64, ObjectId>;

/// What each class and stack holds. A reference counts where its object in the dump is of the
/// class it was made for: another may have got its place meanwhile.
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
            // Roots are not below each other in the dominator tree.
            sum.retained += heap.retained(*object).0;
        }
        sum
    };
    sets.iter().map(|(key, set)| (*key, sum(set))).collect()
}

/// References of one kind as sites, whose history is then that of references.
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

/// The rows of which something came or went in the range, each with what it counts; `made` are the histories of global
/// and of weak references.
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

/// Adds to the rows of global references what they hold in a dump.
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
