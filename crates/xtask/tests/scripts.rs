//! What `./x` does for users: installing, and the demo.

use std::path::Path;
use std::process::{Command, Output};

use xtask::tree::root;

/// Runs `./x`, which finds the programs of this build.
fn x(folder: &Path, arguments: &[&str]) -> Output {
    let tenure = testkit::built::tenure();
    let built = tenure.parent().expect("a folder");
    Command::new(root().join("x"))
        .args(arguments)
        .env("TENURE_BUILT", built)
        .env("TENURE_DEMO_OUT", folder.join("demo-out"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .current_dir(root())
        .output()
        .expect("a shell")
}

fn succeeded(ran: &Output) -> String {
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn an_installation_has_programs_agents_manual_pages_completions_and_licences() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prefix = folder.path().join("prefix with a blank");
    succeeded(&x(folder.path(), &["install", &prefix.to_string_lossy()]));
    for file in [
        "bin/tenure",
        "lib/tenure/libhprof.so",
        "lib/tenure/libjvmpi.so",
        "include/jvmpi.h",
        "share/man/man1/tenure.1",
        "share/man/man1/tenure-leaks.1",
        "share/bash-completion/completions/tenure",
        "share/zsh/site-functions/_tenure",
        "share/fish/vendor_completions.d/tenure.fish",
        "share/doc/tenure/LICENSE-MIT",
        "share/doc/tenure/LICENSE-APACHE",
        "share/doc/tenure/THIRD-PARTY",
    ] {
        let length = std::fs::metadata(prefix.join(file)).map(|file| file.len());
        assert!(
            length.as_ref().is_ok_and(|length| *length > 100),
            "{file}: {length:?}"
        );
    }
    let third = std::fs::read_to_string(prefix.join("share/doc/tenure/THIRD-PARTY"));
    let third = third.expect("the notices");
    assert!(third.contains("rusqlite ") && third.contains("MIT License"));
    assert!(!third.contains("proptest "), "a package for tests only");
    let dump = root().join("demo/leak-small.hprof.gz");
    let tenure = prefix.join("bin/tenure");
    let ran = Command::new(&tenure)
        .arg("leaks")
        .arg(dump)
        .arg("--no-index")
        .output();
    let printed = succeeded(&ran.expect("the installed program"));
    assert!(printed.contains("SESSIONS"), "{printed}");
}

#[test]
fn an_installed_program_finds_its_agent() {
    let Some(jdk) = testkit::jvm::jdks().pop() else {
        return testkit::skip(
            "an installed agent",
            testkit::Need::Jdk,
            testkit::jvm::NO_JDK,
        );
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prefix = folder.path().join("prefix");
    succeeded(&x(folder.path(), &["install", &prefix.to_string_lossy()]));
    let ran = Command::new(prefix.join("bin/tenure"))
        .args(["run", "--profile", "heap=sites", "-o", "sites.txt", "--"])
        .arg(jdk.tool("java"))
        .arg("-version")
        .current_dir(folder.path())
        .env_remove("TENURE_AGENT")
        .output();
    succeeded(&ran.expect("the installed program"));
    let profile = std::fs::read_to_string(folder.path().join("sites.txt")).expect("a profile");
    assert!(profile.contains("SITES BEGIN"), "{profile}");
}

#[test]
fn the_demo_finds_the_leak_of_its_bundled_dump() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let printed = succeeded(&x(folder.path(), &["demo", "--bundled"]));
    assert!(
        printed.contains("Suspect 1") && printed.contains("SESSIONS"),
        "{printed}"
    );
    let report = std::fs::read_to_string(folder.path().join("demo-out/report.html"));
    assert!(report.is_ok_and(|page| page.contains("SESSIONS")));
}
