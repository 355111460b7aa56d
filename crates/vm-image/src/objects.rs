//! Objects as records of a dump.

use crate::dump::NO_TRACE;
use crate::heap::Space;
use crate::klass::{Class, Classes, Shape};
use crate::memory::Address;
use crate::segments::Segments;
use crate::summary::Summary;
use crate::tracked::Places;
use crate::vm::Vm;
use crate::walk::{Object, Visitor, WHOLE};
use hprof::{
    BasicType, HeapTag, Instance, ObjectArray, ObjectId, PrimitiveArray, Serial, SubRecord,
};
use rustc_hash::FxHashSet;
use std::io;

/// Bytes of a large array that are read at once.
const PIECE: usize = 1 << 20;
/// The most bytes of the contents of one record: its length has 32 bits and includes a head.
const MOST_BYTES: u64 = u32::MAX as u64 - 64;

/// Bytes before the values of an instance: tag, id, trace, class, length.
const INSTANCE_HEAD: usize = 25;
/// Bytes before the elements of an array of references: tag, id, trace, length, class.
const OBJECTS_HEAD: usize = 25;
/// Bytes before the elements of an array of a primitive type: tag, id, trace, length, type.
const PRIMITIVES_HEAD: usize = 18;

/// The unwritten rest of a record's bytes. `hprof` writes the same format, but into a buffer that grows.
struct Head<'h>(&'h mut [u8]);

impl Head<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some((to, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut() {
            *to = bytes;
            self.0 = rest;
        }
    }
}

/// Addresses that are compared with those of the objects that a walk passes, in ascending order.
pub(crate) struct Wanted {
    /// In ascending order; those before `next` have been passed.
    addresses: Vec<Address>,
    next: usize,
    found: Vec<Address>,
}

impl Wanted {
    pub(crate) fn new(mut addresses: Vec<Address>) -> Wanted {
        addresses.sort_unstable();
        addresses.dedup();
        Wanted {
            addresses,
            next: 0,
            found: Vec::new(),
        }
    }

    /// Whether some of the addresses are in a part of the heap.
    pub(crate) fn any_in(&self, part: Space) -> bool {
        let first = self.addresses.partition_point(|at| *at < part.from);
        self.addresses.get(first).is_some_and(|at| *at < part.to)
    }

    fn pass(&mut self, object: Address) {
        while let Some(wanted) = self.addresses.get(self.next).filter(|at| **at <= object) {
            self.next += 1;
            if *wanted == object {
                self.found.push(object);
            }
        }
    }

    /// The addresses that have an object, in ascending order.
    pub(crate) fn found(self) -> Vec<Address> {
        self.found
    }
}

impl Visitor for Wanted {
    fn object(&mut self, object: &Object<'_>) -> io::Result<()> {
        self.pass(object.at);
        Ok(())
    }
}

/// Writes objects, and records which of the wanted addresses have one.
pub(crate) struct Objects<'o, 'm> {
    vm: &'o Vm<'m>,
    classes: &'o Classes,
    /// The objects whose stacks are known.
    places: &'o mut Places,
    segments: &'o mut Segments<'m>,
    summary: &'o mut Summary,
    wanted: Wanted,
    /// The range of addresses that objects can have.
    reserved: Space,
    /// Addresses in it to which stacks of parked virtual threads could refer.
    parked: FxHashSet<Address>,
    /// The offset of the class address in class objects.
    klass_of_mirror: Option<usize>,
    /// Values of one object in the order and format of a dump.
    values: Vec<u8>,
}

impl<'o, 'm> Objects<'o, 'm> {
    pub(crate) fn new(
        (vm, classes, places): (&'o Vm<'m>, &'o Classes, &'o mut Places),
        segments: &'o mut Segments<'m>,
        summary: &'o mut Summary,
        wanted: Vec<Address>,
        reserved: Space,
    ) -> Objects<'o, 'm> {
        let klass = vm.tables.find_static("java_lang_Class._klass_offset");
        Objects {
            vm,
            classes,
            places,
            segments,
            summary,
            wanted: Wanted::new(wanted),
            reserved,
            parked: FxHashSet::default(),
            klass_of_mirror: klass.and_then(|at| Some(vm.memory.u32(at)? as usize)),
            values: Vec::new(),
        }
    }

    /// The wanted addresses that have an object, and those to which stacks of parked virtual threads could refer.
    pub(crate) fn found(self) -> (FxHashSet<Address>, Vec<Address>) {
        let found = self.wanted.found().into_iter().collect();
        (found, self.parked.into_iter().collect())
    }

    /// Collects what the words of a stack chunk could refer to, from the one at which its stack pointer is. `before` are
    /// the bytes before its first word.
    fn stack(&mut self, object: &Object<'_>, before: u64) {
        let number = |at: Option<u32>| {
            let bytes = object.bytes.get(at? as usize..)?.first_chunk()?;
            Some(u64::from(u32::from_le_bytes(*bytes)))
        };
        let Some((size, pointer)) =
            number(self.classes.chunk_size).zip(number(self.classes.chunk_pointer))
        else {
            return;
        };
        let first = object.at + before;
        let mut at = first.saturating_add(pointer * 8);
        let end = first.saturating_add(size * 8);
        let mut piece = Vec::new();
        while at < end {
            piece.resize(((end - at) as usize).min(PIECE), 0);
            let there = self.vm.memory.direct().read(at, &mut piece);
            for bytes in piece[..there].as_chunks().0 {
                let word = u64::from_le_bytes(*bytes);
                self.parked.extend(self.reserved.referred(self.vm, word));
            }
            if there < piece.len() {
                let what = "a part of the stack of a parked virtual thread cannot be read";
                self.summary.damage.count(what, at);
                return;
            }
            at += there as u64;
        }
    }

    fn instance(&mut self, object: &Object<'_>, class: &Class) -> io::Result<()> {
        self.summary.instances += 1;
        let trace = self.trace(object);
        let len = class.slots_size as usize;
        if !self.segments.rewrites()
            && let Some(room) = self.segments.room(INSTANCE_HEAD + len)?
            && let Some((head, values)) = room.split_first_chunk_mut::<INSTANCE_HEAD>()
        {
            let mut head = Head(head);
            head.put([HeapTag::InstanceDump as u8]);
            head.put(object.at.to_be_bytes());
            head.put(trace.0.to_be_bytes());
            head.put(class.mirror.to_be_bytes());
            head.put(class.slots_size.to_be_bytes());
            put_slots(self.vm, object, class, values);
            return Ok(());
        }
        self.values.clear();
        self.values.resize(len, 0);
        put_slots(self.vm, object, class, &mut self.values);
        self.segments.sub_record(&SubRecord::Instance(Instance {
            id: ObjectId(object.at),
            trace,
            class: ObjectId(class.mirror),
            fields: &self.values,
        }))
    }

    /// The stack that allocated an object.
    fn trace(&mut self, object: &Object<'_>) -> Serial {
        let Some(serial) = self.places.of(object.at) else {
            return NO_TRACE;
        };
        self.summary.with_stack += 1;
        serial
    }

    /// Whether a class object belongs to a class.
    fn has_class(&self, object: &Object<'_>) -> bool {
        let klass = self
            .klass_of_mirror
            .and_then(|at| object.bytes.get(at..at + 8));
        self.classes.is_mirror(object.at) || klass.is_some_and(|klass| klass != [0; 8])
    }

    /// Bytes of a value in the heap.
    fn size(&self, kind: BasicType) -> usize {
        match kind {
            BasicType::Object => self.vm.reference_size(),
            _ => kind.size(8),
        }
    }

    fn array(
        &mut self,
        object: &Object<'_>,
        header: u64,
        kind: BasicType,
        class: &Class,
    ) -> io::Result<()> {
        let (size, size_in_dump) = (self.size(kind) as u64, kind.size(8) as u64);
        let total = header + u64::from(object.len) * size;
        let whole = total <= WHOLE;
        if whole && !self.segments.rewrites() {
            let contents = object.bytes.get(header as usize..total as usize);
            if let Some(contents) = contents
                && self.whole_array(object, contents, kind, class)?
            {
                return Ok(());
            }
        }
        let len = u64::from(object.len).min(MOST_BYTES / size_in_dump);
        self.values.clear();
        if whole {
            let contents = object.bytes.get(header as usize..total as usize);
            push_swapped(
                self.vm,
                kind,
                contents.unwrap_or_default(),
                &mut self.values,
            );
        }
        let contents = (object.at + header, object.at + header + len * size);
        // Contents that may be replaced are needed as a whole.
        let is_read = whole || kind != BasicType::Object && self.segments.rewrites();
        if !whole && is_read {
            let mut values = std::mem::take(&mut self.values);
            self.read_pieces(contents, kind, |_, piece| {
                values.extend_from_slice(piece);
                Ok(())
            })?;
            self.values = values;
        }
        let trace = self.trace(object);
        let record = match kind {
            BasicType::Object => SubRecord::ObjectArray(ObjectArray {
                id: ObjectId(object.at),
                trace,
                class: ObjectId(class.mirror),
                len: len as u32,
                elements: &self.values,
            }),
            _ => SubRecord::PrimitiveArray(PrimitiveArray {
                id: ObjectId(object.at),
                trace,
                len: len as u32,
                element: kind,
                data: &self.values,
                has_data: true,
            }),
        };
        if whole {
            self.segments.sub_record(&record)?;
        } else if is_read {
            self.segments.large(&record)?;
        } else {
            let bytes = len * size_in_dump;
            self.segments.begin_large(&record, bytes as u32)?;
            self.read_pieces(contents, kind, |segments, piece| segments.piece(piece))?;
        }
        if len < u64::from(object.len) {
            let what = "an array is cut, because a record cannot have more than 4 GiB";
            self.summary.damage.count(what, object.at);
        }
        Ok(())
    }

    /// Writes an array directly into the output block, if it fits.
    fn whole_array(
        &mut self,
        object: &Object<'_>,
        contents: &[u8],
        kind: BasicType,
        class: &Class,
    ) -> io::Result<bool> {
        let trace = self.trace(object);
        let is_object = kind == BasicType::Object;
        let head = if is_object {
            OBJECTS_HEAD
        } else {
            PRIMITIVES_HEAD
        };
        let len = object.len as usize * kind.size(8);
        let Some(room) = self.segments.room(head + len)? else {
            return Ok(false);
        };
        let (head, values) = room.split_at_mut(head);
        let mut head = Head(head);
        let tag = match is_object {
            true => HeapTag::ObjectArrayDump,
            false => HeapTag::PrimitiveArrayDump,
        };
        head.put([tag as u8]);
        head.put(object.at.to_be_bytes());
        head.put(trace.0.to_be_bytes());
        head.put(object.len.to_be_bytes());
        match is_object {
            true => head.put(class.mirror.to_be_bytes()),
            false => head.put([kind as u8]),
        }
        put_swapped(self.vm, kind, contents, values);
        Ok(true)
    }

    /// Reads the contents of a large array in pieces; unreadable bytes become 0.
    fn read_pieces(
        &mut self,
        (mut at, end): (Address, Address),
        kind: BasicType,
        mut write: impl FnMut(&mut Segments<'m>, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut piece, mut values) = (vec![0; PIECE], Vec::new());
        while at < end {
            let wanted = ((end - at) as usize).min(PIECE);
            let there = self.vm.memory.direct().read(at, &mut piece[..wanted]);
            if there < wanted {
                let what = "a part of an array cannot be read";
                self.summary.damage.count(what, at);
                piece[there..wanted].fill(0);
            }
            values.clear();
            push_swapped(self.vm, kind, &piece[..wanted], &mut values);
            write(self.segments, &values)?;
            at += wanted as u64;
        }
        Ok(())
    }
}

impl Visitor for Objects<'_, '_> {
    fn object(&mut self, object: &Object<'_>) -> io::Result<()> {
        self.wanted.pass(object.at);
        let classes = self.classes;
        let class = &classes.all[object.class as usize];
        match class.shape {
            // A class object is written as the record of its class, unless it is that of a primitive type. Class
            // objects of archived classes that were not loaded are left out, as in the VM's own dumps.
            Shape::Mirror(_) if self.has_class(object) => Ok(()),
            Shape::Instance(_) | Shape::Mirror(_) => self.instance(object, class),
            Shape::StackChunk(before) => {
                self.stack(object, before);
                self.instance(object, class)
            }
            Shape::References(header) => {
                self.summary.object_arrays += 1;
                self.array(object, header, BasicType::Object, class)
            }
            Shape::Primitives(header, kind) => {
                self.summary.primitive_arrays += 1;
                self.array(object, header, kind, class)
            }
        }
    }
}

/// Appends values of one type in big-endian order, references with 64 bits.
fn push_swapped(vm: &Vm<'_>, kind: BasicType, bytes: &[u8], values: &mut Vec<u8>) {
    let size = match kind {
        BasicType::Object => vm.reference_size(),
        _ => kind.size(8),
    };
    let begin = values.len();
    values.resize(begin + bytes.len() / size * kind.size(8), 0);
    put_swapped(vm, kind, bytes, &mut values[begin..]);
}

/// As [`push_swapped`], but writes to a slice with space for exactly these values.
fn put_swapped(vm: &Vm<'_>, kind: BasicType, bytes: &[u8], values: &mut [u8]) {
    fn each<const FROM: usize, const TO: usize>(
        bytes: &[u8],
        values: &mut [u8],
        swapped: impl Fn([u8; FROM]) -> [u8; TO],
    ) {
        let to = values.as_chunks_mut().0.iter_mut();
        for (to, from) in to.zip(bytes.as_chunks().0) {
            *to = swapped(*from);
        }
    }
    match (kind, vm.reference_size()) {
        (BasicType::Object, 4) => each(bytes, values, |half| {
            vm.widen(u32::from_le_bytes(half)).to_be_bytes()
        }),
        _ => match kind.size(8) {
            1 => values.copy_from_slice(bytes),
            2 => each(bytes, values, |[a, b]| [b, a]),
            4 => each(bytes, values, |[a, b, c, d]| [d, c, b, a]),
            _ => each(bytes, values, |word| u64::from_le_bytes(word).to_be_bytes()),
        },
    }
}

/// Writes the values of an object in the order and format of a dump.
fn put_slots(vm: &Vm<'_>, object: &Object<'_>, class: &Class, mut values: &mut [u8]) {
    for slot in &class.slots {
        let at = slot.offset as usize;
        let size = match slot.kind {
            BasicType::Object => vm.reference_size(),
            _ => slot.kind.size(8),
        };
        // It was checked that the fields of a class are inside of its objects.
        let bytes = object.bytes.get(at..at + size).unwrap_or(&[0; 8][..size]);
        let (value, rest) = values.split_at_mut(slot.kind.size(8));
        put_swapped(vm, slot.kind, bytes, value);
        values = rest;
    }
}
