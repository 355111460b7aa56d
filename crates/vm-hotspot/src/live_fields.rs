//! Fields of live objects, read through JNI for the rule that says how full they are.

use std::cell::RefCell;

use jvmti::sys::FieldPtr;
use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::content::{Array, Fields};

/// The live objects of one class, and what they refer to.
pub(crate) struct LiveFields {
    env: Env<Live>,
    jni: Jni,
    /// The class, whose fields are looked up once.
    class: Object,
    known: RefCell<FxHashMap<(String, String), Option<FieldPtr>>>,
    /// Its fields that refer to arrays, or may do so.
    references: Vec<FieldPtr>,
}

/// Fields of a class and its superclasses that may refer to arrays. A superclass's are found by the
/// class that declares them, so that none hides another.
fn array_fields(env: Env<Live>, jni: Jni, class: Object) -> Vec<FieldPtr> {
    /// No real hierarchy is deeper.
    const MOST: usize = 256;
    let lineage = std::iter::successors(Some(class), |class| jni.superclass(*class));
    let mut found = Vec::new();
    for class in lineage.take(MOST) {
        for field in env.class_fields(class).unwrap_or_default() {
            let Ok((_, descriptor, is_static)) = env.field(class, field) else {
                continue;
            };
            if !is_static && (descriptor.starts_with('[') || descriptor == "Ljava/lang/Object;") {
                found.push(field);
            }
        }
    }
    found
}

impl LiveFields {
    /// Those of a class, given as a local reference that outlives this.
    pub(crate) fn new(env: Env<Live>, jni: Jni, class: Object) -> Self {
        Self {
            env,
            jni,
            class,
            known: RefCell::default(),
            references: array_fields(env, jni, class),
        }
    }

    /// A field of an object by name; that of the nearest class.
    fn field(&self, object: Object, name: &str, descriptor: &str) -> Option<FieldPtr> {
        let class = self.jni.object_class(object)?;
        let find = |class| self.jni.field(class, name, descriptor).ok();
        let found = if self.jni.is_same(class, self.class) {
            let key = (name.to_owned(), descriptor.to_owned());
            *self
                .known
                .borrow_mut()
                .entry(key)
                .or_insert_with(|| find(class))
        } else {
            find(class)
        };
        self.jni.delete_local(class);
        found
    }
}

impl Fields for LiveFields {
    type Object = Object;

    fn int(&self, object: Object, name: &str) -> Option<i64> {
        let field = self.field(object, name, "I")?;
        Some(i64::from(self.jni.get_int(object, field)))
    }

    fn long(&self, object: Object, name: &str) -> Option<i64> {
        let field = self.field(object, name, "J")?;
        Some(self.jni.get_long(object, field))
    }

    fn byte(&self, object: Object, name: &str) -> Option<i64> {
        let field = self.field(object, name, "B")?;
        Some(i64::from(self.jni.get_byte(object, field)))
    }

    fn reference(&self, object: Object, name: &str, descriptor: &str) -> Option<Object> {
        let field = self.field(object, name, descriptor)?;
        self.jni.get_object(object, field)
    }

    fn array(&self, object: Object) -> Option<Array> {
        let class = self.jni.object_class(object)?;
        let signature = self.env.class_signature(class);
        self.jni.delete_local(class);
        if !signature.is_ok_and(|signature| signature.starts_with('[')) {
            return None;
        }
        let length = self.jni.array_len(object) as u64;
        Some((length, self.env.object_size(object).unwrap_or(0)))
    }

    fn arrays(&self, object: Object) -> Vec<Array> {
        let jni = self.jni;
        let Some(class) = jni.object_class(object) else {
            return Vec::new();
        };
        let own;
        let fields = if jni.is_same(class, self.class) {
            &self.references
        } else {
            own = array_fields(self.env, jni, class);
            &own
        };
        jni.delete_local(class);
        let mut arrays = Vec::new();
        for field in fields {
            if let Some(value) = jni.get_object(object, *field) {
                arrays.extend(self.array(value));
                jni.delete_local(value);
            }
        }
        arrays
    }

    fn elements(&self, array: Object) -> Vec<Object> {
        let count = self.jni.array_len(array);
        (0..count)
            .filter_map(|index| self.jni.array_get(array, index))
            .collect()
    }
}
