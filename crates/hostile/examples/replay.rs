//! Sends bytes through every entrance on a stable toolchain: the files given (those that a fuzzer
//! has found, say), or `--made N` times the inputs that the tests send. `replay [--made N] [FILE|FOLDER]...`
//! `replay --seeds FOLDER` writes what a fuzzer begins with, a folder for each entrance.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hostile::{ENTRANCES, inputs};

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let all = inputs::made(1);
    for (entrance, _) in ENTRANCES {
        let folder = folder.join(entrance);
        std::fs::create_dir_all(&folder)?;
        let suiting = all
            .iter()
            .filter(|(_, bytes)| inputs::suits(entrance, bytes));
        // A fuzzer reads all of them before its time begins, and all commands take long.
        let few = if *entrance == "commands" { 40 } else { 1 };
        for (number, (_, bytes)) in suiting.step_by(few).enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), bytes)?;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "it is a program of its own")]
fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let mut times = 200;
    if words.next_if(|word| word == "--made").is_some() {
        times = words.next().and_then(|n| n.parse().ok()).expect("--made N");
    }
    if words.next_if(|word| word == "--seeds").is_some() {
        let folder = PathBuf::from(words.next().expect("--seeds FOLDER"));
        write_seeds(&folder).expect("a folder that can be written");
        return ExitCode::SUCCESS;
    }
    let given: Vec<PathBuf> = words.map(PathBuf::from).collect();
    let all = if given.is_empty() {
        inputs::made(times)
    } else {
        given
            .iter()
            .flat_map(|path| inputs::read(path).expect("a readable file"))
            .collect()
    };
    let mut bad = 0;
    for (entrance, run) in ENTRANCES {
        let suiting: Vec<_> = all
            .iter()
            .filter(|(_, bytes)| inputs::suits(entrance, bytes))
            .collect();
        let mut failed = 0;
        for (name, bytes) in &suiting {
            if catch_unwind(|| run(bytes)).is_err() {
                println!("PANIC {entrance}: {name} ({} bytes)", bytes.len());
                failed += 1;
            }
        }
        println!("{entrance}: {} inputs, {failed} bad", suiting.len());
        bad += failed;
    }
    if bad == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
