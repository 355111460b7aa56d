//! The sub-commands, one module each. To add one: a module here with `Args` and
//! `Args::run(&self, &Session) -> Outcome`, and a line in the table below, in the group of the
//! help that it belongs to. A command that only Linux has is marked in both places.

pub mod android;
#[cfg(target_os = "linux")]
pub mod attach;
pub mod cache;
pub mod check;
pub mod collections;
#[cfg(target_os = "linux")]
pub mod collectors;
pub mod completions;
pub mod convert;
mod described;
pub mod diff;
pub mod dominators;
#[cfg(target_os = "linux")]
pub mod dump;
pub mod events;
pub mod export;
pub mod extract;
pub mod histogram;
#[cfg(target_os = "linux")]
pub mod install_agent;
pub mod leaks;
#[cfg(target_os = "linux")]
pub mod listen;
pub mod loaders;
pub mod man;
pub mod mcp;
pub mod object;
pub mod objects;
pub mod open;
pub mod overview;
pub mod part;
pub mod paths;
pub mod profile;
pub mod properties;
pub mod query;
pub mod redact;
pub mod report;
pub mod roots;
#[cfg(target_os = "linux")]
pub mod run;
pub mod secrets;
pub mod strings;
pub mod summary;
pub mod target;
pub mod threads;
pub mod top;
pub mod tui;
pub mod unreachable;
pub mod validate;
pub mod waste;
#[cfg(target_os = "linux")]
pub mod watch;

use crate::Outcome;
use crate::session::Session;
use clap::Subcommand;

macro_rules! commands {
    ($($title:literal { $($(#[cfg($system:meta)])? $(#[command($($option:tt)*)])? $variant:ident => $module:ident,)* })*) => {
        /// A command with its arguments. Help texts are those of the `Args` types.
        #[derive(Debug, Subcommand)]
        #[expect(missing_docs, reason = "the doc comments of the arguments are the help texts")]
        pub enum Command {
            $($($(#[cfg($system)])? $(#[command($($option)*)])? $variant($module::Args),)*)*
        }

        impl Command {
            /// Runs it.
            pub fn run(&self, session: &Session) -> Outcome {
                match self {
                    $($($(#[cfg($system)])? Command::$variant(args) => args.run(session),)*)*
                }
            }
        }

        /// The groups of the help, each with how many commands it has, in the order of the commands.
        pub(crate) const GROUPS: &[(&str, usize)] = &[$(($title, [$($(#[cfg($system)])? stringify!($variant)),*].len()),)*];
    };
}

commands! {
    "Look at a dump" {
        Overview => overview,
        Leaks => leaks,
        #[command(visible_alias = "histo")]
        Histogram => histogram,
        Dominators => dominators,
        Top => top,
        Object => object,
        Objects => objects,
        Paths => paths,
        Threads => threads,
        Strings => strings,
        Collections => collections,
        Waste => waste,
        Loaders => loaders,
        Roots => roots,
        Unreachable => unreachable,
        Properties => properties,
        Android => android,
        Query => query,
        Summary => summary,
        Open => open,
        Tui => tui,
        Mcp => mcp,
    }
    "Compare and check" {
        Diff => diff,
        #[command(visible_alias = "gate")]
        Check => check,
        Validate => validate,
        Secrets => secrets,
    }
    "Share" {
        Report => report,
        Redact => redact,
        Extract => extract,
        Export => export,
        Convert => convert,
    }
    "Profile a JVM" {
        #[cfg(target_os = "linux")]
        Run => run,
        #[cfg(target_os = "linux")]
        Attach => attach,
        #[cfg(target_os = "linux")]
        Watch => watch,
        #[cfg(target_os = "linux")]
        Dump => dump,
        Profile => profile,
    }
    "Recordings and events" {
        #[cfg(target_os = "linux")]
        Listen => listen,
        Events => events,
        #[cfg(target_os = "linux")]
        Collectors => collectors,
    }
    "Housekeeping" {
        #[cfg(target_os = "linux")]
        InstallAgent => install_agent,
        Cache => cache,
        Completions => completions,
        Man => man,
    }
}
