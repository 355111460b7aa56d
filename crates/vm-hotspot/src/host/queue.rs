//! What the program's threads have to report, until the writer takes it. All that waits is charged to the memory
//! limit: when the writer gets no processor time, samples and collections are left out and counted.

use std::time::Instant;

use vmpi::wire::{ArenaState, Item};
use vmpi::{Body, Budget, EnvId, ObjectAlloc, Worth};

use super::moves::Change;
use jvmti::Object;

/// What a collection did.
pub(super) struct Collection {
    pub(super) started: Instant,
    pub(super) changes: Vec<Change>,
    pub(super) dead: Vec<Object>,
    pub(super) states: Vec<ArenaState>,
    /// Objects that were not followed since the last collection, for want of memory.
    pub(super) refused: u64,
    /// Collections before this one that are not reported, for want of memory.
    pub(super) missed: u64,
}

pub(super) enum What {
    Item(Box<Item>),
    Alloc(ObjectAlloc),
    Gc(Box<Collection>),
    ClassGone(i64),
}

pub(super) struct Message {
    pub(super) at: Instant,
    pub(super) env: EnvId,
    pub(super) what: What,
}

/// A message in the queue, which may be half empty, and once more while the writer has it.
const MESSAGE: u64 = 3 * size_of::<Message>() as u64;
/// A changed object: here, and as the events that the writer makes of it.
const CHANGE: u64 = (2 * size_of::<Change>() + size_of::<Object>() + size_of::<Body>()) as u64;
/// The share of the memory limit that collections may fill while they wait.
const SHARE: u64 = 8;

impl What {
    /// Memory of an allocation that waits, which is taken from the limit before.
    pub(super) const ALLOC: u64 = MESSAGE;

    fn charge(&self) -> u64 {
        match self {
            Self::Alloc(_) => 0,
            Self::Gc(gc) => MESSAGE + CHANGE * gc.changes.len() as u64,
            Self::Item(_) | Self::ClassGone(_) => MESSAGE,
        }
    }
}

/// Messages in the order in which they were put in.
#[derive(Default)]
pub(super) struct Queue {
    messages: Vec<Message>,
    /// Memory of all but the allocations, as it was charged.
    charged: u64,
}

impl Queue {
    /// Whether another collection may wait. One that may not is left out, with whatever it has changed.
    pub(super) fn takes_collection(&self, budget: &Budget) -> bool {
        self.charged <= budget.limit() / SHARE
    }

    /// Adds a message.
    pub(super) fn push(&mut self, message: Message, budget: &Budget) {
        let charge = message.what.charge();
        self.charged += charge;
        budget.charge(charge);
        self.messages.push(message);
    }

    /// All messages. Their memory is given back: the writer is about to make bytes of them.
    pub(super) fn take(&mut self, budget: &Budget) -> Vec<Message> {
        let is_alloc = |message: &&Message| matches!(message.what, What::Alloc(_));
        let allocs = self.messages.iter().filter(is_alloc).count() as u64;
        budget.give(Worth::Objects, allocs * What::ALLOC);
        budget.discharge(std::mem::take(&mut self.charged));
        let room = Vec::with_capacity(self.messages.len());
        // As much room as was needed: threads of the program need not make it.
        std::mem::replace(&mut self.messages, room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi::ArenaId;

    fn collection(changes: usize) -> Message {
        let change = Change {
            from: 8,
            arena: ArenaId(0),
            to: 16,
            new_arena: ArenaId(0),
        };
        let gc = Collection {
            started: Instant::now(),
            changes: vec![change; changes],
            dead: Vec::new(),
            states: Vec::new(),
            refused: 0,
            missed: 0,
        };
        Message {
            at: Instant::now(),
            env: EnvId(0),
            what: What::Gc(Box::new(gc)),
        }
    }

    #[test]
    fn collections_wait_up_to_their_share_and_all_memory_is_given_back() {
        let budget = Budget::new(Budget::LEAST);
        let (mut queue, mut waiting) = (Queue::default(), 0);
        let names = What::Item(Box::new(Item::event(Body::JvmShutDown)));
        let (at, env) = (Instant::now(), EnvId(0));
        queue.push(
            Message {
                at,
                env,
                what: names,
            },
            &budget,
        );
        while queue.takes_collection(&budget) {
            queue.push(collection(1000), &budget);
            waiting += 1;
        }
        // One may go beyond the share: how much has changed is known afterwards.
        let share = budget.limit() / SHARE;
        assert!(
            (share..share + 2000 * CHANGE).contains(&budget.used()),
            "{}",
            budget.used()
        );
        assert_eq!(queue.take(&budget).len(), waiting + 1);
        assert_eq!(budget.used(), 0);
        assert!(queue.takes_collection(&budget) && queue.take(&budget).is_empty());
    }
}
