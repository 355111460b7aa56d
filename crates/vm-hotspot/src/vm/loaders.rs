//! Class loaders by number: found by their identity hash, forgotten when they are dead.

use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;

/// Loaders that are kept without looking for dead ones.
const FEW: usize = 256;

#[derive(Default)]
pub(crate) struct Loaders {
    /// Weak references, by number.
    all: Vec<Option<Object>>,
    /// Numbers by identity hash.
    by_hash: FxHashMap<i32, Vec<usize>>,
    /// Numbers that loaders had which are dead.
    free: Vec<usize>,
    /// Loaders at which dead ones are looked for.
    limit: usize,
}

impl Loaders {
    /// The number of a loader, found or given.
    pub(crate) fn number(&mut self, env: Env<Live>, jni: Jni, loader: Object) -> Option<usize> {
        let hash = env.object_hash(loader).unwrap_or(0);
        let mut same_hash = self.by_hash.get(&hash).into_iter().flatten();
        let is_it = |number: &&usize| {
            let weak = self.all.get(**number).copied().flatten();
            weak.is_some_and(|weak| jni.is_same(weak, loader))
        };
        if let Some(number) = same_hash.find(is_it) {
            return Some(*number);
        }
        if self.all.len() - self.free.len() >= self.limit.max(FEW) {
            self.drop_dead(jni);
        }
        let weak = jni.new_weak(loader).ok()?;
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[number] = Some(weak);
        self.by_hash.entry(hash).or_default().push(number);
        Some(number)
    }

    /// Those that live, or have died not long ago: numbers and weak references.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Object)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, weak)| weak.map(|weak| (number, weak)))
    }

    /// Drops the dead, when there are twice as many as lived the last time: so each new loader
    /// costs two looks.
    fn drop_dead(&mut self, jni: Jni) {
        self.by_hash.retain(|_, numbers| {
            numbers.retain(|number| {
                let Some(weak) = self.all[*number].filter(|weak| jni.is_dead(*weak)) else {
                    return true;
                };
                jni.delete_weak(weak);
                self.all[*number] = None;
                self.free.push(*number);
                false
            });
            !numbers.is_empty()
        });
        self.limit = (self.all.len() - self.free.len()) * 2;
    }
}
