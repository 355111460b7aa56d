//! The integration tests of `heap-analysis` as one program, so that it is linked once.

mod budget;
mod cancelled;
mod diff;
mod export;
mod extract;
mod groups;
mod held;
mod kept_by_threads;
mod loaders;
mod long_list;
mod naive;
mod paths_in_trees;
mod program;
mod readable;
mod redact;
mod redact_damaged;
mod sets;
mod suspects;
mod texts;
mod threads;
mod waste;
