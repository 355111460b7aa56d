//! The modules of the pages by themselves, under Node.

use std::path::Path;
use std::process::Command;

/// The folder of the modules' tests.
const TESTS: &str = "tests/modules";

/// What a program prints in a folder of this crate; nothing, which is reported, on a machine without it.
fn ran(
    program: &str,
    folder: &str,
    arguments: &[&str],
    need: testkit::Need,
) -> Option<(bool, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut command = Command::new(program);
    match command.args(arguments).current_dir(folder).output() {
        Ok(ran) => {
            let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
            Some((ran.status.success(), printed))
        }
        Err(error) => {
            let reason = format!("{program}: {error}");
            testkit::skip("modules of the pages", need, &reason);
            None
        }
    }
}

#[test]
fn the_modules_of_the_pages_pass_their_own_tests() {
    let Some((passed, printed)) = ran("node", TESTS, &["--test"], testkit::Need::Node) else {
        return;
    };
    assert!(passed, "{printed}");
    assert!(!printed.contains("# tests 0"), "no test ran: {printed}");
}

/// Faults that a linter finds: code without effect, comparisons that convert their sides, variables that never change.
#[test]
fn a_linter_finds_no_fault_in_the_modules_of_the_pages() {
    let arguments = [
        "--config",
        "server/tests/modules/oxlint.json",
        "server/web",
        "live-session/web",
        "server/tests/modules",
        "report/src/html/page.js",
    ];
    // It takes no path that leads upwards.
    let Some((passed, printed)) = ran("oxlint", "..", &arguments, testkit::Need::Oxlint) else {
        return;
    };
    assert!(passed, "{printed}");
    assert!(
        !printed.contains("on 0 files"),
        "nothing was checked: {printed}"
    );
}

/// Types, from what the browser defines and from comments; names that nothing uses; cases that fall through.
#[test]
fn the_modules_of_the_pages_have_consistent_types() {
    let arguments = ["--project", "tsconfig.json", "--listFiles"];
    let Some((passed, printed)) = ran("tsc", TESTS, &arguments, testkit::Need::Tsc) else {
        return;
    };
    let (files, faults): (Vec<&str>, Vec<&str>) =
        printed.lines().partition(|line| line.starts_with('/'));
    assert!(passed, "{}", faults.join("\n"));
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    for module in std::fs::read_dir(web).expect("the modules") {
        let path = module.expect("a module").path();
        if path.extension().is_some_and(|ending| ending == "js") {
            let is_checked = files.iter().any(|file| Path::new(file) == path);
            assert!(is_checked, "{} was not checked", path.display());
        }
    }
}
