//! Where a followed object is: a weak global reference is the address of a slot
//! that holds the object's address, and the collector keeps it up to date.

use jvmti::{Env, Jni, Live, Object};

use super::spaces::Collector;

/// Low bits of a reference tell local, weak and global ones apart.
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
/// and after a collection. ZGC heals slots only when somebody uses them, so what
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
