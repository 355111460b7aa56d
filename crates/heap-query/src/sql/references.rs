//! The table `references`: read in the order of the dump, a piece at a time; for one object, from its record or from
//! the table of referrers.

use super::listed::say;
use super::objects::named;
use super::table::{ColumnDef, Cost, Op, Operand, Out, Rows, Scan, Source, columns};
use super::tables::via_cells;
use crate::error::QueryError;
use crate::limits::Lead;
use crate::shared::{Env, flags};
use heap_graph::{
    ClassIdx, ContentSteps, ContentVisitor, Heap, ObjIdx, ObjectKind, RefStrength, Reference, Via,
};
use hprof::{BasicType, IdSize, ObjectId, read_id};
use std::cell::Cell;

const FROM_ID: usize = 0;
const TO_ID: usize = 1;
const FROM_CLASS: usize = 5;
const TO_CLASS: usize = 6;
const FROM_ADDRESS: usize = 7;
const TO_ADDRESS: usize = 8;

/// The table. References of objects to their class are left out: `objects.class_id` has them, and they would double
/// its size.
pub(crate) struct References(Vec<ColumnDef>);

impl References {
    pub(crate) fn new() -> References {
        References(columns(
            "from_id:object to_id:object field:text kind:text strength:text \
             *from_class:text *to_class:text *from_address:int *to_address:int",
        ))
    }
}

impl Source for References {
    fn columns(&self) -> &[ColumnDef] {
        &self.0
    }

    /// SQLite checks an address beside an id itself.
    fn exact(&self, column: usize) -> bool {
        matches!(column, FROM_ID | TO_ID)
    }

    fn uses(&self, column: usize, op: Op) -> bool {
        let used = [
            FROM_ID,
            TO_ID,
            FROM_ADDRESS,
            TO_ADDRESS,
            FROM_CLASS,
            TO_CLASS,
        ];
        op == Op::Eq && used.contains(&column)
    }

    fn cost(&self, env: &Env, with: &[(usize, Op)]) -> Option<Cost> {
        // Three references per object; reading one in a walk costs a third of looking one up.
        let all = env.heap.len() as f64 * 3.0;
        let has = |a, b| with.iter().any(|w| w.0 == a || w.0 == b);
        let (rows, work) = if has(FROM_ID, FROM_ADDRESS) {
            (4.0, 8.0)
        } else if has(TO_ID, TO_ADDRESS) {
            (4.0, 12.0)
        } else if has(FROM_CLASS, TO_CLASS) {
            (all / 50.0, all)
        } else {
            (all, all * 3.0)
        };
        Some(Cost {
            rows: rows.max(1.0),
            work: work + 10.0,
        })
    }

    fn open(&self, env: &Env, scan: Scan) -> Result<Box<dyn Rows>, QueryError> {
        let end = |id, address| scan.equal(id).or_else(|| scan.equal(address));
        let ends = [end(FROM_ID, FROM_ADDRESS), end(TO_ID, TO_ADDRESS)];
        let [from, to] = ends.map(|value| value.map(|v| named(env, Some(v))));
        let feed = match (from, to) {
            (Some(None), _) | (_, Some(None)) => Feed::Objects(Vec::new().into_iter()),
            (Some(Some(from)), _) => Feed::Objects(vec![from].into_iter()),
            (None, Some(Some(to))) => {
                let sources = env.stop.within(|c| env.heap.inbound_with(to, c))?;
                Feed::Objects(sources.into_iter())
            }
            (None, None) => Feed::Dump(Box::new(Dump {
                beside: env.heap.references_beside_records()?.into_iter(),
                steps: env.heap.content_steps()?,
                fields: env.heap.classes().iter().map(|_| None).collect(),
                lead: env.lead("references"),
            })),
        };
        Ok(Box::new(ReferenceRows {
            env: env.clone(),
            filter: Filter {
                from: classes(env, &scan, FROM_CLASS),
                to: classes(env, &scan, TO_CLASS),
                target: to.flatten().map(|to| env.heap.id(to)),
            },
            feed,
            batch: Vec::new(),
            at: 0,
            array: None,
            found: Vec::new(),
            last_from: Cell::default(),
        }))
    }
}

/// A flag per class, for a comparison with the name of a class.
fn classes(env: &Env, scan: &Scan, column: usize) -> Option<Vec<bool>> {
    let Operand::Text(name) = scan.equal(column)? else {
        return None;
    };
    let named = env.classes_named(name);
    Some(flags(env, |c| named.contains(&c)))
}

/// Conditions for both ends of a reference.
struct Filter {
    from: Option<Vec<bool>>,
    to: Option<Vec<bool>>,
    target: Option<ObjectId>,
}

fn admits(flags: Option<&Vec<bool>>, class: impl FnOnce() -> ClassIdx) -> bool {
    flags.is_none_or(|f| f.get(class().0 as usize).copied().unwrap_or(false))
}

impl Filter {
    /// Whether references to an id may be in the result.
    fn wants(&self, id: ObjectId) -> bool {
        !id.is_null() && self.target.is_none_or(|target| target == id)
    }

    /// Whether references to an object are in the result, if those to its id may be.
    fn admits_target(&self, heap: &Heap, target: ObjIdx) -> bool {
        admits(self.to.as_ref(), || heap.class_of(target))
    }

    /// Finds the objects that the rows of a batch refer to, and drops the rows that do not match.
    fn resolve(&self, heap: &Heap, batch: &mut Vec<Row>, found: &mut Vec<Option<ObjIdx>>) {
        found.clear();
        heap.find_all(batch.iter().map(|row| row.to_id), found);
        let mut found = found.iter();
        batch.retain_mut(|row| match found.next() {
            _ if matches!(row.how, How::Array) => true,
            Some(Some(target)) => {
                row.to = *target;
                self.admits_target(heap, *target)
            }
            _ => false,
        });
    }
}

/// A reference to be passed to SQLite.
struct Row {
    from: ObjIdx,
    from_class: ClassIdx,
    /// Set when the batch has been [resolved](Filter::resolve).
    to: ObjIdx,
    to_id: ObjectId,
    how: How,
}

enum How {
    /// Instance field: the class that declares it and its number in that class.
    Field(ClassIdx, u32, RefStrength),
    Element(u32),
    Other(Box<Reference>),
    /// Not a reference but a long array, whose elements replace this row.
    Array,
}

/// A reference field in the bytes of an instance.
struct Field {
    offset: usize,
    declared_in: ClassIdx,
    number: u32,
    strength: RefStrength,
}

/// The source of references.
enum Feed {
    /// Single objects.
    Objects(std::vec::IntoIter<ObjIdx>),
    Dump(Box<Dump>),
}

/// The whole dump.
struct Dump {
    beside: std::vec::IntoIter<(ObjIdx, Reference)>,
    steps: ContentSteps,
    /// Reference fields by class, computed when the first instance is read.
    fields: Vec<Option<Vec<Field>>>,
    lead: Lead,
}

/// Longer arrays are read piece by piece instead of being added to the batch.
const LONG: usize = 4096;

/// Collects the references in a piece of the dump.
struct Collect<'a> {
    heap: &'a Heap,
    ids: IdSize,
    filter: &'a Filter,
    fields: &'a mut [Option<Vec<Field>>],
    batch: &'a mut Vec<Row>,
}

fn fields_of(heap: &Heap, class: ClassIdx) -> Vec<Field> {
    let referent = heap.reference_strength(class);
    let slots = heap.slots(class).into_iter();
    let fields = slots.filter(|s| s.kind == BasicType::Object).map(|s| {
        let info = heap.class(s.declared_in);
        let is_referent = info.is_referent(&info.fields[s.field].name);
        Field {
            offset: s.offset as usize,
            declared_in: s.declared_in,
            number: s.field as u32,
            strength: referent
                .filter(|_| is_referent)
                .unwrap_or(RefStrength::Strong),
        }
    });
    fields.collect()
}

impl ContentVisitor for Collect<'_> {
    const PRIMITIVE_ARRAYS: bool = false;

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        if !admits(self.filter.from.as_ref(), || class) {
            return;
        }
        let heap = self.heap;
        let Some(known) = self.fields.get_mut(class.0 as usize) else {
            return;
        };
        for field in known.get_or_insert_with(|| fields_of(heap, class)) {
            let Some(bytes) = fields.get(field.offset..field.offset + self.ids.bytes()) else {
                return;
            };
            let to_id = read_id(bytes, self.ids);
            if self.filter.wants(to_id) {
                self.batch.push(Row {
                    from: object,
                    from_class: class,
                    to: object,
                    to_id,
                    how: How::Field(field.declared_in, field.number, field.strength),
                });
            }
        }
    }

    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        if !admits(self.filter.from.as_ref(), || class) {
            return;
        }
        if elements.len() / self.ids.bytes() > LONG {
            self.batch.push(Row {
                from: object,
                from_class: class,
                to: object,
                to_id: ObjectId::NULL,
                how: How::Array,
            });
            return;
        }
        let elements = elements.chunks_exact(self.ids.bytes());
        let elements = (0..).zip(elements.map(|element| read_id(element, self.ids)));
        push_elements(self.filter, object, class, elements, self.batch);
    }
}

fn push_elements(
    filter: &Filter,
    from: ObjIdx,
    from_class: ClassIdx,
    elements: impl Iterator<Item = (u32, ObjectId)>,
    batch: &mut Vec<Row>,
) {
    let wanted = elements.filter(|(_, to_id)| filter.wants(*to_id));
    batch.extend(wanted.map(|(number, to_id)| Row {
        from,
        from_class,
        to: from,
        to_id,
        how: How::Element(number),
    }));
}

struct ReferenceRows {
    env: Env,
    filter: Filter,
    feed: Feed,
    batch: Vec<Row>,
    /// The index of the current row in the batch, plus one.
    at: usize,
    array: Option<Array>,
    /// The targets of the references of the batch.
    found: Vec<Option<ObjIdx>>,
    /// The object whose id was needed most recently.
    last_from: Cell<Option<(ObjIdx, ObjectId)>>,
}

/// A long array that is being read, and the batch that continues after it.
struct Array {
    object: ObjIdx,
    class: ClassIdx,
    next: usize,
    batch: Vec<Row>,
    at: usize,
}

impl ReferenceRows {
    fn push_other(&mut self, from: ObjIdx, reference: Reference) {
        let heap = &self.env.heap;
        let from_class = heap.class_of(from);
        let to_id = heap.id(reference.target);
        if reference.via == Via::Class
            || !admits(self.filter.from.as_ref(), || from_class)
            || !self.filter.wants(to_id)
            || !self.filter.admits_target(heap, reference.target)
        {
            return;
        }
        self.batch.push(Row {
            from,
            from_class,
            to: reference.target,
            to_id,
            how: How::Other(Box::new(reference)),
        });
    }

    /// Reads the next references: of a long array first, then of the feed. False at the end. A batch may be empty.
    fn fill(&mut self) -> Result<bool, QueryError> {
        self.env.stop.check()?;
        self.batch.clear();
        self.at = 0;
        if let Some(array) = &mut self.array {
            let found = self.env.heap.elements(array.object, array.next, LONG)?;
            let numbered = (array.next as u32..).zip(found.iter().copied());
            let (object, class) = (array.object, array.class);
            push_elements(&self.filter, object, class, numbered, &mut self.batch);
            self.filter
                .resolve(&self.env.heap, &mut self.batch, &mut self.found);
            array.next += found.len();
            if found.is_empty()
                && let Some(array) = self.array.take()
            {
                (self.batch, self.at) = (array.batch, array.at);
            }
            return Ok(true);
        }
        match &mut self.feed {
            Feed::Objects(objects) => {
                let Some(from) = objects.next() else {
                    return Ok(false);
                };
                if self.env.heap.kind(from) == ObjectKind::ObjectArray {
                    self.start_array(from, self.env.heap.class_of(from));
                } else {
                    for reference in self.env.heap.outbound(from)? {
                        self.push_other(from, reference);
                    }
                }
                Ok(true)
            }
            Feed::Dump(dump) => {
                if let Some((from, reference)) = dump.beside.next() {
                    self.push_other(from, reference);
                    return Ok(true);
                }
                let mut collect = Collect {
                    heap: &self.env.heap,
                    ids: self.env.heap.id_size(),
                    filter: &self.filter,
                    fields: &mut dump.fields,
                    batch: &mut self.batch,
                };
                let more = dump.steps.next(&self.env.heap, &mut collect)?;
                self.filter
                    .resolve(&self.env.heap, &mut self.batch, &mut self.found);
                let (done, total) = dump.steps.progress();
                dump.lead.report(done, total);
                Ok(more)
            }
        }
    }

    /// Sets the batch aside until all elements of an array have been read.
    fn start_array(&mut self, object: ObjIdx, class: ClassIdx) {
        if !admits(self.filter.from.as_ref(), || class) {
            return;
        }
        self.array = Some(Array {
            object,
            class,
            next: 0,
            batch: std::mem::take(&mut self.batch),
            at: self.at,
        });
        self.at = 0;
    }

    /// The id of the object that refers: usually the same as in the previous row.
    fn id_of_source(&self, from: ObjIdx) -> ObjectId {
        match self.last_from.get() {
            Some((last, id)) if last == from => id,
            _ => {
                let id = self.env.heap.id(from);
                self.last_from.set(Some((from, id)));
                id
            }
        }
    }

    fn here(&self) -> Option<&Row> {
        self.batch.get(self.at.checked_sub(1)?)
    }
}

impl Rows for ReferenceRows {
    fn advance(&mut self) -> Result<bool, QueryError> {
        loop {
            let Some(row) = self.batch.get(self.at) else {
                if !self.fill()? {
                    return Ok(false);
                }
                continue;
            };
            self.at += 1;
            match row.how {
                How::Array => self.start_array(row.from, row.from_class),
                _ => return Ok(true),
            }
        }
    }

    fn column(&self, column: usize, out: &mut dyn Out) -> Result<(), QueryError> {
        let heap = &self.env.heap;
        let Some(row) = self.here() else {
            out.null();
            return Ok(());
        };
        match column {
            FROM_ID => {
                let id = self.id_of_source(row.from);
                self.env.remember(id, row.from);
                out.object(id);
            }
            TO_ID => {
                self.env.remember(row.to_id, row.to);
                out.object(row.to_id);
            }
            2..=4 => match &row.how {
                How::Field(class, number, strength) => match column {
                    2 => out.text(&heap.class(*class).fields[*number as usize].name),
                    3 => out.text("field"),
                    _ => out.text(strength.name()),
                },
                How::Element(number) => match column {
                    2 => out.text(&format!("[{number}]")),
                    3 => out.text("element"),
                    _ => out.text(RefStrength::Strong.name()),
                },
                How::Other(reference) => say(&via_cells(reference)[column - 2], out),
                How::Array => out.null(),
            },
            FROM_CLASS => out.text(&heap.class(row.from_class).name),
            TO_CLASS => out.text(&heap.class(heap.class_of(row.to)).name),
            FROM_ADDRESS => out.int(self.id_of_source(row.from).0 as i64),
            TO_ADDRESS => out.int(row.to_id.0 as i64),
            _ => out.null(),
        }
        Ok(())
    }
}
