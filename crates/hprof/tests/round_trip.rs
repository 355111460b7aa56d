//! Reading and writing again gives the same bytes, for every record of every dump at hand.

use hprof::source::{Source, Unpack};
use hprof::{Header, RecordTag, Writer, map_file, read_sub_record};

/// Decodes and encodes every record and sub-record.
fn rewritten(data: &[u8]) -> Vec<u8> {
    let header = Header::parse(data).expect("a header");
    let ids = header.id_size;
    let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
    let encoder = Writer::new(Vec::new(), &header).expect("memory");
    let map = map_file(data, |raw| {
        let mut out = Writer::new(Vec::new(), &header).expect("memory");
        match raw.decode(ids) {
            Some(record) => out.record(raw.time_us, &record).expect("memory"),
            None => out.raw(raw).expect("memory"),
        }
        records.push((raw.at.0, out.into_inner().split_off(header.len as usize)));
    })
    .expect("a dump");
    for segment in &map.segments {
        let mut body = Vec::new();
        let mut at = segment.body;
        while at < segment.end {
            let (record, next) = read_sub_record(data, ids, at, segment.end).expect("undamaged");
            encoder.encode_sub_record(&record, &mut body);
            at = next;
        }
        let mut out = Writer::new(Vec::new(), &header).expect("memory");
        let tag = RecordTag::from_u8(data[segment.at.0 as usize]).expect("a heap tag");
        let time = &data[segment.at.0 as usize + 1..][..4];
        let time = u32::from_be_bytes(time.try_into().expect("four bytes"));
        out.heap(tag, time, &body).expect("memory");
        records.push((
            segment.at.0,
            out.into_inner().split_off(header.len as usize),
        ));
    }
    records.sort();
    let mut all = header.to_bytes();
    records.into_iter().for_each(|(_, bytes)| all.extend(bytes));
    all
}

#[test]
fn every_undamaged_dump_of_the_corpus_is_written_back_byte_for_byte() {
    let Some(dumps) = testkit::corpus::corpus() else {
        return testkit::skip(
            "round trip of the corpus",
            testkit::Need::Shared,
            "no ../shared/corpus",
        );
    };
    let mut checked = 0;
    for dump in dumps {
        if dump.path.is_dir() {
            continue;
        }
        let source = Source::open(&dump.path, &Unpack::default()).expect("the file can be read");
        let data = source.bytes();
        let Ok(map) = map_file(data, |_| {}) else {
            continue;
        };
        if map.diagnostics.any_damage() {
            continue;
        }
        assert!(rewritten(data) == data, "{} changed", dump.name);
        checked += 1;
    }
    assert!(checked > 30, "only {checked} dumps were there");
}

#[test]
fn record_and_root_counts_of_the_corpus_are_as_expected() {
    let Some(dumps) = testkit::corpus::corpus() else {
        return testkit::skip(
            "record counts of the corpus",
            testkit::Need::Shared,
            "no ../shared/corpus",
        );
    };
    for dump in dumps {
        let Some(expected) = &dump.expected else {
            continue;
        };
        let source = Source::open(&dump.path, &Unpack::default()).expect("the file can be read");
        let map = map_file(source.bytes(), |_| {}).expect("a dump");
        assert_eq!(map.header.format, expected.format, "{}", dump.name);
        assert_eq!(
            map.header.timestamp_ms, expected.timestamp_ms,
            "{}",
            dump.name
        );
        let mut records: Vec<(String, u64)> = map
            .records
            .iter()
            .map(|(tag, n)| {
                (
                    RecordTag::from_u8(*tag)
                        .map_or(format!("0x{tag:02x}"), |t| t.name().to_owned()),
                    *n,
                )
            })
            .collect();
        records.sort();
        let want: Vec<(String, u64)> = expected.records.clone().into_iter().collect();
        assert_eq!(records, want, "{}", dump.name);
    }
}
