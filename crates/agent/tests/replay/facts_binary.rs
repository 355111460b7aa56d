//! Facts of a binary profile.

use std::collections::HashMap;

use hprof::{
    FileOffset, HeapVisitor, IdSize, Instance, ObjectArray, ObjectId, PrimitiveArray, RawRecord,
    Record, Serial, map_file, readable_class_name, walk_stretch,
};

use super::facts::{Facts, Site, Volume, plain};

/// Names and traces that later records refer to.
#[derive(Default)]
struct Tables {
    names: HashMap<ObjectId, String>,
    classes: HashMap<Serial, String>,
    class_names: HashMap<ObjectId, String>,
    frames: HashMap<ObjectId, String>,
    traces: HashMap<Serial, Vec<String>>,
    /// Where sections begin.
    sections: Vec<(u64, String)>,
}

impl Tables {
    fn name(&self, facts: &mut Facts, id: ObjectId) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| {
            facts.problems.push(format!("no string {id:?}"));
            String::new()
        })
    }

    fn trace(&self, facts: &mut Facts, serial: Serial) -> Vec<String> {
        self.traces.get(&serial).cloned().unwrap_or_else(|| {
            if serial.0 != 300_000 {
                facts.problems.push(format!("no trace {}", serial.0));
            }
            Vec::new()
        })
    }

    fn class(&self, facts: &mut Facts, serial: Serial) -> String {
        self.classes.get(&serial).cloned().unwrap_or_else(|| {
            facts.problems.push(format!("no class {}", serial.0));
            String::new()
        })
    }
}

/// Reads everything, and checks that each record refers to what came before it.
pub(crate) fn read(bytes: &[u8]) -> Facts {
    let mut facts = Facts::default();
    let mut tables = Tables::default();
    if bytes.is_empty() {
        return facts;
    }
    let ids = hprof::Header::parse(bytes).map_or(IdSize::Four, |header| header.id_size);
    let map = match map_file(bytes, |raw| one(&mut facts, &mut tables, raw, ids)) {
        Ok(map) => map,
        Err(error) => {
            facts.problems.push(error.to_string());
            return facts;
        }
    };
    let version = String::from_utf8_lossy(&bytes[..bytes.len().min(18)]).into_owned();
    facts.words.insert(0, format!("{version}, {ids:?}"));
    for diagnostic in map.diagnostics.iter() {
        facts.problems.push(format!("{diagnostic:?}"));
    }
    let dumps = map.segments.iter();
    tables
        .sections
        .extend(dumps.map(|segment| (segment.at.0, "HEAP DUMP".to_owned())));
    tables.sections.sort();
    for (_, name) in &tables.sections {
        facts.section(name);
    }
    let last = map.snapshots.saturating_sub(1);
    for segment in map.snapshot(last) {
        let mut objects = Objects {
            facts: &mut facts,
            tables: &tables,
        };
        let walked = walk_stretch(bytes, ids, segment.into(), &|_| true, &mut objects);
        for diagnostic in walked.diagnostics.iter() {
            facts.problems.push(format!("{diagnostic:?}"));
        }
    }
    facts
}

fn one(facts: &mut Facts, tables: &mut Tables, raw: &RawRecord<'_>, ids: IdSize) {
    let Some(record) = raw.decode(ids) else {
        facts.problems.push(format!("{raw:?}"));
        return;
    };
    let mut section = |name: &str| tables.sections.push((raw.at.0, name.to_owned()));
    match record {
        Record::Utf8 { id, bytes } => {
            let name = hprof::decode_modified_utf8(bytes).into_owned();
            tables.names.insert(id, name);
        }
        Record::LoadClass {
            serial,
            class,
            name,
            ..
        } => {
            let name = plain(&readable_class_name(&tables.name(facts, name)));
            tables.classes.insert(serial, name.clone());
            tables.class_names.insert(class, name);
        }
        Record::UnloadClass { serial } => drop(tables.class(facts, serial)),
        Record::Frame(frame) => {
            let class = tables.class(facts, frame.class);
            let method = tables.name(facts, frame.method);
            let line = match frame.line {
                line @ 1.. => line.to_string(),
                _ => "?".to_owned(),
            };
            tables
                .frames
                .insert(frame.id, format!("{class}.{method}:{line}"));
        }
        Record::Trace { serial, frames, .. } => {
            let name = |id| tables.frames.get(&id).cloned().unwrap_or_default();
            let frames: Vec<String> = frames.into_iter().map(name).collect();
            if frames.iter().any(String::is_empty) {
                facts.problems.push(format!("no frame, trace {}", serial.0));
            }
            tables.traces.insert(serial, frames);
        }
        Record::StartThread { name, .. } => {
            let name = tables.name(facts, name);
            *facts.threads.entry(name).or_default() += 1;
        }
        Record::AllocSites { flags, sites, .. } => {
            section(&format!("SITES flags {flags}"));
            let rows = sites.into_iter().map(|row| Site {
                class: tables.class(facts, row.class),
                frames: tables.trace(facts, row.trace),
                live: volume(row.live_instances, row.live_bytes),
                allocated: volume(row.instances, row.bytes),
            });
            let rows = rows.collect();
            facts.sites.push(rows);
        }
        Record::CpuSamples { total, samples } => {
            section("CPU Samples");
            let rows = samples.into_iter();
            let rows = rows.map(|(count, trace)| (tables.trace(facts, trace), u64::from(count)));
            let rows = rows.collect();
            facts.samples.push((u64::from(total), rows));
        }
        Record::HeapSummary { .. } => section("HEAP SUMMARY"),
        Record::ControlSettings { flags, depth } => {
            facts.words.push(format!("flags {flags}, depth {depth}"));
        }
        Record::HeapDumpEnd => section("HEAP DUMP END"),
        Record::EndThread { .. } => {}
        other => facts.problems.push(format!("{other:?}")),
    }
}

fn volume(objects: u32, bytes: u32) -> Volume {
    Volume {
        objects: u64::from(objects),
        bytes: u64::from(bytes),
    }
}

/// Counts the objects of a heap dump.
struct Objects<'a> {
    facts: &'a mut Facts,
    tables: &'a Tables,
}

impl Objects<'_> {
    fn count(&mut self, class: String, trace: Serial) {
        let frames = self.tables.trace(self.facts, trace);
        self.facts.object(class, frames);
    }

    fn count_of(&mut self, class: ObjectId, trace: Serial) {
        let name = self.tables.class_names.get(&class).cloned();
        let name = name.unwrap_or_else(|| {
            self.facts.problems.push(format!("no class {class:?}"));
            String::new()
        });
        self.count(name, trace);
    }
}

impl HeapVisitor for Objects<'_> {
    fn instance(&mut self, _: FileOffset, one: Instance<'_>) {
        self.count_of(one.class, one.trace);
    }

    fn object_array(&mut self, _: FileOffset, one: ObjectArray<'_>) {
        self.count_of(one.class, one.trace);
    }

    fn primitive_array(&mut self, _: FileOffset, one: PrimitiveArray<'_>) {
        let name = format!("{}[]", format!("{:?}", one.element).to_lowercase());
        self.count(name, one.trace);
    }
}
