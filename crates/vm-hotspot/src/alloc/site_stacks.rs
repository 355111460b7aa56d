//! The sites of objects if stacks are sampled, and their stacks.
//!
//! A site is an instruction, so its stack is one frame: the method and line that allocate. Objects whose constructor is
//! called by native code, a method handle or a class of a lambda have no such instruction; they share one site of their
//! class, without a frame. For each object that the tracker picks, the stack is read from the allocating frame on and
//! counted for its site ([`Tallies`](crate::alloc::tallies::Tallies)).

use jvmti::{Env, FrameRow, Jni, Live};
use vmpi::{ClassId, ClassOptions, Frame, ThreadId, Trace};

use crate::alloc::sites::SiteId;
use crate::instrument::numbers::Numbers;
use crate::vm::config::Config;
use crate::vm::hotspot::HotSpot;
use crate::vm::state::{At, MOST_FRAMES, NOWHERE, OTHER_STACK, State, TRACKER_FRAMES};

/// What allocates.
#[derive(Clone, Copy)]
pub(crate) enum Maker<'a> {
    /// A native method, or the VM for one.
    Native,
    /// Code that calls a constructor and has no inserted code: native code, a method handle, a class of a lambda.
    Constructor,
    /// The instruction with this number.
    Instruction(i64, &'a Numbers),
}

impl<'a> Maker<'a> {
    /// The maker of the object that the current thread counts.
    pub(crate) fn of(at: &At<'a>) -> Self {
        match at.tracker.context(at.jni, at.object) {
            0 => Self::Constructor,
            site => Self::Instruction(site, at.numbers),
        }
    }

    /// The descriptor of the constructor that allocates, if that is of the object's own class.
    fn own(self) -> Option<Box<[u8]>> {
        match self {
            Self::Instruction(site, numbers) => numbers.own(site),
            Self::Native | Self::Constructor => None,
        }
    }
}

/// Frames of the current stack, innermost first.
pub(crate) struct StackRows {
    rows: Vec<FrameRow>,
    /// The stack has no other frames.
    is_whole: bool,
}

/// Frames above the allocating one that are expected: the tracker's, and constructors of the object's classes.
const ABOVE: usize = TRACKER_FRAMES + 4;

impl StackRows {
    /// The first `depth` frames and some more.
    fn read(env: Env<Live>, depth: usize, more: usize) -> Self {
        let mut rows = vec![NOWHERE; depth + more];
        let count = env.stack_into(None, &mut rows).unwrap_or(0);
        rows.truncate(count);
        Self {
            rows,
            is_whole: count < depth + more,
        }
    }
}

impl HotSpot {
    /// The stack of the current thread, which allocates. The state must not be locked meanwhile: reading a stack takes
    /// as long as everything else that is done for a sample, and other threads would wait.
    pub(crate) fn allocating_stack(&self) -> Option<StackRows> {
        let env = self.live()?;
        let depth = (self.lock().depth as usize).min(MOST_FRAMES);
        (depth > 0).then(|| StackRows::read(env, depth, ABOVE))
    }
}

impl State {
    /// The site of an object that the current thread makes, whose stack is sampled.
    pub(crate) fn sampled_site(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        config: &Config,
        (class, options): (ClassId, ClassOptions),
        by: Maker<'_>,
    ) -> SiteId {
        let frames = match options.stack {
            true => self.allocating_frames((env, jni), class, by, None),
            false => Vec::new(),
        };
        let thread = match config.per_thread || options.context {
            true => self.registry.maker(env),
            false => ThreadId::NONE,
        };
        let first = frames.first().filter(|_| !matches!(by, Maker::Constructor));
        let trace = self.registry.trace(Trace {
            thread,
            frames: first.copied().into_iter().collect(),
        });
        let site = self.sites.site(class, trace, options.share);
        self.tally(site, Trace { thread, frames }, 0);
        site
    }

    /// Counts the stack of an object that the current thread makes, which stands for `2^weight_log2` objects of its
    /// site.
    pub(crate) fn sample_stack(
        &mut self,
        at: &At<'_>,
        (site, weight_log2): (SiteId, u32),
        stack: Option<StackRows>,
    ) {
        let Some((class, known, ..)) = self.sites.about(site) else {
            return;
        };
        let by = Maker::of(at);
        let known = self.registry.traces.get(known.0);
        let (thread, first) = known.map_or((ThreadId::NONE, None), |known| {
            (known.thread, known.frames.first().copied())
        });
        if first.is_none() && !matches!(by, Maker::Constructor) {
            // Its stacks are not recorded.
            return;
        }
        let frames = self.allocating_frames((at.env, at.jni), class, by, stack);
        if first.is_some() && first != frames.first().copied() {
            *self.lost.entry(OTHER_STACK).or_default() += 1;
            return;
        }
        self.tally(site, Trace { thread, frames }, weight_log2);
    }

    fn tally(&mut self, site: SiteId, stack: Trace, weight_log2: u32) {
        let stack = self.registry.trace(stack);
        let memory = &self.registry.memory;
        self.sites.tallies.add(memory, (site, stack), weight_log2);
    }

    /// The current stack, if it was not read before, from the frame that allocates an object of this class.
    fn allocating_frames(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        class: ClassId,
        by: Maker<'_>,
        stack: Option<StackRows>,
    ) -> Vec<Frame> {
        let depth = (self.depth as usize).min(MOST_FRAMES);
        if depth == 0 {
            return Vec::new();
        }
        let own = by.own();
        let mut more = ABOVE;
        let mut stack = stack.unwrap_or_else(|| StackRows::read(env, depth, more));
        loop {
            let rows = &stack.rows;
            let begin = self.allocator((env, jni), rows, class, own.as_deref());
            let is_whole = stack.is_whole || more > MOST_FRAMES;
            if is_whole || begin + depth <= rows.len() {
                return self.registry.stack(env, jni, &rows[begin..], depth);
            }
            more *= 2;
            stack = StackRows::read(env, depth, more);
        }
    }

    /// The index of the allocating frame, below the frames of the tracker and of the object's constructors. `own`: the
    /// allocating frame is a constructor of the object's class, with this descriptor.
    fn allocator(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        rows: &[FrameRow],
        class: ClassId,
        own: Option<&[u8]>,
    ) -> usize {
        let mut at = 0;
        let mut frame = |at: usize| {
            let method = self.registry.method(env, jni, rows.get(at)?.method);
            let is_object_init = self.registry.object_init.contains(&method);
            let entry = self.registry.methods.get(method.0)?;
            let of = Some(entry.info.class);
            let is_tracker = of == self.registry.tracker;
            let is_own = own.is_some_and(|own| own == entry.info.descriptor.as_bytes());
            let is_init = entry.info.name == "<init>";
            Some(Row {
                is_tracker,
                is_object_init,
                is_init,
                is_of_class: of == Some(class),
                is_own,
            })
        };
        while frame(at).is_some_and(|row| row.is_tracker) {
            at += 1;
        }
        let Some(row) = frame(at).filter(|row| row.is_object_init) else {
            return at;
        };
        at += 1;
        if row.is_of_class {
            return at;
        }
        let is_above = |row: &Row| row.is_init && !row.is_of_class;
        while frame(at).is_some_and(|row| is_above(&row)) {
            at += 1;
        }
        let is_object = |row: &Row| row.is_init && row.is_of_class && !row.is_own;
        while frame(at).is_some_and(|row| is_object(&row)) {
            at += 1;
        }
        at.min(rows.len())
    }
}

/// What must be known of a frame.
struct Row {
    is_tracker: bool,
    is_object_init: bool,
    is_init: bool,
    is_of_class: bool,
    is_own: bool,
}
