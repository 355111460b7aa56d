//! The table `classes`. A join reads one class per row, so values are computed one by one.

use super::table::{ColumnDef, Cost, Op, Operand, Out, Rows, Scan, Source, columns};
use crate::error::QueryError;
use crate::shared::Env;
use heap_analysis::tables::group::loader_name;
use heap_graph::ClassIdx;
use std::ops::Range;

const ID: usize = 1;

/// The table.
pub(crate) struct Classes(Vec<ColumnDef>);

impl Classes {
    pub(crate) fn new() -> Classes {
        Classes(columns(
            "name:text id:object superclass:text superclass_id:object loader:text \
             loader_id:object kind:text instance_size:int objects:int shallow:int \
             reachable_objects:int reachable_shallow:int retained:int \
             *number:int *superclass_number:int *loader_address:int",
        ))
    }
}

impl Source for Classes {
    fn columns(&self) -> &[ColumnDef] {
        &self.0
    }

    fn exact(&self, column: usize) -> bool {
        column == ID
    }

    fn uses(&self, column: usize, op: Op) -> bool {
        column == ID && op == Op::Eq
    }

    fn cost(&self, env: &Env, with: &[(usize, Op)]) -> Option<Cost> {
        let all = env.heap.classes().len() as f64;
        Some(if with.is_empty() {
            Cost {
                rows: all.max(1.0),
                work: all * 4.0 + 10.0,
            }
        } else {
            Cost {
                rows: 1.0,
                work: 2.0,
            }
        })
    }

    fn open(&self, env: &Env, scan: Scan) -> Result<Box<dyn Rows>, QueryError> {
        Ok(Box::new(ClassRows {
            next: class_range(env, scan.equal(ID)),
            here: ClassIdx(0),
            env: env.clone(),
        }))
    }
}

/// The classes to examine: all, or the one with an id.
pub(super) fn class_range(env: &Env, id: Option<&Operand>) -> Range<u32> {
    match id.map(Operand::object_id) {
        None => 0..env.heap.classes().len() as u32,
        Some(id) => match id.and_then(|id| env.class_of_id(id)) {
            Some(class) => class.0..class.0 + 1,
            None => 0..0,
        },
    }
}

struct ClassRows {
    env: Env,
    next: Range<u32>,
    here: ClassIdx,
}

impl Rows for ClassRows {
    fn repeats(&self) -> bool {
        true
    }

    fn again(&mut self, scan: &Scan) {
        self.next = class_range(&self.env, scan.equal(ID));
    }

    fn advance(&mut self) -> Result<bool, QueryError> {
        let next = self.next.next();
        self.here = ClassIdx(next.unwrap_or(0));
        Ok(next.is_some())
    }

    fn column(&self, column: usize, out: &mut dyn Out) -> Result<(), QueryError> {
        let heap = &self.env.heap;
        let class = heap.class(self.here);
        let above = class.super_class.map(|c| heap.class(c));
        match column {
            0 => out.text(&class.name),
            ID => out.object(class.id),
            2 => out.maybe(above.map(|c| c.name.as_str())),
            3 => match above {
                Some(above) => out.object(above.id),
                None => out.null(),
            },
            4 => out.text(&loader_name(heap, class.loader)),
            5 => out.object(class.loader),
            6 if class.element.is_some() => out.text("primitive_array"),
            6 if class.name.ends_with("[]") => out.text("object_array"),
            6 => out.text("instance"),
            7 => out.size(class.instance_size.0),
            8 => out.size(class.objects),
            9 => out.size(class.shallow.0),
            10 => out.size(class.reachable_objects),
            11 => out.size(class.reachable_shallow.0),
            12 => out.size(class.retained.0),
            13 => out.int(i64::from(self.here.0)),
            14 => match class.super_class {
                Some(above) => out.int(i64::from(above.0)),
                None => out.null(),
            },
            15 if !class.loader.is_null() => out.int(class.loader.0 as i64),
            _ => out.null(),
        }
        Ok(())
    }
}
