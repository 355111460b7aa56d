//! The heap dumps of a watched program: [`list`] numbers them and reads what tables need of each once it is [`opened`];
//! `roots` reads the JNI roots, which an index does not have.

pub mod list;
pub mod opened;
mod roots;
