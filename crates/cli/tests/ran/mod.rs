//! One run of the program.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A run of `tenure` in a folder, without input.
pub(crate) fn tenure(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure"))
        .current_dir(folder)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("running tenure")
}

/// What `tenure` answers in a folder; it must end with this code.
pub(crate) fn run(folder: &Path, args: &[&str], code: i32) -> String {
    let out = tenure(folder, args);
    let printed = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {printed}");
    String::from_utf8(out.stdout).expect("text")
}
