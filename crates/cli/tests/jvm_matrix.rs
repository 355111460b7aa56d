//! The measured layout against the JVM's own histogram, over JDKs and heap layouts. By default the
//! newest JDK with two layouts; `./x matrix` (`TENURE_MATRIX=all`) takes every JDK and every row.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value as Json;
use testkit::corpus::workspace;
use testkit::jvm::{FreshDump, Jdk, NO_JDK, is_matrix, jdks, matrix, newest_compiler};
use testkit::run::{Limits, run};

/// One way to lay out a heap.
struct Row {
    name: &'static str,
    flags: &'static [&'static str],
    since: u32,
    until: u32,
}

const ROWS: &[Row] = &[
    Row {
        name: "serial",
        flags: &["-XX:+UseSerialGC"],
        since: 8,
        until: 99,
    },
    Row {
        name: "no compressed oops",
        flags: &["-XX:+UseSerialGC", "-XX:-UseCompressedOops"],
        since: 8,
        until: 99,
    },
    Row {
        name: "no compressed oops, no compressed class pointers",
        flags: &[
            "-XX:+UseSerialGC",
            "-XX:-UseCompressedOops",
            "-XX:-UseCompressedClassPointers",
        ],
        since: 8,
        until: 25,
    },
    Row {
        name: "no compressed class pointers",
        flags: &["-XX:+UseSerialGC", "-XX:-UseCompressedClassPointers"],
        since: 8,
        until: 25,
    },
    Row {
        name: "16-byte alignment",
        flags: &["-XX:+UseSerialGC", "-XX:ObjectAlignmentInBytes=16"],
        since: 8,
        until: 99,
    },
    Row {
        name: "compact object headers",
        flags: &["-XX:+UseSerialGC", "-XX:+UseCompactObjectHeaders"],
        since: 25,
        until: 99,
    },
    Row {
        name: "compact object headers, no compressed oops",
        flags: &[
            "-XX:+UseSerialGC",
            "-XX:+UseCompactObjectHeaders",
            "-XX:-UseCompressedOops",
        ],
        since: 25,
        until: 99,
    },
    Row {
        name: "compact object headers, ZGC",
        flags: &["-XX:+UseZGC", "-XX:+UseCompactObjectHeaders"],
        since: 25,
        until: 99,
    },
    Row {
        name: "CMS",
        flags: &["-XX:+UseConcMarkSweepGC"],
        since: 8,
        until: 13,
    },
    Row {
        name: "Epsilon",
        flags: &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"],
        since: 11,
        until: 99,
    },
    Row {
        name: "G1, 16-byte alignment",
        flags: &["-XX:+UseG1GC", "-XX:ObjectAlignmentInBytes=16"],
        since: 8,
        until: 99,
    },
    Row {
        name: "generational ZGC",
        flags: &["-XX:+UseZGC", "-XX:+ZGenerational"],
        since: 21,
        until: 23,
    },
    Row {
        name: "Shenandoah, no compressed oops",
        flags: &["-XX:+UseShenandoahGC", "-XX:-UseCompressedOops"],
        since: 17,
        until: 99,
    },
    Row {
        name: "G1",
        flags: &["-XX:+UseG1GC"],
        since: 8,
        until: 99,
    },
    Row {
        name: "parallel",
        flags: &["-XX:+UseParallelGC"],
        since: 8,
        until: 99,
    },
    Row {
        name: "ZGC",
        flags: &["-XX:+UseZGC"],
        since: 17,
        until: 99,
    },
    Row {
        name: "Shenandoah",
        flags: &["-XX:+UseShenandoahGC"],
        since: 17,
        until: 99,
    },
];

/// The rows of the default run: one with and one without compressed references.
const DEFAULT: [usize; 2] = [0, 1];

/// Shallow bytes by class name as `tenure histogram` prints them; the name is the JVM's spelling.
fn measured(dump: &Path) -> BTreeMap<String, (u64, u64)> {
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure"));
    let file = dump.to_string_lossy();
    let ran = run(
        binary,
        &["histogram", &file, "--json", "--all"],
        Limits::HOSTILE_INPUT,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).expect("JSON");
    let mut rows = BTreeMap::new();
    for row in json["rows"].as_array().expect("rows") {
        let class = row["class"].as_str().expect("class").to_owned();
        let sum: &mut (u64, u64) = rows.entry(class).or_default();
        sum.0 += row["objects"].as_u64().expect("objects");
        sum.1 += row["shallow"].as_u64().expect("shallow");
    }
    rows
}

/// The JVM's `[[Ljava.lang.String;` as `java.lang.String[][]`.
fn readable(jvm: &str) -> String {
    let base = jvm.trim_start_matches('[');
    let dimensions = jvm.len() - base.len();
    if dimensions == 0 {
        return jvm.to_owned();
    }
    let primitive = [
        "Zboolean", "Bbyte", "Cchar", "Sshort", "Iint", "Jlong", "Ffloat", "Ddouble",
    ];
    let element = match primitive.iter().find(|p| p[..1] == *base) {
        Some(p) => &p[1..],
        None => base.trim_start_matches('L').trim_end_matches(';'),
    };
    format!("{element}{}", "[]".repeat(dimensions))
}

/// What was compared with the JVM's histogram.
#[derive(Default)]
struct Compared {
    layouts: u64,
    classes: u64,
    objects: u64,
    /// Difference of the class that differs most, in hundredths of a percent.
    most: u64,
    /// Classes that differ, or overlap, and how.
    wrong: Vec<String>,
}

impl Compared {
    fn add(&mut self, other: Compared) {
        self.layouts += other.layouts;
        self.classes += other.classes;
        self.objects += other.objects;
        self.most = self.most.max(other.most);
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} layouts | {} classes | {} objects | {}.{:02} % at most",
            self.layouts,
            self.classes,
            self.objects,
            self.most / 100,
            self.most % 100
        )
    }
}

/// Compares every class whose count is the same in dump and histogram (both were taken of a running
/// JVM): each class, also one with a single object, and the sum of all, within half a percent.
fn compare(dump: &FreshDump) -> Compared {
    let ours = measured(&dump.path);
    let mut compared = Compared {
        layouts: 1,
        ..Compared::default()
    };
    let wrong = &mut compared.wrong;
    let mut sum = (0, 0, 0);
    for row in &dump.histogram {
        let class = readable(&row.class);
        // A class object's size has its static fields and vtables in it; no dump says that.
        let same = ours
            .get(&class)
            .filter(|(objects, _)| *objects == row.instances);
        let (Some((objects, bytes)), true) = (same, class != "java.lang.Class") else {
            continue;
        };
        sum = (sum.0 + objects, sum.1 + bytes, sum.2 + row.bytes);
        compared.classes += 1;
        let difference = bytes.abs_diff(row.bytes) * 10_000;
        compared.most = compared.most.max(difference.div_ceil(row.bytes.max(1)));
        if differ(*bytes, row.bytes) {
            wrong.push(format!(
                "{class}: {objects} objects, {bytes} bytes, the JVM says {}",
                row.bytes
            ));
        }
    }
    assert!(sum.0 > 5_000, "only {} objects were compared", sum.0);
    if differ(sum.1, sum.2) {
        wrong.push(format!(
            "all {} objects: {} bytes, the JVM says {}",
            sum.0, sum.1, sum.2
        ));
    }
    compared.objects = sum.0;
    compared
}

/// Objects that would reach into the next one by address, class objects among them.
fn overlapping(dump: &Path) -> Json {
    let question = "select class, kind, shallow, next - address, count(*) from (select class, kind, \
                    shallow, address, lead(address) over (order by address) as next from objects) \
                    where address + shallow > next group by 1, 2, 3, 4";
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure"));
    let file = dump.to_string_lossy();
    let args = ["query", &*file, question, "--json"];
    let ran = run(binary, &args, Limits::HOSTILE_INPUT);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Json = serde_json::from_str(&ran.stdout).expect("JSON");
    json["rows"].clone()
}

/// By more than half a percent.
fn differ(ours: u64, jvms: u64) -> bool {
    ours.abs_diff(jvms) * 200 > jvms
}

fn check(jdk: &Jdk, row: &Row) -> Result<Compared, String> {
    let flags: Vec<&str> = ["-Xmx64m"].iter().chain(row.flags).copied().collect();
    let dump = jdk.dump(
        &workspace().join("crates/cli/tests/Shapes.java"),
        &flags,
        &[],
    )?;
    let mut compared = compare(&dump);
    for row in overlapping(&dump.path).as_array().expect("rows") {
        compared.wrong.push(format!(
            "overlaps (class, kind, bytes, bytes to the next one, objects): {row}"
        ));
    }
    match compared.wrong[..] {
        [] => Ok(compared),
        ref wrong => Err(wrong.join("\n  ")),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the matrix says what it ran on")]
fn measured_sizes_are_the_jvms_own_on_every_jdk_and_layout() {
    let all = is_matrix();
    let mut found = if all { matrix() } else { jdks() };
    if found.is_empty() || newest_compiler().is_none() {
        return testkit::skip("the JVM matrix", testkit::Need::Jdk, NO_JDK);
    }
    if !all {
        found.drain(..found.len() - 1);
    }
    let mut failed = Vec::new();
    for jdk in &found {
        let mut all_layouts = Compared::default();
        for (i, row) in ROWS.iter().enumerate() {
            let fits = (row.since..=row.until).contains(&jdk.version);
            if !fits || !(all || DEFAULT.contains(&i)) {
                continue;
            }
            let name = format!("JDK {} {} ({})", jdk.full_version, jdk.vendor, row.name);
            match check(jdk, row) {
                Ok(compared) => {
                    println!("ok      {name}");
                    all_layouts.add(compared);
                }
                // A runtime may be built without a collector or a 64-bit heap.
                Err(e) if e.contains("not supported") || e.contains("Unrecognized VM option") => {
                    println!("absent  {name}");
                }
                Err(e) => {
                    println!("FAILED  {name}");
                    failed.push(format!("{name}:\n  {e}"));
                }
            }
        }
        println!("JDK {} | {all_layouts}", jdk.full_version);
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[test]
fn the_jvms_names_become_readable() {
    for (jvm, want) in [
        ("[B", "byte[]"),
        ("[[I", "int[][]"),
        ("[Ljava.lang.String;", "java.lang.String[]"),
        ("Lever", "Lever"),
    ] {
        assert_eq!(readable(jvm), want);
    }
}
