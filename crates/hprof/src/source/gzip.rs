//! gzip with any number of members. JDK 15 and later write a dump as many small members, each compressed
//! independently. These are found by their magic bytes and decoded by all cores. A wrong guess costs only a little
//! time, because only members that begin exactly at the end of the previous one are used.

use super::{BUFFER, Unpack};
use crate::{DamageKind, Diagnostic, Diagnostics};
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, Read, Write};
use std::thread;

/// The result of decoding.
#[derive(Clone, Debug, Default)]
pub struct GzipReport {
    /// Members that were read.
    pub members: u64,
    /// Decoded bytes.
    pub bytes: u64,
    /// Damage; offsets are in the decoded file.
    pub diagnostics: Diagnostics,
}

const MEMBER: [u8; 3] = [0x1f, 0x8b, 0x08];
/// A member that decodes to more than this is not decoded ahead.
const AHEAD_LIMIT: u64 = 8 << 20;
/// Members that each thread decodes ahead at once.
const BATCH_PER_THREAD: usize = 4;

pub(super) fn is_gzip(data: &[u8]) -> bool {
    data.starts_with(&MEMBER)
}

/// True when the first member decodes to something that begins with `magic`, or to a prefix of it.
pub(super) fn begins_with(data: &[u8], magic: &[u8]) -> bool {
    let mut head = Vec::new();
    let wanted = magic.len() as u64;
    // An error after the first bytes is reported later, when everything is decoded.
    let _ = GzDecoder::new(data).take(wanted).read_to_end(&mut head);
    is_gzip(data) && magic.starts_with(&head)
}

/// Whether a member may begin here: the magic bytes, and valid flags.
fn is_member(data: &[u8]) -> bool {
    data.starts_with(&MEMBER) && data.len() >= 18 && data[3] & 0xe0 == 0
}

struct Member {
    at: usize,
    bytes: Vec<u8>,
    next: usize,
}

/// Limits the bytes that are read and decoded at positions that turn out not to be members. A file with the magic
/// bytes of a member every few bytes would otherwise be decoded once from each of them.
struct Guesses {
    left: u64,
}

impl Guesses {
    fn new(data: &[u8]) -> Guesses {
        Guesses {
            left: 4 * data.len() as u64 + (64 << 20),
        }
    }

    fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }
}

/// Decodes all members into `out`. Decoding ends if the content does not begin like a dump.
pub(super) fn decode(data: &[u8], out: &mut File, unpack: &Unpack<'_>) -> io::Result<GzipReport> {
    let mut decoding = Decoding {
        data,
        out,
        unpack,
        report: GzipReport::default(),
        guesses: Guesses::new(data),
        candidates: (0..data.len())
            .filter(|&at| data[at] == 0x1f && is_member(&data[at..]))
            .collect(),
        threads: match unpack.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            n => n,
        },
        head: Vec::new(),
        buffer: vec![0; BUFFER],
    };
    decoding.run()?;
    Ok(decoding.report)
}

struct Decoding<'a> {
    data: &'a [u8],
    out: &'a mut File,
    unpack: &'a Unpack<'a>,
    report: GzipReport,
    guesses: Guesses,
    /// Positions where members may begin.
    candidates: Vec<usize>,
    threads: usize,
    /// The first decoded bytes.
    head: Vec<u8>,
    buffer: Vec<u8>,
}

impl Decoding<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut ahead: Vec<Member> = Vec::new();
        let mut decoded_to = 0usize;
        let mut at = 0usize;
        while at < self.data.len() && !self.is_no_dump() {
            self.unpack.step(at as u64, self.data.len() as u64)?;
            let index = self.candidates.partition_point(|&c| c < at);
            if !is_member(&self.data[at..]) {
                if after_members(self.data, at, &mut self.report) {
                    break;
                }
                match self.candidates.get(index) {
                    Some(&next) => at = next,
                    None => break,
                }
                continue;
            }
            if self.candidates.len() > 1 && index >= decoded_to && self.guesses.left > 0 {
                let to = index + self.threads * BATCH_PER_THREAD;
                decoded_to = to.min(self.candidates.len());
                ahead = self.decode_ahead(index, decoded_to);
            }
            at = match ahead.iter().position(|member| member.at == at) {
                Some(found) => {
                    let member = ahead.swap_remove(found);
                    self.report.members += 1;
                    self.put(&member.bytes)?;
                    // It was a real member, so its cost does not count.
                    self.guesses.left += cost(&member);
                    member.next
                }
                None => self.decode_in_turn(at)?,
            };
        }
        Ok(())
    }

    /// True when the first bytes are not those of a dump, so that decoding the rest is useless.
    fn is_no_dump(&self) -> bool {
        let known = self.head.len().min(super::MAGIC.len());
        self.head[..known] != super::MAGIC[..known]
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.head.len() < super::MAGIC.len() {
            let wanted = super::MAGIC.len() - self.head.len();
            self.head
                .extend_from_slice(&bytes[..wanted.min(bytes.len())]);
        }
        self.report.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn decode_ahead(&mut self, from: usize, to: usize) -> Vec<Member> {
        let (data, threads) = (self.data, self.threads);
        let batch = &self.candidates[from..to];
        let control = self.unpack.control;
        let mut found = Vec::new();
        let mut spent = 0;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.min(batch.len()))
                .map(|t| {
                    scope.spawn(move || {
                        let mine = batch.iter().skip(t).step_by(threads);
                        let mine = mine.take_while(|_| control.check().is_ok());
                        mine.map(|&at| whole_member(data, at)).collect::<Vec<_>>()
                    })
                })
                .collect();
            for worker in workers {
                // A worker that panicked has no result; its members are decoded in turn.
                for (member, bytes) in worker.join().unwrap_or_default() {
                    spent += bytes;
                    found.extend(member);
                }
            }
        });
        self.guesses.spend(spent);
        found
    }

    fn decode_in_turn(&mut self, at: usize) -> io::Result<usize> {
        let data = self.data;
        let mut decoder = GzDecoder::new(&data[at..]);
        let mut buffer = std::mem::take(&mut self.buffer);
        self.report.members += 1;
        let next = loop {
            match decoder.read(&mut buffer) {
                Ok(0) => break data.len() - decoder.get_ref().len(),
                Ok(n) => {
                    self.put(&buffer[..n])?;
                    let place = data.len() - decoder.get_ref().len();
                    self.unpack.step(place as u64, data.len() as u64)?;
                    if self.is_no_dump() {
                        break data.len();
                    }
                }
                Err(error) => {
                    self.note_damage(at, &error);
                    // Another member may follow the damaged one, but only after its position.
                    let rest = data.len() - decoder.get_ref().len().min(data.len());
                    break self.next_member(rest.max(at + 18))?;
                }
            }
        };
        self.buffer = buffer;
        Ok(next)
    }

    fn note_damage(&mut self, at: usize, error: &io::Error) {
        let cut = error.kind() == io::ErrorKind::UnexpectedEof;
        self.report.diagnostics.push(Diagnostic::new(
            if cut {
                DamageKind::Truncated
            } else {
                DamageKind::Container
            },
            self.report.bytes,
            "gzip",
            "member",
            "a whole member",
            format!("{error} in the member at offset {at} of the compressed file"),
        ));
    }

    /// The next position from which a complete member can be decoded; the end when there is none, or when too many
    /// positions were tried.
    fn next_member(&mut self, from: usize) -> io::Result<usize> {
        let first = self.candidates.partition_point(|&c| c < from);
        for n in first..self.candidates.len() {
            let at = self.candidates[n];
            if self.guesses.left == 0 {
                self.report.diagnostics.push(Diagnostic::new(
                    DamageKind::Container,
                    self.report.bytes,
                    "gzip",
                    "member",
                    "",
                    format!("too many false members: nothing is read from offset {at} of the compressed file on"),
                ));
                break;
            }
            self.unpack.step(at as u64, self.data.len() as u64)?;
            let (member, spent) = whole_member(self.data, at);
            if member.is_some() {
                return Ok(at);
            }
            self.guesses.spend(spent);
        }
        Ok(self.data.len())
    }
}

/// Zero padding after the last member is usual; anything else is damage. True when no member can follow.
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

/// The cost of decoding a member, in bytes read and written.
fn cost(member: &Member) -> u64 {
    (member.next - member.at + member.bytes.len()) as u64
}

/// Decodes from a position where a member may begin; also returns the bytes read and written for it.
fn whole_member(data: &[u8], at: usize) -> (Option<Member>, u64) {
    let mut decoder = GzDecoder::new(&data[at..]);
    let mut bytes = Vec::new();
    let read = (&mut decoder).take(AHEAD_LIMIT + 1).read_to_end(&mut bytes);
    let next = data.len() - decoder.get_ref().len();
    let member = Member { at, bytes, next };
    let spent = cost(&member);
    let whole = read.is_ok_and(|read| read as u64 <= AHEAD_LIMIT);
    (whole.then_some(member), spent)
}
