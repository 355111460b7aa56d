//! How the dialect of a text is detected.

use crate::lang::Lang;
use crate::oql;
use crate::shared::Env;
use crate::sql::{self, Reading};

/// Words that only SQL has; `this` is a column of its class tables.
const SQL_WORDS: &[&str] = &[
    "join",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "with",
    "over",
    "case",
    "between",
    "is",
    "exists",
    "except",
    "intersect",
    "apply",
    "glob",
    "regexp",
    "explain",
    "all",
    "this",
];

/// Operators and words of JavaScript that SQL does not have.
const JAVASCRIPT: &[&str] = &[
    "&&",
    "=>",
    "function",
    "heap.",
    "statics.",
    "classof(",
    "toHtml(",
    "referrers(",
    "referees(",
    "sizeof(",
    "reachables(",
    "objectid(",
    "identical(",
    "forEach",
    "livepaths(",
    "!(",
];

/// The first words of SQL statements; those that would change data are refused when the statement runs.
const STATEMENTS: &[&str] = &[
    "select", "with", "explain", "values", "from", "insert", "update", "delete", "create", "drop",
    "alter", "attach", "detach", "pragma", "vacuum", "begin", "commit", "replace",
];

/// Signs of JavaScript that are operators of SQL, too; the last one ends a regular expression.
const IN_BOTH: &[&str] = &["==", "||", "/("];

/// Functions of MAT's OQL, and its words that may stand before a parenthesis.
const BEFORE_PARENTHESIS: &[&str] = &[
    "tohex",
    "tostring",
    "eval",
    "dominators",
    "outbounds",
    "inbounds",
    "classof",
    "dominatorof",
    "select",
    "distinct",
    "retained",
    "set",
    "from",
    "objects",
    "instanceof",
    "implements",
    "where",
    "and",
    "or",
    "not",
    "in",
    "like",
    "union",
];

/// The signs of JavaScript in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scripted {
    No,
    /// SQL has all of them, too.
    Shared,
    Yes,
}

/// How much of a text is JavaScript.
fn scripted(text: &str) -> Scripted {
    let first = text.split_whitespace().next().unwrap_or_default();
    if first != "select" {
        let word = first
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let scripted = text.contains(['(', '.', '=']) && !text.trim_start().starts_with(['-', '/']);
        return match scripted && !STATEMENTS.iter().any(|s| s.eq_ignore_ascii_case(word)) {
            true => Scripted::Yes,
            false => Scripted::No,
        };
    }
    let outside: String = unquoted(text).collect();
    // `[I`, `[Ljava.lang.String;`, `instanceof 0x12`, an object literal, a pattern.
    let array = outside.contains("from [") || outside.contains("from instanceof [");
    let object = outside.trim_start()[6..].trim_start().starts_with('{');
    // A table of SQL, a quoted name or a subquery in FROM is not a class of a heap.
    let mut after_from = words(text).skip_while(|w| !w.eq_ignore_ascii_case("from"));
    let is_sql = |word: &str| sql::is_table(word) || word.eq_ignore_ascii_case("select");
    let of_table = after_from.nth(1).is_some_and(is_sql) || quoted_from(text).is_some();
    // MAT uses `@length` instead.
    let length = !text.contains('@')
        && outside.contains(".length")
        && words(text).any(|w| w.ends_with(".length") && w.matches('.').count() > 1);
    let has = |signs: &[&str]| signs.iter().any(|sign| outside.contains(sign));
    if array || object || length || has(JAVASCRIPT) {
        Scripted::Yes
    } else if !of_table && has(IN_BOTH) {
        Scripted::Shared
    } else {
        Scripted::No
    }
}

/// True for a text that is JavaScript, or has JavaScript in it: it has signs of JavaScript, and SQLite does not accept
/// it. Without FROM, a text with a name that SQLite does not know is SQL unless it has a sign that only JavaScript has:
/// JavaScript would ignore what is on the right of `||`.
fn is_jhat(env: &Env, text: &str) -> bool {
    match scripted(text) {
        Scripted::No => false,
        signs => match sql::read(env, text) {
            Reading::Accepted => false,
            Reading::UnknownName => signs == Scripted::Yes || has_from(text),
            Reading::Refused => true,
        },
    }
}

/// True for a text with FROM.
fn has_from(text: &str) -> bool {
    words(text).any(|w| w.eq_ignore_ascii_case("from"))
}

/// True for a text with `@name` outside of quotes: only MAT's OQL has attributes.
fn has_attribute(text: &str) -> bool {
    let named = |piece: &str| {
        let mut after = piece.split('@').skip(1);
        after.any(|rest| rest.starts_with(|c: char| c.is_alphabetic()))
    };
    unquoted(text).any(named)
}

/// The dialect of a text: OQL if it parses as OQL and its FROM is not a table of SQL.
pub(crate) fn recognise(env: &Env, text: &str) -> Lang {
    let attributes = has_from(text) && has_attribute(text);
    if attributes && oql::parses(text) {
        return Lang::Oql;
    }
    if is_jhat(env, text) {
        return Lang::Jhat;
    }
    if attributes {
        return Lang::Oql;
    }
    let words: Vec<&str> = words(text).collect();
    let names_this = words.iter().any(|word| word.ends_with(".this"));
    let has = |list: &[&str]| {
        words
            .iter()
            .any(|w| list.iter().any(|s| s.eq_ignore_ascii_case(w)))
    };
    let lower = text.to_ascii_lowercase();
    let sums = ["count(", "sum(", "min(", "max(", "avg(", "total("]
        .iter()
        .any(|f| lower.contains(f));
    let columns = ["\"@class\"", "\"@shallow\"", "\"@retained\""];
    let names_column = columns.iter().any(|column| lower.contains(column));
    if has(SQL_WORDS) || names_this || sums || names_column || !oql::parses(text) {
        return Lang::Sql;
    }
    let mut after_from = words
        .windows(2)
        .find(|w| w[0].eq_ignore_ascii_case("from"))
        .map_or("", |w| w[1]);
    // `from objects o` is the table, `FROM OBJECTS 0x12` and the like the keyword.
    if after_from.eq_ignore_ascii_case("objects") {
        let rest = after_words(&lower, "from", "objects").unwrap_or_default();
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        let term =
            rest.starts_with(['(', '"', '$']) || rest.starts_with(|c: char| c.is_ascii_digit());
        if term || word.contains('.') || word == "instanceof" {
            after_from = "";
        }
    }
    // A plain word in FROM is a table, unless the text has something that only OQL has; tables of SQL have no dots,
    // and a name with an argument is a function.
    let only_oql = unquoted(text).any(|piece| piece.contains(['@', '$']))
        || has(&["instanceof", "implements", "objects", "retained", "union"])
        || after_from.contains('.')
        || text.contains("[]")
        || after_from.is_empty() && quoted_from(text).is_none()
        || after_from.starts_with(|c: char| c.is_ascii_digit());
    let pattern = quoted_from(text).is_some_and(|p| p.contains(['\\', '*', '+', '|', '(']));
    if !pattern && (!only_oql || sql::is_table(after_from)) {
        return Lang::Sql;
    }
    match calls_others(text) && sql::read(env, text) == Reading::Accepted {
        true => Lang::Sql,
        false => Lang::Oql,
    }
}

/// True for a text that calls a function that MAT's OQL does not have.
fn calls_others(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "._$@".contains(c);
    let called = |piece: &str| {
        piece.match_indices('(').any(|(at, _)| {
            let before = piece[..at].trim_end();
            let name = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
            let is_word = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let is_of_oql = BEFORE_PARENTHESIS
                .iter()
                .any(|word| word.eq_ignore_ascii_case(name));
            is_word && !name.contains('.') && !is_of_oql
        })
    };
    unquoted(text).any(called)
}

/// The text after the first occurrence of two consecutive words.
fn after_words<'t>(text: &'t str, first: &str, second: &str) -> Option<&'t str> {
    let is_part = |c: char| c.is_alphanumeric() || "._$".contains(c);
    text.match_indices(first).find_map(|(at, _)| {
        let whole = !text[..at].ends_with(is_part);
        let rest = text[at + first.len()..].strip_prefix(char::is_whitespace)?;
        let rest = rest.trim_start().strip_prefix(second)?;
        (whole && !rest.starts_with(is_part)).then(|| rest.trim_start())
    })
}

/// Words outside of strings; a dotted name is one word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "._$".contains(c);
    unquoted(text)
        .flat_map(move |piece| piece.split(move |c| !is_part(c)))
        .filter(|w| !w.is_empty())
}

/// The pieces of a text that are not in quotes. A quote ends at the next quote of its kind.
fn unquoted(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let now = rest?;
        let Some(at) = now.find(['"', '\'']) else {
            rest = None;
            return Some(now);
        };
        let quote = &now[at..=at];
        let inside = &now[at + 1..];
        rest = inside.find(quote).map(|end| &inside[end + 1..]);
        Some(&now[..at])
    })
}

/// The text in double quotes after FROM: a pattern in OQL, the name of a table in SQL.
fn quoted_from(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let after = lower
        .match_indices("from")
        .map(|(n, _)| text[n + 4..].trim_start());
    let mut quoted = after.filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
    quoted.next()
}
