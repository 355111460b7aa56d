//! Addresses of objects: a JNI reference is the address of a slot that has the object's address, which the collector
//! keeps up to date.
//!
//! This is tested at run time: a weak and a local reference to one object must agree. If the collector keeps marks in
//! the slots of weak references (ZGC), they do not agree, and addresses are read from local references.

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

    /// The object's address; 0 if it was freed.
    ///
    /// # Safety
    /// The reference has not been dropped, and references of this VM are slots
    /// (see [`are_addresses`]).
    pub(crate) unsafe fn read(self) -> u64 {
        // SAFETY: the caller's promise; the collector may write at the same time.
        unsafe { (self.0 as *const u64).read_volatile() }
    }
}

/// Whether slots of weak references have reliable addresses: those of a weak and a local reference to a new object must
/// agree, before and after a collection. Never with ZGC, which updates slots only when a thread uses them, so that
/// another object may have the address.
pub(crate) fn are_addresses(env: Env<Live>, jni: Jni, collector: Collector) -> bool {
    const TRIES: usize = 8;
    if matches!(collector, Collector::Z | Collector::Cms | Collector::Other) {
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

/// The address in the slot of a reference; 0 if the object was freed.
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
    /// Tests some references; `None` if slots do not have addresses.
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

    /// The address of a weak reference's object; 0 if it was freed.
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

/// Whether the slots of weak references to freed objects are null as soon as the collection has ended, so that the
/// agent need not call the VM. This holds for collectors that clear them in a pause; tested with some references.
pub(crate) fn are_cleared(jni: Jni, weak: impl Iterator<Item = Object>) -> bool {
    let structs = VmStructs::load().unwrap_or_default();
    Collector::of(&structs).collects_in_vm_thread()
        && Reading::tried(jni, weak) == Some(Reading::Weak)
}
