//! `./x package`: builds all files of a release into `target/package/dist`.

use std::io::Write;

use xtask::package::make::{Order, arches, differences};
use xtask::tree::root;

fn main() -> Result<(), String> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let compares = names.iter().any(|name| name == "--check-reproducible");
    names.retain(|name| name != "--check-reproducible");
    let root = root();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let order = Order {
        target: target.join("package"),
        arches: arches(&names)?,
        root,
    };
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
