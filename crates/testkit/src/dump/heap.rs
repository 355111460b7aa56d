//! A heap by names: classes, objects, threads and roots in, a dump laid out as HotSpot does it out.
//!
//! ```
//! use testkit::dump::{Heap, IdSize, Root, Type, Value};
//!
//! let mut heap = Heap::new(IdSize::Eight);
//! let node = heap.class("Node", 0, &[("next", Type::Object), ("n", Type::Int)]);
//! let last = heap.instance(node, &[Value::Object(0), Value::Int(2)]);
//! let first = heap.instance(node, &[Value::Object(last), Value::Int(1)]);
//! heap.root(Root::StickyClass, node);
//! heap.set_static(node, "head", Value::Object(first));
//! assert!(heap.bytes().starts_with(b"JAVA PROFILE 1.0.2\0"));
//! ```

use std::collections::HashMap;

use super::bytes::{IdSize, Type, Value};
use super::records::{Dump, Frame, Version};
use super::segment::{ClassDump, Elements, Root, Segment};
use crate::graph::{Graph, PlainGraph};

/// How far apart the VM being imitated puts its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// Object header bytes.
    pub header: u64,
    /// Array header bytes, length included.
    pub array_header: u64,
    /// Bytes of a reference in memory (not in the file).
    pub reference: u64,
    /// Object alignment.
    pub align: u64,
}

impl Spacing {
    /// 64-bit HotSpot with compressed oops.
    pub const COMPRESSED: Spacing = Spacing {
        header: 12,
        array_header: 16,
        reference: 4,
        align: 8,
    };
    /// 64-bit HotSpot without compressed oops and class pointers.
    pub const WIDE: Spacing = Spacing {
        header: 16,
        array_header: 24,
        reference: 8,
        align: 8,
    };
    /// 64-bit HotSpot with compact object headers (JDK 24 and later).
    pub const COMPACT: Spacing = Spacing {
        header: 8,
        array_header: 12,
        reference: 4,
        align: 8,
    };
    /// 32-bit HotSpot.
    pub const NARROW: Spacing = Spacing {
        header: 8,
        array_header: 12,
        reference: 4,
        align: 8,
    };

    fn round(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.align) * self.align
    }
}

/// Everything that can be said about a class; the rest stays at its default.
#[derive(Clone, Debug, Default)]
pub struct ClassSpec<'a> {
    /// Name as it goes into the file.
    pub name: &'a str,
    /// Super class id.
    pub super_class: u64,
    /// Loader object id.
    pub loader: u64,
    /// Signers object id.
    pub signers: u64,
    /// Protection domain object id.
    pub protection_domain: u64,
    /// Constant pool entries.
    pub constants: Vec<(u16, Value)>,
    /// Static fields.
    pub statics: Vec<(&'a str, Value)>,
    /// Instance fields of this class alone.
    pub fields: Vec<(&'a str, Type)>,
}

/// One frame of a thread's stack, innermost first.
#[derive(Clone, Copy, Debug)]
pub struct FrameSpec<'a> {
    /// Class id of the method.
    pub class: u64,
    /// Method name.
    pub method: &'a str,
    /// Source file.
    pub source: &'a str,
    /// Line number, or the format's 0, -1, -2, -3.
    pub line: i32,
}

#[derive(Clone, Debug)]
enum Body {
    Instance { class: u64, values: Vec<Value> },
    Array { class: u64, elements: Vec<u64> },
    Primitive(Elements),
}

#[derive(Clone, Debug)]
struct Object {
    id: u64,
    trace: u32,
    heap: Option<(u32, u64)>,
    body: Body,
}

/// A heap under construction. See the module's example.
#[derive(Clone, Debug)]
pub struct Heap {
    id_size: IdSize,
    version: Version,
    spacing: Spacing,
    segment_bytes: usize,
    next_address: u64,
    strings: Vec<String>,
    string_ids: HashMap<String, u64>,
    classes: Vec<(ClassDump, u64)>,
    class_at: HashMap<u64, usize>,
    objects: Vec<Object>,
    object_at: HashMap<u64, usize>,
    roots: Vec<(Root, u64)>,
    frames: Vec<Frame>,
    traces: Vec<(u32, Vec<u64>)>,
    current_heap: Option<(u32, u64)>,
    current_trace: u32,
    known: HashMap<&'static str, u64>,
}

impl Heap {
    /// An empty heap, 1.0.2, with compressed-oops spacing.
    pub fn new(id_size: IdSize) -> Self {
        Heap {
            id_size,
            version: Version::V102,
            spacing: Spacing::COMPRESSED,
            segment_bytes: usize::MAX,
            next_address: match id_size {
                IdSize::Four => 0x1000_0000,
                IdSize::Eight => 0x6_c000_0000,
            },
            strings: Vec::new(),
            string_ids: HashMap::new(),
            classes: Vec::new(),
            class_at: HashMap::new(),
            objects: Vec::new(),
            object_at: HashMap::new(),
            roots: Vec::new(),
            frames: Vec::new(),
            traces: Vec::new(),
            current_heap: None,
            current_trace: 0,
            known: HashMap::new(),
        }
    }

    /// Chooses the version string; 1.0.1 also writes one HEAP DUMP instead of segments.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Chooses the distances between objects. Call it before the first object.
    pub fn spacing(mut self, spacing: Spacing) -> Self {
        assert!(self.objects.is_empty(), "spacing comes before the objects");
        self.spacing = spacing;
        self
    }

    /// Starts a new segment after this many bytes.
    pub fn segments_of(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// The id width.
    pub fn id_size(&self) -> IdSize {
        self.id_size
    }

    /// Leaves a hole in the address space before the next object.
    pub fn skip_addresses(&mut self, bytes: u64) {
        self.next_address += self.spacing.round(bytes);
    }

    /// Following objects carry this allocation trace serial.
    pub fn allocated_at(&mut self, trace: u32) {
        self.current_trace = trace;
    }

    /// Following objects belong to this Android heap.
    pub fn android_heap(&mut self, number: u32, name: &str) {
        let name = self.string_id(name);
        self.current_heap = Some((number, name));
    }

    /// The id of a string record, made on first use.
    pub fn string_id(&mut self, text: &str) -> u64 {
        if let Some(id) = self.string_ids.get(text) {
            return *id;
        }
        let id = 0x1000 + 8 * self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    /// A class with fields of its own; `super_class` 0 is none.
    pub fn class(&mut self, name: &str, super_class: u64, fields: &[(&str, Type)]) -> u64 {
        self.class_spec(ClassSpec {
            name,
            super_class,
            fields: fields.to_vec(),
            ..ClassSpec::default()
        })
    }

    /// A class with anything.
    pub fn class_spec(&mut self, spec: ClassSpec<'_>) -> u64 {
        let id = self.take(self.spacing.header + 96);
        let name = self.string_id(spec.name);
        let statics = spec
            .statics
            .iter()
            .map(|(n, v)| (self.string_id(n), *v))
            .collect();
        let fields = spec
            .fields
            .iter()
            .map(|(n, t)| (self.string_id(n), *t))
            .collect();
        self.class_at.insert(id, self.classes.len());
        self.classes.push((
            ClassDump {
                id,
                trace: self.current_trace,
                super_class: spec.super_class,
                loader: spec.loader,
                signers: spec.signers,
                protection_domain: spec.protection_domain,
                instance_size: 0,
                constants: spec.constants,
                statics,
                fields,
            },
            name,
        ));
        let size = self.instance_bytes_in_memory(id);
        let last = self.classes.len() - 1;
        self.classes[last].0.instance_size = u32::try_from(size).expect("a small class");
        id
    }

    /// Sets a static field, adding it if the class has none of that name.
    pub fn set_static(&mut self, class: u64, name: &str, value: Value) {
        let name = self.string_id(name);
        let statics = &mut self.classes[self.class_at[&class]].0.statics;
        match statics.iter_mut().find(|(n, _)| *n == name) {
            Some(slot) => slot.1 = value,
            None => statics.push((name, value)),
        }
    }

    /// An object; `values` are the fields of the class, then of its super class, and so on.
    pub fn instance(&mut self, class: u64, values: &[Value]) -> u64 {
        let want: Vec<Type> = self.field_types(class);
        let have: Vec<Type> = values.iter().map(|v| v.ty()).collect();
        assert_eq!(have, want, "the values must follow the class's fields");
        let id = self.take(self.instance_bytes_in_memory(class));
        let values = values.to_vec();
        self.put(id, Body::Instance { class, values })
    }

    /// Changes a field of an object, found by name from its class upwards.
    pub fn set_field(&mut self, object: u64, field: &str, value: Value) {
        let name = self.string_id(field);
        let at = self.object_at[&object];
        let Body::Instance { class, .. } = self.objects[at].body else {
            panic!("{object:#x} is not an instance");
        };
        let slot = self
            .class_chain(class)
            .flat_map(|c| c.fields.iter())
            .position(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("no field {field}"));
        if let Body::Instance { values, .. } = &mut self.objects[at].body {
            assert_eq!(values[slot].ty(), value.ty(), "type of {field}");
            values[slot] = value;
        }
    }

    /// An array of references.
    pub fn object_array(&mut self, class: u64, elements: &[u64]) -> u64 {
        let bytes = self.spacing.array_header + self.spacing.reference * elements.len() as u64;
        let id = self.take(bytes);
        let elements = elements.to_vec();
        self.put(id, Body::Array { class, elements })
    }

    /// Changes the `index`-th value of an object or element of an array of references.
    pub fn set_reference(&mut self, object: u64, index: usize, target: u64) {
        match &mut self.objects[self.object_at[&object]].body {
            Body::Array { elements, .. } => elements[index] = target,
            Body::Instance { values, .. } => values[index] = Value::Object(target),
            Body::Primitive(_) => panic!("{object:#x} holds no references"),
        }
    }

    /// An array of primitives.
    pub fn primitive_array(&mut self, elements: Elements) -> u64 {
        let bytes = elements.ty().size(0) * elements.len();
        let id = self.take(self.spacing.array_header + bytes as u64);
        self.put(id, Body::Primitive(elements))
    }

    /// `java.lang.Object`, made on first use.
    pub fn java_lang_object(&mut self) -> u64 {
        self.known_class("java.lang.Object", false, &[])
    }

    /// The class `java.lang.Object[]`, made on first use.
    pub fn object_array_class(&mut self) -> u64 {
        self.known_class("[Ljava/lang/Object;", true, &[])
    }

    /// A `java.lang.String` as JDK 9 and later keep it: a `byte[]` and its coder.
    pub fn string(&mut self, text: &str) -> u64 {
        let fields = [
            ("value", Type::Object),
            ("hash", Type::Int),
            ("coder", Type::Byte),
        ];
        let class = self.known_class("java.lang.String", true, &fields);
        let latin = text.chars().all(|c| (c as u32) < 256);
        let bytes = if latin {
            text.chars().map(|c| c as u32 as u8).collect()
        } else {
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        let value = self.primitive_array(Elements::Byte(bytes));
        let coder = Value::Byte(i8::from(!latin));
        self.instance(class, &[Value::Object(value), Value::Int(0), coder])
    }

    /// A root.
    pub fn root(&mut self, kind: Root, object: u64) {
        self.roots.push((kind, object));
    }

    /// A `java.lang.Thread` with its name, stack and root; returns its serial and object id.
    pub fn thread(&mut self, name: &str, stack: &[FrameSpec<'_>]) -> (u32, u64) {
        let fields = [("name", Type::Object), ("tid", Type::Long)];
        let class = self.known_class("java.lang.Thread", true, &fields);
        let name = self.string(name);
        let serial = self.traces.len() as u32 + 1;
        let values = [Value::Object(name), Value::Long(i64::from(serial))];
        let object = self.instance(class, &values);
        let frames: Vec<u64> = stack.iter().map(|f| self.frame(f)).collect();
        self.traces.push((serial, frames));
        let trace = serial;
        self.root(
            Root::ThreadObject {
                thread: serial,
                trace,
            },
            object,
        );
        (serial, object)
    }

    fn frame(&mut self, f: &FrameSpec<'_>) -> u64 {
        let id = 0x100 + self.frames.len() as u64;
        let class_serial = self.class_at[&f.class] as u32 + 1;
        let frame = Frame {
            id,
            method: self.string_id(f.method),
            signature: self.string_id("()V"),
            source: self.string_id(f.source),
            class_serial,
            line: f.line,
        };
        self.frames.push(frame);
        id
    }

    fn known_class(&mut self, name: &'static str, sub: bool, fields: &[(&str, Type)]) -> u64 {
        if let Some(id) = self.known.get(name) {
            return *id;
        }
        let super_class = if sub { self.java_lang_object() } else { 0 };
        let id = self.class(name, super_class, fields);
        self.known.insert(name, id);
        id
    }

    fn class_chain(&self, class: u64) -> impl Iterator<Item = &ClassDump> {
        let find = |id: u64| self.class_at.get(&id).map(|at| &self.classes[*at].0);
        std::iter::successors(find(class), move |c| find(c.super_class)).take(self.classes.len())
    }

    fn field_types(&self, class: u64) -> Vec<Type> {
        let fields = self.class_chain(class).flat_map(|c| c.fields.iter());
        fields.map(|(_, t)| *t).collect()
    }

    fn instance_bytes_in_memory(&self, class: u64) -> u64 {
        let reference = self.spacing.reference as usize;
        let fields: usize = self
            .field_types(class)
            .iter()
            .map(|t| t.size(reference))
            .sum();
        self.spacing.round(self.spacing.header + fields as u64)
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let id = self.next_address;
        self.next_address += self.spacing.round(bytes);
        id
    }

    fn put(&mut self, id: u64, body: Body) -> u64 {
        self.object_at.insert(id, self.objects.len());
        self.objects.push(Object {
            id,
            trace: self.current_trace,
            heap: self.current_heap,
            body,
        });
        id
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut d = Dump::new(self.version, self.id_size);
        for (i, text) in self.strings.iter().enumerate() {
            d.utf8(0x1000 + 8 * i as u64, text.as_bytes());
        }
        for (i, (class, name)) in self.classes.iter().enumerate() {
            d.load_class(i as u32 + 1, class.id, 0, *name);
        }
        for f in &self.frames {
            d.frame(*f);
        }
        for (serial, frames) in &self.traces {
            d.trace(*serial, *serial, frames);
        }
        self.write_heap(&mut d);
        d.into_bytes()
    }

    fn write_heap(&self, d: &mut Dump) {
        let whole = self.version == Version::V101;
        let mut s = Segment::new(self.id_size);
        for (class, _) in &self.classes {
            s.class_dump(class);
            self.cut(d, &mut s);
        }
        let mut heap = None;
        for o in &self.objects {
            if o.heap != heap {
                heap = o.heap;
                let (number, name) = heap.expect("a heap is never unset");
                s.heap_info(number, name);
            }
            match &o.body {
                Body::Instance { class, values } => s.instance_dump(o.id, o.trace, *class, values),
                Body::Array { class, elements } => s.object_array(o.id, o.trace, *class, elements),
                Body::Primitive(elements) => s.primitive_array(o.id, o.trace, elements),
            };
            self.cut(d, &mut s);
        }
        for (kind, object) in &self.roots {
            s.root(*kind, *object);
            self.cut(d, &mut s);
        }
        if whole {
            d.heap_dump(s);
        } else {
            if !s.is_empty() {
                d.segment(s);
            }
            d.heap_end();
        }
    }

    fn cut(&self, d: &mut Dump, s: &mut Segment) {
        if self.version != Version::V101 && s.len() >= self.segment_bytes {
            d.segment(std::mem::replace(s, Segment::new(self.id_size)));
        }
    }

    /// The heap as a graph in the plain model of `reference_hprof.py`: classes are nodes too, sizes
    /// are field bytes, and an edge to nothing is left out.
    pub fn plain_graph(&self) -> PlainGraph {
        let class_ids = self.classes.iter().map(|(c, _)| c.id);
        let mut ids: Vec<u64> = class_ids.chain(self.objects.iter().map(|o| o.id)).collect();
        ids.sort_unstable();
        let at: HashMap<u64, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut g = Graph::new(ids.len());
        let width = self.id_size.bytes();
        let edge = |g: &mut Graph, from: u64, to: u64| {
            if let Some(to) = at.get(&to) {
                g.edges[at[&from]].push(*to);
            }
        };
        for (c, _) in &self.classes {
            for to in [c.super_class, c.loader, c.signers, c.protection_domain] {
                edge(&mut g, c.id, to);
            }
            let statics = c.statics.iter().map(|(_, v)| *v);
            for v in statics.clone().chain(c.constants.iter().map(|(_, v)| *v)) {
                if let Value::Object(to) = v {
                    edge(&mut g, c.id, to);
                }
            }
            g.sizes[at[&c.id]] = statics.map(|v| v.ty().size(width) as u64).sum();
        }
        for o in &self.objects {
            let bytes = match &o.body {
                Body::Instance { class, values } => {
                    edge(&mut g, o.id, *class);
                    for v in values {
                        if let Value::Object(to) = v {
                            edge(&mut g, o.id, *to);
                        }
                    }
                    values.iter().map(|v| v.ty().size(width)).sum()
                }
                Body::Array { class, elements } => {
                    edge(&mut g, o.id, *class);
                    elements.iter().for_each(|to| edge(&mut g, o.id, *to));
                    elements.len() * width
                }
                Body::Primitive(elements) => elements.len() * elements.ty().size(width),
            };
            g.sizes[at[&o.id]] = bytes as u64;
        }
        for (kind, object) in &self.roots {
            if let (Some(i), true) = (at.get(object), *kind != Root::Unreachable) {
                g.roots.push(*i);
            }
        }
        PlainGraph { graph: g, ids }
    }
}
