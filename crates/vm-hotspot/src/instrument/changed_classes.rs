//! The classes with inserted code, so that they can be restored.

use std::time::Duration;

use jvmti::{Env, Jni, Live};
use locks::{Mutex, Rank};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::threads::background::retransform_those;

/// Before JDK 17 a VM may visit all classes for each one that is changed, while all threads are stopped: 7 seconds with
/// 3,000 classes on JDK 11, more than 20 on JDK 8. With more classes than this they keep the code, switched off.
pub(crate) const MOST_WHERE_SLOW: usize = 1000;
/// The most names that are remembered; they take some 30 MB.
const MOST: usize = 1 << 18;
/// With so many names, those of unloaded classes are searched for the first time.
const MANY: usize = 1 << 14;
/// How often the agent searches for classes that were being loaded when code was last inserted.
const LOOKS: usize = 3;
const BETWEEN: Duration = Duration::from_millis(100);

/// Names, with slashes, of classes that were changed and not restored. Classes of one name are restored together.
#[derive(Debug)]
pub(crate) struct ChangedClasses(Mutex<Names>);

#[derive(Debug)]
struct Names {
    /// The names, with the number of searches before.
    all: FxHashMap<String, u32>,
    /// How often unloaded classes were searched, and how many names begin the next search.
    searches: u32,
    many: usize,
}

impl Names {
    fn extend(&mut self, names: impl IntoIterator<Item = String>) {
        let searches = self.searches;
        self.all
            .extend(names.into_iter().map(|name| (name, searches)));
    }

    fn take(&mut self) -> FxHashSet<String> {
        self.all.drain().map(|(name, _)| name).collect()
    }

    /// Forgets classes that are not loaded. Those that were changed since the last search may still be being loaded.
    fn forget(&mut self, loaded: Option<FxHashSet<String>>) {
        if let Some(loaded) = loaded {
            let now = self.searches;
            self.all
                .retain(|name, noted| *noted == now || loaded.contains(name));
            self.searches += 1;
        }
        self.many = (2 * self.all.len()).max(MANY);
    }
}

impl Default for ChangedClasses {
    fn default() -> Self {
        Self(Mutex::new(
            Rank::ChangedClasses,
            Names {
                all: FxHashMap::default(),
                searches: 0,
                many: MANY,
            },
        ))
    }
}

impl ChangedClasses {
    /// Remembers a class that gets other bytes; false if there are too many to restore it later. Each time that the number
    /// of names has doubled, those of classes that are no longer `loaded` are forgotten.
    pub(crate) fn note(
        &self,
        name: &str,
        loaded: impl FnOnce() -> Option<FxHashSet<String>>,
    ) -> bool {
        let mut names = self.0.lock();
        let is_noted = names.all.contains_key(name) || names.all.len() < MOST;
        if is_noted {
            names.extend([name.to_owned()]);
        }
        if names.all.len() >= names.many {
            // No other thread searches meanwhile.
            names.many = usize::MAX;
            drop(names);
            let loaded = loaded();
            self.0.lock().forget(loaded);
        }
        is_noted
    }

    /// Also restores the classes that `others` did not restore.
    pub(crate) fn take_over(&self, others: &Self) {
        let left = others.0.lock().take();
        self.0.lock().extend(left);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().all.len()
    }

    /// Retransforms the classes, whose bytes are no longer changed, as long as `goes_on` returns true. Returns how many
    /// the VM does not restore.
    pub(crate) fn put_back(&self, env: Env<Live>, jni: Jni, goes_on: impl Fn() -> bool) -> usize {
        let mut refused = FxHashSet::default();
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(BETWEEN);
            }
            let names = self.0.lock().take();
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
        let mut names = self.0.lock();
        names.all.clear();
        names.extend(refused);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_loads_and_unloads_classes_without_end_has_room_for_new_ones() {
        let changed = ChangedClasses::default();
        // Generated classes, of which the latest are loaded, and one that stays.
        for number in 0..300_000 {
            let loaded = || {
                let latest = number - 999..number;
                let names = latest.map(|number| format!("Generated{number}"));
                Some(names.chain(["Main".to_owned()]).collect())
            };
            let name = match number {
                0 => "Main".to_owned(),
                _ => format!("Generated{number}"),
            };
            assert!(changed.note(&name, loaded), "{number}");
        }
        assert!(changed.count() <= 2 * MANY, "{}", changed.count());
        // Where the VM does not list its classes, none are forgotten.
        let others = ChangedClasses::default();
        let fits = (0..=MOST).filter(|number| others.note(&format!("C{number}"), || None));
        assert_eq!((fits.count(), others.count()), (MOST, MOST));
        others.take_over(&changed);
        let names = others.0.lock();
        assert!(
            ["Main", "Generated299999", "C0"]
                .iter()
                .all(|name| names.all.contains_key(*name))
        );
    }
}
