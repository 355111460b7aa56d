//! The classes of the elements of arrays.

use jvmti::sys::{FieldPtr, MethodPtr};
use jvmti::{Env, Jni, Live, Object};

/// How the element class of an array class is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Component {
    Field(FieldPtr),
    /// Before JDK 9. No method may be called while the state is locked.
    Method(MethodPtr),
}

/// What may be called while the state is locked.
pub(super) enum Components {
    Field(FieldPtr),
    /// Classes of arrays with those of their elements.
    Known(Vec<(Object, Object)>),
}

impl Component {
    /// Looks up what is needed to read element classes.
    pub(super) fn find(jni: Jni) -> jvmti::Result<Self> {
        let class = jni.find_class("java/lang/Class")?;
        if let Ok(field) = jni.field(class, "componentType", "Ljava/lang/Class;") {
            return Ok(Self::Field(field));
        }
        let method = jni.method(class, "getComponentType", "()Ljava/lang/Class;")?;
        Ok(Self::Method(method))
    }

    /// Whether everything may be called while the state is locked.
    pub(super) fn is_field(self) -> bool {
        matches!(self, Self::Field(_))
    }

    /// What can be called with `class`, an array class or another class.
    pub(super) fn of(self, (env, jni): (Env<Live>, Jni), class: Option<Object>) -> Components {
        let method = match self {
            Self::Field(field) => return Components::Field(field),
            Self::Method(method) => method,
        };
        let (mut known, mut next) = (Vec::new(), class);
        while let Some(class) = next {
            next = None;
            let signature = env.class_signature(class);
            if signature.is_ok_and(|signature| signature.starts_with('['))
                && let Ok(Some(component)) = jni.call_object(class, method, &[])
            {
                known.push((class, component));
                next = Some(component);
            }
        }
        Components::Known(known)
    }
}

impl Components {
    /// Deletes the local references.
    pub(super) fn drop_locals(self, jni: Jni) {
        if let Self::Known(known) = self {
            known.into_iter().for_each(|(_, of)| jni.delete_local(of));
        }
    }
}
