//! The contents of arrays: empty, zeros, zeros at the end, values that fit a smaller type.

use heap_graph::Heap;
use hprof::{BasicType, Bytes, IdSize};
use serde::Serialize;

/// Primitive arrays of one type. If the dump was written without array contents, only their number and size are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArrayContents {
    /// The array type, such as `byte[]`.
    pub class: String,
    /// Number of arrays.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub bytes: Bytes,
    /// Number of arrays of length 0.
    pub zero_length: u64,
    /// Sum of their shallow sizes.
    pub zero_length_bytes: Bytes,
    /// Number of arrays that have elements, all of them 0.
    pub all_zero: u64,
    /// Sum of their shallow sizes.
    pub all_zero_bytes: Bytes,
    /// Number of arrays that have two or more elements, all with the same value other than 0.
    pub constant: u64,
    /// Sum of their shallow sizes.
    pub constant_bytes: Bytes,
    /// Number of half-empty arrays: the second half is 0, but not the whole array.
    pub zero_tail: u64,
    /// Bytes that would be saved if these arrays ended with their last element that is not 0.
    pub zero_tail_bytes: Bytes,
    /// Number of `char`, `short`, `int` and `long` arrays whose values all fit a type of half the width (for `char`:
    /// values below 256), and are not all 0.
    pub narrow: u64,
    /// Bytes that would be saved if these arrays had that type.
    pub narrow_bytes: Bytes,
}

/// Arrays of references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ObjectArrays {
    /// Number of arrays.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub bytes: Bytes,
    /// Number of arrays of length 0.
    pub zero_length: u64,
    /// Number of arrays that have elements, all of them null.
    pub all_null: u64,
    /// Sum of their shallow sizes.
    pub all_null_bytes: Bytes,
    /// Number of elements of all arrays.
    pub elements: u64,
    /// Number of these elements that are null.
    pub nulls: u64,
}

/// The sums of a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    primitive: [ArrayContents; 12],
    pub(super) object_arrays: ObjectArrays,
}

impl Contents {
    pub(super) fn references(&mut self, shallow: u64, elements: &[u8], ids: IdSize) {
        let sums = &mut self.object_arrays;
        let len = (elements.len() / ids.bytes()) as u64;
        let is_null = |e: &&[u8]| e.iter().all(|b| *b == 0);
        let nulls = elements.chunks_exact(ids.bytes()).filter(is_null).count() as u64;
        sums.objects += 1;
        sums.bytes.0 += shallow;
        sums.elements += len;
        sums.nulls += nulls;
        sums.zero_length += u64::from(len == 0);
        if len > 0 && nulls == len {
            sums.all_null += 1;
            sums.all_null_bytes.0 += shallow;
        }
    }

    pub(super) fn primitive(
        &mut self,
        heap: &Heap,
        shallow: u64,
        element: BasicType,
        len: u32,
        data: &[u8],
    ) {
        let sums = &mut self.primitive[element as usize];
        sums.objects += 1;
        sums.bytes.0 += shallow;
        if len == 0 {
            sums.zero_length += 1;
            sums.zero_length_bytes.0 += shallow;
            return;
        }
        let width = element.size(8);
        let Some(last) = data.iter().rposition(|b| *b != 0) else {
            if !data.is_empty() {
                sums.all_zero += 1;
                sums.all_zero_bytes.0 += shallow;
            }
            return;
        };
        let used = (last / width + 1) as u32;
        if len - used >= len.div_ceil(2) {
            sums.zero_tail += 1;
            sums.zero_tail_bytes.0 += shallow.saturating_sub(heap.array_bytes(element, used).0);
        } else if len > 1 && data[width..] == data[..data.len() - width] {
            sums.constant += 1;
            sums.constant_bytes.0 += shallow;
        }
        if let Some(narrower) = narrower(element).filter(|_| is_narrow(element, data)) {
            sums.narrow += 1;
            sums.narrow_bytes.0 += shallow.saturating_sub(heap.array_bytes(narrower, len).0);
        }
    }

    pub(super) fn merge(&mut self, other: &Contents) {
        for (a, b) in self.primitive.iter_mut().zip(&other.primitive) {
            for (a, b) in [
                (&mut a.objects, b.objects),
                (&mut a.bytes.0, b.bytes.0),
                (&mut a.zero_length, b.zero_length),
                (&mut a.zero_length_bytes.0, b.zero_length_bytes.0),
                (&mut a.all_zero, b.all_zero),
                (&mut a.all_zero_bytes.0, b.all_zero_bytes.0),
                (&mut a.constant, b.constant),
                (&mut a.constant_bytes.0, b.constant_bytes.0),
                (&mut a.zero_tail, b.zero_tail),
                (&mut a.zero_tail_bytes.0, b.zero_tail_bytes.0),
                (&mut a.narrow, b.narrow),
                (&mut a.narrow_bytes.0, b.narrow_bytes.0),
            ] {
                *a += b;
            }
        }
        let (a, b) = (&mut self.object_arrays, &other.object_arrays);
        a.objects += b.objects;
        a.bytes.0 += b.bytes.0;
        a.zero_length += b.zero_length;
        a.all_null += b.all_null;
        a.all_null_bytes.0 += b.all_null_bytes.0;
        a.elements += b.elements;
        a.nulls += b.nulls;
    }

    /// One row per type that has arrays, most bytes first.
    pub(super) fn rows(&self, _: &Heap) -> Vec<ArrayContents> {
        let mut rows: Vec<ArrayContents> = BasicType::ALL
            .iter()
            .map(|kind| ArrayContents {
                class: format!("{}[]", kind.name()),
                ..self.primitive[*kind as usize].clone()
            })
            .filter(|row| row.objects > 0)
            .collect();
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
        rows
    }
}

/// The type of half the width.
fn narrower(element: BasicType) -> Option<BasicType> {
    match element {
        BasicType::Char | BasicType::Short => Some(BasicType::Byte),
        BasicType::Int => Some(BasicType::Short),
        BasicType::Long => Some(BasicType::Int),
        _ => None,
    }
}

fn is_narrow(element: BasicType, data: &[u8]) -> bool {
    match element {
        BasicType::Char => data.chunks_exact(2).all(|c| c[0] == 0),
        BasicType::Short => data.chunks_exact(2).all(|c| {
            let n = i16::from_be_bytes([c[0], c[1]]);
            i8::try_from(n).is_ok()
        }),
        BasicType::Int => data.chunks_exact(4).all(|c| {
            let n = i32::from_be_bytes([c[0], c[1], c[2], c[3]]);
            i16::try_from(n).is_ok()
        }),
        BasicType::Long => data.chunks_exact(8).all(|c| {
            let n = i64::from_be_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
            i32::try_from(n).is_ok()
        }),
        _ => false,
    }
}
