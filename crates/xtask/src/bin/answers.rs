//! Writes the generated part of `docs/reference/json.md` and the JSON Schema files of the answers.

use std::fs;

fn main() -> Result<(), String> {
    let folder = xtask::tree::root().join("docs/reference");
    let types = xtask::answers::declared()?;
    let path = folder.join("json.md");
    let old = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let new = xtask::answers::put(&old, &xtask::answers::reference(&types)?)?;
    fs::write(&path, new).map_err(|error| error.to_string())?;
    for (name, schema) in xtask::answers::schemas(&types)? {
        let text = serde_json::to_string_pretty(&schema).map_err(|error| error.to_string())?;
        let path = folder.join("schema").join(name);
        fs::write(path, text + "\n").map_err(|error| error.to_string())?;
    }
    Ok(())
}
