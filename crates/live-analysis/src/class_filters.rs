//! Class filters: what is recorded and shown of each class, as parsed by [`vmpi::class_options`]. They also apply to
//! earlier data: a table omits what they exclude.

use crate::classes::ClassRow;
use crate::history::Delta;
use crate::names::module;
use profile::{NameId, Profile};
use rustc_hash::FxHashMap;
use vmpi::class_options::Rules;
use vmpi::{Choice, ClassOptions};

/// Answers of the program's factories about classes; `None` for classes that are not recorded.
pub type Answers = FxHashMap<NameId, Option<ClassOptions>>;

/// What is shown of a class; `None` if it is omitted. `class` is its number in the recording, if it is there. The
/// module is empty for none.
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

/// The current filters, and the data they are applied to.
#[derive(Clone, Copy, Debug)]
pub struct Filters<'a> {
    /// The lines.
    pub rules: &'a Rules,
    /// Names and modules of the recording, if there is one.
    pub profile: Option<&'a Profile>,
    /// Answers of the program's factories.
    pub answers: Option<&'a Answers>,
}

/// What is shown of a class of a recording; `None` if it is omitted.
pub fn of_class(filters: Filters<'_>, class: &str) -> Option<ClassOptions> {
    let profile = filters.profile;
    let id = profile.and_then(|profile| profile.names.find(class));
    let module = profile.and_then(|profile| module(profile, id?));
    let name = (module.unwrap_or(""), class);
    options_of(filters.rules, filters.answers, name, id)
}

/// Removes excluded sites; the sites of a class without stacks are merged into one.
pub fn cut_sites(filters: Filters<'_>, deltas: &mut Vec<Delta>) {
    let rules = filters.rules;
    let Some(profile) = filters.profile.filter(|_| !rules.is_empty()) else {
        return;
    };
    let mut merged: FxHashMap<NameId, Delta> = FxHashMap::default();
    let mut known: FxHashMap<NameId, Option<ClassOptions>> = FxHashMap::default();
    deltas.retain(|delta| {
        let is_bare = profile.stacks.frames(delta.trace).is_empty();
        let options = *known.entry(delta.class).or_insert_with(|| {
            let module = module(profile, delta.class).unwrap_or("");
            let name = (module, profile.names.get(delta.class));
            options_of(rules, filters.answers, name, Some(delta.class))
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

/// Removes excluded classes, and excluded values of the others.
pub fn cut_classes(filters: Filters<'_>, rows: &mut Vec<ClassRow>) {
    if filters.rules.is_empty() {
        return;
    }
    rows.retain_mut(|row| {
        let Some(options) = of_class(filters, &row.class) else {
            return false;
        };
        row.size = row.size.filter(|_| options.size);
        row.capacity = row.capacity.filter(|_| options.capacity);
        row.capacity_bytes = row.capacity_bytes.filter(|_| options.capacity);
        row.capacity_bytes_interval = row.capacity_bytes_interval.filter(|_| options.capacity);
        true
    });
}
