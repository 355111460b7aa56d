//! `events=INTERVAL[,depth=FRAMES],net=HOST:PORT`, or `file=PATH` at its end: the stream of VM
//! events instead of a profile.

use std::fs::OpenOptions;
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;

use jvmti::JavaVm;
use vm_hotspot::host::{self, HostSetup, Sink};

use crate::process;

/// What the options ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    interval: u32,
    depth: usize,
    target: Target<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target<'a> {
    Net(&'a str),
    File(&'a str),
}

/// Bytes with an optional `k` or `m`.
fn bytes(text: &str) -> Option<u32> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u32>().ok()?.checked_mul(unit)?;
    (bytes <= i32::MAX.cast_unsigned()).then_some(bytes)
}

/// What the options ask for, if they begin with `events=`.
///
/// # Errors
/// One line saying what is wrong.
pub(crate) fn parse(text: &str) -> Option<Result<Wanted<'_>, String>> {
    let rest = text.strip_prefix("events=")?;
    let (interval, target) = rest.split_once(',').unwrap_or((rest, ""));
    let Some(interval) = bytes(interval) else {
        return Some(Err(format!("events={interval} is no number of bytes")));
    };
    let mut depth = host::DEPTH;
    let mut target = target;
    if let Some(rest) = target.strip_prefix("depth=") {
        let (frames, rest) = rest.split_once(',').unwrap_or((rest, ""));
        match frames.parse() {
            Ok(frames) if frames <= host::MOST_DEPTH => depth = frames,
            _ => {
                let most = host::MOST_DEPTH;
                return Some(Err(format!("depth={frames} is no number up to {most}")));
            }
        }
        target = rest;
    }
    let target = match target.split_once('=') {
        Some(("net", address)) if address.contains(':') => Target::Net(address),
        Some(("file", path)) if !path.is_empty() => Target::File(path),
        _ => return Some(Err("events= needs net=HOST:PORT or file=PATH".to_owned())),
    };
    Some(Ok(Wanted {
        interval,
        depth,
        target,
    }))
}

fn open(target: &Target<'_>) -> std::io::Result<Sink> {
    Ok(match target {
        Target::Net(address) => {
            let stream = TcpStream::connect(address)?;
            let _ = stream.set_nodelay(true);
            Sink::Socket(stream)
        }
        // Its owner's alone, as every file of the agent.
        Target::File(path) => Sink::File(
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(path)?,
        ),
    })
}

/// Starts the recording.
///
/// # Errors
/// One line saying why there is none.
pub(crate) fn start(java: JavaVm, wanted: &Wanted<'_>) -> Result<(), String> {
    let sink = open(&wanted.target).map_err(|error| format!("{:?}: {error}", wanted.target))?;
    let setup = HostSetup {
        interval: wanted.interval,
        depth: wanted.depth,
        sink,
        message: process::note,
    };
    host::load(java, setup).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_how_dense_and_where_to() {
        assert_eq!(parse("heap=sites"), None);
        let check = |text, interval, depth, target| {
            let wanted = Wanted {
                interval,
                depth,
                target,
            };
            assert_eq!(parse(text), Some(Ok(wanted)));
        };
        let (net, usual) = (Target::Net("localhost:7"), host::DEPTH);
        check("events=64k,net=localhost:7", 64 << 10, usual, net);
        check("events=0,file=a,b", 0, usual, Target::File("a,b"));
        check(
            "events=1M,file=depth=3",
            1 << 20,
            usual,
            Target::File("depth=3"),
        );
        check("events=1M,depth=0,file=x", 1 << 20, 0, Target::File("x"));
        check("events=1M,depth=64,file=x", 1 << 20, 64, Target::File("x"));
        for wrong in [
            "events=",
            "events=64k",
            "events=-1,file=x",
            "events=9999m,file=x",
            "events=1,net=7",
            "events=1,depth=65,file=x",
            "events=1,depth=,file=x",
            "events=1,depth=4",
        ] {
            assert!(matches!(parse(wrong), Some(Err(_))), "{wrong}");
        }
    }
}
