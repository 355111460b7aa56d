//! The layout of instances of a class in a dump.

use hprof::{BasicType, ClassDump, IdSize};
use rustc_hash::FxHashMap;
use vmpi::ClassId;

/// A part of the fields of an instance: 0 for one reference, otherwise this many bytes of values.
type Run = u16;

/// The data of a class that is needed to write its instances.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The profiler's number of the class; 0 if the class is unknown to it.
    pub(super) class: ClassId,
    /// Its id.
    pub(super) id: u64,
    pub(super) runs: Box<[Run]>,
    /// Bytes of the fields in the VM's dump and in the written dump.
    pub(super) input: usize,
    pub(super) output: usize,
}

/// All classes of a dump.
#[derive(Default)]
pub(super) struct Classes {
    dumped: FxHashMap<u64, (u64, Box<[BasicType]>)>,
    plans: Vec<Plan>,
    numbers: FxHashMap<u64, usize>,
    last: (u64, usize),
}

impl Classes {
    /// A class was dumped.
    pub(super) fn define(&mut self, class: &ClassDump<'_>) {
        let fields = class.fields().map(|(_, kind)| kind).collect();
        self.dumped
            .insert(class.id.0, (class.super_class.0, fields));
    }

    /// Whether a class was dumped.
    pub(super) fn is_dumped(&self, class: u64) -> bool {
        self.dumped.contains_key(&class)
    }

    /// Bytes of the fields of an instance with ids of a size, inherited ones included.
    pub(super) fn instance_size(&self, class: u64, ids: IdSize) -> usize {
        let fields = self.fields(class).unwrap_or_default();
        fields.into_iter().map(|kind| kind.size(ids.bytes())).sum()
    }

    /// All fields in the order of values; `None` while a superclass is missing.
    fn fields(&self, class: u64) -> Option<Vec<BasicType>> {
        let mut fields = Vec::new();
        let mut at = class;
        // A chain of superclasses is short; the bound stops at a chain that is a cycle.
        for _ in 0..10_000 {
            if at == 0 {
                return Some(fields);
            }
            let (superclass, own) = self.dumped.get(&at)?;
            fields.extend_from_slice(own);
            at = *superclass;
        }
        None
    }

    /// The plan of a class; `None` if the class was not dumped. A new plan is made from the fields and from `name`,
    /// which returns number and id.
    #[inline]
    pub(super) fn plan(
        &mut self,
        class: u64,
        ids: IdSize,
        name: impl FnOnce() -> (ClassId, u64),
    ) -> Option<&Plan> {
        if self.last.0 != class || class == 0 {
            let number = match self.numbers.get(&class) {
                Some(number) => *number,
                None => self.make(class, ids, name())?,
            };
            self.last = (class, number);
        }
        self.plans.get(self.last.1)
    }

    fn make(&mut self, class: u64, ids: IdSize, (number, id): (ClassId, u64)) -> Option<usize> {
        let fields = self.fields(class)?;
        let mut runs: Vec<Run> = Vec::new();
        let mut is_open = false;
        for kind in &fields {
            if *kind == BasicType::Object {
                runs.push(0);
                is_open = false;
                continue;
            }
            let bytes = kind.size(8) as Run;
            match runs.last_mut() {
                Some(run) if is_open && *run < Run::MAX - 8 => *run += bytes,
                _ => runs.push(bytes),
            }
            is_open = true;
        }
        let width = |ids: usize| fields.iter().map(|kind| kind.size(ids)).sum();
        self.plans.push(Plan {
            class: number,
            id,
            runs: runs.into(),
            input: width(8),
            output: width(ids.bytes()),
        });
        self.numbers.insert(class, self.plans.len() - 1);
        Some(self.plans.len() - 1)
    }
}
