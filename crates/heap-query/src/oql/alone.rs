//! Determines which sub-queries have the same result for every row of the query around them, so that they run once. In
//! doubt a sub-query counts as dependent on the row.

use super::ast::{Expr, Facet, Kind, Query, Select, Source};
use super::value::Value;
use heap_graph::ObjIdx;
use rustc_hash::FxHashSet;

/// The result of an independent sub-query.
pub(super) struct Answer {
    pub(super) value: Value,
    /// A hash set for IN, if all members have one kind.
    pub(super) lookup: Lookup,
}

/// The members of a list, for fast lookup.
pub(super) enum Lookup {
    Objects(FxHashSet<ObjIdx>),
    Whole(FxHashSet<i64>),
    None,
}

impl Answer {
    pub(super) fn new(value: Value) -> Answer {
        let lookup = match &value {
            Value::Ids(list) => Lookup::Objects(list.iter().copied().collect()),
            Value::List(list) => {
                let first = |row: &Value| match row {
                    Value::Row(cells) => cells.first().and_then(|(_, v)| v.whole()),
                    other => other.whole(),
                };
                let whole: Option<FxHashSet<i64>> = list.iter().map(first).collect();
                whole.map_or(Lookup::None, Lookup::Whole)
            }
            _ => Lookup::None,
        };
        Answer { value, lookup }
    }
}

/// True when no expression in the query refers to the rows around it, whose names are in `outer`.
pub(super) fn stands_alone(query: &Query, outer: &[&str]) -> bool {
    let names = Names {
        outer,
        own: Vec::new(),
    };
    names.query(query)
}

struct Names<'a> {
    outer: &'a [&'a str],
    /// Names of the rows of the query itself, and of the queries around it within the one that is tested.
    own: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn query(&self, query: &'a Query) -> bool {
        let from = match &query.from.source {
            Source::Query(inner) => self.query(inner),
            // FROM is evaluated for the row of the query around it.
            Source::Expr(expr) => self.expr(expr, false),
            Source::Class(_) | Source::Regex(_) | Source::Addresses(_) | Source::Ids(_) => true,
        };
        let mut inside = Names {
            outer: self.outer,
            own: self.own.clone(),
        };
        inside.own.extend(query.from.alias.as_deref());
        let select = match &query.select {
            Select::All => true,
            Select::Objects(item) => inside.expr(&item.expr, true),
            Select::Items(items) => items.iter().all(|i| inside.expr(&i.expr, true)),
        };
        let filter = query.filter.iter().all(|f| inside.expr(f, true));
        from && select && filter && query.unions.iter().all(|u| self.query(u))
    }

    /// `own_row`: names without a row before them belong to the query's own row.
    fn expr(&self, expr: &'a Expr, own_row: bool) -> bool {
        let alone = |e: &'a Expr| self.expr(e, own_row);
        match &expr.kind {
            Kind::Literal(_) => true,
            Kind::Query(query) => self.query(query),
            Kind::Binary(_, left, right) => alone(left) && alone(right),
            Kind::In { left, right, .. } => alone(left) && alone(right),
            Kind::Like { left, .. } | Kind::Implements(left, _) => alone(left),
            Kind::Of(value, facets) => alone(value) && self.facets(facets, own_row),
            Kind::Path { env, facets } => {
                let first = env.is_some() || self.first(facets, own_row);
                first && self.facets(facets, own_row)
            }
        }
    }

    fn first(&self, facets: &[Facet], own_row: bool) -> bool {
        match facets.first() {
            Some(Facet::Name {
                property: false,
                name,
                arguments: None,
                ..
            }) => {
                let name = name.as_str();
                self.own.contains(&name) || own_row && !self.outer.contains(&name)
            }
            _ => own_row,
        }
    }

    fn facets(&self, facets: &'a [Facet], own_row: bool) -> bool {
        facets.iter().all(|facet| match facet {
            Facet::Name { arguments, .. } => {
                let mut arguments = arguments.iter().flatten();
                arguments.all(|a| self.expr(a, own_row))
            }
            Facet::Index { from, to, .. } => {
                self.expr(from, own_row) && to.iter().all(|t| self.expr(t, own_row))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ast::{Expr, Kind};
    use super::super::parser::parse;
    use super::*;

    fn inner(expr: &Expr) -> &Query {
        match &expr.kind {
            Kind::In { right, .. } => inner(right),
            Kind::Query(query) => query,
            other => panic!("no sub-query: {other:?}"),
        }
    }

    #[test]
    fn a_sub_query_without_the_row_around_stands_alone() {
        for (text, want) in [
            ("SELECT * FROM a.B b WHERE b IN (SELECT * FROM a.C)", true),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT OBJECTS c.d FROM a.C c WHERE c.n > 1)",
                true,
            ),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT OBJECTS d FROM a.C WHERE n = 1)",
                true,
            ),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT OBJECTS b.next FROM a.C b)",
                true,
            ),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT * FROM a.C c WHERE c.n = b.n)",
                false,
            ),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT OBJECTS b.next FROM a.C c)",
                false,
            ),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT * FROM OBJECTS (dominators(b)) d)",
                false,
            ),
            (
                "SELECT * FROM a.B b WHERE b IN (SELECT * FROM (SELECT * FROM a.C c WHERE c.n = b.n) d)",
                false,
            ),
        ] {
            let query = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let filter = query.filter.as_ref().expect("a condition");
            assert_eq!(stands_alone(inner(filter), &["b"]), want, "{text}");
        }
    }
}
