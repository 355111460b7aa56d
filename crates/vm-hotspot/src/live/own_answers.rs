//! Calls `toString`, `hashCode`, `equals` and `compareTo` of objects, on a thread of the agent, while the agent holds
//! no lock. A thread whose call does not return is abandoned; while two threads are abandoned, nothing more is called.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jvmti::sys::Value;
use jvmti::{Env, Jni, Live, Object};
use locks::{Mutex, Rank};
use vmpi::InstanceQuery;
use vmpi::instances::{EQUAL, HASH, ORDER, OwnAnswer};

use crate::live::own_code::helper;
use crate::threads::worker::Place;
use crate::vm::hotspot::HotSpot;

/// A call that takes longer is treated as one that does not return.
const CALL: Duration = Duration::from_secs(2);
/// Time limit of all calls of one request.
const ALL: Duration = Duration::from_secs(10);
/// The most abandoned threads at a time.
const MOST_LEFT: usize = 2;
/// Time between two checks whether the calls are done.
const STEP: Duration = Duration::from_millis(2);

/// Whether code of the program may be run for this.
static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
/// Number of abandoned threads whose call has not returned.
static LEFT: AtomicUsize = AtomicUsize::new(0);
/// The thread that makes the calls.
static ASKER: Place = Mutex::new(Rank::Worker, None);

/// Allows or forbids running code of the program.
pub(crate) fn allow(on: bool) {
    IS_ALLOWED.store(on, Ordering::SeqCst);
}

/// Whether running code of the program is allowed.
pub(crate) fn is_allowed() -> bool {
    IS_ALLOWED.load(Ordering::SeqCst)
}

/// The state of a request, by which the calling thread and the waiting one agree.
#[derive(Default)]
struct Standing(AtomicU8);

impl Standing {
    const DONE: u8 = 1;
    const LEFT: u8 = 2;

    fn is_done(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::DONE
    }

    /// Stops waiting; false if the calls are done meanwhile.
    fn leave(&self) -> bool {
        LEFT.fetch_add(1, Ordering::SeqCst);
        let was = self.0.swap(Self::LEFT, Ordering::SeqCst);
        if was == Self::DONE {
            self.0.store(Self::DONE, Ordering::SeqCst);
            LEFT.fetch_sub(1, Ordering::SeqCst);
        }
        was != Self::DONE
    }
}

/// Dropped when the calls have returned, or will never begin.
struct Back(Arc<Standing>);

impl Drop for Back {
    fn drop(&mut self) {
        let standing = &self.0.0;
        if standing.swap(Standing::DONE, Ordering::SeqCst) == Standing::LEFT {
            LEFT.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The results of the objects, one for each, and notes about them.
pub(crate) fn ask(
    hotspot: &HotSpot,
    (env, jni): (Env<Live>, Jni),
    objects: &[Object],
    query: &InstanceQuery,
) -> jvmti::Result<(Vec<OwnAnswer>, Vec<String>)> {
    let mut notes = Vec::new();
    let mut may_run = is_allowed();
    if may_run && LEFT.load(Ordering::SeqCst) >= MOST_LEFT {
        may_run = false;
        notes.push(format!(
            "{MOST_LEFT} calls into the program have not returned; none is made until they do"
        ));
    }
    let asked = Asked::new(jni, objects, query, may_run)?;
    if may_run {
        if let Some(note) = asked.run_elsewhere(hotspot, env, &query.class)? {
            notes.push(note);
        }
    } else {
        asked.run()?;
    }
    Ok((asked.answers()?, notes))
}

/// An `HprofAsk` and the objects that it asks.
struct Asked {
    jni: Jni,
    class: Object,
    asker: Object,
    objects: Object,
    count: usize,
}

impl Asked {
    fn new(jni: Jni, objects: &[Object], query: &InstanceQuery, own: bool) -> jvmti::Result<Self> {
        let class = helper(jni)?;
        let class = jni.new_local(class).ok_or(jvmti::Error::Jni("HprofAsk"))?;
        let array = jni.new_objects(objects.len(), jni.find_class("java/lang/Object")?, None)?;
        for (index, object) in objects.iter().enumerate() {
            jni.array_set(array, index, Some(*object));
        }
        let constructor = jni.method(class, "<init>", "([Ljava/lang/Object;III)V")?;
        let number = |number: i32| Value { i: number };
        let arguments = [
            Value { l: array.raw() },
            number(i32::from(own)),
            number(i32::from(query.ask)),
            number(query.text_limit.min(1 << 20).cast_signed()),
        ];
        Ok(Self {
            jni,
            class,
            asker: jni.new_object(class, constructor, &arguments)?,
            objects: array,
            count: objects.len(),
        })
    }

    /// On this thread: only methods that always return.
    fn run(&self) -> jvmti::Result<()> {
        let run = self.jni.method(self.class, "run", "()V")?;
        self.jni.call_void(self.asker, run, &[])
    }

    /// On the separate thread, with a time limit; returns notes about that.
    fn run_elsewhere(
        &self,
        hotspot: &HotSpot,
        env: Env<Live>,
        class: &str,
    ) -> jvmti::Result<Option<String>> {
        let jni = self.jni;
        let worker = hotspot.worker(&ASKER, (env, jni), "HPROF own code")?;
        let standing = Arc::new(Standing::default());
        let run = jni.method(self.class, "run", "()V")?;
        let (weak, own) = (jni.new_weak(self.asker)?, Back(Arc::clone(&standing)));
        worker.give(move |_, jni| {
            let _own = own;
            // The asker is gone if no thread waits any longer.
            if let Some(asker) = jni.new_local(weak) {
                let _ = jni.call_void(asker, run, &[]);
            }
            jni.delete_weak(weak);
        });
        let note = self.wait(hotspot, &standing)?;
        if note.is_some() && !standing.is_done() && standing.leave() {
            *ASKER.lock() = None;
            worker.dismiss();
            // The thread may still hold the objects of its present call.
            for index in 0..self.count {
                jni.array_set(self.objects, index, None);
            }
        }
        Ok(note.map(|note| format!("{class}: {note}")))
    }

    fn wait(&self, hotspot: &HotSpot, standing: &Standing) -> jvmti::Result<Option<String>> {
        let jni = self.jni;
        let int = |name: &str| jni.field(self.class, name, "I");
        let (calls, stop) = (int("calls")?, int("stop")?);
        let begun = Instant::now();
        let (mut last, mut since) = (0, begun);
        let mut note = None;
        while !standing.is_done() && !hotspot.dead.load(Ordering::Relaxed) {
            std::thread::sleep(STEP);
            let now = jni.get_int(self.asker, calls);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if begun.elapsed() > ALL && note.is_none() {
                jni.set_int(self.asker, stop, 1);
                note = Some(format!(
                    "not all was asked within {} seconds",
                    ALL.as_secs()
                ));
            }
            // The thread may be slow to start.
            let patience = if now == 0 { ALL + CALL } else { CALL };
            if since.elapsed() > patience {
                jni.set_int(self.asker, stop, 1);
                let what = jni.get_int(self.asker, int("what")?);
                let method = match u8::try_from(what).unwrap_or(0) {
                    HASH => "hashCode",
                    EQUAL => "equals",
                    ORDER => "compareTo",
                    _ => "toString",
                };
                return Ok(Some(format!(
                    "{method} of an object does not return; its thread is left, and nothing more was asked"
                )));
            }
        }
        Ok(note)
    }

    fn array(&self, name: &str, descriptor: &str) -> jvmti::Result<Object> {
        let field = self.jni.field(self.class, name, descriptor)?;
        let array = self.jni.get_object(self.asker, field);
        array.ok_or(jvmti::Error::Jni("HprofAsk"))
    }

    fn ints(&self, name: &str) -> jvmti::Result<Vec<i32>> {
        let mut numbers = vec![0; self.count];
        self.jni.ints(self.array(name, "[I")?, 0, &mut numbers);
        Ok(numbers)
    }

    fn texts(&self, name: &str) -> jvmti::Result<Vec<Option<String>>> {
        let (jni, array) = (self.jni, self.array(name, "[Ljava/lang/Object;")?);
        let text = |index| {
            let text = jni.array_get(array, index)?;
            let read = jni.string(text).ok();
            jni.delete_local(text);
            read
        };
        Ok((0..self.count).map(text).collect())
    }

    /// The results so far.
    fn answers(&self) -> jvmti::Result<Vec<OwnAnswer>> {
        let (hashed, hashes) = (self.ints("hashed")?, self.ints("hashes")?);
        let (groups, ranks) = (self.ints("groups")?, self.ints("ranks")?);
        let texts = self.texts("texts")?.into_iter().zip(self.texts("faults")?);
        let number = |number: i32| u32::try_from(number).unwrap_or(0);
        let answer = |(index, (text, fault))| OwnAnswer {
            hash: (hashed[index] != 0).then_some(hashes[index]),
            text,
            group: number(groups[index]),
            rank: number(ranks[index]),
            fault,
        };
        Ok(texts.enumerate().map(answer).collect())
    }
}
