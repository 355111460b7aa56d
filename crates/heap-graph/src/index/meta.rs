//! The sections of the index that are read whole, when the heap is opened or asked.

use crate::model::*;
use hprof::HeapTag;
use serde::{Deserialize, Serialize};

/// The part of the index that the first screen needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) summary: Summary,
    pub(crate) classes: Vec<ClassInfo>,
    pub(crate) primitive: [u32; 12],
    pub(crate) class_class: u32,
    pub(crate) class_object_size: Vec<u64>,
    pub(crate) objects: u64,
    pub(crate) id_shift: u32,
    /// Class objects: object number and class, by object.
    pub(crate) class_objects: Vec<(u64, u32)>,
    /// The trace serial of all objects, if they have the same.
    pub(crate) one_trace: Option<u32>,
}

/// The part of the index that only later questions need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Detail {
    pub(crate) roots: Vec<RootInfo>,
    pub(crate) threads: Vec<ThreadInfo>,
    /// Trace serial and its frames as numbers into `frames`.
    pub(crate) traces: Vec<(u32, Vec<u32>)>,
    pub(crate) frames: Vec<FrameInfo>,
    /// Android: file offset from which on objects are in this heap.
    pub(crate) heap_switches: Vec<(u64, u32)>,
    pub(crate) heap_names: Vec<(u32, String)>,
    /// References from stacks: thread object, object, kind, frame.
    pub(crate) thread_locals: Vec<(u64, u64, HeapTag, u32)>,
}
