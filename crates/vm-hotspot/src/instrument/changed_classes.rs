//! The classes with inserted code, so that they can be restored.

use std::time::Duration;

use jvmti::{Env, Jni, Live};
use locks::{Mutex, Rank};
use rustc_hash::FxHashSet;

use crate::threads::background::retransform_those;

/// Before JDK 17 a VM may visit all classes for each one that is changed, while all threads are stopped: 7 seconds with
/// 3,000 classes on JDK 11, more than 20 on JDK 8. With more classes than this they keep the code, switched off.
pub(crate) const MOST_WHERE_SLOW: usize = 1000;
/// The most names that are remembered; they take some 30 MB.
const MOST: usize = 1 << 18;
/// How often the agent searches for classes that were being loaded when code was last inserted.
const LOOKS: usize = 3;
const BETWEEN: Duration = Duration::from_millis(100);

/// Names, with slashes, of classes that were changed and not restored. Classes of one name are restored together.
#[derive(Debug)]
pub(crate) struct ChangedClasses(Mutex<FxHashSet<String>>);

impl Default for ChangedClasses {
    fn default() -> Self {
        Self(Mutex::new(Rank::ChangedClasses, FxHashSet::default()))
    }
}

impl ChangedClasses {
    /// Remembers a class that gets other bytes; false if there are too many, so that it must stay unchanged.
    pub(crate) fn note(&self, name: &str) -> bool {
        let mut names = self.0.lock();
        if names.contains(name) {
            return true;
        }
        names.len() < MOST && names.insert(name.to_owned())
    }

    /// Also restores the classes that `others` did not restore.
    pub(crate) fn take_over(&self, others: &Self) {
        let left = std::mem::take(&mut *others.0.lock());
        self.0.lock().extend(left);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Retransforms the classes, whose bytes are no longer changed, as long as `goes_on` returns true. Returns how many
    /// the VM does not restore.
    pub(crate) fn put_back(&self, env: Env<Live>, jni: Jni, goes_on: impl Fn() -> bool) -> usize {
        let mut refused = FxHashSet::default();
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(BETWEEN);
            }
            let names = std::mem::take(&mut *self.0.lock());
            let mut found = FxHashSet::default();
            let is_changed = |name: &str| {
                let is_changed = names.contains(name);
                if is_changed {
                    found.insert(name.to_owned());
                }
                is_changed
            };
            let done = retransform_those(env, jni, is_changed, &goes_on, true);
            let count = match done {
                Ok((count, still)) if goes_on() => {
                    refused.extend(still);
                    count
                }
                // The next attempt searches for them again.
                _ => {
                    self.0.lock().extend(names.into_iter().chain(refused));
                    return 0;
                }
            };
            if count == 0 {
                break;
            }
            let missing = names.into_iter().filter(|name| !found.contains(name));
            self.0.lock().extend(missing);
        }
        let count = refused.len();
        *self.0.lock() = refused;
        count
    }
}
