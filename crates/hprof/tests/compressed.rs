//! Dumps that are packed with something else than gzip and zip.

use hprof::HeaderError;
use hprof::source::{Packing, Source, Unpack};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use testkit::dump::{Heap, IdSize};

/// A format: its name, and what packs bytes as one stream.
type Packer = (&'static str, fn(&[u8]) -> Vec<u8>);

const PACKERS: [Packer; 3] = [("bzip2", bzip2), ("xz", xz), ("zstd", zstd)];

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).expect("a packer");
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn dump() -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    heap.java_lang_object();
    for i in 0..2_000_u32 {
        heap.string_id(&format!("some text {}", i.wrapping_mul(2_654_435_761)));
    }
    heap.bytes()
}

#[test]
fn streams_are_decoded_one_behind_the_other() {
    let dump = dump();
    let (begin, end) = dump.split_at(dump.len() / 3);
    for (name, pack) in PACKERS {
        for packed in [pack(&dump), [pack(begin), pack(end)].concat()] {
            let source = Source::from_bytes(packed.clone()).expect("a dump");
            assert_eq!(source.bytes(), dump, "{name}");
            assert!(source.diagnostics().is_empty(), "{name}");
            assert_eq!(source.packed_len(), packed.len() as u64, "{name}");
            let format = name.into();
            assert_eq!(*source.packing(), Packing::Compressed { format }, "{name}");
            let mut stream = packed.as_slice();
            let source = Source::from_reader(&mut stream, &Unpack::default()).expect("a dump");
            assert_eq!(source.bytes(), dump, "{name} as a stream");
        }
    }
}

#[test]
fn frames_that_are_to_be_skipped_are_skipped() {
    let dump = dump();
    let skipped = [b"\x50\x2a\x4d\x18\x03\0\0\0".as_slice(), b"abc"].concat();
    let packed = [zstd(&dump), skipped.clone(), skipped].concat();
    let source = Source::from_bytes(packed).expect("a dump");
    assert_eq!(source.bytes(), dump);
    assert!(source.diagnostics().is_empty());
}

#[test]
fn a_damaged_stream_gives_its_beginning_and_a_finding() {
    let dump = dump();
    for (name, pack) in PACKERS {
        let whole = pack(&dump);
        // Decoders that check a whole block give nothing of a damaged one, so the first stream is whole.
        let (begin, _) = dump.split_at(dump.len() / 3);
        let cut = [&pack(begin), &whole[..whole.len() / 2]].concat();
        let source = Source::from_bytes(cut).expect("a part of a dump");
        assert!(source.bytes().starts_with(begin), "{name}");
        assert_eq!(source.diagnostics().len(), 1, "{name}");
    }
}

#[test]
fn content_that_is_no_dump_is_not_unpacked() {
    for (name, pack) in PACKERS {
        let bomb = pack(&vec![0; 16 << 20]);
        let mut stream = bomb.as_slice();
        let source = Source::from_reader(&mut stream, &Unpack::default()).expect("some bytes");
        assert!(source.bytes().len() <= 1 << 18, "{name}");
        let source = Source::from_bytes(bomb).expect("some bytes");
        assert!(source.bytes().len() <= 1 << 18, "{name}");
        let error = hprof::Header::parse(source.bytes()).expect_err("no dump");
        assert!(matches!(error, HeaderError::Magic { .. }), "{name}");
    }
}

#[test]
fn a_stream_that_asks_for_much_memory_is_refused() {
    // A frame with a window of 2 GiB.
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x00];
    let source = Source::from_bytes(header.to_vec()).expect("nothing");
    assert_eq!(source.bytes(), b"");
    assert_eq!(source.diagnostics().len(), 1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

/// A tar archive of files with these names.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        let added = archive.append_data(&mut header, name, *bytes);
        added.expect("an archive");
    }
    archive.into_inner().expect("an archive")
}

#[test]
fn the_dump_of_a_tar_archive_is_read_whatever_packs_it() {
    let dump = dump();
    let long = format!("{}/heap.hprof", "a".repeat(120));
    let plain = tar(&[
        ("read.me", b"JAVA PROFILES are in this archive"),
        ("empty", b""),
        (&long, &dump),
        ("other.hprof", &dump[..100]),
    ]);
    let inner = tar(&[("heap.hprof.gz", &gzip(&dump))]);
    let plainly = |bytes: &[u8]| bytes.to_vec();
    let packers: [Packer; 5] = [
        ("plain", plainly),
        ("gzip", gzip),
        ("bzip2", bzip2),
        ("xz", xz),
        ("zstd", zstd),
    ];
    for (archive, name) in [(&plain, long.as_str()), (&inner, "heap.hprof.gz")] {
        for (packer, pack) in packers {
            let packed = pack(archive);
            let whole = Source::from_bytes(packed.clone()).expect("a dump");
            let stream = Source::from_reader(&mut packed.as_slice(), &Unpack::default());
            for source in [whole, stream.expect("a dump")] {
                assert!(source.bytes() == dump, "{packer}");
                let entry = name.to_owned();
                assert_eq!(*source.packing(), Packing::Tar { entry });
                assert_eq!(source.packed_len(), packed.len() as u64);
                // The first archive has another dump behind it, which is named.
                let notes = format!("{:?}", source.diagnostics());
                let is_named = notes.contains("; FILE#2 is other.hprof");
                assert_eq!(is_named, name == long, "{notes}");
                let several = notes.contains("the archive has more than one dump; this is #1, ");
                assert_eq!(several, name == long, "{notes}");
                assert_eq!(source.is_one_of_several(), name == long);
                assert_eq!(source.diagnostics().len(), u64::from(name == long));
            }
        }
    }
}

/// The flag is in the header before the entry and in the list of entries.
#[test]
fn an_encrypted_zip_archive_is_reported_as_such() {
    let dump = dump();
    let mut packed = testkit::dump::zip(&dump, "heap.hprof");
    let list = packed.windows(4).position(|four| four == b"PK\x01\x02");
    packed[6] |= 1;
    packed[list.expect("a list of entries") + 8] |= 1;
    let error = Source::from_bytes(packed).expect_err("no password");
    let text = error.to_string();
    assert!(
        text.contains("heap.hprof in the zip archive is encrypted"),
        "{text}"
    );
}

#[test]
fn other_dumps_of_a_zip_archive_are_named() {
    let dump = dump();
    let packed = testkit::dump::zip_of(&[
        ("read.me", b"JAVA PROFILES are in this archive"),
        ("first.hprof", &dump),
        ("notes", b"none"),
        ("second.hprof", &dump),
        ("third.hprof.gz", &gzip(&dump)),
    ]);
    let source = Source::from_bytes(packed).expect("a dump");
    assert!(source.bytes() == dump);
    let entry = "first.hprof".to_owned();
    assert_eq!(*source.packing(), Packing::Zip { entry });
    let notes = format!("{:?}", source.diagnostics());
    let used = "the archive has 3 dumps; this is #1, first.hprof; FILE#2 is second.hprof, FILE#3 is third.hprof.gz";
    assert!(notes.contains(used), "{notes}");
    let alone = testkit::dump::zip_of(&[("first.hprof", &dump), ("notes", b"none")]);
    let source = Source::from_bytes(alone).expect("a dump");
    assert!(source.diagnostics().is_empty());
}

#[test]
fn the_wanted_dump_of_an_archive_is_read() {
    let dump = dump();
    let entries: [(&str, &[u8]); 4] = [
        ("notes", b"none"),
        ("first.hprof", &dump[..5000]),
        ("second.hprof", &dump[..4000]),
        ("third.hprof.gz", &gzip(&dump)),
    ];
    let one: [(&str, &[u8]); 1] = [("alone.hprof", &dump)];
    let read = |packed: &[u8], wanted| {
        let unpack = Unpack {
            dump: wanted,
            ..Unpack::default()
        };
        Source::from_reader(&mut &*packed, &unpack)
    };
    for (several, alone) in [
        (tar(&entries), tar(&one)),
        (gzip(&tar(&entries)), gzip(&tar(&one))),
        (testkit::dump::zip_of(&entries), testkit::dump::zip_of(&one)),
    ] {
        for (wanted, len) in [(0, 5000), (1, 5000), (2, 4000), (3, dump.len())] {
            let source = read(&several, wanted).expect("a dump");
            assert!(source.bytes() == &dump[..len], "{wanted}");
            assert!(source.is_one_of_several());
        }
        let error = read(&several, 4).expect_err("no dump").to_string();
        assert_eq!(error, "the archive has 3 dumps, so there is no #4");
        // The number can be that of a dump in the only file.
        let source = read(&alone, 2).expect("a dump");
        assert!(source.bytes() == dump && !source.is_one_of_several());
        let cut = &several[..several.len() / 2];
        if let Ok(source) = read(cut, 3) {
            assert!(source.diagnostics().any_damage());
        }
    }
}

#[test]
fn tar_archives_that_are_damaged_or_have_no_dump_are_answered() {
    let dump = dump();
    let cut = tar(&[("heap.hprof", &dump)])[..512 + dump.len() / 2].to_vec();
    for packed in [cut.clone(), gzip(&cut)] {
        let source = Source::from_bytes(packed).expect("a part of a dump");
        assert!(source.bytes() == &dump[..dump.len() / 2]);
        assert_eq!(source.diagnostics().len(), 1);
        let bits = gzip(&tar(&[("heap.hprof", &dump)]));
        let source = Source::from_bytes(bits[..bits.len() / 2].to_vec()).expect("a part");
        assert!(dump.starts_with(source.bytes()));
        assert_eq!(source.diagnostics().len(), 1);
    }
    let zeros = vec![0; 16 << 20];
    let none = gzip(&tar(&[("zeros", &zeros), ("words", b"no dump")]));
    let error = Source::from_bytes(none).expect_err("no dump").to_string();
    assert_eq!(error, "the tar archive has no HPROF dump in it (2 entries)");
    let mut broken = tar(&[("words", b"no dump"), ("heap.hprof", &dump)]);
    broken[1024 + 150] ^= 0x55;
    let error = Source::from_bytes(broken)
        .expect_err("no archive")
        .to_string();
    assert!(
        error.starts_with("the tar archive cannot be read: "),
        "{error}"
    );
}

/// A header of this kind before a content, with names and sizes as `tar` writes them.
fn header(kind: u8, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[test]
fn properties_of_a_tar_archive_are_bounded() {
    let dump = dump();
    // The size of the file is among the properties of its header, as pax writes those above 8 GiB.
    let size = format!("{}\n", dump.len());
    let properties = format!("{} size={size}", size.len() + 9);
    let mut text = properties.clone().into_bytes();
    text.resize(512, 0);
    let pax = [
        header(b'x', properties.len() as u64),
        text,
        header(b'0', 0),
        dump.clone(),
    ];
    let source = Source::from_bytes(pax.concat()).expect("a dump");
    assert!(source.bytes() == dump);
    assert!(source.diagnostics().is_empty());
    for kind in *b"LKxg" {
        let mut bomb = header(kind, 1 << 40);
        bomb.resize(64 << 20, b'a');
        let error = Source::from_bytes(gzip(&bomb)).expect_err("no dump");
        let printed = error.to_string();
        assert!(
            printed.contains("1099511627776 bytes of properties"),
            "{printed}"
        );
    }
}
