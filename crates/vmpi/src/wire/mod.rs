//! VM events as bytes, for a socket, a pipe or a file.
//!
//! A stream is [`MAGIC`], a [`Hello`], batches, and an end. Numbers are differences in columns, so an allocation takes
//! about six bytes. This module performs no input or output: an [`Encoder`] returns bytes, a [`Decoder`] accepts them
//! in pieces of any size. A recording is such a stream in a file. [`Command`]s are sent in the reverse direction.
//!
//! Format version 1, from the outer to the inner layers: [`frame`], [`hello`], [`batch`], [`item`], [`command`].

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
