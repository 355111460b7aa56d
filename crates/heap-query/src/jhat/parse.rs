//! `select <JavaScript> [from [instanceof] <class> <name> [where <JavaScript>]]`, split at white space, as in jhat.

use crate::error::QueryError;

/// A query, or a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// A text that does not begin with `select`: JavaScript.
    Script(String),
    /// Evaluated once.
    Once(String),
    /// Evaluated for each object of a class.
    Each {
        select: String,
        subclasses: bool,
        class: String,
        /// Position of the class, for errors.
        class_at: usize,
        name: String,
        filter: String,
    },
}

/// A piece of the text without white space.
struct Word<'a> {
    at: usize,
    text: &'a str,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_whitespace(), start) {
            (true, Some(from)) => {
                found.push(Word {
                    at: from,
                    text: &text[from..at],
                });
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    found
}

/// An expression, without the semicolon that jhat accepts at its end.
fn join(words: &[Word<'_>]) -> String {
    let pieces: Vec<&str> = words.iter().map(|w| w.text).collect();
    let joined = pieces.join(" ");
    match joined.trim_end_matches([';', ' ']) {
        "" => joined,
        expression => expression.to_owned(),
    }
}

/// Reads a query.
pub(super) fn parse(text: &str) -> Result<Query, QueryError> {
    let words = words(text);
    if words.first().is_none_or(|w| w.text != "select") {
        return Ok(Query::Script(text.to_owned()));
    }
    let end = text.len();
    let error = |at: usize, message: &str| Err(QueryError::at(text, at, message));
    let from = words.iter().position(|w| w.text == "from");
    let select = &words[1..from.unwrap_or(words.len())];
    if select.is_empty() {
        return error(words.get(1).map_or(end, |w| w.at), "nothing is selected");
    }
    let Some(from) = from else {
        return Ok(Query::Once(join(select)));
    };
    let mut rest = &words[from + 1..];
    let subclasses = rest.first().is_some_and(|w| w.text == "instanceof");
    if subclasses {
        rest = &rest[1..];
    }
    let [class, rest @ ..] = rest else {
        return error(end, "expected a class after from");
    };
    let [name, rest @ ..] = rest else {
        return error(end, "expected a name for the object after the class");
    };
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if name.text == "where"
        || !name.text.chars().all(is_name)
        || name.text.starts_with(|c: char| c.is_ascii_digit())
    {
        return error(name.at, "expected a name for the object after the class");
    }
    let filter = match rest {
        [] => String::new(),
        [word, filter @ ..] if word.text == "where" && !filter.is_empty() => join(filter),
        [word, ..] if word.text == "where" => return error(end, "nothing after where"),
        [word, ..] => return error(word.at, "where expected"),
    };
    Ok(Query::Each {
        select: join(select),
        subclasses,
        class: class.text.to_owned(),
        class_at: class.at,
        name: name.text.to_owned(),
        filter,
    })
}
