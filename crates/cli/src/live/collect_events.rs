//! The collector of an agent that sends events: stores the stream, passes commands on and reports their results.

use super::collect::{Collected, Destination, TICK, append, is_timeout};
use crate::output_file::OutputFile;
use agent_core::control::{NoCommand, Progress};
use anyhow::Result;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use vmpi::wire::{Command, CommandWriter, Decoder, Frame};
use vmpi::{DumpLevel, EventKind, ObjectHandle, Outcome};

/// Every form a command can be typed in, with what it does.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("gc", "collect garbage"),
    (
        "enable EVENT",
        "report this event from now on, for instance object-alloc",
    ),
    ("disable EVENT", "no longer report it"),
    (
        "request EVENT ID",
        "report a class (class-load) or an object (object-alloc) once more, or its values (object-dump)",
    ),
    (
        "dump [LEVEL]",
        "a heap dump: 0 ids (the default), 1 references, 2 values",
    ),
    ("monitors", "a monitor dump"),
];

/// A line of input.
pub(crate) enum Typed<C> {
    /// A command.
    Command(C),
    /// No line yet.
    Nothing,
    /// The end of the input.
    End,
}

/// A typed line as a command.
///
/// # Errors
/// When it is none.
pub(crate) fn parse(line: &str) -> Result<Command, NoCommand> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let command = match words[..] {
        ["gc"] => Some(Command::RunGc),
        ["enable", event] => kind(event).map(Command::Enable),
        ["disable", event] => kind(event).map(Command::Disable),
        ["request", event, id] => {
            let kind = kind(event);
            kind.and_then(|kind| Some(Command::Request(kind, ObjectHandle(number(id)?))))
        }
        ["dump"] => Some(Command::HeapDump(DumpLevel::Ids)),
        ["dump", level] => {
            let level = level.parse().ok().and_then(DumpLevel::from_code);
            level.map(Command::HeapDump)
        }
        ["monitors"] => Some(Command::MonitorDump),
        _ => None,
    };
    command.ok_or_else(|| NoCommand(line.to_owned()))
}

fn kind(word: &str) -> Option<EventKind> {
    let name = word.replace('-', "_");
    let mut all = EventKind::ALL.iter().copied();
    all.find(|kind| kind.name().eq_ignore_ascii_case(&name))
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Stores a stream until its host closes it. `next` returns commands; when it ends, the host is informed that there are
/// no more. `create` opens the file, `say` receives the result of each command.
pub(crate) fn collect(
    mut stream: TcpStream,
    destination: &Destination,
    mut next: impl FnMut() -> Typed<Command>,
    create: impl FnOnce(&Path) -> Result<OutputFile>,
    say: impl Fn(&str),
) -> Result<Collected> {
    stream.set_read_timeout(Some(TICK))?;
    let path = match destination {
        Destination::File(path, _) => path.clone(),
        Destination::Stem(stem) => {
            let mut name = stem.clone().into_os_string();
            name.push(".vmpi");
            PathBuf::from(name)
        }
    };
    let mut file = create(&path)?;
    let mut asked = BTreeMap::new();
    let mut writer = CommandWriter::new();
    // None once the stream is damaged: it is stored as it is.
    let mut decoder = Some(Decoder::without_batches());
    let mut progress = Progress::default();
    let mut buffer = vec![0; 1 << 16];
    let mut has_more = true;
    loop {
        while has_more {
            // A host that is gone is noticed by the next read.
            match next() {
                Typed::Nothing => break,
                Typed::Command(command) => {
                    let (serial, bytes) = writer.command(command);
                    asked.insert(serial, command);
                    let _ = stream.write_all(&bytes);
                }
                Typed::End => {
                    has_more = false;
                    let _ = stream.shutdown(Shutdown::Write);
                }
            }
        }
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_timeout(&error) => continue,
            // The program died: what arrived stays.
            Err(_) => break,
        };
        file = append(file, &buffer[..count])?;
        progress.bytes += count as u64;
        if let Some(reader) = &mut decoder {
            reader.push(&buffer[..count]);
            loop {
                match reader.next_frame() {
                    Ok(Some(Frame::Answer(answer))) => {
                        if let Some(command) = asked.remove(&answer.serial) {
                            say(&describe(command, answer.outcome));
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(damage) => {
                        say(&damage.to_string());
                        decoder = None;
                        break;
                    }
                }
            }
        }
    }
    let path = file.finish_named()?;
    progress.at_boundary = decoder.is_some_and(|reader| reader.missing().is_none());
    for command in asked.into_values() {
        say(&format!("{}: not answered", name(command)));
    }
    Ok(Collected {
        path: Some(path),
        bytes: progress.bytes,
        progress,
    })
}

fn describe(command: Command, outcome: Outcome) -> String {
    let how = match outcome {
        Outcome::Success => "done",
        Outcome::NotAvailable => "not available in this VM",
        Outcome::Fail => match command {
            Command::Request(..) => "failed: no such object or class",
            _ => "failed: the program's own output says why",
        },
    };
    format!("{}: {how}", name(command))
}

fn name(command: Command) -> String {
    let word = |kind: EventKind| kind.name().to_lowercase().replace('_', "-");
    match command {
        Command::Enable(kind) => format!("enable {}", word(kind)),
        Command::Disable(kind) => format!("disable {}", word(kind)),
        Command::Request(kind, object) => format!("request {} {:#x}", word(kind), object.0),
        Command::HeapDump(level) => format!("dump {}", level as u64),
        Command::MonitorDump => "monitors".to_owned(),
        Command::RunGc => "gc".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_as_it_is_typed() {
        for line in [
            "gc",
            "enable object-alloc",
            "disable gc-finish",
            "request class-load 0x4000000000000001",
            "dump 0",
            "dump 2",
            "monitors",
        ] {
            assert_eq!(name(parse(line).expect(line)), line);
        }
        assert_eq!(parse("dump"), Ok(Command::HeapDump(DumpLevel::Ids)));
        for wrong in [
            "",
            "gc now",
            "enable",
            "enable birth",
            "dump 3",
            "request object-alloc x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for (form, _) in WORDS {
            let line = form.replace("EVENT", "class-load").replace("ID", "7");
            assert!(parse(line.trim_end_matches(" [LEVEL]")).is_ok(), "{form}");
        }
    }
}
