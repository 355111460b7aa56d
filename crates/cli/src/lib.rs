//! The command line: an argument becomes a call, the answer becomes words, and the words end with
//! an exit code. No algorithms live here.
//!
//! In reading order: [`args`] (what can be typed), [`session`] (what it means: options, output,
//! progress), [`commands`] (one module per sub-command), [`tui`] (the explorer
//! in a terminal), `watch` (a running program in a terminal), [`exit`] (how it ends). The commands about running
//! programs are there on Linux only, and `system` does what differs.
//!
//! To add a sub-command: one file in `commands/` with an `Args` and its `run`, and one line in the
//! table of `commands/mod.rs`. Help, completions and the manual page follow from that.

#![cfg_attr(
    not(target_os = "linux"),
    expect(
        dead_code,
        reason = "some functions serve commands about running programs"
    )
)]

/// The part of a help text about running programs: empty where there are no commands about them.
#[cfg(target_os = "linux")]
macro_rules! on_linux {
    ($text:literal) => {
        $text
    };
}
#[cfg(not(target_os = "linux"))]
macro_rules! on_linux {
    ($text:literal) => {
        ""
    };
}

pub mod args;
pub mod commands;
mod dump_output;
pub mod exit;
mod free_memory;
mod help;
mod interruption;
#[cfg(target_os = "linux")]
mod live;
mod output;
mod output_file;
mod progress;
pub mod session;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
mod system_elsewhere;

pub mod tui;
#[cfg(target_os = "linux")]
pub mod watch;

#[cfg(not(target_os = "linux"))]
use system_elsewhere as system;

use exit::Exit;
use session::Session;
use std::ffi::OsString;

/// Runs one command line (program name first) and gives its exit code.
pub fn run(args: Vec<OsString>) -> u8 {
    let args = args::with_default_command(args);
    let cli = match args::parse(help::command(), args) {
        Ok(cli) => cli,
        Err(error) => return exit::of_clap(&error),
    };
    let session = match Session::new(cli.global) {
        Ok(session) => session,
        Err(error) => return exit::of_error(&error),
    };
    hprof::source::guard_mappings();
    let result = match &cli.command {
        Some(command) => command.run(&session),
        None => help::introduce(&session),
    };
    if result.is_ok() && hprof::source::input_changed() {
        session.discard();
        return exit::of_error(&anyhow::anyhow!(
            "a file changed while it was being read; run the command again when it is at rest"
        ));
    }
    let flushed = session.flush();
    session.say_phases();
    match result.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit.code(),
        Err(error) => exit::of_error(&error),
    }
}

/// Ends of a command: what they run into, or an exit code.
pub type Outcome = anyhow::Result<Exit>;
