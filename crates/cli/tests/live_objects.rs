//! Live objects of a running program: when and where they were made, and what they say of themselves
//! when they may be asked.

use crate::watched::{Page, Program};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

fn with_program(test: &str, flags: &[&str], body: impl Fn(&mut Program, &Page)) {
    let flags = [&["--record", "full"], flags].concat();
    crate::watched::with_program(test, "Speakers", &flags, |program, page, _| {
        page.counting(program);
        body(program, page);
    });
}

fn rows(answer: &Value) -> &[Value] {
    answer["rows"].as_array().expect("rows")
}

fn texts<'a>(answer: &'a Value, name: &str) -> Vec<&'a str> {
    let rows = rows(answer).iter();
    rows.map(|row| row[name].as_str().unwrap_or("null"))
        .collect()
}

/// Groups as counts and values.
fn groups(page: &Page, asked: &str) -> Vec<(u64, String)> {
    let answer = page.json(&format!("groups?source=live&{asked}"));
    let row = |row: &Value| {
        let value = row["value"].as_str().expect("a value").to_owned();
        (row["estimated"].as_u64().expect("a number"), value)
    };
    rows(&answer).iter().map(row).collect()
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_millis() as u64
}

const WORDS: &str = "instances?source=live&class=Speakers$Word";

#[test]
fn objects_are_asked_only_when_that_is_allowed() {
    with_program("own code of objects", &[], |program, page| {
        program.send("words 10");
        program.send("texts 10");
        // Nothing of the program runs; the JDK's own values have nothing to hide.
        let list = page.json(WORDS);
        assert_eq!(
            (&list["objects"], &list["own_code"]),
            (&10.into(), &false.into())
        );
        assert_eq!(texts(&list, "value"), ["null"; 10], "{list}");
        assert_eq!(rows(&list)[0]["size"], 3, "{list}");
        assert_eq!(rows(&list)[0]["capacity"], 10, "{list}");
        assert!(list.to_string().contains("Speakers.main"), "{list}");
        for by in ["value", "text", "hash"] {
            let found = groups(page, &format!("class=Speakers$Word&by={by}"));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].1.starts_with("(not called"), "{found:?}");
        }
        page.json(&format!("{WORDS}&sort=rank"));
        program.send("calls 0");
        let found = groups(page, "class=java.lang.Integer&by=value&sample=all");
        for number in 1000..1005 {
            let made = found.iter().find(|(_, value)| *value == number.to_string());
            assert!(made.is_some_and(|(count, _)| *count >= 2), "{found:?}");
        }
        assert_eq!(page.ask("GET", "api/v1/commands/own?on=1").0, 405);
        page.command("own?on=1");
        assert_eq!(page.json("state")["own_code"], true);
        let list = page.json(&format!("{WORDS}&sort=rank&up=1"));
        let expected: Vec<String> = (0..10).rev().map(|n| format!("word {n}")).collect();
        assert_eq!(texts(&list, "value"), expected, "{list}");
        let ranks: Vec<_> = rows(&list).iter().map(|row| row["rank"].as_u64()).collect();
        assert_eq!(ranks, (1..=10).map(Some).collect::<Vec<_>>());
        let list = page.json(&format!("{WORDS}&sort=value"));
        let texts_up: Vec<String> = (0..10).map(|n| format!("word {n}")).collect();
        assert_eq!(texts(&list, "value"), texts_up, "{list}");
        let list = page.json(&format!("{WORDS}&sort=hash&up=1&limit=4"));
        assert!(rows(&list).iter().all(|row| row["hash"] == 0), "{list}");
        // Numbers 0 to 9 in pairs; 0, 1, 6 and 7 have one hash code.
        let found = groups(page, "class=Speakers$Word&by=value");
        assert_eq!(found.iter().map(|one| one.0).collect::<Vec<_>>(), [2; 5]);
        let found = groups(page, "class=Speakers$Word&by=text");
        assert_eq!(found.len(), 10, "{found:?}");
        let found = groups(page, "class=Speakers$Word&by=hash");
        let found: Vec<_> = found
            .iter()
            .map(|(count, hash)| (*count, &**hash))
            .collect();
        assert_eq!(found, [(4, "0"), (4, "1"), (2, "2")]);
        let cut = page.json(&format!("{WORDS}&value=4&limit=1"));
        assert_eq!(rows(&cut)[0]["value"], "word+2");
        let old = page
            .text("profiler?action=instances&type=Speakers$Word&sort=compareTo&inc=true&rows=1");
        assert!(old.contains("word 9") && !old.contains("word 8"), "{old}");
        page.command("own?on=0");
        let list = page.json(WORDS);
        assert_eq!(texts(&list, "value"), ["null"; 10], "{list}");
    });
}

#[test]
fn code_that_throws_or_allocates_does_no_harm() {
    with_program("throwing objects", &["--own-code"], |program, page| {
        program.send("throwers 6");
        program.send("makers 3");
        let throwers = "instances?class=Speakers$Thrower&sort=rank";
        let list = page.json(throwers);
        assert_eq!(list["own_code"], true);
        let fault = "toString: java.lang.IllegalStateException: no text";
        assert_eq!(texts(&list, "fault"), [fault; 6], "{list}");
        let found = groups(page, "class=Speakers$Thrower&by=hash");
        assert_eq!(
            found,
            [(6, "hashCode: java.lang.StackOverflowError".to_owned())]
        );
        // What their code makes on the agent's thread is not the program's.
        let list = page.json("instances?class=Speakers$Maker");
        assert_eq!(texts(&list, "value"), ["made"; 3], "{list}");
        page.snapshot();
        let made = page.json("classes?source=recording&filter=Speakers$Made");
        assert_eq!(made["count"], 0, "{made}");
    });
}

#[test]
fn code_that_does_not_return_costs_two_threads_at_most() {
    with_program("hanging objects", &["--own-code"], |program, page| {
        program.send("hangers 2");
        program.send("words 2");
        let hangers = "instances?class=Speakers$Hanger";
        for _ in 0..2 {
            let list = page.json(hangers);
            let notes = list["notes"].to_string();
            assert!(
                notes.contains("toString of an object does not return"),
                "{list}"
            );
            assert_eq!(list["objects"], 2);
        }
        // No object is asked any more, but everything else is known.
        let list = page.json(WORDS);
        assert!(
            list["notes"].to_string().contains("have not returned"),
            "{list}"
        );
        assert_eq!(texts(&list, "value"), ["null"; 2]);
        program.send("words 1");
        page.snapshot();
        program.send("release");
        let list = page.until_counted(hangers, |list| texts(list, "value") == ["free"; 2]);
        assert_eq!(list["notes"].as_array().map(Vec::len), Some(0), "{list}");
        assert_eq!(page.json(WORDS)["objects"], 3);
    });
}

#[test]
fn allocation_times_are_known_where_they_are_wanted() {
    with_program("new objects", &[], |program, page| {
        let begun = now_ms();
        program.send("words 3");
        page.snapshot();
        let middle = now_ms();
        program.send("words 4");
        let list = page.json(&format!("{WORDS}&sort=born_ms&up=1"));
        let ended = now_ms();
        let born = |row: &Value| row["born_ms"].as_u64().expect("a time");
        let times: Vec<u64> = rows(&list).iter().map(born).collect();
        assert_eq!(times.len(), 7, "{list}");
        let (first, second) = times.split_at(3);
        // The clocks may differ by a millisecond's rounding.
        assert!(
            first.iter().all(|t| (begun - 2..=middle + 2).contains(t)),
            "{times:?} {begun}"
        );
        assert!(
            second.iter().all(|t| (middle - 2..=ended + 2).contains(t)),
            "{times:?} {middle}"
        );
        for by in ["time", "second", "minute", "hour"] {
            let found = groups(page, &format!("class=Speakers$Word&by={by}"));
            assert_eq!(found.iter().map(|one| one.0).sum::<u64>(), 7, "{found:?}");
        }
        let old = page.text("profiler?action=instances&type=Speakers$Word&sort=time&inc=true");
        assert!(
            old.contains("Allocated (UTC)") && old.contains("s ago"),
            "{old}"
        );
        assert!(
            old.contains("7 instances are alive and tracked, 7 examined"),
            "{old}"
        );
        let hours = page.text("profiler?action=instances&type=Speakers$Word&sort=uniq_hour");
        assert!(hours.contains("<td>7</td>"), "{hours}");
        // What was allocated, live or not.
        page.snapshot();
        let all = page.json("groups?class=Speakers$Word&by=hour&source=recording");
        assert_eq!(all["objects"], 7, "{all}");
        // What is left out is not shown, wherever it is still known.
        page.command("options?text=*%20Speakers$Word%20stack");
        let list = page.json(WORDS);
        assert!(
            rows(&list).iter().all(|row| row["born_ms"].is_null()),
            "{list}"
        );
        assert!(
            rows(&list).iter().all(|row| row["size"].is_null()),
            "{list}"
        );
        let has_stack = |row: &Value| row["stack"].to_string().contains("Speakers.main");
        assert!(rows(&list).iter().all(has_stack), "{list}");
        let (status, body) = page.ask("GET", "api/v1/groups?class=Speakers$Word&by=hour");
        assert_eq!(status, 400, "{body}");
    });
}
