//! The threads of a file or stream by serial. A stream without end may report any number of short threads; most of
//! those that have ended are forgotten, with their names.

use crate::names::{NameId, Names};
use crate::profile::{Profile, Thread};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most ended threads that are kept of a stream although nothing refers to them, as in the agent.
const MOST_ENDED: usize = 1024;

/// What a reader knows of the threads besides [`Profile::threads`].
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The index of the last thread of each serial.
    at: FxHashMap<u32, usize>,
    /// Whether ended threads may be forgotten.
    forgets: bool,
    /// The number of ended threads that nothing refers to.
    ended: usize,
    /// The threads that stacks and JNI references refer to.
    referred: FxHashSet<u32>,
    /// Names that only threads and classes have, and of how many.
    names: FxHashMap<NameId, usize>,
}

impl Threads {
    /// Those of a stream without end.
    pub(super) fn of_stream() -> Threads {
        Threads {
            forgets: true,
            ..Threads::default()
        }
    }

    /// Whether ended threads and unloaded classes may be forgotten.
    pub(super) fn are_forgotten(&self) -> bool {
        self.forgets
    }

    /// The name of a thread or a class, as [`Names::intern`]; it may be removed with it.
    pub(super) fn name(&mut self, names: &mut Names, text: &str) -> NameId {
        let (known, name) = (names.find(text), names.intern(text));
        match known {
            Some(_) => {
                if let Some(count) = self.names.get_mut(&name) {
                    *count += 1;
                }
            }
            None if self.forgets => {
                self.names.insert(name, 1);
            }
            None => {}
        }
        name
    }

    /// Something other than a thread or a class without records has this name, too.
    pub(super) fn share_name(&mut self, name: NameId) {
        self.names.remove(&name);
    }

    /// A stack or a row of JNI references refers to this thread, so it is not forgotten.
    pub(super) fn refer(&mut self, serial: u32) {
        if self.forgets {
            self.referred.insert(serial);
        }
    }

    /// Adds a thread that has begun; if it may be `known` already, it replaces the one of its serial.
    pub(super) fn start(&mut self, profile: &mut Profile, thread: Thread, known: bool) {
        let at = self.at.get(&thread.serial).filter(|_| known);
        let Some(old) = at.and_then(|at| profile.threads.get_mut(*at)) else {
            self.at.insert(thread.serial, profile.threads.len());
            profile.threads.push(thread);
            return;
        };
        // The VM does not report the name of an ended thread any more.
        if thread.name != NameId::default() {
            let old = std::mem::replace(old, thread);
            self.release(&mut profile.names, old.name);
        }
    }

    /// A thread has ended.
    pub(super) fn end(&mut self, profile: &mut Profile, serial: u32) {
        let at = self.at.get(&serial).copied();
        let Some(thread) = at.and_then(|at| profile.threads.get_mut(at)) else {
            return;
        };
        let was_running = !std::mem::replace(&mut thread.ended, true);
        if self.forgets && was_running && !self.referred.contains(&serial) {
            self.ended += 1;
            if self.ended > 2 * MOST_ENDED {
                self.forget(profile);
            }
        }
    }

    /// Removes ended threads that nothing refers to, except the last ones.
    fn forget(&mut self, profile: &mut Profile) {
        let mut kept = 0;
        let mut threads = std::mem::take(&mut profile.threads);
        threads.reverse();
        threads.retain(|thread| {
            let is_over = thread.ended && !self.referred.contains(&thread.serial);
            kept += usize::from(is_over);
            let stays = !is_over || kept <= MOST_ENDED;
            if !stays {
                self.release(&mut profile.names, thread.name);
            }
            stays
        });
        threads.reverse();
        self.ended = kept.min(MOST_ENDED);
        let serials = threads.iter().map(|thread| thread.serial);
        self.at = serials.zip(0..).collect();
        profile.threads = threads;
    }

    /// A thread or a class does not have this name any more.
    pub(super) fn release(&mut self, names: &mut Names, name: NameId) {
        let Some(count) = self.names.get_mut(&name) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.names.remove(&name);
            names.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(threads: &mut Threads, profile: &mut Profile, serial: u32, name: &str) {
        let thread = Thread {
            serial,
            name: threads.name(&mut profile.names, name),
            ..Thread::default()
        };
        threads.start(profile, thread, false);
    }

    #[test]
    fn a_stream_keeps_running_threads_those_of_stacks_and_the_last_ended_ones() {
        let mut profile = Profile::default();
        let class = profile.names.intern("a.B");
        let mut threads = Threads::of_stream();
        start(&mut threads, &mut profile, 1, "main");
        threads.refer(2);
        for serial in 2..100_000 {
            start(
                &mut threads,
                &mut profile,
                serial,
                &format!("short-{serial}"),
            );
            threads.end(&mut profile, serial);
        }
        let kept = profile.threads.len();
        assert!((MOST_ENDED..2 * MOST_ENDED + 3).contains(&kept), "{kept}");
        assert_eq!(profile.names.len(), kept + 2, "an empty one, a.B");
        let name = |serial| {
            let thread = profile.thread(serial);
            thread.map(|thread| (thread.ended, profile.names.get(thread.name)))
        };
        assert_eq!(name(1), Some((false, "main")));
        assert_eq!(name(2), Some((true, "short-2")));
        assert_eq!(name(3), None);
        assert_eq!(name(99_999), Some((true, "short-99999")));
        assert_eq!(profile.names.get(class), "a.B");
        let serials: Vec<u32> = profile.threads.iter().map(|one| one.serial).collect();
        assert!(serials.is_sorted());
    }

    #[test]
    fn a_name_stays_as_long_as_anything_has_it() {
        let mut profile = Profile::default();
        let mut threads = Threads::of_stream();
        start(&mut threads, &mut profile, 1, "worker");
        start(&mut threads, &mut profile, 2, "worker");
        start(&mut threads, &mut profile, 3, "a.B");
        let class = profile.names.intern("a.B");
        threads.share_name(class);
        threads.end(&mut profile, 1);
        threads.end(&mut profile, 3);
        for serial in 10..10_000 {
            start(
                &mut threads,
                &mut profile,
                serial,
                &format!("short-{serial}"),
            );
            threads.end(&mut profile, serial);
        }
        assert_eq!((profile.thread(1), profile.thread(3)), (None, None));
        let second = profile.thread(2).expect("it runs");
        assert_eq!(profile.names.get(second.name), "worker");
        assert_eq!(profile.names.get(class), "a.B");
    }

    #[test]
    fn a_file_keeps_all_threads() {
        let mut profile = Profile::default();
        let mut threads = Threads::default();
        for serial in 0..10_000 {
            start(
                &mut threads,
                &mut profile,
                serial,
                &format!("short-{serial}"),
            );
            threads.end(&mut profile, serial);
        }
        assert!(profile.threads.iter().all(|thread| thread.ended));
        assert_eq!(
            (profile.threads.len(), profile.names.len()),
            (10_000, 10_001)
        );
    }
}
