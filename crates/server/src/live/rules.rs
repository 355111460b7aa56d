//! What is recorded and looked at of each class, as [`vmpi::class_options`] reads it from a file or the
//! page. The agent is told, so that what is off costs nothing from then on; the pages leave out what is
//! off, and of a class what its options leave out, of the past as well.

use super::classes::ClassRow;
use super::history::Delta;
use super::instances::Instances;
use super::program::Ask;
use super::session::Live;
use super::table::module;
use profile::{NameId, Profile};
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};
use vmpi::class_options::Rules;
use vmpi::{Choice, ClassOptions};

/// What is looked at of a class; `None` if it is left out. The module is empty for none.
pub fn options_of(rules: &Rules, module: &str, class: &str) -> Option<ClassOptions> {
    match rules.of(module, class) {
        Choice::Off => None,
        Choice::Record(options) => Some(*options),
        Choice::Ask(_) => Some(ClassOptions::FULL),
    }
}

/// The same for a class of a recording.
pub fn in_recording(rules: &Rules, profile: Option<&Profile>, class: &str) -> Option<ClassOptions> {
    let known = profile.and_then(|profile| Some((profile, profile.names.find(class)?)));
    let module = known.and_then(|(profile, id)| module(profile, id));
    options_of(rules, module.unwrap_or(""), class)
}

/// Leaves sites out; those of a class without stacks become one.
pub fn cut_sites(rules: &Rules, profile: &Profile, deltas: &mut Vec<Delta>) {
    if rules.is_empty() {
        return;
    }
    let mut merged: FxHashMap<NameId, Delta> = FxHashMap::default();
    let mut known: FxHashMap<NameId, Option<ClassOptions>> = FxHashMap::default();
    deltas.retain(|delta| {
        let is_bare = profile.stacks.frames(delta.trace).is_empty();
        let options = *known.entry(delta.class).or_insert_with(|| {
            let module = module(profile, delta.class).unwrap_or("");
            options_of(rules, module, profile.names.get(delta.class))
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
pub fn cut_classes(rules: &Rules, profile: Option<&Profile>, rows: &mut Vec<ClassRow>) {
    if rules.is_empty() {
        return;
    }
    rows.retain_mut(|row| {
        let Some(options) = in_recording(rules, profile, &row.class) else {
            return false;
        };
        row.size = row.size.filter(|_| options.size);
        row.capacity = row.capacity.filter(|_| options.capacity);
        row.capacity_bytes = row.capacity_bytes.filter(|_| options.capacity);
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
