//! Answers saved in a file beside the index: an answer that takes half a minute for a large heap is available at once
//! the next time.

use heap_graph::Heap;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, IntoInnerError, Read, Write};
use std::path::{Path, PathBuf};

/// A larger file was not written by Tenure.
const MOST_BYTES: u64 = 128 << 20;

/// An answer as a line of the file.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// The question, with everything besides the dump on which the answer depends.
    pub question: String,
    /// The text of the answer.
    pub answer: String,
}

/// The file with the answers about a heap, for one kind of question.
pub struct KeptAnswers {
    path: PathBuf,
    /// The first line: the dump, index and build that the answers belong to.
    key: String,
    /// The most bytes of the file.
    most: u64,
}

impl KeptAnswers {
    /// `kind` is the extension of the file. `None` when the heap has no index on disk.
    pub fn of(heap: &Heap, kind: &str) -> Option<KeptAnswers> {
        let (path, index) = heap.beside_index(kind)?;
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
        let most = MOST_BYTES;
        Some(KeptAnswers { path, key, most })
    }

    /// All answers; none when the file belongs to another dump, index or build, or is damaged.
    pub fn read(&self) -> Vec<Kept> {
        read(&self.path, &self.key)
    }

    /// The answer to a question.
    pub fn find(&self, question: &str) -> Option<String> {
        let mut all = self.read().into_iter();
        all.find(|kept| kept.question == question)
            .map(|kept| kept.answer)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// When it cannot be written; the previous file then stays.
    pub fn replace(&self, answers: impl Iterator<Item = Kept>) -> io::Result<()> {
        write(&self.path, &self.key, answers)
    }

    /// Adds an answer. The oldest answers are dropped to make space for it. An answer larger than a quarter of the
    /// limit is not saved.
    ///
    /// # Errors
    /// As for [`replace`](Self::replace).
    pub fn add(&self, new: Kept) -> io::Result<()> {
        let room = |kept: &Kept| line_of(kept).map_or(u64::MAX, |line| line.len() as u64 + 1);
        if room(&new) > self.most / 4 {
            return Ok(());
        }
        let mut all = self.read();
        all.retain(|kept| kept.question != new.question);
        all.push(new);
        let mut left = self.most.saturating_sub(self.key.len() as u64 + 1);
        let fits = |kept: &&Kept| {
            left = left.saturating_sub(room(kept));
            left > 0
        };
        let newest = all.iter().rev().take_while(fits).count();
        let first = all.len() - newest;
        self.replace(all.into_iter().skip(first))
    }
}

fn read(path: &Path, key: &str) -> Vec<Kept> {
    let Ok(file) = heap_graph::open_own(path) else {
        return Vec::new();
    };
    let mut lines = BufReader::new(file.take(MOST_BYTES))
        .lines()
        .map_while(Result::ok);
    if lines.next().as_deref() != Some(key) {
        return Vec::new();
    }
    let lines: Option<Vec<Kept>> = lines.map(|line| parsed(&line)).collect();
    lines.unwrap_or_default()
}

/// An answer as a line: the checksum of the JSON text (CRC-32, eight hexadecimal digits), a space and the text.
fn line_of(kept: &Kept) -> io::Result<String> {
    let text = serde_json::to_string(kept)?;
    Ok(format!("{:08x} {text}", crc32fast::hash(text.as_bytes())))
}

/// The answer in a line; `None` if the line is damaged.
fn parsed(line: &str) -> Option<Kept> {
    let (checksum, text) = line.split_once(' ')?;
    let is_whole = u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(text.as_bytes());
    is_whole.then(|| serde_json::from_str(text).ok()).flatten()
}

fn write(path: &Path, key: &str, lines: impl Iterator<Item = Kept>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Written completely under another name first, so that two explorers of one dump do not disturb each other.
    let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(folder)?);
    writeln!(file, "{key}")?;
    for kept in lines {
        writeln!(file, "{}", line_of(&kept)?)?;
    }
    let file = file.into_inner().map_err(IntoInnerError::into_error)?;
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
        let line = |n: u32| Kept {
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
        // Each bit of the answers counts.
        for at in "key\n".len()..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).expect("damaged");
            assert!(read(&path, "key").is_empty(), "{at}");
        }
        assert!(read(&folder.path().join("absent"), "key").is_empty());
    }

    #[test]
    fn an_answer_replaces_that_to_the_same_question_and_a_huge_one_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let answers = KeptAnswers {
            path: folder.path().join("1.answers"),
            key: "key".to_owned(),
            most: 10_000,
        };
        let kept = |question: &str, answer: String| Kept {
            question: question.to_owned(),
            answer,
        };
        let one = |n: u32| "x".repeat(1_000) + &n.to_string();
        answers.add(kept("a", "1".to_owned())).expect("written");
        answers.add(kept("a", "2".to_owned())).expect("written");
        assert_eq!(answers.find("a").as_deref(), Some("2"));
        answers.add(kept("b", "x".repeat(2_500))).expect("left out");
        assert_eq!(answers.find("b"), None);
        // The oldest ones are dropped.
        for n in 0..12 {
            answers.add(kept(&n.to_string(), one(n))).expect("written");
        }
        assert_eq!(answers.find("a"), None);
        assert_eq!(answers.find("11"), Some(one(11)));
        let all = answers.read().len();
        assert!((5..12).contains(&all), "{all}");
    }
}
