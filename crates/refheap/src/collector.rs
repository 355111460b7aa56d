//! The interface of a collector, and the list of collectors.

use std::str::FromStr;

use vmpi::GcKind;

use crate::core::Core;
use crate::object::ObjIdx;
use crate::space::Space;
use crate::{generational, mark_compact, mark_sweep, reference_counting, two_space_copying};

/// The position of a new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) arena: vmpi::ArenaId,
    pub(crate) address: u64,
}

/// One way to manage memory. All collectors use [`Core`], which issues the events.
pub(crate) trait Collector: std::fmt::Debug {
    /// Creates the arenas.
    fn start(&mut self, core: &mut Core<'_>);
    /// Finds space for an object; `None` if a collection is needed.
    fn allocate(&mut self, size: u64) -> Option<Place>;
    /// Collects. `need` bytes must be free afterwards; 0 if no allocation is waiting.
    fn collect(&mut self, core: &mut Core<'_>, kind: GcKind, need: u64);
    /// A slot of an object or a variable was changed from `old` to `new`; `holder` is the object if it is a slot. The
    /// change has already been made.
    fn stored(&mut self, core: &mut Core<'_>, write: Write);
    /// Its arenas.
    fn spaces(&self) -> Vec<&Space>;
}

/// A reference changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) env: vmpi::EnvId,
    pub(crate) holder: Option<ObjIdx>,
    pub(crate) old: Option<ObjIdx>,
    pub(crate) new: Option<ObjIdx>,
}

/// The five collectors of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gc {
    /// One arena, free lists.
    MarkSweep,
    /// One arena, objects are moved together.
    MarkCompact,
    /// Two arenas, one of them in reserve.
    TwoSpaceCopying,
    /// An arena for each generation.
    Generational,
    /// One arena; an object is freed when nothing refers to it.
    ReferenceCounting,
}

impl Gc {
    /// All five, in the order of the document.
    pub const ALL: [Self; 5] = [
        Self::MarkSweep,
        Self::MarkCompact,
        Self::TwoSpaceCopying,
        Self::Generational,
        Self::ReferenceCounting,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MarkSweep => "mark_sweep",
            Self::MarkCompact => "mark_compact",
            Self::TwoSpaceCopying => "two_space_copying",
            Self::Generational => "generational",
            Self::ReferenceCounting => "reference_counting",
        }
    }
}

impl FromStr for Gc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.replace('-', "_");
        Self::ALL
            .into_iter()
            .find(|gc| gc.name() == name)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                format!("{text}: expected one of {names}")
            })
    }
}

/// The order in which a compacting collector arranges objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Objects keep their order.
    #[default]
    Sliding,
    /// Largest first, independent of their positions and references.
    Arbitrary,
    /// An object is followed by the objects that it refers to.
    Linearizing,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sliding" => Ok(Self::Sliding),
            "arbitrary" => Ok(Self::Arbitrary),
            "linearizing" => Ok(Self::Linearizing),
            _ => Err(format!(
                "{text}: expected sliding, arbitrary or linearizing"
            )),
        }
    }
}

/// The configuration of a reference VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The collector.
    pub gc: Gc,
    /// Bytes for objects: the size of each semi-space and of the oldest generation.
    pub heap: u64,
    /// Order of the compacting collector.
    pub order: Order,
    /// Generations of the generational collector, at least 2.
    pub generations: u32,
    /// Collections an object survives in its generation before it is promoted.
    pub promotion_age: u32,
    /// Whether the counting collector also searches for cycles when a collection is requested or the heap is full.
    pub cycle_detector: bool,
}

impl Config {
    /// The default configuration: 64 KiB, two generations, promotion at the first survival, no cycle detector.
    #[must_use]
    pub fn new(gc: Gc) -> Self {
        Self {
            gc,
            heap: 64 << 10,
            order: Order::Sliding,
            generations: 2,
            promotion_age: 1,
            cycle_detector: false,
        }
    }

    pub(crate) fn collector(&self) -> Box<dyn Collector> {
        let heap = self.heap.clamp(1 << 10, crate::space::LARGEST);
        match self.gc {
            Gc::MarkSweep => Box::new(mark_sweep::MarkSweep::new(heap)),
            Gc::MarkCompact => Box::new(mark_compact::MarkCompact::new(heap, self.order)),
            Gc::TwoSpaceCopying => Box::new(two_space_copying::TwoSpaceCopying::new(heap)),
            Gc::Generational => {
                let generations = self.generations.clamp(2, 8);
                let age = self.promotion_age.max(1);
                Box::new(generational::Generational::new(heap, generations, age))
            }
            Gc::ReferenceCounting => Box::new(reference_counting::ReferenceCounting::new(
                heap,
                self.cycle_detector,
            )),
        }
    }
}
