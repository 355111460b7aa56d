//! Runs a parsed query: rows from FROM through WHERE to the selected columns.

use super::alone::{Answer, Lookup, stands_alone};
use super::ast::{Expr, Facet, Kind, Op, Query, Select, Source};
use super::model::{self, object_argument};
use super::value::{Number, Value};
use crate::error::QueryError;
use crate::graph::retained_set;
use crate::shared::Env;
use heap_graph::Dominator;
use hprof::ObjectId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

pub(super) type Evaluated<T> = Result<T, QueryError>;

/// A row of a result.
#[derive(Clone, Debug)]
pub(super) enum Row {
    /// An element of a list of objects.
    One(Value),
    /// A row of a table.
    Cells(Vec<Value>),
}

/// The row object with its name, and those of the queries around it.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) alias: Option<&'a str>,
    pub(super) object: &'a Value,
    pub(super) outer: Option<&'a Scope<'a>>,
}

/// Runs a query.
pub(super) struct Runner<'a> {
    pub(super) env: &'a Env,
    pub(super) text: &'a str,
    /// Results of sub-queries that do not depend on the row, by the address of the query, which does not move while it
    /// runs.
    pub(super) answers: RefCell<FxHashMap<usize, Rc<Answer>>>,
}

/// Receives rows; false ends the query.
type Take<'a> = dyn FnMut(Row) -> Evaluated<bool> + 'a;

/// Names of the columns; `None` for a list of objects.
pub(super) fn columns(query: &Query) -> Option<Vec<String>> {
    match &query.select {
        Select::Items(items) => Some(items.iter().map(|i| i.name.clone()).collect()),
        Select::Objects(_) => None,
        Select::All => match &query.from.source {
            Source::Query(inner) if query.from.objects => columns(inner),
            _ => None,
        },
    }
}

impl Runner<'_> {
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> QueryError {
        QueryError::at(self.text, at, message)
    }

    /// Runs the query that the text consists of.
    pub(super) fn run(&self, query: &Query, take: &mut Take<'_>) -> Evaluated<bool> {
        self.query(query, None, take)
    }

    pub(super) fn query(
        &self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        take: &mut Take<'_>,
    ) -> Evaluated<bool> {
        let width = |q: &Query| columns(q).map_or(1, |c| c.len());
        if let Some(other) = query.unions.iter().find(|u| width(u) != width(query)) {
            return Err(self.error(other.at, "UNION of a different number of columns"));
        }
        let mut seen = FxHashSet::default();
        let mut distinct = |row: Row| {
            if query.distinct && !seen.insert(format!("{row:?}")) {
                return Ok(true);
            }
            take(row)
        };
        let mut more = if query.retained_set {
            let mut objects = Vec::new();
            self.rows(query, outer, &mut |value| {
                objects.extend(object_argument(self.env, &value));
                Ok(true)
            })?;
            let mut more = true;
            for object in retained_set(self.env, &objects)? {
                more = more && self.select(query, Value::Object(object), outer, &mut distinct)?;
            }
            more
        } else {
            self.rows(query, outer, &mut |value| {
                self.select(query, value, outer, &mut distinct)
            })?
        };
        for union in &query.unions {
            more = more && self.query(union, outer, take)?;
        }
        Ok(more)
    }

    /// Applies SELECT to a row object.
    fn select(
        &self,
        query: &Query,
        object: Value,
        outer: Option<&Scope<'_>>,
        take: &mut Take<'_>,
    ) -> Evaluated<bool> {
        let scope = Scope {
            alias: query.from.alias.as_deref(),
            object: &object,
            outer,
        };
        match &query.select {
            Select::All => match (&object, columns(query)) {
                (Value::Row(row), Some(_)) => {
                    take(Row::Cells(row.iter().map(|c| c.1.clone()).collect()))
                }
                _ => take(Row::One(object)),
            },
            Select::Objects(item) => {
                let value = self.value(&item.expr, &scope)?;
                for object in self.objects(&value, item.expr.at)? {
                    if !take(Row::One(Value::Object(object)))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Select::Items(items) => {
                let cells: Evaluated<Vec<Value>> =
                    items.iter().map(|i| self.value(&i.expr, &scope)).collect();
                take(Row::Cells(cells?))
            }
        }
    }

    /// The row objects that pass WHERE.
    fn rows(
        &self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        take: &mut dyn FnMut(Value) -> Evaluated<bool>,
    ) -> Evaluated<bool> {
        let mut count = 0u32;
        self.source(&query.from, outer, &mut |object| {
            count = count.wrapping_add(1);
            if count.is_multiple_of(256) {
                self.env.stop.check()?;
            }
            if let Some(filter) = &query.filter {
                let scope = Scope {
                    alias: query.from.alias.as_deref(),
                    object: &object,
                    outer,
                };
                if !self.truth(filter, &scope)? {
                    return Ok(true);
                }
            }
            take(object)
        })
    }

    fn truth(&self, expr: &Expr, scope: &Scope<'_>) -> Evaluated<bool> {
        match self.value(expr, scope)? {
            Value::Bool(value) => Ok(value),
            Value::Null => Ok(false),
            // As in MAT: zero and the empty text are false, everything else is true.
            Value::Str(text) => Ok(!text.is_empty()),
            other => Ok(other.number().is_none_or(|number| {
                let number = number.real();
                number != 0.0 && !number.is_nan()
            })),
        }
    }

    pub(super) fn value(&self, expr: &Expr, scope: &Scope<'_>) -> Evaluated<Value> {
        match &expr.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::Binary(Op::Or, left, right) => Ok(Value::Bool(
                self.truth(left, scope)? || self.truth(right, scope)?,
            )),
            Kind::Binary(Op::And, left, right) => Ok(Value::Bool(
                self.truth(left, scope)? && self.truth(right, scope)?,
            )),
            Kind::Binary(op, left, right) => {
                let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
                self.binary(*op, &left, &right, expr.at)
            }
            Kind::Like { not, left, pattern } => {
                Ok(Value::Bool(match self.value(left, scope)? {
                    Value::Null => false,
                    value => pattern.is_match(&value.text(&self.env.heap)) != *not,
                }))
            }
            Kind::In { not, left, right } => {
                let left = self.value(left, scope)?;
                if left == Value::Null {
                    return Ok(Value::Bool(false));
                }
                if let Kind::Query(query) = &right.kind
                    && let Some(answer) = self.answer_alone(query, scope)?
                {
                    let found = self.is_in_answer(&left, &answer, expr.at)?;
                    return Ok(Value::Bool(answer.value != Value::Null && found != *not));
                }
                let right = self.value(right, scope)?;
                // The right side is null, for example an empty sub-query: false either way, as in MAT.
                if right == Value::Null {
                    return Ok(Value::Bool(false));
                }
                Ok(Value::Bool(self.is_in(&left, &right, expr.at)? != *not))
            }
            Kind::Implements(left, name) => {
                let value = self.value(left, scope)?;
                let found = model::implements(self.env, &value, name);
                let unknown = || {
                    self.error(expr.at, format!("{name} is no interface of the model (org.eclipse.mat.snapshot.model.IClass and so on)"))
                };
                Ok(Value::Bool(found.ok_or_else(unknown)?))
            }
            Kind::Query(query) => match self.answer_alone(query, scope)? {
                Some(answer) => Ok(answer.value.clone()),
                None => self.sub_query(query, scope),
            },
            Kind::Path { env, facets } => self.path(env.as_deref(), facets, scope, expr.at),
            Kind::Of(value, facets) => {
                let value = self.value(value, scope)?;
                self.follow(value, facets, scope)
            }
        }
    }

    /// The result of a sub-query that is the same for every row; `None` if it is not.
    fn answer_alone(&self, query: &Query, scope: &Scope<'_>) -> Evaluated<Option<Rc<Answer>>> {
        let key = std::ptr::from_ref(query) as usize;
        if let Some(answer) = self.answers.borrow().get(&key) {
            return Ok(Some(answer.clone()));
        }
        let around = std::iter::successors(Some(scope), |s| s.outer);
        let outer: Vec<&str> = around.filter_map(|s| s.alias).collect();
        if !stands_alone(query, &outer) {
            return Ok(None);
        }
        let answer = Rc::new(Answer::new(self.sub_query(query, scope)?));
        self.answers.borrow_mut().insert(key, answer.clone());
        Ok(Some(answer))
    }

    fn is_in_answer(&self, left: &Value, answer: &Answer, at: usize) -> Evaluated<bool> {
        match (&answer.lookup, left) {
            (Lookup::Objects(set), Value::Object(_) | Value::Int(_) | Value::Class(_)) => {
                Ok(object_argument(self.env, left).is_some_and(|o| set.contains(&o)))
            }
            (Lookup::Whole(set), _) if left.whole().is_some() => {
                Ok(left.whole().is_some_and(|n| set.contains(&n)))
            }
            _ => self.is_in(left, &answer.value, at),
        }
    }

    /// A sub-query as a value: the list of its objects, or of its rows.
    fn sub_query(&self, query: &Query, scope: &Scope<'_>) -> Evaluated<Value> {
        let names = columns(query);
        let mut objects = Vec::new();
        let mut rows = Vec::new();
        self.query(query, Some(scope), &mut |row| {
            match row {
                Row::One(Value::Object(o)) => objects.push(o),
                Row::One(other) => rows.push(other),
                Row::Cells(cells) => {
                    let names = names.iter().flatten().cloned();
                    rows.push(Value::Row(Rc::new(names.zip(cells).collect())));
                }
            }
            Ok(true)
        })?;
        if rows.is_empty() {
            return Ok(if objects.is_empty() {
                Value::Null
            } else {
                Value::Ids(Rc::new(objects))
            });
        }
        rows.extend(objects.into_iter().map(Value::Object));
        Ok(Value::List(Rc::new(rows)))
    }

    fn is_in(&self, left: &Value, right: &Value, at: usize) -> Evaluated<bool> {
        let object = object_argument(self.env, left);
        Ok(match right {
            Value::Null => false,
            Value::Ids(list) => match left {
                Value::Object(_) | Value::Int(_) | Value::Class(_) => {
                    object.is_some_and(|o| list.contains(&o))
                }
                _ => false,
            },
            Value::Addresses(list) => match left {
                Value::Object(o) => list.contains(&self.env.heap.id(*o)),
                other => other
                    .whole()
                    .is_some_and(|n| list.contains(&ObjectId(n as u64))),
            },
            Value::List(list) => list.iter().any(|v| match v {
                // Rows of a sub-query are compared by their first column.
                Value::Row(row) => row.first().is_some_and(|(_, v)| v.equals(left)),
                other => other.equals(left),
            }),
            other => match other.elements(self.env) {
                Some(list) => list.iter().any(|v| v.equals(left)),
                None => return Err(self.error(at, "expected a list on the right of IN")),
            },
        })
    }

    fn binary(&self, op: Op, left: &Value, right: &Value, at: usize) -> Evaluated<Value> {
        match op {
            Op::Eq => return Ok(Value::Bool(left.equals(right))),
            Op::Ne => return Ok(Value::Bool(!left.equals(right))),
            Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let missing = *left == Value::Null || *right == Value::Null;
                if missing {
                    return Err(self.error(at, "null cannot be compared; check != null first"));
                }
                let Some(ordering) = compare(left, right) else {
                    return match (left.number(), right.number()) {
                        // NaN is neither smaller nor larger.
                        (Some(_), Some(_)) => Ok(Value::Bool(false)),
                        _ => Err(self.error(at, "these values cannot be compared")),
                    };
                };
                return Ok(Value::Bool(match op {
                    Op::Lt => ordering.is_lt(),
                    Op::Le => ordering.is_le(),
                    Op::Gt => ordering.is_gt(),
                    _ => ordering.is_ge(),
                }));
            }
            _ => {}
        }
        if let (Op::Add, Value::Str(text)) = (op, left) {
            return Ok(Value::Str(format!("{text}{}", right.text(&self.env.heap))));
        }
        arithmetic(op, left, right).map_err(|message| self.error(at, message))
    }

    fn path(
        &self,
        environment: Option<&str>,
        facets: &[Facet],
        scope: &Scope<'_>,
        at: usize,
    ) -> Evaluated<Value> {
        if let Some(name) = environment {
            let start = match name {
                "snapshot" => Value::Snapshot,
                other => return Err(self.error(at, format!("there is no ${{{other}}}"))),
            };
            return self.follow(start, facets, scope);
        }
        let Some((
            Facet::Name {
                property,
                name,
                arguments,
                ..
            },
            rest,
        )) = facets.split_first()
        else {
            return Err(self.error(at, "expected a name"));
        };
        if !property {
            match arguments {
                None => {
                    let mut around = Some(scope);
                    while let Some(here) = around {
                        if here.alias == Some(name.as_str()) {
                            return self.follow(here.object.clone(), rest, scope);
                        }
                        around = here.outer;
                    }
                    if name == "snapshot" {
                        return self.follow(Value::Snapshot, rest, scope);
                    }
                }
                Some(list) if list.len() == 1 => {
                    let argument = self.value(&list[0], scope)?;
                    if let Some(value) = self.built_in(name, &argument, at)? {
                        return self.follow(value, rest, scope);
                    }
                }
                Some(_) => {}
            }
        }
        self.follow(scope.object.clone(), facets, scope)
    }

    fn follow(&self, start: Value, facets: &[Facet], scope: &Scope<'_>) -> Evaluated<Value> {
        let mut here = start;
        for facet in facets {
            if here == Value::Null {
                return Ok(Value::Null);
            }
            here = match facet {
                Facet::Name {
                    at,
                    name,
                    arguments: Some(list),
                    ..
                } => {
                    let arguments: Evaluated<Vec<Value>> =
                        list.iter().map(|a| self.value(a, scope)).collect();
                    let found = model::call(self.env, &here, name, &arguments?)?;
                    found.ok_or_else(|| {
                        self.error(
                            *at,
                            format!("there is no method {name} here, or not with these arguments"),
                        )
                    })?
                }
                Facet::Name {
                    at,
                    property: true,
                    name,
                    ..
                } => {
                    let found = model::property(self.env, &here, name)?;
                    found.ok_or_else(|| {
                        self.error(*at, format!("there is no property @{name} here"))
                    })?
                }
                Facet::Name { name, .. } => match &here {
                    Value::Object(_) | Value::Class(_) | Value::Row(_) => {
                        model::field(&self.env.heap, &here, name)
                    }
                    // Values that are not objects of the heap have only properties: `${snapshot}.GCRoots`.
                    other => model::property(self.env, other, name)?.unwrap_or(Value::Null),
                },
                Facet::Index { at, from, to } => {
                    let from = self.value(from, scope)?;
                    let to = match to {
                        Some(to) => Some(self.value(to, scope)?),
                        None => None,
                    };
                    self.index(&here, &from, to.as_ref(), *at)?
                }
            };
        }
        Ok(here)
    }

    fn index(&self, on: &Value, from: &Value, to: Option<&Value>, at: usize) -> Evaluated<Value> {
        let whole = |v: &Value| {
            v.whole()
                .ok_or_else(|| self.error(at, "an index is a whole number"))
        };
        let elements = on.elements(self.env);
        let list = elements
            .ok_or_else(|| self.error(at, "only arrays, lists and collections have elements"))?;
        let length = list.len() as i64;
        let from = whole(from)?;
        let Some(to) = to else {
            let found = usize::try_from(from).ok().and_then(|n| list.get(n));
            return Ok(found.cloned().unwrap_or(Value::Null));
        };
        // Both ends are included; negative ones count from the end; both are limited to the length.
        let clamp = |n: i64| if n < 0 { (n + length).max(0) } else { n };
        let (from, to) = (clamp(from), clamp(whole(to)?).min(length - 1));
        if from > to {
            return Ok(Value::list([]));
        }
        Ok(Value::list(list[from as usize..=to as usize].to_vec()))
    }

    /// Functions of one argument; their names are case-sensitive.
    fn built_in(&self, name: &str, argument: &Value, at: usize) -> Evaluated<Option<Value>> {
        let heap = &self.env.heap;
        let object = || object_argument(self.env, argument);
        let needs = || self.error(at, format!("{name} needs an object"));
        Ok(Some(match name {
            "toHex" => match argument.whole() {
                Some(n) => Value::Str(format!("0x{n:x}")),
                None => return Err(self.error(at, "toHex needs a whole number")),
            },
            "toString" => Value::Str(match argument {
                Value::Null => String::new(),
                Value::Object(o) => model::specific(heap, *o).unwrap_or_default(),
                other => other.text(heap),
            }),
            "eval" => argument.clone(),
            "dominators" | "outbounds" | "inbounds" | "classof" | "dominatorof"
                if *argument == Value::Null =>
            {
                Value::Null
            }
            "dominators" => Value::Ids(Rc::new(
                heap.dominated(Some(object().ok_or_else(needs)?)).collect(),
            )),
            "outbounds" => Value::Ids(Rc::new(model::outbound_ids(
                self.env,
                object().ok_or_else(needs)?,
            )?)),
            "inbounds" => {
                let object = object().ok_or_else(needs)?;
                Value::Ids(Rc::new(model::inbound_ids(self.env, object)?))
            }
            "classof" => Value::of_class(heap, heap.class_of(object().ok_or_else(needs)?)),
            "dominatorof" => match heap.dominator(object().ok_or_else(needs)?) {
                Dominator::Object(above) => Value::Object(above),
                Dominator::Root | Dominator::Unreachable => Value::Null,
            },
            _ => return Ok(None),
        }))
    }
}

/// Compares two values; `None` if they have different kinds.
pub(super) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left.number(), right.number()) {
        (Some(Number::Whole(a)), Some(Number::Whole(b))) => return Some(a.cmp(&b)),
        (Some(a), Some(b)) => return a.real().partial_cmp(&b.real()),
        _ => {}
    }
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        (Value::Char(a), Value::Char(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// `+ - * /`: int with int gives int, with long long, everything else double. A division is always double, as in MAT,
/// so that no digits are lost and a division by zero is infinite.
fn arithmetic(op: Op, left: &Value, right: &Value) -> Result<Value, &'static str> {
    let both = (left.number(), right.number());
    let (Some(a), Some(b)) = both else {
        return Err("only numbers can be calculated with (and text be added to text)");
    };
    let (false, Number::Whole(a), Number::Whole(b)) = (op == Op::Div, a, b) else {
        let (a, b) = (a.real(), b.real());
        return Ok(Value::Double(match op {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            _ => a / b,
        }));
    };
    let result = match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        _ => a.wrapping_mul(b),
    };
    Ok(match (left, right) {
        (Value::Int(_), Value::Int(_)) => Value::Int(result as i32),
        _ => Value::Long(result),
    })
}
