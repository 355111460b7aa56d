//! Threads: every one is reported before its first event, and before a dump that names it.

use std::cell::Cell;

use jvmti::{Env, Jni, Live, Object};
use vmpi::wire::Item;
use vmpi::{Body, CallTrace, EnvId, ObjectHandle, ThreadStart};

use super::Host;

/// Deepest stack that is dumped.
const DEPTH: i32 = 1024;
/// Number of a thread whose end was reported; the VM lists it for a moment longer.
const ENDED: usize = 1;

thread_local! {
    /// The stream knows this thread.
    static MET: Cell<bool> = const { Cell::new(false) };
}

/// A thread at one moment.
pub(super) struct Stack {
    /// A local reference.
    pub(super) thread: Object,
    /// JVMTI state bits.
    pub(super) state: i32,
    /// What the stream calls it, and where it is.
    pub(super) trace: CallTrace,
}

fn start(env: Env<Live>, thread: Option<Object>, id: EnvId, object: ObjectHandle) -> Body {
    let row = env.thread_info(thread).unwrap_or_default();
    Body::ThreadStart(Box::new(ThreadStart {
        env: id,
        object,
        name: row.name,
        group: row.group,
        parent: row.parent_group,
    }))
}

impl Host {
    /// The current thread is about to report something.
    pub(super) fn meet(&self, env: Env<Live>, thread: EnvId) {
        if !MET.replace(true) {
            let body = start(env, None, thread, ObjectHandle::NULL);
            let mut names = self.names.lock();
            if names.threads.insert(thread) {
                self.item(thread, Item::event(body));
            }
        }
    }

    /// The current thread ends.
    pub(super) fn part(&self, env: Env<Live>, thread: EnvId) {
        MET.set(false);
        // Before the names are locked: code that lists threads reads this after.
        let _ = env.set_thread_number(None, ENDED);
        let mut names = self.names.lock();
        if names.threads.remove(&thread) {
            self.item(thread, Item::event(Body::ThreadEnd));
        }
    }

    /// What the stream calls a live platform thread.
    pub(super) fn env_of(&self, jni: Jni, thread: Object) -> EnvId {
        let envs = self.place.get().and_then(|place| place.threads);
        EnvId(envs.map_or(0, |envs| envs.of(jni, thread) as u64))
    }

    /// Reports a thread that has reported nothing yet.
    fn meet_other(&self, env: Env<Live>, thread: Object, id: EnvId) {
        if self.names.lock().threads.contains(&id) {
            return;
        }
        let body = start(env, Some(thread), id, ObjectHandle::NULL);
        let mut names = self.names.lock();
        let has_ended = env.thread_number(Some(thread)).unwrap_or(ENDED) == ENDED;
        if !has_ended && names.threads.insert(id) {
            self.item(id, Item::event(body));
        }
    }

    /// All platform threads with their stacks, at one moment. They, and the classes of their
    /// methods, are reported.
    pub(super) fn stacks(&self, env: Env<Live>, jni: Jni) -> Vec<Stack> {
        let mut stacks = Vec::new();
        for row in env.all_stacks(DEPTH).unwrap_or_default() {
            let id = self.env_of(jni, row.thread);
            if id == EnvId(0) {
                continue;
            }
            self.meet_other(env, row.thread, id);
            let mut names = self.names.lock();
            let mut tell = |item| self.item(EnvId(0), item);
            let frames = row.frames.iter();
            let frames = frames.map(|row| names.frame((env, jni), row, &mut tell));
            stacks.push(Stack {
                thread: row.thread,
                state: row.state,
                trace: CallTrace {
                    env: id,
                    frames: frames.collect(),
                },
            });
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
        let threads = env.all_threads().ok()?;
        let thread = threads.into_iter().find(|one| jni.is_same(*one, object))?;
        let env_id = self.env_of(jni, thread);
        (env_id != EnvId(0)).then(|| start(env, Some(thread), env_id, id))
    }
}
