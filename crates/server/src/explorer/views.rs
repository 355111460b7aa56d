//! The questions that can be asked: a name, and how it is answered. To add a view: one line in
//! [`VIEWS`], its function, its command line in `command.rs`, and a page in `web/`.

use super::later::Job;
use super::state::{Chosen, Explorer};
use super::{plain, query};
use crate::reply::{Form, Written};
use heap_analysis::android::android;
use heap_analysis::collections::stats::{CollectionOptions, collections};
use heap_analysis::compare::diff::{DiffOptions, diff};
use heap_analysis::sets::members;
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::set;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::{Histogram, HistogramOptions};
use heap_analysis::{
    android::bitmaps,
    collections::contents,
    leaks,
    objects::object,
    paths,
    paths::merged as merged_paths,
    strings,
    tables::{
        dominators, histogram, loaders, overview, properties, roots, summary, threads, top,
        treemap, unreachable, validate,
    },
    waste,
};
use heap_graph::{Control, Heap};
use report::{Provenance, Say};
use requests::{Fault, FaultKind};
use requests::{Params, ROWS};
use std::ops::Deref;
use std::sync::Arc;

/// A question that is being answered.
pub(super) struct Asked<'a> {
    pub(super) explorer: &'a Explorer,
    pub(super) job: &'a Job,
}

impl Deref for Asked<'_> {
    type Target = Explorer;
    fn deref(&self) -> &Explorer {
        self.explorer
    }
}

impl Asked<'_> {
    /// Stops the work when no one waits for the answer any more.
    pub(super) fn control(&self) -> Control<'_> {
        Control {
            progress: &|_| {},
            cancel: self.job.cancel(),
        }
    }
}

type Answer = fn(&Asked<'_>, &Params, Form) -> Result<Written, Fault>;

/// Every view by name.
pub(super) const VIEWS: &[(&str, Answer)] = &[
    ("overview", |e, p, f| {
        let defaults = overview::OverviewOptions::default();
        let options = overview::OverviewOptions {
            classes: p.limit(defaults.classes)?,
        };
        let heap = e.heap()?;
        say(heap, f, &overview::overview(heap, &options, &e.control())?)
    }),
    ("leaks", |e, p, f| {
        let deep = p.flag("deep");
        let heap = if deep {
            e.heap_with_referrers()?
        } else {
            e.heap()?
        };
        let defaults = leaks::LeakOptions::default();
        let options = leaks::LeakOptions {
            threshold: p.percent("threshold", defaults.threshold)?,
            deep,
        };
        say(heap, f, &leaks::find(heap, &options, &e.control())?)
    }),
    ("histogram", histogram_view),
    ("quick_histogram", quick_view),
    ("objects", objects_view),
    ("immediate_dominators", |e, p, f| {
        let heap = e.heap()?;
        let (spec, set) = chosen(e, heap, p)?;
        let skip = p.regex("skip")?;
        let answer =
            members::immediate_dominators(heap, spec.to_string(), &set.objects, skip.as_ref());
        say(heap, f, &answer)
    }),
    ("dominators", |e, p, f| {
        let heap = e.heap()?;
        let options = dominators::TreeOptions {
            root: p.optional_object(heap)?,
            depth: p.number("depth", 1)?.min(64),
            top: p.limit(ROWS)?,
        };
        say(heap, f, &dominators::tree(heap, &options))
    }),
    ("dominator_groups", |e, p, f| {
        let (heap, by) = (e.heap()?, p.by()?);
        if !matches!(by, GroupBy::Class | GroupBy::Package | GroupBy::Loader) {
            return Err(Fault::bad("by: expected class, package or loader"));
        }
        say(
            heap,
            f,
            &dominators::by_group(heap, by, Some(p.limit(ROWS)?)),
        )
    }),
    ("treemap", |e, p, f| {
        let heap = e.heap()?;
        let root = p.optional_object(heap)?;
        let areas = p.number("areas", 800)?.min(20_000);
        say(heap, f, &treemap::below(heap, root, areas))
    }),
    ("top", |e, p, f| {
        let heap = e.heap()?;
        let options = top::TopOptions {
            top: Some(p.limit(20)?),
            ..top::TopOptions::default()
        };
        say(heap, f, &top::consumers(heap, &options)?)
    }),
    ("object", |e, p, f| {
        let heap = e.heap()?;
        let options = object::ObjectOptions {
            limit: p.limit(ROWS)?,
            inbound: e.referrers_known() && p.get("inbound") != Some("0"),
        };
        say(heap, f, &object::details(heap, p.object(heap)?, &options)?)
    }),
    ("contents", |e, p, f| {
        let heap = e.heap()?;
        say(
            heap,
            f,
            &contents::contents(heap, p.object(heap)?, p.limit(ROWS)?, &e.control())?,
        )
    }),
    ("paths", paths_view),
    ("merged_paths", merged_view),
    ("roots", |e, p, f| {
        let heap = e.heap()?;
        let options = roots::RootOptions {
            kind: p
                .get("kind")
                .map(roots::kind_named)
                .transpose()
                .map_err(Fault::bad)?,
            top: p.limit(20)?,
        };
        say(heap, f, &roots::roots(heap, &options, &e.control())?)
    }),
    ("threads", |e, p, f| {
        let heap = e.heap()?;
        let options = threads::ThreadOptions {
            locals: p.number("locals", 20)?,
            top: Some(p.limit(1000)?),
            thread_locals: Some(p.limit(1000)?),
        };
        say(heap, f, &threads::threads(heap, &options))
    }),
    ("strings", |e, p, f| {
        let heap = e.heap()?;
        let pattern = p
            .regex("find")?
            .ok_or_else(|| Fault::bad("find is missing: expected a regular expression"))?;
        say(
            heap,
            f,
            &strings::find(heap, &pattern, &string_options(e, heap, p)?, &e.control())?,
        )
    }),
    ("duplicate_strings", |e, p, f| {
        let heap = e.heap()?;
        let mut options = string_options(e, heap, p)?;
        options.holders = p.flag("holders");
        say(heap, f, &strings::duplicates(heap, &options, &e.control())?)
    }),
    ("collections", |e, p, f| {
        let heap = e.heap()?;
        let options = CollectionOptions {
            scope: scope(e, heap, p)?,
            top: Some(p.limit(ROWS)?),
        };
        say(heap, f, &collections(heap, &options, &e.control())?)
    }),
    ("waste", |e, p, f| {
        let heap = e.heap()?;
        let options = waste::WasteOptions {
            scope: scope(e, heap, p)?,
            top: Some(p.limit(20)?),
            ..waste::WasteOptions::default()
        };
        say(heap, f, &waste::waste(heap, &options, &e.control())?)
    }),
    ("loaders", |e, p, f| {
        let heap = e.heap()?;
        say(heap, f, &loaders::loaders(heap, Some(p.limit(1000)?))?)
    }),
    ("properties", |e, _, f| {
        let heap = e.heap()?;
        say(heap, f, &properties::properties(heap))
    }),
    ("unreachable", |e, p, f| {
        let heap = e.heap()?;
        say(
            heap,
            f,
            &unreachable::unreachable(heap, Some(p.limit(1000)?)),
        )
    }),
    ("compare", |e, p, f| {
        let heap = e.heap()?;
        let (base_name, base) = e.base_heap()?;
        let defaults = DiffOptions::default();
        let options = DiffOptions {
            top: Some(p.limit(ROWS)?),
            threshold: p.percent("threshold", defaults.threshold)?,
        };
        let name = e.state().borrow().file.clone();
        base.check().map_err(|e| Fault::failed(e.to_string()))?;
        let dumps = [(base_name, base.as_ref()), (name, heap.as_ref())];
        say(heap, f, &diff(&dumps, &options, &e.control())?)
    }),
    ("android", |e, p, f| {
        let heap = e.heap()?;
        let bitmaps = Some(p.limit(20)?);
        say(heap, f, &android(heap, bitmaps, &e.control())?)
    }),
    ("bitmaps", |e, _, f| {
        let heap = e.heap()?;
        say(heap, f, &bitmaps::bitmaps(heap))
    }),
    ("bitmap_picture", |e, p, f| {
        let heap = e.heap()?;
        let most = p.number("most", 512)?.clamp(1, 2048) as u32;
        let picture = bitmaps::picture(heap, p.object(heap)?, most)
            .ok_or_else(|| Fault::bad("this object is no bitmap"))?;
        say(heap, f, &picture)
    }),
    ("summary", |e, _, f| {
        let heap = e.heap()?;
        say(heap, f, &summary::summary(heap))
    }),
    ("validate", |e, _, f| {
        let heap = e.heap()?;
        say(heap, f, &validate::validate(heap))
    }),
];

/// The names of all views, as they stand in addresses.
pub fn names() -> impl Iterator<Item = &'static str> {
    VIEWS.iter().map(|view| view.0)
}

pub(super) fn say<T: Say>(heap: &Heap, form: Form, answer: &T) -> Result<Written, Fault> {
    Ok(Written::new(form, answer, &Provenance::of(heap.summary())))
}

pub(super) fn string_options(
    e: &Asked<'_>,
    heap: &Heap,
    params: &Params,
) -> Result<strings::StringOptions, Fault> {
    Ok(strings::StringOptions {
        scope: scope(e, heap, params)?,
        top: Some(params.limit(ROWS)?),
        holders: false,
    })
}

pub(super) fn histogram_options(params: &Params) -> Result<HistogramOptions, Fault> {
    Ok(HistogramOptions {
        by: params.by()?,
        filter: params.regex("filter")?,
        sort: params.sort()?,
        skip: params.offset()?,
        top: Some(params.limit(ROWS)?),
        all: params.flag("all"),
        empty: params.flag("empty"),
    })
}

fn histogram_view(e: &Asked<'_>, params: &Params, form: Form) -> Result<Written, Fault> {
    let options = histogram_options(params)?;
    let heap = match e.heap() {
        // While the index is being built the first pass has the counts.
        Err(fault) if fault.kind == FaultKind::NotReady && e.quick().is_some() => {
            return quick_view(e, params, form);
        }
        other => other?,
    };
    if params.get("set").is_some() {
        let (_, set) = chosen(e, heap, params)?;
        let answer = members::histogram_of(heap, &set.objects, &options);
        return say_groups(heap, params, form, &answer);
    }
    let full = e.histograms.get((options.by, options.all), || {
        let whole = HistogramOptions {
            by: options.by,
            all: options.all,
            empty: true,
            ..HistogramOptions::default()
        };
        let full = histogram::histogram(heap, &whole)?;
        let size = full.rows.len() * 150;
        Ok::<(Histogram, usize), Fault>((full, size))
    })?;
    say_groups(heap, params, form, &histogram::page_of(&full, &options))
}

fn say_groups(
    heap: &Heap,
    params: &Params,
    form: Form,
    rows: &Histogram,
) -> Result<Written, Fault> {
    let (written, of) = (say(heap, form, rows)?, ("histogram", params));
    Ok(plain::with_links(written, of, rows.omitted_rows > 0))
}

fn quick_view(e: &Asked<'_>, params: &Params, form: Form) -> Result<Written, Fault> {
    let Some(quick) = e.quick() else {
        return match e.heap() {
            // There was an index already, so that no first pass was needed.
            Ok(_) => histogram_view(e, params, form),
            Err(fault) if fault.kind == FaultKind::NotReady => {
                Err(Fault::not_ready("the first pass over the file is not done"))
            }
            Err(fault) => Err(fault),
        };
    };
    let answer = histogram::from_quick(quick, &histogram_options(params)?);
    let written = Written::new(form, &answer, &Provenance::of(&quick.summary));
    let of = ("quick_histogram", params);
    Ok(plain::with_links(written, of, answer.omitted_rows > 0))
}

/// The set that is requested.
pub(super) fn chosen(
    e: &Asked<'_>,
    heap: &Heap,
    params: &Params,
) -> Result<(SetSpec, Arc<Chosen>), Fault> {
    let spec = params
        .set()?
        .ok_or_else(|| Fault::bad("set is missing: expected one such as class:java.lang.String"))?;
    let all = params.flag("all");
    let text = spec.to_string();
    if spec.needs_referrers() {
        e.heap_with_referrers()?;
    }
    let chosen = e.sets.get((text, all), || {
        let resolved = query::resolve(e, &spec)?;
        let objects = set::members(heap, &resolved, all, &e.control())?;
        let total = members::total(heap, &objects);
        let size = objects.memory();
        let objects = Arc::new(objects);
        Ok::<_, Fault>((Chosen { objects, total }, size))
    })?;
    Ok((spec, chosen))
}

/// The objects that a view examines: a set, or with `all` all objects.
fn scope(e: &Asked<'_>, heap: &Heap, params: &Params) -> Result<Scope, Fault> {
    if params.get("set").is_none() {
        return Ok(Scope::of_all(params.flag("all")));
    }
    let (spec, set) = chosen(e, heap, params)?;
    Ok(Scope::Set {
        name: spec.to_string(),
        all: params.flag("all") || spec.has_unreachable(),
        objects: Arc::clone(&set.objects),
    })
}

fn objects_view(e: &Asked<'_>, params: &Params, form: Form) -> Result<Written, Fault> {
    if params.get("by").is_some() {
        return histogram_view(e, params, form);
    }
    let heap = e.heap()?;
    let (spec, set) = chosen(e, heap, params)?;
    let options = page_options(params)?;
    let page = members::page(heap, spec.to_string(), &set.objects, set.total, &options);
    let (written, of) = (say(heap, form, &page)?, ("objects", params));
    let shown = page.offset.saturating_add(page.rows.len() as u64);
    Ok(plain::with_links(written, of, shown < page.total.objects))
}

pub(super) fn page_options(params: &Params) -> Result<members::PageOptions, Fault> {
    Ok(members::PageOptions {
        sort: params.sort()?,
        offset: params.offset()?,
        limit: params.limit(ROWS)?,
    })
}

fn paths_view(e: &Asked<'_>, params: &Params, form: Form) -> Result<Written, Fault> {
    paths_of(e, params, form, 100)
}

/// The first path takes milliseconds. To look for further ones may lead through the whole heap.
pub(super) fn paths_of(
    e: &Asked<'_>,
    params: &Params,
    form: Form,
    most: usize,
) -> Result<Written, Fault> {
    let heap = e.heap_with_referrers()?;
    let target = params.object(heap)?;
    let mut last = Err(Fault::bad("no exclusions were given"));
    for exclude in params.exclusions()? {
        let options = paths::PathOptions {
            count: params.number("count", 3)?.clamp(1, most),
            exclude,
        };
        let found = paths::to_roots(heap, target, &options, &e.control())?;
        let done = !found.paths.is_empty() || !found.reachable;
        last = say(heap, form, &found);
        if done {
            break;
        }
    }
    last
}

fn merged_view(e: &Asked<'_>, params: &Params, form: Form) -> Result<Written, Fault> {
    merged(e, params, form, 100_000)
}

/// Follows `most` paths, or fewer if those are requested.
pub(super) fn merged(
    e: &Asked<'_>,
    params: &Params,
    form: Form,
    most: usize,
) -> Result<Written, Fault> {
    let heap = e.heap_with_referrers()?;
    let (spec, set) = chosen(e, heap, params)?;
    let effort = (most, merged_paths::EXACT_VISITS);
    merged_of(
        heap,
        &spec,
        &set.objects,
        params,
        form,
        effort,
        &e.control(),
    )
}

pub(super) fn merged_of(
    heap: &Heap,
    spec: &SetSpec,
    set: &Selection,
    params: &Params,
    form: Form,
    (most, exact): (usize, usize),
    control: &Control<'_>,
) -> Result<Written, Fault> {
    let name = spec.to_string();
    let mut last = Err(Fault::bad("no exclusions were given"));
    for exclude in params.exclusions()? {
        let options = merged_paths::MergedOptions {
            max_paths: params.number("max_paths", 1000)?.min(most),
            depth: params.number("depth", 24)?.min(200),
            top: params.number("top", 5)?.min(100),
            exclude,
            exact,
        };
        let found = merged_paths::to_objects(heap, &name, set, &options, control)?;
        let done = !found.nodes.is_empty();
        last = say(heap, form, &found);
        if done {
            break;
        }
    }
    last
}
