//! A program of a known shape, for the tests of leak suspects and of what changes between dumps.

use heap_graph::{Control, Heap, Options};
use testkit::dump::{self, ClassSpec, Elements, IdSize, Root, Type, Value};

/// A program whose classes one loader holds in a list, as the application's loader does.
pub(crate) struct Program {
    pub(crate) heap: dump::Heap,
    object: u64,
    pub(crate) array: u64,
    classes: Vec<u64>,
}

impl Program {
    pub(crate) fn new() -> Program {
        let mut heap = dump::Heap::new(IdSize::Eight);
        let object = heap.java_lang_object();
        let array = heap.object_array_class();
        for class in [object, array] {
            heap.root(Root::StickyClass, class);
        }
        Program {
            heap,
            object,
            array,
            classes: Vec::new(),
        }
    }

    pub(crate) fn class(&mut self, name: &str, fields: &[&str]) -> u64 {
        let fields: Vec<_> = fields.iter().map(|f| (*f, Type::Object)).collect();
        let class = self.heap.class(name, self.object, &fields);
        self.heap.root(Root::StickyClass, class);
        class
    }

    /// Objects of one class with an array each.
    pub(crate) fn items(&mut self, class: u64, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let data = self.heap.primitive_array(Elements::Long(vec![0; 10]));
                self.heap.instance(class, &[Value::Object(data)])
            })
            .collect()
    }

    /// A class with these statics, which the loader holds.
    pub(crate) fn owner(&mut self, name: &str, statics: &[(&str, u64)]) {
        let statics = statics.iter().map(|(n, o)| (*n, Value::Object(*o)));
        let class = self.heap.class_spec(ClassSpec {
            name,
            super_class: self.object,
            statics: statics.collect(),
            ..ClassSpec::default()
        });
        self.classes.push(class);
    }

    /// An array, as a list has it.
    pub(crate) fn list(&mut self, elements: &[u64]) -> u64 {
        self.heap.object_array(self.array, elements)
    }

    /// A balanced tree of entries with these keys and values, in a map.
    pub(crate) fn tree(&mut self, entries: &[(String, u64)]) -> u64 {
        let map = self.class("java.util.TreeMap", &["root"]);
        let entry = self.class(
            "java.util.TreeMap$Entry",
            &["key", "value", "left", "right"],
        );
        let nodes: Vec<u64> = entries
            .iter()
            .map(|(key, value)| {
                let key = self.heap.string(key);
                let values = [key, *value, 0, 0].map(Value::Object);
                self.heap.instance(entry, &values)
            })
            .collect();
        for (at, node) in nodes.iter().enumerate() {
            for (field, child) in [(2, 2 * at + 1), (3, 2 * at + 2)] {
                if let Some(child) = nodes.get(child) {
                    self.heap.set_reference(*node, field, *child);
                }
            }
        }
        self.heap.instance(map, &[Value::Object(nodes[0])])
    }

    pub(crate) fn open(mut self) -> Heap {
        let loader = self
            .heap
            .class("app.Loader", self.object, &[("classes", Type::Object)]);
        self.heap.root(Root::StickyClass, loader);
        let classes = self.list(&self.classes.clone());
        let loader = self.heap.instance(loader, &[Value::Object(classes)]);
        self.heap.root(Root::JniGlobal { reference: 1 }, loader);
        open(&self.heap)
    }
}

/// The heap of a dump, read without an index.
pub(crate) fn open(dump: &dump::Heap) -> Heap {
    open_with(dump, Options::default())
}

/// The same with other options.
pub(crate) fn open_with(dump: &dump::Heap, options: Options) -> Heap {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump.bytes()).expect("writing the dump");
    let options = Options {
        no_index: true,
        ..options
    };
    Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump")
}
