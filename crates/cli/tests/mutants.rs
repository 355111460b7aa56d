//! Every damage of `mutate_hprof.py`, through the real binary, with limits of time and memory:
//! never a panic or a signal, the right exit code, and the undamaged rest answered.
//!
//! Exit codes: 0 nothing wrong, 3 nothing to be read, 4 answered from a damaged file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value as Json;
use testkit::census::{Census, census};
use testkit::corpus::{unpacked, workspace};
use testkit::mutants::{Mutant, NO_MUTANTS, mutants};
use testkit::run::{Limits, Ran, run};

/// A good dump, and what Tenure says of it.
struct Good {
    bytes: Vec<u8>,
    histogram: Rows,
}

/// Objects and bytes by class name; classes of one name are added up.
type Rows = BTreeMap<String, (u64, u64)>;

/// What a mutant must answer, from the script's `must` column.
#[derive(Clone, Copy, Debug)]
struct Must {
    codes: &'static [i32],
    histogram: Compare,
}

/// How the histogram compares with the good file's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    /// Not at all.
    Free,
    /// Every row the same.
    Same,
    /// Every row the same but `byte[]`: a valid Android array was added.
    SameButBytes,
    /// As many objects as whole sub-records before the cut.
    Census,
}

fn must(mutant: &Mutant) -> Must {
    use Compare::{Census, Free, Same, SameButBytes};
    let kind = mutant.kind.as_str();
    let (codes, histogram): (&[i32], Compare) = match mutant.must.as_str() {
        "error" => (&[3], Free),
        "error naming the id size" | "error or partial" => (&[3, 4], Free),
        "error or accept by version rule" | "no crash, no hang" => (&[0, 3, 4], Free),
        "partial + warning" if kind.starts_with("gzip") => (&[4], Free),
        "partial + warning" => (&[4], Census),
        "resync at next top record" | "bounded, warning" | "stop, warning" => (&[4], Free),
        "warning" if kind == "junk-tail" => (&[4], Same),
        // With several segments this takes all but the first away.
        "read" if kind == "no-end" => (&[0, 4], Census),
        "warning, no endless loop" => (&[4], Same),
        "warning" => (&[4], Free),
        "same answer as the good file" | "same answer" | "must read both" => (&[0], Same),
        "same counts" | "skip" | "ignore, count" | "linear" => (&[0, 4], Same),
        "read; same objects as the good file" if kind == "sub-tag-c3-valid" => {
            (&[0, 4], SameButBytes)
        }
        "read; same objects as the good file" => (&[0, 4], Same),
        "read" if !CHANGES_OBJECTS.contains(&kind) => (&[0, 4], Same),
        _ => (&[0, 4], Free),
    };
    Must { codes, histogram }
}

/// Kinds that a reader must "read" although another set of objects is in the file.
const CHANGES_OBJECTS: &[&str] = &["class-id-zero", "object-id-zero", "class-65535-fields"];

fn tenure(args: &[&str]) -> Ran {
    run(
        Path::new(env!("CARGO_BIN_EXE_tenure")),
        args,
        Limits::HOSTILE_INPUT,
    )
}

fn histogram(printed: &str) -> Result<Rows, String> {
    let json: Json = serde_json::from_str(printed).map_err(|e| format!("{e}: {printed:.200}"))?;
    let mut rows = BTreeMap::new();
    for row in json["rows"].as_array().ok_or("no rows")? {
        let class = row["class"].as_str().ok_or("no class")?.to_owned();
        let (objects, shallow) = (row["objects"].as_u64(), row["shallow"].as_u64());
        let sum: &mut (u64, u64) = rows.entry(class).or_default();
        sum.0 += objects.ok_or("no objects")?;
        sum.1 += shallow.ok_or("no shallow")?;
    }
    Ok(rows)
}

fn histogram_of(file: &str) -> Ran {
    tenure(&[
        "histogram",
        file,
        "--json",
        "--all",
        "--no-retained",
        "--layout",
        "plain",
    ])
}

fn objects(printed: &str) -> Result<Census, String> {
    let json: Json = serde_json::from_str(printed).map_err(|e| format!("{e}: {printed:.200}"))?;
    let n = |key: &str| {
        json["objects"][key]
            .as_u64()
            .ok_or(format!("no objects.{key}"))
    };
    Ok(Census {
        classes: n("classes")?,
        instances: n("instances")?,
        object_arrays: n("object_arrays")?,
        primitive_arrays: n("primitive_arrays")?,
    })
}

/// Everything wrong with the answers to one mutant.
fn problems(mutant: &Mutant, good: &Good) -> Vec<String> {
    let file = mutant.path.to_string_lossy();
    let bytes = std::fs::read(&mutant.path).expect("the mutant");
    // Some kinds change nothing in some dumps: a record without a body is not cut in its body.
    let must = if bytes == good.bytes {
        Must {
            codes: &[0],
            histogram: Compare::Same,
        }
    } else {
        must(mutant)
    };
    let runs = [
        ("summary", tenure(&["summary", &file, "--json"])),
        ("histogram", histogram_of(&file)),
        ("overview", tenure(&[&file])),
    ];
    // A file cut before its heap has a summary, and nothing to say of objects.
    let no_objects = must.histogram == Compare::Census && census(&bytes) == Census::default()
        || mutant.kind == "header-only";
    let mut found = Vec::new();
    for (name, ran) in &runs {
        let codes = if no_objects && *name != "summary" {
            &[3]
        } else {
            must.codes
        };
        if ran.crashed() {
            let last: String = ran
                .stderr
                .lines()
                .rev()
                .take(3)
                .collect::<Vec<_>>()
                .join(" | ");
            found.push(format!(
                "{name}: crashed, signal {:?}, hung {}: {last}",
                ran.signal, ran.timed_out
            ));
        } else if !ran.code.is_some_and(|c| codes.contains(&c)) {
            found.push(format!(
                "{name}: exit {:?}, must be one of {codes:?}",
                ran.code
            ));
        } else if ran.code == Some(3) && ran.stderr.trim().is_empty() {
            found.push(format!("{name}: exit 3 without a word"));
        }
    }
    if found.is_empty() && runs[1].1.code != Some(3) {
        found.extend(redacted(mutant));
    }
    if found.is_empty() && must.histogram != Compare::Free {
        let printed = (&*runs[0].1.stdout, &*runs[1].1.stdout);
        found.extend(compare(must.histogram, &good.histogram, &bytes, printed).err());
    }
    let emit = |p| {
        format!(
            "{} ({}; must: {}): {p}",
            mutant.kind, mutant.what, mutant.must
        )
    };
    found.into_iter().map(emit).collect()
}

/// What is wrong with the redaction of a mutant that can be read.
fn redacted(mutant: &Mutant) -> Option<String> {
    let out = mutant.path.with_extension("redacted");
    let (from, to) = (mutant.path.to_string_lossy(), out.to_string_lossy());
    let ran = tenure(&["redact", "-q", &from, &to]);
    let _ = std::fs::remove_file(&out);
    let well = !ran.crashed() && matches!(ran.code, Some(0 | 4));
    (!well).then(|| format!("redact: {:?} {}", ran.code, ran.stderr))
}

/// Compares what `summary` and `histogram` said.
fn compare(
    how: Compare,
    good: &Rows,
    bytes: &[u8],
    (summary, rows): (&str, &str),
) -> Result<(), String> {
    if how == Compare::Census {
        let (have, want) = (objects(summary)?, census(bytes));
        return if have == want {
            Ok(())
        } else {
            Err(format!("{have:?}, before the cut are {want:?}"))
        };
    }
    let mut have = histogram(rows)?;
    if how == Compare::SameButBytes {
        have.insert(
            "byte[]".into(),
            good.get("byte[]").copied().unwrap_or_default(),
        );
    }
    let differs = |class: &&String| have.get(*class) != good.get(*class);
    match good.keys().chain(have.keys()).find(differs) {
        None => Ok(()),
        Some(class) => Err(format!(
            "{class}: {:?}, in the good file {:?}",
            have.get(class),
            good.get(class)
        )),
    }
}

fn check(base: &Path, random: u32, seed: u32) {
    let Some(all) = mutants(base, random, seed) else {
        return testkit::skip("mutants", testkit::Need::Shared, NO_MUTANTS);
    };
    let printed = histogram_of(&base.to_string_lossy());
    assert_eq!(printed.code, Some(0), "the good file: {}", printed.stderr);
    let good = Good {
        bytes: std::fs::read(base).expect("the good file"),
        histogram: histogram(&printed.stdout).expect("the good file's histogram"),
    };
    assert!(good.histogram.len() > 3, "{:?}", good.histogram);
    let todo = Mutex::new(all.all.iter());
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().expect("no panic while locked").next();
                    let Some(mutant) = next else { break };
                    let problems = problems(mutant, &good);
                    found
                        .lock()
                        .expect("no panic while locked")
                        .extend(problems);
                    // Hundreds of megabytes otherwise wait for the end of the test.
                    let _ = std::fs::remove_file(&mutant.path);
                }
            });
        }
    });
    let found = found.into_inner().expect("no panic while locked");
    assert!(
        found.is_empty(),
        "{} problems\n{}\n",
        found.len(),
        found.join("\n")
    );
}

/// A heap of some thousand objects with threads, stacks, arrays of every type and statics.
fn small_dump(folder: &Path, id_size: testkit::dump::IdSize) -> PathBuf {
    use testkit::dump::{Elements, FrameSpec, Heap, Root, Type, Value};
    let mut h = Heap::new(id_size);
    let object = h.java_lang_object();
    let node = h.class(
        "shop.Node",
        object,
        &[("next", Type::Object), ("weight", Type::Long)],
    );
    let leaf = h.class(
        "shop.Leaf",
        node,
        &[("payload", Type::Object), ("used", Type::Boolean)],
    );
    let array_class = h.object_array_class();
    let mut last = 0;
    for i in 0..1500 {
        let payload = match i % 3 {
            0 => h.string(&format!("payload {}", i % 40)),
            1 => h.object_array(array_class, &[last, 0, object]),
            _ => h.primitive_array(Elements::zeros(Type::PRIMITIVES[i % 8], i % 50)),
        };
        let fields = [Value::Object(payload), Value::Boolean(i % 2 == 0)];
        let inherited = [Value::Object(last), Value::Long(i as i64)];
        last = h.instance(leaf, &[fields, inherited].concat());
    }
    h.set_static(node, "head", Value::Object(last));
    for class in [object, node, leaf] {
        h.root(Root::StickyClass, class);
    }
    for name in ["main", "worker"] {
        let frame = FrameSpec {
            class: leaf,
            method: "run",
            source: "Leaf.java",
            line: 7,
        };
        let (thread, _) = h.thread(name, &[frame, frame]);
        let local = h.primitive_array(Elements::zeros(Type::Byte, 1000));
        h.root(Root::JavaFrame { thread, frame: 0 }, local);
        h.root(Root::JniLocal { thread, frame: 1 }, local);
    }
    h.root(Root::JniGlobal { reference: 0x99 }, leaf);
    let path = folder.join("small.hprof");
    std::fs::write(&path, h.bytes()).expect("writing it");
    path
}

#[test]
fn no_damage_of_a_small_dump_with_8_byte_ids_goes_wrong() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    check(
        &small_dump(folder.path(), testkit::dump::IdSize::Eight),
        200,
        1,
    );
}

#[test]
fn no_damage_of_a_small_dump_with_4_byte_ids_goes_wrong() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    check(
        &small_dump(folder.path(), testkit::dump::IdSize::Four),
        100,
        2,
    );
}

#[test]
fn no_damage_of_a_dump_by_a_jvm_goes_wrong() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = folder.path().join("leak.hprof");
    let packed = workspace().join("demo/leak-small.hprof.gz");
    std::fs::write(&base, unpacked(&packed)).expect("writing it");
    check(&base, 60, 1);
}
