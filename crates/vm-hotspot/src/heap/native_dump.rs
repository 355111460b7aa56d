//! Dumps that the VM's own dumper writes, and the addresses of objects in them.
//!
//! A JNI reference is a pointer to a slot, and the slot has the address of the object, which is its id in the dump.
//! Slots are read before and after the dump. An object with the same address both times was at this address in the
//! dump: otherwise it would have been moved away and back, and another object to this address and away, which takes
//! four collections. A dump with that many collections is discarded and written again. Objects whose address differs
//! are counted as moved.

use std::path::Path;
use std::sync::atomic::Ordering;

use jvmti::sys::{MethodPtr, Value};
use jvmti::{Env, Jni, Live, Object};
use vmpi::{ClassId, NativeDump, ObjectHandle, PlacedObject, ThreadId, TraceId, VmError};

use crate::alloc::tracked::Entry;
use crate::heap::slots::{Reading, address};
use crate::threads::background::collect_garbage;
use crate::vm::hotspot::HotSpot;
use crate::vm::queries::failed;

/// How often a dump is written until there are few enough collections meanwhile.
const TRIES: usize = 3;
/// The most collections during one dump: if slots are plain addresses, and with a collector that moves objects between
/// pauses, each of which is an event.
const CALM: [u64; 2] = [3, 8];

/// Writes a dump; runs Java code.
pub(crate) fn write(
    hotspot: &HotSpot,
    env: Env<Live>,
    jni: Jni,
    path: &Path,
) -> Result<NativeDump, VmError> {
    let text = path
        .to_str()
        .ok_or(VmError::Unsupported("dump to a path that is not Unicode"))?;
    let is_end = hotspot.dead.load(Ordering::SeqCst);
    let (dumper, text) = match hotspot.last_dump.get().filter(|_| is_end) {
        Some(maker) => maker.make(jni, text)?,
        None => (
            Dumper::find(jni).map_err(failed)?,
            jni.new_string(text).map_err(failed)?,
        ),
    };
    let known = Known::gather(hotspot, env, jni)?;
    for _ in 0..TRIES {
        collect_garbage(hotspot, env, jni).map_err(failed)?;
        let done = hotspot.tracked.living(jni, |entries| {
            let weak = entries.iter().map(|entry| entry.weak());
            let reading = Reading::tried(jni, weak.chain(known.mirrors()));
            let reading = reading.ok_or(VmError::Unsupported("readable references"))?;
            let began = hotspot.tracked.collections();
            let places = Places::read(jni, reading, entries, &known);
            // Objects that were made meanwhile.
            hotspot.track_all_gathered(jni);
            let new = hotspot.tracked.newcomers();
            let places_of_new = Places::read(jni, reading, &new, &Known::default());
            dumper.dump(jni, text).map_err(failed)?;
            let named_after = Places::named(jni, reading, &known);
            let sites = hotspot.keys_of_sites();
            let mut dump = NativeDump::default();
            places.join(jni, reading, entries, &sites, &mut dump);
            places_of_new.join(jni, reading, &new, &sites, &mut dump);
            // A collection that was under way at the beginning counts, and one that is under way now.
            let collections = hotspot.tracked.started().saturating_sub(began);
            if collections > CALM[usize::from(reading == Reading::Local)]
                || places.named != named_after
            {
                return Ok(None);
            }
            dump.objects = in_order(&dump.objects);
            dump.objects.dedup_by_key(|object| object.address);
            places.name(&known, &mut dump);
            Ok(Some(dump))
        })?;
        if let Some(mut dump) = done {
            dump.own.push(address(text));
            return Ok(dump);
        }
        let _ = std::fs::remove_file(path);
    }
    Err(VmError::Failed {
        function: "heap dump",
        reason: "garbage is collected all the time".to_owned(),
    })
}

/// Objects with a handle in the profile, and those of the agent.
#[derive(Default)]
struct Known {
    /// Weak references.
    classes: Vec<(Object, ClassId)>,
    /// Local references.
    loaders: Vec<(Object, ObjectHandle)>,
    /// Local references.
    threads: Vec<(Object, ThreadId)>,
    /// Local references.
    own: Vec<Object>,
}

impl Known {
    fn gather(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> Result<Self, VmError> {
        let threads = env.all_threads(jni).map_err(failed)?;
        let own = hotspot.tracker().map(|tracker| tracker.own_objects(jni));
        let mut own = own.unwrap_or_default();
        let hook = hotspot.end_hook.get().into_iter().flatten();
        own.extend(hook.filter_map(|part| jni.new_local(*part)));
        hotspot.know_classes(env, jni).map_err(failed)?;
        let tracker = hotspot.lock().registry.tracker;
        let classes = hotspot.all_classes(|registry, class| {
            let mirror = registry.classes.get(class.0)?.mirror?;
            if Some(class) == tracker {
                own.extend(jni.new_local(mirror));
                return None;
            }
            Some((mirror, class))
        });
        let loaders = hotspot.loaders(jni);
        let threads = threads.into_iter();
        let threads = threads.map(|thread| (thread, hotspot.number_of(env, thread)));
        let threads = threads.collect();
        Ok(Self {
            classes,
            loaders,
            threads,
            own,
        })
    }

    fn mirrors(&self) -> impl Iterator<Item = Object> {
        self.classes.iter().map(|(mirror, _)| *mirror)
    }
}

/// The addresses of all these objects at one moment.
struct Places {
    tracked: Vec<u64>,
    /// Classes, loaders, threads and the agent's own, in this order.
    named: Vec<u64>,
}

impl Places {
    fn read(jni: Jni, reading: Reading, entries: &[Entry], known: &Known) -> Self {
        let tracked = entries.iter().map(|entry| reading.of(jni, entry.weak()));
        Self {
            tracked: tracked.collect(),
            named: Self::named(jni, reading, known),
        }
    }

    fn named(jni: Jni, reading: Reading, known: &Known) -> Vec<u64> {
        let loaders = known.loaders.iter().map(|(loader, _)| *loader);
        let weak = known.mirrors().chain(loaders);
        let weak = weak.map(|reference| reading.of(jni, reference));
        let threads = known.threads.iter().map(|(thread, _)| *thread);
        let local = threads.chain(known.own.iter().copied()).map(address);
        weak.chain(local).collect()
    }

    /// Adds the objects whose address has not changed.
    fn join(
        &self,
        jni: Jni,
        reading: Reading,
        entries: &[Entry],
        sites: &[(ClassId, TraceId)],
        dump: &mut NativeDump,
    ) {
        dump.objects.reserve(entries.len());
        for (entry, before) in entries.iter().zip(&self.tracked) {
            let after = reading.of(jni, entry.weak());
            match sites.get((entry.site().0 as usize).wrapping_sub(1)) {
                _ if after == 0 => {} // died
                Some((class, trace)) if *before == after => dump.objects.push(PlacedObject {
                    address: after,
                    class: *class,
                    trace: *trace,
                }),
                _ => dump.moved += 1,
            }
        }
    }

    /// Adds the objects with a handle.
    fn name(self, known: &Known, dump: &mut NativeDump) {
        let mut named = self.named.into_iter();
        // Weak references to freed objects have no address.
        for ((_, class), address) in known.classes.iter().zip(named.by_ref()) {
            dump.classes
                .extend((address != 0).then_some((address, *class)));
        }
        for ((_, handle), address) in known.loaders.iter().zip(named.by_ref()) {
            dump.handles
                .extend((address != 0).then_some((address, *handle)));
        }
        for ((_, thread), address) in known.threads.iter().zip(named.by_ref()) {
            dump.threads.push((address, *thread));
        }
        dump.own = named.collect();
    }
}

/// The objects in the order of their addresses. Neighbours were mostly made in succession, so objects are distributed
/// to small parts of the heap, each of which is sorted.
fn in_order(objects: &[PlacedObject]) -> Vec<PlacedObject> {
    const PARTS_LOG2: u32 = 15;
    let addresses = || objects.iter().map(|object| object.address);
    let (Some(low), Some(high)) = (addresses().min(), addresses().max()) else {
        return Vec::new();
    };
    let bits = u64::BITS - (high - low).leading_zeros();
    let part = |address: u64| ((address - low) >> bits.saturating_sub(PARTS_LOG2)) as usize;
    let mut ends = vec![0; part(high) + 1];
    for address in addresses() {
        ends[part(address)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // The start of each part; distributing moves it to the end of the part.
        sum += std::mem::replace(end, sum);
    }
    let mut sorted = objects.to_vec();
    for object in objects {
        let end = &mut ends[part(object.address)];
        sorted[*end] = *object;
        *end += 1;
    }
    let mut begin = 0;
    for end in ends {
        sorted[begin..end].sort_unstable_by_key(|object| object.address);
        begin = end;
    }
    sorted
}

/// The Java method that makes the VM write a dump.
pub(crate) struct Dumper {
    pub(crate) bean: Object,
    pub(crate) dump: MethodPtr,
}

impl Dumper {
    /// Looks for the implementation, which needs few of the management classes; otherwise uses the public interface,
    /// which loads all of them.
    pub(crate) fn find(jni: Jni) -> jvmti::Result<Self> {
        const MODERN: [&str; 3] = [
            "com/sun/management/internal/PlatformMBeanProviderImpl",
            "com/sun/management/internal/HotSpotDiagnostic",
            "dumpHeap0",
        ];
        const HELPER: &str = "sun/management/ManagementFactoryHelper";
        const DIAGNOSTIC: &str = "sun/management/HotSpotDiagnostic";
        // In later updates of JDK 8 the method is Java code with a lambda, often the first one in the program; objects
        // of its linking would be in the dump.
        const OLD: [&str; 3] = [HELPER, DIAGNOSTIC, "dumpHeap0"];
        const OLDER: [&str; 3] = [HELPER, DIAGNOSTIC, "dumpHeap"];
        Self::direct(jni, MODERN)
            .or_else(|_| Self::direct(jni, OLD))
            .or_else(|_| Self::direct(jni, OLDER))
            .or_else(|_| Self::through_factory(jni))
    }

    /// `loader` loads the library that has the native method when it is initialised.
    fn direct(jni: Jni, [loader, class, method]: [&str; 3]) -> jvmti::Result<Self> {
        jni.find_class(loader)?;
        let class = jni.find_class(class)?;
        let dump = jni.method(class, method, "(Ljava/lang/String;Z)V")?;
        let constructor = jni.method(class, "<init>", "()V")?;
        let bean = jni.new_object(class, constructor, &[])?;
        Ok(Self { bean, dump })
    }

    fn through_factory(jni: Jni) -> jvmti::Result<Self> {
        let class = jni.find_class("com/sun/management/HotSpotDiagnosticMXBean")?;
        let factory = jni.find_class("java/lang/management/ManagementFactory")?;
        let get = jni.static_method(
            factory,
            "getPlatformMXBean",
            "(Ljava/lang/Class;)Ljava/lang/management/PlatformManagedObject;",
        )?;
        let bean = jni.call_static_object(factory, get, &[Value { l: class.raw() }])?;
        let bean = bean.ok_or(jvmti::Error::Jni("HotSpotDiagnosticMXBean"))?;
        let dump = jni.method(class, "dumpHeap", "(Ljava/lang/String;Z)V")?;
        Ok(Self { bean, dump })
    }

    /// Dumps all objects. Garbage has just been collected, so the VM does not collect again.
    fn dump(&self, jni: Jni, path: Object) -> jvmti::Result<()> {
        let arguments = [Value { l: path.raw() }, Value { z: 0 }];
        jni.call_void(self.bean, self.dump, &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_put_in_order_whatever_lies_between_them() {
        let mut noise = 7_u64;
        for (count, spread) in [
            (0, 1),
            (1, 1),
            (2, 1),
            (5000, 8),
            (5000, 1 << 20),
            (90_000, 64),
        ] {
            let objects: Vec<PlacedObject> = (0..count)
                .map(|n| {
                    noise = noise.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(11);
                    PlacedObject {
                        address: 0x7_0000_0000 + (noise >> 40) % (n + 1) * spread,
                        class: ClassId(1),
                        trace: TraceId(1),
                    }
                })
                .collect();
            let mut expected = objects.clone();
            expected.sort_by_key(|object| object.address);
            let addresses = |objects: &[PlacedObject]| -> Vec<u64> {
                objects.iter().map(|object| object.address).collect()
            };
            assert_eq!(addresses(&in_order(&objects)), addresses(&expected));
        }
    }
}
