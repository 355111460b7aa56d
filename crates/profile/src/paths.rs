//! Stacks that consist only of names, such as the classes of a dominator path.

use crate::profile::Profile;
use crate::stacks::{Frame, FrameId, Line, Method, TraceId, TraceKey};
use rustc_hash::FxHashMap;

/// Adds stacks of names to a profile; equal stacks are added once.
#[derive(Debug)]
pub struct PathWriter<'a> {
    profile: &'a mut Profile,
    known: FxHashMap<Vec<FrameId>, TraceId>,
}

impl<'a> PathWriter<'a> {
    /// A writer for a profile.
    pub fn new(profile: &'a mut Profile) -> PathWriter<'a> {
        PathWriter {
            profile,
            known: FxHashMap::default(),
        }
    }

    /// The stack of these names, outermost first.
    pub fn path<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> TraceId {
        let profile = &mut *self.profile;
        let mut frames: Vec<_> = names
            .into_iter()
            .map(|name| {
                let class = profile.names.intern(name);
                let method = profile.stacks.intern_method(Method {
                    class,
                    ..Method::default()
                });
                let line = Line::Unknown;
                profile.stacks.intern_frame(Frame { method, line })
            })
            .collect();
        frames.reverse();
        if let Some(known) = self.known.get(&frames) {
            return *known;
        }
        let trace = profile.stacks.push_trace(TraceKey::default(), &frames);
        self.known.insert(frames, trace);
        trace
    }
}
