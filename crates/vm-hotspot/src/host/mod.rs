//! HotSpot as a source of all [`VmEvent`]s: an unmodified VM reports its collections, arenas, and the allocations,
//! moves and frees of sampled objects.
//!
//! The stream is the second output of a recording, besides that of the profiler; the same callbacks and the same
//! registry serve both. Sampled objects have weak global references, whose slots are read after each collection. This
//! needs no dump, no table of tags and no additional pause. If the slots are not reliable (ZGC), ids are numbers and no
//! moves are emitted, which is reported once.
//!
//! Threads of the program add messages to a queue; one thread of the agent encodes them. Locks are taken in this order:
//! the state, `tracked`, `queue`. The VM thread takes the last two, so no thread calls the VM while it holds one of
//! these.
//!
//! Reading order: `spaces`, `slots`, `moves`, `queue`, `components`, `names`, `threads`, `stream`,
//! `sampling`, `events`, `commands`, `dumps`.
//!
//! [`VmEvent`]: vmpi::VmEvent

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jvmti::{Capability, Env, EventKind, Jni, Live, Object};
use locks::{Condvar, Mutex, Rank};
use rustc_hash::FxHashSet;
use vmpi::wire::{Answer, ArenaState, Hello, Item};
use vmpi::{
    ArenaId, BasicType, Body, Budget, EnvId, GcInfo, GcKind, ObjectAlloc, ObjectHandle, Outcome,
    Worth,
};

use crate::alloc::bound::{self, Bound};
use crate::alloc::tracked::large;
use crate::vm::beginning::largest_heap;
use crate::vm::hotspot::HotSpot;
use crate::vm::state::State;
use crate::vm::vm_structs::VmStructs;
use components::{Component, Components};
use moves::{Change, in_order};
use names::Namer;
use queue::{Collection, Message, Queue, What};
use spaces::{Moment, Spaces};
use stream::Stream;

mod commands;
mod components;
mod dumps;
mod events;
mod moves;
pub(crate) mod names;
mod queue;
pub(crate) mod sampling;
pub(crate) mod spaces;
mod stream;
mod threads;

pub use stream::Sink;

/// The most frames of a stack, because reading them takes most of the time.
const MOST_DEPTH: usize = 64;
/// The most objects that are tracked at a time; further ones are counted as dropped.
const MOST: usize = 1 << 20;
/// Memory of a tracked object: its entry and its id, in tables that may be half empty, and the VM's weak reference.
const TRACKED: u64 = (2 * size_of::<Entry>() + 3 * size_of::<u64>()) as u64 + 16;
/// If ids are numbers, the agent checks for freed objects once more this long after a collection, because such a
/// collector clears references after its last pause.
const AFTERWARDS: Duration = Duration::from_millis(250);
/// The interval of writing.
const TICK: Duration = Duration::from_millis(20);
/// Commands that are carried out before events of the program are processed again.
const AT_ONCE: usize = 64;
/// Commands that are refused when the VM ends.
const AT_THE_END: usize = 1 << 16;

/// What the agent provides when it is loaded.
pub struct HostSetup {
    /// Mean bytes between two sampled allocations.
    pub interval: u32,
    /// Frames kept of a stack, at most [`MOST_DEPTH`].
    pub depth: usize,
    /// The output of the stream.
    pub sink: Sink,
}

/// A tracked object.
#[derive(Clone, Copy)]
struct Entry {
    /// Its place in the order of allocations; the entries are in this order.
    number: u64,
    weak: Object,
    id: u64,
    arena: ArenaId,
    array: Option<BasicType>,
    /// Its bytes if it is a large array, otherwise 0.
    large: u64,
}

/// All tracked objects.
struct Tracked {
    entries: Vec<Entry>,
    /// Bytes of the large arrays among them.
    large: u64,
    /// Their ids, if ids are addresses.
    ids: FxHashSet<u64>,
    in_gc: bool,
    /// Whether a dump is about to begin; until it has begun, no object is added.
    is_held: bool,
    gc_started: Instant,
    refused: u64,
    /// Collections whose moves and frees are not recorded yet because the memory limit was reached.
    missed: u64,
    last_number: u64,
    /// How many ids for one dump were given so far.
    passing: u64,
    /// If ids are numbers: a weak reference to an unreachable object. When it is null, the references to all objects
    /// that were freed before it was made are null, too.
    sentinel: Option<Object>,
    moment: Moment,
}

/// Facts that are known when the VM is up.
struct Place {
    /// How many objects may be tracked, if each of them keeps garbage alive.
    bound: Option<Bound>,
    spaces: Spaces,
    is_address: bool,
    component: Component,
}

/// The stream of one recording.
pub(crate) struct Host {
    /// The recording that it belongs to, which has the environment, the names and the memory limit.
    core: &'static HotSpot,
    interval: u32,
    depth: usize,
    sink: Mutex<Option<Sink>>,
    place: OnceLock<Place>,
    /// Whether objects are reported now.
    is_on: AtomicBool,
    /// The sampler for VMs that do not sample.
    inserted: OnceLock<sampling::Inserted>,
    tracked: Mutex<Tracked>,
    gc_over: Condvar,
    queue: Mutex<Queue>,
    writer: OnceLock<std::thread::Thread>,
    is_stopped: AtomicBool,
    is_finished: (Mutex<bool>, Condvar),
}

impl Host {
    /// The stream of a recording that is about to begin.
    pub(crate) fn new(core: &'static HotSpot, setup: HostSetup) -> Self {
        let tracked = Tracked {
            entries: Vec::new(),
            large: 0,
            ids: FxHashSet::default(),
            in_gc: false,
            is_held: false,
            gc_started: core.started,
            refused: 0,
            missed: 0,
            last_number: 0,
            passing: 0,
            sentinel: None,
            moment: Moment::Whole,
        };
        Self {
            core,
            interval: setup.interval,
            depth: setup.depth.min(MOST_DEPTH),
            sink: Mutex::new(Rank::EventSink, Some(setup.sink)),
            place: OnceLock::new(),
            is_on: AtomicBool::new(true),
            inserted: OnceLock::new(),
            tracked: Mutex::new(Rank::EventObjects, tracked),
            gc_over: Condvar::new(),
            queue: Mutex::new(Rank::EventQueue, Queue::default()),
            writer: OnceLock::new(),
            is_stopped: AtomicBool::new(false),
            is_finished: (Mutex::new(Rank::EventEnd, false), Condvar::new()),
        }
    }

    /// Mean bytes between two reported objects.
    pub(crate) fn interval(&self) -> u64 {
        u64::from(self.interval)
    }

    /// The memory limit.
    fn memory(&self) -> &Budget {
        &self.core.memory.native
    }

    fn message(&self, text: &str) {
        (self.core.message)(text);
    }

    /// Reports why the stream has ended before the program.
    fn report_end(&self, fault: Option<String>) {
        if let Some(fault) = fault {
            self.message(&format!("the stream of events ends here: {fault}"));
        }
    }

    /// Access to names while the state is locked.
    fn with_names<T>(&self, here: (Env<Live>, Jni), body: impl FnOnce(&mut Namer<'_>) -> T) -> T {
        self.with_names_of(here, None, body)
    }

    /// The same, if a class may be new.
    fn with_names_of<T>(
        &self,
        (env, jni): (Env<Live>, Jni),
        class: Option<Object>,
        body: impl FnOnce(&mut Namer<'_>) -> T,
    ) -> T {
        let component = self.place.get().map(|place| place.component);
        let is_new = |class: &Object| {
            let known = self.core.known_class(*class);
            known.is_none_or(|known| !self.core.lock().stream.knows(known))
        };
        let components = match component {
            Some(component) if component.is_field() => component.of((env, jni), None),
            Some(component) => component.of((env, jni), class.filter(is_new)),
            None => Components::Known(Vec::new()),
        };
        let mut emit = |env, item| self.item(env, item);
        let mut state = self.core.lock();
        let State {
            registry, stream, ..
        } = &mut *state;
        let result = body(&mut Namer {
            env,
            jni,
            registry,
            names: stream,
            components: &components,
            emit: &mut emit,
        });
        drop(state);
        components.drop_locals(jni);
        result
    }

    fn push(&self, env: EnvId, what: What) {
        let message = Message {
            at: Instant::now(),
            env,
            what,
        };
        self.queue.lock().push(message, self.memory());
    }

    /// Removes all messages from the queue.
    fn queued(&self) -> Vec<Message> {
        self.queue.lock().take(Vec::new(), self.memory())
    }

    /// Charges memory for one more tracked object and its event; without memory it counts the object as dropped and
    /// returns false. Called before the object's class and stack are recorded, so that a dropped object adds no names.
    fn has_room(&self) -> bool {
        let has_room = self.memory().take(Worth::Objects, TRACKED + What::ALLOC);
        if !has_room {
            self.tracked.lock().refused += 1;
        }
        has_room
    }

    /// Gives back the memory of an object that is not tracked after all.
    fn leave_room(&self) {
        self.memory().give(Worth::Objects, TRACKED + What::ALLOC);
    }

    fn item(&self, env: EnvId, item: Item) {
        self.push(env, What::Item(Box::new(item)));
    }

    fn is_writer(&self) -> bool {
        let writer = self.writer.get();
        writer.is_some_and(|writer| writer.id() == std::thread::current().id())
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// An object was sampled: it gets its id, and is tracked.
    fn track(&self, env: EnvId, weak: Object, alloc: ObjectAlloc, place: &Place) -> bool {
        let mut tracked = self.tracked.lock();
        while tracked.in_gc || tracked.is_held && !self.is_writer() {
            // This thread cannot continue before the pause is over anyway.
            tracked = self.gc_over.wait_timeout(tracked, Duration::from_secs(1));
        }
        let large = large(alloc.array.map_or(0, |_| alloc.size));
        let with_it = (tracked.entries.len() + 1, tracked.large + large);
        let is_within = |bound: Bound| bound.includes(with_it);
        if with_it.0 > MOST || !place.bound.is_none_or(is_within) {
            tracked.refused += 1;
            return false;
        }
        tracked.last_number += 1;
        let number = tracked.last_number;
        let (id, arena) = if place.is_address {
            // SAFETY: the reference is the caller's, and slots were tested.
            let address = unsafe { crate::heap::slots::Slot::of(weak).read() };
            if address == 0 || !tracked.ids.insert(address) {
                // A freed object may have had this place, if a collection was left out. Otherwise it is the same object:
                // inserted code has reported it, and then the VM that made it.
                tracked.refused += u64::from(address == 0 || tracked.missed > 0);
                return false;
            }
            (address, tracked.moment.arena(address))
        } else {
            (number * 8, spaces::arena::HEAP)
        };
        tracked.entries.push(Entry {
            number,
            weak,
            id,
            arena,
            array: alloc.array,
            large,
        });
        tracked.large += large;
        let alloc = ObjectAlloc {
            object: ObjectHandle(id),
            arena,
            ..alloc
        };
        self.push(env, What::Alloc(alloc));
        true
    }

    /// Compares every slot with the reported address. Called by the VM thread in the pause.
    fn look(&self, tracked: &mut Tracked, place: &Place) -> (Vec<Change>, Vec<Object>) {
        let (mut changes, mut dead) = (Vec::new(), Vec::new());
        if !place.is_address {
            return (changes, dead);
        }
        let moment = tracked.moment.clone();
        let mut gone = 0;
        tracked.entries.retain_mut(|entry| {
            // SAFETY: references of entries are dropped after they have left the list.
            let to = unsafe { crate::heap::slots::Slot::of(entry.weak).read() };
            let new_arena = moment.arena(to);
            if to == entry.id && new_arena == entry.arena {
                return true;
            }
            changes.push(Change {
                from: entry.id,
                arena: entry.arena,
                to,
                new_arena,
            });
            (entry.id, entry.arena) = (to, new_arena);
            if to == 0 {
                dead.push(entry.weak);
                gone += entry.large;
            }
            to != 0
        });
        tracked.large -= gone;
        for change in &changes {
            tracked.ids.remove(&change.from);
        }
        tracked
            .ids
            .extend(changes.iter().map(|c| c.to).filter(|to| *to != 0));
        (changes, dead)
    }

    /// If ids are numbers: the freed objects, which the writer finds by calling the VM. Objects made after the one with
    /// the id `reported` are not in the stream yet.
    fn ask(&self, jni: Jni, reported: u64) -> (Vec<Change>, Vec<Object>) {
        let entries = std::mem::take(&mut self.tracked.lock().entries);
        let (gone, mut left): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| entry.id <= reported && jni.is_dead(entry.weak));
        let mut tracked = self.tracked.lock();
        left.append(&mut tracked.entries);
        tracked.entries = left;
        tracked.large -= gone.iter().map(|entry| entry.large).sum::<u64>();
        drop(tracked);
        let change = |entry: &Entry| Change {
            from: entry.id,
            arena: entry.arena,
            to: 0,
            new_arena: entry.arena,
        };
        let changes = gone.iter().map(change).collect();
        (changes, gone.into_iter().map(|entry| entry.weak).collect())
    }

    /// One collection as events.
    fn emit_gc(&self, stream: &mut Stream, jni: Jni, at: Instant, gc: Collection) {
        let has_numbers = self.place.get().is_some_and(|place| !place.is_address);
        let kind = match has_numbers && self.has_cleared(jni) {
            true => GcKind::Full,
            false => GcKind::Unknown,
        };
        self.emit_gc_as(stream, jni, at, gc, kind);
    }

    fn emit_gc_as(
        &self,
        stream: &mut Stream,
        jni: Jni,
        at: Instant,
        mut gc: Collection,
        kind: GcKind,
    ) {
        const NO_ENV: EnvId = EnvId(0);
        if kind == GcKind::Full {
            (gc.changes, gc.dead) = self.ask(jni, stream.last_allocation);
        }
        stream.event(gc.started, NO_ENV, Body::GcStart { kind });
        for body in in_order(&gc.changes) {
            stream.event(at, NO_ENV, body);
        }
        stream.states(at, &gc.states);
        let sum = |of: fn(&ArenaState) -> u64| gc.states.iter().map(of).sum();
        let info = GcInfo {
            // Only sampled objects are known individually.
            used_objects: 0,
            used_space: sum(|state| state.used),
            total_space: sum(|state| state.capacity),
        };
        stream.event(at, NO_ENV, Body::GcFinish(info));
        stream.lost(at, vmpi::EventKind::ObjectAlloc, gc.refused);
        stream.lost(at, vmpi::EventKind::GcFinish, gc.missed);
        self.memory()
            .give(Worth::Objects, TRACKED * gc.dead.len() as u64);
        for weak in gc.dead {
            jni.delete_weak(weak);
        }
    }

    /// Whether the collector has cleared the weak references of freed objects since the last call. ZGC does this in
    /// collections of the whole heap, after their last event.
    fn has_cleared(&self, jni: Jni) -> bool {
        let before = self.tracked.lock().sentinel;
        if before.is_some_and(|weak| !jni.is_dead(weak)) {
            return false;
        }
        before.into_iter().for_each(|weak| jni.delete_weak(weak));
        let made = jni.local_frame(4, || {
            let class = jni.find_class("java/lang/Object").ok()?;
            jni.weak(jni.alloc_object(class).ok()?)
        });
        self.tracked.lock().sentinel = made;
        before.is_some()
    }

    /// Reports a collection whose freed objects were found after its events.
    fn emit_late_deaths(&self, stream: &mut Stream, jni: Jni) {
        let at = Instant::now();
        let gc = Collection {
            started: at,
            changes: Vec::new(),
            dead: Vec::new(),
            states: Vec::new(),
            refused: 0,
            missed: 0,
        };
        if self.has_cleared(jni) {
            self.emit_gc_as(stream, jni, at, gc, GcKind::Full);
        }
    }

    /// Records how many objects and collections were dropped since the last collection that was reported.
    fn emit_left_out(&self, stream: &mut Stream) {
        let mut tracked = self.tracked.lock();
        let refused = std::mem::take(&mut tracked.refused);
        let missed = std::mem::take(&mut tracked.missed);
        drop(tracked);
        let at = Instant::now();
        stream.lost(at, vmpi::EventKind::ObjectAlloc, refused);
        stream.lost(at, vmpi::EventKind::GcFinish, missed);
    }

    /// Encodes all messages so far; returns whether a collection was among them.
    fn drain(&self, stream: &mut Stream, jni: Jni) -> bool {
        // The new queue gets the capacity that was needed, so that threads of the program do not allocate it.
        let room = Vec::with_capacity(self.queue.lock().len());
        let messages = self.queue.lock().take(room, self.memory());
        self.emit_all(messages, stream, jni, true)
    }

    /// Encodes messages; returns whether a collection was among them. If ids are numbers, freed objects are found by
    /// calling the VM: now if requested, otherwise at the next collection.
    fn emit_all(
        &self,
        messages: Vec<Message>,
        stream: &mut Stream,
        jni: Jni,
        finds_deaths: bool,
    ) -> bool {
        let is_gc = |message: &Message| matches!(message.what, What::Gc(_));
        let has_collected = messages.iter().any(is_gc);
        for message in messages {
            stream::get_on();
            match message.what {
                What::Item(item) => stream.item(message.at, message.env, &item),
                What::Alloc(alloc) => {
                    stream.last_allocation = alloc.object.0;
                    stream.event(message.at, message.env, Body::ObjectAlloc(alloc));
                }
                What::Gc(gc) if finds_deaths => self.emit_gc(stream, jni, message.at, *gc),
                What::Gc(gc) => self.emit_gc_as(stream, jni, message.at, *gc, GcKind::Unknown),
                What::ClassGone(class) => {
                    let is_known = {
                        let mut state = self.core.lock();
                        let State {
                            registry, stream, ..
                        } = &mut *state;
                        stream.class_gone(registry, class)
                    };
                    if is_known {
                        let class = names::id_of(class);
                        stream.event(message.at, EnvId(0), Body::ClassUnload { class });
                    }
                }
            }
        }
        has_collected
    }

    /// The writer, until the VM ends.
    fn write(&self, env: Env<Live>, jni: Jni, mut stream: Stream) {
        let _ = self.writer.set(std::thread::current());
        let has_numbers = self.place.get().is_some_and(|place| !place.is_address);
        let mut ask_at: Option<Instant> = None;
        let mut is_short = false;
        loop {
            let is_last = self.is_stopped.load(Ordering::SeqCst);
            let mut has_collected = self.drain(&mut stream, jni);
            // Closing a socket with unread data loses the data that was written last.
            let most = if is_last { AT_THE_END } else { AT_ONCE };
            for _ in 0..most {
                let Some(asked) = stream.asked(is_last) else {
                    break;
                };
                // A VM that ends may wait for ever for the end of a collection.
                if self.is_stopped.load(Ordering::SeqCst) {
                    stream.answer(Answer {
                        serial: asked.serial,
                        outcome: Outcome::Fail,
                    });
                } else {
                    has_collected |= self.answer(env, jni, &mut stream, asked);
                }
            }
            if has_collected && has_numbers {
                ask_at = Some(Instant::now() + AFTERWARDS);
            }
            if ask_at.is_some_and(|at| is_last || at <= Instant::now()) {
                ask_at = None;
                self.emit_late_deaths(&mut stream, jni);
            }
            if is_last {
                self.emit_left_out(&mut stream);
            }
            stream.write();
            self.report_end(stream.fault());
            if !is_short && self.memory().refused() > 0 {
                is_short = true;
                self.message(
                    "memory= is reached: the stream of events drops and counts some objects and collections, and some stacks are empty",
                );
            }
            if is_last {
                break;
            }
            std::thread::park_timeout(TICK);
        }
        self.report_end(stream.finish());
        *self.is_finished.0.lock() = true;
        self.is_finished.1.notify_all();
    }

    /// Determines what this VM supports, and starts the writer. `at_start`: the program has not begun.
    pub(crate) fn begin(
        &'static self,
        env: Env<Live>,
        jni: Jni,
        at_start: bool,
    ) -> jvmti::Result<()> {
        let structs = VmStructs::load().unwrap_or_default();
        let collector = self.core.collector();
        let spaces = Spaces::find(&structs, collector);
        let is_address = crate::heap::slots::are_addresses(env, jni, collector);
        if !is_address {
            self.message(&format!(
                "{}: objects have numbers instead of addresses, so no moves are reported",
                collector.name()
            ));
        }
        let property = |key: &str| env.system_property(key).unwrap_or_default();
        let hello = Hello {
            stable_ids: !is_address,
            full_gc_frees: !is_address,
            sample_interval: u64::from(self.interval),
            pid: std::process::id(),
            vm: format!(
                "{} {}",
                property("java.vm.name"),
                property("java.vm.version")
            ),
            collector: collector.name().to_owned(),
            ..Hello::default()
        };
        self.tracked.lock().moment = spaces.now();
        for (arena, name) in spaces.arenas() {
            let name = name.to_owned();
            self.item(EnvId(0), Item::event(Body::ArenaNew { arena, name }));
        }
        for state in spaces.states() {
            self.item(EnvId(0), Item::ArenaState(state));
        }
        self.item(EnvId(0), Item::event(Body::JvmInitDone));
        let bound = bound::is_needed(env)
            .then(|| Bound::of_samples(largest_heap(jni), u64::from(self.interval)));
        let _ = self.place.set(Place {
            bound,
            spaces,
            is_address,
            component: Component::find(jni)?,
        });
        if !is_address {
            self.has_cleared(jni);
        }
        let sink = self.sink.lock().take().ok_or(jvmti::Error::Jni("sink"))?;
        let stream = Stream::new(&hello, sink, self.core.started, self.memory().limit());
        let body = move |env: Env<Live>, jni: Jni| self.write(env, jni, stream);
        self.core.spawn(env, jni, "VMPI writer", body)?;
        for event in [
            EventKind::GarbageCollectionStart,
            EventKind::GarbageCollectionFinish,
        ] {
            self.core.env.enable(event, true)?;
        }
        if self.core.samples_allocations() {
            self.core.env.enable(EventKind::SampledObjectAlloc, true)?;
            if at_start && self.interval == 0 {
                // Up to JDK 21, a thread allocates without events in the buffer that it has. A collection retires the
                // buffers.
                env.force_gc()?;
            }
        } else if self.core.granted.has(Capability::RetransformClasses) {
            self.begin_sampling(env, jni)?;
        } else {
            self.message(
                "objects are not reported: this VM neither samples them nor changes classes",
            );
        }
        Ok(())
    }

    /// The recording has ended and the program continues: releases its objects.
    pub(crate) fn release(&self, jni: Jni) {
        let entries = {
            let mut tracked = self.tracked.lock();
            tracked.ids = FxHashSet::default();
            std::mem::take(&mut tracked.entries)
        };
        drop(self.queued());
        self.memory()
            .give(Worth::Objects, TRACKED * entries.len() as u64);
        let sentinel = self.tracked.lock().sentinel.take();
        let weak = entries.into_iter().map(|entry| entry.weak).chain(sentinel);
        weak.for_each(|weak| jni.delete_weak(weak));
    }
}
