//! The body of a binary heap dump by a walk of the heap.

use super::Context;
use super::binary::BinaryOutput;
use super::segments::Segments;
use crate::ids::trace_serial;
use hprof::{HeapTag, IdSize};
use rustc_hash::FxHashMap;
use vmpi::{
    BasicType, ClassId, ClassRecord, FieldInfo, HeapVisitor, Instance, ObjectArray, ObjectHandle,
    PrimitiveArray, Root, Value, Vm, VmError,
};

/// Walks the heap and writes it.
pub(super) fn walk(out: &mut BinaryOutput, context: &mut Context<'_>) -> Result<(), VmError> {
    let vm = context.vm;
    // Some VMs answer no queries during the walk, so the sizes are computed before it.
    let sizes = instance_sizes(vm, context, out.ids.size);
    let mut walk = Walk {
        to: Segments::new(out, context),
        sizes,
    };
    let result = vm.walk_heap(&mut walk);
    walk.to.finish();
    result
}

/// Bytes of the fields of an instance of each class, inherited ones included, as the original
/// states them in CLASS DUMP.
fn instance_sizes(vm: &dyn Vm, context: &mut Context<'_>, ids: IdSize) -> FxHashMap<ClassId, u32> {
    let mut own: FxHashMap<ClassId, (u32, ClassId)> = FxHashMap::default();
    for class in context.catalog.class_ids() {
        let fields = vm.fields(class).unwrap_or_default();
        let width = |field: &FieldInfo| {
            let kind = BasicType::from_descriptor(&field.descriptor);
            kind.and_then(BasicType::width).unwrap_or(ids.bytes()) as u32
        };
        let sum = fields
            .iter()
            .filter(|field| !field.is_static)
            .map(width)
            .sum();
        let superclass = context.catalog.class(vm, class).info.superclass;
        own.insert(class, (sum, superclass));
    }
    let total = |class: &ClassId| {
        let (mut sum, mut at) = (0, *class);
        // A chain of superclasses is short; the bound stops at a chain that is wrong and never ends.
        for _ in 0..1000 {
            let Some((bytes, superclass)) = own.get(&at) else {
                break;
            };
            sum += bytes;
            at = *superclass;
        }
        sum
    };
    own.keys().map(|class| (*class, total(class))).collect()
}

struct Walk<'a, 'c> {
    to: Segments<'a, 'c>,
    sizes: FxHashMap<ClassId, u32>,
}

impl Walk<'_, '_> {
    fn id(&mut self, handle: ObjectHandle) {
        let id = self.to.out.ids.id(handle).0;
        self.to.raw_id(id);
    }

    fn value(&mut self, value: Value) {
        let body = &mut self.to.body;
        match value {
            Value::Object(handle) => self.id(handle),
            Value::Boolean(on) => body.push(u8::from(on)),
            Value::Char(unit) => body.extend(unit.to_be_bytes()),
            Value::Float(number) => body.extend(number.to_bits().to_be_bytes()),
            Value::Double(number) => body.extend(number.to_bits().to_be_bytes()),
            Value::Byte(number) => body.extend(number.to_be_bytes()),
            Value::Short(number) => body.extend(number.to_be_bytes()),
            Value::Int(number) => body.extend(number.to_be_bytes()),
            Value::Long(number) => body.extend(number.to_be_bytes()),
        }
    }

    /// A value of a field, or a zero of its width with `primfields=n`.
    fn field(&mut self, value: Value) {
        let keep = self.to.out.settings.primitives.fields;
        match value.basic_type().width() {
            Some(width) if !keep => self.to.body.extend(std::iter::repeat_n(0, width)),
            _ => self.value(value),
        }
    }
}

impl HeapVisitor for Walk<'_, '_> {
    fn root(&mut self, object: ObjectHandle, why: Root) {
        let tag = match why {
            Root::Unknown => HeapTag::RootUnknown,
            Root::JniGlobal => HeapTag::RootJniGlobal,
            Root::JniLocal { .. } => HeapTag::RootJniLocal,
            Root::JavaFrame { .. } => HeapTag::RootJavaFrame,
            Root::NativeStack { .. } => HeapTag::RootNativeStack,
            Root::StickyClass => HeapTag::RootStickyClass,
            Root::ThreadBlock { .. } => HeapTag::RootThreadBlock,
            Root::MonitorUsed => HeapTag::RootMonitorUsed,
            Root::ThreadObject { .. } => HeapTag::RootThreadObject,
        };
        self.to.tag(tag);
        self.id(object);
        match why {
            Root::JniGlobal => {
                self.to.next_reference();
            }
            Root::JniLocal { thread, depth } | Root::JavaFrame { thread, depth } => {
                self.to.thread(thread);
                self.to.u4(depth.unwrap_or(u32::MAX));
            }
            Root::NativeStack { thread } | Root::ThreadBlock { thread } => self.to.thread(thread),
            Root::ThreadObject { thread, trace } => {
                self.to.thread(thread);
                self.to.u4(trace_serial(trace).0);
            }
            Root::Unknown | Root::StickyClass | Root::MonitorUsed => {}
        }
    }

    fn instance(&mut self, record: &Instance<'_>) {
        self.to.tag(HeapTag::InstanceDump);
        self.id(record.object);
        self.to.u4(trace_serial(record.trace).0);
        self.id(record.class_object);
        let length_at = self.to.body.len();
        self.to.u4(0);
        for value in record.values {
            self.field(*value);
        }
        let length = (self.to.body.len() - length_at - 4) as u32;
        self.to.body[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn object_array(&mut self, record: &ObjectArray<'_>) {
        self.to.tag(HeapTag::ObjectArrayDump);
        self.id(record.object);
        self.to.u4(trace_serial(record.trace).0);
        self.to.u4(record.elements.len() as u32);
        self.id(record.class_object);
        for element in record.elements {
            self.id(*element);
        }
    }

    fn primitive_array(&mut self, record: &PrimitiveArray<'_>) {
        let keep = self.to.out.settings.primitives.arrays;
        self.to.tag(HeapTag::PrimitiveArrayDump);
        self.id(record.object);
        self.to.u4(trace_serial(record.trace).0);
        self.to.u4(if keep { record.len } else { 0 });
        self.to.body.push(record.element as u8);
        if !keep {
            return;
        }
        let width = record.element.width().unwrap_or(1);
        if width == 1 || cfg!(target_endian = "big") {
            self.to.body.extend_from_slice(record.bytes);
        } else {
            self.to.body.reserve(record.bytes.len());
            for element in record.bytes.chunks_exact(width) {
                self.to.body.extend(element.iter().rev());
            }
        }
    }

    fn class(&mut self, record: &ClassRecord<'_>) {
        // LOAD CLASS and names are written before the segment that needs them.
        self.to.out.passing_class(self.to.context, record.class);
        self.to.tag(HeapTag::ClassDump);
        self.id(record.object);
        self.to.u4(trace_serial(record.trace).0);
        for handle in [
            record.superclass,
            record.loader,
            record.signers,
            record.protection_domain,
        ] {
            self.id(handle);
        }
        self.to.raw_id(0);
        self.to.raw_id(0);
        self.to
            .u4(self.sizes.get(&record.class).copied().unwrap_or(0));
        self.to.u2(0);
        self.to.u2(record.statics.len());
        for (field, value) in record.statics {
            self.to.name(&field.name);
            self.to.body.push(value.basic_type() as u8);
            self.field(*value);
        }
        self.to.u2(record.fields.len());
        for field in record.fields {
            self.to.name(&field.name);
            let kind = vmpi::BasicType::from_descriptor(&field.descriptor);
            self.to
                .body
                .push(kind.unwrap_or(vmpi::BasicType::Object) as u8);
        }
    }
}
