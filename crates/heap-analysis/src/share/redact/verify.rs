//! Checks whether a redacted dump still contains parts of the original.

use super::redactor::Redactor;
use super::shapes::walk_all;
use super::structure::{Strays, Structure};
use hprof::{
    ClassDump, Edit, FileOffset, HeaderError, HeapVisitor, Instance, ObjectArray, ObjectId,
    PrimitiveArray, Record, Rewriter, Root, SubRecord, encode_sub_record, map_file,
};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// The result of checking a redacted dump against the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Number of arrays whose elements were to be replaced.
    pub arrays: u64,
    /// Number of these arrays that have at least four bytes, are not all zeros, and are unchanged.
    pub unchanged: u64,
    /// Number of places in the output with 16 bytes of an original array. Bytes that the original also has in the parts
    /// that are kept (references, numbers in objects) do not count, and names that are kept are not searched.
    pub remains: u64,
    /// Number of objects, classes and roots in the output that refer to a missing object, or whose fields do not fit
    /// their class.
    pub strays: u64,
    /// Number of objects and roots that only one of the two dumps has.
    pub differences: u64,
}

impl Verified {
    /// True when nothing of the original is left and no object is missing.
    pub fn clean(&self) -> bool {
        self.unchanged == 0 && self.remains == 0 && self.strays == 0 && self.differences == 0
    }
}

/// Length in bytes of the parts that are searched.
const WINDOW: usize = 16;

#[derive(Default)]
struct Original<'r> {
    redactor: Option<&'r Redactor>,
    /// Number of hidden arrays. Two dumps in one file can have two arrays with the same id.
    hidden: u64,
    /// Id and hash of the contents of each hidden array.
    arrays: FxHashSet<(u64, u64)>,
    windows: FxHashSet<u128>,
    objects: u64,
}

fn hash(data: &[u8]) -> u64 {
    crate::sets::object_set::hash_of(data.len() as u64, data)
}

fn window(data: &[u8]) -> Option<u128> {
    let first = data.first_chunk::<WINDOW>()?;
    // Padding and fill patterns occur in every file.
    let kinds: FxHashSet<u8> = first.iter().copied().collect();
    (kinds.len() > 4).then(|| u128::from_be_bytes(*first))
}

impl Original<'_> {
    fn count(&mut self, record: &SubRecord<'_>) {
        let is_written = self.redactor.is_none_or(|r| r.writes(record));
        self.objects += u64::from(is_written);
    }
}

impl HeapVisitor for Original<'_> {
    fn root(&mut self, _: FileOffset, root: Root) {
        self.count(&SubRecord::Root(root));
    }
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        self.count(&SubRecord::Instance(i));
    }
    fn object_array(&mut self, _: FileOffset, a: ObjectArray<'_>) {
        self.count(&SubRecord::ObjectArray(a));
    }
    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        self.objects += 1;
        if self.redactor.is_none_or(|r| r.hides_array(&a)) {
            self.hidden += 1;
            self.arrays.insert((a.id.0, hash(a.data)));
            self.windows.extend(window(a.data));
        }
    }
}

struct Redacted<'a> {
    redactor: &'a Redactor,
    original: &'a Original<'a>,
    found: Verified,
    objects: u64,
}

impl HeapVisitor for Redacted<'_> {
    fn root(&mut self, _: FileOffset, _: Root) {
        self.objects += 1;
    }
    fn instance(&mut self, _: FileOffset, _: Instance<'_>) {
        self.objects += 1;
    }
    fn object_array(&mut self, _: FileOffset, _: ObjectArray<'_>) {
        self.objects += 1;
    }
    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        self.objects += 1;
        if !self.redactor.hides_array(&a) {
            return;
        }
        self.found.arrays += 1;
        let matters = a.data.len() >= 4 && a.data.iter().any(|b| *b != 0);
        if matters && self.original.arrays.contains(&(a.id.0, hash(a.data))) {
            self.found.unchanged += 1;
        }
    }
}

/// A small filter, checked before the set of windows.
struct Filter<'a> {
    bits: Vec<u64>,
    windows: &'a FxHashSet<u128>,
}

impl<'a> Filter<'a> {
    fn new(windows: &'a FxHashSet<u128>) -> Filter<'a> {
        let words = (windows.len() / 4).next_power_of_two().max(1 << 10);
        let mut filter = Filter {
            bits: vec![0; words],
            windows,
        };
        for window in windows {
            let (word, bit) = filter.place(*window);
            filter.bits[word] |= bit;
        }
        filter
    }

    fn place(&self, window: u128) -> (usize, u64) {
        let mixed = (window as u64 ^ (window >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (
            (mixed >> 20) as usize & (self.bits.len() - 1),
            1 << (mixed >> 58),
        )
    }

    fn has(&self, window: u128) -> bool {
        let (word, bit) = self.place(window);
        self.bits[word] & bit != 0 && self.windows.contains(&window)
    }

    /// Counts the places in a text that hold one of the windows, by window.
    fn count(&self, data: &[u8], found: &mut FxHashMap<u128, u64>) {
        let mut slide = Slide::default();
        for byte in data {
            if let Some(window) = slide.push(*byte).filter(|w| self.has(*w)) {
                *found.entry(window).or_default() += 1;
            }
        }
    }
}

/// The most recent bytes.
#[derive(Default)]
struct Slide {
    window: u128,
    bytes: usize,
}

impl Slide {
    fn push(&mut self, byte: u8) -> Option<u128> {
        self.window = self.window << 8 | u128::from(byte);
        self.bytes += 1;
        (self.bytes >= WINDOW).then_some(self.window)
    }
}

/// Compares a redacted dump with its original.
pub fn verify(
    original: &[u8],
    redacted: &[u8],
    redactor: &Redactor,
) -> Result<Verified, HeaderError> {
    let mut before = Original {
        redactor: Some(redactor),
        ..Original::default()
    };
    walk_all(original, &mut before)?;
    let filter = Filter::new(&before.windows);
    let mut after = Redacted {
        redactor,
        original: &before,
        found: Verified::default(),
        objects: 0,
    };
    let mut remains = FxHashMap::default();
    let map = map_file(redacted, |record| match record.decode(redactor.ids) {
        Some(Record::Utf8 { id, bytes }) if redactor.is_name(id, bytes) => {}
        _ => filter.count(record.body, &mut remains),
    })?;
    for s in &map.segments {
        if let Some(bytes) = redacted.get(s.body as usize..s.end as usize) {
            filter.count(bytes, &mut remains);
        }
    }
    walk_all(redacted, &mut after)?;
    let structure = Structure::read(redacted)?;
    let mut strays = Strays::new(&structure);
    walk_all(redacted, &mut strays)?;
    let mut found = after.found;
    found.strays = strays.found;
    found.differences =
        after.objects.abs_diff(before.objects) + before.hidden.abs_diff(found.arrays);
    drop(filter);
    if !remains.is_empty() {
        forget_what_stays(original, redactor, &mut remains)?;
    }
    found.remains = remains.values().sum();
    Ok(found)
}

/// Removes the findings that the original also has outside of hidden contents: an `int[]` that once held references
/// has the same bytes as an array of references that stays.
fn forget_what_stays(
    original: &[u8],
    redactor: &Redactor,
    found: &mut FxHashMap<u128, u64>,
) -> Result<(), HeaderError> {
    let mut stays = Stays {
        redactor,
        slide: Slide::default(),
        found,
        record: Vec::new(),
    };
    map_file(original, |record| {
        if !matches!(record.decode(redactor.ids), Some(Record::Utf8 { .. })) {
            stays.slide = Slide::default();
            stays.bytes(record.body);
        }
    })?;
    stays.slide = Slide::default();
    walk_all(original, &mut stays)
}

/// Reads the parts of the original that stay readable.
struct Stays<'r> {
    redactor: &'r Redactor,
    slide: Slide,
    found: &'r mut FxHashMap<u128, u64>,
    record: Vec<u8>,
}

impl Stays<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(window) = self.slide.push(*byte) {
                self.found.remove(&window);
            }
        }
    }

    /// Reads a sub-record without its hidden bytes: those that the redactor changes. The record keeps its length.
    fn sub_record(&mut self, at: FileOffset, record: &SubRecord<'_>) {
        let mut bytes = std::mem::take(&mut self.record);
        bytes.clear();
        encode_sub_record(record, self.redactor.ids, &mut bytes);
        let mut redacted = Vec::new();
        match record {
            // The elements of an array are hidden completely, even if a byte of a token happens to equal that of the
            // content; but zeros stay zeros.
            SubRecord::PrimitiveArray(a)
                if self.redactor.hides_array(a) && a.data.iter().any(|b| *b != 0) =>
            {
                self.bytes(&bytes[..bytes.len() - a.data.len()]);
                self.slide = Slide::default();
            }
            _ => match self.redactor.sub_record(at, record, &mut redacted) {
                Edit::Replace => {
                    for (byte, now) in bytes.iter().zip(&redacted) {
                        if byte == now {
                            self.bytes(&[*byte]);
                        } else {
                            self.slide = Slide::default();
                        }
                    }
                }
                Edit::Keep => self.bytes(&bytes),
                Edit::Drop => self.slide = Slide::default(),
            },
        }
        self.record = bytes;
    }
}

impl HeapVisitor for Stays<'_> {
    fn root(&mut self, at: FileOffset, root: Root) {
        self.sub_record(at, &SubRecord::Root(root));
    }
    fn class(&mut self, at: FileOffset, class: &ClassDump<'_>) {
        self.sub_record(at, &SubRecord::Class(*class));
    }
    fn instance(&mut self, at: FileOffset, instance: Instance<'_>) {
        self.sub_record(at, &SubRecord::Instance(instance));
    }
    fn object_array(&mut self, at: FileOffset, array: ObjectArray<'_>) {
        self.sub_record(at, &SubRecord::ObjectArray(array));
    }
    fn primitive_array(&mut self, at: FileOffset, array: PrimitiveArray<'_>) {
        self.sub_record(at, &SubRecord::PrimitiveArray(array));
    }
    fn heap_info(&mut self, at: FileOffset, heap: u32, name: ObjectId) {
        self.sub_record(at, &SubRecord::HeapInfo { heap, name });
    }
}
