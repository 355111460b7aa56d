//! A heap dump as a profile, so that every format of a profile can show it: what the classes of the dominator tree
//! retain, and shallow sizes by package and class.

use crate::json::Provenance;
use crate::say::provenance_text;
use crate::units::human_bytes;
use ::profile::{Metric, PathWriter, Profile, WeightedStack, WeightedTable};
use heap_analysis::tables::class_paths::{ClassPaths, DEEPER, SMALLER};
use heap_analysis::tables::histogram::Histogram;
use hprof::package_of;

/// The profile. `created_ms` is the time of the dump.
pub fn profile(
    paths: &ClassPaths,
    classes: &Histogram,
    provenance: &Provenance,
    created_ms: u64,
) -> Profile {
    let mut profile = Profile {
        created_ms,
        notes: notes(paths, classes, provenance),
        ..Profile::default()
    };
    let mut writer = PathWriter::new(&mut profile);
    let mut retained = WeightedTable::new(Metric::RetainedBytes);
    let mut shallow = WeightedTable::new(Metric::ShallowBytes);
    let stack = |trace, value| WeightedStack {
        trace,
        class: None,
        value,
    };
    for node in &paths.nodes {
        let mut names = vec![&*node.name];
        let mut above = node.parent;
        while let Some(at) = above {
            let node = &paths.nodes[at as usize];
            names.push(&node.name);
            above = node.parent;
        }
        retained.add(stack(writer.path(names.into_iter().rev()), node.own.0));
    }
    for row in &classes.rows {
        let name = row.key.name();
        let package = match package_of(&name) {
            "" => "<no package>",
            package => package,
        };
        shallow.add(stack(writer.path([package, &name]), row.shallow.0));
    }
    profile.weighted = vec![retained, shallow];
    profile
}

/// Notes that explain the numbers.
fn notes(paths: &ClassPaths, classes: &Histogram, provenance: &Provenance) -> Vec<String> {
    let mut notes = vec![
        "Retained bytes by dominator path: a frame is the objects of a class that the objects of the frame before it \
         dominate; equal classes in a row are one frame."
            .to_owned(),
    ];
    if paths.smaller.0 > 0 {
        notes.push(format!(
            "Paths that retain less than {} are added up as {SMALLER}: {} in all.",
            human_bytes(paths.least.0),
            human_bytes(paths.smaller.0)
        ));
    }
    if paths.deeper.0 > 0 {
        notes.push(format!(
            "Below {} levels objects are added up as {DEEPER}: {} in all.",
            paths.depth,
            human_bytes(paths.deeper.0)
        ));
    }
    if classes.all_objects {
        notes.push(
            "Shallow bytes by class include unreachable objects; retained bytes do not.".to_owned(),
        );
    }
    notes.push(provenance_text(provenance));
    notes
}
