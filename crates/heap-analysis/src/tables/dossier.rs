//! All contents of a report, in one answer.

use crate::leaks::{LeakOptions, Leaks, find};
use crate::tables::dominators::{DominatorTree, TreeOptions, tree};
use crate::tables::histogram::{Histogram, HistogramOptions, histogram};
use crate::tables::loaders::{Loaders, loaders};
use crate::tables::overview::{Facts, facts};
use crate::tables::properties::{Properties, properties};
use crate::tables::roots::{RootOptions, Roots, roots};
use crate::tables::threads::{ThreadOptions, Threads, threads};
use crate::tables::top::{Consumers, TopOptions, consumers};
use crate::tables::treemap::{Treemap, treemap};
use crate::tables::unreachable::{Unreachable, unreachable};
use crate::tables::validate::{Verdict, validate};
use heap_graph::{Control, Heap, HeapError, beside};
use serde::Serialize;

/// The number of areas of the map.
const AREAS: usize = 800;

/// How much a report contains.
#[derive(Clone, Copy, Debug)]
pub struct DossierOptions {
    /// Rows per table. The top of the dominator tree, the roots of each kind and the local variables of each frame have
    /// fixed sizes.
    pub rows: usize,
    /// Include system properties and environment variables. They often contain passwords, and reports are shared.
    pub properties: bool,
}

impl Default for DossierOptions {
    fn default() -> Self {
        DossierOptions {
            rows: 100,
            properties: false,
        }
    }
}

/// The contents of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dossier {
    /// Facts about the file.
    pub facts: Facts,
    /// Leak suspects.
    pub leaks: Leaks,
    /// The histogram by class.
    pub histogram: Histogram,
    /// The largest objects, classes, loaders and packages.
    pub consumers: Consumers,
    /// The top of the dominator tree.
    pub dominators: DominatorTree,
    /// The dominator tree as a map of areas.
    pub treemap: Treemap,
    /// The threads with their stacks.
    pub threads: Threads,
    /// The GC roots.
    pub roots: Roots,
    /// The class loaders.
    pub loaders: Loaders,
    /// The unreachable objects.
    pub unreachable: Unreachable,
    /// System properties; absent unless they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Properties>,
    /// Checks of the file and damage found in it.
    pub verdict: Verdict,
}

/// Puts a report together.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn dossier(
    heap: &Heap,
    options: &DossierOptions,
    control: &Control<'_>,
) -> Result<Dossier, HeapError> {
    let suspects = || find(heap, &LeakOptions::default(), control);
    let map = || treemap(heap, AREAS);
    // The map and the suspects take most of the time.
    let (treemap, leaks) = match heap.thread_count() {
        0 | 1 => (map(), suspects()),
        _ => beside(map, suspects),
    };
    Ok(Dossier {
        facts: facts(heap),
        leaks: leaks?,
        histogram: histogram(
            heap,
            &HistogramOptions {
                top: Some(options.rows),
                ..HistogramOptions::default()
            },
        )?,
        consumers: consumers(
            heap,
            &TopOptions {
                top: Some(options.rows),
                ..TopOptions::default()
            },
        )?,
        dominators: tree(
            heap,
            &TreeOptions {
                root: None,
                depth: 4,
                top: 8,
            },
        ),
        treemap,
        threads: threads(
            heap,
            &ThreadOptions {
                locals: 5,
                top: Some(options.rows),
                thread_locals: Some(options.rows),
            },
        ),
        roots: roots(heap, &RootOptions { kind: None, top: 5 }, control)?,
        loaders: loaders(heap, Some(options.rows))?,
        unreachable: unreachable(heap, Some(options.rows)),
        properties: options.properties.then(|| properties(heap)),
        verdict: validate(heap),
    })
}
