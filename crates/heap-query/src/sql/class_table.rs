//! One table per Java class: its instances as rows, their fields as columns, as the MAT Calcite
//! dialect has it. `instanceof.a.B` also has the instances of subclasses.

use super::listed::say;
use super::objects::named;
use super::table::{ColumnDef, Cost, Op, Out, Rows, Scan, Source, Type};
use crate::cell::Cell;
use crate::describe::cell_of;
use crate::error::QueryError;
use crate::shared::{Env, flags, of_classes};
use heap_analysis::objects::fields::lineage;
use heap_graph::{ClassIdx, Heap, ObjIdx, ObjectView};
use hprof::BasicType;
use rustc_hash::FxHashSet;
use std::cell::RefCell;

/// SQLite's own limit is 2000 columns.
const MAX_FIELDS: usize = 1900;

/// The table of a class.
pub(crate) struct ClassTable {
    columns: Vec<ColumnDef>,
    /// Name of the field of each column after `this`.
    fields: Vec<String>,
    classes: Vec<ClassIdx>,
}

impl ClassTable {
    /// The table of all classes with a name, with or without their subclasses. The columns are the fields of the first
    /// class; a field that hides one of a superclass takes precedence.
    pub(crate) fn new(env: &Env, named: &[ClassIdx], subclasses: bool) -> ClassTable {
        let heap = &env.heap;
        let mut columns = vec![column("this", Type::Object, false)];
        let mut fields = Vec::new();
        let mut taken: FxHashSet<String> = FxHashSet::from_iter(["this".to_owned()]);
        let declared = named.first().into_iter().flat_map(|c| lineage(heap, *c));
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        for field in declared.flat_map(|c| &heap.class(c).fields) {
            if fields.len() >= MAX_FIELDS || !seen.insert(&field.name) {
                continue;
            }
            // SQL does not distinguish `a` from `A`.
            let mut name = field.name.clone();
            let mut n = 1;
            while !taken.insert(name.to_lowercase()) {
                n += 1;
                name = format!("{}_{n}", field.name);
            }
            columns.push(column(&name, type_of(field.kind), false));
            fields.push(field.name.clone());
        }
        columns.push(column("@class", Type::Text, true));
        columns.push(column("@shallow", Type::Int, true));
        columns.push(column("@retained", Type::Int, true));
        let classes = if subclasses {
            env.with_subclasses(named)
        } else {
            named.to_vec()
        };
        ClassTable {
            columns,
            fields,
            classes,
        }
    }
}

fn column(name: &str, kind: Type, hidden: bool) -> ColumnDef {
    ColumnDef {
        name: name.to_owned(),
        kind,
        hidden,
        argument: false,
    }
}

fn type_of(kind: BasicType) -> Type {
    match kind {
        BasicType::Object => Type::Object,
        BasicType::Char => Type::Text,
        BasicType::Float | BasicType::Double => Type::Real,
        BasicType::Boolean
        | BasicType::Byte
        | BasicType::Short
        | BasicType::Int
        | BasicType::Long => Type::Int,
    }
}

impl Source for ClassTable {
    fn columns(&self) -> &[ColumnDef] {
        &self.columns
    }

    fn exact(&self, column: usize) -> bool {
        column == 0
    }

    fn uses(&self, column: usize, op: Op) -> bool {
        column == 0 && op == Op::Eq
    }

    fn cost(&self, env: &Env, with: &[(usize, Op)]) -> Option<Cost> {
        let objects = |c: &ClassIdx| env.heap.class(*c).objects as f64;
        let rows: f64 = self.classes.iter().map(objects).sum();
        Some(if with.is_empty() {
            Cost {
                rows,
                work: rows * 4.0 + env.heap.len() as f64 / 20.0 + 10.0,
            }
        } else {
            Cost {
                rows: 1.0,
                work: 4.0,
            }
        })
    }

    fn open(&self, env: &Env, scan: Scan) -> Result<Box<dyn Rows>, QueryError> {
        let mut admitted = flags(env, |_| false);
        for class in &self.classes {
            admitted[class.0 as usize] = true;
        }
        let objects: Box<dyn Iterator<Item = ObjIdx>> = match scan.equal(0) {
            None => Box::new(of_classes(env, admitted, 0..env.heap.len())),
            Some(value) => {
                let found = named(env, Some(value));
                let is_one = |o: &ObjIdx| admitted[env.heap.class_of(*o).0 as usize];
                Box::new(found.filter(is_one).into_iter())
            }
        };
        Ok(Box::new(Instances {
            env: env.clone(),
            fields: self.fields.clone(),
            objects,
            here: ObjIdx(0),
            values: RefCell::new(None),
            count: 0,
        }))
    }
}

struct Instances {
    env: Env,
    fields: Vec<String>,
    objects: Box<dyn Iterator<Item = ObjIdx>>,
    here: ObjIdx,
    /// Fields of the current object, read when the first of them is requested.
    values: RefCell<Option<Vec<Cell>>>,
    count: u32,
}

fn values(heap: &Heap, object: ObjIdx, names: &[String]) -> Result<Vec<Cell>, QueryError> {
    let ObjectView::Instance { fields, .. } = heap.object(object)? else {
        return Ok(Vec::new());
    };
    let of = |(n, name): (usize, &String)| {
        // Usually the columns are the fields in the same order.
        let field = fields.get(n).filter(|f| f.name == name);
        let field = field.or_else(|| fields.iter().find(|f| f.name == name));
        field.map_or(Cell::Null, |f| cell_of(f.value))
    };
    Ok(names.iter().enumerate().map(of).collect())
}

impl Rows for Instances {
    fn advance(&mut self) -> Result<bool, QueryError> {
        self.count = self.count.wrapping_add(1);
        if self.count.is_multiple_of(256) {
            self.env.stop.check()?;
        }
        *self.values.get_mut() = None;
        match self.objects.next() {
            Some(object) => {
                self.here = object;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn column(&self, column: usize, out: &mut dyn Out) -> Result<(), QueryError> {
        let heap = &self.env.heap;
        let after = 1 + self.fields.len();
        match column {
            0 => out.object(heap.id(self.here)),
            n if n < after => {
                let mut values_here = self.values.borrow_mut();
                if values_here.is_none() {
                    *values_here = Some(values(heap, self.here, &self.fields)?);
                }
                let cell = values_here.as_ref().and_then(|v| v.get(n - 1));
                say(cell.unwrap_or(&Cell::Null), out);
            }
            n if n == after => out.text(&heap.class(heap.class_of(self.here)).name),
            n if n == after + 1 => out.size(heap.shallow(self.here).0),
            n if n == after + 2 => out.size(heap.retained(self.here).0),
            _ => out.null(),
        }
        Ok(())
    }
}
