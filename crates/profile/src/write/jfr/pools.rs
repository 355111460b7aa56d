//! The constant pools of a chunk: symbols, classes, methods, stacks and threads.

use super::buffer::Buffer;
use super::metadata::types;
use crate::{Frame, Line, MethodId, NameId, Profile, Thread, TraceId};
use std::collections::HashMap;

/// Frame types of the pool.
const FRAME_TYPES: [&str; 3] = ["Unknown", "JIT compiled", "Native"];
/// The state of a sampled thread.
const STATE_RUNNABLE: &str = "STATE_RUNNABLE";
const STATE_SLEEPING: &str = "STATE_SLEEPING";

/// One pool: values in order of their ids, from 1.
#[derive(Default)]
struct Pool {
    entries: Buffer,
    count: u64,
}

impl Pool {
    fn add(&mut self, write: impl FnOnce(&mut Buffer)) -> u64 {
        self.count += 1;
        self.entries.varint(self.count);
        write(&mut self.entries);
        self.count
    }
}

/// All pools. 0 is "nothing" in each.
pub(super) struct Pools<'a> {
    profile: &'a Profile,
    pools: [(u64, Pool); 11],
    symbols: HashMap<String, u64>,
    classes: HashMap<NameId, u64>,
    packages: HashMap<(String, u64), u64>,
    modules: HashMap<NameId, u64>,
    groups: HashMap<NameId, u64>,
    methods: HashMap<MethodId, u64>,
    stacks: HashMap<TraceId, u64>,
    threads: HashMap<u32, u64>,
    known_threads: HashMap<u32, Thread>,
}

// Indexes in `pools`.
const SYMBOLS: usize = 0;
const CLASSES: usize = 1;
const METHODS: usize = 2;
const STACKS: usize = 3;
const THREADS: usize = 4;
const FRAMES: usize = 5;
const STATES: usize = 6;
const GROUPS: usize = 7;
const PACKAGES: usize = 8;
const MODULES: usize = 9;
const OBJECTS: usize = 10;

impl<'a> Pools<'a> {
    pub(super) fn new(profile: &'a Profile) -> Pools<'a> {
        let pool = |kind| (kind, Pool::default());
        let mut pools = Pools {
            profile,
            pools: [
                pool(types::SYMBOL),
                pool(types::CLASS),
                pool(types::METHOD),
                pool(types::STACK_TRACE),
                pool(types::THREAD),
                pool(types::FRAME_TYPE),
                pool(types::THREAD_STATE),
                pool(types::THREAD_GROUP),
                pool(types::PACKAGE),
                pool(types::MODULE),
                pool(types::OLD_OBJECT),
            ],
            symbols: HashMap::new(),
            classes: HashMap::new(),
            packages: HashMap::new(),
            modules: HashMap::new(),
            groups: HashMap::new(),
            methods: HashMap::new(),
            stacks: HashMap::new(),
            threads: HashMap::new(),
            known_threads: profile.threads_by_serial().into_iter().collect(),
        };
        for name in FRAME_TYPES {
            pools.pools[FRAMES].1.add(|out| out.string(name));
        }
        for state in [STATE_RUNNABLE, STATE_SLEEPING] {
            pools.pools[STATES].1.add(|out| out.string(state));
        }
        pools
    }

    /// The id of the state of threads that run.
    pub(super) fn runnable(&self) -> u64 {
        1
    }

    /// The id of the state of threads that wait.
    pub(super) fn sleeping(&self) -> u64 {
        2
    }

    fn symbol(&mut self, text: &str) -> u64 {
        if let Some(id) = self.symbols.get(text) {
            return *id;
        }
        let id = self.pools[SYMBOLS].1.add(|out| out.string(text));
        self.symbols.insert(text.to_owned(), id);
        id
    }

    fn class_of(&mut self, class: NameId) -> u64 {
        if let Some(id) = self.classes.get(&class) {
            return *id;
        }
        // JFR has class names as in the VM: slashes, and descriptors for arrays.
        let name = self.profile.names.get(class);
        let package = self.package(class);
        let symbol = self.symbol(&vm_name(name));
        let id = self.pools[CLASSES].1.add(|out| {
            out.varint(symbol);
            out.varint(package);
        });
        self.classes.insert(class, id);
        id
    }

    /// The id of a class's package; 0 for the unnamed package.
    fn package(&mut self, class: NameId) -> u64 {
        let profile = self.profile;
        let Some(name) = package_name(profile.names.get(class)) else {
            return 0;
        };
        let place = profile.places.get(class).unwrap_or_default();
        let module = self.module(place.module);
        let key = (name.replace('.', "/"), module);
        if let Some(id) = self.packages.get(&key) {
            return *id;
        }
        let symbol = self.symbol(&key.0);
        let id = self.pools[PACKAGES].1.add(|out| {
            out.varint(symbol);
            out.varint(module);
            out.byte(0);
        });
        self.packages.insert(key, id);
        id
    }

    /// The id of a named module; 0 for none.
    fn module(&mut self, name: NameId) -> u64 {
        let text = self.profile.names.get(name);
        if text.is_empty() {
            return 0;
        }
        if let Some(id) = self.modules.get(&name) {
            return *id;
        }
        let symbol = self.symbol(text);
        let id = self.pools[MODULES].1.add(|out| out.varint(symbol));
        self.modules.insert(name, id);
        id
    }

    /// The id of a class; 0 for none.
    pub(super) fn class(&mut self, class: Option<NameId>) -> u64 {
        class.map_or(0, |class| self.class_of(class))
    }

    /// Adds an old object. Its address is not known; its number in this pool is written instead.
    pub(super) fn old_objects(&mut self, class: u64, description: &str) -> u64 {
        let address = self.pools[OBJECTS].1.count + 1;
        self.pools[OBJECTS].1.add(|out| {
            out.varint(address);
            out.varint(class);
            out.string(description);
            out.varint(0); // Who refers to them is not known.
        })
    }

    fn method(&mut self, id: MethodId) -> u64 {
        if let Some(known) = self.methods.get(&id) {
            return *known;
        }
        let profile = self.profile;
        let method = profile.stacks.method(id);
        let class = self.class_of(method.class);
        let name = self.symbol(profile.names.get(method.name));
        let signature = match profile.names.get(method.signature) {
            // The text form has no descriptors, but readers require one.
            "" => "()V",
            signature => signature,
        };
        let signature = self.symbol(signature);
        let new = self.pools[METHODS].1.add(|out| {
            [class, name, signature, 0]
                .into_iter()
                .for_each(|value| out.varint(value));
            out.byte(0);
        });
        self.methods.insert(id, new);
        new
    }

    /// The id of a stack; 0 for the empty one.
    pub(super) fn stack(&mut self, trace: TraceId) -> u64 {
        if let Some(id) = self.stacks.get(&trace) {
            return *id;
        }
        let profile = self.profile;
        let frames = profile.stacks.frames(trace);
        if frames.is_empty() {
            return 0;
        }
        let frames: Vec<(u64, u64, u64)> = frames
            .iter()
            .map(|id| {
                let Frame { method, line } = profile.stacks.frame(*id);
                let (number, kind) = match line {
                    Line::Number(number) => (u64::from(number), 1),
                    Line::Compiled => (0, 2),
                    Line::Native => (0, 3),
                    Line::Unknown => (0, 1),
                };
                (self.method(method), number, kind)
            })
            .collect();
        let id = self.pools[STACKS].1.add(|out| {
            out.byte(0);
            out.varint(frames.len() as u64);
            for (method, line, kind) in frames {
                [method, line, 0, kind]
                    .into_iter()
                    .for_each(|value| out.varint(value));
            }
        });
        self.stacks.insert(trace, id);
        id
    }

    /// The id of the thread of a trace; 0 when traces are not separated by thread.
    pub(super) fn thread(&mut self, trace: TraceId) -> u64 {
        let serial = self.profile.stacks.key(trace).thread;
        serial.map_or(0, |serial| self.thread_of_serial(serial.0))
    }

    /// The id of a thread.
    pub(super) fn thread_of_serial(&mut self, serial: u32) -> u64 {
        let profile = self.profile;
        if let Some(id) = self.threads.get(&serial) {
            return *id;
        }
        let known = self.known_threads.get(&serial).copied();
        let name = known.map_or("", |thread| profile.names.get(thread.name));
        let group = known.map_or(0, |thread| self.group(thread.group));
        let id = self.pools[THREADS].1.add(|out| {
            out.string(name);
            out.varint(u64::from(serial));
            out.string(name);
            out.varint(u64::from(serial));
            out.varint(group);
        });
        self.threads.insert(serial, id);
        id
    }

    /// The id of a thread group; 0 for none. Its parent groups are not known.
    fn group(&mut self, name: NameId) -> u64 {
        let text = self.profile.names.get(name);
        if text.is_empty() {
            return 0;
        }
        if let Some(id) = self.groups.get(&name) {
            return *id;
        }
        let id = self.pools[GROUPS].1.add(|out| {
            out.varint(0);
            out.string(text);
        });
        self.groups.insert(name, id);
        id
    }

    /// The body of the checkpoint event, without its size.
    pub(super) fn checkpoint(&self) -> Buffer {
        let mut body = Buffer::default();
        // Type 1, start, duration, no earlier checkpoint, flushed.
        for value in [1, 0, 0, 0] {
            body.varint(value);
        }
        body.byte(1);
        let filled = self.pools.iter().filter(|(_, pool)| pool.count > 0);
        body.varint(filled.clone().count() as u64);
        for (kind, pool) in filled {
            body.varint(*kind);
            body.varint(pool.count);
            body.0.extend_from_slice(&pool.entries.0);
        }
        body
    }
}

/// `java.lang` of `java.lang.String[]`; the suffix of a hidden class, after its slash, may have dots.
fn package_name(class: &str) -> Option<&str> {
    let visible = class.split('/').next().unwrap_or(class);
    visible.rsplit_once('.').map(|(package, _)| package)
}

/// `int[][]` to `[[I`, `java.lang.String` to `java/lang/String`.
fn vm_name(name: &str) -> String {
    let element = name.trim_end_matches("[]");
    let dims = (name.len() - element.len()) / 2;
    let slashed = element.replace('.', "/");
    if dims == 0 {
        return slashed;
    }
    let base = match element {
        "boolean" => "Z",
        "char" => "C",
        "float" => "F",
        "double" => "D",
        "byte" => "B",
        "short" => "S",
        "int" => "I",
        "long" => "J",
        _ => return format!("{}L{slashed};", "[".repeat(dims)),
    };
    format!("{}{base}", "[".repeat(dims))
}

#[cfg(test)]
mod tests {
    use super::{package_name, vm_name};

    #[test]
    fn packages_are_what_stands_before_the_last_dot() {
        for (class, package) in [
            ("java.lang.String[]", Some("java.lang")),
            ("a.b.C$D", Some("a.b")),
            ("a.B$$Lambda/0x00.7f", Some("a")),
            ("Main", None),
            ("int[]", None),
        ] {
            assert_eq!(package_name(class), package, "{class}");
        }
    }

    #[test]
    fn names_become_those_of_the_vm() {
        assert_eq!(vm_name("int[][]"), "[[I");
        assert_eq!(vm_name("java.lang.String"), "java/lang/String");
        assert_eq!(vm_name("a.B[]"), "[La/B;");
        assert_eq!(vm_name("Float"), "Float");
    }
}
