//! Class loaders of a dump.

use crate::program::open;
use heap_analysis::tables::loaders::loaders;
use testkit::dump::{ClassSpec, Heap as Builder, IdSize, Root};

#[test]
fn a_limit_bounds_the_loaders_and_states_how_many_are_left_out() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let class = b.class("app.Loader", object, &[]);
    let mut ids = Vec::new();
    for n in 0..30 {
        let loader = b.instance(class, &[]);
        b.root(Root::JniGlobal { reference: 1 }, loader);
        let defined = b.class_spec(ClassSpec {
            name: "app.Same",
            super_class: object,
            loader,
            ..ClassSpec::default()
        });
        for _ in 0..=n {
            let instance = b.instance(defined, &[]);
            b.root(Root::JniGlobal { reference: 1 }, instance);
        }
        ids.push(loader);
    }
    let heap = open(&b);
    let all = loaders(&heap, None).expect("an answer");
    assert_eq!((all.loaders.len(), all.omitted_loaders), (31, 0));
    let of_last = all.loaders.iter().find(|l| l.object.0.0 == ids[29]);
    assert_eq!(of_last.expect("a row").objects, 31);
    let some = loaders(&heap, Some(4)).expect("an answer");
    assert_eq!(some.loaders[..], all.loaders[..4]);
    assert_eq!(some.omitted_loaders, 27);
}
