//! Whole dumps of a shape that a simple algorithm does not survive: deep, wide, or made for the
//! hash of a table.

use testkit::dump::{ClassDump, Dump, Elements, IdSize, Root, Segment, Type, Value, Version};

/// A shape by name, made with ids of a width.
pub type Shaped = (&'static str, fn(IdSize) -> Vec<u8>);

/// Every shape in its largest form.
pub const LARGEST: &[Shaped] = &[
    ("superclasses", |ids| superclasses(ids, 60_000, 0)),
    ("superclasses with fields", |ids| {
        superclasses(ids, 60_000, 1)
    }),
    ("superclasses backwards", |ids| superclasses(ids, 60_000, 2)),
    ("wide-superclass", |ids| {
        wide_superclass(ids, 65_535, 20_000)
    }),
    ("list", |ids| list(ids, 300_000, false)),
    ("ring", |ids| list(ids, 300_000, true)),
    ("star", |ids| star(ids, 100_000, 3)),
    ("ids-in-one-bucket", |ids| one_bucket(ids, 60_000)),
    ("nested arrays", |ids| nested(ids, 20_000, 0)),
    ("nested wrappers", |ids| nested(ids, 20_000, 1)),
    ("nested numbers", |ids| nested(ids, 20_000, 2)),
    ("nested thread-locals", |ids| nested(ids, 20_000, 3)),
    ("heap-infos", |ids| heap_infos(ids, 200_000)),
];

const STRINGS: u64 = 0x10;
const OBJECT: u64 = 0x100;

struct Shape {
    dump: Dump,
    heap: Segment,
    names: u64,
    classes: u32,
}

impl Shape {
    fn new(id_size: IdSize) -> Shape {
        let mut shape = Shape {
            dump: Dump::new(Version::V102, id_size),
            heap: Segment::new(id_size),
            names: STRINGS,
            classes: 0,
        };
        shape.class(OBJECT, "java/lang/Object", 0, &[]);
        shape
    }

    fn name(&mut self, text: &str) -> u64 {
        self.names += 1;
        self.dump.utf8(self.names, text.as_bytes());
        self.names
    }

    fn class(&mut self, id: u64, name: &str, super_class: u64, fields: &[(u64, Type)]) {
        let name = self.name(name);
        self.classes += 1;
        self.dump.load_class(self.classes, id, 0, name);
        self.heap.class_dump(&ClassDump {
            id,
            super_class,
            instance_size: 16,
            fields: fields.to_vec(),
            ..ClassDump::default()
        });
    }

    fn end(mut self) -> Vec<u8> {
        self.dump.segment(self.heap).heap_end();
        self.dump.into_bytes()
    }
}

/// Each class extends the one before it; `how` says from where the chain hangs, what the classes
/// have, and in which order they lie in the file.
pub(super) fn superclasses(id_size: IdSize, classes: usize, how: usize) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let field = s.name("f");
    let id = |n: usize| 0x1000 + 16 * n as u64;
    let fields: &[(u64, Type)] = if how == 1 {
        &[(field, Type::Byte)]
    } else {
        &[]
    };
    for n in 0..classes {
        let n = if how == 2 { classes - 1 - n } else { n };
        let above = if n == 0 { OBJECT } else { id(n - 1) };
        s.class(id(n), &format!("p/C{n}"), above, fields);
    }
    let last = id(classes - 1);
    let bytes = if how == 1 { classes } else { 0 };
    let first = id(classes);
    for n in 0..3 {
        s.heap
            .instance_bytes(first + 32 * n, 0, last, &vec![1; bytes]);
        s.heap.root(Root::StickyClass, first + 32 * n);
    }
    s.end()
}

/// A class with many reference fields, and many classes that inherit them.
pub(super) fn wide_superclass(id_size: IdSize, fields: usize, classes: usize) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let field = s.name("f");
    let wide = 0x1000;
    s.class(wide, "p/Wide", OBJECT, &vec![(field, Type::Object); fields]);
    for n in 1..=classes {
        s.class(wide + 16 * n as u64, &format!("p/C{n}"), wide, &[]);
    }
    s.heap.root(Root::StickyClass, wide);
    s.end()
}

/// Objects in one list, the first a root, or the last one's next too.
pub(super) fn list(id_size: IdSize, objects: usize, ring: bool) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let field = s.name("next");
    let (class, id) = (0x1000, |n: usize| 0x2000 + 16 * n as u64);
    s.class(class, "p/Node", OBJECT, &[(field, Type::Object)]);
    for n in 0..objects {
        let last = if ring { id(0) } else { 0 };
        let next = if n + 1 < objects { id(n + 1) } else { last };
        s.heap
            .instance_dump(id(n), 0, class, &[Value::Object(next)]);
    }
    s.heap.root(Root::StickyClass, id(0));
    s.end()
}

/// One array of everything; `back` references from each to it.
pub(super) fn star(id_size: IdSize, objects: usize, back: usize) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let field = s.name("to");
    let (class, arrays, center) = (0x1000, 0x1010, 0x1020);
    let id = |n: usize| 0x2000 + 32 * n as u64;
    s.class(class, "p/Node", OBJECT, &vec![(field, Type::Object); back]);
    s.class(arrays, "[Ljava/lang/Object;", OBJECT, &[]);
    let all: Vec<u64> = (0..objects).map(id).collect();
    s.heap.object_array(center, 0, arrays, &all);
    for of in &all {
        let values = vec![Value::Object(center); back];
        s.heap.instance_dump(*of, 0, class, &values);
    }
    s.heap.root(Root::StickyClass, center);
    s.end()
}

/// Classes and objects whose ids differ in their upper bits only.
pub(super) fn one_bucket(id_size: IdSize, objects: usize) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let shift = if id_size == IdSize::Eight { 40 } else { 14 };
    let id = |n: usize| {
        ((n as u64 + 1) << shift)
            & if shift == 14 {
                u64::from(u32::MAX)
            } else {
                u64::MAX
            }
    };
    for n in 0..objects {
        if n % 2 == 0 {
            s.class(id(n), &format!("p/C{n}"), OBJECT, &[]);
        } else {
            s.heap.instance_dump(id(n), 0, id(n - 1), &[]);
            s.heap.root(Root::StickyClass, id(n));
        }
    }
    s.end()
}

/// Something in itself, often: arrays in arrays, wrappers of collections, loaders, numbers.
pub(super) fn nested(id_size: IdSize, depth: usize, how: usize) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let (name, field) = [
        ("[Ljava/lang/Object;", ""),
        ("java/util/Collections$SynchronizedCollection", "c"),
        ("java/math/BigDecimal", "intVal"),
        ("java/lang/ThreadLocal$SuppliedThreadLocal", "parent"),
    ][how % 4];
    let (class, id) = (0x1000, |n: usize| 0x2000 + 32 * n as u64);
    let fields: Vec<(u64, Type)> = match field {
        "" => Vec::new(),
        field => vec![(s.name(field), Type::Object)],
    };
    s.class(class, name, OBJECT, &fields);
    for n in 0..depth {
        let inner = id((n + 1) % depth);
        if fields.is_empty() {
            s.heap.object_array(id(n), 0, class, &[inner, inner]);
        } else {
            s.heap
                .instance_dump(id(n), 0, class, &[Value::Object(inner)]);
        }
    }
    let bytes = Elements::zeros(Type::Byte, 9);
    s.heap.primitive_array(id(depth), 0, &bytes);
    s.heap.root(Root::StickyClass, id(0));
    s.end()
}

/// Many heaps of an Android process, with one object each at the end.
pub(super) fn heap_infos(id_size: IdSize, infos: usize) -> Vec<u8> {
    let mut s = Shape::new(id_size);
    let name = s.name("app");
    for n in 0..infos {
        s.heap.heap_info(n as u32, name);
    }
    s.heap.instance_dump(0x2000, 0, OBJECT, &[]);
    s.heap.root(Root::StickyClass, 0x2000);
    s.end()
}
