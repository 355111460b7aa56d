//! The steps of the GitHub Action, as a runner starts them, and what `cargo binstall` reads.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use testkit::Need;
use xtask::package::recipes::address;
use xtask::package::{ARCHES, Release};
use xtask::tree::root;

fn step(script: &str, folder: &Path, more: &[(&str, &str)]) -> Output {
    let tenure = testkit::built::tenure();
    let ours = tenure.parent().map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&path)));
    let mut command = Command::new(root().join("action").join(script));
    command
        .env("PATH", path.expect("a PATH"))
        .env("RUNNER_TEMP", folder.join("temp"))
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .env("GITHUB_OUTPUT", folder.join("output"))
        .env("GITHUB_PATH", folder.join("path"))
        .env("DUMPS", folder.join("build"))
        .env("OUT", folder.join("out"));
    command
        .envs(more.iter().copied())
        .output()
        .expect("a shell")
}

#[test]
fn the_suspects_of_a_failed_build_are_in_the_summary_and_in_a_small_dump() {
    let folder = tempfile::tempdir().expect("a folder");
    let build = folder.path().join("build/target with a blank");
    fs::create_dir_all(&build).expect("a folder");
    let dump = root().join("demo/leak-small.hprof.gz");
    fs::copy(dump, build.join("java_pid1.hprof.gz")).expect("copied");
    let ran = step("analyze", folder.path(), &[]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    let summary = read("summary.md");
    assert!(
        summary.starts_with("### Heap dump `java_pid1.hprof.gz`"),
        "{summary}"
    );
    assert!(
        summary.contains("shop.SessionRegistry.SESSIONS"),
        "{summary}"
    );
    assert_eq!(read("output"), "dumps=1\n");
    let names: Vec<_> = fs::read_dir(folder.path().join("out"))
        .expect("a folder")
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let part = folder.path().join("out/suspects-1.hprof");
    let printed = Command::new(testkit::built::tenure())
        .arg("leaks")
        .arg(part)
        .output();
    let printed = printed.expect("tenure").stdout;
    assert!(String::from_utf8_lossy(&printed).contains("SESSIONS"));
    assert_eq!(
        fs::read_dir(&build).expect("a folder").count(),
        1,
        "an index is left"
    );
}

#[test]
fn the_step_fails_when_a_rule_is_broken_and_only_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let build = folder.path().join("build");
    fs::create_dir(&build).expect("a folder");
    let dump = root().join("demo/leak-small.hprof.gz");
    fs::copy(dump, build.join("a.hprof.gz")).expect("copied");
    for (count, code) in [("100000", 0), ("1", 1)] {
        let rules = folder.path().join("rules.toml");
        let text = format!("[[rule]]\nclass = \"shop.Session\"\ncount = {count}\n");
        fs::write(&rules, text).expect("written");
        let rules = rules.to_string_lossy();
        let ran = step(
            "analyze",
            folder.path(),
            &[("RULES", &rules), ("EXTRACT", "false")],
        );
        assert_eq!(ran.status.code(), Some(code), "{ran:?}");
        assert!(!folder.path().join("out/suspects-1.hprof").exists());
    }
    let ran = step("analyze", folder.path(), &[("DUMPS", "/nonexistent")]);
    assert_eq!(ran.status.code(), Some(0), "no dump is no failure: {ran:?}");
}

#[test]
fn an_archive_is_put_into_the_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let packed = Command::new("sh")
        .args([
            "-e",
            "-c",
            "mkdir -p a/bin; echo x >a/bin/tenure; tar czf a.tar.gz a",
        ])
        .current_dir(folder.path())
        .status();
    if !packed.is_ok_and(|status| status.success()) {
        return testkit::skip("an archive for the action", Need::Program, "no tar");
    }
    let archive = folder.path().join("a.tar.gz");
    let ran = step(
        "install",
        folder.path(),
        &[("TENURE_ARCHIVE", &archive.to_string_lossy())],
    );
    assert!(ran.status.success(), "{ran:?}");
    let path = fs::read_to_string(folder.path().join("path")).expect("a line");
    assert!(Path::new(path.trim()).join("tenure").exists(), "{path}");
}

#[test]
fn binstall_fetches_the_archives_that_are_made() {
    let manifest = fs::read_to_string(root().join("crates/cli/Cargo.toml")).expect("a manifest");
    let release = Release {
        version: "1.2.3".to_owned(),
        time: 0,
    };
    for arch in ARCHES {
        let filled = manifest
            .replace("{ repo }", xtask::package::HOME)
            .replace("{ version }", "1.2.3")
            .replace("{ target-arch }", arch.name);
        let archive = release.archive(arch);
        let wanted = address(&release, &format!("{archive}.tar.gz"));
        assert!(
            filled.contains(&format!("pkg-url = \"{wanted}\"")),
            "{filled}"
        );
        assert!(filled.contains(&format!("bin-dir = \"{archive}/bin/tenure\"")));
    }
}
