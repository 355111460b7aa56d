//! A report as one self-contained page: no network, no build step, readable without JavaScript, usable by keyboard,
//! light and dark. Data from the dump is text, never markup: every string is escaped, and the page's own script reads
//! its data from an inert JSON block.

mod page;
mod plain;
mod render;

pub use page::page;
pub use plain::{Section, plain_page};
pub use render::render;
