//! What an answer claims is what the dump shows, and no more.

use crate::ran::run;
use serde_json::Value as Json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use testkit::dump::{ClassSpec, Elements, FrameSpec, Heap as Builder, IdSize, Root, Type, Value};

fn json(folder: &Path, args: &[&str]) -> Json {
    json_with(folder, args, 0)
}

fn json_with(folder: &Path, args: &[&str], code: i32) -> Json {
    serde_json::from_str(&run(folder, args, code)).expect("JSON")
}

/// A folder with these dumps.
fn folder(dumps: &[(&str, &Builder)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, heap) in dumps {
        fs::write(dir.path().join(name), heap.bytes()).expect("the dump");
    }
    dir
}

/// A class whose static field holds `many` nodes, each with 1000 bytes, in an array.
fn nodes(heap: &mut Builder, owner: &str, many: usize) -> u64 {
    let object = heap.java_lang_object();
    let node = heap.class("shop.Node", object, &[("val", Type::Object)]);
    let slots = heap.object_array_class();
    let held: Vec<u64> = (0..many)
        .map(|_| {
            let bytes = heap.primitive_array(Elements::Byte(vec![1; 1000]));
            heap.instance(node, &[Value::Object(bytes)])
        })
        .collect();
    let array = heap.object_array(slots, &held);
    let class = heap.class(owner, object, &[]);
    heap.set_static(class, "all", Value::Object(array));
    class
}

#[test]
fn a_dump_without_roots_counts_all_and_never_says_that_there_is_no_leak() {
    let mut heap = Builder::new(IdSize::Eight);
    nodes(&mut heap, "shop.Owner", 20);
    let dir = folder(&[("heap.hprof", &heap)]);
    let at = dir.path();
    let rows = json_with(at, &["histogram", "--json", "heap.hprof"], 4);
    let row = |class: &str| {
        let rows = rows["rows"].as_array().expect("rows");
        let row = rows
            .iter()
            .find(|r| r["class"] == class)
            .expect("the class");
        row["objects"].as_u64()
    };
    assert_eq!(row("shop.Node"), Some(20));
    assert_eq!(row("byte[]"), Some(20));
    for command in [&["leaks", "heap.hprof"][..], &["heap.hprof"]] {
        let printed = run(at, command, 4);
        assert!(printed.contains("no GC roots"), "{printed}");
        assert!(!printed.contains("No suspects"), "{printed}");
    }
    let answer = json_with(at, &["leaks", "--json", "heap.hprof"], 4);
    assert_eq!(answer["no_roots"], true);
    let page = run(
        at,
        &["report", "-o", "-", "--format", "html", "heap.hprof"],
        4,
    );
    assert!(page.contains("no GC roots") && !page.contains("No suspects"));
    fs::write(at.join("rules.toml"), "[leaks]\nshare = 99\n").expect("the rules");
    for form in ["text", "md"] {
        let args = [
            "check",
            "heap.hprof",
            "--rules",
            "rules.toml",
            "--format",
            form,
        ];
        let printed = run(at, &args, 1);
        let reason = "the dump has no GC roots, so leak suspects cannot be found";
        assert!(
            printed.contains(reason) && !printed.contains("0 B"),
            "{printed}"
        );
    }
}

#[test]
fn texts_and_classes_that_many_places_hold_are_no_suspects() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let pair = heap.class("Pair", object, &[("left", Type::Object)]);
    for n in 0..200 {
        // Two roots share each text, so that none retains it.
        let text = heap.string(&format!("a text that two objects share, number {n}"));
        for _ in 0..2 {
            let holder = heap.instance(pair, &[Value::Object(text)]);
            heap.root(Root::JniGlobal { reference: 1 }, holder);
        }
    }
    let dir = folder(&[("heap.hprof", &heap)]);
    let answer = json(dir.path(), &["leaks", "--json", "heap.hprof"]);
    let suspects = answer["suspects"].as_array().expect("suspects");
    assert!(
        suspects.iter().all(|s| s["class"] != "java.lang.String"),
        "{suspects:?}"
    );
    assert_eq!(answer["scattered"][0]["class"], "java.lang.String");
    assert_eq!(answer["scattered"][0]["objects"], 200);
}

#[test]
fn leakcanarys_sample_leak_is_found() {
    let Some(dump) = testkit::corpus::corpus_dump("square+leakcanary__leak_service_binder.hprof")
    else {
        let why = "the shared corpus is not here";
        return testkit::skip("the leak of LeakCanary", testkit::Need::Shared, why);
    };
    let file = dump.path.to_string_lossy();
    let dir = folder(&[]);
    let answer = json(dir.path(), &["leaks", "--json", "--no-index", &file]);
    let found = answer["destroyed"].as_array().expect("a list");
    let watched = found
        .iter()
        .find(|d| d["key"] == "b3abfae6-2c53-42e1-b8c1-96b0558dbeae");
    let steps = watched.expect("the watched one")["path"]["steps"].as_array();
    let first = &steps.expect("steps")[0];
    assert_eq!(
        first["value"], "com.example.leakcanary.LeakyService",
        "{first}"
    );
    assert!(
        first["field"]
            .as_str()
            .is_some_and(|f| f.starts_with("static ")),
        "{first}"
    );
    assert!(found.iter().any(|d| d["kind"] == "service"), "{found:?}");
}

#[test]
fn most_means_more_than_half() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let slots = heap.object_array_class();
    // Twenty classes with as many bytes each: none is most of it.
    let held: Vec<u64> = (0..20)
        .map(|n| {
            let class = heap.class(&format!("shop.Part{n}"), object, &[("val", Type::Object)]);
            let bytes = heap.primitive_array(Elements::Byte(vec![1; 5000]));
            heap.instance(class, &[Value::Object(bytes)])
        })
        .collect();
    let array = heap.object_array(slots, &held);
    heap.root(Root::JniGlobal { reference: 1 }, array);
    let mut full = Builder::new(IdSize::Eight);
    let owner = nodes(&mut full, "shop.Owner", 20);
    full.root(Root::StickyClass, owner);
    let dir = folder(&[("many.hprof", &heap), ("one.hprof", &full)]);
    let printed = run(dir.path(), &["leaks", "many.hprof"], 0);
    assert!(!printed.contains("holds most of that"), "{printed}");
    assert!(printed.contains("in many parts"), "{printed}");
}

#[test]
fn merged_paths_fold_the_slots_of_an_array() {
    let mut heap = Builder::new(IdSize::Eight);
    let owner = nodes(&mut heap, "shop.Owner", 50);
    heap.root(Root::StickyClass, owner);
    let dir = folder(&[("heap.hprof", &heap)]);
    let args = ["paths", "heap.hprof", "--class", "byte[]", "--json"];
    let answer = json(dir.path(), &args);
    let nodes = answer["nodes"].as_array().expect("nodes");
    let way: Vec<_> = nodes
        .iter()
        .map(|n| {
            (
                n["field"].as_str(),
                n["objects"].as_u64(),
                n["targets"].as_u64(),
            )
        })
        .collect();
    let want = [
        (None, Some(1), Some(50)),
        (Some("static all"), Some(1), Some(50)),
        (Some("[*]"), Some(50), Some(50)),
        (Some("val"), Some(50), Some(50)),
    ];
    assert_eq!(way, want);
}

/// A map of `many` sessions in four bins of a table.
fn map(many: usize) -> Builder {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let session = heap.class("shop.Session", object, &[("data", Type::Object)]);
    let fields = [("value", Type::Object), ("next", Type::Object)];
    let node = heap.class("java.util.HashMap$Node", object, &fields);
    let slots = heap.object_array_class();
    let mut bins = [0; 4];
    for n in 0..many {
        let data = heap.primitive_array(Elements::Byte(vec![1; 500]));
        let value = heap.instance(session, &[Value::Object(data)]);
        bins[n % 4] = heap.instance(node, &[Value::Object(value), Value::Object(bins[n % 4])]);
    }
    let table = heap.object_array(slots, &bins);
    heap.root(Root::JniGlobal { reference: 1 }, table);
    heap
}

#[test]
fn a_difference_names_the_class_that_grew_and_counts_elements() {
    let mut other = Builder::new(IdSize::Eight);
    let object = other.java_lang_object();
    for n in 0..5 {
        let class = other.class(&format!("bank.Account{n}"), object, &[]);
        let account = other.instance(class, &[]);
        other.root(Root::JniGlobal { reference: 1 }, account);
    }
    let (few, many) = (map(40), map(100));
    let dir = folder(&[("a.hprof", &few), ("b.hprof", &many), ("c.hprof", &other)]);
    let at = dir.path();
    let answer = json(at, &["diff", "a.hprof", "b.hprof", "--json"]);
    let grown = &answer["grown"][0];
    assert_eq!(grown["contents"]["class"], "java.util.HashMap$Node");
    assert_eq!(grown["contents"]["objects"], serde_json::json!([40, 100]));
    assert_eq!(grown["holding"]["class"], "shop.Session");
    assert_eq!(grown["holding"]["objects"], serde_json::json!([40, 100]));
    let printed = run(at, &["diff", "a.hprof", "b.hprof"], 0);
    assert!(
        printed.contains("full of shop.Session (40 → 100 objects)"),
        "{printed}"
    );
    assert!(!printed.contains("Other program"), "{printed}");
    let printed = run(at, &["diff", "a.hprof", "c.hprof"], 0);
    assert!(printed.contains("Other program: c.hprof"), "{printed}");
}

#[test]
fn loaders_and_top_say_the_same_of_a_loader() {
    let demo = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    let file = demo.to_string_lossy();
    let dir = folder(&[]);
    let loaders = json(dir.path(), &["loaders", "--json", "--no-index", &file]);
    let top = json(
        dir.path(),
        &["top", "--json", "--no-index", "--threshold", "0", &file],
    );
    let rows = json(
        dir.path(),
        &["histogram", "--by", "loader", "--json", "--no-index", &file],
    );
    let list = |answer: &Json, key: &str| {
        let rows = answer[key].as_array().expect("rows").iter();
        let mut rows: Vec<_> = rows
            .filter(|r| r["objects"] != 0)
            .map(|r| ["object", "objects", "shallow", "retained"].map(|f| r[f].to_string()))
            .collect();
        rows.sort();
        rows
    };
    assert!(!list(&loaders, "loaders").is_empty());
    assert_eq!(list(&loaders, "loaders"), list(&top, "loaders"));
    assert_eq!(list(&loaders, "loaders"), list(&rows, "rows"));
}

#[test]
fn waste_claims_only_what_the_dump_shows() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    // Objects of the VM whose contents are in no dump look alike.
    let fields = [("flags", Type::Int)];
    let member = heap.class("java.lang.invoke.MemberName", object, &fields);
    let alike = heap.class("shop.Alike", object, &fields);
    for class in [member, alike] {
        for _ in 0..50 {
            let one = heap.instance(class, &[Value::Int(7)]);
            heap.root(Root::JniGlobal { reference: 1 }, one);
        }
    }
    // Of three keys of a map with weak keys, one is held by its own value.
    let reference = heap.class(
        "java.lang.ref.Reference",
        object,
        &[("referent", Type::Object)],
    );
    let weak = heap.class("java.lang.ref.WeakReference", reference, &[]);
    let entry = heap.class(
        "java.util.WeakHashMap$Entry",
        weak,
        &[("value", Type::Object)],
    );
    let key_class = heap.class("shop.Key", object, &[]);
    let value_class = heap.class("shop.Value", object, &[("key", Type::Object)]);
    for holds in [true, false, false] {
        let key = heap.instance(key_class, &[]);
        let held = if holds { key } else { 0 };
        let value = heap.instance(value_class, &[Value::Object(held)]);
        let entry = heap.instance(entry, &[Value::Object(value), Value::Object(key)]);
        heap.root(Root::JniGlobal { reference: 1 }, entry);
    }
    let dir = folder(&[("heap.hprof", &heap)]);
    let answer = json(dir.path(), &["waste", "--json", "heap.hprof"]);
    let rows = answer["objects"]["rows"].as_array().expect("rows");
    let classes: Vec<_> = rows.iter().map(|r| r["class"].as_str()).collect();
    assert_eq!(classes, [Some("shop.Alike")]);
    let rows = answer["references"]["rows"].as_array().expect("rows");
    let keys = rows
        .iter()
        .find(|r| r["class"] == "shop.Key")
        .expect("keys");
    assert_eq!((&keys["references"], &keys["only"]), (&3.into(), &2.into()));
}

#[test]
fn waste_is_answered_from_beside_the_index_the_second_time_unless_something_else_is_asked() {
    let mut heap = Builder::new(IdSize::Eight);
    let owner = nodes(&mut heap, "shop.Owner", 20);
    heap.root(Root::StickyClass, owner);
    let dir = folder(&[("heap.hprof", &heap)]);
    let at = dir.path();
    let waste = |args: &[&str]| {
        let args: Vec<&str> = [&["waste"], args, &["heap.hprof"]].concat();
        run(at, &args, 0)
    };
    let first = waste(&[]);
    let json = waste(&["--json"]);
    let index = fs::read_dir(at.join("heap.hprof.tenure")).expect("an index");
    let mut kept = index.map(|file| file.expect("a file").path());
    let kept = kept
        .find(|path| path.extension().is_some_and(|kind| kind == "commands"))
        .expect("kept answers");
    // A kept answer is shown without being written again; one that was changed is not shown.
    let written = || fs::metadata(&kept).expect("kept answers").ino();
    let before = written();
    assert_eq!((waste(&[]), waste(&["--json"])), (first.clone(), json));
    assert_eq!(written(), before);
    assert!(first.contains("byte[]"), "{first}");
    let text = fs::read_to_string(&kept).expect("text");
    fs::write(&kept, text.replace("shop.Node.val", "shop.Kept.val")).expect("another text");
    assert_eq!(waste(&[]), first);
    assert_ne!(written(), before);
    // Another number of rows is another question, and another dump has another index.
    let before = written();
    waste(&["-n", "3"]);
    assert_ne!(written(), before);
    let before = written();
    nodes(&mut heap, "shop.Other", 5);
    fs::write(at.join("heap.hprof"), heap.bytes()).expect("another dump");
    waste(&[]);
    assert_ne!(written(), before);
    // So are the same words with an option from the environment.
    let mut set = std::process::Command::new(env!("CARGO_BIN_EXE_tenure"));
    let set = set.current_dir(at).args(["waste", "heap.hprof"]);
    let out = set.env("TENURE_JSON", "true").output().expect("it runs");
    let text = String::from_utf8(out.stdout).expect("text");
    assert_eq!(text, waste(&["--json"]));
    // With a collections file nothing is kept, and an empty one changes nothing.
    let own = at.join("own.toml");
    fs::write(&own, "").expect("a table");
    let with = |args: &[&str]| waste(&[args, &["--collections", "own.toml"]].concat());
    assert_eq!(with(&["--json"]), waste(&["--json"]));
    fs::write(&own, "no table").expect("no table");
    run(
        at,
        &["waste", "--json", "--collections", "own.toml", "heap.hprof"],
        2,
    );
}

/// As JDK 21 writes it: a virtual thread that is parked has neither a root nor a stack.
#[test]
fn what_parked_virtual_threads_hold_is_not_called_garbage() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let fields = [("state", Type::Int)];
    let class = heap.class("java/lang/VirtualThread", object, &fields);
    let payload = heap.class("app/Payload", object, &[]);
    let waiting = heap.class("app/Waiting", object, &[]);
    let thread = heap.instance(class, &[Value::Int(4)]);
    heap.instance(payload, &[]);
    heap.set_static(waiting, "THREAD", Value::Object(thread));
    heap.root(Root::StickyClass, waiting);
    let dir = folder(&[("parked.hprof", &heap)]);
    let lost = "1 parked virtual thread whose stack the dump does not have";
    for command in ["unreachable", "overview"] {
        let text = run(dir.path(), &[command, "parked.hprof"], 0);
        assert!(text.contains(lost), "{text}");
        assert!(!text.contains("They are garbage"), "{text}");
    }
    let answer = json(dir.path(), &["unreachable", "--json", "parked.hprof"]);
    assert_eq!(answer["parked_virtual_threads"], 1);
    assert_eq!(answer["rows"][0]["class"], "app.Payload", "{answer}");
    // A dump that is read from memory has what the stack refers to as local variables.
    heap.string_id(hprof::CONSERVATIVE_LOCALS);
    let dir = folder(&[("memory.hprof", &heap)]);
    let text = run(dir.path(), &["unreachable", "memory.hprof"], 0);
    assert!(
        text.contains("They are garbage") && !text.contains("parked"),
        "{text}"
    );
    let text = run(dir.path(), &["overview", "memory.hprof"], 0);
    assert!(!text.contains("parked"), "{text}");
}

/// In a cut file, objects can be unreachable only because records are missing.
#[test]
fn unreachable_objects_of_a_damaged_dump_are_not_called_garbage() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let payload = heap.class("app/Payload", object, &[]);
    heap.instance(payload, &[]);
    heap.root(Root::StickyClass, payload);
    let dir = folder(&[("whole.hprof", &heap)]);
    let bytes = heap.bytes();
    std::fs::write(dir.path().join("cut.hprof"), &bytes[..bytes.len() - 1]).expect("a file");
    for (file, code, is_damaged) in [("whole.hprof", 0, false), ("cut.hprof", 4, true)] {
        let text = run(dir.path(), &["unreachable", file], code);
        assert_eq!(text.contains("the dump is damaged"), is_damaged, "{text}");
        assert_eq!(text.contains("They are garbage"), !is_damaged, "{text}");
        let text = run(dir.path(), &["unreachable", "--json", file], code);
        let field = format!("\"is_damaged\":{is_damaged}");
        assert!(text.replace(' ', "").contains(&field), "{text}");
    }
}

/// As JDK 21 writes it: a virtual thread that is mounted has no root of its own, but its stack is that of its carrier.
#[test]
fn a_mounted_virtual_thread_is_not_a_parked_one() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let fields = [("carrierThread", Type::Object), ("state", Type::Int)];
    let class = heap.class("java/lang/VirtualThread", object, &fields);
    let frame = FrameSpec {
        class: heap.class("app.Worker", object, &[]),
        method: "await",
        source: "Worker.java",
        line: 7,
    };
    let (serial, carrier) = heap.thread("worker-1", &[frame]);
    let states = [(carrier, 2), (carrier, 6), (0, 4)];
    for (carrier, state) in states {
        let thread = heap.instance(class, &[Value::Object(carrier), Value::Int(state)]);
        heap.root(
            Root::JavaFrame {
                thread: serial,
                frame: 0,
            },
            thread,
        );
    }
    let dir = folder(&[("mounted.hprof", &heap)]);
    let answer = json(dir.path(), &["summary", "--json", "mounted.hprof"]);
    assert_eq!(answer["parked_virtual_threads"], 1);
    let answer = json(dir.path(), &["threads", "--json", "mounted.hprof"]);
    assert_eq!(answer["virtual_threads"], 3);
    assert_eq!(answer["virtual_without_stack"], 1);
    let groups = answer["virtual_groups"].as_array().expect("groups");
    let of = |group: &serde_json::Value| (group["threads"].as_u64(), group["stack"].to_string());
    let groups: Vec<_> = groups.iter().map(of).collect();
    assert_eq!(groups.len(), 2);
    let with_stack = groups
        .iter()
        .find(|group| group.1.contains("app.Worker.await"));
    assert_eq!(with_stack.expect("a group").0, Some(2));
    let args = [
        "objects",
        "mounted.hprof",
        "java.lang.VirtualThread",
        "--json",
    ];
    assert_eq!(json(dir.path(), &args)["total"]["objects"], 3);
}

/// One loader can define many classes of one name: the VM of JDK 8 does so for lambdas.
#[test]
fn classes_of_one_name_and_one_loader_are_not_defined_by_several() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let loader = heap.class("app/Loader", object, &[]);
    let loaders = [0, heap.instance(loader, &[])];
    heap.root(Root::JniGlobal { reference: 1 }, loaders[1]);
    for (name, second) in [("app/Form", 0), ("app/Twice", loaders[1])] {
        for loader in [0, second] {
            heap.class_spec(ClassSpec {
                name,
                super_class: object,
                loader,
                ..ClassSpec::default()
            });
        }
    }
    let dir = folder(&[("forms.hprof", &heap)]);
    let answer = json(dir.path(), &["loaders", "--json", "forms.hprof"]);
    let duplicates = answer["duplicates"].as_array().expect("a list");
    let names: Vec<_> = duplicates.iter().map(|one| &one["class"]).collect();
    assert_eq!(names, ["app.Twice"], "{answer}");
}

/// A dump with 20 objects that have a finalize method. The first ones wait for it, the program uses the others.
fn finalizable(waiting: usize) -> tempfile::TempDir {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let array = heap.object_array_class();
    let fields = [("referent", Type::Object), ("queue", Type::Object)];
    let reference = heap.class("java.lang.ref.Reference", object, &fields);
    let last = heap.class("java.lang.ref.FinalReference", reference, &[]);
    let finalizer = heap.class("java.lang.ref.Finalizer", last, &[("next", Type::Object)]);
    let queues = heap.class("java.lang.ref.ReferenceQueue", object, &[]);
    let [queue, enqueued] = [0; 2].map(|_| heap.instance(queues, &[]));
    heap.set_static(queues, "ENQUEUED", Value::Object(enqueued));
    let (mut next, mut list) = (0, Vec::new());
    let classes = ["shop.Handle", "shop.Socket"]
        .map(|name| heap.class(name, object, &[("state", Type::Object)]));
    for n in 0..20 {
        let state = heap.primitive_array(Elements::Byte(vec![1; 1000]));
        let one = heap.instance(classes[n / 10], &[Value::Object(state)]);
        let of = [next, one, if n < waiting { enqueued } else { queue }];
        next = heap.instance(finalizer, &of.map(Value::Object));
        list.push(one);
    }
    heap.set_static(finalizer, "unfinalized", Value::Object(next));
    let list = heap.object_array(array, &list[waiting..]);
    let owner = heap.class("shop.Registry", object, &[]);
    heap.set_static(owner, "OPEN", Value::Object(list));
    for class in [finalizer, queues, owner] {
        heap.root(Root::StickyClass, class);
    }
    folder(&[("a.hprof", &heap)])
}

#[test]
fn objects_that_wait_for_finalization_are_explained() {
    let dir = finalizable(10);
    let text = run(dir.path(), &["leaks", "a.hprof"], 0);
    let waiting = "Only their finalize method, which has not run yet, keeps 10 objects of shop.Handle with 10.";
    assert_eq!(text.matches(waiting).count(), 1, "{text}");
    let in_use = "other references lead to 10 of 20 such objects, too, most of them shop.Socket. \
                  What holds these: tenure paths --class shop.Socket FILE.";
    assert_eq!(text.matches(in_use).count(), 1, "{text}");
    // If all objects wait, the answer does not mention objects in use.
    let text = run(finalizable(20).path(), &["leaks", "a.hprof"], 0);
    let both = "keeps 10 objects of shop.Handle with";
    assert!(text.contains(both), "{text}");
    assert!(!text.contains("while it is in use"), "{text}");
}

#[test]
fn objects_in_use_do_not_wait_for_finalization() {
    let dir = finalizable(0);
    let text = run(dir.path(), &["leaks", "--threshold", "1", "a.hprof"], 0);
    assert!(!text.contains("Only their finalize method"), "{text}");
    let in_use = "Each object with a finalize method has a Finalizer, also while it is in use: other references lead to 20 of 20";
    assert_eq!(text.matches(in_use).count(), 1, "{text}");
    let args = ["leaks", "--threshold", "1", "--json", "a.hprof"];
    let answer = json(dir.path(), &args);
    let suspects = answer["suspects"].as_array().expect("a list");
    let finalizer = |one: &&serde_json::Value| one["value"] == "java.lang.ref.Finalizer";
    let finalizable = &suspects.iter().find(finalizer).expect("it is large")["finalizable"];
    assert_eq!(finalizable["objects"], 20, "{answer}");
    assert_eq!(finalizable["waiting"], 0, "{answer}");
}

/// The Finalizers refer to the objects, too, so that the list does not dominate them.
#[test]
fn a_list_of_objects_with_other_references_is_not_denied() {
    let dir = finalizable(0);
    let text = run(dir.path(), &["leaks", "a.hprof"], 0);
    assert!(!text.contains("No single object holds"), "{text}");
    let holders = "No object dominates any of them: several paths lead to each, or it is a GC root. \
                   To see what holds most of them: tenure paths --class shop.Handle FILE (or tenure leaks --deep FILE; \
                   without weak, soft and final references: tenure leaks --strength strong FILE).";
    assert_eq!(text.matches(holders).count(), 1, "{text}");
    for more in [&["--deep"][..], &["--strength", "strong"]] {
        let text = run(dir.path(), &[&["leaks", "a.hprof"], more].concat(), 0);
        assert!(text.contains("shop.Registry.OPEN"), "{text}");
        assert!(!text.contains("No object dominates"), "{text}");
    }
    let text = run(
        dir.path(),
        &["paths", "a.hprof", "--class", "shop.Handle"],
        0,
    );
    assert!(text.contains("OPEN"), "{text}");
}

/// Objects of one class that ten classes hold, each in an array of its own.
fn held_by_many() -> tempfile::TempDir {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let array = heap.object_array_class();
    let item = heap.class("shop.Item", object, &[]);
    for n in 0..10 {
        let holder = heap.class(
            &format!("shop.Holder{n}"),
            object,
            &[("item", Type::Object)],
        );
        for _ in 0..=n {
            let one = heap.instance(item, &[]);
            let holder = heap.instance(holder, &[Value::Object(one)]);
            let list = heap.object_array(array, &[holder]);
            heap.root(Root::JniGlobal { reference: 1 }, list);
        }
    }
    folder(&[("a.hprof", &heap)])
}

#[test]
fn the_number_of_rows_counts_for_dominators_and_paths_of_a_set() {
    let dir = held_by_many();
    let ask = |more: &[&str], code| {
        let args = [&["objects", "a.hprof", "shop.Item"][..], more].concat();
        run(dir.path(), &args, code)
    };
    let rows = |more: &[&str]| {
        let answer: Json = serde_json::from_str(&ask(more, 0)).expect("JSON");
        let rows = answer["rows"].as_array().expect("rows").len();
        (rows, answer["omitted_rows"].as_u64())
    };
    assert_eq!(rows(&["--dominators", "--json"]), (10, None));
    assert_eq!(rows(&["--dominators", "--json", "-n", "3"]), (3, Some(7)));
    assert_eq!(rows(&["--dominators", "--json", "-n", "0"]), (10, None));
    assert_eq!(
        ask(&["--dominators", "--csv", "-n", "3"], 0)
            .lines()
            .count(),
        4
    );
    let text = ask(&["--dominators", "-n", "3"], 0);
    assert!(
        text.contains("shop.Holder7") && !text.contains("shop.Holder6"),
        "{text}"
    );
    assert!(text.contains("7 more rows"), "{text}");
    // The roots of the tree of paths.
    let roots = |more: &[&str]| {
        let answer: Json = serde_json::from_str(&ask(more, 0)).expect("JSON");
        let nodes = answer["nodes"].as_array().expect("nodes");
        let roots = nodes.iter().filter(|node| node["depth"] == 0).count();
        (roots, answer["omitted"].as_u64())
    };
    assert_eq!(roots(&["--paths", "--json"]), (55, Some(0)));
    assert_eq!(roots(&["--paths", "--json", "-n", "0"]), (55, Some(0)));
    assert_eq!(roots(&["--paths", "--json", "-n", "2"]), (2, Some(53)));
    let count = |text: &str| text.matches("Object[]").count();
    assert_eq!(count(&ask(&["--paths"], 0)), 5);
    assert_eq!(count(&ask(&["--paths", "-n", "7"], 0)), 7);
    // Their order is that of the objects.
    for more in [["--sort", "retained"], ["--skip-rows", "1"]] {
        for what in ["--dominators", "--paths"] {
            ask(&[&more[..], &[what]].concat(), 2);
        }
    }
}
