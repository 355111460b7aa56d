use super::*;

fn read(text: &str) -> (Vec<TextRecord<'_>>, Vec<String>) {
    let mut reader = TextReader::new(text.as_bytes());
    let records = reader.by_ref().collect();
    let findings = reader.diagnostics().iter().map(ToString::to_string);
    (records, findings.collect())
}

/// These lines are read as records, and written back unchanged.
fn check(text: &str, count: usize) {
    let (records, findings) = read(text);
    assert_eq!(findings, Vec::<String>::new(), "{text}");
    assert_eq!(records.len(), count, "{text}");
    let mut again = Vec::new();
    for record in &records {
        write_record(&mut again, record).unwrap();
    }
    assert_eq!(String::from_utf8_lossy(&again), text);
}

#[test]
fn lines_no_golden_run_has() {
    check(
        "TRACE 300001: (thread=200003) (from dead phase of JVM)\n\t<empty>\n",
        1,
    );
    check(
        "TRACE 1:\n\tA.b(A.java:Compiled method)\n\tA.c(A.java:Native method)\n",
        1,
    );
    check(
        "TRACE 1:\n\tk.T.it works (twice)(T.kt:7)\n\tA.b(Native Method)\n",
        1,
    );
    check(
        "THREAD START (obj=50000001, id = 200003, name=\"a\nb\", group=\"g\")\n",
        1,
    );
    check(
        "THREAD START (obj=1, id = 2, name=\"x\", group=\"\", group=\"g\")\n",
        1,
    );
    check(
        "MONITOR TIME BEGIN (total = 1250 ms) Fri Feb  6 13:13:42 2026\n\
         rank   self  accum   count trace monitor\n   \
         1 80.00% 80.00%       4 300009 Ljava/lang/Object; (Java)\n\
         MONITOR TIME END\n",
        3,
    );
    check(
        "MONITOR DUMP BEGIN\n    MONITOR LA; unowned\n\twaiting to enter: thread 200001, \
         <unknown thread>\n\twaiting to be notified:\nMONITOR DUMP END\n",
        3,
    );
    check(
        "NATIVE BEGIN (interval = 65536 bytes) now\n          \
         percent          live          alloc'ed  stack library\n \
         rank   self  accum     bytes objs     bytes  objs trace name\n    \
         1 60.00% 60.00%     65536    2    131072     4 300009 libz.so.1\n\
         NATIVE END\n",
        3,
    );
    check("CPU TIME (ms) BEGIN (total = -5) now\n", 1);
    check(
        "CLASS ESTIMATES BEGIN (interval = 524288 bytes, time = 1500 ms) now\n\
         rank   live bytes (95 % interval)  alloc'ed bytes (95 % interval)  bytes/s class\n   \
         1    1048576 (9000..2000000)    2097152 (12..13)   1398101 a.B$C\n\
         CLASS ESTIMATES END\n",
        3,
    );
    check(
        "JNI REFERENCES BEGIN (global = 7, weak = 2) now\n\
         rank   kind remaining   created   deleted   cleared     bytes oldest (ms) thread trace class\n   \
         1 global         7        10         3         0       112         900 200001 300007 a.B$C\n   \
         2   weak         2         2         0         1        24          80      0     0 byte[]\n\
         JNI REFERENCES END\n",
        4,
    );
    check(
        "ALLOCATION STACKS BEGIN (samples = 90) now\n\
         rank  share of the site (95 % interval) samples   objects     bytes   site  trace class\n   \
         1  75.00% (66.25%..82.25%)      67     30000    720000 300004 300009 a.B$C\n   \
         1  25.00% (17.75%..33.75%)      23     10000    240000 300004      0 a.B$C\n\
         ALLOCATION STACKS END\n",
        4,
    );
    check("NOTE: 5 lost: samples without a stack\n", 1);
    check(
        "count callee caller time\n2 <unknown callee> <unknown caller> -1\n",
        2,
    );
}

#[test]
fn a_root_outside_a_heap_dump_is_a_finding() {
    let (records, findings) = read("ROOT 50000001 (kind=<unknown>)\nTHREAD END (id = 7)\n");
    assert_eq!(records, [TextRecord::ThreadEnd { thread: 7 }]);
    assert_eq!(findings.len(), 1, "{findings:?}");
}

#[test]
fn a_file_cut_inside_the_prelude_says_so() {
    let (records, findings) = read("JAVA PROFILE 1.0.1, created now\n\nCopyright\nTHREAD START\n");
    assert_eq!(records.len(), 2);
    assert_eq!(
        records[1],
        TextRecord::Prelude(b"Copyright\nTHREAD START\n")
    );
    assert_eq!(findings.len(), 1);
}

#[test]
fn a_header_without_prelude_loses_no_record() {
    let (records, _) = read("JAVA PROFILE 1.0.1, created now\n\nTRACE 1:\n\tA.b(A.java:1)\n");
    assert!(matches!(&records[2], TextRecord::Trace(trace) if trace.frames.len() == 1));
}

#[test]
fn the_prelude_of_another_profile_or_a_late_line_of_dashes_hides_no_record() {
    let header = "JAVA PROFILE 1.0.1, created now\n\n";
    let traces = |text: &str| {
        let records = read(text).0.into_iter();
        records
            .filter(|record| matches!(record, TextRecord::Trace(_)))
            .count()
    };
    let one = format!("{header}TRACE 1:\n\tA.b(A.java:1)\n");
    let other = format!("{header}Copyright\n--------\n\nTRACE 2:\n\tA.b(A.java:1)\n");
    assert_eq!(traces(&format!("{one}{other}{one}")), 3);
    let many = "TRACE 1:\n\tA.b(A.java:1)\n".repeat(1000);
    assert_eq!(traces(&format!("{header}{many}--------\n")), 1000);
}

#[test]
fn a_name_of_several_lines_ends_at_its_group() {
    let start =
        "THREAD START (obj=1, id = 2, name=\"a\")\nb\", gro\")\nup=\"x\")\n\", group=\"g\")\n";
    let (records, findings) = read(start);
    assert_eq!(findings, Vec::<String>::new());
    let [TextRecord::ThreadStart(start)] = &records[..] else {
        panic!("{records:?}");
    };
    let parts = [start.name, start.group].map(String::from_utf8_lossy);
    assert_eq!(parts, ["a\")\nb\", gro\")\nup=\"x\")\n", "g"]);
}

#[test]
fn text_and_binary_are_distinguished() {
    assert!(is_text(b"JAVA PROFILE 1.0.1, created Sat"));
    assert!(!is_text(b"JAVA PROFILE 1.0.1\0\0\0\0\x04"));
    assert!(is_text(b"count callee caller time\n"));
    assert!(!is_text(b""));
    assert!(!is_text(b"\x1f\x8b"));
}

#[test]
fn no_input_panics() {
    let text = b"THREAD START (obj=\nTRACE 99999999999:\n\tx\nSITES BEGIN (ordered by live bytes) \
        x\n 1 2 3\nHEAP DUMP BEGIN (1 objects, 1 bytes) x\nARR 1 (sz=1, trace=1, nelems=1, elem \
        type=@)\n\t[1]\t\tzz\nMONITOR DUMP BEGIN\n    MONITOR \n\twaiting to enter: x\n";
    for from in 0..text.len() {
        for to in from..text.len() {
            TextReader::new(&text[from..to]).for_each(drop);
        }
    }
}
