//! Where an object is: a reference of JNI is the address of a slot that holds the
//! object's address, and the collector keeps it up to date.
//!
//! That slots are like this is tried on the spot: a weak and a local reference to
//! one object must agree. Where the collector keeps marks in the slots of weak ones
//! (ZGC) they do not, and the addresses are taken from local references.

use jvmti::{Env, Jni, Live, Object};

use crate::vm::collector::Collector;
use crate::vm::vm_structs::VmStructs;

/// Low bits of a reference distinguish local, weak and global ones.
const KIND: usize = 7;

/// The slot behind a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

impl Slot {
    pub(crate) fn of(reference: Object) -> Self {
        Self(reference.raw() as usize & !KIND)
    }

    /// What it holds: the object's address, 0 if it is dead.
    ///
    /// # Safety
    /// The reference has not been dropped, and references of this VM are slots
    /// (see [`are_addresses`]).
    pub(crate) unsafe fn read(self) -> u64 {
        // SAFETY: the caller's promise; the collector may write at the same time.
        unsafe { (self.0 as *const u64).read_volatile() }
    }
}

/// Whether slots of weak references hold addresses that can be relied upon: new
/// objects are found at the same place through a weak and a local reference, before
/// and after a collection. ZGC heals slots only when a thread uses them, so what
/// they hold may be an address that another object has by now: never there.
pub(crate) fn are_addresses(env: Env<Live>, jni: Jni, collector: Collector) -> bool {
    const TRIES: usize = 8;
    if matches!(collector, Collector::Z | Collector::Other) {
        return false;
    }
    jni.local_frame(TRIES as i32 + 4, || {
        let Ok(class) = jni.find_class("java/lang/Object") else {
            return false;
        };
        let made: Vec<(Object, Object)> = (0..TRIES)
            .filter_map(|_| {
                let object = jni.alloc_object(class).ok()?;
                Some((object, jni.weak(object)?))
            })
            .collect();
        // SAFETY: all references are held, and reading a word where a reference of
        // another kind points to is harmless: it is memory of the VM.
        let agree = || unsafe {
            made.iter().all(|(local, weak)| {
                let address = Slot::of(*weak).read();
                address != 0 && address.is_multiple_of(8) && address == Slot::of(*local).read()
            })
        };
        let before = agree();
        let collected = env.force_gc().is_ok();
        let after = agree();
        for (_, weak) in &made {
            jni.delete_weak(*weak);
        }
        made.len() == TRIES && before && collected && after
    })
}

/// The address in the slot of a reference, 0 if it is dead.
pub(crate) fn address(reference: Object) -> u64 {
    // SAFETY: HotSpot's references are pointers to slots of 8 bytes, which are mapped
    // as long as the reference exists.
    unsafe { Slot::of(reference).read() }
}

/// How addresses are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// From the slots of weak references.
    Weak,
    /// From local references made for it.
    Local,
}

impl Reading {
    /// Tries it out on some references; `None` if slots hold no addresses at all.
    pub(crate) fn tried(jni: Jni, weak: impl Iterator<Item = Object>) -> Option<Self> {
        const SOME: usize = 64;
        /// Beyond it are the marks of the ZGC of JDK 11 to 23.
        const PLAIN: u64 = 1 << 42;
        let mut reading = Self::Weak;
        for reference in weak.take(SOME) {
            let Some(local) = jni.new_local(reference) else {
                continue;
            };
            let again = jni.new_local(local);
            let (at, same) = (address(local), again.map(address));
            if reading == Self::Weak && (address(reference) != at || at >= PLAIN) {
                reading = Self::Local;
            }
            again.into_iter().for_each(|again| jni.delete_local(again));
            jni.delete_local(local);
            if at == 0 || at & 7 != 0 || same.is_some_and(|same| same != at) {
                return None;
            }
        }
        Some(reading)
    }

    /// The address of a weak reference's object, 0 if it is dead.
    pub(crate) fn of(self, jni: Jni, weak: Object) -> u64 {
        match self {
            Self::Weak => address(weak),
            Self::Local => jni.new_local(weak).map_or(0, |local| {
                let at = address(local);
                jni.delete_local(local);
                at
            }),
        }
    }
}

/// Whether the slots of weak references are null as soon as a collection that their
/// objects did not survive has ended, so that the agent need not ask the VM: with the
/// collectors that clear them in a pause. Tried on some references.
pub(crate) fn are_cleared(jni: Jni, weak: impl Iterator<Item = Object>) -> bool {
    let structs = VmStructs::load().unwrap_or_default();
    Collector::of(&structs).collects_in_vm_thread()
        && Reading::tried(jni, weak) == Some(Reading::Weak)
}
