//! Messages from the program's threads to the writer. They are charged to the memory limit: if the writer gets no
//! processor time, samples and collections are dropped and counted.

use std::time::Instant;

use vmpi::wire::{ArenaState, Item};
use vmpi::{Body, Budget, ClassId, EnvId, ObjectAlloc, Worth};

use super::moves::Change;
use jvmti::Object;

/// What a collection did.
pub(super) struct Collection {
    pub(super) started: Instant,
    pub(super) changes: Vec<Change>,
    pub(super) dead: Vec<Object>,
    pub(super) states: Vec<ArenaState>,
    /// Objects that are not tracked because the memory limit was reached, since the last collection.
    pub(super) refused: u64,
    /// Collections before this one that are not reported because the memory limit was reached.
    pub(super) missed: u64,
}

pub(super) enum What {
    Item(Box<Item>),
    Alloc(ObjectAlloc),
    Gc(Box<Collection>),
    ClassGone(ClassId),
}

pub(super) struct Message {
    pub(super) at: Instant,
    pub(super) env: EnvId,
    pub(super) what: What,
}

/// A message: in the queue, whose capacity may be twice its length, and again while the writer encodes it.
const MESSAGE: u64 = 3 * size_of::<Message>() as u64;
/// A changed object: in the message, and as the events that the writer encodes.
const CHANGE: u64 = (2 * size_of::<Change>() + size_of::<Object>() + size_of::<Body>()) as u64;
/// One part in so many of the memory limit is for collections that wait.
const SHARE: u64 = 8;

impl What {
    /// Memory of an allocation that waits; the thread that reports it has taken it from the limit.
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
    /// Memory of the allocations, which was taken from the limit.
    taken: u64,
    /// Memory of all others, which was charged.
    charged: u64,
}

impl Queue {
    /// Whether there is memory for another collection. Without it, the collection and its changes are not reported.
    pub(super) fn takes_collection(&self, budget: &Budget) -> bool {
        self.charged <= budget.limit() / SHARE
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message.
    pub(super) fn push(&mut self, message: Message, budget: &Budget) {
        match message.what.charge() {
            0 => self.taken += What::ALLOC,
            charge => {
                self.charged += charge;
                budget.charge(charge);
            }
        }
        self.messages.push(message);
    }

    /// Removes all messages and gives their memory back, because the writer is about to encode them. `room`, an empty
    /// list, takes their place: nothing is allocated or counted here, because threads of the program wait for this lock.
    pub(super) fn take(&mut self, room: Vec<Message>, budget: &Budget) -> Vec<Message> {
        budget.give(Worth::Objects, std::mem::take(&mut self.taken));
        budget.discharge(std::mem::take(&mut self.charged));
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
        // One collection may exceed the share, because its number of changes is not known before.
        let share = budget.limit() / SHARE;
        assert!(
            (share..share + 2000 * CHANGE).contains(&budget.used()),
            "{}",
            budget.used()
        );
        assert_eq!(queue.take(Vec::new(), &budget).len(), waiting + 1);
        assert_eq!(budget.used(), 0);
        assert!(queue.takes_collection(&budget) && queue.len() == 0);
    }
}
