//! The replay of a VM's events: which objects are live, since when, and where they have been.
//!
//! From a stream of [`vmpi::wire`] items of any garbage collector, it computes the current population by arena, class,
//! site and age, and its history: survival curves, promotion, occupancy over time, moves per collection.
//!
//! ```
//! use live_heap::Replay;
//! use vmpi::wire::{Encoder, Hello};
//!
//! let mut replay = Replay::new();
//! replay.push(&Encoder::new(&Hello::default()).finish());
//! let (heap, damage) = replay.finish()?;
//! assert_eq!(damage, None);
//! assert_eq!(heap.answer(10).totals.allocated_objects, 0);
//! # Ok::<(), vmpi::wire::Damage>(())
//! ```
//!
//! Reading order: [`replay`], [`heap`] (the rules), `objects` and `ids` (the table), `names`,
//! [`history`], [`survival`], [`fragmentation`], [`cycles`], [`dumps`], [`trail`], [`answer`].

pub mod answer;
pub mod cycles;
pub mod dumps;
pub mod fragmentation;
pub mod heap;
pub mod history;
mod ids;
mod names;
mod objects;
pub mod replay;
pub mod survival;
pub mod trail;

pub use answer::Events;
pub use heap::{LiveHeap, Present};
pub use history::{Collection, Sample};
pub use replay::Replay;
pub use survival::Point;
pub use trail::{Fate, Step, Trail, Watch};
