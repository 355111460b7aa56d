//! The addresses of the Cougaar memory profiler's servlet, `/profiler?action=...`, with its
//! parameters, so that scripts written for it go on working. Its pages were plain HTML tables;
//! these are, too (facts: jvmpi-vmpi-cougaar.md, section 5).

use super::ask::class_rows;
use super::classes::{ClassRow, Measure};
use super::instances::{self, Query, Sort, Uniq, cut};
use super::moments::{self, Step};
use super::perfdata::Counters;
use super::routes::{carry_out, dump_of};
use super::saved::{SORT_SCRIPT, push_table};
use super::session::{Live, now_ms};
use crate::explorer::params::Params;
use crate::reply::{Fault, typed};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use report::escape::html;
use std::fmt::Write;
use std::sync::Arc;

/// Objects looked at, rows and stack lines shown, and characters of a value by default.
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

/// `sort` values that list instances; every other one begins with `uniq_`.
const SORTS: [(&str, Sort); 8] = [
    ("time", Sort::Time),
    ("compareTo", Sort::Value),
    ("hashcode", Sort::HashCode),
    ("size", Sort::Size),
    ("capacity_count", Sort::Capacity),
    ("capacity_bytes", Sort::CapacityBytes),
    ("excess_capacity", Sort::Excess),
    ("none", Sort::None),
];

/// `sort` values that count instances.
const GROUPS: [(&str, Uniq); 8] = [
    ("uniq_stack", Uniq::Stack),
    ("uniq_equals", Uniq::Value),
    ("uniq_toString", Uniq::Value),
    ("uniq_hashcode", Uniq::HashCode),
    ("uniq_class", Uniq::Class),
    ("uniq_size", Uniq::Size(1)),
    ("uniq_size_mod_100", Uniq::Size(100)),
    ("uniq_size_mod_1000", Uniq::Size(1000)),
];

/// `sort` values that count by time of allocation, which the recording has.
const TIMES: [&str; 4] = ["uniq_time", "uniq_second", "uniq_minute", "uniq_hour"];

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
         <meta charset=\"utf-8\">\n<title>Memory profiler: {title}</title>\n\
         <link rel=\"stylesheet\" href=\"assets/page.css\">\n\
         <link rel=\"stylesheet\" href=\"assets/plain.css\">\n</head>\n<body class=\"plain\">\n\
         <main>\n<h1>Memory profiler: {title}</h1>\n{body}</main>\n</body>\n</html>\n"
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

/// Used, free, total and greatest heap, the date, and the button that every page had.
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
        "<p>Date: {} UTC. Memory: {} MB used, {} MB free, {} MB total, {} MB max.</p>\n\
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
        number(row.dead),
        number(row.total),
        format!("{:.0}", row.bytes_each),
        row.live_bytes.to_string(),
        number(row.capacity_bytes),
    ];
    cells.extend(measure(row.size));
    cells.extend(measure(row.capacity));
    cells
}

/// A query's value.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn class_table(rows: &[ClassRow], out: &mut String) {
    let mut table = String::new();
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    push_table(&mut table, &COLUMNS, &cells);
    // The first cell of each row leads to the class.
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

fn all_classes(live: &Live, params: &Params, out: &mut String) -> Result<(), Fault> {
    let (source, mut rows) = class_rows(live, params)?;
    rows.sort_by(|a, b| {
        b.live_bytes
            .cmp(&a.live_bytes)
            .then_with(|| a.class.cmp(&b.class))
    });
    let _ = writeln!(out, "<p>{} classes, from: {source}</p>", rows.len());
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
    let (_, mut rows) = class_rows(live, params)?;
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
    for sort in sorts.chain(groups).chain(TIMES) {
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
         <p>Instances are those of the last heap dump.</p>\n"
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

/// Counts what was allocated by its time.
fn times_of(
    live: &Live,
    params: &Params,
    (class, sort): (&str, &str),
    out: &mut String,
) -> Result<(), Fault> {
    super::ask::detail(live, class)?;
    let step = sort.strip_prefix("uniq_").and_then(Step::named);
    let step = step.ok_or_else(|| Fault::bad(format!("sort={sort}: no such order")))?;
    let rows = or_all(params, "rows", ROWS)?.unwrap_or(usize::MAX);
    let (objects, rows) = moments::groups(live, class, step, (params.flag("inc"), rows))?;
    let _ = writeln!(
        out,
        "<p>{}: {objects} instances allocated since the recording began, live or not.</p>",
        html(class)
    );
    let cells: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| {
            vec![
                row.value,
                row.sampled.to_string(),
                row.estimated.to_string(),
            ]
        })
        .collect();
    push_table(out, &["Value", "Sampled", "Estimated"], &cells);
    Ok(())
}

fn instances_of(live: &Arc<Live>, params: &Params, out: &mut String) -> Result<(), Fault> {
    let class = class(params)?;
    let sort = params.get("sort").unwrap_or("time");
    if TIMES.contains(&sort) {
        return times_of(live, params, (class, sort), out);
    }
    let lines = params.number("lines", LINES)?;
    let strings = params.get("stringEnable").is_none_or(|text| text == "true");
    let query = Query {
        sort: SORTS
            .iter()
            .find(|(name, _)| *name == sort)
            .map_or(Sort::None, |(_, sort)| *sort),
        descending: !params.flag("inc"),
        sample: or_all(params, "sample", SAMPLE)?,
        limit: or_all(params, "rows", ROWS)?.unwrap_or(usize::MAX),
        value_limit: if strings {
            params.number("stringLimit", STRING_LIMIT)?
        } else {
            0
        },
    };
    let (number, dump) = dump_of(live, params)?;
    let heap = dump.explorer.heap()?;
    let first_lines = |text: &str| text.lines().take(lines).collect::<Vec<_>>().join("\n");
    let group = GROUPS.iter().find(|(name, _)| *name == sort);
    let detail = super::ask::detail(live, class)?;
    let query = super::ask::cut(&query, &detail, heap, class);
    if let Some((_, uniq)) = group {
        let (objects, sampled, rows) = instances::groups(heap, class, *uniq, &query);
        let _ = writeln!(
            out,
            "<p>{}: {objects} instances in heap dump {number}, {sampled} looked at.</p>",
            html(class)
        );
        let limit = query.value_limit.max(80);
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let value = match uniq {
                    Uniq::Stack => first_lines(&row.value),
                    _ => cut(&row.value, limit),
                };
                vec![value, row.sampled.to_string(), row.estimated.to_string()]
            })
            .collect();
        push_table(out, &["Value", "Sampled", "Estimated"], &cells);
        return Ok(());
    }
    if !SORTS.iter().any(|(name, _)| *name == sort) {
        return Err(Fault::bad(format!("sort={sort}: no such order")));
    }
    let list = super::ask::instances(live, heap, class, &query)?;
    let _ = writeln!(
        out,
        "<p>{}: {} instances in heap dump {number}, {} looked at.</p>",
        html(class),
        list.objects,
        list.sampled
    );
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let cells: Vec<Vec<String>> = list
        .rows
        .iter()
        .map(|row| {
            vec![
                row.id.to_string(),
                number(row.content.size),
                number(row.content.capacity),
                number(row.content.excess()),
                row.content.capacity_bytes.to_string(),
                first_lines(&row.stack.join("\n")),
                row.value.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let columns = [
        "Object",
        "Size",
        "Capacity",
        "Excess",
        "Capacity Bytes",
        "Stack",
        "toString",
    ];
    push_table(out, &columns, &cells);
    Ok(())
}
