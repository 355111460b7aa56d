//! A gate for builds: rules about one dump, and a baseline of an earlier one. The answer says which
//! rules hold; the caller makes an exit code of it.

use crate::compare::baseline::{Baseline, known};
use crate::compare::identity::{matches, stable_name};
use crate::leaks::{LeakOptions, Leaks, find};
use crate::sets::similar::nearest_qualified;
use crate::toml_error::one_line;
use heap_graph::{Control, Heap, HeapError};
use hprof::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use thiserror::Error;

/// A limit: a number, or how much more than the baseline (`"+10%"`, `"+1M"`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a limit is a whole number, a size (\"10M\") or a growth (\"+10%\", \"+1M\")"
)]
pub enum Limit {
    /// At most this.
    Number(u64),
    /// A size with unit (`"10M"`) or a growth (`"+10%"`, `"+1M"`).
    Text(String),
}

/// What a limit means.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Most(u64),
    /// So much more than the baseline.
    More(u64),
    /// So many millionths of a percent of the baseline.
    Growth(u128),
}

/// One percent.
const PERCENT: u128 = 1_000_000;

/// A change by a number of percent with at most 6 decimals, as millionths of a percent of the former number.
fn growth(text: &str) -> Option<u128> {
    let (is_less, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{decimals:0<6}");
    let is_number = all.bytes().all(|digit| digit.is_ascii_digit());
    let is_empty = whole.is_empty() && decimals.is_empty();
    if !is_number || is_empty || whole.len() > 9 || decimals.len() > 6 {
        return None;
    }
    let change: u128 = all.parse().ok()?;
    match is_less {
        true => Some((100 * PERCENT).saturating_sub(change)),
        false => Some(100 * PERCENT + change),
    }
}

impl Limit {
    fn bound(&self, what: &str) -> Result<Bound, RuleError> {
        let text = match self {
            Limit::Number(n) => return Ok(Bound::Most(*n)),
            Limit::Text(text) => text.trim(),
        };
        let fault = || RuleError::Limit {
            what: what.to_owned(),
            found: text.to_owned(),
        };
        if let Some(percent) = text.strip_suffix('%') {
            return growth(percent.trim()).map(Bound::Growth).ok_or_else(fault);
        }
        let (is_more, size) = match text.strip_prefix('+') {
            Some(size) => (true, size),
            None => (false, text),
        };
        let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = size[digits.len()..].to_ascii_lowercase();
        let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return Err(fault()),
        };
        let number: f64 = digits.trim().parse().map_err(|_| fault())?;
        if !(0.0..1e15).contains(&number) || digits.trim().starts_with('+') {
            return Err(fault());
        }
        let size = (number * f64::from(1u32 << shift)) as u64;
        Ok(if is_more {
            Bound::More(size)
        } else {
            Bound::Most(size)
        })
    }
}

/// Limits for the classes that a pattern names, or for the whole heap.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What reports call it.
    pub name: Option<String>,
    /// A class, `*` stands for any characters; without it the rule is about the whole heap. The
    /// limits are for all classes that it names together.
    pub class: Option<String>,
    /// Objects.
    pub count: Option<Limit>,
    /// Shallow size.
    pub shallow: Option<Limit>,
    /// Retained size (of the whole heap: the same as shallow).
    pub retained: Option<Limit>,
}

impl Rule {
    fn subject(&self) -> &str {
        self.class.as_deref().unwrap_or("heap")
    }

    /// What reports call the n-th rule.
    fn called(&self, n: usize) -> String {
        let usual = || format!("rule {} ({})", n + 1, self.subject());
        self.name.clone().unwrap_or_else(usual)
    }
}

/// Rules about leak suspects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeakRules {
    /// Refuse suspects whose signature the baseline does not have.
    #[serde(default)]
    pub new: bool,
    /// Refuse suspects that retain more than this percent of the heap.
    pub share: Option<f64>,
    /// Signatures that are never refused.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// A file of rules.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Limits.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// About leaks.
    #[serde(default)]
    pub leaks: LeakRules,
}

/// Why rules cannot be used.
#[derive(Debug, Error)]
pub enum RuleError {
    /// No TOML, or unknown keys.
    #[error("{}", one_line(.0))]
    Syntax(#[from] toml::de::Error),
    /// A limit that is no number, size or growth.
    #[error("{what}: {found:?} is no limit (a number, \"10M\", \"+1M\" or \"+5%\")")]
    Limit {
        /// Which rule.
        what: String,
        /// The text.
        found: String,
    },
    /// A rule that nothing can violate.
    #[error("{what} has no limit: give it count, shallow or retained")]
    NoLimit {
        /// Which rule.
        what: String,
    },
    /// Nothing is checked.
    #[error("no rule: give [[rule]] with a limit, or leaks.new or leaks.share")]
    NoRule,
    /// A share that is no percentage.
    #[error("leaks.share: {0} is no percentage (0 to 100)")]
    Share(f64),
    /// Something is compared with a baseline that was not given.
    #[error("{what} compares with a baseline, and none was given")]
    NoBaseline {
        /// Which rule.
        what: String,
    },
    /// The baseline was written with another size model or strength of references.
    #[error(
        "the baseline was written with another {0}: give the same one, or write the baseline again"
    )]
    OtherOption(&'static str),
    /// The baseline was written without this pattern.
    #[error(
        "{what} compares what the classes of {pattern} retain together, which the baseline does \
         not have: write it again with these rules"
    )]
    NoPattern {
        /// Which rule.
        what: String,
        /// Its pattern.
        pattern: String,
    },
    /// The heap could not be read.
    #[error(transparent)]
    Heap(#[from] HeapError),
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// Text that is no TOML or has unknown keys, a limit that is none, and rules that check nothing.
    pub fn parse(text: &str) -> Result<Rules, RuleError> {
        let file: Rules = toml::from_str(text)?;
        for (n, rule) in file.rules.iter().enumerate() {
            let what = rule.called(n);
            let mut limits = [&rule.count, &rule.shallow, &rule.retained]
                .into_iter()
                .flatten()
                .peekable();
            if limits.peek().is_none() {
                return Err(RuleError::NoLimit { what });
            }
            for limit in limits {
                limit.bound(&what)?;
            }
        }
        if let Some(share) = file
            .leaks
            .share
            .filter(|share| !(0.0..=100.0).contains(share))
        {
            return Err(RuleError::Share(share));
        }
        if file.rules.is_empty() && !file.leaks.new && file.leaks.share.is_none() {
            return Err(RuleError::NoRule);
        }
        Ok(file)
    }

    /// The patterns whose retained sizes are limited, which a baseline for these rules has to have.
    pub fn patterns(&self) -> Vec<&str> {
        let rules = self.rules.iter().filter(|rule| rule.retained.is_some());
        let classes = rules.filter_map(|rule| rule.class.as_deref());
        classes.filter(|class| class.contains('*')).collect()
    }

    /// What a baseline alone requests: no new leak suspect, and the heap at most `percent` larger.
    pub fn against_baseline(percent: f64) -> Rules {
        Rules {
            rules: vec![Rule {
                shallow: Some(Limit::Text(format!("{percent:+.6}%"))),
                ..Rule::default()
            }],
            leaks: LeakRules {
                new: true,
                ..LeakRules::default()
            },
        }
    }
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Name of the rule.
    pub rule: String,
    /// What was checked: a class, `heap`, or a leak suspect.
    pub subject: String,
    /// Which figure was checked: `count`, `shallow`, `retained` or `leak`.
    pub what: &'static str,
    /// True if the check passed.
    pub passed: bool,
    /// The figure found: a number of objects or bytes; for a leak its retained size.
    pub found: u64,
    /// The highest figure that passes; `null` for leaks without a limit.
    pub limit: Option<u64>,
    /// The figure in the baseline; `null` if there is none.
    pub baseline: Option<u64>,
    /// True if no class of the dump has the name of the rule: none was loaded, or the name is wrong.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_class: bool,
    /// For a leak: the signature that identifies it in other dumps of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The result as a sentence.
    pub message: String,
}

/// The results of all rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// True if every check passed.
    pub passed: bool,
    /// All checks, in the order of the rules; leaks come last.
    pub checks: Vec<Checked>,
    /// Number of checks that failed.
    pub failed: u64,
    /// Number of reachable objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// Applies rules to a heap.
///
/// # Errors
/// A rule that is none, or that a baseline is missing for; a baseline with another layout or strength; [`HeapError::Cancelled`] soon after the
/// control cancels.
pub fn check(
    heap: &Heap,
    rules: &Rules,
    baseline: Option<&Baseline>,
    control: &Control<'_>,
) -> Result<Check, RuleError> {
    if let Some(option) = baseline.and_then(|b| b.other_option(heap)) {
        return Err(RuleError::OtherOption(option));
    }
    let mut checks = Vec::new();
    let leaks = find(heap, &LeakOptions::default(), control)?;
    let now = Baseline::with(heap, &rules.patterns(), &leaks);
    let known = heap.classes().iter().map(|class| stable_name(&class.name));
    let known: BTreeSet<String> = known.collect();
    for (n, rule) in rules.rules.iter().enumerate() {
        let (subject, name) = (rule.subject(), rule.called(n));
        let missing = rule
            .class
            .as_deref()
            .and_then(|class| missing(&known, class));
        let found = now.sums(rule.class.as_deref());
        let before = baseline.map(|b| b.sums(rule.class.as_deref()));
        let limits = [
            ("count", &rule.count),
            ("shallow", &rule.shallow),
            ("retained", &rule.retained),
        ];
        for (k, (what, limit)) in limits.into_iter().enumerate() {
            let Some(limit) = limit else { continue };
            let before = before.and_then(|b| b[k]);
            let known = || {
                before.ok_or_else(|| match baseline {
                    None => RuleError::NoBaseline { what: name.clone() },
                    Some(_) => RuleError::NoPattern {
                        what: name.clone(),
                        pattern: subject.to_owned(),
                    },
                })
            };
            let most = match limit.bound(&name)? {
                Bound::Most(most) => most,
                Bound::More(more) => known()?.saturating_add(more),
                Bound::Growth(millionths) => {
                    let most = u128::from(known()?) * millionths / (100 * PERCENT);
                    u64::try_from(most).unwrap_or(u64::MAX)
                }
            };
            let found = found[k].unwrap_or_default();
            let mut checked = limited(&name, subject, what, found, most, before);
            if let Some(note) = &missing {
                checked.no_class = true;
                checked.message += note;
            }
            checks.push(checked);
        }
    }
    check_leaks(&mut checks, &leaks, &rules.leaks, baseline)?;
    let failed = checks.iter().filter(|c| !c.passed).count() as u64;
    Ok(Check {
        passed: failed == 0,
        checks,
        failed,
        objects: heap.summary().reachable_objects,
        shallow: heap.summary().reachable_shallow,
    })
}

/// What a message adds if no class fits a pattern: such a rule always passes, and the name may be wrong.
fn missing(known: &BTreeSet<String>, pattern: &str) -> Option<String> {
    if known.iter().any(|name| matches(pattern, name)) {
        return None;
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let similar = nearest_qualified(pattern, &names).filter(|_| !pattern.contains('*'));
    let hint = similar.map(|name| format!("; did you mean {name}?"));
    Some(format!(
        "; the dump has no such class{}",
        hint.unwrap_or_default()
    ))
}

fn limited(
    rule: &str,
    subject: &str,
    what: &'static str,
    found: u64,
    limit: u64,
    baseline: Option<u64>,
) -> Checked {
    let passed = found <= limit;
    let unit = if what == "count" { "objects" } else { "bytes" };
    let verdict = if passed { "at most" } else { "more than" };
    let before = baseline.map_or(String::new(), |b| format!(" (baseline {b})"));
    Checked {
        rule: rule.to_owned(),
        subject: subject.to_owned(),
        what,
        passed,
        found,
        limit: Some(limit),
        baseline,
        no_class: false,
        signature: None,
        message: format!("{subject}: {found} {unit} ({what}), {verdict} {limit}{before}"),
    }
}

fn check_leaks(
    checks: &mut Vec<Checked>,
    leaks: &Leaks,
    rules: &LeakRules,
    baseline: Option<&Baseline>,
) -> Result<(), RuleError> {
    if rules.new && baseline.is_none() {
        return Err(RuleError::NoBaseline {
            what: "leaks.new".to_owned(),
        });
    }
    if !rules.new && rules.share.is_none() {
        return Ok(());
    }
    if leaks.no_roots {
        checks.push(Checked {
            rule: "leak suspects".to_owned(),
            subject: "the dump".to_owned(),
            what: "leak",
            passed: false,
            found: 0,
            limit: None,
            baseline: None,
            message: "the dump has no GC roots, so leak suspects cannot be found".to_owned(),
            no_class: false,
            signature: None,
        });
    }
    for suspect in &leaks.suspects {
        let leak = known(suspect);
        let before = baseline
            .and_then(|b| b.leaks.iter().find(|k| k.signature == leak.signature))
            .map(|k| k.retained);
        let allowed = rules.allow.contains(&leak.signature);
        let is_new = rules.new && before.is_none();
        let too_large = rules.share.is_some_and(|most| suspect.share * 100.0 > most);
        let limit = rules
            .share
            .map(|most| (leaks.total.0 as f64 * most / 100.0) as u64);
        let passed = allowed || !(is_new || too_large);
        let reason = match (passed, is_new) {
            (true, _) => "known or allowed",
            (false, true) => "the baseline does not have it",
            (false, false) => "too large a share of the heap",
        };
        checks.push(Checked {
            rule: "leak suspects".to_owned(),
            subject: leak.title.clone(),
            what: "leak",
            passed,
            found: leak.retained,
            limit,
            baseline: before,
            message: format!(
                "{} retains {} bytes, {:.1} % of the heap: {reason} (signature {})",
                leak.title,
                leak.retained,
                suspect.share * 100.0,
                leak.signature
            ),
            no_class: false,
            signature: Some(leak.signature),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_units_and_growth() {
        let bound = |text: &str| Limit::Text(text.to_owned()).bound("r").ok();
        assert_eq!(bound("10"), Some(Bound::Most(10)));
        assert_eq!(bound("1.5k"), Some(Bound::Most(1536)));
        assert_eq!(bound("2MiB"), Some(Bound::Most(2 << 20)));
        assert_eq!(bound("+5%"), Some(Bound::Growth(105_000_000)));
        assert_eq!(bound("12.5%"), Some(Bound::Growth(112_500_000)));
        assert_eq!(bound("-20%"), Some(Bound::Growth(80_000_000)));
        assert_eq!(bound("+.5%"), Some(Bound::Growth(100_500_000)));
        for (percent, want) in [
            (20.0, 120_000_000),
            (-5.0, 95_000_000),
            (100.0 / 3.0, 133_333_333),
        ] {
            let rules = Rules::against_baseline(percent);
            let limit = rules.rules[0]
                .shallow
                .as_ref()
                .map(|limit| limit.bound("r").ok());
            assert_eq!(limit.flatten(), Some(Bound::Growth(want)));
        }
        // As binary fractions, many of these would be a little too small.
        for percent in 1..=100 {
            let Some(Bound::Growth(millionths)) = bound(&format!("+{percent}%")) else {
                panic!("{percent} %");
            };
            assert_eq!(100 * millionths / (100 * PERCENT), 100 + percent);
        }
        assert_eq!(bound("+5"), Some(Bound::More(5)));
        assert_eq!(bound("+1M"), Some(Bound::More(1 << 20)));
        for wrong in [
            "", "many", "5 apples", "-3", "%", "+", "++1", "+-1", "inf%", "+nan%", "++1%", "1e3%",
        ] {
            assert_eq!(bound(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rules_that_check_nothing_are_refused() {
        for (text, fault) in [
            ("", "no rule: give [[rule]]"),
            ("[leaks]\nallow = ['a']", "no rule: give [[rule]]"),
            ("[[rule]]\nclass = 'a.B'", "rule 1 (a.B) has no limit"),
            (
                "[[rule]]\nname = 'n'\ncount = '+x'",
                "n: \"+x\" is no limit",
            ),
            (
                "[leaks]\nshare = 101.0",
                "leaks.share: 101 is no percentage",
            ),
            ("[leaks]\nshare = nan", "leaks.share: NaN is no percentage"),
            (
                "[[rule]]\nclass = 'a.B'\ncuont = 5",
                "TOML parse error at line 3, column 1: unknown field `cuont`, expected one of",
            ),
            ("[[rule]\n", "TOML parse error at line 1, column "),
        ] {
            let error = Rules::parse(text).map_err(|e| e.to_string());
            let error = error.expect_err(text);
            assert!(error.starts_with(fault) && !error.contains('\n'), "{error}");
        }
        assert!(Rules::parse("[leaks]\nnew = true").is_ok());
    }
}
