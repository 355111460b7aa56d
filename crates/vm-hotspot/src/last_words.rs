//! A process that ends although its VM has not.
//!
//! Whoever ends a VM from outside (the `java` launcher when `main` is over) attaches a thread to it
//! first. When the heap is too full for that thread's object, the launcher leaves by `exit` instead:
//! no shutdown hooks, no death of the VM is told, and the profile would be lost when it is wanted
//! most. So a thread of the agent's own, attached while there was room, stands by.

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use jvmti::{Agent, Env, Jni, Live};

use crate::hotspot::{HotSpot, locked};

/// Longest wait for the profile of a process that ends: it is worth some time, but not for ever.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nobody stands by.
    #[default]
    None,
    Ready,
    /// The process ends.
    Asked,
    /// All is written, here or because the VM told its end.
    Spoken,
}

/// How far the end has come.
#[derive(Debug, Default)]
pub(crate) struct LastWords {
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl LastWords {
    fn set(&self, stage: Stage) {
        *locked(&self.stage) = stage;
        self.changed.notify_all();
    }

    /// The VM has told its end, or the process its own: nobody need stand by any more.
    pub(crate) fn spoken(&self) {
        if *locked(&self.stage) == Stage::Ready {
            self.set(Stage::Spoken);
        }
    }

    /// Whether the process ends, once that is known.
    fn wait(&self) -> bool {
        let stage = locked(&self.stage);
        let waiting = |stage: &mut Stage| *stage == Stage::Ready;
        let stage = self.changed.wait_while(stage, waiting);
        *stage.unwrap_or_else(PoisonError::into_inner) == Stage::Asked
    }

    /// Lets the thread that stands by write everything, and waits for it.
    fn ask(&self) {
        let mut stage = locked(&self.stage);
        if *stage == Stage::Ready {
            *stage = Stage::Asked;
            self.changed.notify_all();
            let waiting = |stage: &mut Stage| *stage == Stage::Asked;
            drop(self.changed.wait_timeout_while(stage, PATIENCE, waiting));
        }
    }
}

/// Starts the thread that stands by.
pub(crate) fn stand_by(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    hotspot.last_words.set(Stage::Ready);
    let stand = |env, jni| {
        if let Some(hotspot) = HotSpot::get()
            && hotspot.last_words.wait()
        {
            hotspot.vm_death(env, jni);
            hotspot.last_words.set(Stage::Spoken);
        }
    };
    let spawned = hotspot.spawn(env, jni, "HPROF last words", stand);
    if spawned.is_err() {
        hotspot.last_words.set(Stage::None);
    }
    // SAFETY: the function takes nothing and returns nothing, as `atexit` calls it.
    if spawned.is_ok() && unsafe { libc::atexit(process_ends) } != 0 {
        return Err(jvmti::Error::Jni("atexit"));
    }
    spawned
}

/// The process ends by `exit`, whoever called it. A thread of the VM's may be in the middle of
/// anything, and others may wait for it in vain; only one that is none can wait for them.
extern "C" fn process_ends() {
    if let Some(hotspot) = HotSpot::get()
        && !hotspot.dead.load(Ordering::SeqCst)
        && hotspot.java.jni().is_none()
    {
        hotspot.last_words.ask();
    }
}
