//! The reference against the programs: every option of the agent, every view of the local server,
//! and every tool of the Model Context Protocol with its arguments. (`json_documents` does this for JSON, and the test of
//! documents for the tables of SQL, because the reference shows the output of `query --tables`.)

use std::io::Write;
use std::process::{Command, Stdio};

use agent_core::options::{OPTIONS, Origin};
use serde_json::{Value, json};
use testkit::corpus::workspace;

fn document(name: &str) -> String {
    let path = workspace().join("docs/reference").join(name);
    std::fs::read_to_string(path).expect("the document")
}

/// The first line of a table in a document whose first cell begins with this text in a code span.
fn table_row<'a>(document: &'a str, begins: &str) -> Option<&'a str> {
    let begins = format!("`{begins}");
    let cells = |line: &'a str| line.strip_prefix("| ")?.split(" | ").next();
    let named = |cell: &str| cell.split(", ").any(|span| span.starts_with(&begins));
    document.lines().find(|line| cells(line).is_some_and(named))
}

#[test]
fn every_option_of_the_agent_has_a_row() {
    let text = document("agent.md");
    let present = OPTIONS.iter().filter(|row| row.origin != Origin::Removed);
    let missing: Vec<&str> = present
        .map(|row| row.name)
        .filter(|name| table_row(&text, &format!("{name}=")).is_none())
        .collect();
    assert!(missing.is_empty(), "agent.md lacks {missing:?}");
    assert!(table_row(&text, "nosuch=").is_none());
}

#[test]
fn every_view_of_the_local_server_is_in_its_table() {
    let text = document("api.md");
    let tables = text.lines().filter(|line| line.starts_with("| "));
    let cells: Vec<&str> = tables.filter_map(|line| line.split(" | ").next()).collect();
    let named = |view: &str| cells.iter().any(|cell| cell.contains(&format!("`{view}`")));
    let missing: Vec<&str> = server::explorer::view_names()
        .filter(|view| !named(view))
        .collect();
    assert!(missing.is_empty(), "api.md lacks {missing:?}");
    assert!(!named("nosuch"));
}

/// The tools as a server of two dumps lists them.
fn tools() -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dump = testkit::corpus::unpacked(&workspace().join("demo/leak-small.hprof.gz"));
    let files = ["before.hprof", "after.hprof"].map(|name| folder.path().join(name));
    for file in &files {
        std::fs::write(file, &dump).expect("writing it");
    }
    let mut server = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["mcp", "--no-index"])
        .args(&files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tenure runs");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    let mut input = server.stdin.take().expect("a pipe");
    writeln!(input, "{hello}\n{list}").expect("the server reads");
    drop(input);
    let ran = server.wait_with_output().expect("it ends");
    let answers = String::from_utf8(ran.stdout).expect("text");
    let mut answers = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let list = answers.find(|answer| answer["id"] == 2);
    let list = list.expect("an answer to the second request");
    list["result"]["tools"].as_array().expect("tools").clone()
}

#[test]
fn every_tool_and_argument_of_mcp_is_in_the_table() {
    let text = document("mcp.md");
    let (tools, mut missing) = (tools(), Vec::new());
    assert!(tools.len() > 8, "{tools:?}");
    for tool in &tools {
        let name = tool["name"].as_str().expect("a name");
        let Some(row) = table_row(&text, &format!("{name}`")) else {
            missing.push(name.to_owned());
            continue;
        };
        let arguments = tool["inputSchema"]["properties"].as_object();
        let names = arguments.into_iter().flat_map(|all| all.keys());
        // The text below the table describes `dump`, which all tools have.
        let unnamed = names.filter(|key| *key != "dump" && !row.contains(&format!("`{key}`")));
        missing.extend(unnamed.map(|key| format!("{name}: {key}")));
    }
    assert!(missing.is_empty(), "mcp.md lacks {missing:?}");
}
