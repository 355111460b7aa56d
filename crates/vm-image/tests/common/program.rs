//! A Java program that says when it is ready.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use testkit::jvm::{self, Jdk};
use vm_image::{Fault, Frozen, Place, Process, Summary};

/// A running program.
pub(crate) struct Program {
    child: Child,
    /// Its input: the program ends when it is closed.
    pub(crate) input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    jdk: Jdk,
    pub(crate) folder: tempfile::TempDir,
}

impl Program {
    /// Compiles a program, starts it, and waits until it is ready; `None` where no JDK compiles.
    pub(crate) fn start(jdk: &Jdk, name: &str, flags: &[&str]) -> Option<Program> {
        let folder = compiled(name)?;
        let mut command = Command::new(jdk.tool("java"));
        // Threads that the VM starts and ends by itself would make a difference between two dumps.
        jvm::with_small_core(&mut command);
        command
            .args(["-XX:-UseDynamicNumberOfCompilerThreads", "-Xmx256m"])
            .args(flags);
        command.arg(jvm::crash_report(
            &folder.path().display().to_string(),
            name,
        ));
        command.arg("-cp").arg(folder.path()).arg(name);
        Some(Program::ready(jdk, command, folder))
    }

    /// As [`Program::start`], in a process whose main thread ends; `None` also where no C program can be made.
    pub(crate) fn start_without_main_thread(jdk: &Jdk, name: &str) -> Option<Program> {
        let folder = compiled(name)?;
        let include = jdk.home.join("include");
        if !include.join("jni.h").is_file() {
            testkit::skip(name, testkit::Need::JdkPart, "no jni.h");
            return None;
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/launcher.c");
        let launcher = folder.path().join("launcher");
        let mut compiler = testkit::built::cc();
        compiler
            .arg("-pthread")
            .arg("-o")
            .args([&launcher, &source]);
        compiler.arg(format!("-I{}", include.display()));
        compiler.arg(format!("-I{}", include.join("linux").display()));
        let Ok(output) = compiler.arg("-ldl").output() else {
            testkit::skip(name, testkit::Need::Cc, "no C compiler");
            return None;
        };
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        let mut command = Command::new(launcher);
        command.arg(libjvm_of(jdk)).arg(name);
        command.arg(format!("-Djava.class.path={}", folder.path().display()));
        Some(Program::ready(jdk, command, folder))
    }

    /// Starts a program and waits until it is ready.
    fn ready(jdk: &Jdk, mut command: Command, folder: tempfile::TempDir) -> Program {
        // The kernel writes a core into the folder of the program.
        command.current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a JVM");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut program = Program {
            child,
            input,
            output,
            jdk: jdk.clone(),
            folder,
        };
        // Some VMs print warnings to standard output first.
        loop {
            match program.line().as_str() {
                "ready" => return program,
                "" => panic!("the program is not ready: {command:?}"),
                _ => {}
            }
        }
    }

    /// Waits until the program really rests: after its last line it still reads its input for the first
    /// time, for which the VM loads classes.
    pub(crate) fn rests(&self) {
        let mut before = 0;
        testkit::until(|| {
            if !self.reads_its_input() {
                return Err("it does not read its input yet".to_owned());
            }
            let (_, summary) = self.dump_frozen().map_err(|fault| fault.to_string())?;
            let is_same = before == summary.objects();
            before = summary.objects();
            if is_same {
                Ok(())
            } else {
                Err(format!("{before} objects"))
            }
        });
    }

    /// Whether a thread is in the system call that reads standard input, as far as the system shows it.
    fn reads_its_input(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        let threads = threads.into_iter().flatten().flatten();
        let calls = threads.map(|thread| std::fs::read_to_string(thread.path().join("syscall")));
        let calls: Vec<String> = calls.flatten().collect();
        // `read` of file 0, by its numbers on x86_64 and aarch64.
        let reads = |call: &String| call.starts_with("0 0x0 ") || call.starts_with("63 0x0 ");
        calls.is_empty() || calls.iter().any(reads)
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Kills it, and waits until it has ended.
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the program crash as by a fault in native code, and waits until it has ended: the core file of the kernel, if
    /// this machine writes one there.
    pub(crate) fn crash(&mut self) -> Option<PathBuf> {
        let pid = self.pid().to_string();
        let limit = Command::new("prlimit")
            .args(["--core=unlimited:", "--pid", &pid])
            .status();
        let signal = Command::new("kill").args(["-SEGV", &pid]).status();
        let done =
            |ran: std::io::Result<std::process::ExitStatus>| ran.is_ok_and(|code| code.success());
        assert!(done(signal), "kill");
        self.child.wait().expect("its end");
        let mut files = std::fs::read_dir(self.folder.path())
            .expect("its folder")
            .flatten();
        let is_core = |name: &str| match self.is_emulated() {
            // The core of the emulator itself lies beside that of the program.
            true => name.starts_with("qemu_") && name.ends_with(".core"),
            false => name == "core" || name.starts_with("core."),
        };
        let core = files.find(|file| file.file_name().to_str().is_some_and(is_core));
        core.map(|file| file.path()).filter(|_| done(limit))
    }

    /// Whether the processor of its VM is emulated.
    fn is_emulated(&self) -> bool {
        let runtimes = std::env::var("TENURE_RUNTIMES").unwrap_or_default();
        std::env::split_paths(&runtimes).any(|home| home == self.jdk.home)
    }

    /// The library of its VM.
    pub(crate) fn libjvm(&self) -> PathBuf {
        libjvm_of(&self.jdk)
    }

    /// A command of `jcmd` to this program.
    pub(crate) fn jcmd(&self) -> Command {
        let mut command = Command::new(self.jdk.tool("jcmd"));
        command.arg(self.pid().to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The dump of all objects that the VM itself writes, without a collection before it.
    pub(crate) fn dump_of_vm(&self) -> PathBuf {
        let path = self.folder.path().join("vm.hprof");
        drop(std::fs::remove_file(&path));
        // A runtime has no `jcmd`; `tenure` asks the VM for the same.
        let mut asked = match self.jdk.tool("jcmd").is_file() {
            true => self.jcmd(),
            false => Command::new(testkit::built::tenure()),
        };
        match self.jdk.tool("jcmd").is_file() {
            true => asked.args(["GC.heap_dump", "-all"]),
            false => asked.args(["dump", &self.pid().to_string(), "--all", "-o"]),
        };
        let ran = asked.arg(&path).output().expect("a command");
        let printed = [ran.stdout, ran.stderr].concat();
        assert!(path.is_file(), "{}", String::from_utf8_lossy(&printed));
        path
    }

    /// A dump of a copy of the program, which is whole.
    pub(crate) fn dump_snapshot(&self) -> Vec<u8> {
        let mut command = Command::new(testkit::built::tenure());
        command.args(["dump", &self.pid().to_string(), "--snapshot", "-o", "-"]);
        let ran = command.output().expect("tenure");
        let printed = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{printed}");
        assert!(!printed.contains("incomplete"), "{printed}");
        ran.stdout
    }

    /// Stops the program and reads its memory.
    pub(crate) fn dump_frozen(&self) -> Result<(Vec<u8>, Summary), Fault> {
        let frozen = Frozen::new(self.pid())?;
        let process = Process::open(self.pid())?;
        let place = Place {
            libjvm: process.libjvm(),
            registers: frozen.registers(),
            ..Place::default()
        };
        let mut bytes = Vec::new();
        let summary = vm_image::dump(&process, &place, &mut bytes)?;
        Ok((bytes, summary))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder with the classes of a program; `None` where no JDK compiles.
fn compiled(name: &str) -> Option<tempfile::TempDir> {
    let Some(compiler) = jvm::newest_compiler() else {
        testkit::skip(name, testkit::Need::Jdk, "no JDK with a compiler");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/java/{name}.java"));
    let compiled = compiler.compile(&source, 8, folder.path());
    compiled.unwrap_or_else(|printed| panic!("{printed}"));
    Some(folder)
}

/// The library of a VM.
fn libjvm_of(jdk: &Jdk) -> PathBuf {
    let places = [
        "lib/server/libjvm.so",
        "jre/lib/amd64/server/libjvm.so",
        "jre/lib/aarch64/server/libjvm.so",
    ];
    let all = places.iter().map(|place| jdk.home.join(place));
    let mut there = all.filter(|path| path.is_file());
    there.next().expect("libjvm.so")
}
