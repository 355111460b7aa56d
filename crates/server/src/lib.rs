//! The front-end process: pages and a JSON API on the loopback interface, and the explorer of heap dumps. The contents
//! of a dump or a program are secret and may be hostile, so the server listens on loopback only, requires a random
//! token in every path, checks `Host` and `Origin`, and lets the browser run only the modules in this crate
//! (docs/reference/api.md).
//!
//! ```no_run
//! use server::explorer::Explorer;
//! use server::{Config, start};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let explorer = Explorer::open("heap.hprof".as_ref(), heap_graph::Options::default());
//! let running = start(server::explorer::router(explorer), &Config::default())?;
//! println!("{}", running.url());
//! running.wait();
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`serve`] (listening and stopping), `arrivals` (connections), [`guard`] (access control), [`reply`] (answers, faults, CSV,
//! plain HTML), [`events`] (server-sent events), [`assets`] (the page's modules), [`kept`] (answers saved beside the
//! index), [`explorer`] (a heap dump as pages), [`mcp`] (the same views as tools on standard input and output) and
//! [`live`] (a running program); [`reference`](mod@reference) generates parts of the documents from declarations.

mod arrivals;
pub mod assets;
pub mod events;
pub mod explorer;
pub mod guard;
pub mod kept;
pub mod live;
pub mod mcp;
pub mod reference;
pub mod reply;
pub mod serve;
mod stop;

pub use serve::{Config, Running, ServeError, Stopper, check_port, start};
