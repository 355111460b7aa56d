//! Paths to GC roots.

use super::Say;
use super::leaks::path_table;
use crate::doc::{Cell, Doc, Span, Table, number, object_spans, words};
use heap_analysis::paths::Paths;
use heap_analysis::paths::merged::MergedPaths;

impl Say for Paths {
    const NAME: &'static str = "paths";

    fn doc(&self) -> Doc {
        let mut target = vec![Span::from("Shortest paths from GC roots to ")];
        target.extend(object_spans(&self.target));
        if self.exclude.is_empty() {
            target.push(Span::from(" (any reference counts)"));
        }
        let mut doc = Doc::new().text(target);
        if !self.reachable {
            return doc.text([Span::from("It is unreachable: no root leads to it.")]);
        }
        if self.paths.is_empty() {
            return doc.text([Span::from("No path with these exclusions.")]);
        }
        for (n, path) in self.paths.iter().enumerate() {
            doc = doc
                .subheading([Span::Text(format!(
                    "Path {} ({})",
                    n + 1,
                    path.roots.join(", ")
                ))])
                .table(path_table(&path.steps, 0));
        }
        if self.more {
            doc = doc.text([Span::Dim(
                "There may be more paths; -n shows more.".to_owned(),
            )]);
        }
        doc
    }
}

impl Say for MergedPaths {
    const NAME: &'static str = "merged_paths";

    fn doc(&self) -> Doc {
        let mut intro = vec![
            Span::Count(self.objects),
            Span::from(" reachable objects of "),
            Span::Name {
                text: self.class.clone(),
                set: Some(self.class.clone()),
            },
        ];
        if self.followed < self.objects {
            intro.extend([
                Span::from("; an even sample of "),
                Span::Count(self.followed),
                Span::from(" was followed"),
            ]);
        }
        if self.unreachable > 0 {
            intro.extend([
                Span::from("; no root reaches "),
                Span::Count(self.unreachable),
                Span::from(" others"),
            ]);
        }
        if self.by_excluded > 0 {
            intro.extend([
                Span::from("; "),
                Span::Count(self.by_excluded),
                Span::from(" only through references that are left out ("),
                Span::Strong("--exclude none".to_owned()),
                Span::from(")"),
            ]);
        }
        let unknown = self.without_path.saturating_sub(self.by_excluded);
        if unknown > 0 {
            intro.extend([
                Span::from("; within the limits of the search no path was found to "),
                Span::Count(unknown),
            ]);
        }
        intro.push(Span::from("."));
        let mut table = Table::new([
            number("objects"),
            number("they retain"),
            words("merged shortest paths from the roots"),
        ]);
        for node in &self.nodes {
            let mut spans = Vec::new();
            if let Some(field) = &node.field {
                spans.extend([Span::Strong(field.clone()), Span::from(" → ")]);
            }
            if node.objects > 1 {
                spans.extend([
                    Span::Count(node.objects),
                    Span::from(" of "),
                    Span::Class(node.object.class.clone()),
                ]);
            } else {
                spans.extend(object_spans(&node.object));
            }
            if !node.roots.is_empty() {
                spans.push(Span::Dim(format!(" ({})", node.roots.join(", "))));
            }
            if node.omitted > 0 {
                spans.push(Span::Dim(format!(" … {} more below", node.omitted)));
            }
            table.row([
                Cell::count(node.targets),
                Cell::bytes(node.targets_retained),
                Cell::new(spans).at_depth(node.depth),
            ]);
        }
        table.omitted = self.omitted;
        Doc::new().text(intro).table(table)
    }
}
