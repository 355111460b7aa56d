//! FROM: the row objects of a query, and the conversion of a value by SELECT OBJECTS.

use super::ast::{From, Source};
use super::eval::{Evaluated, Row, Runner, Scope, columns};
use super::model::object_argument;
use super::value::Value;
use crate::error::bad_pattern;
use heap_graph::{ClassIdx, ObjIdx};
use hprof::ObjectId;
use std::rc::Rc;

impl Runner<'_> {
    pub(super) fn source(
        &self,
        from: &From,
        outer: Option<&Scope<'_>>,
        take: &mut dyn FnMut(Value) -> Evaluated<bool>,
    ) -> Evaluated<bool> {
        let nothing = Value::Null;
        let scope = outer.copied().unwrap_or(Scope {
            alias: None,
            object: &nothing,
            outer: None,
        });
        let values: Vec<Value> = match &from.source {
            Source::Class(name) => {
                let named = self.env.classes_named(name);
                if named.is_empty() {
                    self.env.note_missing_class(name);
                }
                named
                    .iter()
                    .map(|c| Value::of_class(&self.env.heap, *c))
                    .collect()
            }
            Source::Regex(pattern) => self.classes_like(pattern, from.at)?,
            Source::Addresses(list) => {
                let found = list
                    .iter()
                    .map(|a| Value::of_id(&self.env.heap, ObjectId(*a)));
                found.collect()
            }
            Source::Ids(list) => {
                let mut found = Vec::new();
                for n in list {
                    let object = object_argument(self.env, &Value::Long(*n));
                    let lost = || self.error(from.at, format!("there is no object number {n}"));
                    found.push(Value::Object(object.ok_or_else(lost)?));
                }
                found
            }
            Source::Query(query) => {
                // Rows of a table become values with named parts.
                let names = columns(query);
                let mut found = Vec::new();
                self.query(query, outer, &mut |row| {
                    found.push(match (row, &names) {
                        (Row::One(value), _) => value,
                        (Row::Cells(cells), names) => {
                            let names = names.iter().flatten().cloned();
                            Value::Row(Rc::new(names.zip(cells).collect()))
                        }
                    });
                    Ok(true)
                })?;
                found
            }
            Source::Expr(expr) => match self.value(expr, &scope)? {
                Value::Ids(list) => list.iter().map(|o| Value::Object(*o)).collect(),
                Value::Addresses(list) => list
                    .iter()
                    .map(|id| Value::of_id(&self.env.heap, *id))
                    .collect(),
                Value::List(list) => list.to_vec(),
                Value::Null => Vec::new(),
                one => vec![one],
            },
        };
        if from.objects {
            return self.as_objects(values, from, take);
        }
        let mut classes = Vec::new();
        for value in values {
            classes.push(self.as_class(&value).ok_or_else(|| {
                let message = "this is no class (FROM OBJECTS takes objects)";
                self.error(from.at, message)
            })?);
        }
        if from.subclasses {
            classes = self.env.with_subclasses(&classes);
        }
        classes.sort_unstable();
        classes.dedup();
        for object in self.env.objects_of(&classes)? {
            if !take(Value::Object(object?))? {
                return Ok(false);
            }
        }
        // Classes without an object in the dump, mostly those of primitive arrays: MAT creates objects for them.
        let heap = &self.env.heap;
        if classes.contains(&heap.class_class()) {
            for n in 0..heap.classes().len() as u32 {
                let class = ClassIdx(n);
                if heap.class_object(class).is_none() && !take(Value::Class(class))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// FROM OBJECTS: the values themselves; with INSTANCEOF also the subclasses of classes.
    fn as_objects(
        &self,
        values: Vec<Value>,
        from: &From,
        take: &mut dyn FnMut(Value) -> Evaluated<bool>,
    ) -> Evaluated<bool> {
        for value in values {
            let classes = match self.as_class(&value).filter(|_| from.subclasses) {
                Some(class) => self.env.with_subclasses(&[class]),
                None => Vec::new(),
            };
            let list: Vec<Value> = if classes.is_empty() {
                vec![match value {
                    Value::Int(_) | Value::Long(_) => match object_argument(self.env, &value) {
                        Some(object) => Value::Object(object),
                        None => {
                            return Err(self.error(from.at, "there is no object of this number"));
                        }
                    },
                    other => other,
                }]
            } else {
                let of = |c: &ClassIdx| Value::of_class(&self.env.heap, *c);
                classes.iter().map(of).collect()
            };
            for value in list {
                if value != Value::Null && !take(value)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn as_class(&self, value: &Value) -> Option<ClassIdx> {
        match value {
            Value::Class(class) => Some(*class),
            other => self
                .env
                .heap
                .class_by_object(object_argument(self.env, other)?),
        }
    }

    /// Classes whose whole name matches; `$` inside and `[]` are literal.
    fn classes_like(&self, pattern: &str, at: usize) -> Evaluated<Vec<Value>> {
        let mut fixed = String::new();
        let chars: Vec<char> = pattern.chars().collect();
        for (n, c) in chars.iter().enumerate() {
            let escaped = n > 0 && chars[n - 1] == '\\';
            let last = n + 1 == chars.len();
            match c {
                '$' if !last && !escaped => fixed.push_str("\\$"),
                '[' if !escaped && chars.get(n + 1) == Some(&']') => fixed.push_str("\\["),
                ']' if !escaped && n > 0 && chars[n - 1] == '[' => fixed.push_str("\\]"),
                other => fixed.push(*other),
            }
        }
        let regex = regex::Regex::new(&format!("^(?:{fixed})$"))
            .map_err(|e| self.error(at, bad_pattern(pattern, &e)))?;
        let heap = &self.env.heap;
        let all = (0..heap.classes().len() as u32).map(ClassIdx);
        let found = all.filter(|c| regex.is_match(&heap.class(*c).name));
        Ok(found.map(|c| Value::of_class(heap, c)).collect())
    }

    /// SELECT OBJECTS: numbers, addresses, lists and objects as one list of objects.
    pub(super) fn objects(&self, value: &Value, at: usize) -> Evaluated<Vec<ObjIdx>> {
        Ok(match value {
            Value::Null | Value::Lost(_) | Value::Class(_) => Vec::new(),
            Value::Object(o) => vec![*o],
            Value::Ids(list) => list.to_vec(),
            Value::Addresses(list) => list
                .iter()
                .filter_map(|id| self.env.heap.find(*id))
                .collect(),
            // A long is an address, an int the number of an object. Elements may refer to objects that the dump does
            // not have.
            Value::Long(n) => self
                .env
                .heap
                .find(ObjectId(*n as u64))
                .into_iter()
                .collect(),
            Value::Int(n) => match object_argument(self.env, value) {
                Some(o) => vec![o],
                None => return Err(self.error(at, format!("there is no object number {n}"))),
            },
            Value::List(list) => {
                let mut found = Vec::new();
                for value in list.iter() {
                    found.extend(self.objects(value, at)?);
                }
                found
            }
            Value::Row(row) => {
                let named = row.iter().find(|(n, _)| n == "object");
                match named {
                    Some((_, value)) => self.objects(value, at)?,
                    None => return Err(self.error(at, "a row is no object")),
                }
            }
            _ => return Err(self.error(at, "this value is no object")),
        })
    }
}
