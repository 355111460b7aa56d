//! Stacks with numbers of one metric, from sources that have no other data about it.

use crate::metric::{Metric, WeightedStack};
use crate::names::NameId;
use crate::stacks::TraceId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Numbers of one metric, one for each stack and class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WeightedTable {
    /// The metric.
    pub metric: Metric,
    rows: Vec<WeightedStack>,
    #[serde(skip)]
    index: FxHashMap<(TraceId, Option<NameId>), u32>,
}

impl WeightedTable {
    /// An empty table.
    pub fn new(metric: Metric) -> WeightedTable {
        WeightedTable {
            metric,
            rows: Vec::new(),
            index: FxHashMap::default(),
        }
    }

    /// Adds to the number of a stack.
    pub fn add(&mut self, stack: WeightedStack) {
        let next = self.rows.len() as u32;
        let row = *self
            .index
            .entry((stack.trace, stack.class))
            .or_insert_with(|| {
                self.rows.push(WeightedStack { value: 0, ..stack });
                next
            });
        let value = &mut self.rows[row as usize].value;
        *value = value.saturating_add(stack.value);
    }

    /// All rows in order of their first number.
    pub fn rows(&self) -> &[WeightedStack] {
        &self.rows
    }
}
