//! Other users of the machine: what they plant leads nowhere, what they send is not taken; and JVMs of theirs
//! in containers of theirs, which root attaches to.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::stage::*;
use testkit::jvm::Jdk;

/// The other user.
const OTHER_USER: &str = "65534";

/// True for root; else the test is skipped.
fn is_root(what: &str) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t0"));
    if !is_root {
        testkit::skip(what, testkit::Need::Root, "needs another user");
    }
    is_root
}

/// A command that runs as the other user.
fn as_other_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            OTHER_USER,
            "--regid",
            OTHER_USER,
            "--clear-groups",
            "--",
        ])
        .arg(program);
    command
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

/// The temporary folder of a process.
fn inner_tmp(pid: &str) -> PathBuf {
    Path::new("/proc").join(pid).join("root").join("tmp")
}

/// A folder that the other user may enter.
fn common_folder(stage: &Stage) -> PathBuf {
    mode(stage.folder.path(), 0o755);
    mode(stage.classes.path(), 0o755);
    let folder = stage.folder.path().join("theirs");
    fs::create_dir(&folder).expect("made");
    let owner = OTHER_USER.parse().ok();
    std::os::unix::fs::chown(&folder, owner, owner).expect("given");
    folder
}

fn patient(mut java: Command, stage: &Stage, jdk: &Jdk, folder: &Path) -> Talk {
    java.current_dir(folder)
        .env_remove("_JAVA_HPROF_OPTIONS")
        .args([
            "-XX:+IgnoreUnrecognizedVMOptions",
            "-XX:+EnableDynamicAgentLoading",
        ])
        .arg("-cp")
        .arg(stage.classes.path());
    if jdk.version >= 9 {
        java.arg("--add-opens=java.base/java.lang=ALL-UNNAMED");
    }
    java.arg("Patient");
    let mut program = Talk::start(java);
    program.expect("ready");
    program
}

fn printed(ran: &std::process::Output) -> String {
    String::from_utf8_lossy(&[&ran.stdout[..], &ran.stderr[..]].concat()).into_owned()
}

#[test]
fn what_another_user_plants_leads_root_nowhere() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    if !is_root("links of another user") {
        return;
    }
    for jdk in &lab.jdks {
        let Some(stage) = stage(lab) else { continue };
        let folder = common_folder(&stage);
        let victim = stage.folder.path().join("victim");
        fs::write(&victim, "root's own").expect("written");
        mode(&victim, 0o600);
        let mut program = patient(as_other_user(&jdk.tool("java")), &stage, jdk, &folder);
        let pid = program.child.id().to_string();
        // Left by an earlier JVM of root with this process id, which the other user cannot replace.
        let _ = fs::remove_file(format!("/tmp/.java_pid{pid}"));
        let trigger = folder.join(format!(".attach_pid{pid}"));
        symlink(&victim, &trigger).expect("planted");
        let dumped = stage.run(&["dump", &pid, "-o", "heap.hprof"]);
        let what = format!("JDK {}: {}", jdk.full_version, printed(&dumped));
        assert_eq!(dumped.status.code(), Some(0), "{what}");
        let content = fs::read_to_string(&victim).expect("there");
        assert_eq!(content, "root's own", "{what}");
        let counted = stage.run(&["histogram", "heap.hprof", "--json", "--all"]);
        assert!(printed(&counted).contains("Patient$Early"), "{what}");
        // A recording, too, of which the program's user can write the file, and one that root writes.
        let library = lab.agent.to_string_lossy();
        let attach = |more: &[&str]| {
            let ran = stage.run(&[&["attach", &pid, "--agent", &library], more].concat());
            assert_eq!(ran.status.code(), Some(0), "{what}{}", printed(&ran));
            printed(&ran)
        };
        attach(&["--profile", "heap=sites,cutoff=0,file=sites.txt"]);
        for line in ["counting", "late"] {
            program.type_line(line);
            program.expect(&format!("done {line}"));
        }
        attach(&["stop"]);
        let text = fs::read_to_string(folder.join("sites.txt")).expect("a profile");
        assert_eq!(
            objects_of(&text, " Patient$Late"),
            Some((500, 500)),
            "{what}"
        );
        attach(&["--duration", "1", "-o", "samples.hprof.txt"]);
        assert!(stage.folder.path().join("samples.hprof.txt").is_file());
        program.type_line("end");
        program.expect("kept 1500");
        assert_eq!(program.code(), Some(3), "{what}");
    }
}

#[test]
fn a_program_in_a_container_is_recorded_from_outside_and_leads_nowhere() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    if !is_root("a program in other namespaces") {
        return;
    }
    for jdk in &lab.jdks {
        let Some(stage) = stage(lab) else { continue };
        let what = format!("JDK {}", jdk.full_version);
        let folder = common_folder(&stage);
        // Classes of the program are among the temporary files, of which the container has its own.
        let inside = "mount -t tmpfs -o mode=1777 none /tmp && mkdir -p \"$1\" && mount --bind \"$0\" \"$1\" && \
                      cd \"$1\" && shift && exec \"$@\"";
        let classes = stage.classes.path();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("contained-{}", std::process::id()));
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept).expect("made");
        for class in fs::read_dir(classes).expect("classes").flatten() {
            fs::copy(class.path(), kept.join(class.file_name())).expect("copied");
        }
        let contained = || {
            let mut command = Command::new("unshare");
            command
                .args(["--mount", "--net", "--", "sh", "-c", inside])
                .args([kept.as_path(), classes])
                .args(["setpriv", "--reuid", OTHER_USER, "--regid", OTHER_USER])
                .args(["--clear-groups", "--"])
                .arg(jdk.tool("java"));
            patient(command, &stage, jdk, &folder)
        };
        let mut program = contained();
        let pid = program.child.id().to_string();
        let library = lab.agent.to_string_lossy();
        let attach = |more: &[&str]| {
            let ran = stage.run(&[&["attach", &pid, "--agent", &library], more].concat());
            (ran.status.code(), printed(&ran))
        };
        let (code, received) = attach(&["--duration", "1", "-o", "samples.hprof.txt"]);
        assert_eq!(code, Some(0), "{what}: {received}");
        let text = fs::read_to_string(stage.folder.path().join("samples.hprof.txt"));
        assert!(
            text.expect("a profile").starts_with("JAVA PROFILE"),
            "{what}"
        );
        let dumped = stage.run(&["dump", &pid, "-o", "heap.hprof"]);
        assert_eq!(
            dumped.status.code(),
            Some(0),
            "{what}: {}",
            printed(&dumped)
        );
        // The live page, too, is served here and records there.
        let mut live = Command::new(&stage.tenure);
        live.current_dir(stage.folder.path())
            .args(["attach", &pid, "--agent", &library, "--live"])
            .args(["--no-browser", "--record", "full"]);
        let live = Talk::start(live);
        testkit::until(|| match attach(&["status"]).1 {
            printed if printed.contains("records heap=all") => Ok(()),
            printed => Err(format!("{what}: the page records nothing: {printed}")),
        });
        let (code, received) = attach(&["stop"]);
        assert_eq!(code, Some(0), "{what}: {received}");
        drop(live);
        // Nothing but the library stays there.
        let root = inner_tmp(&pid);
        let names = || {
            let entries = fs::read_dir(&root).expect("a folder").flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let ours = names.filter(|name| name.starts_with(".tenure"));
            ours.collect::<Vec<_>>()
        };
        let left = names();
        assert!(
            matches!(&left[..], [one] if one.starts_with(".tenure-agent-")),
            "{what}: {left:?}"
        );
        program.type_line("end");
        program.expect("kept 1000");
        assert_eq!(program.code(), Some(3), "{what}");

        // The same name as a link to a folder outside.
        let victim = stage.folder.path().join("victim");
        fs::create_dir(&victim).expect("made");
        let mut program = contained();
        let pid = program.child.id().to_string();
        let link = inner_tmp(&pid).join(&left[0]);
        symlink(&victim, &link).expect("planted");
        let ran = stage.run(&["attach", &pid, "--agent", &library]);
        assert_eq!(ran.status.code(), Some(3), "{what}: {}", printed(&ran));
        assert!(
            printed(&ran).contains("belongs to another user"),
            "{}",
            printed(&ran)
        );
        assert_eq!(fs::read_dir(&victim).expect("there").count(), 0, "{what}");
        program.type_line("end");
        program.expect("kept 1000");
        let _ = fs::remove_dir_all(&kept);
    }
}

#[test]
fn what_another_user_sends_is_not_taken_for_a_profile() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    if !is_root("a stranger at the collector's socket") {
        return;
    }
    let python = Path::new("/usr/bin/python3");
    if !python.is_file() {
        testkit::skip(
            "a stranger at the socket",
            testkit::Need::Python,
            "no /usr/bin/python3",
        );
        return;
    }
    let Some(jdk) = lab.jdks.last() else { return };
    let Some(stage) = stage(lab) else { return };
    let mut tenure = Command::new(&stage.tenure);
    let library = lab.agent.to_string_lossy();
    tenure
        .current_dir(stage.folder.path())
        .args([
            "run",
            "--agent",
            &library,
            "--profile",
            "heap=sites,cutoff=0",
            "-o",
            "out.txt",
            "--",
        ])
        .arg(jdk.tool("java"))
        .arg("-cp")
        .arg(stage.classes.path())
        .arg("Patient");
    let mut program = Talk::start(tenure);
    program.expect("ready");
    let children = format!("/proc/{0}/task/{0}/children", program.child.id());
    let java = fs::read_to_string(children).expect("children");
    let command = fs::read(format!("/proc/{}/cmdline", java.trim())).expect("a command line");
    let command = String::from_utf8_lossy(&command).into_owned();
    let socket = command.split("net=unix:").nth(1).expect("a socket");
    let socket = socket.split('\0').next().expect("a path");
    const SEND: &str = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX)\n\
        s.connect(sys.argv[1])\n\
        try:\n s.sendall(b'JAVA PROFILE 1.0.1, created by a stranger\\n')\n print(s.recv(1))\n\
        except OSError: print(b'')\n";
    for _ in 0..3 {
        let ran = as_other_user(python)
            .args(["-c", SEND, socket])
            .stdin(Stdio::null())
            .output()
            .expect("ran");
        assert!(printed(&ran).starts_with("b''"), "{}", printed(&ran));
    }
    program.type_line("late");
    program.expect("done late");
    program.type_line("end");
    program.expect("kept 1500");
    assert_eq!(program.code(), Some(3));
    let files = fs::read_dir(stage.folder.path())
        .expect("a folder")
        .flatten();
    let names: Vec<_> = files.map(|file| file.file_name()).collect();
    assert_eq!(names, ["out.txt"]);
    let text = fs::read_to_string(stage.folder.path().join("out.txt")).expect("a profile");
    assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
}

#[test]
fn a_collector_elsewhere_has_to_know_the_secret() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let Some(stage) = stage(lab) else { return };
    let folder = stage.folder.path();
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("written");
        folder.join(name).display().to_string()
    };
    let right = write("right", "correct horse battery staple\n");
    let wrong = write("wrong", "incorrect horse battery staple\n");
    let run = |options: &str| {
        let ran = lab.run(jdk, Some(options), &[], &["Trouble", "lambda"]);
        assert_eq!(
            ran.stdout(),
            "lambda v1v2v3\n",
            "{options}: {}",
            ran.stderr()
        );
        assert_eq!(ran.output.status.code(), Some(0), "{options}");
        ran.stderr()
    };
    // Without one nothing leaves the machine, nor is the address even tried.
    let received = run("heap=sites,net=192.0.2.1:4711");
    assert!(
        received.contains("net=192.0.2.1:4711 is another machine: give secret-file=FILE"),
        "{received}"
    );

    let (mut listener, port) = stage.listen_with(&["--secret-file", &right]);
    let received = run(&format!(
        "heap=sites,net=127.0.0.1:{port},secret-file={wrong}"
    ));
    assert!(received.contains("does not know the secret"), "{received}");
    let received = run(&format!(
        "heap=sites,net=127.0.0.1:{port},secret-file=/none"
    ));
    assert!(received.contains("/none: No such file"), "{received}");
    // One without any is refused by the collector, and costs the program nothing.
    run(&format!("heap=sites,net=127.0.0.1:{port}"));
    let received = run(&format!(
        "heap=sites,net=127.0.0.1:{port},secret-file={right}"
    ));
    assert!(!received.contains("HPROF"), "{received}");
    assert_eq!(listener.code(), Some(0));
    let text = fs::read_to_string(stage.got()).expect("a profile");
    assert!(text.contains("SITES END"), "{text}");
    let file = fs::metadata(stage.got()).expect("a file");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_was_there_is_the_owners_alone_afterwards() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    for options in ["heap=sites", "events=64k"] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("out");
        fs::write(&file, "old").expect("written");
        mode(&file, 0o644);
        let options = format!("{options},file={}", file.display());
        let ran = lab.run(jdk, Some(&options), &[], &["Trouble", "lambda"]);
        assert_eq!(ran.output.status.code(), Some(0), "{}", ran.stderr());
        let found = fs::metadata(&file).expect("a file");
        assert!(found.len() > 3, "{options}");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{options}");
    }
}
