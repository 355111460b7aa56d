//! Sets of objects against their definitions: over random graphs, and over the demo's dump, where
//! the set of a histogram's row must have what the row says.

use heap_analysis::collections::contents::contents;
use heap_analysis::sets::members::{self, PageOptions};
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::set::{Look, members as members_of, some as some_of};
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::group::{GroupBy, GroupKey};
use heap_analysis::tables::histogram::{HistogramOptions, SortBy, histogram};
use heap_graph::{Control, Dominator, Heap, LayoutModel, ObjIdx, Options};
use hprof::ObjectId;
use proptest::prelude::*;
use std::collections::BTreeSet;
use testkit::dump::{FrameSpec, Heap as Builder, IdSize, Root, Type, Value};
use testkit::shapes::{Encoding, dump_of, graphs};

fn open(bytes: &[u8], layout: LayoutModel) -> Heap {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("writing the dump");
    let options = Options {
        layout,
        no_index: true,
        threads: 1,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump");
    // Objects are read from the mapping, which outlives the name.
    heap.object(ObjIdx(0)).expect("an object");
    heap
}

fn demo() -> Heap {
    let path = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    open(&testkit::corpus::unpacked(&path), LayoutModel::Measured)
}

fn set(heap: &Heap, text: &str) -> BTreeSet<u64> {
    let spec: SetSpec = text.parse().expect("a set");
    let found = members_of(heap, &spec, false, &Control::quiet()).expect("members");
    let list: Vec<u64> = found.iter().map(|o| o.0).collect();
    assert!(list.is_sorted_by(|a, b| a < b), "{text} is in order");
    assert_eq!(list.len() as u64, found.len());
    list.into_iter().collect()
}

fn id(heap: &Heap, object: u64) -> ObjectId {
    heap.id(ObjIdx(object))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn neighbours_and_dominators_are_those_of_the_graph(graph in graphs(40)) {
        let dump = dump_of(&graph, Encoding::Mixed, IdSize::Eight);
        let heap = open(&dump.heap.bytes(), LayoutModel::Plain);
        let reachable: Vec<u64> = (0..heap.len()).filter(|o| heap.is_reachable(ObjIdx(*o))).collect();
        for object in (0..heap.len()).step_by(3) {
            let one = format!("object:{}", id(&heap, object));
            let out: BTreeSet<u64> = heap
                .outbound(ObjIdx(object))
                .unwrap()
                .into_iter()
                .filter(|r| r.via != heap_graph::Via::Class)
                .map(|r| r.target.0)
                .collect();
            prop_assert_eq!(set(&heap, &format!("out:{one}")), out);
            let holders: BTreeSet<u64> = reachable
                .iter()
                .copied()
                .filter(|o| {
                    let refs = heap.outbound(ObjIdx(*o)).unwrap();
                    refs.iter().any(|r| r.target.0 == object && r.via != heap_graph::Via::Class)
                })
                .collect();
            prop_assert_eq!(set(&heap, &format!("in:{one}")), holders);
            // Below an object is whatever has it on its way up the dominators.
            let below = |o: u64| {
                let mut at = ObjIdx(o);
                loop {
                    if at.0 == object {
                        return true;
                    }
                    match heap.dominator(at) {
                        Dominator::Object(above) => at = above,
                        _ => return false,
                    }
                }
            };
            let retained: BTreeSet<u64> = (0..heap.len()).filter(|o| below(*o)).collect();
            prop_assert_eq!(set(&heap, &format!("retained:{one}")), retained);
            let children: BTreeSet<u64> = (0..heap.len())
                .filter(|o| heap.dominator(ObjIdx(*o)) == Dominator::Object(ObjIdx(object)))
                .collect();
            prop_assert_eq!(set(&heap, &format!("dominated:{one}")), children);
        }
    }
}

#[test]
fn the_set_of_a_row_has_what_the_row_says() {
    let heap = demo();
    for by in [
        GroupBy::Class,
        GroupBy::Superclass,
        GroupBy::Package,
        GroupBy::Loader,
    ] {
        let options = HistogramOptions {
            by,
            ..HistogramOptions::default()
        };
        let answer = histogram(&heap, &options).unwrap();
        assert!(answer.rows.len() > 3);
        for row in answer
            .rows
            .iter()
            .step_by(if by == GroupBy::Superclass { 9 } else { 1 })
        {
            let spec = match &row.key {
                GroupKey::Class { class_id, class } if class_id.0.is_null() => {
                    format!("class:{class}")
                }
                GroupKey::Class { class_id, .. } if by == GroupBy::Superclass => {
                    format!("sub:{class_id}")
                }
                GroupKey::Class { class_id, .. } => format!("class:{class_id}"),
                GroupKey::Package { package } => format!("package:{package}"),
                GroupKey::Loader { object, .. } => format!("loader:{object}"),
                other => panic!("{other:?}"),
            };
            let spec: SetSpec = spec.parse().unwrap();
            let objects = members_of(&heap, &spec, false, &Control::quiet()).unwrap();
            let total = members::total(&heap, &objects);
            assert_eq!(
                (total.objects, total.shallow),
                (row.objects, row.shallow),
                "{spec}"
            );
        }
    }
}

#[test]
fn a_histogram_of_everything_is_the_histogram() {
    let heap = demo();
    let objects = members_of(&heap, &SetSpec::All, false, &Control::quiet()).unwrap();
    for by in [GroupBy::Class, GroupBy::Package, GroupBy::Loader] {
        let options = HistogramOptions {
            by,
            sort: SortBy::Name,
            ..HistogramOptions::default()
        };
        let of_set = members::histogram_of(&heap, &objects, &options);
        let whole = histogram(&heap, &options).unwrap();
        let rows = |h: &heap_analysis::tables::histogram::Histogram| -> Vec<_> {
            h.rows
                .iter()
                .map(|r| (r.key.clone(), r.objects, r.shallow))
                .collect()
        };
        assert_eq!(rows(&of_set), rows(&whole), "{by:?}");
        for (a, b) in of_set.rows.iter().zip(&whole.rows) {
            // A class's row counts its class object as a member, a set has only what is in it.
            if by != GroupBy::Class {
                assert_eq!(a.retained, b.retained, "{:?}", a.key);
            }
        }
    }
}

#[test]
fn what_an_object_retains_is_the_size_of_its_retained_set() {
    let heap = demo();
    for object in heap.dominated(None).take(50) {
        let spec: SetSpec = format!("retained:object:{}", heap.id(object))
            .parse()
            .unwrap();
        let objects = members_of(&heap, &spec, false, &Control::quiet()).unwrap();
        assert_eq!(
            members::total(&heap, &objects).shallow,
            heap.retained(object)
        );
    }
}

#[test]
fn members_of_both_and_their_dominators_add_up() {
    let heap = demo();
    let strings = set(&heap, "class:java.lang.String");
    let held = set(&heap, "retained:class:java.lang.Thread");
    let both = set(
        &heap,
        "class:java.lang.String and retained:class:java.lang.Thread",
    );
    assert_eq!(both, strings.intersection(&held).copied().collect());
    let objects = members_of(
        &heap,
        &"class:java.lang.String".parse().unwrap(),
        false,
        &Control::quiet(),
    )
    .unwrap();
    let answer = members::immediate_dominators(&heap, "s".to_owned(), &objects, None);
    let sum: u64 = answer.rows.iter().map(|r| r.dominated).sum();
    assert_eq!(sum, objects.len());
    let skip = regex::Regex::new("^java\\.").unwrap();
    let answer = members::immediate_dominators(&heap, "s".to_owned(), &objects, Some(&skip));
    assert_eq!(answer.rows.iter().map(|r| r.dominated).sum::<u64>(), sum);
    assert!(
        answer
            .rows
            .iter()
            .all(|r| !r.key.name().starts_with("java.")),
        "{answer:?}"
    );
}

#[test]
fn collections_hold_as_many_things_as_they_say() {
    let heap = demo();
    let mut seen = BTreeSet::new();
    for object in (0..heap.len()).map(ObjIdx) {
        let class = heap.class(heap.class_of(object)).name.clone();
        let field = match class.as_str() {
            "java.util.ArrayList"
            | "java.util.HashMap"
            | "java.util.LinkedHashMap"
            | "java.util.TreeMap"
            | "java.util.LinkedList" => "size",
            "java.util.Hashtable" => "count",
            "java.util.Vector" => "elementCount",
            _ => continue,
        };
        let size = heap_analysis::objects::fields::field_int(&heap, object, field).unwrap();
        let found = contents(&heap, object, 1_000_000, &heap_graph::Control::quiet())
            .expect("what it holds");
        let nulls =
            heap_analysis::objects::fields::field_ref(&heap, object, "elementData").is_some();
        // Nulls in a list are left out.
        let fits = found.rows.len() as i64 == size || nulls && (found.rows.len() as i64) < size;
        assert!(
            fits,
            "{class} {}: {} of {size}",
            heap.id(object),
            found.rows.len()
        );
        if size > 0 {
            seen.insert(class);
        }
    }
    assert!(
        seen.contains("java.util.ArrayList") && seen.contains("java.util.HashMap"),
        "{seen:?}"
    );
}

#[test]
fn a_small_set_and_a_large_one_count_what_they_retain_alike() {
    let heap = demo();
    // Few objects are climbed from, many are met on a walk; what both hold is the same.
    let sessions = members_of(
        &heap,
        &"class:shop.Session".parse().unwrap(),
        false,
        &Control::quiet(),
    )
    .unwrap();
    let few = Selection::of(&heap, sessions.iter().take(100));
    for objects in [&few, &sessions] {
        let answer = members::histogram_of(&heap, objects, &HistogramOptions::default());
        assert_eq!(answer.rows.len(), 1);
        let bytes = answer.rows[0].retained.unwrap().0;
        let want: u64 = objects.iter().map(|o| heap.retained(o).0).sum();
        assert_eq!(bytes, want);
    }
}

#[test]
fn a_chain_and_a_star_are_retained_whole_by_several_workers() {
    let mut builder = Builder::new(IdSize::Eight);
    let object = builder.java_lang_object();
    let node = builder.class("app.Node", object, &[("next", Type::Object)]);
    let array = builder.object_array_class();
    // A star whose rays begin chains of ten; one of them continues with a chain of five thousand.
    let mut tails = Vec::new();
    let mut next = 0;
    for _ in 0..5000 {
        next = builder.instance(node, &[Value::Object(next)]);
    }
    for _ in 0..3000 {
        for _ in 0..10 {
            next = builder.instance(node, &[Value::Object(next)]);
        }
        tails.push(std::mem::take(&mut next));
    }
    let star = builder.object_array(array, &tails);
    builder.root(Root::VmInternal, star);
    // Else the star keeps the class alive, too.
    builder.root(Root::StickyClass, node);
    builder.root(Root::StickyClass, array);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), builder.bytes()).unwrap();
    let mut sums = Vec::new();
    for threads in [1, 3] {
        let options = Options {
            no_index: true,
            threads,
            ..Options::default()
        };
        let heap = Heap::open(file.path(), &options, &Control::quiet()).unwrap();
        let all = format!("retained:object:0x{star:x}");
        let set = members_of(&heap, &all.parse().unwrap(), false, &Control::quiet()).unwrap();
        assert_eq!(set.len(), 35_001);
        assert_eq!(
            members::total(&heap, &set).shallow,
            heap.retained(heap.find(ObjectId(star)).unwrap())
        );
        // The order is that of a plain sort, however few or many are wanted.
        let mut sorted: Vec<ObjIdx> = set.iter().collect();
        sorted.sort_by_key(|o| (std::cmp::Reverse(heap.retained(*o)), *o));
        for count in [0, 1, 100, 20_000, 100_000] {
            let first = members::first(&heap, &set, SortBy::Retained, count);
            assert_eq!(first, sorted[..count.min(sorted.len())], "{count}");
        }
        let page = PageOptions {
            sort: SortBy::Name,
            offset: 34_999,
            limit: 10,
        };
        let total = members::total(&heap, &set);
        let page = members::page(&heap, all, &set, total, &page);
        let names: Vec<&str> = page.rows.iter().map(|r| r.object.class.as_str()).collect();
        assert_eq!(names, ["app.Node", "java.lang.Object[]"]);
        sums.push(members::histogram_of(
            &heap,
            &set,
            &HistogramOptions::default(),
        ));
    }
    assert_eq!(sums[0], sums[1]);
    let nodes = sums[0].rows.iter().find(|r| r.objects == 35_000).unwrap();
    // No node is above all others, so what the rays retain adds up to the nodes themselves.
    assert_eq!(nodes.retained, Some(nodes.shallow));
}

#[test]
fn virtual_threads_of_one_stack_are_a_set() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let class = heap.class("java.lang.VirtualThread", object, &[("next", Type::Object)]);
    let work = heap.class("app.Work", object, &[]);
    let frame = |method| FrameSpec {
        class: work,
        method,
        source: "Work.java",
        line: 3,
    };
    let (wait, _) = heap.thread("waits", &[frame("wait")]);
    let (read, platform) = heap.thread("reads", &[frame("read"), frame("run")]);
    let mut groups = [Vec::new(), Vec::new()];
    for n in 0..30u32 {
        let thread = heap.instance(class, &[Value::Object(0)]);
        let which = usize::from(n % 3 == 0);
        groups[which].push(thread);
        let trace = [wait, read][which];
        heap.root(
            Root::ThreadObject {
                thread: 100 + n,
                trace,
            },
            thread,
        );
    }
    let heap = crate::program::open(&heap);
    for group in &groups {
        let spec: SetSpec = format!("stack:{:#x}", group[7]).parse().expect("a set");
        assert_eq!(spec.to_string().parse::<SetSpec>().expect("a set"), spec);
        let members = members_of(&heap, &spec, false, &Control::quiet()).expect("members");
        let ids: Vec<u64> = members.iter().map(|o| heap.id(o).0).collect();
        assert_eq!(&ids, group);
    }
    let none: SetSpec = format!("stack:{platform:#x}").parse().expect("a set");
    assert!(
        members_of(&heap, &none, false, &Control::quiet()).is_err(),
        "no virtual thread"
    );
    let answer = heap_analysis::tables::threads::threads(&heap, &Default::default());
    let sizes: Vec<u64> = answer.virtual_groups.iter().map(|g| g.threads).collect();
    assert_eq!(sizes, [20, 10]);
}

#[test]
fn a_set_whose_name_is_not_there_is_an_error() {
    let heap = demo();
    let nowhere = heap.id(ObjIdx(heap.len() - 1)).0 + 8;
    let object = format!("{nowhere:#x}");
    for (set, similar) in [
        ("class:Session", "; did you mean class:shop.Session?"),
        (
            "sub:java.util.HasMap",
            "; did you mean sub:java.util.HashMap?",
        ),
        ("class:0x1", ""),
        ("package:java.utl", "; did you mean package:java.util?"),
        ("heap:app", ""),
        ("site:4711", ""),
        (&format!("loader:{object}"), ""),
        (&format!("object:{object}"), ""),
        (&format!("stack:{object}"), ""),
    ] {
        for whole in [set.to_owned(), format!("retained:(all and in:{set})")] {
            let spec: SetSpec = whole.parse().expect("a set");
            let error = members_of(&heap, &spec, true, &Control::quiet())
                .expect_err(set)
                .to_string();
            assert_eq!(error, format!("{set} is not in this dump{similar}"));
        }
    }
    // What is there may have no objects that count.
    let site = format!("site:{}", heap.allocation_trace(ObjIdx(0)).0);
    for set in [
        "heap:<java>",
        &site,
        "loader:0x0",
        "package:",
        "all and unreachable",
    ] {
        let spec: SetSpec = set.parse().expect("a set");
        assert!(
            members_of(&heap, &spec, false, &Control::quiet()).is_ok(),
            "{set}"
        );
    }
}

#[test]
fn what_is_found_of_a_set_in_part_is_in_the_whole_of_it() {
    let heap = demo();
    let look = Look {
        windows: 16,
        each: heap.len() / 64,
        ask: 20,
    };
    let mut found = 0;
    for text in [
        "all",
        "unreachable",
        "roots",
        "class:java.lang.String",
        "sub:java.util.AbstractMap",
        "package:java.util",
        "in:class:java.lang.String",
        "out:class:java.util.HashMap",
        "dominated:class:java.util.HashMap$Node",
        "dominators:class:java.lang.String",
        "retained:class:java.util.HashMap$Node",
        "in:class:java.lang.String and package:java.util",
    ] {
        let spec: SetSpec = text.parse().expect("a set");
        let some = some_of(&heap, &spec, false, &look, &Control::quiet()).expect("found");
        let some: BTreeSet<u64> = some.expect("in part").iter().map(|o| o.0).collect();
        assert!(some.is_subset(&set(&heap, text)), "{text}");
        found += usize::from(!some.is_empty());
    }
    assert!(found >= 8, "{found} of the sets had members in the windows");
    let small = some_of(
        &heap,
        &SetSpec::All,
        false,
        &Look::default(),
        &Control::quiet(),
    );
    assert!(
        small.expect("a set").is_none(),
        "a small heap is not asked in part"
    );
}

/// With strong references only, the referent of a weak reference is unreachable: no set has it unless it is requested.
#[test]
fn what_a_weak_reference_holds_is_in_no_set_of_reachable_objects() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let reference = heap.class(
        "java.lang.ref.Reference",
        object,
        &[("referent", Type::Object)],
    );
    let weak = heap.class("java.lang.ref.WeakReference", reference, &[]);
    let referent = heap.instance(object, &[]);
    let holder = heap.instance(weak, &[Value::Object(referent)]);
    heap.root(Root::JniGlobal { reference: 1 }, holder);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), heap.bytes()).expect("writing the dump");
    let options = Options {
        strength: heap_graph::Strength::Strong,
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump");
    let spec: SetSpec = "out:java.lang.ref.WeakReference".parse().expect("a set");
    for (all, want) in [(false, 0), (true, 1)] {
        assert_eq!(
            members_of(&heap, &spec, all, &Control::quiet())
                .expect("members")
                .len(),
            want
        );
    }
}
