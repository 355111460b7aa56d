//! Threads: every one is reported before its first event, and before a dump that names it.

use jvmti::{Env, Jni, Live, Object};
use vmpi::wire::Item;
use vmpi::{Body, CallTrace, EnvId, ObjectHandle, ThreadId};

use super::{Host, names};

/// Deepest stack that is dumped.
const DEPTH: i32 = 1024;

/// A thread at one moment.
pub(super) struct Stack {
    /// A local reference.
    pub(super) thread: Object,
    /// JVMTI state bits.
    pub(super) state: i32,
    /// What the stream calls it, and where it is.
    pub(super) trace: CallTrace,
}

impl Host {
    /// A thread ends, and the registry still knows it.
    pub(crate) fn thread_ended(&self, thread: ThreadId) {
        let mut state = self.core.lock();
        if state.stream.thread_gone(thread) {
            self.item(names::env_of(thread), Item::event(Body::ThreadEnd));
        }
    }

    /// What the stream calls a live platform thread.
    pub(super) fn env_of(&self, env: Env<Live>, thread: Object) -> EnvId {
        let registry = &mut self.core.lock().registry;
        names::env_of(registry.thread(env, Some(thread), false))
    }

    /// All platform threads with their stacks, at one moment. They, and the classes of their
    /// methods, are reported.
    pub(super) fn stacks(&self, env: Env<Live>, jni: Jni) -> Vec<Stack> {
        let mut stacks = Vec::new();
        for row in env.all_stacks(jni, DEPTH).unwrap_or_default() {
            let trace = self.with_names((env, jni), |namer| {
                let env = namer.platform_thread(row.thread)?;
                let frames = namer.frames(&row.frames);
                Some(CallTrace { env, frames })
            });
            stacks.extend(trace.map(|trace| Stack {
                thread: row.thread,
                state: row.state,
                trace,
            }));
        }
        stacks
    }

    /// The start of the live thread whose object has an id, once more.
    pub(super) fn start_of(
        &self,
        env: Env<Live>,
        jni: Jni,
        object: Object,
        id: ObjectHandle,
    ) -> Option<Body> {
        let threads = env.all_threads(jni).ok()?;
        let thread = threads.into_iter().find(|one| jni.is_same(*one, object))?;
        self.with_names((env, jni), |namer| {
            namer.platform_thread(thread)?;
            let number = namer.registry.thread(env, Some(thread), false);
            Some(namer.start_of(number, id))
        })
    }
}
