//! Reads fields of live objects through JNI, for the rules of sizes and capacities. Fields are found with JVMTI,
//! because JNI would wait for an initializer that is running, possibly as long as the program runs.

use std::cell::{Cell, RefCell};

use jvmti::sys::FieldPtr;
use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::content::{self, Array, Fields, Fill};

/// The type of array elements: the first letter of their descriptor, `L` for all references.
type Kind = u8;

/// No real hierarchy is deeper.
const MOST_SUPERCLASSES: usize = 256;
/// Classes, beside its own, whose objects an object leads to.
const MOST_OTHERS: usize = 64;
/// Lengths of arrays whose bytes are kept.
const MOST_LENGTHS: usize = 1 << 14;

/// The fields of a class, including inherited ones.
struct Layout {
    class: Object,
    /// If its objects are arrays.
    array: Option<Kind>,
    /// Name, descriptor, and the field, those of the nearest class first.
    fields: Vec<(String, String, FieldPtr)>,
    /// Those that refer to arrays, or may do so.
    arrays: Vec<(FieldPtr, Option<Kind>)>,
}

/// What the elements of arrays with this signature are; `None` if it is none of arrays.
fn kind(signature: &str) -> Option<Kind> {
    let [b'[', element, ..] = signature.as_bytes() else {
        return None;
    };
    Some(match element {
        b'[' => b'L',
        element => *element,
    })
}

impl Layout {
    fn read(env: Env<Live>, jni: Jni, class: Object) -> Self {
        let lineage = std::iter::successors(Some(class), |class| jni.superclass(*class));
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for class in lineage.take(MOST_SUPERCLASSES) {
            for field in env.class_fields(class).unwrap_or_default() {
                let Ok((name, descriptor, false)) = env.field(class, field) else {
                    continue;
                };
                let kind = kind(&descriptor);
                if kind.is_some() || may_be_array(&descriptor) {
                    arrays.push((field, kind));
                }
                fields.push((name, descriptor, field));
            }
        }
        let signature = env.class_signature(class);
        Self {
            class,
            array: signature.ok().as_deref().and_then(kind),
            fields,
            arrays,
        }
    }

    /// A field by name, that of the nearest class, if it is of this type.
    fn field(&self, name: &str, descriptor: &str) -> Option<FieldPtr> {
        let mut named = self.fields.iter().filter(|field| field.0 == name);
        named
            .next()
            .filter(|field| field.1 == descriptor)
            .map(|field| field.2)
    }
}

/// Whether a field of this type that is no array's may refer to one.
fn may_be_array(descriptor: &str) -> bool {
    matches!(
        descriptor,
        "Ljava/lang/Object;" | "Ljava/lang/Cloneable;" | "Ljava/io/Serializable;"
    )
}

/// Whether an object is of this class, and of no subclass.
pub(crate) fn is_of(jni: Jni, object: Object, class: Object) -> bool {
    let Some(own) = jni.object_class(object) else {
        return false;
    };
    let is_it = jni.is_same(own, class);
    jni.delete_local(own);
    is_it
}

/// The live objects of one class, and what they refer to.
pub(crate) struct LiveFields {
    env: Env<Live>,
    jni: Jni,
    name: String,
    own: Layout,
    /// The object that is asked about: it is of that class.
    root: Cell<Option<Object>>,
    /// Classes of what it refers to, each by a global reference.
    others: RefCell<Vec<Layout>>,
    /// What every array implements.
    cloneable: Option<Object>,
    /// Bytes of arrays, by what they hold and how many.
    bytes: RefCell<FxHashMap<(Kind, u64), u64>>,
}

impl LiveFields {
    /// Those of a class with this name as in Java source, given as a local reference that outlives
    /// this, as the current frame does.
    pub(crate) fn new(env: Env<Live>, jni: Jni, class: Object, name: String) -> Self {
        Self {
            env,
            jni,
            name,
            own: jni.local_frame(MOST_SUPERCLASSES as i32, || Layout::read(env, jni, class)),
            root: Cell::new(None),
            others: RefCell::default(),
            cloneable: jni.find_class("java/lang/Cloneable").ok(),
            bytes: RefCell::default(),
        }
    }

    /// Whether its objects may say anything.
    pub(crate) fn may_be_filled(&self) -> bool {
        let int_field = |name: &str| self.own.field(name, "I").is_some();
        self.own.array.is_some()
            || content::may_be_filled(&self.name, !self.own.arrays.is_empty(), int_field)
    }

    /// Whether an object is one of its objects, and of no subclass.
    pub(crate) fn is_of(&self, object: Object) -> bool {
        is_of(self.jni, object, self.own.class)
    }

    /// Size and capacity of an object that [is of the class](Self::is_of); with another object the VM would read wrong
    /// memory. Creates local references that it does not delete.
    pub(crate) fn fill(&self, object: Object) -> Fill {
        self.root.set(Some(object));
        content::fill(self, object, &self.name)
    }

    /// Reads the layout of an object's class.
    fn layout<T>(&self, object: Object, look: impl FnOnce(&Layout) -> Option<T>) -> Option<T> {
        if self.root.get() == Some(object) {
            return look(&self.own);
        }
        let jni = self.jni;
        let class = jni.object_class(object)?;
        let mut others = self.others.borrow_mut();
        let is_it = |layout: &Layout| jni.is_same(layout.class, class);
        let known = others.iter().position(is_it);
        let found = match known {
            Some(at) => look(&others[at]),
            None => {
                let read = || Layout::read(self.env, jni, class);
                let mut layout = jni.local_frame(MOST_SUPERCLASSES as i32, read);
                let found = look(&layout);
                if others.len() < MOST_OTHERS
                    && let Ok(kept) = jni.new_global(class)
                {
                    layout.class = kept;
                    others.push(layout);
                }
                found
            }
        };
        jni.delete_local(class);
        found
    }

    fn field(&self, object: Object, name: &str, descriptor: &str) -> Option<FieldPtr> {
        self.layout(object, |layout| layout.field(name, descriptor))
    }

    /// Elements and bytes of an array. The VM computes the bytes of each length once.
    fn measure(&self, array: Object, kind: Kind) -> Array {
        let length = self.jni.array_len(array) as u64;
        let mut known = self.bytes.borrow_mut();
        if known.len() >= MOST_LENGTHS {
            known.clear();
        }
        let bytes = known
            .entry((kind, length))
            .or_insert_with(|| self.env.object_size(array).unwrap_or(0));
        (length, *bytes)
    }
}

impl Drop for LiveFields {
    fn drop(&mut self) {
        for layout in self.others.borrow().iter() {
            self.jni.delete_global(layout.class);
        }
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
        let kind = self.layout(object, |layout| layout.array)?;
        Some(self.measure(object, kind))
    }

    fn arrays(&self, object: Object) -> Vec<Array> {
        let jni = self.jni;
        let fields = |layout: &Layout| {
            let mut arrays = Vec::new();
            for (field, kind) in &layout.arrays {
                let Some(value) = jni.get_object(object, *field) else {
                    continue;
                };
                arrays.extend(match kind {
                    Some(kind) => Some(self.measure(value, *kind)),
                    None => self.array_of_any(value),
                });
                jni.delete_local(value);
            }
            Some(arrays)
        };
        self.layout(object, fields).unwrap_or_default()
    }

    fn elements(&self, array: Object) -> Vec<Object> {
        let count = self.jni.array_len(array);
        (0..count)
            .filter_map(|index| self.jni.array_get(array, index))
            .collect()
    }
}

impl LiveFields {
    /// Elements and bytes of an object that may be an array; most other objects are recognized immediately.
    fn array_of_any(&self, value: Object) -> Option<Array> {
        let jni = self.jni;
        if self
            .cloneable
            .is_some_and(|cloneable| !jni.is_instance(value, cloneable))
        {
            return None;
        }
        let class = jni.object_class(value)?;
        let signature = self.env.class_signature(class);
        jni.delete_local(class);
        let kind = kind(&signature.ok()?)?;
        Some(self.measure(value, kind))
    }
}
