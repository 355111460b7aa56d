//! A dump whose top-level records have been read, its objects, and what can be said of it without the graph.

use super::classes::ClassTable;
use super::objects::{self, ObjectPass, Tallies};
use super::symbols::Symbols;
use super::units::{Input, PassResult, run_pass};
use crate::idmap::{FinishedIds, IdSetBuilder};
use crate::layout::{self, SizeRules};
use crate::model::*;
use crate::{Control, HeapError, Options};
use hprof::source::Source;
use hprof::{Bytes, DamageKind, Diagnostic, Diagnostics, FileMap, HeapTag, Stretch, map_file};
use std::collections::BTreeMap;
use std::path::Path;

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

    /// The classes, totals and findings that do not need the graph.
    pub(crate) fn classes(
        &self,
        snapshot: u32,
        objects: &Objects,
        options: &Options,
    ) -> (ClassTable, Summary, Diagnostics) {
        let mut found = Diagnostics::default();
        let mut table = ClassTable::build(
            self.data,
            self.map.header.id_size,
            &self.symbols,
            &objects.tallies,
            &objects.rules,
            options.strength,
            &mut found,
        );
        count_class_objects(&mut table, options.layout);
        let summary = self.summary(snapshot, objects, &table, options);
        note_findings(&mut found, self, objects, options);
        (table, summary, found)
    }

    fn summary(
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
fn count_class_objects(table: &mut ClassTable, model: LayoutModel) {
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

/// Findings about the dump as a whole.
fn note_findings(
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
