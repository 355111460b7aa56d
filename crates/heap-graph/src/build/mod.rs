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
pub(crate) mod objects;
mod output;
pub(crate) mod pairs;
mod platform;
mod references;
mod retained;
mod roots;
mod stack;
mod stacks;
pub(crate) mod symbols;
pub(crate) mod tape;
mod tree;
pub(crate) mod units;
mod varint;

use crate::idmap::{Directory, FinishedIds, IdMap, IdSetBuilder};
use crate::index::{Identity, IndexFile, IndexPlace, IndexWriter, Tag};
use crate::layout::{self, SizeRules};
use crate::model::*;
use crate::options::expected_id_map;
use crate::raw::{Budget, bytes_of, give_large_pieces_back};
use crate::{Control, HeapError, Options};
use classes::ClassTable;
use hprof::source::Source;
use hprof::{
    Bytes, DamageKind, Diagnostic, Diagnostics, FileMap, HeapTag, ObjectId, Stretch, map_file,
};
use objects::{ObjectPass, Tallies};
pub(crate) use roots::is_local;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use symbols::Symbols;
use units::{Input, PassResult, run_pass, units_of};

/// The part of the index that the first screen needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) summary: Summary,
    pub(crate) classes: Vec<ClassInfo>,
    pub(crate) primitive: [u32; 12],
    pub(crate) class_class: u32,
    pub(crate) class_object_size: Vec<u64>,
    pub(crate) objects: u64,
    pub(crate) id_shift: u32,
    /// Class objects: object number and class, by object.
    pub(crate) class_objects: Vec<(u64, u32)>,
    /// The trace serial of all objects, if they have the same.
    pub(crate) one_trace: Option<u32>,
}

/// The part of the index that only later questions need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Detail {
    pub(crate) roots: Vec<RootInfo>,
    pub(crate) threads: Vec<ThreadInfo>,
    /// Trace serial and its frames as numbers into `frames`.
    pub(crate) traces: Vec<(u32, Vec<u32>)>,
    pub(crate) frames: Vec<FrameInfo>,
    /// Android: file offset from which on objects are in this heap.
    pub(crate) heap_switches: Vec<(u64, u32)>,
    pub(crate) heap_names: Vec<(u32, String)>,
    /// References from stacks: thread object, object, kind, frame.
    pub(crate) thread_locals: Vec<(u64, u64, HeapTag, u32)>,
}

/// A dump whose top-level records have been read.
pub(crate) struct Mapped<'a> {
    pub(crate) source: &'a Source,
    pub(crate) data: &'a [u8],
    pub(crate) map: FileMap,
    pub(crate) symbols: Symbols<'a>,
}

/// Reads the top-level records.
pub(crate) fn map<'a>(source: &'a Source, names_only: bool) -> Result<Mapped<'a>, HeapError> {
    let data = source.bytes();
    let mut symbols = Symbols {
        names_only,
        ..Symbols::default()
    };
    let ids = hprof::Header::parse(data)?.id_size;
    let mut map = map_file(data, |record| symbols.visit(record, ids))?;
    symbols.finish();
    map.diagnostics.extend(source.diagnostics().clone());
    map.diagnostics.sort();
    Ok(Mapped {
        source,
        data,
        map,
        symbols,
    })
}

/// The result of the first pass: objects, classes, ids.
pub(crate) struct Objects {
    pub(crate) rules: SizeRules,
    pub(crate) tallies: Tallies,
    pub(crate) ids: FinishedIds,
    pub(crate) pass: PassResult,
}

impl Mapped<'_> {
    /// Fails if the dump changed while it was read.
    pub(crate) fn check(&self, path: &Path) -> Result<(), HeapError> {
        self.source.check().map_err(|why| HeapError::Changed {
            path: path.display().to_string(),
            why,
        })
    }

    /// The requested snapshot, from 0.
    pub(crate) fn choose_snapshot(&self, path: &Path, wanted: u32) -> Result<u32, HeapError> {
        let found = self.map.snapshots;
        let path = path.display().to_string();
        if found == 0 {
            let names = self
                .map
                .records
                .iter()
                .map(|(tag, n)| format!("{n} {}", private_records::record_name(*tag)));
            let found = names.collect::<Vec<_>>().join(", ");
            let found = if found.is_empty() {
                "no record after the header".to_owned()
            } else {
                found
            };
            return Err(HeapError::NoHeap { path, found });
        }
        // The number has already selected a dump of the archive.
        let wanted = match self.source.is_one_of_several() {
            true => 1,
            false => wanted,
        };
        if wanted > found {
            return Err(HeapError::NoSnapshot {
                path,
                found,
                wanted,
            });
        }
        Ok(wanted.saturating_sub(1))
    }

    /// Runs the first pass. It runs again with finer slots if ids are not aligned, and with one worker if two workers
    /// found the same id.
    pub(crate) fn objects(
        &self,
        units: &[Stretch],
        options: &Options,
        control: &Control<'_>,
        with_ids: bool,
        release: Option<&(dyn Fn(u64, u64) + Sync)>,
    ) -> Result<Objects, HeapError> {
        let ids = self.map.header.id_size;
        let mut rules = layout::solve(options.layout, self.data, ids, units);
        if let Some(sizes) = &self.symbols.sizes {
            rules.state(sizes);
        }
        let known_class = |id: u64| self.symbols.knows_class(id);
        let mut shift = rules.shift;
        // The neighbours of objects are found among the ids, unless they are those of the file.
        let with_ids = with_ids || !rules.in_order && rules.model == LayoutModel::Measured;
        let stack_chunk = self.symbols.class_id(b"jdk/internal/vm/StackChunk");
        let mut threads = options.thread_count().min(units.len()).max(1);
        loop {
            let input = Input {
                data: self.data,
                ids,
                known_class: &known_class,
                control: *control,
                read: &|at, out| self.source.read_at(at, out),
                release,
                tuning: &options.tuning,
            };
            let visitors = (0..threads)
                .map(|_| {
                    ObjectPass::new(
                        &rules,
                        with_ids.then(|| IdSetBuilder::new(shift)),
                        stack_chunk,
                    )
                })
                .collect();
            let (passes, pass) = run_pass(&input, "objects", units, visitors)?;
            options.phases.walked(pass.bytes);
            let (mut tallies, sets) = objects::merge(passes);
            if sets.iter().any(IdSetBuilder::misaligned) && shift > 0 {
                shift = 0;
                continue;
            }
            let seen_by_one: u64 = sets.iter().map(IdSetBuilder::duplicates).sum();
            let ids = IdSetBuilder::finish(sets);
            if ids.duplicates > seen_by_one && threads > 1 {
                threads = 1;
                continue;
            }
            match with_ids {
                true => tallies.measure(&ids),
                false => tallies.measure_in_order(),
            }
            return Ok(Objects {
                rules,
                tallies,
                ids,
                pass,
            });
        }
    }

    /// Totals and findings that do not need the graph.
    pub(crate) fn summary(
        &self,
        snapshot: u32,
        objects: &Objects,
        table: &ClassTable,
        options: &Options,
    ) -> Summary {
        let counts = &objects.tallies.counts;
        let records = self.map.records.iter();
        let records = records.map(|(tag, n)| (private_records::record_name(*tag), *n));
        let records: BTreeMap<String, u64> = records.collect();
        let by_tag = |f: &dyn Fn(HeapTag) -> Option<String>| -> BTreeMap<String, u64> {
            HeapTag::ALL
                .iter()
                .filter(|t| counts[**t as usize] > 0)
                .filter_map(|t| Some((f(*t)?, counts[*t as usize])))
                .collect()
        };
        let (confidence, samples) = table.confidence;
        Summary {
            format: self.map.header.format.clone(),
            id_size: self.map.header.id_size.bytes() as u32,
            timestamp_ms: self.map.header.timestamp_ms,
            bytes: self.data.len() as u64,
            snapshot: (snapshot + 1, self.map.snapshots),
            records,
            sub_records: by_tag(&|t| Some(t.hex())),
            gc_roots: by_tag(&|t| t.is_root().then(|| t.name().to_owned())),
            objects: object_counts(&objects.tallies, table),
            shallow: Bytes(
                table.classes.iter().map(|c| c.shallow.0).sum::<u64>()
                    + class_object_bytes(table, options.layout),
            ),
            layout: objects.rules.info(confidence, samples),
            strength: options.strength,
            diagnostics: self.map.diagnostics.clone(),
            skipped: self.map.skipped + objects.pass.skipped,
            duplicate_objects: objects.ids.duplicates,
            from_memory: self.symbols.conservative_locals,
            ..Summary::default()
        }
    }
}

fn object_counts(tallies: &Tallies, table: &ClassTable) -> ObjectCounts {
    let instances = tallies.classes.iter().map(|c| c.instances).sum();
    let object_arrays = tallies.classes.iter().map(|c| c.arrays).sum();
    let primitive_arrays = tallies.primitives.iter().map(|p| p.arrays).sum();
    let classes = table.classes.iter().filter(|c| c.dumped).count() as u64;
    ObjectCounts {
        total: classes + instances + object_arrays + primitive_arrays,
        classes,
        instances,
        object_arrays,
        primitive_arrays,
    }
}

/// Class objects are counted as instances of `java.lang.Class`. In the plain model rows are those of the reference
/// reader: instances and arrays only.
fn class_object_bytes(table: &ClassTable, model: LayoutModel) -> u64 {
    if model != LayoutModel::Plain {
        return 0; // It is already in the row of java.lang.Class.
    }
    class_object_total(table)
}

fn class_object_total(table: &ClassTable) -> u64 {
    table
        .classes
        .iter()
        .zip(&table.class_object_size)
        .filter(|(c, _)| c.dumped)
        .map(|(_, s)| *s)
        .sum()
}

/// Adds class objects to the row of `java.lang.Class`.
pub(crate) fn count_class_objects(table: &mut ClassTable, model: LayoutModel) {
    if model == LayoutModel::Plain {
        return;
    }
    let dumped = table.classes.iter().filter(|c| c.dumped).count() as u64;
    let bytes = class_object_total(table);
    if let Some(row) = table.classes.get_mut(table.class_class as usize) {
        row.objects += dumped;
        row.shallow.0 += bytes;
    }
}

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
    let mut found = Diagnostics::default();
    let mut table = ClassTable::build(
        mapped.data,
        mapped.map.header.id_size,
        &mapped.symbols,
        &objects.tallies,
        &objects.rules,
        options.strength,
        &mut found,
    );
    count_class_objects(&mut table, options.layout);
    let mut summary = mapped.summary(snapshot, &objects, &table, options);
    note_findings(&mut found, mapped, &objects, options);

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
    let job = graph::Job {
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
    let mut class_objects: Vec<(u64, u32)> = table
        .classes
        .iter()
        .enumerate()
        .filter(|(_, c)| c.dumped)
        .filter_map(|(i, c)| Some((map.rank(c.id.0)?, i as u32)))
        .collect();
    class_objects.sort_unstable();
    let meta = Meta {
        summary,
        classes: table.classes,
        primitive: table.primitive,
        class_class: table.class_class,
        class_object_size: table.class_object_size,
        objects: objects.ids.len,
        id_shift: objects.ids.shift,
        class_objects,
        one_trace: objects.tallies.one_trace,
    };
    write_postcard(&mut index, Tag::Meta, &meta)?;
    write_postcard(&mut index, Tag::Detail, &detail)?;
    write_postcard(&mut index, Tag::Groups, &groups)?;
    control.check()?;
    mapped.check(path)?;
    index.finish().map_err(io())
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

/// Findings about the dump as a whole.
pub(crate) fn note_findings(
    found: &mut Diagnostics,
    mapped: &Mapped<'_>,
    objects: &Objects,
    options: &Options,
) {
    let mut note_at = |kind, at, record: &str, text: String| {
        found.push(Diagnostic::new(kind, at, record, "", "", text));
    };
    let counts = &objects.tallies.counts;
    let count = |tag: HeapTag| counts[tag as usize];
    if objects.ids.duplicates > 0 {
        note_at(
            DamageKind::Duplicate,
            objects.tallies.repetitions.first().copied().unwrap_or(0),
            "HEAP_DUMP",
            format!(
                "{} object ids occur more than once; the first of each counts",
                objects.ids.duplicates
            ),
        );
    }
    let mut note = |kind, record: &str, text| note_at(kind, 0, record, text);
    if options.snapshot == 0 && mapped.map.snapshots > 1 {
        note(
            DamageKind::Note,
            "file",
            format!(
                "{} heap dumps in this file; this is #1, name the others FILE#2 ...",
                mapped.map.snapshots
            ),
        );
    }
    let thread_kinds = [
        HeapTag::RootJavaFrame,
        HeapTag::RootJniLocal,
        HeapTag::RootThreadObject,
    ];
    let rooted = HeapTag::ALL.iter().any(|t| t.is_root() && count(*t) > 0);
    if !rooted {
        note(
            DamageKind::Missing,
            "HEAP_DUMP",
            match options.layout {
                LayoutModel::Plain => "there are no GC roots in the dump: nothing is reachable",
                _ => "there are no GC roots in the dump: all objects are counted, and what keeps them alive is unknown",
            }
            .to_owned(),
        );
    } else if count(HeapTag::RootStickyClass) == 0
        && thread_kinds.iter().any(|t| count(*t) > 0)
        && count(HeapTag::RootJavaFrame) == 0
    {
        note(
            DamageKind::Note,
            "HEAP_DUMP",
            "no STICKY_CLASS, JAVA_FRAME or JNI_GLOBAL roots (a dump by jhsdb): objects held only by those look unreachable".to_owned(),
        );
    }
}

/// An id that is not in the dump is not an object.
pub(crate) fn rank(map: &IdMap<'_>, id: ObjectId) -> Option<ObjIdx> {
    if id.is_null() {
        None
    } else {
        map.rank(id.0).map(ObjIdx)
    }
}
