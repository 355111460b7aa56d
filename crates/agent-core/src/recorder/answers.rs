//! What factories of the program have answered about classes, for a collector.

use std::collections::{BTreeMap, BTreeSet};
use vmpi::{ClassAnswer, ClassId};

/// The answers, and which of them the collector has not received.
#[derive(Debug, Default)]
pub(super) struct Answers {
    all: BTreeMap<ClassId, ClassAnswer>,
    fresh: BTreeSet<ClassId>,
    /// Whether the answers that the collector has received are void.
    are_void: bool,
}

impl Answers {
    /// Adds answers; `anew`: the earlier ones are void.
    pub(super) fn add(&mut self, anew: bool, answers: &[ClassAnswer]) {
        if anew {
            self.all.clear();
            self.fresh.clear();
            self.are_void = true;
        }
        for answer in answers {
            self.all.insert(answer.class, *answer);
            self.fresh.insert(answer.class);
        }
    }

    /// A class was unloaded.
    pub(super) fn forget(&mut self, class: ClassId) {
        self.all.remove(&class);
        self.fresh.remove(&class);
    }

    /// A collector is connected that has not received what others have.
    pub(super) fn send_again(&mut self) {
        self.fresh = self.all.keys().copied().collect();
    }

    /// The records for the collector: answers since the last call, after an empty one if the earlier ones are void.
    pub(super) fn take(&mut self) -> Vec<Vec<ClassAnswer>> {
        let mut records = Vec::new();
        if std::mem::take(&mut self.are_void) {
            records.push(Vec::new());
        }
        let fresh = std::mem::take(&mut self.fresh);
        if !fresh.is_empty() {
            let answers = fresh.iter().filter_map(|class| self.all.get(class));
            records.push(answers.copied().collect());
        }
        records
    }
}
