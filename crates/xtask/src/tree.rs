//! The files of the repository: what git tracks or would track.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace. The folder that cargo runs the test in comes first: worktrees that
/// share a target folder also share what was compiled into it.
pub fn root() -> PathBuf {
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let running = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, PathBuf::from);
    running
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// Path (from the root, with slashes) and text of every text file; binary files are left out.
pub fn text_files() -> Vec<(String, String)> {
    let root = root();
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(&root)
        .output();
    let names: Vec<String> = match listed {
        Ok(out) if out.status.success() => {
            let text = String::from_utf8_lossy(&out.stdout);
            text.split('\0')
                .filter(|n| !n.is_empty())
                .map(str::to_owned)
                .collect()
        }
        // A source archive has no git; its folders hold nothing but sources.
        _ => walk(&root, &["crates", "demo", "fuzz", "bench"]),
    };
    let read = |name: String| Some((std::fs::read_to_string(root.join(&name)).ok()?, name));
    names
        .into_iter()
        .filter_map(read)
        .map(|(text, name)| (name, text))
        .collect()
}

fn walk(root: &Path, folders: &[&str]) -> Vec<String> {
    let mut todo: Vec<PathBuf> = folders.iter().map(|f| root.join(f)).collect();
    let mut found = Vec::new();
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "target" {
                todo.push(path);
            } else if let Ok(name) = path.strip_prefix(root) {
                found.push(name.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found
}
