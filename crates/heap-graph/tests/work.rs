//! How much is read and kept: exact numbers, no stopwatch.

use heap_graph::{Control, Heap, ObjIdx, Options, Phases, quick_histogram};
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};

const OBJECTS: u64 = 300_000;

fn dump() -> (tempfile::NamedTempFile, u64) {
    let mut heap = Builder::new(IdSize::Eight).segments_of(1 << 20);
    let object = heap.java_lang_object();
    let class = heap.class("Pair", object, &[("a", Type::Object), ("b", Type::Object)]);
    let mut ids: Vec<u64> = Vec::new();
    for n in 0..OBJECTS {
        let older = |k: u64| {
            Value::Object(if n == 0 {
                0
            } else {
                ids[(n.wrapping_mul(k) % n) as usize]
            })
        };
        let id = heap.instance(class, &[older(7919), older(104_729)]);
        ids.push(id);
    }
    heap.root(Root::JniGlobal { reference: 1 }, ids[ids.len() - 1]);
    for id in ids.iter().step_by(10) {
        heap.root(Root::JniGlobal { reference: 1 }, *id);
    }
    let bytes = heap.bytes();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), &bytes).expect("the dump is written");
    (file, bytes.len() as u64)
}

#[test]
fn the_histogram_walks_the_heap_once_and_the_graph_twice_with_eighteen_bytes_an_object() {
    let (file, len) = dump();
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let quick = quick_histogram(file.path(), &options, &Control::quiet()).expect("it opens");
    assert!(
        quick.walked < len && quick.walked > len * 9 / 10,
        "{} of {len}",
        quick.walked
    );

    let options = Options {
        phases: Phases::recording(),
        ..options
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("it opens");
    let phases = options.phases.finish().phases;
    let walked: Vec<_> = phases
        .iter()
        .filter(|phase| phase.walked > 0)
        .map(|phase| (phase.name, phase.walked))
        .collect();
    assert_eq!(
        walked,
        [("objects", quick.walked), ("references", quick.walked)]
    );
    let most = phases.iter().map(|phase| phase.arrays).max();
    let each = most.expect("phases") as f64 / OBJECTS as f64;
    assert!(each > 4.0 && each <= 18.0, "{each} bytes an object");
    assert_eq!(heap.len(), quick.summary.objects.total);
}

#[test]
fn the_index_takes_at_most_thirteen_bytes_an_object_and_twenty_one_with_referrers() {
    let (file, _) = dump();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        cache_dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("it opens");
    let stored = |dir: &std::path::Path| -> u64 {
        let files = walk(dir);
        files
            .iter()
            .map(|f| std::fs::metadata(f).map_or(0, |m| m.len()))
            .sum()
    };
    let alone = stored(dir.path()) as f64 / OBJECTS as f64;
    assert!(alone <= 13.0, "{alone} bytes an object");
    let (object, _) = heap.all_ids().next().expect("an object");
    heap.inbound(object).expect("readable");
    let both = stored(dir.path()) as f64 / OBJECTS as f64;
    assert!(both > alone && both <= 21.0, "{both} bytes an object");
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    entries
        .flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] })
        .collect()
}

#[test]
fn many_ids_are_looked_up_together_as_they_are_one_by_one() {
    let (file, _) = dump();
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("it opens");
    let ids: Vec<u64> = heap.all_ids().map(|(_, id)| id.0).collect();
    for first in [0, 1, 700, heap.len() - 3, heap.len()] {
        let mut block = [hprof::ObjectId::NULL; 9];
        let read = heap.read_ids(ObjIdx(first), &mut block);
        let block: Vec<u64> = block[..read].iter().map(|id| id.0).collect();
        let rest = &ids[first as usize..];
        assert_eq!(block, rest[..rest.len().min(9)]);
    }
    // Known ones out of order, null, ids of nothing, and as many as do not fill the last group.
    let some = ids.iter().rev().step_by(7).take(1000).copied();
    let wanted: Vec<_> = some
        .chain([0, 1, u64::MAX, ids[3] + 1])
        .map(hprof::ObjectId)
        .collect();
    let mut found = Vec::new();
    heap.find_all(wanted.iter().copied(), &mut found);
    let one_by_one: Vec<_> = wanted.iter().map(|id| heap.find(*id)).collect();
    assert_eq!(found, one_by_one);
    assert_eq!(found.iter().flatten().count(), 1000);
}

#[test]
fn findings_do_not_depend_on_the_number_of_threads() {
    use testkit::dump::{ClassDump, Dump, Segment, Version};
    let mut dump = Dump::new(Version::V102, IdSize::Eight);
    dump.utf8(1, b"java/lang/VirtualThread")
        .load_class(1, 0x1000, 0, 1);
    for n in 0..200u64 {
        let mut segment = Segment::new(IdSize::Eight);
        if n == 0 {
            segment.class_dump(&ClassDump {
                id: 0x1000,
                ..ClassDump::default()
            });
        }
        segment.instance_bytes(0x2000 + n * 16, 0, 0x1000, &[]);
        segment.root(Root::Unknown, 0x2000 + n * 16);
        // Not a sub-record.
        segment.raw(&[0x99; 40]);
        dump.segment(segment);
    }
    dump.heap_end();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump.into_bytes()).expect("the dump is written");
    let found = |threads| {
        let options = Options {
            no_index: true,
            threads,
            ..Options::default()
        };
        let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("it opens");
        let findings = heap.summary().diagnostics.clone();
        assert!(findings.len() >= 200, "{findings:?}");
        format!("{findings:?}")
    };
    let alone = found(1);
    for _ in 0..5 {
        assert_eq!(found(4), alone);
    }
}
