//! Sets of objects by name, so that the answer to one question can be passed on to the next:
//! `class:com.example.Session`, `retained:object:0x7f00`,
//! `in:class:java.lang.String and package:com.example`.

use crate::objects::fields::lineage;
use crate::sets::selection::Selection;
use crate::sets::similar::{nearest, nearest_qualified};
use crate::tables::group::{ClassGroups, GroupBy, GroupKey, owner_class};
use crate::tables::roots::kind_named;
use crate::tables::threads;
use heap_graph::{ClassIdx, Columns, Dominator, Heap, HeapError, ObjIdx};
use hprof::{HeapTag, ObjectId, Serial, package_of};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Which objects. Written as text with [`fmt::Display`], read back with [`FromStr`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetSpec {
    /// `all`: every object.
    All,
    /// `unreachable`: the unreachable objects.
    Unreachable,
    /// `roots` or `roots:KIND`: the objects that root records name.
    Roots(Option<HeapTag>),
    /// `object:0x1,0x2`: the objects with these ids.
    Objects(Vec<ObjectId>),
    /// `class:NAME` or `class:0xID`: objects of exactly this class.
    Class(String),
    /// `sub:NAME` or `sub:0xID`: objects of this class and its subclasses.
    Subclasses(String),
    /// `loader:0xID`: objects whose class this loader defined, and those classes.
    Loader(ObjectId),
    /// `package:NAME`: objects whose class is in this package, and those classes.
    Package(String),
    /// `heap:NAME`: objects of an Android heap.
    Heap(String),
    /// `site:N`: objects allocated at this trace.
    Site(u32),
    /// `stack:0xID`: the virtual threads with the same stack as this one.
    Stack(ObjectId),
    /// `SET and SET`: members of both.
    And(Vec<SetSpec>),
    /// `in:SET`: the objects that refer to a member.
    In(Box<SetSpec>),
    /// `out:SET`: the objects that a member refers to, except its class.
    Out(Box<SetSpec>),
    /// `dominated:SET`: the objects that members immediately dominate.
    Dominated(Box<SetSpec>),
    /// `dominators:SET`: the immediate dominators of the members.
    Dominators(Box<SetSpec>),
    /// `retained:SET`: the members and everything below them in the dominator tree. For one object this is its
    /// retained set; for several, they may retain more together.
    Retained(Box<SetSpec>),
    /// `sql:(TEXT)`, `oql:(TEXT)`, `jhat:(TEXT)`, or `query:(TEXT)`, whose dialect is detected from the text: the
    /// objects that a query returns. In TEXT `%28` stands for a parenthesis. A caller that can run queries replaces it
    /// by [`Objects`](Self::Objects), see [`resolve`](Self::resolve).
    Query {
        /// The word: `sql`, `oql`, `jhat` or `query`.
        dialect: &'static str,
        /// The text of the query.
        text: String,
    },
}

/// Why there is no such set.
#[derive(Debug, Error)]
pub enum SetError {
    /// The text does not describe a set.
    #[error("{0}: expected a set such as class:NAME, object:0xID or retained:class:NAME")]
    Unreadable(String),
    /// No kind of root has this name.
    #[error("{0}")]
    Kind(String),
    /// Nothing in the dump is called so; with a similar set that it has.
    #[error("{set} is not in this dump{}", hint(.similar.as_deref()))]
    Unknown {
        /// The set.
        set: String,
        /// A set with a similar name, if there is one.
        similar: Option<String>,
    },
    /// A query stands where sets are known and queries are not.
    #[error("{0}: a query cannot be asked here")]
    Unasked(String),
    /// The dump could not be read.
    #[error(transparent)]
    Heap(#[from] HeapError),
}

fn hint(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |similar| format!("; did you mean {similar}?"))
}

/// Gives the objects of a query; gets the word before it and its text.
pub type Ask<'a, E> = dyn FnMut(&'static str, &str) -> Result<Vec<ObjectId>, E> + 'a;

/// The deepest nesting of words and parentheses; no useful set needs more.
const MAX_NESTING: usize = 16;

/// The words before a query.
const DIALECTS: [&str; 4] = ["sql", "oql", "jhat", "query"];

impl FromStr for SetSpec {
    type Err = SetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        SetSpec::parse(text, MAX_NESTING)
    }
}

impl SetSpec {
    fn parse(text: &str, levels: usize) -> Result<SetSpec, SetError> {
        let wrong = || SetError::Unreadable(text.chars().take(200).collect());
        let levels = levels.checked_sub(1).ok_or_else(wrong)?;
        let parts = conjuncts(text);
        if parts.len() > 1 {
            let parts = parts.into_iter().map(|part| SetSpec::parse(part, levels));
            return Ok(SetSpec::And(parts.collect::<Result<_, _>>()?));
        }
        let bare = |t: &'_ str| Some(t.strip_prefix('(')?.strip_suffix(')')?.to_owned());
        if let Some(inside) = bare(text) {
            return SetSpec::parse(&inside, levels);
        }
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        let inner = || -> Result<Box<SetSpec>, SetError> {
            let rest = rest.ok_or_else(wrong)?;
            Ok(Box::new(SetSpec::parse(rest, levels)?))
        };
        let name = || {
            rest.filter(|r| !r.is_empty())
                .map(str::to_owned)
                .ok_or_else(wrong)
        };
        Ok(match word {
            "all" if rest.is_none() => SetSpec::All,
            "unreachable" if rest.is_none() => SetSpec::Unreachable,
            "roots" => {
                let kind = rest.map(kind_named).transpose();
                SetSpec::Roots(kind.map_err(SetError::Kind)?)
            }
            "object" => SetSpec::Objects(
                name()?
                    .split(',')
                    .map(|id| id.parse().map_err(|_| wrong()))
                    .collect::<Result<_, _>>()?,
            ),
            "class" => SetSpec::Class(name()?),
            "sub" => SetSpec::Subclasses(name()?),
            "loader" => SetSpec::Loader(name()?.parse().map_err(|_| wrong())?),
            "package" => SetSpec::Package(rest.ok_or_else(wrong)?.to_owned()),
            "heap" => SetSpec::Heap(name()?),
            "site" => SetSpec::Site(name()?.parse().map_err(|_| wrong())?),
            "stack" => SetSpec::Stack(name()?.parse().map_err(|_| wrong())?),
            "in" => SetSpec::In(inner()?),
            "out" => SetSpec::Out(inner()?),
            "dominated" => SetSpec::Dominated(inner()?),
            "dominators" => SetSpec::Dominators(inner()?),
            "retained" => SetSpec::Retained(inner()?),
            word => {
                let dialect = DIALECTS.into_iter().find(|d| *d == word);
                let text = rest.and_then(bare).map(|t| unescaped(&t));
                SetSpec::Query {
                    dialect: dialect.ok_or_else(wrong)?,
                    text: text.filter(|t| !t.is_empty()).ok_or_else(wrong)?,
                }
            }
        })
    }

    /// The same set with each query replaced by its objects; `ask` runs the queries.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn resolve<E>(&self, ask: &mut Ask<'_, E>) -> Result<SetSpec, E> {
        let mut inner =
            |set: &SetSpec| -> Result<Box<SetSpec>, E> { Ok(Box::new(set.resolve(ask)?)) };
        Ok(match self {
            SetSpec::Query { dialect, text } => SetSpec::Objects(ask(dialect, text)?),
            SetSpec::And(sets) => {
                let sets = sets.iter().map(|set| set.resolve(ask));
                SetSpec::And(sets.collect::<Result<_, E>>()?)
            }
            SetSpec::In(set) => SetSpec::In(inner(set)?),
            SetSpec::Out(set) => SetSpec::Out(inner(set)?),
            SetSpec::Dominated(set) => SetSpec::Dominated(inner(set)?),
            SetSpec::Dominators(set) => SetSpec::Dominators(inner(set)?),
            SetSpec::Retained(set) => SetSpec::Retained(inner(set)?),
            plain => plain.clone(),
        })
    }

    /// True when the set contains referrers, which need one pass over the dump.
    pub fn needs_referrers(&self) -> bool {
        match self {
            SetSpec::In(_) => true,
            SetSpec::And(sets) => sets.iter().any(SetSpec::needs_referrers),
            SetSpec::Out(set)
            | SetSpec::Dominated(set)
            | SetSpec::Dominators(set)
            | SetSpec::Retained(set) => set.needs_referrers(),
            _ => false,
        }
    }
}

/// The characters that a query in a set must escape.
const ESCAPES: [(char, &str); 3] = [('%', "%25"), ('(', "%28"), (')', "%29")];

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match ESCAPES.iter().find(|e| e.0 == c) {
            Some((_, escape)) => out.push_str(escape),
            None => out.push(c),
        }
    }
    out
}

/// Removes the escapes; a percent sign that begins no escape stands for itself.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = ESCAPES.iter().find(|e| rest.starts_with(e.1));
        let (c, len) = found.map_or(('%', 1), |e| (e.0, e.1.len()));
        out.push(c);
        rest = &rest[len..];
    }
    out + rest
}

/// The parts between each ` and ` that is outside of parentheses.
fn conjuncts(text: &str) -> Vec<&str> {
    const AND: &str = " and ";
    let mut parts = Vec::new();
    let (mut from, mut depth) = (0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && at >= from && text[at..].starts_with(AND) => {
                parts.push(&text[from..at]);
                from = at + AND.len();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// A set as it is written after a word: in parentheses if it has several parts.
struct Inner<'s>(&'s SetSpec);

impl fmt::Display for Inner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SetSpec::And(_) => write!(f, "({})", self.0),
            other => other.fmt(f),
        }
    }
}

impl fmt::Display for SetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetSpec::All => f.write_str("all"),
            SetSpec::Unreachable => f.write_str("unreachable"),
            SetSpec::Roots(None) => f.write_str("roots"),
            SetSpec::Roots(Some(kind)) => write!(f, "roots:{}", kind.name()),
            SetSpec::Objects(ids) => {
                let ids: Vec<String> = ids.iter().map(ObjectId::to_string).collect();
                write!(f, "object:{}", ids.join(","))
            }
            SetSpec::Class(name) => write!(f, "class:{name}"),
            SetSpec::Subclasses(name) => write!(f, "sub:{name}"),
            SetSpec::Loader(id) => write!(f, "loader:{id}"),
            SetSpec::Package(name) => write!(f, "package:{name}"),
            SetSpec::Heap(name) => write!(f, "heap:{name}"),
            SetSpec::Site(n) => write!(f, "site:{n}"),
            SetSpec::Stack(id) => write!(f, "stack:{id}"),
            SetSpec::And(sets) => {
                let sets: Vec<String> = sets.iter().map(SetSpec::to_string).collect();
                f.write_str(&sets.join(" and "))
            }
            SetSpec::In(set) => write!(f, "in:{}", Inner(set)),
            SetSpec::Out(set) => write!(f, "out:{}", Inner(set)),
            SetSpec::Dominated(set) => write!(f, "dominated:{}", Inner(set)),
            SetSpec::Dominators(set) => write!(f, "dominators:{}", Inner(set)),
            SetSpec::Retained(set) => write!(f, "retained:{}", Inner(set)),
            SetSpec::Query { dialect, text } => write!(f, "{dialect}:({})", escaped(text)),
        }
    }
}

/// The classes with a name or id; several loaders may define classes of the same name.
pub fn classes_of(heap: &Heap, name: &str) -> Vec<ClassIdx> {
    let id = name.parse::<ObjectId>().ok();
    let readable = hprof::readable_class_name(name);
    (0..heap.classes().len() as u32)
        .map(ClassIdx)
        .filter(|c| {
            let info = heap.class(*c);
            match id {
                Some(id) => info.id == id,
                None => info.name == name || info.name == readable,
            }
        })
        .collect()
}

/// A class with a similar name, where there is none of this name.
pub fn similar_class<'h>(heap: &'h Heap, name: &str) -> Option<&'h str> {
    let classes = heap.classes().iter().map(|class| &*class.name);
    let is_id = name.parse::<ObjectId>().is_ok();
    (!is_id).then(|| nearest_qualified(name, &classes.collect::<Vec<_>>()))?
}

/// Decides whether an object is in a set by examining only the object.
type Test<'h> = Box<dyn Fn(&Columns<'_>, ObjIdx) -> bool + Sync + 'h>;

/// The heap of objects of a dump that names no heaps.
const NO_HEAP: &str = "<java>";

/// The error of a set whose name is not in the dump.
fn unknown(heap: &Heap, spec: &SetSpec) -> SetError {
    let similar = match spec {
        SetSpec::Class(name) | SetSpec::Subclasses(name) => similar_class(heap, name),
        SetSpec::Package(name) => {
            let classes = heap.classes().iter().map(|class| &*class.name);
            let packages: BTreeSet<&str> = classes.map(package_of).collect();
            nearest_qualified(name, &Vec::from_iter(packages))
        }
        SetSpec::Heap(name) => {
            let heaps = heap.summary().heaps.keys().map(String::as_str);
            nearest(name, &heaps.collect::<Vec<_>>())
        }
        _ => None,
    };
    let set = spec.to_string();
    let word = set.split(':').next().unwrap_or_default();
    let similar = similar.map(|name| format!("{word}:{name}"));
    SetError::Unknown { set, similar }
}

/// The test of a set that has one.
fn test_of<'h>(heap: &'h Heap, spec: &SetSpec, all: bool) -> Result<Option<Test<'h>>, SetError> {
    let unknown = || unknown(heap, spec);
    let of_classes = |wanted: Vec<bool>| -> Test<'h> {
        Box::new(move |columns, o| {
            wanted[columns.class_of(o).0 as usize] && (all || columns.is_reachable(o))
        })
    };
    Ok(Some(match spec {
        SetSpec::All => Box::new(move |columns, o| all || columns.is_reachable(o)),
        SetSpec::Unreachable => Box::new(|columns, o| !columns.is_reachable(o)),
        SetSpec::Class(name) => {
            let classes = classes_of(heap, name);
            if classes.is_empty() {
                return Err(unknown());
            }
            of_classes(flags(heap, |class| classes.contains(&class)))
        }
        SetSpec::Subclasses(name) => {
            let tops = classes_of(heap, name);
            if tops.is_empty() {
                return Err(unknown());
            }
            let below = |class| lineage(heap, class).any(|above| tops.contains(&above));
            of_classes(flags(heap, below))
        }
        SetSpec::Loader(_) | SetSpec::Package(_) => {
            let wanted = owned(heap, spec).ok_or_else(unknown)?;
            let class_class = heap.class_class();
            Box::new(move |columns, o| {
                let class = columns.class_of(o);
                // A class object belongs to its own package and loader.
                let class = if class == class_class {
                    owner_class(heap, o)
                } else {
                    class
                };
                wanted[class.0 as usize] && (all || columns.is_reachable(o))
            })
        }
        SetSpec::Heap(name) => {
            if name != NO_HEAP && !heap.summary().heaps.contains_key(name) {
                return Err(unknown());
            }
            let name = name.clone();
            Box::new(move |columns, o| {
                heap.heap_name(o).unwrap_or(NO_HEAP) == name && (all || columns.is_reachable(o))
            })
        }
        SetSpec::Site(trace) => {
            let trace = *trace;
            let is_of_object = || {
                let mut objects = (0..heap.len()).map(ObjIdx);
                objects.any(|o| heap.allocation_trace(o).0 == trace)
            };
            if heap.trace(Serial(trace)).is_empty() && !is_of_object() {
                return Err(unknown());
            }
            Box::new(move |columns, o| {
                heap.allocation_trace(o).0 == trace && (all || columns.is_reachable(o))
            })
        }
        _ => return Ok(None),
    }))
}

/// The members of a set. Groups have reachable objects only, or with `all` every object.
pub fn members(heap: &Heap, spec: &SetSpec, all: bool) -> Result<Selection, SetError> {
    let columns = heap.columns();
    let counts = |o: &ObjIdx| all || columns.is_reachable(*o);
    let unknown = || unknown(heap, spec);
    if let Some(test) = test_of(heap, spec, all)? {
        return Ok(Selection::by(heap, test));
    }
    Ok(match spec {
        SetSpec::Roots(kind) => {
            let roots = heap.roots().iter();
            let roots = roots.filter(|r| kind.is_none_or(|kind| kind == r.kind));
            Selection::of(heap, roots.map(|r| r.object))
        }
        SetSpec::Objects(ids) => {
            let find = |id: &ObjectId| heap.find(*id).ok_or_else(unknown);
            let found: Vec<ObjIdx> = ids.iter().map(find).collect::<Result<_, _>>()?;
            Selection::of(heap, found)
        }
        SetSpec::Stack(id) => {
            let thread = heap.find(*id).ok_or_else(unknown)?;
            let same = threads::with_stack_of(heap, thread).ok_or_else(unknown)?;
            Selection::of(heap, same)
        }
        SetSpec::And(sets) => {
            let mut sets = sets.iter();
            let mut kept = match sets.next() {
                Some(first) => members(heap, first, all)?,
                None => Selection::none(heap),
            };
            for set in sets {
                kept.keep(&members(heap, set, all)?);
            }
            kept
        }
        SetSpec::In(set) => holders(heap, members(heap, set, all)?.iter(), counts)?,
        SetSpec::Out(set) => referents(heap, members(heap, set, all)?.iter())?,
        SetSpec::Dominated(set) => {
            let inner = members(heap, set, all)?;
            Selection::of(heap, inner.iter().flat_map(|o| heap.dominated(Some(o))))
        }
        SetSpec::Dominators(set) => dominators(heap, members(heap, set, all)?.iter()),
        SetSpec::Retained(set) => members(heap, set, all)?.with_all_below(heap),
        _ => return Err(SetError::Unasked(spec.to_string())),
    })
}

/// How much of a heap [`some`] examines.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Ranges of objects, spread evenly over the heap.
    pub windows: u64,
    /// Objects in each range.
    pub each: u64,
    /// Members whose references are read; a hundred times as many are followed downwards.
    pub ask: usize,
}

impl Default for Look {
    /// Half a million objects, a few milliseconds.
    fn default() -> Look {
        Look {
            windows: 32,
            each: 1 << 14,
            ask: 1_000,
        }
    }
}

/// Some members of a set, found without examining every object of the heap: the first page of a large set. All of them
/// are in [`members`]. `None` if this would not be faster, or if the sets that it consists of cannot be found
/// partially.
///
/// # Errors
/// As [`members`].
pub fn some(
    heap: &Heap,
    spec: &SetSpec,
    all: bool,
    look: &Look,
) -> Result<Option<Selection>, SetError> {
    if heap.len() < 2 * look.windows * look.each {
        return Ok(None);
    }
    if let Some(test) = test_of(heap, spec, all)? {
        return Ok(Some(Selection::by_some(
            heap,
            look.windows,
            look.each,
            test,
        )));
    }
    let columns = heap.columns();
    let inner = match spec {
        SetSpec::In(set) | SetSpec::Out(set) | SetSpec::Dominated(set) => {
            some(heap, set, all, look)?
        }
        SetSpec::Dominators(set) | SetSpec::Retained(set) => some(heap, set, all, look)?,
        SetSpec::And(sets) => {
            let mut kept: Option<Selection> = None;
            for set in sets {
                let Some(part) = some(heap, set, all, look)? else {
                    return Ok(None);
                };
                match &mut kept {
                    Some(kept) => kept.keep(&part),
                    None => kept = Some(part),
                }
            }
            return Ok(kept);
        }
        SetSpec::Roots(_) | SetSpec::Objects(_) => return members(heap, spec, all).map(Some),
        _ => None,
    };
    let Some(inner) = inner else {
        return Ok(None);
    };
    let few = inner.iter().take(look.ask);
    Ok(Some(match spec {
        SetSpec::In(_) => holders(heap, few, |o| all || columns.is_reachable(*o))?,
        SetSpec::Out(_) => referents(heap, few)?,
        SetSpec::Dominators(_) => dominators(heap, few),
        SetSpec::Dominated(_) => {
            let below = few.flat_map(|o| heap.dominated(Some(o)));
            Selection::of(heap, below.take(look.ask * 100))
        }
        _ => {
            let mut found: Vec<ObjIdx> = few.collect();
            let mut at = 0;
            while found.len() < look.ask * 100 && at < found.len() {
                found.extend(heap.dominated(Some(found[at])).take(look.ask));
                at += 1;
            }
            Selection::of(heap, found)
        }
    }))
}

/// The objects that refer to some objects.
fn holders(
    heap: &Heap,
    objects: impl Iterator<Item = ObjIdx>,
    counts: impl Fn(&ObjIdx) -> bool,
) -> Result<Selection, SetError> {
    let mut found = Selection::none(heap);
    for object in objects {
        for holder in heap.inbound(object)?.iter().filter(|o| counts(o)) {
            found.insert(*holder);
        }
    }
    Ok(found)
}

/// The objects that some objects refer to, except their classes.
fn referents(heap: &Heap, objects: impl Iterator<Item = ObjIdx>) -> Result<Selection, SetError> {
    let mut found = Selection::none(heap);
    for object in objects {
        for reference in heap.outbound(object)? {
            if reference.via != heap_graph::Via::Class {
                found.insert(reference.target);
            }
        }
    }
    Ok(found)
}

/// The objects that immediately dominate some objects.
fn dominators(heap: &Heap, objects: impl Iterator<Item = ObjIdx>) -> Selection {
    let columns = heap.columns();
    let above = objects.filter_map(|o| match columns.dominator(o) {
        Dominator::Object(above) => Some(above),
        _ => None,
    });
    Selection::of(heap, above)
}

/// A flag per class.
fn flags(heap: &Heap, test: impl Fn(ClassIdx) -> bool) -> Vec<bool> {
    (0..heap.classes().len() as u32)
        .map(|class| test(ClassIdx(class)))
        .collect()
}

/// A flag per class: whether it is of a package or loader. `None` if no class is, and no object has the id of the loader.
fn owned(heap: &Heap, spec: &SetSpec) -> Option<Vec<bool>> {
    let by = match spec {
        SetSpec::Loader(_) => GroupBy::Loader,
        _ => GroupBy::Package,
    };
    let groups = ClassGroups::new(heap, by);
    let wanted: Vec<bool> = groups
        .keys
        .iter()
        .map(|key| match (key, spec) {
            (GroupKey::Loader { object, .. }, SetSpec::Loader(id)) => object.0 == *id,
            (GroupKey::Package { package }, SetSpec::Package(name)) => package == name,
            _ => false,
        })
        .collect();
    let is_object = matches!(spec, SetSpec::Loader(id) if heap.find(*id).is_some());
    let is_known = is_object || wanted.contains(&true);
    is_known.then(|| flags(heap, |class| wanted[groups.of[class.0 as usize] as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_read_back_as_written() {
        for text in [
            "all",
            "unreachable",
            "roots",
            "roots:JNI_GLOBAL",
            "object:0x10,0x18",
            "class:java.lang.String",
            "sub:0x7f00",
            "loader:0x0",
            "package:",
            "heap:app",
            "site:12",
            "retained:in:class:a.B",
            "dominators:out:dominated:object:0x8",
            "class:a.B and retained:object:0x10 and heap:app",
            "retained:(class:a.B and in:(heap:app and all)) and site:1",
            "sql:(select id from objects where shallow > 16 and retained > 16)",
            "in:oql:(SELECT * FROM a.B) and query:(select f%28x%29 from t where a like '%25')",
        ] {
            let spec: SetSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        for text in [
            "",
            "class:",
            "object:zz",
            "retained",
            "site:x",
            "of:all",
            "sql:",
            "sql:()",
            "sql:all",
        ] {
            assert!(text.parse::<SetSpec>().is_err(), "{text}");
        }
        assert!("in:".repeat(50).parse::<SetSpec>().is_err());
        assert!("(".repeat(10_000).parse::<SetSpec>().is_err());
        let deep = format!("{}all{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(deep.parse::<SetSpec>().is_err());
    }

    #[test]
    fn a_query_in_a_set_is_answered_by_whoever_can() {
        let check = |set: &str, word: &str, text: &str| {
            let spec: SetSpec = set.parse().unwrap();
            let mut asked = Vec::new();
            let resolved = spec.resolve(&mut |word, text| {
                asked.push((word, text.to_owned()));
                Ok::<_, SetError>(vec![ObjectId(16)])
            });
            assert_eq!(asked, [(word, text.to_owned())]);
            resolved.unwrap().to_string()
        };
        let set = "retained:sql:(select f(id) from objects where a > 1 and b)";
        let text = "select f(id) from objects where a > 1 and b";
        assert_eq!(check(set, "sql", text), "retained:object:0x10");
        let set = "in:(jhat:(a %28 100% %) and all)";
        assert_eq!(check(set, "jhat", "a ( 100% %"), "in:(object:0x10 and all)");
    }
}
