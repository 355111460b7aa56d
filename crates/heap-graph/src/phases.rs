//! The cost of each phase of a build. It is not part of an answer, and is only measured on request.

use crate::raw;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What one phase cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// How long it took.
    pub wall: Duration,
    /// Processor time of all threads.
    pub cpu: Duration,
    /// Bytes of the dump that it walked, record by record.
    pub walked: u64,
    /// Counted random accesses to large arrays.
    pub random: u64,
    /// The most bytes that its arrays with one element per object or reference had at the same time.
    pub arrays: u64,
    /// The most private memory of the process, sampled; 0 if the system does not report it.
    pub private: u64,
}

/// What a build cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Objects of the dump; 0 when none was read.
    pub objects: u64,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
}

/// How often private memory is examined.
const SAMPLE: Duration = Duration::from_millis(2);

/// Records phases. Clones record into the same list; the default records nothing.
#[derive(Clone, Debug, Default)]
pub struct Phases(Option<Arc<Recorder>>);

#[derive(Debug)]
struct Recorder {
    done: Mutex<Vec<Phase>>,
    open: Mutex<Option<(&'static str, Instant, Duration)>>,
    objects: AtomicU64,
    walked: AtomicU64,
    random: AtomicU64,
    arrays: AtomicU64,
    most_arrays: AtomicU64,
    most_private: AtomicU64,
    /// Dropped with the recorder, which ends the sampler.
    _sampler: Sender<()>,
}

impl Phases {
    /// Starts recording, with a thread that samples the memory.
    pub fn recording() -> Phases {
        let (sampler, ended) = channel::<()>();
        let recorder = Arc::new(Recorder {
            done: Mutex::default(),
            open: Mutex::default(),
            objects: AtomicU64::new(0),
            walked: AtomicU64::new(0),
            random: AtomicU64::new(0),
            arrays: AtomicU64::new(0),
            most_arrays: AtomicU64::new(0),
            most_private: AtomicU64::new(0),
            _sampler: sampler,
        });
        let watched = Arc::downgrade(&recorder);
        let sample = move || {
            while ended.recv_timeout(SAMPLE) == Err(RecvTimeoutError::Timeout)
                && let Some(recorder) = watched.upgrade()
            {
                recorder.sample();
            }
        };
        // Without a thread, the memory is measured only where phases end.
        let _ = std::thread::Builder::new().spawn(sample);
        Phases(Some(recorder))
    }

    /// Ends the previous phase and begins one.
    pub fn begin(&self, name: &'static str) {
        if let Some(recorder) = &self.0 {
            recorder.end();
            if let Ok(mut open) = recorder.open.lock() {
                *open = Some((name, Instant::now(), raw::processor_time()));
            }
        }
    }

    /// Ends the last phase and returns all phases.
    pub fn finish(&self) -> Profile {
        let Some(recorder) = &self.0 else {
            return Profile::default();
        };
        recorder.end();
        let mut done = recorder.done.lock();
        let phases = done.as_mut().map(|done| std::mem::take(&mut **done));
        Profile {
            objects: recorder.objects.load(Ordering::Relaxed),
            phases: phases.unwrap_or_default(),
        }
    }

    /// The dump has so many objects.
    pub(crate) fn objects(&self, count: u64) {
        if let Some(recorder) = &self.0 {
            recorder.objects.store(count, Ordering::Relaxed);
        }
    }

    /// Adds bytes of the dump that this phase walked.
    pub(crate) fn walked(&self, bytes: u64) {
        if let Some(recorder) = &self.0 {
            recorder.walked.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts random accesses of this phase.
    pub(crate) fn random(&self, count: u64) {
        if let Some(recorder) = &self.0 {
            recorder.random.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Arrays have so many bytes now.
    pub(crate) fn arrays(&self, bytes: u64) {
        if let Some(recorder) = &self.0 {
            recorder.arrays.store(bytes, Ordering::Relaxed);
            recorder.most_arrays.fetch_max(bytes, Ordering::Relaxed);
        }
    }
}

impl Recorder {
    fn sample(&self) {
        self.most_private
            .fetch_max(private_memory(), Ordering::Relaxed);
    }

    /// Ends the open phase, if there is one.
    fn end(&self) {
        self.sample();
        let private = self.most_private.swap(0, Ordering::Relaxed);
        // The next phase begins with what is still there.
        let now = self.arrays.load(Ordering::Relaxed);
        let arrays = self.most_arrays.swap(now, Ordering::Relaxed);
        let walked = self.walked.swap(0, Ordering::Relaxed);
        let random = self.random.swap(0, Ordering::Relaxed);
        let open = self.open.lock().ok().and_then(|mut open| open.take());
        if let (Some((name, from, cpu)), Ok(mut done)) = (open, self.done.lock()) {
            done.push(Phase {
                name,
                wall: from.elapsed(),
                cpu: raw::processor_time().saturating_sub(cpu),
                walked,
                random,
                arrays,
                private,
            });
        }
    }
}

/// Private memory of this process in bytes; 0 where the system does not report it.
pub(crate) fn private_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    let kib = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_what_was_counted_while_they_were_open() {
        let phases = Phases::recording();
        phases.begin("first");
        phases.arrays(100);
        phases.arrays(700);
        phases.arrays(40);
        phases.walked(5);
        phases.random(3);
        phases.random(4);
        phases.clone().begin("second");
        phases.objects(9);
        let Profile {
            objects,
            phases: done,
        } = phases.finish();
        assert_eq!(objects, 9);
        let counted = done.iter();
        let counted = counted.map(|p| (p.name, p.walked, p.random, p.arrays));
        let counted: Vec<_> = counted.collect();
        assert_eq!(counted, [("first", 5, 7, 700), ("second", 0, 0, 40)]);
        assert!(!cfg!(target_os = "linux") || done.iter().all(|p| p.private > 0));
        assert!(phases.finish().phases.is_empty());
    }

    #[test]
    fn nothing_is_recorded_unless_it_is_asked_for() {
        let phases = Phases::default();
        phases.begin("first");
        phases.arrays(1);
        assert_eq!(phases.finish(), Profile::default());
    }
}
