//! One HTML page with a flame graph of each metric. Nothing is loaded, nothing of the profile is
//! ever run: names travel as JSON and are drawn on a canvas.

use super::label;
use ::profile::{Metric, Profile};
use serde_json::{Value, json};
use std::collections::HashMap;

const TEMPLATE: &str = include_str!("flamegraph.html");

/// The page.
pub fn write(profile: &Profile, metrics: &[Metric], title: &str) -> String {
    let mut names = Names::default();
    let graphs: Vec<Value> = metrics
        .iter()
        .map(|one| graph(profile, *one, &mut names))
        .collect();
    let data = json!({ "title": title, "names": names.list, "graphs": graphs });
    let (head, rest) = TEMPLATE.split_once("__TITLE__").unwrap_or((TEMPLATE, ""));
    let (middle, tail) = rest.split_once("__DATA__").unwrap_or((rest, ""));
    [
        head,
        &escape(title),
        middle,
        &in_script(&data.to_string()),
        tail,
    ]
    .concat()
}

/// JSON that no HTML parser ends early: a `</script>` in a name stays text.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
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

/// A node of the tree: name, own value, children.
#[derive(Default)]
struct Node {
    own: u64,
    children: Vec<(usize, usize)>,
    index: HashMap<usize, usize>,
}

/// Stacks as a tree in preorder columns: depth, name and value of each node with its callees.
fn graph(profile: &Profile, metric: Metric, names: &mut Names) -> Value {
    let mut nodes = vec![Node::default()];
    for stack in profile.stacks(metric) {
        let mut at = 0;
        for name in profile.path(&stack) {
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
        nodes[at].own += stack.value;
    }
    // Children come after their parents, so totals add up from the back.
    let mut totals: Vec<u64> = nodes.iter().map(|node| node.own).collect();
    for at in (0..nodes.len()).rev() {
        totals[at] += nodes[at]
            .children
            .iter()
            .map(|(_, child)| totals[*child])
            .sum::<u64>();
    }
    let (mut depths, mut ids, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut open = vec![(0, 0, 0)];
    while let Some((at, depth, name)) = open.pop() {
        if at != 0 {
            depths.push(depth);
            ids.push(name);
            values.push(totals[at]);
        }
        let mut children = nodes[at].children.clone();
        children.sort_by(|a, b| names.list[b.0].cmp(&names.list[a.0]));
        open.extend(
            children
                .into_iter()
                .map(|(name, child)| (child, depth + 1, name)),
        );
    }
    json!({
        "label": label(metric),
        "unit": metric.unit(),
        "total": totals[0],
        "depth": depths,
        "name": ids,
        "value": values,
    })
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
        let page = write(&profile, &[Metric::Samples], "demo");
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
    fn a_name_never_ends_the_script() {
        let profile = profile();
        let page = write(
            &profile,
            &profile.metrics(),
            "a</title><script>alert(1)</script>",
        );
        assert_eq!(page.matches("</script>").count(), 1, "only the page's own");
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains("src="), "the page loads nothing");
        assert!(!page.contains("http"), "the page names no address");
        assert!(data(&page)["names"].to_string().contains("demo.</script>"));
    }
}
