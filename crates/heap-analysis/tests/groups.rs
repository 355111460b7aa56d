//! What the index knows of groups, against a walk over the dominator tree that visits every
//! object; and the sites and Android heaps of objects against the builder that placed them.

use heap_analysis::sets::members::{counts_of, histogram_of, immediate_dominators};
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::set::members;
use heap_analysis::tables::group::{
    ClassGroups, GroupBy, GroupKey, owner_class, retained_by_group,
};
use heap_analysis::tables::histogram::{Histogram, HistogramOptions, histogram};
use heap_graph::{ClassIdx, Control, Dominator, Heap, LayoutModel, ObjIdx, Options};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use testkit::dump::{ClassSpec, Heap as Builder, IdSize, Root, Type, Value};
use testkit::graph::Graph;
use testkit::shapes::graphs;

/// Classes in three packages and two loaders, the second half of them subclasses of the first.
fn dump(graph: &Graph, traces: u32) -> (Builder, BTreeMap<u64, (u32, &'static str)>) {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let loader = heap.class("app.Loader", object, &[]);
    let loader = heap.instance(loader, &[]);
    heap.root(Root::JniGlobal { reference: 1 }, loader);
    let degree = graph.edges.iter().map(Vec::len).max().unwrap_or(0);
    let names: Vec<String> = (0..degree).map(|k| format!("f{k}")).collect();
    let fields: Vec<(&str, Type)> = names.iter().map(|n| (n.as_str(), Type::Object)).collect();
    let class = |heap: &mut Builder, name: &str, above, fields: &[(&str, Type)], loader| {
        heap.class_spec(ClassSpec {
            name,
            super_class: above,
            loader,
            fields: fields.to_vec(),
            ..ClassSpec::default()
        })
    };
    let base = [
        class(&mut heap, "app.A", object, &fields, 0),
        class(&mut heap, "app.io.B", object, &fields, loader),
        class(&mut heap, "C", object, &fields, loader),
    ];
    let sub = [
        class(&mut heap, "app.io.SubA", base[0], &[], loader),
        class(&mut heap, "SubB", base[1], &[], 0),
        class(&mut heap, "app.SubC", base[2], &[], loader),
    ];
    let classes = [base, sub].concat();
    let mut truth = BTreeMap::new();
    let mut ids = Vec::new();
    for (n, targets) in graph.edges.iter().enumerate() {
        let trace = if traces < 2 { 7 } else { n as u32 % traces };
        heap.allocated_at(trace);
        let values = vec![Value::Object(0); degree];
        let id = if targets.is_empty() && n % 3 == 1 {
            let class = heap.object_array_class();
            heap.object_array(class, &[])
        } else {
            heap.instance(classes[(graph.sizes[n] as usize + n / 2) % 6], &values)
        };
        truth.insert(id, (trace, ""));
        ids.push(id);
    }
    for (n, targets) in graph.edges.iter().enumerate() {
        for (k, to) in targets.iter().enumerate() {
            heap.set_reference(ids[n], k, ids[*to]);
        }
    }
    for root in &graph.roots {
        heap.root(Root::JniGlobal { reference: 2 }, ids[*root]);
    }
    (heap, truth)
}

fn open(bytes: &[u8], layout: LayoutModel, threads: usize) -> (Heap, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("writing the dump");
    let options = Options {
        layout,
        threads,
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump");
    (heap, file)
}

fn layouts() -> impl Strategy<Value = LayoutModel> {
    prop_oneof![
        Just(LayoutModel::Measured),
        Just(LayoutModel::Mat),
        Just(LayoutModel::Plain)
    ]
}

fn whole(by: GroupBy) -> HistogramOptions {
    HistogramOptions {
        by,
        empty: true,
        ..HistogramOptions::default()
    }
}

/// A class and its superclasses.
fn lineage(heap: &Heap, class: ClassIdx) -> impl Iterator<Item = u32> + '_ {
    std::iter::successors(Some(class), |c| heap.class(*c).super_class).map(|c| c.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn groups_in_the_index_retain_what_a_walk_finds(
        graph in graphs(40), layout in layouts(), threads in 1usize..3, traces in 0u32..5
    ) {
        let (builder, truth) = dump(&graph, traces);
        let (heap, _file) = open(&builder.bytes(), layout, threads);
        let sums = heap.group_sums();

        let want = retained_by_group(&heap, heap.classes().len(), |object, out| {
            out.extend(lineage(&heap, heap.class_of(object)));
        });
        let got: Vec<u64> = sums.superclasses.iter().map(|b| b.0).collect();
        prop_assert_eq!(got, want);

        for by in [GroupBy::Package, GroupBy::Loader] {
            let groups = ClassGroups::new(&heap, by);
            let want = retained_by_group(&heap, groups.keys.len(), |object, out| {
                out.push(groups.of[owner_class(&heap, object).0 as usize]);
            });
            let want: BTreeMap<_, _> = groups.keys.iter().map(|k| k.name()).zip(want).collect();
            let answer = histogram(&heap, &whole(by)).expect("an answer");
            let got: BTreeMap<_, _> = answer
                .rows
                .iter()
                .map(|r| (r.key.name(), r.retained.expect("known").0))
                .collect();
            prop_assert_eq!(got, want);
        }

        let trace = |o: ObjIdx| truth.get(&heap.id(o).0).map_or(0, |t| t.0);
        for (object, id) in heap.all_ids() {
            if truth.contains_key(&id.0) {
                prop_assert_eq!(heap.allocation_trace(object).0, trace(object));
            }
        }
        for all in [false, true] {
            let options = HistogramOptions { all, ..whole(GroupBy::Site) };
            let got: Vec<_> = {
                let mut rows = histogram(&heap, &options).expect("an answer").rows;
                rows.sort_by(|a, b| a.key.cmp(&b.key));
                rows.iter()
                    .map(|r| (r.objects, r.shallow.0, r.retained.expect("known").0))
                    .collect()
            };
            let serials: BTreeSet<u32> = heap.all_ids().map(|(o, _)| o)
                .filter(|o| all || heap.is_reachable(*o))
                .map(|o| heap.allocation_trace(o).0).collect();
            let serials: Vec<u32> = serials.into_iter().collect();
            let number = |o: ObjIdx| serials.binary_search(&heap.allocation_trace(o).0);
            let mut want = vec![(0, 0, 0); serials.len()];
            for (object, _) in heap.all_ids() {
                if all || heap.is_reachable(object) {
                    let row = &mut want[number(object).expect("listed")];
                    row.0 += 1;
                    row.1 += heap.shallow(object).0;
                }
            }
            let retained = retained_by_group(&heap, serials.len(), |object, out| {
                out.push(number(object).expect("listed") as u32);
            });
            want.iter_mut().zip(retained).for_each(|(row, bytes)| row.2 = bytes);
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn dominators_are_counted_as_the_definition_says(
        graph in graphs(40), layout in layouts(), skip in any::<bool>()
    ) {
        let (builder, _) = dump(&graph, 1);
        let (heap, _file) = open(&builder.bytes(), layout, 1);
        let skipped = skip.then(|| regex::Regex::new(r"^app\.io").expect("a pattern"));
        let objects: Vec<ObjIdx> = heap.all_ids().map(|(o, _)| o).collect();
        let mut want: BTreeMap<String, (BTreeSet<ObjIdx>, u64, u64)> = BTreeMap::new();
        for object in &objects {
            let mut above = heap.dominator(*object);
            while let Dominator::Object(o) = above {
                let name = &heap.class(heap.class_of(o)).name;
                if !skipped.as_ref().is_some_and(|s| s.is_match(name)) {
                    break;
                }
                above = heap.dominator(o);
            }
            let (name, holder) = match above {
                Dominator::Object(o) => (heap.class(heap.class_of(o)).name.clone(), Some(o)),
                Dominator::Root => ("<roots>".to_owned(), None),
                Dominator::Unreachable => continue,
            };
            let row = want.entry(name).or_default();
            row.0.extend(holder);
            row.1 += 1;
            row.2 += heap.shallow(*object).0;
        }
        let answer = {
            let all = Selection::of(&heap, objects.iter().copied());
            immediate_dominators(&heap, "all".to_owned(), &all, skipped.as_ref())
        };
        let got: BTreeMap<_, _> = answer.rows.iter().map(|r| {
            (r.key.name(), (r.dominators, r.shallow.0, r.dominated, r.dominated_shallow.0))
        }).collect();
        let want: BTreeMap<_, _> = want.into_iter().map(|(name, (holders, count, bytes))| {
            let shallow = holders.iter().map(|o| heap.shallow(*o).0).sum::<u64>();
            (name, (holders.len() as u64, shallow, count, bytes))
        }).collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn a_histogram_of_a_set_is_counted_by_hand(
        graph in graphs(40), layout in layouts(), threads in 1usize..3, traces in 0u32..5,
        chosen in any::<u64>(), below in any::<bool>(),
    ) {
        let (builder, _) = dump(&graph, traces);
        let (heap, _file) = open(&builder.bytes(), layout, threads);
        let ids: Vec<String> = heap.all_ids()
            .filter(|(o, _)| chosen >> (o.0 % 64) & 1 == 1)
            .map(|(_, id)| id.to_string())
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let word = if below { "retained:" } else { "" };
        let spec = format!("{word}object:{}", ids.join(",")).parse().expect("a set");
        let set = members(&heap, &spec, true, &Control::quiet()).expect("members");
        for by in [GroupBy::Class, GroupBy::Superclass, GroupBy::Package, GroupBy::Loader, GroupBy::Site] {
            let classes = ClassGroups::new(&heap, by);
            // The names of an object's groups.
            let groups_of = |o: ObjIdx| -> BTreeSet<String> {
                match by {
                    GroupBy::Site => BTreeSet::from([heap.allocation_trace(o).0.to_string()]),
                    GroupBy::Superclass => lineage(&heap, heap.class_of(o))
                        .map(|c| classes.keys[c as usize].name())
                        .collect(),
                    GroupBy::Class => BTreeSet::from([heap.class(heap.class_of(o)).name.clone()]),
                    _ => {
                        let group = classes.of[owner_class(&heap, o).0 as usize];
                        BTreeSet::from([classes.keys[group as usize].name()])
                    }
                }
            };
            let mut want: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
            for object in set.iter() {
                for group in groups_of(object) {
                    let mut at = object;
                    let covered = loop {
                        match heap.dominator(at) {
                            Dominator::Object(above) => at = above,
                            _ => break false,
                        }
                        if set.contains(at) && groups_of(at).contains(&group) {
                            break true;
                        }
                    };
                    let row = want.entry(group).or_default();
                    row.0 += 1;
                    row.1 += heap.shallow(object).0;
                    row.2 += if covered { 0 } else { heap.retained(object).0 };
                }
            }
            let rows = |answer: Histogram| -> BTreeMap<String, (u64, u64, Option<u64>)> {
                let name = |key: &GroupKey| match key {
                    GroupKey::Site { trace, .. } => trace.to_string(),
                    key => key.name(),
                };
                answer.rows.iter()
                    .map(|r| (name(&r.key), (r.objects, r.shallow.0, r.retained.map(|b| b.0))))
                    .collect()
            };
            let whole: BTreeMap<_, _> = want.iter()
                .map(|(name, (n, shallow, retained))| (name.clone(), (*n, *shallow, Some(*retained))))
                .collect();
            let counts: BTreeMap<_, _> = want.into_iter()
                .map(|(name, (n, shallow, _))| (name, (n, shallow, None)))
                .collect();
            let options = HistogramOptions { by, ..HistogramOptions::default() };
            prop_assert_eq!(rows(histogram_of(&heap, &set, &options)), whole, "{:?}", by);
            prop_assert_eq!(rows(counts_of(&heap, &set, &options)), counts, "{:?}", by);
        }
    }
}

#[test]
fn objects_of_android_heaps_are_distinguished_at_every_switch() {
    let mut builder = Builder::new(IdSize::Four);
    let object = builder.java_lang_object();
    let class = builder.class("Thing", object, &[("next", Type::Object)]);
    let mut truth = Vec::new();
    for n in 0..400u32 {
        if n % 37 == 0 {
            let (number, name) = [(1, "app"), (2, "zygote"), (3, "image")][(n / 37) as usize % 3];
            builder.android_heap(number, name);
            truth.push((name, Vec::new()));
        }
        let id = builder.instance(class, &[Value::Object(0)]);
        truth.last_mut().expect("a heap").1.push(id);
        if n % 5 > 0 {
            builder.root(Root::JniGlobal { reference: 1 }, id);
        }
    }
    let (heap, _file) = open(&builder.bytes(), LayoutModel::Measured, 1);
    let mut want: BTreeMap<String, u64> = BTreeMap::new();
    for (name, ids) in &truth {
        for id in ids {
            let found = heap.find(hprof::ObjectId(*id)).expect("in the dump");
            assert_eq!(heap.heap_name(found), Some(*name), "object {id:#x}");
            *want.entry((*name).to_owned()).or_default() += u64::from(heap.is_reachable(found));
        }
    }
    let rows = histogram(&heap, &whole(GroupBy::Heap))
        .expect("an answer")
        .rows;
    for (name, objects) in want {
        let row = rows.iter().find(|r| r.key.name() == name);
        assert_eq!(row.map(|r| r.objects), Some(objects), "{name}");
        assert!(row.and_then(|r| r.retained).is_some_and(|b| b.0 > 0));
    }
}

#[test]
fn a_made_up_hierarchy_of_classes_takes_no_more_than_its_classes() {
    const DEEP: usize = 4000;
    let mut builder = Builder::new(IdSize::Eight);
    let mut above = builder.java_lang_object();
    for n in 0..DEEP {
        above = builder.class(&format!("C{n}"), above, &[]);
    }
    let object = builder.instance(above, &[]);
    builder.root(Root::JniGlobal { reference: 1 }, object);
    let (heap, _file) = open(&builder.bytes(), LayoutModel::Measured, 1);
    let object = heap.find(hprof::ObjectId(object)).expect("in the dump");
    let sums = &heap.group_sums().superclasses;
    let retained: Vec<u64> = lineage(&heap, heap.class_of(object))
        .map(|class| sums[class as usize].0)
        .collect();
    assert_eq!(retained.len(), DEEP + 1);
    let size = heap.shallow(object).0;
    assert!(size > 0 && retained[..1024].iter().all(|bytes| *bytes == size));
    assert!(retained[1024..].iter().all(|bytes| *bytes == 0));
}
