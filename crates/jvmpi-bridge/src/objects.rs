//! Ids of objects: an id is a small number times eight, which is also the object's JVMTI tag. It stays the same when
//! the object moves and is never reused, so it is unambiguous however late an event arrives.

use std::sync::atomic::{AtomicUsize, Ordering};

use jvmti::{Env, Jni, Live, Object};
use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::FxHashMap;

use crate::bridge::Bridge;
use vmpi::c_interface::layout::{ObjAlloc, ObjectId};

/// The distance between two ids: agents hash them as if they were addresses, as they once were.
pub(crate) const STEP: usize = 8;
const SHARDS: usize = 16;
/// The only arena: ids never change, so objects do not move between arenas.
pub(crate) const ARENA: i32 = 1;

/// The stored data about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The value of `obj_alloc.class_id`: the class; the element class for an array of references; 0 for arrays of
    /// primitives and for `java.lang.Class` itself.
    pub(crate) class: ObjectId,
    /// The value of `obj_alloc.is_array`.
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

/// All objects that have an id.
pub(crate) struct Objects {
    next: AtomicUsize,
    shards: [Mutex<FxHashMap<ObjectId, Record>>; SHARDS],
    /// Locked while an object gets its id, and during heap walks, which assign ids, too: the only lock that is held
    /// during calls into the VM.
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

/// A size in the type of the interface.
pub(crate) fn narrow(size: i64) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

impl Objects {
    fn shard(&self, id: ObjectId) -> MutexGuard<'_, FxHashMap<ObjectId, Record>> {
        self.shards[id / STEP % SHARDS].lock()
    }

    /// The lock that is required for assigning ids.
    pub(crate) fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock()
    }

    /// A new id, which the object will get as its tag.
    pub(crate) fn add(&self, record: Record) -> ObjectId {
        let id = (self.next.fetch_add(1, Ordering::Relaxed) + 1) * STEP;
        self.shard(id).insert(id, record);
        id
    }

    /// The data about `id`.
    pub(crate) fn get(&self, id: ObjectId) -> Option<Record> {
        self.shard(id).get(&id).copied()
    }

    /// Removes an object that was freed; returns whether it had an id.
    pub(crate) fn remove(&self, id: ObjectId) -> bool {
        self.shard(id).remove(&id).is_some()
    }

    /// How many objects have ids.
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

impl Bridge {
    /// The id of an object, which gets one if it has none; and whether it got it now.
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

    /// As [`Bridge::name`]; the caller holds the lock of [`Objects::naming`].
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

    /// The object with an id, as a local reference. Classes and threads are looked up directly; for others the VM
    /// searches all tags.
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
