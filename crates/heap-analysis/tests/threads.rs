//! What threads retain, and what their local variables share.

use heap_analysis::tables::threads::{ThreadOptions, threads};
use heap_graph::{Control, Heap, ObjIdx, Options};
use hprof::ObjectId;
use testkit::dump::{Elements, FrameSpec, Heap as Builder, IdSize, Root};

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
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), b.bytes()).expect("a dump");
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a heap");
    let found = threads(&heap, &ThreadOptions::default());
    assert_eq!(found.threads.len(), 2, "{found:#?}");
    let at = |id: u64| -> ObjIdx { heap.find(ObjectId(id)).expect("an object") };
    for thread in &found.threads {
        assert_eq!(thread.locals_retained, heap.retained(at(own[0])));
        assert_eq!(thread.shared_retained, heap.retained(at(shared)));
        assert!(thread.retained.0 >= thread.shallow.0 + thread.locals_retained.0);
        assert!(thread.retained < thread.shared_retained);
    }
}
