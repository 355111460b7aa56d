//! Sizes and capacities of all tracked objects, for the table of all classes. A thread of the agent reads them piece by
//! piece, so that no other thread waits, and sums them up by site.

use std::sync::atomic::Ordering;

use jvmti::{Env, Jni, Live, Object};
use locks::{Mutex, Rank};
use rustc_hash::FxHashMap;
use vmpi::fills::SiteFill;
use vmpi::info::java_name;
use vmpi::{ClassId, ClassOptions, Event, Fills, Share, ThreadId, TraceId};

use crate::alloc::choices::{Chosen, Dice};
use crate::alloc::sites::SiteId;
use crate::alloc::tracked::{Entry, PIECE};
use crate::live::fields::LiveFields;
use crate::threads::worker::Place;
use crate::vm::config::Clock;
use crate::vm::hotspot::HotSpot;

/// The most requests that may wait.
const MOST_WAITING: usize = 2;
/// The most objects that are read for one answer; if there are more, a sample of each site with many.
const MOST: u64 = 2 << 20;
/// The most rows of an answer. With more sites, those of a class and thread are merged into one row; if that is not
/// sufficient, those of a class.
const MOST_ROWS: usize = 20_000;
/// Local references needed to read an object.
const REFERENCES: i32 = 8;
/// Local references in addition to those of classes.
const BESIDES: i32 = 256;

/// A class whose objects are read.
struct Class {
    options: ClassOptions,
    fields: LiveFields,
}

/// A site whose objects are read.
struct Site {
    class: usize,
    /// How many tracked objects the site has.
    objects: u64,
    /// The number of objects that a tracked one stands for; for an array, of arrays of its size.
    weight: f64,
    /// How many of them are read.
    share: Share,
    row: SiteFill,
}

impl HotSpot {
    /// Reads in the background; the answer is emitted as an event.
    pub(crate) fn read_fills(&self, env: Env<Live>, jni: Jni, number: u32) -> jvmti::Result<()> {
        static READER: Place = Mutex::new(Rank::Worker, None);
        let worker = self.worker(&READER, (env, jni), "HPROF sizes")?;
        if worker.waiting() >= MOST_WAITING {
            return Err(jvmti::Error::Jni("too many questions"));
        }
        let hotspot = self.forever();
        worker.give(move |env, jni| {
            // An incomplete result would be mistaken for a complete one.
            if let Some(fills) = fills(hotspot, env, jni, number) {
                hotspot.emit(&Event::Fills(&fills));
            }
        });
        Ok(())
    }
}

/// The answer to a request; none if the VM ends before everything is read.
fn fills(hotspot: &HotSpot, env: Env<Live>, jni: Jni, number: u32) -> Option<Fills> {
    let begun = Clock::ThreadCpu.now();
    hotspot.track_all_gathered(jni);
    let counts = hotspot.tracked.see_all(jni);
    let known = hotspot.lock().registry.classes.last() as i32;
    jni.local_frame(known.min(i32::from(u16::MAX) - BESIDES) + BESIDES, || {
        let (classes, mut sites) = plan(hotspot, env, jni, &counts);
        let limit = limit(
            sites.iter().flatten().map(|site| site.objects).collect(),
            MOST,
        );
        for site in sites.iter_mut().flatten() {
            let ratio = limit as f64 / site.objects.max(1) as f64;
            site.share = Share::new(ratio.min(1.0)).unwrap_or_default();
        }
        let interval = hotspot.config.sampled_allocations.unwrap_or(0);
        let seen = read(hotspot, jni, &classes, &mut sites, interval)?;
        let thread_of = |trace: TraceId| {
            let state = hotspot.lock();
            let trace = state.registry.traces.get(trace.0);
            trace.map_or(ThreadId::NONE, |trace| trace.thread)
        };
        let (rows, by_class) = rows(sites, thread_of);
        Some(Fills {
            number,
            objects: seen.objects(),
            read: seen.read,
            left_out: seen.left_out,
            by_class,
            cpu_us: u64::try_from(Clock::ThreadCpu.now() - begun).unwrap_or(0) / 1000,
            rows,
        })
    })
}

/// Which sites are read, by their numbers, and their classes.
fn plan(
    hotspot: &HotSpot,
    env: Env<Live>,
    jni: Jni,
    counts: &[u64],
) -> (Vec<Class>, Vec<Option<Site>>) {
    let mut found: FxHashMap<ClassId, Option<(Object, String, ClassOptions)>> =
        FxHashMap::default();
    let mut abouts = vec![None; counts.len()];
    for (number, about) in abouts.iter_mut().enumerate() {
        if counts[number] == 0 {
            continue;
        }
        let mut state = hotspot.lock();
        let Some(known) = state.sites.about(SiteId(number as u32)) else {
            continue;
        };
        *about = Some(known);
        found.entry(known.0).or_insert_with(|| {
            let entry = state.registry.classes.get(known.0.0)?;
            let name = java_name(&entry.info.signature);
            let mirror = jni.new_local(entry.mirror?)?;
            match state.holds_for(jni, (known.0, mirror)) {
                Chosen::Record(options) => Some((mirror, name, options)),
                Chosen::Off => None,
            }
        });
    }
    let (mut classes, mut numbers) = (Vec::new(), FxHashMap::default());
    for (id, class) in found {
        let Some((mirror, name, options)) = class else {
            continue;
        };
        // The contents of a class object do not belong to the program.
        if name == "java.lang.Class" || !(options.size || options.capacity) {
            continue;
        }
        let fields = LiveFields::new(env, jni, mirror, name);
        if fields.may_be_filled() {
            numbers.insert(id, classes.len());
            classes.push(Class { options, fields });
        }
    }
    let interval = hotspot.config.sampled_allocations.unwrap_or(0);
    let site = |(about, objects): (Option<(ClassId, TraceId, Share, u64)>, &u64)| {
        let (class, trace, share, size) = about?;
        Some(Site {
            class: *numbers.get(&class)?,
            objects: *objects,
            weight: 1.0 / (share.ratio() * chance(interval, size)),
            share: Share::ALL,
            row: SiteFill {
                class,
                trace,
                ..SiteFill::default()
            },
        })
    };
    let sites = abouts.into_iter().zip(counts).map(site).collect();
    (classes, sites)
}

/// The probability that the VM's sampler picks an object of this size: on average it chooses one byte of `interval`. 1
/// if it picks all objects, and for 0 bytes.
fn chance(interval: u64, bytes: u64) -> f64 {
    if interval == 0 || bytes == 0 {
        return 1.0;
    }
    -(-(bytes as f64) / interval as f64).exp_m1()
}

/// How many objects of each site are read, so that the total is at most `most`: all objects of sites with few of them.
fn limit(mut counts: Vec<u64>, most: u64) -> u64 {
    counts.sort_unstable();
    let (mut rest, mut sites) = (most, counts.len() as u64);
    for count in counts {
        if count > rest / sites {
            return (rest / sites).max(1);
        }
        rest -= count;
        sites -= 1;
    }
    u64::MAX
}

/// The counts of a reading.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Objects that might be read.
    met: u64,
    /// How many objects the chosen ones stand for, and how many of these could be read; the others were freed before,
    /// or are left out.
    chosen: f64,
    found: f64,
    /// Objects that were read.
    read: u64,
    /// Objects whose class is not that of their site.
    left_out: u64,
}

impl Seen {
    /// The number of objects that the sums represent: those that were read, if none was left out at random.
    fn objects(&self) -> u64 {
        let gone = (self.chosen - self.found).round() as u64;
        self.met.saturating_sub(gone).max(self.read)
    }
}

/// Reads the objects and adds them to their sites; `None` if the VM ends meanwhile.
fn read(
    hotspot: &HotSpot,
    jni: Jni,
    classes: &[Class],
    sites: &mut [Option<Site>],
    interval: u64,
) -> Option<Seen> {
    let (mut dice, mut seen, mut is_done) = (Dice::default(), Seen::default(), false);
    while !is_done {
        if hotspot.dead.load(Ordering::Relaxed) {
            return None;
        }
        jni.local_frame(PIECE as i32 * REFERENCES, || {
            let wants = |entry: Entry| {
                let site = sites.get(entry.site().0 as usize);
                let Some(site) = site.and_then(Option::as_ref) else {
                    return false;
                };
                seen.met += 1;
                let is_chosen = dice.choose(site.share);
                if is_chosen {
                    seen.chosen += 1.0 / site.share.ratio();
                }
                is_chosen
            };
            let Some(piece) = hotspot.tracked.next_chunk(jni, wants) else {
                is_done = true;
                return;
            };
            for (object, entry) in piece {
                let site = sites[entry.site().0 as usize].as_mut();
                let Some(site) = site else { continue };
                let class = &classes[site.class];
                // Two classes may share a site, and may have different fields at the same offset.
                if !class.fields.is_of(object) {
                    seen.left_out += 1;
                    continue;
                }
                seen.read += 1;
                seen.found += 1.0 / site.share.ratio();
                let weight = site.weight / site.share.ratio()
                    * f64::from(1_u32 << entry.weight_log2())
                    / chance(interval, entry.array_bytes());
                let fill = class.fields.fill(object);
                let row = &mut site.row;
                if let Some(size) = fill.size.filter(|_| class.options.size) {
                    row.size.add(size, weight);
                }
                if let Some(capacity) = fill.capacity.filter(|_| class.options.capacity) {
                    row.capacity.add(capacity, weight);
                    row.capacity_bytes.add(fill.capacity_bytes, weight);
                }
            }
        });
    }
    Some(seen)
}

/// The rows with data, by class and stack; if these are too many, by class and thread, each with one of the stacks, or
/// only by class. Also returns whether they are only by class.
fn rows(
    sites: Vec<Option<Site>>,
    thread_of: impl Fn(TraceId) -> ThreadId,
) -> (Vec<SiteFill>, bool) {
    let rows = sites.into_iter().flatten().map(|site| site.row);
    let rows = rows.filter(|row| !(row.size.is_empty() && row.capacity.is_empty()));
    let mut rows: Vec<SiteFill> = rows.collect();
    // There may be a site for each of several shares.
    merge(&mut rows);
    if rows.len() > MOST_ROWS {
        let mut of_threads = FxHashMap::default();
        for row in &mut rows {
            row.trace = *of_threads.entry(thread_of(row.trace)).or_insert(row.trace);
        }
        merge(&mut rows);
    }
    let by_class = rows.len() > MOST_ROWS;
    if by_class {
        rows.iter_mut().for_each(|row| row.trace = TraceId::EMPTY);
        merge(&mut rows);
    }
    (rows, by_class)
}

/// Merges rows with the same class and stack.
fn merge(rows: &mut Vec<SiteFill>) {
    rows.sort_unstable_by_key(|row| (row.class.0, row.trace.0));
    rows.dedup_by(|row, kept| {
        let is_same = (row.class, row.trace) == (kept.class, kept.trace);
        if is_same {
            kept.size.merge(&row.size);
            kept.capacity.merge(&row.capacity);
            kept.capacity_bytes.merge(&row.capacity_bytes);
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_have_few_are_looked_at_in_full() {
        assert_eq!(limit(vec![5, 1, 3], 9), u64::MAX);
        assert_eq!(limit(vec![], 9), u64::MAX);
        assert_eq!(limit(vec![1, 100, 2, 100], 23), 10);
        assert_eq!(limit(vec![100; 50], 23), 1, "never none of a site");
        let counts = vec![3, 70, 12, 900, 31];
        let limit = limit(counts.clone(), 100);
        let read: u64 = counts.iter().map(|count| count.min(&limit)).sum();
        assert!((97..=100).contains(&read), "{limit} {read}");
    }

    #[test]
    fn what_is_large_is_picked_for_sure_and_what_is_small_by_its_bytes() {
        assert_eq!(chance(0, 24), 1.0);
        assert_eq!(chance(1000, 0), 1.0);
        assert!((chance(1 << 20, 16) - 16.0 / f64::from(1 << 20)).abs() < 1e-9);
        assert!(chance(1000, 100_000) > 0.999_999);
    }

    /// As many sites of so many classes, each with one object of size 3 at a stack of its own.
    fn sites(count: u32, classes: u32) -> Vec<Option<Site>> {
        let site = |n: u32| {
            let mut row = SiteFill {
                class: ClassId(1 + n % classes),
                trace: TraceId(1 + n),
                ..SiteFill::default()
            };
            row.size.add(3, 1.0);
            Some(Site {
                class: 0,
                objects: 1,
                weight: 1.0,
                share: Share::ALL,
                row,
            })
        };
        (0..count).map(site).collect()
    }

    #[test]
    fn rows_of_too_many_sites_still_say_the_thread() {
        let total = |rows: &[SiteFill]| rows.iter().map(|row| row.size.sum).sum::<f64>();
        let threads = |count: u32| move |trace: TraceId| ThreadId(trace.0 % count);
        let few = MOST_ROWS as u32;
        let (all, by_class) = rows(sites(few, 5), threads(7));
        assert_eq!((all.len(), by_class), (MOST_ROWS, false));
        let (some, by_class) = rows(sites(few + 1, 5), threads(7));
        assert_eq!((some.len(), by_class), (35, false));
        assert_eq!(total(&some), f64::from(3 * (few + 1)));
        let of: std::collections::HashSet<_> = some
            .iter()
            .map(|row| (row.class, row.trace.0 % 7))
            .collect();
        assert_eq!(
            of.len(),
            35,
            "each thread of each class by a stack of its own"
        );
        let (least, by_class) = rows(sites(few + 1, 5), threads(few + 1));
        assert_eq!((least.len(), by_class), (5, true));
        assert_eq!(total(&least), f64::from(3 * (few + 1)));
        assert!(least.iter().all(|row| row.trace == TraceId::EMPTY));
    }

    #[test]
    fn who_dies_before_being_looked_at_is_not_among_the_objects() {
        let mut seen = Seen {
            met: 1000,
            chosen: 1000.0,
            found: 990.0,
            read: 990,
            left_out: 4,
        };
        assert_eq!(seen.objects(), 990, "all of them were read");
        // One of ten was read; two of these are gone.
        (seen.chosen, seen.found, seen.read) = (1000.0, 980.0, 98);
        assert_eq!(seen.objects(), 980);
    }
}
