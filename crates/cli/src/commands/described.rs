//! Flags that are parameters of a view, too: their help and defaults are those that the view declares
//! (`server::explorer::describe`).

use server::explorer::describe::{Kind, Parameter, named};

fn parameter(view: &str, name: &str) -> Option<&'static Parameter> {
    named(view)?.parameter(name)
}

/// The help of a parameter of a view; like all helps of flags it has no full stop.
pub(super) fn help(view: &str, name: &str) -> &'static str {
    let help = parameter(view, name).map_or("", |it| it.help);
    help.strip_suffix('.').unwrap_or(help)
}

/// The default of a number.
pub(super) fn number(view: &str, name: &str) -> u64 {
    match parameter(view, name).map(|it| it.kind) {
        Some(Kind::Number(_, default, _) | Kind::Percent(default)) => default,
        _ => 0,
    }
}

/// The default of a word: the first one.
pub(super) fn word(view: &str, name: &str) -> &'static str {
    match parameter(view, name).map(|it| it.kind) {
        Some(Kind::One([first, ..])) => first,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;
    use server::explorer::describe::{Flag, VIEWS};

    #[test]
    fn flags_that_are_parameters_of_views_have_their_help_and_words() {
        let program = Cli::command();
        let mut compared = 0;
        // The help of these options differs from the view's: a terminal shows another number of rows, `--timeout` takes
        // units, and an option such as `--no-inbound` names what it excludes.
        let flags = |parameter: &&Parameter| {
            let has_own_help = matches!(parameter.name, "limit" | "count" | "top" | "seconds");
            !has_own_help && !matches!(parameter.flag, Some(Flag::Off(_)))
        };
        for view in VIEWS {
            let Some(command) = view.command.and_then(|line| line.split(' ').next()) else {
                continue;
            };
            let command = program.find_subcommand(command).expect(view.name);
            for parameter in view.parameters.iter().filter(flags) {
                let option = parameter.flag.and_then(Flag::option);
                let Some(long) = option.and_then(|option| option.strip_prefix("--")) else {
                    continue;
                };
                if program
                    .get_arguments()
                    .any(|global| global.get_long() == Some(long))
                {
                    continue;
                }
                let mut arguments = command.get_arguments();
                let argument = arguments.find(|it| it.get_long() == Some(long));
                let argument = argument.unwrap_or_else(|| panic!("{}: --{long}", view.name));
                let printed = argument.get_help().map(ToString::to_string);
                let place = format!("{} --{long}", view.name);
                assert!(
                    VIEWS
                        .iter()
                        .any(|other| printed.as_deref() == Some(help(other.name, parameter.name))),
                    "{place}: {printed:?}"
                );
                if let Kind::One(words) = parameter.kind {
                    let values = argument.get_possible_values();
                    let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
                    let is_one = |name| words.contains(name);
                    assert!(
                        names.len() == words.len() && names.iter().all(is_one),
                        "{place}: {names:?}"
                    );
                }
                compared += 1;
            }
        }
        assert!(compared > 10, "{compared}");
    }
}
