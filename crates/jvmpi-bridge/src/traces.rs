//! Stacks in the format for the agent.

use std::sync::Arc;

use jvmti::sys::MethodPtr;
use jvmti::{Env, FrameRow, Live};
use locks::{Rank, RwLock};
use rustc_hash::FxHashMap;

use crate::bridge::Bridge;
use crate::new_objects::hidden_frames;
use vmpi::c_interface::layout::{CallFrame, CallTrace};

/// The line number of a frame without one.
const UNKNOWN: i32 = -1;
/// The line number of a frame in a native method.
const NATIVE: i32 = -3;
/// The most frames that are returned, whatever an agent requests.
pub(crate) const MOST_FRAMES: usize = 1 << 16;

/// (Bytecode index, line), sorted.
type Lines = Arc<[(u32, u32)]>;

/// Line tables of methods seen in stacks.
pub(crate) struct LineTables(RwLock<FxHashMap<MethodPtr, Lines>>);

impl Default for LineTables {
    fn default() -> Self {
        Self(RwLock::new(Rank::LineTables, FxHashMap::default()))
    }
}

/// The line of a bytecode index.
fn line_at(lines: &[(u32, u32)], index: u32) -> i32 {
    let after = lines.partition_point(|(start, _)| *start <= index);
    match after.checked_sub(1).and_then(|at| lines.get(at)) {
        Some((_, line)) => i32::try_from(*line).unwrap_or(UNKNOWN),
        None => UNKNOWN,
    }
}

impl LineTables {
    /// The line of a position in a method.
    pub(crate) fn line(&self, env: Env<Live>, method: MethodPtr, location: i64) -> i32 {
        let Ok(index) = u32::try_from(location) else {
            return NATIVE;
        };
        let known = {
            let tables = self.0.read();
            tables.get(&method).cloned()
        };
        let lines = known.unwrap_or_else(|| {
            let mut lines = env.line_numbers(method).unwrap_or_default();
            lines.sort_unstable();
            let lines: Lines = lines.into();
            let mut tables = self.0.write();
            tables.insert(method, Arc::clone(&lines));
            lines
        });
        line_at(&lines, index)
    }

    /// Clears all tables: a class was unloaded, and ids of its methods may be reused.
    pub(crate) fn clear(&self) {
        let mut tables = self.0.write();
        tables.clear();
    }

    /// Frames for the agent.
    pub(crate) fn frames(&self, env: Env<Live>, rows: &[FrameRow]) -> Vec<CallFrame> {
        let frame = |row: &FrameRow| CallFrame {
            line: self.line(env, row.method, row.location),
            method: row.method.0,
        };
        rows.iter().map(frame).collect()
    }
}

impl Bridge {
    /// Fills `trace` with the stack of its thread; with no frames if the thread is unknown or has ended.
    ///
    /// # Safety
    /// `trace` is null or valid, and its `frames` is null or has space for `depth` frames.
    pub(crate) unsafe fn call_trace(&self, trace: *mut CallTrace, depth: i32) {
        if trace.is_null() {
            return;
        }
        // SAFETY: not null, valid by the caller's promise.
        let trace = unsafe { &mut *trace };
        trace.count = 0;
        let depth = usize::try_from(depth).unwrap_or(0).min(MOST_FRAMES);
        if depth == 0 || trace.frames.is_null() {
            return;
        }
        let Some((env, jni)) = self.here() else {
            return;
        };
        let nothing = FrameRow {
            method: MethodPtr(std::ptr::null_mut()),
            location: 0,
        };
        let is_own = trace.env == jni.raw();
        let hidden = if is_own { hidden_frames() } else { 0 };
        let mut rows = vec![nothing; depth + hidden];
        let count = if is_own {
            env.stack_into(None, &mut rows).unwrap_or(0)
        } else {
            jni.local_frame(4, || match self.threads.object(jni, trace.env) {
                Some(thread) => env.stack_into(Some(thread), &mut rows).unwrap_or(0),
                None => 0,
            })
        };
        let frames = self.lines.frames(env, &rows[hidden.min(count)..count]);
        // SAFETY: room for `depth` frames, and `count` is not more.
        unsafe { std::ptr::copy_nonoverlapping(frames.as_ptr(), trace.frames, frames.len()) };
        trace.count = frames.len() as i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_up_to_the_next() {
        let lines = [(0, 10), (5, 11), (9, 30)];
        let check = |index, line| assert_eq!(line_at(&lines, index), line);
        check(0, 10);
        check(4, 10);
        check(5, 11);
        check(100, 30);
        assert_eq!(line_at(&[], 3), UNKNOWN);
        assert_eq!(line_at(&[(4, 7)], 3), UNKNOWN);
    }
}
