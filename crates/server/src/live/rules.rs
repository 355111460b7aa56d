//! What is recorded and looked at of each class, as [`vmpi::class_options`] reads it from a file or the
//! page. The agent is told, so that what is off costs nothing from then on; the pages leave out what is
//! off, and of a class what its options leave out, of the past as well.

use super::classes::ClassRow;
use super::history::Delta;
use super::instances::Instances;
use super::program::Ask;
use super::recorded::Recorded;
use super::session::{Live, locked};
use super::table::module;
use profile::NameId;
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};
use vmpi::class_options::Rules;
use vmpi::{Choice, ClassOptions};

/// What factories of the program have said of classes; `None` of those that are not recorded.
pub type Answers = FxHashMap<NameId, Option<ClassOptions>>;

/// What is looked at of a class, given by its number in the recording if it is there; `None` if it is
/// left out. The module is empty for none.
fn options_of(
    rules: &Rules,
    answers: Option<&Answers>,
    (module, class): (&str, &str),
    id: Option<NameId>,
) -> Option<ClassOptions> {
    match rules.of(module, class) {
        Choice::Off => None,
        Choice::Record(options) => Some(*options),
        Choice::Ask(_) => {
            let answer = answers.and_then(|answers| answers.get(&id?));
            answer.copied().unwrap_or(Some(ClassOptions::FULL))
        }
    }
}

/// What is looked at of a class of a recording.
pub fn in_recording(rules: &Rules, recorded: &Recorded, class: &str) -> Option<ClassOptions> {
    let profile = recorded.profile();
    let id = profile.and_then(|profile| profile.names.find(class));
    let module = profile.and_then(|profile| module(profile, id?));
    let name = (module.unwrap_or(""), class);
    options_of(rules, recorded.answers(), name, id)
}

/// Leaves sites out; those of a class without stacks become one.
pub fn cut_sites(rules: &Rules, recorded: &Recorded, deltas: &mut Vec<Delta>) {
    let Some(profile) = recorded.profile().filter(|_| !rules.is_empty()) else {
        return;
    };
    let mut merged: FxHashMap<NameId, Delta> = FxHashMap::default();
    let mut known: FxHashMap<NameId, Option<ClassOptions>> = FxHashMap::default();
    deltas.retain(|delta| {
        let is_bare = profile.stacks.frames(delta.trace).is_empty();
        let options = *known.entry(delta.class).or_insert_with(|| {
            let module = module(profile, delta.class).unwrap_or("");
            let name = (module, profile.names.get(delta.class));
            options_of(rules, recorded.answers(), name, Some(delta.class))
        });
        if options.is_some_and(|options| !options.stack) && !is_bare {
            let whole = merged.entry(delta.class).or_insert(Delta {
                class: delta.class,
                ..Delta::default()
            });
            whole.add(delta);
        }
        options.is_some_and(|options| options.stack || is_bare)
    });
    let mut merged: Vec<Delta> = merged.into_values().collect();
    merged.sort_unstable_by_key(|delta| delta.class);
    deltas.append(&mut merged);
}

/// Leaves classes out, and what they hold.
pub fn cut_classes(rules: &Rules, recorded: &Recorded, rows: &mut Vec<ClassRow>) {
    if rules.is_empty() {
        return;
    }
    rows.retain_mut(|row| {
        let Some(options) = in_recording(rules, recorded, &row.class) else {
            return false;
        };
        row.size = row.size.filter(|_| options.size);
        row.capacity = row.capacity.filter(|_| options.capacity);
        row.capacity_bytes = row.capacity_bytes.filter(|_| options.capacity);
        row.capacity_bytes_interval = row.capacity_bytes_interval.filter(|_| options.capacity);
        true
    });
}

/// Leaves out of instances what is not looked at.
pub fn cut_instances(options: &ClassOptions, list: &mut Instances) {
    for row in &mut list.rows {
        if !options.stack {
            row.stack.clear();
        }
        if !options.size {
            row.content.size = None;
        }
        if !options.capacity {
            row.content.capacity = None;
            row.content.capacity_bytes = 0;
        }
    }
}

/// The lines that hold now.
#[derive(Debug, Default)]
pub struct Chosen(RwLock<Arc<Rules>>);

impl Chosen {
    /// All of them.
    pub fn get(&self) -> Arc<Rules> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Live {
    /// Records and looks at classes as these lines say from now on.
    ///
    /// # Errors
    /// The first line that is wrong; the ones before then hold on.
    pub fn choose(&self, text: &str) -> Result<(), String> {
        let rules = Rules::parse(text).map_err(|wrong| wrong.to_string())?;
        locked(&self.past).classes(rules.text());
        let chosen = &self.rules.0;
        *chosen.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        self.tell_rules();
        Ok(())
    }

    /// Tells the agent, if there is one. One that is gone is noticed by whoever listens to it.
    pub(super) fn tell_rules(&self) {
        if let Some(commands) = self.commands() {
            let _ = commands(Ask::Classes(self.rules.get().text().to_owned()));
        }
    }
}
