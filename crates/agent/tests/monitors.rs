//! Contention and dumps at once: no thread waits for the agent, and the agent waits for no thread.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn dumps_end_while_threads_contend_for_what_they_need() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(classes) = lab.compile("Contended.java", 8) else {
            continue;
        };
        for options in [
            "monitor=y,heap=dump,format=b,modern=y",
            "monitor=y,heap=all,depth=8",
        ] {
            let folder = tempfile::tempdir().expect("temporary folder");
            let mut java = Command::new(jdk.tool("java"))
                .current_dir(folder.path())
                .env_remove("_JAVA_HPROF_OPTIONS")
                .arg(format!(
                    "-agentpath:{}={options},file=out",
                    lab.agent.display()
                ))
                .arg("-cp")
                .arg(classes.path())
                .arg("Contended")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("java runs");
            let pid = java.id().to_string();
            let mut printed = BufReader::new(java.stdout.take().expect("piped")).lines();
            assert_eq!(printed.next().expect("a line").expect("text"), "ready");
            // The VM prints its threads to standard output at each SIGQUIT, and holds the
            // program while no thread reads them.
            let rest = std::thread::spawn(move || printed.map_while(Result::ok).last());
            let (dumped, dumps) = channel();
            let errors = BufReader::new(java.stderr.take().expect("piped"));
            let listener = std::thread::spawn(move || {
                let lines = errors.lines().map_while(Result::ok);
                let mut other = Vec::new();
                for line in lines {
                    if line.ends_with("done.") {
                        let _ = dumped.send(());
                    } else {
                        other.push(line);
                    }
                }
                other
            });
            for dump in 0..5 {
                let sent = Command::new("kill").args(["-QUIT", &pid]).status();
                assert!(sent.expect("kill runs").success());
                if dumps.recv_timeout(PATIENCE).is_err() {
                    drop(java.kill());
                    panic!(
                        "dump {dump} with {options} on {} does not end",
                        jdk.full_version
                    );
                }
            }
            drop(java.stdin.take());
            dumps.recv_timeout(PATIENCE).expect("the last dump ends");
            assert_eq!(java.wait().expect("ended").code(), Some(0));
            assert_eq!(rest.join().expect("read").as_deref(), Some("ended"));
            assert_eq!(
                listener.join().expect("read"),
                Vec::<String>::new(),
                "{options}"
            );
            let mut bytes = Vec::new();
            let mut file = std::fs::File::open(folder.path().join("out")).expect("a profile");
            file.read_to_end(&mut bytes).expect("read");
            if options.contains("format=b") {
                let map = hprof::map_file(&bytes, |_| {}).expect("a dump");
                assert!(!map.diagnostics.any_damage(), "{:?}", map.diagnostics);
                assert_eq!(map.snapshots, 6, "{options}");
                let times = map
                    .records
                    .iter()
                    .find(|row| row.0 == private_records::PrivateTag::MonitorTimes as u8);
                assert!(times.is_some_and(|row| row.1 > 0), "{times:?}");
            } else {
                let text = String::from_utf8_lossy(&bytes);
                assert_eq!(text.matches("MONITOR DUMP END").count(), 6, "{options}");
            }
        }
    }
}

#[test]
fn threads_parked_at_locks_are_timed_where_they_ask_for_them() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Locks.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["monitor=y,cutoff=0", "monitor=y,cutoff=0,format=b,modern=y"] {
            let options = format!("{options},file=out");
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Locks"]);
            let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "unlocked\n", "{what}");
            let printed = [ran.stdout(), ran.stderr()].concat();
            assert!(!printed.contains("park"), "{what}: {printed}");
            let bytes = std::fs::read(ran.folder.path().join("out")).expect("a profile");
            let (profile, _) = profile::read(&bytes).expect("a profile");
            let rows = profile.stacks(profile::Metric::Parked).map(|stack| {
                let path = profile.path(&stack);
                let [.., method, class] = &path[..] else {
                    panic!("{path:?}");
                };
                ([method.clone(), class.clone()], stack.value)
            });
            let rows: std::collections::BTreeMap<_, _> = rows.collect();
            for (method, class) in [
                ("wantsPlain", "ReentrantLock$NonfairSync"),
                ("wantsRead", "ReentrantReadWriteLock$NonfairSync"),
                ("wantsStamped", "StampedLock"),
            ] {
                let key = [
                    format!("Locks.{method}"),
                    format!("[java.util.concurrent.locks.{class}]"),
                ];
                // Main sleeps for 300 ms after it has seen the thread wait.
                let parked = rows.get(&key).copied().unwrap_or(0);
                assert!(parked >= 250_000_000, "{key:?} {rows:?} {what}");
            }
            let others = rows.keys().filter(|[method, _]| {
                method.starts_with("Locks.wantsEvent") || method.starts_with("Locks.wantsWork")
            });
            assert_eq!(others.count(), 0, "{rows:?} {what}");
        }
        let ran = lab.run_in(jdk, classes.path(), Some("cpu=samples"), &[], &["Locks"]);
        assert!(!ran.profile().contains("LOCK TIME"), "{}", jdk.full_version);
    }
}
