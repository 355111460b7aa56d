//! Finds the stack that allocated the object at an address.

use crate::ids::trace_serial;
use vmpi::{ClassId, PlacedObject, TraceId};

/// Finds tracked objects by the addresses of a dump, which are mostly in ascending order.
pub(super) struct Join<'a> {
    objects: &'a [PlacedObject],
    /// The first object at or above the last requested address.
    at: usize,
    last: u64,
    /// The number of objects whose stack was found.
    pub(super) joined: u64,
    /// The number of objects whose class differs from the allocated class.
    pub(super) strangers: u64,
}

impl<'a> Join<'a> {
    /// `objects` are in the order of their addresses.
    pub(super) fn new(objects: &'a [PlacedObject]) -> Join<'a> {
        Join {
            objects,
            at: 0,
            last: 0,
            joined: 0,
            strangers: 0,
        }
    }

    /// The serial of the stack that allocated the object; the serial of the empty stack if it is unknown. If the class
    /// differs, this is another object at the same address.
    #[inline]
    pub(super) fn serial(&mut self, address: u64, class: ClassId) -> u32 {
        const NEAR: usize = 16;
        if address < self.last {
            self.at = self.objects.partition_point(|o| o.address < address);
        }
        self.last = address;
        let mut steps = 0;
        while let Some(object) = self.objects.get(self.at) {
            if object.address >= address {
                break;
            }
            steps += 1;
            if steps > NEAR {
                let rest = &self.objects[self.at..];
                self.at += rest.partition_point(|o| o.address < address);
            } else {
                self.at += 1;
            }
        }
        let none = trace_serial(TraceId::EMPTY).0;
        match self.objects.get(self.at) {
            Some(object) if object.address == address && object.class == class => {
                self.joined += 1;
                trace_serial(object.trace).0
            }
            Some(object) if object.address == address => {
                self.strangers += 1;
                none
            }
            _ => none,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_in_any_order_and_strangers_are_not() {
        let object = |n: u32| PlacedObject {
            address: u64::from(n) * 24 + 1000,
            class: ClassId(n % 3 + 1),
            trace: TraceId(n + 1),
        };
        let objects: Vec<_> = (0..1000).map(object).collect();
        let mut join = Join::new(&objects);
        let order = (0..1000).step_by(7).chain((0..1000).rev()).chain([500, 3]);
        let mut asked = 0;
        for n in order {
            let one = object(n);
            let serial = join.serial(one.address, one.class);
            assert_eq!(serial, trace_serial(one.trace).0);
            assert_eq!(join.serial(one.address + 8, one.class), 300_000);
            assert_eq!(join.serial(one.address, ClassId(9)), 300_000);
            asked += 1;
        }
        assert_eq!((join.joined, join.strangers), (asked, asked));
        assert_eq!(Join::new(&[]).serial(8, ClassId(1)), 300_000);
    }
}
