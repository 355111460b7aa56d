//! Names of objects: an id is a small number times eight, which is also the
//! object's JVMTI tag. It stays the same when the object moves and is never given
//! to another, so nothing can be confused however late an event arrives.

use std::sync::atomic::{AtomicUsize, Ordering};

use jvmti::{Env, Jni, Live, Object};
use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::FxHashMap;

use crate::bridge::Bridge;
use vmpi::c_interface::layout::{ObjAlloc, ObjectId};

/// Distance of two ids: agents hash them as the addresses they once were.
pub(crate) const STEP: usize = 8;
const SHARDS: usize = 16;
/// The only arena: ids do not move, so there is nowhere to move to.
pub(crate) const ARENA: i32 = 1;

/// What is known of an object without having it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// What `obj_alloc.class_id` says: the class, the element class of an array of
    /// references, 0 for arrays of primitives and for the class of classes itself.
    pub(crate) class: ObjectId,
    /// What `obj_alloc.is_array` says.
    pub(crate) kind: i32,
    pub(crate) size: i32,
}

impl Record {
    /// The payload of OBJECT_ALLOC.
    pub(crate) fn payload(self, object: ObjectId) -> ObjAlloc {
        ObjAlloc {
            arena: ARENA,
            class: self.class,
            is_array: self.kind,
            size: self.size,
            object,
        }
    }
}

/// All objects that have a name.
pub(crate) struct Objects {
    next: AtomicUsize,
    shards: [Mutex<FxHashMap<ObjectId, Record>>; SHARDS],
    /// Held while an object gets its name and by heap walks, which name objects
    /// too: the only lock held over calls into the VM.
    naming: Mutex<()>,
}

impl Default for Objects {
    fn default() -> Self {
        Self {
            next: AtomicUsize::new(0),
            shards: std::array::from_fn(|_| Mutex::new(Rank::Objects, FxHashMap::default())),
            naming: Mutex::new(Rank::Naming, ()),
        }
    }
}

/// A size as the interface has it.
pub(crate) fn narrow(size: i64) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

impl Objects {
    fn shard(&self, id: ObjectId) -> MutexGuard<'_, FxHashMap<ObjectId, Record>> {
        self.shards[id / STEP % SHARDS].lock()
    }

    /// Only its holder may name objects.
    pub(crate) fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock()
    }

    /// A new id for an object that will get it as its tag.
    pub(crate) fn add(&self, record: Record) -> ObjectId {
        let id = (self.next.fetch_add(1, Ordering::Relaxed) + 1) * STEP;
        self.shard(id).insert(id, record);
        id
    }

    /// What is known of `id`.
    pub(crate) fn get(&self, id: ObjectId) -> Option<Record> {
        self.shard(id).get(&id).copied()
    }

    /// The object is gone; whether it had been known.
    pub(crate) fn remove(&self, id: ObjectId) -> bool {
        self.shard(id).remove(&id).is_some()
    }

    /// How many are known.
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

impl Bridge {
    /// The id of an object, given if it has none; and whether it was given now.
    pub(crate) fn name(&self, env: Env<Live>, jni: Jni, object: Object) -> (ObjectId, bool) {
        match env.tag(object) {
            Ok(0) => {}
            Ok(tag) => return (tag as ObjectId, false),
            Err(_) => return (0, false),
        }
        let _naming = self.objects.naming();
        jni.local_frame(8, || self.name_now(env, jni, object))
    }

    /// The id of an object.
    pub(crate) fn id_of(&self, env: Env<Live>, jni: Jni, object: Object) -> ObjectId {
        self.name(env, jni, object).0
    }

    /// As [`Bridge::name`], by the holder of [`Objects::naming`].
    fn name_now(&self, env: Env<Live>, jni: Jni, object: Object) -> (ObjectId, bool) {
        match env.tag(object) {
            Ok(0) => {}
            Ok(tag) => return (tag as ObjectId, false),
            Err(_) => return (0, false),
        }
        let Some(class) = jni.object_class(object) else {
            return (0, false);
        };
        if self.classes.is_class_of_classes(jni, class) {
            return (self.name_class_now(env, jni, object), true);
        }
        let class = self.name_class_now(env, jni, class);
        let (kind, class) = self.classes.shape(class);
        let size = env.object_size(object).unwrap_or(0);
        let record = Record {
            class,
            kind,
            size: narrow(size.cast_signed()),
        };
        let id = self.objects.add(record);
        if env.set_tag(object, id as i64).is_err() {
            self.objects.remove(id);
            return (0, false);
        }
        (id, true)
    }

    /// The object with an id, as a local reference. Classes and threads are found
    /// at once; for others the VM searches all names.
    pub(crate) fn object_of(&self, env: Env<Live>, jni: Jni, id: ObjectId) -> Option<Object> {
        if let Some(mirror) = self.classes.mirror(jni, id) {
            return Some(mirror);
        }
        if let Some(thread) = self.threads.object_with_id(jni, id) {
            return Some(thread);
        }
        self.objects.get(id)?;
        let found = env.objects_with_tags(&[id as i64]).ok()?;
        found.first().map(|(object, _)| *object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_small_distinct_and_never_given_twice() {
        let objects = Objects::default();
        let record = Record {
            class: 8,
            kind: 0,
            size: 16,
        };
        let first = objects.add(record);
        assert_eq!(objects.get(first), Some(record));
        assert!(objects.remove(first) && !objects.remove(first));
        let second = objects.add(record);
        assert!(second != first && second % 8 == 0);
        assert_eq!((objects.count(), objects.get(first)), (1, None));
        assert_eq!((objects.get(0), objects.get(usize::MAX)), (None, None));
    }

    #[test]
    fn a_size_beyond_the_interface_is_its_largest() {
        assert_eq!((narrow(16), narrow(1 << 40)), (16, i32::MAX));
    }
}
