//! The reverse direction: commands that a front end may send to the host of a stream.
//!
//! A file has no reverse direction; a socket and a pair of pipes do. The front end's first frame is its own
//! [`WIRE_VERSION`]; then come commands, each with a serial number that its [`Answer`] repeats. The results of a
//! command (a dump, the events of a collection) come in the stream before the answer.

use super::damage::Damage;
use super::frame::{self, FrameType, MAGIC, Pieces, Splitter};
use super::hello::WIRE_VERSION;
use super::varint::{Input, put};
use crate::ids::ObjectHandle;
use crate::kind::{EventKind, Outcome};
use crate::vm_event::DumpLevel;

/// A request of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Deliver this event from now on.
    Enable(EventKind),
    /// No longer deliver it.
    Disable(EventKind),
    /// Deliver the defining event of an object, class or thread object, or the
    /// dump of an object, once.
    Request(EventKind, ObjectHandle),
    /// Deliver a heap dump.
    HeapDump(DumpLevel),
    /// Deliver a monitor dump.
    MonitorDump,
    /// Collect garbage.
    RunGc,
}

/// A command with its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Chosen by the front end.
    pub serial: u64,
    /// The command.
    pub command: Command,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the command.
    pub serial: u64,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Answer {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.serial);
        out.push(self.outcome as i32 as u8);
        out
    }

    pub(crate) fn decode(payload: &[u8], offset: u64) -> Result<Self, Damage> {
        let mut input = Input::new(payload);
        let serial = input
            .number()
            .ok_or_else(|| Damage::new(offset, "answer", "a serial number", "no such bytes"))?;
        let code = input.byte().map(|code| i32::from(code as i8));
        let outcome = code.and_then(Outcome::from_code).ok_or_else(|| {
            let at = offset + input.position() as u64;
            Damage::new(at, "answer", "0, 1 or -1", format!("{code:?}"))
        })?;
        Ok(Self { serial, outcome })
    }
}

/// Encodes the reverse direction.
#[derive(Debug, Default)]
pub struct CommandWriter {
    greeted: bool,
    serial: u64,
}

impl CommandWriter {
    /// A writer for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of one command, after the greeting if it is the first, and its
    /// serial number.
    pub fn command(&mut self, command: Command) -> (u64, Vec<u8>) {
        let mut out = Vec::new();
        if !self.greeted {
            self.greeted = true;
            out.extend_from_slice(&MAGIC);
            let mut version = Vec::new();
            put(&mut version, u64::from(WIRE_VERSION));
            frame::put(&mut out, FrameType::Hello, &version);
        }
        self.serial += 1;
        let mut payload = Vec::new();
        put(&mut payload, self.serial);
        let (code, a, b) = match command {
            Command::Enable(kind) => (1, kind as u64, 0),
            Command::Disable(kind) => (2, kind as u64, 0),
            Command::Request(kind, object) => (3, kind as u64, object.0),
            Command::HeapDump(level) => (4, level as u64, 0),
            Command::MonitorDump => (5, 0, 0),
            Command::RunGc => (6, 0, 0),
        };
        payload.push(code);
        put(&mut payload, a);
        put(&mut payload, b);
        frame::put(&mut out, FrameType::Command, &payload);
        (self.serial, out)
    }
}

/// Decodes the reverse direction at the host; bytes may be passed in pieces of any size.
#[derive(Debug)]
pub struct CommandReader {
    splitter: Splitter,
    version: Option<u32>,
}

impl Default for CommandReader {
    fn default() -> Self {
        Self::new()
    }
}

impl CommandReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            splitter: Splitter::new(Pieces::Refuse),
            version: None,
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// The front end's wire version, after it was received.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        self.version
    }

    /// The next command, `None` until more bytes are pushed.
    ///
    /// # Errors
    /// The damage in the bytes; no further command can be read then.
    pub fn next_command(&mut self) -> Result<Option<Numbered>, Damage> {
        loop {
            let Some((kind, payload)) = self.splitter.next()? else {
                return Ok(None);
            };
            match (kind, self.version) {
                (FrameType::Hello, None) => {
                    let version = Input::new(payload.bytes).number().ok_or_else(|| {
                        Damage::new(payload.offset, "greeting", "a version", "no such bytes")
                    })?;
                    self.version = Some(u32::try_from(version).unwrap_or(u32::MAX));
                }
                (FrameType::Command, Some(_)) => {
                    return decode(payload.bytes, payload.offset).map(Some);
                }
                (other, _) => {
                    let expected = "a greeting and then commands";
                    let found = format!("a frame of type {}", other as u8);
                    return Err(Damage::new(payload.offset, "way back", expected, found));
                }
            }
        }
    }
}

fn decode(payload: &[u8], offset: u64) -> Result<Numbered, Damage> {
    let mut input = Input::new(payload);
    let mut read = || -> Option<(u64, u8, u64, u64)> {
        Some((
            input.number()?,
            input.byte()?,
            input.number()?,
            input.number()?,
        ))
    };
    let (serial, code, a, b) = read().ok_or_else(|| {
        Damage::new(
            offset,
            "command",
            "serial, code and two operands",
            "fewer bytes",
        )
    })?;
    let event = i32::try_from(a).ok().and_then(EventKind::from_code);
    let command = match (code, event) {
        (1, Some(kind)) => Some(Command::Enable(kind)),
        (2, Some(kind)) => Some(Command::Disable(kind)),
        (3, Some(kind)) => Some(Command::Request(kind, ObjectHandle(b))),
        (4, _) => DumpLevel::from_code(a).map(Command::HeapDump),
        (5, _) => Some(Command::MonitorDump),
        (6, _) => Some(Command::RunGc),
        _ => None,
    };
    let command = command.ok_or_else(|| {
        Damage::new(
            offset,
            "command",
            "a known code and operand",
            format!("{code} {a}"),
        )
    })?;
    Ok(Numbered { serial, command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_cross_byte_by_byte() {
        let all = [
            Command::Enable(EventKind::ObjectMove),
            Command::Disable(EventKind::MethodEntry),
            Command::Request(EventKind::ClassLoad, ObjectHandle(0x7fff_0000_1234)),
            Command::HeapDump(DumpLevel::References),
            Command::MonitorDump,
            Command::RunGc,
        ];
        let mut writer = CommandWriter::new();
        let mut reader = CommandReader::new();
        let mut got = Vec::new();
        for command in all {
            for byte in writer.command(command).1 {
                reader.push(&[byte]);
                got.extend(reader.next_command().unwrap());
            }
        }
        assert_eq!(got.iter().map(|n| n.command).collect::<Vec<_>>(), all);
        assert_eq!(
            got.iter().map(|n| n.serial).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(reader.version(), Some(WIRE_VERSION));
    }

    #[test]
    fn a_command_in_pieces_is_an_error_and_is_not_stored() {
        let mut bytes = MAGIC.to_vec();
        frame::put(&mut bytes, FrameType::Hello, &[1]);
        let greeting = bytes.len() as u64;
        frame::put(&mut bytes, FrameType::Command, &vec![0; frame::PIECE + 1]);
        let mut reader = CommandReader::new();
        reader.push(&bytes);
        assert_eq!(reader.next_command().unwrap_err().offset, greeting);
        assert_eq!(reader.version(), Some(1));
    }

    #[test]
    fn noise_on_the_way_back_is_an_error() {
        let mut reader = CommandReader::new();
        reader.push(b"GET / HTTP/1.1\r\n");
        assert_eq!(reader.next_command().unwrap_err().offset, 0);
    }
}
