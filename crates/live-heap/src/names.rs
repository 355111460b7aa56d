//! Names of ids: classes, sites, arenas.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use vmpi::{BasicType, CallFrame, ClassLoad, EnvId, ObjectHandle, ThreadStart};

/// The most classes and sites that are distinguished; further ones share the last number, so that no stream can make
/// the tables larger.
const GROUPS: u32 = 1 << 16;

/// The most bytes of a name that are shown: a stream may have a name of any length, and refer to it in every frame.
const SHOWN: usize = 4096;
/// The most frames of a stack that are shown: no host dumps more.
const DEEPEST: usize = 1024;

/// The part of a name that is shown.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(SHOWN);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// A limit for text in bytes; text that does not fit is left out, and so is all later text.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    /// How many texts were left out.
    pub(crate) omitted: u64,
}

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            omitted: 0,
        }
    }

    /// The remaining bytes.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Returns a text, if it fits into the limit.
    pub(crate) fn take(&mut self, text: impl FnOnce() -> String) -> Option<String> {
        if self.left > 0 {
            let text = text();
            // Even an empty text uses some memory.
            let bytes = text.len() + size_of::<String>();
            if bytes <= self.left {
                self.left -= bytes;
                return Some(text);
            }
            self.left = 0;
        }
        self.omitted += 1;
        None
    }
}

/// The kind of an allocated object: class, element type, stack.
type KindKey = (u64, u8, u32);

/// A small cache of the last results.
#[derive(Debug)]
struct Recent(Vec<(KindKey, u32)>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![((0, u8::MAX, 0), 0); 1024])
    }
}

impl Recent {
    /// Ids are addresses or small numbers: combines the bits that differ.
    #[inline]
    fn place(key: KindKey) -> usize {
        let mixed = key.0 ^ u64::from(key.1) << 57 ^ u64::from(key.2) << 32;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
    }
}

/// A class that was loaded.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) load: ClassLoad,
    /// How many of its static fields are references, if all their types are known.
    pub(crate) static_references: Option<u32>,
}

/// Classes, methods and stacks by id.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) classes: FxHashMap<u64, Class>,
    /// Class and name of each method, by id.
    methods: FxHashMap<u64, (Arc<str>, Box<str>)>,
    /// Methods in the frames of stacks: they keep their names when their classes are unloaded.
    in_stacks: FxHashSet<u64>,
    /// Names of threads by env; the name of an ended thread is kept until another thread has its env.
    threads: FxHashMap<u64, String>,
    traces: FxHashMap<u32, Vec<CallFrame>>,
    groups: FxHashMap<(u64, u8), u32>,
    /// Class and element type of each class number.
    keys: Vec<(u64, u8)>,
    titles: Vec<Option<String>>,
    sites: FxHashMap<u32, u32>,
    site_traces: Vec<u32>,
    /// Class and site of each kind.
    pub(crate) kinds: Vec<(u32, u32)>,
    kind_numbers: FxHashMap<(u32, u32), u32>,
    /// Recently requested kinds, each at the one position for its key.
    recent: Recent,
}

impl Names {
    pub(crate) fn load(&mut self, class: &ClassLoad) {
        let name: Arc<str> = cut(&class.name).into();
        for method in &class.methods {
            let name = (Arc::clone(&name), cut(&method.name).into());
            self.methods.insert(method.method.0, name);
        }
        let loaded = Class {
            load: class.clone(),
            static_references: class.static_references(),
        };
        let old = self.classes.insert(class.class.0, loaded);
        if old.is_some_and(|old| old.load.name != class.name) {
            self.forget(class.class.0);
        }
        for (key, title) in self.keys.iter().zip(&mut self.titles) {
            if key.0 == class.class.0 && title.is_none() {
                *title = Some(titled(&class.name, key.1));
            }
        }
    }

    pub(crate) fn start(&mut self, thread: &ThreadStart) {
        if self.threads.len() < GROUPS as usize || self.threads.contains_key(&thread.env.0) {
            self.threads
                .insert(thread.env.0, cut(&thread.name).to_owned());
        }
    }

    /// The name of a thread, or its env in hexadecimal.
    pub(crate) fn thread_name(&self, env: EnvId) -> String {
        let name = self.threads.get(&env.0).cloned();
        name.unwrap_or_else(|| format!("thread {:#x}", env.0))
    }

    /// The name of a class by its id, or of arrays with this element type.
    pub(crate) fn title(&self, class: u64, array: Option<BasicType>) -> String {
        let code = array.map_or(0, |kind| kind as u8);
        match (self.classes.get(&class), array) {
            (_, Some(kind)) if kind != BasicType::Object => titled("", code),
            (Some(class), _) => titled(&class.load.name, code),
            (None, _) => titled(&format!("class {class:#x}"), code),
        }
    }

    pub(crate) fn unload(&mut self, class: ObjectHandle) {
        let methods = self
            .classes
            .remove(&class.0)
            .map(|class| class.load.methods);
        for method in methods.into_iter().flatten().map(|method| method.method.0) {
            if !self.in_stacks.contains(&method) {
                self.methods.remove(&method);
            }
        }
        self.forget(class.0);
    }

    /// A class object was moved, so its id has changed.
    #[inline]
    pub(crate) fn class_moved(&mut self, old: u64, new: u64) {
        if let Some(class) = self.classes.remove(&old) {
            self.classes.insert(new, class);
            for code in [0, BasicType::Object as u8] {
                if let Some(group) = self.groups.remove(&(old, code)) {
                    self.groups.insert((new, code), group);
                }
            }
            self.recent = Recent::default();
        }
    }

    fn forget(&mut self, class: u64) {
        for code in [0, BasicType::Object as u8] {
            self.groups.remove(&(class, code));
        }
        self.recent = Recent::default();
    }

    /// The number of a kind (objects of one class from one site), and whether it is new.
    #[inline]
    pub(crate) fn kind_of(
        &mut self,
        class: ObjectHandle,
        array: Option<BasicType>,
        trace: u32,
    ) -> (u32, bool) {
        let key = (class.0, array.map_or(0, |kind| kind as u8), trace);
        let place = Recent::place(key);
        let (last, kind) = self.recent.0[place];
        if last == key {
            return (kind, false);
        }
        let pair = (self.class_of((key.0, key.1)), self.site_of(trace));
        let fresh = self.kinds.len() as u32;
        let kind = *self
            .kind_numbers
            .entry(pair)
            .or_insert(fresh.min(GROUPS - 1));
        if kind == fresh {
            self.kinds.push(pair);
        }
        self.recent.0[place] = (key, kind);
        (kind, kind == fresh)
    }

    fn class_of(&mut self, key: (u64, u8)) -> u32 {
        let fresh = self.keys.len() as u32;
        let group = *self.groups.entry(key).or_insert(fresh.min(GROUPS - 1));
        if group == fresh {
            let name = self
                .classes
                .get(&key.0)
                .map(|class| class.load.name.as_str());
            self.titles.push(match vmpi::dump::basic_type(key.1) {
                Some(kind) if kind != BasicType::Object => Some(titled("", key.1)),
                _ => name.map(|name| titled(name, key.1)),
            });
            self.keys.push(key);
        }
        group
    }

    fn site_of(&mut self, trace: u32) -> u32 {
        let fresh = self.site_traces.len() as u32;
        let site = *self.sites.entry(trace).or_insert(fresh.min(GROUPS - 1));
        if site == fresh {
            self.site_traces.push(trace);
        }
        site
    }

    /// How many classes and sites there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.keys.len(), self.site_traces.len())
    }

    pub(crate) fn trace(&mut self, id: u32, frames: Vec<CallFrame>) {
        let methods = frames.iter().map(|frame| frame.method.0);
        self.in_stacks.extend(methods);
        self.traces.insert(id, frames);
    }

    /// The name of a class by its number.
    pub(crate) fn class_name(&self, class: u32) -> String {
        let title = self.titles.get(class as usize).cloned().flatten();
        title.unwrap_or_else(|| match self.keys.get(class as usize) {
            Some((0, 0)) => "java.lang.Class".into(),
            Some((0, _)) => "unknown[]".into(),
            Some((id, _)) => format!("class {id:#x}"),
            None => "unknown".into(),
        })
    }

    /// The frames of a site by its number, innermost first; empty if there is no
    /// stack.
    pub(crate) fn site_frames(&self, site: u32) -> Vec<String> {
        self.site_frames_in(site, &mut Room::new(usize::MAX))
    }

    /// As [`Self::site_frames`], as far as they fit.
    pub(crate) fn site_frames_in(&self, site: u32, room: &mut Room) -> Vec<String> {
        let trace = self.site_traces.get(site as usize).copied().unwrap_or(0);
        let frames = self.traces.get(&trace).map_or(&[][..], Vec::as_slice);
        self.frames(frames, room)
    }

    /// Frames by name.
    pub(crate) fn frames(&self, frames: &[CallFrame], room: &mut Room) -> Vec<String> {
        let (shown, others) = frames.split_at(frames.len().min(DEEPEST));
        room.omitted += others.len() as u64;
        let shown = shown.iter();
        shown
            .filter_map(|frame| room.take(|| self.frame(frame)))
            .collect()
    }

    fn frame(&self, frame: &CallFrame) -> String {
        let method = match self.methods.get(&frame.method.0) {
            Some((class, name)) => format!("{class}.{name}"),
            None => format!("method {:#x}", frame.method.0),
        };
        match frame.line {
            line if line > 0 => format!("{method}:{line}"),
            _ => method,
        }
    }
}

fn titled(name: &str, code: u8) -> String {
    let name = cut(name);
    match vmpi::dump::basic_type(code) {
        None => name.into(),
        Some(BasicType::Object) => format!("{name}[]"),
        Some(kind) => format!("{}[]", format!("{kind:?}").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi::{JMethodId, MethodDef};

    fn class(id: u64, method: u64) -> ClassLoad {
        ClassLoad {
            class: ObjectHandle(id),
            name: format!("Script{id}"),
            methods: vec![MethodDef {
                name: "run".into(),
                method: JMethodId(method),
                ..MethodDef::default()
            }],
            ..ClassLoad::default()
        }
    }

    #[test]
    fn an_unloaded_class_leaves_the_names_of_methods_that_stacks_have() {
        let mut names = Names::default();
        names.load(&class(1, 10_001));
        let frame = CallFrame {
            line: 7,
            method: JMethodId(10_001),
        };
        names.trace(1, vec![frame]);
        names.unload(ObjectHandle(1));
        for id in 2..50_000 {
            names.load(&class(id, 10_000 + id));
            names.unload(ObjectHandle(id));
        }
        assert_eq!((names.classes.len(), names.methods.len()), (0, 1));
        let shown = names.frames(&[frame], &mut Room::new(usize::MAX));
        assert_eq!(shown, ["Script1.run:7"]);
    }
}
