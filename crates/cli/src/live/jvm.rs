//! Which JVMs run on this machine, from the process file system.

use crate::exit::{NotFound, Usage};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// A running JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Jvm {
    /// Its process id as this process sees it.
    pub(crate) pid: u32,
    /// Its process id in its own namespace, which names its attach socket.
    pub(crate) inner_pid: u32,
    /// Main class or jar, as its command line has it.
    pub(crate) main: String,
}

impl Jvm {
    /// A path of the JVM's own file system, which may be a container's.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.pid))
    }

    /// True when the JVM sees other files than this process.
    pub(crate) fn has_own_files(&self) -> bool {
        let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        link(&self.pid.to_string()) != link("self")
    }
}

/// Every JVM of this user (of all users, for root).
pub(crate) fn list() -> Vec<Jvm> {
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

/// The JVM of a process id or of a part of its main class's name.
pub(crate) fn find(selector: &str) -> Result<Jvm> {
    if let Ok(pid) = selector.parse() {
        let gone = || NotFound(format!("process {pid} is no JVM of yours"));
        return read(pid).ok_or_else(|| gone().into());
    }
    let own = std::process::id();
    let mut found = list();
    found.retain(|jvm| jvm.pid != own && jvm.main.contains(selector));
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(NotFound(format!("no JVM runs {selector:?}{}", running())).into()),
        many => {
            let names: Vec<_> = many
                .iter()
                .map(|jvm| format!("{} {}", jvm.pid, jvm.main))
                .collect();
            Err(Usage(format!("{selector:?} is not one JVM: {}", names.join(", "))).into())
        }
    }
}

/// `; running: 12 Main, 15 app.jar`, or nothing.
fn running() -> String {
    let names: Vec<_> = list()
        .iter()
        .map(|jvm| format!("{} {}", jvm.pid, jvm.main))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; running: {}", names.join(", "))
    }
}

/// The JVM of a process and of those it started, if there is one yet: the process itself when it is
/// one, else the first that it or its children have started.
pub(crate) fn of_family(pid: u32) -> Option<Jvm> {
    if let Some(jvm) = read(pid) {
        return Some(jvm);
    }
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let descends = |jvm: &Jvm| {
        let ancestors = std::iter::successors(Some(jvm.pid), |pid| parent(*pid));
        ancestors.take(64).any(|ancestor| ancestor == pid)
    };
    list().into_iter().find(descends)
}

fn read(pid: u32) -> Option<Jvm> {
    let folder = Path::new("/proc").join(pid.to_string());
    // Only the owner may read the map of a process, and only the owner may attach.
    let maps = fs::read_to_string(folder.join("maps")).ok()?;
    if !maps.lines().any(|line| line.ends_with("/libjvm.so")) {
        return None;
    }
    let command = fs::read(folder.join("cmdline")).ok()?;
    let arguments: Vec<String> = command
        .split(|byte| *byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .filter(|argument| !argument.is_empty())
        .collect();
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let inner_pid = inner_pid(&status).unwrap_or(pid);
    Some(Jvm {
        pid,
        inner_pid,
        main: main_of(&arguments),
    })
}

/// The last number of the `NSpid:` line: the id in the innermost namespace.
fn inner_pid(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The main class, jar or module of a java command line; options with a separate value are known.
fn main_of(arguments: &[String]) -> String {
    const WITH_VALUE: [&str; 9] = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "--add-exports",
        "--add-opens",
        "--add-reads",
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
        check("java @options", "java");
    }

    #[test]
    fn the_innermost_process_id_counts() {
        assert_eq!(inner_pid("Name:\tjava\nNSpid:\t4711\t7\n"), Some(7));
        assert_eq!(inner_pid("Name:\tjava\n"), None);
    }
}
