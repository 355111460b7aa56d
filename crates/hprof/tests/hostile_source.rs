//! Files and streams that are made to cost much: the work is counted, not timed.

use hprof::source::{Control, Packing, Progress, Source, SourceError, Unpack};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use testkit::dump::{Heap, IdSize, gzip};

/// The same bytes without end; counts those that were taken.
struct Endless {
    bytes: Vec<u8>,
    taken: usize,
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        for byte in out.iter_mut() {
            *byte = self.bytes[self.taken % self.bytes.len()];
            self.taken += 1;
        }
        Ok(out.len())
    }
}

fn small_dump() -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    heap.java_lang_object();
    heap.bytes()
}

#[test]
fn endless_input_that_is_no_dump_is_not_copied() {
    for bytes in [vec![0], b"y\n".to_vec(), gzip(&vec![0; 1 << 20])] {
        let mut stream = Endless { bytes, taken: 0 };
        let source = Source::from_reader(&mut stream, &Unpack::default()).expect("some bytes");
        assert!(hprof::Header::parse(source.bytes()).is_err());
        assert!(stream.taken <= 1 << 14, "{} bytes were read", stream.taken);
    }
}

#[test]
fn packed_content_that_is_no_dump_is_not_unpacked() {
    let bomb = gzip(&vec![0; 64 << 20]);
    let source = Source::from_bytes(bomb).expect("some bytes");
    assert!(
        source.bytes().len() <= 1 << 18,
        "{} bytes",
        source.bytes().len()
    );
}

#[test]
fn unpacking_ends_soon_after_it_is_cancelled() {
    let cancel = AtomicBool::new(false);
    let reports = AtomicU64::new(0);
    let progress = |_: Progress| {
        if reports.fetch_add(1, Ordering::Relaxed) == 3 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let unpack = Unpack {
        control: Control {
            progress: &progress,
            cancel: &cancel,
        },
        ..Unpack::default()
    };
    let mut stream = Endless {
        bytes: small_dump(),
        taken: 0,
    };
    let stopped = Source::from_reader(&mut stream, &unpack);
    assert!(
        matches!(stopped, Err(SourceError::Cancelled)),
        "{stopped:?}"
    );
    assert!(stream.taken < 2 << 20, "{} bytes were read", stream.taken);
    cancel.store(false, Ordering::Relaxed);
    reports.store(0, Ordering::Relaxed);
    let mut large = small_dump();
    large.resize(32 << 20, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.gz");
    std::fs::write(&path, gzip(&large)).expect("a file");
    let stopped = Source::open(&path, &unpack);
    assert!(
        matches!(stopped, Err(SourceError::Cancelled)),
        "{stopped:?}"
    );
    assert!(reports.load(Ordering::Relaxed) <= 4);
}

/// A damaged member, and behind it the head of a member and of a stored block of 64 KiB every 15 bytes.
fn false_members(count: usize) -> Vec<u8> {
    let mut bytes = gzip(&small_dump());
    let cut = bytes.len() / 2;
    bytes.truncate(cut);
    bytes.extend([0xff; 64]);
    for _ in 0..count {
        bytes.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        bytes.extend([0, 0xff, 0xff, 0, 0]);
    }
    bytes
}

#[test]
fn false_members_are_not_each_decoded_to_the_end() {
    let bytes = false_members(100_000);
    let looks = AtomicU64::new(0);
    let progress = |_: Progress| {
        looks.fetch_add(1, Ordering::Relaxed);
    };
    let cancel = AtomicBool::new(false);
    let unpack = Unpack {
        control: Control {
            progress: &progress,
            cancel: &cancel,
        },
        threads: 2,
        ..Unpack::default()
    };
    let source = Source::from_reader(&mut bytes.as_slice(), &unpack).expect("the first part");
    assert!(matches!(source.packing(), Packing::Gzip { .. }));
    assert!(source.diagnostics().any_damage());
    // Each look decodes 64 KiB at least: all of them would be 6 GiB.
    let looks = looks.load(Ordering::Relaxed);
    assert!(looks < 2_000, "{looks} places were looked at");
}

#[test]
fn a_whole_member_behind_a_damaged_one_is_still_found() {
    let mut bytes = false_members(100);
    let good = small_dump();
    bytes.extend([0; 70_000]);
    bytes.extend(gzip(&good));
    let source = Source::from_reader(&mut bytes.as_slice(), &Unpack::default()).expect("opened");
    assert!(source.bytes().ends_with(&good));
}
