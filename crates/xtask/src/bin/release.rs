//! The text changes of `./x release VERSION`, and with `--notes` the notes when the packages are there.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use xtask::package::{time, version};
use xtask::tree::root;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [number] => prepare(&root, number),
        ["--notes", number, sums, to] => {
            let sums = read(Path::new(sums))?;
            let notes = version::notes(&read(&root.join("CHANGELOG.md"))?, number, &sums)?;
            write(Path::new(to), &notes)
        }
        _ => Err("wanted: VERSION, or --notes VERSION SHA256SUMS FILE".to_owned()),
    }
}

/// Sets the version in the manifests and in the action, and cuts the changelog.
fn prepare(root: &Path, number: &str) -> Result<(), String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let day = time::day(now.map_err(|error| error.to_string())?.as_secs());
    let (manifest, changelog, action) = (
        root.join("Cargo.toml"),
        root.join("CHANGELOG.md"),
        root.join("action.yml"),
    );
    let old = version::current(&read(&manifest)?)?;
    let new = version::set(&read(&manifest)?, number)?;
    let cut = version::cut(&read(&changelog)?, number, &day)?;
    let default = |version: &str| format!("    default: {version}\n");
    let text = read(&action)?.replace(&default(&old), &default(number));
    write(&manifest, &new)?;
    write(&changelog, &cut)?;
    write(&action, &text)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
