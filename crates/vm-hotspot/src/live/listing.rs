//! The tracked live objects of a class, for users who examine the program. A thread of the agent lists them, so that
//! the requesting thread does not wait.

use jvmti::{Env, Jni, Live, Object};
use locks::{Mutex, Rank};
use rustc_hash::FxHashMap;
use vmpi::content::Fill;
use vmpi::info::java_name;
use vmpi::instances::{ListedClass, ListedObject, MOST};
use vmpi::{ClassId, Event, FairSample, InstanceQuery, Listing, TraceId};

use crate::alloc::allocation_times::{Dated, keep_allocation_times};
use crate::alloc::choices::Chosen;
use crate::live::fields::{LiveFields, is_of};
use crate::live::own_answers;
use crate::threads::worker::Place;
use crate::vm::config::Track;
use crate::vm::hotspot::HotSpot;

/// The most requests that may wait.
const MOST_WAITING: usize = 8;
/// Local references in addition to those of the objects.
const BESIDES: usize = 256;

/// A chosen object: a reference, its site, and its allocation time by the agent's clock.
type Found = (Object, u32, u32);

/// The classes of a name, each with its mirror; and which sites are theirs: which of them, and where.
struct Classes {
    mirrors: Vec<(ClassId, Object)>,
    sites: FxHashMap<u32, (u32, TraceId)>,
}

impl HotSpot {
    /// Lists objects in the background; the answer is emitted as an event.
    pub(crate) fn list(&self, env: Env<Live>, jni: Jni, query: InstanceQuery) -> jvmti::Result<()> {
        static LISTER: Place = Mutex::new(Rank::Worker, None);
        let worker = self.worker(&LISTER, (env, jni), "HPROF instances")?;
        if worker.waiting() >= MOST_WAITING {
            return Err(jvmti::Error::Jni("too many questions"));
        }
        let hotspot = self.forever();
        worker.give(move |env, jni| {
            let listing = list(hotspot, env, jni, &query);
            hotspot.emit(&Event::Instances(&listing));
        });
        Ok(())
    }

    /// Starts or stops recording allocation times.
    pub(crate) fn keep_allocation_times(&self, env: Env<Live>, jni: Jni, wanted: bool) {
        self.tracked.clock.switch(wanted);
        // In the other cases objects are never pending, and are known immediately.
        if !wanted || self.config.track != Track::Every {
            return;
        }
        let mut is_kept = self.tracked.clock.is_kept.lock();
        if !*is_kept {
            let hotspot = self.forever();
            let keep = move |_, jni| keep_allocation_times(hotspot, jni);
            *is_kept = self.spawn(env, jni, "HPROF allocation times", keep).is_ok();
        }
    }

    /// The classes of a name that are loaded.
    fn classes_named(&self, jni: Jni, name: &str) -> Classes {
        let mirrors: Vec<(ClassId, Object)> = self.all_classes(|registry, class| {
            let entry = registry.classes.get(class.0)?;
            if java_name(&entry.info.signature) != name {
                return None;
            }
            // Its weak reference is dropped under the lock when the class was unloaded.
            Some((class, jni.new_local(entry.mirror?)?))
        });
        let which = |class: ClassId| mirrors.iter().position(|(one, _)| *one == class);
        let keys = self.keys_of_sites();
        let sites = keys
            .iter()
            .zip(1..)
            .filter_map(|((class, trace), site)| Some((site, (which(*class)? as u32, *trace))));
        Classes {
            sites: sites.collect(),
            mirrors,
        }
    }
}

impl Classes {
    /// Removes objects that belong to none of the classes, because two classes may share a site; returns how many.
    fn leave_out(&self, jni: Jni, found: &mut Vec<Found>) -> usize {
        let before = found.len();
        found.retain(|(object, site, _)| {
            let class = self.sites.get(site);
            let mirror = class.and_then(|(class, _)| self.mirrors.get(*class as usize));
            mirror.is_some_and(|(_, mirror)| is_of(jni, *object, *mirror))
        });
        before - found.len()
    }
}

/// The answer to a request.
fn list(hotspot: &HotSpot, env: Env<Live>, jni: Jni, query: &InstanceQuery) -> Listing {
    let mut listing = Listing {
        number: query.number,
        own_code: own_answers::is_allowed(),
        ..Listing::default()
    };
    hotspot.track_all_gathered(jni);
    let most = query.sample.min(MOST) as usize;
    jni.local_frame((most + BESIDES) as i32, || {
        let classes = hotspot.classes_named(jni, &query.class);
        listing.classes = classes
            .mirrors
            .iter()
            .map(|class| describe(hotspot, jni, *class))
            .collect();
        let is_asked = |site: u32| classes.sites.contains_key(&site);
        let (objects, mut found) = hotspot
            .tracked
            .living(jni, |all| sample(jni, all, (most, query.number), is_asked));
        listing.objects = objects;
        let left_out = classes.leave_out(jni, &mut found);
        if left_out > 0 {
            listing.objects = objects.saturating_sub(left_out as u64);
            listing.notes.push(format!(
                "{left_out} objects of other classes that were counted as these are left out"
            ));
        }
        listing.rows = rows(hotspot, (env, jni), &query.class, &classes, &found);
        for row in &mut listing.rows {
            let options = listing.classes.get(row.class as usize);
            let keeps_time = options
                .and_then(|class| class.options)
                .is_none_or(|o| o.time);
            if !keeps_time {
                row.born_ms = 0;
            }
        }
        if query.ask != 0 {
            let objects: Vec<Object> = found.iter().map(|(object, ..)| *object).collect();
            match own_answers::ask(hotspot, (env, jni), &objects, query) {
                Ok((answer, notes)) => {
                    listing.notes.extend(notes);
                    for (row, answer) in listing.rows.iter_mut().zip(answer) {
                        row.answer = answer;
                    }
                }
                Err(error) => listing
                    .notes
                    .push(format!("objects were not asked: {error}")),
            }
        }
    });
    listing
}

fn describe(hotspot: &HotSpot, jni: Jni, class: (ClassId, Object)) -> ListedClass {
    let loader = crate::vm::places::place(hotspot, class.0).map(|place| place.loader);
    let options = match hotspot.lock().holds_for(jni, class) {
        Chosen::Off => None,
        Chosen::Record(options) => Some(options),
    };
    ListedClass {
        loader: loader.unwrap_or_default(),
        options,
    }
}

/// The number of live objects of these sites, and a uniform random sample of them.
fn sample(
    jni: Jni,
    all: &Dated,
    (most, seed): (usize, u32),
    is_asked: impl Fn(u32) -> bool,
) -> (u64, Vec<Found>) {
    let mut chosen = FairSample::new(most, seed);
    for (index, entry) in all.iter().enumerate() {
        if is_asked(entry.site().0) {
            chosen.add(index);
        }
    }
    let (seen, mut chosen) = chosen.done();
    chosen.sort_unstable();
    let found = |index: usize| {
        let entry = all[index];
        let object = jni.new_local(entry.weak())?;
        Some((object, entry.site().0, all.time(index)))
    };
    (seen, chosen.into_iter().filter_map(found).collect())
}

/// What is known of each object without calling its methods.
fn rows(
    hotspot: &HotSpot,
    (env, jni): (Env<Live>, Jni),
    name: &str,
    classes: &Classes,
    found: &[Found],
) -> Vec<ListedObject> {
    let readers: Vec<LiveFields> = classes
        .mirrors
        .iter()
        .map(|(_, mirror)| LiveFields::new(env, jni, *mirror, name.to_owned()))
        .collect();
    let row = |(object, site, time): &Found| {
        let (class, trace) = classes.sites.get(site).copied().unwrap_or_default();
        // An object may refer to many others; the frame deletes the local references.
        let fill = jni.local_frame(16, || {
            let reader = readers.get(class as usize);
            reader.map_or(Fill::default(), |reader| reader.fill(*object))
        });
        ListedObject {
            class,
            trace,
            born_ms: hotspot.tracked.clock.unix_ms(*time),
            identity: env.object_hash(*object).unwrap_or(0),
            fill,
            ..ListedObject::default()
        }
    };
    found.iter().map(row).collect()
}
