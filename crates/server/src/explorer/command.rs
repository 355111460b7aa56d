//! "Show query": the command line with the same answer as a view, from its description, and the SQL for its rows. A
//! flag that ends in `!` has no value.

use super::describe;
use super::sql::{self, ShownQuery};
use report::escape::shell;
use requests::Fault;
use requests::Params;
use serde::Serialize;

/// `tenure.command/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shown {
    schema: &'static str,
    /// A line for a shell; `None` for the few views that exist only as pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Queries for the rows, in the order of the view.
    queries: Vec<ShownQuery>,
}

/// The command line and the queries of a view.
pub(super) fn of(
    file: &str,
    base: Option<&str>,
    view: &str,
    params: &Params,
) -> Result<Shown, Fault> {
    let command = match (view, base) {
        ("compare", Some(base)) => Some(format!("tenure diff {} {}", shell(base), shell(file))),
        _ => line(file, view, params),
    };
    let queries = sql::of(view, params);
    if command.is_none() && queries.is_empty() {
        return Err(Fault::not_found("this view asks nothing of the heap"));
    }
    Ok(Shown {
        schema: "tenure.command/1",
        command,
        queries,
    })
}

fn line(file: &str, view: &str, params: &Params) -> Option<String> {
    // The histogram of a set is the view of the set by group.
    let of_set = view == "histogram" && params.get("set").is_some();
    let view = if of_set { "objects" } else { view };
    let view = describe::named(view)?;
    let mut command = format!("tenure {} {}", view.command?, shell(file));
    let flags = view.parameters.iter();
    for (param, flag) in flags.filter_map(|it| Some((it.name, it.flag?))) {
        let default = (of_set && param == "by").then_some("class");
        let Some(value) = params.get(param).or(default) else {
            continue;
        };
        match flag.strip_suffix('!') {
            Some(flag) if params.flag(param) => command.push_str(&format!(" {flag}")),
            Some(_) => {}
            None if flag.is_empty() => command.push_str(&format!(" {}", shell(value))),
            None => command.push_str(&format!(" {flag} {}", shell(value))),
        }
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_a_command_line() {
        let check = |view, query, want: &str| {
            let shown = of("a b.hprof", None, view, &Params::parse(query)).unwrap();
            assert_eq!(shown.command.as_deref(), Some(want));
        };
        check("overview", "", "tenure overview 'a b.hprof'");
        check(
            "histogram",
            "by=package&filter=it's&all=1",
            "tenure histogram 'a b.hprof' --by package --filter 'it'\\''s' --all",
        );
        check(
            "histogram",
            "set=class:a.B[]&limit=5",
            "tenure objects 'a b.hprof' 'class:a.B[]' --by class --limit 5",
        );
        check(
            "merged_paths",
            "set=class:a.B&top=20",
            "tenure objects --paths 'a b.hprof' class:a.B --limit 20",
        );
        check("object", "id=0x10", "tenure object 'a b.hprof' 0x10");
    }
}
