//! Samples of a collector's pause. While the VM collects, AsyncGetCallTrace refuses to walk any stack. But until the pause
//! is over, no thread runs Java code, so the Java frames at its end are those of the sample: the sample's slot is held,
//! and when the VM reports the end of the collection, which it does before the threads continue, its thread is
//! signalled. A signal comes before the thread's own code, so the thread, in the handler, takes the frames then
//! ([`Sampler::complete`](crate::cpu::sampler::Sampler)), unless its last Java frame is another one already.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::cpu::java_frames::Missing;
use crate::cpu::slots::{HELD, SLOTS, Slot};
use crate::cpu::timers::{own_tid, signal_pause_ended};

/// The most slots that are held: others have samples of the collector's threads.
const MOST_HELD: u32 = (SLOTS / 2) as u32;

/// The pauses of the VM. One for the process, like the slots.
pub(super) struct Pauses {
    /// Pauses that have ended, and how many of them when the slots were last emptied.
    ended: AtomicU32,
    ended_before: AtomicU32,
    /// Slots that are held.
    held: AtomicU32,
}

pub(super) static PAUSES: Pauses = Pauses {
    ended: AtomicU32::new(0),
    ended_before: AtomicU32::new(0),
    held: AtomicU32::new(0),
};

impl Pauses {
    /// How many have ended.
    pub(super) fn ended(&self) -> u32 {
        self.ended.load(Ordering::SeqCst)
    }

    /// In the handler: holds a slot, whose sample was taken in the pause after so many others; false if too many are
    /// held. The caller is the slot's only user, and is no longer if this is true.
    pub(super) fn hold(&self, slot: &Slot, pause: u32, last_frame: usize) -> bool {
        let more = |held| (held < MOST_HELD).then_some(held + 1);
        let order = Ordering::SeqCst;
        if self.held.fetch_update(order, order, more).is_err() {
            return false;
        }
        slot.pause.store(pause, Ordering::Relaxed);
        slot.last_frame.set(last_frame);
        slot.count.set(Err(Missing::Pause));
        slot.leave(HELD);
        // Either the caller then sees the end of the pause, or the end sees this slot.
        fence(Ordering::SeqCst);
        true
    }

    /// In the VM's report of the end of a collection: signals the threads with slots that are held.
    pub(super) fn end(&self, slots: &[Slot]) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.held.load(Ordering::SeqCst) == 0 {
            return;
        }
        let held_by = |slot: &Slot| slot.is_held().then(|| slot.tid.load(Ordering::Relaxed));
        for (at, slot) in slots.iter().enumerate() {
            let Some(tid) = held_by(slot) else { continue };
            // One signal per thread.
            if !slots[..at].iter().any(|slot| held_by(slot) == Some(tid)) {
                signal_pause_ended(tid);
            }
        }
    }

    /// In the handler: the slots of the current thread that were held until the end of a pause. The caller is their
    /// only user.
    pub(super) fn take_own<'a>(&self, slots: &'a [Slot]) -> impl Iterator<Item = &'a Slot> {
        let are_any = self.held.load(Ordering::SeqCst) > 0;
        let tid = if are_any { own_tid() } else { 0 };
        let slots = if are_any { slots } else { &[] };
        let is_own = move |slot: &&Slot| {
            let is_over = slot.pause.load(Ordering::Relaxed) != self.ended();
            slot.is_held() && slot.tid.load(Ordering::Relaxed) == tid && is_over && self.take(slot)
        };
        slots.iter().filter(is_own)
    }

    /// In the handler: some short times, which the caller waits. A collection is over for AsyncGetCallTrace a moment after
    /// its end is reported.
    pub(super) fn waits(&self) -> impl Iterator<Item = ()> {
        static TIME: libc::timespec = libc::timespec {
            tv_sec: 0,
            tv_nsec: 50_000,
        };
        let wait = |_| {
            // SAFETY: the pointer is to a constant; no time left is requested.
            unsafe { libc::nanosleep(&raw const TIME, std::ptr::null_mut()) };
        };
        (0..4).map(wait)
    }

    /// The slots are being emptied: returns the number of the first pause that had not ended when this was last called.
    pub(super) fn look(&self) -> u32 {
        self.ended_before.swap(self.ended(), Ordering::SeqCst)
    }

    /// Makes the caller the only user of a slot whose thread has not taken its frames: its pause is before this one, or
    /// sampling `has_ended`.
    pub(super) fn give_up(&self, slot: &Slot, first: u32, has_ended: bool) -> bool {
        if !slot.is_held() {
            return false;
        }
        let pause = slot.pause.load(Ordering::Relaxed);
        (has_ended || (pause.wrapping_sub(first)).cast_signed() < 0) && self.take(slot)
    }

    fn take(&self, slot: &Slot) -> bool {
        let is_taken = slot.claim(HELD);
        if is_taken {
            self.held.fetch_sub(1, Ordering::SeqCst);
        }
        is_taken
    }
}
