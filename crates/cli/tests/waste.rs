//! `waste` on a program that wastes known amounts.

use serde_json::Value as Json;
use std::path::Path;
use std::process::Command;
use testkit::corpus::workspace;
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};
use testkit::jvm::{NO_JDK, jdks, newest_compiler};

fn tenure(args: &[&str]) -> Json {
    let out = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(args)
        .output()
        .expect("running tenure");
    let printed = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {printed}");
    serde_json::from_slice(&out.stdout).expect("JSON")
}

fn row<'j>(rows: &'j Json, key: &str, value: &str) -> &'j Json {
    let rows = rows.as_array().expect("rows");
    let found = rows.iter().find(|r| r[key] == value);
    found.unwrap_or_else(|| panic!("no {value} among {} rows", rows.len()))
}

/// Bytes of an array of references with compressed references.
fn array(len: u64) -> u64 {
    (16 + 4 * len).div_ceil(8) * 8
}

#[test]
fn known_waste_is_found_to_the_byte() {
    let found = jdks();
    let (Some(jdk), Some(_)) = (found.last(), newest_compiler()) else {
        return testkit::skip("waste of a program", testkit::Need::Jdk, NO_JDK);
    };
    let source = workspace().join("crates/cli/tests/Waste.java");
    let flags = ["-Xmx64m", "-XX:+UseSerialGC"];
    let dump = jdk.dump(&source, &flags, &[]).expect("a dump");
    let file = dump.path.to_string_lossy();
    check(&tenure(&["waste", "-n", "0", "--json", &file]), &dump.path);
}

fn check(got: &Json, dump: &Path) {
    // 1000 strings of four texts, 24 bytes each with an array of 16 + 7 bytes.
    let bremen = row(&got["strings"]["rows"], "text", "Bremen0");
    assert_eq!(
        (&bremen["count"], &bremen["wasted"]),
        (&250.into(), &(249 * 48).into())
    );
    let holder = row(&got["holders"], "field", "Waste$Order.city");
    assert_eq!(
        (&holder["count"], &holder["bytes"]),
        (&996.into(), &(996 * 48).into())
    );

    let lists = row(&got["collections"]["rows"], "class", "Waste$Lines");
    assert_eq!(
        (&lists["objects"], &lists["elements"]),
        (&300.into(), &200.into())
    );
    assert_eq!(lists["empty"], 200);
    assert_eq!(lists["empty_bytes"], 200 * (24 + array(50)));
    assert_eq!(lists["unused"], 100 * (array(100) - array(2)));
    assert_eq!(lists["fill"], serde_json::json!([300, 0, 0, 0, 0]));

    let maps = row(&got["collections"]["rows"], "class", "Waste$Prices");
    assert_eq!(
        (&maps["objects"], &maps["elements"]),
        (&31.into(), &(30 + 64).into())
    );
    // 63 of the 64 keys stand behind another one; the table of 100 has grown to 256 at most.
    assert_eq!(maps["collided"], 63);
    let small = 30 * (array(1024) - array(2));
    let rest = maps["unused"].as_u64().expect("a number") - small;
    assert!([0, array(256) - array(128)].contains(&rest), "{rest}");

    let boxed = row(&got["boxed"], "class", "java.lang.Double");
    let distinct = boxed["distinct"].as_u64().expect("a number");
    let objects = boxed["objects"].as_u64().expect("a number");
    assert!(
        (5..10).contains(&distinct) && (500..505).contains(&objects),
        "{boxed}"
    );
    for field in ["note", "refund"] {
        let fields = got["zero_fields"].as_array().expect("rows");
        let mut mine = fields
            .iter()
            .filter(|f| f["class"] == "Waste$Order" && f["field"] == field);
        assert_eq!(
            mine.next().map(|f| &f["instances"]),
            Some(&1000.into()),
            "{field}"
        );
    }
    let weak = row(&got["weak_maps"]["rows"], "value", "Waste$Held");
    assert_eq!(
        (&weak["entries"], &weak["key"]),
        (&50.into(), &"Waste$Key".into())
    );
    let native = &got["native"];
    let mine = native["buffers"].as_array().expect("rows").iter();
    assert_eq!(mine.filter(|b| b["capacity"] == 123_456).count(), 10);
    assert!(native["views"].as_u64() >= Some(10), "{native}");
    let floats = row(&got["contents"], "class", "float[]");
    assert!(floats["all_zero"].as_u64() >= Some(40), "{floats}");

    // The commands of one table agree.
    let alone = tenure(&["collections", "--json", &dump.to_string_lossy()]);
    assert_eq!(row(&alone["rows"], "class", "Waste$Lines"), lists);
}

/// Two holders with equal strings and an empty list each: what one of them could save.
#[test]
fn a_set_has_its_own_waste() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let list = heap.class(
        "java.util.ArrayList",
        object,
        &[("size", Type::Int), ("elementData", Type::Object)],
    );
    let fields = [
        ("first", Type::Object),
        ("second", Type::Object),
        ("list", Type::Object),
    ];
    for (name, text) in [
        ("shop.Cart", "the same text"),
        ("bank.Account", "another text"),
    ] {
        let class = heap.class(name, object, &fields);
        let [first, second] = [heap.string(text), heap.string(text)];
        let slots = heap.object_array_class();
        let slots = heap.object_array(slots, &[0; 10]);
        let empty = heap.instance(list, &[Value::Int(0), Value::Object(slots)]);
        let holder = heap.instance(class, &[first, second, empty].map(Value::Object));
        heap.root(Root::JniGlobal { reference: 1 }, holder);
    }
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("a.hprof");
    std::fs::write(&file, heap.bytes()).expect("the dump");
    let file = file.to_string_lossy();
    let set = "retained:class:shop.Cart";
    let ask = |command: &str, set: &str| {
        let mut args = vec![command, "-n", "0", "--json", &file];
        args.extend(["--set", set].iter().filter(|_| !set.is_empty()));
        tenure(&args)
    };
    let (whole, part) = (ask("waste", ""), ask("waste", set));
    let wasted = |answer: &Json, kind| row(&answer["kinds"], "kind", kind)["objects"].clone();
    for kind in ["duplicate_strings", "empty_collections"] {
        assert_eq!(
            (wasted(&whole, kind), wasted(&part, kind)),
            (2.into(), 1.into()),
            "{kind}"
        );
    }
    assert_eq!((&whole["set"], &part["set"]), (&Json::Null, &set.into()));
    assert_eq!(
        row(&part["holders"], "field", "shop.Cart.second")["count"],
        1
    );
    // The other doors have the same answers.
    for (command, rows) in [("strings", "wasted"), ("collections", "unused")] {
        let alone = ask(command, set);
        assert_eq!(alone["set"], set, "{command}");
        let of_waste = match command {
            "strings" => &part["strings"],
            _ => &part["collections"],
        };
        assert_eq!(alone[rows], of_waste[rows], "{command}");
        assert_eq!(alone["rows"], of_waste["rows"], "{command}");
    }
    let sql = format!("select kind, objects, wasted from waste(0, '{set}')");
    let found = tenure(&["query", "--json", "-n", "0", &file, &sql]);
    let kinds = part["kinds"].as_array().expect("kinds");
    let kinds: Vec<Json> = kinds
        .iter()
        .map(|kind| {
            [&kind["kind"], &kind["objects"], &kind["wasted"]]
                .into_iter()
                .cloned()
                .collect()
        })
        .collect();
    assert_eq!(found["rows"], Json::Array(kinds));
}

/// A collection class that only the user's table has.
#[test]
fn a_collection_of_the_users_table_has_its_size_in_every_answer() {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let fields = [("used", Type::Int), ("slots", Type::Object)];
    let ring = heap.class("app.Ring", object, &fields);
    let array = heap.object_array_class();
    let elements = ["one", "two", "three"].map(|text| heap.string(text));
    let slots = heap.object_array(array, &[&elements[..], &[0; 61]].concat());
    let ring = heap.instance(ring, &[Value::Int(3), Value::Object(slots)]);
    heap.root(Root::JniGlobal { reference: 1 }, ring);
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (dump, table) = (file("heap.hprof"), file("own.toml"));
    std::fs::write(&dump, heap.bytes()).expect("the dump");
    let own = "[[collection]]\nclass='app.Ring'\nkind='list'\nsize='used'\narray='slots'\n";
    std::fs::write(&table, own).expect("a table");
    let with = ["--json", "--collections", &table];
    let asked = |command: &[&str]| tenure(&[command, &with].concat());
    assert_eq!(asked(&["collections", &dump])["rows"][0]["elements"], 3);
    assert_eq!(
        asked(&["waste", &dump])["collections"]["rows"][0]["elements"],
        3
    );
    let id = format!("{ring:#x}");
    assert_eq!(asked(&["object", &dump, &id])["value"], "size 3");
    for (query, first) in [
        ("SELECT r.size() AS n FROM app.Ring r".to_owned(), "3"),
        (format!("select count(*) from contents({ring})"), "3"),
        (
            format!("select value from objects where id = {ring}"),
            "\"size 3\"",
        ),
    ] {
        let found = asked(&["query", &dump, &query]);
        assert_eq!(found["rows"][0][0].to_string(), first, "{query}: {found}");
    }
}
