//! A heap as tables.

use crate::program::open;
use heap_analysis::share::export::{Origin, Values, references};
use heap_graph::HeapError;
use testkit::dump::{Heap as Builder, IdSize, Root};

/// Rows of a piece, at most.
const PIECE: usize = 1 << 19;

#[test]
fn the_references_of_one_array_are_several_pieces() {
    const ELEMENTS: usize = PIECE + 1000;
    let mut b = Builder::new(IdSize::Four);
    let object = b.java_lang_object();
    let class = b.object_array_class();
    let target = b.instance(object, &[]);
    let array = b.object_array(class, &vec![target; ELEMENTS]);
    b.root(Root::JniGlobal { reference: 1 }, array);
    let heap = open(&b);
    let origin = Origin {
        service: String::new(),
        dump: "a".to_owned(),
    };
    let (mut sizes, mut of_array, mut last) = (Vec::new(), 0, String::new());
    references(&heap, &origin, false, |piece| {
        sizes.push(piece.rows());
        let column = |name| piece.columns.iter().find(|c| c.name == name);
        if let (Some(sources), Some(fields)) = (column("source"), column("field"))
            && let (Values::Number(sources), Values::Text(fields)) =
                (&sources.values, &fields.values)
        {
            let rows = sources.iter().zip(fields);
            for (_, field) in rows.filter(|(source, _)| **source == array as i64) {
                of_array += 1;
                last.clone_from(field);
            }
        }
        Ok::<(), HeapError>(())
    })
    .expect("pieces");
    assert!(sizes.iter().all(|s| *s > 0 && *s <= PIECE), "{sizes:?}");
    assert_eq!(of_array, ELEMENTS);
    assert_eq!(last, format!("[{}]", ELEMENTS - 1));
}
