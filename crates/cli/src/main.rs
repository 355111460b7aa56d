//! The `tenure` binary; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::run(std::env::args_os().collect()))
}
