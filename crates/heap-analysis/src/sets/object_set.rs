//! A set of objects with a dense number for each member, and helpers of the walks over contents.

use heap_graph::{Bits, ClassIdx, ContentVisitor, Heap, ObjIdx, Slot};
use hprof::{BasicType, IdSize, ObjectId, read_id};
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::sync::LazyLock;
use twox_hash::XxHash3_64;

/// Words of a set that share a count of the members before them: a cache line.
const STRIDE: usize = 8;

/// A set of objects; little more than a bit per object of the heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectSet {
    bits: Bits,
    /// Number of members before each stride of words.
    before: Vec<u64>,
    len: usize,
}

impl ObjectSet {
    /// The set of these objects of a heap with `objects` objects.
    pub(crate) fn new(objects: u64, members: impl Iterator<Item = ObjIdx>) -> ObjectSet {
        let mut bits = Bits::new(objects);
        for member in members {
            bits.insert(member.0);
        }
        let mut count = 0;
        let before = bits.words().chunks(STRIDE).map(|words| {
            let here = count;
            count += words.iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
            here
        });
        ObjectSet {
            before: before.collect(),
            len: count as usize,
            bits,
        }
    }

    /// Bytes that a set of a heap with so many objects takes.
    pub(crate) fn bytes(objects: u64) -> u64 {
        objects / 8 + objects / (8 * STRIDE as u64)
    }

    /// Number of members.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The dense number of a member, in the order of objects.
    #[inline]
    pub(crate) fn rank(&self, object: ObjIdx) -> Option<usize> {
        self.bits.contains(object.0).then(|| {
            let at = (object.0 / 64) as usize;
            let mask = 1u64 << (object.0 % 64);
            let words = self.bits.words();
            let here = (words[at] & (mask - 1)).count_ones();
            let earlier = &words[at / STRIDE * STRIDE..at];
            let earlier: u32 = earlier.iter().map(|w| w.count_ones()).sum();
            (self.before[at / STRIDE] + u64::from(earlier + here)) as usize
        })
    }
}

/// Two visitors in one walk.
pub(crate) struct Both<A, B>(pub(crate) A, pub(crate) B);

impl<A: ContentVisitor, B: ContentVisitor> ContentVisitor for Both<A, B> {
    const INSTANCES: bool = A::INSTANCES || B::INSTANCES;
    const OBJECT_ARRAYS: bool = A::OBJECT_ARRAYS || B::OBJECT_ARRAYS;
    const PRIMITIVE_ARRAYS: bool = A::PRIMITIVE_ARRAYS || B::PRIMITIVE_ARRAYS;

    fn classes(&self) -> Option<Vec<ClassIdx>> {
        match (A::INSTANCES, B::INSTANCES) {
            (false, _) => self.1.classes(),
            (_, false) => self.0.classes(),
            (true, true) => {
                let mut all = self.0.classes()?;
                all.extend(self.1.classes()?);
                Some(all)
            }
        }
    }
    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        self.0.instance(object, class, fields);
        self.1.instance(object, class, fields);
    }
    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        self.0.object_array(object, class, elements);
        self.1.object_array(object, class, elements);
    }
    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        self.0.primitive_array(object, element, len, data);
        self.1.primitive_array(object, element, len, data);
    }
}

/// Concatenates lists. The first one grows, so that at most one other list exists twice at a time.
pub(crate) fn chained<T>(lists: impl Iterator<Item = Vec<T>>) -> Vec<T> {
    lists
        .reduce(|mut all, mut one| {
            all.reserve_exact(one.len());
            all.append(&mut one);
            all
        })
        .unwrap_or_default()
}

/// Splits the visitors of a walk.
pub(crate) fn unzip<A, B>(walked: Vec<Both<A, B>>) -> (Vec<A>, Vec<B>) {
    walked.into_iter().map(|b| (b.0, b.1)).unzip()
}

/// The position of a field in the bytes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: BasicType,
    pub(crate) offset: u32,
}

impl Place {
    /// The most derived field of this name.
    pub(crate) fn of(heap: &Heap, slots: &[Slot], name: &str) -> Option<Place> {
        let slot = slots
            .iter()
            .find(|s| heap.class(s.declared_in).fields[s.field].name == name)?;
        Some(Place {
            kind: slot.kind,
            offset: slot.offset,
        })
    }

    /// The reference there; null if there is none.
    #[inline]
    pub(crate) fn id(self, fields: &[u8], ids: IdSize) -> ObjectId {
        let bytes = fields.get(self.offset as usize..self.offset as usize + ids.bytes());
        match bytes {
            Some(bytes) if self.kind == BasicType::Object => read_id(bytes, ids),
            _ => ObjectId::NULL,
        }
    }

    /// The bits there, zero-extended.
    #[inline]
    pub(crate) fn bits(self, fields: &[u8], ids: IdSize) -> u64 {
        let from = self.offset as usize;
        let bytes = fields.get(from..from + self.kind.size(ids.bytes()));
        bytes
            .unwrap_or_default()
            .iter()
            .fold(0, |n, b| n << 8 | u64::from(*b))
    }

    /// The whole number there, sign-extended.
    pub(crate) fn int(self, fields: &[u8], ids: IdSize) -> i64 {
        let unused = 64 - 8 * self.kind.size(ids.bytes()).min(8) as u32;
        (self.bits(fields, ids) as i64) << unused >> unused
    }
}

/// A hash to compare contents. It differs in each run, so that no file can be crafted to cause collisions.
pub(crate) fn content_hash(tag: u64, bytes: &[u8]) -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    XxHash3_64::oneshot_with_seed(SEED.wrapping_add(tag), bytes)
}

/// A hash that is the same in every run and has no cheap collisions: SipHash with fixed keys.
pub(crate) fn hash_of(tag: u64, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(tag);
    hasher.write(bytes);
    hasher.finish()
}
