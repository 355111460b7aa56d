//! What stays the same about an object from one dump to the next: not its address, but its class,
//! the field that holds it, and its name or key.

use crate::objects::describe::{shorten, thread_name};
use crate::objects::fields::{field_ref, is_subclass_of};
use heap_graph::{Heap, ObjIdx, ObjectKind};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::fmt;

/// The properties by which objects of different dumps are matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Label {
    /// The field of the dominating object that holds it; `null` at the top of the tree, for array elements, and if no
    /// single reference holds it.
    pub field: Option<String>,
    /// Its class, or `class X` for the class object of X, without the numbers that differ between runs.
    pub class: String,
    /// The name of a thread or the key of a map entry; `null` for other objects.
    pub name: Option<String>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field} → ")?;
        }
        f.write_str(&self.class)?;
        if let Some(name) = &self.name {
            write!(f, " \"{name}\"")?;
        }
        Ok(())
    }
}

/// A class name without what the JVM counts or draws at run time: the numbers of lambda classes,
/// proxies and generated accessors.
pub fn stable_name(class: &str) -> String {
    // All that is searched for contains one of these, and most names contain none.
    if !class.contains(['$', '+', 'G']) {
        return class.to_owned();
    }
    let mut name = class;
    if let Some(at) = name.find("+0x") {
        name = &name[..at];
    }
    // The marker, and whether only a number follows it: `$ProxyRegistry` is a class of the program.
    for (marker, is_numbered) in [
        ("$$Lambda", false),
        ("$Proxy", true),
        ("GeneratedMethodAccessor", true),
        ("GeneratedConstructorAccessor", true),
        ("GeneratedSerializationConstructorAccessor", true),
        ("$$FastClassBySpringCGLIB$$", false),
        ("$$EnhancerBySpringCGLIB$$", false),
    ] {
        if let Some((before, after)) = name.split_once(marker)
            && (!is_numbered || begins_with_a_number(after))
        {
            name = &name[..before.len() + marker.len()];
        }
    }
    let arrays = class.len() - class.trim_end_matches("[]").len();
    let mut stable = name.trim_end_matches("[]").to_owned();
    stable.push_str(&"[]".repeat(arrays / 2));
    stable
}

/// Whether a number, or nothing, comes before the end of the name or its next part.
fn begins_with_a_number(rest: &str) -> bool {
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The label of an object, given the field that holds it.
pub(crate) fn label(heap: &Heap, object: ObjIdx, field: Option<String>) -> Label {
    let class = heap.class_of(object);
    if let Some(of) = heap.class_by_object(object) {
        return Label {
            field,
            class: format!("class {}", stable_name(&heap.class(of).name)),
            name: None,
        };
    }
    let name = if is_subclass_of(heap, class, "java.lang.Thread") {
        thread_name(heap, object).map(|n| shorten(&without_numbers(&n)))
    } else {
        None
    };
    Label {
        field,
        class: stable_name(&heap.class(class).name),
        name,
    }
}

/// `pool-3-thread-12` is `pool-#-thread-#`: threads of a pool are one group.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

/// The key of a map's entry as text, if it has one.
pub(crate) fn key_text(heap: &Heap, entry: ObjIdx) -> Option<String> {
    let key = field_ref(heap, entry, "key").or_else(|| field_ref(heap, entry, "referent"))?;
    match heap.kind(key) {
        ObjectKind::Class => heap
            .class_by_object(key)
            .map(|c| stable_name(&heap.class(c).name)),
        ObjectKind::Instance => crate::objects::describe::value_of(heap, key),
        _ => None,
    }
}

/// The fields by which an object holds the objects directly below it.
pub(crate) fn fields_of(heap: &Heap, object: ObjIdx) -> FxHashMap<ObjIdx, String> {
    if heap.kind(object) == ObjectKind::ObjectArray {
        return FxHashMap::default();
    }
    let mut fields = FxHashMap::default();
    for reference in heap.outbound(object).unwrap_or_default() {
        let name = reference.via.to_string();
        if !name.starts_with('<') {
            fields.entry(reference.target).or_insert(name);
        }
    }
    fields
}

/// A short name for a list of words that stays the same: 16 hexadecimal digits.
pub(crate) fn signature<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    format!("{:016x}", crate::sets::object_set::hash_of(0, &bytes))
}

/// Whether one of the patterns fits a name.
pub(crate) fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Does a name fit a pattern in which `*` stands for any characters?
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let head = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(head) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((tail, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_a_run_draws() {
        for (name, want) in [
            ("a.B", "a.B"),
            ("a.B[][]", "a.B[][]"),
            ("a.B$$Lambda+0x00007f01", "a.B$$Lambda"),
            ("a.B$$Lambda$14", "a.B$$Lambda"),
            ("jdk.proxy2.$Proxy17[]", "jdk.proxy2.$Proxy[]"),
            ("my.$ProxyRegistry", "my.$ProxyRegistry"),
            ("a.GeneratedMethodAccessor7", "a.GeneratedMethodAccessor"),
            ("a.GeneratedMethodAccessors", "a.GeneratedMethodAccessors"),
        ] {
            assert_eq!(stable_name(name), want);
        }
        assert_eq!(without_numbers("pool-3-thread-12"), "pool-#-thread-#");
    }

    #[test]
    fn patterns_fit_from_end_to_end() {
        for (pattern, name, want) in [
            ("a.B", "a.B", true),
            ("a.B", "a.Bc", false),
            ("a.*", "a.b.C", true),
            ("*.C", "a.b.C", true),
            ("a.*.C", "a.b.C", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
