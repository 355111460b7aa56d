//! "Show query": the command line with the same answer as a view, from its description, and the SQL for its rows.

use super::describe::{self, Flag, Kind, Parameter};
use super::sql::{self, ShownQuery};
use super::state::Explorer;
use heap_analysis::collections::table::CollectionTable;
use heap_graph::{LayoutModel, Strength};
use hprof::source::split_number;
use report::escape::shell;
use requests::Fault;
use requests::Params;
use serde::Serialize;
use std::path::Path;

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

/// What commands and queries depend on beside the view.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    file: String,
    /// The dump to compare with.
    base: Option<String>,
    /// Options of every command that change answers, as words for a shell.
    global: Vec<String>,
    /// The counts of the first pass are there: the first histogram is made of them.
    has_first_pass: bool,
}

impl Origin {
    pub(super) fn of(explorer: &Explorer) -> Origin {
        let options = &explorer.options;
        let file = |path: &Path| match (split_number(path).1, options.snapshot) {
            (None, number) if number > 0 => format!("{}#{number}", path.display()),
            _ => path.to_string_lossy().into_owned(),
        };
        let layout = match options.layout {
            LayoutModel::Measured => None,
            LayoutModel::Mat => Some("--layout mat"),
            LayoutModel::Plain => Some("--layout plain"),
        };
        let strength = match options.strength {
            Strength::All => None,
            Strength::Strong => Some("--strength strong"),
            Strength::StrongSoft => Some("--strength strong+soft"),
        };
        let mapping = explorer.mapping.as_ref();
        let mapping =
            mapping.map(|one| format!("--mapping {}", shell(&one.file.to_string_lossy())));
        let collections = CollectionTable::attached(options).and_then(CollectionTable::file);
        let collections =
            collections.map(|file| format!("--collections {}", shell(&file.to_string_lossy())));
        let global = layout.into_iter().chain(strength).map(str::to_owned);
        Origin {
            file: file(explorer.path()),
            base: explorer.base().map(file),
            global: global.chain(mapping).chain(collections).collect(),
            has_first_pass: explorer.quick().is_some(),
        }
    }
}

/// The command line and the queries of a view.
///
/// # Errors
/// The view does not have such parameters, or there is neither a command nor a query.
pub(super) fn of(origin: &Origin, view: &str, params: &Params) -> Result<Shown, Fault> {
    let described = describe::named(view);
    described.map_or(Ok(()), |view| view.check(params))?;
    let view = match view {
        // Without a first pass, it is the histogram.
        "quick_histogram" if !origin.has_first_pass => "histogram",
        "objects" if params.get("by").is_some() => "histogram",
        _ => view,
    };
    let command = line(origin, view, params);
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

fn line(origin: &Origin, view: &str, params: &Params) -> Option<String> {
    let of_set = view == "histogram" && params.get("set").is_some();
    let view = describe::named(view)?;
    let mut command = view.command?;
    let (mut arguments, mut options) = (vec![origin.file.clone()], Vec::new());
    if view.name == "compare" {
        arguments.insert(0, origin.base.clone()?);
    }
    if of_set {
        command = "objects";
        if params.get("by").is_none() {
            options.push("--by class".to_owned());
        }
    }
    for parameter in view.parameters {
        // A set has no groups without objects.
        if of_set && parameter.name == "empty" {
            continue;
        }
        let value = params.get(parameter.name);
        match parameter.flag {
            Some(Flag::Positional) => arguments.extend(value.map(str::to_owned)),
            Some(flag) => options.extend(option(parameter, flag, params)),
            None => {}
        }
    }
    options.extend_from_slice(&origin.global);
    // After `--`, nothing is an option.
    let is_like_option = arguments
        .iter()
        .any(|text| text.len() > 1 && text.starts_with('-'));
    let arguments: Vec<String> = arguments.iter().map(|text| shell(text)).collect();
    let parts = match is_like_option {
        true => [options, vec!["--".to_owned()], arguments].concat(),
        false => [arguments, options].concat(),
    };
    Some(format!("tenure {command} {}", parts.join(" ")))
}

/// The option for a parameter, if it is needed; the value is the one that the view takes.
fn option(parameter: &Parameter, flag: Flag, params: &Params) -> Option<String> {
    let (name, given) = (parameter.name, params.get(parameter.name));
    let default = match (flag, parameter.kind) {
        (Flag::Always(_), Kind::Number(_, default, _)) => Some(default.to_string()),
        (Flag::Always(_), Kind::One([first, ..])) => Some((*first).to_owned()),
        _ => None,
    };
    match flag {
        Flag::Positional => None,
        Flag::Switch(option) => params.flag(name).then(|| option.to_owned()),
        Flag::Off(option) => (given == Some("0")).then(|| option.to_owned()),
        Flag::Value(option) | Flag::Always(option) => {
            let value = given
                .map(|text| in_range(parameter.kind, text))
                .or(default)?;
            match (option, &*value) {
                // The command lists everything then, the view nothing.
                ("--limit", "0") => None,
                (_, text) if text.starts_with('-') => Some(format!("{option}={}", shell(text))),
                (_, text) => Some(format!("{option} {}", shell(text))),
            }
        }
    }
}

/// Views take the nearest number that they permit.
fn in_range(kind: Kind, text: &str) -> String {
    match (kind, text.parse::<u64>()) {
        (Kind::Number(least, _, most), Ok(number)) => number.clamp(least, most).to_string(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn origin() -> Origin {
        Origin {
            file: "a b.hprof".to_owned(),
            base: Some("before.hprof".to_owned()),
            ..Origin::default()
        }
    }

    fn command(origin: &Origin, view: &str, query: &str) -> Option<String> {
        let shown = of(origin, view, &Params::parse(query)).expect(view);
        shown.command
    }

    #[test]
    fn a_view_has_a_command_line() {
        let check = |view, query, want: &str| {
            assert_eq!(command(&origin(), view, query).as_deref(), Some(want));
        };
        check("overview", "", "tenure overview 'a b.hprof'");
        check(
            "histogram",
            "by=package&filter=it's&all=1",
            "tenure histogram 'a b.hprof' --by package --filter 'it'\\''s' --limit 100 --all",
        );
        check(
            "histogram",
            "set=class:a.B[]&limit=5&sort=name&filter=x&offset=5&empty=1",
            "tenure objects 'a b.hprof' 'class:a.B[]' --by class --filter x --sort name --skip-rows 5 --limit 5",
        );
        check(
            "objects",
            "set=a.B&by=package",
            "tenure objects 'a b.hprof' a.B --by package --limit 100",
        );
        check(
            "merged_paths",
            "set=class:a.B&top=20&depth=3&max_paths=7",
            "tenure objects --paths 'a b.hprof' class:a.B --depth 3 --limit 20 --max-paths 7",
        );
        check(
            "object",
            "id=0x10&limit=20&inbound=0",
            "tenure object 'a b.hprof' 0x10 --limit 20 --no-inbound",
        );
        check(
            "paths",
            "id=0x10",
            "tenure paths 'a b.hprof' 0x10 --limit 3",
        );
        check(
            "paths",
            "id=0x10&count=500",
            "tenure paths 'a b.hprof' 0x10 --limit 100",
        );
        check(
            "waste",
            "all=1",
            "tenure waste 'a b.hprof' --limit 20 --unreachable",
        );
        check("roots", "limit=0", "tenure roots 'a b.hprof'");
        check(
            "compare",
            "threshold=5",
            "tenure diff before.hprof 'a b.hprof' --limit 100 --threshold 5",
        );
        check(
            "query",
            "text=-- all\nselect 1",
            "tenure query --limit 1000 --timeout 60 -- 'a b.hprof' '-- all\nselect 1'",
        );
        check(
            "strings",
            "find=-x",
            "tenure strings 'a b.hprof' --find='-x' --limit 100",
        );
    }

    #[test]
    fn the_first_histogram_is_the_one_of_the_first_pass_or_of_the_heap() {
        let first = |has_first_pass| Origin {
            has_first_pass,
            ..origin()
        };
        let asked = |has_first_pass| {
            command(
                &first(has_first_pass),
                "quick_histogram",
                "by=heap&sort=name",
            )
        };
        assert_eq!(
            asked(true).as_deref(),
            Some("tenure histogram --no-retained 'a b.hprof' --sort name --limit 100")
        );
        assert_eq!(
            asked(false).as_deref(),
            Some("tenure histogram 'a b.hprof' --by heap --sort name --limit 100")
        );
    }

    #[test]
    fn a_command_has_the_options_that_change_answers() {
        let origin = Origin {
            global: vec!["--strength strong".to_owned(), "--layout mat".to_owned()],
            ..origin()
        };
        assert_eq!(
            command(&origin, "leaks", "deep=1").as_deref(),
            Some("tenure leaks 'a b.hprof' --deep --strength strong --layout mat")
        );
    }

    #[test]
    fn a_parameter_that_the_view_does_not_have_is_refused() {
        let fault = of(&origin(), "leaks", &Params::parse("depe=1")).expect_err("a fault");
        assert!(
            fault.message.contains("did you mean deep?"),
            "{}",
            fault.message
        );
    }

    /// Parameters that no command has; api.md lists them.
    const WITHOUT_OPTION: [(&str, &str, &str); 2] = [
        ("overview", "limit", "the first screen has a fixed size"),
        (
            "quick_histogram",
            "by",
            "the first pass counts by class only",
        ),
    ];

    #[test]
    fn every_parameter_of_a_view_with_a_command_is_in_the_command() {
        let value = |parameter: &Parameter| match (parameter.name, parameter.kind) {
            ("by" | "sort" | "lang", Kind::One(words)) => words[1].to_owned(),
            ("inbound", _) => "0".to_owned(),
            (_, Kind::Number(..) | Kind::Percent(_) | Kind::Whole) => "7".to_owned(),
            (_, Kind::Flag) => "1".to_owned(),
            (name, _) => format!("v_{name}"),
        };
        let mut without = BTreeSet::new();
        for view in describe::VIEWS.iter().filter(|view| view.command.is_some()) {
            for parameter in view.parameters {
                let origin = Origin {
                    has_first_pass: true,
                    ..origin()
                };
                let plain = command(&origin, view.name, "");
                let query = format!("{}={}", parameter.name, value(parameter));
                let with = command(&origin, view.name, &query);
                if plain == with {
                    without.insert((view.name, parameter.name));
                }
            }
        }
        let listed = WITHOUT_OPTION.iter().map(|(view, name, _)| (*view, *name));
        let listed: BTreeSet<_> = listed.collect();
        assert_eq!(without, listed);
    }
}
