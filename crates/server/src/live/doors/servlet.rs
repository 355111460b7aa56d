//! The addresses of the Cougaar memory profiler's servlet, `/profiler?action=...`, with its parameters, so that
//! scripts written for it continue to work. Its pages were plain HTML tables; so are these (facts:
//! jvmpi-vmpi-cougaar.md, section 5).

use crate::reply::{encoded, typed};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use jvm_observe::counters::Counters;
use live_analysis::classes::{ClassRow, Measure};
use live_analysis::instances::{Group, Instance, Query, Uniq, cut};
use live_analysis::origin;
use live_analysis::range::{Step, time_text};
use live_analysis::table::{Examined, Page, Table};
use live_session::answers::objects;
use live_session::answers::tables::{Classes, class_rows};
use live_session::carry_out;
use live_session::clock::now_ms;
use live_session::persist::table_forms::{SORT_SCRIPT, push_table};
use live_session::recording::state::Live;
use report::escape::html;
use report::live;
use requests::Fault;
use requests::Params;
use std::fmt::Write;
use std::sync::Arc;

/// Objects examined, rows and stack lines shown, and characters of a value by default.
const SAMPLE: usize = 1000;
const ROWS: usize = 20;
const LINES: usize = 8;
const STRING_LIMIT: usize = 1000;

/// The servlet's table of classes.
const COLUMNS: [&str; 16] = [
    "Type",
    "Sample%",
    "Live",
    "GC'd",
    "Total",
    "Bytes Each",
    "*Live",
    "+Capacity Bytes",
    "Size Sum",
    "Size Max",
    "Size Max Ever",
    "Size Mean",
    "Capacity Sum",
    "Capacity Max",
    "Capacity Max Ever",
    "Capacity Mean",
];

/// Columns after the servlet's own, each only if counts are estimates: scripts find the old columns at their old
/// positions.
const INTERVALS: [&str; 5] = [
    "Live 95%",
    "Total 95%",
    "+Capacity Bytes 95%",
    "Size Sum 95%",
    "Capacity Sum 95%",
];

/// `sort` values that list instances, with the columns that they sort by; every other one begins with `uniq_`.
const SORTS: [(&str, &str); 9] = [
    ("time", "born_ms"),
    ("compareTo", "rank"),
    ("toString", "value"),
    ("hashcode", "hash"),
    ("size", "size"),
    ("capacity_count", "capacity"),
    ("capacity_bytes", "capacity_bytes"),
    ("excess_capacity", "excess"),
    ("none", "object"),
];

/// `sort` values that count instances.
const GROUPS: [(&str, Uniq); 12] = [
    ("uniq_stack", Uniq::Stack),
    ("uniq_equals", Uniq::Value),
    ("uniq_toString", Uniq::Text),
    ("uniq_hashcode", Uniq::HashCode),
    ("uniq_class", Uniq::Class),
    ("uniq_time", Uniq::Time(Step::Snapshot)),
    ("uniq_second", Uniq::Time(Step::Second)),
    ("uniq_minute", Uniq::Time(Step::Minute)),
    ("uniq_hour", Uniq::Time(Step::Hour)),
    ("uniq_size", Uniq::Size(1)),
    ("uniq_size_mod_100", Uniq::Size(100)),
    ("uniq_size_mod_1000", Uniq::Size(1000)),
];

/// Answers a request of the old servlet.
pub fn answer(live: &Arc<Live>, params: &Params) -> Result<Response, Fault> {
    let action = params.get("action").unwrap_or("");
    if action == "script" {
        return Ok(typed(
            "text/javascript; charset=utf-8",
            SORT_SCRIPT.as_bytes().to_vec(),
        ));
    }
    if params.flag("gc") || action == "gc" {
        carry_out(live, "gc", &Params::default())?;
        // Waits until the freed objects are counted, so that this page does not include them.
        if let Some(commands) = live.commands() {
            live.settle(&commands).map_err(Fault::failed)?;
        }
    }
    let mut body = String::new();
    memory_line(live, &mut body);
    match action {
        "" | "gc" => all_classes(live, params, &mut body)?,
        "type" => one_class(live, params, &mut body)?,
        "instances" => instances_of(live, params, &mut body)?,
        other => {
            return Err(Fault::bad(format!(
                "action={other}: expected type, instances, script or gc"
            )));
        }
    }
    Ok(page(&live.status().borrow().name, &body))
}

fn page(title: &str, body: &str) -> Response {
    let title = html(title);
    let text = format!(
        "<html>\n<head>\n<script src=\"profiler?action=script\"></script>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Memory profiler: {title}</title>\n\
         <link rel=\"stylesheet\" href=\"assets/page.css\">\n\
         <link rel=\"stylesheet\" href=\"assets/plain.css\">\n</head>\n<body class=\"plain\">\n\
         <main>\n<h1>Memory profiler: {title}</h1>\n\
         <p><a href=\"profiler\">All classes</a> · <a href=\"plain/\">The program</a></p>\n{body}</main>\n</body>\n</html>\n"
    );
    let mut response = typed("text/html; charset=utf-8", text.into_bytes());
    let policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                  base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(policy),
    );
    response
}

/// Used, free, total and maximum heap, the date, and the button that was on every page.
fn memory_line(live: &Live, out: &mut String) {
    let megabytes = |bytes: f64| (bytes / f64::from(1 << 20)).round();
    let row = live.status().borrow().rows.last().copied();
    let get = |name: &str| row.and_then(|row| row.get(name)).unwrap_or(0.0);
    let used = get("eden_bytes") + get("survivor_bytes") + get("old_bytes");
    let total = get("heap_committed_bytes");
    let file = live
        .program()
        .counters()
        .and_then(|path| std::fs::read(path).ok());
    let counters = file
        .and_then(|bytes| Counters::parse(&bytes).ok())
        .unwrap_or_default();
    let max = |n: u32| {
        counters
            .number(&format!("sun.gc.generation.{n}.maxCapacity"))
            .unwrap_or(0)
    };
    // With regions (G1) each generation may grow to the whole heap.
    let max = (if max(0) == max(1) {
        max(0)
    } else {
        max(0) + max(1)
    }) as f64;
    let _ = write!(
        out,
        "<p>Date: {}. Memory: {} MB used, {} MB free, {} MB total, {} MB max.</p>\n\
         <form method=\"get\" action=\"profiler\"><button name=\"gc\" value=\"true\">Force GC\
         </button></form>\n",
        report::units::utc(now_ms()),
        megabytes(used),
        megabytes((total - used).max(0.0)),
        megabytes(total),
        megabytes(max),
    );
}

fn cells(row: &ClassRow) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let measure = |m: Option<Measure>| match m {
        Some(m) => [
            m.sum.to_string(),
            m.max.to_string(),
            m.max_ever.to_string(),
            format!("{:.1}", m.mean),
        ],
        None => Default::default(),
    };
    let mut cells = vec![
        row.class.clone(),
        format!("{:.2}", row.sample_percent),
        row.live.to_string(),
        number(row.freed),
        number(row.total),
        format!("{:.0}", row.bytes_each),
        row.live_bytes.to_string(),
        row.with_capacity_bytes().to_string(),
    ];
    cells.extend(measure(row.size));
    cells.extend(measure(row.capacity));
    cells
}

/// The bounds of the 95 % intervals of a row, in the order of [`INTERVALS`].
fn intervals(row: &ClassRow) -> [Option<(u64, u64)>; 5] {
    let live = |n: u64| n.saturating_add(row.live_bytes);
    let of_sum = |m: Option<Measure>| m.and_then(|m| m.interval);
    [
        row.live_interval,
        row.total_interval,
        row.capacity_bytes_interval
            .map(|(low, high)| (live(low), live(high))),
        of_sum(row.size),
        of_sum(row.capacity),
    ]
}

/// The headings of the table of classes and its cells.
fn columns(rows: &[ClassRow]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut heads = COLUMNS.to_vec();
    let mut table: Vec<Vec<String>> = rows.iter().map(cells).collect();
    for (at, head) in INTERVALS.into_iter().enumerate() {
        let ends: Vec<_> = rows.iter().map(|row| intervals(row)[at]).collect();
        if ends.iter().all(Option::is_none) {
            continue;
        }
        heads.push(head);
        for (cells, ends) in table.iter_mut().zip(ends) {
            cells.push(ends.map_or_else(String::new, |(low, high)| format!("{low} to {high}")));
        }
    }
    (heads, table)
}

fn class_table(rows: &[ClassRow], out: &mut String) {
    let mut table = String::new();
    let (heads, cells) = columns(rows);
    push_table(&mut table, &heads, &cells);
    // The first cell of each row links to the class.
    let mut rest = table.as_str();
    for row in rows {
        let cell = format!("<tr><td>{}</td>", html(&row.class));
        let Some(at) = rest.find(&cell) else { continue };
        out.push_str(&rest[..at]);
        let (link, name) = (encoded(&row.class), html(&row.class));
        let _ = write!(
            out,
            "<tr><td><a href=\"profiler?action=type&amp;type={link}\">{name}</a></td>"
        );
        rest = &rest[at + cell.len()..];
    }
    out.push_str(rest);
}

/// The time and source of the sizes and capacities in a table.
fn sizes_from(sizes: origin::Source) -> String {
    let time = report::units::utc(sizes.time_ms);
    match (sizes.dump, sizes.objects, sizes.read) {
        (Some(number), ..) => format!("Sizes are from heap dump {number}, {time}."),
        (None, Some(objects), Some(read)) if read < objects => {
            format!(
                "Sizes were read at {time} from a random sample of {read} of {objects} objects."
            )
        }
        _ => format!("Sizes were read at {time}."),
    }
}

fn all_classes(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let Classes {
        source,
        sizes,
        mut rows,
    } = class_rows(live, params)?;
    rows.sort_by(|a, b| {
        b.live_bytes
            .cmp(&a.live_bytes)
            .then_with(|| a.class.cmp(&b.class))
    });
    let _ = writeln!(
        out,
        "<p>{} classes, from: {source}. {}</p>",
        rows.len(),
        sizes.map_or_else(String::new, sizes_from)
    );
    class_table(&rows, out);
    Ok(())
}

fn class(params: &Params) -> Result<&str, Fault> {
    params
        .get("type")
        .ok_or_else(|| Fault::bad("type is missing: expected a class name"))
}

fn one_class(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let class = class(params)?;
    let mut rows = class_rows(live, params)?.rows;
    rows.retain(|row| row.class == class);
    class_table(&rows, out);
    let name = html(class);
    let _ = write!(
        out,
        "<h2>Instances</h2>\n<form method=\"get\" action=\"profiler\">\n\
         <input type=\"hidden\" name=\"action\" value=\"instances\">\n\
         <input type=\"hidden\" name=\"type\" value=\"{name}\">\n<label>Sort <select name=\"sort\">"
    );
    let sorts = SORTS.iter().map(|(name, _)| *name);
    let groups = GROUPS.iter().map(|(name, _)| *name);
    for sort in sorts.chain(groups) {
        let _ = write!(out, "<option>{sort}</option>");
    }
    let _ = write!(
        out,
        "</select></label>\n<label><input type=\"checkbox\" name=\"inc\" value=\"true\"> \
         increasing</label>\n<label>Sample <input name=\"sample\" value=\"{SAMPLE}\" size=\"6\">\
         </label>\n<label>Rows <input name=\"rows\" value=\"{ROWS}\" size=\"6\"></label>\n\
         <label>Stack lines <input name=\"lines\" value=\"{LINES}\" size=\"4\"></label>\n\
         <label><input type=\"checkbox\" name=\"stringEnable\" value=\"true\" checked> values\
         </label>\n<label>up to <input name=\"stringLimit\" value=\"{STRING_LIMIT}\" size=\"6\"> \
         characters</label>\n<button>Show</button>\n</form>\n\
         <p>Instances are those of the last heap dump, or of the program now, if there is none or \
         objects may be asked (source=live, source=dump).</p>\n"
    );
    Ok(())
}

/// A number of the servlet's parameters, where -1 means all.
fn or_all(params: &Params, name: &str, default: usize) -> Result<Option<usize>, Fault> {
    match params.get(name) {
        Some("-1") => Ok(None),
        _ => params.number(name, default).map(Some),
    }
}

fn instances_of(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let class = class(params)?;
    let sort = params.get("sort").unwrap_or("time");
    let order = SORTS.iter().find(|(name, _)| *name == sort);
    let group = GROUPS.iter().find(|(name, _)| *name == sort);
    if order.is_none() && group.is_none() {
        return Err(Fault::bad(format!("sort={sort}: no such order")));
    }
    let lines = params.number("lines", LINES)?;
    let strings = params.get("stringEnable").is_none_or(|text| text == "true");
    let source = objects::source(live, params, matches!(group, Some((_, Uniq::Time(_)))))?;
    let is_asked = matches!(source, objects::Source::Live) && live.status().borrow().own_code;
    let column = match order.map_or("", |(_, column)| *column) {
        // Values are used for objects whose code is not called.
        "rank" if !is_asked => "value",
        column => column,
    };
    // The servlet sorts in descending order; in Tenure, texts sort in ascending order.
    let is_text = matches!(column, "value" | "object");
    let query = Query {
        page: Page {
            sort: column.to_owned(),
            up: params.flag("inc") != is_text,
            offset: 0,
            limit: or_all(params, "rows", ROWS)?.unwrap_or(usize::MAX),
        },
        sample: or_all(params, "sample", SAMPLE)?,
        value_limit: if strings {
            params.number("stringLimit", STRING_LIMIT)?
        } else {
            0
        },
        born: None,
    };
    match group {
        Some((_, by)) => {
            let groups = objects::groups_of(live, (class, *by), &query, source)?;
            group_table(&groups, (lines, query.value_limit.max(80)), out);
        }
        None => {
            let list = objects::list_of(live, class, &query, source)?;
            instance_table(&list, lines, out);
        }
    }
    Ok(())
}

/// The number of objects, and the source of the search.
fn where_from<R>(table: &Table<R>, out: &mut String) {
    let examined = table.examined.clone().unwrap_or_default();
    let Examined {
        objects, sampled, ..
    } = examined;
    let class = html(&examined.class);
    let part = match sampled as u64 == objects {
        true => String::new(),
        false => "a random sample of ".to_owned(),
    };
    let _ = match (table.source, table.dump) {
        ("recording", _) => writeln!(
            out,
            "<p>{class}: {objects} instances allocated since the recording began, live or not.</p>"
        ),
        (_, Some(number)) => writeln!(
            out,
            "<p>{class}: {objects} instances in heap dump {number}, {part}{sampled} examined.</p>"
        ),
        _ => writeln!(
            out,
            "<p>{class}: {objects} instances are alive and tracked, {part}{sampled} examined.</p>"
        ),
    };
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"bad\">{}</p>", html(note));
    }
}

fn first_lines(stack: &[String], lines: usize) -> String {
    stack[..lines.min(stack.len())].join("\n")
}

fn group_table(groups: &Table<Group>, (lines, limit): (usize, usize), out: &mut String) {
    where_from(groups, out);
    let cells = groups.rows.iter().map(|row| {
        let value = match row.stack.is_empty() {
            true => cut(&row.value, limit),
            false => first_lines(&row.stack, lines),
        };
        vec![value, row.sampled.to_string(), row.estimated.to_string()]
    });
    let cells: Vec<Vec<String>> = cells.collect();
    push_table(out, &["Value", "Sampled", "Estimated"], &cells);
}

/// A time of day, and how long ago it was.
fn clock(born_ms: Option<u64>) -> [String; 2] {
    let Some(born) = born_ms else {
        return Default::default();
    };
    let age = now_ms().saturating_sub(born) as f64 / 1000.0;
    [time_text(Step::Snapshot, born), format!("{age:.1} s ago")]
}

/// The columns that have values.
fn instance_table(list: &Table<Instance>, lines: usize, out: &mut String) {
    where_from(list, out);
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let heads = [
        "Object",
        "Allocated (UTC)",
        "Age",
        "Size",
        "Capacity",
        "Excess",
        "Capacity Bytes",
        "Context",
        "Stack",
        "toString",
    ];
    let row = |row: &Instance| {
        let [time, age] = clock(row.born_ms);
        let printed = row.value.clone().or_else(|| row.fault.clone());
        let content = row.content;
        vec![
            live::name(list.columns, row),
            time,
            age,
            number(content.size),
            number(content.capacity),
            number(content.excess()),
            number(content.capacity.map(|_| content.capacity_bytes)),
            row.context.clone().unwrap_or_default(),
            first_lines(&row.stack, lines),
            printed.unwrap_or_default(),
        ]
    };
    let cells: Vec<Vec<String>> = list.rows.iter().map(row).collect();
    let is_kept = |at: &usize| *at == 0 || cells.iter().any(|row| !row[*at].is_empty());
    let kept: Vec<usize> = (0..heads.len()).filter(is_kept).collect();
    let heads: Vec<&str> = kept.iter().map(|at| heads[*at]).collect();
    let chosen = |row: &Vec<String>| kept.iter().map(|at| row[*at].clone()).collect();
    let cells: Vec<Vec<String>> = cells.iter().map(chosen).collect();
    push_table(out, &heads, &cells);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: &str) -> ClassRow {
        ClassRow {
            class: class.to_owned(),
            live: 1000,
            live_bytes: 16_000,
            total: Some(3000),
            ..ClassRow::default()
        }
    }

    #[test]
    fn intervals_stand_behind_the_old_columns_where_counts_are_estimates() {
        let exact = row("a.Exact");
        let (heads, cells) = columns(std::slice::from_ref(&exact));
        assert_eq!(heads, COLUMNS);
        assert_eq!(cells[0].len(), COLUMNS.len());
        let sampled = ClassRow {
            live_interval: Some((900, 1100)),
            capacity_bytes: Some(500),
            capacity_bytes_interval: Some((400, 600)),
            ..row("a.Sampled")
        };
        let (heads, cells) = columns(&[exact, sampled]);
        assert_eq!(heads[..COLUMNS.len()], COLUMNS);
        assert_eq!(heads[COLUMNS.len()..], ["Live 95%", "+Capacity Bytes 95%"]);
        assert_eq!(cells[0][COLUMNS.len()..], ["", ""]);
        assert_eq!(cells[1][..3], ["a.Sampled", "0.00", "1000"]);
        assert_eq!(cells[1][COLUMNS.len()..], ["900 to 1100", "16400 to 16600"]);
    }
}
