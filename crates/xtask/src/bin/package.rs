//! `./x package`: builds all files of a release into `target/package/dist`, or with `--programs` only
//! what they contain into `target/package/built`.

use std::io::Write;

use xtask::package::make::{Order, arches, differences};
use xtask::tree::root;

fn main() -> Result<(), String> {
    let (options, names): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with("--"));
    let (mut compares, mut is_whole) = (false, true);
    for option in &options {
        match option.as_str() {
            "--check-reproducible" => compares = true,
            "--programs" => is_whole = false,
            _ => return Err(format!("no option {option}")),
        }
    }
    let root = root();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let order = Order {
        target: target.join("package"),
        arches: arches(&names)?,
        root,
    };
    if !is_whole {
        return order.programs().map(|_| ());
    }
    order.make()?;
    if compares {
        let differ = differences(&order)?;
        if !differ.is_empty() {
            return Err(format!(
                "not the same bytes in another folder: {}",
                differ.join(", ")
            ));
        }
    }
    let mut out = std::io::stdout();
    writeln!(out, "{}", order.dist().display()).map_err(|error| error.to_string())
}
