//! Every analysis of a heap as one list, for a run over many dumps: the heap is opened once, and
//! answers are written as JSON and for a terminal.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions};
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::share::redact::{Method, RedactOptions, Redactor};
use heap_analysis::share::secrets::{SecretOptions, SecretRules};
use heap_analysis::strings::StringOptions;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::HistogramOptions;
use heap_analysis::waste::WasteOptions;
use heap_analysis::{
    android,
    android::bitmaps,
    collections::{contents, stats as collection_stats},
    compare::{baseline, check, diff},
    leaks,
    objects::object,
    paths,
    paths::{chain, merged as merged_paths},
    sets::{members, selection, set},
    share::{export, extract, secrets},
    strings,
    tables::{
        class_paths, class_references, dominators, dossier, histogram, loaders, overview,
        properties, roots, summary, threads, top, treemap, unreachable, validate,
    },
    waste,
};
use heap_graph::{Control, Heap, HeapError, ObjIdx};
use heap_query::{Lang, Limits, Session};
use hprof::android::{ToAndroid, ToStandard};
use regex::Regex;
use report::{Look, Provenance, Say, json, say, terminal};

/// Asks one question of a heap. What has many forms takes some of them by turns, so that a run of
/// many mutants has all.
pub type Analysis = fn(&Heap, Turn) -> Result<(), HeapError>;

/// Number of a mutant, which chooses the forms of a question.
#[derive(Clone, Copy, Debug)]
pub struct Turn(pub u64);

/// One answer in so many is written, because writing one takes longer than finding it.
const WRITE: u64 = 16;

impl Turn {
    /// The one of a list whose turn it is.
    fn of<T>(self, list: &[T]) -> &T {
        &list[self.0 as usize % list.len()]
    }
}

fn written<T: Say>(heap: &Heap, turn: Turn, answer: &T) {
    if !turn.0.is_multiple_of(WRITE) {
        return;
    }
    let provenance = Provenance::of(heap.summary());
    json::write(&mut io::sink(), answer, &provenance).expect("nothing fails to be written");
    let look = Look {
        width: Some(100),
        color: true,
        raw_bytes: false,
    };
    let _ = terminal::render(&say::whole(answer, &provenance), &look);
}

/// Some objects of every kind: the largest, the first in the file, and the roots.
fn some(heap: &Heap) -> Vec<ObjIdx> {
    let mut some: Vec<ObjIdx> = heap.dominated(None).take(4).collect();
    let step = (heap.len() / 8).max(1) as usize;
    some.extend(heap.all_ids().step_by(step).take(12).map(|(o, _)| o));
    some
}

fn by(by: GroupBy) -> HistogramOptions {
    HistogramOptions {
        by,
        top: Some(20),
        all: true,
        empty: true,
        ..HistogramOptions::default()
    }
}

static RULES: LazyLock<SecretRules> =
    LazyLock::new(|| SecretRules::new(None).expect("the built-in rules"));
static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new("t.*n").expect("a pattern"));

/// Every analysis by name.
pub const ANALYSES: &[(&str, Analysis)] = &[
    ("objects", objects),
    ("summary", |heap, turn| {
        written(heap, turn, &summary::summary(heap));
        written(heap, turn, &validate::validate(heap));
        Ok(())
    }),
    ("overview", |heap, turn| {
        written(
            heap,
            turn,
            &overview::overview(heap, &Default::default(), &Control::quiet())?,
        );
        Ok(())
    }),
    ("histograms", |heap, turn| {
        use GroupBy::{Class, Heap, Loader, Package, Site, Superclass};
        let group = *turn.of(&[Class, Superclass, Loader, Package, Heap, Site]);
        written(heap, turn, &histogram::histogram(heap, &by(group))?);
        Ok(())
    }),
    ("dominators", |heap, turn| {
        written(heap, turn, &dominators::tree(heap, &Default::default()));
        let group = *turn.of(&[GroupBy::Class, GroupBy::Loader, GroupBy::Package]);
        written(heap, turn, &dominators::by_group(heap, group, Some(20)));
        written(heap, turn, &treemap::treemap(heap, 100));
        written(heap, turn, &top::consumers(heap, &Default::default())?);
        Ok(())
    }),
    ("flame graph", |heap, turn| {
        let paths = class_paths::class_paths(heap, &Default::default(), &Control::quiet())?;
        if turn.0.is_multiple_of(WRITE) {
            let classes = histogram::histogram(heap, &by(GroupBy::Class))?;
            let provenance = Provenance::of(heap.summary());
            let stacks = report::profile::heap::profile(&paths, &classes, &provenance, 0);
            let _ = report::profile::render(&stacks, report::profile::Form::Html, None, "a");
        }
        Ok(())
    }),
    ("leaks", |heap, turn| {
        // Without, they are part of the overview.
        let options = leaks::LeakOptions {
            deep: true,
            ..Default::default()
        };
        let found = leaks::find(heap, &options, &Control::quiet())?;
        written(heap, turn, &found);
        Ok(())
    }),
    ("dossier", |heap, turn| {
        let dossier = dossier::dossier(heap, &Default::default(), &Control::quiet())?;
        if turn.0.is_multiple_of(WRITE) {
            let provenance = Provenance::of(heap.summary());
            let _ = report::html::page("a", &dossier, &provenance);
            let _ = report::markdown::render(&say::whole(&dossier, &provenance), true);
        }
        Ok(())
    }),
    ("details", details),
    ("paths", all_paths),
    ("sets", sets),
    ("roots", |heap, turn| {
        let options = roots::RootOptions {
            kind: None,
            top: 20,
        };
        written(
            heap,
            turn,
            &roots::roots(heap, &options, &Control::quiet())?,
        );
        written(heap, turn, &threads::threads(heap, &Default::default()));
        Ok(())
    }),
    ("strings", |heap, turn| {
        let options = StringOptions {
            scope: scope(heap, turn),
            top: Some(20),
            holders: true,
        };
        let quiet = Control::quiet();
        written(heap, turn, &strings::duplicates(heap, &options, &quiet)?);
        written(
            heap,
            turn,
            &strings::find(heap, &PATTERN, &options, &quiet)?,
        );
        Ok(())
    }),
    ("collections", |heap, turn| {
        let options = collection_stats::CollectionOptions {
            scope: scope(heap, turn),
            top: Some(20),
        };
        let quiet = Control::quiet();
        let found = collection_stats::collections(heap, &options, &quiet)?;
        written(heap, turn, &found);
        Ok(())
    }),
    ("waste", |heap, turn| {
        let options = WasteOptions {
            scope: scope(heap, turn),
            top: Some(20),
            holders: true,
            sites: true,
        };
        written(
            heap,
            turn,
            &waste::waste(heap, &options, &Control::quiet())?,
        );
        Ok(())
    }),
    ("loaders", |heap, turn| {
        written(heap, turn, &loaders::loaders(heap, Some(20))?);
        written(heap, turn, &unreachable::unreachable(heap, Some(20)));
        written(heap, turn, &properties::properties(heap));
        Ok(())
    }),
    ("android", |heap, turn| {
        written(
            heap,
            turn,
            &android::android(heap, Some(20), &Control::quiet())?,
        );
        let bitmaps = bitmaps::bitmaps(heap);
        written(heap, turn, &bitmaps);
        for object in some(heap) {
            let _ = bitmaps::picture(heap, object, 64);
        }
        Ok(())
    }),
    ("secrets", |heap, turn| {
        let options = SecretOptions {
            all: true,
            show: true,
            top: Some(20),
        };
        let found = secrets::secrets(heap, &RULES, &options, &Control::quiet())?;
        written(heap, turn, &found);
        Ok(())
    }),
    ("diff", |heap, turn| {
        let two = [("a".to_owned(), heap), ("b".to_owned(), heap)];
        let changes = diff::diff(&two, &Default::default(), &Control::quiet())?;
        written(heap, turn, &changes);
        let rules = check::Rules::against_baseline(5.0);
        let baseline = baseline::Baseline::of(heap, &rules.patterns(), &Control::quiet())?;
        match check::check(heap, &rules, Some(&baseline), &Control::quiet()) {
            Ok(checked) => written(heap, turn, &checked),
            Err(check::RuleError::Heap(error)) => return Err(error),
            Err(error) => panic!("{error}"),
        }
        Ok(())
    }),
    ("export", |heap, _| {
        let origin = export::Origin {
            service: "a".to_owned(),
            dump: "b".to_owned(),
        };
        let _ = export::aggregates(heap, &origin, &Control::quiet())?;
        let mut rows = 0;
        let mut count = |table: &export::Table| -> Result<(), HeapError> {
            rows += table.rows();
            Ok(())
        };
        export::objects(heap, &origin, true, &mut count)?;
        export::references(heap, &origin, true, &mut count)?;
        let _ = class_references::class_references(heap, &Control::quiet())?;
        Ok(())
    }),
];

fn objects(heap: &Heap, _: Turn) -> Result<(), HeapError> {
    crate::ask_of_all(heap);
    heap.check()
}

fn details(heap: &Heap, turn: Turn) -> Result<(), HeapError> {
    for object in some(heap) {
        let options = object::ObjectOptions::default();
        match object::details(heap, object, &options) {
            Ok(details) => written(heap, turn, &details),
            // One that cannot be read is no reason not to examine the others.
            Err(HeapError::Object { .. }) => {}
            Err(error) => return Err(error),
        }
        written(
            heap,
            turn,
            &contents::contents(heap, object, 20, &Control::quiet())?,
        );
        let (above, _) = chain::dominators_of(heap, object);
        let _ = chain::steps(heap, &above);
    }
    Ok(())
}

fn all_paths(heap: &Heap, turn: Turn) -> Result<(), HeapError> {
    let some = some(heap);
    let (strong, any) = (paths::Exclusions::ALL, paths::Exclusions::default());
    let exclude = *turn.of(&[strong, any]);
    for object in &some {
        let options = paths::PathOptions { count: 3, exclude };
        match paths::to_roots(heap, *object, &options, &Control::quiet()) {
            Ok(found) => written(heap, turn, &found),
            Err(HeapError::Object { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let options = MergedOptions {
        max_paths: 1000,
        depth: 10,
        top: 5,
        exclude,
        exact: EXACT_VISITS,
    };
    let set = selection::Selection::of(heap, some);
    let merged = merged_paths::to_objects(heap, "some", &set, &options, &Control::quiet());
    if let Ok(merged) = merged {
        written(heap, turn, &merged);
    }
    Ok(())
}

const SETS: &[&str] = &[
    "all",
    "unreachable",
    "roots",
    "sub:java.lang.Object",
    "package:shop",
    "heap:app",
    "site:1",
    "in:class:shop.Leaf",
    "out:class:shop.Leaf",
    "dominated:class:shop.Leaf",
    "dominators:class:shop.Leaf",
    "retained:class:shop.Leaf",
];

fn sets(heap: &Heap, turn: Turn) -> Result<(), HeapError> {
    for text in [turn.of(SETS), turn.of(&SETS[5..])] {
        let spec: SetSpec = text.parse().expect("a set");
        let Ok(set) = set::members(heap, &spec, true, &Control::quiet()) else {
            continue;
        };
        let page = members::PageOptions {
            sort: Default::default(),
            offset: 0,
            limit: 20,
        };
        let total = members::total(heap, &set);
        written(
            heap,
            turn,
            &members::page(heap, text.to_string(), &set, total, &page),
        );
        written(
            heap,
            turn,
            &members::histogram_of(heap, &set, &by(GroupBy::Class)),
        );
        let above = members::immediate_dominators(heap, text.to_string(), &set, Some(&PATTERN));
        written(heap, turn, &above);
    }
    Ok(())
}

/// What the analyses of contents examine: by turns all objects and those of a set.
fn scope(heap: &Heap, turn: Turn) -> Scope {
    let name = *turn.of(&[
        "all",
        "all",
        "retained:class:shop.Leaf",
        "sub:java.util.Map",
    ]);
    let spec: SetSpec = name.parse().expect("a set");
    match set::members(heap, &spec, true, &Control::quiet()) {
        Ok(objects) if name != "all" => Scope::Set {
            name: name.to_owned(),
            all: true,
            objects: objects.into(),
        },
        _ => Scope::All,
    }
}

/// Queries that examine all of a heap, in every language.
pub const QUERIES: &[(Lang, &str)] = &[
    (
        Lang::Sql,
        "select class, count(*), sum(shallow), max(retained) from objects group by class",
    ),
    (
        Lang::Sql,
        "select * from objects o join \"references\" r on r.from_id = o.id left join inbound(o.id)",
    ),
    (
        Lang::Sql,
        "select * from objects o, paths(o.id) union all select 1, * from suspects",
    ),
    (Lang::Sql, "select * from merged_paths('class:shop.Leaf')"),
    (
        Lang::Sql,
        "select o.id, c.* from objects o, contents(o.id) c",
    ),
    (Lang::Sql, "select * from thread_locals"),
    (Lang::Sql, "select * from waste(0, 'class:shop.Leaf')"),
    (
        Lang::Oql,
        "SELECT s, toString(s), s.@retainedHeapSize, dominators(s), outbounds(s), inbounds(s) FROM INSTANCEOF java.lang.Object s",
    ),
    (
        Lang::Oql,
        "SELECT AS RETAINED SET * FROM INSTANCEOF java.lang.Object",
    ),
    (
        Lang::Jhat,
        "select { a: sizeof(x), b: count(referrers(x)), c: count(reachables(x)), d: x.toString() } from instanceof java.lang.Object x",
    ),
    (
        Lang::Jhat,
        "select heap.livepaths(x) from instanceof java.lang.Object x",
    ),
];

/// Asks one of [`QUERIES`]; it may be refused.
pub fn ask(heap: Heap, turn: Turn) {
    let (lang, text) = *turn.of(QUERIES);
    let limits = Limits {
        rows: Some(100),
        time: Some(Duration::from_secs(5)),
        ..Limits::default()
    };
    let _ = Session::open(heap.into()).run(text, Some(lang), &limits);
}

/// Every way to write a dump anew: redacted, in part, converted.
pub fn rewrite(heap: &Heap, data: &[u8]) {
    for rename in [None, Some(Vec::new())] {
        let options = RedactOptions {
            method: Method::Tokens([7; 32]),
            keep: vec!["java.lang.Integer".to_owned()],
            numbers: true,
            rename_except: rename,
        };
        let Ok(redactor) = Redactor::new(data, &options) else {
            continue;
        };
        let mut out = Vec::new();
        hprof::rewrite(data, &redactor, &mut out).expect("writing to memory");
        let found = heap_analysis::share::redact::verify(data, &out, &redactor)
            .expect("what was written is a dump");
        assert!(found.clean(), "redacted: {found:?}");
    }
    let part = extract::Extract::new(heap, &some(heap), true);
    let _ = hprof::rewrite(data, &part, &mut io::sink());
    if let Ok(standard) = ToStandard::new(data, true) {
        let _ = hprof::rewrite(data, &standard, &mut io::sink());
    }
    if let Ok(android) = ToAndroid::new(data) {
        let _ = hprof::rewrite(data, &android, &mut io::sink());
    }
}
