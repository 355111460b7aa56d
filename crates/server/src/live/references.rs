//! Global references of native code: how many there are, who made them, and what they hold in the
//! last heap dump that knows them. Reading it takes one pass over the file, once.

use super::ask::Range;
use super::dumps::Dump;
use super::history::Delta;
use super::session::Live;
use super::table::stack_text;
use crate::reply::Fault;
use heap_graph::{Heap, ObjIdx};
use hprof::source::{Source, Unpack};
use hprof::{FileOffset, HeapTag, HeapVisitor, Root, map_file};
use profile::{NameId, Profile, Reference, ReferenceTable, Site, SiteTable, TraceId, Volume};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::path::Path;

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

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

impl Row {
    /// The value of a column; `None` when there is no such column.
    pub fn column(&self, name: &str) -> Option<f64> {
        let number = |n: Option<u64>| n.map_or(-1.0, |n| n as f64);
        Some(match name {
            "created" => self.created as f64,
            "deleted" => self.deleted as f64,
            "remaining" => self.remaining as f64,
            "cleared" => self.cleared as f64,
            "bytes" => self.bytes as f64,
            "oldest_ms" => self.oldest_ms as f64,
            "held" => number(self.held),
            "retained" => number(self.retained),
            _ => return None,
        })
    }
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

/// Roots of a dump by the reference that they are.
#[derive(Default)]
struct Roots {
    by_reference: FxHashMap<u64, hprof::ObjectId>,
}

impl HeapVisitor for Roots {
    fn root(&mut self, _: FileOffset, root: Root) {
        if root.kind == HeapTag::RootJniGlobal {
            self.by_reference.insert(root.reference.0, root.object);
        }
    }
}

fn roots(path: &Path) -> Result<Roots, Fault> {
    let source =
        Source::open(path, &Unpack::default()).map_err(|error| Fault::failed(error.to_string()))?;
    let data = source.bytes();
    let map = map_file(data, |_| {}).map_err(|error| Fault::failed(error.to_string()))?;
    let mut roots = Roots::default();
    map.walk(data, &mut roots);
    Ok(roots)
}

/// What each class and stack holds. A reference counts where its object in the dump is of the
/// class it was made for: another may have got its place meanwhile.
pub fn holdings(
    heap: &Heap,
    path: &Path,
    held: &Held,
    names: &dyn Fn(NameId) -> String,
) -> Result<FxHashMap<(NameId, TraceId), Holding>, Fault> {
    let roots = roots(path)?;
    let mut sets: FxHashMap<(NameId, TraceId), FxHashSet<ObjIdx>> = FxHashMap::default();
    for (reference, class, trace) in held {
        let object = roots.by_reference.get(reference);
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
    Ok(sets.iter().map(|(key, set)| (*key, sum(set))).collect())
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

/// The last dump of a time that knows what native code held and is open.
fn known(live: &Live, time_ms: u64) -> Option<(usize, std::sync::Arc<Dump>)> {
    let dumps = live.dumps.of_time(time_ms).into_iter().enumerate().rev();
    let mut open = dumps.filter(|(_, dump)| dump.knows_references());
    open.find(|(_, dump)| dump.explorer.heap().is_ok())
        .map(|(n, dump)| (n + 1, dump))
}

/// All rows that match and of which something came or went in the range, and the number of the dump
/// that their holdings are from.
///
/// # Errors
/// When references are not recorded.
pub fn rows(
    live: &Live,
    range: Range,
    pattern: Option<&Regex>,
) -> Result<(Option<usize>, Vec<Row>), Fault> {
    let dump = known(live, range.to);
    let none = || {
        Fault::not_found(
            "no JNI references have been recorded; a recording brings them every 2 seconds",
        )
    };
    let mut rows: Vec<(Reference, Row)> = live.recorded(|recorded| {
        let profile = recorded.profile().ok_or_else(none)?;
        let table = profile.references.as_ref().ok_or_else(none)?;
        let [global, weak] = recorded.made.each_ref().map(|history| {
            let deltas = history.range(range.from, range.to).into_iter();
            let by_site = deltas.map(|delta| ((delta.class, delta.trace), delta));
            by_site.collect::<FxHashMap<_, Delta>>()
        });
        let rows = table.rows.iter().filter_map(|row| {
            let of = if row.weak { &weak } else { &global };
            let delta = of.get(&(row.class, row.trace))?;
            (delta.allocated.objects > 0 || delta.freed.objects > 0)
                .then(|| (*row, row_of(profile, row, delta)))
        });
        Ok::<_, Fault>(rows.collect())
    })?;
    if let Some((_, dump)) = &dump {
        let name = |id| {
            live.recorded(|recorded| match recorded.profile() {
                Some(profile) => profile.names.get(id).to_owned(),
                None => String::new(),
            })
        };
        let holdings = dump.holdings(&name)?;
        for (reference, row) in rows.iter_mut().filter(|(reference, _)| !reference.weak) {
            let of = holdings.get(&(reference.class, reference.trace));
            row.held = Some(of.map_or(0, |of| of.objects));
            row.retained = Some(of.map_or(0, |of| of.retained));
        }
    }
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    if let Some(pattern) = pattern {
        let frame = |row: &Row| row.stack.iter().any(|frame| pattern.is_match(frame));
        rows.retain(|row| pattern.is_match(&row.name) || frame(row));
    }
    Ok((dump.map(|(number, _)| number), rows))
}

fn row_of(profile: &Profile, row: &Reference, delta: &Delta) -> Row {
    let thread = profile.thread(row.thread);
    Row {
        name: profile.names.get(row.class).to_owned(),
        kind: if row.weak { "weak" } else { "global" },
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
