//! Counts the instances of each class id of a dump: `cargo run -p tenure-hprof --example count_classes -- heap.hprof`.

use std::collections::BTreeMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("a dump is needed")?;
    let dump = std::fs::read(path)?;
    let map = hprof::map_file(&dump, |_| {})?;
    let mut counts = BTreeMap::new();
    for (_, record) in map.sub_records(&dump) {
        if let hprof::SubRecord::Instance(instance) = record {
            *counts.entry(instance.class).or_insert(0u64) += 1;
        }
    }
    let mut out = std::io::stdout().lock();
    counts.iter().try_for_each(|(class, count)| {
        std::io::Write::write_fmt(&mut out, format_args!("{count:12} {class}\n"))
    })?;
    Ok(())
}
