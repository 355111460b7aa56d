//! The command line: the global flags, each with an environment variable `TENURE_…`.

use crate::commands::Command;
use clap::builder::PossibleValue;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use heap_graph::{LayoutModel, Strength};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = concat!(
    "\
Examples:
  tenure heap.hprof                      overview: what fills the heap, leak suspects
  tenure leaks heap.hprof.gz             leak suspects in sentences
  tenure report heap.hprof -o heap.html  one page for a colleague

`tenure help COMMAND` describes a command",
    on_linux!(", and `tenure` alone lists the running JVMs"),
    ".

The file `-` is standard input; compressed files are read directly; `file#2` is the second dump in
a file or an archive. Exit codes: 0 success, 1 no match or a check failed, 2 bad usage, 3 unusable
input, 4 damaged file (results cover the readable part), 5 time limit (partial result). A global
option can be given as an environment variable: TENURE_NO_INDEX=1 for --no-index,
TENURE_MAX_MEMORY=2G for --max-memory 2G."
);

/// What is in a heap, which code allocated it, what keeps it alive, and where the time goes.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, about, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// Flags that every command has.
    #[command(flatten)]
    pub global: Global,
    /// The command; without one, `tenure` prints an introduction.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags that every command has.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// How object sizes are computed
    #[arg(long, global = true, value_enum, env = "TENURE_LAYOUT", hide_env = true,
        default_value_t = Layout::Measured)]
    pub layout: Layout,
    /// Which references keep objects alive
    #[arg(long, global = true, value_enum, env = "TENURE_STRENGTH", hide_env = true,
        default_value_t = StrengthArg::All)]
    pub strength: StrengthArg,
    /// Folder for index files [default: beside the dump]
    #[arg(
        long,
        global = true,
        env = "TENURE_CACHE_DIR",
        hide_env = true,
        value_name = "DIR"
    )]
    pub cache_dir: Option<PathBuf>,
    /// Neither read nor write an index file
    #[arg(long, global = true, env = "TENURE_NO_INDEX", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub no_index: bool,
    /// Memory limit, such as 2G [default: most of what is free]
    #[arg(long, global = true, env = "TENURE_MAX_MEMORY", hide_env = true, value_name = "SIZE",
        value_parser = parse_size)]
    pub max_memory: Option<u64>,
    /// Worker threads [default: one per core]
    #[arg(
        long,
        global = true,
        env = "TENURE_THREADS",
        hide_env = true,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub threads: usize,
    /// When to use colour
    #[arg(long, global = true, value_enum, env = "TENURE_COLOR", hide_env = true,
        default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// No progress on standard error
    #[arg(long, short, global = true, env = "TENURE_QUIET", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub quiet: bool,
    /// Sizes as plain numbers of bytes
    #[arg(long, global = true, env = "TENURE_BYTES", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub bytes: bool,
    /// Print JSON (docs/reference/json.md)
    #[arg(long, global = true, env = "TENURE_JSON", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub json: bool,
    /// Print the tables as CSV: sizes in bytes, shares from 0 to 1
    #[arg(long, global = true, env = "TENURE_CSV", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub csv: bool,
    /// Include unreachable objects (histogram, objects, query, waste, ...)
    #[arg(long, global = true, env = "TENURE_UNREACHABLE", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub unreachable: bool,
    /// Restore the names of classes, fields and frames that ProGuard or R8 changed
    #[arg(
        long,
        global = true,
        env = "TENURE_MAPPING",
        hide_env = true,
        value_name = "FILE"
    )]
    pub mapping: Option<PathBuf>,
    /// More collection classes (docs/reference/collections.md)
    #[arg(
        long,
        global = true,
        env = "TENURE_COLLECTIONS",
        hide_env = true,
        hide_short_help = true,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath
    )]
    pub collections: Option<PathBuf>,
    /// Print what each phase of the analysis costs on standard error
    #[arg(long, global = true, hide = true, action = ArgAction::SetTrue)]
    pub profile_phases: bool,
    /// Overwrite output files
    #[arg(long, global = true, env = "TENURE_FORCE", hide_env = true, action = ArgAction::SetTrue,
        value_parser = parse_flag)]
    pub force: bool,
}

impl Global {
    /// If one of `--json` and `--csv` is on the command line, it overrides the other one in the environment.
    ///
    /// # Errors
    /// If both are in the same place.
    fn choose_form(&mut self, parsed: &ArgMatches) -> Result<(), clap::Error> {
        if !(self.json && self.csv) {
            return Ok(());
        }
        let typed = |option| parsed.value_source(option) == Some(ValueSource::CommandLine);
        let (json, csv) = (typed("json"), typed("csv"));
        if json == csv {
            let why = "--json and --csv cannot be used together";
            return Err(Cli::command().error(ErrorKind::ArgumentConflict, why));
        }
        (self.json, self.csv) = (json, csv);
        Ok(())
    }
}

/// The commands that can include unreachable objects, and those that state why they cannot.
const KNOW_UNREACHABLE: [&str; 11] = [
    "histogram",
    "objects",
    "strings",
    "collections",
    "waste",
    "query",
    "export",
    "extract",
    "convert",
    "check",
    "diff",
];

/// Refuses `--unreachable` on the command line where it has no effect. In the environment it is a default for the
/// commands that know it.
fn refuse_unreachable(parsed: &ArgMatches) -> Result<(), clap::Error> {
    let typed = parsed.value_source("unreachable") == Some(ValueSource::CommandLine);
    let command = parsed.subcommand_name().unwrap_or_default();
    if !typed || KNOW_UNREACHABLE.contains(&command) {
        return Ok(());
    }
    let why = format!(
        "--unreachable has no effect on {command}: leave it out (tenure unreachable FILE lists the unreachable objects)"
    );
    Err(Cli::command().error(ErrorKind::ArgumentConflict, why))
}

/// `--layout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Derived from the distances between objects.
    Measured,
    /// As Eclipse MAT computes it.
    Mat,
    /// Field bytes only.
    Plain,
}

impl From<Layout> for LayoutModel {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Measured => LayoutModel::Measured,
            Layout::Mat => LayoutModel::Mat,
            Layout::Plain => LayoutModel::Plain,
        }
    }
}

/// `--strength`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrengthArg {
    /// Every reference, as MAT does.
    All,
    /// No `java.lang.ref` referents.
    Strong,
    /// Soft referents only.
    StrongSoft,
}

impl ValueEnum for StrengthArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::All, Self::Strong, Self::StrongSoft]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::All => PossibleValue::new("all").help("every reference, as MAT does"),
            Self::Strong => PossibleValue::new("strong").help("no java.lang.ref referents"),
            Self::StrongSoft => PossibleValue::new("strong+soft").help("soft referents only"),
        })
    }
}

impl From<StrengthArg> for Strength {
    fn from(strength: StrengthArg) -> Self {
        match strength {
            StrengthArg::All => Strength::All,
            StrengthArg::Strong => Strength::Strong,
            StrengthArg::StrongSoft => Strength::StrongSoft,
        }
    }
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Reads the value of a flag's environment variable.
fn parse_flag(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("a flag in the environment is 1 or 0".to_owned()),
    }
}

/// Reads `512`, `64k`, `1.5G`, `2GiB`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let unit = lower.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &lower[..lower.len() - unit.len()];
    let shift = match unit.trim().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(format!("{text}: expected a size such as 512m or 2G")),
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("{text}: expected a size such as 512m or 2G"))?;
    Ok((value * (1u64 << shift) as f64) as u64)
}

/// `--limit` with an error that states what it may be, also for a negative number, which is an option to clap.
fn with_clear_limit(arg: clap::Arg) -> clap::Arg {
    match arg.get_long() {
        Some("limit") => arg.allow_negative_numbers(true).value_parser(parse_limit),
        _ => arg,
    }
}

fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "expected a number of rows, 0 for all".to_owned())
}

/// Reads a command line whose command is named.
///
/// # Errors
/// What the user typed wrong, as clap prints it; requested help is an error, too.
pub fn parse(command: clap::Command, args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let command = command.mut_subcommands(|command| command.mut_args(with_clear_limit));
    let parsed = command.try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&parsed)?;
    cli.global.choose_form(&parsed)?;
    refuse_unreachable(&parsed)?;
    Ok(cli)
}

/// Inserts the default command before the first plain argument if that is not a command: `tenure heap.hprof` means
/// `tenure overview heap.hprof`. An argument that looks like a mistyped command is left to clap, which reports it.
/// `tenure heap.hprof leaks` means `tenure leaks heap.hprof`.
pub fn with_default_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let takes_value = |long: &str| {
        command.get_arguments().any(|a| {
            a.get_long() == Some(long)
                && matches!(a.get_action(), ArgAction::Set | ArgAction::Append)
        })
    };
    let mut at = 1;
    while at < args.len() {
        let text = args[at].to_string_lossy();
        if let Some(long) = text.strip_prefix("--") {
            at += if takes_value(long) { 2 } else { 1 };
        } else if text.len() > 1 && text.starts_with('-') {
            at += 1;
        } else {
            break;
        }
    }
    let Some(first) = args.get(at) else {
        return args;
    };
    let text = first.to_string_lossy().into_owned();
    let is_command = |text: &str| {
        let mut all = command.get_subcommands();
        all.any(|c| c.get_name() == text || c.get_all_aliases().any(|a| a == text))
    };
    let known = is_command(&text);
    let is_file = text == "-" || text.contains(['.', '/', '#']) || PathBuf::from(first).exists();
    let second = args.get(at + 1).map(|second| second.to_string_lossy());
    if !known && is_file && second.is_some_and(|second| is_command(&second)) {
        args.swap(at, at + 1);
    } else if !known && is_file {
        let is_of_events = is_recording_of_events(Path::new(first));
        let command = if is_of_events { "events" } else { "overview" };
        args.insert(at, command.into());
    }
    args
}

/// Whether a file is a recording of events, by its first bytes. A pipe is not read, because the command needs all of it.
fn is_recording_of_events(file: &Path) -> bool {
    if !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut start = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && vmpi::wire::Decoder::recognises(&start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_with_rows_has_one_option_for_how_many() {
        let command = Cli::command();
        let mut with_limit = 0;
        for sub in command.get_subcommands() {
            let name = sub.get_name();
            let mut options = sub.get_arguments();
            let old = options.find(|option| matches!(option.get_long(), Some("top" | "rows")));
            assert!(old.is_none(), "{name} has {old:?}");
            let mut options = sub.get_arguments();
            let Some(limit) = options.find(|option| option.get_long() == Some("limit")) else {
                continue;
            };
            assert_eq!(limit.get_short(), Some('n'), "{name}");
            let help = limit.get_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.contains("0 for all"), "{name}: {help}");
            with_limit += 1;
        }
        assert!(with_limit > 15, "{with_limit}");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("1.5kib"), Ok(1536));
        assert!(parse_size("many").is_err());
    }

    #[test]
    fn a_file_alone_means_the_first_screen() {
        let split = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (typed, meant) in [
            ("tenure a.hprof", "tenure overview a.hprof"),
            ("tenure --json a.hprof", "tenure --json overview a.hprof"),
            (
                "tenure --layout mat a.hprof",
                "tenure --layout mat overview a.hprof",
            ),
            ("tenure -", "tenure overview -"),
            ("tenure histogram a.hprof", "tenure histogram a.hprof"),
            ("tenure histo a.hprof", "tenure histo a.hprof"),
            ("tenure histgram a.hprof", "tenure histgram a.hprof"),
            ("tenure a.hprof leaks --deep", "tenure leaks a.hprof --deep"),
            ("tenure -q a.hprof histo", "tenure -q histo a.hprof"),
            ("tenure a.hprof b.hprof", "tenure overview a.hprof b.hprof"),
            ("tenure leaks waste", "tenure leaks waste"),
            ("tenure --help", "tenure --help"),
        ] {
            assert_eq!(with_default_command(split(typed)), split(meant), "{typed}");
        }
    }
}
