//! The commands of README.md, run as a reader would run them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::corpus::unpacked;
use testkit::run::{Ran, run_command};
use xtask::readme::{Block, blocks, first_untrue};
use xtask::tree::root;

/// The folder of the binary that `TENURE_BIN` names (`./x test` has built one), else of one built
/// the way this test was built.
fn tenure_folder() -> PathBuf {
    if let Some(binary) = std::env::var_os("TENURE_BIN") {
        let folder = Path::new(&binary).parent().expect("a folder");
        return folder.canonicalize().expect("TENURE_BIN is a file");
    }
    let profile = if cfg!(debug_assertions) {
        "dev"
    } else {
        "release"
    };
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "-q",
            "-p",
            "cli",
            "-p",
            "agent",
            "--profile",
            profile,
        ])
        .current_dir(root())
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the binary does not build");
    let test = std::env::current_exe().expect("this test is a file");
    let folder = test.ancestors().nth(2).expect("target/PROFILE/deps/test");
    assert!(
        folder.join("tenure").is_file(),
        "no binary in {}",
        folder.display()
    );
    folder.to_path_buf()
}

/// A folder as the README describes it: this repository's `demo`, and a dump called heap.hprof.
fn folder_with_a_dump() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let packed = root().join("demo/leak-small.hprof.gz");
    std::fs::write(folder.path().join("heap.hprof"), unpacked(&packed)).expect("writing it");
    std::fs::create_dir(folder.path().join("demo")).expect("a folder");
    let leak = root().join("demo/Leak.java");
    std::fs::copy(leak, folder.path().join("demo/Leak.java")).expect("copying it");
    std::fs::copy(packed, folder.path().join("heap.hprof.gz")).expect("copying it");
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

fn run_block(block: &Block, bin: &Path) -> Vec<String> {
    let folder = folder_with_a_dump();
    let mut problems = Vec::new();
    for (i, step) in block.steps.iter().enumerate() {
        let ran = shell(&step.command, folder.path(), bin);
        let last = i + 1 == block.steps.len();
        let want = if last { block.exit } else { 0 };
        let place = format!("README.md:{}: `{}`", block.line, step.command);
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

#[test]
fn every_command_of_the_readme_does_what_the_readme_says() {
    let markdown = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let all = blocks(&markdown).expect("well-formed blocks");
    let run: Vec<_> = all.iter().filter(|b| b.not_run.is_none()).collect();
    assert!(!run.is_empty(), "the README shows no command that is run");
    let jdk = testkit::jvm::newest_compiler().is_some();
    let bin = tenure_folder();
    let mut problems = Vec::new();
    for block in run {
        if block.needs_jdk && !jdk {
            testkit::skip(&format!("README.md:{}", block.line), testkit::jvm::NO_JDK);
        } else {
            problems.extend(run_block(block, &bin));
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_readme_that_lies_is_found_out() {
    let lie = "```console\n$ echo true\nfalse\n```\n```sh\nexit 3\n```\n";
    let found = blocks(lie).expect("well-formed blocks");
    let bin = std::env::temp_dir();
    let problems: Vec<String> = found.iter().flat_map(|b| run_block(b, &bin)).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
}
