//! Who refers to an object: made by one more pass over the dump on the first question, and kept
//! in a file of its own beside the index.

mod pass;

use crate::build::pairs::Grouped;
use crate::index::{Identity, IndexFile, IndexPlace, IndexWriter, Tag, in_spill_folder};
use crate::raw::{Budget, bytes_of};
use crate::{Control, Heap, HeapError, LayoutModel, ObjIdx};
use pass::{InboundPass, run};
use std::io::Write;
use std::path::Path;

/// Objects per block of the directory.
const BLOCK: u64 = 64;

impl Heap {
    /// The objects that refer to an object by a field, an element, or a stack, each once, by id.
    /// References of objects to their class are left out: those are
    /// [`objects_of`](Heap::objects_of).
    pub fn inbound(&self, object: ObjIdx) -> Result<Vec<ObjIdx>, HeapError> {
        self.inbound_with(object, &Control::quiet())
    }

    /// As [`inbound`](Self::inbound), with progress for the first call.
    pub fn inbound_with(
        &self,
        object: ObjIdx,
        control: &Control<'_>,
    ) -> Result<Vec<ObjIdx>, HeapError> {
        let file = match self.inbound.get() {
            Some(file) => file,
            None => {
                let file = self.open_inbound(control)?;
                self.inbound.get_or_init(|| file)
            }
        };
        let starts = file.array::<u64>(Tag::InboundStarts);
        let rows = file.bytes(Tag::InboundRows);
        let Some(start) = starts.get((object.0 / BLOCK) as usize) else {
            return Ok(Vec::new());
        };
        let mut at = *start as usize;
        for _ in 0..object.0 % BLOCK {
            let (bytes, next) = take(rows, at);
            at = next.saturating_add(bytes as usize);
        }
        let (bytes, mut at) = take(rows, at);
        let end = at.saturating_add(bytes as usize).min(rows.len());
        let mut out = Vec::new();
        let mut source = 0;
        while at < end {
            let (delta, next) = take(rows, at);
            source += delta;
            out.push(ObjIdx(source));
            at = next;
        }
        Ok(out)
    }

    fn open_inbound(&self, control: &Control<'_>) -> Result<IndexFile, HeapError> {
        // The references do not depend on sizes, but thread locals and some of classes do on the model:
        // one file each.
        let mat = u64::from(self.options.layout == LayoutModel::Mat);
        let place = self.identity.map(|identity| {
            let place = IndexPlace::of(&self.path, &self.options);
            (place.with_extension("inbound"), identity.with(mat))
        });
        if let Some((place, identity)) = &place
            && let Some(file) = place.find(*identity)
            && [Tag::InboundStarts, Tag::InboundRows]
                .iter()
                .all(|tag| file.verified(*tag).is_some())
        {
            return Ok(file);
        }
        in_spill_folder(&self.path, &self.options, |folder| {
            self.write_inbound(folder, place.as_ref(), control)
        })
    }

    /// Finds all referrers and writes them to a file, with temporary files in a folder.
    fn write_inbound(
        &self,
        folder: &Path,
        place: Option<&(IndexPlace, Identity)>,
        control: &Control<'_>,
    ) -> Result<IndexFile, HeapError> {
        let io = || HeapError::io("referrers");
        // The index was built: with less than that needs, all arrays are files.
        let arrays = self.options.array_memory(0).unwrap_or(Some(0));
        let budget = Budget::new(arrays, folder, &self.options);
        let mut passes = run(self, &budget, control)?;
        let place = place.filter(|_| self.is_in_place());
        let mut index = IndexWriter::create(place, &budget).map_err(io())?;
        let mut starts: Vec<u64> = Vec::new();
        index
            .section(Tag::InboundRows, |out| {
                write_rows(self.len(), &mut passes, &mut starts, out)
            })
            .map_err(io())?;
        index
            .section(Tag::InboundStarts, |out| out.write_all(bytes_of(&starts)))
            .map_err(io())?;
        index.finish().map_err(io())
    }
}

/// One row per object: length in bytes, then the sources ascending as differences.
fn write_rows(
    objects: u64,
    passes: &mut [InboundPass<'_>],
    starts: &mut Vec<u64>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut grouped: Vec<Grouped<u64>> = passes.iter().map(|_| Grouped::default()).collect();
    let mut bucket = u64::MAX;
    let mut at = 0u64;
    let (mut sources, mut row, mut head) = (Vec::<u64>::new(), Vec::new(), Vec::new());
    for object in 0..objects {
        if object >> 16 != bucket {
            bucket = object >> 16;
            for (pass, grouped) in passes.iter_mut().zip(&mut grouped) {
                pass.pairs.take(bucket as usize, grouped)?;
            }
        }
        if object % BLOCK == 0 {
            starts.push(at);
        }
        sources.clear();
        grouped
            .iter()
            .for_each(|g| sources.extend_from_slice(g.of(object)));
        sources.sort_unstable();
        sources.dedup();
        row.clear();
        let mut before = 0;
        for source in &sources {
            push(&mut row, source - before);
            before = *source;
        }
        head.clear();
        push(&mut head, row.len() as u64);
        out.write_all(&head)?;
        out.write_all(&row)?;
        at += (head.len() + row.len()) as u64;
    }
    Ok(())
}

fn push(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Reads a varint; 0 behind the end.
fn take(bytes: &[u8], mut at: usize) -> (u64, usize) {
    let (mut n, mut shift) = (0u64, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        n |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 || shift >= 63 {
            break;
        }
        shift += 7;
    }
    (n, at)
}
