//! Checks the rules of section 1.4: ids are used only while they are valid.
//!
//! A host under test passes every event it issues; if the checker has received all defining events, it reports each use
//! of an id that is not valid. It is a slow and simple oracle, independent of the fast replay of `live-heap`.

use std::collections::{HashMap, HashSet};

use crate::ids::{ArenaId, ObjectHandle};
use crate::kind::EventKind;
use crate::vm_event::{Body, EnvId, JMethodId, RefId, VmEvent};

/// A rule of the document that an event breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An id is used before its defining or after its undefining event.
    #[error("{event:?} uses {what} {id:#x}, which is not alive")]
    NotAlive {
        /// The event.
        event: EventKind,
        /// The kind of id.
        what: &'static str,
        /// Its value.
        id: u64,
    },
    /// An id is defined while it is still valid.
    #[error("{event:?} defines {what} {id:#x}, which is alive")]
    StillAlive {
        /// The event.
        event: EventKind,
        /// The kind of id.
        what: &'static str,
        /// Its value.
        id: u64,
    },
    /// An event states an arena that the object is not in.
    #[error("{event:?} puts object {id:#x} into arena {reported}, it is in {real}")]
    WrongArena {
        /// The event.
        event: EventKind,
        /// The object.
        id: u64,
        /// The event's arena.
        reported: u32,
        /// The arena it was allocated in or moved to.
        real: u32,
    },
    /// An event that belongs between `GC_START` and `GC_FINISH` comes outside.
    #[error("{0:?} comes outside a collection")]
    OutsideGc(EventKind),
    /// An event that must not be sent during a collection is sent during one.
    #[error("{0:?} comes inside a collection")]
    InsideGc(EventKind),
    /// The events of a collection are sent on more than one thread.
    #[error("{0:?} comes on another thread than the collection's start")]
    OtherThread(EventKind),
}

/// The valid ids.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    frees_outside_gc: bool,
    gc: Option<EnvId>,
    arenas: HashSet<ArenaId>,
    objects: HashMap<ObjectHandle, ArenaId>,
    classes: HashMap<ObjectHandle, Vec<JMethodId>>,
    methods: HashSet<JMethodId>,
    threads: HashSet<EnvId>,
    refs: HashSet<RefId>,
}

impl Lifetimes {
    /// A checker without valid ids. A VM that counts references may free at any time.
    #[must_use]
    pub fn new(frees_outside_gc: bool) -> Self {
        Self {
            frees_outside_gc,
            ..Self::default()
        }
    }

    /// The objects with valid ids, with their arenas.
    #[must_use]
    pub fn objects(&self) -> &HashMap<ObjectHandle, ArenaId> {
        &self.objects
    }

    /// Whether a collection is in progress.
    #[must_use]
    pub fn in_gc(&self) -> bool {
        self.gc.is_some()
    }

    /// Checks one event.
    ///
    /// # Errors
    /// The first rule it breaks. A requested event defines no ids; it is only checked whether the item that it
    /// describes is valid.
    pub fn check(&mut self, event: &VmEvent) -> Result<(), Violation> {
        let kind = event.body.kind();
        if event.requested {
            return self.check_requested(event);
        }
        self.check_bracket(kind, event.env)?;
        match &event.body {
            Body::ArenaNew { arena, .. } => define(
                self.arenas.insert(*arena),
                kind,
                "arena",
                u64::from(arena.0),
            ),
            Body::ArenaDelete { arena } => {
                alive(self.arenas.remove(arena), kind, "arena", u64::from(arena.0))?;
                self.objects.retain(|_, place| place != arena);
                Ok(())
            }
            Body::ObjectAlloc(a) => {
                alive(
                    self.arenas.contains(&a.arena),
                    kind,
                    "arena",
                    u64::from(a.arena.0),
                )?;
                let known = a.class.is_null() || self.classes.contains_key(&a.class);
                alive(known, kind, "class", a.class.0)?;
                let old = self.objects.insert(a.object, a.arena);
                define(old.is_none(), kind, "object", a.object.0)
            }
            Body::ObjectFree { object } => alive(
                self.objects.remove(object).is_some(),
                kind,
                "object",
                object.0,
            ),
            Body::ObjectMove(m) => {
                let place = self.objects.remove(&m.object);
                alive(place.is_some(), kind, "object", m.object.0)?;
                if let Some(real) = place.filter(|place| *place != m.arena) {
                    return Err(Violation::WrongArena {
                        event: kind,
                        id: m.object.0,
                        reported: m.arena.0,
                        real: real.0,
                    });
                }
                let entered = self.arenas.contains(&m.new_arena);
                alive(entered, kind, "arena", u64::from(m.new_arena.0))?;
                if let Some(methods) = self.classes.remove(&m.object) {
                    self.classes.insert(m.new_object, methods);
                }
                let old = self.objects.insert(m.new_object, m.new_arena);
                define(old.is_none(), kind, "object", m.new_object.0)
            }
            other => self.check_other(kind, event.env, other),
        }
    }

    fn check_other(&mut self, kind: EventKind, env: EnvId, body: &Body) -> Result<(), Violation> {
        let object_alive = |this: &Self, object: ObjectHandle| {
            let known = object.is_null() || this.objects.contains_key(&object);
            alive(known, kind, "object", object.0)
        };
        match body {
            Body::ThreadStart(start) => {
                object_alive(self, start.object)?;
                define(self.threads.insert(start.env), kind, "thread", start.env.0)
            }
            Body::ThreadEnd => alive(self.threads.remove(&env), kind, "thread", env.0),
            Body::ClassLoad(class) => {
                let methods: Vec<_> = class.methods.iter().map(|method| method.method).collect();
                for method in &methods {
                    define(self.methods.insert(*method), kind, "method", method.0)?;
                }
                let old = self.classes.insert(class.class, methods);
                define(old.is_none(), kind, "class", class.class.0)
            }
            Body::ClassUnload { class } => {
                let methods = self.classes.remove(class);
                alive(methods.is_some(), kind, "class", class.0)?;
                for method in methods.into_iter().flatten() {
                    self.methods.remove(&method);
                }
                Ok(())
            }
            Body::MethodEntry { method } | Body::MethodExit { method } => {
                alive(self.methods.contains(method), kind, "method", method.0)
            }
            Body::MethodEntry2 { method, object } => {
                object_alive(self, *object)?;
                alive(self.methods.contains(method), kind, "method", method.0)
            }
            Body::JniGlobalRefAlloc { object, reference }
            | Body::JniWeakGlobalRefAlloc { object, reference } => {
                object_alive(self, *object)?;
                define(self.refs.insert(*reference), kind, "reference", reference.0)
            }
            Body::JniGlobalRefFree { reference } | Body::JniWeakGlobalRefFree { reference } => {
                alive(self.refs.remove(reference), kind, "reference", reference.0)
            }
            Body::MonitorContendedEnter { object }
            | Body::MonitorContendedEntered { object }
            | Body::MonitorContendedExit { object }
            | Body::MonitorWait { object, .. }
            | Body::MonitorWaited { object, .. } => object_alive(self, *object),
            _ => Ok(()),
        }
    }

    fn check_bracket(&mut self, kind: EventKind, env: EnvId) -> Result<(), Violation> {
        match kind {
            EventKind::GcStart if self.gc.is_some() => return Err(Violation::InsideGc(kind)),
            EventKind::GcStart => self.gc = Some(env),
            EventKind::GcFinish => match self.gc.take() {
                None => return Err(Violation::OutsideGc(kind)),
                Some(started) if started != env => return Err(Violation::OtherThread(kind)),
                Some(_) => {}
            },
            EventKind::ArenaNew => {}
            kind if kind.bracketed() => match self.gc {
                None if kind == EventKind::ObjectFree && self.frees_outside_gc => {}
                None => return Err(Violation::OutsideGc(kind)),
                Some(started) if started != env => return Err(Violation::OtherThread(kind)),
                Some(_) => {}
            },
            kind if self.gc.is_some() => return Err(Violation::InsideGc(kind)),
            _ => {}
        }
        Ok(())
    }

    fn check_requested(&self, event: &VmEvent) -> Result<(), Violation> {
        let kind = event.body.kind();
        match &event.body {
            Body::ObjectAlloc(a) => {
                let place = self.objects.get(&a.object);
                alive(place.is_some(), kind, "object", a.object.0)
            }
            Body::ClassLoad(class) => alive(
                self.classes.contains_key(&class.class),
                kind,
                "class",
                class.class.0,
            ),
            Body::ThreadStart(start) => alive(
                self.threads.contains(&start.env),
                kind,
                "thread",
                start.env.0,
            ),
            _ => Ok(()),
        }
    }
}

fn alive(is: bool, event: EventKind, what: &'static str, id: u64) -> Result<(), Violation> {
    if is {
        Ok(())
    } else {
        Err(Violation::NotAlive { event, what, id })
    }
}

fn define(is_new: bool, event: EventKind, what: &'static str, id: u64) -> Result<(), Violation> {
    if is_new {
        Ok(())
    } else {
        Err(Violation::StillAlive { event, what, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::GcKind;
    use crate::ids::TraceId;
    use crate::vm_event::{GcInfo, ObjectAlloc, ObjectMove};

    const VM: EnvId = EnvId(1);

    fn alloc(object: u64, arena: u32) -> Body {
        Body::ObjectAlloc(ObjectAlloc {
            object: ObjectHandle(object),
            class: ObjectHandle::NULL,
            size: 16,
            arena: ArenaId(arena),
            trace: TraceId::EMPTY,
            array: None,
        })
    }

    fn moved(from: (u64, u32), to: (u64, u32)) -> Body {
        Body::ObjectMove(ObjectMove {
            object: ObjectHandle(from.0),
            arena: ArenaId(from.1),
            new_object: ObjectHandle(to.0),
            new_arena: ArenaId(to.1),
        })
    }

    fn arena(id: u32) -> Body {
        Body::ArenaNew {
            arena: ArenaId(id),
            name: "a".into(),
        }
    }

    const START: Body = Body::GcStart { kind: GcKind::Full };

    fn finish() -> Body {
        Body::GcFinish(GcInfo::default())
    }

    fn check(events: Vec<Body>) -> Result<usize, Violation> {
        let mut lifetimes = Lifetimes::new(false);
        for body in events {
            lifetimes.check(&VmEvent::new(VM, body))?;
        }
        Ok(lifetimes.objects().len())
    }

    #[test]
    fn a_deleted_arena_takes_its_objects_and_its_number_may_come_again() {
        let delete = Body::ArenaDelete { arena: ArenaId(1) };
        let events = vec![
            arena(1),
            arena(2),
            alloc(8, 1),
            alloc(16, 1),
            START,
            moved((16, 1), (108, 2)),
            delete,
            arena(1),
            finish(),
            alloc(8, 1),
        ];
        assert_eq!(check(events), Ok(2));
    }

    #[test]
    fn each_rule_is_kept() {
        let not_alive = |event, what, id| Err(Violation::NotAlive { event, what, id });
        let free = |id| Body::ObjectFree {
            object: ObjectHandle(id),
        };
        assert_eq!(
            check(vec![alloc(8, 1)]),
            not_alive(EventKind::ObjectAlloc, "arena", 1)
        );
        assert_eq!(
            check(vec![arena(1), alloc(8, 1), free(8)]),
            Err(Violation::OutsideGc(EventKind::ObjectFree))
        );
        assert_eq!(
            check(vec![arena(1), alloc(8, 1), START, free(8), free(8)]),
            not_alive(EventKind::ObjectFree, "object", 8)
        );
        let still = Err(Violation::StillAlive {
            event: EventKind::ObjectMove,
            what: "object",
            id: 16,
        });
        let events = vec![
            arena(1),
            alloc(8, 1),
            alloc(16, 1),
            START,
            moved((8, 1), (16, 1)),
        ];
        assert_eq!(check(events), still);
        let events = vec![
            arena(1),
            arena(2),
            alloc(8, 1),
            START,
            moved((8, 2), (16, 1)),
        ];
        assert!(matches!(
            check(events),
            Err(Violation::WrongArena {
                reported: 2,
                real: 1,
                ..
            })
        ));
        assert_eq!(
            check(vec![finish()]),
            Err(Violation::OutsideGc(EventKind::GcFinish))
        );
        assert_eq!(
            check(vec![arena(1), START, alloc(8, 1)]),
            Err(Violation::InsideGc(EventKind::ObjectAlloc))
        );
    }
}
