//! Which index is believed: only one that is whole, that belongs to the user, and that was made of
//! the dump as it is now.

use heap_graph::{Control, Heap, Options};
use std::fs;
use std::path::{Path, PathBuf};

/// A chain of objects; `tag` is a number that lies in the middle of the file.
fn dump_with(tag: i32) -> Vec<u8> {
    crate::links::dump(20_000, |n| if n == 10_000 { tag } else { n as i32 })
}

struct Place {
    dir: tempfile::TempDir,
    dump: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dump = dir.path().join("heap.hprof");
    fs::write(&dump, dump_with(7)).expect("the dump is written");
    Place { dir, dump }
}

/// Opens with all indexes under a folder of the test's.
fn open(p: &Place) -> Heap {
    let options = Options {
        cache_dir: Some(p.dir.path().join("cache")),
        ..Options::default()
    };
    Heap::open(&p.dump, &options, &Control::quiet()).expect("the dump opens")
}

fn index_file(p: &Place, extension: &str) -> PathBuf {
    let folder = p.dir.path().join("cache/heap.hprof.tenure");
    let files = fs::read_dir(folder).expect("the folder of the index");
    let mut files = files.flatten().map(|f| f.path());
    files
        .find(|f| f.extension().is_some_and(|e| e == extension))
        .expect("an index")
}

/// Everything that the index says of every object, as text.
fn answers(heap: &Heap) -> String {
    let mut text = format!("{:?}\n{:?}\n", heap.summary(), heap.roots());
    for (object, id) in heap.all_ids().step_by(97) {
        let facts = (
            id,
            heap.class_of(object),
            heap.shallow(object),
            heap.retained(object),
            heap.dominator(object),
            heap.dominated(Some(object)).collect::<Vec<_>>(),
            heap.object(object).ok(),
            heap.inbound(object).ok(),
        );
        text += &format!("{facts:?}\n");
    }
    let top: Vec<_> = heap.dominated(None).take(10).collect();
    text + &format!("{top:?} {:?}", heap.group_sums())
}

#[test]
fn a_flipped_byte_or_an_empty_page_anywhere_in_an_index_changes_no_answer() {
    let p = place();
    let want = answers(&open(&p));
    for extension in ["idx", "inbound"] {
        let index = index_file(&p, extension);
        let good = fs::read(&index).expect("the index");
        let flip = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            bytes
        };
        let empty = |page: usize| {
            let mut bytes = good.clone();
            let to = bytes.len().min((page + 1) * 4096);
            bytes[page * 4096..to].fill(0);
            bytes
        };
        let flips = (0..good.len()).step_by(good.len() / 60).map(flip);
        let pages = (0..good.len() / 4096).step_by(3).map(empty);
        for damaged in flips.chain(pages) {
            fs::write(&index, &damaged).expect("the index is damaged");
            assert!(answers(&open(&p)) == want, "other answers");
            // What was damaged has been replaced.
            assert!(open(&p).was_indexed());
        }
    }
}

#[test]
fn a_dump_whose_middle_was_filled_later_is_analyzed_again() {
    let p = place();
    let whole = fs::read(&p.dump).expect("the dump");
    let mut hole = whole.clone();
    hole[70_000..whole.len() - 70_000].fill(0);
    fs::write(&p.dump, &hole).expect("the dump is written");
    let time = fs::metadata(&p.dump)
        .and_then(|m| m.modified())
        .expect("its time");
    let first = open(&p);
    assert!(first.summary().objects.total < 20_000);
    // The same file, size and times, as a parallel download leaves them.
    fs::write(&p.dump, &whole).expect("the dump is written");
    let file = fs::File::options().write(true).open(&p.dump).expect("open");
    file.set_modified(time).expect("a time");
    let again = open(&p);
    assert!(!again.was_indexed());
    assert_eq!(again.summary().objects.instances, 20_000);
}

#[test]
fn a_dump_that_was_written_again_is_analyzed_again_although_no_sample_differs() {
    let p = place();
    assert!(!open(&p).was_indexed() && open(&p).was_indexed());
    let time = fs::metadata(&p.dump)
        .and_then(|m| m.modified())
        .expect("its time");
    // Another time, the same inode.
    fs::write(&p.dump, dump_with(8)).expect("the dump is written");
    let file = fs::File::options().write(true).open(&p.dump).expect("open");
    file.set_modified(time + std::time::Duration::from_nanos(1000))
        .expect("a time");
    assert!(!open(&p).was_indexed() && open(&p).was_indexed());
    // Another inode, the same time.
    let time = fs::metadata(&p.dump)
        .and_then(|m| m.modified())
        .expect("its time");
    let other = p.dir.path().join("other");
    fs::write(&other, dump_with(9)).expect("the dump is written");
    let file = fs::File::options().write(true).open(&other).expect("open");
    file.set_modified(time).expect("a time");
    fs::rename(&other, &p.dump).expect("renamed");
    assert!(!open(&p).was_indexed());
}

#[cfg(unix)]
#[test]
fn an_index_that_others_could_have_written_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let p = place();
    open(&p);
    let index = index_file(&p, "idx");
    let aside = p.dir.path().join("aside");
    let mode = |path: &Path, bits| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("a mode");
    };
    // Each of these is undone by the opening, which writes an index of its own.
    mode(&index, 0o666);
    assert!(!open(&p).was_indexed(), "others may write to it");
    assert!(open(&p).was_indexed());
    fs::rename(&index, &aside).expect("renamed");
    symlink(&aside, &index).expect("a link");
    assert!(!open(&p).was_indexed(), "a symbolic link");
    assert!(open(&p).was_indexed() && aside.exists());
    fs::hard_link(&index, p.dir.path().join("twin")).expect("a link");
    assert!(!open(&p).was_indexed(), "a second name");
    assert!(open(&p).was_indexed());
    if std::os::unix::fs::chown(&index, Some(65534), None).is_ok() {
        assert!(!open(&p).was_indexed(), "another owner");
    } else {
        testkit::skip(
            "another owner",
            testkit::Need::Root,
            "giving the index to another user needs root",
        );
    }
}

#[cfg(unix)]
#[test]
fn nothing_is_read_from_or_written_to_a_folder_that_others_could_have_made() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let p = place();
    open(&p);
    let folder = index_file(&p, "idx").parent().expect("a folder").to_owned();
    let mode = |bits| {
        fs::set_permissions(&folder, fs::Permissions::from_mode(bits)).expect("a mode");
    };
    mode(0o777);
    assert!(!open(&p).was_indexed() && !open(&p).was_indexed());
    mode(0o700);
    assert!(open(&p).was_indexed());
    let elsewhere = p.dir.path().join("elsewhere");
    fs::rename(&folder, &elsewhere).expect("renamed");
    symlink(&elsewhere, &folder).expect("a link");
    let before = fs::read_dir(&elsewhere).expect("a folder").count();
    assert!(!open(&p).was_indexed());
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), before);
}

#[test]
fn what_is_no_dump_leaves_nothing_beside_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let garbage = dir.path().join("garbage.hprof");
    fs::write(
        &garbage,
        b"GARBAGE, not a dump at all, and long enough for a header",
    )
    .expect("a file");
    let no_heap = dir.path().join("empty.hprof");
    fs::write(&no_heap, &dump_with(1)[..40]).expect("a file");
    for path in [garbage, no_heap, dir.path().join("absent.hprof")] {
        let opened = Heap::open(&path, &Options::default(), &Control::quiet());
        assert!(opened.is_err(), "{}", path.display());
    }
    let left = fs::read_dir(dir.path()).expect("the folder").count();
    assert_eq!(left, 2);
}
