//! Which field of a class has which index in a heap walk, and which place in HPROF.

use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::{BasicType, ClassId, FieldInfo, ObjectHandle, Value, VmError};

use crate::vm::queries::failed;

/// Declared fields of a class, in class file order.
pub(crate) fn declared_fields(env: Env<Live>, mirror: Object) -> Result<Vec<FieldInfo>, VmError> {
    let fields = env.class_fields(mirror).map_err(failed)?;
    let info = |field| {
        let (name, descriptor, is_static) = env.field(mirror, field).map_err(failed)?;
        Ok(FieldInfo {
            name,
            descriptor,
            is_static,
        })
    };
    fields.into_iter().map(info).collect()
}

/// Where the fields of a class are, by the index JVMTI gives them.
#[derive(Default)]
pub struct Layout {
    /// Own fields, in class file order.
    pub declared: Vec<FieldInfo>,
    /// 0 for none.
    pub superclass: ClassId,
    /// Interfaces the class implements directly.
    pub interfaces: Vec<ClassId>,
    /// JVMTI index of an instance field to its place among [`Layout::zeros`].
    pub instance: FxHashMap<i32, usize>,
    /// JVMTI index of an own static field to its place in `declared`.
    pub statics: FxHashMap<i32, usize>,
    /// Default values in the order of HPROF: own fields, then the superclass's.
    pub zeros: Vec<Value>,
}

/// The value of a field that was never written.
#[must_use]
pub fn zero(descriptor: &str) -> Value {
    match BasicType::from_descriptor(descriptor) {
        Some(BasicType::Boolean) => Value::Boolean(false),
        Some(BasicType::Char) => Value::Char(0),
        Some(BasicType::Float) => Value::Float(0.0),
        Some(BasicType::Double) => Value::Double(0.0),
        Some(BasicType::Byte) => Value::Byte(0),
        Some(BasicType::Short) => Value::Short(0),
        Some(BasicType::Int) => Value::Int(0),
        Some(BasicType::Long) => Value::Long(0),
        Some(BasicType::Object) | None => Value::Object(ObjectHandle::NULL),
    }
}

/// Layouts of all classes, by class id.
pub struct Layouts(pub FxHashMap<u32, Layout>);

impl Layouts {
    /// Reads the fields of every loaded class; `number` gives each its number.
    ///
    /// # Errors
    /// When the VM does not list its classes.
    pub fn read(
        env: Env<Live>,
        jni: Jni,
        mut number: impl FnMut(Object) -> ClassId,
    ) -> Result<Self, VmError> {
        let mut layouts = FxHashMap::default();
        for mirror in env.loaded_classes(jni).map_err(failed)? {
            jni.local_frame(64, || {
                let id = number(mirror);
                let interfaces = env.class_interfaces(mirror).unwrap_or_default();
                let layout = Layout {
                    declared: declared_fields(env, mirror).unwrap_or_default(),
                    superclass: jni.superclass(mirror).map(&mut number).unwrap_or_default(),
                    interfaces: interfaces.into_iter().map(&mut number).collect(),
                    ..Layout::default()
                };
                layouts.insert(id.0, layout);
            });
            jni.delete_local(mirror);
        }
        let mut layouts = Self(layouts);
        let ids: Vec<u32> = layouts.0.keys().copied().collect();
        for id in ids {
            layouts.number(id);
        }
        Ok(layouts)
    }

    /// A class was reported before its fields were known: its definition has none.
    pub fn bare(&mut self, class: ClassId) {
        if let Some(layout) = self.0.get_mut(&class.0) {
            (layout.declared, layout.interfaces) = (Vec::new(), Vec::new());
            layout.statics.clear();
            layout.instance.clear();
            layout.zeros.clear();
        }
    }

    /// All interfaces of a class, inherited ones included, each once.
    fn all_interfaces(&self, id: u32, found: &mut Vec<u32>) {
        let Some(layout) = self.0.get(&id) else {
            return;
        };
        for interface in &layout.interfaces {
            if !found.contains(&interface.0) {
                found.push(interface.0);
                self.all_interfaces(interface.0, found);
            }
        }
        self.all_interfaces(layout.superclass.0, found);
    }

    /// JVMTI numbers the fields of a class after those of all its interfaces, from
    /// the topmost superclass down, static ones included.
    fn number(&mut self, id: u32) {
        let mut interfaces = Vec::new();
        self.all_interfaces(id, &mut interfaces);
        let fields_of = |id: &u32| self.0.get(id).map_or(0, |layout| layout.declared.len());
        let mut index = interfaces.iter().map(fields_of).sum::<usize>() as i32;
        let mut line = vec![id];
        while let Some(layout) = self.0.get(line.last().unwrap_or(&0)) {
            if layout.superclass.0 == 0 || line.len() > 1000 {
                break;
            }
            line.push(layout.superclass.0);
        }
        // Places in the order of HPROF: the class itself first.
        let mut places = FxHashMap::default();
        let mut zeros = Vec::new();
        for class in &line {
            for (n, field) in self
                .0
                .get(class)
                .map_or(&[][..], |l| &l.declared)
                .iter()
                .enumerate()
            {
                if !field.is_static {
                    places.insert((*class, n), zeros.len());
                    zeros.push(zero(&field.descriptor));
                }
            }
        }
        let (mut instance, mut statics) = (FxHashMap::default(), FxHashMap::default());
        for class in line.iter().rev() {
            for (n, field) in self
                .0
                .get(class)
                .map_or(&[][..], |l| &l.declared)
                .iter()
                .enumerate()
            {
                if field.is_static && *class == id {
                    statics.insert(index, n);
                } else if let Some(place) = places.get(&(*class, n)) {
                    instance.insert(index, *place);
                }
                index += 1;
            }
        }
        if let Some(layout) = self.0.get_mut(&id) {
            (layout.instance, layout.statics, layout.zeros) = (instance, statics, zeros);
        }
    }
}
