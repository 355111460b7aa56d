//! One run of the program.

use std::path::Path;
use std::process::Command;

/// What `tenure` answers in a folder; it must end with this code.
pub(crate) fn run(folder: &Path, args: &[&str], code: i32) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("running tenure");
    let printed = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {printed}");
    String::from_utf8(out.stdout).expect("text")
}
