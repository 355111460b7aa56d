//! The body of a text heap dump. Primitive values never appear in it.

use super::Context;
use super::text::TextOutput;
use crate::ids::{thread_serial, trace_serial};
use crate::mutf8::encode;
use hprof_text::{HeapArray, HeapClass, HeapObject, Root as TextRoot, RootKind, TextRecord};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmpi::{
    ClassId, ClassRecord, HeapVisitor, Instance, ObjectArray, ObjectHandle, PrimitiveArray, Root,
    ThreadId, Value, Vm, VmError,
};

/// Walks the heap and writes its objects.
pub(super) fn walk(out: &mut TextOutput, context: &mut Context<'_>) -> Result<(), VmError> {
    let vm = context.vm;
    // Some VMs answer no queries during the walk, so the names are read before it.
    let classes = context.catalog.class_ids();
    let fields = classes
        .into_iter()
        .map(|class| (class, field_names(vm, class)))
        .collect();
    let mut walk = Walk {
        out,
        context,
        references: 0,
        fields,
    };
    // The owner of roots whose thread is not known.
    walk.root(
        ObjectHandle::NULL,
        Root::ThreadObject {
            thread: ThreadId::NONE,
            trace: vmpi::TraceId::EMPTY,
        },
    );
    vm.walk_heap(&mut walk)
}

/// Names of all fields of a class, its own first; `None` for a primitive one.
type FieldNames = Arc<[Option<String>]>;

struct Walk<'a, 'c> {
    out: &'a mut TextOutput,
    context: &'a mut Context<'c>,
    references: u64,
    fields: FxHashMap<ClassId, FieldNames>,
}

/// Names of the reference fields of a class and its superclasses, in the order of values.
fn field_names(vm: &dyn Vm, class: ClassId) -> FieldNames {
    let mut names = Vec::new();
    let mut at = class;
    while at.0 != 0 {
        for field in vm.fields(at).unwrap_or_default() {
            if !field.is_static {
                let reference = field.descriptor.starts_with(['L', '[']);
                names.push(reference.then_some(field.name));
            }
        }
        at = vm.class(at).map(|info| info.superclass).unwrap_or_default();
    }
    names.into()
}

impl Walk<'_, '_> {
    fn id(&self, handle: ObjectHandle) -> u64 {
        self.out.ids.id(handle).0
    }
}

fn frame_number(depth: Option<u32>) -> i32 {
    depth
        .and_then(|depth| i32::try_from(depth).ok())
        .unwrap_or(-1)
}

impl HeapVisitor for Walk<'_, '_> {
    fn root(&mut self, object: ObjectHandle, why: Root) {
        let serial = |thread: ThreadId| thread_serial(thread).0;
        let class_name;
        let kind = match why {
            Root::Unknown => RootKind::Unknown,
            Root::JniGlobal => {
                self.references += 1;
                RootKind::JniGlobal {
                    reference: self.references,
                    trace: trace_serial(vmpi::TraceId::EMPTY).0,
                }
            }
            Root::JniLocal { thread, depth } => RootKind::JniLocal {
                thread: serial(thread),
                frame: frame_number(depth),
            },
            Root::JavaFrame { thread, depth } => RootKind::JavaStack {
                thread: serial(thread),
                frame: frame_number(depth),
            },
            Root::NativeStack { thread } => RootKind::NativeStack {
                thread: serial(thread),
            },
            Root::StickyClass => {
                class_name = self.context.catalog.class_name_of(object);
                RootKind::SystemClass {
                    name: class_name.as_bytes(),
                }
            }
            Root::ThreadBlock { thread } => RootKind::ThreadBlock {
                thread: serial(thread),
            },
            Root::MonitorUsed => RootKind::BusyMonitor,
            Root::ThreadObject { thread, trace } => RootKind::Thread {
                thread: serial(thread),
                trace: trace_serial(trace).0,
            },
        };
        let object = self.id(object);
        self.out.put(&TextRecord::Root(TextRoot { object, kind }));
    }

    fn instance(&mut self, record: &Instance<'_>) {
        let vm = self.context.vm;
        let names = self.fields.entry(record.class);
        let names = Arc::clone(names.or_insert_with(|| field_names(vm, record.class)));
        let class = self.context.catalog.class(vm, record.class);
        let named = record.values.iter().zip(names.iter());
        let fields = named.filter_map(|(value, name)| match (value, name) {
            (Value::Object(target), Some(name)) if !target.is_null() => {
                Some((name.as_bytes(), self.id(*target)))
            }
            _ => None,
        });
        let object = HeapObject {
            id: self.id(record.object),
            size: record.size,
            trace: trace_serial(record.trace).0,
            class: &encode(&class.name),
            class_id: self.id(record.class_object),
            fields: fields.collect(),
        };
        self.out.put(&TextRecord::Object(object));
    }

    fn object_array(&mut self, record: &ObjectArray<'_>) {
        let class = self.context.catalog.class(self.context.vm, record.class);
        let elements = record
            .elements
            .iter()
            .enumerate()
            .filter(|(_, target)| !target.is_null());
        let array = HeapArray {
            id: self.id(record.object),
            size: record.size,
            trace: trace_serial(record.trace).0,
            length: record.elements.len() as u64,
            class: &encode(&class.name),
            class_id: Some(self.id(record.class_object)),
            elements: elements
                .map(|(at, target)| (at as u64, self.id(*target)))
                .collect(),
        };
        self.out.put(&TextRecord::Array(array));
    }

    fn primitive_array(&mut self, record: &PrimitiveArray<'_>) {
        let class = self.context.catalog.class(self.context.vm, record.class);
        let array = HeapArray {
            id: self.id(record.object),
            // The original shows the bytes of the elements here, not of the object.
            size: record.bytes.len() as u64,
            trace: trace_serial(record.trace).0,
            length: u64::from(record.len),
            class: &encode(&class.name),
            class_id: None,
            elements: Vec::new(),
        };
        self.out.put(&TextRecord::Array(array));
    }

    fn class(&mut self, record: &ClassRecord<'_>) {
        let class = self.context.catalog.class(self.context.vm, record.class);
        let statics = record
            .statics
            .iter()
            .filter_map(|(field, value)| match value {
                Value::Object(target) if !target.is_null() => {
                    Some((field.name.as_bytes(), self.id(*target)))
                }
                _ => None,
            });
        let class = HeapClass {
            id: self.id(record.object),
            name: &encode(&class.name),
            trace: trace_serial(record.trace).0,
            superclass: self.id(record.superclass),
            loader: self.id(record.loader),
            signers: self.id(record.signers),
            domain: self.id(record.protection_domain),
            statics: statics.collect(),
            constants: Vec::new(),
        };
        self.out.put(&TextRecord::Class(class));
    }
}
