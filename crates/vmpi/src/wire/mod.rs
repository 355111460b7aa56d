//! The wire: VM events as bytes, for a socket, a pipe or a file.
//!
//! A stream is [`MAGIC`], a [`Hello`], batches, and an end. Numbers
//! are differences in columns, so an allocation takes about six bytes. Nothing
//! here does input or output: an [`Encoder`] makes bytes, a [`Decoder`] takes them
//! in any portions. A recording is such a stream in a file. On the way back
//! travel [`Command`]s.
//!
//! Format version 1, from the outside in: [`frame`], [`hello`], [`batch`],
//! [`item`], [`command`].

pub mod batch;
pub mod command;
pub mod damage;
pub mod decode;
pub mod encode;
pub mod frame;
pub mod hello;
pub mod item;
mod row;
mod varint;

pub use batch::Batch;
pub use command::{Answer, Command, CommandReader, CommandWriter, Numbered};
pub use damage::Damage;
pub use decode::{Decoder, Frame, read_all};
pub use encode::Encoder;
pub use frame::{MAGIC, frame_of_batch};
pub use hello::{ByteOrder, Hello, WIRE_VERSION};
pub use item::{ArenaState, Item, MoveRange};
