//! Classes: the data that CLASS_LOAD reports about them.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jvmti::sys::MethodPtr;
use jvmti::{Env, Jni, Live, Object};
use locks::{Rank, RwLock};
use rustc_hash::FxHashMap;
use vmpi::BasicType;

use crate::bridge::Bridge;
use crate::objects::{Record, narrow};
use vmpi::c_interface::layout::{ClassLoad, Field, Method, ObjectId, Payload, REQUESTED, event};

/// `JVMPI_CLASS`.
const ARRAY_OF_OBJECTS: i32 = BasicType::Object as i32;

/// The value of `is_array` for an array with this element type, or for an object that is not an array.
pub(crate) fn kind_of(array: Option<BasicType>) -> i32 {
    array.map_or(0, |element| element as i32)
}

/// A class that has an id.
#[derive(Debug)]
pub(crate) struct Class {
    /// A weak reference, so the bridge keeps no class alive.
    mirror: Object,
    signature: String,
    /// The value of `is_array` for its instances.
    kind: i32,
    /// The value of `class_id` for its instances.
    of_instances: ObjectId,
    /// Whether the class was reported to the agent before its fields were known.
    reported_bare: AtomicBool,
}

/// `java.lang.Class`, and how the element class of an array class is read.
struct Meta {
    /// A global reference.
    class: Object,
    component: MethodPtr,
    clone: MethodPtr,
}

/// All classes that have an id.
pub(crate) struct Classes {
    by_id: RwLock<FxHashMap<ObjectId, Arc<Class>>>,
    meta: OnceLock<Meta>,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            by_id: RwLock::new(Rank::BridgeClasses, FxHashMap::default()),
            meta: OnceLock::new(),
        }
    }
}

/// Text for C: modified UTF-8 has no NUL, so a NUL that decoding produced is replaced by a mark.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| c_string(&text.replace('\0', "\u{fffd}")))
}

/// `java.lang.String` of `Ljava/lang/String;`, `[Ljava.lang.String;` of its array.
pub(crate) fn class_name(signature: &str) -> String {
    let is_class = signature.starts_with('L');
    let inner = signature
        .strip_prefix('L')
        .and_then(|text| text.strip_suffix(';'));
    let name = if is_class {
        inner.unwrap_or(signature)
    } else {
        signature
    };
    name.replace('/', ".")
}

impl Classes {
    /// Looks up what is needed to read every class.
    pub(crate) fn begin(&self, jni: Jni) -> jvmti::Result<()> {
        let class = jni.find_class("java/lang/Class")?;
        let component = jni.method(class, "getComponentType", "()Ljava/lang/Class;")?;
        let class = jni.new_global(class)?;
        let object = jni.find_class("java/lang/Object")?;
        let clone = jni.method(object, "clone", "()Ljava/lang/Object;")?;
        let _ = self.meta.set(Meta {
            class,
            component,
            clone,
        });
        Ok(())
    }

    pub(crate) fn is_class_of_classes(&self, jni: Jni, class: Object) -> bool {
        self.meta
            .get()
            .is_some_and(|meta| jni.is_same(meta.class, class))
    }

    /// `Object.clone`.
    pub(crate) fn clone_method(&self) -> Option<MethodPtr> {
        self.meta.get().map(|meta| meta.clone)
    }

    fn find(&self, id: ObjectId) -> Option<Arc<Class>> {
        let by_id = self.by_id.read();
        by_id.get(&id).cloned()
    }

    /// `is_array` and `class_id` of instances of a class.
    pub(crate) fn shape(&self, class: ObjectId) -> (i32, ObjectId) {
        self.find(class)
            .map_or((0, 0), |class| (class.kind, class.of_instances))
    }

    /// Shapes of all classes, for walks that cannot look them up one by one.
    pub(crate) fn shapes(&self) -> FxHashMap<ObjectId, (i32, ObjectId)> {
        let by_id = self.by_id.read();
        by_id
            .iter()
            .map(|(id, class)| (*id, (class.kind, class.of_instances)))
            .collect()
    }

    /// The class object, as a local reference, if `id` is a class.
    pub(crate) fn mirror(&self, jni: Jni, id: ObjectId) -> Option<Object> {
        jni.new_local(self.find(id)?.mirror)
    }

    /// Removes a class that was unloaded; returns whether `id` was one.
    pub(crate) fn remove(&self, jni: Jni, id: ObjectId) -> bool {
        let mut by_id = self.by_id.write();
        let removed = by_id.remove(&id);
        drop(by_id);
        if let Some(class) = &removed {
            jni.delete_weak(class.mirror);
        }
        removed.is_some()
    }
}

/// Whether the VM knows a class's fields, methods and interfaces yet.
pub(crate) fn is_prepared(env: Env<Live>, mirror: Object) -> bool {
    const PREPARED: i32 = 2;
    env.class_status(mirror).unwrap_or(0) & PREPARED != 0
}

impl Bridge {
    /// Reports classes again that were reported before their fields were known, because a reader of a dump takes the
    /// fields from CLASS_LOAD. Returns those whose fields are still unknown.
    pub(crate) fn complete_classes(&self, env: Env<Live>, jni: Jni) -> Vec<ObjectId> {
        let bare: Vec<(ObjectId, Object)> = {
            let by_id = self.classes.by_id.read();
            let is_bare = |class: &Class| class.reported_bare.load(Ordering::SeqCst);
            let bare = by_id.iter().filter(|(_, class)| is_bare(class));
            bare.map(|(id, class)| (*id, class.mirror)).collect()
        };
        let mut left = Vec::new();
        for (id, mirror) in bare {
            let Some(mirror) = jni.new_local(mirror) else {
                continue;
            };
            if is_prepared(env, mirror) {
                self.send_class(env, jni, id, REQUESTED);
            } else {
                left.push(id);
            }
            jni.delete_local(mirror);
        }
        left
    }

    /// The id of a class, which gets one if it has none.
    pub(crate) fn name_class(&self, env: Env<Live>, jni: Jni, mirror: Object) -> ObjectId {
        match env.tag(mirror) {
            Ok(0) => {}
            Ok(tag) => return tag as ObjectId,
            Err(_) => return 0,
        }
        let _naming = self.objects.naming();
        jni.local_frame(8, || self.name_class_now(env, jni, mirror))
    }

    /// As [`Bridge::name_class`]; the caller holds the lock of `Objects::naming`.
    pub(crate) fn name_class_now(&self, env: Env<Live>, jni: Jni, mirror: Object) -> ObjectId {
        match env.tag(mirror) {
            Ok(0) => {}
            Ok(tag) => return tag as ObjectId,
            Err(_) => return 0,
        }
        let (Some(meta), Ok(signature)) = (self.classes.meta.get(), env.class_signature(mirror))
        else {
            return 0;
        };
        // `java.lang.Class` gets its id without a class, because otherwise looking up the class of a class would never
        // end.
        let class_of_classes = match jni.is_same(meta.class, mirror) {
            true => 0,
            false => self.name_class_now(env, jni, meta.class),
        };
        let record = Record {
            class: class_of_classes,
            kind: 0,
            size: narrow(env.object_size(mirror).unwrap_or(0).cast_signed()),
        };
        let Ok(weak) = jni.new_weak(mirror) else {
            return 0;
        };
        let id = self.objects.add(record);
        let _ = env.set_tag(mirror, id as i64);
        let (kind, element) = self.array_shape(env, jni, mirror, &signature);
        let class = Class {
            mirror: weak,
            signature,
            kind,
            of_instances: if kind == 0 { id } else { element },
            reported_bare: AtomicBool::new(false),
        };
        let mut by_id = self.classes.by_id.write();
        by_id.insert(id, Arc::new(class));
        id
    }

    /// `is_array` and the element class of instances of an array class.
    fn array_shape(
        &self,
        env: Env<Live>,
        jni: Jni,
        mirror: Object,
        signature: &str,
    ) -> (i32, ObjectId) {
        let dims = signature.bytes().take_while(|byte| *byte == b'[').count();
        let base = BasicType::from_descriptor(&signature[dims..]);
        match (dims, base) {
            (0, _) | (_, None) => (0, 0),
            (1, Some(base)) if base != BasicType::Object => (base as i32, 0),
            (_, Some(base)) => {
                // Goes down to the class of the innermost objects: for arrays of arrays of primitives that is the class
                // of the primitive array.
                let steps = dims - usize::from(base != BasicType::Object);
                let mut class = Some(mirror);
                for _ in 0..steps {
                    let component = self.classes.meta.get().map(|meta| meta.component);
                    class = class.zip(component).and_then(|(class, component)| {
                        jni.call_object(class, component, &[]).ok().flatten()
                    });
                }
                let element = class.map_or(0, |class| self.name_class_now(env, jni, class));
                (ARRAY_OF_OBJECTS, element)
            }
        }
    }

    /// Gives every loaded class its id.
    pub(crate) fn name_all_classes(&self, env: Env<Live>, jni: Jni) {
        for mirror in env.loaded_classes(jni).unwrap_or_default() {
            self.name_class(env, jni, mirror);
            jni.delete_local(mirror);
        }
    }

    /// Reports a class to the agent; returns whether `id` is a class.
    pub(crate) fn send_class(&self, env: Env<Live>, jni: Jni, id: ObjectId, more: i32) -> bool {
        let (Some(class), Some(mirror)) = (self.classes.find(id), self.classes.mirror(jni, id))
        else {
            return false;
        };
        class
            .reported_bare
            .store(!is_prepared(env, mirror), Ordering::SeqCst);
        let text = Text::read(env, mirror, &class.signature);
        let strings = |list: &[(CString, CString)]| -> Vec<Field> {
            let field = |(name, signature): &(CString, CString)| Field {
                name: name.as_ptr(),
                signature: signature.as_ptr(),
            };
            list.iter().map(field).collect()
        };
        let (statics, instances) = (strings(&text.statics), strings(&text.instances));
        let methods: Vec<Method> = text
            .methods
            .iter()
            .map(|method| Method {
                name: method.name.as_ptr(),
                signature: method.signature.as_ptr(),
                start: method.lines.0,
                end: method.lines.1,
                id: method.id.0,
            })
            .collect();
        let class_load = ClassLoad {
            name: text.name.as_ptr(),
            source: text.source.as_ptr(),
            interfaces: text.interfaces,
            method_count: methods.len() as i32,
            methods: methods.as_ptr(),
            static_count: statics.len() as i32,
            statics: statics.as_ptr(),
            instance_count: instances.len() as i32,
            instances: instances.as_ptr(),
            class: id,
        };
        jni.delete_local(mirror);
        let kind = event::CLASS_LOAD | more;
        self.send(jni.raw(), kind, Payload { class_load });
        true
    }
}

/// A method as text for C.
struct MethodText {
    name: CString,
    signature: CString,
    lines: (i32, i32),
    id: MethodPtr,
}

/// A class as text for C.
struct Text {
    name: CString,
    source: CString,
    interfaces: i32,
    methods: Vec<MethodText>,
    statics: Vec<(CString, CString)>,
    instances: Vec<(CString, CString)>,
}

impl Text {
    fn read(env: Env<Live>, mirror: Object, signature: &str) -> Self {
        let method = |id: MethodPtr| {
            let (name, signature) = env.method_name(id).ok()?;
            let lines = env.line_numbers(id).unwrap_or_default();
            let lines = lines.iter().map(|(_, line)| *line as i32);
            Some(MethodText {
                name: c_string(&name),
                signature: c_string(&signature),
                lines: (lines.clone().min().unwrap_or(-1), lines.max().unwrap_or(-1)),
                id,
            })
        };
        let methods = env.class_methods(mirror).unwrap_or_default();
        let fields = env.class_fields(mirror).unwrap_or_default();
        let (mut statics, mut instances) = (Vec::new(), Vec::new());
        for field in fields {
            if let Ok((name, signature, is_static)) = env.field(mirror, field) {
                let list = if is_static {
                    &mut statics
                } else {
                    &mut instances
                };
                list.push((c_string(&name), c_string(&signature)));
            }
        }
        Self {
            name: c_string(&class_name(signature)),
            source: c_string(&env.source_file(mirror).unwrap_or_default()),
            interfaces: env.class_interfaces(mirror).map_or(0, |list| list.len()) as i32,
            methods: methods.into_iter().filter_map(method).collect(),
            statics,
            instances,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_dots_and_arrays_keep_their_brackets() {
        let check = |signature, name| assert_eq!(class_name(signature), name);
        check("Ljava/lang/String;", "java.lang.String");
        check("[Ljava/lang/String;", "[Ljava.lang.String;");
        check("[[I", "[[I");
        check("I", "I");
        check("L", "L");
    }

    #[test]
    fn text_with_a_nul_is_still_text() {
        assert_eq!(c_string("a\0b").to_str(), Ok("a\u{fffd}b"));
    }
}
