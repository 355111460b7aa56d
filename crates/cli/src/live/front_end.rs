//! The front end of a reference VM, in another process (`tenure listen`): its stream goes there, and
//! commands come back.

use crate::output::note;
use anyhow::{Context, Result};
use refheap::RefVm;
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use vmpi::wire::{Answer, CommandReader, Encoder, Numbered};

/// Bytes that may wait before they are sent.
const PIECE: usize = 64 << 10;
/// A front end that reads nothing for this time is abandoned.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a front end.
pub(crate) struct FrontEnd {
    stream: Option<TcpStream>,
    commands: Receiver<Numbered>,
    /// The whole stream.
    reported: Vec<u8>,
}

impl FrontEnd {
    /// Connects to `HOST:PORT`.
    pub(crate) fn connect(address: &str) -> Result<FrontEnd> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("nothing listens at {address}"))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let back = stream.try_clone()?;
        let (sender, commands) = channel();
        std::thread::spawn(move || hear(back, &sender));
        Ok(FrontEnd {
            stream: Some(stream),
            commands,
            reported: Vec::new(),
        })
    }

    /// Carries out commands that have arrived.
    pub(crate) fn serve(&mut self, vm: &mut RefVm<'_>, encoder: &RefCell<Encoder>) {
        while let Ok(asked) = self.commands.try_recv() {
            self.carry_out(vm, encoder, asked);
        }
        if encoder.borrow().waiting() > PIECE {
            self.pass_on(encoder.borrow_mut().take());
        }
    }

    /// Carries out commands until the front end reports that there are no more.
    pub(crate) fn serve_to_the_end(&mut self, vm: &mut RefVm<'_>, encoder: &RefCell<Encoder>) {
        encoder.borrow_mut().flush();
        self.pass_on(encoder.borrow_mut().take());
        while let Ok(asked) = self.commands.recv() {
            self.carry_out(vm, encoder, asked);
        }
    }

    fn carry_out(&mut self, vm: &mut RefVm<'_>, encoder: &RefCell<Encoder>, asked: Numbered) {
        let outcome = vm.carry_out(asked.command);
        let serial = asked.serial;
        encoder.borrow_mut().answer(Answer { serial, outcome });
        self.pass_on(encoder.borrow_mut().take());
    }

    fn pass_on(&mut self, bytes: Vec<u8>) {
        let sent = self
            .stream
            .as_mut()
            .map_or(Ok(()), |stream| stream.write_all(&bytes));
        if let Err(error) = sent {
            note(&format!("the front end is gone: {error}"));
            self.stream = None;
        }
        self.reported.extend(bytes);
    }

    /// Ends the stream; returns all events that were emitted.
    pub(crate) fn finish(mut self, encoder: Encoder) -> Vec<u8> {
        self.pass_on(encoder.finish());
        if let Some(stream) = &self.stream {
            let _ = stream.shutdown(Shutdown::Write);
        }
        self.reported
    }
}

/// Reads commands until there are no more. Invalid bytes end the reading of commands, not the stream.
fn hear(mut back: TcpStream, sender: &Sender<Numbered>) {
    let mut reader = CommandReader::new();
    let mut buffer = [0; 512];
    loop {
        match reader.next_command() {
            Ok(Some(command)) if sender.send(command).is_ok() => continue,
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return,
        }
        match back.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(count) => reader.push(&buffer[..count]),
        }
    }
}
