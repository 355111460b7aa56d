//! Flame graphs: of heap dumps, against the histogram and the dominator tree; and the page in a browser.

use crate::ran::tenure;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use testkit::browser::Browser;

const RECURSIVE: &str = "\
TRACE 1:
\ta.Leaf.work(Leaf.java:1)
\ta.Tree.walk(Tree.java:2)
\ta.Tree.walk(Tree.java:2)
\ta.Tree.walk(Tree.java:2)
\tb.Main.main(Main.java:3)
TRACE 2:
\ta.Leaf.work(Leaf.java:1)
\tb.Other.run(Other.java:2)
\tb.Main.main(Main.java:3)
TRACE 3:
\tb.Other.run(Other.java:5)
\tb.Main.main(Main.java:3)
CPU SAMPLES BEGIN (total = 100) Sat Nov 21 04:57:27 2026
   1 50.00% 50.00%      50 1 a.Leaf.work
   2 30.00% 80.00%      30 2 a.Leaf.work
   3 20.00% 100.00%     20 3 b.Other.run
CPU SAMPLES END
";

const BASE: &str = "\
TRACE 1:
\ta.Leaf.work(Leaf.java:1)
\tb.Other.run(Other.java:2)
\tb.Main.main(Main.java:3)
TRACE 2:
\tb.Gone.run(Gone.java:5)
\tb.Main.main(Main.java:3)
CPU SAMPLES BEGIN (total = 50) Sat Nov 21 04:57:27 2026
   1 60.00% 60.00%      30 1 a.Leaf.work
   2 40.00% 100.00%     20 2 b.Gone.run
CPU SAMPLES END
";

/// What a command writes to standard output; it must succeed.
fn written(folder: &Path, arguments: &[&str]) -> String {
    let ran = tenure(folder, arguments);
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {printed}");
    String::from_utf8(ran.stdout).expect("text")
}

fn answer(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&written(folder, arguments)).expect("JSON")
}

fn dump(folder: &Path) {
    let packed = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    let bytes = testkit::corpus::unpacked(&packed);
    std::fs::write(folder.join("leak.hprof"), bytes).expect("written");
}

/// The lines of collapsed stacks.
fn stacks(text: &str) -> Vec<(Vec<&str>, u64)> {
    text.lines()
        .map(|line| {
            let (path, value) = line.rsplit_once(' ').expect(line);
            (path.split(';').collect(), value.parse().expect(line))
        })
        .collect()
}

/// The class of a frame: `java.lang.Class` for `class X`, a thread without its name.
fn class_of(frame: &str) -> &str {
    match frame.strip_prefix("class ") {
        Some(_) => "java.lang.Class",
        None => frame.split(" \"").next().expect("a part"),
    }
}

#[test]
fn the_stacks_of_a_dump_add_up_to_its_histogram_and_dominators() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    dump(folder);
    let histogram = answer(folder, &["histogram", "leak.hprof", "--json"]);
    let rows = histogram["rows"].as_array().expect("rows");
    let total = histogram["heap_shallow"].as_u64().expect("a total");
    let collapsed = |metric: &str, more: &[&str]| {
        let arguments = [
            "convert",
            "leak.hprof",
            "-o",
            "-",
            "--to",
            "collapsed",
            "--metric",
        ];
        written(folder, &[&arguments[..], &[metric], more].concat())
    };

    // Shallow: each class of the histogram, below its package.
    let text = collapsed("shallow_space", &[]);
    let mut got: BTreeMap<&str, u64> = BTreeMap::new();
    for (path, bytes) in stacks(&text) {
        assert_eq!(path.len(), 2, "{path:?}");
        *got.entry(path[1]).or_default() += bytes;
    }
    let mut want: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        *want
            .entry(row["class"].as_str().expect("a class"))
            .or_default() += row["shallow"].as_u64().expect("a size");
    }
    want.retain(|_, bytes| *bytes > 0);
    assert_eq!(got, want);
    let everything = answer(
        folder,
        &["histogram", "leak.hprof", "--json", "--unreachable"],
    );
    let text = collapsed("shallow_space", &["--unreachable"]);
    let sum: u64 = stacks(&text).iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(Some(sum), everything["total"]["shallow"].as_u64());
    assert!(sum > total);

    // Retained: the sum is the heap, and what is below the frames of a class is what the class retains, folded paths
    // aside.
    let text = collapsed("retained_space", &[]);
    let paths = stacks(&text);
    assert_eq!(paths.iter().map(|(_, bytes)| bytes).sum::<u64>(), total);
    let mut retained: BTreeMap<&str, u64> = BTreeMap::new();
    let mut tops: BTreeMap<&str, u64> = BTreeMap::new();
    let mut folded = 0;
    for (path, bytes) in &paths {
        for class in path
            .iter()
            .map(|frame| class_of(frame))
            .collect::<BTreeSet<_>>()
        {
            *retained.entry(class).or_default() += bytes;
        }
        *tops.entry(class_of(path[0])).or_default() += bytes;
        if path.last().is_some_and(|name| name.starts_with('(')) {
            folded += bytes;
        }
    }
    assert!(folded < total / 10, "{folded} of {total}");
    // A name may be that of several classes, which retain one another.
    let mut real: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let class = real
            .entry(row["class"].as_str().expect("a class"))
            .or_default();
        class.0 += row["retained"].as_u64().expect("a size");
        class.1 += 1;
    }
    for (class, (real, classes)) in real {
        let shown = retained.get(class).copied().unwrap_or(0);
        assert!(
            shown <= real && (real <= shown + folded || classes > 1),
            "{class}: {shown} shown, {real} retained, {folded} folded"
        );
    }
    let session = retained.get("shop.Session").copied().unwrap_or(0);
    assert!(session > total / 2, "{session}");
    let groups = answer(
        folder,
        &["dominators", "leak.hprof", "--by", "class", "--json"],
    );
    let small = tops.get("(smaller paths)").copied().unwrap_or(0);
    for row in groups["rows"].as_array().expect("rows") {
        let class = row["class"].as_str().expect("a class");
        let real = row["retained"].as_u64().expect("a size");
        let shown = tops.get(class).copied().unwrap_or(0);
        assert!(shown == real || real <= small, "{class}: {shown}, {real}");
    }
}

#[test]
fn a_dump_becomes_every_form_but_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    dump(folder);
    for name in ["a.html", "a.pb.gz", "a.json", "a.collapsed"] {
        let ran = tenure(folder, &["convert", "leak.hprof", "-o", name]);
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(0), "{printed}");
        assert!(printed.contains("Sizes: measured layout"), "{printed}");
        assert!(printed.contains("(smaller paths)"), "{printed}");
    }
    let page = std::fs::read_to_string(folder.join("a.html")).expect("a page");
    assert!(page.contains("Retained bytes by dominator path"));
    let refused = tenure(folder, &["convert", "leak.hprof", "-o", "a.jfr"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(!folder.join("a.jfr").exists());
    let shown = tenure(folder, &["profile", "leak.hprof"]);
    assert_eq!(shown.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&shown.stderr).contains("heap dump without a profile"));
}

#[test]
fn a_profile_is_compared_with_a_base() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("now.txt"), RECURSIVE).expect("written");
    std::fs::write(folder.join("before.txt"), BASE).expect("written");
    let got = answer(
        folder,
        &["profile", "now.txt", "--base", "before.txt", "--json"],
    );
    assert_eq!(got["schema"], "tenure.profile_difference/1");
    assert_eq!(
        (&got["total"], &got["base_total"]),
        (&json!(100), &json!(50))
    );
    let rows: Vec<_> = got["methods"].as_array().expect("methods").iter().collect();
    let row = |name: &str| {
        let row = rows.iter().find(|row| row["method"] == name).expect(name);
        ["own", "base_own", "total", "base_total"].map(|key| row[key].as_u64().expect(key))
    };
    assert_eq!(row("a.Leaf.work"), [80, 30, 80, 30]);
    assert_eq!(row("a.Tree.walk"), [0, 0, 50, 0]);
    assert_eq!(row("b.Gone.run"), [0, 20, 0, 20]);
    assert_eq!(row("b.Main.main"), [0, 0, 100, 50]);
    assert_eq!(rows[0]["method"], "a.Leaf.work");
    let words = written(folder, &["profile", "now.txt", "--base", "before.txt"]);
    assert!(
        words.contains("100 in all, 50 in the base, change +50."),
        "{words}"
    );
    for output in ["a.pb.gz", "a.hprof"] {
        let arguments = ["convert", "now.txt", "--base", "before.txt", "-o", output];
        assert_eq!(
            tenure(folder, &arguments).status.code(),
            Some(2),
            "{output}"
        );
        assert!(!folder.join(output).exists());
    }
    dump(folder);
    let arguments = ["convert", "now.txt", "--base", "leak.hprof"];
    assert_eq!(tenure(folder, &arguments).status.code(), Some(2));
    let arguments = [
        "convert", "now.txt", "--base", "now.txt", "-o", "now.txt", "--force", "--to", "html",
    ];
    assert_eq!(tenure(folder, &arguments).status.code(), Some(2));
    let arguments = [
        "convert",
        "now.txt",
        "--base",
        "before.txt",
        "-o",
        "before.txt",
        "--force",
        "--to",
        "html",
    ];
    assert_eq!(tenure(folder, &arguments).status.code(), Some(2));
    assert_eq!(
        std::fs::read_to_string(folder.join("before.txt")).expect("text"),
        BASE
    );
}

/// The frames of the shown graph: depth, name and value in pre-order.
fn shown(browser: &mut Browser) -> Vec<(u64, String, u64)> {
    let all = browser
        .eval("graph.value.map((value, i) => [graph.depth[i], DATA.names[graph.name[i]], value])");
    let rows = all.as_array().expect("frames").iter();
    rows.map(|row| {
        let name = row[1].as_str().expect("a name").to_owned();
        (
            row[0].as_u64().expect("a depth"),
            name,
            row[2].as_u64().expect("a value"),
        )
    })
    .collect()
}

fn state(browser: &mut Browser) -> String {
    let text = browser.eval("document.getElementById('state').textContent");
    text.as_str().expect("text").to_owned()
}

/// Clicks into the middle of the first frame of a name.
fn click_frame(browser: &mut Browser, name: &str) {
    let at = browser.eval(&format!(
        "(() => {{ canvas.scrollIntoView(); const r = canvas.getBoundingClientRect();
         const i = graph.name.findIndex((n) => DATA.names[n] === {name:?});
         const [x, w] = box(i, canvas.clientWidth);
         return [r.x + x + w / 2, r.y + rowTop(graph.depth[i]) + ROW / 2]; }})()"
    ));
    for kind in ["mousePressed", "mouseReleased"] {
        let event =
            json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
        browser.call("Input.dispatchMouseEvent", event);
    }
}

/// Writes a page; one of its own for each, as a browser does not load an address again that it shows.
fn page(folder: &Path, name: &str, arguments: &[&str]) -> String {
    let all = [&["convert"][..], arguments, &["-o", name, "--quiet"]].concat();
    written(folder, &all);
    format!("file://{}", folder.join(name).display())
}

#[test]
fn a_browser_zooms_searches_inverts_and_folds_a_flame_graph() {
    let Some(mut browser) = Browser::start() else {
        testkit::skip(
            "the flame graph page",
            testkit::Need::Chromium,
            "no chromium",
        );
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("now.txt"), RECURSIVE).expect("written");
    browser.open(&page(folder, "a.html", &["now.txt"]));
    let rows = |rows: &[(u64, &str, u64)]| -> Vec<(u64, String, u64)> {
        rows.iter()
            .map(|(d, n, v)| (*d, (*n).to_owned(), *v))
            .collect()
    };
    let whole = rows(&[
        (1, "b.Main.main", 100),
        (2, "a.Tree.walk", 50),
        (3, "a.Tree.walk", 50),
        (4, "a.Tree.walk", 50),
        (5, "a.Leaf.work", 50),
        (2, "b.Other.run", 50),
        (3, "a.Leaf.work", 30),
    ]);
    assert_eq!(shown(&mut browser), whole);
    let legend = browser.eval("document.getElementById('legend').innerText");
    let legend = legend.as_str().expect("text");
    assert!(legend.contains("found by the search"), "{legend}");

    // A search in the whole, then in the part that is zoomed.
    browser.click("document.getElementById('search')");
    for key in ["l", "e", "a", "f"] {
        browser.press(key);
    }
    browser.wait("document.getElementById('state').textContent.includes('Found')");
    assert!(
        state(&mut browser).ends_with("Found: 2 frames, 80.00 %"),
        "{}",
        state(&mut browser)
    );
    click_frame(&mut browser, "b.Other.run");
    let found = "Found: 1 frames, 60.00 % of what is shown; 2 frames in the whole graph";
    browser.wait("zoom >= 0");
    assert!(
        state(&mut browser).ends_with(found),
        "{}",
        state(&mut browser)
    );

    // Each button changes the tree; a second click changes it back.
    browser.click("document.getElementById('invert')");
    let inverted = rows(&[
        (1, "a.Leaf.work", 80),
        (2, "a.Tree.walk", 50),
        (3, "a.Tree.walk", 50),
        (4, "a.Tree.walk", 50),
        (5, "b.Main.main", 50),
        (2, "b.Other.run", 30),
        (3, "b.Main.main", 30),
        (1, "b.Other.run", 20),
        (2, "b.Main.main", 20),
    ]);
    assert_eq!(shown(&mut browser), inverted);
    browser.click("document.getElementById('fold')");
    let both = rows(&[
        (1, "a.Leaf.work", 80),
        (2, "a.Tree.walk", 50),
        (3, "b.Main.main", 50),
        (2, "b.Other.run", 30),
        (3, "b.Main.main", 30),
        (1, "b.Other.run", 20),
        (2, "b.Main.main", 20),
    ]);
    assert_eq!(shown(&mut browser), both);
    browser.click("document.getElementById('invert')");
    assert_eq!(shown(&mut browser).len(), whole.len() - 2);
    browser.click("document.getElementById('fold')");
    assert_eq!(shown(&mut browser), whole);
    browser.click("document.getElementById('flip')");
    assert_eq!(browser.eval("rowTop(1)"), 0);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_browser_shows_the_difference_of_two_profiles_and_a_dump() {
    let Some(mut browser) = Browser::start() else {
        testkit::skip(
            "the flame graph page",
            testkit::Need::Chromium,
            "no chromium",
        );
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("now.txt"), RECURSIVE).expect("written");
    std::fs::write(folder.join("before.txt"), BASE).expect("written");
    browser.open(&page(
        folder,
        "a.html",
        &["now.txt", "--base", "before.txt"],
    ));
    let of = |browser: &mut Browser, name: &str| {
        browser.eval(&format!(
            "(() => {{ const i = graph.name.findIndex((n) => DATA.names[n] === {name:?});
             return i < 0 ? null : [graph.value[i], graph.other[i], Math.sign(change(i))]; }})()"
        ))
    };
    assert_eq!(of(&mut browser, "b.Other.run"), json!([50, 30, 1]));
    assert_eq!(of(&mut browser, "a.Tree.walk"), json!([50, 0, 1]));
    assert_eq!(of(&mut browser, "b.Gone.run"), Value::Null);
    let text = state(&mut browser);
    assert_eq!(text, "CPU samples: 100 in all; base 50, change +50");
    // With equal totals the base counts twice.
    browser.click("document.getElementById('scale')");
    assert_eq!(of(&mut browser, "b.Other.run"), json!([50, 60, -1]));
    browser.click("document.getElementById('scale')");
    browser.eval("$('side').value = '1'; $('side').onchange({ target: $('side') })");
    assert_eq!(of(&mut browser, "b.Gone.run"), json!([20, 0, -1]));
    assert_eq!(of(&mut browser, "b.Main.main"), json!([50, 100, 1]));

    dump(folder);
    browser.open(&page(folder, "b.html", &["leak.hprof"]));
    let total = answer(folder, &["histogram", "leak.hprof", "--json"])["heap_shallow"].clone();
    for metric in ["0", "1"] {
        browser.eval(&format!(
            "$('metric').value = {metric:?}; $('metric').onchange({{ target: $('metric') }})"
        ));
        let sum = "graph.value.filter((v, i) => graph.depth[i] === 1).reduce((a, b) => a + b, 0)";
        assert_eq!(browser.eval(sum), total, "metric {metric}");
    }
    assert!(
        browser
            .eval("document.getElementById('notes').innerText")
            .as_str()
            .is_some_and(|t| t.contains("Sizes: measured layout"))
    );
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    if let Some(pictures) = std::env::var_os("TENURE_SCREENSHOTS") {
        browser.look(1280, 800, false);
        browser.screenshot(&Path::new(&pictures).join("flame-dump.png"));
        browser.open(&page(
            folder,
            "c.html",
            &["now.txt", "--base", "before.txt"],
        ));
        browser.screenshot(&Path::new(&pictures).join("flame-difference.png"));
    }
}
