//! A heap dump that is being opened, by a page or by other code.

use heap_graph::Heap;
use requests::{Fault, Stage};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// A heap dump that is being opened or is open. Pages use more of it than this trait provides, by
/// [`into_any`](Self::into_any).
pub trait OpenDump: Any + Send + Sync {
    /// Its heap.
    ///
    /// # Errors
    /// The dump is still being opened, or cannot be opened.
    fn heap(&self) -> Result<&Arc<Heap>, Fault>;
    /// The progress of opening.
    fn stage(&self) -> Stage;
    /// Sets the previous dump, to find what has grown since.
    fn compare_with(&self, before: &Path);
    /// Stops the opening.
    fn close(&self);
    /// The value itself, for code that knows its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
