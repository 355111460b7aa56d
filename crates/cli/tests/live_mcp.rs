//! `tenure mcp --live`: an assistant records, looks, and takes a dump of a running program with known populations.

use crate::mcp::Client;
use crate::watched::{Program, java, lab};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;

const NODE: &str = "Populations$Node";

/// Records until the agent counts, which it notices by what the program allocates.
fn recording(client: &mut Client, program: &mut Program) {
    testkit::until(|| {
        program.send("nothing");
        let known = client.call("live_allocations", json!({}));
        let state = client.call("live_state", json!({}));
        match &state["recording"]["counting"] {
            Value::Bool(true) => Ok(()),
            _ => Err(format!("{state} {known}")),
        }
    });
}

fn what_changes_the_program_is_marked(client: &mut Client) {
    let list = client.ask("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().expect("tools");
    let changing = |tool: &&Value| tool["annotations"]["readOnlyHint"] == false;
    let changing = tools.iter().filter(changing).map(|tool| &tool["name"]);
    assert_eq!(
        changing.collect::<Vec<_>>(),
        [
            "live_record",
            "live_sample_cpu",
            "live_collect",
            "live_dump",
            "live_mark"
        ]
    );
    let limit = tools.iter().find(|tool| tool["name"] == "live_allocations");
    let limit = &limit.expect("a tool")["inputSchema"]["properties"]["limit"];
    assert_eq!([&limit["default"], &limit["maximum"]], [30, 200]);
}

#[test]
fn an_assistant_records_looks_and_takes_a_dump_of_a_running_program() {
    let Some(lab) = lab("tools for a running program") else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let mut java = java(lab, jdk);
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::of(java.spawn().expect("a JVM"));
        let pid = program.child.id().to_string();
        let place = folder.path().to_str().expect("a name");
        let agent = lab.agent.to_str().expect("a name");
        let arguments = [
            "--no-index",
            "--live",
            &pid,
            "--dumps",
            place,
            "--agent",
            agent,
        ];
        let mut client = Client::start(&arguments, &[]);
        let hello = client.introduce("2025-06-18");
        let text = hello["instructions"].as_str().expect("a text");
        assert!(
            text.contains(&format!("Populations (process {pid})")),
            "{text}"
        );

        what_changes_the_program_is_marked(&mut client);

        let state = client.call("live_state", json!({}));
        assert_eq!(state["pid"].to_string(), pid);
        assert_eq!(state["recording"], Value::Null, "{state}");
        for (tool, arguments, words) in [
            ("live_allocations", json!({}), "nothing has been recorded"),
            ("leaks", json!({}), "live_dump takes one"),
            (
                "live_allocations",
                json!({ "by": "clas" }),
                "expected one of class, package",
            ),
        ] {
            let fault = client.fails(tool, arguments);
            assert!(fault.contains(words), "{fault}");
        }

        // Counted from here on.
        let state = client.call("live_record", json!({ "mode": "full", "depth": 8 }));
        assert_eq!(state["recording"]["on"], true, "{state}");
        let other = client.fails("live_record", json!({ "mode": "sampled" }));
        assert!(
            other.contains("records with mode=full") && other.contains("stop it, end this server"),
            "{other}"
        );
        let same = client.call("live_record", json!({}));
        assert_eq!(same["recording"]["mode"], "full", "{same}");
        recording(&mut client, &mut program);
        program.send("keep 1000");
        program.send("garbage 500");
        program.send("other 600");
        let collected = client.call("live_collect", json!({}));
        assert_eq!(collected["error"], Value::Null);
        let nodes = json!({ "filter": NODE });
        let table = testkit::until(|| {
            let table = client.call("live_allocations", nodes.clone());
            let row = &table["rows"][0];
            match row["live"] == 1000 && row["deallocations"] == 500 {
                true => Ok(table),
                false => Err(table),
            }
        });
        assert_eq!(table["schema"], "tenure.live.allocations/1");
        assert_eq!(table["rows"][0]["allocations"], 1500, "{table}");
        let stacks = client.call("live_stacks", nodes).to_string();
        assert!(
            stacks.contains("Populations.keep(Populations.java:"),
            "{stacks}"
        );
        let measured = client.call("live_state", json!({ "wait": 0 }));
        assert!(measured["measured"].is_object(), "{measured}");
        let times = client.call("live_timeline", json!({ "points": 5 }));
        assert_eq!(times["schema"], "tenure.live.timeline/1");

        let growth = client.call("live_growth", json!({}));
        assert_eq!(growth["schema"], "tenure.live.growth/1");

        // A dump for the tools for dumps, by name and without one.
        let taken = client.call("live_dump", json!({}));
        let name = taken["dump"].as_str().expect("a name").to_owned();
        assert!(folder.path().join(&name).is_file(), "{taken}");
        let set = format!("class:{NODE}");
        for arguments in [json!({ "set": set }), json!({ "set": set, "dump": name })] {
            let histogram = client.call("histogram", arguments);
            assert_eq!(histogram["rows"][0]["objects"], 1000, "{histogram}");
        }
        let resources = client.ask("resources/list", json!({}));
        assert!(resources.to_string().contains(&name), "{resources}");
        let one = client.fails("compare", json!({}));
        assert!(one.contains("live_dump takes another"), "{one}");

        let stopped = client.call("live_record", json!({ "mode": "off" }));
        assert_eq!(stopped["recording"]["on"], false, "{stopped}");
        let known = client.call("live_mark", json!({ "text": "the end" }));
        assert_eq!(known["error"], Value::Null);
        assert_eq!(client.end(), Some(0));
        let index = folder.path().join(format!("{name}.tenure"));
        assert!(!index.exists(), "an index in spite of --no-index");
        // It runs on.
        program.send("keep 1");
    }
}

#[test]
fn a_recording_that_another_server_receives_is_not_ended() {
    let Some(lab) = lab("two servers of one program") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut java = java(lab, jdk);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let program = Program::of(java.spawn().expect("a JVM"));
    let pid = program.child.id().to_string();
    let place = folder.path().to_str().expect("a name");
    let agent = lab.agent.to_str().expect("a name");
    let arguments = ["--live", &pid, "--dumps", place, "--agent", agent];
    let [mut first, mut second] = [(); 2].map(|()| Client::start(&arguments, &[]));
    for client in [&mut first, &mut second] {
        client.introduce("2025-06-18");
    }
    first.call("live_record", json!({ "mode": "full" }));
    let refused = second.fails("live_record", json!({ "mode": "full", "depth": 9 }));
    assert!(refused.contains("stop` ends that recording"), "{refused}");
    let state = first.call("live_state", json!({}));
    assert_eq!(state["recording"]["connected"], true, "{state}");
    assert_eq!([second.end(), first.end()], [Some(0); 2]);
}

#[test]
fn a_call_that_waits_for_a_stopped_program_does_not_delay_the_end() {
    let Some(lab) = lab("the end of tools for a stopped program") else {
        return;
    };
    let Some(jdk) = lab.jdks.first() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut java = java(lab, jdk);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let program = Program::of(java.spawn().expect("a JVM"));
    let pid = Pid::from_child(&program.child);
    let (id, place) = (program.child.id().to_string(), folder.path().to_str());
    let arguments = ["--live", &id, "--dumps", place.expect("a name")];
    let mut client = Client::start(&arguments, &[]);
    client.introduce("2025-06-18");
    kill_process(pid, Signal::STOP).expect("stopped");
    let call = client.send(
        "tools/call",
        json!({ "name": "live_dump", "arguments": {} }),
    );
    client.notify("notifications/cancelled", json!({ "requestId": call }));
    assert_eq!(client.end(), Some(0));
    kill_process(pid, Signal::CONT).expect("it runs on");
}
