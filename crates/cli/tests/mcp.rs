//! `tenure mcp` over real pipes: both generations of the protocol, every tool, faults, cancelling,
//! the end of the input, and what is left on the disk.

use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Generous: machines are slow, and a hang fails all the same.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    /// What every request has in `_meta`.
    meta: Option<Json>,
}

impl Client {
    pub(crate) fn start(arguments: &[&str], files: &[&Path]) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .arg("mcp")
            .args(arguments)
            .args(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Client {
            child,
            input,
            lines,
            next: 0,
            meta: None,
        }
    }

    fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, mut params: Json) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let message =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.line(&message.to_string());
        self.next
    }

    pub(crate) fn notify(&mut self, method: &str, params: Json) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// The next message; every line is one.
    fn receive(&mut self) -> Json {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        let message: Json = serde_json::from_str(&line).expect("JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    pub(crate) fn ask(&mut self, method: &str, params: Json) -> Json {
        let id = self.send(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool that must have an answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: Json) -> Json {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{tool} {arguments}: {answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < 60_000, "{tool}: {} bytes", text.len());
        // Once, and nowhere else in the message.
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        assert!(result.get("structuredContent").is_none(), "{tool}");
        serde_json::from_str(text).unwrap()
    }

    /// Calls a tool that must say what is wrong.
    pub(crate) fn fails(&mut self, tool: &str, arguments: Json) -> String {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn introduce(&mut self, version: &str) -> Json {
        let client = json!({ "name": "test", "version": "1" });
        let answer = self.ask(
            "initialize",
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }),
        );
        self.notify("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    /// Ends the input and waits for the program.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        testkit::wait::ended(&mut self.child).code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended already, unless a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn demo(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    let file = folder.path().join(name);
    let packed = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    std::fs::write(&file, testkit::corpus::unpacked(&packed)).unwrap();
    file
}

fn files_in(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn tools_lead_from_the_suspect_to_the_field_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = demo(&folder, "leak.hprof");
    let mut client = Client::start(&["--no-index"], &[&file]);
    let hello = client.introduce("2025-06-18");
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    assert_eq!(hello["serverInfo"]["name"], "tenure");
    assert!(hello["capabilities"]["tools"].is_object());
    let list = client.ask("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "overview",
            "leaks",
            "histogram",
            "objects",
            "object",
            "paths",
            "dominators",
            "threads",
            "waste",
            "query"
        ]
    );
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
    }
    let query = tools.last().unwrap()["description"].as_str().unwrap();
    for words in [
        "objects: id class shallow",
        "retained_set(of): id",
        "classes: name id superclass",
    ] {
        assert!(query.contains(words), "{words}: {query}");
    }

    assert_eq!(
        client.call("overview", json!({}))["schema"],
        "tenure.overview/1"
    );
    let leaks = client.call("leaks", json!({}));
    let point = leaks["suspects"][0]["accumulation_point"]["object"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        leaks["suspects"][0]["holder"]
            .as_str()
            .unwrap()
            .contains("SESSIONS"),
        "{leaks}"
    );
    // Ids of one answer are arguments of the next.
    let object = client.call("object", json!({ "id": point, "limit": 5 }));
    assert_eq!(object["object"], point.as_str());
    assert!(object["inbound"].as_array().unwrap().len() <= 5);
    let paths = client.call("paths", json!({ "id": point, "count": 1 }));
    let steps = paths["paths"][0]["steps"].to_string();
    assert!(
        steps.contains("shop.SessionRegistry") && steps.contains("SESSIONS"),
        "{steps}"
    );
    // The paths to all objects of a class, or of a set, are merged.
    let merged = client.call("paths", json!({ "set": "shop.Session" }));
    assert_eq!(merged["schema"], "tenure.merged_paths/1", "{merged}");
    let same = client.call("paths", json!({ "set": "class:shop.Session" }));
    assert_eq!(merged, same);
    assert!(
        merged.to_string().contains("shop.SessionRegistry"),
        "{merged}"
    );
    let threads = client.call("threads", json!({ "limit": 2, "locals": 1 }));
    assert_eq!(threads["threads"].as_array().unwrap().len(), 2, "{threads}");
    let waste = client.call("waste", json!({ "limit": 1 }));
    assert_eq!(waste["schema"], "tenure.waste/1");
    let below = client.call("dominators", json!({ "id": point, "limit": 3 }));
    assert_eq!(below["nodes"].as_array().unwrap().len(), 3);

    // The histogram is that of the command.
    let printed = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["histogram", "--no-index", "--json", "-n", "7"])
        .arg(&file)
        .output()
        .unwrap();
    let printed: Json = serde_json::from_slice(&printed.stdout).unwrap();
    let histogram = client.call("histogram", json!({ "limit": 7 }));
    assert_eq!(histogram["rows"], printed["rows"]);

    queries_and_sets(&mut client);
    // The same question has the same answer.
    assert_eq!(client.call("histogram", json!({ "limit": 7 })), histogram);

    assert_eq!(client.end(), Some(0));
    assert_eq!(files_in(&folder), ["leak.hprof"], "nothing is written");
}

fn queries_and_sets(client: &mut Client) {
    let set = "sql:(select this from shop.Session)";
    let objects = client.call("objects", json!({ "set": set, "limit": 4 }));
    let count = client.call(
        "query",
        json!({ "text": "select count(*) from shop.Session" }),
    );
    assert_eq!(objects["total"]["objects"], count["rows"][0][0]);
    let rows = client.call(
        "query",
        json!({ "text": "SELECT s FROM shop.Session s", "limit": 2 }),
    );
    assert_eq!(
        (&rows["lang"], &rows["cut"]),
        (&json!("oql"), &json!("rows"))
    );
    let one = rows["rows"][0][0].as_str().unwrap();
    assert_eq!(
        client.call("object", json!({ "id": one }))["class"],
        "shop.Session"
    );
    let long = client.call(
        "query",
        json!({ "text": "select printf('%.*c', 5000, 'x')" }),
    );
    assert_eq!(long["rows"][0][0].as_str().unwrap().chars().count(), 601);
    assert_eq!(long["truncated"], json!(["/rows/0/0: 5000 in all"]));
}

#[test]
fn what_a_model_gets_wrong_is_reported_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = demo(&folder, "leak.hprof");
    let mut client = Client::start(&["--no-index"], &[&file]);
    client.introduce("2025-11-25");
    for (tool, arguments, words) in [
        (
            "query",
            json!({ "text": "select nosuch from objects" }),
            "line 1, column 8",
        ),
        (
            "query",
            json!({ "text": "delete from objects" }),
            "may not be modified",
        ),
        ("query", json!({}), "text is missing"),
        ("paths", json!({}), "id or set is missing"),
        ("paths", json!({ "id": "0x1", "set": "all" }), "not both"),
        ("paths", json!({ "set": "no.such" }), "not in this dump"),
        ("object", json!({ "id": "0x1" }), "no object 0x1"),
        ("object", json!({ "id": "zz" }), "expected an object id"),
        (
            "objects",
            json!({ "set": "class:no.such" }),
            "not in this dump",
        ),
        ("objects", json!({ "set": "no such set" }), "expected a set"),
        (
            "histogram",
            json!({ "by": "colour" }),
            "expected one of class",
        ),
        ("histogram", json!({ "limit": 100_000 }), "from 1 to 200"),
        ("histogram", json!({ "limit": 2.5 }), "from 1 to 200"),
        ("histogram", json!({ "top": 5 }), "has no argument top"),
        ("leaks", json!({ "deep": "yes" }), "expected true or false"),
        (
            "overview",
            json!({ "dump": "other.hprof" }),
            "there are: leak.hprof",
        ),
    ] {
        let printed = client.fails(tool, arguments.clone());
        assert!(printed.contains(words), "{tool} {arguments}: {printed}");
    }
    // To a schema, this is a whole number.
    let two = client.call("histogram", json!({ "limit": 2.0 }));
    assert_eq!(two["rows"].as_array().unwrap().len(), 2);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_client_of_today_needs_no_introduction() {
    let folder = tempfile::tempdir().unwrap();
    let file = demo(&folder, "leak.hprof");
    let mut client = Client::start(&[], &[&file]);
    // Neither introduced nor with a version.
    assert_eq!(client.ask("tools/list", json!({}))["error"]["code"], -32602);
    let version = "io.modelcontextprotocol/protocolVersion";
    client.meta = Some(json!({ version: "2026-07-28" }));
    assert_eq!(
        client.ask("tools/list", json!({}))["error"]["code"],
        -32602,
        "capabilities are missing"
    );
    client.meta =
        Some(json!({ version: "1900-01-01", "io.modelcontextprotocol/clientCapabilities": {} }));
    let refused = client.ask("server/discover", json!({}));
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["requested"], "1900-01-01");
    assert_eq!(refused["error"]["data"]["supported"][0], "2026-07-28");
    client.meta =
        Some(json!({ version: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} }));
    let found = client.ask("server/discover", json!({}))["result"].clone();
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(
        found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "tenure"
    );
    let list = client.ask("tools/list", json!({}))["result"].clone();
    assert!(
        list["ttlMs"].is_u64() && list["cacheScope"] == "private",
        "{list}"
    );
    let answer = client.ask("tools/call", json!({ "name": "leaks" }));
    assert_eq!(answer["result"]["resultType"], "complete");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let leaks: Json = serde_json::from_str(text).unwrap();
    assert_eq!(leaks["schema"], "tenure.leaks/1");
    assert_eq!(
        client.ask("tools/call", json!({ "name": "rm" }))["error"]["code"],
        -32602
    );
    assert_eq!(
        client.ask("prompts/list", json!({}))["error"]["code"],
        -32601
    );
    let list = client.ask("resources/list", json!({}))["result"].clone();
    assert!(list["ttlMs"].is_u64(), "{list}");
    assert_eq!(list["resources"].as_array().unwrap().len(), 1);
    let uri = list["resources"][0]["uri"].clone();
    let read = client.ask("resources/read", json!({ "uri": uri }))["result"].clone();
    let report = read["contents"][0]["text"].as_str().unwrap();
    assert!(report.starts_with("## Heap report"), "{report}");
    assert!(report.contains("SESSIONS"), "the leak: {report}");
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    let absent = client.ask("resources/read", json!({ "uri": "tenure://report/x" }));
    assert_eq!(absent["error"]["code"], -32002);
    let missing = client.ask("resources/read", json!({}));
    assert_eq!(missing["error"]["code"], -32602);
    let templates = client.ask("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"], json!([]));
    assert_eq!(client.end(), Some(0));
    // The index, and nothing else beside it.
    let files = files_in(&folder);
    assert!(
        files.iter().all(|f| f.starts_with("leak.hprof")) && files.len() <= 3,
        "{files:?}"
    );
    assert!(
        !files
            .iter()
            .any(|f| f.contains("notes") || f.contains("queries")),
        "{files:?}"
    );
}

#[test]
fn a_cancelled_call_ends_without_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = demo(&folder, "leak.hprof");
    let mut client = Client::start(&["--no-index"], &[&file]);
    client.introduce("2025-11-25");
    client.call("overview", json!({}));
    let endless =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let arguments = json!({ "text": endless, "seconds": 600 });
    let id = client.send(
        "tools/call",
        json!({ "name": "query", "arguments": arguments }),
    );
    // Others are answered while it runs.
    client.call("leaks", json!({}));
    let cut = client.call("query", json!({ "text": endless, "seconds": 1 }));
    assert_eq!(cut["cut"], "time");
    client.notify(
        "notifications/cancelled",
        json!({ "requestId": id, "reason": "test" }),
    );
    client.notify("notifications/cancelled", json!({ "requestId": 12345 }));
    assert!(client.ask("ping", json!({}))["result"].is_object());
    // Only the end of the call lets the program end before the query's ten minutes are over.
    drop(client.input.take());
    let rest: Vec<String> = client.lines.iter().collect();
    assert_eq!(
        rest,
        Vec::<String>::new(),
        "nothing is said of a cancelled call"
    );
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn what_is_no_message_is_answered_by_an_error_and_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (demo(&folder, "one.hprof"), demo(&folder, "two.hprof"));
    let mut client = Client::start(&["--no-index"], &[&one, &two]);
    client.introduce("1999-01-01");
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1", -32700),
        ("[]", -32600),
        ("7", -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            -32600,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
        ("{\"id\":1,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"leaks\",\"arguments\":3}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
            -32602,
        ),
    ] {
        client.line(line);
        let answer = client.receive();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(5 << 20));
    client.line(&long);
    let answer = client.receive();
    let error = &answer["error"];
    let words = "a message may have at most 4194304 bytes";
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32600), &json!(words))
    );
    client.line("");
    client.line("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
    client.notify("notifications/unknown", json!({}));
    client.line(&json!({ "jsonrpc": "2.0", "id": "text", "method": "ping" }).to_string());
    assert_eq!(client.receive()["id"], "text");

    let list = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let last = list.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["name"], "compare");
    let dumps = &list[0]["inputSchema"]["properties"]["dump"]["enum"];
    assert_eq!(*dumps, json!(["one.hprof", "two.hprof"]));
    let diff = client.call("compare", json!({}));
    assert_eq!(diff["schema"], "tenure.diff/1");
    assert_eq!(diff["dumps"][1]["name"], "two.hprof");
    // Only one is given: the other one is not the same dump.
    let back = client.call("compare", json!({ "after": "one.hprof" }));
    assert_eq!(back["dumps"][0]["name"], "two.hprof");
    let second = client.call("histogram", json!({ "dump": "two.hprof", "limit": 1 }));
    assert_eq!(second["rows"].as_array().unwrap().len(), 1);
    assert!(
        client
            .fails("compare", json!({ "before": "three" }))
            .contains("one.hprof, two.hprof")
    );
    assert_eq!(client.end(), Some(0));
}

#[test]
fn files_that_are_not_there_are_a_fault_and_those_that_are_no_dump_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.hprof");
    assert_eq!(Client::start(&[], &[&absent]).end(), Some(3));
    assert_eq!(Client::start(&[], &[Path::new("-")]).end(), Some(2));
    let text = folder.path().join("text.hprof");
    std::fs::write(&text, "not a dump").unwrap();
    let mut client = Client::start(&[], &[&text]);
    client.introduce("2025-11-25");
    assert!(
        client
            .fails("overview", json!({}))
            .starts_with("text.hprof: ")
    );
    assert_eq!(client.end(), Some(0));
}

/// A text profile with two metrics.
const PROFILE: &str = "JAVA PROFILE 1.0.1, created Mon Jan  1 00:00:00 2024\n\n\
    --------\n\n\
    TRACE 300001:\n\tshop.Cart.add(Cart.java:7)\n\tshop.Main.main(Main.java:3)\n\
    TRACE 300002:\n\tshop.Main.main(Main.java:4)\n\
    CPU SAMPLES BEGIN (total = 10) Mon Jan  1 00:00:00 2024\n\
    rank   self  accum   count trace method\n\
    \x20  1 70.00% 70.00%       7 300001 shop.Cart.add\n\
    \x20  2 30.00% 100.00%       3 300002 shop.Main.main\n\
    CPU SAMPLES END\n";

#[test]
fn a_profile_is_answered_beside_a_dump_or_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = demo(&folder, "leak.hprof");
    let profile = folder.path().join("java.hprof.txt");
    std::fs::write(&profile, PROFILE).unwrap();
    let printed = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["profile", "--json"])
        .arg(&profile)
        .output()
        .unwrap();
    let printed: Json = serde_json::from_slice(&printed.stdout).unwrap();
    let with_profile = ["--no-index", "--profile", profile.to_str().unwrap()];
    let mut client = Client::start(&with_profile, &[&file]);
    let hello = client.introduce("2025-11-25");
    let words = hello["instructions"].as_str().unwrap();
    assert!(words.contains("java.hprof.txt"), "{words}");
    let answer = client.call("profile", json!({}));
    assert_eq!(answer, printed);
    assert_eq!(answer["methods"][0]["method"], "shop.Cart.add");
    let one = client.call("profile", json!({ "metric": "samples", "limit": 1 }));
    assert_eq!(one["omitted_stacks"], 1);
    let wrong = client.fails("profile", json!({ "metric": "delay" }));
    assert!(wrong.contains("the profile has: samples"), "{wrong}");
    let wrong = client.fails("profile", json!({ "profile": "x" }));
    assert!(wrong.contains("there are: java.hprof.txt"), "{wrong}");
    assert_eq!(client.end(), Some(0));
    let mut alone = Client::start(&with_profile, &[]);
    alone.introduce("2025-11-25");
    let tools = alone.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!(alone.call("profile", json!({})), printed);
    assert_eq!(alone.end(), Some(0));
    // What can be read of a damaged one is answered, and the damage is named.
    std::fs::write(&profile, PROFILE.split_at(PROFILE.len() - 60).0).unwrap();
    let mut damaged = Client::start(&with_profile, &[]);
    damaged.introduce("2025-11-25");
    let answer = damaged.call("profile", json!({}));
    assert_eq!(answer["methods"][0]["method"], "shop.Cart.add");
    assert!(!answer["damage"].as_array().unwrap().is_empty(), "{answer}");
    assert_eq!(damaged.end(), Some(0));
}

/// A hunt for the demo's leak, as a client and the server had it: lines of requests and of the answers to them. With
/// `TENURE_RECORD` set, the answers are written anew.
#[test]
fn a_recorded_hunt_for_a_leak_goes_as_before() {
    let record = testkit::corpus::workspace().join("crates/cli/tests/leak_hunt.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let file = demo(&folder, "leak.hprof");
    let mut client = Client::start(&["--no-index"], &[&file]);
    let before = std::fs::read_to_string(&record).unwrap();
    let mut now = String::new();
    for line in before.lines() {
        let message: Json = serde_json::from_str(line).unwrap();
        if message.get("method").is_none() {
            continue;
        }
        client.line(line);
        now += &format!("{line}\n");
        if message.get("id").is_some() {
            let answer = client.receive().to_string();
            now += &answer.replace(env!("CARGO_PKG_VERSION"), "VERSION");
            now.push('\n');
        }
    }
    assert_eq!(client.end(), Some(0));
    if std::env::var_os("TENURE_RECORD").is_some() {
        std::fs::write(&record, now).unwrap();
        return;
    }
    let pairs = before.lines().zip(now.lines());
    for (number, (before, now)) in (1..).zip(pairs) {
        assert_eq!(now, before, "line {number} of {}", record.display());
    }
    assert_eq!(before.lines().count(), now.lines().count());
}
