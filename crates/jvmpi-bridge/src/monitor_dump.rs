//! MONITOR_DUMP: all threads with their stacks, and the monitors they use.

use jvmti::{Env, Jni, Live, Object, StackRow};
use vm_hotspot::{monitor_record, used_monitors};
use vmpi::dump::IdLayout;
use vmpi::dump::monitor::{MonitorRecord, encode};
use vmpi::{EnvId, ObjectHandle};

use crate::bridge::Bridge;
use vmpi::c_interface::layout::{CallFrame, CallTrace, MonitorDump, Payload, REQUESTED, event};

/// Deepest stack that is dumped.
const DEPTH: i32 = 1024;

/// Stacks of all threads, in the layout for the agent.
pub(crate) struct Stacks {
    frames: Vec<Vec<CallFrame>>,
    envs: Vec<usize>,
    pub(crate) threads: Vec<StackRow>,
}

impl Stacks {
    pub(crate) fn read(bridge: &Bridge, env: Env<Live>, jni: Jni) -> Self {
        let threads = env.all_stacks(jni, DEPTH).unwrap_or_default();
        let mut stacks = Self {
            frames: Vec::new(),
            envs: Vec::new(),
            threads,
        };
        for row in &stacks.threads {
            let raw = bridge.threads.env_of(jni, row.thread);
            bridge.meet(env, jni, raw, row.thread);
            stacks.envs.push(raw as usize);
            stacks.frames.push(bridge.lines.frames(env, &row.frames));
        }
        stacks
    }

    /// The traces; they point into `self`.
    pub(crate) fn traces(&mut self) -> Vec<CallTrace> {
        let trace = |(env, frames): (&usize, &mut Vec<CallFrame>)| CallTrace {
            env: *env as jvmti::sys::RawEnv,
            count: frames.len() as i32,
            frames: frames.as_mut_ptr(),
        };
        self.envs.iter().zip(&mut self.frames).map(trace).collect()
    }

    /// Pairs of (thread object, its env).
    pub(crate) fn envs(&self) -> impl Iterator<Item = (Object, usize)> {
        let threads = self.threads.iter().map(|row| row.thread);
        threads.zip(self.envs.iter().copied())
    }
}

impl Bridge {
    pub(crate) fn dump_monitors(&self, env: Env<Live>, jni: Jni) -> bool {
        let mut stacks = Stacks::read(self, env, jni);
        let env_of = |thread: Object| EnvId(self.threads.env_of(jni, thread) as u64);
        let mut dump = Vec::new();
        let threads = stacks.envs().map(|(thread, _)| thread);
        for monitor in used_monitors(env, jni, threads) {
            let id = ObjectHandle(self.id_of(env, jni, monitor) as u64);
            if let Some(record) = monitor_record((env, jni), monitor, id, env_of) {
                encode(&mut dump, &record, IdLayout::NATIVE);
            }
        }
        self.monitors
            .used(|usage| encode(&mut dump, &MonitorRecord::of(usage), IdLayout::NATIVE));
        let statuses: Vec<i32> = stacks
            .traces()
            .iter()
            .map(|trace| self.status(env, jni, trace.env))
            .collect();
        let traces = stacks.traces();
        let bytes = dump.as_ptr_range();
        let monitor_dump = MonitorDump {
            begin: bytes.start,
            end: bytes.end,
            trace_count: traces.len() as i32,
            traces: traces.as_ptr(),
            statuses: statuses.as_ptr(),
        };
        let kind = event::MONITOR_DUMP | REQUESTED;
        self.send(jni.raw(), kind, Payload { monitor_dump });
        true
    }
}
