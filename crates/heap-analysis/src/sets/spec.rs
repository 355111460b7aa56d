//! What a set is called: the specification of a set, its text and its errors.

use crate::tables::roots::kind_named;
use heap_graph::HeapError;
use hprof::{HeapTag, ObjectId};
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
    /// `object:0x1,0x2` or only `0x1,0x2`: the objects with these ids.
    Objects(Vec<ObjectId>),
    /// `class:NAME`, `class:0xID` or only `NAME`: objects of exactly this class.
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
    #[error("{0}: expected a set such as com.example.Session, 0x7f001000 or retained:class:NAME")]
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
            word if rest.is_none() => SetSpec::alone(word).ok_or_else(wrong)?,
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

    /// The set of a text without a word before it: ids of objects, or the name of a class.
    fn alone(text: &str) -> Option<SetSpec> {
        let ids: Result<Vec<ObjectId>, _> = text.split(',').map(str::parse).collect();
        if let Ok(ids) = ids {
            return Some(SetSpec::Objects(ids));
        }
        let begins_name = |c: char| !c.is_ascii_digit() && !"@-.".contains(c);
        let is_in_name = |c: char| !c.is_whitespace() && !"(),'\"*?<>=".contains(c);
        let is_name = text.starts_with(begins_name) && text.chars().all(is_in_name);
        (is_name && !DIALECTS.contains(&text)).then(|| SetSpec::Class(text.to_owned()))
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
        self.any(&|set| matches!(set, SetSpec::In(_)))
    }

    /// Whether it may have unreachable objects without a request for them.
    pub fn has_unreachable(&self) -> bool {
        self.any(&|set| matches!(set, SetSpec::Unreachable | SetSpec::Objects(_)))
    }

    /// Whether a test holds for this set or one that it is made of.
    fn any(&self, test: &impl Fn(&SetSpec) -> bool) -> bool {
        test(self)
            || match self {
                SetSpec::And(sets) => sets.iter().any(|set| set.any(test)),
                SetSpec::In(set)
                | SetSpec::Out(set)
                | SetSpec::Dominated(set)
                | SetSpec::Dominators(set)
                | SetSpec::Retained(set) => set.any(test),
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
            "sql",
            "sql:",
            "sql:()",
            "sql:all",
            "16",
            "0x",
            "@zz",
            "0x10,",
            "a.B c",
            "select * from a.B",
        ] {
            assert!(text.parse::<SetSpec>().is_err(), "{text}");
        }
        assert!("in:".repeat(50).parse::<SetSpec>().is_err());
        assert!("(".repeat(10_000).parse::<SetSpec>().is_err());
        let deep = format!("{}all{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(deep.parse::<SetSpec>().is_err());
    }

    #[test]
    fn a_class_name_and_an_object_id_alone_are_sets() {
        for (text, written) in [
            ("java.util.HashMap", "class:java.util.HashMap"),
            ("shop.Shop$Order[]", "class:shop.Shop$Order[]"),
            ("[B", "class:[B"),
            ("a.B$$Lambda/0x7f00c0", "class:a.B$$Lambda/0x7f00c0"),
            ("0x10", "object:0x10"),
            ("@10,0x18", "object:0x10,0x18"),
            ("retained:0x10", "retained:object:0x10"),
            ("in:(a.B and heap:app)", "in:(class:a.B and heap:app)"),
            ("a.B and unreachable", "class:a.B and unreachable"),
        ] {
            let spec: SetSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), written);
        }
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
