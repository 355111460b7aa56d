//! The offsets of certain fields in the instances of each class.
//!
//! A chain of superclasses may be as long as a dump has classes, so each class stores only the fields that it
//! declares, and the nearest superclass that has such fields.

use super::shapes::Shape;
use hprof::{BasicType, IdSize};
use rustc_hash::FxHashMap;

/// Offset and type of a field; whether it is the hash of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldPlace {
    pub(super) offset: usize,
    pub(super) kind: BasicType,
    pub(super) hash: bool,
}

impl Shape {
    /// The offsets of those fields for which `pick` returns a value: whether the field is the hash of a string.
    pub(super) fn places(
        &self,
        ids: IdSize,
        pick: impl Fn(u64, BasicType) -> Option<bool>,
    ) -> Vec<FieldPlace> {
        let (mut places, mut offset) = (Vec::new(), 0);
        for (name, kind) in &self.fields {
            places.extend(pick(*name, *kind).map(|hash| FieldPlace {
                offset,
                kind: *kind,
                hash,
            }));
            offset += kind.size(ids.bytes());
        }
        places
    }
}

/// A class, and the size of the fields that precede those it declares.
type Above = (u64, usize);

struct Class {
    /// The fields that the class declares, with offsets from its first field.
    own: Vec<FieldPlace>,
    next: Option<Above>,
}

/// Certain fields of all classes.
#[derive(Default)]
pub(super) struct Places {
    first: FxHashMap<u64, Above>,
    classes: FxHashMap<u64, Class>,
}

impl Places {
    /// `own` picks the fields among those that each class declares.
    pub(super) fn new(
        shapes: &FxHashMap<u64, Shape>,
        ids: IdSize,
        own: impl Fn(&Shape) -> Vec<FieldPlace>,
    ) -> Places {
        let own: FxHashMap<u64, Vec<FieldPlace>> = shapes
            .iter()
            .map(|(id, shape)| (*id, own(shape)))
            .filter(|(_, own)| !own.is_empty())
            .collect();
        let first = nearest(shapes, ids, |class, _| own.contains_key(&class));
        let with_next = |(class, own)| {
            let next = shapes.get(&class).and_then(|shape| {
                let (above, offset) = first.get(&shape.super_class)?;
                Some((*above, offset + shape.bytes(ids)))
            });
            (class, Class { own, next })
        };
        Places {
            classes: own.into_iter().map(with_next).collect(),
            first,
        }
    }

    /// The fields in the first `len` bytes of an instance's fields.
    pub(super) fn in_instance(
        &self,
        class: u64,
        len: usize,
    ) -> impl Iterator<Item = FieldPlace> + '_ {
        let first = self.first.get(&class).copied();
        let next = move |(class, offset): &Above| {
            let (above, more) = self.classes.get(class)?.next?;
            Some((above, offset + more))
        };
        // A class that declares fields takes at least one byte, so this also ends for a cycle of classes.
        std::iter::successors(first, next)
            .take_while(move |(_, offset)| *offset < len)
            .flat_map(|(class, offset)| {
                let own = self.classes.get(&class).map(|class| &class.own[..]);
                own.unwrap_or_default().iter().map(move |place| FieldPlace {
                    offset: offset + place.offset,
                    ..*place
                })
            })
    }
}

/// For each class, the nearest wanted class among itself and its superclasses.
pub(super) fn nearest(
    shapes: &FxHashMap<u64, Shape>,
    ids: IdSize,
    is_wanted: impl Fn(u64, &Shape) -> bool,
) -> FxHashMap<u64, Above> {
    let mut known: FxHashMap<u64, Option<Above>> = FxHashMap::default();
    let mut path = Vec::new();
    for start in shapes.keys() {
        let (mut at, mut found) = (*start, None);
        while let Some(shape) = shapes.get(&at) {
            if let Some(above) = known.get(&at) {
                found = *above;
                break;
            }
            // A class that is visited twice closes a cycle without a wanted class.
            known.insert(at, None);
            if is_wanted(at, shape) {
                found = Some((at, 0));
                known.insert(at, found);
                break;
            }
            path.push((at, shape.bytes(ids)));
            at = shape.super_class;
        }
        for (class, bytes) in path.drain(..).rev() {
            found = found.map(|(above, offset)| (above, offset + bytes));
            known.insert(class, found);
        }
    }
    let found = known.into_iter();
    found
        .filter_map(|(class, above)| Some((class, above?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(super_class: u64, fields: &[BasicType]) -> Shape {
        Shape {
            name: String::new(),
            super_class,
            fields: fields.iter().map(|kind| (0, *kind)).collect(),
            statics: Vec::new(),
            dumped: true,
        }
    }

    /// The `char` fields.
    fn chars(shape: &Shape) -> Vec<FieldPlace> {
        shape.places(IdSize::Eight, |_, kind| {
            (kind == BasicType::Char).then_some(false)
        })
    }

    fn offsets(shapes: &FxHashMap<u64, Shape>, class: u64, len: usize) -> Vec<usize> {
        let places = Places::new(shapes, IdSize::Eight, chars);
        let all = places.in_instance(class, len);
        all.map(|place| place.offset).collect()
    }

    #[test]
    fn fields_of_superclasses_come_behind_those_of_the_class() {
        use BasicType::{Char, Int, Long};
        let shapes = FxHashMap::from_iter([
            (1, shape(0, &[Int, Char])),
            (2, shape(1, &[Long])),
            (3, shape(2, &[Char, Char])),
            (4, shape(3, &[])),
        ]);
        assert_eq!(offsets(&shapes, 1, 6), [4]);
        assert_eq!(offsets(&shapes, 2, 14), [12]);
        assert_eq!(offsets(&shapes, 4, 18), [0, 2, 16]);
        assert!(offsets(&shapes, 9, 18).is_empty());
    }

    #[test]
    fn a_chain_of_60000_superclasses_hides_its_last_field() {
        let mut shapes = FxHashMap::from_iter([(1, shape(0, &[BasicType::Char]))]);
        for class in 2..=60_000 {
            shapes.insert(class, shape(class - 1, &[BasicType::Byte]));
        }
        assert_eq!(offsets(&shapes, 60_000, 60_001), [59_999]);
    }

    #[test]
    fn classes_in_a_circle_end_with_the_instance() {
        use BasicType::{Byte, Char};
        let shapes = FxHashMap::from_iter([
            (1, shape(2, &[Char])),
            (2, shape(1, &[Byte])),
            (3, shape(3, &[])),
        ]);
        assert_eq!(offsets(&shapes, 2, 8), [1, 4, 7]);
        assert!(offsets(&shapes, 3, 8).is_empty());
    }
}
