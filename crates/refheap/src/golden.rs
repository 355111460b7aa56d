//! The events of a script as text, for golden sequences.

use vmpi::wire::Item;
use vmpi::{BasicType, Body, Switches};

use crate::{Config, RefVm, Script, script};

/// Runs a script and returns its memory events, one per line, ids in hexadecimal.
pub(crate) fn events(config: Config, text: &str) -> String {
    let script: Script = text.parse().expect("a script");
    let mut lines = Vec::new();
    let mut vm = RefVm::new(
        config,
        Switches::all(),
        Box::new(|env, item| {
            if let Some(line) = line(item) {
                lines.push(format!("{}: {line}", env.0));
            }
        }),
    );
    let end = script::run(&script, &mut vm);
    drop(vm);
    if let Err(error) = end {
        lines.push(error.to_string());
    }
    lines.join("\n")
}

fn line(item: &Item) -> Option<String> {
    let Item::Event { body, .. } = item else {
        return None;
    };
    Some(match body {
        Body::ArenaNew { arena, name } => format!("new_arena {} {name}", arena.0),
        Body::ArenaDelete { arena } => format!("delete_arena {}", arena.0),
        Body::ObjectAlloc(a) => {
            let array = a
                .array
                .map_or(String::new(), |kind: BasicType| format!(" {kind:?}[]"));
            format!(
                "new_object {:x} in {} size {}{array}",
                a.object.0, a.arena.0, a.size
            )
        }
        Body::ObjectFree { object } => format!("delete_object {:x}", object.0),
        Body::ObjectMove(m) => format!(
            "move_object {:x} in {} to {:x} in {}",
            m.object.0, m.arena.0, m.new_object.0, m.new_arena.0
        ),
        Body::GcStart { kind } => format!("gc_start {kind:?}"),
        Body::GcFinish(info) => format!(
            "gc_finish {} objects, {} of {} bytes",
            info.used_objects, info.used_space, info.total_space
        ),
        _ => return None,
    })
}

/// A list of three objects, of which the middle one is freed, and a freed object before it.
pub(crate) const SMALL: &str = "
class Node 1
d = new Node
a = new Node
b = new Node
c = new byte[10]
a[0] = b
d = null
b = null
a[0] = null
a[0] = c
c = null
gc
e = new Node
";
