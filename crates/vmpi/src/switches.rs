//! Which events are enabled: the rules of `EnableEvent`, `DisableEvent` and `RequestEvent` (section 2 of the document).

use crate::kind::{Delivery, EventKind, Outcome};

/// The set of enabled events. All are disabled at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(u64);

impl Switches {
    /// All disabled.
    pub const NONE: Self = Self(0);

    /// Every event that can be enabled.
    #[must_use]
    pub fn all() -> Self {
        let mut all = Self::NONE;
        for kind in EventKind::ALL {
            let _ = all.set(*kind, true);
        }
        all
    }

    /// Whether an event is delivered when it happens.
    #[must_use]
    pub fn is_on(self, kind: EventKind) -> bool {
        self.0 >> (kind as u32) & 1 == 1
    }

    /// Enables or disables an event. For dumps the result is always [`Outcome::NotAvailable`].
    pub fn set(&mut self, kind: EventKind, on: bool) -> Outcome {
        if kind.delivery() == Delivery::Requested {
            return Outcome::NotAvailable;
        }
        if on {
            self.0 |= 1 << (kind as u32);
        } else {
            self.0 &= !(1 << (kind as u32));
        }
        Outcome::Success
    }

    /// Enables or disables an event by its number. Numbers that are not in the document, such as IBM's extensions, are
    /// not available.
    pub fn set_code(&mut self, code: i32, on: bool) -> Outcome {
        EventKind::from_code(code).map_or(Outcome::NotAvailable, |kind| self.set(kind, on))
    }

    /// Whether `RequestEvent` may request this event; if not, its result is [`Outcome::NotAvailable`].
    #[must_use]
    pub fn may_request(kind: EventKind) -> bool {
        kind.delivery() != Delivery::Switched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_are_requested_and_never_switched() {
        let mut switches = Switches::NONE;
        for kind in [
            EventKind::HeapDump,
            EventKind::ObjectDump,
            EventKind::MonitorDump,
        ] {
            assert_eq!(switches.set(kind, true), Outcome::NotAvailable);
            assert_eq!(switches.set(kind, false), Outcome::NotAvailable);
            assert!(Switches::may_request(kind));
        }
        assert_eq!(switches, Switches::NONE);
    }

    #[test]
    fn an_event_stays_on_until_it_is_switched_off() {
        let mut switches = Switches::NONE;
        assert_eq!(switches.set_code(61, true), Outcome::Success);
        assert_eq!(switches.set_code(61, true), Outcome::Success);
        assert!(switches.is_on(EventKind::GcFinish));
        assert!(!switches.is_on(EventKind::GcStart));
        assert_eq!(switches.set_code(61, false), Outcome::Success);
        assert_eq!(switches, Switches::NONE);
    }

    #[test]
    fn unknown_numbers_are_not_available() {
        for code in [0, 10, 36, 62, 2000, -1, i32::MAX] {
            assert_eq!(
                Switches::NONE.clone().set_code(code, true),
                Outcome::NotAvailable
            );
        }
    }

    #[test]
    fn only_defining_events_and_dumps_can_be_requested() {
        let can: Vec<_> = EventKind::ALL
            .iter()
            .filter(|kind| Switches::may_request(**kind))
            .map(|kind| kind.name())
            .collect();
        assert_eq!(
            can,
            [
                "OBJECT_ALLOC",
                "THREAD_START",
                "HEAP_DUMP",
                "CLASS_LOAD",
                "OBJECT_DUMP",
                "MONITOR_DUMP"
            ]
        );
    }
}
