//! The heap dumps of a watched program: [`list`] numbers them and opens an explorer for each, which reads what tables need of them
//! once; `roots` reads the JNI roots, which an index does not have.

pub mod list;
mod roots;
