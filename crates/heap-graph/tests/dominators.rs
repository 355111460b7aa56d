//! Dominators and retained sizes against the definition, on random graphs turned into dumps by a
//! builder that shares no code with the reader; and against the corpus' independent answers.

use heap_graph::{Control, Dominator, Heap, LayoutModel, Options, Tuning};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;
use testkit::dump::IdSize;
use testkit::shapes::{Encoding, dump_of, graphs};

fn plain(wide: bool) -> Options {
    Options {
        layout: LayoutModel::Plain,
        no_index: true,
        threads: 2,
        tuning: Tuning {
            wide,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn open(path: &Path, options: &Options) -> Heap {
    Heap::open(path, options, &Control::quiet()).expect("the dump opens")
}

/// `object-id immediate-dominator retained`, hex hex decimal, sorted by object id.
pub(crate) fn lines(heap: &Heap) -> String {
    let mut out = String::new();
    for (object, id) in heap.all_ids() {
        let dominator = match heap.dominator(object) {
            Dominator::Root => 0,
            Dominator::Object(o) => heap.id(o).0,
            Dominator::Unreachable => continue,
        };
        writeln!(out, "{:x} {dominator:x} {}", id.0, heap.retained(object).0).unwrap();
    }
    out
}

fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("the dump is written");
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn dominators_and_retained_sizes_equal_the_definition(
        graph in graphs(40),
        encoding in prop_oneof![Just(Encoding::Fields), Just(Encoding::Arrays), Just(Encoding::Mixed)],
        wide_ids in any::<bool>(),
        wide_numbers in any::<bool>(),
        wide_sizes in any::<bool>(),
    ) {
        let size = if wide_ids { IdSize::Eight } else { IdSize::Four };
        let dump = dump_of(&graph, encoding, size);
        let file = written(&dump.heap.bytes());
        let mut options = plain(wide_numbers);
        options.tuning.wide_sizes = wide_sizes;
        let heap = open(file.path(), &options);
        prop_assert_eq!(lines(&heap), dump.heap.plain_graph().dominator_lines());
    }

    #[test]
    fn a_class_retains_what_would_die_with_all_its_objects_at_least(graph in graphs(30)) {
        // The top-ancestor rule: members that no other member dominates, summed.
        let dump = dump_of(&graph, Encoding::Fields, IdSize::Eight);
        let file = written(&dump.heap.bytes());
        let heap = open(file.path(), &plain(false));
        for (index, class) in heap.classes().iter().enumerate() {
            let class_index = heap_graph::ClassIdx(index as u32);
            let own = heap.class_object(class_index);
            let is_member = |o| heap.class_of(o) == class_index && heap.class_by_object(o).is_none()
                || Some(o) == own
                || class.name == "java.lang.Class" && heap.class_by_object(o).is_some();
            let mut sum = 0;
            for (object, _) in heap.all_ids().filter(|(o, _)| is_member(*o) && heap.is_reachable(*o)) {
                let mut above = heap.dominator(object);
                let nested = loop {
                    match above {
                        Dominator::Object(o) if is_member(o) => break true,
                        Dominator::Object(o) => above = heap.dominator(o),
                        _ => break false,
                    }
                };
                sum += if nested { 0 } else { heap.retained(object).0 };
            }
            prop_assert_eq!(class.retained.0, sum, "{}", class.name);
        }
    }

    #[test]
    fn dominated_lists_and_referrers_invert_dominators_and_references(graph in graphs(40)) {
        let dump = dump_of(&graph, Encoding::Mixed, IdSize::Eight);
        let file = written(&dump.heap.bytes());
        let heap = open(file.path(), &plain(false));
        for (object, _) in heap.all_ids() {
            let below: Vec<_> = heap.dominated(Some(object)).collect();
            let want: Vec<_> = heap
                .all_ids()
                .map(|(o, _)| o)
                .filter(|o| heap.dominator(*o) == Dominator::Object(object))
                .collect();
            prop_assert_eq!(&below, &want);
            prop_assert_eq!(heap.dominated_count(Some(object)), want.len() as u64);
            let mut referrers = Vec::new();
            for (source, _) in heap.all_ids() {
                let refers = heap.outbound(source).expect("readable").iter()
                    .any(|r| r.target == object && r.via != heap_graph::Via::Class);
                if refers {
                    referrers.push(source);
                }
            }
            prop_assert_eq!(heap.inbound(object).expect("readable"), referrers);
        }
        let top: Vec<u64> = heap.dominated(None).map(|o| heap.retained(o).0).collect();
        prop_assert!(top.is_sorted_by(|a, b| a >= b));
    }
}

#[test]
fn every_dump_of_the_corpus_has_the_expected_dominators() {
    let Some(dumps) = testkit::corpus::corpus() else {
        return testkit::skip(
            "dominators of the corpus",
            testkit::Need::Shared,
            "no ../shared/corpus",
        );
    };
    let mut checked = 0;
    for dump in dumps {
        let Some(expected) = dump.expected.as_ref().and_then(|e| e.dominators.as_ref()) else {
            continue;
        };
        let heap = match Heap::open(&dump.path, &plain(false), &Control::quiet()) {
            Ok(heap) => heap,
            // Agent profiles without a heap, and the dump that was cut before its heap.
            Err(_) if expected.objects == 0 => continue,
            Err(error) => panic!("{}: {error}", dump.name),
        };
        assert_eq!(
            sha256(lines(&heap).as_bytes()),
            expected.sha256_of_all,
            "{}",
            dump.name
        );
        checked += 1;
    }
    assert!(checked > 20, "only {checked} dumps were there");
}

#[test]
fn a_list_of_a_million_and_a_star_of_a_million_cost_the_same_per_object() {
    use testkit::dump::{Heap as Builder, Root, Type, Value};
    let n = 1_000_000u64;
    for star in [false, true] {
        let mut heap = Builder::new(IdSize::Eight);
        let object = heap.java_lang_object();
        let class = heap.class("Link", object, &[("next", Type::Object)]);
        let links: Vec<u64> = (0..n)
            .map(|_| heap.instance(class, &[Value::Object(0)]))
            .collect();
        if star {
            let array_class = heap.object_array_class();
            let hub = heap.object_array(array_class, &links);
            heap.root(Root::JniGlobal { reference: 1 }, hub);
        } else {
            for pair in links.windows(2) {
                heap.set_reference(pair[0], 0, pair[1]);
            }
            heap.root(Root::JniGlobal { reference: 1 }, links[0]);
        }
        let file = written(&heap.bytes());
        let opened = open(file.path(), &plain(false));
        let top = opened
            .dominated(None)
            .next()
            .expect("something is reachable");
        let want = if star { n * 8 + n * 8 } else { n * 8 };
        assert_eq!(opened.retained(top).0, want);
    }
}

/// The numbers of so few objects have 32 bits, but the sums of their sizes do not.
#[test]
fn sums_of_sizes_may_be_wider_than_the_numbers_of_objects() {
    use testkit::dump::{Dump, Root, Segment, Type, Version};
    let (mut dump, mut segment) = (
        Dump::new(Version::V103, IdSize::Eight),
        Segment::new(IdSize::Eight),
    );
    let arrays = [0x2000u64, 0x3000, 0x4000];
    segment.object_array(0x1000, 0, 0, &[0x1100, 0x2000]);
    segment.object_array(0x1100, 0, 0, &[0x3000, 0x4000]);
    for id in arrays {
        segment.primitive_array_no_data(id, 0, Type::Long, u32::MAX);
    }
    segment.root(Root::JniGlobal { reference: 1 }, 0x1000);
    dump.segment(segment).heap_end();
    let file = written(&dump.into_bytes());
    for layout in [LayoutModel::Plain, LayoutModel::Mat, LayoutModel::Measured] {
        let options = Options {
            layout,
            ..plain(false)
        };
        let heap = open(file.path(), &options);
        let find = |id| heap.find(hprof::ObjectId(id)).expect("the object");
        let shallow = |id| heap.shallow(find(id)).0;
        let retained = |id| heap.retained(find(id)).0;
        assert!(
            arrays
                .iter()
                .all(|id| shallow(*id) >= 8 * u64::from(u32::MAX))
        );
        let below = shallow(0x1100) + shallow(0x3000) + shallow(0x4000);
        assert_eq!(retained(0x1100), below, "{layout:?}");
        let all = shallow(0x1000) + below + shallow(0x2000);
        assert_eq!(retained(0x1000), all, "{layout:?}");
        assert_eq!(heap.summary().reachable_shallow.0, all, "{layout:?}");
        assert_eq!(
            heap.dominator(find(0x4000)),
            Dominator::Object(find(0x1100))
        );
    }
}

fn sha256(data: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(data)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
