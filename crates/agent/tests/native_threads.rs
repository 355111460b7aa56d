//! Threads that the program's native code attaches to the VM.

#[test]
fn what_native_threads_do_is_counted_and_unchanged() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(library) = lab.library("attached.c", folder.path()) else {
        return;
    };
    let library = library.to_string_lossy();
    let Some(classes) = lab.compile("Attached.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        for mode in crate::common::MODES
            .iter()
            .chain(&["heap=sites,cutoff=0", "cpu=old"])
        {
            let program = ["Attached", &library];
            let ran = lab.run_in(jdk, classes.path(), Some(mode), &[], &program);
            let what = format!("{mode} on {}\n{}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "made 800\n", "{what}");
            assert_eq!(ran.output.status.code(), Some(0), "{what}");
            let profile = ran.profile();
            if *mode == "heap=sites,cutoff=0" {
                let rows = profile
                    .lines()
                    .filter(|line| line.ends_with(" Attached$Node"));
                let made =
                    rows.filter_map(|row| row.split_whitespace().nth(6)?.parse::<u64>().ok());
                assert_eq!(made.sum::<u64>(), 800, "{what}");
            }
            if *mode == "cpu=old" {
                let row = "8 Attached.work()V <unknown caller> ";
                assert!(profile.lines().any(|line| line.starts_with(row)), "{what}");
                let row = "8 Attached.inner()V Attached.work()V ";
                assert!(profile.lines().any(|line| line.starts_with(row)), "{what}");
            }
        }
    }
}
