//! What the phases of the graph work on.

use super::classes::ClassTable;
use super::mapped::{Mapped, Objects};
use super::roots::Roots;
use crate::bits::Bits;
use crate::idmap::IdMap;
use crate::raw::Budget;
use crate::{Control, Options};
use std::path::Path;

/// The input of the graph.
pub(crate) struct Job<'a> {
    pub(crate) mapped: &'a Mapped<'a>,
    pub(crate) path: &'a Path,
    pub(crate) objects: &'a Objects,
    pub(crate) table: &'a ClassTable,
    pub(crate) map: &'a IdMap<'a>,
    pub(crate) roots: &'a Roots,
    pub(crate) options: &'a Options,
    pub(crate) budget: &'a Budget,
    pub(crate) control: &'a Control<'a>,
    /// The objects that are classes.
    pub(crate) class_objects: &'a Bits,
}
