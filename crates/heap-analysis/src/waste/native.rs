//! Direct and mapped buffers: native memory that small Java objects keep.

use crate::objects::describe::Address;
use crate::objects::fields::{class_named, field_int, static_ref};
use crate::sets::object_set::Place;
use crate::tables::ranking::cut;
use heap_graph::{Heap, ObjIdx, Slot};
use hprof::{BasicType, Bytes, IdSize, ObjectId};
use serde::Serialize;
use std::cmp::Reverse;

/// Where the memory of a buffer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferOrigin {
    /// `ByteBuffer.allocateDirect`; it is freed together with the buffer.
    Allocated,
    /// A mapped file.
    Mapped,
    /// Memory of native code, which also frees it.
    Foreign,
    /// The memory of another buffer, of which this one is a slice or duplicate.
    View,
}

/// A direct buffer that owns native memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// Id of the buffer.
    pub object: Address,
    /// Its class.
    pub class: String,
    /// Bytes of native memory.
    pub capacity: Bytes,
    /// Where the memory comes from.
    pub origin: BufferOrigin,
    /// False if the buffer is unreachable.
    pub reachable: bool,
}

/// The direct buffers of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NativeMemory {
    /// Number of buffers of `ByteBuffer.allocateDirect`.
    pub allocated: u64,
    /// Bytes of native memory of these buffers.
    pub allocated_bytes: Bytes,
    /// Number of buffers that map a file.
    pub mapped: u64,
    /// Bytes that these buffers map.
    pub mapped_bytes: Bytes,
    /// Number of buffers whose memory belongs to native code.
    pub foreign: u64,
    /// Bytes of native memory of these buffers.
    pub foreign_bytes: Bytes,
    /// Number of slices and duplicates, which share the memory of another buffer.
    pub views: u64,
    /// Bytes that `java.nio.Bits` counts as reserved; `null` if the dump does not have this counter.
    pub reserved: Option<Bytes>,
    /// The largest buffers that own memory.
    pub buffers: Vec<Buffer>,
    /// Number of buffers that were left out.
    pub omitted_buffers: u64,
}

/// The fields of a direct buffer.
#[derive(Clone, Debug)]
pub(super) struct BufferShape {
    capacity: Place,
    /// The buffer that this one is a view of.
    attachment: Option<Place>,
    file: Option<Place>,
    cleaner: Option<Place>,
}

impl BufferShape {
    /// The fields of `java.nio.DirectByteBuffer` and its subclasses.
    pub(super) fn of(heap: &Heap, slots: &[Slot]) -> Option<BufferShape> {
        Some(BufferShape {
            capacity: Place::of(heap, slots, "capacity")?,
            attachment: Place::of(heap, slots, "att"),
            file: Place::of(heap, slots, "fd"),
            cleaner: Place::of(heap, slots, "cleaner"),
        })
    }

    pub(super) fn read(&self, object: ObjIdx, fields: &[u8], ids: IdSize) -> RawBuffer {
        let is_set = |place: Option<Place>| {
            place
                .is_some_and(|p| p.kind == BasicType::Object && p.id(fields, ids) != ObjectId::NULL)
        };
        let origin = if is_set(self.attachment) {
            BufferOrigin::View
        } else if is_set(self.file) {
            BufferOrigin::Mapped
        } else if self.cleaner.is_none() || is_set(self.cleaner) {
            BufferOrigin::Allocated
        } else {
            BufferOrigin::Foreign
        };
        RawBuffer {
            object,
            capacity: u64::try_from(self.capacity.int(fields, ids)).unwrap_or(0),
            origin,
        }
    }
}

/// A buffer as the first walk finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawBuffer {
    pub(super) object: ObjIdx,
    capacity: u64,
    origin: BufferOrigin,
}

/// The buffers summed up.
pub(super) fn sum(heap: &Heap, list: &[RawBuffer], top: Option<usize>) -> NativeMemory {
    let reserved = class_named(heap, "java.nio.Bits").and_then(|bits| {
        // `reservedMemory` until JDK 10.
        let names = ["RESERVED_MEMORY", "reservedMemory"];
        let counter = names.iter().find_map(|n| static_ref(heap, bits, n))?;
        u64::try_from(field_int(heap, counter, "value")?).ok()
    });
    let mut answer = NativeMemory {
        reserved: reserved.map(Bytes),
        ..NativeMemory::default()
    };
    let mut owners: Vec<&RawBuffer> = Vec::new();
    for buffer in list {
        let (count, bytes) = match buffer.origin {
            BufferOrigin::View => {
                answer.views += 1;
                continue;
            }
            BufferOrigin::Allocated => (&mut answer.allocated, &mut answer.allocated_bytes),
            BufferOrigin::Mapped => (&mut answer.mapped, &mut answer.mapped_bytes),
            BufferOrigin::Foreign => (&mut answer.foreign, &mut answer.foreign_bytes),
        };
        *count += 1;
        // A damaged dump may have any capacity.
        bytes.0 = bytes.0.saturating_add(buffer.capacity);
        owners.push(buffer);
    }
    owners.sort_by_key(|b| (Reverse(b.capacity), b.object));
    answer.omitted_buffers = cut(&mut owners, top);
    answer.buffers = owners
        .into_iter()
        .map(|b| Buffer {
            object: Address(heap.id(b.object)),
            class: heap.class(heap.class_of(b.object)).name.clone(),
            capacity: Bytes(b.capacity),
            origin: b.origin,
            reachable: heap.is_reachable(b.object),
        })
        .collect();
    answer
}
