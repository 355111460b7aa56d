//! Any event: strategies for property tests.

use proptest::prelude::*;
use vmpi::wire::{ArenaState, Item, MoveRange};
use vmpi::*;

fn handle() -> impl Strategy<Value = ObjectHandle> {
    prop_oneof![0u64..64, any::<u64>()].prop_map(ObjectHandle)
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Zäé☕/$;.]{0,12}"
}

fn arena() -> impl Strategy<Value = ArenaId> {
    prop_oneof![0u32..4, any::<u32>()].prop_map(ArenaId)
}

fn array() -> impl Strategy<Value = Option<BasicType>> {
    use BasicType::*;
    prop_oneof![
        Just(None),
        prop::sample::select(vec![
            Object, Boolean, Char, Float, Double, Byte, Short, Int, Long
        ])
        .prop_map(Some)
    ]
}

fn traces() -> impl Strategy<Value = Vec<CallTrace>> {
    let frame = (any::<i32>(), any::<u64>()).prop_map(|(line, method)| CallFrame {
        line,
        method: JMethodId(method),
    });
    let frames = prop::collection::vec(frame, 0..4);
    let trace = (any::<u64>(), frames).prop_map(|(env, frames)| CallTrace {
        env: EnvId(env),
        frames,
    });
    prop::collection::vec(trace, 0..3)
}

fn fields() -> impl Strategy<Value = Vec<FieldDef>> {
    let field = (text(), text()).prop_map(|(name, signature)| FieldDef { name, signature });
    prop::collection::vec(field, 0..3)
}

fn class_load() -> impl Strategy<Value = Body> {
    let method =
        (text(), text(), any::<(i32, i32, u64)>()).prop_map(|(name, signature, n)| MethodDef {
            name,
            signature,
            start_line: n.0,
            end_line: n.1,
            method: JMethodId(n.2),
        });
    let methods = prop::collection::vec(method, 0..3);
    (
        handle(),
        text(),
        text(),
        any::<u32>(),
        methods,
        fields(),
        fields(),
    )
        .prop_map(
            |(class, name, source, interfaces, methods, statics, instances)| {
                Body::ClassLoad(Box::new(ClassLoad {
                    class,
                    name,
                    source,
                    interfaces,
                    methods,
                    statics,
                    instances,
                }))
            },
        )
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        Just(Operand::None),
        any::<bool>().prop_map(Operand::If),
        any::<(i32, i32, i32)>().prop_map(|(key, low, high)| Operand::TableSwitch {
            key,
            low,
            high
        }),
        any::<(i32, i32)>().prop_map(|(chosen, pairs)| Operand::LookupSwitch { chosen, pairs }),
    ]
}

fn frequent() -> impl Strategy<Value = Body> {
    prop_oneof![
        (
            handle(),
            handle(),
            any::<u64>(),
            arena(),
            any::<u32>(),
            array()
        )
            .prop_map(
                |(object, class, size, arena, trace, array)| Body::ObjectAlloc(ObjectAlloc {
                    object,
                    class,
                    size,
                    arena,
                    trace: TraceId(trace),
                    array,
                })
            ),
        handle().prop_map(|object| Body::ObjectFree { object }),
        (handle(), arena(), handle(), arena()).prop_map(
            |(object, arena, new_object, new_arena)| {
                Body::ObjectMove(ObjectMove {
                    object,
                    arena,
                    new_object,
                    new_arena,
                })
            }
        ),
        any::<u64>().prop_map(|m| Body::MethodEntry {
            method: JMethodId(m)
        }),
        any::<u64>().prop_map(|m| Body::MethodExit {
            method: JMethodId(m)
        }),
        (any::<u64>(), handle()).prop_map(|(m, object)| Body::MethodEntry2 {
            method: JMethodId(m),
            object
        }),
        handle().prop_map(|object| Body::MonitorContendedEnter { object }),
        handle().prop_map(|object| Body::MonitorContendedEntered { object }),
        handle().prop_map(|object| Body::MonitorContendedExit { object }),
        (handle(), any::<i64>())
            .prop_map(|(object, timeout_ms)| Body::MonitorWait { object, timeout_ms }),
        (handle(), any::<i64>())
            .prop_map(|(object, timeout_ms)| Body::MonitorWaited { object, timeout_ms }),
    ]
}

fn references() -> impl Strategy<Value = Body> {
    prop_oneof![
        (handle(), any::<u64>()).prop_map(|(object, r)| Body::JniGlobalRefAlloc {
            object,
            reference: RefId(r)
        }),
        (handle(), any::<u64>()).prop_map(|(object, r)| Body::JniWeakGlobalRefAlloc {
            object,
            reference: RefId(r)
        }),
        any::<u64>().prop_map(|r| Body::JniGlobalRefFree {
            reference: RefId(r)
        }),
        any::<u64>().prop_map(|r| Body::JniWeakGlobalRefFree {
            reference: RefId(r)
        }),
        (any::<u64>(), text()).prop_map(|(m, name)| Body::RawMonitorContendedEnter {
            monitor: RawMonitorId(m),
            name
        }),
        (any::<u64>(), text()).prop_map(|(m, name)| Body::RawMonitorContendedEntered {
            monitor: RawMonitorId(m),
            name
        }),
        (any::<u64>(), text()).prop_map(|(m, name)| Body::RawMonitorContendedExit {
            monitor: RawMonitorId(m),
            name
        }),
        (any::<(u64, u32)>(), operand()).prop_map(|((m, offset), operand)| {
            Body::InstructionStart {
                method: JMethodId(m),
                offset,
                operand,
            }
        }),
    ]
}

fn rare() -> impl Strategy<Value = Body> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    let level = prop::sample::select(vec![
        DumpLevel::Ids,
        DumpLevel::References,
        DumpLevel::Values,
    ]);
    let lines = prop::collection::vec(any::<(u32, i32)>(), 0..4);
    prop_oneof![
        class_load(),
        handle().prop_map(|class| Body::ClassUnload { class }),
        (any::<(u64, u64, u32)>(), lines).prop_map(|((m, address, size), lines)| {
            let method = JMethodId(m);
            Body::CompiledMethodLoad(Box::new(CompiledMethod {
                method,
                address,
                size,
                lines,
            }))
        }),
        any::<u64>().prop_map(|m| Body::CompiledMethodUnload {
            method: JMethodId(m)
        }),
        (any::<u64>(), handle(), text(), text(), text()).prop_map(
            |(env, object, name, group, parent)| {
                let env = EnvId(env);
                Body::ThreadStart(Box::new(ThreadStart {
                    env,
                    object,
                    name,
                    group,
                    parent,
                }))
            }
        ),
        bytes().prop_map(|class_data| Body::ClassLoadHook { class_data }),
        bytes().prop_map(|data| Body::ObjectDump { data }),
        (level, bytes(), traces()).prop_map(|(level, data, traces)| {
            Body::HeapDump(Box::new(HeapDump {
                level,
                data,
                traces,
            }))
        }),
        (bytes(), traces(), prop::collection::vec(any::<i32>(), 0..4)).prop_map(
            |(data, traces, status)| Body::MonitorDump(Box::new(MonitorDump {
                data,
                traces,
                status
            }))
        ),
        (arena(), text()).prop_map(|(arena, name)| Body::ArenaNew { arena, name }),
        arena().prop_map(|arena| Body::ArenaDelete { arena }),
        prop::sample::select(vec![GcKind::Unknown, GcKind::Young, GcKind::Full])
            .prop_map(|kind| Body::GcStart { kind }),
        any::<(u64, u64, u64)>().prop_map(|(used_objects, used_space, total_space)| {
            Body::GcFinish(GcInfo {
                used_objects,
                used_space,
                total_space,
            })
        }),
        prop::sample::select(vec![
            Body::ThreadEnd,
            Body::DataDumpRequest,
            Body::DataResetRequest,
            Body::JvmInitDone,
            Body::JvmShutDown,
        ]),
    ]
}

/// Any of the document's events.
pub(crate) fn body() -> impl Strategy<Value = Body> {
    prop_oneof![4 => frequent(), 1 => references(), 1 => rare()]
}

/// Anything on the socket but the time, which the encoder places itself.
pub(crate) fn item() -> impl Strategy<Value = Item> {
    let range = (any::<(u64, u64, u64)>(), arena(), arena()).prop_map(|(n, arena, new_arena)| {
        Item::MoveRange(MoveRange {
            from: ObjectHandle(n.0),
            len: n.1,
            arena,
            to: ObjectHandle(n.2),
            new_arena,
        })
    });
    let state = (arena(), any::<(u64, u64, u64)>()).prop_map(|(arena, n)| {
        Item::ArenaState(ArenaState {
            arena,
            start: n.0,
            used: n.1,
            capacity: n.2,
        })
    });
    let trace = (any::<u32>(), traces()).prop_map(|(id, traces)| Item::Trace {
        id: TraceId(id),
        trace: traces.into_iter().next().unwrap_or_default(),
    });
    prop_oneof![
        8 => (any::<bool>(), body()).prop_map(|(requested, body)| Item::Event { requested, body }),
        1 => range,
        1 => state,
        1 => trace,
    ]
}
