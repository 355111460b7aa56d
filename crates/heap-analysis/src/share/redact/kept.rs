//! The strings and arrays that `keep` leaves readable.

use super::places::{Places, nearest};
use super::redactor::Redactor;
use super::shapes::{Shape, walk_all};
use crate::compare::identity::matches_any;
use hprof::{
    BasicType, FileOffset, HeaderError, HeapVisitor, IdSize, Instance, PrimitiveArray,
    hides_sub_record, map_file,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Collects the objects that instances of certain classes, or certain instances, refer to.
struct ReferencePass<'a> {
    ids: IdSize,
    references: &'a Places,
    wanted: &'a dyn Fn(&Instance<'_>) -> bool,
    found: FxHashSet<u64>,
}

impl HeapVisitor for ReferencePass<'_> {
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        if !(self.wanted)(&i) {
            return;
        }
        for place in self.references.in_instance(i.class.0, i.fields.len()) {
            let end = place.offset + self.ids.bytes();
            if let Some(bytes) = i.fields.get(place.offset..end) {
                self.found.insert(hprof::read_id(bytes, self.ids).0);
            }
        }
    }
}

/// Finds arrays that are too long, so that they contain the objects after them.
struct LongPass<'a> {
    data: &'a [u8],
    ids: IdSize,
    /// The offsets where segments end.
    ends: Vec<u64>,
    classes: &'a FxHashMap<u64, Shape>,
    kept: &'a FxHashSet<u64>,
    found: Vec<u64>,
}

impl HeapVisitor for LongPass<'_> {
    fn primitive_array(&mut self, at: FileOffset, a: PrimitiveArray<'_>) {
        if !self.kept.contains(&a.id.0) {
            return;
        }
        let from = at.0 + self.ids.bytes() as u64 + 10;
        let to = from + a.data.len() as u64;
        let end = self.ends.partition_point(|end| *end < to);
        let end = self
            .ends
            .get(end)
            .map_or(self.data.len() as u64, |end| *end);
        let known = |class| self.classes.contains_key(&class);
        if hides_sub_record(self.data, self.ids, from..to, end, &known) {
            self.found.push(a.id.0);
        }
    }
}

impl Redactor {
    /// Strings and arrays that the fields of kept classes refer to, and the arrays of the strings.
    pub(super) fn kept_of(
        &self,
        data: &[u8],
        shapes: &FxHashMap<u64, Shape>,
    ) -> Result<FxHashSet<u64>, HeaderError> {
        let is_kept = |_, shape: &Shape| matches_any(&self.keep, &shape.name);
        let of_class = nearest(shapes, self.ids, is_kept);
        let is_reference = |_, kind| (kind == BasicType::Object).then_some(false);
        let of_shape = |shape: &Shape| shape.places(self.ids, is_reference);
        let references = &Places::new(shapes, self.ids, of_shape);
        let structure = self.structure.as_ref();
        let is_whole = |i: &Instance<'_>| structure.is_none_or(|s| s.is_whole(i));
        let mut first = ReferencePass {
            ids: self.ids,
            references,
            wanted: &|i| of_class.contains_key(&i.class.0) && is_whole(i),
            found: FxHashSet::default(),
        };
        walk_all(data, &mut first)?;
        let held = first.found;
        let is_string = |class: u64| {
            shapes
                .get(&class)
                .is_some_and(|s| s.name == "java.lang.String")
        };
        let mut second = ReferencePass {
            ids: self.ids,
            references,
            wanted: &|i| is_string(i.class.0) && held.contains(&i.id.0) && is_whole(i),
            found: FxHashSet::default(),
        };
        walk_all(data, &mut second)?;
        let mut kept = second.found;
        kept.extend(held);
        let mut ends: Vec<u64> = map_file(data, |_| {})?
            .segments
            .iter()
            .map(|s| s.end)
            .collect();
        ends.sort_unstable();
        let mut third = LongPass {
            data,
            ids: self.ids,
            ends,
            classes: shapes,
            kept: &kept,
            found: Vec::new(),
        };
        walk_all(data, &mut third)?;
        for array in third.found {
            kept.remove(&array);
        }
        Ok(kept)
    }
}
