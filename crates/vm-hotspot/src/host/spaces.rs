//! The collector's spaces as arenas: which there are, how full they are, and in
//! which an address lies.

use vmpi::ArenaId;
use vmpi::wire::ArenaState;

use crate::vm::collector::Collector;
use crate::vm::vm_structs::{VmStructs, read};

/// Arenas by number. Collectors without generations have [`HEAP`](arena::HEAP) only.
pub(crate) mod arena {
    use vmpi::ArenaId;

    pub(crate) const EDEN: ArenaId = ArenaId(1);
    pub(crate) const SURVIVOR: ArenaId = ArenaId(2);
    pub(crate) const OTHER_SURVIVOR: ArenaId = ArenaId(3);
    pub(crate) const OLD: ArenaId = ArenaId(4);
    pub(crate) const HUMONGOUS: ArenaId = ArenaId(5);
    pub(crate) const HEAP: ArenaId = ArenaId(6);
}

/// Offsets of what bounds a space.
#[derive(Clone, Copy, Debug)]
struct SpaceFields {
    bottom: usize,
    top: usize,
    end: usize,
}

/// One contiguous space: where the VM keeps the pointer to it.
#[derive(Clone, Copy, Debug)]
struct SpaceRef {
    arena: ArenaId,
    pointer: usize,
}

/// G1's table of regions.
#[derive(Clone, Copy, Debug)]
struct G1 {
    /// Address of the biased base and the shift in the VM's table.
    base: usize,
    shift: usize,
    first: usize,
    count: usize,
    /// Offset of the type in a region.
    kind: usize,
    young: i32,
    survivor: i32,
    humongous: i32,
    old: i32,
    /// Addresses of used and committed bytes of eden, survivors and old.
    sizes: [[usize; 2]; 3],
}

#[derive(Clone, Debug)]
enum Map {
    Spaces(SpaceFields, Vec<SpaceRef>),
    Regions(G1),
    Whole,
}

/// The arenas of this VM.
#[derive(Clone, Debug)]
pub(crate) struct Spaces {
    map: Map,
}

/// Bounds of the spaces at one moment.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    Ranges(Vec<(u64, u64, ArenaId)>),
    Regions(RegionTable),
    Whole,
}

/// G1's regions by address; holds while threads are stopped, and well enough else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionTable {
    g1: G1,
    biased: usize,
    shift: u32,
    from: usize,
    to: usize,
}

fn serial(structs: &VmStructs) -> Option<Map> {
    const HEAP: &[&str] = &["SerialHeap", "GenCollectedHeap"];
    const SPACE: &[&str] = &["Space", "ContiguousSpace"];
    const OLD: &[&str] = &["TenuredGeneration", "OneContigSpaceCardGeneration"];
    // SAFETY: a static of the VM, and fields of its heap and generations, which
    // live as long as it.
    unsafe {
        let heap = read::<usize>(structs.address("Universe", "_collectedHeap")?)?;
        // Before JDK 9 the heap has an array of its generations.
        let generation = |field: &str, number: usize| {
            let array = || Some(structs.offset(HEAP, "_gens")? + number * size_of::<usize>());
            read::<usize>(heap + structs.offset(HEAP, field).or_else(array)?)
        };
        let young = generation("_young_gen", 0)?;
        let old = generation("_old_gen", 1)?;
        let young_space = |field: &str| Some(young + structs.offset(&["DefNewGeneration"], field)?);
        let spaces = vec![
            (arena::EDEN, young_space("_eden_space")?),
            (arena::SURVIVOR, young_space("_from_space")?),
            (arena::OTHER_SURVIVOR, young_space("_to_space")?),
            (arena::OLD, old + structs.offset(OLD, "_the_space")?),
        ];
        spaces_of(structs, SPACE, spaces)
    }
}

fn spaces_of(structs: &VmStructs, kinds: &[&str], spaces: Vec<(ArenaId, usize)>) -> Option<Map> {
    let mut kinds = kinds.to_vec();
    kinds.push("ContiguousSpace");
    let fields = SpaceFields {
        bottom: structs.offset(&kinds, "_bottom")?,
        top: structs.offset(&kinds, "_top")?,
        end: structs.offset(&kinds, "_end")?,
    };
    let space = |(arena, pointer)| SpaceRef { arena, pointer };
    Some(Map::Spaces(fields, spaces.into_iter().map(space).collect()))
}

fn parallel(structs: &VmStructs) -> Option<Map> {
    // SAFETY: statics of the VM and fields of its generations.
    unsafe {
        let young = read::<usize>(structs.address("ParallelScavengeHeap", "_young_gen")?)?;
        let old = read::<usize>(structs.address("ParallelScavengeHeap", "_old_gen")?)?;
        let young_space = |field: &str| Some(young + structs.offset(&["PSYoungGen"], field)?);
        let spaces = vec![
            (arena::EDEN, young_space("_eden_space")?),
            (arena::SURVIVOR, young_space("_from_space")?),
            (arena::OTHER_SURVIVOR, young_space("_to_space")?),
            (
                arena::OLD,
                old + structs.offset(&["PSOldGen"], "_object_space")?,
            ),
        ];
        // Before JDK 14 the bounds were those of a class above.
        spaces_of(structs, &["MutableSpace", "ImmutableSpace"], spaces)
    }
}

fn g1(structs: &VmStructs) -> Option<Map> {
    const HEAP: &[&str] = &["G1CollectedHeap"];
    const MANAGER: &[&str] = &["G1HeapRegionManager", "HeapRegionManager"];
    const TABLE: &[&str] = &["G1HeapRegionTable"];
    const REGION: &[&str] = &["G1HeapRegion", "HeapRegion"];
    const KIND: &[&str] = &["G1HeapRegionType", "HeapRegionType"];
    let tag = |name: &str| {
        let names = KIND.map_names(name);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        structs.constant(&names)
    };
    // SAFETY: a static of the VM, and fields of its heap, which lives as long.
    unsafe {
        let heap = read::<usize>(structs.address("Universe", "_collectedHeap")?)?;
        let manager = heap + structs.offset(HEAP, "_hrm")?;
        let table = manager + structs.offset(MANAGER, "_regions")?;
        let monitoring = ["_monitoring_support", "_g1mm"];
        let monitoring = monitoring
            .iter()
            .find_map(|field| structs.offset(HEAP, field))?;
        let monitoring = read::<usize>(heap + monitoring)?;
        // JDK 17's names, then JDK 11's.
        let size = |fields: [&str; 2]| {
            let offset = |field: &&str| structs.offset(&["G1MonitoringSupport"], field);
            Some(monitoring + fields.iter().find_map(offset)?)
        };
        let young = |space: &str, what: &str| {
            let names = [format!("_{space}_space_{what}"), format!("_{space}_{what}")];
            size([&names[0], &names[1]])
        };
        Some(Map::Regions(G1 {
            base: table + structs.offset(TABLE, "_biased_base")?,
            shift: table + structs.offset(TABLE, "_shift_by")?,
            first: table + structs.offset(TABLE, "_base")?,
            count: table + structs.offset(TABLE, "_length")?,
            kind: structs.offset(REGION, "_type")? + structs.offset(KIND, "_tag")?,
            young: tag("YoungMask")?,
            survivor: tag("SurvTag")?,
            humongous: tag("HumongousMask")?,
            old: tag("OldMask")?,
            sizes: [
                [young("eden", "used")?, young("eden", "committed")?],
                [young("survivor", "used")?, young("survivor", "committed")?],
                [
                    size(["_old_gen_used", "_old_used"])?,
                    size(["_old_gen_committed", "_old_committed"])?,
                ],
            ],
        }))
    }
}

/// `Kind::name` for each kind.
trait MapNames {
    fn map_names(&self, name: &str) -> Vec<String>;
}

impl MapNames for &[&str] {
    fn map_names(&self, name: &str) -> Vec<String> {
        self.iter().map(|kind| format!("{kind}::{name}")).collect()
    }
}

/// A survivor space keeps its number though the VM swaps its names: the lower one
/// is the first.
fn name_survivors(states: &mut [ArenaState]) {
    let is_survivor =
        |state: &&mut ArenaState| matches!(state.arena, arena::SURVIVOR | arena::OTHER_SURVIVOR);
    let mut survivors: Vec<&mut ArenaState> = states.iter_mut().filter(is_survivor).collect();
    survivors.sort_unstable_by_key(|state| state.start);
    let names = [arena::SURVIVOR, arena::OTHER_SURVIVOR];
    for (state, name) in survivors.into_iter().zip(names) {
        state.arena = name;
    }
}

impl Spaces {
    /// The spaces of this VM; one arena for the whole heap where they are not known.
    pub(crate) fn find(structs: &VmStructs, collector: Collector) -> Self {
        let map = match collector {
            Collector::Serial => serial(structs),
            Collector::Parallel => parallel(structs),
            Collector::G1 => g1(structs),
            _ => None,
        };
        Self {
            map: map.unwrap_or(Map::Whole),
        }
    }

    /// The arenas by name.
    pub(crate) fn arenas(&self) -> Vec<(ArenaId, &'static str)> {
        match &self.map {
            Map::Spaces(..) => vec![
                (arena::EDEN, "eden"),
                (arena::SURVIVOR, "survivor 0"),
                (arena::OTHER_SURVIVOR, "survivor 1"),
                (arena::OLD, "old"),
            ],
            Map::Regions(_) => vec![
                (arena::EDEN, "eden"),
                (arena::SURVIVOR, "survivor"),
                (arena::OLD, "old"),
                (arena::HUMONGOUS, "humongous"),
            ],
            Map::Whole => vec![(arena::HEAP, "heap")],
        }
    }

    /// How full each is now. G1 counts humongous regions with the old ones.
    pub(crate) fn states(&self) -> Vec<ArenaState> {
        // SAFETY: fields of spaces that the VM keeps; read when it has just collected.
        let word = |address: usize| unsafe { read::<usize>(address) }.unwrap_or(0);
        match &self.map {
            Map::Spaces(fields, spaces) => {
                let state = |space: &SpaceRef| {
                    let at = word(space.pointer);
                    let [bottom, top, end] = [fields.bottom, fields.top, fields.end]
                        .map(|field| if at == 0 { 0 } else { word(at + field) as u64 });
                    ArenaState {
                        arena: space.arena,
                        start: bottom,
                        used: top.saturating_sub(bottom),
                        capacity: end.saturating_sub(bottom),
                    }
                };
                let mut states: Vec<ArenaState> = spaces.iter().map(state).collect();
                name_survivors(&mut states);
                states
            }
            Map::Regions(g1) => [arena::EDEN, arena::SURVIVOR, arena::OLD]
                .into_iter()
                .zip(g1.sizes)
                .map(|(arena, [used, committed])| ArenaState {
                    arena,
                    start: 0,
                    used: word(used) as u64,
                    capacity: word(committed) as u64,
                })
                .collect(),
            Map::Whole => Vec::new(),
        }
    }

    /// Where what lies now. Survivor spaces change places, so ask anew after each
    /// collection.
    pub(crate) fn now(&self) -> Moment {
        match &self.map {
            Map::Spaces(..) => {
                let range =
                    |state: ArenaState| (state.start, state.start + state.capacity, state.arena);
                Moment::Ranges(self.states().into_iter().map(range).collect())
            }
            Map::Regions(g1) => {
                // SAFETY: fields of the VM's table of regions.
                let read = unsafe {
                    let count = read::<usize>(g1.count).unwrap_or(0);
                    let first = read::<usize>(g1.first).unwrap_or(0);
                    (
                        read::<usize>(g1.base).unwrap_or(0),
                        read::<u32>(g1.shift).unwrap_or(0),
                        first,
                        first + count * size_of::<usize>(),
                    )
                };
                Moment::Regions(RegionTable {
                    g1: *g1,
                    biased: read.0,
                    shift: read.1,
                    from: read.2,
                    to: read.3,
                })
            }
            Map::Whole => Moment::Whole,
        }
    }
}

impl RegionTable {
    fn arena(&self, address: u64) -> Option<ArenaId> {
        let slot = self
            .biased
            .wrapping_add((address as usize >> self.shift) * size_of::<usize>());
        if !(self.from..self.to).contains(&slot) {
            return None;
        }
        // SAFETY: the slot is inside the VM's table; regions are never freed.
        let kind = unsafe { read::<i32>(read::<usize>(slot).filter(|r| *r != 0)? + self.g1.kind) }?;
        Some(match kind {
            _ if kind & self.g1.young != 0 && kind == self.g1.survivor => arena::SURVIVOR,
            _ if kind & self.g1.young != 0 => arena::EDEN,
            _ if kind & self.g1.humongous != 0 => arena::HUMONGOUS,
            _ if kind & self.g1.old != 0 => arena::OLD,
            _ => return None,
        })
    }
}

impl Moment {
    /// The arena of an address; [`arena::OLD`] or [`arena::HEAP`] for one in none.
    pub(crate) fn arena(&self, address: u64) -> ArenaId {
        match self {
            Self::Ranges(ranges) => ranges
                .iter()
                .find(|(from, to, _)| (*from..*to).contains(&address))
                .map_or(arena::OLD, |range| range.2),
            Self::Regions(table) => table.arena(address).unwrap_or(arena::OLD),
            Self::Whole => arena::HEAP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_space_around_it() {
        let moment = Moment::Ranges(vec![(16, 32, arena::EDEN), (32, 48, arena::SURVIVOR)]);
        let check = |address, expected| assert_eq!(moment.arena(address), expected);
        check(16, arena::EDEN);
        check(31, arena::EDEN);
        check(32, arena::SURVIVOR);
        check(48, arena::OLD);
        assert_eq!(Moment::Whole.arena(5), arena::HEAP);
    }

    #[test]
    fn survivor_spaces_are_named_by_their_place() {
        let state = |arena, start| ArenaState {
            arena,
            start,
            used: 0,
            capacity: 8,
        };
        let mut states = [
            state(arena::EDEN, 8),
            state(arena::SURVIVOR, 32),
            state(arena::OTHER_SURVIVOR, 16),
        ];
        name_survivors(&mut states);
        let named: Vec<_> = states
            .iter()
            .map(|state| (state.arena, state.start))
            .collect();
        assert_eq!(
            named,
            [
                (arena::EDEN, 8),
                (arena::OTHER_SURVIVOR, 32),
                (arena::SURVIVOR, 16)
            ]
        );
    }

    #[test]
    fn without_a_vm_there_is_one_arena() {
        let spaces = Spaces::find(&VmStructs::default(), Collector::G1);
        assert_eq!(spaces.arenas(), [(arena::HEAP, "heap")]);
        assert!(spaces.states().is_empty());
        assert!(VmStructs::load().is_none());
    }
}
