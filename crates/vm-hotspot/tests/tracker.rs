//! The committed class is what its source compiles to.

use std::fs;
use std::path::Path;

use testkit::jvm::{NO_JDK, jdks};

#[test]
fn the_tracker_class_is_compiled_from_the_source_beside_it() {
    // Compilers differ in the order of constants; the committed class is javac 17's.
    let Some(jdk) = jdks()
        .into_iter()
        .find(|j| j.version == 17 && j.tool("javac").is_file())
    else {
        #[expect(clippy::print_stderr, reason = "tells why nothing was tested")]
        {
            eprintln!("skipped: needs a JDK 17 compiler ({NO_JDK})");
        }
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tracker");
    let out = tempfile::tempdir().expect("temporary folder");
    let status = std::process::Command::new(jdk.tool("javac"))
        .args(["-source", "8", "-target", "8", "-g:none", "-nowarn", "-d"])
        .arg(out.path())
        .arg(folder.join("HprofTracker.java"))
        .output()
        .expect("javac runs");
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stderr)
    );
    let fresh = fs::read(out.path().join("java/lang/HprofTracker.class")).expect("compiled");
    let kept = fs::read(folder.join("HprofTracker.class")).expect("committed");
    assert!(
        fresh == kept,
        "recompile tracker/HprofTracker.java as this test does"
    );
}
