//! "Show query": the SQL with the same rows as a view, for the query page and `tenure query`.

use requests::{Params, ROWS};
use serde::Serialize;

/// A query for part of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownQuery {
    /// The part of the view.
    title: &'static str,
    /// The text.
    sql: String,
}

/// The queries of a view; none when it shows no rows of the heap.
pub(super) fn of(view: &str, p: &Params) -> Vec<ShownQuery> {
    let one = |title, sql: &str| vec![show(title, sql)];
    match view {
        "overview" => vec![
            show("Biggest objects", &top_objects(15)),
            show(
                "Biggest classes",
                &format!("{CLASSES} limit {}", limit(p, 15)),
            ),
            show("Suspects", "select * from suspects limit 3"),
            show("The file", "select name, value from facts"),
        ],
        "leaks" => one("Suspects", &leaks(p)),
        "histogram" => one("Rows", &histogram(p)),
        "quick_histogram" => one("Rows", &quick_histogram(p)),
        "objects" => one("Objects", &objects(p)),
        "immediate_dominators" => one(
            "By class",
            &format!(
                "select class, dominators, dominated, shallow, dominated_shallow\n\
                 from immediate_dominators({})\norder by dominated desc, class",
                arguments(&[get(p, "set"), get(p, "skip")])
            ),
        ),
        "merged_paths" => one(
            "Paths from roots",
            &format!(
                "select depth, object, class, field, objects, targets, targets_retained\n\
                 from merged_paths({}, {}, {}, {}, {})",
                get(p, "set"),
                get(p, "exclude"),
                number(p, "depth", 24),
                number(p, "top", 5),
                number(p, "max_paths", 1000)
            ),
        ),
        "dominators" => one("Objects", &dominators(p)),
        "dominator_groups" => one(
            "Groups",
            &format!(
                "select name, objects, shallow, retained, members from dominator_groups({})\n\
                 order by retained desc, name limit {}",
                quoted(p.get("by").unwrap_or("class")),
                limit(p, ROWS)
            ),
        ),
        "treemap" => one(
            "Areas",
            &format!(
                "select parent, object, objects, name, shallow, retained from treemap{}",
                p.get("id")
                    .map_or(String::new(), |id| format!("({})", quoted(id)))
            ),
        ),
        "top" => one(
            "Objects above 1 % of the heap",
            &format!(
                "select id, class, shallow, retained from objects\nwhere reachable and dominator is null\n\
                 and retained * 100 > (select cast(value as integer) from facts where name = 'reachable_shallow')\n\
                 order by retained desc limit {}",
                limit(p, 20)
            ),
        ),
        "object" => object(&quoted(p.get("id").unwrap_or_default())),
        "contents" => one(
            "Contents",
            &format!(
                "select key, value from contents({}) limit {}",
                quoted(p.get("id").unwrap_or_default()),
                limit(p, ROWS)
            ),
        ),
        "paths" => one(
            "Steps, path by path",
            &format!(
                "select path, position, object, class, field, retained from paths({}, {}{})",
                quoted(p.get("id").unwrap_or_default()),
                number(p, "count", 3),
                p.get("exclude")
                    .map_or(String::new(), |e| format!(", {}", quoted(e)))
            ),
        ),
        _ => of_parts(view, p),
    }
}

/// The views of parts of the heap.
fn of_parts(view: &str, p: &Params) -> Vec<ShownQuery> {
    let all = u8::from(p.flag("all"));
    let arguments = match p.get("set") {
        Some(_) => format!("({all}, {})", get(p, "set")),
        None if all == 1 => "(1)".to_owned(),
        None => String::new(),
    };
    match view {
        "roots" => vec![
            show(
                "By kind",
                "select kind, records, objects, shallow, retained from root_kinds",
            ),
            show(
                "The records",
                "select type, id, class, thread_serial, frame from roots",
            ),
        ],
        "threads" => vec![
            show(
                "Threads",
                "select name, id, class, serial, daemon, shallow, retained from threads\n\
                 where ifnull(virtual, 0) = 0 order by retained desc, id",
            ),
            show("Stacks", "select thread_id, depth, frame from frames"),
            show(
                "Locals",
                "select thread_id, depth, id, class, type from locals",
            ),
            show(
                "Virtual threads by stack",
                "select threads, retained, stack from virtual_threads",
            ),
        ],
        "strings" => vec![show(
            "Strings",
            &format!(
                "select id, value, shallow, retained from strings\nwhere {}value regexp {} limit {}",
                match p.get("set") {
                    Some(_) => format!(
                        "id in (select id from set_members({}, {all})) and ",
                        get(p, "set")
                    ),
                    None if p.flag("all") => String::new(),
                    None => "reachable and ".to_owned(),
                },
                quoted(p.get("find").unwrap_or_default()),
                limit(p, ROWS)
            ),
        )],
        "duplicate_strings" => vec![show(
            "Equal strings",
            &format!(
                "select text, length, count, bytes, wasted, example from duplicate_strings{arguments} limit {}",
                limit(p, ROWS)
            ),
        )],
        "collections" => vec![show(
            "By class",
            &format!(
                "select * from collections{arguments} limit {}",
                limit(p, ROWS)
            ),
        )],
        "waste" => vec![show(
            "Kinds",
            &format!("select kind, objects, wasted from waste{arguments}"),
        )],
        "loaders" => vec![
            show(
                "Loaders",
                "select loader, object, classes, objects, shallow, retained, unreachable from loaders",
            ),
            show(
                "Classes of the same name",
                "select class, count, objects, loaders from duplicate_classes",
            ),
        ],
        "properties" => vec![
            show(
                "System properties",
                "select name, value from properties where kind = 'system'",
            ),
            show(
                "Environment",
                "select name, value from properties where kind = 'environment'",
            ),
        ],
        "unreachable" => vec![show(
            "By class",
            &format!(
                "select name, objects - reachable_objects as objects, shallow - reachable_shallow as shallow\n\
                 from classes where objects > reachable_objects order by 3 desc, 2 desc, name limit {}",
                limit(p, 1000)
            ),
        )],
        "bitmaps" => vec![show(
            "Bitmaps",
            "select object, width, height, pixels, equal, retained from bitmaps",
        )],
        "summary" => vec![show("Facts", "select name, value from facts")],
        "validate" => vec![
            show("Checks", "select what, ok, count from checks"),
            show(
                "Findings",
                "select offset, record, kind, message from findings",
            ),
        ],
        "query" => p
            .get("text")
            .map(|text| show("The query", text))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

const CLASSES: &str = "select name, objects, shallow, retained, members from histogram_by('class')\n\
                       where objects > 0\norder by retained desc, shallow desc, name";

fn show(title: &'static str, sql: &str) -> ShownQuery {
    ShownQuery {
        title,
        sql: sql.to_owned(),
    }
}

fn get(p: &Params, name: &str) -> String {
    quoted(p.get(name).unwrap_or_default())
}

fn number(p: &Params, name: &str, default: usize) -> usize {
    p.number(name, default).unwrap_or(default)
}

fn limit(p: &Params, default: usize) -> usize {
    p.limit(default).unwrap_or(default)
}

/// ` limit N offset M`.
fn page(p: &Params) -> String {
    let limit = limit(p, ROWS);
    match p.offset() {
        Ok(offset) if offset > 0 => format!("limit {limit} offset {offset}"),
        _ => format!("limit {limit}"),
    }
}

/// A text as an SQL literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Arguments without empty ones at the end.
fn arguments(list: &[String]) -> String {
    let last = list.iter().rposition(|a| a != "''").map_or(1, |n| n + 1);
    list[..last].join(", ")
}

fn top_objects(count: usize) -> String {
    format!(
        "select id, class, shallow, retained from objects\nwhere reachable and dominator is null\n\
         order by retained desc limit {count}"
    )
}

fn leaks(p: &Params) -> String {
    let threshold = p.percent("threshold", 10.0).unwrap_or(10.0);
    let arguments = match (p.flag("deep"), threshold) {
        (false, 10.0) => String::new(),
        (deep, threshold) => format!("({threshold}, {})", u8::from(deep)),
    };
    format!(
        "select kind, class, object, retained, share, instances, accumulation_point, holder\n\
         from suspects{arguments}"
    )
}

fn histogram(p: &Params) -> String {
    let all = if p.flag("all") { "1" } else { "''" };
    let by = quoted(p.get("by").unwrap_or("class"));
    let arguments = arguments(&[by, get(p, "set"), all.to_owned()]);
    let filter = filter_of_groups(p);
    let order = match p.get("sort") {
        Some("shallow") => "shallow desc, name",
        Some("objects") => "objects desc, name",
        Some("name") => "name",
        _ => "retained desc, shallow desc, name",
    };
    format!(
        "select name, objects, shallow, retained, members from histogram_by({arguments})\n\
         {filter}order by {order} {}",
        page(p)
    )
}

/// The first pass counts all objects by class and knows no retained sizes.
fn quick_histogram(p: &Params) -> String {
    let order = match p.get("sort") {
        Some("objects") => "objects desc, name",
        Some("name") => "name",
        _ => "shallow desc, name",
    };
    let (filter, page) = (filter_of_groups(p), page(p));
    format!("select name, objects, shallow from classes\n{filter}order by {order} {page}")
}

/// The condition for rows of a histogram.
fn filter_of_groups(p: &Params) -> String {
    let mut wanted = Vec::new();
    if !p.flag("empty") {
        wanted.push("objects > 0".to_owned());
    }
    if let Some(filter) = p.get("filter") {
        wanted.push(format!("name regexp {}", quoted(filter)));
    }
    match wanted.is_empty() {
        true => String::new(),
        false => format!("where {}\n", wanted.join(" and ")),
    }
}

fn objects(p: &Params) -> String {
    let all = if p.flag("all") { "1" } else { "''" };
    let arguments = arguments(&[get(p, "set"), all.to_owned()]);
    // Members are ordered by id, and the sort is stable.
    let order = match p.get("sort") {
        Some("shallow") => "order by shallow desc ",
        Some("objects") => "",
        Some("name") => "order by class ",
        _ => "order by retained desc ",
    };
    format!(
        "select id, class, shallow, retained from set_members({arguments})\n{order}{}",
        page(p)
    )
}

fn dominators(p: &Params) -> String {
    match p.get("id") {
        None => top_objects(limit(p, ROWS)),
        Some(id) => format!(
            "select id, class, shallow, retained from dominators({})\norder by retained desc limit {}",
            quoted(id),
            limit(p, ROWS)
        ),
    }
}

fn object(id: &str) -> Vec<ShownQuery> {
    let of = |title, sql: &str| show(title, &sql.replace('?', id));
    vec![
        of(
            "It",
            "select id, class, shallow, retained, reachable, root_type, heap from objects where id = ?",
        ),
        of(
            "Fields",
            "select declared_in, name, type, value from field_values where id = ?",
        ),
        of(
            "Refers to",
            "select id, class, field, kind, strength, retained from outbound(?)",
        ),
        of(
            "Static fields",
            "select name, type, value from fields where class_id = ? and static",
        ),
        of(
            "Kept alive through",
            "select position, id, class, field, retained from dominator_path(?)",
        ),
        of(
            "Referred to by",
            "select id, class, field, kind, strength, retained from inbound(?) order by retained desc",
        ),
        of(
            "Keeps alive",
            "select id, class, shallow, retained from dominators(?) order by retained desc",
        ),
    ]
}
