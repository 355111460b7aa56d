//! The memory that a process can still use, and the limit of its control group, which is that of its container, pod or
//! service. The kernel ends processes of a group that reaches the limit, however much of the Java heap is free.

use std::fs;
use std::path::{Path, PathBuf};

/// Where Linux mounts control groups.
const MOUNT: &str = "/sys/fs/cgroup";

/// Values of at least this size mean that there is no limit (version 1 has no keyword for it).
const NO_LIMIT: u64 = 1 << 60;

/// The memory of a group with a limit. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container {
    /// The smallest limit of the group and the groups around it.
    pub limit: u64,
    /// Memory use of the group with that limit: of all its processes, including the files that they have read.
    pub used: u64,
    /// The part of `used` for files that they have read, which the kernel drops when memory is needed.
    pub files: u64,
}

impl Container {
    /// The memory that processes of the group can still use.
    pub fn free(self) -> u64 {
        self.limit
            .saturating_sub(self.used.saturating_sub(self.files))
    }
}

/// Bytes that a process can still use: in its control group, and on the machine. `None` if the system does not report
/// it.
pub fn free_memory(pid: u32) -> Option<u64> {
    let group = read(pid).map(Container::free);
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| available(&text));
    [group, machine].into_iter().flatten().min()
}

/// The line of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Reads the group of a process; `None` if it has no limit, or the system does not show it.
pub fn read(pid: u32) -> Option<Container> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    find(Path::new(MOUNT), &groups)
}

/// The file names of a version of the interface.
struct Names {
    limit: &'static str,
    used: &'static str,
    /// The names of the lines of `memory.stat` about files, which include groups inside of this one.
    files: [&'static str; 2],
}

const VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    files: ["total_inactive_file ", "total_active_file "],
};
const VERSION_2: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    files: ["inactive_file ", "active_file "],
};

/// Finds the group by `/proc/PID/cgroup`: lines of number, controllers and path. Version 2 has the
/// number 0 and no controllers.
fn find(mount: &Path, groups: &str) -> Option<Container> {
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let found = lines.filter_map(|(controllers, path)| {
        if controllers.is_empty() {
            smallest(mount.to_path_buf(), path, &VERSION_2)
        } else if controllers.split(',').any(|name| name == "memory") {
            smallest(mount.join("memory"), path, &VERSION_1)
        } else {
            None
        }
    });
    found.min_by_key(|container| container.limit)
}

/// The smallest limit on the path from the mount to the group. In a container without its own group namespace, the
/// group is at the mount, and the names in the path do not exist there.
fn smallest(mount: PathBuf, path: &str, names: &Names) -> Option<Container> {
    let mut folder = mount;
    let mut found = container(&folder, names);
    for part in path.split('/').filter(|part| !part.is_empty()) {
        // `..` is a group outside of the namespace, which is not visible.
        if part == ".." {
            continue;
        }
        folder.push(part);
        let inner = container(&folder, names);
        found = match (found, inner) {
            (Some(outer), Some(inner)) if outer.limit < inner.limit => Some(outer),
            (outer, inner) => inner.or(outer),
        };
    }
    found
}

fn container(folder: &Path, names: &Names) -> Option<Container> {
    let number = |name| -> Option<u64> {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let line = |name: &str| {
        stat.lines()
            .find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok())
    };
    Some(Container {
        limit: number(names.limit).filter(|limit| *limit < NO_LIMIT)?,
        used: number(names.used)?,
        files: names
            .files
            .iter()
            .filter_map(|name| line(name))
            .sum::<u64>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Container, available, find};
    use std::path::Path;

    #[test]
    fn free_memory_is_read_in_kibibytes() {
        let text = "MemTotal:       24683616 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(available(text), Some(23_000_000 << 10));
        assert_eq!(available("MemTotal: 24683616 kB\n"), None);
    }

    fn group(mount: &Path, path: &str, files: [(&str, &str); 2]) {
        let folder = mount.join(path);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("a file");
        }
    }

    #[test]
    fn the_smallest_limit_on_the_way_counts_in_both_versions() {
        let mount = tempfile::tempdir().expect("a folder");
        let mount = mount.path();
        let two = |path, limit, used| {
            group(
                mount,
                path,
                [("memory.max", limit), ("memory.current", used)],
            );
        };
        two("pods", "max\n", "9000\n");
        two("pods/shop", "500\n", "450\n");
        two("pods/shop/java", "700\n", "400\n");
        let shop = Some(Container {
            limit: 500,
            used: 450,
            files: 230,
        });
        let stat = "anon 200\ninactive_file 200\nactive_file 30\n";
        std::fs::write(mount.join("pods/shop/memory.stat"), stat).expect("a file");
        assert_eq!(find(mount, "0::/pods/shop/java\n"), shop);
        assert_eq!(shop.map(Container::free), Some(500 - 220));
        assert_eq!(find(mount, "0::/../pods/shop\n"), shop);
        assert_eq!(find(mount, "0::/pods\n"), None);
        assert_eq!(find(mount, "0::/\n"), None);
        let one = |path, limit, used| {
            let files = [
                ("memory.limit_in_bytes", limit),
                ("memory.usage_in_bytes", used),
            ];
            group(mount, path, files);
        };
        one("memory", "9223372036854771712\n", "9000\n");
        one("memory/docker/a", "800\n", "300\n");
        let groups = "12:cpu,cpuacct:/x\n7:memory:/docker/a\n0::/pods\n";
        let docker = Some(Container {
            limit: 800,
            used: 300,
            files: 120,
        });
        let stat = "inactive_file 7\ntotal_inactive_file 20\ntotal_active_file 100\n";
        std::fs::write(mount.join("memory/docker/a/memory.stat"), stat).expect("a file");
        assert_eq!(find(mount, groups), docker);
        // Inside of a container the group is at the mount, and its path does not exist.
        one("memory", "600\n", "200\n");
        let inside = Some(Container {
            limit: 600,
            used: 200,
            files: 0,
        });
        assert_eq!(find(mount, "7:memory:/docker/b\n"), inside);
        assert_eq!(find(mount, "nonsense\n7:memory\n"), None);
    }
}
