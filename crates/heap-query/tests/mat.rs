//! Heaps as Eclipse MAT's own parser and snapshot see them: objects, sizes, dominators, references, paths, classes, and the rows of
//! the queries of MAT's help. The answers were recorded by `bench/mat.py`.

use crate::common::{corpus_heap_of, rows};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_graph::{ClassIdx, Dominator, Heap, LayoutModel, ObjIdx, RefStrength, Strength, Via};
use heap_query::{Cell, Lang, Limits, Session};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

/// Rows of one aspect of a heap, in any order. The loader that MAT makes up for the classes of the boot loader is left out
/// on both sides, and so are references of an object to itself.
fn aspect(heap: &Arc<Heap>, name: &str) -> Vec<String> {
    let here = |object: ObjIdx| format!("0x{:x}", heap.id(object).0);
    let reachable = || {
        heap.all_ids()
            .map(|(o, _)| o)
            .filter(|o| heap.is_reachable(*o))
    };
    let each = |say: &dyn Fn(ObjIdx) -> String| {
        let line = |object| format!("{} {}", here(object), say(object));
        reachable().map(line).collect::<Vec<_>>()
    };
    let others = |own: ObjIdx, objects: Vec<ObjIdx>| {
        let met = |o: &ObjIdx| *o != own && heap.is_reachable(*o);
        let met: BTreeSet<String> = objects.into_iter().filter(met).map(here).collect();
        met.into_iter().collect::<Vec<_>>().join(",")
    };
    let named = heap
        .roots()
        .iter()
        .filter(|root| !heap.is_held_by_thread(root));
    let roots: BTreeSet<ObjIdx> = named.map(|root| root.object).collect();
    match name {
        "objects" => each(&|o| heap.class(heap.class_of(o)).name.clone()),
        "sizes" => each(&|o| format!("{} {}", heap.shallow(o).0, heap.retained(o).0)),
        "dominators" => each(&|o| match heap.dominator(o) {
            Dominator::Object(above) => here(above),
            _ => "none".to_owned(),
        }),
        "outbound" => each(&|o| others(o, strong(heap, o))),
        "inbound" => each(&|o| {
            // All objects refer to their class, which is not stored.
            let instances = heap
                .class_by_object(o)
                .into_iter()
                .flat_map(|c| heap.objects_of(c));
            let holders = heap.inbound(o).expect("referrers").into_iter();
            let holders = holders.filter(|holder| strong(heap, *holder).contains(&o));
            others(o, instances.chain(holders).collect())
        }),
        "roots" => roots.iter().map(|o| here(*o)).collect(),
        "paths" => {
            let (all, held) = (
                distances(heap, &roots, true),
                distances(heap, &roots, false),
            );
            let some = reachable().enumerate().filter(|(n, _)| n % 101 == 100);
            some.map(|(_, object)| {
                let found = found_distance(heap, &roots, object);
                // Instances as holders of their class may make it shorter than without.
                let most = held.get(&object).copied().unwrap_or(usize::MAX);
                let found = found.unwrap_or_else(|| panic!("{} has a path", here(object)));
                assert!((all[&object]..=most).contains(&found), "{}", here(object));
                format!("{} {}", here(object), all[&object])
            })
            .collect()
        }
        _ => of_classes(heap, name),
    }
}

/// What an object refers to, referents left out.
fn strong(heap: &Heap, object: ObjIdx) -> Vec<ObjIdx> {
    let found = heap.outbound(object).expect("references").into_iter();
    found
        .filter(|r| r.strength == RefStrength::Strong)
        .map(|r| r.target)
        .collect()
}

/// Objects on a shortest path to each object, by going down from the roots; with the references of
/// objects to their class, as MAT does, or without.
fn distances(heap: &Heap, roots: &BTreeSet<ObjIdx>, classes: bool) -> BTreeMap<ObjIdx, usize> {
    let mut found: BTreeMap<ObjIdx, usize> = roots.iter().map(|o| (*o, 1)).collect();
    let mut queue: VecDeque<ObjIdx> = roots.iter().copied().collect();
    while let Some(object) = queue.pop_front() {
        let next = found[&object] + 1;
        for reference in heap.outbound(object).expect("references") {
            let counts = reference.strength == RefStrength::Strong
                && (classes || reference.via != Via::Class);
            if counts && !found.contains_key(&reference.target) {
                found.insert(reference.target, next);
                queue.push_back(reference.target);
            }
        }
    }
    found
}

/// Objects on the path that is found upwards. What a thread holds is one step below the thread.
fn found_distance(heap: &Heap, roots: &BTreeSet<ObjIdx>, object: ObjIdx) -> Option<usize> {
    let options = PathOptions {
        count: 10,
        exclude: Exclusions::ALL,
    };
    let found = to_roots(heap, object, &options, &heap_graph::Control::quiet()).expect("paths");
    let lengths = found.paths.iter().map(|path| {
        let first = path
            .steps
            .first()
            .and_then(|s| heap.find(s.object.object.0));
        path.steps.len() + usize::from(first.is_some_and(|o| !roots.contains(&o)))
    });
    lengths.min()
}

/// Rows of one aspect of the classes that MAT keeps: those that are reached.
fn of_classes(heap: &Arc<Heap>, name: &str) -> Vec<String> {
    let session = Session::open(Arc::clone(heap));
    let mut lines = Vec::new();
    for class in (0..heap.classes().len()).map(|n| ClassIdx(n as u32)) {
        let info = heap.class(class);
        let object = heap.class_object(class);
        if info.reachable_objects == 0 && !object.is_some_and(|o| heap.is_reachable(o)) {
            continue;
        }
        let here = format!("0x{:x}", info.id.0);
        match name {
            "classes" => {
                let above = info
                    .super_class
                    .map(|c| format!("0x{:x}", heap.class(c).id.0));
                let above = above.as_deref().unwrap_or("none");
                lines.push(format!(
                    "{here} {} {} {above} 0x{:x}",
                    info.name, info.reachable_objects, info.loader.0
                ));
            }
            "fields" => {
                lines.extend(info.fields.iter().map(|f| format!("{here} {}", f.name)));
                lines.extend(
                    info.statics
                        .iter()
                        .map(|f| format!("{here} static {}", f.name)),
                );
            }
            _ if info.reachable_objects == 0 => {}
            "sizes of classes" => {
                lines.push(format!(
                    "{here} {} {}",
                    info.reachable_shallow.0,
                    least(heap, class)
                ));
            }
            "retained sets of some classes" if (info.id.0 / 8).is_multiple_of(16) => {
                let set = rows(&session, &format!("SELECT AS RETAINED SET * FROM {here}"));
                lines.push(format!("{here} {}", set.len()));
            }
            "retained sets of some classes" => {}
            other => panic!("{other}"),
        }
    }
    lines
}

/// What the objects of a class retain at least: the members that no other member dominates.
fn least(heap: &Heap, class: ClassIdx) -> u64 {
    let members: BTreeSet<ObjIdx> = heap
        .objects_of(class)
        .filter(|o| heap.is_reachable(*o))
        .collect();
    let top = |object: &&ObjIdx| {
        let mut at = **object;
        while let Dominator::Object(above) = heap.dominator(at) {
            if members.contains(&above) {
                return false;
            }
            at = above;
        }
        true
    };
    members
        .iter()
        .filter(top)
        .map(|o| heap.retained(*o).0)
        .sum()
}

/// Each answer that was recorded, with the heap of its dump.
fn compare(what: &str, ask: impl Fn(&Arc<Heap>, &str) -> Vec<String>) {
    let recorded = include_str!("data/mat_answers.txt");
    let mut wrong = Vec::new();
    for part in recorded.split("# dump: ").skip(1) {
        let mut lines = part.lines();
        let Some((dump, of)) = lines.next().and_then(|line| line.split_once(' ')) else {
            panic!("{part}");
        };
        if of != what {
            continue;
        }
        let Some(heap) = corpus_heap_of("mat", dump, LayoutModel::Mat, Strength::Strong) else {
            return;
        };
        for line in lines {
            let parts: Vec<&str> = line.splitn(3, '\t').collect();
            let [_, _, question] = parts[..] else {
                panic!("{line}");
            };
            let mut found = ask(&heap, question);
            found.sort();
            let says = format!("{}\t{}\t{question}", found.len(), fnv1a(&found));
            if let Some(folder) = std::env::var_os("TENURE_ROWS") {
                write_rows(folder.as_ref(), dump, what, question, &found);
            }
            if says != line {
                let sample = &found[..found.len().min(5)];
                wrong.push(format!("{dump}: {line}\nbut {says} {sample:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As `bench/mat.py` writes rows, to see which ones differ.
fn write_rows(folder: &Path, dump: &str, what: &str, question: &str, rows: &[String]) {
    let folder = folder.join(dump).join(what);
    let words = question.split(|c: char| !c.is_ascii_alphanumeric());
    let mut name: String = words
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join("_");
    name.truncate(80);
    std::fs::create_dir_all(&folder).expect("a folder for rows");
    std::fs::write(folder.join(name), rows.join("\n") + "\n").expect("rows");
}

/// The heaps as MAT sees them: every object with its class, sizes, dominator and references, the
/// roots, the lengths of paths, the classes with what they retain.
#[test]
fn mats_own_snapshot_has_the_same_heap() {
    compare("aspects", aspect);
}

/// The queries of MAT's help, and what MAT's snapshot answers to the same questions.
#[test]
fn mats_own_snapshot_has_the_same_rows_for_the_queries_of_its_help() {
    compare("queries", |heap, query| {
        let session = Session::open(Arc::clone(heap));
        match session.run(query, Some(Lang::Oql), &Limits::default()) {
            Ok(table) => table.rows.iter().map(|row| shown(query, row)).collect(),
            Err(error) => panic!("{query}: {error}"),
        }
    });
}

/// A row as text. Lists of objects come with class and sizes, which other rows have.
fn shown(query: &str, row: &[Cell]) -> String {
    let whole = [
        "SELECT * ",
        "SELECT DISTINCT ",
        "SELECT OBJECTS ",
        "SELECT AS ",
        "select * ",
    ];
    let row = if whole.iter().any(|w| query.starts_with(w)) {
        &row[..1]
    } else {
        row
    };
    let cell = |cell: &Cell| match cell {
        Cell::Null => "null".to_owned(),
        other => ascii(&other.to_string()),
    };
    row.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

/// MAT writes all but the characters of ASCII as their numbers; Tenure leaves them readable.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ 32..127) => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

/// The digest of rows in order, a line each.
fn fnv1a(rows: &[String]) -> String {
    let bytes = rows.iter().flat_map(|row| row.bytes().chain([b'\n']));
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, step))
}
