//! The first pass over the VM's dump: its classes and roots, and the sizes of objects. Objects are adjacent, so the
//! smallest distance from an instance of a class to the next object is the size of the class.

use super::Source;
use hprof::{
    BasicType, ClassDump, FileOffset, HeapVisitor, IdSize, Instance, ObjectArray, ObjectId,
    PrimitiveArray, Root,
};
use rustc_hash::FxHashMap;

/// How objects are laid out, in bytes.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Bytes before the fields of an object.
    head: u64,
    /// Bytes before the elements of an array.
    array: u64,
    /// Bytes of a reference.
    reference: u64,
}

const fn layout(head: u64, array: u64, reference: u64) -> Layout {
    Layout {
        head,
        array,
        reference,
    }
}

/// All possible layouts: with compressed references and with wide ones, with compact headers, with wide class pointers.
const LAYOUTS: [Layout; 5] = [
    layout(12, 16, 4),
    layout(12, 16, 8),
    layout(8, 12, 4),
    layout(16, 24, 8),
    layout(16, 20, 4),
];
/// The number of arrays that are used to find the layout.
const ASKED: usize = 10_000;

/// A class as it was dumped.
#[derive(Debug, Default)]
pub(super) struct Dumped {
    superclass: u64,
    fields: Box<[(ObjectId, BasicType)]>,
    /// The least distance from an instance to the next object.
    gap: Option<u64>,
}

/// The previous object.
#[derive(Clone, Copy, Debug)]
enum Before {
    Instance(u64),
    /// An array of references with this many elements.
    Array(u64),
    Other,
}

/// The results.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) classes: FxHashMap<u64, Dumped>,
    /// The position of each class dump, and the end of its segment.
    pub(super) class_records: Vec<(u64, u64)>,
    pub(super) roots: Vec<Root>,
    before: (u64, Before),
    /// The bitwise OR of all addresses.
    bits: u64,
    /// The number of elements of arrays, and the distance to the next object.
    arrays: Vec<(u64, u64)>,
    align: u64,
    layout: Layout,
}

impl Survey {
    /// Reads the whole dump once.
    pub(super) fn of(source: &Source<'_>) -> Survey {
        let mut survey = Survey {
            classes: FxHashMap::default(),
            class_records: Vec::new(),
            roots: Vec::new(),
            before: (0, Before::Other),
            bits: 0,
            arrays: Vec::new(),
            align: 8,
            layout: LAYOUTS[0],
        };
        read_segments(source, &mut survey);
        let ends: Vec<(u64, u64)> = source
            .map
            .segments
            .iter()
            .map(|s| (s.body, s.end))
            .collect();
        for (at, end) in &mut survey.class_records {
            let segment = ends.partition_point(|(body, _)| body <= at);
            *end = segment.checked_sub(1).map_or(0, |segment| ends[segment].1);
        }
        survey.align = 1 << survey.bits.trailing_zeros().clamp(3, 8);
        let votes = |layout: &&Layout| {
            let size = |len: u64| survey.size_of_array(layout, len);
            let arrays = survey.arrays.iter();
            arrays.filter(|(len, gap)| size(*len) == *gap).count()
        };
        // If several fit equally well, this takes the first one, which is the most common.
        survey.layout = *LAYOUTS
            .iter()
            .rev()
            .max_by_key(votes)
            .unwrap_or(&LAYOUTS[0]);
        survey
    }

    fn size_of_array(&self, layout: &Layout, len: u64) -> u64 {
        (layout.array + len * layout.reference).next_multiple_of(self.align)
    }

    /// Bytes of an array of references.
    pub(super) fn array_size(&self, len: u64) -> u64 {
        self.size_of_array(&self.layout, len)
    }

    /// All fields of a class, its own first; `None` if a superclass is missing.
    pub(super) fn fields(&self, class: u64) -> Option<Vec<(ObjectId, BasicType)>> {
        let mut fields = Vec::new();
        let mut at = class;
        // A chain of superclasses is short; the bound stops at a chain that is a cycle.
        for _ in 0..10_000 {
            if at == 0 {
                return Some(fields);
            }
            let class = self.classes.get(&at)?;
            fields.extend_from_slice(&class.fields);
            at = class.superclass;
        }
        None
    }

    /// The bytes of an instance of a class: the measured size if it is plausible, otherwise the size of the header and
    /// the fields.
    pub(super) fn size(&self, class: u64) -> u64 {
        /// The most bytes that the VM adds to the fields: gaps, and fields that are invisible to Java.
        const HIDDEN: u64 = 32;
        let width = |(_, kind): (ObjectId, BasicType)| match kind {
            BasicType::Object => self.layout.reference,
            kind => kind.size(8) as u64,
        };
        let fields = self.fields(class).unwrap_or_default();
        let head = self.layout.head;
        let least =
            (head + fields.into_iter().map(width).sum::<u64>()).next_multiple_of(self.align);
        let gap = self.classes.get(&class).and_then(|class| class.gap);
        gap.filter(|gap| (least - 8..=least + HIDDEN).contains(gap))
            .unwrap_or(least)
    }

    fn at(&mut self, address: u64, now: Before) {
        let (last, before) = std::mem::replace(&mut self.before, (address, now));
        self.bits |= address;
        if last == 0 || address <= last {
            return;
        }
        let distance = address - last;
        match before {
            Before::Instance(class) => {
                if let Some(class) = self.classes.get_mut(&class) {
                    class.gap = Some(class.gap.unwrap_or(u64::MAX).min(distance));
                }
            }
            Before::Array(len) if self.arrays.len() < ASKED => self.arrays.push((len, distance)),
            Before::Array(_) | Before::Other => {}
        }
    }
}

/// Passes all segments to a visitor. Returns how many could not be read completely.
pub(super) fn read_segments(source: &Source<'_>, visitor: &mut impl HeapVisitor) -> u64 {
    let segments = source.map.segments.iter();
    let broken = segments.filter(|segment| {
        let (from, end) = (segment.body, segment.end);
        hprof::walk(source.data, IdSize::Eight, from, end, end, visitor).is_err()
    });
    broken.count() as u64
}

impl HeapVisitor for Survey {
    fn root(&mut self, _: FileOffset, root: Root) {
        self.roots.push(root);
    }

    fn class(&mut self, at: FileOffset, class: &ClassDump<'_>) {
        let dumped = Dumped {
            superclass: class.super_class.0,
            fields: class.fields().collect(),
            gap: None,
        };
        self.classes.insert(class.id.0, dumped);
        self.class_records.push((at.0, 0));
    }

    fn instance(&mut self, _: FileOffset, instance: Instance<'_>) {
        self.at(instance.id.0, Before::Instance(instance.class.0));
    }

    fn object_array(&mut self, _: FileOffset, array: ObjectArray<'_>) {
        self.at(array.id.0, Before::Array(u64::from(array.len)));
    }

    fn primitive_array(&mut self, _: FileOffset, array: PrimitiveArray<'_>) {
        self.at(array.id.0, Before::Other);
    }
}
