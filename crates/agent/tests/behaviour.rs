//! The agent changes nothing that a program can see: output, exit code, errors.

#[test]
fn troubled_programs_behave_as_without_the_agent() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let cases: &[(&str, &[&str])] = &[
        ("overflow", &["-Xss512k"]),
        ("memory", &["-Xmx48m"]),
        ("uncaught", &[]),
        ("exit", &[]),
        ("halt", &[]),
        ("threads", &[]),
        ("loaders", &[]),
        ("lambda", &["-Xverify:all"]),
    ];
    for jdk in lab.some_jdks() {
        for (case, flags) in cases {
            let program = ["Trouble", case];
            let plain = lab.run(jdk, None, flags, &program);
            for mode in crate::common::MODES {
                let ran = lab.run(jdk, Some(mode), flags, &program);
                let what = format!(
                    "{case} with {mode} on {}\n{}",
                    jdk.full_version,
                    ran.stderr()
                );
                assert_eq!(ran.stdout(), plain.stdout(), "{what}");
                assert_eq!(
                    ran.output.status.code(),
                    plain.output.status.code(),
                    "{what}"
                );
                assert!(!ran.stderr().contains("[warning]"), "{what}");
            }
        }
    }
}

#[test]
fn option_errors_end_the_program_as_the_originals_did_only_when_asked_to() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let plain = lab.run(jdk, None, &[], &["Trouble", "lambda"]);
    let first =
        |ran: &crate::common::Ran| ran.stderr().lines().next().unwrap_or_default().to_owned();
    let check = |options: &str, code, text: &str, reason: &str| {
        let asked = format!("compat=y,{options}");
        let ran = lab.run(jdk, Some(&asked), &[], &["Trouble", "lambda"]);
        assert_eq!(ran.output.status.code(), Some(code), "{options}");
        let (printed, place) = text.rsplit_once(" [").expect("a place");
        let printed = printed.replace(&format!("({options})"), &format!("({asked})"));
        assert_eq!(
            first(&ran),
            format!("HPROF ERROR: {printed} [{place}"),
            "{options}"
        );
        assert_eq!(ran.stdout(), "", "{options}");
        // Otherwise one sentence reports it, and the program runs on.
        let ran = lab.run(jdk, Some(options), &[], &["Trouble", "lambda"]);
        assert_eq!(
            ran.output.status.code(),
            plain.output.status.code(),
            "{options}"
        );
        assert_eq!(ran.stdout(), plain.stdout(), "{options}");
        let (printed, _) = text.rsplit_once(" [").expect("a place");
        let printed = match reason {
            "" => printed.to_owned(),
            reason => format!("can't create profile file: none/x.txt: {reason}"),
        };
        let sentence = format!("HPROF: {printed}; the program runs unprofiled\n");
        assert_eq!(ran.stderr(), sentence + &plain.stderr(), "{options}");
    };
    check(
        "foo=bar",
        1,
        "hprof option error: Unknown option: foo (foo=bar) [hprof_init.c:495]",
        "",
    );
    check(
        "format=b,cpu=times",
        1,
        "hprof option error: cpu=times|old is not supported with format=b (format=b,cpu=times) [hprof_init.c:495]",
        "",
    );
    check(
        "file=none/x.txt",
        9,
        "can't create temp heap file: none/x.txt.TMP [hprof_init.c:814]",
        "No such file or directory (os error 2)",
    );
    check(
        "heap=sites,file=none/x.txt",
        1,
        "can't create profile file: none/x.txt [hprof_init.c:850]",
        "No such file or directory (os error 2)",
    );
    check(
        "net=127.0.0.1:1",
        1,
        "can't connect to 127.0.0.1:1 [hprof_init.c:827]",
        "",
    );
}

#[test]
fn hot_methods_are_found_where_they_are() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let ran = lab.run(
            jdk,
            Some("cpu=samples,interval=2"),
            &[],
            &["Known", "calls"],
        );
        let profile = ran.profile();
        assert!(
            profile.contains("CPU SAMPLES BEGIN"),
            "{}\n{}",
            ran.stderr(),
            jdk.full_version
        );
        assert!(
            !profile.contains("HprofTracker"),
            "the agent samples itself"
        );
    }
}
