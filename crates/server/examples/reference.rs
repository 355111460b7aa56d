//! Writes the generated parts of `docs/reference` and its JSON Schema files.

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for part in server::reference::parts() {
        let path = folder.join(part.document);
        let text = fs::read_to_string(&path)?;
        let text = part.put(&text);
        let none = || io::Error::other(format!("{}: no place for {}", part.document, part.name));
        fs::write(&path, text.ok_or_else(none)?)?;
    }
    fs::create_dir_all(folder.join("schema"))?;
    for (name, schema) in server::reference::schemas() {
        let text = serde_json::to_string_pretty(&schema).map_err(io::Error::other)?;
        fs::write(folder.join("schema").join(name), text + "\n")?;
    }
    Ok(())
}
