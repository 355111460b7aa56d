//! Passwords, keys and tokens in the texts of a heap: found by their pattern (`secrets.toml`), and by the name of the
//! field or map key that holds them.
//!
//! One walk over the arrays of bytes and chars, whatever owns them: a password in a `char[]` counts,
//! and one in a StringBuilder too. One walk over the instances for names of fields, and a third one
//! for the entries of maps. Long texts are searched in pieces that overlap.
//!
//! In a dump that `tenure redact` wrote, the fields with the names of secrets have tokens. Most of the longer texts of such
//! a dump are tokens, and a text that may be one is counted instead of listed; one that `--keep` left readable is listed.

use crate::objects::describe::Address;
use crate::objects::fields::field_ref;
use crate::sets::object_set::Place;
use crate::sets::scope::Scope;
use crate::share::redact::{has_letters, is_like_token};
use heap_graph::{
    ClassIdx, Columns, ContentVisitor, Control, Heap, HeapError, ObjIdx, ObjectView, string_text,
};
use hprof::BasicType;
use regex::{Regex, RegexSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use thiserror::Error;

const BUILT_IN: &str = include_str!("secrets.toml");

/// How many bytes of a long text are searched at a time, and how many of them once more with the next ones.
const PIECE: usize = 1 << 20;
const OVERLAP: usize = 1 << 12;

/// How many ASCII characters make an array of bytes UTF-16 text.
const WIDE: usize = 8;

/// Dumps with fewer long texts are not taken for redacted ones.
const LEAST_TOKENS: u64 = 100;

/// From how many bytes on the name of a secret also counts at the end of another word: `PGPASSWORD`.
const LONG: usize = 8;

/// A pattern.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    pattern: String,
    /// The digits must end with the check digit of payment cards.
    #[serde(default)]
    luhn: bool,
    /// The last word must be the base64 form of `user:password`.
    #[serde(default)]
    user_password: bool,
}

impl Rule {
    fn accepts(&self, text: &str) -> bool {
        (!self.luhn || luhn(text)) && (!self.user_password || is_user_password(text))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    opaque: Vec<String>,
    #[serde(default, rename = "rule")]
    rules: Vec<Rule>,
}

/// Why rules cannot be used.
#[derive(Debug, Error)]
pub enum SecretRuleError {
    /// It is not TOML, or has unknown keys.
    #[error("{}", crate::toml_error::one_line(.0))]
    Syntax(#[from] toml::de::Error),
    /// A pattern is wrong.
    #[error("{0}")]
    Pattern(#[from] regex::Error),
}

/// The rules by which secrets are found.
#[derive(Clone, Debug)]
pub struct SecretRules {
    rules: Vec<Rule>,
    set: RegexSet,
    single: Vec<Regex>,
    names: Vec<(String, Values)>,
}

/// Which values of a field or key are secrets, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    All,
    Opaque,
}

impl Values {
    fn include(self, text: &str) -> bool {
        let any = |of: fn(&char) -> bool| text.chars().any(|c| of(&c));
        self == Values::All
            || text.len() >= 8
                && any(char::is_ascii_digit)
                && any(char::is_ascii_alphabetic)
                && !any(|c| c.is_whitespace())
    }
}

impl SecretRules {
    /// The built-in rules, extended by those of another text in the same format.
    pub fn new(more: Option<&str>) -> Result<SecretRules, SecretRuleError> {
        let mut file: RuleFile = toml::from_str(BUILT_IN)?;
        if let Some(more) = more {
            let own: RuleFile = toml::from_str(more)?;
            file.rules.extend(own.rules);
            file.fields.extend(own.fields);
            file.opaque.extend(own.opaque);
        }
        let patterns = file.rules.iter().map(|r| r.pattern.as_str());
        Ok(SecretRules {
            set: RegexSet::new(patterns.clone())?,
            single: patterns.map(Regex::new).collect::<Result<_, _>>()?,
            names: named(&file.fields, Values::All)
                .chain(named(&file.opaque, Values::Opaque))
                .collect(),
            rules: file.rules,
        })
    }

    /// The rules that match a text, with the first matching part that counts by its place.
    fn matching<'t>(
        &self,
        text: &'t str,
        counts: impl Fn(Range<usize>) -> bool,
    ) -> Vec<(usize, &'t str)> {
        let hits = self.set.matches(text);
        hits.iter()
            .filter_map(|n| {
                let good =
                    |m: &regex::Match<'_>| counts(m.range()) && self.rules[n].accepts(m.as_str());
                let found = self.single[n].find_iter(text).find(good)?;
                Some((n, found.as_str()))
            })
            .collect()
    }

    /// Which values of a field or key of this name are secrets, if any are.
    fn values_of(&self, name: &str) -> Option<Values> {
        // `user.password`, `spring.datasource.password`
        let last = name.rsplit(['.', ':']).next().unwrap_or_default();
        // Variables of the shell for the current and the previous folder.
        if matches!(last, "PWD" | "OLDPWD") {
            return None;
        }
        let words = words(last);
        let glued = words.concat();
        let ends = |with: &str| {
            let before = glued.len().checked_sub(with.len());
            glued.ends_with(with)
                && (with.len() >= LONG || before.is_some_and(|n| begins(&words, n)))
        };
        let found = self.names.iter().find(|(name, _)| ends(name));
        found.map(|(_, values)| *values)
    }
}

fn named(names: &[String], values: Values) -> impl Iterator<Item = (String, Values)> {
    names.iter().map(move |name| (words(name).concat(), values))
}

/// The words of a name in lower case: `dbPassword`, `DB_PASSWORD` and `db-password` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        let divides = matches!(c, '_' | '-' | ' ');
        if divides || c.is_uppercase() && small {
            words.push(String::new());
        }
        if !divides && let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase() || c.is_ascii_digit();
    }
    words
}

/// Whether a word begins after this many bytes.
fn begins(words: &[String], bytes: usize) -> bool {
    let ends = words.iter().scan(0, |end, word| {
        *end += word.len();
        Some(*end)
    });
    bytes == 0 || ends.into_iter().any(|end| end == bytes)
}

/// The check digit of payment cards (ISO/IEC 7812).
fn luhn(text: &str) -> bool {
    let digits = text.bytes().rev().filter(u8::is_ascii_digit);
    let sum: u32 = digits
        .enumerate()
        .map(|(n, d)| {
            let d = u32::from(d - b'0') << (n % 2);
            if d > 9 { d - 9 } else { d }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether the last word of a text is the base64 form of a user and a password (RFC 7617).
fn is_user_password(text: &str) -> bool {
    let word = text.rsplit(' ').next().unwrap_or_default();
    let decoded = base64(word).and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.filter(|text| !text.chars().any(char::is_control));
    let parts = decoded.as_deref().and_then(|text| text.split_once(':'));
    parts.is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
}

/// The bytes of a text in base64 with its padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - digits.len();
    if padding > 2 || !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in digits.chunks(4) {
        let mut bits = 0u32;
        for digit in four {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - four.len());
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

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
                    let name = self.rules.rules[rule].name.clone();
                    self.hits.push((object, name, part.to_owned()));
                }
            }
        }
    }
}

/// The pieces of a long text, and whether each is the last.
fn pieces(data: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let begins = (0..data.len().saturating_sub(OVERLAP).max(1)).step_by(PIECE - OVERLAP);
    begins.map(|from| {
        let end = data.len().min(from + PIECE);
        (&data[from..end], end == data.len())
    })
}

/// Text in UTF-8 without the parts of characters that a piece begins and ends with.
fn utf8(data: &[u8]) -> Option<&str> {
    let begin = data.iter().take(3).take_while(|b| **b & 0xc0 == 0x80);
    let data = &data[begin.count()..];
    match std::str::from_utf8(data) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&data[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// What the bytes may say. Bytes are text in UTF-8 or else Latin-1; with the high bytes of ASCII characters, in UTF-16,
/// too.
fn texts_of(element: BasicType, data: &[u8]) -> Vec<String> {
    if element != BasicType::Byte {
        return string_text(element, None, data).into_iter().collect();
    }
    let latin = || data.iter().map(|byte| char::from(*byte)).collect();
    let narrow = utf8(data).map_or_else(latin, str::to_owned);
    let high = data.iter().skip(1).step_by(2);
    let is_wide = high.filter(|byte| **byte == 0).take(WIDE).count() == WIDE;
    let wide = is_wide.then(|| string_text(element, Some(1), data));
    std::iter::once(narrow).chain(wide.flatten()).collect()
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
    let keep = options.top.unwrap_or(usize::MAX).min(found.len());
    let omitted = (found.len() - keep) as u64;
    found.truncate(keep);
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
            let secret = values.include(&text) && rules.values_of(&text).is_none();
            secret.then(|| (array, format!("field {}.{}", info.name, field.name), text))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_know_the_forms_and_nothing_else() {
        let rules = SecretRules::new(None).expect("sound rules");
        let names = |text: &str| -> Vec<String> {
            let found = rules.matching(text, |_| true);
            found
                .iter()
                .map(|(n, _)| rules.rules[*n].name.clone())
                .collect()
        };
        for (text, want) in [
            ("AKIAIOSFODNN7EXAMPLE", &["AWS access key"][..]),
            (
                "x -----BEGIN RSA PRIVATE KEY----- y",
                &["private key (PEM)"],
            ),
            ("jdbc:postgresql://app:hunter2@db/x", &["password in a URL"]),
            (
                "jdbc:x;user=a;password=hunter2",
                &["password in a connection string"],
            ),
            ("4111 1111 1111 1111", &["payment card"]),
            ("4111 1111 1111 1112", &[]),
            ("https://example.org/a:b@c", &[]),
            ("password=", &[]),
            ("PWD=/home/user", &[]),
            (
                "export DB_PASSWORD=hunter2",
                &["password in a connection string"],
            ),
            (
                r#"{"dbPassword": "hunter2"}"#,
                &["password in JSON or YAML"],
            ),
            ("db:\n  password: hunter2\n", &["password in JSON or YAML"]),
            ("Password: the one that you chose", &[]),
            (
                "DefaultEndpointsProtocol=https;AccountKey=bXlzZWNyZXRrZXk=;x=y",
                &["key or token in an assignment"],
            ),
            (
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
                &["key or token in an assignment"],
            ),
            ("sk-proj-abcdefghijklmnopqrst", &["OpenAI or Anthropic key"]),
            ("a risk-proj-abcdefghijklmnopqrst", &[]),
            // admin:admin, a:bc, Aladdin:open sesame
            (
                "Authorization: Basic YWRtaW46YWRtaW4=",
                &["HTTP Basic credentials"],
            ),
            ("basic YTpiYw==", &["HTTP Basic credentials"]),
            (
                "{authorization=[Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==]}",
                &["HTTP Basic credentials"],
            ),
            ("Basic authentication/authorization", &[]),
            // user without a password, bytes that are no text, a wrong length
            ("Basic dXNlcjo=", &[]),
            ("Basic AAECOgQF", &[]),
            ("Basic YWRtaW46YWRtaW4", &[]),
            (
                "Bearer abcdefghijklmnopqrstuvwxyz",
                &["Authorization header"],
            ),
        ] {
            assert_eq!(names(text), want, "{text}");
        }
    }

    #[test]
    fn names_of_secrets_are_known_by_their_last_words() {
        let rules = SecretRules::new(None).expect("sound rules");
        for name in [
            "user.Password",
            "_apiKey",
            "dbPassword",
            "DB_PASSWORD",
            "PGPASSWORD",
            "keystorePassword",
            "truststorepassword",
            "AWS_SECRET_ACCESS_KEY",
            "MY_SECRET",
            "jwtSecret",
            "clientsecret",
            "my.secret",
            "encryptionKey",
            "x-api-key",
            "apikey",
            "userPwd",
        ] {
            assert_eq!(rules.values_of(name), Some(Values::All), "{name}");
        }
        for name in ["GITHUB_TOKEN", "token", "my.secret.token", "accessKey"] {
            assert_eq!(rules.values_of(name), Some(Values::Opaque), "{name}");
        }
        for name in [
            "passwordEncoder",
            "key",
            "PWD",
            "env.PWD",
            "OLDPWD",
            "monkey",
            "secretary",
            "",
        ] {
            assert_eq!(rules.values_of(name), None, "{name}");
        }
        assert!(Values::Opaque.include("a1b2c3d4e5"));
        assert!(!Values::Opaque.include("identifier") && !Values::Opaque.include("a token 2"));
    }

    #[test]
    fn a_hidden_secret_says_little() {
        assert_eq!(hidden("hunter2"), "h…");
        assert_eq!(hidden("abc"), "…");
    }

    #[test]
    fn a_piece_of_a_text_begins_and_ends_with_whole_characters() {
        let text = "a\u{e9}\u{1f600}b\u{e9}".as_bytes();
        assert_eq!(utf8(text), Some("a\u{e9}\u{1f600}b\u{e9}"));
        assert_eq!(utf8(&text[2..text.len() - 1]), Some("\u{1f600}b"));
        assert_eq!(utf8(b"a\xe9b"), None);
        let long = vec![b'x'; 2 * PIECE];
        let parts: Vec<_> = pieces(&long)
            .map(|(piece, last)| (piece.len(), last))
            .collect();
        let rest = 2 * OVERLAP;
        assert_eq!(parts, [(PIECE, false), (PIECE, false), (rest, true)]);
        assert_eq!(pieces(&[0; 3]).count(), 1);
    }
}
