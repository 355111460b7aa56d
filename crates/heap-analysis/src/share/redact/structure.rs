//! The ids that a dump defines: objects, classes, texts, frames. In a damaged dump a record can be too long, so that
//! its references and fields are the contents of the arrays after it. An id that the dump does not define is therefore
//! not a reference, and is not copied.

use super::places::{FieldPlace, Places};
use super::shapes::{ClassPass, Shape, walk_all};
use super::texts::Texts;
use hprof::{
    BasicType, ClassDump, FileOffset, HeaderError, HeapVisitor, IdSize, Instance, ObjectArray,
    ObjectId, PrimitiveArray, Root, SubRecord, encode_sub_record,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of ids: 512 bits for each range of addresses with an object.
#[derive(Default)]
struct Ids(FxHashMap<u64, [u64; 8]>);

impl Ids {
    /// Addresses are multiples of 8: the low bits move to the top, so that the others are dense.
    fn place(id: u64) -> (u64, usize, u64) {
        let turned = id.rotate_right(3);
        (turned >> 9, (turned >> 6 & 7) as usize, 1 << (turned & 63))
    }

    fn insert(&mut self, id: u64) {
        let (stretch, word, bit) = Self::place(id);
        self.0.entry(stretch).or_default()[word] |= bit;
    }

    fn has(&self, id: u64) -> bool {
        let (stretch, word, bit) = Self::place(id);
        self.0.get(&stretch).is_some_and(|b| b[word] & bit != 0)
    }
}

/// The structure of a dump.
pub(super) struct Structure {
    ids: IdSize,
    objects: Ids,
    /// Bytes of an instance's fields, by class; `None` when a superclass is missing.
    sizes: FxHashMap<u64, Option<usize>>,
    /// The reference fields of instances.
    references: Places,
    texts: FxHashSet<u64>,
    /// Number of objects whose fields do not fit their class, or whose class is unknown.
    pub(super) cleared: u64,
}

/// Collects the objects whose class is known.
struct ObjectPass<'s>(&'s mut Structure);

impl HeapVisitor for ObjectPass<'_> {
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        if self.0.has_class(i.class) {
            self.0.objects.insert(i.id.0);
        }
        self.0.cleared += u64::from(!self.0.is_whole(&i));
    }
    fn object_array(&mut self, _: FileOffset, a: ObjectArray<'_>) {
        match self.0.has_class(a.class) {
            true => self.0.objects.insert(a.id.0),
            false => self.0.cleared += 1,
        }
    }
    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        self.0.objects.insert(a.id.0);
    }
}

impl Structure {
    /// Reads the objects of a dump whose classes and texts are known already.
    pub(super) fn new(
        data: &[u8],
        ids: IdSize,
        shapes: &FxHashMap<u64, Shape>,
        texts: FxHashSet<u64>,
    ) -> Result<Structure, HeaderError> {
        let is_reference = |_, kind| (kind == BasicType::Object).then_some(false);
        let mut structure = Structure {
            ids,
            objects: Ids::default(),
            sizes: sizes(shapes, ids),
            references: Places::new(shapes, ids, |shape| shape.places(ids, is_reference)),
            texts,
            cleared: 0,
        };
        for class in shapes.keys() {
            structure.objects.insert(*class);
        }
        walk_all(data, &mut ObjectPass(&mut structure))?;
        Ok(structure)
    }

    /// Reads all of a dump.
    pub(super) fn read(data: &[u8]) -> Result<Structure, HeaderError> {
        let (texts, ids) = Texts::read(data)?;
        let mut pass = ClassPass::default();
        walk_all(data, &mut pass)?;
        for (class, _) in &texts.loaded {
            pass.shapes.entry(*class).or_default();
        }
        let texts = texts.by_id.keys().copied().collect();
        Structure::new(data, ids, &pass.shapes, texts)
    }

    /// Whether records of this class are written.
    pub(super) fn has_class(&self, class: ObjectId) -> bool {
        self.sizes.contains_key(&class.0)
    }

    /// Whether an id is null or that of an object or class.
    pub(super) fn has(&self, id: ObjectId) -> bool {
        id.is_null() || self.objects.has(id.0)
    }

    /// The id of a text, or null.
    pub(super) fn text(&self, id: ObjectId) -> ObjectId {
        if self.texts.contains(&id.0) {
            id
        } else {
            ObjectId::NULL
        }
    }

    fn is_reference(&self, bytes: &[u8]) -> bool {
        self.has(hprof::read_id(bytes, self.ids))
    }

    /// Clears a reference to an id that the dump does not define.
    fn clear(&self, bytes: &mut [u8]) {
        if !self.is_reference(bytes) {
            bytes.fill(0);
        }
    }

    fn references_of(&self, class: ObjectId, len: usize) -> impl Iterator<Item = FieldPlace> {
        self.references.in_instance(class.0, len)
    }

    /// Whether the fields of an instance fit its class.
    pub(super) fn is_whole(&self, i: &Instance<'_>) -> bool {
        self.sizes.get(&i.class.0) == Some(&Some(i.fields.len()))
    }

    /// Clears invalid references in the fields of an instance of a known class, and all fields if they do not fit this
    /// class.
    pub(super) fn clear_fields(&self, i: &Instance<'_>, fields: &mut [u8]) {
        if !self.is_whole(i) {
            fields.fill(0);
            return;
        }
        for place in self.references_of(i.class, fields.len()) {
            if let Some(bytes) = fields.get_mut(place.offset..place.offset + self.ids.bytes()) {
                self.clear(bytes);
            }
        }
    }

    /// Clears invalid references among the elements of an array.
    pub(super) fn clear_elements(&self, elements: &mut [u8]) {
        for element in elements.chunks_exact_mut(self.ids.bytes()) {
            self.clear(element);
        }
    }

    /// Clears invalid references and names in an encoded class.
    pub(super) fn clear_class(&self, class: &ClassDump<'_>, record: &mut [u8]) {
        let width = self.ids.bytes();
        // Tag, id and serial; superclass, loader, signers, domain and two reserved ids.
        let mut at = 1 + width + 4;
        for _ in 0..6 {
            self.clear(&mut record[at..at + width]);
            at += width;
        }
        at += 4 + 2;
        for (_, value) in class.constants() {
            at = self.clear_value(record, at + 2, value.kind);
        }
        at += 2;
        for (_, value) in class.statics() {
            self.clear_name(&mut record[at..at + width]);
            at = self.clear_value(record, at + width, value.kind);
        }
        at += 2;
        for _ in class.fields() {
            self.clear_name(&mut record[at..at + width]);
            at += width + 1;
        }
    }

    fn clear_name(&self, bytes: &mut [u8]) {
        if self.text(hprof::read_id(bytes, self.ids)).is_null() {
            bytes.fill(0);
        }
    }

    /// Clears an invalid reference in a pair of a type and a value; returns the offset after it.
    fn clear_value(&self, record: &mut [u8], at: usize, kind: BasicType) -> usize {
        let end = at + 1 + kind.size(self.ids.bytes());
        if kind == BasicType::Object {
            self.clear(&mut record[at + 1..end]);
        }
        end
    }
}

/// Bytes of an instance's fields, including those of superclasses.
fn sizes(shapes: &FxHashMap<u64, Shape>, ids: IdSize) -> FxHashMap<u64, Option<usize>> {
    let mut sizes: FxHashMap<u64, Option<usize>> = FxHashMap::default();
    let mut path = Vec::new();
    for start in shapes.keys() {
        let mut at = *start;
        let mut sum = loop {
            if at == 0 {
                break Some(0);
            }
            if let Some(size) = sizes.get(&at) {
                break *size;
            }
            let Some(shape) = shapes.get(&at).filter(|shape| shape.dumped) else {
                break None;
            };
            // Classes that form a cycle have no size.
            sizes.insert(at, None);
            path.push((at, shape.bytes(ids)));
            at = shape.super_class;
        };
        for (class, own) in path.drain(..).rev() {
            sum = sum.and_then(|sum| usize::checked_add(sum, own));
            sizes.insert(class, sum);
        }
        sizes.entry(*start).or_default();
    }
    sizes
}

/// Counts records with references to ids that the dump does not define.
pub(super) struct Strays<'s> {
    structure: &'s Structure,
    pub(super) found: u64,
}

impl<'s> Strays<'s> {
    pub(super) fn new(structure: &'s Structure) -> Strays<'s> {
        Strays {
            structure,
            found: 0,
        }
    }

    fn note(&mut self, is_stray: bool) {
        self.found += u64::from(is_stray);
    }
}

impl HeapVisitor for Strays<'_> {
    fn root(&mut self, _: FileOffset, root: Root) {
        self.note(!self.structure.has(root.object));
    }
    fn class(&mut self, _: FileOffset, class: &ClassDump<'_>) {
        let (mut record, mut cleared) = (Vec::new(), Vec::new());
        encode_sub_record(&SubRecord::Class(*class), self.structure.ids, &mut record);
        cleared.clone_from(&record);
        self.structure.clear_class(class, &mut cleared);
        self.note(record != cleared);
    }
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        let structure = self.structure;
        let width = structure.ids.bytes();
        let mut places = structure.references_of(i.class, i.fields.len());
        let is_clean = match structure.is_whole(&i) {
            true => places.all(|place| {
                let bytes = i.fields.get(place.offset..place.offset + width);
                bytes.is_none_or(|bytes| structure.is_reference(bytes))
            }),
            false => structure.has_class(i.class) && i.fields.iter().all(|b| *b == 0),
        };
        self.note(!is_clean);
    }
    fn object_array(&mut self, _: FileOffset, a: ObjectArray<'_>) {
        let structure = self.structure;
        let mut elements = a.elements.chunks_exact(structure.ids.bytes());
        let is_clean = structure.has_class(a.class) && elements.all(|e| structure.is_reference(e));
        self.note(!is_clean);
    }
    fn heap_info(&mut self, _: FileOffset, _: u32, name: ObjectId) {
        self.note(self.structure.text(name) != name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_in_the_set_only_if_it_was_added() {
        let mut set = Ids::default();
        let ids = [1, 7, 8, 0x7000_0008, 0x61_0062_0063_0064, u64::MAX];
        for id in ids {
            assert!(!set.has(id));
            set.insert(id);
            assert!(set.has(id));
        }
        assert!(!set.has(2) && !set.has(0x7000_0010) && !set.has(u64::MAX - 1));
    }

    #[test]
    fn a_class_without_its_superclass_or_in_a_circle_has_no_size() {
        let shape = |super_class, fields: &[BasicType]| Shape {
            name: String::new(),
            super_class,
            fields: fields.iter().map(|kind| (0, *kind)).collect(),
            statics: Vec::new(),
            dumped: true,
        };
        use BasicType::{Int, Object};
        let shapes = FxHashMap::from_iter([
            (1, shape(0, &[])),
            (2, shape(1, &[Int, Object])),
            (3, shape(2, &[Object])),
            (4, shape(99, &[Int])),
            (5, shape(6, &[Int])),
            (6, shape(5, &[Int])),
            (7, Shape::default()),
        ]);
        let found = sizes(&shapes, IdSize::Eight);
        let of = |class| found.get(&class).copied().flatten();
        assert_eq!((of(1), of(2), of(3)), (Some(0), Some(12), Some(20)));
        assert_eq!((of(4), of(5), of(6), of(7)), (None, None, None, None));
        assert!(found.contains_key(&7) && !found.contains_key(&99));
    }
}
