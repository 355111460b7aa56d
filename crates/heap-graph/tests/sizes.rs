//! Measured sizes against the JVM's own class histogram of the same moment.

use heap_graph::{ClassIdx, Control, Heap, ObjIdx, Options, quick_histogram};
use std::collections::HashMap;

/// The JVM's name for a class in its histogram, as our names have it.
fn readable(name: &str) -> String {
    let name = hprof::readable_class_name(name);
    // `X/0x000…` in the histogram is `X+0x000…` in the dump; JDK 8 writes `X$$Lambda$1/123`.
    match name.split_once('/') {
        Some((head, _)) => head.to_owned(),
        None => name,
    }
}

/// Number and bytes of the objects of each class name.
fn shallow_of_classes(heap: &Heap) -> HashMap<String, (u64, u64)> {
    let columns = heap.columns();
    let mut by_class = vec![(0, 0); heap.classes().len()];
    for object in (0..heap.len()).map(ObjIdx) {
        let sum: &mut (u64, u64) = &mut by_class[columns.class_of(object).0 as usize];
        sum.0 += 1;
        sum.1 += columns.shallow(object).0;
    }
    let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
    for (class, sum) in (0..).map(ClassIdx).zip(by_class) {
        let all = sums.entry(heap.class(class).name.clone()).or_default();
        *all = (all.0 + sum.0, all.1 + sum.1);
    }
    sums
}

#[test]
fn measured_sizes_are_within_half_a_percent_of_the_jvms_histogram() {
    let Some(dumps) = testkit::corpus::corpus() else {
        return testkit::skip(
            "sizes of the corpus",
            testkit::Need::Shared,
            "no ../shared/corpus",
        );
    };
    let (mut checked, mut wrong) = (0, Vec::new());
    let quiet = Options {
        no_index: true,
        ..Options::default()
    };
    for dump in dumps {
        let Some(rows) = &dump.histogram else {
            continue;
        };
        let ours = quick_histogram(&dump.path, &Options::default(), &Control::quiet())
            .unwrap_or_else(|e| panic!("{}: {e}", dump.name));
        if ours.walked < 64 << 20 {
            let alone = Options {
                threads: 1,
                ..Options::default()
            };
            let alone = quick_histogram(&dump.path, &alone, &Control::quiet()).expect("as before");
            assert_eq!(ours.summary.layout, alone.summary.layout, "{}", dump.name);
        }
        let mut jvm: HashMap<String, (u64, u64)> = HashMap::new();
        for row in rows {
            let sum = jvm.entry(readable(&row.class)).or_default();
            sum.0 += row.instances;
            sum.1 += row.bytes;
        }
        let mut sizes: HashMap<&str, (u64, u64)> = HashMap::new();
        for row in &ours.rows {
            let sum = sizes.entry(row.name.as_str()).or_default();
            sum.0 += row.objects;
            sum.1 += row.shallow.0;
        }
        // Dump and histogram are moments apart: classes whose population did not change between
        // them can be compared, and those are nearly all.
        let same: Vec<_> = jvm
            .iter()
            .filter_map(|(name, want)| Some((want, sizes.get(name.as_str())?)))
            .filter(|(want, got)| want.0 == got.0)
            .collect();
        assert!(
            same.len() * 10 > jvm.len() * 8,
            "{}: {} of {}",
            dump.name,
            same.len(),
            jvm.len()
        );
        // Each class with enough objects on its own, too; contended fields of one or two objects are not measured. Arrays
        // can be replaced by larger ones between dump and histogram.
        if ours.walked < 64 << 20 {
            let heap = Heap::open(&dump.path, &quiet, &Control::quiet()).expect("as before");
            for (name, (objects, bytes)) in shallow_of_classes(&heap) {
                let want = jvm
                    .get(name.as_str())
                    .filter(|w| w.0 == objects && objects >= 3 && !name.ends_with("[]"));
                let off = want.map_or(0.0, |w| (bytes as f64 / w.1 as f64 - 1.0).abs());
                // The quick histogram has no table of all objects, but measures alike.
                let quick = sizes.get(name.as_str());
                if off > 0.005 || objects >= 3 && quick != Some(&(objects, bytes)) {
                    wrong.push(format!(
                        "{}: {name} {bytes}, {quick:?}, {want:?}",
                        dump.name
                    ));
                }
            }
        }
        let want: u64 = same.iter().map(|(w, _)| w.1).sum();
        let got: u64 = same.iter().map(|(_, g)| g.1).sum();
        let off = (got as f64 - want as f64) / want as f64 * 100.0;
        assert!(
            off.abs() < 0.5,
            "{}: {off:+.3} % over {} classes",
            dump.name,
            same.len()
        );
        checked += 1;
    }
    assert!(checked > 15, "only {checked} histograms were there");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Header, array header, reference width and alignment of a small heap that a fresh JVM writes
/// with these flags, and how sure that is.
fn layout_of(jdk: &testkit::jvm::Jdk, flags: &[&str]) -> (u32, u32, u32, u32, f64) {
    let source = testkit::corpus::workspace().join("crates/cli/tests/Shapes.java");
    let dump = jdk.dump(&source, flags, &[]).expect("a dump");
    let found = quick_histogram(&dump.path, &Options::default(), &Control::quiet()).expect("rows");
    let l = found.summary.layout;
    (
        l.header,
        l.array_header,
        l.reference,
        l.alignment,
        l.confidence,
    )
}

/// Flags of a JVM, and header, array header, reference width and alignment under them.
type Case = (Vec<&'static str>, (u32, u32, u32, u32));

#[test]
fn the_layout_of_fresh_jvms_is_solved_for_every_header_and_reference_width() {
    let jdks = testkit::jvm::tested();
    if jdks.is_empty() || testkit::jvm::newest_compiler().is_none() {
        let reason = testkit::jvm::NO_JDK;
        return testkit::skip("layouts of fresh JVMs", testkit::Need::Jdk, reason);
    }
    // From 27 on compact headers are the default.
    for jdk in jdks.iter().filter(|jdk| jdk.version < 27) {
        let mut cases: Vec<Case> = vec![
            (vec!["-XX:+UseSerialGC"], (12, 16, 4, 8)),
            (vec!["-XX:ObjectAlignmentInBytes=16"], (12, 16, 4, 16)),
        ];
        if jdk.version >= 17 {
            cases.push((vec!["-XX:-UseCompressedOops"], (12, 16, 8, 8)));
        }
        if jdk.version >= 25 {
            cases.push((vec!["-XX:+UseCompactObjectHeaders"], (8, 12, 4, 8)));
            cases.push((
                vec!["-XX:+UseCompactObjectHeaders", "-XX:-UseCompressedOops"],
                (8, 12, 8, 8),
            ));
        }
        for (flags, want) in cases {
            let got = layout_of(jdk, &flags);
            let version = jdk.version;
            assert_eq!(
                (got.0, got.1, got.2, got.3),
                want,
                "JDK {version} {flags:?}"
            );
            let sure = got.4;
            assert!(sure > 0.6, "JDK {version} {flags:?}: confidence {sure}");
        }
    }
}
