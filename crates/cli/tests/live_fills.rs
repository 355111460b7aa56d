//! How big and how full the live objects of all classes are, read in the program without a heap dump.

use crate::watched::{Page, Program, compiled, lab, start_live};
use serde_json::Value;
use std::collections::HashMap;

fn with_program(test: &str, body: impl Fn(&mut Program, &Page)) {
    let flags = ["--record", "full"];
    crate::watched::with_program(test, "Fills", &flags, |program, page, _| {
        page.counting(program);
        body(program, page);
    });
}

/// Sum, maximum and maximum ever of a measure; nothing if there is none.
fn measure(row: &Value, name: &str) -> Option<[u64; 3]> {
    let number = |part: &str| row[name][part].as_u64();
    Some([number("sum")?, number("max")?, number("max_ever")?])
}

/// Requests the classes, with sizes that are read again, until the values of one are as wanted.
fn until(page: &Page, class: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let row_of = |answer: &Value| {
        let rows = answer["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["class"] == class).cloned()
    };
    page.snapshot();
    let answer = page.until_counted("classes?limit=100000", |answer| {
        row_of(answer).is_some_and(|row| wanted(&row))
    });
    row_of(&answer).expect("it is there")
}

/// A reading that is younger than this call.
fn read_again(page: &Page) -> Value {
    let time = |answer: &Value| answer["sizes"]["time_ms"].as_u64();
    let before = time(&page.json("classes"));
    page.until_counted("classes?limit=100000", |answer| time(answer) > before)
}

fn sum_of(answer: &Value, class: &str, name: &str) -> u64 {
    let rows = answer["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["class"] == class);
    row.and_then(|row| row[name]["sum"].as_u64()).unwrap_or(0)
}

/// The sum of `i % step` below `count`.
fn steps(count: u64, step: u64) -> u64 {
    (0..count).map(|i| i % step).sum()
}

const BAG: &str = "Fills$Bag";

#[test]
fn sizes_of_all_classes_are_those_that_the_program_made_without_a_heap_dump() {
    with_program("live sizes", |program, page| {
        let before = read_again(page);
        program.send("bags 1000");
        program.send("others 1000");
        page.snapshot();
        let bags = until(page, BAG, |row| row["size"]["sum"] == 4500);
        assert_eq!(measure(&bags, "size"), Some([4500, 9, 9]), "{bags}");
        assert_eq!(bags["size"]["mean"], 4.5);
        assert_eq!(measure(&bags, "capacity"), Some([100_000, 100, 100]));
        assert!(bags["size"]["interval"].is_null(), "{bags}");
        let after = read_again(page);
        assert_eq!(after["sizes"]["source"], "live", "{}", after["sizes"]);
        assert_eq!(after["sizes"]["read"], after["sizes"]["objects"]);
        for (class, size, capacity) in [
            // `char[20]`, and the `long[3]` that only its value shows.
            ("Fills$Line", steps(1000, 7), 23_000),
            ("Fills$Table", steps(1000, 5), 800 * 32),
            ("Fills$Plain[]", steps(1000, 13), steps(1000, 13)),
        ] {
            assert_eq!(sum_of(&after, class, "size"), size, "{class}");
            assert_eq!(sum_of(&after, class, "capacity"), capacity, "{class}");
        }
        // The JDK has some of its own, but makes few meanwhile.
        let map = "java.util.concurrent.ConcurrentHashMap";
        for class in ["java.util.HashSet", "java.util.ArrayDeque", map] {
            let made = sum_of(&after, class, "size") - sum_of(&before, class, "size");
            let truth = steps(1000, 4);
            assert!((truth..truth + 100).contains(&made), "{class}: {made}");
        }
        let plain = until(page, "Fills$Plain", |row| row["live"] == 1000);
        assert!(
            plain["size"].is_null() && plain["capacity"].is_null(),
            "{plain}"
        );
        old_pages(page, &bags);
        as_a_dump_says(page, &after);
        program.send("loaders 50");
        page.snapshot();
        let asked = "classes?loaders=1&source=recording&filter=Fills$Line";
        page.until_counted(asked, |answer| {
            let rows = answer["rows"].as_array().expect("rows");
            let sizes = rows.iter().filter_map(|row| row["size"]["sum"].as_u64());
            let mut sizes: Vec<u64> = sizes.collect();
            sizes.sort_unstable();
            sizes == [50, 200, steps(1000, 7)]
        });
        // What once was remains to be seen.
        program.send("empty");
        let bags = until(page, BAG, |row| row["size"]["sum"] == 0);
        assert_eq!(measure(&bags, "size"), Some([0, 0, 9]), "{bags}");
        program.send("drop");
        program.send("nothing");
        page.command("gc");
        let bags = until(page, BAG, |row| row["capacity"]["sum"] == 0);
        assert_eq!(measure(&bags, "capacity"), Some([0, 0, 100]), "{bags}");
    });
}

#[test]
fn objects_that_die_while_sizes_are_read_do_not_make_it_a_sample() {
    with_program("live sizes while objects die", |program, page| {
        program.send("bags 50000");
        program.send("churn");
        for _ in 0..5 {
            let answer = read_again(page);
            let sizes = &answer["sizes"];
            assert_eq!(sizes["read"], sizes["objects"], "{sizes}");
            assert_eq!(sizes["left_out"], 0, "{sizes}");
            assert_eq!(sizes["by_class"], false, "{sizes}");
            assert!(sizes["read"].as_u64() >= Some(50_000), "{sizes}");
        }
        program.send("calm");
    });
}

/// The servlet's pages have the same numbers.
fn old_pages(page: &Page, bags: &Value) {
    assert_eq!(
        page.json("state")["dumps"].as_array().map(Vec::len),
        Some(0)
    );
    let all = page.text("profiler");
    let class = page.text("profiler?action=type&type=Fills$Bag");
    for text in [all, class] {
        let row = text.split("<tr>").find(|row| row.contains("Fills$Bag</a>"));
        let cells = row.expect("the class").split("<td>").skip(2);
        let cells: Vec<&str> = cells.filter_map(|cell| cell.split('<').next()).collect();
        let live = bags["live_bytes"].as_u64().expect("a number");
        let arrays = bags["capacity_bytes"].as_u64().expect("a number");
        let bytes = [live.to_string(), (live + arrays).to_string()];
        assert_eq!(cells[..4], ["100.00", "1000", "0", "1000"], "{cells:?}");
        assert_eq!(cells[5..7], bytes, "{cells:?}");
        let sizes = ["4500", "9", "9", "4.5", "100000", "100", "100", "100.0"];
        assert_eq!(cells[7..15], sizes, "{cells:?}");
    }
}

/// A dump, which holds the same objects, is read in another way.
fn as_a_dump_says(page: &Page, read: &Value) {
    page.command("dump");
    page.until("state", |state| state["dumps"][0]["stage"] == "ready");
    let dump = page.json("classes?source=dump&limit=100000&filter=Fills$");
    assert_eq!(
        (&dump["sizes"]["source"], &dump["sizes"]["dump"]),
        (&"dump".into(), &1.into())
    );
    let rows = dump["rows"].as_array().expect("rows");
    let sized = rows.iter().filter(|row| row["class"] != "Fills$Plain");
    let mut classes = 0;
    for row in sized.filter(|row| row["live"] == 1000) {
        let all = read["rows"].as_array().expect("rows");
        let live = all.iter().find(|one| one["class"] == row["class"]);
        let live = live.expect("it is recorded");
        for name in ["live", "live_bytes", "capacity_bytes", "size", "capacity"] {
            assert_eq!(row[name], live[name], "{name}: {row} {live}");
        }
        classes += 1;
    }
    assert_eq!(classes, 4, "{dump}");
}

#[test]
fn options_say_what_is_read_and_of_how_many() {
    with_program("live sizes by options", |program, page| {
        let choose = |options: &str| {
            page.command(&format!("options?text=*%20Fills$Bag%20{options}"));
            // The agent takes up one command after the other.
            page.snapshot();
        };
        choose("all,context");
        program.send("bags 100");
        program.send("thread 300");
        page.snapshot();
        let rows = page.until_counted("classes?contexts=1&filter=Fills$Bag", |answer| {
            let sizes = |row: &Value| row["size"]["sum"].as_u64();
            let rows = answer["rows"].as_array().expect("rows");
            rows.len() == 2 && rows.iter().filter_map(sizes).sum::<u64>() == 1800
        });
        let rows = rows["rows"].as_array().expect("rows");
        for (thread, size) in [("main", 450), ("maker", 1350)] {
            let of = |row: &&Value| {
                row["context"]
                    .as_str()
                    .is_some_and(|c| c.starts_with(thread))
            };
            let row = rows.iter().find(of).expect("a thread");
            assert_eq!(row["size"]["sum"], size, "{row}");
        }
        choose("size");
        let row = until(page, BAG, |row| row["capacity"].is_null());
        assert_eq!(
            (&row["size"]["sum"], &row["capacity_bytes"]),
            (&1800.into(), &Value::Null)
        );
        // One in ten stands for the others.
        choose("size,capacity,ratio=0.1");
        program.send("bags 20000");
        page.snapshot();
        let row = until(page, BAG, |row| row["size"]["interval"].is_array());
        let truth = 1800.0 + 90_000.0;
        let [low, high] =
            [0, 1].map(|end| row["size"]["interval"][end].as_f64().expect("a number"));
        let sum = row["size"]["sum"].as_f64().expect("a number");
        assert!(low < sum && sum < high, "{row}");
        // Three times the interval: the truth is out of one interval in twenty.
        let half = (high - low) / 2.0;
        assert!(
            (sum - truth).abs() < 3.0 * half && half < truth / 5.0,
            "{row}"
        );
        assert_eq!(row["capacity"]["mean"], 100.0, "{row}");
        let exact = row["capacity_bytes_interval"].is_array();
        assert!(exact, "{row}");
    });
}

#[test]
fn pages_of_a_list_are_those_of_one_sample() {
    with_program("pages of live objects", |program, page| {
        program.send("bags 500");
        page.snapshot();
        let asked = "instances?source=live&class=Fills$Bag&sort=size&sample=200&limit=60";
        let mut all: Vec<Value> = Vec::new();
        for offset in [0, 60, 120, 180, 240] {
            let list = page.json(&format!("{asked}&offset={offset}"));
            assert_eq!(
                (&list["objects"], &list["sampled"]),
                (&500.into(), &200.into())
            );
            assert_eq!(list["offset"], offset);
            all.extend(list["rows"].as_array().expect("rows").iter().cloned());
        }
        let size = |row: &Value| row["size"].as_u64().expect("a size");
        assert_eq!(all.len(), 200);
        assert!(all.windows(2).all(|two| size(&two[0]) >= size(&two[1])));
        let mut objects: Vec<&str> = all
            .iter()
            .filter_map(|row| row["object"].as_str())
            .collect();
        objects.sort_unstable();
        objects.dedup();
        assert!(objects.len() >= 199, "each once: {}", objects.len());
        // The first page is another sample.
        let again = page.json(asked);
        assert_ne!(again["rows"], Value::Array(all[..60].to_vec()));
        let old = page.text("profiler?action=instances&type=Fills$Bag&source=live&sample=50");
        assert!(
            old.contains("500 instances are alive and tracked, a random sample of 50 examined")
        );
    });
}

/// The Zoo says what it holds.
#[test]
fn the_zoo_holds_what_it_says() {
    let Some(lab) = lab("live Zoo") else { return };
    let source = testkit::corpus::shared().map(|shared| shared.join("workloads/Zoo.java"));
    let Some(source) = source.filter(|source| source.is_file()) else {
        return testkit::skip(
            "live Zoo",
            testkit::Need::Shared,
            "needs the shared workloads",
        );
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let classes = compiled(&source);
    let folder = tempfile::tempdir().expect("a folder");
    let (child, page) = start_live(
        lab,
        jdk,
        (folder.path(), &["--record", "full"]),
        (classes.path(), &["-Xmx400m", "Zoo", "wait"]),
    );
    let mut program = Program::that_speaks(child);
    let mut facts: HashMap<String, u64> = HashMap::new();
    loop {
        let line = program.line().expect("it goes on");
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["READY"] => break,
            ["FACT", name, count] => {
                let class = name.strip_prefix("instances.");
                facts.extend(class.and_then(|class| Some((class.to_owned(), count.parse().ok()?))));
            }
            _ => {}
        }
    }
    assert_eq!(facts.len(), 2, "{facts:?}");
    page.snapshot();
    page.command("gc");
    page.snapshot();
    // Two more of one class are of two other loaders.
    let apart = page.json("classes?loaders=1&source=recording&filter=Zoo$Empty");
    let rows = apart["rows"].as_array().expect("rows");
    let mut live: Vec<u64> = rows.iter().filter_map(|row| row["live"].as_u64()).collect();
    live.sort_unstable();
    assert_eq!(live, [1, 1, facts["Zoo$Empty"]], "{apart}");
    let ones = page.json("classes?filter=Zoo$OneByte");
    assert_eq!(ones["rows"][0]["live"], facts["Zoo$OneByte"], "{ones}");
    // `new int[3][4][5]`
    let arrays = read_again(&page);
    assert_eq!(sum_of(&arrays, "int[][][]", "size"), 3);
    assert_eq!(sum_of(&arrays, "int[][]", "size"), 12);
    // `new ArrayList(100)`, 60 times, and empty.
    let lists = "instances?source=live&class=java.util.ArrayList&sample=all&limit=100000";
    let lists = page.json(lists);
    let rows = lists["rows"].as_array().expect("rows");
    let is_it = |row: &&Value| {
        let content = (row["size"].as_u64(), row["capacity"].as_u64());
        content == (Some(0), Some(100)) && row["stack"].to_string().contains("Zoo.build")
    };
    assert_eq!(rows.iter().filter(is_it).count(), 60, "{lists}");
    let asked = "groups?source=live&class=java.lang.String&by=value&sample=all&limit=100000";
    let strings = page.json(asked);
    let rows = strings["rows"].as_array().expect("rows");
    for n in 0..5 {
        let text = format!("duplicate-{n}");
        let row = rows.iter().find(|row| row["value"] == text.as_str());
        assert_eq!(row.expect("it is there")["estimated"], 100, "{text}");
    }
}
