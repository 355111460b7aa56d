//! The collector of an agent in socket mode: stores what arrives and passes commands on.

use super::series::converted;
use crate::output_file::{OutputFile, rescue};
use agent_core::control::{Command, Form, Progress, StreamMeter};
use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often commands are polled while nothing arrives.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The destination of a profile.
pub(crate) enum Destination {
    /// This file, in this form; `None`: as it is received.
    File(PathBuf, Option<report::profile::Form>),
    /// A name with an ending that fits the form: `stem.hprof` or `stem.hprof.txt`.
    Stem(PathBuf),
}

/// What was collected.
pub(crate) struct Collected {
    /// The file; none if nothing arrived.
    pub(crate) path: Option<PathBuf>,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// What arrived.
    pub(crate) progress: Progress,
}

/// Stores a connection's bytes until the agent closes it. `next` gives commands, `create` opens the
/// file, `show` receives the progress.
pub(crate) fn collect(
    mut stream: TcpStream,
    destination: &Destination,
    mut next: impl FnMut() -> Option<Command>,
    mut create: impl FnMut(&Path) -> Result<OutputFile>,
    mut show: impl FnMut(&Progress),
) -> Result<Collected> {
    stream.set_read_timeout(Some(TICK))?;
    let mut meter = StreamMeter::default();
    let mut file = None;
    let mut waiting = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut serial = 0;
    loop {
        while let Some(command) = next() {
            serial += 1;
            // The next read detects that the agent is gone.
            let _ = stream.write_all(&command.encode(serial));
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                meter.push(&buffer[..count]);
                waiting.extend_from_slice(&buffer[..count]);
                show(meter.progress());
            }
            Err(error) if is_timeout(&error) => {}
            // The program died: what arrived stays.
            Err(_) => break,
        }
        if file.is_none() && !waiting.is_empty() {
            file = open(destination, meter.progress().form, &mut create)?;
        }
        if let Some(open) = file {
            file = Some(append(open, &waiting)?);
            waiting.clear();
        }
    }
    if file.is_none() && !waiting.is_empty() {
        file = open(destination, Some(Form::Text), &mut create)?;
        file = file.map(|file| append(file, &waiting)).transpose()?;
    }
    Ok(Collected {
        path: file.map(OutputFile::finish_named).transpose()?,
        bytes: meter.progress().bytes,
        progress: meter.progress().clone(),
    })
}

/// Stores a profile like [`collect`], in the form of its destination. A profile that is converted is collected in
/// memory; if it cannot be converted or the file cannot be written, it is stored beside the file, or in the temporary
/// folder, as it was received.
pub(crate) fn collect_profile(
    stream: TcpStream,
    destination: &Destination,
    next: impl FnMut() -> Option<Command>,
    mut create: impl FnMut(&Path) -> Result<OutputFile>,
    show: impl FnMut(&Progress),
) -> Result<Collected> {
    let Destination::File(_, Some(form)) = destination else {
        return collect(stream, destination, next, create, show);
    };
    let mut memory = File::from(memfd_create("tenure profile", MemfdFlags::CLOEXEC)?);
    let in_memory = |path: &Path| Ok(OutputFile::direct(memory.try_clone()?, path));
    let mut done = collect(stream, destination, next, in_memory, show)?;
    let Some(path) = &done.path else {
        return Ok(done);
    };
    let mut bytes = Vec::new();
    memory.rewind()?;
    memory.read_to_end(&mut bytes)?;
    let stored = converted(&bytes, *form, path).and_then(|profile| {
        let file = create(path)?;
        done.bytes = profile.len() as u64;
        write(file, &profile)
    });
    match stored {
        Ok(stored) => {
            done.path = Some(stored);
            Ok(done)
        }
        Err(error) => {
            let name = with_ending(path, done.progress.form.unwrap_or(Form::Text));
            let text = match rescue(&name, &bytes) {
                Ok(name) => format!("{} is not written; {} is", path.display(), name.display()),
                Err(_) => format!("{} is lost", path.display()),
            };
            Err(error.context(text))
        }
    }
}

/// Writes a whole file; what was written of it is removed if this fails.
fn write(mut file: OutputFile, bytes: &[u8]) -> Result<PathBuf> {
    let written = file.write_all(bytes);
    written.with_context(|| format!("cannot write {}", file.path().display()))?;
    file.finish_named()
}

pub(crate) fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Opens the file once its name is known.
fn open(
    destination: &Destination,
    form: Option<Form>,
    create: &mut impl FnMut(&Path) -> Result<OutputFile>,
) -> Result<Option<OutputFile>> {
    let path = match (destination, form) {
        (Destination::File(path, _), _) => path.clone(),
        (Destination::Stem(_), None) => return Ok(None),
        (Destination::Stem(stem), Some(form)) => with_ending(stem, form),
    };
    create(&path).map(Some)
}

fn with_ending(stem: &Path, form: Form) -> PathBuf {
    let mut name = stem.to_owned().into_os_string();
    name.push(match form {
        Form::Text => ".hprof.txt",
        Form::Binary => ".hprof",
    });
    PathBuf::from(name)
}

/// Appends to a recording; one that cannot be continued is kept.
pub(crate) fn append(mut file: OutputFile, bytes: &[u8]) -> Result<OutputFile> {
    if let Err(error) = file.write_all(bytes) {
        let text = format!("cannot write {}", file.path().display());
        file.keep();
        return Err(error).context(text);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn run(sent: &'static [u8], destination: Destination) -> (Collected, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let agent = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("connected");
            let mut command = [0; 9];
            stream.read_exact(&mut command).expect("a command");
            stream.write_all(sent).expect("sent");
            command.to_vec()
        });
        let (stream, _) = listener.accept().expect("accepted");
        let (sender, commands) = std::sync::mpsc::channel();
        sender.send(Command::ForceGc).expect("queued");
        let create = |path: &Path| OutputFile::create_for_recording(path, false);
        let next = || commands.try_recv().ok();
        let done = collect(stream, &destination, next, create, |_| {}).expect("collected");
        (done, agent.join().expect("the agent"))
    }

    #[test]
    fn the_ending_follows_the_form() {
        let folder = tempfile::tempdir().expect("a folder");
        let stem = || Destination::Stem(folder.path().join("p"));
        let (text, command) = run(
            b"JAVA PROFILE 1.0.1, created x\n\nTHREAD END (id = 1)\n",
            stem(),
        );
        assert_eq!(text.path, Some(folder.path().join("p.hprof.txt")));
        assert_eq!(text.progress.lines, 3);
        assert_eq!(command, Command::ForceGc.encode(1));
        let (binary, _) = run(b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0", stem());
        assert_eq!(binary.path, Some(folder.path().join("p.hprof")));
        assert_eq!(
            std::fs::read(folder.path().join("p.hprof"))
                .expect("a file")
                .len(),
            31
        );
    }

    #[test]
    fn nothing_sent_makes_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (nothing, _) = run(b"", Destination::Stem(folder.path().join("p")));
        assert_eq!(nothing.path, None);
    }
}
