//! The table `objects`: every object of the dump, read directly from the columns of the index.

use super::largest::Largest;
use super::table::{
    ColumnDef, Constraint, Cost, Op, Operand, Order, Out, Rows, Scan, Source, columns,
};
use crate::describe::{kind_name, readable};
use crate::error::QueryError;
use crate::limits::Lead;
use crate::shared::{BLOCK, ByClassReader, Env, NO_DISTANCE};
use heap_graph::{ClassIdx, Dominator, ObjIdx};
use hprof::{Bytes, ObjectId};
use std::sync::atomic::Ordering;

const ID: usize = 0;
const CLASS: usize = 1;
const SHALLOW: usize = 2;
const RETAINED: usize = 3;
const ADDRESS: usize = 10;
const CLASS_ID: usize = 11;
const CLASS_NUMBER: usize = 12;

/// The table.
pub(crate) struct Objects(Vec<ColumnDef>);

impl Objects {
    pub(crate) fn new() -> Objects {
        Objects(columns(
            "id:object class:text shallow:int retained:int reachable:int kind:text \
             dominator:object root_type:text heap:text trace:int address:int class_id:object \
             *class_number:int *depth:int *dominated_objects:int *value:text *dominator_address:int \
             *root_distance:int",
        ))
    }
}

impl Source for Objects {
    fn columns(&self) -> &[ColumnDef] {
        &self.0
    }

    fn exact(&self, column: usize) -> bool {
        matches!(column, ID | CLASS_ID)
    }

    fn uses(&self, column: usize, op: Op) -> bool {
        match column {
            ID | CLASS | CLASS_ID | CLASS_NUMBER | ADDRESS => op == Op::Eq,
            SHALLOW | RETAINED => true,
            _ => false,
        }
    }

    fn cost(&self, env: &Env, with: &[(usize, Op)]) -> Option<Cost> {
        let all = env.heap.len() as f64;
        let has = |column| with.iter().any(|w| w.0 == column);
        let bounded = |w: &(usize, Op)| w.0 == RETAINED && !matches!(w.1, Op::Lt | Op::Le);
        Some(if has(ID) || has(ADDRESS) {
            Cost {
                rows: 1.0,
                work: 2.0,
            }
        } else if with.iter().any(bounded) {
            Cost {
                rows: all / 500.0,
                work: all / 300.0 + 10.0,
            }
        } else if has(CLASS) || has(CLASS_ID) || has(CLASS_NUMBER) {
            Cost {
                rows: all / 50.0,
                work: all / 10.0 + 10.0,
            }
        } else if with.is_empty() {
            Cost {
                rows: all,
                work: all + 10.0,
            }
        } else {
            Cost {
                rows: all / 4.0,
                work: all / 3.0 + 10.0,
            }
        })
    }

    fn delivers(&self, order: Order) -> bool {
        matches!(
            order,
            Order::Ascending(ADDRESS | CLASS)
                | Order::Descending(RETAINED)
                | Order::Grouped(ID | ADDRESS | CLASS | CLASS_NUMBER)
        )
    }

    fn open(&self, env: &Env, scan: Scan) -> Result<Box<dyn Rows>, QueryError> {
        let filter = Filter::new(env, &scan);
        let walk = walk_of(env, &scan, &filter)?;
        Ok(Box::new(ObjectRows {
            filter,
            env: env.clone(),
            walk,
            here: Here::default(),
        }))
    }
}

/// The order in which objects are visited.
enum Walk {
    One(Option<(ObjIdx, ObjectId)>),
    Blocks(Box<Blocks>),
    Classes(Classes),
    Largest(Box<Largest>),
}

fn walk_of(env: &Env, scan: &Scan, filter: &Filter) -> Result<Walk, QueryError> {
    if scan.equal(ID).or_else(|| scan.equal(ADDRESS)).is_some() {
        return Ok(Walk::One(one_object(env, scan)));
    }
    if let Some(Order::Ascending(CLASS) | Order::Grouped(CLASS | CLASS_NUMBER)) = scan.order {
        return Ok(Walk::Classes(Classes::new(env, filter, all_classes(env))?));
    }
    let floor = scan.constraints.iter().filter(|c| c.column == RETAINED);
    let floor = floor.filter_map(least).max();
    let free = scan.order.is_none();
    if scan.order == Some(Order::Descending(RETAINED)) || free && floor.is_some_and(|f| f > 0) {
        return Ok(Walk::Largest(Box::new(Largest::new(
            env,
            floor.unwrap_or(0),
        ))));
    }
    // One scan of a class is cheaper than ordering all objects by class; several scans are more expensive.
    if let Some(class) = filter.only_class()
        && env.scanned_class.swap(true, Ordering::Relaxed)
    {
        return Ok(Walk::Classes(Classes::new(env, filter, vec![class])?));
    }
    Ok(Walk::Blocks(Box::new(Blocks::new(env, scan))))
}

fn all_classes(env: &Env) -> Vec<ClassIdx> {
    (0..env.heap.classes().len() as u32).map(ClassIdx).collect()
}

/// The object with a requested id.
fn one_object(env: &Env, scan: &Scan) -> Option<(ObjIdx, ObjectId)> {
    let id = scan
        .equal(ID)
        .or_else(|| scan.equal(ADDRESS))?
        .object_id()?;
    env.find(id).map(|object| (object, id))
}

/// The smallest whole number that a constraint admits, if it is a lower bound.
fn least(constraint: &Constraint) -> Option<u64> {
    let n = match &constraint.value {
        Operand::Int(n) => *n as f64,
        Operand::Real(n) => *n,
        Operand::Null | Operand::Text(_) => return None,
    };
    match constraint.op {
        Op::Eq | Op::Ge | Op::Gt => Some(n.floor().max(0.0) as u64),
        Op::Lt | Op::Le => None,
    }
}

/// The conditions, by column.
struct Filter {
    classes: Option<Vec<bool>>,
    shallow: Vec<Constraint>,
    retained: Vec<Constraint>,
}

impl Filter {
    fn new(env: &Env, scan: &Scan) -> Filter {
        let mut classes: Option<Vec<bool>> = None;
        for constraint in scan.constraints.iter().filter(|c| c.op == Op::Eq) {
            let mut admitted = vec![false; env.heap.classes().len()];
            let mut admit = |class: ClassIdx| admitted[class.0 as usize] = true;
            match (constraint.column, &constraint.value) {
                (CLASS, Operand::Text(name)) => {
                    env.classes_named(name).iter().copied().for_each(&mut admit);
                }
                (CLASS_NUMBER, Operand::Int(n)) => {
                    if let Ok(n) = u32::try_from(*n)
                        && (n as usize) < env.heap.classes().len()
                    {
                        admit(ClassIdx(n));
                    }
                }
                (CLASS_ID, value) => {
                    if let Some(class) = value.object_id().and_then(|id| env.class_of_id(id)) {
                        admit(class);
                    }
                }
                _ => continue,
            }
            classes = Some(match classes {
                None => admitted,
                Some(old) => old.iter().zip(admitted).map(|(a, b)| *a && b).collect(),
            });
        }
        let of = |column| {
            let all = scan.constraints.iter();
            all.filter(|c| c.column == column).cloned().collect()
        };
        Filter {
            classes,
            shallow: of(SHALLOW),
            retained: of(RETAINED),
        }
    }

    /// The class of all admitted objects, if there is only one.
    fn only_class(&self) -> Option<ClassIdx> {
        let admitted = (0..).map(ClassIdx).zip(self.classes.as_ref()?);
        let mut admitted = admitted.filter(|(_, is_admitted)| **is_admitted);
        let (class, _) = admitted.next()?;
        admitted.next().is_none().then_some(class)
    }

    fn admits_class(&self, class: ClassIdx) -> bool {
        match &self.classes {
            Some(classes) => classes.get(class.0 as usize).copied().unwrap_or(false),
            None => true,
        }
    }
}

/// The current object with its values that were read already.
#[derive(Default)]
struct Here {
    object: u64,
    id: Option<ObjectId>,
    class: Option<ClassIdx>,
    shallow: Option<Bytes>,
    retained: Option<Bytes>,
}

/// All objects by id; the used columns are read one block at a time.
struct Blocks {
    lead: Lead,
    next: u64,
    at: usize,
    count: usize,
    ids: Option<Vec<ObjectId>>,
    classes: Vec<ClassIdx>,
    shallow: Option<Vec<Bytes>>,
    retained: Option<Vec<Bytes>>,
}

impl Blocks {
    fn new(env: &Env, scan: &Scan) -> Blocks {
        let wants = |column: usize| {
            scan.used & 1 << column != 0 || scan.constraints.iter().any(|c| c.column == column)
        };
        let block = |wanted: bool| wanted.then(|| vec![Bytes(0); BLOCK]);
        let wants_ids = wants(ID) || wants(ADDRESS);
        Blocks {
            lead: env.lead("objects"),
            next: 0,
            at: 0,
            count: 0,
            ids: wants_ids.then(|| vec![ObjectId::NULL; BLOCK]),
            classes: vec![ClassIdx(0); BLOCK],
            shallow: block(wants(SHALLOW)),
            retained: block(wants(RETAINED)),
        }
    }

    fn next(&mut self, env: &Env, filter: &Filter, here: &mut Here) -> Result<bool, QueryError> {
        loop {
            if self.at == self.count {
                env.stop.check()?;
                self.lead.report(self.next, env.heap.len());
                let first = ObjIdx(self.next);
                self.count = env.heap.read_classes(first, &mut self.classes);
                if self.count == 0 {
                    return Ok(false);
                }
                if let Some(block) = &mut self.ids {
                    env.heap.read_ids(first, block);
                }
                if let Some(block) = &mut self.shallow {
                    env.heap.read_shallow(first, block);
                }
                if let Some(block) = &mut self.retained {
                    env.heap.read_retained(first, block);
                }
                self.next += self.count as u64;
                self.at = 0;
            }
            let at = self.at;
            self.at += 1;
            let class = self.classes[at];
            if !filter.admits_class(class) {
                continue;
            }
            let shallow = self.shallow.as_ref().map(|b| b[at]);
            let retained = self.retained.as_ref().map(|b| b[at]);
            let admits = |list: &[Constraint], value: Option<Bytes>| {
                list.iter().all(|c| value.is_none_or(|v| c.admits(v.0)))
            };
            if admits(&filter.shallow, shallow) && admits(&filter.retained, retained) {
                *here = Here {
                    object: self.next - self.count as u64 + at as u64,
                    id: self.ids.as_ref().map(|b| b[at]),
                    class: Some(class),
                    shallow,
                    retained,
                };
                return Ok(true);
            }
        }
    }
}

/// The objects of classes, by the name of the class.
struct Classes {
    lead: Lead,
    reader: ByClassReader,
    /// Number of objects so far.
    seen: u64,
}

impl Classes {
    fn new(env: &Env, filter: &Filter, mut all: Vec<ClassIdx>) -> Result<Classes, QueryError> {
        all.retain(|class| filter.admits_class(*class));
        all.sort_by_key(|c| (&env.heap.class(*c).name, *c));
        Ok(Classes {
            lead: env.lead("objects"),
            reader: ByClassReader::new(env, all.into_iter())?,
            seen: 0,
        })
    }

    fn next(&mut self, here: &mut Here) -> Result<bool, QueryError> {
        let Some((class, object)) = self.reader.next()? else {
            return Ok(false);
        };
        self.seen += 1;
        if self.seen.is_multiple_of(BLOCK as u64) {
            self.lead.report(self.seen, self.reader.len());
        }
        *here = Here {
            object: object.0,
            class: Some(class),
            ..Here::default()
        };
        Ok(true)
    }
}

struct ObjectRows {
    env: Env,
    filter: Filter,
    walk: Walk,
    here: Here,
}

impl ObjectRows {
    fn admits_rest(&self) -> bool {
        let heap = &self.env.heap;
        let object = ObjIdx(self.here.object);
        (self.filter.classes.is_none() || self.filter.admits_class(heap.class_of(object)))
            && (self.filter.shallow.is_empty() || {
                let shallow = heap.shallow(object).0;
                self.filter.shallow.iter().all(|c| c.admits(shallow))
            })
            && (self.filter.retained.is_empty() || {
                let retained = heap.retained(object).0;
                self.filter.retained.iter().all(|c| c.admits(retained))
            })
    }
}

impl Rows for ObjectRows {
    fn repeats(&self) -> bool {
        let filter = &self.filter;
        let free = filter.classes.is_none() && filter.shallow.is_empty();
        matches!(self.walk, Walk::One(_)) && free && filter.retained.is_empty()
    }

    fn again(&mut self, scan: &Scan) {
        self.walk = Walk::One(one_object(&self.env, scan));
        self.here = Here::default();
    }

    fn advance(&mut self) -> Result<bool, QueryError> {
        let mut looked_at = 0u32;
        loop {
            let here = &mut self.here;
            let found = match &mut self.walk {
                Walk::One(one) => {
                    let found = one.take();
                    here.object = found.map_or(0, |(object, _)| object.0);
                    here.id = found.map(|(_, id)| id);
                    found.is_some()
                }
                Walk::Blocks(blocks) => return blocks.next(&self.env, &self.filter, here),
                Walk::Classes(classes) => classes.next(here)?,
                Walk::Largest(largest) => {
                    let found = largest.next(&self.env);
                    let (retained, object) = found.unwrap_or_default();
                    *here = Here {
                        object,
                        retained: Some(Bytes(retained)),
                        ..Here::default()
                    };
                    found.is_some()
                }
            };
            if !found || self.admits_rest() {
                return Ok(found);
            }
            looked_at += 1;
            if looked_at.is_multiple_of(BLOCK as u32) {
                self.env.stop.check()?;
            }
        }
    }

    fn column(&self, column: usize, out: &mut dyn Out) -> Result<(), QueryError> {
        let (env, heap) = (&self.env, &self.env.heap);
        let object = ObjIdx(self.here.object);
        let id = || self.here.id.unwrap_or_else(|| heap.id(object));
        let class = || self.here.class.unwrap_or_else(|| heap.class_of(object));
        match column {
            ID => {
                let id = id();
                env.remember(id, object);
                out.object(id);
            }
            CLASS => out.text(&heap.class(class()).name),
            SHALLOW => out.size(self.here.shallow.unwrap_or_else(|| heap.shallow(object)).0),
            RETAINED => out.size(
                self.here
                    .retained
                    .unwrap_or_else(|| heap.retained(object))
                    .0,
            ),
            4 => out.flag(heap.is_reachable(object)),
            5 => out.text(kind_name(heap.kind(object))),
            6 => match heap.dominator(object) {
                Dominator::Object(above) => out.object(heap.id(above)),
                Dominator::Root | Dominator::Unreachable => out.null(),
            },
            7 => out.maybe(env.root_kind(object).map(|k| k.name())),
            8 => out.maybe(heap.heap_name(object)),
            9 => out.int(i64::from(heap.allocation_trace(object).0)),
            ADDRESS => out.int(id().0 as i64),
            CLASS_ID => out.object(heap.class(class()).id),
            CLASS_NUMBER => out.int(i64::from(class().0)),
            13 if heap.is_reachable(object) => {
                out.int(i64::from(env.tree()?.depths[object.0 as usize]));
            }
            14 => out.size(env.tree()?.counts[object.0 as usize]),
            15 => out.maybe(readable(heap, object).as_deref()),
            16 => match heap.dominator(object) {
                Dominator::Object(above) => out.int(heap.id(above).0 as i64),
                Dominator::Root | Dominator::Unreachable => out.null(),
            },
            17 => match env.distances()?[object.0 as usize] {
                NO_DISTANCE => out.null(),
                distance => out.int(i64::from(distance)),
            },
            _ => out.null(),
        }
        Ok(())
    }
}

/// The object that a value refers to.
pub(crate) fn named(env: &Env, value: Option<&Operand>) -> Option<ObjIdx> {
    value
        .and_then(Operand::object_id)
        .and_then(|id: ObjectId| env.find(id))
}
