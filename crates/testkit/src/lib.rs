//! What the tests of the other crates share. A dev-dependency only, and it uses none of them: the
//! dump builder is written from the format text, the oracles from the definitions.
//!
//! ```
//! use testkit::graph::{Dominator, Graph};
//!
//! let diamond = Graph::from_edges(4, &[0], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
//! assert_eq!(diamond.dominators_by_removal()[3], Some(Dominator::Node(0)));
//! assert_eq!(diamond.retained_by_removal(), [4, 1, 1, 1]);
//! ```
//!
//! Reading order: [`dump`] (bytes of a dump), [`graph`] (dominators by the definition), [`shapes`]
//! (random graphs, and dumps made of them), [`census`] (objects of a cut dump), [`corpus`] (real dumps with expected answers),
//! [`oracle`] (recorded runs of the original agent), [`jvm`] (JDKs on this machine, and fresh dumps by them),
//! [`mutants`] (damaged dumps), [`needs`] (what a machine may lack), [`built`] (what this workspace builds), [`pprof`] (profiles read back),
//! [`profiles`] (profiles as text), [`browser`] (Chromium),
//! [`run`] (the program under test with limits), and [`mod@wait`] (for what others do).

pub mod browser;
pub mod built;
pub mod census;
pub mod corpus;
pub mod dump;
pub mod graph;
pub mod jvm;
pub mod mutants;
pub mod needs;
pub mod oracle;
pub mod pprof;
pub mod profiles;
pub mod run;
pub mod shapes;
pub mod wait;

pub use needs::{Need, skip};
pub use wait::until;
