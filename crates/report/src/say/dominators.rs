//! The dominator tree, consumers, roots and loaders.

use super::Say;
use super::histogram::{column_of, key_cell};
use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::units::plural;
use heap_analysis::tables::dominators::{DominatorGroup, DominatorGroups, DominatorTree};
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::loaders::Loaders;
use heap_analysis::tables::roots::Roots;
use heap_analysis::tables::top::{BigObject, Consumers};

/// Objects with their retained sizes.
pub(super) fn objects_table(objects: &[BigObject]) -> Table {
    let mut table = Table::new([
        number("shallow"),
        number("retained"),
        number("share"),
        words("object"),
    ]);
    for row in objects {
        table.row([
            Cell::bytes(row.object.shallow),
            Cell::bytes(row.object.retained),
            Cell::share(row.share),
            Cell::object(&row.object),
        ]);
    }
    table
}

/// Groups of objects at the top of the tree.
pub(super) fn groups_table(rows: &[DominatorGroup], by: GroupBy) -> Table {
    let mut table = Table::new([
        number("objects"),
        number("shallow"),
        number("retained"),
        number("share"),
        words(column_of(by)),
    ]);
    for row in rows {
        table.row([
            Cell::count(row.objects),
            Cell::bytes(row.shallow),
            Cell::bytes(row.retained),
            Cell::share(row.share),
            key_cell(by, &row.key),
        ]);
    }
    table
}

impl Say for DominatorTree {
    const NAME: &'static str = "dominators";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("dominates"),
            number("shallow"),
            number("retained"),
            number("share"),
            words("object"),
        ]);
        for node in &self.nodes {
            table.row([
                Cell::count(node.dominated),
                Cell::bytes(node.object.shallow),
                Cell::bytes(node.object.retained),
                Cell::share(node.share),
                Cell::object(&node.object).at_depth(node.depth),
            ]);
        }
        let mut doc = Doc::new().heading("Dominator tree").table(table);
        if self.omitted > 0 {
            let place = match self.below_object {
                true => "directly below the object",
                false => "at the top level",
            };
            doc = doc.text([Span::Dim(format!(
                "… and {} {place}.",
                plural(self.omitted, "smaller object", "smaller objects")
            ))]);
        }
        doc
    }
}

impl Say for DominatorGroups {
    const NAME: &'static str = "dominator_groups";

    fn doc(&self) -> Doc {
        let mut table = groups_table(&self.rows, self.by);
        table.omitted = self.omitted_rows;
        Doc::new()
            .heading("The top of the dominator tree")
            .table(table)
    }
}

impl Say for Consumers {
    const NAME: &'static str = "top";

    fn doc(&self) -> Doc {
        let mut doc = Doc::new().text([
            Span::from("What retains more than "),
            Span::Share(self.threshold / 100.0),
            Span::from(" of the "),
            Span::Bytes(self.total.0),
            Span::from(" in use."),
        ]);
        doc = doc
            .heading("Biggest objects")
            .table(objects_table(&self.objects));
        for (title, rows, by) in [
            ("Biggest classes", &self.classes, GroupBy::Class),
            ("Biggest class loaders", &self.loaders, GroupBy::Loader),
            ("Biggest packages", &self.packages, GroupBy::Package),
        ] {
            doc = doc.heading(title).table(groups_table(rows, by));
        }
        doc
    }
}

impl Say for Roots {
    const NAME: &'static str = "roots";

    fn doc(&self) -> Doc {
        let mut kinds = Table::new([
            number("records"),
            number("objects"),
            number("shallow"),
            number("retained"),
            words("kind"),
        ]);
        for kind in &self.kinds {
            kinds.row([
                Cell::count(kind.records),
                Cell::count(kind.objects),
                Cell::bytes(kind.shallow),
                Cell::bytes(kind.retained),
                Cell::value(kind.kind.clone()),
            ]);
        }
        let mut doc = Doc::new().heading("GC roots by kind").table(kinds);
        if self.dangling > 0 {
            doc = doc.text([Span::Text(format!(
                "{} an object that is not in the dump.",
                plural(self.dangling, "root record names", "root records name")
            ))]);
        }
        for kind in &self.kinds {
            let mut classes = Table::new([number("objects"), number("retained"), words("class")]);
            for row in &kind.classes {
                classes.row([
                    Cell::count(row.objects),
                    Cell::bytes(row.retained),
                    Cell::class(row.class.clone()),
                ]);
            }
            let mut objects = Table::new([number("shallow"), number("retained"), words("largest")]);
            for object in &kind.largest {
                objects.row([
                    Cell::bytes(object.shallow),
                    Cell::bytes(object.retained),
                    Cell::object(object),
                ]);
            }
            doc = doc
                .subheading([Span::Value(kind.kind.clone())])
                .table(classes)
                .table(objects);
        }
        doc
    }
}

impl Say for Loaders {
    const NAME: &'static str = "loaders";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("classes"),
            number("objects"),
            number("shallow"),
            number("retained"),
            number("by the loader"),
            words("loader"),
        ]);
        for row in &self.loaders {
            let mut name = vec![Span::Value(row.loader.clone())];
            if !row.object.0.is_null() {
                name.extend([Span::from(" "), Span::Object(row.object)]);
            }
            if row.unreachable {
                name.push(Span::from(" (unreachable)"));
            }
            table.row([
                Cell::count(row.classes),
                Cell::count(row.objects),
                Cell::bytes(row.shallow),
                row.retained.map_or_else(Cell::empty, Cell::bytes),
                row.loader_retained.map_or_else(Cell::empty, Cell::bytes),
                Cell::new(name),
            ]);
        }
        table.omitted = self.omitted_loaders;
        let mut duplicates = Table::new([number("classes"), number("objects"), words("name")]);
        for row in &self.duplicates {
            duplicates.row([
                Cell::count(row.count),
                Cell::count(row.objects),
                Cell::class(row.class.clone()),
            ]);
        }
        duplicates.omitted = self.duplicate_names - self.duplicates.len() as u64;
        duplicates.when_empty = "No class is defined by more than one loader.";
        Doc::new()
            .heading("Class loaders")
            .table(table)
            .heading("Classes that several loaders define")
            .table(duplicates)
    }
}
