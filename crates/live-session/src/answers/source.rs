//! The source of a frame, if it exists on this machine.

use crate::recording::state::Live;
use requests::Fault;
use requests::Params;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines that are shown before and after the frame's line.
const AROUND: usize = 60;
/// Larger files are not treated as source files.
const LARGEST: u64 = 8 << 20;
/// Usual folders of sources in a project.
const USUAL: [&str; 6] = [
    "",
    "src",
    "src/main/java",
    "src/main/kotlin",
    "src/test/java",
    "app/src/main/java",
];

/// A part of a source file: `tenure.live.source/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Name of the schema.
    pub schema: &'static str,
    /// The file.
    pub file: String,
    /// The frame's line, from 1; none when the frame has no line.
    pub line: Option<usize>,
    /// Number of the first line given.
    pub first: usize,
    /// Lines without their ends.
    pub lines: Vec<String>,
}

/// Package folders, file name and line of `pkg.Class.method(File.java:7)`, with or without a leading module or loader
/// (`app//`, `java.base/`); `None` if the frame names no file.
fn parse(frame: &str) -> Option<(PathBuf, &str, Option<usize>)> {
    let (name, rest) = frame.split_once('(')?;
    let place = rest.strip_suffix(')')?;
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) => (file, Some(line.parse().ok()?)),
        None => (place, None),
    };
    let class = name.rsplit_once('.')?.0;
    let class = class.rsplit_once('/').map_or(class, |(_, class)| class);
    let folders = class.rsplit_once('.').map_or("", |(package, _)| package);
    // Names come from the program, so none may lead out of a source root.
    let plain = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['/', '\\', '\0'])
    };
    let is_plain = plain(file) && (folders.is_empty() || folders.split('.').all(plain));
    (is_plain && file.contains('.')).then(|| (folders.split('.').collect(), file, line))
}

/// Searches for a frame's file below the source roots: in the folder of its package, then at the root (where Kotlin
/// files may be). `None` if it is not found.
pub fn find(roots: &[PathBuf], frame: &str) -> Option<Source> {
    let (package, file, line) = parse(frame)?;
    let folders = roots
        .iter()
        .flat_map(|root| USUAL.iter().map(move |usual| root.join(usual)));
    let places = folders.flat_map(|folder| [folder.join(&package).join(file), folder.join(file)]);
    let path = places.into_iter().find(|path| is_below(path, roots))?;
    let text = fs::read(&path).ok()?;
    let text = String::from_utf8_lossy(&text);
    let first = line.map_or(1, |line| line.saturating_sub(AROUND).max(1));
    let most = line.map_or(usize::MAX, |_| 2 * AROUND + 1);
    Some(Source {
        schema: "tenure.live.source/1",
        file: path.to_string_lossy().into_owned(),
        line,
        first,
        lines: text
            .lines()
            .skip(first - 1)
            .take(most)
            .map(str::to_owned)
            .collect(),
    })
}

/// The source of the `frame` of an address.
///
/// # Errors
/// No source folders are set, or the file is in none of them.
pub fn of(live: &Live, params: &Params) -> Result<Source, Fault> {
    let frame = params
        .get("frame")
        .ok_or_else(|| Fault::bad("frame is missing: expected Class.method(File.java:1)"))?;
    if live.sources().is_empty() {
        return Err(Fault::not_found(
            "no sources are known; start tenure with --source FOLDER",
        ));
    }
    let none = || Fault::not_found(format!("{frame}: its source is in none of the folders"));
    find(live.sources(), frame).ok_or_else(none)
}

/// Whether it is a file below a root after all links are resolved.
fn is_below(path: &Path, roots: &[PathBuf]) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    fs::metadata(&real).is_ok_and(|it| it.is_file() && it.len() <= LARGEST)
        && roots
            .iter()
            .any(|root| root.canonicalize().is_ok_and(|root| real.starts_with(root)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_leads_to_its_line_and_never_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        let package = root.join("src/main/java/shop/cart");
        fs::create_dir_all(&package).unwrap();
        let text: String = (1..=200).map(|n| format!("line {n}\n")).collect();
        fs::write(package.join("Cart.java"), &text).unwrap();
        fs::write(folder.path().join("secret.txt"), "x").unwrap();
        let roots = [root];
        let found = find(&roots, "shop.cart.Cart$Item.add(Cart.java:100)").unwrap();
        assert_eq!((found.line, found.first), (Some(100), 40));
        assert_eq!(found.lines[100 - 40], "line 100");
        assert_eq!(found.lines.len(), 121);
        assert!(find(&roots, "app//shop.cart.Cart.add(Cart.java:1)").is_some());
        let whole = find(&roots, "shop.cart.Cart.add(Cart.java)").unwrap();
        assert_eq!((whole.line, whole.lines.len()), (None, 200));
        for frame in [
            "shop.cart.Cart.add(Native method)",
            "shop.cart.Cart.add(Unknown Source)",
            "shop.Other.add(Other.java:1)",
            "A.b(../../secret.txt:1)",
            "...A.b(secret.txt:1)",
            "nonsense",
        ] {
            assert_eq!(find(&roots, frame), None, "{frame}");
        }
    }
}
