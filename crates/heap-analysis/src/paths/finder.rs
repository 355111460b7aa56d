//! Shortest paths to many objects, found one after the other: paths share their beginnings, so the known path of one
//! object is reused for the next.

use crate::pace::Pace;
use crate::paths::{Exclusions, Holders, root_set};
use crate::sets::selection::Selection;
use heap_graph::{Control, Dominator, Heap, HeapError, ObjIdx};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// How many objects one search may visit before it is abandoned. Most paths are found within a few hundred; a longer
/// search usually means that half of the heap holds the object.
const MAX_VISITS: usize = 100_000;

/// As [`MAX_VISITS`], when paths need not be the shortest ones.
const FEW_VISITS: usize = 1_000;

/// One in this many objects on a long path is cached with the last wanted object of the path.
const REMEMBERED: u64 = 32;

/// What the memory limit is compared with.
const WHAT: &str = "the tree of paths";

/// Bytes for each path besides its objects: its place in the list, and in the maps from which the tree grows.
const EACH: u64 = 320;

/// The most bytes for each object of the heap that is on a path: the map of known paths while it grows, and the list of
/// the objects that are added to it.
const ON_PATHS: u64 = 128;

/// What a search for paths may take of the memory limit.
pub(super) struct Memory<'h> {
    heap: &'h Heap,
    /// Bytes that were free at the beginning; `None` without a limit.
    left: Option<u64>,
    /// Bytes of the paths that were found, and of what they take in the tree.
    paths: Cell<u64>,
    /// Bytes that are sufficient for paths of any length.
    most: u64,
}

impl<'h> Memory<'h> {
    pub(super) fn unlimited(heap: &'h Heap) -> Memory<'h> {
        Memory {
            heap,
            left: None,
            paths: Cell::new(0),
            most: 0,
        }
    }

    /// For a tree of `levels` levels of paths to so many objects.
    pub(super) fn for_tree(
        heap: &'h Heap,
        objects: usize,
        levels: usize,
    ) -> Result<Memory<'h>, HeapError> {
        // Roots, wanted objects, visited ones and those without a path.
        let sets = heap.len() / 8 * 4;
        let fixed = sets + objects as u64 * EACH;
        let longest = (levels as u64).min(heap.len()) * size_of::<ObjIdx>() as u64;
        let memory = Memory {
            heap,
            left: heap.memory(),
            paths: Cell::new(fixed),
            most: fixed + objects as u64 * longest + heap.len() * ON_PATHS,
        };
        memory.require(0)?;
        Ok(memory)
    }

    /// Adds a path that was found.
    fn add(&self, route: &Route) {
        let bytes = route.path.capacity() * size_of::<ObjIdx>();
        self.paths.set(self.paths.get() + bytes as u64);
    }

    /// Checks that so many bytes beside the paths stay within the limit.
    ///
    /// # Errors
    /// With a limit that is sufficient.
    fn require(&self, bytes: u64) -> Result<(), HeapError> {
        match self.left {
            Some(left) if left < self.paths.get() + bytes => {
                self.heap.require_memory(WHAT, self.most)
            }
            _ => Ok(()),
        }
    }
}

/// Bytes of a hash map with a capacity.
fn map_bytes<V>(capacity: usize) -> u64 {
    let places = (capacity as u64 * 8).div_ceil(7).next_power_of_two();
    places * (size_of::<(ObjIdx, V)>() as u64 + 1)
}

/// A path from a root to an object.
pub(super) struct Route {
    /// From the root on; the last object is the target, unless the path is longer than wanted.
    pub(super) path: Vec<ObjIdx>,
    pub(super) target: ObjIdx,
}

/// Finds shortest paths one after the other and caches every path to a root that it has found.
struct Finder<'h> {
    heap: &'h Heap,
    memory: &'h Memory<'h>,
    pace: Pace<'h>,
    roots: Selection,
    holders: Holders<'h>,
    /// The next object towards the root, and the distance to the root. Roots map to themselves.
    known: FxHashMap<ObjIdx, (ObjIdx, u32)>,
    /// How many objects of a path, from the root on, are wanted.
    levels: usize,
    /// The last wanted object on the paths of some objects that are farther from the root.
    last_wanted: FxHashMap<ObjIdx, ObjIdx>,
    visits: usize,
    /// Objects that may be visited while paths must be the shortest ones.
    exact: usize,
    /// True once instances count as holders of their classes.
    widened: bool,
    /// Objects to which no path leads: all that hold them were visited.
    without: Selection,
}

impl<'h> Finder<'h> {
    fn new(
        memory: &'h Memory<'h>,
        exclude: Exclusions,
        exact: usize,
        levels: usize,
        control: &'h Control<'h>,
    ) -> Finder<'h> {
        let heap = memory.heap;
        Finder {
            heap,
            memory,
            pace: Pace::new(control, "looking for paths", heap.len()),
            roots: root_set(heap),
            holders: Holders::new(heap, exclude),
            known: FxHashMap::default(),
            levels,
            last_wanted: FxHashMap::default(),
            visits: 0,
            exact,
            widened: false,
            without: Selection::none(heap),
        }
    }

    /// A path from a root to the target; `None` if there is none. It is the shortest one if that search ends within its
    /// limits.
    fn path(&mut self, target: ObjIdx) -> Result<Option<Route>, HeapError> {
        self.find(target)?;
        if !self.known.contains_key(&target) && self.heap.is_reachable(target) && !self.widened {
            // A class may be held by its instances alone.
            self.widened = true;
            self.holders.with_instances();
            self.without = Selection::none(self.heap);
            self.find(target)?;
        }
        if !self.known.contains_key(&target) {
            return Ok(None);
        }
        let mut path = Vec::new();
        let mut at = self.last_wanted(target)?;
        while let Some((next, distance)) = self.known.get(&at) {
            self.pace.step()?;
            path.push(at);
            if *distance == 0 {
                break;
            }
            at = *next;
        }
        path.reverse();
        path.shrink_to_fit();
        let route = Route { path, target };
        self.memory.add(&route);
        self.memory.require(self.bytes())?;
        Ok(Some(route))
    }

    /// Finds a path to the target: by a search as long as these may be long, then by dominators and a short search. If
    /// neither ends, any path is taken, so that none is missed: nodes of a long doubly linked list are held by their
    /// neighbours only.
    fn find(&mut self, target: ObjIdx) -> Result<(), HeapError> {
        if self.known.contains_key(&target) || self.without.contains(target) {
            return Ok(());
        }
        let is_exact = self.visits < self.exact;
        if is_exact && self.search(target, MAX_VISITS.min(self.exact))? {
            return Ok(());
        }
        let chain = self.climb(target)?;
        let top = chain.last().copied().unwrap_or(target);
        if !self.search(top, FEW_VISITS)? {
            self.take_any(top)?;
        }
        if let Some((_, distance)) = self.known.get(&top).copied() {
            self.store(&chain, distance)?;
        }
        Ok(())
    }

    /// Takes the first path to the target that a search finds which goes up before it goes aside. It remembers one bit for
    /// each object, where a search for the shortest path would take more memory than the heap has.
    fn take_any(&mut self, target: ObjIdx) -> Result<(), HeapError> {
        let mut seen = Selection::of(self.heap, [target]);
        // From the target to the object that is visited, and what is still to be visited with its place there.
        let mut way: Vec<ObjIdx> = Vec::new();
        let mut open = vec![(target, 0)];
        while let Some((object, place)) = open.pop() {
            self.pace.step()?;
            way.truncate(place);
            self.push(&mut way, object)?;
            if self.roots.contains(object) {
                self.make_room(1, &way)?;
                self.known.insert(object, (object, 0));
            }
            if let Some((_, distance)) = self.known.get(&object).copied() {
                return self.store(&way, distance);
            }
            for holder in self.holders.of(object)? {
                if self.leads_up(holder) && seen.insert(holder) {
                    self.push(&mut open, (holder, way.len()))?;
                }
            }
        }
        seen.iter().for_each(|one| {
            self.without.insert(one);
        });
        Ok(())
    }

    /// Whether a path may lead through an object.
    fn leads_up(&self, object: ObjIdx) -> bool {
        self.heap.is_reachable(object) && !self.without.contains(object)
    }

    /// Stores the way from an object to one whose path is known, which is that far from its root.
    fn store(&mut self, way: &[ObjIdx], mut distance: u32) -> Result<(), HeapError> {
        self.make_room(way.len(), way)?;
        for pair in way.windows(2).rev() {
            distance += 1;
            self.known.insert(pair[0], (pair[1], distance));
        }
        Ok(())
    }

    /// Bytes of the maps of known paths.
    fn bytes(&self) -> u64 {
        map_bytes::<(ObjIdx, u32)>(self.known.capacity())
            + map_bytes::<ObjIdx>(self.last_wanted.capacity())
    }

    /// Makes room for so many more objects with a known path, within the memory limit.
    fn make_room(&mut self, more: usize, way: &[ObjIdx]) -> Result<(), HeapError> {
        let len = self.known.len() + more;
        if len > self.known.capacity() {
            let grown = map_bytes::<(ObjIdx, u32)>(len);
            let bytes = self.bytes() + grown + size_of_val(way) as u64;
            self.memory.require(bytes)?;
            self.known.reserve(more);
        }
        Ok(())
    }

    /// Appends to a list that can become as long as the heap, within the memory limit.
    fn push<T>(&self, list: &mut Vec<T>, one: T) -> Result<(), HeapError> {
        if list.len() == list.capacity() {
            // The list, and one that is twice as long.
            let grown = 3 * size_of_val(list.as_slice()) as u64;
            self.memory.require(self.bytes() + grown)?;
        }
        list.push(one);
        Ok(())
    }

    /// The last object on the path of the target that is wanted: the target itself unless it is too far from the root.
    /// The paths to the nodes of a list of millions would together be much longer than the list.
    fn last_wanted(&mut self, target: ObjIdx) -> Result<ObjIdx, HeapError> {
        let mut at = target;
        let mut way = Vec::new();
        while let Some((next, distance)) = self.known.get(&at) {
            self.pace.step()?;
            if (*distance as usize) < self.levels {
                break;
            }
            if let Some(last) = self.last_wanted.get(&at) {
                at = *last;
                break;
            }
            if at == target || at.0.is_multiple_of(REMEMBERED) {
                way.push(at);
            }
            at = *next;
        }
        let len = self.last_wanted.len() + way.len();
        if len > self.last_wanted.capacity() {
            let bytes = self.bytes() + map_bytes::<ObjIdx>(len);
            self.memory.require(bytes)?;
        }
        self.last_wanted
            .extend(way.into_iter().map(|passed| (passed, at)));
        Ok(at)
    }

    /// Goes up from the target as long as its dominator holds it directly. In a tree whose nodes refer to their parents,
    /// every search visits half of the nodes; the dominators lead up without a search. Returns the way, from the target on.
    fn climb(&mut self, target: ObjIdx) -> Result<Vec<ObjIdx>, HeapError> {
        let mut chain = vec![target];
        let mut at = target;
        while !self.known.contains_key(&at) && !self.roots.contains(at) {
            self.pace.step()?;
            let Dominator::Object(above) = self.heap.dominator(at) else {
                break;
            };
            if !self.holders.of(at)?.contains(&above) {
                break;
            }
            self.push(&mut chain, above)?;
            at = above;
        }
        Ok(chain)
    }

    /// Searches a path to the target. The first connection to a known path ends it if the search is not for the shortest
    /// one. Returns false if it has visited as many objects as it may.
    fn search(&mut self, target: ObjIdx, limit: usize) -> Result<bool, HeapError> {
        let mut seen: FxHashSet<ObjIdx> = FxHashSet::from_iter([target]);
        let mut next: FxHashMap<ObjIdx, ObjIdx> = FxHashMap::default();
        let mut level = vec![target];
        let mut best: Option<(u32, ObjIdx)> = None;
        let mut depth = 0u32;
        let exact = self.visits < self.exact;
        while !level.is_empty() && seen.len() < limit {
            let mut following = Vec::new();
            for object in level {
                if self.roots.contains(object) {
                    self.make_room(1, &[])?;
                    self.known.insert(object, (object, 0));
                }
                if let Some((_, rest)) = self.known.get(&object) {
                    let key = (depth + rest, object);
                    best = Some(best.map_or(key, |b| b.min(key)));
                    continue;
                }
                if seen.len() >= limit {
                    break;
                }
                self.pace.step()?;
                for holder in self.holders.of(object)? {
                    if self.leads_up(holder) && seen.insert(holder) {
                        next.insert(holder, object);
                        following.push(holder);
                    }
                }
            }
            depth += 1;
            if best.is_some_and(|(length, _)| length <= depth || !exact) {
                break;
            }
            level = following;
        }
        self.visits += seen.len();
        let Some((_, found)) = best else {
            let is_whole = seen.len() < limit;
            if is_whole {
                seen.into_iter().for_each(|one| {
                    self.without.insert(one);
                });
            }
            return Ok(is_whole);
        };
        let mut at = found;
        let mut distance = self.known.get(&at).map_or(0, |k| k.1);
        while let Some(towards_target) = next.get(&at) {
            distance += 1;
            self.make_room(1, &[])?;
            self.known.insert(*towards_target, (at, distance));
            at = *towards_target;
        }
        Ok(true)
    }
}

/// The first `levels` objects of a path to each target that has one.
pub(super) fn paths_to(
    memory: &Memory<'_>,
    targets: &[ObjIdx],
    exclude: Exclusions,
    exact: usize,
    levels: usize,
    control: &Control<'_>,
) -> Result<Vec<Route>, HeapError> {
    let mut finder = Finder::new(memory, exclude, exact, levels, control);
    let mut paths = Vec::with_capacity(targets.len());
    for target in targets {
        paths.extend(finder.path(*target)?);
    }
    Ok(paths)
}
