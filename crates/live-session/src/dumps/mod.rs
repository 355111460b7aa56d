//! The heap dumps of a watched program: [`list`] numbers them and reads the data for tables from each of them after it
//! was [`opened`]; `roots` reads the JNI roots, which an index does not have.

pub mod list;
pub mod opened;
mod roots;
