//! Prints the licences of what the programs and libraries of Tenure contain.

use std::io::Write;
use std::process::Command;

fn main() -> Result<(), String> {
    let ran = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(xtask::tree::root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
    }
    let metadata = serde_json::from_slice(&ran.stdout).map_err(|error| error.to_string())?;
    let text = xtask::licences::notices(&metadata, xtask::licences::licence_files)?;
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| error.to_string())
}
