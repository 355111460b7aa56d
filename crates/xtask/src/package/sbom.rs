//! A list of all parts (CycloneDX 1.5), from `cargo metadata` and `Cargo.lock`.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{Release, time};
use crate::licences::linked;

/// The file name of the list.
pub fn name(release: &Release) -> String {
    format!("tenure-{}.cdx.json", release.version)
}

/// The list of the packages that the shipped ones link, with their checksums and what each uses.
pub fn document(release: &Release, metadata: &Json, lockfile: &str) -> Json {
    let sums = checksums(lockfile);
    let packages = linked(metadata);
    let by_id: BTreeMap<&str, String> = packages
        .iter()
        .map(|package| (text(package, "id"), address(package)))
        .collect();
    let components: Vec<Json> = packages
        .iter()
        .map(|package| component(package, &sums))
        .collect();
    let nodes = metadata["resolve"]["nodes"].as_array();
    let uses: BTreeMap<&str, Vec<&String>> = nodes
        .into_iter()
        .flatten()
        .map(|node| {
            let below = node["dependencies"].as_array().into_iter().flatten();
            let below = below.filter_map(|id| by_id.get(id.as_str()?));
            (text(node, "id"), below.collect())
        })
        .collect();
    let dependencies = by_id.iter().map(|(id, address)| {
        json!({"ref": address, "dependsOn": uses.get(id).cloned().unwrap_or_default()})
    });
    let root = format!("pkg:cargo/tenure@{}", release.version);
    let mut dependencies: Vec<Json> = dependencies.collect();
    // The crates of the workspace are one component, which uses whatever is linked.
    let all: Vec<&String> = by_id.values().collect();
    dependencies.insert(0, json!({"ref": root, "dependsOn": all}));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time::stamp(release.time),
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "tenure",
                "version": release.version,
                "purl": root,
                "licenses": [{"expression": super::LICENCE}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(package: &Json, sums: &BTreeMap<(String, String), String>) -> Json {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let address = address(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
    });
    if let Some(licence) = package["license"].as_str() {
        // Old packages separate the names of licences by a slash.
        let licence = licence.replace('/', " OR ").replace("  ", " ");
        component["licenses"] = json!([{"expression": licence}]);
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

fn address(package: &Json) -> String {
    format!(
        "pkg:cargo/{}@{}",
        text(package, "name"),
        text(package, "version")
    )
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_default()
}

/// The checksums of a lockfile by name and version.
fn checksums(lockfile: &str) -> BTreeMap<(String, String), String> {
    let value = |line: &str, key: &str| {
        let text = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        Some(text.strip_suffix('"')?.to_owned())
    };
    let mut found = BTreeMap::new();
    for package in lockfile.split("[[package]]") {
        let get = |key: &str| package.lines().find_map(|line| value(line, key));
        if let (Some(name), Some(version), Some(sum)) =
            (get("name"), get("version"), get("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}
