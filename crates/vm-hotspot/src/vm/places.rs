//! Which loader and module a class is of, read from fields: no code of a loader runs.

use std::sync::OnceLock;

use jvmti::sys::FieldPtr;
use jvmti::{Env, Jni, Live, Object};
use vmpi::info::java_name;
use vmpi::{ClassId, ClassPlace, ObjectHandle, VmError};

use crate::vm::hotspot::HotSpot;
use crate::vm::registry::handles;

/// Fields that JDK 9 and later have.
struct Fields {
    module_of_class: FieldPtr,
    name_of_module: FieldPtr,
    name_of_loader: FieldPtr,
}

/// The fields; `None` on JDK 8.
fn fields(jni: Jni) -> Option<&'static Fields> {
    static FIELDS: OnceLock<Option<Fields>> = OnceLock::new();
    let find = || {
        let field = |class: &str, name: &str, descriptor: &str| {
            let class = jni.find_class(class).ok()?;
            jni.field(class, name, descriptor).ok()
        };
        let string = "Ljava/lang/String;";
        Some(Fields {
            module_of_class: field("java/lang/Class", "module", "Ljava/lang/Module;")?,
            name_of_module: field("java/lang/Module", "name", string)?,
            name_of_loader: field("java/lang/ClassLoader", "name", string)?,
        })
    };
    FIELDS.get_or_init(find).as_ref()
}

fn text(jni: Jni, object: Option<Object>, field: FieldPtr) -> Option<String> {
    jni.string(jni.get_object(object?, field)?).ok()
}

fn loader(env: Env<Live>, jni: Jni, mirror: Object, handle: ObjectHandle) -> String {
    let Ok(Some(loader)) = env.class_loader(mirror) else {
        return String::new();
    };
    let class = jni.object_class(loader);
    let signature = class.and_then(|class| env.class_signature(class).ok());
    let class = java_name(&signature.unwrap_or_default());
    let name = fields(jni).and_then(|fields| text(jni, Some(loader), fields.name_of_loader));
    let number = handle.0.saturating_sub(handles::loader(0).0) + 1;
    match name {
        Some(name) => format!("{name} ({class} {number})"),
        None => format!("{class} {number}"),
    }
}

/// Finds the fields. Must not be called on a thread of the program in the middle of its code, because looking up a
/// class can run code of a loader.
pub(crate) fn prepare(jni: Jni) {
    let _ = fields(jni);
}

/// The named module of a class, empty for none; needs [`prepare`].
pub(crate) fn module(jni: Jni, mirror: Object) -> String {
    let of = |fields: &Fields| {
        let module = jni.get_object(mirror, fields.module_of_class)?;
        let name = jni.get_object(module, fields.name_of_module);
        jni.delete_local(module);
        let text = name.and_then(|name| jni.string(name).ok());
        name.into_iter().for_each(|name| jni.delete_local(name));
        text
    };
    fields(jni).and_then(of).unwrap_or_default()
}

/// The loader and module of a class.
pub(crate) fn place(hotspot: &HotSpot, class: ClassId) -> Result<ClassPlace, VmError> {
    let (env, jni) = hotspot.here()?;
    let gone = || VmError::Gone("class");
    jni.local_frame(16, || {
        let (mirror, handle) = {
            // Its weak reference is dropped under this lock when the class was unloaded.
            let state = hotspot.lock();
            let classes = &state.registry.classes;
            let entry = classes.get(class.0);
            let entry = entry.ok_or_else(gone)?;
            let mirror = entry.mirror.and_then(|weak| jni.new_local(weak));
            (mirror.ok_or_else(gone)?, entry.info.loader)
        };
        Ok(ClassPlace {
            loader: loader(env, jni, mirror, handle),
            module: module(jni, mirror),
        })
    })
}
