//! The sections of the index that describe objects one by one.

use super::bitmap::Bitmap;
use super::cell::Cell;
use super::classes::ClassTable;
use super::graph::Job;
use crate::HeapError;
use crate::idmap::IdMap;
use crate::index::{IndexFile, IndexWriter, Tag};
use crate::packed::{BitWriter, Column, ColumnBuilder, Packed, width_for};
use crate::raw::bytes_of;
use hprof::{ClassDump, FileOffset, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use rustc_hash::FxHashMap;

/// Width of a packed class number.
pub(crate) fn class_width(classes: usize) -> u32 {
    width_for(classes as u64)
}

/// The set of objects that are classes.
pub(crate) fn class_object_set(table: &ClassTable, map: &IdMap<'_>) -> Bitmap {
    let mut set = Bitmap::new(map.len());
    for class in table.classes.iter().filter(|c| c.dumped) {
        if let Some(object) = map.rank(class.id.0) {
            set.insert(object);
        }
    }
    set
}

/// Writes classes, shallow sizes and file positions.
pub(crate) fn objects<C: Cell>(
    index: &mut IndexWriter,
    job: &Job<'_>,
    class_of: &[u32],
    arrays: Vec<(C, u64)>,
    anchors: &[(u64, u64)],
) -> Result<(), HeapError> {
    let io = || HeapError::io("index");
    let width = class_width(job.table.classes.len());
    let known = job.table.classes.len() as u32;
    index
        .section(Tag::Classes, |out| {
            let mut bits = BitWriter::new(out);
            for class in class_of {
                // A record that was cut between the passes has no class; 0 is as good as any.
                bits.push(u64::from(if *class < known { *class } else { 0 }), width)?;
            }
            bits.finish()
        })
        .map_err(io())?;
    let mut class_sizes: Vec<(u64, u64)> = job
        .table
        .classes
        .iter()
        .zip(&job.table.class_object_size)
        .filter(|(c, _)| c.dumped)
        .filter_map(|(c, size)| Some((job.map.rank(c.id.0)?, *size)))
        .collect();
    class_sizes.sort_unstable();
    let unit = job.objects.rules.alignment;
    let mut shallow = ColumnBuilder::default();
    let mut arrays = arrays.into_iter().peekable();
    let mut classes = class_sizes.into_iter().peekable();
    for (object, class) in class_of.iter().enumerate() {
        let object = object as u64;
        let array = arrays.next_if(|a| a.0.get() == object);
        let class_object = classes.next_if(|c| c.0 == object);
        let size = match (array, class_object) {
            (_, Some((_, size))) | (Some((_, size)), _) => size,
            _ => job
                .table
                .classes
                .get(*class as usize)
                .map_or(0, |c| c.instance_size.0),
        };
        shallow.push(size.div_ceil(unit));
    }
    index
        .section(Tag::Shallow, |out| shallow.write(out))
        .map_err(io())?;
    let (objects, offsets): (Vec<u64>, Vec<u64>) = anchors.iter().copied().unzip();
    index
        .section(Tag::AnchorObjects, |out| out.write_all(bytes_of(&objects)))
        .map_err(io())?;
    index
        .section(Tag::AnchorOffsets, |out| out.write_all(bytes_of(&offsets)))
        .map_err(io())
}

/// Classes and shallow sizes, read back from the index.
pub(crate) struct Sizes<'a> {
    classes: Packed<'a>,
    shallow: Option<Column<'a>>,
    unit: u64,
    pub(crate) width: u32,
}

impl<'a> Sizes<'a> {
    pub(crate) fn view(
        index: &'a IndexFile,
        objects: u64,
        table: &ClassTable,
        unit: u64,
    ) -> Sizes<'a> {
        let width = class_width(table.classes.len());
        Sizes {
            classes: Packed::new(index.bytes(Tag::Classes), width, objects),
            shallow: Column::new(index.bytes(Tag::Shallow)),
            unit,
            width,
        }
    }

    #[inline]
    pub(crate) fn class(&self, object: u64) -> u32 {
        self.classes.get(object) as u32
    }

    #[inline]
    pub(crate) fn shallow(&self, object: u64) -> u64 {
        self.shallow.map_or(0, |s| s.get(object)) * self.unit
    }
}

/// Finds the first record of every id, for dumps that repeat ids.
#[derive(Default)]
pub(crate) struct FirstRecords {
    first: FxHashMap<u64, u64>,
    again: Vec<u64>,
}

impl FirstRecords {
    fn see(&mut self, at: FileOffset, id: u64) {
        match self.first.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => self.again.push(id),
            std::collections::hash_map::Entry::Vacant(v) => {
                v.insert(at.0);
            }
        }
    }

    /// The ids that occur more than once, with the offset of their first record.
    pub(crate) fn repeated(self) -> FxHashMap<u64, u64> {
        self.again
            .iter()
            .filter_map(|id| Some((*id, *self.first.get(id)?)))
            .collect()
    }
}

impl HeapVisitor for FirstRecords {
    fn class(&mut self, at: FileOffset, c: &ClassDump<'_>) {
        self.see(at, c.id.0);
    }
    fn instance(&mut self, at: FileOffset, i: Instance<'_>) {
        self.see(at, i.id.0);
    }
    fn object_array(&mut self, at: FileOffset, a: ObjectArray<'_>) {
        self.see(at, a.id.0);
    }
    fn primitive_array(&mut self, at: FileOffset, a: PrimitiveArray<'_>) {
        self.see(at, a.id.0);
    }
}
