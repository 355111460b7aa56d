//! The sections of the index that describe objects one by one.

use super::classes::ClassTable;
use super::facts::{LARGE, ObjectFacts};
use super::job::Job;
use crate::HeapError;
use crate::bits::Bits;
use crate::idmap::IdMap;
use crate::index::{IndexFile, IndexWriter, Tag};
use crate::packed::{BitWriter, Column, ColumnBuilder, Packed, width_for};
use crate::raw::bytes_of;

/// Width of a packed class number.
pub(crate) fn class_width(classes: usize) -> u32 {
    width_for(classes as u64)
}

/// The set of objects that are classes.
pub(crate) fn class_object_set(table: &ClassTable, map: &IdMap<'_>) -> Bits {
    let mut set = Bits::new(map.len());
    for class in table.classes.iter().filter(|c| c.dumped) {
        if let Some(object) = map.rank(class.id.0) {
            set.insert(object);
        }
    }
    set
}

/// What the sections of all objects add up to.
pub(crate) struct Written {
    /// The size of all objects in units of the alignment.
    pub(crate) units: u64,
    /// The number of objects of each class.
    pub(crate) of_class: Vec<u64>,
}

/// Writes classes, shallow sizes and file positions.
pub(crate) fn objects(
    index: &mut IndexWriter,
    job: &Job<'_>,
    facts: ObjectFacts<'_>,
) -> Result<Written, HeapError> {
    let io = || HeapError::io("index");
    let classes = job.table.classes.len();
    let mut of_class = vec![0; classes];
    index
        .section(Tag::Classes, |out| {
            let mut bits = BitWriter::new(out);
            facts.each(|_, class, _| {
                // An object whose class was lost between the passes gets the first one.
                let class = if class < classes as u32 { class } else { 0 };
                if let Some(count) = of_class.get_mut(class as usize) {
                    *count += 1;
                }
                bits.push(u64::from(class), class_width(classes))
            })?;
            bits.finish()
        })
        .map_err(io())?;
    let (shallow, units) = shallow_sizes(job, &facts).map_err(io())?;
    index
        .section(Tag::Shallow, |out| shallow.write(out))
        .map_err(io())?;
    if facts.has_traces() {
        let mut traces = ColumnBuilder::new(job.map.len(), job.budget).map_err(io())?;
        facts
            .each_trace(|trace| traces.push(u64::from(trace)))
            .map_err(io())?;
        index
            .section(Tag::Traces, |out| traces.write(out))
            .map_err(io())?;
    }
    let repetitions = &job.objects.tallies.repetitions;
    if !repetitions.is_empty() {
        index
            .section(Tag::Repetitions, |out| out.write_all(bytes_of(repetitions)))
            .map_err(io())?;
    }
    let mut anchors = facts.anchors.iter();
    index
        .section(Tag::AnchorObjects, |out| {
            anchors.try_for_each(|(object, _)| out.write_all(bytes_of(&[*object])))
        })
        .map_err(io())?;
    let mut anchors = facts.anchors.iter();
    index
        .section(Tag::AnchorOffsets, |out| {
            anchors.try_for_each(|(_, offset)| out.write_all(bytes_of(&[*offset])))
        })
        .map_err(io())?;
    Ok(Written { units, of_class })
}

/// Shallow sizes in units of the alignment, and their sum.
fn shallow_sizes(job: &Job<'_>, facts: &ObjectFacts<'_>) -> std::io::Result<(ColumnBuilder, u64)> {
    let unit = job.objects.rules.alignment;
    let instance: Vec<u64> = job
        .table
        .classes
        .iter()
        .map(|c| c.instance_size.0.div_ceil(unit))
        .collect();
    let mut class_sizes: Vec<(u64, u64)> = job
        .table
        .classes
        .iter()
        .zip(&job.table.class_object_size)
        .filter(|(c, _)| c.dumped)
        .filter_map(|(c, size)| Some((job.map.rank(c.id.0)?, size.div_ceil(unit))))
        .collect();
    class_sizes.sort_unstable();
    let mut class_sizes = class_sizes.into_iter().peekable();
    let mut large = facts.large.iter().peekable();
    let mut shallow = ColumnBuilder::new(job.map.len(), job.budget)?;
    let mut total = 0u64;
    facts.each(|object, class, units| {
        let size = match units {
            0 => match class_sizes.next_if(|c| c.0 == object) {
                Some((_, size)) => size,
                None => instance.get(class as usize).copied().unwrap_or(0),
            },
            LARGE => large.next_if(|l| l.0 == object).map_or(0, |l| l.1),
            units => u64::from(units),
        };
        total = total.saturating_add(size);
        shallow.push(size)
    })?;
    Ok((shallow, total))
}

/// Classes and shallow sizes, read back from the index.
pub(crate) struct Sizes<'a> {
    classes: Packed<'a>,
    shallow: Option<Column<'a>>,
    traces: Option<Column<'a>>,
}

impl<'a> Sizes<'a> {
    pub(crate) fn view(index: &'a IndexFile, objects: u64, table: &ClassTable) -> Sizes<'a> {
        let width = class_width(table.classes.len());
        Sizes {
            classes: Packed::new(index.bytes(Tag::Classes), width, objects),
            shallow: Column::new(index.bytes(Tag::Shallow)),
            traces: Column::new(index.bytes(Tag::Traces)),
        }
    }

    #[inline]
    pub(crate) fn class(&self, object: u64) -> u32 {
        self.classes.get(object) as u32
    }

    /// True when objects have different trace serials.
    pub(crate) fn has_traces(&self) -> bool {
        self.traces.is_some()
    }

    /// The trace serial, if objects have different ones.
    #[inline]
    pub(crate) fn trace(&self, object: u64) -> u32 {
        self.traces.map_or(0, |t| t.get(object)) as u32
    }

    /// The shallow size in units of the alignment.
    #[inline]
    pub(crate) fn units(&self, object: u64) -> u64 {
        self.shallow.map_or(0, |s| s.get(object))
    }
}
