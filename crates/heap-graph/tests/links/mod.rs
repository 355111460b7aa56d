//! A chain of objects, each with a reference to the next and a number.

use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};

/// A dump of so many; `number` gives that of each.
pub(crate) fn dump(links: u64, number: impl Fn(u64) -> i32) -> Vec<u8> {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let class = heap.class("Link", object, &[("next", Type::Object), ("n", Type::Int)]);
    let ids: Vec<u64> = (0..links)
        .map(|n| heap.instance(class, &[Value::Object(0), Value::Int(number(n))]))
        .collect();
    ids.windows(2)
        .for_each(|pair| heap.set_reference(pair[0], 0, pair[1]));
    heap.root(Root::JniGlobal { reference: 1 }, ids[0]);
    heap.bytes()
}
