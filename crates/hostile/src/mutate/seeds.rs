//! Good dumps of a few kilobytes with one of everything that an analysis looks into: strings,
//! lists, maps, threads with stacks and locals, loaders, references, boxes, dates, properties.

use testkit::dump::{ClassSpec, Elements, FrameSpec, Heap, IdSize, Root, Type, Value, Version};

struct Made {
    heap: Heap,
    object: u64,
    array: u64,
}

impl Made {
    fn class(&mut self, name: &str, fields: &[(&str, Type)]) -> u64 {
        self.heap.class(name, self.object, fields)
    }

    fn one(&mut self, class: u64, values: &[Value]) -> u64 {
        self.heap.instance(class, values)
    }

    fn list(&mut self, class: u64, of: &[u64]) -> u64 {
        let mut slots = of.to_vec();
        slots.resize(of.len() + 3, 0);
        let data = self.heap.object_array(self.array, &slots);
        self.one(class, &[Value::Object(data), Value::Int(of.len() as i32)])
    }

    /// A map and its entries, all in one bucket or one in each.
    fn map(&mut self, name: &str, entries: &[(u64, u64)], chained: bool) -> u64 {
        use Type::{Int, Object};
        let node = self.class(
            &format!("{name}$Node"),
            &[
                ("hash", Int),
                ("key", Object),
                ("value", Object),
                ("next", Object),
            ],
        );
        let nodes = self.class(&format!("[L{name}$Node;"), &[]);
        let map = self.class(name, &[("table", Object), ("size", Int)]);
        let mut table = vec![0; 8];
        for (n, (key, value)) in entries.iter().enumerate() {
            let bucket = if chained { 0 } else { n % 8 };
            let next = table[bucket];
            let values = [
                Value::Int(n as i32),
                Value::Object(*key),
                Value::Object(*value),
                Value::Object(next),
            ];
            table[bucket] = self.one(node, &values);
        }
        let table = self.heap.object_array(nodes, &table);
        let size = entries.len() as i32;
        self.one(map, &[Value::Object(table), Value::Int(size)])
    }
}

/// What the VM itself has: properties, dates, numbers, references, a picture.
fn platform(m: &mut Made) -> Vec<u64> {
    use Type::{Byte, Char, Int, Long, Object, Short};
    let (key, value) = (m.heap.string("java.version"), m.heap.string("17.0.1"));
    let properties = m.map(
        "java.util.concurrent.ConcurrentHashMap",
        &[(key, value)],
        false,
    );
    let class = m.class("java.util.Properties", &[("map", Object)]);
    let properties = m.one(class, &[Value::Object(properties)]);
    let system = m.class("java.lang.System", &[]);
    m.heap
        .set_static(system, "props", Value::Object(properties));
    m.heap.root(Root::StickyClass, system);

    let big = m.class("java.math.BigInteger", &[("signum", Int), ("mag", Object)]);
    let mag = m.heap.primitive_array(Elements::Int(vec![1, 2, -3]));
    let big = m.one(big, &[Value::Int(1), Value::Object(mag)]);
    let decimal = [("intVal", Object), ("scale", Int), ("intCompact", Long)];
    let decimal = m.class("java.math.BigDecimal", &decimal);
    let values = [Value::Object(big), Value::Int(2), Value::Long(i64::MIN)];
    let decimal = m.one(decimal, &values);
    let date = [("year", Int), ("month", Short), ("day", Short)];
    let date = m.class("java.time.LocalDate", &date);
    let date = m.one(date, &[Value::Int(2026), Value::Short(2), Value::Short(30)]);
    let time = [
        ("hour", Byte),
        ("minute", Byte),
        ("second", Byte),
        ("nano", Int),
    ];
    let time = m.class("java.time.LocalTime", &time);
    let hour = [
        Value::Byte(25),
        Value::Byte(1),
        Value::Byte(2),
        Value::Int(9),
    ];
    let time = m.one(time, &hour);
    let both = m.class(
        "java.time.LocalDateTime",
        &[("date", Object), ("time", Object)],
    );
    let both = m.one(both, &[Value::Object(date), Value::Object(time)]);
    let integer = m.class("java.lang.Integer", &[("value", Int)]);
    let integer = m.one(integer, &[Value::Int(7)]);
    let reference = [("referent", Object), ("queue", Object), ("next", Object)];
    let reference = m.class("java.lang.ref.Reference", &reference);
    let weak = m.heap.class("java.lang.ref.WeakReference", reference, &[]);
    let weak = m.one(
        weak,
        &[Value::Object(both), Value::Object(0), Value::Object(0)],
    );
    let builder = m.class(
        "java.lang.StringBuilder",
        &[("value", Object), ("count", Int)],
    );
    let chars = m.heap.primitive_array(Elements::Char(vec![65, 0xd800, 66]));
    let builder = m.one(builder, &[Value::Object(chars), Value::Int(3)]);
    let bitmap = [("mWidth", Int), ("mHeight", Int), ("mBuffer", Object)];
    let bitmap = m.class("android.graphics.Bitmap", &bitmap);
    let pixels = m.heap.primitive_array(Elements::zeros(Byte, 64));
    let values = [Value::Int(4), Value::Int(4), Value::Object(pixels)];
    let bitmap = m.one(bitmap, &values);
    let direct = m.class(
        "java.nio.DirectByteBuffer",
        &[("capacity", Int), ("att", Object)],
    );
    let direct = m.one(direct, &[Value::Int(4096), Value::Object(0)]);
    let boxed = m.class("java.lang.Character", &[("value", Char)]);
    let boxed = m.one(boxed, &[Value::Char(0xd800)]);
    vec![decimal, both, integer, weak, builder, bitmap, direct, boxed]
}

/// What a program has: a loader with classes, nodes, lists, maps, equal strings.
fn program(m: &mut Made) -> (u64, u64) {
    use Type::{Boolean, Int, Long, Object};
    let loader = m.class("shop.Loader", &[("parent", Object), ("name", Object)]);
    let name = m.heap.string("shop");
    let loader = m.one(loader, &[Value::Object(0), Value::Object(name)]);
    let spec = |name, super_class, fields| ClassSpec {
        name,
        super_class,
        loader,
        fields,
        ..ClassSpec::default()
    };
    let base = vec![("next", Object), ("weight", Long)];
    let base = m.heap.class_spec(spec("shop.Node", m.object, base));
    let leaf = vec![("payload", Object), ("used", Boolean), ("count", Int)];
    let leaf = m.heap.class_spec(spec("shop.Leaf", base, leaf));
    let list = m.class(
        "java.util.ArrayList",
        &[("elementData", Object), ("size", Int)],
    );
    let mut last = 0;
    let mut made = Vec::new();
    for i in 0..12 {
        let payload = match i % 4 {
            0 => m.heap.string(&format!("token {}", i % 3)),
            1 => m.heap.object_array(m.array, &[last, 0, leaf]),
            2 => m.list(list, &made),
            _ => m
                .heap
                .primitive_array(Elements::zeros(Type::PRIMITIVES[i % 8], i)),
        };
        let own = [
            Value::Object(payload),
            Value::Boolean(i % 2 == 0),
            Value::Int(i as i32),
        ];
        last = m.one(
            leaf,
            &[&own[..], &[Value::Object(last), Value::Long(-1)]].concat(),
        );
        made.push(last);
    }
    let (key, secret) = (m.heap.string("password"), m.heap.string("hunter2hunter2"));
    let map = m.map("java.util.HashMap", &[(key, secret), (last, made[0])], true);
    m.heap.set_static(base, "head", Value::Object(last));
    m.heap.set_static(leaf, "cache", Value::Object(map));
    m.heap.set_static(leaf, "limit", Value::Double(1.5));
    for class in [base, leaf] {
        m.heap.root(Root::StickyClass, class);
    }
    (leaf, last)
}

fn seed(id_size: IdSize, version: Version, segments: usize, android: bool) -> Vec<u8> {
    let mut heap = Heap::new(id_size).version(version).segments_of(segments);
    if android {
        heap.android_heap(65, "app");
    }
    let (object, array) = (heap.java_lang_object(), heap.object_array_class());
    let mut m = Made {
        heap,
        object,
        array,
    };
    let class = m.class("java.lang.Class", &[("name", Type::Object)]);
    m.heap.root(Root::StickyClass, class);
    let (leaf, last) = program(&mut m);
    let some = platform(&mut m);
    if android {
        m.heap.android_heap(90, "zygote");
    }
    let all = m.heap.object_array(m.array, &some);
    let frame = FrameSpec {
        class: leaf,
        method: "run",
        source: "Leaf.java",
        line: 7,
    };
    m.heap.allocated_at(1);
    let (thread, _) = m.heap.thread("main", &[frame, frame]);
    let local = m.heap.primitive_array(Elements::zeros(Type::Byte, 100));
    m.heap.root(Root::JavaFrame { thread, frame: 0 }, local);
    m.heap.root(Root::JniLocal { thread, frame: 1 }, all);
    m.heap.root(Root::JniGlobal { reference: 0x99 }, last);
    m.heap.root(Root::MonitorUsed, last);
    m.heap.root(Root::NativeStack { thread }, leaf);
    if android {
        m.heap.root(Root::InternedString, local);
    }
    m.heap.bytes()
}

/// The good dumps that mutants are made of.
pub fn seeds() -> Vec<Vec<u8>> {
    let whole = usize::MAX;
    vec![
        seed(IdSize::Eight, Version::V102, whole, false),
        seed(IdSize::Four, Version::V102, 700, false),
        seed(IdSize::Eight, Version::V101, whole, false),
        seed(IdSize::Four, Version::V103, 900, true),
    ]
}
