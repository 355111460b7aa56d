//! The modules of the pages by themselves, under Node.

use std::path::Path;
use std::process::Command;

#[test]
fn the_modules_of_the_pages_pass_their_own_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules");
    let node = Command::new("node")
        .arg("--test")
        .current_dir(folder)
        .output();
    let ran = match node {
        Ok(ran) => ran,
        Err(error) => {
            let reason = format!("node: {error}");
            return testkit::skip("modules of the pages", testkit::Need::Node, &reason);
        }
    };
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}");
    assert!(!said.contains("# tests 0"), "no test ran: {said}");
}
