//! Converts events to the structures of C.

use std::ffi::CString;

use vmpi::c_interface::layout::{
    self, CallFrame, CallTrace, EnvPtr, Field, Method, MethodPtr, NOTHING, ObjectId, Payload,
};
use vmpi::{Body, CallTrace as Trace, ClassLoad, EnvId, FieldDef, ObjectHandle};

/// A thread of this VM as the pointer that agents use for it.
pub(super) fn env(env: EnvId) -> EnvPtr {
    env.0 as usize as EnvPtr
}

fn id(object: ObjectHandle) -> ObjectId {
    object.0 as ObjectId
}

fn narrow(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Text for C; it ends before the first zero byte.
pub(super) fn text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Frames for C.
pub(super) fn frames(trace: &Trace) -> Vec<CallFrame> {
    let frame = |frame: &vmpi::CallFrame| CallFrame {
        line: frame.line,
        method: frame.method.0 as usize as MethodPtr,
    };
    trace.frames.iter().map(frame).collect()
}

/// Traces for C, which point into `frames`.
fn traces(all: &[Trace], frames: &mut [Vec<CallFrame>]) -> Vec<CallTrace> {
    let trace = |(trace, frames): (&Trace, &mut Vec<CallFrame>)| CallTrace {
        env: env(trace.env),
        count: frames.len() as i32,
        frames: frames.as_mut_ptr(),
    };
    all.iter().zip(frames).map(trace).collect()
}

/// Calls `send` with the data of an event; its pointers are valid during the call. Events that this VM does not have
/// are ignored.
pub(super) fn with(body: &Body, send: impl FnOnce(Payload)) {
    match body {
        Body::JvmInitDone | Body::JvmShutDown | Body::ThreadEnd | Body::GcStart { .. } => {
            send(NOTHING);
        }
        Body::MethodEntry { method } | Body::MethodExit { method } => send(Payload {
            method: method.0 as usize as MethodPtr,
        }),
        Body::ObjectAlloc(alloc) => send(Payload {
            obj_alloc: layout::ObjAlloc {
                arena: alloc.arena.0 as i32,
                class: id(alloc.class),
                is_array: alloc.array.map_or(0, |kind| kind as i32),
                size: narrow(alloc.size),
                object: id(alloc.object),
            },
        }),
        Body::ObjectFree { object } => send(Payload {
            object: id(*object),
        }),
        Body::ObjectMove(moved) => send(Payload {
            obj_move: layout::ObjMove {
                arena: moved.arena.0 as i32,
                object: id(moved.object),
                new_arena: moved.new_arena.0 as i32,
                new_object: id(moved.new_object),
            },
        }),
        Body::ArenaNew { arena, name } => {
            let name = text(name);
            send(Payload {
                new_arena: layout::NewArena {
                    arena: arena.0 as i32,
                    name: name.as_ptr(),
                },
            });
        }
        Body::ArenaDelete { arena } => send(Payload {
            arena: arena.0 as i32,
        }),
        Body::GcFinish(info) => send(Payload {
            gc_info: layout::GcInfo {
                used_objects: info.used_objects.cast_signed(),
                used_space: info.used_space.cast_signed(),
                total_space: info.total_space.cast_signed(),
            },
        }),
        Body::ThreadStart(start) => {
            let texts = [&start.name, &start.group, &start.parent].map(|part| text(part));
            send(Payload {
                thread_start: layout::ThreadStart {
                    name: texts[0].as_ptr(),
                    group: texts[1].as_ptr(),
                    parent: texts[2].as_ptr(),
                    thread: id(start.object),
                    env: env(start.env),
                },
            });
        }
        Body::ClassLoad(load) => with_class(load, send),
        dump => with_dump(dump, send),
    }
}

fn with_class(load: &ClassLoad, send: impl FnOnce(Payload)) {
    let (name, source) = (text(&load.name), text(&load.source));
    let strings = |fields: &[FieldDef]| -> Vec<(CString, CString)> {
        let pair = |field: &FieldDef| (text(&field.name), text(&field.signature));
        fields.iter().map(pair).collect()
    };
    let fields = |strings: &[(CString, CString)]| -> Vec<Field> {
        let field = |(name, signature): &(CString, CString)| Field {
            name: name.as_ptr(),
            signature: signature.as_ptr(),
        };
        strings.iter().map(field).collect()
    };
    let (statics, instances) = (strings(&load.statics), strings(&load.instances));
    let (statics, instances) = ((fields(&statics), statics), (fields(&instances), instances));
    let named: Vec<(CString, CString)> = load
        .methods
        .iter()
        .map(|method| (text(&method.name), text(&method.signature)))
        .collect();
    let method = |(method, (name, signature)): (&vmpi::MethodDef, &(CString, CString))| Method {
        name: name.as_ptr(),
        signature: signature.as_ptr(),
        start: method.start_line,
        end: method.end_line,
        id: method.method.0 as usize as MethodPtr,
    };
    let methods: Vec<Method> = load.methods.iter().zip(&named).map(method).collect();
    send(Payload {
        class_load: layout::ClassLoad {
            name: name.as_ptr(),
            source: source.as_ptr(),
            interfaces: load.interfaces as i32,
            method_count: methods.len() as i32,
            methods: methods.as_ptr(),
            static_count: statics.0.len() as i32,
            statics: statics.0.as_ptr(),
            instance_count: instances.0.len() as i32,
            instances: instances.0.as_ptr(),
            class: id(load.class),
        },
    });
}

fn with_dump(body: &Body, send: impl FnOnce(Payload)) {
    match body {
        Body::ObjectDump { data } => send(Payload {
            object_dump: layout::ObjectDump {
                len: narrow(data.len() as u64),
                data: data.as_ptr(),
            },
        }),
        Body::HeapDump(dump) => {
            let mut frames: Vec<_> = dump.traces.iter().map(frames).collect();
            let traces = traces(&dump.traces, &mut frames);
            let bytes = dump.data.as_ptr_range();
            send(Payload {
                heap_dump: layout::HeapDump {
                    level: dump.level as i32,
                    begin: bytes.start,
                    end: bytes.end,
                    trace_count: traces.len() as i32,
                    traces: traces.as_ptr(),
                },
            });
        }
        Body::MonitorDump(dump) => {
            let mut frames: Vec<_> = dump.traces.iter().map(frames).collect();
            let traces = traces(&dump.traces, &mut frames);
            let bytes = dump.data.as_ptr_range();
            send(Payload {
                monitor_dump: layout::MonitorDump {
                    begin: bytes.start,
                    end: bytes.end,
                    trace_count: traces.len() as i32,
                    traces: traces.as_ptr(),
                    statuses: dump.status.as_ptr(),
                },
            });
        }
        _ => {}
    }
}
