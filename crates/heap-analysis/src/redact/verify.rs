//! The second look at a redacted dump: is anything of the original left in it?

use super::Redactor;
use hprof::{
    FileOffset, HeaderError, HeapVisitor, Instance, ObjectArray, PrimitiveArray, Record, Root,
    Stretch, map_file, walk_stretch,
};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Arrays whose elements were to be replaced.
    pub arrays: u64,
    /// Those of four bytes or more (not all zeros) that still have their elements.
    pub unchanged: u64,
    /// Places in the output that hold 16 bytes of an original array: contents of other objects,
    /// texts; names that stay are not searched.
    pub remains: u64,
    /// Objects and roots that the two dumps do not have in common.
    pub differences: u64,
}

impl Verified {
    /// True when nothing of the original is left and nothing is missing.
    pub fn clean(&self) -> bool {
        self.unchanged == 0 && self.remains == 0 && self.differences == 0
    }
}

/// Bytes that are searched for.
const WINDOW: usize = 16;

#[derive(Default)]
struct Original<'r> {
    redactor: Option<&'r Redactor>,
    /// Hash of the contents by id.
    arrays: FxHashMap<u64, u64>,
    windows: FxHashSet<u128>,
    objects: u64,
}

fn hash(data: &[u8]) -> u64 {
    crate::object_set::hash_of(data.len() as u64, data)
}

fn window(data: &[u8]) -> Option<u128> {
    let first = data.first_chunk::<WINDOW>()?;
    // Padding and fill patterns are in every file.
    let kinds: FxHashSet<u8> = first.iter().copied().collect();
    (kinds.len() > 4).then(|| u128::from_be_bytes(*first))
}

impl HeapVisitor for Original<'_> {
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
        if self.redactor.is_none_or(|r| r.hides_array(&a)) {
            self.arrays.insert(a.id.0, hash(a.data));
            self.windows.extend(window(a.data));
        }
    }
}

struct Redacted<'a> {
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
        let Some(before) = self.original.arrays.get(&a.id.0) else {
            return;
        };
        self.found.arrays += 1;
        let matters = a.data.len() >= 4 && a.data.iter().any(|b| *b != 0);
        if matters && hash(a.data) == *before {
            self.found.unchanged += 1;
        }
    }
}

/// A small filter in front of the set of windows.
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

    /// Places in a text that hold one of the windows.
    fn count(&self, data: &[u8]) -> u64 {
        let (mut window, mut found) = (0u128, 0);
        for (n, byte) in data.iter().enumerate() {
            window = window << 8 | u128::from(*byte);
            let (word, bit) = self.place(window);
            if n + 1 >= WINDOW && self.bits[word] & bit != 0 && self.windows.contains(&window) {
                found += 1;
            }
        }
        found
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
    super::walk_all(original, &mut before)?;
    // What stays readable may be in both.
    let mut stays = Stays {
        redactor,
        windows: FxHashSet::default(),
    };
    if !redactor.kept.is_empty() {
        super::walk_all(original, &mut stays)?;
    }
    before.windows.retain(|w| !stays.windows.contains(w));
    let filter = Filter::new(&before.windows);
    let mut after = Redacted {
        original: &before,
        found: Verified::default(),
        objects: 0,
    };
    let mut remains = 0;
    let map = map_file(redacted, |record| {
        match record.decode(redactor.ids) {
            Some(Record::Utf8 { id, .. }) if redactor.is_name(id) => {}
            _ => remains += filter.count(record.body),
        };
    })?;
    for s in &map.segments {
        let all = Stretch {
            from: s.body,
            until: s.end,
            end: s.end,
        };
        walk_stretch(redacted, map.header.id_size, all, &|_| true, &mut after);
        if let Some(bytes) = redacted.get(s.body as usize..s.end as usize) {
            remains += filter.count(bytes);
        }
    }
    let mut found = after.found;
    found.remains = remains;
    found.differences = after.objects.abs_diff(before.objects)
        + (before.arrays.len() as u64).abs_diff(found.arrays);
    Ok(found)
}

/// The windows of arrays that stay readable.
struct Stays<'r> {
    redactor: &'r Redactor,
    windows: FxHashSet<u128>,
}

impl HeapVisitor for Stays<'_> {
    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        if !self.redactor.hides_array(&a) {
            for window in a.data.windows(WINDOW).filter_map(window) {
                self.windows.insert(window);
            }
        }
    }
}
