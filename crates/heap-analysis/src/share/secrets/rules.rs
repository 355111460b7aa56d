//! The rules by which secrets are found: patterns of texts, and names of fields and keys (`secrets.toml`).

use regex::{Regex, RegexSet};
use serde::Deserialize;
use std::ops::Range;
use thiserror::Error;

const BUILT_IN: &str = include_str!("secrets.toml");

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
    /// The pattern of a rule is wrong.
    #[error("rule {rule}: {message}")]
    Pattern {
        /// The name of the rule.
        rule: String,
        /// What is wrong, on one line.
        message: String,
    },
    /// The patterns are too large together.
    #[error("all rules: {0}")]
    All(#[from] regex::Error),
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
pub(super) enum Values {
    All,
    Opaque,
}

impl Values {
    pub(super) fn include(self, text: &str) -> bool {
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
        let single = file.rules.iter().map(|rule| {
            Regex::new(&rule.pattern).map_err(|error| {
                let text = error.to_string();
                // The lines before the last one show the pattern.
                let message = text.lines().last().unwrap_or_default();
                SecretRuleError::Pattern {
                    rule: rule.name.clone(),
                    message: message.trim_start_matches("error: ").to_owned(),
                }
            })
        });
        let single = single.collect::<Result<_, _>>()?;
        let patterns = file.rules.iter().map(|rule| &rule.pattern);
        Ok(SecretRules {
            set: RegexSet::new(patterns)?,
            single,
            names: named(&file.fields, Values::All)
                .chain(named(&file.opaque, Values::Opaque))
                .collect(),
            rules: file.rules,
        })
    }

    /// The rules that match a text, with the first matching part that counts by its place.
    pub(super) fn matching<'t>(
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

    /// The name of a rule.
    pub(super) fn name(&self, rule: usize) -> &str {
        &self.rules[rule].name
    }

    /// Which values of a field or key of this name are secrets, if any are.
    pub(super) fn values_of(&self, name: &str) -> Option<Values> {
        let last = name.rsplit(['.', ':']).next().unwrap_or_default();
        // Variables of the shell for the current and the previous folder.
        if matches!(last, "PWD" | "OLDPWD") {
            return None;
        }
        // `user.password`, `spring.datasource.password`
        let words = words(name);
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

/// The words of a name in lower case: `dbPassword`, `DB_PASSWORD`, `db-password` and `db.password` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        let divides = matches!(c, '_' | '-' | ' ' | '.' | ':');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_pattern_is_reported_with_its_rule_on_one_line() {
        let own = "[[rule]]\nname = \"own\"\npattern = \"(\"\n";
        let error = SecretRules::new(Some(own)).expect_err("no pattern");
        assert_eq!(error.to_string(), "rule own: unclosed group");
    }

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
            "api.key",
            "app.secret.access.key",
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
}
