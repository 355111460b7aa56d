//! The Java objects that a dump at the end of the VM needs.
//!
//! The threads of concurrent collectors end before the VM reports its end. From then on, a thread that allocates in a
//! full heap waits for memory for ever. So a thread of the agent makes these objects, and the end of the VM does not wait
//! for it for long.

use std::sync::mpsc::{SendError, SyncSender, sync_channel};
use std::time::Duration;

use jvmti::{Env, Jni, Live, Object};
use vmpi::VmError;

use crate::heap::native_dump::Dumper;
use crate::vm::hotspot::HotSpot;
use crate::vm::queries::failed;

/// How long the end of the VM waits for these objects.
const PATIENCE: Duration = Duration::from_secs(2);

/// The dumper and its argument.
struct Made {
    dumper: Dumper,
    path: Object,
}

/// A request: the path of the dump, and where its objects go.
type Job = (String, SyncSender<jvmti::Result<Made>>);

/// The thread that makes the objects; `None` ends it.
pub(crate) struct Maker(SyncSender<Option<Job>>);

impl Maker {
    /// Starts the thread, which waits without running Java code.
    ///
    /// # Errors
    /// The VM makes no thread.
    pub(crate) fn start(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<Maker> {
        let (ask, asked) = sync_channel::<Option<Job>>(1);
        hotspot.spawn(env, jni, "HPROF last dump", move |_, jni| {
            while let Ok(Some((path, made))) = asked.recv() {
                let result = jni.local_frame(16, || make(jni, &path));
                // The wait has ended.
                if let Err(SendError(Ok(late))) = made.send(result) {
                    jni.delete_global(late.dumper.bean);
                    jni.delete_global(late.path);
                }
            }
        })?;
        Ok(Maker(ask))
    }

    /// The dumper and the path as local references.
    ///
    /// # Errors
    /// The objects cannot be made, or not in time.
    pub(crate) fn make(&self, jni: Jni, path: &str) -> Result<(Dumper, Object), VmError> {
        let late = || VmError::Failed {
            function: "heap dump",
            reason: "the VM's collector has ended and the heap is full".to_owned(),
        };
        let (made, wait) = sync_channel(1);
        let asked = self.0.try_send(Some((path.to_owned(), made)));
        asked.map_err(|_| late())?;
        let made = wait.recv_timeout(PATIENCE).map_err(|_| late())?;
        let Made { dumper, path } = made.map_err(failed)?;
        let local = |global| {
            let local = jni.new_local(global);
            jni.delete_global(global);
            local.ok_or(jvmti::Error::Jni("NewLocalRef"))
        };
        let bean = local(dumper.bean).map_err(failed)?;
        let path = local(path).map_err(failed)?;
        Ok((Dumper { bean, ..dumper }, path))
    }

    /// Ends the thread, unless it waits for memory: a VM that ends waits for a while (0.3 seconds) for threads in native
    /// code.
    pub(crate) fn end(&self) {
        let _ = self.0.try_send(None);
    }
}

/// Both as global references.
fn make(jni: Jni, path: &str) -> jvmti::Result<Made> {
    let dumper = Dumper::find(jni)?;
    let path = jni.new_string(path)?;
    Ok(Made {
        dumper: Dumper {
            bean: jni.new_global(dumper.bean)?,
            ..dumper
        },
        path: jni.new_global(path)?,
    })
}
