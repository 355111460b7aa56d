//! A dump or an index that another process shortens or overwrites while it is read: an error, and
//! never a signal or an answer.
#![cfg(unix)]

use heap_graph::{Control, Heap, HeapError, ObjIdx, Options, Progress, quick_histogram};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Large enough that not all of it is read by one copy: its segments are mapped.
const LINKS: u64 = 100_000;

struct Place {
    dir: tempfile::TempDir,
    dump: PathBuf,
}

fn place() -> Place {
    hprof::source::guard_mappings();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dump = dir.path().join("heap.hprof");
    fs::write(&dump, crate::links::dump(LINKS, |n| n as i32)).expect("the dump is written");
    Place { dir, dump }
}

fn shorten(path: &Path, to: u64) {
    let file = File::options().write(true).open(path).expect("open");
    file.set_len(to).expect("shortened");
}

fn open(p: &Place) -> Heap {
    Heap::open(&p.dump, &Options::default(), &Control::quiet()).expect("the dump opens")
}

fn changed<T: std::fmt::Debug>(result: Result<T, HeapError>) {
    assert!(
        matches!(result, Err(HeapError::Changed { .. })),
        "{result:?}"
    );
}

#[test]
fn a_dump_that_is_shortened_while_it_is_open_gives_errors() {
    let p = place();
    let heap = open(&p);
    assert!(heap.check().is_ok());
    heap.object(ObjIdx(LINKS - 10)).expect("readable");
    shorten(&p.dump, 4096);
    changed(heap.object(ObjIdx(LINKS - 10)));
    changed(heap.inbound(ObjIdx(5)));
    changed(heap.check());
}

#[test]
fn a_dump_that_is_overwritten_while_it_is_open_is_noticed() {
    let p = place();
    let heap = open(&p);
    heap.object(ObjIdx(7)).expect("readable");
    let bytes = fs::read(&p.dump).expect("the dump");
    fs::write(&p.dump, bytes).expect("written again");
    changed(heap.check());
}

/// Replaces the dump by another one, in which fewer objects refer to others.
fn replace(p: &Place) {
    let other = p.dir.path().join("other.hprof");
    fs::write(&other, crate::links::dump(100, |n| n as i32)).expect("the dump is written");
    fs::rename(other, &p.dump).expect("renamed");
}

#[test]
fn a_dump_that_is_replaced_while_it_is_open_adds_nothing_to_the_index_of_the_new_one() {
    let p = place();
    let heap = open(&p);
    assert!(heap.beside_index("answers").is_some());
    replace(&p);
    let last = ObjIdx(LINKS - 1);
    assert_eq!(heap.inbound(last).expect("the old rows").len(), 1);
    heap.check().expect("the old dump is read");
    assert_eq!(heap.beside_index("answers"), None);
    let new = open(&p);
    let no_index = Options {
        no_index: true,
        ..Options::default()
    };
    let expected = Heap::open(&p.dump, &no_index, &Control::quiet()).expect("the dump opens");
    for object in (0..new.len()).map(ObjIdx) {
        let found = new.inbound(object).expect("its own rows");
        assert_eq!(found, expected.inbound(object).expect("rows"), "{object:?}");
    }
    assert!(new.beside_index("answers").is_some());
}

#[test]
fn an_index_is_not_combined_with_the_contents_of_another_dump() {
    let p = place();
    drop(open(&p));
    let heap = open(&p);
    assert!(heap.was_indexed());
    replace(&p);
    changed(heap.object(ObjIdx(7)));
    changed(heap.inbound(ObjIdx(7)));
}

#[test]
fn an_index_that_is_shortened_while_it_is_open_is_noticed() {
    let p = place();
    drop(open(&p));
    let heap = open(&p);
    assert!(heap.was_indexed() && heap.retained(ObjIdx(50)).0 > 0);
    let folder = p.dir.path().join("heap.hprof.tenure");
    let mut files = fs::read_dir(folder).expect("the folder").flatten();
    shorten(&files.next().expect("the index").path(), 100);
    for (object, _) in heap.all_ids() {
        // Zeros, or what was read before.
        let _ = (
            heap.retained(object),
            heap.dominator(object),
            heap.shallow(object),
        );
    }
    changed(heap.check());
}

#[test]
fn a_dump_that_is_shortened_during_the_build_gives_an_error_and_no_index() {
    for phase in ["objects", "references", "search", "retained sizes"] {
        let p = place();
        let progress = |at: Progress| {
            if at.phase == phase {
                shorten(&p.dump, 4096);
            }
        };
        let control = Control {
            progress: &progress,
            ..Control::quiet()
        };
        changed(Heap::open(&p.dump, &Options::default(), &control));
        let left = fs::read_dir(p.dir.path().join("heap.hprof.tenure"));
        assert_eq!(left.map_or(0, |files| files.count()), 0, "{phase}");
    }
    let p = place();
    let progress = |_: Progress| shorten(&p.dump, 4096);
    let control = Control {
        progress: &progress,
        ..Control::quiet()
    };
    changed(quick_histogram(&p.dump, &Options::default(), &control));
}

#[test]
fn a_packed_dump_that_is_shortened_while_it_is_unpacked_gives_an_error() {
    let p = place();
    let bytes = fs::read(&p.dump).expect("the dump");
    fs::write(&p.dump, testkit::dump::gzip_members(&bytes, 50_000)).expect("packed");
    let progress = |_: Progress| shorten(&p.dump, 9000);
    let control = Control {
        progress: &progress,
        ..Control::quiet()
    };
    let opened = Heap::open(&p.dump, &Options::default(), &control);
    assert!(matches!(opened, Err(HeapError::Source(_))), "{opened:?}");
}
