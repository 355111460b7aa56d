//! The layout of fields in HotSpot since JDK 15: the widest fields first and references last, each in the smallest gap
//! that it fits into, including gaps of superclasses (`FieldLayoutBuilder::compute_regular_layout`). Until JDK 14 the
//! fields of a class began after those of its superclass.

use super::platform::{Fields, PADDING};
use crate::layout::{SizeRules, up};
use hprof::BasicType;
use std::cmp::Reverse;

/// Gaps that are remembered. Real classes have one or two; a crafted chain of classes must not create more.
const HOLES: usize = 8;

/// The used bytes of an object.
#[derive(Clone, Debug)]
pub(super) struct FieldLayout {
    end: u64,
    /// Offset and length, ascending.
    holes: Vec<(u64, u64)>,
    /// If a superclass has contended fields: the offset at which the fields of a subclass begin. Each subclass then has
    /// padding before its fields.
    behind_padding: Option<u64>,
}

impl FieldLayout {
    /// All bytes up to the end are used.
    pub(super) fn full(end: u64) -> FieldLayout {
        FieldLayout {
            end,
            holes: Vec::new(),
            behind_padding: None,
        }
    }

    /// All bytes up to the end are used, the last of them by padding.
    pub(super) fn padded(end: u64) -> FieldLayout {
        FieldLayout {
            behind_padding: Some(end),
            ..FieldLayout::full(end)
        }
    }

    /// Bytes of an object before the final rounding.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds the fields of one class.
    pub(super) fn add(&mut self, fields: &Fields, rules: &SizeRules) {
        let size = |kind: &BasicType| (*kind == BasicType::Object, rules.field(*kind));
        let mut sizes: Vec<(bool, u64)> = fields.ordinary.iter().map(size).collect();
        sizes.sort_unstable_by_key(|(is_reference, size)| (*is_reference, Reverse(*size)));
        if let Some(start) = self.behind_padding {
            let place = |end, (_, size): &(bool, u64)| up(end, *size) + size;
            self.end = sizes.iter().fold(start, place);
            if self.end > start {
                self.behind_padding = Some(self.end + PADDING);
            }
        } else {
            for (_, size) in sizes {
                self.place(size);
            }
        }
        if !fields.contended.is_empty() {
            *self = FieldLayout::padded(fields.contended_end(self.end, rules));
        }
    }

    fn place(&mut self, size: u64) {
        let fits = |(_, hole): &(usize, &(u64, u64))| up(hole.0, size) + size <= hole.0 + hole.1;
        let holes = self.holes.iter().enumerate().filter(fits);
        let best = holes.min_by_key(|(n, hole)| (hole.1, Reverse(*n)));
        let Some(n) = best.map(|(n, _)| n) else {
            let at = up(self.end, size);
            self.hole(self.end, at - self.end);
            self.end = at + size;
            return;
        };
        let (from, len) = self.holes.remove(n);
        let at = up(from, size);
        self.hole(from, at - from);
        self.hole(at + size, from + len - at - size);
    }

    fn hole(&mut self, from: u64, len: u64) {
        if len > 0 && self.holes.len() < HOLES {
            let at = self.holes.partition_point(|hole| hole.0 < from);
            self.holes.insert(at, (from, len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BasicType::{Boolean, Byte, Int, Long, Object, Short};

    fn end(header: u64, reference: u64, classes: &[&[BasicType]]) -> u64 {
        let rules = SizeRules::with(header, reference);
        let mut layout = FieldLayout::full(header);
        for fields in classes {
            layout.add(&ordinary(fields), &rules);
        }
        layout.end()
    }

    fn ordinary(fields: &[BasicType]) -> Fields {
        Fields {
            ordinary: fields.to_vec(),
            ..Fields::default()
        }
    }

    /// Computed by hand from the rules; the matrix of the command line's tests compares with JVMs.
    #[test]
    fn holes_are_filled_also_those_of_superclasses_since_jdk_15() {
        for (header, reference, classes, want) in [
            // The int comes before the long, in whichever class it is.
            (12, 4, &[&[Long, Int][..]][..], 24),
            (12, 4, &[&[Long], &[Int]], 24),
            (12, 4, &[&[Boolean], &[Boolean, Short]], 16),
            (12, 4, &[&[Byte, Object], &[Int]], 24),
            (12, 8, &[&[Boolean, Object], &[Short], &[Byte]], 24),
            (16, 8, &[&[Boolean, Object], &[Int]], 32),
            // Compact headers, JDK 24 and later.
            (8, 4, &[&[Long, Object], &[Byte]], 21),
        ] {
            assert_eq!(
                end(header, reference, classes),
                want,
                "{header} {reference} {classes:?}"
            );
        }
    }

    /// A JDK 17 says 280 for `java.util.concurrent.atomic.Striped64$Cell`. A thread has 368 bytes there,
    /// and 376, 520 and 656 when classes with a boolean, an int and a long, a short and an object follow.
    #[test]
    fn contended_fields_have_padding_on_both_sides_and_each_subclass_has_it_again() {
        let rules = SizeRules::with(12, 4);
        let mut layout = FieldLayout::full(12);
        let contended = |contended: &[BasicType]| Fields {
            contended: contended.to_vec(),
            ..Fields::default()
        };
        layout.add(&contended(&[Long]), &rules);
        assert_eq!(layout.end(), 280);
        let mut layout = FieldLayout::full(96);
        layout.add(&contended(&[Long, Int, Int]), &rules);
        assert_eq!(layout.end(), 368);
        let below = [&[Boolean][..], &[Int, Long], &[Short, Object], &[]];
        for (fields, size) in below.into_iter().zip([376, 520, 656, 784]) {
            layout.add(&ordinary(fields), &rules);
            assert_eq!(up(layout.end(), 8), size, "{fields:?}");
        }
    }

    #[test]
    fn a_long_chain_of_classes_has_few_holes() {
        let rules = SizeRules::with(12, 4);
        let mut layout = FieldLayout::full(12);
        for _ in 0..30_000 {
            layout.add(&ordinary(&[Byte, Long]), &rules);
        }
        assert!(layout.holes.len() <= HOLES);
    }
}
