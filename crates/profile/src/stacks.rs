//! Methods, frames and traces: the stacks that every table refers to.

use crate::names::NameId;
use hprof::Serial;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A method in [`Stacks`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MethodId(pub u32);

/// A frame in [`Stacks`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FrameId(pub u32);

/// A trace in [`Stacks`]. 0 is the empty trace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct TraceId(pub u32);

impl TraceId {
    /// The trace without frames.
    pub const EMPTY: TraceId = TraceId(0);
}

/// A method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Method {
    /// Class name with dots.
    pub class: NameId,
    /// Method name.
    pub name: NameId,
    /// Descriptor; empty when the source of the profile has none (the text form).
    pub signature: NameId,
    /// Source file; empty when unknown.
    pub source: NameId,
}

/// Where in its method a frame stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A line of the source file.
    Number(u32),
    /// Not known or not requested.
    #[default]
    Unknown,
    /// Compiled code without line.
    Compiled,
    /// A native method.
    Native,
}

/// A method and the place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The method.
    pub method: MethodId,
    /// The place.
    pub line: Line,
}

/// What distinguishes two traces of the same frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TraceKey {
    /// The number the file gives it; `Serial(0)` when it has none.
    pub serial: Serial,
    /// Serial of its thread, when traces are kept per thread.
    pub thread: Option<Serial>,
}

/// The tables of methods, frames and traces. Frames of all traces lie in one column, innermost
/// first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stacks {
    methods: Vec<Method>,
    frames: Vec<Frame>,
    trace_keys: Vec<TraceKey>,
    trace_ends: Vec<u32>,
    trace_frames: Vec<FrameId>,
    #[serde(skip)]
    method_ids: FxHashMap<Method, MethodId>,
    #[serde(skip)]
    frame_ids: FxHashMap<Frame, FrameId>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let mut stacks = Stacks {
            methods: Vec::new(),
            frames: Vec::new(),
            trace_keys: Vec::new(),
            trace_ends: Vec::new(),
            trace_frames: Vec::new(),
            method_ids: FxHashMap::default(),
            frame_ids: FxHashMap::default(),
        };
        stacks.push_trace(TraceKey::default(), &[]);
        stacks
    }
}

impl Stacks {
    /// The id of a method, which is added if it is new.
    pub fn intern_method(&mut self, method: Method) -> MethodId {
        let next = MethodId(self.methods.len() as u32);
        *self.method_ids.entry(method).or_insert_with(|| {
            self.methods.push(method);
            next
        })
    }

    /// The id of a frame, which is added if it is new.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        let next = FrameId(self.frames.len() as u32);
        *self.frame_ids.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            next
        })
    }

    /// Adds a trace. As in the file, traces with equal frames are different traces.
    pub fn push_trace(&mut self, key: TraceKey, frames: &[FrameId]) -> TraceId {
        let id = TraceId(self.trace_keys.len() as u32);
        self.trace_keys.push(key);
        self.trace_frames.extend_from_slice(frames);
        self.trace_ends.push(self.trace_frames.len() as u32);
        id
    }

    /// A method.
    ///
    /// # Panics
    /// The id is unknown.
    pub fn method(&self, id: MethodId) -> Method {
        self.methods[id.0 as usize]
    }

    /// A frame.
    ///
    /// # Panics
    /// The id is unknown.
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames[id.0 as usize]
    }

    /// The frames of a trace, innermost first; none if the id is unknown.
    pub fn frames(&self, id: TraceId) -> &[FrameId] {
        let at = id.0 as usize;
        let Some(end) = self.trace_ends.get(at) else {
            return &[];
        };
        let from = at
            .checked_sub(1)
            .map_or(0, |before| self.trace_ends[before]);
        &self.trace_frames[from as usize..*end as usize]
    }

    /// Serial and thread of a trace.
    pub fn key(&self, id: TraceId) -> TraceKey {
        self.trace_keys
            .get(id.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    /// All traces, the empty one first.
    pub fn traces(&self) -> impl Iterator<Item = TraceId> + use<> {
        (0..self.trace_keys.len() as u32).map(TraceId)
    }

    /// Number of methods.
    pub fn method_count(&self) -> usize {
        self.methods.len()
    }

    /// Number of frames.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Number of traces, the empty one included.
    pub fn trace_count(&self) -> usize {
        self.trace_keys.len()
    }
}
