//! Errors of a query, and their position in the text.

use crate::cell::Cut;
use crate::lang::Lang;
use heap_graph::HeapError;
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// A place in the text of a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Bytes before it.
    pub offset: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// The whole line, to draw a mark under.
    pub text: String,
}

impl Place {
    /// The place at a byte offset of a text; offsets outside mean its end.
    pub fn of(text: &str, offset: usize) -> Place {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let end = text[offset..].find('\n').map_or(text.len(), |n| offset + n);
        Place {
            offset,
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            text: text[start..end].trim_end_matches('\r').to_owned(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a query has no result.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The text is not a query, or uses an unknown name.
    #[error("{message} ({place})")]
    Text {
        /// What is wrong.
        message: String,
        /// The position.
        place: Place,
    },
    /// The query failed while it ran.
    #[error("{0}")]
    Run(String),
    /// It exceeded a limit for bytes, which the text names.
    #[error("{0}")]
    Limit(String),
    /// A limit or the caller ended it before the first row.
    #[error("stopped: {}", match .0 { Cut::Rows => "row limit", Cut::Time => "time limit", Cut::Cancelled => "cancelled" })]
    Stopped(Cut),
    /// The heap could not be read.
    #[error(transparent)]
    Heap(#[from] HeapError),
}

/// The error of a regular expression on one line: `bad pattern "(a": unclosed group`.
pub(crate) fn bad_pattern(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    let pattern = pattern.replace(['\r', '\n'], " ");
    format!("bad pattern \"{pattern}\": {reason}")
}

impl QueryError {
    /// An error at a byte offset of the text.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> QueryError {
        QueryError::Text {
            message: message.into(),
            place: Place::of(text, offset),
        }
    }

    /// Adds the dialect that was assumed to an error in a text without a given dialect.
    pub(crate) fn recognised_as(self, lang: Lang) -> QueryError {
        let others = [Lang::Sql, Lang::Oql, Lang::Jhat].map(Lang::name);
        let others: Vec<_> = others.into_iter().filter(|n| *n != lang.name()).collect();
        let with_language = |message: String| {
            format!(
                "{message}; the text was taken for {}, the other languages are {}",
                lang.name(),
                others.join(" and ")
            )
        };
        match self {
            QueryError::Text { message, place } => QueryError::Text {
                message: with_language(message),
                place,
            },
            QueryError::Run(message) => QueryError::Run(with_language(message)),
            other => other,
        }
    }

    /// The position of the error in the text, if it has one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            QueryError::Text { place, .. } => Some(place),
            _ => None,
        }
    }
}
