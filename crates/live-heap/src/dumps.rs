//! The dumps of a stream: objects of the heap, single objects, and monitors in use.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use vmpi::dump::heap::{decode, decode_ids};
use vmpi::dump::monitor::{MonitorName, decode as decode_monitors};
use vmpi::dump::{
    HeapRecord, IdLayout, MonitorRecord, RootKind, Shapes, Types, field_values, types_of,
};
use vmpi::vm_event::thread_status;
use vmpi::{BasicType, DumpLevel, EnvId, HeapDump, MonitorDump, ObjectAlloc, ObjectHandle, Value};

use crate::heap::LiveHeap;
use crate::names::Room;

/// The most dumps of each kind that are kept; the last ones are kept.
const KEPT: usize = 100;
/// Bytes of text of all monitor dumps that are kept: a stream can refer to the name of a thread or a method with a few
/// bytes, any number of times.
const TEXT: usize = 64 << 20;
/// Bytes of text of an object dump.
const TEXT_OF_OBJECT: usize = 256 << 10;
/// The most objects that may be described for one monitor dump.
const DESCRIBED: usize = 1 << 16;

/// Where in the stream a dump stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Bytes allocated by then.
    pub at_bytes: u64,
    /// The stream's clock.
    pub ns: u64,
    /// Collections finished by then.
    pub collections: u32,
}

/// One heap dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapDumpRow {
    /// When.
    pub moment: Moment,
    /// How much it contains: 0 ids, 1 references, 2 values.
    pub level: u8,
    /// Its bytes.
    pub bytes: u64,
    /// Objects in it, class objects among them.
    pub objects: u64,
    /// Class objects.
    pub class_objects: u64,
    /// Objects that the stream had reported by then.
    pub reported: u64,
    /// Roots by kind.
    pub roots: BTreeMap<&'static str, u64>,
    /// What is wrong with its bytes; the numbers are about what comes before.
    pub damage: Option<String>,
}

/// Objects of one class in the last heap dump of level 1 or 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DumpedClass {
    /// The class.
    pub class: String,
    /// How many.
    pub objects: u64,
    /// Of these, objects that the stream had reported by then.
    pub reported: u64,
    /// Bytes of the instances, as the VM reports; 0 for arrays, whose headers a dump does not have.
    pub instance_bytes: u64,
    /// Elements of the arrays.
    pub elements: u64,
}

/// One dump of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectDumpRow {
    /// When.
    pub moment: Moment,
    /// The object, in hexadecimal.
    pub id: String,
    /// Its class.
    pub class: String,
    /// The fields that its class declares, or the static ones of a class; those of superclasses are
    /// not among them.
    pub fields: Vec<DumpedField>,
    /// Fields not listed: there is too much text.
    pub omitted_fields: u64,
    /// Elements of an array.
    pub elements: Option<u64>,
}

/// A field and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DumpedField {
    /// Its name.
    pub name: String,
    /// Its value; a reference is an id in hexadecimal, or null.
    pub value: String,
}

/// One monitor dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MonitorDumpRow {
    /// When.
    pub moment: Moment,
    /// Monitors in use.
    pub monitors: Vec<MonitorRow>,
    /// All threads.
    pub threads: Vec<ThreadRow>,
    /// Monitors, threads and frames not listed: there is too much text.
    pub omitted: u64,
    /// Bytes of text.
    #[serde(skip)]
    text: usize,
    /// What is wrong with its bytes; the monitors are those that come before.
    pub damage: Option<String>,
}

/// A monitor in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MonitorRow {
    /// The object, or the raw monitor, in hexadecimal.
    pub id: String,
    /// The object's class, "raw monitor" for one that is none of the language.
    pub class: String,
    /// The thread that owns it.
    pub owner: Option<String>,
    /// How often the owner entered it.
    pub entry_count: u32,
    /// Threads that wait to enter.
    pub entering: Vec<String>,
    /// Threads that wait to be notified.
    pub waiting: Vec<String>,
}

/// A thread in a monitor dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadRow {
    /// Its name.
    pub name: String,
    /// What it does: runnable, enters a monitor, waits.
    pub status: &'static str,
    /// Its stack, innermost first.
    pub frames: Vec<String>,
}

/// All dumps so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dumps {
    /// Heap dumps, the last 100.
    pub heap: Vec<HeapDumpRow>,
    /// The classes of the last heap dump of level 1 or 2, most objects first.
    pub classes: Vec<DumpedClass>,
    /// Classes not listed.
    pub omitted_classes: u64,
    /// Object dumps, the last 100.
    pub objects: Vec<ObjectDumpRow>,
    /// Monitor dumps, the last 100.
    pub monitors: Vec<MonitorDumpRow>,
    /// Dumps not kept.
    pub omitted: u64,
    /// Class and element type of objects that were described for the next monitor dump.
    #[serde(skip)]
    described: FxHashMap<u64, (u64, Option<BasicType>)>,
}

impl Dumps {
    /// The answer, with at most `top` classes.
    pub(crate) fn answer(&self, top: usize) -> Self {
        let classes = self.classes.iter().take(top);
        Self {
            heap: self.heap.clone(),
            classes: classes.cloned().collect(),
            omitted_classes: self.classes.len().saturating_sub(top) as u64,
            objects: self.objects.clone(),
            monitors: self.monitors.clone(),
            omitted: self.omitted,
            described: FxHashMap::default(),
        }
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.objects.is_empty() && self.monitors.is_empty()
    }
}

fn keep<T>(list: &mut Vec<T>, one: T, omitted: &mut u64) {
    if list.len() >= KEPT {
        list.remove(0);
        *omitted += 1;
    }
    list.push(one);
}

/// The data of the stream about classes.
struct Classes<'h>(&'h LiveHeap);

impl Shapes for Classes<'_> {
    fn interfaces(&self, class: ObjectHandle) -> Option<u32> {
        let class = self.0.names.classes.get(&class.0)?;
        Some(class.load.interfaces)
    }

    fn static_references(&self, class: ObjectHandle) -> Option<u32> {
        self.0.names.classes.get(&class.0)?.static_references
    }

    fn statics(&self, class: ObjectHandle) -> Option<Types<'_>> {
        let class = self.0.names.classes.get(&class.0)?;
        Some(types_of(&class.load.statics))
    }
}

fn root_name(why: RootKind) -> &'static str {
    match why {
        RootKind::Unknown => "unknown",
        RootKind::JniGlobal(_) => "JNI global",
        RootKind::JniLocal(..) => "JNI local",
        RootKind::JavaFrame(..) => "local variable",
        RootKind::NativeStack(_) => "native stack",
        RootKind::StickyClass => "system class",
        RootKind::ThreadBlock(_) => "thread",
        RootKind::MonitorUsed => "monitor",
    }
}

impl LiveHeap {
    fn moment(&self) -> Moment {
        Moment {
            at_bytes: self.totals.allocated_bytes,
            ns: self.totals.ns,
            collections: self.gc_count,
        }
    }

    /// Stores the description of an untracked object for the next monitor dump.
    pub(crate) fn describe(&mut self, alloc: &ObjectAlloc) {
        if self.dumps.described.len() < DESCRIBED {
            let what = (alloc.class.0, alloc.array);
            self.dumps.described.insert(alloc.object.0, what);
        }
    }

    pub(crate) fn heap_dump(&mut self, dump: &HeapDump) {
        let layout = IdLayout::of(&self.hello);
        let mut row = HeapDumpRow {
            moment: self.moment(),
            level: dump.level as u8,
            bytes: dump.data.len() as u64,
            ..HeapDumpRow::default()
        };
        let damage = if dump.level == DumpLevel::Ids {
            let (records, damage) = decode_ids(&dump.data, layout);
            let is_reported = |id: &&ObjectHandle| self.objects.find(id.0).is_some();
            row.objects = records.len() as u64;
            row.reported = records
                .iter()
                .map(|r| &r.object)
                .filter(is_reported)
                .count() as u64;
            damage
        } else {
            let (records, damage) = decode(&dump.data, dump.level, layout, &Classes(self));
            self.dumps.classes = self.count(&records, &mut row);
            // For a damaged dump, objects in its missing part would be reported as leaks.
            if damage.is_none() {
                let leaks = crate::cycles::find(self, dump.level, &records);
                self.leaks = Some(leaks);
            }
            damage
        };
        row.damage = damage.map(|damage| damage.to_string());
        keep(&mut self.dumps.heap, row, &mut self.dumps.omitted);
    }

    /// Counts the records by class.
    fn count(&self, records: &[HeapRecord], row: &mut HeapDumpRow) -> Vec<DumpedClass> {
        let mut sizes: FxHashMap<u64, u64> = FxHashMap::default();
        let mut rows: FxHashMap<(u64, u8), DumpedClass> = FxHashMap::default();
        for record in records {
            let (object, class, array, elements) = match record {
                HeapRecord::Root { why, .. } => {
                    *row.roots.entry(root_name(*why)).or_default() += 1;
                    continue;
                }
                HeapRecord::Class(class) => {
                    sizes.insert(class.class.0, u64::from(class.instance_size));
                    row.class_objects += 1;
                    row.objects += 1;
                    continue;
                }
                HeapRecord::Instance { object, class, .. } => (object, class.0, None, 0),
                HeapRecord::ObjectArray {
                    object,
                    element_class,
                    elements,
                } => {
                    let kind = Some(BasicType::Object);
                    (object, element_class.0, kind, elements.len() as u64)
                }
                HeapRecord::PrimitiveArray {
                    object,
                    element,
                    len,
                    ..
                } => (object, 0, Some(*element), u64::from(*len)),
            };
            let is_reported = u64::from(self.objects.find(object.0).is_some());
            row.objects += 1;
            row.reported += is_reported;
            let key = (class, array.map_or(0, |kind| kind as u8));
            let of = rows.entry(key).or_default();
            of.objects += 1;
            of.reported += is_reported;
            of.elements += elements;
        }
        for ((class, array), of) in &mut rows {
            let kind = vmpi::dump::basic_type(*array);
            of.class = self.names.title(*class, kind);
            if kind.is_none() {
                of.instance_bytes = of.objects * sizes.get(class).copied().unwrap_or(0);
            }
        }
        let mut rows: Vec<DumpedClass> = rows.into_values().collect();
        rows.sort_unstable_by(|a, b| b.objects.cmp(&a.objects).then(a.class.cmp(&b.class)));
        rows
    }

    pub(crate) fn object_dump(&mut self, data: &[u8]) {
        let layout = IdLayout::of(&self.hello);
        let (records, _) = decode(data, DumpLevel::Values, layout, &Classes(self));
        let Some(record) = records.first() else {
            return;
        };
        let names = &self.names;
        let fields_of = |class: u64, is_static: bool| {
            let class = names.classes.get(&class);
            let fields = class.map(|class| match is_static {
                true => &class.load.statics[..],
                false => &class.load.instances[..],
            });
            fields.unwrap_or_default()
        };
        let mut room = Room::new(TEXT_OF_OBJECT);
        let mut shown = |fields: &[vmpi::FieldDef], values: &[Value]| {
            let field = |(field, value): (&vmpi::FieldDef, &Value)| {
                Some(DumpedField {
                    name: room.take(|| field.name.clone())?,
                    value: shown(*value),
                })
            };
            fields.iter().zip(values).filter_map(field).collect()
        };
        let (object, class, fields, elements) = match record {
            HeapRecord::Root { .. } => return,
            HeapRecord::Class(class) => {
                let id = class.class.0;
                let fields = shown(fields_of(id, true), &class.statics);
                (
                    class.class,
                    format!("class {}", names.title(id, None)),
                    fields,
                    None,
                )
            }
            HeapRecord::Instance {
                object,
                class,
                fields: bytes,
            } => {
                let fields = fields_of(class.0, false);
                // Only the types of values that are in the dump are read.
                let mut own = 0;
                let mut fits = |kind: &BasicType| {
                    let end = own + kind.width().unwrap_or(layout.width.into());
                    let fits = end <= bytes.len();
                    own = if fits { end } else { own };
                    fits
                };
                let types = types_of(fields).map_while(|kind| kind.filter(&mut fits));
                let types: Vec<BasicType> = types.collect();
                let values = field_values(&bytes[..own], &types, layout).unwrap_or_default();
                let title = names.title(class.0, None);
                (*object, title, shown(fields, &values), None)
            }
            HeapRecord::ObjectArray {
                object,
                element_class,
                elements,
            } => {
                let title = names.title(element_class.0, Some(BasicType::Object));
                (*object, title, Vec::new(), Some(elements.len() as u64))
            }
            HeapRecord::PrimitiveArray {
                object,
                element,
                len,
                ..
            } => {
                let title = names.title(0, Some(*element));
                (*object, title, Vec::new(), Some(u64::from(*len)))
            }
        };
        let row = ObjectDumpRow {
            moment: self.moment(),
            id: format!("{:#x}", object.0),
            class,
            fields,
            omitted_fields: room.omitted,
            elements,
        };
        keep(&mut self.dumps.objects, row, &mut self.dumps.omitted);
    }

    pub(crate) fn monitor_dump(&mut self, dump: &MonitorDump) {
        let layout = IdLayout::of(&self.hello);
        let (records, damage) = decode_monitors(&dump.data, layout);
        let mut room = Room::new(TEXT);
        let monitors = records.iter();
        let monitors = monitors.filter_map(|record| self.monitor_row(record, &mut room));
        let monitors = monitors.collect();
        let statuses = dump.status.iter().copied().chain(std::iter::repeat(0));
        let threads = dump.traces.iter().zip(statuses);
        let threads = threads.filter_map(|(trace, status)| {
            Some(ThreadRow {
                name: room.take(|| self.names.thread_name(trace.env))?,
                status: status_name(status),
                frames: self.names.frames(&trace.frames, &mut room),
            })
        });
        let mut row = MonitorDumpRow {
            moment: self.moment(),
            monitors,
            threads: threads.collect(),
            damage: damage.map(|damage| damage.to_string()),
            ..MonitorDumpRow::default()
        };
        (row.omitted, row.text) = (room.omitted, TEXT - room.left());
        // Ids of described objects are valid only for this dump.
        let dumps = &mut self.dumps;
        dumps.described.clear();
        keep(&mut dumps.monitors, row, &mut dumps.omitted);
        let text = |rows: &[MonitorDumpRow]| rows.iter().map(|row| row.text).sum::<usize>();
        while text(&dumps.monitors) > TEXT {
            dumps.monitors.remove(0);
            dumps.omitted += 1;
        }
    }

    fn monitor_row(&self, record: &MonitorRecord, room: &mut Room) -> Option<MonitorRow> {
        let thread = |env: &EnvId| self.names.thread_name(*env);
        let (id, class) = match record.monitor {
            MonitorName::Java(object) => (object.0, room.take(|| self.class_of(object.0))?),
            MonitorName::Raw { monitor, .. } => {
                (monitor.0, room.take(|| "raw monitor".to_owned())?)
            }
        };
        let is_owned = record.owner != EnvId(0);
        let owner = is_owned.then(|| room.take(|| thread(&record.owner)));
        let mut threads = |envs: &[EnvId]| -> Vec<String> {
            let names = envs.iter();
            names.filter_map(|env| room.take(|| thread(env))).collect()
        };
        Some(MonitorRow {
            id: format!("{id:#x}"),
            class,
            owner: owner.flatten(),
            entry_count: record.entry_count,
            entering: threads(&record.waiting_to_enter),
            waiting: threads(&record.waiting_to_be_notified),
        })
    }

    /// The class of a live or described object.
    fn class_of(&self, id: u64) -> String {
        if let Some(row) = self.objects.find(id) {
            let (class, _) = self.names.kinds[row.kind as usize];
            return self.names.class_name(class);
        }
        match self.dumps.described.get(&id) {
            Some((class, array)) => self.names.title(*class, *array),
            None if self.names.classes.contains_key(&id) => "java.lang.Class".to_owned(),
            None => "unknown".to_owned(),
        }
    }
}

fn status_name(status: i32) -> &'static str {
    match status & !(thread_status::SUSPENDED | thread_status::INTERRUPTED) {
        thread_status::RUNNABLE => "runnable",
        thread_status::MONITOR_WAIT => "enters a monitor",
        thread_status::CONDVAR_WAIT => "waits",
        _ => "unknown",
    }
}

fn shown(value: Value) -> String {
    match value {
        Value::Object(ObjectHandle::NULL) => "null".to_owned(),
        Value::Object(object) => format!("{:#x}", object.0),
        Value::Boolean(x) => x.to_string(),
        Value::Char(x) => match char::from_u32(u32::from(x)) {
            Some(x) => format!("{x:?}"),
            None => format!("'\\u{x:04x}'"),
        },
        Value::Float(x) => x.to_string(),
        Value::Double(x) => x.to_string(),
        Value::Byte(x) => x.to_string(),
        Value::Short(x) => x.to_string(),
        Value::Int(x) => x.to_string(),
        Value::Long(x) => x.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi::wire::{Hello, Item};
    use vmpi::{
        Body, CallFrame, CallTrace, ClassLoad, FieldDef, JMethodId, MethodDef, ThreadStart,
    };

    fn apply(heap: &mut LiveHeap, body: Body) {
        heap.apply(&Item::event(body));
    }

    /// The content of a file of one megabyte.
    #[test]
    fn names_that_are_reported_at_every_frame_do_not_fill_the_memory() {
        let mut heap = LiveHeap::new(&Hello::default());
        let long = "n".repeat(100_000);
        let method = MethodDef {
            name: long.clone(),
            method: JMethodId(7),
            ..MethodDef::default()
        };
        let field = FieldDef {
            name: long.clone(),
            signature: "B".to_owned(),
        };
        let class = ClassLoad {
            class: ObjectHandle(8),
            name: long.clone(),
            methods: vec![method],
            instances: vec![field; 1000],
            ..ClassLoad::default()
        };
        apply(&mut heap, Body::ClassLoad(Box::new(class)));
        let start = ThreadStart {
            env: EnvId(1),
            name: long,
            ..ThreadStart::default()
        };
        apply(&mut heap, Body::ThreadStart(Box::new(start)));
        let frame = CallFrame {
            line: 1,
            method: JMethodId(7),
        };
        let trace = |frames: usize| CallTrace {
            env: EnvId(1),
            frames: vec![frame; frames],
        };
        let dump = |traces: Vec<CallTrace>| {
            Body::MonitorDump(Box::new(MonitorDump {
                status: vec![1; traces.len()],
                traces,
                ..MonitorDump::default()
            }))
        };
        // One thread with a deep stack, then many with one frame each.
        apply(&mut heap, dump(vec![trace(3000)]));
        for _ in 0..4 {
            apply(&mut heap, dump(vec![trace(1); 3000]));
        }
        apply(&mut heap, dump(vec![trace(1); 200_000]));
        let dumps = &heap.answer(10).dumps;
        let text = |row: &MonitorDumpRow| {
            let thread = |row: &ThreadRow| {
                row.name.len() + row.frames.iter().map(String::len).sum::<usize>()
            };
            row.threads.iter().map(thread).sum::<usize>()
        };
        let all: usize = dumps.monitors.iter().map(text).sum();
        assert!((1..=TEXT).contains(&all), "{all}");
        let last = dumps.monitors.last().expect("the last one is kept");
        assert_eq!(last.threads[0].frames.len(), 1);
        let shown: usize = last.threads.iter().map(|row| 1 + row.frames.len()).sum();
        // Each omitted thread is counted with its frame.
        assert!(last.omitted > 0 && shown as u64 + last.omitted <= 400_000);
        assert_eq!(dumps.monitors.len() as u64 + dumps.omitted, 6);
    }

    #[test]
    fn dumps_of_real_programs_are_listed_in_full() {
        let mut heap = LiveHeap::new(&Hello::default());
        let frame = CallFrame {
            line: 12,
            method: JMethodId(7),
        };
        let traces = (1..=5000).map(|env| CallTrace {
            env: EnvId(env),
            frames: vec![frame; 100],
        });
        let dump = MonitorDump {
            traces: traces.collect(),
            ..MonitorDump::default()
        };
        apply(&mut heap, Body::MonitorDump(Box::new(dump)));
        let row = &heap.answer(10).dumps.monitors[0];
        assert_eq!((row.omitted, row.threads.len()), (0, 5000));
        assert!(row.threads.iter().all(|thread| thread.frames.len() == 100));
        assert_eq!(row.threads[0].frames[0], "method 0x7:12");
    }
}
