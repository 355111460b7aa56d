//! Restores names that ProGuard or R8 changed: reads a mapping file and renames the classes, fields and frames of an
//! opened heap.
//!
//! ```
//! let map = heap_graph::Mapping::parse("shop.Order -> a.b:\n    int total -> c\n");
//! assert_eq!(map.class("a.b[]"), Some("shop.Order[]".to_owned()));
//! assert_eq!(map.field("a.b", "c"), Some("total"));
//! ```

use crate::Heap;
use rustc_hash::FxHashMap;

/// A method of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Method {
    /// Lines of the new code that it covers; all lines if there are none.
    lines: Option<(i32, i32)>,
    /// Original name, with its class if it was inlined from another class.
    name: String,
    /// Line of the original code that the first one stands for.
    first: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Class {
    name: String,
    source: Option<String>,
    fields: FxHashMap<String, String>,
    methods: FxHashMap<String, Vec<Method>>,
}

/// A mapping file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// By new name.
    classes: FxHashMap<String, Class>,
}

impl Mapping {
    /// Reads the text of a mapping file. Unknown lines are ignored, as in retrace.
    pub fn parse(text: &str) -> Mapping {
        let mut classes: FxHashMap<String, Class> = FxHashMap::default();
        let mut current = String::new();
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(comment) = trimmed.strip_prefix('#') {
                if let Some(class) = classes.get_mut(&current) {
                    class.source = source_file(comment).or_else(|| class.source.take());
                }
                continue;
            }
            let Some((old, new)) = trimmed.split_once(" -> ") else {
                continue;
            };
            if !line.starts_with([' ', '\t']) {
                let new = new.trim_end_matches(':').to_owned();
                let class = classes.entry(new.clone()).or_default();
                class.name = old.to_owned();
                current = new;
            } else if let Some(class) = classes.get_mut(&current) {
                member(class, old, new);
            }
        }
        Mapping { classes }
    }

    /// Number of classes in it.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// True if it has no names.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The original name of a class or array class.
    pub fn class(&self, name: &str) -> Option<String> {
        let base = name.trim_end_matches("[]");
        let class = self.classes.get(base)?;
        Some(format!("{}{}", class.name, &name[base.len()..]))
    }

    /// The original name of a field of a class, both as the dump has them.
    pub fn field(&self, class: &str, field: &str) -> Option<&str> {
        let class = self.classes.get(class)?;
        class.fields.get(field).map(String::as_str)
    }

    /// Original class, method and line of a frame.
    fn frame(&self, class: &str, method: &str, line: i32) -> Option<(String, String, i32)> {
        let known = self.classes.get(class)?;
        let covers = |m: &&Method| match m.lines {
            Some((from, to)) => (from..=to).contains(&line),
            None => true,
        };
        let methods = known.methods.get(method).map_or(&[][..], Vec::as_slice);
        let Some(found) = methods.iter().find(covers).or_else(|| {
            // Without a line all candidates of one name say the same.
            let first = methods.first()?;
            methods
                .iter()
                .all(|m| m.name == first.name)
                .then_some(first)
        }) else {
            return Some((known.name.clone(), method.to_owned(), line));
        };
        let line = match (found.lines, found.first) {
            (Some((from, _)), Some(first)) if line > 0 => first + (line - from),
            _ => line,
        };
        Some(match found.name.rsplit_once('.') {
            Some((class, method)) => (class.to_owned(), method.to_owned(), line),
            None => (known.name.clone(), found.name.clone(), line),
        })
    }
}

/// `{"id":"sourceFile","fileName":"Order.kt"}`
fn source_file(comment: &str) -> Option<String> {
    let rest = comment.split("\"fileName\":\"").nth(1)?;
    comment.contains("sourceFile").then_some(())?;
    rest.split('"').next().map(str::to_owned)
}

/// `int total`, `void run()`, `3:5:void run(int):10:12`, `1:1:void other.Inlined.run():7:7`
fn member(class: &mut Class, old: &str, new: &str) {
    let Some((head, rest)) = old.split_once('(') else {
        if let Some((_, name)) = old.rsplit_once(' ') {
            class.fields.insert(new.to_owned(), name.to_owned());
        }
        return;
    };
    let mut words = head.splitn(3, ':');
    let (lines, signature) = match (words.next(), words.next(), words.next()) {
        (Some(from), Some(to), Some(signature)) => {
            (from.parse().ok().zip(to.parse().ok()), signature)
        }
        _ => (None, head),
    };
    let name = signature.rsplit(' ').next().unwrap_or(signature);
    let first = rest.split(':').nth(1).and_then(|n| n.parse().ok());
    class
        .methods
        .entry(new.to_owned())
        .or_default()
        .push(Method {
            lines,
            name: name.to_owned(),
            first,
        });
}

impl Heap {
    /// Restores the names that classes, fields and frames had before ProGuard or R8.
    pub fn rename(&mut self, mapping: &Mapping) {
        // The stacks are read on first use: read them now, to have them changed.
        self.detail();
        for info in self.classes_mut() {
            let class = std::mem::take(&mut info.name);
            for field in &mut info.fields {
                if let Some(old) = mapping.field(&class, &field.name) {
                    field.name = old.to_owned();
                }
            }
            for field in &mut info.statics {
                if let Some(old) = mapping.field(&class, &field.name) {
                    field.name = old.to_owned();
                }
            }
            info.name = mapping.class(&class).unwrap_or(class);
        }
        for frame in self.frames_mut() {
            if let Some((class, method, line)) =
                mapping.frame(&frame.class, &frame.method, frame.line)
            {
                let known = mapping.classes.get(&frame.class);
                if let Some(source) = known.and_then(|c| c.source.clone()) {
                    frame.source = source;
                }
                (frame.class, frame.method, frame.line) = (class, method, line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_inlined_methods_get_their_names_back() {
        let map = Mapping::parse(
            "# compiler: R8\nshop.Order -> a.b:\n# {\"id\":\"sourceFile\",\"fileName\":\"Order.kt\"}\n\
             \x20   int total -> c\n    3:5:void pay(int):10:12 -> d\n\
             \x20   6:6:void util.Money.add():7:7 -> d\n    void close() -> e\n",
        );
        assert_eq!(map.len(), 1);
        assert_eq!(map.field("a.b", "c"), Some("total"));
        assert_eq!(map.field("a.b", "x"), None);
        let frame = |method, line| {
            let (class, method, line) = map.frame("a.b", method, line).expect("a class");
            format!("{class}.{method}:{line}")
        };
        assert_eq!(frame("d", 4), "shop.Order.pay:11");
        assert_eq!(frame("d", 6), "util.Money.add:7");
        assert_eq!(frame("e", -1), "shop.Order.close:-1");
        assert_eq!(frame("zz", 1), "shop.Order.zz:1");
        assert_eq!(map.classes["a.b"].source.as_deref(), Some("Order.kt"));
    }
}
