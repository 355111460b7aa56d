//! The functions of the heap that JavaScript can call: one host function, whose first argument is the name of the
//! operation.

use crate::cell::Cell;
use crate::describe::{array_length, cell_of, element, field_value, readable, type_name};
use crate::error::QueryError;
use crate::graph::path_to_root;
use crate::shared::{Env, flags, of_classes};
use heap_analysis::objects::fields::lineage;
use heap_analysis::tables::group::trace_frames;
use heap_graph::{ClassIdx, ObjIdx, ObjectKind, ObjectView, RefStrength, Value, Via};
use hprof::{BasicType, ObjectId};
use rquickjs::{Array, Ctx, IntoJs, String as JsString, Value as JsValue};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// The number of objects that a cursor returns at once.
const BATCH: usize = 512;

/// The most scans that may be unfinished at once: each has a buffer of its own, which the memory limit of JavaScript
/// does not include.
const SCANS: usize = 4096;

/// The number of paths that `livepaths` searches for.
const PATHS: usize = 100;

/// A value to be passed to JavaScript.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Undefined,
    Cell(Cell),
    Object(ObjIdx),
    List(Vec<Answer>),
}

impl<'js> IntoJs<'js> for Answer {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<JsValue<'js>> {
        let ctx = ctx.clone();
        Ok(match self {
            Answer::Undefined => JsValue::new_undefined(ctx),
            Answer::Object(o) => {
                let pair = Array::new(ctx)?;
                pair.set(0, o.0 as f64)?;
                pair.into_value()
            }
            Answer::List(list) => {
                let array = Array::new(ctx)?;
                for (n, part) in list.into_iter().enumerate() {
                    array.set(n, part)?;
                }
                array.into_value()
            }
            Answer::Cell(cell) => match cell {
                Cell::Null | Cell::List(_) => JsValue::new_null(ctx),
                Cell::Bool(v) => JsValue::new_bool(ctx, v),
                Cell::Int(v) => JsValue::new_number(ctx, v as f64),
                Cell::Real(v) => JsValue::new_number(ctx, v),
                Cell::Text(text) => JsString::from_str(ctx, &text)?.into_value(),
                Cell::Object(id) => JsString::from_str(ctx, &id.to_string())?.into_value(),
            },
        })
    }
}

fn text(text: impl Into<String>) -> Answer {
    Answer::Cell(Cell::Text(text.into()))
}

fn number(n: u64) -> Answer {
    Answer::Cell(Cell::Int(n as i64))
}

fn flag(value: bool) -> Answer {
    Answer::Cell(Cell::Bool(value))
}

const NULL: Answer = Answer::Cell(Cell::Null);

/// Numbers of objects, which JavaScript converts to objects.
fn numbers(list: impl IntoIterator<Item = ObjIdx>) -> Answer {
    Answer::List(list.into_iter().map(|o| number(o.0)).collect())
}

/// An argument from JavaScript.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Number(f64),
    Text(String),
    Flag(bool),
    Nothing,
}

/// The running scans by number.
#[derive(Default)]
struct Scans {
    running: FxHashMap<usize, Box<dyn Iterator<Item = ObjIdx>>>,
    begun: usize,
}

/// The heap and the running scans.
pub(super) struct Host {
    pub(super) env: Env,
    scans: RefCell<Scans>,
    /// Why the last call failed; JavaScript only gets an exception.
    pub(super) failed: RefCell<Option<QueryError>>,
}

impl Host {
    pub(super) fn new(env: &Env) -> Host {
        Host {
            env: env.clone(),
            scans: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// Starts a scan of the instances of classes.
    pub(super) fn scan(&self, classes: &[ClassIdx], subclasses: bool) -> Result<u64, QueryError> {
        let classes = if subclasses {
            self.env.with_subclasses(classes)
        } else {
            classes.to_vec()
        };
        let admitted = flags(&self.env, |c| classes.binary_search(&c).is_ok());
        let found = of_classes(&self.env, admitted, 0..self.env.heap.len());
        self.push(Box::new(found))
    }

    fn push(&self, scan: Box<dyn Iterator<Item = ObjIdx>>) -> Result<u64, QueryError> {
        let mut scans = self.scans.borrow_mut();
        if scans.running.len() >= SCANS {
            let message = format!("more than {SCANS} unfinished scans of the heap");
            return Err(QueryError::Run(message));
        }
        scans.begun += 1;
        let number = scans.begun;
        scans.running.insert(number, scan);
        Ok(number as u64)
    }

    /// Classes with a name as in Java or in a class file, or with the id of a class object.
    pub(super) fn classes(&self, name: &str) -> Vec<ClassIdx> {
        if let Some(digits) = name.strip_prefix("0x") {
            let id = u64::from_str_radix(digits, 16).ok().map(ObjectId);
            let object = id.and_then(|id| self.env.heap.find(id));
            return object
                .and_then(|o| self.env.heap.class_by_object(o))
                .into_iter()
                .collect();
        }
        let named = self.env.classes_named(name);
        if !named.is_empty() {
            return named.to_vec();
        }
        self.env
            .classes_named(&hprof::readable_class_name(name))
            .to_vec()
    }

    /// Runs an operation.
    pub(super) fn ask(&self, question: &str, given: &[Given]) -> Result<Answer, QueryError> {
        self.env.stop.check()?;
        let at = |n: usize| match given.get(n) {
            Some(Given::Number(x)) if *x >= 0.0 => Some(*x as u64),
            _ => None,
        };
        let word = match given.iter().rev().find(|g| matches!(g, Given::Text(_))) {
            Some(Given::Text(word)) => word.as_str(),
            _ => "",
        };
        let yes = given.iter().any(|g| matches!(g, Given::Flag(true)));
        match question {
            "next" => return Ok(self.next(at(0))),
            "close" => {
                let number = at(0).unwrap_or(0) as usize;
                self.scans.borrow_mut().running.remove(&number);
                return Ok(NULL);
            }
            "findClass" => {
                let found = self
                    .classes(word)
                    .first()
                    .and_then(|c| self.env.heap.class_object(*c));
                return Ok(found.map_or(Answer::Cell(Cell::Int(-1)), |o| number(o.0)));
            }
            "findObject" => {
                let digits = word.trim_start_matches("0x");
                let id = u64::from_str_radix(digits, 16).ok().map(ObjectId);
                let found = id.and_then(|id| self.env.heap.find(id));
                return Ok(found.map_or(NULL, |o| number(o.0)));
            }
            "classes" => {
                let heap = self.env.heap.clone();
                let all = (0..heap.classes().len() as u32).map(ClassIdx);
                let objects: Vec<ObjIdx> = all.filter_map(|c| heap.class_object(c)).collect();
                return self.push(Box::new(objects.into_iter())).map(number);
            }
            "roots" => {
                let roots = self.env.heap.roots().iter();
                let root = |r: &heap_graph::RootInfo| {
                    Answer::List(vec![number(r.object.0), text(r.kind.name())])
                };
                return Ok(Answer::List(roots.map(root).collect()));
            }
            _ => {}
        }
        let Some(object) = at(0).filter(|n| *n < self.env.heap.len()).map(ObjIdx) else {
            return Ok(NULL);
        };
        if let Some(class) = self.env.heap.class_by_object(object)
            && let Some(answer) = self.of_class(question, class, word, yes)?
        {
            return Ok(answer);
        }
        self.of_object(question, object, at(1), word, yes)
    }

    fn next(&self, cursor: Option<u64>) -> Answer {
        let mut scans = self.scans.borrow_mut();
        let scan = cursor.and_then(|n| scans.running.get_mut(&(n as usize)));
        numbers(scan.into_iter().flatten().take(BATCH))
    }

    fn value(&self, value: Value) -> Answer {
        match value {
            Value::Reference(id) if id.is_null() => NULL,
            Value::Reference(id) => self.env.heap.find(id).map_or(NULL, Answer::Object),
            other => Answer::Cell(cell_of(other)),
        }
    }

    fn of_class(
        &self,
        question: &str,
        class: ClassIdx,
        word: &str,
        yes: bool,
    ) -> Result<Option<Answer>, QueryError> {
        let heap = &self.env.heap;
        let info = heap.class(class);
        let classes = |list: &mut dyn Iterator<Item = ClassIdx>| {
            numbers(list.filter_map(|c| heap.class_object(c)))
        };
        Ok(Some(match question {
            "className" => text(&info.name),
            "superclass" => {
                let above = info.super_class.and_then(|c| heap.class_object(c));
                above.map_or(NULL, |o| number(o.0))
            }
            "statics" => {
                let pair = |s: &heap_graph::StaticInfo| {
                    let value = self.value(Value::from_bits(s.kind, s.bits));
                    Answer::List(vec![text(&s.name), value])
                };
                Answer::List(info.statics.iter().map(pair).collect())
            }
            "fields" => {
                let pair = |f: &heap_graph::FieldInfo| {
                    Answer::List(vec![text(&f.name), text(signature(f.kind))])
                };
                Answer::List(info.fields.iter().map(pair).collect())
            }
            "loader" => self.value(Value::Reference(info.loader)),
            "signers" => self.value(Value::Reference(info.signers)),
            "protectionDomain" => self.value(Value::Reference(info.domain)),
            "instanceSize" => number(info.instance_size.0),
            "isSubclassOf" => {
                let other = self.classes(word);
                let own = heap.class(class);
                let above = lineage(heap, class).skip(1).any(|c| other.contains(&c));
                flag(above && own.name != word)
            }
            "subclasses" => {
                let all = self.env.with_subclasses(&[class]);
                classes(&mut all.into_iter().filter(|c| *c != class))
            }
            "superclasses" => classes(&mut lineage(heap, class).skip(1)),
            "instances" => number(self.scan(&[class], yes)?),
            _ => return Ok(None),
        }))
    }

    fn of_object(
        &self,
        question: &str,
        o: ObjIdx,
        second: Option<u64>,
        word: &str,
        yes: bool,
    ) -> Result<Answer, QueryError> {
        let heap = &self.env.heap;
        Ok(match question {
            "kind" => number(match heap.kind(o) {
                ObjectKind::Instance => 0,
                ObjectKind::Class => 1,
                ObjectKind::ObjectArray => 2,
                ObjectKind::PrimitiveArray => 3,
            }),
            "field" => field_value(heap, o, word).map_or(Answer::Undefined, |v| self.value(v)),
            "names" => match heap.object(o)? {
                ObjectView::Instance { fields, .. } => {
                    let mut seen = FxHashSet::default();
                    let names = fields.iter().filter(|f| seen.insert(f.name));
                    Answer::List(names.map(|f| text(f.name)).collect())
                }
                _ => Answer::List(Vec::new()),
            },
            "length" => number(array_length(heap, o).unwrap_or(0) as u64),
            "element" => match second.and_then(|n| element(heap, o, n as usize)) {
                Some(Cell::Object(id)) => self.value(Value::Reference(id)),
                Some(cell) => Answer::Cell(cell),
                None => Answer::Undefined,
            },
            "text" => text(match readable(heap, o) {
                Some(text) => text,
                // A string whose characters are not in the dump, as in jhat.
                None if heap.class(heap.class_of(o)).name == "java.lang.String" => "null".into(),
                None => technical(heap, o),
            }),
            "technical" => text(
                match readable(heap, o).filter(|_| heap.kind(o) != ObjectKind::Class) {
                    Some(value) => format!("{} {value}", technical(heap, o)),
                    None => technical(heap, o),
                },
            ),
            "id" => text(heap.id(o).to_string()),
            "classof" => {
                let class = heap.class_object(heap.class_of(o));
                class.map_or(NULL, |c| number(c.0))
            }
            "sizeof" => number(heap.shallow(o).0),
            "rsizeof" => number(heap.retained(o).0),
            "referrers" => {
                let all = self.env.stop.within(|c| heap.inbound_with(o, c))?;
                let mut kept = Vec::new();
                for from in all {
                    if yes || self.refers_strongly(from, o)? {
                        kept.push(from);
                    }
                }
                numbers(kept)
            }
            "referees" => numbers(self.referees(o, &[])?),
            "reachables" => numbers(self.reachables(o, word)?),
            "rootsOf" => {
                let root = |r: &heap_graph::RootInfo| {
                    Answer::List(vec![number(r.object.0), text(r.kind.name())])
                };
                Answer::List(heap.roots_of(o).map(root).collect())
            }
            "rootDistance" => match path_to_root(&self.env, o)?.len() {
                0 => Answer::Cell(Cell::Int(-1)),
                n => number(n as u64 - 1),
            },
            "livepaths" => self.live_paths(o, yes)?,
            "describeRef" => match second.map(ObjIdx) {
                Some(to) => {
                    let all = heap.outbound(o)?;
                    let found = all.iter().find(|r| r.target == to);
                    found.map_or(NULL, |r| text(r.via.to_string()))
                }
                None => NULL,
            },
            "allocTrace" => {
                let frames = trace_frames(heap, heap.allocation_trace(o));
                if frames.is_empty() {
                    NULL
                } else {
                    Answer::List(frames.into_iter().map(text).collect())
                }
            }
            _ => NULL,
        })
    }

    /// Whether one object holds another by other references than a weak referent.
    fn refers_strongly(&self, from: ObjIdx, to: ObjIdx) -> Result<bool, QueryError> {
        if self
            .env
            .heap
            .reference_strength(self.env.heap.class_of(from))
            .is_none()
        {
            return Ok(true);
        }
        let all = self.env.heap.outbound(from)?;
        let mut mine = all.iter().filter(|r| r.target == to);
        Ok(mine.any(|r| !matches!(r.strength, RefStrength::Weak | RefStrength::Phantom)))
    }

    /// The objects that an object's fields and elements refer to, without the fields `Class.field` in `excluded`.
    fn referees(&self, o: ObjIdx, excluded: &[&str]) -> Result<Vec<ObjIdx>, QueryError> {
        let heap = &self.env.heap;
        let mut seen = FxHashSet::default();
        if !excluded.is_empty()
            && let ObjectView::Instance { fields, .. } = heap.object(o)?
        {
            let is_excluded = |f: &heap_graph::FieldValue<'_>| {
                let declared = &heap.class(f.declared_in).name;
                let named = |e: &&str| e.rsplit_once('.') == Some((declared.as_str(), f.name));
                excluded.iter().any(named)
            };
            let kept = fields.iter().filter(|f| !is_excluded(f));
            let targets = kept.filter_map(|f| match f.value {
                Value::Reference(id) => heap.find(id),
                _ => None,
            });
            return Ok(targets.filter(|t| seen.insert(*t)).collect());
        }
        let all = heap.outbound(o)?.into_iter();
        let kept = all.filter(|r| !matches!(r.via, Via::Class | Via::ThreadLocal { .. }));
        Ok(kept.map(|r| r.target).filter(|t| seen.insert(*t)).collect())
    }

    fn reachables(&self, o: ObjIdx, excluded: &str) -> Result<Vec<ObjIdx>, QueryError> {
        let excluded: Vec<&str> = excluded
            .split(',')
            .map(str::trim)
            .filter(|e| !e.is_empty())
            .collect();
        let mut seen: FxHashSet<ObjIdx> = FxHashSet::from_iter([o]);
        let mut found = vec![o];
        let mut at = 0;
        while let Some(object) = found.get(at).copied() {
            at += 1;
            if at % 256 == 0 {
                self.env.stop.check()?;
            }
            let targets = self.referees(object, &excluded)?;
            found.extend(targets.into_iter().filter(|t| seen.insert(*t)));
        }
        found.remove(0);
        found.sort_unstable();
        Ok(found)
    }

    /// Chains from objects that roots hold to `o`, breadth first, each object in one chain. The search continues
    /// beyond roots, because the holders of a root may be informative, too.
    fn live_paths(&self, o: ObjIdx, weak: bool) -> Result<Answer, QueryError> {
        let heap = &self.env.heap;
        // Each object found, and the index of the one that it refers to.
        let mut found = vec![(o, 0)];
        let mut seen: FxHashSet<ObjIdx> = FxHashSet::from_iter([o]);
        let mut chains = Vec::new();
        let mut at = 0;
        let roots: FxHashSet<ObjIdx> = heap.roots().iter().map(|r| r.object).collect();
        while let Some((object, next)) = found.get(at).copied() {
            self.env.stop.check()?;
            if roots.contains(&object) {
                let chain = std::iter::successors(Some((object, next, at)), |(_, next, at)| {
                    let (object, after) = found[*next];
                    (at != next).then_some((object, after, *next))
                });
                chains.push(numbers(chain.map(|(object, ..)| object)));
                if chains.len() == PATHS {
                    break;
                }
            }
            for from in self.env.stop.within(|c| heap.inbound_with(object, c))? {
                if !seen.contains(&from) && (weak || self.refers_strongly(from, object)?) {
                    seen.insert(from);
                    found.push((from, at));
                }
            }
            at += 1;
        }
        Ok(Answer::List(chains))
    }
}

/// `class @ 0xaddress`.
fn technical(heap: &heap_graph::Heap, o: ObjIdx) -> String {
    format!(
        "{} @ {}",
        heap_analysis::objects::describe::title(heap, o),
        heap.id(o)
    )
}

/// The signature letter of a type; references are `L`.
fn signature(kind: BasicType) -> &'static str {
    match type_name(kind) {
        "Object" => "L",
        "boolean" => "Z",
        "char" => "C",
        "float" => "F",
        "double" => "D",
        "byte" => "B",
        "short" => "S",
        "int" => "I",
        _ => "J",
    }
}
