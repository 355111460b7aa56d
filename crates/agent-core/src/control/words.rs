//! Commands as a person types them.

use super::{Command, Switch};
use std::str::FromStr;
use thiserror::Error;
use vmpi::class_options::Rules;

/// Every form in which a command can be typed, with its effect.
pub const WORDS: &[(&str, &str)] = &[
    ("gc", "collect garbage"),
    ("dump", "write a heap dump"),
    ("sites [CUTOFF]", "write the allocation sites by live bytes"),
    (
        "allocated [CUTOFF]",
        "write the allocation sites by allocated bytes",
    ),
    ("summary", "write the totals of the heap (binary form)"),
    ("samples [CUTOFF]", "write the CPU samples"),
    ("traces", "write every new trace"),
    ("alloc on|off", "count allocations or not"),
    (
        "sampling on|off [THREAD]",
        "take CPU samples or not, of one thread (id or obj of its START line)",
    ),
    (
        "monitors on|off",
        "start to time contention of monitors; stop and write it (binary form)",
    ),
    ("clear samples|sites", "restart the counts at zero"),
    ("depth N", "depth of traces from now on"),
    (
        "classes [MODULE CLASS OPTIONS; ...]",
        "set the class filters (see docs/reference/live.md)",
    ),
    (
        "own on|off",
        "allow or forbid running code of the program for requests about its objects",
    ),
    ("stop", "write what was recorded, and end the recording"),
    ("end", "send no more commands"),
    ("exit", "end the program"),
];

/// A line that is not a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no such command: {0}")]
pub struct NoCommand(pub String);

impl FromStr for Command {
    type Err = NoCommand;

    fn from_str(line: &str) -> Result<Command, NoCommand> {
        let words: Vec<&str> = line.split_whitespace().collect();
        classes(line)
            .or_else(|| parse(&words))
            .ok_or_else(|| NoCommand(line.trim().to_owned()))
    }
}

/// Class filters: lines with semicolons between them.
fn classes(line: &str) -> Option<Command> {
    let rest = line.trim().strip_prefix("classes")?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let text = rest.trim().replace(';', "\n");
    Rules::parse(&text).ok()?;
    Some(Command::Control(Switch::Classes(text)))
}

fn parse(words: &[&str]) -> Option<Command> {
    let (first, rest) = words.split_first()?;
    let cutoff = || match rest {
        [] => Some(0.0),
        [cutoff] => cutoff.parse().ok().filter(|cutoff: &f32| *cutoff >= 0.0),
        _ => None,
    };
    let alone = |command| rest.is_empty().then_some(command);
    match *first {
        "gc" => alone(Command::ForceGc),
        "dump" => alone(Command::DumpHeap),
        "sites" => Some(Command::AllocSites {
            flags: 0,
            cutoff: cutoff()?,
        }),
        "allocated" => Some(Command::AllocSites {
            flags: 2,
            cutoff: cutoff()?,
        }),
        "summary" => alone(Command::HeapSummary),
        "samples" => Some(Command::CpuSamples { cutoff: cutoff()? }),
        "traces" => alone(Command::DumpTraces),
        "stop" => alone(Command::Control(Switch::Stop)),
        "end" => alone(Command::Eof),
        "exit" => alone(Command::Exit),
        _ => switch(first, rest).map(Command::Control),
    }
}

/// A thread as its START line names it: `id = 200001`, or `obj=50000103` in hexadecimal,
/// which begins with `0x` here.
fn thread(word: &str) -> Option<u64> {
    let id = match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => word.parse::<u32>().ok()?,
    };
    Some(u64::from(id)).filter(|id| *id != 0)
}

fn switch(first: &str, rest: &[&str]) -> Option<Switch> {
    let (word, thread) = match rest {
        [word] => (word, None),
        [word, one] if first == "sampling" => (word, Some(thread(one)?)),
        _ => return None,
    };
    let on = || match *word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    match (first, *word) {
        ("alloc", _) => Some(Switch::Allocations(on()?)),
        ("sampling", _) => Some(Switch::Sampling { on: on()?, thread }),
        ("monitors", _) => Some(Switch::Monitors(on()?)),
        ("own", _) => Some(Switch::OwnCode(on()?)),
        ("clear", "samples") => Some(Switch::ClearSamples),
        ("clear", "sites") => Some(Switch::ClearSites),
        ("depth", depth) => depth.parse().ok().map(Switch::Depth),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_is_a_command() {
        for (form, _) in WORDS {
            let line = form.replace(" [CUTOFF]", " 0.01");
            let line = line.replace("[MODULE CLASS OPTIONS; ...]", "* a.** off; * ** count");
            let line = line.replace('N', "7");
            let line = line.replace("|off [THREAD]", " 200003");
            let line = line.split('|').next().unwrap_or("");
            assert!(line.parse::<Command>().is_ok(), "{line}");
        }
    }

    #[test]
    fn other_words_are_refused() {
        for line in [
            "",
            "gc now",
            "sites x",
            "sites -1",
            "alloc maybe",
            "clear",
            "classes a.b off",
            "classesx",
            "depth -1",
            "depth 4 200001",
            "sampling 200001",
            "sampling on 0",
            "sampling on 0x",
        ] {
            assert!(line.parse::<Command>().is_err(), "{line}");
        }
        assert_eq!(
            "sites".parse(),
            Ok(Command::AllocSites {
                flags: 0,
                cutoff: 0.0
            })
        );
        let sampling = |on, thread| {
            Ok(Command::Control(Switch::Sampling {
                on,
                thread: Some(thread),
            }))
        };
        assert_eq!("sampling off 200001".parse(), sampling(false, 200_001));
        assert_eq!(
            "sampling on 0x500001a3".parse(),
            sampling(true, 0x5000_01a3)
        );
        assert_eq!(" depth 9 ".parse(), Ok(Command::Control(Switch::Depth(9))));
    }
}
