//! Tables of the results of analyses: what the commands and the explorer show, as rows that a query can process
//! further. Each scan runs its analysis again. Comments before the columns of a table give their names in the JSON of
//! the same answer (docs/reference/json.md).

use super::listed::{Listed, RowIter};
use super::table::{Operand, Scan, Type, columns};
use super::tables::{class_name, id_cell, object, size};
use crate::cell::Cell;
use crate::error::{QueryError, bad_pattern};
use crate::shared::Env;
use heap_analysis::collections::stats::{CollectionOptions, collections};
use heap_analysis::leaks::LeakOptions;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_analysis::sets::scope::Scope;
use heap_analysis::sets::selection::Selection;
use heap_analysis::sets::set::members;
use heap_analysis::sets::spec::{SetError, SetSpec};
use heap_analysis::strings::{StringOptions, duplicates};
use heap_analysis::tables::group::{GroupBy, GroupKey};
use heap_analysis::tables::histogram::{HistogramOptions, HistogramRow, histogram};
use heap_analysis::tables::thread_locals::thread_locals;
use heap_analysis::tables::threads::ThreadOptions;
use heap_analysis::waste::{WasteOptions, waste};
use heap_analysis::{
    android::bitmaps,
    collections::contents,
    leaks,
    tables::{dominators, loaders, overview, properties, roots, threads, treemap, validate},
};
use heap_graph::ObjIdx;
use serde::Serialize;
use serde_json::Value as Json;
use std::sync::Arc;

/// The functions, with the arguments marked `@`.
const SET_MEMBERS: &str = "id:object class:text shallow:int retained:int @set:text @all:int";
const HISTOGRAM_BY: &str = "name:text id:object objects:int shallow:int retained:int members:text \
                            @by:text @set:text @all:int";
const IMMEDIATE_DOMINATORS: &str = "class:text class_id:object dominators:int dominated:int \
                                    shallow:int dominated_shallow:int @set:text @skip:text";
const MERGED_PATHS: &str = "depth:int object:object class:text field:text objects:int roots:text \
                            retained:int targets:int targets_retained:int @set:text @exclude:text \
                            @levels:int @top:int @max_paths:int";
const PATHS: &str = "path:int position:int object:object class:text field:text retained:int \
                     @id:object @count:int @exclude:text";
const DOMINATOR_GROUPS: &str =
    "name:text id:object objects:int shallow:int retained:int members:text @by:text";
const TREEMAP: &str =
    "parent:int object:object objects:int name:text shallow:int retained:int @id:object";
const CONTENTS: &str = "key:object value:object @of:object";

/// The tables.
const SUSPECTS: &str = "kind:text class:text object:object value:text retained:int share:real \
                        instances:int accumulation_point:object holder:text @threshold:real \
                        @deep:int";
const DUPLICATE_STRINGS: &str =
    "text:text length:int count:int bytes:int wasted:int example:object @all:int @set:text";
const COLLECTIONS: &str = "class:text kind:text objects:int bytes:int elements:int empty:int \
                           empty_bytes:int single:int unused:int collided:int largest:object \
                           largest_size:int @all:int @set:text";
const WASTE: &str = "kind:text objects:int wasted:int @all:int @set:text";
const LOADERS: &str = "loader:text object:object classes:int objects:int shallow:int \
                       retained:int loader_retained:int unreachable:int";
const DUPLICATE_CLASSES: &str = "class:text count:int objects:int loaders:text";
const ROOT_KINDS: &str = "kind:text records:int objects:int shallow:int retained:int";
const VIRTUAL_THREADS: &str = "threads:int retained:int stack:text";
const THREAD_LOCALS: &str = "variable:text variables:int object:object class:text threads:int retained:int \
                             largest:object thread:text";
const PROPERTIES: &str = "kind:text name:text value:text";
const BITMAPS: &str = "object:object width:int height:int pixels:int equal:int retained:int";
const FINDINGS: &str = "offset:int record:text kind:text message:text";
const CHECKS: &str = "what:text ok:int count:int";
const FACTS: &str = "name:text value:text";

/// Every table and function of this module with its name.
pub(crate) fn all() -> Vec<(&'static str, Listed)> {
    vec![
        ("set_members", Listed::function(SET_MEMBERS, set_rows)),
        (
            "histogram_by",
            Listed::function(HISTOGRAM_BY, histogram_rows),
        ),
        (
            "immediate_dominators",
            Listed::function(IMMEDIATE_DOMINATORS, immediate_rows),
        ),
        ("merged_paths", Listed::function(MERGED_PATHS, merged_rows)),
        ("paths", Listed::function(PATHS, path_rows)),
        (
            "dominator_groups",
            Listed::function(DOMINATOR_GROUPS, group_rows),
        ),
        ("treemap", Listed::function(TREEMAP, area_rows).or_alone()),
        ("contents", Listed::function(CONTENTS, content_rows)),
        (
            "suspects",
            Listed::function(SUSPECTS, suspect_rows).or_alone(),
        ),
        (
            "duplicate_strings",
            Listed::function(DUPLICATE_STRINGS, duplicate_rows).or_alone(),
        ),
        (
            "collections",
            Listed::function(COLLECTIONS, collection_rows).or_alone(),
        ),
        ("waste", Listed::function(WASTE, waste_rows).or_alone()),
        (
            "loaders",
            few(LOADERS, |env, _| {
                rows_of(LOADERS, &loaders::loaders(&env.heap, None)?.loaders)
            }),
        ),
        (
            "duplicate_classes",
            few(DUPLICATE_CLASSES, |env, _| {
                rows_of(
                    DUPLICATE_CLASSES,
                    &loaders::loaders(&env.heap, None)?.duplicates,
                )
            }),
        ),
        (
            "root_kinds",
            few(ROOT_KINDS, |env, _| {
                let options = roots::RootOptions { kind: None, top: 0 };
                let found = env.stop.within(|c| roots::roots(&env.heap, &options, c))?;
                rows_of(ROOT_KINDS, &found.kinds)
            }),
        ),
        (
            "virtual_threads",
            few(VIRTUAL_THREADS, |env, _| {
                let options = ThreadOptions {
                    thread_locals: None,
                    ..ThreadOptions::default()
                };
                let found = threads::threads(&env.heap, &options);
                rows_of(VIRTUAL_THREADS, &found.virtual_groups)
            }),
        ),
        (
            "thread_locals",
            few(THREAD_LOCALS, |env, _| {
                let threads = env.heap.threads().iter().filter_map(|t| t.object);
                rows_of(THREAD_LOCALS, &thread_locals(&env.heap, threads))
            }),
        ),
        ("properties", few(PROPERTIES, property_rows)),
        (
            "bitmaps",
            few(BITMAPS, |env, _| {
                rows_of(BITMAPS, &bitmaps::bitmaps(&env.heap).rows)
            }),
        ),
        (
            "findings",
            few(FINDINGS, |env, _| {
                rows_of(FINDINGS, &validate::validate(&env.heap).findings)
            }),
        ),
        (
            "checks",
            few(CHECKS, |env, _| {
                rows_of(CHECKS, &validate::validate(&env.heap).checks)
            }),
        ),
        ("facts", few(FACTS, fact_rows)),
    ]
}

fn few(list: &str, rows: fn(&Env, &Scan) -> Result<RowIter, QueryError>) -> Listed {
    Listed::table(list, &[], |_| 100.0, rows)
}

/// Rows of an answer, from its JSON: a column has the field of its name; an object with further fields becomes its id,
/// a list its lines.
fn rows_of(list: &str, rows: &impl Serialize) -> Result<RowIter, QueryError> {
    let rows = serde_json::to_value(rows).map_err(|e| QueryError::Run(e.to_string()))?;
    let columns = columns(list);
    let rows = match rows {
        Json::Array(rows) => rows,
        _ => Vec::new(),
    };
    Ok(Box::new(rows.into_iter().map(move |row| {
        let cell = |c: &super::table::ColumnDef| cell_of(c.kind, row.get(&c.name));
        Ok(columns.iter().map(cell).collect())
    })))
}

fn cell_of(kind: Type, value: Option<&Json>) -> Cell {
    match (kind, value) {
        (Type::Object, Some(Json::Object(more))) => cell_of(kind, more.get("object")),
        (Type::Object, Some(Json::String(id))) => id.parse().map_or(Cell::Null, id_cell),
        (_, Some(Json::String(text))) => Cell::Text(text.clone()),
        (_, Some(Json::Bool(flag))) => Cell::Bool(*flag),
        (Type::Real, Some(Json::Number(n))) => n.as_f64().map_or(Cell::Null, Cell::Real),
        (_, Some(Json::Number(n))) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => Cell::Int(n),
            (None, Some(n)) => Cell::Real(n),
            (None, None) => Cell::Null,
        },
        (_, Some(Json::Array(lines))) => {
            let lines = lines.iter().map(|line| match line {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            });
            Cell::Text(lines.collect::<Vec<_>>().join("\n"))
        }
        (_, None | Some(Json::Null | Json::Object(_))) => Cell::Null,
    }
}

/// An argument, by the position of its column in `list`.
fn given<'s>(list: &str, scan: &'s Scan, name: &str) -> Option<&'s Operand> {
    let place = columns(list).iter().position(|c| c.name == name)?;
    scan.equal(place)
}

/// A number of things.
fn given_count(list: &str, scan: &Scan, name: &str, default: usize) -> usize {
    match given(list, scan, name) {
        Some(Operand::Int(n)) => usize::try_from(*n).unwrap_or(0),
        _ => default,
    }
}

fn given_text<'s>(list: &str, scan: &'s Scan, name: &str) -> Option<&'s str> {
    match given(list, scan, name)? {
        Operand::Text(text) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    }
}

fn given_flag(list: &str, scan: &Scan, name: &str) -> bool {
    matches!(given(list, scan, name), Some(Operand::Int(n)) if *n != 0)
}

/// The members of the set in the function's argument, by id; `None` without a set.
fn given_set(
    env: &Env,
    list: &str,
    scan: &Scan,
    all: bool,
) -> Result<Option<(SetSpec, Selection)>, QueryError> {
    let Some(text) = given_text(list, scan, "set") else {
        return Ok(None);
    };
    let wrong = |error: SetError| match error {
        SetError::Heap(error) => QueryError::Heap(error),
        other => QueryError::Run(other.to_string()),
    };
    let spec: SetSpec = text.parse().map_err(wrong)?;
    if spec.needs_referrers() {
        referrers(env)?;
    }
    let resolved = env.resolve(&spec)?;
    let found = env.stop.within(
        |control| match members(&env.heap, &resolved, all, control) {
            Err(SetError::Heap(error)) => Err(error),
            found => Ok(found),
        },
    )?;
    let found = found.map_err(wrong)?;
    Ok(Some((spec, found)))
}

/// The objects that an analysis examines: a set, or with `all` all objects.
fn scope(list: &str, env: &Env, scan: &Scan) -> Result<Scope, QueryError> {
    let all = given_flag(list, scan, "all");
    let set = given_set(env, list, scan, all)?;
    Ok(match set {
        Some((spec, set)) => Scope::Set {
            name: spec.to_string(),
            all: all || spec.has_unreachable(),
            objects: Arc::new(set),
        },
        None => Scope::of_all(all),
    })
}

/// Builds the table of referrers, which takes one pass over the dump, under the query's limits.
fn referrers(env: &Env) -> Result<(), QueryError> {
    if !env.heap.is_empty() {
        env.stop
            .within(|control| env.heap.inbound_with(ObjIdx(0), control))?;
    }
    Ok(())
}

fn none() -> Result<RowIter, QueryError> {
    Ok(Box::new(std::iter::empty()))
}

fn set_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let all = given_flag(SET_MEMBERS, scan, "all");
    let Some((_, found)) = given_set(env, SET_MEMBERS, scan, all)? else {
        return none();
    };
    let env = env.clone();
    let found: Vec<ObjIdx> = found.iter().collect();
    Ok(Box::new(found.into_iter().map(move |o| {
        Ok(vec![
            object(&env, o),
            class_name(&env, o),
            size(env.heap.shallow(o).0),
            size(env.heap.retained(o).0),
        ])
    })))
}

fn grouping(text: Option<&str>) -> Result<GroupBy, QueryError> {
    Ok(match text.unwrap_or_default() {
        "class" => GroupBy::Class,
        "superclass" => GroupBy::Superclass,
        "loader" => GroupBy::Loader,
        "package" => GroupBy::Package,
        "heap" => GroupBy::Heap,
        "site" => GroupBy::Site,
        other => {
            return Err(QueryError::Run(format!(
                "{other}: expected class, superclass, loader, package, heap or site"
            )));
        }
    })
}

/// Name, id and set of a group.
fn group_cells(key: &GroupKey, by: GroupBy) -> [Cell; 3] {
    let id = match key {
        GroupKey::Class { class_id, .. } => id_cell(class_id.0),
        GroupKey::Loader { object, .. } => id_cell(object.0),
        _ => Cell::Null,
    };
    let set = match key {
        GroupKey::Class { class, class_id } => {
            let word = if by == GroupBy::Superclass {
                "sub"
            } else {
                "class"
            };
            match class_id.0.is_null() {
                true => format!("{word}:{class}"),
                false => format!("{word}:{class_id}"),
            }
        }
        GroupKey::Loader { object, .. } => format!("loader:{object}"),
        GroupKey::Package { package } => format!("package:{package}"),
        GroupKey::Heap { heap } => format!("heap:{heap}"),
        GroupKey::Site { trace, .. } => format!("site:{trace}"),
    };
    [Cell::Text(key.name()), id, Cell::Text(set)]
}

fn histogram_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let by = grouping(given_text(HISTOGRAM_BY, scan, "by"))?;
    let options = HistogramOptions {
        by,
        all: given_flag(HISTOGRAM_BY, scan, "all"),
        empty: true,
        ..HistogramOptions::default()
    };
    let found = match given_set(env, HISTOGRAM_BY, scan, options.all)? {
        Some((_, set)) => heap_analysis::sets::members::histogram_of(&env.heap, &set, &options),
        None => histogram(&env.heap, &options)?,
    };
    let row = move |row: HistogramRow| {
        let [name, id, members] = group_cells(&row.key, by);
        let retained = row.retained.map_or(Cell::Null, |r| size(r.0));
        let (objects, shallow) = (size(row.objects), size(row.shallow.0));
        Ok(vec![name, id, objects, shallow, retained, members])
    };
    Ok(Box::new(found.rows.into_iter().map(row)))
}

fn group_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let by = grouping(given_text(DOMINATOR_GROUPS, scan, "by"))?;
    let found = dominators::by_group(&env.heap, by, None);
    Ok(Box::new(found.rows.into_iter().map(move |row| {
        let [name, id, members] = group_cells(&row.key, by);
        let (objects, shallow) = (size(row.objects), size(row.shallow.0));
        Ok(vec![
            name,
            id,
            objects,
            shallow,
            size(row.retained.0),
            members,
        ])
    })))
}

fn pattern(text: Option<&str>) -> Result<Option<regex::Regex>, QueryError> {
    let made = |text| regex::Regex::new(text).map_err(|e| QueryError::Run(bad_pattern(text, &e)));
    text.map(made).transpose()
}

fn immediate_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let Some((spec, set)) = given_set(env, IMMEDIATE_DOMINATORS, scan, false)? else {
        return none();
    };
    let skip = pattern(given_text(IMMEDIATE_DOMINATORS, scan, "skip"))?;
    let found = heap_analysis::sets::members::immediate_dominators(
        &env.heap,
        spec.to_string(),
        &set,
        skip.as_ref(),
    );
    rows_of(IMMEDIATE_DOMINATORS, &found.rows)
}

/// The exclusions to try one after the other: those in the argument; without one, all and then none.
fn exclusions(text: Option<&str>) -> Result<Vec<Exclusions>, QueryError> {
    Exclusions::to_try(text).map_err(QueryError::Run)
}

fn merged_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let Some((spec, set)) = given_set(env, MERGED_PATHS, scan, false)? else {
        return none();
    };
    referrers(env)?;
    let mut nodes = Vec::new();
    for exclude in exclusions(given_text(MERGED_PATHS, scan, "exclude"))? {
        let options = MergedOptions {
            max_paths: given_count(MERGED_PATHS, scan, "max_paths", 1000).min(100_000),
            depth: given_count(MERGED_PATHS, scan, "levels", 24).min(200),
            top: given_count(MERGED_PATHS, scan, "top", 20).min(100),
            exclude,
            exact: EXACT_VISITS,
        };
        let found = env
            .stop
            .within(|control| to_objects(&env.heap, &spec.to_string(), &set, &options, control))?;
        nodes = found.nodes;
        if !nodes.is_empty() {
            break;
        }
    }
    rows_of(MERGED_PATHS, &nodes)
}

fn path_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let target = super::objects::named(env, given(PATHS, scan, "id"));
    let Some(target) = target.filter(|o| env.heap.is_reachable(*o)) else {
        return none();
    };
    let count = given_count(PATHS, scan, "count", 3).clamp(1, 100);
    referrers(env)?;
    let mut rows = Vec::new();
    for exclude in exclusions(given_text(PATHS, scan, "exclude"))? {
        let options = PathOptions { count, exclude };
        let found = env
            .stop
            .within(|control| to_roots(&env.heap, target, &options, control))?;
        for (n, path) in found.paths.iter().enumerate() {
            rows.extend(path.steps.iter().enumerate().map(|(at, step)| {
                Ok(vec![
                    size(n as u64),
                    size(at as u64),
                    id_cell(step.object.object.0),
                    Cell::Text(step.object.class.clone()),
                    step.field.clone().map_or(Cell::Null, Cell::Text),
                    size(step.object.retained.0),
                ])
            }));
        }
        if !rows.is_empty() {
            break;
        }
    }
    Ok(Box::new(rows.into_iter()))
}

fn area_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let root = super::objects::named(env, given(TREEMAP, scan, "id"));
    if given(TREEMAP, scan, "id").is_some() && root.is_none() {
        return none();
    }
    rows_of(TREEMAP, &treemap::below(&env.heap, root, 800).areas)
}

fn content_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    match super::objects::named(env, given(CONTENTS, scan, "of")) {
        Some(of) => {
            let found = env
                .stop
                .within(|control| contents::contents(&env.heap, of, 1_000_000, control))?;
            rows_of(CONTENTS, &found.rows)
        }
        None => none(),
    }
}

fn suspect_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let defaults = LeakOptions::default();
    let options = LeakOptions {
        threshold: match given(SUSPECTS, scan, "threshold") {
            Some(Operand::Int(n)) => (*n as f64).clamp(0.0, 100.0),
            Some(Operand::Real(n)) => n.clamp(0.0, 100.0),
            _ => defaults.threshold,
        },
        deep: given_flag(SUSPECTS, scan, "deep"),
    };
    if options.deep {
        referrers(env)?;
    }
    let found = env
        .stop
        .within(|control| leaks::find(&env.heap, &options, control))?;
    rows_of(SUSPECTS, &found.suspects)
}

fn duplicate_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let options = StringOptions {
        scope: scope(DUPLICATE_STRINGS, env, scan)?,
        top: None,
        holders: false,
    };
    let found = env
        .stop
        .within(|control| duplicates(&env.heap, &options, control))?;
    rows_of(DUPLICATE_STRINGS, &found.rows)
}

fn collection_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let options = CollectionOptions {
        scope: scope(COLLECTIONS, env, scan)?,
        top: None,
    };
    let found = env
        .stop
        .within(|control| collections(&env.heap, &options, control))?;
    rows_of(COLLECTIONS, &found.rows)
}

fn waste_rows(env: &Env, scan: &Scan) -> Result<RowIter, QueryError> {
    let options = WasteOptions {
        scope: scope(WASTE, env, scan)?,
        ..WasteOptions::default()
    };
    let found = env
        .stop
        .within(|control| waste(&env.heap, &options, control))?;
    rows_of(WASTE, &found.kinds)
}

fn property_rows(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let found = properties::properties(&env.heap);
    let row = |kind: &str, p: properties::Property| {
        Ok(vec![
            Cell::Text(kind.to_owned()),
            Cell::Text(p.name),
            Cell::Text(p.value),
        ])
    };
    let system = found.properties.into_iter().map(move |p| row("system", p));
    let environment = found.environment.into_iter();
    Ok(Box::new(
        system.chain(environment.map(move |p| row("environment", p))),
    ))
}

fn fact_rows(env: &Env, _: &Scan) -> Result<RowIter, QueryError> {
    let facts = serde_json::to_value(overview::facts(&env.heap));
    let Ok(Json::Object(facts)) = facts else {
        return none();
    };
    let mut rows = Vec::new();
    for (name, value) in facts {
        match value {
            Json::Object(parts) => {
                let parts = parts.into_iter();
                rows.extend(parts.map(|(part, value)| (format!("{name}.{part}"), value)));
            }
            value => rows.push((name, value)),
        }
    }
    Ok(Box::new(rows.into_iter().map(|(name, value)| {
        let text = match value {
            Json::String(text) => text,
            other => other.to_string(),
        };
        Ok(vec![Cell::Text(name), Cell::Text(text)])
    })))
}
