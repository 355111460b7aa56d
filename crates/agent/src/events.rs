//! `events=INTERVAL[,depth=FRAMES][,memory=SIZE][,secret-file=FILE][,insecure=y],net=HOST:PORT`, or `net=unix:PATH` or
//! `file=PATH` at its end: the stream of VM events instead of a profile.

use std::path::Path;

use agent_core::options;
use jvmti::JavaVm;
use vm_hotspot::host::{self, HostSetup, Sink};

use crate::output::{dial, new_file};
use crate::{collector, process};

/// What the options request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    interval: u32,
    depth: usize,
    memory: u64,
    secret_file: Option<&'a str>,
    insecure: bool,
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

/// What the options request, if they begin with `events=`.
///
/// # Errors
/// One line saying what is wrong.
pub(crate) fn parse(text: &str) -> Option<Result<Wanted<'_>, String>> {
    let rest = text.strip_prefix("events=")?;
    let (interval, target) = rest.split_once(',').unwrap_or((rest, ""));
    let Some(interval) = bytes(interval) else {
        return Some(Err(format!("events={interval} is no number of bytes")));
    };
    let (mut depth, mut memory) = (host::DEPTH, vmpi::Budget::DEFAULT);
    let (mut secret_file, mut insecure) = (None, false);
    let mut target = target;
    while let Some((word, rest)) = target.split_once(',') {
        match word.split_once('=') {
            Some(("depth", frames)) => match frames.parse() {
                Ok(frames) if frames <= host::MOST_DEPTH => depth = frames,
                _ => {
                    let most = host::MOST_DEPTH;
                    return Some(Err(format!("depth={frames} is no number up to {most}")));
                }
            },
            Some(("memory", bytes)) => match options::memory(bytes) {
                Ok(bytes) => memory = bytes,
                Err(error) => return Some(Err(error.to_string())),
            },
            Some(("secret-file", file)) => secret_file = Some(file),
            Some(("insecure", yes)) => insecure = yes == "y",
            // The last word; a path may have commas.
            _ => break,
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
        memory,
        secret_file,
        insecure,
        target,
    }))
}

fn open(wanted: &Wanted<'_>) -> Result<Sink, String> {
    let words = |error: std::io::Error| format!("{:?}: {error}", wanted.target);
    Ok(match wanted.target {
        Target::File(path) => Sink::File(new_file(Path::new(path)).map_err(words)?),
        Target::Net(address) => Sink::Socket(match address.strip_prefix("unix:") {
            Some(path) => collector::connect(Path::new(path)).map_err(words)?,
            None => {
                let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
                let port = port
                    .parse()
                    .map_err(|_| format!("net={address} has no port"))?;
                let stream = dial((host, port), wanted.secret_file, wanted.insecure);
                stream.map_err(|error| error.to_string())?
            }
        }),
    })
}

/// Starts the recording.
///
/// # Errors
/// One line saying why there is none.
pub(crate) fn start(java: JavaVm, wanted: &Wanted<'_>) -> Result<(), String> {
    let sink = open(wanted)?;
    let setup = HostSetup {
        interval: wanted.interval,
        depth: wanted.depth,
        memory: wanted.memory,
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
                memory: 256 << 20,
                secret_file: None,
                insecure: false,
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
        let Some(Ok(wanted)) = parse("events=1,secret-file=s,insecure=y,depth=2,net=h:1") else {
            panic!("these words are known")
        };
        assert_eq!((wanted.secret_file, wanted.insecure), (Some("s"), true));
        assert_eq!((wanted.depth, wanted.target), (2, Target::Net("h:1")));
        let Some(Ok(wanted)) = parse("events=1,memory=16m,file=x") else {
            panic!("these words are known")
        };
        assert_eq!(wanted.memory, 16 << 20);
        for wrong in [
            "events=1,memory=1m,file=x",
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
