//! A dump without its contents: every array of primitives and every char is replaced by zeros or a token. Classes,
//! references, lengths and ids stay, so all analyses of the structure have the same results.
//!
//! What is replaced: the elements of primitive arrays, char fields, the cached hash of strings, names
//! of started threads, and texts that no class, field, method or frame uses as its name (HotSpot
//! writes every symbol it has, string constants of class files among them). With `numbers` also the
//! numbers in boxes and in fields of classes outside the platform. With `names` the names of
//! application classes, their fields and methods.
//!
//! Passes: one over the records, one over the heap for the classes and one for the objects (one more for
//! each `keep` level), one to write, and some over both dumps to verify.

mod kept;
mod names;
mod places;
mod redactor;
mod shapes;
mod structure;
mod texts;
mod token;
mod verify;

pub use names::Names;
pub use redactor::{Method, PLATFORM, RedactOptions, Redactor};
pub(crate) use token::{has_letters, is_like_token};
pub use verify::{Verified, verify};
