//! The JNI roots of a heap dump. Reading them takes one pass over the file.

use hprof::source::{Source, Unpack};
use hprof::{FileOffset, HeapTag, HeapVisitor, Root, map_file};
use live_analysis::references::Roots;
use requests::Fault;
use std::path::Path;

/// Roots of a dump, by their reference.
#[derive(Default)]
struct Found(Roots);

impl HeapVisitor for Found {
    fn root(&mut self, _: FileOffset, root: Root) {
        if root.kind == HeapTag::RootJniGlobal {
            self.0.insert(root.reference.0, root.object);
        }
    }
}

/// Reads the JNI roots of a dump.
pub(crate) fn roots(path: &Path) -> Result<Roots, Fault> {
    let source =
        Source::open(path, &Unpack::default()).map_err(|error| Fault::failed(error.to_string()))?;
    let data = source.bytes();
    let map = map_file(data, |_| {}).map_err(|error| Fault::failed(error.to_string()))?;
    let mut found = Found::default();
    map.walk(data, &mut found);
    Ok(found.0)
}
