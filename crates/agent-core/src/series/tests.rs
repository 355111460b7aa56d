use super::*;

const T: &str = "20260131-235959";

fn series(name: &str, keep: Keep) -> Series {
    let patterns = Patterns {
        pid: "42",
        time: T,
        host: "box",
    };
    Series::new(name, keep, &patterns, |_| None)
}

fn write(series: &Series, text: &str) -> PathBuf {
    let mut part = series.begin(T, 42).unwrap();
    part.write_all(text.as_bytes()).unwrap();
    part.path().to_owned()
}

fn listing(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_stamp_sorts_by_time() {
    let time = WallTime {
        unix_ms: 1_795_237_044_000,
        offset_seconds: 0,
    };
    assert_eq!(time.stamp(), "20261121-045724");
}

#[test]
fn names_have_the_time_of_each_file() {
    let check = |name: &str, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let series = series(
            &format!("{}/{name}", folder.path().display()),
            Keep::Files(9),
        );
        let path = write(&series, "x");
        assert_eq!(path, folder.path().join(expected));
        assert_eq!(listing(folder.path()), [expected]);
    };
    check("a-%t-%p.hprof", "a-20260131-235959-42.hprof");
    check("a.hprof.txt", "a-20260131-235959.hprof.txt");
    check("%h", "box-20260131-235959");
    check(".a", ".a-20260131-235959");
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(9));
    let mut part = series.begin(T, 42).unwrap();
    part.write_all(b"text").unwrap();
    assert_eq!(listing(folder.path()), [format!("a-{T}.part")]);
    // A second file in the same second.
    let other = series.begin(T, 42).unwrap();
    assert!(other.path().ends_with(format!("a-{T}-2")));
    drop(other);
    drop(part);
    assert_eq!(listing(folder.path()), [format!("a-{T}")]);
    let mut failed = series.begin(T, 42).unwrap();
    failed.write_all(b"text").unwrap();
    failed.abandon();
    drop(failed);
    assert_eq!(listing(folder.path()), [format!("a-{T}")]);
}

#[test]
fn only_names_of_the_template_are_of_the_series() {
    let check = |template: &str, name: &str, expected| {
        let template = template.replace("%t", "\u{1}").replace("%p", "\u{2}");
        assert_eq!(matches(&template, name), expected, "{template} {name}");
    };
    check("a-%t.hprof", "a-20260131-235959.hprof", true);
    check("a-%t.hprof", "a-20260131-235959Z.hprof", true);
    check("a-%t.hprof", "a-20260131-235959-17.hprof", true);
    check("a-%t-%p.hprof", "a-20260131-235959-17.hprof", true);
    check("a-%t-%p.hprof", "a-20260131-235959-2-17.hprof", true);
    check("a-%t.hprof", "a-20260131-235959.hprof.bak", false);
    check("a-%t.hprof", "a-20260131.hprof", false);
    check("a-%t.hprof", "b-20260131-235959.hprof", false);
    check("a-%p", "a-", false);
    check("%t", "2026013é-235959", false);
}

#[test]
fn the_oldest_files_go() {
    assert_eq!(excess(&[1; 5], Keep::Files(3), 0, 1), 2);
    assert_eq!(excess(&[1; 2], Keep::Files(3), 0, 1), 0);
    assert_eq!(excess(&[5, 4, 3, 2], Keep::Bytes(6), 0, 1), 2);
    assert_eq!(excess(&[5, 4, 3, 2], Keep::Bytes(9), 0, 1), 1);
    assert_eq!(
        excess(&[5, 50], Keep::Bytes(9), 0, 1),
        1,
        "the newest stays"
    );
    assert_eq!(excess(&[], Keep::Files(1), 0, 1), 0);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("other"), "kept").unwrap();
    let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(2));
    let paths: Vec<_> = (0..5).map(|_| write(&series, "x")).collect();
    let name = |at: usize| paths[at].file_name().unwrap().to_str().unwrap().to_owned();
    let mut expected = vec![name(3), name(4), "other".to_owned()];
    expected.sort();
    assert_eq!(listing(folder.path()), expected);
}

#[test]
fn older_files_go_while_a_file_grows() {
    let folder = tempfile::tempdir().unwrap();
    let size = || -> u64 {
        let files = fs::read_dir(folder.path()).unwrap().flatten();
        files.map(|file| file.metadata().unwrap().len()).sum()
    };
    let series = series(
        &format!("{}/a-%t", folder.path().display()),
        Keep::Bytes(10),
    );
    for _ in 0..3 {
        let mut part = series.begin(T, 42).unwrap();
        for _ in 0..4 {
            part.write_all(b"x").unwrap();
            assert!(size() <= 10, "{:?}", listing(folder.path()));
        }
    }
    assert_eq!(size(), 8, "two files");
    // One file follows another.
    let mut last = series.begin(T, 42).unwrap();
    last.write_all(b"x").unwrap();
    let mut next = series.begin(T, 42).unwrap();
    next.write_all(b"x").unwrap();
    last.write_all(b"xx").unwrap();
    next.write_all(b"x").unwrap();
    assert!(size() <= 10, "{:?}", listing(folder.path()));
    drop((last, next));
    // A file that is larger than the limit remains alone.
    write(&series, &"x".repeat(11));
    assert_eq!((size(), listing(folder.path()).len()), (11, 1));
    let mut next = series.begin(T, 42).unwrap();
    next.write_all(b"x").unwrap();
    assert_eq!((size(), listing(folder.path()).len()), (1, 1));
}

#[test]
fn a_new_file_stays_after_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let later = SystemTime::now() + Duration::from_secs(3600);
    for name in ["a-20270101-000000", "a-20270102-000000"] {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_modified(later).unwrap();
    }
    let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(2));
    let paths = [write(&series, "x"), write(&series, "x")];
    let mut names = paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    names.sort();
    assert_eq!(listing(folder.path()), names);
}

#[test]
fn a_file_that_appears_while_a_part_is_written_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(9));
    let mut part = series.begin(T, 42).unwrap();
    part.write_all(b"recorded").unwrap();
    let other = part.path().to_owned();
    fs::write(&other, "of another").unwrap();
    let path = part.finish().unwrap().unwrap();
    assert_eq!(path, folder.path().join(format!("a-{T}-2")));
    assert_eq!(fs::read_to_string(path).unwrap(), "recorded");
    assert_eq!(fs::read_to_string(other).unwrap(), "of another");
    assert_eq!(listing(folder.path()).len(), 2);
}

#[test]
fn files_of_another_process_stay_while_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let old = SystemTime::now() - Duration::from_secs(3600);
    let other = ["a-20260131-000000", "a-20260131-000001"];
    for name in other {
        File::create(path(name)).unwrap().set_modified(old).unwrap();
    }
    let part = File::create(path("a-20260131-000002.part")).unwrap();
    part.set_modified(old).unwrap();
    part.lock().unwrap();
    let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(1));
    write(&series, "x");
    let last = write(&series, "x");
    let last = last.file_name().unwrap().to_str().unwrap();
    let expected = [other[0], other[1], "a-20260131-000002.part", last];
    assert_eq!(listing(folder.path()), expected);
    // It is killed: what it has left counts.
    drop(part);
    let last = write(&series, "x");
    let last = last.file_name().unwrap().to_str().unwrap();
    assert_eq!(listing(folder.path()), [last]);
}

#[test]
fn an_old_file_is_abandoned_where_there_are_no_locks() {
    let without_locks = |days: u64| {
        let error = io::Error::from(io::ErrorKind::Unsupported);
        let age = Duration::from_secs(days * 86_400);
        has_ended(Err(TryLockError::Error(error)), age)
    };
    assert!(without_locks(8) && !without_locks(6));
    let old = Duration::from_secs(100 * 86_400);
    assert!(!has_ended(Err(TryLockError::WouldBlock), old));
}

#[test]
fn what_a_killed_process_has_left_goes_and_what_another_writes_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(2));
    let part = series.begin(T, 42).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    part.file.set_modified(old).unwrap();
    let left = path("a-20260131-000000.part");
    File::create(&left).unwrap().set_modified(old).unwrap();
    File::create(path("a-20260131-000001.part")).unwrap();
    series.prune(Path::new(""), 0);
    assert_eq!(
        listing(folder.path()),
        ["a-20260131-000001.part".to_owned(), format!("a-{T}.part")]
    );
}

fn in_folder(folder: &tempfile::TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

#[test]
fn a_file_is_made_of_its_data_when_that_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let series = series(&in_folder(&folder, "a-%t.jfr"), Keep::Files(9)).of_data();
    let mut data = series.begin(T, 42).unwrap();
    data.write_all(b"data").unwrap();
    assert!(data.is_usable() && data.path().ends_with(format!("a-{T}.jfr")));
    assert_eq!(listing(folder.path()), [format!("a-{T}.jfr.hprof.part")]);
    // The data of the next file, in the same second.
    let mut next = series.begin(T, 42).unwrap();
    next.write_all(b"next").unwrap();
    assert_eq!(data.read().unwrap(), b"data");
    let mut whole = data.begin_whole().unwrap();
    whole.write_all(b"whole").unwrap();
    let path = whole.finish().unwrap().unwrap();
    data.abandon();
    assert_eq!(data.finish().unwrap(), None);
    assert_eq!(path, folder.path().join(format!("a-{T}.jfr")));
    assert_eq!(fs::read(path).unwrap(), b"whole");
    // Data that is not converted is kept.
    let kept = next.finish().unwrap().unwrap();
    assert_eq!(kept, folder.path().join(format!("a-{T}-2.jfr.hprof")));
    let expected = [format!("a-{T}-2.jfr.hprof"), format!("a-{T}.jfr")];
    assert_eq!(listing(folder.path()), expected);
    // A file may be empty: no stacks are a result.
    let third = series.begin(T, 42).unwrap();
    assert!(!third.is_usable());
    let path = third.begin_whole().unwrap().finish().unwrap();
    assert_eq!(path, Some(folder.path().join(format!("a-{T}-3.jfr"))));
}

#[test]
fn data_counts_as_its_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let name = in_folder(&folder, "a-%t.jfr");
    let files = series(&name, Keep::Files(2)).of_data();
    for _ in 0..3 {
        write(&files, "kept as data");
    }
    assert_eq!(listing(folder.path()).len(), 2);
    let bytes = series(&name, Keep::Bytes(30)).of_data();
    let mut data = bytes.begin(T, 42).unwrap();
    data.write_all(&[b'x'; 12]).unwrap();
    let size = || -> u64 {
        let files = fs::read_dir(folder.path()).unwrap().flatten();
        files.map(|file| file.metadata().unwrap().len()).sum()
    };
    assert_eq!(size(), 24, "{:?}", listing(folder.path()));
    let mut whole = data.begin_whole().unwrap();
    whole.write_all(&[b'x'; 12]).unwrap();
    assert_eq!(size(), 24, "{:?}", listing(folder.path()));
    whole.finish().unwrap();
    data.abandon();
    drop(data);
    assert_eq!((size(), listing(folder.path()).len()), (12, 1));
    // A killed process leaves both.
    let old = SystemTime::now() - Duration::from_secs(3600);
    for name in [
        "a-20260101-000000.jfr.hprof.part",
        "a-20260101-000000.jfr.part",
    ] {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    write(&bytes, "x");
    assert_eq!(listing(folder.path()).len(), 2);
}

#[test]
fn a_single_file_has_exactly_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pb.gz");
    let [replacing, keeping] = [true, false].map(|replaces| Series::single(&path, replaces));
    let convert = |series: &Series, text: &str| {
        let mut data = series.clone().of_data().begin(T, 42).unwrap();
        data.write_all(b"data").unwrap();
        let other = series.clone().of_data().begin(T, 42).unwrap();
        let mut whole = data.begin_whole().unwrap();
        whole.write_all(text.as_bytes()).unwrap();
        let path = whole.finish().unwrap().unwrap();
        data.abandon();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        [name(&path), name(other.path())]
    };
    assert_eq!(convert(&replacing, "one"), ["a.pb.gz", "a-2.pb.gz"]);
    assert_eq!(convert(&replacing, "two"), ["a.pb.gz", "a-2.pb.gz"]);
    assert_eq!(convert(&keeping, "three"), ["a-2.pb.gz", "a-3.pb.gz"]);
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(listing(folder.path()), ["a-2.pb.gz", "a.pb.gz"]);
    // What a killed process has left does not take the name.
    let folder = tempfile::tempdir().unwrap();
    let left = File::create(folder.path().join("a.jfr.hprof.part")).unwrap();
    left.set_modified(SystemTime::now() - Duration::from_secs(60))
        .unwrap();
    drop(left);
    let series = Series::single(&folder.path().join("a.jfr"), true).of_data();
    assert!(series.begin(T, 42).unwrap().path().ends_with("a.jfr"));
}
