//! What can be said early about answers that take long.

use super::views::{
    Asked, chosen, histogram_options, merged, merged_of, page_options, paths_of, say,
    string_options,
};
use crate::reply::{Form, Written};
use heap_analysis::sets::members;
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::set;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::strings;
use heap_graph::Heap;
use requests::{Fault, Params};

type Early = fn(&Asked<'_>, &Params) -> Result<Option<Written>, Fault>;

/// The early answers of each view, soonest first: `None` when the whole answer is as quick.
pub(super) const FIRST: &[(&str, Early)] = &[
    ("objects", |e, p| {
        if p.get("by").is_some() {
            return early_histogram(e, p);
        }
        let Some((heap, spec, set)) = some_chosen(e, p)? else {
            return Ok(None);
        };
        let options = page_options(p)?;
        let total = members::total(heap, &set);
        let page = members::page(heap, spec.to_string(), &set, total, &options);
        say(heap, Form::Json, &page).map(Some)
    }),
    ("immediate_dominators", |e, p| {
        let Some((heap, spec, set)) = some_chosen(e, p)? else {
            return Ok(None);
        };
        let skip = p.regex("skip")?;
        let answer = members::immediate_dominators(heap, spec.to_string(), &set, skip.as_ref());
        say(heap, Form::Json, &answer).map(Some)
    }),
    ("histogram", early_histogram),
    ("histogram", |e, p| {
        if p.get("set").is_none() {
            return Ok(None);
        }
        let heap = e.heap()?;
        let options = histogram_options(p)?;
        let (_, set) = chosen(e, heap, p)?;
        // Every object of the heap is examined: that is not quick if there are many.
        if set.objects.len() < QUICK {
            return Ok(None);
        }
        let counts = members::counts_of(heap, &set.objects, &options);
        say(heap, Form::Json, &counts).map(Some)
    }),
    ("paths", |e, p| match p.number("count", 3)? {
        0 | 1 => Ok(None),
        _ => paths_of(e, p, Form::Json, 1).map(Some),
    }),
    ("strings", |e, p| first_strings(e, p, FIRST_STRINGS)),
    ("strings", |e, p| first_strings(e, p, MORE_STRINGS)),
    ("merged_paths", |e, p| {
        let Some((heap, spec, set)) = some_chosen(e, p)? else {
            return merged(e, p, Form::Json, FIRST_PATHS).map(Some);
        };
        let effort = (FIRST_PATHS, FIRST_VISITS);
        merged_of(heap, &spec, &set, p, Form::Json, effort, &e.control()).map(Some)
    }),
];

/// Sets of fewer objects have their histogram at once.
const QUICK: u64 = 100_000;

/// Strings that are examined before all others are, and some more.
const FIRST_STRINGS: usize = 4_000;
const MORE_STRINGS: usize = 40_000;

/// Paths that are followed before all others are, and objects that are examined for them.
const FIRST_PATHS: usize = 10;
const FIRST_VISITS: usize = 2_000;

fn early_histogram(e: &Asked<'_>, params: &Params) -> Result<Option<Written>, Fault> {
    let Some((heap, _, set)) = some_chosen(e, params)? else {
        return Ok(None);
    };
    let counts = members::counts_of(heap, &set, &histogram_options(params)?);
    say(heap, Form::Json, &counts).map(Some)
}

fn first_strings(e: &Asked<'_>, params: &Params, most: usize) -> Result<Option<Written>, Fault> {
    let heap = e.heap()?;
    let Some(pattern) = params.regex("find")? else {
        return Ok(None);
    };
    if params.get("set").is_some() {
        return Ok(None);
    }
    let found = strings::first(heap, &pattern, &string_options(e, heap, params)?, most);
    say(heap, Form::Json, &found).map(Some)
}

/// Some of the set that is requested; `None` when there is none, when all of it is as quick, or when
/// its first page is known already.
#[allow(clippy::type_complexity, reason = "what the views of sets need")]
fn some_chosen<'e>(
    e: &'e Asked<'_>,
    params: &Params,
) -> Result<Option<(&'e Heap, SetSpec, Selection)>, Fault> {
    let heap = e.heap()?;
    let Some(spec) = params.set()? else {
        return Ok(None);
    };
    if params.offset()? > 0 || spec.needs_referrers() && !e.referrers_known() {
        return Ok(None);
    }
    let (all, look) = (params.flag("all"), set::Look::default());
    let some = set::some(heap, &spec, all, &look, &e.control())?;
    Ok(some.map(|set| (&**heap, spec, set)))
}
