//! One event as one line.

use vmpi::wire::Item;
use vmpi::{Body, EnvId};

/// The thread, the event's name as the document writes it, and its data. Names are as the VM reported them; the caller
/// escapes them.
#[must_use]
pub fn line(env: EnvId, item: &Item) -> String {
    let text = match item {
        Item::Event { requested, body } => {
            let flag = if *requested { " (requested)" } else { "" };
            format!("{}{flag}{}", body.kind().name(), data(body))
        }
        Item::Clock { ns } => format!("time {ns} ns"),
        Item::Trace { id, trace } => format!("trace {} of {} frames", id.0, trace.frames.len()),
        Item::MoveRange(range) => format!(
            "move_range {:#x} +{} in arena {} to {:#x} in arena {}",
            range.from.0, range.len, range.arena.0, range.to.0, range.new_arena.0
        ),
        Item::ArenaState(state) => format!(
            "arena_state {} holds {} of {} bytes",
            state.arena.0, state.used, state.capacity
        ),
        Item::Lost { kind, count } => {
            format!(
                "lost {count} {}",
                kind.map_or("move_range", vmpi::EventKind::name)
            )
        }
    };
    format!("thread {} {text}", env.0)
}

fn data(body: &Body) -> String {
    match body {
        Body::ArenaNew { arena, name } => format!(" {} {name}", arena.0),
        Body::ArenaDelete { arena } => format!(" {}", arena.0),
        Body::ObjectAlloc(a) => {
            let array = a
                .array
                .map_or(String::new(), |kind| format!(" array of {kind:?}"));
            format!(
                " {:#x} in arena {} class {:#x} size {}{array} trace {}",
                a.object.0, a.arena.0, a.class.0, a.size, a.trace.0
            )
        }
        Body::ObjectFree { object } => format!(" {:#x}", object.0),
        Body::ObjectMove(m) => format!(
            " {:#x} in arena {} to {:#x} in arena {}",
            m.object.0, m.arena.0, m.new_object.0, m.new_arena.0
        ),
        Body::ClassLoad(class) => format!(" {:#x} {}", class.class.0, class.name),
        Body::ThreadStart(start) => format!(" {} {}", start.env.0, start.name),
        Body::MethodEntry { method } | Body::MethodExit { method } => format!(" {}", method.0),
        Body::GcStart { kind } => format!(" {kind:?}"),
        Body::GcFinish(info) => format!(
            " {} objects, {} of {} bytes",
            info.used_objects, info.used_space, info.total_space
        ),
        Body::HeapDump(dump) => format!(" level {} {} bytes", dump.level as u8, dump.data.len()),
        _ => String::new(),
    }
}
