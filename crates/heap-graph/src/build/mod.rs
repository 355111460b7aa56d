//! Builds an index from a dump, phase by phase. Each phase frees its memory before the next begins; what later phases
//! need again is read from the index file.
//!
//! 1. map: read the headers of the top-level records, names and stacks ([`symbols`]).
//! 2. objects: ids, number of objects per class, roots, sizes ([`objects`], [`classes`]).
//! 3. references: a row of object numbers per object ([`references`]).
//! 4. search and dominators in pre-order numbers ([`dfs`], [`dominators`]).
//! 5. the dominator tree in pre-order ([`tree`]); retained sizes, per object ([`retained`]), per class and
//!    other group ([`groups`]).
//! 6. the tables of the index ([`output`]).

mod cell;
pub(crate) mod classes;
mod conservative;
mod dfs;
mod dominators;
mod facts;
mod field_layout;
mod graph;
mod groups;
mod id_table;
mod job;
pub(crate) mod mapped;
pub(crate) mod objects;
mod output;
pub(crate) mod pairs;
mod platform;
mod reached;
mod references;
mod retained;
pub(crate) mod roots;
mod stack;
mod stacks;
pub(crate) mod symbols;
pub(crate) mod tape;
mod tree;
pub(crate) mod units;
mod varint;

use crate::idmap::{Directory, IdMap};
use crate::index::{Identity, IndexFile, IndexPlace, IndexWriter, Meta, Tag};
use crate::model::*;
use crate::options::expected_id_map;
use crate::raw::{Budget, bytes_of, give_large_pieces_back};
use crate::{Control, HeapError, Options};
use classes::ClassTable;
use hprof::{DamageKind, Diagnostic};
use mapped::{Mapped, Objects};
use serde::Serialize;
use std::path::Path;
use units::units_of;

/// Builds the index of one snapshot.
pub(crate) fn build(
    mapped: &Mapped<'_>,
    path: &Path,
    place: Option<&(IndexPlace, Identity)>,
    spill: &Path,
    options: &Options,
    control: &Control<'_>,
) -> Result<IndexFile, HeapError> {
    give_large_pieces_back();
    let snapshot = mapped.choose_snapshot(path, options.snapshot)?;
    let units = units_of(mapped.map.snapshot(snapshot));
    let input = units.iter().map(|unit| unit.end - unit.from).sum();
    let arrays = options.array_memory(input)?;
    let budget = Budget::new(arrays, spill, options);
    options.phases.begin("objects");
    let objects = mapped.objects(&units, options, control, true, None)?;
    options.phases.objects(objects.ids.len);
    budget.charge(objects.ids.bytes().saturating_sub(expected_id_map(input)));
    options.phases.begin("classes and roots");
    let (mut table, mut summary, mut found) = mapped.classes(snapshot, &objects, options);

    let ids = &objects.ids;
    let directory = Directory::new(&ids.numbers);
    let map = IdMap::new(ids.shift, ids.len, &ids.blocks, &ids.numbers, &directory);
    let roots = roots::Roots::resolve(mapped, &objects, &table, &map, options.layout, &mut found);
    let mut detail = stacks::detail(mapped, &objects, &roots, &map);
    summary.dangling_roots = roots.dangling;
    summary.no_roots = roots.none || roots.is_empty();

    let io = || HeapError::io("index");
    let mut index = IndexWriter::create(place, &budget).map_err(io())?;
    index
        .section(Tag::IdBlocks, |o| o.write_all(bytes_of(&ids.blocks)))
        .map_err(io())?;
    index
        .section(Tag::IdNumbers, |o| o.write_all(bytes_of(&ids.numbers)))
        .map_err(io())?;

    let class_objects = output::class_object_set(&table, &map);
    let job = job::Job {
        mapped,
        path,
        objects: &objects,
        table: &table,
        map: &map,
        roots: &roots,
        options,
        budget: &budget,
        control,
        class_objects: &class_objects,
    };
    let mut reached = job
        .run(&mut index)
        .map_err(|error| error.with_folder(budget.dir()))?;
    if mapped.symbols.conservative_locals {
        detail.keep_locals(&reached.conservative);
    }
    options.phases.begin("end of the index");
    stacks::find_virtual_threads(
        mapped,
        &table,
        &map,
        &reached.virtual_threads,
        &mut detail,
        &mut summary,
        &mut found,
    );
    let groups = std::mem::take(&mut reached.groups);
    reached.fill(&mut table.classes, &mut summary);
    stacks::android_heaps(mapped, &objects, &table, &mut summary);
    found.extend(objects.pass.diagnostics.clone());
    summary.diagnostics.extend(found);
    add_notes(&mut summary, budget.spilled());
    let meta = meta(table, summary, &objects, &map);
    write_postcard(&mut index, Tag::Meta, &meta)?;
    write_postcard(&mut index, Tag::Detail, &detail)?;
    write_postcard(&mut index, Tag::Groups, &groups)?;
    control.check()?;
    mapped.check(path)?;
    index.finish().map_err(io())
}

/// What the first screen needs.
fn meta(table: ClassTable, summary: Summary, objects: &Objects, map: &IdMap<'_>) -> Meta {
    let dumped = table.classes.iter().zip(0..).filter(|(c, _)| c.dumped);
    let class_objects = dumped.filter_map(|(c, number)| Some((map.rank(c.id.0)?, number)));
    let mut class_objects: Vec<(u64, u32)> = class_objects.collect();
    class_objects.sort_unstable();
    Meta {
        summary,
        classes: table.classes,
        primitive: table.primitive,
        class_class: table.class_class,
        class_object_size: table.class_object_size,
        objects: objects.ids.len,
        id_shift: objects.ids.shift,
        class_objects,
        one_trace: objects.tallies.one_trace,
    }
}

/// Adds what limits the results without being damage.
fn add_notes(summary: &mut Summary, is_spilled: bool) {
    let note =
        |record: &str, text: &str| Diagnostic::new(DamageKind::Note, 0, record, "", "", text);
    if is_spilled {
        let text = "the memory limit was reached: arrays went to temporary files";
        summary.diagnostics.push(note("file", text));
    }
    let all = u128::from(summary.shallow.0);
    let unreachable = all.saturating_sub(u128::from(summary.reachable_shallow.0));
    if summary.diagnostics.any_damage() && unreachable > 0 && unreachable * 4 >= all {
        // Rounded down, so that it is 100 % only if really nothing is reachable.
        let percent = unreachable * 100 / all;
        let text = format!(
            "{percent} % of the bytes are not reachable from a GC root: objects can be unreachable only because records are missing"
        );
        summary.diagnostics.push(note("HEAP_DUMP", &text));
    }
    summary.diagnostics.sort();
}

fn write_postcard(
    index: &mut IndexWriter,
    tag: Tag,
    value: &impl Serialize,
) -> Result<(), HeapError> {
    let bytes = postcard::to_stdvec(value).map_err(|e| HeapError::Io {
        what: "index".to_owned(),
        error: std::io::Error::other(e),
    })?;
    index
        .section(tag, |o| o.write_all(&bytes))
        .map_err(HeapError::io("index"))
}
