//! The help of `tenure` itself: its commands in groups, and the introduction that `tenure` alone prints.

use crate::Outcome;
use crate::args::Cli;
use crate::commands::GROUPS;
use crate::exit::Exit;
use crate::session::Session;
use clap::CommandFactory;

/// Widest line of the help.
const WIDEST: usize = 100;

const INTRODUCTION: &str = concat!(
    "
  tenure heap.hprof          what fills a heap dump: totals, leak suspects, largest objects
  tenure open heap.hprof     the same and everything else in the browser
",
    on_linux!(
        "  tenure attach PID --live   a running JVM: memory, allocations, instances, dumps
  tenure run -- java ...     a program from its start, with a profile of where its time goes
"
    ),
    "  tenure --help              all commands
",
    on_linux!("\nJVMs that run:\n"),
);

/// The command line as it is parsed: its help has the commands in groups.
pub(crate) fn command() -> clap::Command {
    let width = terminal_size::terminal_size().map_or(WIDEST, |(width, _)| width.0.into());
    let list = listed(&Cli::command(), width.clamp(40, WIDEST));
    // The list takes the place of clap's own, which knows no groups.
    Cli::command()
        .mut_subcommands(|one| one.hide(true))
        .override_usage("tenure [OPTIONS] <COMMAND>\n       tenure [OPTIONS] <FILE>")
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n{{all-args}}{{after-help}}"
        ))
}

fn listed(command: &clap::Command, width: usize) -> String {
    let mut commands = command.get_subcommands();
    let longest = command.get_subcommands().map(|one| one.get_name().len());
    let indent = longest.max().unwrap_or(0) + 4;
    let mut text = String::new();
    for (title, count) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for one in commands.by_ref().take(*count) {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = one.get_visible_aliases().collect();
            let about = match &aliases[..] {
                [] => about,
                names => format!("{about} [alias: {}]", names.join(", ")),
            };
            let mut line = format!("  {:1$}", one.get_name(), indent - 2);
            let mut used = indent;
            for word in about.split_whitespace() {
                if used + word.chars().count() > width && used > indent {
                    line.truncate(line.trim_end().len());
                    line.push_str(&format!("\n{:indent$}", ""));
                    used = indent;
                }
                line.push_str(word);
                line.push(' ');
                used += word.chars().count() + 1;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Prints the first commands to try and, on Linux, the running JVMs.
pub(crate) fn introduce(session: &Session) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let about = Cli::command().get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    session.write(format!("Tenure {version}: {about}\n{INTRODUCTION}").as_bytes())?;
    #[cfg(target_os = "linux")]
    crate::commands::attach::list(session)?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_a_group_and_the_list_fits() {
        let command = Cli::command();
        let all = GROUPS.iter().map(|(_, count)| count).sum::<usize>();
        assert_eq!(all, command.get_subcommands().count());
        for width in [40, 60, WIDEST] {
            let text = listed(&command, width);
            assert!(
                !text.contains(['{', '}']),
                "a brace is a mark of the template"
            );
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            for one in command.get_subcommands() {
                let starts = |line: &str| line.split_whitespace().next() == Some(one.get_name());
                assert!(text.lines().any(starts), "{}", one.get_name());
            }
        }
    }
}
