//! Fields that hold a boxed number of one class in every instance: they could be of the primitive
//! type. Fields of the JDK's own classes are left out, since no program can change them.

use super::plan::{Plan, primitive_of};
use crate::sets::object_set::Place;
use crate::sets::scope::Scope;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Dominator, Heap, ObjIdx};
use hprof::{BasicType, Bytes};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Classes that come with the JDK.
const OF_THE_JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// A field that holds a boxed primitive of one class in every instance and is never null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoxedField {
    /// The class that declares the field.
    pub class: String,
    /// Name of the field.
    pub field: String,
    /// The class of the boxes, such as `java.lang.Integer`.
    pub holds: String,
    /// The primitive type that the field could have instead, such as `int`.
    pub primitive: &'static str,
    /// Number of instances that have the field, including those of subclasses.
    pub instances: u64,
    /// Number of boxes that only the instance with the field keeps alive.
    pub boxes: u64,
    /// Size of these boxes, less the bytes by which the primitive is wider than the reference.
    pub wasted: Bytes,
}

/// The reference fields of each class: offset, and number of the field.
pub(super) struct FieldPlan {
    fields: Vec<(ClassIdx, usize)>,
    of_class: Vec<Vec<(Place, u32)>>,
}

impl FieldPlan {
    pub(super) fn new(heap: &Heap) -> FieldPlan {
        let mut fields = Vec::new();
        let mut numbers = BTreeMap::new();
        let classes = (0..heap.classes().len() as u32).map(ClassIdx);
        let of_class = classes
            .map(|class| {
                let slots = heap.slots(class).into_iter().filter(|slot| {
                    let name = heap.class(slot.declared_in).name.as_str();
                    slot.kind == BasicType::Object
                        && !OF_THE_JDK.iter().any(|prefix| name.starts_with(prefix))
                });
                slots
                    .map(|slot| {
                        let number = numbers
                            .entry((slot.declared_in.0, slot.field))
                            .or_insert_with(|| {
                                fields.push((slot.declared_in, slot.field));
                                fields.len() as u32 - 1
                            });
                        let place = Place {
                            kind: slot.kind,
                            offset: slot.offset,
                        };
                        (place, *number)
                    })
                    .collect()
            })
            .collect();
        FieldPlan { fields, of_class }
    }
}

/// What the instances have in a field.
#[derive(Clone, Debug, Default)]
enum Held {
    /// No instance has been read yet.
    #[default]
    Nothing,
    /// Boxes of one class: the number of instances, and the boxes that only they keep alive.
    Boxes {
        class: ClassIdx,
        instances: u64,
        own: Vec<ObjIdx>,
    },
    /// Something else, or null.
    Other,
}

impl Held {
    fn merge(&mut self, other: Held) {
        match (&mut *self, other) {
            (_, Held::Nothing) | (Held::Other, _) => {}
            (Held::Nothing, other) => *self = other,
            (
                Held::Boxes {
                    class,
                    instances,
                    own,
                },
                Held::Boxes {
                    class: same,
                    instances: more,
                    own: others,
                },
            ) if *class == same => {
                *instances += more;
                own.extend(others);
            }
            _ => *self = Held::Other,
        }
    }
}

/// A visitor of one worker.
pub(super) struct BoxedPass<'a> {
    heap: &'a Heap,
    columns: Columns<'a>,
    plan: &'a Plan,
    fields: &'a FieldPlan,
    scope: &'a Scope,
    held: Vec<Held>,
}

impl<'a> BoxedPass<'a> {
    pub(super) fn new(
        heap: &'a Heap,
        plan: &'a Plan,
        fields: &'a FieldPlan,
        scope: &'a Scope,
    ) -> Self {
        let held = vec![Held::Nothing; fields.fields.len()];
        BoxedPass {
            heap,
            columns: heap.columns(),
            plan,
            fields,
            scope,
            held,
        }
    }

    /// What a field of one instance holds.
    fn look(&self, object: ObjIdx, place: Place, fields: &[u8]) -> Held {
        let id = place.id(fields, self.heap.id_size());
        let Some(held) = self.heap.find(id).filter(|_| !id.is_null()) else {
            return Held::Other;
        };
        let class = self.columns.class_of(held);
        if !self.plan.is_box(class) {
            return Held::Other;
        }
        let own = match self.columns.dominator(held) {
            Dominator::Object(above) if above == object => vec![held],
            _ => Vec::new(),
        };
        Held::Boxes {
            class,
            instances: 1,
            own,
        }
    }
}

impl ContentVisitor for BoxedPass<'_> {
    const OBJECT_ARRAYS: bool = false;
    const PRIMITIVE_ARRAYS: bool = false;

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let list = &self.fields.of_class[class.0 as usize];
        if list.is_empty() || !self.scope.has(&self.columns, object) {
            return;
        }
        for (place, number) in list {
            if !matches!(self.held[*number as usize], Held::Other) {
                let found = self.look(object, *place, fields);
                self.held[*number as usize].merge(found);
            }
        }
    }
    fn object_array(&mut self, _: ObjIdx, _: ClassIdx, _: &[u8]) {}
    fn primitive_array(&mut self, _: ObjIdx, _: BasicType, _: u32, _: &[u8]) {}
}

/// The fields, most bytes first; each with its boxes and the wasted bytes per box.
pub(super) fn sum(
    heap: &Heap,
    plan: &FieldPlan,
    passes: Vec<BoxedPass<'_>>,
) -> Vec<(BoxedField, Vec<(ObjIdx, u64)>)> {
    let mut held = vec![Held::Nothing; plan.fields.len()];
    for pass in passes {
        held.iter_mut()
            .zip(pass.held)
            .for_each(|(all, one)| all.merge(one));
    }
    let mut rows = Vec::new();
    for ((declared_in, field), held) in plan.fields.iter().zip(held) {
        let Held::Boxes {
            class,
            instances,
            own,
        } = held
        else {
            continue;
        };
        let info = heap.class(class);
        let Some(primitive) = primitive_of(&info.name) else {
            continue;
        };
        let width = |kind| heap.field_bytes(kind).0;
        let more = width(primitive).saturating_sub(width(BasicType::Object));
        let one = info.instance_size.0.saturating_sub(more);
        let holder = heap.class(*declared_in);
        let row = BoxedField {
            class: holder.name.clone(),
            field: holder.fields[*field].name.clone(),
            holds: info.name.clone(),
            primitive: primitive.name(),
            instances,
            boxes: own.len() as u64,
            wasted: Bytes(one * own.len() as u64),
        };
        rows.push((row, own.into_iter().map(|object| (object, one)).collect()));
    }
    rows.sort_by(|(a, _), (b, _)| {
        let key = |r: &BoxedField| (Reverse(r.wasted), Reverse(r.instances));
        (key(a), &a.class, &a.field).cmp(&(key(b), &b.class, &b.field))
    });
    rows
}
