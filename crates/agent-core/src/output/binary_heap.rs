//! The body of a binary heap dump, in segments that never hold a name's first use before the name.

use super::Context;
use super::binary::BinaryOutput;
use crate::ids::{thread_serial, trace_serial};
use hprof::{HeapTag, IdSize, RecordTag};
use rustc_hash::FxHashMap;
use vmpi::{
    BasicType, ClassId, ClassRecord, FieldInfo, HeapVisitor, Instance, ObjectArray, ObjectHandle,
    PrimitiveArray, Root, ThreadId, Value, Vm, VmError,
};

/// A segment is written when it is this long.
const SEGMENT: usize = 1 << 20;
/// A 1.0.1 dump is one record up to this length; a longer one falls back to segments, which every
/// reader of 1.0.1 in use understands.
const ONE_RECORD: usize = 128 << 20;

/// Walks the heap and writes it.
pub(super) fn walk(out: &mut BinaryOutput, context: &mut Context<'_>) -> Result<(), VmError> {
    let vm = context.vm;
    let limit = if out.one_record { ONE_RECORD } else { SEGMENT };
    let body = Vec::with_capacity(SEGMENT);
    // Some VMs answer no question while the walk goes on, so the sizes are summed up before it.
    let sizes = instance_sizes(vm, context, out.ids.size);
    let mut walk = Walk {
        out,
        context,
        body,
        limit,
        segments: 0,
        references: 0,
        sizes,
    };
    let result = vm.walk_heap(&mut walk);
    walk.finish();
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
        // A chain of superclasses is short; the bound ends one that a VM got wrong.
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
    out: &'a mut BinaryOutput,
    context: &'a mut Context<'c>,
    body: Vec<u8>,
    limit: usize,
    segments: u32,
    references: u64,
    sizes: FxHashMap<ClassId, u32>,
}

impl Walk<'_, '_> {
    fn tag(&mut self, tag: HeapTag) {
        if self.body.len() >= self.limit {
            self.write_segment(RecordTag::HeapDumpSegment);
            self.limit = SEGMENT;
        }
        self.body.push(tag as u8);
    }

    fn u2(&mut self, number: usize) {
        self.body
            .extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
    }

    fn u4(&mut self, number: u32) {
        self.body.extend(number.to_be_bytes());
    }

    fn raw_id(&mut self, id: u64) {
        match self.out.ids.size {
            IdSize::Four => self.body.extend((id as u32).to_be_bytes()),
            IdSize::Eight => self.body.extend(id.to_be_bytes()),
        }
    }

    fn id(&mut self, handle: ObjectHandle) {
        self.raw_id(self.out.ids.id(handle).0);
    }

    fn thread(&mut self, thread: ThreadId) {
        self.u4(thread_serial(thread).0);
    }

    fn name(&mut self, name: &str) {
        let id = self.out.name(self.context.vm, name);
        self.raw_id(id.0);
    }

    fn value(&mut self, value: Value) {
        match value {
            Value::Object(handle) => self.id(handle),
            Value::Boolean(on) => self.body.push(u8::from(on)),
            Value::Char(unit) => self.body.extend(unit.to_be_bytes()),
            Value::Float(number) => self.body.extend(number.to_bits().to_be_bytes()),
            Value::Double(number) => self.body.extend(number.to_bits().to_be_bytes()),
            Value::Byte(number) => self.body.extend(number.to_be_bytes()),
            Value::Short(number) => self.body.extend(number.to_be_bytes()),
            Value::Int(number) => self.body.extend(number.to_be_bytes()),
            Value::Long(number) => self.body.extend(number.to_be_bytes()),
        }
    }

    /// A value of a field, or a zero of its width with `primfields=n`.
    fn field(&mut self, value: Value) {
        let keep = self.out.settings.primitives.fields;
        match value.basic_type().width() {
            Some(width) if !keep => self.body.extend(std::iter::repeat_n(0, width)),
            _ => self.value(value),
        }
    }

    fn write_segment(&mut self, tag: RecordTag) {
        self.out.body(self.context.vm, tag, &self.body);
        self.body.clear();
        self.segments += 1;
    }

    fn finish(&mut self) {
        if self.segments == 0 && self.out.one_record {
            self.write_segment(RecordTag::HeapDump);
            return;
        }
        if !self.body.is_empty() {
            self.write_segment(RecordTag::HeapDumpSegment);
        }
        self.write_segment(RecordTag::HeapDumpEnd);
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
        self.tag(tag);
        self.id(object);
        match why {
            Root::JniGlobal => {
                self.references += 1;
                self.raw_id(self.references);
            }
            Root::JniLocal { thread, depth } | Root::JavaFrame { thread, depth } => {
                self.thread(thread);
                self.u4(depth.unwrap_or(u32::MAX));
            }
            Root::NativeStack { thread } | Root::ThreadBlock { thread } => self.thread(thread),
            Root::ThreadObject { thread, trace } => {
                self.thread(thread);
                self.u4(trace_serial(trace).0);
            }
            Root::Unknown | Root::StickyClass | Root::MonitorUsed => {}
        }
    }

    fn instance(&mut self, record: &Instance<'_>) {
        self.tag(HeapTag::InstanceDump);
        self.id(record.object);
        self.u4(trace_serial(record.trace).0);
        self.id(record.class_object);
        let length_at = self.body.len();
        self.u4(0);
        for value in record.values {
            self.field(*value);
        }
        let length = (self.body.len() - length_at - 4) as u32;
        self.body[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn object_array(&mut self, record: &ObjectArray<'_>) {
        self.tag(HeapTag::ObjectArrayDump);
        self.id(record.object);
        self.u4(trace_serial(record.trace).0);
        self.u4(record.elements.len() as u32);
        self.id(record.class_object);
        for element in record.elements {
            self.id(*element);
        }
    }

    fn primitive_array(&mut self, record: &PrimitiveArray<'_>) {
        let keep = self.out.settings.primitives.arrays;
        self.tag(HeapTag::PrimitiveArrayDump);
        self.id(record.object);
        self.u4(trace_serial(record.trace).0);
        self.u4(if keep { record.len } else { 0 });
        self.body.push(record.element as u8);
        if !keep {
            return;
        }
        let width = record.element.width().unwrap_or(1);
        if width == 1 || cfg!(target_endian = "big") {
            self.body.extend_from_slice(record.bytes);
        } else {
            self.body.reserve(record.bytes.len());
            for element in record.bytes.chunks_exact(width) {
                self.body.extend(element.iter().rev());
            }
        }
    }

    fn class(&mut self, record: &ClassRecord<'_>) {
        // LOAD CLASS and names go out before the segment that needs them.
        self.out.class(self.context, record.class);
        self.tag(HeapTag::ClassDump);
        self.id(record.object);
        self.u4(trace_serial(record.trace).0);
        for handle in [
            record.superclass,
            record.loader,
            record.signers,
            record.protection_domain,
        ] {
            self.id(handle);
        }
        self.raw_id(0);
        self.raw_id(0);
        self.u4(self.sizes.get(&record.class).copied().unwrap_or(0));
        self.u2(0);
        self.u2(record.statics.len());
        for (field, value) in record.statics {
            self.name(&field.name);
            self.body.push(value.basic_type() as u8);
            self.field(*value);
        }
        self.u2(record.fields.len());
        for field in record.fields {
            self.name(&field.name);
            let kind = vmpi::BasicType::from_descriptor(&field.descriptor);
            self.body
                .push(kind.unwrap_or(vmpi::BasicType::Object) as u8);
        }
    }
}
