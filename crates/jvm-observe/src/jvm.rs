//! The JVMs that run on this machine, from the process file system.

use crate::error::{ObserveError, Result};
use crate::process;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// File name of the agent library.
pub const AGENT_LIBRARY: &str = "libhprof.so";

/// A running JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jvm {
    /// Its process id in the namespace of this process.
    pub pid: u32,
    /// Its process id in its own namespace, which is part of its attach socket's name.
    pub inner_pid: u32,
    /// Main class or jar, as in its command line.
    pub main: String,
    /// Its effective user and group.
    pub user: (u32, u32),
    /// The path of the loaded agent library, as the JVM sees it.
    pub agent: Option<String>,
}

impl Jvm {
    /// True if the JVM sees other files than this process, or may not read this user's files.
    pub fn has_own_files(&self) -> bool {
        self.has_own_root() || self.user.0 != rustix::process::geteuid().as_raw()
    }

    /// True if the JVM sees other files than this process.
    pub fn has_own_root(&self) -> bool {
        let link = |folder: &Path| fs::read_link(folder.join("ns/mnt")).ok();
        let root = |folder: &Path| {
            let root = fs::metadata(folder.join("root")).ok();
            root.map(|root| (root.dev(), root.ino()))
        };
        let (its, own) = (process::folder(self.pid), Path::new("/proc/self"));
        link(&its) != link(own) || root(&its) != root(own)
    }

    /// `4711 demo.Main`.
    pub fn name(&self) -> String {
        format!("{} {}", self.pid, self.main)
    }
}

/// How long a new process may take until it is a JVM.
const STARTS_WITHIN: Duration = Duration::from_secs(3);
/// The message for a process of OpenJ9.
const OPENJ9: &str =
    "runs OpenJ9, which has no such profiler interface; Tenure needs a HotSpot JVM";
const NATIVE_IMAGE: &str =
    "is a GraalVM native image, in which no agent can be loaded; Tenure needs a HotSpot JVM";

/// Every JVM of this user (of all users, for root).
pub fn list() -> Vec<Jvm> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Jvm> = pids.filter_map(read).collect();
    found.sort_by_key(|jvm| jvm.pid);
    found
}

/// The JVM with this process id, or with this part of its main class's name.
///
/// # Errors
/// There is none, or several match.
pub fn find(selector: &str) -> Result<Jvm> {
    if let Ok(pid) = selector.parse() {
        return wait_for(pid).ok_or_else(|| ObserveError::NotFound(why_not(pid)));
    }
    let own = std::process::id();
    let mut found = list();
    found.retain(|jvm| jvm.pid != own && jvm.main.contains(selector));
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(ObserveError::NotFound(format!(
            "no JVM runs {selector:?}{}",
            running()
        ))),
        many => {
            let names: Vec<_> = many.iter().map(Jvm::name).collect();
            let names = names.join(", ");
            Err(ObserveError::Ambiguous(format!(
                "{selector:?} matches several JVMs: {names}"
            )))
        }
    }
}

/// The JVM with this process id. If the process was just started (`java Main & tenure attach $!`), this waits until it
/// has loaded the VM.
fn wait_for(pid: u32) -> Option<Jvm> {
    let begun = Instant::now();
    loop {
        let found = read(pid);
        let is_there = Path::new("/proc").join(pid.to_string()).exists();
        if found.is_some() || !is_there || begun.elapsed() > STARTS_WITHIN {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Why it is not possible to attach to a process.
fn why_not(pid: u32) -> String {
    let folder = Path::new("/proc").join(pid.to_string());
    if !folder.exists() {
        return format!("no process {pid}{}", running());
    }
    let folder = process::folder(pid);
    let maps = fs::read_to_string(folder.join("maps"));
    let what = match maps {
        Err(_) => format!("is no JVM that this user may access{}", running()),
        Ok(maps) if is_openj9(&maps) => OPENJ9.to_owned(),
        Ok(_) if is_native_image(&folder.join("exe")) => NATIVE_IMAGE.to_owned(),
        Ok(_) => format!("is no JVM{}", running()),
    };
    format!("process {pid} {what}")
}

/// `; running JVMs: 12 Main, 15 app.jar`, or nothing.
fn running() -> String {
    let names: Vec<_> = list().iter().map(Jvm::name).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; running JVMs: {}", names.join(", "))
    }
}

/// Whether a process has mapped HotSpot. An update of the JDK replaces the library of a JVM that continues with the
/// deleted file.
fn is_hotspot(maps: &str) -> bool {
    let mut files = maps
        .lines()
        .map(|line| line.strip_suffix(" (deleted)").unwrap_or(line));
    files.any(|line| line.ends_with("/libjvm.so")) && !is_openj9(maps)
}

/// Whether a process has mapped OpenJ9.
fn is_openj9(maps: &str) -> bool {
    maps.lines().any(|line| line.contains("/libj9vm"))
}

/// Whether a program was built by GraalVM's native-image: it contains the names of the runtime.
fn is_native_image(program: &Path) -> bool {
    const NAME: &[u8] = b"com.oracle.svm.core";
    let Ok(mut file) = fs::File::open(program) else {
        return false;
    };
    let mut buffer = vec![0; 1 << 20];
    let mut held = 0;
    while let Ok(count @ 1..) = file.read(&mut buffer[held..]) {
        let filled = held + count;
        if buffer[..filled]
            .windows(NAME.len())
            .any(|part| part == NAME)
        {
            return true;
        }
        // The name may cross the boundary between two reads.
        held = filled.min(NAME.len());
        buffer.copy_within(filled - held..filled, 0);
    }
    false
}

/// The JVM of a process and its descendants, if there is one yet: the process itself if it is a JVM, otherwise the
/// first one among its descendants.
pub fn of_family(pid: u32) -> Option<Jvm> {
    if let Some(jvm) = read(pid) {
        return Some(jvm);
    }
    list().into_iter().find(|jvm| descends(jvm.pid, pid))
}

/// Whether a process is `ancestor` or a descendant of it.
pub fn descends(pid: u32, ancestor: u32) -> bool {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mut ancestors = std::iter::successors(Some(pid), |pid| parent(*pid)).take(64);
    ancestors.any(|one| one == ancestor)
}

/// The name of a process copy that the agent has made for a heap dump.
const COPY: &str = "tenure copy";

fn read(pid: u32) -> Option<Jvm> {
    let own = Path::new("/proc").join(pid.to_string());
    if fs::read_to_string(own.join("comm")).ok()?.trim_end() == COPY {
        return None;
    }
    let folder = process::folder(pid);
    // Only the owner may read the map of a process, and only the owner may attach.
    let maps = fs::read_to_string(folder.join("maps")).ok()?;
    if !is_hotspot(&maps) {
        return None;
    }
    let command = fs::read(folder.join("cmdline")).ok()?;
    let arguments: Vec<String> = command
        .split(|byte| *byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .filter(|argument| !argument.is_empty())
        .collect();
    let status = fs::read_to_string(own.join("status")).ok()?;
    let inner_pid = inner_pid(&status).unwrap_or(pid);
    Some(Jvm {
        pid,
        inner_pid,
        main: main_of(&arguments),
        user: (effective(&status, "Uid:")?, effective(&status, "Gid:")?),
        agent: agent_of(&maps)
            .map(|path| inside(&path, fs::read_link(folder.join("root")).ok().as_deref())),
    })
}

/// The path of the agent library in a process; JDK 8 has another library with that name.
fn agent_of(maps: &str) -> Option<String> {
    let paths = maps.lines().filter_map(|line| {
        let at = line.find('/')?;
        Some(line[at..].strip_suffix(" (deleted)").unwrap_or(&line[at..]))
    });
    let mut ours = paths
        .filter(|path| path.ends_with(&format!("/{AGENT_LIBRARY}")) && !path.contains("/jre/lib/"));
    ours.next().map(str::to_owned)
}

/// The path of a file as the process sees it. In the map of a process whose root was changed (chroot), paths can begin
/// with that root, which the process does not see.
fn inside(path: &str, root: Option<&Path>) -> String {
    let below = root.and_then(|root| Path::new(path).strip_prefix(root).ok());
    let below = below.and_then(Path::to_str);
    below.map_or_else(|| path.to_owned(), |below| format!("/{below}"))
}

/// The second number of a line such as `Uid:`: the effective one.
fn effective(status: &str, line: &str) -> Option<u32> {
    let numbers = status.lines().find_map(|one| one.strip_prefix(line))?;
    numbers.split_whitespace().nth(1)?.parse().ok()
}

/// The last number of the `NSpid:` line: the id in the innermost namespace.
fn inner_pid(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The main class, jar or module of a java command line; options with a separate value are skipped with it.
fn main_of(arguments: &[String]) -> String {
    const WITH_VALUE: [&str; 14] = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--upgrade-module-path",
        "--add-modules",
        "--limit-modules",
        "--add-exports",
        "--add-opens",
        "--add-reads",
        "--patch-module",
        "--enable-native-access",
        "--source",
    ];
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-jar" | "-m" | "--module" => return rest.next().cloned().unwrap_or_default(),
            option if WITH_VALUE.contains(&option) => drop(rest.next()),
            option if option.starts_with(['-', '@']) => {}
            main => return main.to_owned(),
        }
    }
    arguments.first().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_class_is_behind_the_options() {
        let check = |line: &str, main: &str| {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(main_of(&arguments), main, "{line}");
        };
        check("java -Xmx1g -cp a:b demo.Main arg", "demo.Main");
        check("/usr/bin/java -jar app.jar --port 1", "app.jar");
        check(
            "java --add-opens java.base/java.lang=ALL-UNNAMED -m mod/Main",
            "mod/Main",
        );
        check(
            "java --enable-native-access ALL-UNNAMED --limit-modules java.base -jar app.jar",
            "app.jar",
        );
        check(
            "java --source 17 --patch-module a=b --upgrade-module-path c Main.java",
            "Main.java",
        );
        check("java @options", "java");
    }

    #[test]
    fn a_path_is_one_below_the_root_of_the_process() {
        let path = "/roots/sid/tmp/libhprof.so";
        let of = |root: &str| inside(path, Some(Path::new(root)));
        assert_eq!(of("/roots/sid"), "/tmp/libhprof.so");
        assert_eq!(of("/"), path);
        assert_eq!(of("/roots/si"), path);
        assert_eq!(inside(path, None), path);
    }

    #[test]
    fn other_machines_are_known_by_what_they_map() {
        let hotspot = "7f0 r-xp 0 08:01 12 /usr/lib/jvm/lib/server/libjvm.so\n";
        let openj9 = "7f0 r-xp 0 08:01 12 /opt/j9/lib/default/libjvm.so\n\
                      7f1 r-xp 0 08:01 13 /opt/j9/lib/default/libj9vm29.so\n";
        assert!(is_openj9(openj9) && !is_openj9(hotspot));
        assert!(is_hotspot(hotspot) && !is_hotspot(openj9) && !is_hotspot(""));
        let updated = hotspot.replace(".so\n", ".so (deleted)\n");
        assert!(is_hotspot(&updated));
        let ours = "7f1 r-xp 0 08:01 13 /opt/tenure/lib/libhprof.so (deleted)\n";
        assert_eq!(
            agent_of(&format!("{hotspot}{ours}")).as_deref(),
            Some("/opt/tenure/lib/libhprof.so")
        );
        let original = "7f1 r-xp 0 08:01 13 /usr/lib/jvm/8/jre/lib/amd64/libhprof.so\n";
        assert_eq!(agent_of(&format!("{hotspot}{original}")), None);
    }

    #[test]
    fn a_native_image_is_known_by_names_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |before: usize, name: &str, expected| {
            let file = folder.path().join("program");
            let content = [&vec![b'x'; before][..], name.as_bytes(), b"more"].concat();
            fs::write(&file, content).expect("written");
            assert_eq!(is_native_image(&file), expected, "{before} {name}");
        };
        check(10, "com.oracle.svm.core", true);
        // The name crosses the boundary between two reads.
        check((1 << 20) - 7, "com.oracle.svm.core", true);
        check((1 << 20) + 7, "com.oracle.svm.gore", false);
    }

    #[test]
    fn the_innermost_process_id_counts() {
        let status = "Uid:\t1000\t65534\t1000\t1000\n";
        assert_eq!(effective(status, "Uid:"), Some(65534));
        assert_eq!(inner_pid("Name:\tjava\nNSpid:\t4711\t7\n"), Some(7));
        assert_eq!(inner_pid("Name:\tjava\n"), None);
    }
}
