//! The agent's side: decodes the bytes of the collector to commands.

use super::{Command, Switch};

/// Bytes of tag, serial and length.
const HEAD: usize = 9;
/// The longest body of an unknown switch.
const MOST_UNKNOWN: usize = 1 << 16;

/// Collects bytes until a command is complete. As in the original, the length word is ignored: a command's length
/// follows from its tag, because old collectors sent any value there. Only newer collectors send unknown switches, so
/// for those the length word is used.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    /// Takes bytes as they arrive, in pieces of any size.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next complete command.
    pub fn next_command(&mut self) -> Option<Command> {
        let (command, used) = decode(&self.waiting)?;
        self.waiting.drain(..used);
        Some(command)
    }
}

/// A command and its length, if all its bytes have arrived.
fn decode(bytes: &[u8]) -> Option<(Command, usize)> {
    let tag = *bytes.first()?;
    if tag == 0xff {
        return Some((Command::Eof, 1));
    }
    let body = bytes.get(HEAD..)?;
    let head = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (serial, length) = (head(1)?, head(5)?);
    let word = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let long = |at: usize| Some(u32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let (command, used) = match tag {
        1 => (Command::ForceGc, 0),
        2 => (Command::DumpHeap, 0),
        3 => (
            Command::AllocSites {
                flags: word(0)?,
                cutoff: f32::from_bits(long(2)?),
            },
            6,
        ),
        4 => (Command::HeapSummary, 0),
        5 => (Command::Exit, 0),
        6 => (Command::DumpTraces, 0),
        7 => (
            Command::CpuSamples {
                cutoff: f32::from_bits(long(2)?),
            },
            6,
        ),
        8 => {
            let number = word(0)?;
            let (switch, used) = match number {
                1 | 2 => (Switch::Allocations(number == 1), 2),
                3 | 4 => {
                    let thread = Some(u64::from(long(2)?)).filter(|id| *id != 0);
                    (
                        Switch::Sampling {
                            on: number == 3,
                            thread,
                        },
                        6,
                    )
                }
                5 => (Switch::ClearSamples, 2),
                6 => (Switch::ClearSites, 2),
                7 => (Switch::Depth(word(2)?), 4),
                9 | 10 => (Switch::Monitors(number == 9), 2),
                11 | 12 => (Switch::OwnCode(number == 11), 2),
                14 => (Switch::Fills(serial), 2),
                15 => (Switch::Stop, 2),
                8 | 13 => {
                    let length = long(2)? as usize;
                    if length > vmpi::class_options::MOST_TEXT {
                        return Some((Command::Unknown(tag), HEAD));
                    }
                    let text = String::from_utf8_lossy(body.get(6..6 + length)?);
                    let switch = match number {
                        8 => Switch::Classes(text.into_owned()),
                        _ => text.parse().map_or(Switch::Unknown(13), Switch::Instances),
                    };
                    (switch, 6 + length)
                }
                _ => {
                    let used = match length as usize {
                        used @ 2..=MOST_UNKNOWN => body.get(..used)?.len(),
                        _ => 2,
                    };
                    (Switch::Unknown(number), used)
                }
            };
            (Command::Control(switch), used)
        }
        _ => (Command::Unknown(tag), 0),
    };
    Some((command, HEAD + used))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Command> {
        vec![
            Command::ForceGc,
            Command::DumpHeap,
            Command::AllocSites {
                flags: 6,
                cutoff: 0.01,
            },
            Command::HeapSummary,
            Command::DumpTraces,
            Command::CpuSamples { cutoff: 0.0 },
            Command::Control(Switch::Allocations(true)),
            Command::Control(Switch::Allocations(false)),
            Command::Control(Switch::Sampling {
                on: true,
                thread: None,
            }),
            Command::Control(Switch::Sampling {
                on: false,
                thread: Some(0x5000_01a3),
            }),
            Command::Control(Switch::ClearSamples),
            Command::Control(Switch::ClearSites),
            Command::Control(Switch::Depth(12)),
            Command::Control(Switch::Monitors(true)),
            Command::Control(Switch::Monitors(false)),
            Command::Control(Switch::Classes("* ä.** off\n".to_owned())),
            Command::Control(Switch::OwnCode(true)),
            Command::Control(Switch::OwnCode(false)),
            Command::Control(Switch::Instances(vmpi::InstanceQuery {
                number: 3,
                sample: 10,
                ask: 15,
                text_limit: 80,
                class: "ä.B[]".to_owned(),
            })),
            Command::Control(Switch::Fills(0x0102_0304)),
            Command::Control(Switch::Stop),
            Command::Control(Switch::Unknown(99)),
            Command::Unknown(99),
            Command::Exit,
            Command::Eof,
        ]
    }

    #[test]
    fn every_command_survives_any_cutting() {
        let bytes: Vec<u8> = all().iter().flat_map(|command| command.encode(7)).collect();
        for piece in [1, 2, 3, 5, 64] {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for bytes in bytes.chunks(piece) {
                decoder.push(bytes);
                while let Some(command) = decoder.next_command() {
                    found.push(command);
                }
            }
            assert_eq!(found, all(), "pieces of {piece}");
        }
    }

    #[test]
    fn a_text_that_claims_to_be_long_is_not_waited_for() {
        let mut decoder = Decoder::default();
        decoder.push(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_command(), Some(Command::Unknown(8)));
    }

    #[test]
    fn a_switch_that_is_not_known_is_as_long_as_it_says() {
        let mut decoder = Decoder::default();
        // Its body looks like EXIT.
        let unknown = [
            8, 0, 0, 0, 1, 0, 0, 0, 12, 0, 77, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        decoder.push(&unknown);
        decoder.push(&Command::HeapSummary.encode(2));
        let known = [(); 2].map(|()| decoder.next_command());
        assert_eq!(
            known,
            [Command::Control(Switch::Unknown(77)), Command::HeapSummary].map(Some)
        );
        assert_eq!(decoder.next_command(), None);
    }

    #[test]
    fn the_length_word_is_ignored() {
        let mut decoder = Decoder::default();
        decoder.push(&[1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_command(), Some(Command::ForceGc));
        assert_eq!(decoder.next_command(), Some(Command::Eof));
        assert_eq!(decoder.next_command(), None);
    }
}
