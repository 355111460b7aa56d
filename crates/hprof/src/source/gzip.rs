//! gzip with any number of members. JDK 15 and later write a dump as many small members, each
//! compressed on its own; those are found by their magic and decoded by all cores. A guess that
//! was wrong costs a little time and nothing else: only members that begin exactly where the one
//! before ended are used.

use crate::{DamageKind, Diagnostic, Diagnostics};
use flate2::bufread::GzDecoder;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::thread;

/// What decoding gave.
#[derive(Clone, Debug, Default)]
pub struct GzipReport {
    /// Members that were read.
    pub members: u64,
    /// Decoded bytes.
    pub bytes: u64,
    /// Damage; offsets are in the decoded file.
    pub diagnostics: Diagnostics,
}

const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// A member that decodes to more than this is not decoded ahead of its turn.
const AHEAD_LIMIT: u64 = 8 << 20;
/// Members decoded ahead at once, per thread.
const BATCH_PER_THREAD: usize = 4;

pub(super) fn is_gzip(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

/// A place where a member might begin: the magic, and flags that exist.
fn is_member(data: &[u8]) -> bool {
    data.starts_with(&MAGIC) && data.len() >= 18 && data[3] & 0xe0 == 0
}

struct Member {
    bytes: Vec<u8>,
    next: usize,
}

pub(super) fn decode(data: &[u8], out: &mut File) -> io::Result<GzipReport> {
    let mut report = GzipReport::default();
    let candidates: Vec<usize> = (0..data.len())
        .filter(|&at| data[at] == 0x1f && is_member(&data[at..]))
        .collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut ahead: HashMap<usize, Member> = HashMap::new();
    let mut decoded_to = 0usize;
    let mut at = 0usize;
    while at < data.len() {
        if !is_member(&data[at..]) {
            let next = candidates.partition_point(|&c| c < at);
            if after_members(data, at, &mut report) {
                break;
            }
            match candidates.get(next) {
                Some(&next) => at = next,
                None => break,
            }
            continue;
        }
        let index = candidates.partition_point(|&c| c < at);
        if candidates.len() > 1 && index >= decoded_to {
            let batch =
                &candidates[index..(index + threads * BATCH_PER_THREAD).min(candidates.len())];
            ahead = decode_ahead(data, batch, threads);
            decoded_to = index + batch.len();
        }
        at = match ahead.remove(&at) {
            Some(member) => {
                out.write_all(&member.bytes)?;
                report.members += 1;
                report.bytes += member.bytes.len() as u64;
                member.next
            }
            None => decode_in_turn(data, at, out, &mut report)?,
        };
    }
    Ok(report)
}

/// Zero padding behind the last member is usual; anything else is damage. True when nothing more
/// can follow.
fn after_members(data: &[u8], at: usize, report: &mut GzipReport) -> bool {
    let rest = &data[at..];
    if rest.iter().all(|b| *b == 0) {
        return true;
    }
    report.diagnostics.push(Diagnostic::new(
        DamageKind::Container,
        report.bytes,
        "gzip",
        "member",
        "another member or the end of the file",
        format!("other bytes at offset {at} of the compressed file"),
    ));
    false
}

fn decode_ahead(data: &[u8], batch: &[usize], threads: usize) -> HashMap<usize, Member> {
    let mut found = HashMap::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                scope.spawn(move || {
                    let mine = batch.iter().skip(t).step_by(threads);
                    mine.filter_map(|&at| Some((at, whole_member(data, at)?)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in workers {
            // A worker that panicked gave nothing; its members are decoded in turn.
            found.extend(worker.join().unwrap_or_default());
        }
    });
    found
}

fn whole_member(data: &[u8], at: usize) -> Option<Member> {
    let mut decoder = GzDecoder::new(&data[at..]);
    let mut bytes = Vec::new();
    let read = (&mut decoder)
        .take(AHEAD_LIMIT + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    if read as u64 > AHEAD_LIMIT {
        return None;
    }
    Some(Member {
        bytes,
        next: data.len() - decoder.get_ref().len(),
    })
}

fn decode_in_turn(
    data: &[u8],
    at: usize,
    out: &mut File,
    report: &mut GzipReport,
) -> io::Result<usize> {
    let mut decoder = GzDecoder::new(&data[at..]);
    let mut buffer = vec![0u8; 1 << 18];
    report.members += 1;
    loop {
        match decoder.read(&mut buffer) {
            Ok(0) => return Ok(data.len() - decoder.get_ref().len()),
            Ok(n) => {
                out.write_all(&buffer[..n])?;
                report.bytes += n as u64;
            }
            Err(error) => {
                let cut = error.kind() == io::ErrorKind::UnexpectedEof;
                report.diagnostics.push(Diagnostic::new(
                    if cut {
                        DamageKind::Truncated
                    } else {
                        DamageKind::Container
                    },
                    report.bytes,
                    "gzip",
                    "member",
                    "a whole member",
                    format!("{error} in the member at offset {at} of the compressed file"),
                ));
                // Another member may follow the damaged one; it must begin behind this one.
                let rest = data.len() - decoder.get_ref().len().min(data.len());
                return Ok(next_member(data, rest.max(at + 18)));
            }
        }
    }
}

fn next_member(data: &[u8], from: usize) -> usize {
    (from..data.len())
        .find(|&at| is_member(&data[at..]) && whole_member(data, at).is_some())
        .unwrap_or(data.len())
}
