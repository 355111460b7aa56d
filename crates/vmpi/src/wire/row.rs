//! Converts an item to numbers and bytes, and back: only this module depends on the meaning of each column.

use super::item::{ArenaState, Item, MoveRange};
use super::varint::{Input, fold, put, put_bytes, unfold};
use crate::dump::basic_type;
use crate::event::GcKind;
use crate::ids::{ArenaId, ObjectHandle, TraceId};
use crate::info::BasicType;
use crate::kind::EventKind;
use crate::vm_event::{
    Body, CallFrame, CallTrace, ClassLoad, CompiledMethod, DumpLevel, EnvId, FieldDef, GcInfo,
    HeapDump, JMethodId, MethodDef, MonitorDump, ObjectAlloc, ObjectMove, Operand, RawMonitorId,
    RefId, ThreadStart,
};

/// The most numbers an item has.
pub(crate) const MAX_NUMBERS: usize = 6;

/// Codes of additions of the stream; lower codes are those of the document.
pub(crate) const CLOCK: u8 = 64;
pub(crate) const TRACE: u8 = 65;
pub(crate) const MOVE_RANGE: u8 = 66;
pub(crate) const ARENA_STATE: u8 = 67;
pub(crate) const LOST: u8 = 68;
/// One more than the largest code.
pub(crate) const CODES: usize = 69;

/// The first column of an item without data has no meaning and is 0.
const NOTHING: u64 = 0;

/// How many number columns an item of this code has, and whether it has bytes.
pub(crate) fn shape(code: u8) -> Option<(usize, bool)> {
    use EventKind as K;
    let Some(kind) = EventKind::from_code(i32::from(code)) else {
        return Some(match code {
            CLOCK => (1, false),
            TRACE => (2, true),
            MOVE_RANGE => (5, false),
            ARENA_STATE => (4, false),
            LOST => (2, false),
            _ => return None,
        });
    };
    Some(match kind {
        K::ObjectAlloc => (6, false),
        K::ObjectMove => (4, false),
        K::MethodEntry | K::MethodExit | K::CompiledMethodUnload | K::ObjectFree => (1, false),
        K::MethodEntry2 | K::JniGlobalRefAlloc | K::JniWeakGlobalRefAlloc => (2, false),
        K::MonitorWait | K::MonitorWaited => (2, false),
        K::JniGlobalRefFree | K::JniWeakGlobalRefFree | K::ClassUnload | K::ArenaDelete => {
            (1, false)
        }
        K::MonitorContendedEnter | K::MonitorContendedEntered | K::MonitorContendedExit => {
            (1, false)
        }
        K::ThreadEnd | K::DataDumpRequest | K::DataResetRequest | K::JvmInitDone => (1, false),
        K::JvmShutDown | K::GcStart => (1, false),
        K::GcFinish => (3, false),
        K::InstructionStart => (6, false),
        K::CompiledMethodLoad => (3, true),
        K::ThreadStart => (2, true),
        K::ClassLoadHook | K::HeapDump | K::ClassLoad | K::ArenaNew | K::ObjectDump => (1, true),
        K::RawMonitorContendedEnter
        | K::RawMonitorContendedEntered
        | K::RawMonitorContendedExit => (1, true),
        K::MonitorDump => (1, true),
    })
}

/// An item's numbers and bytes.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) numbers: [u64; MAX_NUMBERS],
    pub(crate) bytes: Vec<u8>,
}

impl Row {
    fn set(&mut self, numbers: &[u64]) {
        self.numbers[..numbers.len()].copy_from_slice(numbers);
    }

    /// Frees the memory that a dump needed.
    pub(crate) fn shrink(&mut self) {
        const MUCH: usize = 1 << 20;
        if self.bytes.capacity() > MUCH {
            self.bytes = Vec::new();
        }
    }

    /// Splits an item into the columns and returns its code, with the top bit set if it was requested.
    pub(crate) fn spread(&mut self, item: &Item) -> u8 {
        self.bytes.clear();
        match item {
            Item::Event { requested, body } => {
                self.spread_body(body);
                body.kind() as u8 | if *requested { 0x80 } else { 0 }
            }
            Item::Clock { ns } => {
                self.set(&[*ns]);
                CLOCK
            }
            Item::Trace { id, trace } => {
                self.set(&[u64::from(id.0), trace.env.0]);
                put_frames(&mut self.bytes, &trace.frames);
                TRACE
            }
            Item::MoveRange(range) => {
                let arenas = [u64::from(range.arena.0), u64::from(range.new_arena.0)];
                self.set(&[range.from.0, range.len, arenas[0], range.to.0, arenas[1]]);
                MOVE_RANGE
            }
            Item::ArenaState(state) => {
                self.set(&[
                    u64::from(state.arena.0),
                    state.start,
                    state.used,
                    state.capacity,
                ]);
                ARENA_STATE
            }
            Item::Lost { kind, count } => {
                self.set(&[kind.map_or(0, |kind| kind as u64), *count]);
                LOST
            }
        }
    }

    fn spread_body(&mut self, body: &Body) {
        match body {
            Body::MethodEntry { method }
            | Body::MethodExit { method }
            | Body::CompiledMethodUnload { method } => self.set(&[method.0]),
            Body::MethodEntry2 { method, object } => self.set(&[method.0, object.0]),
            Body::ObjectAlloc(a) => {
                let array = a.array.map_or(0, |kind| kind as u64);
                let place = [u64::from(a.arena.0), u64::from(a.trace.0)];
                self.set(&[a.object.0, a.class.0, a.size, place[0], place[1], array]);
            }
            Body::ObjectFree { object }
            | Body::ClassUnload { class: object }
            | Body::MonitorContendedEnter { object }
            | Body::MonitorContendedEntered { object }
            | Body::MonitorContendedExit { object } => self.set(&[object.0]),
            Body::ObjectMove(m) => {
                let arenas = [u64::from(m.arena.0), u64::from(m.new_arena.0)];
                self.set(&[m.object.0, m.new_object.0, arenas[0], arenas[1]]);
            }
            Body::JniGlobalRefAlloc { object, reference }
            | Body::JniWeakGlobalRefAlloc { object, reference } => {
                self.set(&[reference.0, object.0]);
            }
            Body::JniGlobalRefFree { reference } | Body::JniWeakGlobalRefFree { reference } => {
                self.set(&[reference.0]);
            }
            Body::MonitorWait { object, timeout_ms }
            | Body::MonitorWaited { object, timeout_ms } => {
                self.set(&[object.0, *timeout_ms as u64]);
            }
            Body::ArenaDelete { arena } => self.set(&[u64::from(arena.0)]),
            Body::ThreadEnd
            | Body::DataDumpRequest
            | Body::DataResetRequest
            | Body::JvmInitDone
            | Body::JvmShutDown => self.set(&[NOTHING]),
            Body::GcStart { kind } => self.set(&[match kind {
                GcKind::Unknown => 0,
                GcKind::Young => 1,
                GcKind::Full => 2,
            }]),
            Body::GcFinish(info) => {
                self.set(&[info.used_objects, info.used_space, info.total_space]);
            }
            Body::InstructionStart {
                method,
                offset,
                operand,
            } => {
                let (tag, a, b, c) = match *operand {
                    Operand::None => (0, 0, 0, 0),
                    Operand::If(taken) => (1, i32::from(taken), 0, 0),
                    Operand::TableSwitch { key, low, high } => (2, key, low, high),
                    Operand::LookupSwitch { chosen, pairs } => (3, chosen, pairs, 0),
                };
                let [a, b, c] = [a, b, c].map(|x| i64::from(x) as u64);
                self.set(&[method.0, u64::from(*offset), tag, a, b, c]);
            }
            rare => self.spread_rare(rare),
        }
    }

    /// Events that carry text, tables or dumps.
    fn spread_rare(&mut self, body: &Body) {
        match body {
            Body::CompiledMethodLoad(code) => {
                self.set(&[code.method.0, code.address, u64::from(code.size)]);
                for (offset, line) in &code.lines {
                    put(&mut self.bytes, u64::from(*offset));
                    put(&mut self.bytes, fold(i64::from(*line)));
                }
            }
            Body::ThreadStart(start) => {
                self.set(&[start.env.0, start.object.0]);
                for text in [&start.name, &start.group, &start.parent] {
                    put_bytes(&mut self.bytes, text.as_bytes());
                }
            }
            Body::ClassLoadHook { class_data } => {
                self.set(&[NOTHING]);
                self.bytes.extend_from_slice(class_data);
            }
            Body::ObjectDump { data } => {
                self.set(&[NOTHING]);
                self.bytes.extend_from_slice(data);
            }
            Body::HeapDump(dump) => {
                self.set(&[dump.level as u64]);
                put_traces(&mut self.bytes, &dump.traces);
                self.bytes.extend_from_slice(&dump.data);
            }
            Body::MonitorDump(dump) => {
                self.set(&[NOTHING]);
                put_traces(&mut self.bytes, &dump.traces);
                put(&mut self.bytes, dump.status.len() as u64);
                for status in &dump.status {
                    put(&mut self.bytes, fold(i64::from(*status)));
                }
                self.bytes.extend_from_slice(&dump.data);
            }
            Body::ClassLoad(class) => {
                self.set(&[class.class.0]);
                put_class(&mut self.bytes, class);
            }
            Body::ArenaNew { arena, name } => {
                self.set(&[u64::from(arena.0)]);
                self.bytes.extend_from_slice(name.as_bytes());
            }
            Body::RawMonitorContendedEnter { monitor, name }
            | Body::RawMonitorContendedEntered { monitor, name }
            | Body::RawMonitorContendedExit { monitor, name } => {
                self.set(&[monitor.0]);
                self.bytes.extend_from_slice(name.as_bytes());
            }
            _ => unreachable!("spread_body has every other event"),
        }
    }
}

fn put_frames(out: &mut Vec<u8>, frames: &[CallFrame]) {
    put(out, frames.len() as u64);
    for frame in frames {
        put(out, frame.method.0);
        put(out, fold(i64::from(frame.line)));
    }
}

fn put_traces(out: &mut Vec<u8>, traces: &[CallTrace]) {
    put(out, traces.len() as u64);
    for trace in traces {
        put(out, trace.env.0);
        put_frames(out, &trace.frames);
    }
}

fn put_class(out: &mut Vec<u8>, class: &ClassLoad) {
    put_bytes(out, class.name.as_bytes());
    put_bytes(out, class.source.as_bytes());
    put(out, u64::from(class.interfaces));
    put(out, class.methods.len() as u64);
    for method in &class.methods {
        put_bytes(out, method.name.as_bytes());
        put_bytes(out, method.signature.as_bytes());
        put(out, fold(i64::from(method.start_line)));
        put(out, fold(i64::from(method.end_line)));
        put(out, method.method.0);
    }
    for fields in [&class.statics, &class.instances] {
        put(out, fields.len() as u64);
        for field in fields {
            put_bytes(out, field.name.as_bytes());
            put_bytes(out, field.signature.as_bytes());
        }
    }
}

fn line(input: &mut Input<'_>) -> Option<i32> {
    i32::try_from(unfold(input.number()?)).ok()
}

/// Reads a list whose items take at least one byte each, so that a claimed count beyond the remaining bytes ends the
/// reading and causes no allocation.
fn list<T>(
    input: &mut Input<'_>,
    mut one: impl FnMut(&mut Input<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = input.number()?;
    if count > input.left() as u64 {
        return None;
    }
    (0..count).map(|_| one(input)).collect()
}

fn frames(input: &mut Input<'_>) -> Option<Vec<CallFrame>> {
    list(input, |input| {
        let method = JMethodId(input.number()?);
        let line = line(input)?;
        Some(CallFrame { line, method })
    })
}

fn traces(input: &mut Input<'_>) -> Option<Vec<CallTrace>> {
    list(input, |input| {
        let env = EnvId(input.number()?);
        let frames = frames(input)?;
        Some(CallTrace { env, frames })
    })
}

fn fields(input: &mut Input<'_>) -> Option<Vec<FieldDef>> {
    list(input, |input| {
        let name = input.text()?;
        let signature = input.text()?;
        Some(FieldDef { name, signature })
    })
}

fn class(object: u64, input: &mut Input<'_>) -> Option<ClassLoad> {
    Some(ClassLoad {
        class: ObjectHandle(object),
        name: input.text()?,
        source: input.text()?,
        interfaces: u32::try_from(input.number()?).ok()?,
        methods: list(input, |input| {
            Some(MethodDef {
                name: input.text()?,
                signature: input.text()?,
                start_line: line(input)?,
                end_line: line(input)?,
                method: JMethodId(input.number()?),
            })
        })?,
        statics: fields(input)?,
        instances: fields(input)?,
    })
}

fn array(code: u64) -> Option<Option<BasicType>> {
    match code {
        0 => Some(None),
        code => basic_type(u8::try_from(code).ok()?).map(Some),
    }
}

fn arena(number: u64) -> Option<ArenaId> {
    u32::try_from(number).ok().map(ArenaId)
}

/// Builds an item from its columns; `None` if a number or the bytes are out of range.
pub(crate) fn gather(code: u8, n: &[u64; MAX_NUMBERS], bytes: &[u8]) -> Option<Item> {
    let requested = code & 0x80 != 0;
    let code = code & 0x7f;
    let Some(kind) = EventKind::from_code(i32::from(code)) else {
        return gather_addition(code, n, bytes);
    };
    let body = gather_body(kind, n, bytes)?;
    Some(Item::Event { requested, body })
}

fn gather_addition(code: u8, n: &[u64; MAX_NUMBERS], bytes: &[u8]) -> Option<Item> {
    Some(match code {
        CLOCK => Item::Clock { ns: n[0] },
        TRACE => Item::Trace {
            id: TraceId(u32::try_from(n[0]).ok()?),
            trace: CallTrace {
                env: EnvId(n[1]),
                frames: frames(&mut Input::new(bytes))?,
            },
        },
        MOVE_RANGE => Item::MoveRange(MoveRange {
            from: ObjectHandle(n[0]),
            len: n[1],
            arena: arena(n[2])?,
            to: ObjectHandle(n[3]),
            new_arena: arena(n[4])?,
        }),
        ARENA_STATE => Item::ArenaState(ArenaState {
            arena: arena(n[0])?,
            start: n[1],
            used: n[2],
            capacity: n[3],
        }),
        LOST => Item::Lost {
            kind: match n[0] {
                0 => None,
                code => Some(EventKind::from_code(i32::try_from(code).ok()?)?),
            },
            count: n[1],
        },
        _ => return None,
    })
}

#[inline]
fn gather_body(kind: EventKind, n: &[u64; MAX_NUMBERS], bytes: &[u8]) -> Option<Body> {
    use EventKind as K;
    let method = JMethodId(n[0]);
    let object = ObjectHandle(n[0]);
    Some(match kind {
        K::ObjectAlloc => Body::ObjectAlloc(ObjectAlloc {
            object,
            class: ObjectHandle(n[1]),
            size: n[2],
            arena: arena(n[3])?,
            trace: TraceId(u32::try_from(n[4]).ok()?),
            array: array(n[5])?,
        }),
        K::ObjectFree => Body::ObjectFree { object },
        K::ObjectMove => Body::ObjectMove(ObjectMove {
            object,
            arena: arena(n[2])?,
            new_object: ObjectHandle(n[1]),
            new_arena: arena(n[3])?,
        }),
        K::MethodEntry => Body::MethodEntry { method },
        K::MethodExit => Body::MethodExit { method },
        K::MethodEntry2 => Body::MethodEntry2 {
            method,
            object: ObjectHandle(n[1]),
        },
        K::CompiledMethodUnload => Body::CompiledMethodUnload { method },
        K::ThreadEnd => Body::ThreadEnd,
        K::ClassUnload => Body::ClassUnload { class: object },
        K::DataDumpRequest => Body::DataDumpRequest,
        K::DataResetRequest => Body::DataResetRequest,
        K::JvmInitDone => Body::JvmInitDone,
        K::JvmShutDown => Body::JvmShutDown,
        K::ArenaDelete => Body::ArenaDelete {
            arena: arena(n[0])?,
        },
        K::MonitorContendedEnter => Body::MonitorContendedEnter { object },
        K::MonitorContendedEntered => Body::MonitorContendedEntered { object },
        K::MonitorContendedExit => Body::MonitorContendedExit { object },
        K::MonitorWait => Body::MonitorWait {
            object,
            timeout_ms: n[1] as i64,
        },
        K::MonitorWaited => Body::MonitorWaited {
            object,
            timeout_ms: n[1] as i64,
        },
        K::GcStart => Body::GcStart {
            kind: match n[0] {
                0 => GcKind::Unknown,
                1 => GcKind::Young,
                2 => GcKind::Full,
                _ => return None,
            },
        },
        K::GcFinish => Body::GcFinish(GcInfo {
            used_objects: n[0],
            used_space: n[1],
            total_space: n[2],
        }),
        _ => return gather_rare(kind, n, bytes),
    })
}

fn gather_rare(kind: EventKind, n: &[u64; MAX_NUMBERS], bytes: &[u8]) -> Option<Body> {
    use EventKind as K;
    let mut input = Input::new(bytes);
    let text = || String::from_utf8_lossy(bytes).into_owned();
    let monitor = RawMonitorId(n[0]);
    Some(match kind {
        K::JniGlobalRefAlloc => Body::JniGlobalRefAlloc {
            object: ObjectHandle(n[1]),
            reference: RefId(n[0]),
        },
        K::JniWeakGlobalRefAlloc => Body::JniWeakGlobalRefAlloc {
            object: ObjectHandle(n[1]),
            reference: RefId(n[0]),
        },
        K::JniGlobalRefFree => Body::JniGlobalRefFree {
            reference: RefId(n[0]),
        },
        K::JniWeakGlobalRefFree => Body::JniWeakGlobalRefFree {
            reference: RefId(n[0]),
        },
        K::InstructionStart => {
            let int = |at: usize| i32::try_from(n[at] as i64).ok();
            Body::InstructionStart {
                method: JMethodId(n[0]),
                offset: u32::try_from(n[1]).ok()?,
                operand: match n[2] {
                    0 => Operand::None,
                    1 => Operand::If(n[3] != 0),
                    2 => Operand::TableSwitch {
                        key: int(3)?,
                        low: int(4)?,
                        high: int(5)?,
                    },
                    3 => Operand::LookupSwitch {
                        chosen: int(3)?,
                        pairs: int(4)?,
                    },
                    _ => return None,
                },
            }
        }
        K::CompiledMethodLoad => {
            let mut lines = Vec::new();
            while input.left() > 0 {
                let offset = u32::try_from(input.number()?).ok()?;
                lines.push((offset, line(&mut input)?));
            }
            Body::CompiledMethodLoad(Box::new(CompiledMethod {
                method: JMethodId(n[0]),
                address: n[1],
                size: u32::try_from(n[2]).ok()?,
                lines,
            }))
        }
        K::ThreadStart => Body::ThreadStart(Box::new(ThreadStart {
            env: EnvId(n[0]),
            object: ObjectHandle(n[1]),
            name: input.text()?,
            group: input.text()?,
            parent: input.text()?,
        })),
        K::ClassLoadHook => Body::ClassLoadHook {
            class_data: bytes.to_vec(),
        },
        K::ObjectDump => Body::ObjectDump {
            data: bytes.to_vec(),
        },
        K::HeapDump => Body::HeapDump(Box::new(HeapDump {
            level: DumpLevel::from_code(n[0])?,
            traces: traces(&mut input)?,
            data: bytes[input.position()..].to_vec(),
        })),
        K::MonitorDump => Body::MonitorDump(Box::new(MonitorDump {
            traces: traces(&mut input)?,
            status: list(&mut input, line)?,
            data: bytes[input.position()..].to_vec(),
        })),
        K::ClassLoad => Body::ClassLoad(Box::new(class(n[0], &mut input)?)),
        K::ArenaNew => Body::ArenaNew {
            arena: arena(n[0])?,
            name: text(),
        },
        K::RawMonitorContendedEnter => Body::RawMonitorContendedEnter {
            monitor,
            name: text(),
        },
        K::RawMonitorContendedEntered => Body::RawMonitorContendedEntered {
            monitor,
            name: text(),
        },
        K::RawMonitorContendedExit => Body::RawMonitorContendedExit {
            monitor,
            name: text(),
        },
        _ => return None,
    })
}
