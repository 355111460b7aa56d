//! The licences of what is linked into the programs and libraries that users get.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::Value as Json;

/// The packages that users get.
pub const SHIPPED: [&str; 3] = ["tenure", "agent", "jvmpi-bridge"];

/// The notices of all packages that the shipped ones link, from `cargo metadata`: a list of the
/// packages, then each text once with the packages that have it. `files` gives the names and
/// texts of the licence files in a folder.
///
/// # Errors
/// A package that names no licence.
pub fn notices(
    metadata: &Json,
    files: impl Fn(&Path) -> Vec<(String, String)>,
) -> Result<String, String> {
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked(metadata) {
        let word = |key: &str| package[key].as_str().unwrap_or_default();
        let title = format!("{} {}", word("name"), word("version"));
        let licence = word("license");
        let folder = Path::new(word("manifest_path")).parent();
        let found = folder.map(&files).unwrap_or_default();
        if licence.is_empty() && found.is_empty() {
            return Err(format!("{title} names no licence"));
        }
        let _ = writeln!(list, "{title}  {licence}  {}", word("repository"));
        for (name, text) in found {
            let text = format!("{name}\n\n{}", text.trim());
            texts.entry(text).or_default().push(title.clone());
        }
    }
    let mut all = format!("The programs and libraries of Tenure contain these packages:\n\n{list}");
    for (text, packages) in &texts {
        let line = "-".repeat(80);
        let _ = write!(all, "\n{line}\n{}\n{text}\n", packages.join(", "));
    }
    Ok(all)
}

/// The packages that the shipped ones link, in order, those of the workspace left out.
pub(crate) fn linked(metadata: &Json) -> Vec<&Json> {
    let array = |json: &'_ Json| json.as_array().cloned().unwrap_or_default();
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let nodes = array(&metadata["resolve"]["nodes"]);
    let own: BTreeSet<String> = array(&metadata["workspace_members"])
        .iter()
        .filter_map(|id| Some(id.as_str()?.to_owned()))
        .collect();
    let is_shipped = |package: &&Json| {
        let name = package["name"].as_str().unwrap_or_default();
        own.contains(package["id"].as_str().unwrap_or_default()) && SHIPPED.contains(&name)
    };
    let id = |package: &Json| package["id"].as_str().unwrap_or_default().to_owned();
    let mut todo: Vec<String> = packages.iter().filter(is_shipped).map(id).collect();
    let mut seen: BTreeSet<String> = todo.iter().cloned().collect();
    while let Some(at) = todo.pop() {
        let node = nodes.iter().find(|node| node["id"] == at.as_str());
        for dependency in node.map(|node| array(&node["deps"])).unwrap_or_default() {
            // A dependency of kind null is linked; others are for builds and tests.
            let mut kinds = array(&dependency["dep_kinds"]).into_iter();
            let below = dependency["pkg"].as_str().unwrap_or_default().to_owned();
            if kinds.any(|kind| kind["kind"].is_null()) && seen.insert(below.clone()) {
                todo.push(below);
            }
        }
    }
    let is_linked = |package: &&Json| {
        let id = id(package);
        seen.contains(&id) && !own.contains(&id)
    };
    packages.iter().filter(is_linked).collect()
}

/// The licence files of a folder by name.
pub fn licence_files(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        let known = [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "COPYRIGHT",
            "NOTICE",
            "UNLICENSE",
        ];
        if known.iter().any(|start| upper.starts_with(start)) {
            found.extend(std::fs::read_to_string(entry.path()).map(|text| (name, text)));
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::notices;
    use serde_json::json;

    #[test]
    fn what_is_linked_is_named_and_what_only_tests_use_is_not() {
        let package = |name: &str, licence: &str| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": licence,
                "repository": "", "manifest_path": format!("/{name}/Cargo.toml")})
        };
        let uses =
            |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let mut metadata = json!({
            "workspace_members": ["tenure", "report"],
            "packages": [package("tenure", ""), package("report", ""), package("a", "MIT"),
                package("b", "MIT"), package("probe", "MIT")],
            "resolve": {"nodes": [
                {"id": "tenure", "deps": [uses("report", None), uses("probe", Some("dev"))]},
                {"id": "report", "deps": [uses("a", None)]},
                {"id": "a", "deps": [uses("b", None)]}]},
        });
        let files = |_: &std::path::Path| vec![("LICENSE".to_owned(), "do as you like".to_owned())];
        let text = notices(&metadata, files).expect("licences");
        assert!(text.contains("a 1.0.0  MIT") && text.contains("a 1.0.0, b 1.0.0\nLICENSE"));
        assert!(!text.contains("probe") && !text.contains("cli 1"));
        assert_eq!(text.matches("do as you like").count(), 1);
        metadata["packages"][3]["license"] = json!(null);
        assert!(notices(&metadata, |_| Vec::new()).is_err());
    }
}
