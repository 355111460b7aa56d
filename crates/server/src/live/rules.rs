//! What is looked at of each class, by patterns for modules and classes: the options of the Cougaar
//! memory profiler, in a file that may change while the program runs, or on the page.
//!
//! A line is `MODULE CLASS OPTIONS`. The first line that fits a class holds; one that no line fits is
//! looked at in full. What the agent counts does not depend on it, so every change holds at once and
//! for the past as well.
//!
//! ```
//! use server::live::rules::Rules;
//!
//! let rules = Rules::parse("java.base java.util.** size,ratio=0.1\n* java.** off\n").unwrap();
//! assert_eq!(rules.of("java.base", "java.util.ArrayList").unwrap().ratio, 0.1);
//! assert!(rules.of("java.base", "java.lang.String").is_none());
//! assert!(rules.of("", "com.example.Main").unwrap().stack);
//! ```

use super::classes::ClassRow;
use super::history::Delta;
use super::instances::Instances;
use super::table::module;
use profile::{NameId, Profile};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::{PoisonError, RwLock};

/// What is looked at of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Detail {
    /// Its instances can be put in the order in which they were allocated.
    pub time: bool,
    /// The stacks that allocated them.
    pub stack: bool,
    /// How many elements they hold.
    pub size: bool,
    /// How many elements they have room for.
    pub capacity: bool,
    /// Share of the instances that is looked at, above 0 and at most 1.
    pub ratio: f64,
}

/// Everything.
pub const ALL: Detail = Detail {
    time: true,
    stack: true,
    size: true,
    capacity: true,
    ratio: 1.0,
};

/// Only the counts.
const COUNTS: Detail = Detail {
    time: false,
    stack: false,
    size: false,
    capacity: false,
    ratio: 1.0,
};

#[derive(Clone, Debug)]
struct Rule {
    module: Regex,
    class: Regex,
    detail: Option<Detail>,
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    text: String,
}

/// A pattern: `*` stands for any part of a name between dots, `**` for anything, `?` for one character.
fn glob(pattern: &str) -> Result<Regex, regex::Error> {
    let escaped = regex::escape(pattern);
    let body = escaped
        .replace(r"\*\*", ".*")
        .replace(r"\*", "[^.]*")
        .replace(r"\?", "[^.]");
    Regex::new(&format!("^{body}$"))
}

fn detail(words: &str) -> Result<Option<Detail>, String> {
    if words == "off" {
        return Ok(None);
    }
    let mut detail = COUNTS;
    for word in words.split(',') {
        match (word, word.strip_prefix("ratio=")) {
            ("all", _) => {
                detail = Detail {
                    ratio: detail.ratio,
                    ..ALL
                }
            }
            ("count", _) => {}
            ("time", _) => detail.time = true,
            ("stack", _) => detail.stack = true,
            ("size", _) => detail.size = true,
            ("capacity", _) => detail.capacity = true,
            (_, Some(ratio)) => {
                let number = ratio.parse::<f64>().ok();
                let number = number.filter(|ratio| *ratio > 0.0 && *ratio <= 1.0);
                let wrong = || format!("ratio={ratio}: expected a number above 0 and at most 1");
                detail.ratio = number.ok_or_else(wrong)?;
            }
            _ => {
                return Err(format!(
                    "{word}: expected off, all, count, time, stack, size, capacity or ratio=R"
                ));
            }
        }
    }
    Ok(Some(detail))
}

impl Rules {
    /// Reads lines; empty ones and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// The first line that is wrong, with its number.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let mut rules = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| format!("line {}: {what}", n + 1);
            let words: Vec<&str> = line.split_whitespace().collect();
            let [module, class, options] = words[..] else {
                return Err(wrong("expected MODULE CLASS OPTIONS"));
            };
            // Any module, named or not.
            let module = if module == "*" { "**" } else { module };
            rules.push(Rule {
                module: glob(module).map_err(|error| wrong(&error.to_string()))?,
                class: glob(class).map_err(|error| wrong(&error.to_string()))?,
                detail: detail(options).map_err(|what| wrong(&what))?,
            });
        }
        Ok(Rules {
            rules,
            text: text.to_owned(),
        })
    }

    /// The lines.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is looked at of a class; `None` if it is left out. The module is empty for none.
    pub fn of(&self, module: &str, class: &str) -> Option<Detail> {
        let fits = |rule: &&Rule| rule.module.is_match(module) && rule.class.is_match(class);
        self.rules
            .iter()
            .find(fits)
            .map_or(Some(ALL), |rule| rule.detail)
    }

    /// The same for a class of a recording.
    pub fn in_recording(&self, profile: Option<&Profile>, class: &str) -> Option<Detail> {
        let known = profile.and_then(|profile| Some((profile, profile.names.find(class)?)));
        let module = known.and_then(|(profile, id)| module(profile, id));
        self.of(module.unwrap_or(""), class)
    }

    /// Leaves sites out; those of a class without stacks become one.
    pub fn cut_sites(&self, profile: &Profile, deltas: &mut Vec<Delta>) {
        if self.rules.is_empty() {
            return;
        }
        let mut merged: FxHashMap<NameId, Delta> = FxHashMap::default();
        deltas.retain(|delta| {
            let module = module(profile, delta.class).unwrap_or("");
            let detail = self.of(module, profile.names.get(delta.class));
            if detail.is_some_and(|detail| !detail.stack) {
                let whole = merged.entry(delta.class).or_insert(Delta {
                    class: delta.class,
                    ..Delta::default()
                });
                whole.add(delta);
            }
            detail.is_some_and(|detail| detail.stack)
        });
        let mut merged: Vec<Delta> = merged.into_values().collect();
        merged.sort_unstable_by_key(|delta| delta.class);
        deltas.append(&mut merged);
    }

    /// Leaves classes out, and what they hold.
    pub fn cut_classes(&self, profile: Option<&Profile>, rows: &mut Vec<ClassRow>) {
        if self.rules.is_empty() {
            return;
        }
        rows.retain_mut(|row| {
            let Some(detail) = self.in_recording(profile, &row.class) else {
                return false;
            };
            row.size = row.size.filter(|_| detail.size);
            row.capacity = row.capacity.filter(|_| detail.capacity);
            row.capacity_bytes = row.capacity_bytes.filter(|_| detail.capacity);
            true
        });
    }
}

/// The lines that hold now.
#[derive(Debug, Default)]
pub struct Chosen(RwLock<Rules>);

impl Chosen {
    /// A copy of them.
    pub fn get(&self) -> Rules {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    /// Looks at classes as these lines say from now on.
    ///
    /// # Errors
    /// The first line that is wrong; the ones before then hold on.
    pub fn set(&self, text: &str) -> Result<(), String> {
        let new = Rules::parse(text)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }
}

impl Detail {
    /// Leaves out of instances what is not looked at.
    pub fn cut_instances(&self, list: &mut Instances) {
        for row in &mut list.rows {
            if !self.stack {
                row.stack.clear();
            }
            if !self.size {
                row.content.size = None;
            }
            if !self.capacity {
                row.content.capacity = None;
                row.content.capacity_bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_holds() {
        let rules = Rules::parse(
            "# what I look at\n\njava.base java.lang.String count,ratio=0.01\n\
             xerces org.apache.* stack,time\n* org.apache.** off\n* int[] size\n",
        )
        .unwrap();
        let string = rules.of("java.base", "java.lang.String").unwrap();
        assert_eq!((string.ratio, string.stack), (0.01, false));
        assert_eq!(rules.of("", "java.lang.String"), Some(ALL), "of no module");
        let one = rules.of("xerces", "org.apache.Entry").unwrap();
        assert!(one.stack && one.time && !one.size);
        assert_eq!(rules.of("xerces", "org.apache.dom.Entry"), None);
        assert_eq!(rules.of("", "org.apache.Entry"), None);
        assert!(rules.of("", "int[]").unwrap().size);
        assert_eq!(rules.of("", "org.apachex.Entry"), Some(ALL));
    }

    #[test]
    fn wrong_lines_are_named() {
        let check = |text: &str, part: &str| {
            let fault = Rules::parse(text).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        };
        check("* java.**", "line 1: expected MODULE");
        check("\n* a.B context", "line 2: context");
        check("* a.B ratio=0", "ratio=0");
        check("* a.B ratio=nan", "ratio=nan");
    }
}
