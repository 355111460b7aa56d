//! Heap and object dumps of the reference VM.

use vmpi::dump::heap::{encode, encode_ids};
use vmpi::dump::{ClassDump, HeapRecord, IdLayout, IdRecord, RootKind, field_bytes};
use vmpi::{BasicType, CallTrace, DumpLevel, HeapDump, ObjectHandle, Value};

use crate::core::Core;
use crate::object::{ClassIdx, ObjIdx, Object, Shape};

impl Core<'_> {
    /// All objects that have not been freed, reachable or not, with roots and the stacks that contain them.
    pub(crate) fn heap_dump(&self, level: DumpLevel) -> HeapDump {
        let layout = IdLayout::NATIVE;
        let mut objects: Vec<_> = self.objects.iter().collect();
        objects.sort_by_key(|(_, object)| object.address);
        if level == DumpLevel::Ids {
            let record = |object: &Object| IdRecord {
                object: object.handle(),
                array: match object.shape {
                    Shape::Instance(_) => None,
                    Shape::Array(..) => Some(BasicType::Object),
                    Shape::Primitive(kind, _) => Some(kind),
                },
            };
            let records: Vec<_> = objects.iter().map(|(_, object)| record(object)).collect();
            return HeapDump {
                level,
                data: encode_ids(&records, layout),
                traces: Vec::new(),
            };
        }
        let mut data = Vec::new();
        let mut put = |record: &HeapRecord| encode(&mut data, record, level, layout);
        self.dump_roots(&mut put);
        for at in 0..self.classes.len() {
            let shape = Shape::Instance(ClassIdx(at as u32));
            put(&HeapRecord::Class(ClassDump {
                class: ClassIdx(at as u32).handle(),
                instance_size: crate::object::size_of(shape, &self.classes) as u32,
                ..ClassDump::default()
            }));
        }
        for (at, _) in objects {
            put(&self.record(at, level, layout));
        }
        let threads = self.threads.iter().filter(|thread| !thread.ended);
        let traces = threads.map(|thread| CallTrace {
            env: thread.env,
            frames: thread.stack.iter().rev().copied().collect(),
        });
        HeapDump {
            level,
            traces: traces.collect(),
            data,
        }
    }

    fn dump_roots(&self, put: &mut dyn FnMut(&HeapRecord)) {
        let handle = |at: ObjIdx| self.objects.get(at).handle();
        for at in self.globals.iter().flatten() {
            let object = handle(*at);
            put(&HeapRecord::Root {
                object,
                why: RootKind::Unknown,
            });
        }
        for thread in self.threads.iter().filter(|thread| !thread.ended) {
            let frame = if thread.stack.is_empty() { -1 } else { 0 };
            for at in thread.variables.iter().flatten() {
                let object = handle(*at);
                let why = RootKind::JavaFrame(thread.env, frame);
                put(&HeapRecord::Root { object, why });
            }
            if let Some(at) = thread.object {
                let object = handle(at);
                let why = RootKind::ThreadBlock(thread.env);
                put(&HeapRecord::Root { object, why });
            }
        }
    }

    /// One object in the format of an object dump.
    pub(crate) fn object_dump(&self, at: ObjIdx) -> Vec<u8> {
        let mut data = Vec::new();
        let layout = IdLayout::NATIVE;
        let record = self.record(at, DumpLevel::Values, layout);
        encode(&mut data, &record, DumpLevel::Values, layout);
        data
    }

    fn record(&self, at: ObjIdx, level: DumpLevel, layout: IdLayout) -> HeapRecord {
        let object = self.objects.get(at);
        let handle = |slot: &Option<ObjIdx>| match slot {
            Some(to) => self.objects.get(*to).handle(),
            None => ObjectHandle::NULL,
        };
        match object.shape {
            Shape::Instance(class) => {
                let bytes = self.classes[class.0 as usize].data as usize;
                let slots = object.slots.iter().map(|slot| Value::Object(handle(slot)));
                let data = std::iter::repeat_n(Value::Byte(0), bytes);
                let values: Vec<_> = slots.chain(data).collect();
                HeapRecord::Instance {
                    object: object.handle(),
                    class: class.handle(),
                    fields: field_bytes(&values, level != DumpLevel::Values, layout),
                }
            }
            Shape::Array(class, _) => HeapRecord::ObjectArray {
                object: object.handle(),
                element_class: class.handle(),
                elements: object.slots.iter().map(handle).collect(),
            },
            Shape::Primitive(element, len) => {
                let full = level == DumpLevel::Values;
                let bytes = if full {
                    len as usize * element.width().unwrap_or(8)
                } else {
                    0
                };
                HeapRecord::PrimitiveArray {
                    object: object.handle(),
                    element,
                    len,
                    data: vec![0; bytes],
                }
            }
        }
    }
}
