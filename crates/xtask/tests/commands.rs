//! The commands in the documents, run as a reader would run them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::Need;
use testkit::corpus::unpacked;
use testkit::run::{Ran, run_command};
use xtask::commands::{Block, Document, document, first_untrue};
use xtask::tree::{root, text_files};

/// A folder as the documents describe it: this repository's `demo`, a dump called heap.hprof, and
/// one of a healthy run.
fn folder_with_a_dump() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let packed = root().join("demo/leak-small.hprof.gz");
    std::fs::write(folder.path().join("heap.hprof"), unpacked(&packed)).expect("writing it");
    std::fs::create_dir(folder.path().join("demo")).expect("a folder");
    let leak = root().join("demo/Leak.java");
    std::fs::copy(leak, folder.path().join("demo/Leak.java")).expect("copying it");
    for name in ["heap.hprof.gz", "demo/leak-small.hprof.gz"] {
        std::fs::copy(&packed, folder.path().join(name)).expect("copying it");
    }
    std::fs::copy(
        folder.path().join("heap.hprof"),
        folder.path().join("good.hprof"),
    )
    .expect("copying it");
    folder
}

fn shell(command: &str, folder: &Path, bin: &Path) -> Ran {
    let mut sh = Command::new("sh");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let jdk = testkit::jvm::newest_compiler().map(|jdk| jdk.home.join("bin"));
    let ours = [Some(bin.to_path_buf()), jdk];
    let path = ours
        .into_iter()
        .flatten()
        .chain(std::env::split_paths(&path));
    sh.args(["-e", "-c", command]).current_dir(folder);
    sh.env("PATH", std::env::join_paths(path).expect("a PATH"));
    sh.env("HOME", folder)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    sh.env("NO_COLOR", "1").env("COLUMNS", "100");
    run_command(sh, Duration::from_secs(120))
}

fn run_block(block: &Block, files: &[(String, String)], bin: &Path) -> Vec<String> {
    let folder = folder_with_a_dump();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).expect("a file of the document");
    }
    let mut problems = Vec::new();
    for (i, step) in block.steps.iter().enumerate() {
        let ran = shell(&step.command, folder.path(), bin);
        let last = i + 1 == block.steps.len();
        let want = if last { block.exit } else { 0 };
        let place = format!("{}: `{}`", block.line, step.command);
        if ran.code != Some(want) {
            problems.push(format!(
                "{place}: exit {:?}, not {want}\n{}",
                ran.code, ran.stderr
            ));
        }
        let silent = step.output.is_empty() || block.output_varies;
        if let (false, Some(line)) = (silent, first_untrue(&step.output, &ran.stdout)) {
            problems.push(format!("{place}: no longer true: {line}\n{}", ran.stdout));
        }
    }
    problems
}

/// The documents of the repository by path.
fn documents() -> Vec<(String, Document)> {
    let mut found = Vec::new();
    for (path, text) in text_files() {
        if path.ends_with(".md") {
            let read = document(&text).unwrap_or_else(|problem| panic!("{path}: {problem}"));
            found.push((path, read));
        }
    }
    assert!(found.iter().any(|(path, _)| path == "README.md"));
    found
}

#[test]
fn every_command_of_the_documents_does_what_they_say() {
    let jdk = testkit::jvm::newest_compiler().is_some();
    let tenure = testkit::built::tenure();
    let bin = tenure.parent().expect("a folder");
    let (mut problems, mut ran) = (Vec::new(), 0);
    for (path, document) in documents() {
        for block in document
            .blocks
            .iter()
            .filter(|block| block.not_run.is_none())
        {
            if block.needs_jdk && !jdk {
                testkit::skip(
                    &format!("{path}:{}", block.line),
                    Need::Jdk,
                    testkit::jvm::NO_JDK,
                );
                continue;
            }
            let found = run_block(block, &document.files, bin);
            problems.extend(found.iter().map(|problem| format!("{path}:{problem}")));
            ran += 1;
        }
    }
    assert!(ran > 5, "only {ran} blocks are run");
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// What `tenure COMMAND --help` prints, or `tenure --help`; `None` for an unknown command.
fn help(command: Option<&str>) -> Option<String> {
    let mut tenure = Command::new(testkit::built::tenure());
    let ran = tenure
        .args(command)
        .arg("--help")
        .output()
        .expect("tenure runs");
    ran.status
        .success()
        .then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// The commands that the help lists.
fn known_commands() -> BTreeMap<String, String> {
    let all = help(None).expect("the help");
    let listed = all
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let named = listed.filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    let commands = named.filter(|word| !word.starts_with('-'));
    commands
        .filter_map(|name| Some((name.to_owned(), help(Some(name))?)))
        .collect()
}

/// A line of a script without the comment at its end.
fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

/// What is wrong with a command that is not run: its name, or a flag that the help does not list.
fn wrong_in(span: &str, known: &BTreeMap<String, String>, all: &str) -> Option<String> {
    let words = span.strip_prefix("tenure ")?;
    // What follows `--` is another program.
    let words = words.split(" -- ").next().unwrap_or_default();
    let mut words = words.split_whitespace();
    let command = words.next()?;
    let is_name = command.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let listed = match known.get(command) {
        _ if command.starts_with('-') || command == "help" || !is_name => Some(all.to_owned()),
        Some(help) => Some(help.clone()),
        // The help does not list second names.
        None => help(Some(command)),
    };
    let Some(help) = listed else {
        return Some(format!("there is no command {command}"));
    };
    let flags = span
        .split([' ', '[', ']', '(', ')', '|', ',', '='])
        .filter(|word| {
            let name = word.strip_prefix("--").unwrap_or_default();
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        });
    let unknown = flags
        .take_while(|flag| *flag != "--")
        .find(|flag| !help.contains(*flag));
    unknown.map(|flag| format!("{command} has no {flag}"))
}

#[test]
fn commands_that_are_not_run_have_the_names_and_flags_of_the_help() {
    let (known, all) = (known_commands(), help(None).expect("the help"));
    assert!(known.len() > 30, "{:?}", known.keys());
    assert!(wrong_in("tenure leeks FILE", &known, &all).is_some());
    assert!(wrong_in("tenure leaks FILE --no-such-flag", &known, &all).is_some());
    assert_eq!(wrong_in("tenure leaks FILE --json", &known, &all), None);
    let mut problems = Vec::new();
    for (path, document) in documents() {
        let in_blocks = document.blocks.iter().filter(|b| b.not_run.is_some());
        let in_blocks = in_blocks.flat_map(|block| {
            let lines = block.steps.iter().flat_map(|step| step.command.lines());
            lines.map(|line| (block.line, without_comment(line).to_owned()))
        });
        for (line, span) in document.spans.iter().cloned().chain(in_blocks) {
            let wrong = wrong_in(&span, &known, &all);
            problems.extend(wrong.map(|wrong| format!("{path}:{line}: `{span}`: {wrong}")));
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_document_that_lies_is_found_out() {
    let lie = "```console\n$ echo true\nfalse\n```\n```sh\nexit 3\n```\n";
    let found = document(lie).expect("well-formed blocks").blocks;
    let bin = std::env::temp_dir();
    let problems: Vec<String> = found.iter().flat_map(|b| run_block(b, &[], &bin)).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
}
