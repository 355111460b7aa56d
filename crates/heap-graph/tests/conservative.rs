//! Conservative local variables count only where no other root reaches an object.

use crate::dominators::lines;
use heap_graph::{Control, Heap, LayoutModel, Options};
use hprof::ObjectId;
use proptest::prelude::*;
use testkit::dump::{self, IdSize, Root};
use testkit::shapes::{Encoding, dump_of, graphs};

/// Serials of two threads and of one that the dump does not have.
const SERIALS: [u32; 3] = [901, 902, 903];

fn open(heap: &dump::Heap, layout: LayoutModel) -> Heap {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), heap.bytes()).unwrap();
    let options = Options {
        layout,
        no_index: true,
        ..Options::default()
    };
    Heap::open(file.path(), &options, &Control::quiet()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A dump with the mark is analyzed as one without it that leaves out what exact roots reach.
    #[test]
    fn they_count_where_nothing_else_reaches_the_object(
        graph in graphs(30),
        thread in any::<prop::sample::Index>(),
        locals in prop::collection::vec((any::<prop::sample::Index>(), 0..SERIALS.len()), 0..8),
        layout in prop_oneof![Just(LayoutModel::Plain), Just(LayoutModel::Measured), Just(LayoutModel::Mat)],
    ) {
        let mut made = dump_of(&graph, Encoding::Mixed, IdSize::Eight);
        // A thread whose only references are its local variables, and one with others.
        let object = made.heap.java_lang_object();
        let class = made.heap.class("Bare", object, &[]);
        made.heap.root(Root::StickyClass, class);
        let bare = made.heap.instance(class, &[]);
        let instance = thread.index(made.ids.len()) & !1;
        for (thread, serial) in [bare, made.ids[instance]].into_iter().zip(SERIALS) {
            made.heap.root(Root::ThreadObject { thread: serial, trace: 0 }, thread);
        }
        let exact = open(&made.heap, layout);
        let (mut marked, mut wanted) = (made.heap.clone(), made.heap);
        marked.string_id(hprof::CONSERVATIVE_LOCALS);
        for (local, serial) in locals {
            let object = made.ids[local.index(made.ids.len())];
            let root = Root::JavaFrame { thread: SERIALS[serial], frame: u32::MAX };
            marked.root(root, object);
            if !exact.is_reachable(exact.find(ObjectId(object)).unwrap()) {
                wanted.root(root, object);
            }
        }
        let (marked, wanted) = (open(&marked, layout), open(&wanted, layout));
        prop_assert_eq!(lines(&marked), lines(&wanted));
        prop_assert_eq!(format!("{:?}", marked.roots()), format!("{:?}", wanted.roots()));
        for (object, id) in marked.all_ids() {
            let of = |heap: &Heap| format!("{id:?} {:?}", heap.outbound(object).unwrap());
            prop_assert_eq!(of(&marked), of(&wanted));
        }
    }
}
