//! The committed class is what its source compiles to.

use std::fs;
use std::path::Path;

use testkit::jvm::jdks;

#[test]
fn committed_classes_are_compiled_from_the_source_beside_them() {
    // Compilers differ in the order of constants; the committed class is javac 17's.
    let Some(jdk) = jdks()
        .into_iter()
        .find(|j| j.version == 17 && j.tool("javac").is_file())
    else {
        return testkit::skip(
            "the committed classes",
            testkit::Need::Jdk,
            "no compiler of JDK 17",
        );
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, name) in [
        ("tracker", "HprofTracker"),
        ("tracker", "HprofEnd"),
        ("tracker", "HprofAsk"),
        ("tracker", "HprofSample"),
        ("tracker", "HprofPark"),
        ("../jvmpi-bridge/java", "JvmpiNewObject"),
    ] {
        let folder = here.join(folder);
        let out = tempfile::tempdir().expect("temporary folder");
        let status = std::process::Command::new(jdk.tool("javac"))
            .args(["-source", "8", "-target", "8", "-g:none", "-nowarn", "-d"])
            .arg(out.path())
            .arg(folder.join(format!("{name}.java")))
            .output()
            .expect("javac runs");
        let printed = String::from_utf8_lossy(&status.stderr);
        assert!(status.status.success(), "{printed}");
        let fresh = fs::read(out.path().join(format!("java/lang/{name}.class")));
        let kept = fs::read(folder.join(format!("{name}.class"))).expect("committed");
        assert!(
            fresh.expect("compiled") == kept,
            "recompile {name}.java as this test does"
        );
    }
}
