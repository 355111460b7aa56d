//! One HTML page with a flame graph of each metric. It loads nothing and never runs anything from the profile: names
//! are JSON data, drawn on a canvas.

use super::label;
use crate::escape::html as escape;
use ::profile::{Metric, Profile};
use serde_json::{Value, json};
use std::collections::HashMap;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page. With a base, widths are those of the profile, and colours show the difference.
pub fn write(profile: &Profile, base: Option<&Profile>, metrics: &[Metric], title: &str) -> String {
    let mut names = Names::default();
    let graphs: Vec<Value> = metrics
        .iter()
        .map(|one| graph(profile, base, *one, &mut names))
        .collect();
    let notes = &profile.notes;
    let data = json!({ "title": title, "notes": notes, "names": names.list, "graphs": graphs });
    let parts = [
        ("__TITLE__", escape(title)),
        ("__STYLE__", STYLE.to_owned()),
        ("__DATA__", in_script(&data.to_string())),
        ("__SCRIPT__", SCRIPT.to_owned()),
    ];
    let mut page = String::new();
    let mut rest = TEMPLATE;
    for (place, text) in parts {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(&text);
        rest = after;
    }
    page + rest
}

/// JSON that cannot end the script element: a `</script>` in a name stays text.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[derive(Default)]
struct Names {
    list: Vec<String>,
    ids: HashMap<String, usize>,
}

impl Names {
    fn id(&mut self, name: &str) -> usize {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        self.list.push(name.to_owned());
        self.ids.insert(name.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// A node of the tree: its own values in the profile and in the base, and its children.
#[derive(Default)]
struct Node {
    own: [u64; 2],
    children: Vec<(usize, usize)>,
    index: HashMap<usize, usize>,
}

/// Adds the stacks of one side to the tree.
fn grow(nodes: &mut Vec<Node>, names: &mut Names, profile: &Profile, metric: Metric, side: usize) {
    for stack in profile.stacks(metric) {
        let mut at = 0;
        let mut path = profile.path(&stack);
        if path.is_empty() {
            path.push("[no stack]".to_owned());
        }
        for name in path {
            let name = names.id(&name);
            let next = nodes.len();
            at = match nodes[at].index.get(&name) {
                Some(child) => *child,
                None => {
                    nodes[at].index.insert(name, next);
                    nodes[at].children.push((name, next));
                    nodes.push(Node::default());
                    next
                }
            };
        }
        let own = &mut nodes[at].own[side];
        *own = own.saturating_add(stack.value);
    }
}

/// Stacks as a tree in preorder columns: depth, name and value of each node with its callees.
fn graph(profile: &Profile, base: Option<&Profile>, metric: Metric, names: &mut Names) -> Value {
    let mut nodes = vec![Node::default()];
    grow(&mut nodes, names, profile, metric, 0);
    if let Some(base) = base {
        grow(&mut nodes, names, base, metric, 1);
    }
    // Children come after their parents, so totals add up from the back.
    let mut totals: Vec<[u64; 2]> = nodes.iter().map(|node| node.own).collect();
    for at in (0..nodes.len()).rev() {
        for (_, child) in &nodes[at].children {
            let below = totals[*child];
            for (total, below) in totals[at].iter_mut().zip(below) {
                *total = total.saturating_add(below);
            }
        }
    }
    let (mut depths, mut ids, mut values) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    let mut open = vec![(0, 0, 0)];
    while let Some((at, depth, name)) = open.pop() {
        if at != 0 {
            depths.push(depth);
            ids.push(name);
            values[0].push(totals[at][0]);
            values[1].push(totals[at][1]);
        }
        let mut children = std::mem::take(&mut nodes[at].children);
        children.sort_by(|a, b| names.list[b.0].cmp(&names.list[a.0]));
        open.extend(
            children
                .into_iter()
                .map(|(name, child)| (child, depth + 1, name)),
        );
    }
    let [values, base_values] = values;
    let mut graph = json!({
        "label": label(profile, metric),
        "unit": metric.unit(),
        "classes": matches!(metric, Metric::RetainedBytes | Metric::ShallowBytes),
        "total": totals[0][0],
        "depth": depths,
        "name": ids,
        "value": values,
    });
    if base.is_some() {
        graph["base"] = json!(base_values);
        graph["baseTotal"] = json!(totals[0][1]);
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;

    /// The JSON of a page.
    fn data(page: &str) -> Value {
        let from = page.find("const DATA = ").expect("data") + "const DATA = ".len();
        let to = from + page[from..].find(";\n").expect("an end");
        serde_json::from_str(&page[from..to]).expect("JSON")
    }

    #[test]
    fn nodes_are_in_preorder_with_their_totals() {
        let profile = profile();
        let page = write(&profile, None, &[Metric::Samples], "demo");
        let data = data(&page);
        let graph = &data["graphs"][0];
        assert_eq!(graph["total"], 12);
        assert_eq!(graph["depth"], json!([1, 2, 2]));
        assert_eq!(graph["value"], json!([12, 3, 9]));
        let name = |at: usize| data["names"][graph["name"][at].as_u64().unwrap() as usize].clone();
        assert_eq!(
            [name(0), name(1), name(2)],
            ["demo.Cpu.main", "demo.Cpu.<init>", "demo.Cpu.hot"]
        );
    }

    #[test]
    fn a_base_is_a_second_column_of_the_same_tree() {
        let profile = profile();
        let base = "TRACE 1:\n\tdemo.Cpu.hot(Cpu.java:3)\n\tdemo.Cpu.main(Cpu.java:14)\nTRACE 2:\n\ta.B.gone(B.java:1)\n\
                    CPU SAMPLES BEGIN (total = 7) Sat Nov 21 04:57:27 2026\n   1 57.00% 57.00%       4 1 demo.Cpu.hot\n   \
                    2 43.00% 100.00%       3 2 a.B.gone\nCPU SAMPLES END\n";
        let (base, _) = ::profile::read(base.as_bytes()).expect("a profile");
        let data = data(&write(&profile, Some(&base), &[Metric::Samples], "demo"));
        let graph = &data["graphs"][0];
        // a.B.gone, main, <init>, hot.
        assert_eq!(graph["depth"], json!([1, 1, 2, 2]));
        assert_eq!(graph["value"], json!([0, 12, 3, 9]));
        assert_eq!(graph["base"], json!([3, 4, 0, 4]));
        assert_eq!(
            (&graph["total"], &graph["baseTotal"]),
            (&json!(12), &json!(7))
        );
    }

    #[test]
    fn a_name_never_ends_the_script() {
        let profile = profile();
        let page = write(
            &profile,
            None,
            &profile.metrics(),
            "a</title><script>alert(1)</script>",
        );
        assert_eq!(page.matches("</script>").count(), 1, "only the page's own");
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains("src="), "the page loads nothing");
        assert!(!page.contains("://"), "the page names no address");
        assert!(
            page.contains("default-src 'none'"),
            "the page may load nothing"
        );
        assert!(data(&page)["names"].to_string().contains("demo.</script>"));
    }
}
