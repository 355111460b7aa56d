//! Whole-heap answers as tables and trees: counts and facts ([`summary`], [`overview`], [`properties`], [`validate`]),
//! classes and groups of them ([`histogram`], [`group`], [`loaders`], [`class_references`]), the dominator tree
//! ([`dominators`], [`class_paths`], [`top`], [`treemap`]), [`roots`], [`threads`], [`unreachable`] objects, and all of
//! these in one answer for a report ([`dossier`]).

pub mod class_paths;
pub mod class_references;
pub mod dominators;
pub mod dossier;
pub mod group;
pub mod histogram;
pub mod loaders;
pub mod overview;
pub mod properties;
pub(crate) mod ranking;
pub mod roots;
pub mod summary;
pub mod thread_locals;
pub mod threads;
pub mod top;
pub mod treemap;
pub mod unreachable;
pub mod validate;
