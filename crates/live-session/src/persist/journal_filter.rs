//! Selects the part of the agent's stream that a later server needs: the records that define names and numbers, and the
//! changed rows of each table. The result is a stream of the same format, so one reader reads both.

use super::threads::Threads;
use hprof::RecordTag;
use private_records::{PrivateTag, Tag};
use std::collections::BTreeMap;

/// Bytes of tag, time and length.
const HEAD: usize = 9;
/// Bytes of a row of SITE VARIANCES.
const VARIANCES: usize = 16;

/// The layout of a table's record.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes before the first row.
    begin: usize,
    /// Bytes of a row.
    row: usize,
    /// The offset of the class in a row; the stack follows it.
    class: usize,
}

fn layout(tag: Tag) -> Option<Layout> {
    let (begin, row, class) = match tag {
        Tag::Format(RecordTag::AllocSites) => (34, 25, 1),
        Tag::Private(PrivateTag::WideAllocSites) => (0, 40, 0),
        Tag::Private(PrivateTag::NativeSites) => (8, 40, 0),
        _ => return None,
    };
    Some(Layout { begin, row, class })
}

/// A received table with the variances of its rows, both as records.
#[derive(Debug)]
struct Table {
    record: Vec<u8>,
    variances: Vec<u8>,
}

/// Data that was received and not taken yet.
#[derive(Debug, Default)]
pub struct Kept {
    names: Vec<u8>,
    threads: Threads,
    /// Bytes of an id.
    ids: usize,
    /// The last SITE VARIANCES, which belong to the next table.
    variances: Vec<u8>,
    tables: BTreeMap<u8, Table>,
}

/// The class and the stack of a row, by the agent's numbers.
pub type Row = (u32, u32);

impl Kept {
    /// The header of a stream.
    pub fn header(&mut self, bytes: &[u8]) {
        self.names.extend_from_slice(bytes);
        let text = bytes.iter().position(|byte| *byte == 0);
        let ids = text.and_then(|end| bytes.get(end + 4)).copied();
        self.ids = ids.map_or(0, usize::from);
    }

    /// Adds any complete record.
    pub fn record(&mut self, tag: Tag, record: Vec<u8>) {
        match tag {
            Tag::Format(definition) if definition.is_definition() => self.pass(tag, &record),
            // Each record has only the samples since the previous one, so all of them are needed.
            Tag::Format(RecordTag::CpuSamples)
            | Tag::Private(PrivateTag::ClassPlaces | PrivateTag::ClassOptions) => {
                self.pass(tag, &record);
            }
            Tag::Private(PrivateTag::SiteVariances) => self.variances = record,
            Tag::Format(RecordTag::AllocSites) => {
                self.keep(tag, record, self.variances.clone());
            }
            Tag::Private(PrivateTag::WideAllocSites) => {
                let variances = std::mem::take(&mut self.variances);
                self.keep(tag, record, variances);
            }
            Tag::Private(PrivateTag::NativeSites | PrivateTag::JniReferences) => {
                self.keep(tag, record, Vec::new());
            }
            _ => {}
        }
    }

    fn pass(&mut self, tag: Tag, record: &[u8]) {
        self.threads.record(tag, record, self.ids, &mut self.names);
    }

    fn keep(&mut self, tag: Tag, record: Vec<u8>, variances: Vec<u8>) {
        self.tables.insert(tag.byte(), Table { record, variances });
    }

    /// Threads that still run are kept from now on.
    pub fn settle_threads(&mut self) {
        self.threads.settle(&mut self.names);
    }

    /// Takes the definitions of names that were received.
    pub fn names(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.names)
    }

    /// Appends the received table with this tag, if any, with the rows that have changed.
    pub fn table(&mut self, tag: Tag, out: &mut Vec<u8>, has_changed: impl Fn(Row) -> bool) {
        let (Some(table), Some(layout)) = (self.tables.remove(&tag.byte()), layout(tag)) else {
            return;
        };
        let Some((head, rows)) = table.record[HEAD..].split_at_checked(layout.begin) else {
            return;
        };
        let variances = table.variances.get(HEAD..).unwrap_or_default();
        let (mut kept, mut of_kept) = (head.to_vec(), Vec::new());
        let mut count = 0u32;
        for (n, row) in rows.chunks_exact(layout.row).enumerate() {
            let word = |at: usize| {
                let at = layout.class + at;
                u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
            };
            if has_changed((word(0), word(4))) {
                kept.extend_from_slice(row);
                count += 1;
                let of_row = variances.get(n * VARIANCES..(n + 1) * VARIANCES);
                of_kept.extend_from_slice(of_row.unwrap_or_default());
            }
        }
        if tag == Tag::Format(RecordTag::AllocSites) {
            kept[layout.begin - 4..layout.begin].copy_from_slice(&count.to_be_bytes());
        }
        if !table.variances.is_empty() {
            put(out, &table.variances, &of_kept);
        }
        put(out, &table.record, &kept);
    }

    /// Appends the received table with this tag, if any, unchanged.
    pub fn whole(&mut self, tag: PrivateTag, out: &mut Vec<u8>) {
        if let Some(table) = self.tables.remove(&(tag as u8)) {
            out.extend(table.record);
        }
    }

    /// Discards the table with this tag.
    pub fn forget(&mut self, tag: PrivateTag) {
        self.tables.remove(&(tag as u8));
    }
}

/// Appends a copy of a record with another body.
fn put(out: &mut Vec<u8>, record: &[u8], body: &[u8]) {
    out.extend_from_slice(&record[..HEAD - 4]);
    out.extend((body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITES: Tag = Tag::Format(RecordTag::AllocSites);
    const WIDE_SITES: Tag = Tag::Private(PrivateTag::WideAllocSites);
    const VARIANCES: Tag = Tag::Private(PrivateTag::SiteVariances);
    const NAME: Tag = Tag::Format(RecordTag::Utf8);

    fn record(tag: Tag, body: &[u8]) -> Vec<u8> {
        let mut out = vec![tag.byte(), 0, 0, 0, 7];
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    }

    fn sites(rows: &[(u8, u8)]) -> Vec<u8> {
        let mut body = vec![0; 34];
        body[33] = rows.len() as u8;
        for (class, trace) in rows {
            body.extend([0, 0, 0, 0, *class, 0, 0, 0, *trace]);
            body.extend([*class; 16]);
        }
        record(SITES, &body)
    }

    #[test]
    fn a_table_keeps_its_changed_rows_with_their_variances() {
        let mut kept = Kept::default();
        let name = record(NAME, b"\0\0\0\x01Thing");
        kept.record(NAME, name.clone());
        let variances: Vec<u8> = (0..3).flat_map(|n| [n; 16]).collect();
        let variances = record(VARIANCES, &variances);
        kept.record(VARIANCES, variances);
        kept.record(SITES, sites(&[(1, 1), (2, 1), (2, 2)]));
        // These variances belong to the next table, not to this one.
        kept.record(VARIANCES, record(VARIANCES, &[]));
        assert_eq!(kept.names(), name);
        let mut out = Vec::new();
        kept.table(SITES, &mut out, |(class, _)| class == 2);
        let expected = [
            record(VARIANCES, &[[1; 16], [2; 16]].concat()),
            sites(&[(2, 1), (2, 2)]),
        ];
        assert_eq!(out, expected.concat());
        // The table was taken; an empty one records that there was a snapshot.
        let mut out = Vec::new();
        kept.table(SITES, &mut out, |_| true);
        assert!(out.is_empty() && kept.names().is_empty());
        kept.record(SITES, sites(&[(1, 1)]));
        kept.variances.clear();
        kept.tables
            .values_mut()
            .for_each(|table| table.variances.clear());
        kept.table(SITES, &mut out, |_| false);
        assert_eq!(out, sites(&[]));
    }

    #[test]
    fn a_table_that_is_cut_gives_no_row() {
        let mut kept = Kept::default();
        kept.record(SITES, record(SITES, &[1; 20]));
        kept.record(WIDE_SITES, record(WIDE_SITES, &[1; 50]));
        let mut out = Vec::new();
        kept.table(SITES, &mut out, |_| true);
        assert!(out.is_empty());
        kept.table(WIDE_SITES, &mut out, |_| true);
        assert_eq!(out, record(WIDE_SITES, &[1; 40]));
    }
}
