//! The results of a replay, as plain data (docs/reference/json.md, `tenure.events/1`).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cycles::CycleLeaks;
use crate::dumps::Dumps;
use crate::fragmentation::{self, Fragmentation};
use crate::heap::{Arena, Group, LiveHeap};
use crate::history::{Collection, Sample};
use crate::survival::{Ages, Point, curve};

/// Everything at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Events {
    /// The VM and its collector.
    pub stream: Stream,
    /// Sums over everything.
    pub totals: Totals,
    /// Arenas by number.
    pub arenas: Vec<ArenaRow>,
    /// Classes, most allocated bytes first.
    pub classes: Vec<GroupRow>,
    /// Classes not listed.
    pub omitted_classes: u64,
    /// Allocation sites, most allocated bytes first.
    pub sites: Vec<GroupRow>,
    /// Sites not listed.
    pub omitted_sites: u64,
    /// How many objects of all survive how many collections.
    pub survival: Vec<Point>,
    /// How many objects of all survive how many allocated bytes.
    pub survival_bytes: Vec<Point>,
    /// The present population by collections survived.
    pub ages: Vec<AgeRow>,
    /// Number of objects by how often they moved, freed ones included; the ninth counts 8 and more moves.
    pub moves: Vec<u64>,
    /// Collections in order.
    pub collections: Vec<Collection>,
    /// Collections not kept.
    pub omitted_collections: u64,
    /// Occupancy over time.
    pub timeline: Vec<Sample>,
    /// What nothing reaches, if the stream has a heap dump.
    pub cycle_leaks: Option<CycleLeaks>,
    /// Dumps in the stream.
    pub dumps: Dumps,
}

/// The stream's greeting and how far to trust it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stream {
    /// The VM.
    pub vm: String,
    /// Its collector.
    pub collector: String,
    /// Mean bytes between two objects reported; 0 if all are reported. Bytes are
    /// estimates otherwise, objects are those reported.
    pub sample_interval: u64,
    /// Ids are tags that no collection changes.
    pub stable_ids: bool,
    /// Only collections of the whole heap find freed objects; only they are counted, in ages too.
    pub full_gc_frees: bool,
    /// The other collections, or pauses of collections, of such a stream.
    pub pauses: u64,
    /// Items replayed.
    pub items: u64,
    /// Events the VM dropped because the reader was slow, by name.
    pub lost: BTreeMap<String, u64>,
    /// Frees and moves of unknown ids.
    pub unknown_ids: u64,
    /// Allocations of ids that were alive.
    pub reused_ids: u64,
}

/// Sums.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Objects allocated.
    pub allocated_objects: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Objects alive or not yet collected.
    pub live_objects: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Objects collected.
    pub freed_objects: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Collections.
    pub collections: u64,
    /// Moves.
    pub moves: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Bytes that entered an old arena by a move.
    pub promoted_bytes: u64,
    /// Objects of these.
    pub promoted_objects: u64,
    /// Promoted bytes that were freed within three collections.
    pub premature_bytes: u64,
    /// Objects of these.
    pub premature_objects: u64,
}

/// One arena.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArenaRow {
    /// Its number.
    pub arena: u32,
    /// Its name.
    pub name: String,
    /// Objects in it.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes allocated in it.
    pub allocated_bytes: u64,
    /// Bytes that came by a move from another arena.
    pub entered_bytes: u64,
    /// Of these, bytes that were freed within three collections.
    pub soon_freed_bytes: u64,
    /// How often it was deleted.
    pub deletions: u64,
    /// Whether it is one that objects are promoted into: it takes moves from
    /// others, and collections leave more than half of live objects in it in place.
    pub old: bool,
    /// Bytes it has, 0 if not reported.
    pub capacity: u64,
    /// Bytes in use, as the VM reports.
    pub vm_used: Option<u64>,
    /// Holes, where ids are addresses.
    pub fragmentation: Option<Fragmentation>,
}

/// A class or a site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRow {
    /// The class, or of a site its innermost frame.
    pub name: String,
    /// Of a site its frames, innermost first.
    pub frames: Vec<String>,
    /// Objects allocated.
    pub allocated_objects: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Objects alive.
    pub live_objects: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Bytes that entered an old arena by a move.
    pub promoted_bytes: u64,
    /// Promoted bytes that were freed within three collections.
    pub premature_bytes: u64,
    /// Survival in collections.
    pub survival: Vec<Point>,
    /// Survival in bytes allocated by all.
    pub survival_bytes: Vec<Point>,
}

/// Objects of one age.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgeRow {
    /// Collections survived.
    pub age: u32,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl LiveHeap {
    /// The results, with at most `top` classes and sites.
    #[must_use]
    pub fn answer(&self, top: usize) -> Events {
        let old: Vec<bool> = self.arenas.iter().map(|arena| self.is_old(arena)).collect();
        let (class_count, site_count) = self.names.counts();
        let mut by_class = vec![(Group::default(), Ages::default()); class_count];
        let mut by_site = vec![(Group::default(), Ages::default()); site_count];
        for (kind, (class, site)) in self.kinds.iter().zip(&self.names.kinds) {
            by_class[*class as usize].0.add(kind);
            by_site[*site as usize].0.add(kind);
        }
        let mut all = Ages::default();
        let mut ages: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut moves = self.totals.moves_of_freed.to_vec();
        for row in self.objects.iter() {
            let age = self.gc_count - row.born_gc;
            let one = ages.entry(age).or_default();
            one.0 += 1;
            one.1 += self.weight(row.size);
            let bytes = self.totals.allocated_bytes - row.born_bytes;
            let buckets = Ages::buckets(age, bytes);
            let (class, site) = self.names.kinds[row.kind as usize];
            by_class[class as usize].1.add(buckets);
            by_site[site as usize].1.add(buckets);
            all.add(buckets);
            moves[(row.moves as usize).min(8)] += 1;
        }
        let class = |at: usize| GroupRow {
            name: self.names.class_name(at as u32),
            ..row_of(&by_class[at].0, &by_class[at].1, &old)
        };
        let site = |at: usize| {
            let frames = self.names.site_frames(at as u32);
            GroupRow {
                name: frames
                    .first()
                    .cloned()
                    .unwrap_or_else(|| "(no stack)".into()),
                frames,
                ..row_of(&by_site[at].0, &by_site[at].1, &old)
            }
        };
        let (classes, omitted_classes) = listed(&by_class, top, class);
        let (sites, omitted_sites) = listed(&by_site, top, site);
        Events {
            stream: self.stream(),
            totals: self.totals(&old),
            arenas: self.arena_rows(&old),
            classes,
            omitted_classes,
            sites,
            omitted_sites,
            survival: by_collections(&self.totals.ages, &all),
            survival_bytes: by_bytes(&self.totals.ages, &all),
            ages: ages.into_iter().map(age_row).collect(),
            moves,
            collections: self.history.collections.clone(),
            omitted_collections: self.history.omitted_collections,
            timeline: self.history.samples.clone(),
            cycle_leaks: self.leaks.clone(),
            dumps: self.dumps.answer(top),
        }
    }

    /// An arena is old if objects move into it from others and then stay: collections leave more than half of its live
    /// objects in place. Nurseries, survivor spaces and semi-spaces are emptied by each collection. An arena that no
    /// collection has processed yet is old if it was never deleted and the program hardly allocates in it.
    fn is_old(&self, arena: &Arena) -> bool {
        let rests = if arena.survived > 0 {
            arena.moved_on * 2 < arena.survived
        } else {
            arena.deletions == 0 && arena.allocated_bytes < self.totals.allocated_bytes / 4
        };
        arena.entered.objects > 0 && rests
    }

    fn stream(&self) -> Stream {
        Stream {
            vm: self.hello.vm.clone(),
            collector: self.hello.collector.clone(),
            sample_interval: self.hello.sample_interval,
            stable_ids: self.hello.stable_ids,
            full_gc_frees: self.hello.full_gc_frees,
            pauses: self.totals.pauses,
            items: self.totals.events,
            lost: self.oddities.lost.clone(),
            unknown_ids: self.oddities.unknown_ids,
            reused_ids: self.oddities.reused_ids,
        }
    }

    fn totals(&self, old: &[bool]) -> Totals {
        let arenas = self.arenas.iter().zip(old);
        let old_arenas: Vec<_> = arenas
            .filter(|(_, old)| **old)
            .map(|(arena, _)| arena.entered)
            .collect();
        Totals {
            allocated_objects: self.totals.allocated,
            allocated_bytes: self.totals.allocated_bytes,
            live_objects: self.objects.len() as u64,
            live_bytes: self.totals.live_bytes,
            freed_objects: self.totals.freed,
            freed_bytes: self.totals.freed_bytes,
            collections: u64::from(self.gc_count),
            moves: self.kinds.iter().map(|kind| kind.moves).sum(),
            moved_bytes: self.kinds.iter().map(|kind| kind.moved_bytes).sum(),
            promoted_bytes: old_arenas.iter().map(|one| one.bytes).sum(),
            promoted_objects: old_arenas.iter().map(|one| one.objects).sum(),
            premature_bytes: old_arenas.iter().map(|one| one.soon_freed_bytes).sum(),
            premature_objects: old_arenas.iter().map(|one| one.soon_freed).sum(),
        }
    }

    fn arena_rows(&self, old: &[bool]) -> Vec<ArenaRow> {
        let numbered = self.arenas.iter().zip(old).enumerate();
        let known = numbered.filter(|(_, (arena, _))| {
            arena.exists || arena.allocated_bytes > 0 || arena.deletions > 0
        });
        let rows = known.map(|(at, (arena, old))| ArenaRow {
            arena: at as u32,
            name: arena.name.clone(),
            objects: arena.objects,
            bytes: arena.bytes,
            allocated_bytes: arena.allocated_bytes,
            entered_bytes: arena.entered.bytes,
            soon_freed_bytes: arena.entered.soon_freed_bytes,
            deletions: arena.deletions,
            old: *old,
            capacity: arena.capacity,
            vm_used: arena.used,
            fragmentation: fragmentation::of(self, at as u32),
        });
        rows.collect()
    }
}

/// The first `top` groups by allocated bytes, and how many are left out.
fn listed(
    groups: &[(Group, Ages)],
    top: usize,
    row: impl Fn(usize) -> GroupRow,
) -> (Vec<GroupRow>, u64) {
    let mut order: Vec<usize> = (0..groups.len())
        .filter(|at| groups[*at].0.allocated > 0)
        .collect();
    order.sort_by_key(|at| (std::cmp::Reverse(groups[*at].0.allocated_bytes), *at));
    let omitted = order.len().saturating_sub(top) as u64;
    order.truncate(top);
    (order.into_iter().map(row).collect(), omitted)
}

fn age_row((age, (objects, bytes)): (u32, (u64, u64))) -> AgeRow {
    AgeRow {
        age,
        objects,
        bytes,
    }
}

fn row_of(group: &Group, alive: &Ages, old: &[bool]) -> GroupRow {
    let promoted = group
        .entered
        .iter()
        .filter(|(arena, _)| old.get(*arena as usize) == Some(&true));
    let (mut promoted_bytes, mut premature_bytes) = (0, 0);
    for (_, entered) in promoted {
        promoted_bytes += entered.bytes;
        premature_bytes += entered.soon_freed_bytes;
    }
    GroupRow {
        name: String::new(),
        frames: Vec::new(),
        allocated_objects: group.allocated,
        allocated_bytes: group.allocated_bytes,
        live_objects: group.live,
        live_bytes: group.live_bytes,
        moved_bytes: group.moved_bytes,
        promoted_bytes,
        premature_bytes,
        survival: by_collections(&group.ages, alive),
        survival_bytes: by_bytes(&group.ages, alive),
    }
}

fn by_collections(dead: &Ages, alive: &Ages) -> Vec<Point> {
    curve(&dead.by_gc, &alive.by_gc, |at| at as u64 + 1)
}

fn by_bytes(dead: &Ages, alive: &Ages) -> Vec<Point> {
    curve(&dead.by_bytes, &alive.by_bytes, |at| 1 << at)
}
