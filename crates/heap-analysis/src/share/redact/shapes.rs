//! The classes of a dump as its records declare them.

use hprof::{
    BasicType, ClassDump, FileOffset, HeaderError, HeapVisitor, IdSize, ObjectId, Record, map_file,
    walk_stretch,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The shape of a class in the dump.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) super_class: u64,
    pub(super) fields: Vec<(u64, BasicType)>,
    /// The names and types of static fields.
    pub(super) statics: Vec<(u64, BasicType)>,
    /// Whether the dump has a record of the class.
    pub(super) dumped: bool,
}

impl Shape {
    /// The names and types of all fields that the class declares.
    pub(super) fn members(&self) -> impl Iterator<Item = (u64, BasicType)> + '_ {
        self.fields.iter().chain(&self.statics).copied()
    }

    /// Bytes of the fields that the class declares.
    pub(super) fn bytes(&self, ids: IdSize) -> usize {
        let sizes = self.fields.iter().map(|(_, kind)| kind.size(ids.bytes()));
        sizes.sum()
    }
}

/// Collects the classes, and the ids of the texts that are names.
#[derive(Default)]
pub(super) struct ClassPass {
    pub(super) shapes: FxHashMap<u64, Shape>,
    pub(super) names: FxHashSet<u64>,
}

impl HeapVisitor for ClassPass {
    fn class(&mut self, _: FileOffset, class: &ClassDump<'_>) {
        let shape = self.shapes.entry(class.id.0).or_default();
        shape.dumped = true;
        shape.super_class = class.super_class.0;
        shape.fields = class.fields().map(|(n, k)| (n.0, k)).collect();
        shape.statics = class.statics().map(|(n, v)| (n.0, v.kind)).collect();
        self.names.extend(class.fields().map(|f| f.0.0));
        self.names.extend(class.statics().map(|s| s.0.0));
    }
    fn heap_info(&mut self, _: FileOffset, _: u32, name: ObjectId) {
        self.names.insert(name.0);
    }
}

/// Walks all segments, and resumes after damage at the same offsets as [`hprof::rewrite`].
pub(super) fn walk_all(data: &[u8], visitor: &mut impl HeapVisitor) -> Result<(), HeaderError> {
    let ids = hprof::Header::parse(data)?.id_size;
    let mut classes = FxHashSet::default();
    let map = map_file(data, |record| {
        if let Some(Record::LoadClass { class, .. }) = record.decode(ids) {
            classes.insert(class.0);
        }
    })?;
    let known = |id: u64| classes.is_empty() || classes.contains(&id);
    for s in &map.segments {
        walk_stretch(data, ids, s.into(), &known, visitor);
    }
    Ok(())
}
