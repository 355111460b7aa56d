//! Records of a text profile, replayed as VM events.

use crate::scripted::{Batch, ScriptedVm, Thing};
use agent_core::options::Options;
use hprof_text::{
    CpuKind, HeapArray, HeapClass, HeapObject, RankRow, Root as TextRoot, RootKind, SiteRow,
    TextLine, TextRecord,
};
use vmpi::{
    AllocationRow, BasicType, CostRow, FieldInfo, FreeRow, HeapSummary, MonitorId, MonitorInfo,
    ObjectHandle, Root, SampleRow, ThreadId, ThreadStack, ThreadState, TraceId, Value,
};

pub(crate) fn text(bytes: &[u8]) -> String {
    hprof::decode_modified_utf8(bytes).into_owned()
}

/// `java.lang.Object[]` to `[Ljava/lang/Object;`.
pub(crate) fn signature(name: &str) -> String {
    let element = name.trim_end_matches("[]");
    let dims = "[".repeat((name.len() - element.len()) / 2);
    let base = match element {
        "boolean" => "Z",
        "char" => "C",
        "float" => "F",
        "double" => "D",
        "byte" => "B",
        "short" => "S",
        "int" => "I",
        "long" => "J",
        _ => return format!("{dims}L{};", element.replace('.', "/")),
    };
    // A class that is called like a primitive type is not one outside an array.
    format!("{dims}{base}")
}

pub(crate) fn handle(id: u64) -> ObjectHandle {
    ObjectHandle(if id == 0 { 0 } else { id - 0x5000_0000 })
}

pub(crate) fn trace(serial: u32) -> TraceId {
    TraceId(serial - 300_000)
}

pub(crate) fn thread(serial: u32) -> ThreadId {
    ThreadId(serial.saturating_sub(200_000))
}

/// Replays the records of one dump of the file.
pub(crate) struct Teller<'a> {
    pub(crate) vm: ScriptedVm,
    pub(crate) options: &'a Options,
    pub(crate) batch: Batch,
    pub(crate) traces: Vec<(TraceId, vmpi::Trace)>,
    /// Sites sent so far: they are cumulative in the file.
    sites: Vec<AllocationRow>,
    pairs: u32,
}

impl Teller<'_> {
    /// A teller for a run with these options.
    pub(crate) fn new(options: &Options) -> Teller<'_> {
        Teller {
            vm: ScriptedVm::new(),
            options,
            batch: Batch::default(),
            traces: Vec::new(),
            sites: Vec::new(),
            pairs: 0,
        }
    }

    pub(crate) fn frames(&mut self, one: &hprof_text::Trace<'_>) -> Vec<vmpi::Frame> {
        let mut frames = Vec::new();
        for frame in &one.frames {
            let source = text(frame.source);
            let source = (source != "<Unknown Source>").then_some(source);
            let name = text(frame.class);
            let class = self.vm.class(&signature(&name), source.as_deref(), &[]);
            let method = self.vm.method(class, &text(frame.method), "()V");
            let line = match frame.line {
                TextLine::Number(line) => Some(line),
                _ => None,
            };
            frames.push(self.vm.frame(method, line));
        }
        frames
    }

    pub(crate) fn pair(&mut self, callee: &[u8], caller: &[u8]) -> TraceId {
        let mut frames = Vec::new();
        for name in [callee, caller] {
            let name = text(name);
            if name.starts_with("<unknown") {
                break;
            }
            let bracket = name.find('(').expect("a signature");
            let dot = name[..bracket].rfind('.').expect("a method");
            let class = self.vm.class(&signature(&name[..dot]), None, &[]);
            let method = self
                .vm
                .method(class, &name[dot + 1..bracket], &name[bracket..]);
            frames.push(self.vm.frame(method, None));
        }
        self.pairs += 1;
        let id = TraceId(1_000_000 + self.pairs);
        self.traces.push((
            id,
            vmpi::Trace {
                thread: ThreadId::NONE,
                frames,
            },
        ));
        id
    }

    pub(crate) fn sites(&mut self, rows: &[SiteRow<'_>]) {
        let sum: u64 = rows.iter().map(|row| row.live_bytes).sum();
        let costs = rows
            .iter()
            .map(|row| (row.live_bytes as i64, row.share, row.accumulated));
        let rest = rest(&costs.collect::<Vec<_>>(), sum as i64, self.options.cutoff) as u64;
        let mut now = Vec::new();
        let mut seen = Vec::new();
        for row in rows {
            // Rows of the same name and trace are classes of different loaders.
            let trace = trace(row.trace);
            let same = seen
                .iter()
                .filter(|key| **key == (row.class, trace))
                .count();
            seen.push((row.class, trace));
            let nth = same.to_string();
            let fields = if same == 0 {
                Vec::new()
            } else {
                vec![nth.as_str()]
            };
            let class = self.vm.class(&signature(&text(row.class)), None, &fields);
            let known = self
                .sites
                .iter()
                .find(|one| (one.class, one.trace) == (class, trace));
            let before = known.copied().unwrap_or_default();
            let allocated = AllocationRow {
                class,
                trace,
                objects: row.allocated_objects - before.objects,
                bytes: row.allocated_bytes - before.bytes,
                ..AllocationRow::default()
            };
            self.batch.allocations.push(allocated);
            self.batch.frees.push(FreeRow {
                class,
                trace,
                objects: row.allocated_objects - row.live_objects,
                bytes: row.allocated_bytes - row.live_bytes,
                ..FreeRow::default()
            });
            now.push(AllocationRow {
                objects: row.allocated_objects,
                bytes: row.allocated_bytes,
                ..allocated
            });
        }
        self.sites = now;
        // Rows below the cutoff are not in the file, but their bytes are in the total.
        let step = (((sum + rest) as f64 * self.options.cutoff) as u64 / 2).max(1);
        let mut left = rest;
        let mut at = 2_000_000;
        while left > 0 {
            let bytes = left.min(step);
            at += 1;
            let row = AllocationRow {
                trace: TraceId(at),
                objects: 1,
                bytes,
                ..Default::default()
            };
            self.batch.allocations.push(row);
            left -= bytes;
        }
    }

    pub(crate) fn samples(&mut self, total: i64, rows: &[RankRow<'_>]) {
        let mut left = total as u64;
        for row in rows {
            left -= row.count;
            let row = SampleRow {
                trace: trace(row.trace),
                samples: row.count,
                ..Default::default()
            };
            self.batch.samples.push(row);
        }
        assert_eq!(left, 0, "samples below the cutoff");
    }

    pub(crate) fn times(&mut self, total: i64, rows: &[RankRow<'_>]) {
        let mut sum = 0;
        for row in rows {
            let ms = (row.share / 100.0 * total as f64).round().max(0.0) as u64;
            sum += ms;
            self.batch.costs.push(CostRow {
                trace: trace(row.trace),
                calls: row.count,
                self_ns: ms * 1_000_000,
                total_ns: ms * 1_000_000,
            });
        }
        assert_eq!(sum as i64, total, "times of rows that are not printed");
    }
}

/// The bytes of rows the file leaves out: the smallest rest for which all printed shares fit.
pub(crate) fn rest(rows: &[(i64, f64, f64)], sum: i64, cutoff: f64) -> i64 {
    let fits = |total: i64| {
        let mut accumulated = 0.0;
        rows.iter().all(|(cost, share, accum)| {
            let ours = *cost as f64 / total as f64 * 100.0;
            accumulated += ours;
            format!("{ours:.2}") == format!("{share:.2}")
                && format!("{accumulated:.2}") == format!("{accum:.2}")
        })
    };
    let Some((cost, share, _)) = rows.first() else {
        return 0;
    };
    let _ = cutoff;
    let from = (*cost as f64 / (share + 0.005) * 100.0) as i64;
    let to = (*cost as f64 / (share - 0.005) * 100.0) as i64 + 1;
    let total = (from.max(sum)..=to.max(sum)).find(|total| fits(*total));
    total.expect("a total that fits all shares") - sum
}

pub(crate) fn status(text: &[u8]) -> ThreadState {
    let text = std::str::from_utf8(text).expect("status");
    let word = text.rsplit('|').next().unwrap_or("");
    ThreadState {
        alive: word != "ZO",
        runnable: word == "R",
        blocked_on_monitor: word == "MW",
        waiting: word == "CW",
        sleeping: word == "SL",
        suspended: text.contains("S|"),
        interrupted: text.contains("intr|"),
        in_native: text.contains("native|"),
        parked: false,
    }
}

impl Teller<'_> {
    pub(crate) fn monitor(&mut self, one: &hprof_text::Monitor<'_>) {
        let class = self.vm.class(&text(one.name), None, &[]);
        self.vm.monitors.push(MonitorInfo {
            monitor: MonitorId(self.vm.monitors.len() as u64),
            class,
            owner: one.owner.map(|(owner, _)| thread(owner)),
            entry_count: one.owner.map_or(0, |(_, entries)| entries),
            waiting_to_enter: one.waiters.iter().map(|id| thread(*id)).collect(),
            waiting_to_be_notified: one.notify_waiters.iter().map(|id| thread(*id)).collect(),
        });
    }

    pub(crate) fn root(&mut self, one: &TextRoot<'_>) {
        let depth = |frame: i32| u32::try_from(frame).ok();
        let why = match one.kind {
            // The recorder writes the unknown thread by itself.
            RootKind::Thread {
                thread: 200_000, ..
            } => return,
            RootKind::Thread {
                thread: id,
                trace: at,
            } => Root::ThreadObject {
                thread: thread(id),
                trace: trace(at),
            },
            RootKind::ThreadBlock { thread: id } => Root::ThreadBlock { thread: thread(id) },
            RootKind::NativeStack { thread: id } => Root::NativeStack { thread: thread(id) },
            RootKind::JniGlobal { .. } => Root::JniGlobal,
            RootKind::JniLocal { thread: id, frame } => Root::JniLocal {
                thread: thread(id),
                depth: depth(frame),
            },
            RootKind::JavaStack { thread: id, frame } => Root::JavaFrame {
                thread: thread(id),
                depth: depth(frame),
            },
            RootKind::SystemClass { name } => {
                // The original names the class of the root, whatever object it is.
                let own = format!("{:x}", one.object);
                let class = self.vm.class(&signature(&text(name)), None, &[&own]);
                self.vm.classes[class.0 as usize - 1].0.mirror = handle(one.object);
                Root::StickyClass
            }
            RootKind::BusyMonitor => Root::MonitorUsed,
            RootKind::Unknown => Root::Unknown,
        };
        self.vm.heap.push(Thing::Root(handle(one.object), why));
    }

    pub(crate) fn object(&mut self, one: &HeapObject<'_>) {
        // A class for each set of names: the text leaves null references out.
        let names: Vec<String> = one.fields.iter().map(|(name, _)| text(name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let class = self.vm.class(&signature(&text(one.class)), None, &names);
        let values = one
            .fields
            .iter()
            .map(|(_, id)| Value::Object(handle(*id)))
            .collect();
        let (id, class_object) = (handle(one.id), handle(one.class_id));
        let thing = Thing::Object(id, class, class_object, trace(one.trace), one.size, values);
        self.vm.heap.push(thing);
    }

    pub(crate) fn array(&mut self, one: &HeapArray<'_>) {
        let class = self.vm.class(&signature(&text(one.class)), None, &[]);
        let (id, at) = (handle(one.id), trace(one.trace));
        let Some(class_id) = one.class_id else {
            let bytes = vec![0; one.size as usize];
            let len = one.length as u32;
            self.vm.heap.push(Thing::Primitives(
                id,
                class,
                at,
                BasicType::Byte,
                len,
                bytes,
            ));
            return;
        };
        let mut elements = vec![ObjectHandle::NULL; one.length as usize];
        for (index, target) in &one.elements {
            elements[*index as usize] = handle(*target);
        }
        let thing = Thing::References(id, class, handle(class_id), at, one.size, elements);
        self.vm.heap.push(thing);
    }

    pub(crate) fn class(&mut self, one: &HeapClass<'_>) {
        let class = self.vm.class(&signature(&text(one.name)), None, &[]);
        let field = |name: &[u8]| FieldInfo {
            name: text(name),
            descriptor: "Ljava/lang/Object;".into(),
            is_static: true,
        };
        let statics = one
            .statics
            .iter()
            .map(|(name, id)| (field(name), Value::Object(handle(*id))));
        let references = [one.superclass, one.loader, one.signers, one.domain].map(handle);
        let thing = Thing::Class(
            handle(one.id),
            class,
            trace(one.trace),
            references,
            statics.collect(),
            Vec::new(),
        );
        self.vm.heap.push(thing);
    }
}

/// Replays one dump's records; returns how many of `records` belong to it.
pub(crate) fn emit(teller: &mut Teller<'_>, records: &[TextRecord<'_>]) -> usize {
    let mut used = 0;
    let mut sections = Vec::new();
    while let Some(record) = records.get(used) {
        let rows = |end: usize| &records[used + 1..used + end];
        match record {
            TextRecord::Trace(one) => {
                let frames = teller.frames(one);
                let thread = one.thread.map_or(ThreadId::NONE, thread);
                if one.serial != 300_000 {
                    teller
                        .traces
                        .push((trace(one.serial), vmpi::Trace { thread, frames }));
                }
            }
            TextRecord::SitesBegin { .. } => {
                let end = end_of(&records[used..], &TextRecord::SitesEnd);
                let rows: Vec<_> = rows(end).iter().filter_map(as_site).collect();
                teller.sites(&rows);
                used += end;
            }
            TextRecord::CpuBegin { kind, total, .. } => {
                let end = end_of(&records[used..], &TextRecord::CpuEnd(*kind));
                let rows: Vec<_> = rows(end).iter().filter_map(as_cpu).collect();
                match kind {
                    CpuKind::Samples => teller.samples(*total, &rows),
                    CpuKind::Time => teller.times(*total, &rows),
                    // The original had no such table.
                    CpuKind::Running | CpuKind::Waiting => {}
                }
                used += end;
            }
            TextRecord::Old(row) => {
                let trace = teller.pair(row.callee, row.caller);
                let total_ns = row.time.max(0) as u64 * 1_000_000;
                let cost = CostRow {
                    trace,
                    calls: row.count,
                    self_ns: 0,
                    total_ns,
                };
                teller.batch.costs.push(cost);
            }
            TextRecord::MonitorThread(one) => {
                teller.vm.stacks.push(ThreadStack {
                    thread: thread(one.thread),
                    state: status(one.status),
                    trace: trace(one.trace),
                });
            }
            TextRecord::Monitor(one) => teller.monitor(one),
            TextRecord::HeapBegin { objects, bytes, .. } => {
                teller.vm.summary = HeapSummary {
                    live_objects: *objects,
                    live_bytes: *bytes,
                    ..HeapSummary::default()
                };
            }
            TextRecord::Root(one) => teller.root(one),
            TextRecord::Object(one) => teller.object(one),
            TextRecord::Array(one) => teller.array(one),
            TextRecord::Class(one) => teller.class(one),
            TextRecord::OldBegin
            | TextRecord::MonitorDumpBegin
            | TextRecord::MonitorDumpEnd
            | TextRecord::HeapEnd => {}
            _ => break,
        }
        sections.extend(is_section(record));
        used += 1;
        // A second dump begins with a section that this one has had.
        let next = records.get(used).and_then(is_section);
        if next.is_some_and(|section| sections.contains(&section)) {
            break;
        }
    }
    used
}

/// The section a record opens.
pub(crate) fn is_section(record: &TextRecord<'_>) -> Option<u8> {
    Some(match record {
        TextRecord::SitesBegin { .. } => 1,
        TextRecord::CpuBegin {
            kind: CpuKind::Samples,
            ..
        } => 2,
        TextRecord::CpuBegin {
            kind: CpuKind::Time,
            ..
        } => 3,
        TextRecord::OldBegin => 4,
        TextRecord::MonitorDumpBegin => 5,
        TextRecord::HeapBegin { .. } => 6,
        _ => return None,
    })
}

pub(crate) fn end_of(records: &[TextRecord<'_>], end: &TextRecord<'_>) -> usize {
    records
        .iter()
        .position(|record| record == end)
        .expect("the end of the table")
}

pub(crate) fn as_site<'a>(record: &TextRecord<'a>) -> Option<SiteRow<'a>> {
    match record {
        TextRecord::Site(row) => Some(*row),
        _ => None,
    }
}

pub(crate) fn as_cpu<'a>(record: &TextRecord<'a>) -> Option<RankRow<'a>> {
    match record {
        TextRecord::Cpu(row) => Some(*row),
        _ => None,
    }
}
