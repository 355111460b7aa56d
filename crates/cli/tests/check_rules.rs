//! Rules of `check` that are refused, what a refused leak suspect prints, and how many rows `--csv` prints.

use crate::ran::run;
use std::fs;
use std::process::Command;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root, Type, Value};

/// A list of items that a class holds, and `more` classes with a root each.
fn dump(items: usize, more: usize) -> Builder {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let item = heap.class("shop.Item", object, &[("data", Type::Object)]);
    let items: Vec<u64> = (0..items)
        .map(|_| {
            let data = heap.primitive_array(Elements::Byte(vec![1; 1000]));
            heap.instance(item, &[Value::Object(data)])
        })
        .collect();
    let slots = heap.object_array_class();
    let array = heap.object_array(slots, &items);
    let owner = heap.class("shop.Owner", object, &[]);
    heap.set_static(owner, "ALL", Value::Object(array));
    heap.root(Root::StickyClass, owner);
    for n in 0..more {
        let class = heap.class(&format!("shop.C{n}"), object, &[]);
        let one = heap.instance(class, &[]);
        heap.root(Root::JniGlobal { reference: 1 }, one);
    }
    heap
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, heap) in [("a.hprof", dump(20, 0)), ("b.hprof", dump(50, 60))] {
        fs::write(dir.path().join(name), heap.bytes()).expect("the dump");
    }
    dir
}

/// What is printed on standard error by a run that ends with code 2.
fn refused(folder: &std::path::Path, args: &[&str]) -> String {
    let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
    let out = tenure
        .current_dir(folder)
        .args(args)
        .output()
        .expect("tenure");
    assert_eq!(out.status.code(), Some(2), "{args:?}");
    String::from_utf8(out.stderr).expect("text")
}

#[test]
fn rules_that_check_nothing_are_refused_in_one_line() {
    let dir = folder();
    let at = dir.path();
    for (rules, fault) in [
        ("", "no rule"),
        (
            "[[rule]]\nclass = 'shop.Item'\n",
            "rule 1 (shop.Item) has no limit",
        ),
        (
            "[leaks]\nshare = 101.0\n",
            "leaks.share: 101 is no percentage",
        ),
        (
            "[[rule]]\nclass = 'shop.Item'\ncuont = 5\n",
            "rules.toml: TOML parse error at line 3, column 1: unknown field",
        ),
    ] {
        fs::write(at.join("rules.toml"), rules).expect("the rules");
        let printed = refused(at, &["check", "a.hprof", "--rules", "rules.toml"]);
        assert!(
            printed.contains(fault) && !printed.contains("\\n"),
            "{printed}"
        );
    }
}

#[test]
fn unreachable_objects_are_not_silently_left_out() {
    let dir = folder();
    fs::write(dir.path().join("rules.toml"), "[[rule]]\ncount = 5\n").expect("the rules");
    for args in [
        &["check", "a.hprof", "--rules", "rules.toml", "--unreachable"][..],
        &["diff", "a.hprof", "b.hprof", "--unreachable"],
    ] {
        let printed = refused(dir.path(), args);
        assert!(printed.contains("reachable objects only"), "{printed}");
    }
    for command in [
        "overview",
        "leaks",
        "top",
        "dominators",
        "roots",
        "loaders",
        "threads",
    ] {
        let printed = refused(dir.path(), &[command, "a.hprof", "--unreachable"]);
        let why = format!("--unreachable has no effect on {command}");
        assert!(printed.contains(&why), "{printed}");
    }
    for command in ["object", "paths"] {
        let printed = refused(dir.path(), &[command, "--unreachable", "a.hprof", "0x1"]);
        assert!(printed.contains("--unreachable has no effect"), "{printed}");
    }
    run(dir.path(), &["histogram", "a.hprof", "--unreachable"], 0);
}

#[test]
fn a_limit_adds_to_the_baseline() {
    let dir = folder();
    let at = dir.path();
    run(
        at,
        &["check", "a.hprof", "--write-baseline", "base.json"],
        0,
    );
    for (more, code) in [("+30", 0), ("+29", 1)] {
        let rules = format!("[[rule]]\nclass = 'shop.Item'\ncount = '{more}'\n");
        fs::write(at.join("rules.toml"), rules).expect("the rules");
        let base = ["--baseline", "base.json", "--rules", "rules.toml"];
        run(at, &[&["check", "b.hprof"][..], &base].concat(), code);
    }
}

/// What a rule found, by figure, in a run that ends with this code.
fn found(folder: &std::path::Path, rule: &str, code: i32) -> serde_json::Value {
    fs::write(folder.join("rules.toml"), rule).expect("the rules");
    let args = ["check", "a.hprof", "--rules", "rules.toml", "--json"];
    let answer: serde_json::Value = serde_json::from_str(&run(folder, &args, code)).expect("JSON");
    answer["checks"][0]["found"].clone()
}

#[test]
fn a_class_without_instances_retains_what_its_static_fields_hold() {
    let dir = folder();
    let owner = "[[rule]]\nclass = 'shop.Owner'\n";
    let retained = found(dir.path(), &format!("{owner}retained = '10k'\n"), 1);
    assert!(retained.as_u64() > Some(20_000), "{retained}");
    assert_eq!(found(dir.path(), &format!("{owner}count = 0\n"), 0), 0);
    assert_eq!(found(dir.path(), &format!("{owner}shallow = 0\n"), 0), 0);
}

#[test]
fn classes_of_a_pattern_retain_each_object_once() {
    let dir = folder();
    let at = dir.path();
    let retained = |class: &str| {
        let rule = format!("[[rule]]\nclass = '{class}'\nretained = '9G'\n");
        found(at, &rule, 0)
    };
    // The class object of the owner holds all items.
    assert_eq!(retained("shop.*"), retained("shop.Owner"));
    let heap = found(at, "[[rule]]\nretained = '9G'\n", 0);
    assert_eq!(retained("*"), heap);

    // Two classes with one name, as two loaders define them, of which one holds the other.
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let mut held = heap.primitive_array(Elements::Byte(vec![1; 1000]));
    for _ in 0..2 {
        let node = heap.class("shop.Node", object, &[("data", Type::Object)]);
        held = heap.instance(node, &[Value::Object(held)]);
    }
    let owner = heap.class("shop.Owner", object, &[("node", Type::Object)]);
    let owner = heap.instance(owner, &[Value::Object(held)]);
    heap.root(Root::JniGlobal { reference: 1 }, owner);
    fs::write(at.join("a.hprof"), heap.bytes()).expect("the dump");
    for class in ["shop.Node", "shop.*"] {
        let bytes = retained(class).as_u64().expect("bytes");
        assert!((1000..2000).contains(&bytes), "{class}: {bytes}");
    }
}

#[test]
fn a_baseline_has_what_the_patterns_of_its_rules_retain() {
    let dir = folder();
    let at = dir.path();
    let rules = |growth: &str| {
        let rules = format!("[[rule]]\nclass = 'shop.*'\nretained = '{growth}'\n");
        fs::write(at.join("rules.toml"), rules).expect("the rules");
    };
    let write = [
        "check",
        "a.hprof",
        "--write-baseline",
        "base.json",
        "--force",
    ];
    let check = [
        "check",
        "b.hprof",
        "--baseline",
        "base.json",
        "--rules",
        "rules.toml",
    ];
    rules("+1k");
    run(at, &write, 0);
    let printed = refused(at, &check);
    assert!(
        printed.contains("shop.* retain together") && printed.contains("write it again"),
        "{printed}"
    );
    run(at, &[&write[..], &["--rules", "rules.toml"]].concat(), 0);
    run(at, &check, 1);
    // 30 items of about a thousand bytes, and 60 small objects.
    rules("+40k");
    run(at, &check, 0);
}

#[test]
fn a_baseline_is_compared_only_with_sizes_of_the_same_options() {
    let dir = folder();
    let at = dir.path();
    let write = ["check", "a.hprof", "--write-baseline", "base.json"];
    run(at, &write, 0);
    let check = ["check", "a.hprof", "--baseline", "base.json"];
    run(at, &check, 0);
    for option in ["--layout mat", "--layout plain", "--strength strong"] {
        let words: Vec<&str> = option.split(' ').collect();
        let printed = refused(at, &[&check[..], &words].concat());
        let message = format!("the baseline was written with another {}", words[0]);
        assert!(printed.contains(&message), "{printed}");
    }
    // Baselines of earlier versions have neither.
    let text = fs::read_to_string(at.join("base.json")).expect("the baseline");
    let mut base: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for field in ["layout", "strength"] {
        let fields = base.as_object_mut().expect("fields");
        assert!(fields.remove(field).is_some(), "{field}");
    }
    fs::write(at.join("base.json"), base.to_string()).expect("the baseline");
    run(at, &[&check[..], &["--strength", "strong"]].concat(), 0);
}

#[test]
fn growth_without_a_baseline_or_beside_rules_is_refused() {
    let dir = folder();
    let at = dir.path();
    run(
        at,
        &["check", "a.hprof", "--write-baseline", "base.json"],
        0,
    );
    fs::write(at.join("rules.toml"), "[[rule]]\ncount = 5\n").expect("the rules");
    for more in [
        &["--rules", "rules.toml"][..],
        &["--rules", "rules.toml", "--baseline", "base.json"],
        &["--write-baseline", "other.json"],
    ] {
        let args = [&["check", "a.hprof", "--max-growth", "0"], more].concat();
        let printed = refused(at, &args);
        assert!(printed.contains("--max-growth"), "{printed}");
    }
    assert!(!at.join("other.json").exists());
    let args = ["check", "b.hprof", "--baseline", "base.json"];
    run(at, &[&args[..], &["--max-growth", "400"]].concat(), 0);
}

/// Such a rule always passes: no limit is checked.
#[test]
fn a_rule_about_a_class_that_does_not_exist_is_noted() {
    let dir = folder();
    let at = dir.path();
    let rule =
        |class: &str| format!("[[rule]]\nclass = '{class}'\ncount = 5000\nshallow = '9 GiB'\n");
    for (class, note) in [
        (
            "shop.Itme",
            "the dump has no such class; did you mean shop.Item?",
        ),
        ("shop.None*", "the dump has no such class"),
        ("shop.It*", ""),
    ] {
        fs::write(at.join("rules.toml"), rule(class)).expect("the rules");
        let text = run(
            at,
            &["check", "b.hprof", "--rules", "rules.toml", "--json"],
            0,
        );
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let checked = &answer["checks"][0];
        let message = checked["message"].as_str().expect("a message");
        assert_eq!(checked["no_class"] == true, !note.is_empty(), "{checked}");
        assert!(message.ends_with(note), "{message}");
        let text = run(at, &["check", "b.hprof", "--rules", "rules.toml"], 0);
        assert_eq!(
            text.matches("the dump has no such class").count(),
            usize::from(!note.is_empty()),
            "{text}"
        );
    }
}

#[test]
fn the_format_follows_the_extension_of_the_output() {
    let dir = folder();
    let at = dir.path();
    let rules = "[[rule]]\nclass = 'shop.Item'\ncount = 20\n";
    fs::write(at.join("rules.toml"), rules).expect("the rules");
    let args = ["check", "a.hprof", "--rules", "rules.toml"];
    let printed = run(at, &args, 0);
    assert!(printed.starts_with("The check passed."), "{printed}");
    for (name, begin) in [
        ("out.json", "{"),
        ("out.xml", "<?xml"),
        ("out.sarif", "{"),
        ("out.md", "**The check passed.**"),
        ("out.txt", "The check passed."),
    ] {
        run(at, &[&args[..], &["-o", name]].concat(), 0);
        let text = fs::read_to_string(at.join(name)).expect("the output");
        assert!(text.starts_with(begin), "{name}: {text}");
    }
    let junit = run(
        at,
        &[&args[..], &["--format", "junit", "-o", "-"]].concat(),
        0,
    );
    assert!(junit.starts_with("<?xml"), "{junit}");
    // An error has the name that the user has given, not that of a temporary file.
    let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
    let out = tenure
        .current_dir(at)
        .args(args)
        .args(["-o", "none/out.md"]);
    let printed = String::from_utf8(out.output().expect("tenure").stderr).expect("text");
    let expected = "tenure: cannot write none/out.md: No such file or directory (os error 2)\n";
    assert_eq!(printed, expected);
}

#[test]
fn a_refused_suspect_prints_the_signature_that_allows_it() {
    let dir = folder();
    let at = dir.path();
    let rules = |text: &str| fs::write(at.join("rules.toml"), text).expect("the rules");
    rules("[leaks]\nshare = 50\n");
    let args = ["check", "a.hprof", "--rules", "rules.toml"];
    let printed = run(at, &args, 1);
    assert!(
        printed.contains("too large a share of the heap"),
        "{printed}"
    );
    let signature = printed.split("(signature ").nth(1).expect("a signature");
    let signature = &signature[..16];
    let markdown = run(at, &[&args[..], &["--format", "md"]].concat(), 1);
    assert!(markdown.contains(signature), "{markdown}");
    rules(&format!("[leaks]\nshare = 50\nallow = ['{signature}']\n"));
    run(at, &args, 0);
}

/// An array for each of 60 classes that hold one.
fn arrays() -> Builder {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    for n in 0..60 {
        let class = heap.class(&format!("shop.D{n}"), object, &[("data", Type::Object)]);
        let data = heap.primitive_array(Elements::Byte(vec![1; 10]));
        let one = heap.instance(class, &[Value::Object(data)]);
        heap.root(Root::JniGlobal { reference: 1 }, one);
    }
    heap
}

#[test]
fn csv_has_all_rows_unless_a_limit_is_given() {
    let dir = folder();
    let at = dir.path();
    fs::write(at.join("c.hprof"), arrays().bytes()).expect("the dump");
    for args in [
        &["diff", "a.hprof", "b.hprof"][..],
        &["roots", "b.hprof"],
        &["paths", "c.hprof", "--class", "byte[]"],
    ] {
        let rows = |more: &[&str]| {
            run(at, &[args, &["--csv"], more].concat(), 0)
                .lines()
                .count()
        };
        let all = rows(&[]);
        assert!(all > 60, "{args:?}: {all}");
        assert_eq!(all, rows(&["-n", "0"]));
        assert!(rows(&["-n", "3"]) < 40);
        // Tables for readers have the usual number of rows.
        let usual = run(at, args, 0).lines().count();
        assert!(usual < all, "{args:?}: {usual} of {all}");
    }
    // A tree keeps its limit: one object can dominate millions.
    let tree = |more: &[&str]| {
        let args = [&["dominators", "b.hprof", "--csv"], more].concat();
        run(at, &args, 0).lines().count()
    };
    assert!(tree(&[]) < tree(&["-n", "0"]));
    assert_eq!(tree(&[]), tree(&["-n", "10"]));
}
