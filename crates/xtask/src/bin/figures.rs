//! Writes the tables of `bench/figures.txt` into the documents.

fn main() -> Result<(), String> {
    let root = xtask::tree::root();
    for table in xtask::figures::committed()? {
        let path = root.join(&table.document);
        let old = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let new = xtask::figures::with_table(&old, &table)?;
        std::fs::write(&path, new).map_err(|error| error.to_string())?;
    }
    Ok(())
}
