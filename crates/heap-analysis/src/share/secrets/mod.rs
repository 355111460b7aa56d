//! Passwords, keys and tokens in the texts of a heap: found by their pattern (`secrets.toml`), and by the name of the
//! field or map key that holds them.
//!
//! One walk over the arrays of bytes and chars, whatever owns them: a password in a `char[]` counts,
//! and one in a StringBuilder too. One walk over the instances for names of fields, and a third one
//! for the entries of maps. Long texts are searched in pieces that overlap.
//!
//! In a dump that `tenure redact` wrote, the fields with the names of secrets have tokens. Most of the longer texts of such
//! a dump are tokens, and a text that may be one is counted instead of listed; one that `--keep` left readable is listed.

mod pieces;
mod rules;

use crate::objects::describe::Address;
use crate::objects::fields::field_ref;
use crate::sets::object_set::Place;
use crate::sets::scope::Scope;
use crate::share::redact::{has_letters, is_like_token};
use crate::tables::ranking::cut;
use heap_graph::{
    ClassIdx, Columns, ContentVisitor, Control, Heap, HeapError, ObjIdx, ObjectView, string_text,
};
use hprof::BasicType;
use pieces::{PIECE, pieces, texts_of};
use rules::Values;
pub use rules::{SecretRuleError, SecretRules};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Dumps with fewer long texts are not taken for redacted ones.
const LEAST_TOKENS: u64 = 100;

/// A secret that was found in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Secret {
    /// Name of the rule that found it, or `field NAME` or `key NAME`.
    pub rule: String,
    /// Id of the array that has the text.
    pub object: Address,
    /// Class of this array.
    pub class: String,
    /// Length of the text in characters.
    pub length: u64,
    /// The text; if secrets are hidden, its first few characters.
    pub text: String,
}

/// The secrets of a heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Secrets {
    /// Number of texts that were searched.
    pub searched: u64,
    /// Number of secrets by rule.
    pub rules: BTreeMap<String, u64>,
    /// The secrets by rule and object; each array is listed once per rule.
    pub found: Vec<Secret>,
    /// Number of secrets that were left out.
    pub omitted: u64,
    /// Number of texts that look like secrets but are tokens that `tenure redact` has put in place of the originals.
    /// They are not listed.
    pub tokens: u64,
}

/// What to examine.
#[derive(Clone, Debug)]
pub struct SecretOptions {
    /// Include unreachable objects: the collector does not overwrite the memory that it frees.
    pub all: bool,
    /// Show the texts instead of their first characters.
    pub show: bool,
    /// The most secrets to list.
    pub top: Option<usize>,
}

type Hits = Vec<(ObjIdx, String, String)>;

struct TextPass<'a> {
    columns: Columns<'a>,
    rules: SecretRules,
    scope: &'a Scope,
    searched: u64,
    /// Long texts that may be tokens, and others.
    tokens: u64,
    texts: u64,
    hits: Hits,
}

impl ContentVisitor for TextPass<'_> {
    const INSTANCES: bool = false;
    const OBJECT_ARRAYS: bool = false;

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, _: u32, all: &[u8]) {
        if !matches!(element, BasicType::Byte | BasicType::Char)
            || all.len() < 8
            || !self.scope.has(&self.columns, object)
        {
            return;
        }
        self.searched += 1;
        let data = &all[..all.len().min(PIECE)];
        if has_letters(element, data) && data.iter().any(|b| *b != 0) {
            match is_like_token(element, data) {
                true => self.tokens += 1,
                false => self.texts += 1,
            }
        }
        for (piece, is_last) in pieces(all) {
            let is_first = piece.as_ptr() == all.as_ptr();
            for text in texts_of(element, piece) {
                // What touches the border of a piece is whole in the one beside it.
                let (begin, end) = (!is_first, text.len() + usize::from(is_last));
                let is_whole = |at: Range<usize>| at.start >= usize::from(begin) && at.end < end;
                for (rule, part) in self.rules.matching(&text, is_whole) {
                    let name = self.rules.name(rule).to_owned();
                    self.hits.push((object, name, part.to_owned()));
                }
            }
        }
    }
}

/// Instances with a field that has the name of a secret, and entries of maps with such a key.
struct FieldPass<'a> {
    heap: &'a Heap,
    columns: Columns<'a>,
    /// For each class, the name and offset of the fields with the name of a secret.
    revealing: &'a [Vec<(String, Values, Place)>],
    /// For each class, key and value of map entries.
    entries: &'a [Option<(Place, Place)>],
    scope: &'a Scope,
    fields: Vec<(ObjIdx, &'a str, Values)>,
    pairs: Vec<(ObjIdx, ObjIdx)>,
}

impl ContentVisitor for FieldPass<'_> {
    const OBJECT_ARRAYS: bool = false;
    const PRIMITIVE_ARRAYS: bool = false;

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let revealing = &self.revealing[class.0 as usize];
        let entry = self.entries[class.0 as usize];
        if revealing.is_empty() && entry.is_none() || !self.scope.has(&self.columns, object) {
            return;
        }
        let ids = self.heap.id_size();
        for (name, values, place) in revealing {
            if let Some(value) = self.heap.find(place.id(fields, ids)) {
                self.fields.push((value, name, *values));
            }
        }
        if let Some((key, value)) = entry
            && let Some(key) = self.heap.find(key.id(fields, ids))
            && let Some(value) = self.heap.find(value.id(fields, ids))
        {
            self.pairs.push((key, value));
        }
    }
}

/// Finds secrets.
pub fn secrets(
    heap: &Heap,
    rules: &SecretRules,
    options: &SecretOptions,
    control: &Control<'_>,
) -> Result<Secrets, HeapError> {
    let scope = &Scope::of_all(options.all);
    let passes = heap.walk_contents("texts", control, || TextPass {
        columns: heap.columns(),
        // Each clone has its own scratch space, so that workers do not wait for each other.
        rules: rules.clone(),
        scope,
        searched: 0,
        tokens: 0,
        texts: 0,
        hits: Vec::new(),
    })?;
    let searched = passes.iter().map(|p| p.searched).sum();
    let tokens: u64 = passes.iter().map(|p| p.tokens).sum();
    let texts: u64 = passes.iter().map(|p| p.texts).sum();
    let is_redacted = tokens >= LEAST_TOKENS && tokens > texts;
    let mut hits: Hits = passes.into_iter().flat_map(|p| p.hits).collect();
    let (revealing, entries) = shapes(heap, rules);
    let passes = heap.walk_contents("fields", control, || FieldPass {
        heap,
        columns: heap.columns(),
        revealing: &revealing,
        entries: &entries,
        scope,
        fields: Vec::new(),
        pairs: Vec::new(),
    })?;
    for pass in passes {
        for (value, name, values) in pass.fields {
            let text = text_of(heap, value).filter(|(_, text)| values.include(text));
            hits.extend(text.map(|(array, text)| (array, format!("field {name}"), text)));
        }
        for (key, value) in pass.pairs {
            let Some(name) = heap.string(key) else {
                continue;
            };
            let values = rules.values_of(&name);
            hits.extend(values.and_then(|values| {
                let (array, text) = text_of(heap, value)?;
                values
                    .include(&text)
                    .then(|| (array, format!("key {name}"), text))
            }));
        }
    }
    hits.extend(statics(heap, rules));
    let (tokens, hits): (Hits, Hits) = hits
        .into_iter()
        .partition(|(object, ..)| is_redacted && is_token(heap, *object));
    let tokens: BTreeSet<_> = tokens
        .iter()
        .map(|(object, rule, _)| (object.0, rule))
        .collect();
    let found = answer(heap, hits, searched, options);
    Ok(Secrets {
        tokens: tokens.len() as u64,
        ..found
    })
}

/// Whether an array may have a token in the place of its content.
fn is_token(heap: &Heap, object: ObjIdx) -> bool {
    match heap.object(object) {
        Ok(ObjectView::PrimitiveArray { element, data, .. }) => is_like_token(element, data),
        _ => false,
    }
}

fn answer(heap: &Heap, hits: Hits, searched: u64, options: &SecretOptions) -> Secrets {
    let mut found: Vec<Secret> = hits
        .into_iter()
        .map(|(object, rule, text)| Secret {
            rule,
            object: Address(heap.id(object)),
            class: heap.class(heap.class_of(object)).name.clone(),
            length: text.chars().count() as u64,
            text: if options.show { text } else { hidden(&text) },
        })
        .collect();
    found.sort();
    found.dedup_by(|a, b| a.rule == b.rule && a.object == b.object);
    let mut by_rule: BTreeMap<String, u64> = BTreeMap::new();
    for secret in &found {
        *by_rule.entry(secret.rule.clone()).or_default() += 1;
    }
    let omitted = cut(&mut found, options.top);
    Secrets {
        searched,
        rules: by_rule,
        found,
        omitted,
        tokens: 0,
    }
}

/// The first characters: at most four, and at most a quarter of the text.
fn hidden(text: &str) -> String {
    let count = text.chars().count();
    let mut shown: String = text.chars().take((count / 4).min(4)).collect();
    shown.push('…');
    shown
}

type Shapes = (
    Vec<Vec<(String, Values, Place)>>,
    Vec<Option<(Place, Place)>>,
);

fn shapes(heap: &Heap, rules: &SecretRules) -> Shapes {
    (0..heap.classes().len() as u32)
        .map(|class| {
            let slots = heap.slots(ClassIdx(class));
            let mut revealing = Vec::new();
            for slot in slots.iter().filter(|s| s.kind == BasicType::Object) {
                let info = heap.class(slot.declared_in);
                let name = &info.fields[slot.field].name;
                if let Some(values) = rules.values_of(name) {
                    let place = Place {
                        kind: slot.kind,
                        offset: slot.offset,
                    };
                    revealing.push((format!("{}.{name}", info.name), values, place));
                }
            }
            let key = Place::of(heap, &slots, "key");
            let value = ["val", "value"]
                .iter()
                .find_map(|n| Place::of(heap, &slots, n));
            (revealing, key.zip(value))
        })
        .unzip()
}

/// The array and the text of a string, a `char[]` or a `byte[]`, unless it is cleared.
fn text_of(heap: &Heap, object: ObjIdx) -> Option<(ObjIdx, String)> {
    let (array, text) = match heap.string(object) {
        Some(text) => (field_ref(heap, object, "value")?, text),
        None => match heap.object(object).ok()? {
            ObjectView::PrimitiveArray { element, data, .. } => {
                (object, string_text(element, None, data)?)
            }
            _ => return None,
        },
    };
    (!text.trim_matches(['\0', ' ']).is_empty()).then_some((array, text))
}

fn statics<'h>(
    heap: &'h Heap,
    rules: &'h SecretRules,
) -> impl Iterator<Item = (ObjIdx, String, String)> + 'h {
    heap.classes().iter().flat_map(move |info| {
        let objects = info.statics.iter().filter(|s| s.kind == BasicType::Object);
        objects.filter_map(move |field| {
            let values = rules.values_of(&field.name)?;
            let value = heap.find(hprof::ObjectId(field.bits))?;
            let (array, text) = text_of(heap, value)?;
            // A constant whose value is the name of a property or header is not a secret: CREDENTIALS =
            // "jmx.remote.credentials".
            let is_constant = !field.name.chars().any(char::is_lowercase) && array != value;
            let names_one = is_constant && rules.values_of(&text).is_some();
            (values.include(&text) && !names_one)
                .then(|| (array, format!("field {}.{}", info.name, field.name), text))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_secret_says_little() {
        assert_eq!(hidden("hunter2"), "h…");
        assert_eq!(hidden("abc"), "…");
    }
}
