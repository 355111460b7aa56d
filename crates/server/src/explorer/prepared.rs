//! The first answers, kept beside the index: what took half a minute for a large heap is there at once when
//! the dump is opened again.

use super::state::Explorer;
use super::views;
use crate::reply::{Fault, Form, Written};
use heap_graph::Heap;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// A larger file was not written by us.
const MOST_BYTES: u64 = 64 << 20;

/// An answer as a line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    question: String,
    answer: String,
}

/// The file of a heap and its first line, which says of what dump, index and build the answers are.
/// `None` when the heap has no index on disk.
fn place(heap: &Heap) -> Option<(std::path::PathBuf, String)> {
    let (path, index) = heap.beside_index("answers")?;
    let build = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let age = build
        .modified()
        .ok()?
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?;
    let key = format!(
        "tenure {} {} {:x} {index}",
        env!("CARGO_PKG_VERSION"),
        build.len(),
        age.as_nanos()
    );
    Some((path, key))
}

/// Puts the kept answers among those that were just given. False when there are none.
pub(super) fn recall(explorer: &Explorer, heap: &Heap) -> bool {
    let Some((path, key)) = place(heap) else {
        return false;
    };
    let lines = read(&path, &key);
    let any = !lines.is_empty();
    for line in lines {
        let (form, bytes) = (Form::Json, line.answer.into_bytes());
        let size = bytes.len();
        let kept = || Ok::<_, Fault>((Written { form, bytes }, size));
        // What is there already is the same.
        let _ = explorer.answers.get(line.question, kept);
    }
    any
}

/// Keeps the first answers, if there is a place for them.
pub(super) fn keep(explorer: &Explorer, heap: &Heap) {
    let Some((path, key)) = place(heap) else {
        return;
    };
    let lines = views::prepared_questions(explorer).filter_map(|question| {
        let answer = explorer.answers.find(&question)?;
        let answer = String::from_utf8(answer.bytes.clone()).ok()?;
        Some(Line { question, answer })
    });
    // Without it the answers are computed again.
    let _ = write(&path, &key, lines);
}

fn read(path: &Path, key: &str) -> Vec<Line> {
    let Ok(file) = heap_graph::open_own(path) else {
        return Vec::new();
    };
    let mut lines = BufReader::new(file.take(MOST_BYTES))
        .lines()
        .map_while(Result::ok);
    if lines.next().as_deref() != Some(key) {
        return Vec::new();
    }
    let lines: Option<Vec<Line>> = lines.map(|line| serde_json::from_str(&line).ok()).collect();
    lines.unwrap_or_default()
}

fn write(path: &Path, key: &str, lines: impl Iterator<Item = Line>) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Written whole under another name: two explorers of one dump do not disturb each other.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{key}")?;
    for line in lines {
        serde_json::to_writer(&mut file, &line)?;
        file.write_all(b"\n")?;
    }
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_back_for_the_same_key_only_and_not_from_a_damaged_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("1.answers");
        let line = |n: u32| Line {
            question: format!("q{n}"),
            answer: format!("{{\n \"n\": {n}\n}}"),
        };
        write(&path, "key", [line(1), line(2)].into_iter()).expect("written");
        let found = read(&path, "key");
        let pairs: Vec<_> = found
            .iter()
            .map(|l| (l.question.as_str(), l.answer.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [("q1", "{\n \"n\": 1\n}"), ("q2", "{\n \"n\": 2\n}")]
        );
        assert!(read(&path, "another").is_empty());
        let bytes = fs::read(&path).expect("bytes");
        fs::write(&path, &bytes[..bytes.len() - 5]).expect("cut");
        assert!(read(&path, "key").is_empty());
        assert!(read(&folder.path().join("absent"), "key").is_empty());
    }
}
