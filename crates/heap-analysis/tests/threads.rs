//! What threads retain, and what their local variables share.

use crate::program::open;
use heap_analysis::tables::roots::{RootOptions, roots};
use heap_analysis::tables::thread_locals::thread_locals;
use heap_analysis::tables::threads::{ThreadOptions, threads};
use heap_graph::{Control, ObjIdx};
use hprof::{HeapTag, ObjectId};
use testkit::dump::{Elements, FrameSpec, Heap as Builder, IdSize, Root, Type, Value};

#[test]
fn what_several_threads_keep_is_retained_by_none_and_shared_by_each() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let class = b.class("a/Main", object, &[]);
    let frame = FrameSpec {
        class,
        method: "run",
        source: "Main.java",
        line: 1,
    };
    let shared = b.primitive_array(Elements::Byte(vec![0; 5000]));
    let mut own = Vec::new();
    for name in ["one", "two"] {
        let (thread, id) = b.thread(name, &[frame]);
        let local = b.primitive_array(Elements::Byte(vec![0; 1000]));
        for held in [local, shared, id] {
            b.root(Root::JavaFrame { thread, frame: 0 }, held);
        }
        own.push(local);
    }
    let heap = open(&b);
    let found = threads(&heap, &ThreadOptions::default());
    assert_eq!(found.threads.len(), 2, "{found:#?}");
    let at = |id: u64| -> ObjIdx { heap.find(ObjectId(id)).expect("an object") };
    for thread in &found.threads {
        assert_eq!(thread.locals_retained, heap.retained(at(own[0])));
        assert_eq!(thread.shared_retained, heap.retained(at(shared)));
        assert!(thread.retained.0 >= thread.shallow.0 + thread.locals_retained.0);
        assert!(thread.retained < thread.shared_retained);
    }

    // Each thread is a local variable of its own frame, and retains its other one: that counts once.
    let options = RootOptions {
        kind: Some(HeapTag::RootJavaFrame),
        top: usize::MAX,
    };
    let of_frames = roots(&heap, &options, &Control::quiet()).expect("an answer");
    let kind = &of_frames.kinds[0];
    let of_threads: u64 = found.threads.iter().map(|t| t.retained.0).sum();
    let of_shared = heap.retained(at(shared)).0;
    assert_eq!((kind.records, kind.objects), (6, 5));
    assert_eq!(kind.retained.0, of_threads + of_shared);
    let of_arrays = own.iter().map(|id| heap.retained(at(*id)).0).sum::<u64>() + of_shared;
    let arrays = kind.classes.iter().find(|c| c.class == "byte[]");
    assert_eq!(arrays.expect("a row").retained.0, of_arrays);
}

#[test]
fn a_limit_bounds_the_groups_of_virtual_threads() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let main = b.class("a/Main", object, &[]);
    let class = b.class("java.lang.VirtualThread", object, &[]);
    for line in 1..=9 {
        let frame = FrameSpec {
            class: main,
            method: "run",
            source: "Main.java",
            line,
        };
        let (trace, _) = b.thread("carrier", &[frame]);
        for n in 0..line as u32 {
            let thread = b.instance(class, &[]);
            let thread_serial = trace * 100 + n;
            b.root(
                Root::ThreadObject {
                    thread: thread_serial,
                    trace,
                },
                thread,
            );
        }
    }
    let heap = open(&b);
    let all = threads(&heap, &ThreadOptions::default());
    assert_eq!(
        (all.virtual_groups.len(), all.virtual_groups_omitted),
        (9, 0)
    );
    let some = ThreadOptions {
        top: Some(2),
        ..ThreadOptions::default()
    };
    let some = threads(&heap, &some);
    assert_eq!(some.virtual_groups[..], all.virtual_groups[..2]);
    assert_eq!((some.virtual_threads, some.virtual_groups_omitted), (45, 7));
}

/// In a hostile dump all threads may have one map: it is read once, and counts for one thread.
#[test]
fn a_map_of_thread_locals_that_threads_share_is_read_once() {
    const MANY: usize = 10_000;
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let thread = b.class("Worker", object, &[("threadLocals", Type::Object)]);
    let map = b.class("Map", object, &[("table", Type::Object)]);
    let fields = [("referent", Type::Object), ("value", Type::Object)];
    let entry = b.class("Entry", object, &fields);
    let local = b.class("java.lang.ThreadLocal", object, &[]);
    let variable = b.instance(local, &[]);
    let holder = b.class("Holder", object, &[]);
    b.set_static(holder, "LOCAL", Value::Object(variable));
    let entries: Vec<u64> = (0..MANY)
        .map(|_| {
            let value = b.instance(object, &[]);
            b.instance(entry, &[variable, value].map(Value::Object))
        })
        .collect();
    let slots = b.object_array_class();
    let table = b.object_array(slots, &[&entries[..], &entries].concat());
    let map = b.instance(map, &[Value::Object(table)]);
    let threads: Vec<u64> = (0..MANY)
        .map(|_| b.instance(thread, &[Value::Object(map)]))
        .collect();
    for id in &threads {
        b.root(Root::JniGlobal { reference: 1 }, *id);
    }
    let heap = open(&b);
    let threads = threads.iter().filter_map(|id| heap.find(ObjectId(*id)));
    let found = thread_locals(&heap, threads);
    assert_eq!(found.len(), 1, "{found:#?}");
    let row = &found[0];
    assert_eq!(row.variable.as_deref(), Some("Holder.LOCAL"));
    assert_eq!((row.threads, row.variables), (1, 1));
    assert_eq!(row.retained.0, MANY as u64 * row.largest.retained.0);
}
