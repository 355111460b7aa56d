//! Parameters of a request: the query part of an address, validated.

use crate::fault::Fault;
use heap_analysis::paths::Exclusions;
use heap_analysis::sets::similar::nearest;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::SortBy;
use heap_graph::{Heap, ObjIdx};
use hprof::NoObjectId;
use regex::Regex;
use std::collections::BTreeMap;

/// Rows of a page by default.
pub const ROWS: usize = 100;

/// The most rows of one answer.
pub const MOST_ROWS: usize = 1_000_000;

/// Reads `5`, `0.5` or `0.5%`.
///
/// # Errors
/// A sentence that describes what is expected.
pub fn percent(text: &str) -> Result<f64, &'static str> {
    let number = text.trim().trim_end_matches('%').trim_end().parse();
    number
        .ok()
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or("expected a percentage from 0 to 100, such as 5 or 0.5%")
}

/// The parameters, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// From pairs; if a name is given twice, the last value counts.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Params {
        Params(pairs.into_iter().filter(|(_, v)| !v.is_empty()).collect())
    }

    /// From `a=1&b=2` that Tenure itself has written, without escapes.
    pub fn parse(text: &str) -> Params {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Params::new(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())))
    }

    /// Adds or replaces a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Params {
        self.0.remove(name);
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A normal form of the request: equal requests have the same key and the same answer.
    pub fn key(&self, view: &str) -> String {
        let asked: Vec<_> = self.iter().filter(|(name, _)| *name != "soon").collect();
        format!("{view} {asked:?}")
    }

    /// All parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// A whole number.
    pub fn number(&self, name: &str, default: usize) -> Result<usize, Fault> {
        match self.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| {
                Fault::bad(format!(
                    "{name}={text}: expected a whole number of at least 0"
                ))
            }),
        }
    }

    /// A percentage.
    pub fn percent(&self, name: &str, default: f64) -> Result<f64, Fault> {
        let read =
            |text| percent(text).map_err(|error| Fault::bad(format!("{name}={text}: {error}")));
        self.get(name).map_or(Ok(default), read)
    }

    /// One of several words.
    pub fn one_of(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, Fault> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let word = words.iter().find(|word| **word == text);
        let expected = || format!("{name}={text}: expected one of {}", words.join(", "));
        word.copied()
            .map(Some)
            .ok_or_else(|| Fault::bad(expected()))
    }

    /// Refuses parameters that `subject` does not have: a user could take an answer that ignores one for an answer that
    /// respects it.
    ///
    /// # Errors
    /// The first such parameter, with the ones that there are.
    pub fn check_names(&self, subject: &str, known: &[&str]) -> Result<(), Fault> {
        // Pages may send `soon` to every view.
        let mut named = self.iter().filter(|(name, _)| *name != "soon");
        let Some((unknown, _)) = named.find(|(name, _)| !known.contains(name)) else {
            return Ok(());
        };
        let hint = nearest(unknown, known).map(|name| format!("; did you mean {name}?"));
        let all = match known {
            [] => "it has none".to_owned(),
            _ => format!("it has {}", known.join(", ")),
        };
        Err(Fault::bad(format!(
            "{unknown}: {subject} has no such parameter ({all}){}",
            hint.unwrap_or_default()
        )))
    }

    /// `1` or `true`, `0` or `false`; false by default.
    ///
    /// # Errors
    /// It is another word.
    pub fn switch(&self, name: &str) -> Result<bool, Fault> {
        match self.get(name) {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(other) => Err(Fault::bad(format!("{name}={other}: expected 1 or 0"))),
        }
    }

    /// Whether it is `1` or `true`. [`switch`](Self::switch) has refused other words before, when the request was checked.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("1" | "true"))
    }

    /// The index of the first row of the page.
    pub fn offset(&self) -> Result<usize, Fault> {
        self.number("offset", 0)
    }

    /// The number of rows.
    pub fn limit(&self, default: usize) -> Result<usize, Fault> {
        Ok(self.number("limit", default)?.min(MOST_ROWS))
    }

    /// A regular expression.
    pub fn regex(&self, name: &str) -> Result<Option<Regex>, Fault> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let made = regex::RegexBuilder::new(text).size_limit(1 << 20).build();
        made.map(Some)
            .map_err(|error| Fault::bad(format!("{name}: {error}")))
    }

    /// The object with the id in the parameter `id`.
    pub fn object(&self, heap: &Heap) -> Result<ObjIdx, Fault> {
        self.optional_object(heap)?
            .ok_or_else(|| Fault::bad("id is missing: expected an object id such as 0x7f001000"))
    }

    /// The object with the id in the parameter `id`, if it is given.
    pub fn optional_object(&self, heap: &Heap) -> Result<Option<ObjIdx>, Fault> {
        let Some(text) = self.get("id") else {
            return Ok(None);
        };
        let id = text.parse();
        let id = id.map_err(|error: NoObjectId| Fault::bad(format!("{text}: {error}")))?;
        let found = heap.find(id);
        found
            .map(Some)
            .ok_or_else(|| Fault::not_found(format!("no object {id} in this dump")))
    }

    /// The set in the parameter `set`.
    pub fn set(&self) -> Result<Option<SetSpec>, Fault> {
        let parse = |text: &str| text.parse::<SetSpec>().map_err(Fault::from);
        self.get("set").map(parse).transpose()
    }

    /// The parameter `by`.
    pub fn by(&self) -> Result<GroupBy, Fault> {
        Ok(match self.get("by") {
            None | Some("class") => GroupBy::Class,
            Some("superclass") => GroupBy::Superclass,
            Some("loader") => GroupBy::Loader,
            Some("package") => GroupBy::Package,
            Some("heap") => GroupBy::Heap,
            Some("site") => GroupBy::Site,
            Some(other) => {
                return Err(Fault::bad(format!(
                    "by={other}: expected class, superclass, loader, package, heap or site"
                )));
            }
        })
    }

    /// The parameter `sort`.
    pub fn sort(&self) -> Result<SortBy, Fault> {
        Ok(match self.get("sort") {
            None | Some("retained") => SortBy::Retained,
            Some("shallow") => SortBy::Shallow,
            Some("objects") => SortBy::Objects,
            Some("name") => SortBy::Name,
            Some(other) => {
                return Err(Fault::bad(format!(
                    "sort={other}: expected retained, shallow, objects or name"
                )));
            }
        })
    }

    /// The exclusions to try one after the other: those in `exclude`; without it, all and then none.
    pub fn exclusions(&self) -> Result<Vec<Exclusions>, Fault> {
        Exclusions::to_try(self.get("exclude"))
            .map_err(|error| Fault::bad(format!("exclude={error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_parameter_does_not_have_is_refused_with_the_list() {
        let of = |text: &str| Params::parse(text).one_of("by", &["site", "kind"]);
        assert_eq!(of("by=kind").expect("a word"), Some("kind"));
        assert_eq!(of("from=1").expect("none"), None);
        let fault = of("by=Site").expect_err("another word");
        assert_eq!(fault.message, "by=Site: expected one of site, kind");
    }

    #[test]
    fn percentages_may_have_decimals_and_a_sign() {
        let of = |text: &str| Params::parse(text).percent("threshold", 10.0);
        assert_eq!(of("").expect("the default"), 10.0);
        for (text, number) in [("5", 5.0), ("0.5%", 0.5), ("100 %", 100.0)] {
            assert_eq!(of(&format!("threshold={text}")).expect(text), number);
        }
        for text in ["-1", "101", "NaN", "many", "%"] {
            let fault = of(&format!("threshold={text}")).expect_err(text);
            let start = format!("threshold={text}: expected a percentage from 0 to 100");
            assert!(fault.message.starts_with(&start), "{}", fault.message);
        }
    }
}
