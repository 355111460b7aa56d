//! A heap dump that is being opened, by a page or by other code.

use heap_graph::Heap;
use requests::{Fault, Stage};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// A heap dump that is being opened, or is open: the pages need more of it than a session does.
pub trait OpenDump: Any + Send + Sync {
    /// Its heap.
    ///
    /// # Errors
    /// While it is being opened, or when it cannot be.
    fn heap(&self) -> Result<&Arc<Heap>, Fault>;
    /// How far the opening is.
    fn stage(&self) -> Stage;
    /// Names the dump before it, for what has grown since.
    fn compare_with(&self, before: &Path);
    /// Stops the opening.
    fn close(&self);
    /// Itself, for code that knows its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
