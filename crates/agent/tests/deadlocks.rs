//! Monitors that a collection needs, held by threads that want something of the agent's.

use std::process::Command;
use std::time::Duration;

use testkit::run::run_command;

/// One that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(150);

/// JDK 8 begins a collection with the lock of pending references. The program calls new methods and
/// makes objects at new stacks while it holds that lock, and other threads need tables meanwhile.
#[test]
fn a_collection_never_waits_for_a_thread_that_waits_for_the_agent() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.version == 8) else {
        testkit::skip("deadlocks", testkit::Need::Jdk8, "needs JDK 8");
        return;
    };
    let Some(classes) = lab.compile("Pending.java", 8) else {
        return;
    };
    for options in ["cpu=times,depth=8", "heap=sites,depth=8", "monitor=y"] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut java = Command::new(jdk.tool("java"));
        java.current_dir(folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS")
            .arg(crate::common::kept_report("Pending"))
            .args(["-Xmx64m", "-Xmn1m"])
            .arg(format!("-agentpath:{}={options}", lab.agent.display()))
            .arg("-cp")
            .arg(classes.path())
            .arg("Pending");
        let ran = run_command(java, DEADLINE);
        assert!(!ran.timed_out, "{options} hangs: {}", ran.stderr);
        assert_eq!(
            (&*ran.stdout, ran.code),
            ("done true\n", Some(0)),
            "{options}: {}",
            ran.stderr
        );
    }
}
