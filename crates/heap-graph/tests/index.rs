//! The index file: opened again without reading the dump, made again when anything changed, and
//! never believed when it is damaged.

use heap_graph::{Control, Heap, HeapError, LayoutModel, Options, Progress};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

fn small_dump(links: u64) -> Vec<u8> {
    crate::links::dump(links, |n| n as i32)
}

struct Place {
    _dir: tempfile::TempDir,
    dump: PathBuf,
}

fn place(bytes: &[u8]) -> Place {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dump = dir.path().join("heap.hprof");
    std::fs::write(&dump, bytes).expect("the dump is written");
    Place { _dir: dir, dump }
}

fn open(dump: &Path) -> Heap {
    Heap::open(dump, &Options::default(), &Control::quiet()).expect("the dump opens")
}

fn index_file(dump: &Path) -> PathBuf {
    let folder = dump.with_file_name("heap.hprof.tenure");
    let files = std::fs::read_dir(folder)
        .expect("the folder of the index")
        .flatten();
    files
        .map(|f| f.path())
        .find(|p| p.extension().is_some_and(|e| e == "idx"))
        .expect("an index")
}

#[test]
fn what_a_killed_build_left_is_removed_and_what_is_being_written_is_not() {
    let p = place(&small_dump(10));
    let folder = p.dump.with_file_name("heap.hprof.tenure");
    std::fs::create_dir(&folder).expect("a folder");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let unfinished = |name: &str, written| {
        let path = folder.join(name);
        let file = std::fs::File::create_new(&path).expect("a file");
        file.set_modified(written).expect("a time");
        (file, path)
    };
    let (left, gone) = unfinished(".building-left", old);
    drop(left);
    let (held, kept) = unfinished(".building-held", old);
    held.lock().expect("a lock");
    let (_, fresh) = unfinished(".building-fresh", std::time::SystemTime::now());
    let (_, other) = unfinished("notes", old);
    assert!(!open(&p.dump).was_indexed());
    assert!(!gone.exists());
    assert!(kept.exists() && fresh.exists() && other.exists());
    assert!(open(&p.dump).was_indexed());
}

#[test]
fn a_second_opening_reads_the_index_and_gives_the_same_answers() {
    let p = place(&small_dump(1000));
    let first = open(&p.dump);
    let second = open(&p.dump);
    assert!(!first.was_indexed() && second.was_indexed());
    assert_eq!(first.summary(), second.summary());
    assert_eq!(first.classes(), second.classes());
    for (object, _) in first.all_ids() {
        assert_eq!(first.retained(object), second.retained(object));
        assert_eq!(
            first.object(object).expect("readable"),
            second.object(object).expect("readable")
        );
    }
}

#[cfg(unix)]
#[test]
fn index_and_folder_can_be_entered_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let p = place(&small_dump(10));
    open(&p.dump);
    let index = index_file(&p.dump);
    let mode = |path: &Path| {
        std::fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&index), 0o600);
    assert_eq!(mode(index.parent().expect("a folder")), 0o700);
}

#[test]
fn another_dump_of_the_same_name_gets_its_own_index() {
    let p = place(&small_dump(1000));
    assert_eq!(open(&p.dump).len(), open(&p.dump).len());
    std::fs::write(&p.dump, small_dump(1001)).expect("the dump is replaced");
    let again = open(&p.dump);
    assert!(!again.was_indexed());
    assert_eq!(again.summary().objects.instances, 1001);
}

#[test]
fn a_damaged_cut_or_foreign_index_is_made_again() {
    let p = place(&small_dump(500));
    let want = open(&p.dump).summary().clone();
    let index = index_file(&p.dump);
    let good = std::fs::read(&index).expect("the index");
    let mut damages: Vec<Vec<u8>> = vec![
        Vec::new(),
        good[..40].to_vec(),
        good[..good.len() / 2].to_vec(),
    ];
    for at in [0, 9, 13, 17, 30, 57, good.len() - 3] {
        let mut damaged = good.clone();
        damaged[at] ^= 0x55;
        damages.push(damaged);
    }
    for damaged in damages {
        std::fs::write(&index, &damaged).expect("the index is damaged");
        let heap = open(&p.dump);
        assert_eq!(heap.summary(), &want);
        assert_eq!(heap.summary().reachable_objects, want.reachable_objects);
    }
}

#[test]
fn layouts_and_strengths_have_indexes_of_their_own() {
    let p = place(&small_dump(100));
    let measured = open(&p.dump);
    let plain = Options {
        layout: LayoutModel::Plain,
        ..Options::default()
    };
    let plain = Heap::open(&p.dump, &plain, &Control::quiet()).expect("the dump opens");
    assert!(!plain.was_indexed());
    assert_ne!(measured.summary().shallow, plain.summary().shallow);
}

#[test]
fn a_stopped_build_leaves_nothing_behind_and_can_be_repeated() {
    let p = place(&small_dump(200_000));
    let cancel = AtomicBool::new(false);
    for phase in [
        "objects",
        "references",
        "search",
        "dominators",
        "retained sizes",
    ] {
        cancel.store(false, Ordering::Relaxed);
        let progress = |at: Progress| {
            if at.phase == phase {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let control = Control {
            progress: &progress,
            cancel: &cancel,
        };
        let stopped = Heap::open(&p.dump, &Options::default(), &control);
        assert!(
            matches!(stopped, Err(HeapError::Cancelled)),
            "{phase}: {stopped:?}"
        );
        let folder = p.dump.with_file_name("heap.hprof.tenure");
        let left = std::fs::read_dir(&folder).map_or(0, |d| d.count());
        assert_eq!(left, 0, "{phase} left files in {}", folder.display());
    }
    assert_eq!(open(&p.dump).summary().objects.instances, 200_000);
}

#[test]
fn a_small_memory_limit_goes_to_disk_says_so_and_changes_no_answer() {
    let p = place(&small_dump(50_000));
    let free = open(&p.dump);
    let options = Options {
        max_memory: Some(64 << 10),
        no_index: true,
        ..Options::default()
    };
    let bound = Heap::open(&p.dump, &options, &Control::quiet()).expect("the dump opens");
    let printed = bound
        .summary()
        .diagnostics
        .iter()
        .any(|d| d.found.contains("memory limit"));
    assert!(printed, "{:?}", bound.summary().diagnostics);
    assert_eq!(free.classes(), bound.classes());
}

#[test]
fn every_packing_gives_the_same_heap() {
    let bytes = small_dump(3000);
    let want = open(&place(&bytes).dump).classes().to_vec();
    for packed in [
        testkit::dump::gzip(&bytes),
        testkit::dump::gzip_members(&bytes, 5000),
        testkit::dump::zip(&bytes, "some/heap.bin"),
        testkit::dump::zip(&testkit::dump::gzip(&bytes), "x.gz"),
    ] {
        let p = place(&packed);
        assert_eq!(open(&p.dump).classes(), want);
        let again = open(&p.dump);
        assert!(again.was_indexed());
        let (object, _) = again.all_ids().next().expect("an object");
        assert!(again.object(object).is_ok());
    }
}
