//! The questions of the terminal explorer, and their answers as screens.

use super::lines::{Line, Target, of_doc};
use heap_analysis::leaks::{LeakOptions, find};
use heap_analysis::objects::object::{ObjectOptions, details};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_analysis::sets::members::{self, PageOptions};
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::set::members as members_of;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::dominators::{TreeOptions, tree};
use heap_analysis::tables::group::{GroupBy, GroupKey};
use heap_analysis::tables::histogram::{Histogram, HistogramOptions, SortBy, histogram};
use heap_analysis::tables::overview::{OverviewOptions, overview};
use heap_analysis::tables::threads::{ThreadOptions, threads};
use heap_analysis::{collections::contents, strings, tables::unreachable};
use heap_graph::{Control, Heap, ObjIdx};
use hprof::ObjectId;
use regex::Regex;
use report::{Doc, Say};

/// Most rows of a list: a screen is for looking, the commands are for all of it.
const ROWS: usize = 1000;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The first screen.
    Overview,
    /// Suspects.
    Leaks,
    /// Counts by group.
    Histogram(GroupBy, SortBy),
    /// Counts by class of a set.
    HistogramOf(SetSpec),
    /// The children of an object in the dominator tree, or its top.
    Dominators(Option<ObjectId>),
    /// Threads with stacks and locals.
    Threads,
    /// Duplicate strings, or those that match.
    Strings(Option<String>),
    /// Garbage.
    Unreachable,
    /// Objects of a set.
    Objects(SetSpec),
    /// One object.
    Object(ObjectId),
    /// From the roots to an object.
    Paths(ObjectId),
}

impl Question {
    /// What stands above the screen.
    pub fn title(&self) -> String {
        match self {
            Question::Overview => "Overview".to_owned(),
            Question::Leaks => "Leak suspects".to_owned(),
            Question::Histogram(by, sort) => {
                format!("Histogram by {by:?}, sorted by {sort:?}").to_lowercase()
            }
            Question::HistogramOf(set) => format!("By class: {set}"),
            Question::Dominators(None) => "Dominator tree".to_owned(),
            Question::Dominators(Some(id)) => format!("Dominated by {id}"),
            Question::Threads => "Threads".to_owned(),
            Question::Strings(None) => "Duplicate strings".to_owned(),
            Question::Strings(Some(find)) => format!("Strings that match {find}"),
            Question::Unreachable => "Unreachable objects".to_owned(),
            Question::Objects(set) => format!("Objects: {set}"),
            Question::Object(id) => format!("Object {id}"),
            Question::Paths(id) => format!("Paths from roots to {id}"),
        }
    }

    /// Answers it.
    ///
    /// # Errors
    /// When the dump cannot be read or has no such object or set.
    pub fn answer(&self, heap: &Heap) -> anyhow::Result<Vec<Line>> {
        let plain = |doc: Doc| Ok(of_doc(&doc, &[]));
        match self {
            Question::Overview => {
                plain(overview(heap, &OverviewOptions::default(), &Control::quiet())?.doc())
            }
            Question::Leaks => plain(find(heap, &LeakOptions::default(), &Control::quiet())?.doc()),
            Question::Histogram(by, sort) => {
                let options = HistogramOptions {
                    by: *by,
                    sort: *sort,
                    top: Some(ROWS),
                    ..HistogramOptions::default()
                };
                Ok(of_histogram(&histogram(heap, &options)?, None))
            }
            Question::HistogramOf(set) => {
                let objects = members_of(heap, set, false, &Control::quiet())?;
                let options = HistogramOptions {
                    top: Some(ROWS),
                    ..HistogramOptions::default()
                };
                let answer = members::histogram_of(heap, &objects, &options);
                Ok(of_histogram(&answer, Some(set)))
            }
            Question::Dominators(root) => {
                let options = TreeOptions {
                    root: root.map(|id| object(heap, id)).transpose()?,
                    depth: 1,
                    top: ROWS,
                };
                plain(tree(heap, &options).doc())
            }
            Question::Threads => {
                let options = ThreadOptions {
                    locals: 10,
                    top: Some(ROWS),
                    ..ThreadOptions::default()
                };
                plain(threads(heap, &options).doc())
            }
            Question::Strings(find) => {
                let options = strings::StringOptions {
                    scope: Scope::Reachable,
                    top: Some(ROWS),
                    holders: false,
                };
                match find {
                    None => plain(strings::duplicates(heap, &options, &Control::quiet())?.doc()),
                    Some(find) => {
                        let found =
                            strings::find(heap, &Regex::new(find)?, &options, &Control::quiet())?;
                        plain(found.doc())
                    }
                }
            }
            Question::Unreachable => plain(unreachable::unreachable(heap, Some(ROWS)).doc()),
            Question::Objects(set) => {
                let objects = members_of(heap, set, false, &Control::quiet())?;
                let total = members::total(heap, &objects);
                let page = PageOptions {
                    sort: SortBy::Retained,
                    offset: 0,
                    limit: ROWS,
                };
                plain(members::page(heap, set.to_string(), &objects, total, &page).doc())
            }
            Question::Object(id) => {
                let at = object(heap, *id)?;
                let mut doc = details(heap, at, &ObjectOptions::default())?.doc();
                let inside = contents::contents(heap, at, 100, &Control::quiet())?;
                if inside.form != "other" {
                    doc = doc.heading("Holds").append(inside.doc());
                }
                plain(doc)
            }
            Question::Paths(id) => {
                let at = object(heap, *id)?;
                let ask = |exclude| {
                    to_roots(
                        heap,
                        at,
                        &PathOptions { count: 5, exclude },
                        &Control::quiet(),
                    )
                };
                let mut found = ask(Exclusions::ALL)?;
                if found.paths.is_empty() && found.reachable {
                    found = ask(Exclusions::default())?;
                }
                plain(found.doc())
            }
        }
    }
}

fn object(heap: &Heap, id: ObjectId) -> anyhow::Result<ObjIdx> {
    heap.find(id)
        .ok_or_else(|| anyhow::anyhow!("no object {id} in this dump"))
}

/// A histogram whose rows lead to their objects, within `set` if there is one.
fn of_histogram(answer: &Histogram, set: Option<&SetSpec>) -> Vec<Line> {
    let targets: Vec<Target> = answer
        .rows
        .iter()
        .map(|row| {
            let own = set_of(&row.key, answer.by);
            Target::Set(match set {
                Some(set) => SetSpec::And(vec![own, set.clone()]),
                None => own,
            })
        })
        .collect();
    of_doc(&answer.doc(), &targets)
}

fn set_of(key: &GroupKey, by: GroupBy) -> SetSpec {
    match key {
        GroupKey::Class { class, class_id } => {
            let name = if class_id.0.is_null() {
                class.clone()
            } else {
                class_id.to_string()
            };
            match by {
                GroupBy::Superclass => SetSpec::Subclasses(name),
                _ => SetSpec::Class(name),
            }
        }
        GroupKey::Loader { object, .. } => SetSpec::Loader(object.0),
        GroupKey::Package { package } => SetSpec::Package(package.clone()),
        GroupKey::Heap { heap } => SetSpec::Heap(heap.clone()),
        GroupKey::Site { trace, .. } => SetSpec::Site(*trace),
    }
}
