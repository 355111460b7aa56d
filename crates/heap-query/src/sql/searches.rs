//! Functions of SQLite whose work grows with the product of the lengths of two texts, and which do not ask whether the
//! query must end. Those that search are replaced: the work of `instr` and `replace` grows with the sum of the lengths,
//! `like` and `glob` ask. The others refuse long texts.

use super::MAX_LENGTH;
use crate::error::QueryError;
use crate::limits::Stop;
use crate::shared::Env;
use memchr::memmem::Finder;
use memchr::{memchr, memchr2};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result, ffi};
use std::borrow::Cow;
use std::str::Chars;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest product of two lengths.
const WORK: usize = 1 << 31;

/// The longest pattern in bytes, as in SQLite.
const PATTERN: usize = 50_000;

/// Characters that a pattern is compared with between two checks of the limits.
const CHARACTERS: u32 = 1 << 16;

/// SQLite's own functions, in a database without replaced ones.
#[derive(Clone)]
struct Plain(Arc<Mutex<Connection>>);

impl Plain {
    fn ask(&self, sql: &str, given: &[ValueRef<'_>]) -> Result<Value> {
        let db = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let given = given.iter().map(|value| Value::try_from(*value));
        let given: Vec<Value> = given.collect::<std::result::Result<_, _>>()?;
        let mut statement = db.prepare_cached(sql)?;
        statement.query_row(rusqlite::params_from_iter(given), |row| row.get(0))
    }

    /// An argument as text; `None` for null.
    fn text<'c>(&self, context: &'c Context<'_>, at: usize) -> Result<Option<Cow<'c, [u8]>>> {
        Ok(match context.get_raw(at) {
            ValueRef::Null => None,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(Cow::Borrowed(bytes)),
            ValueRef::Integer(n) => Some(Cow::Owned(n.to_string().into_bytes())),
            real @ ValueRef::Real(_) => match self.ask("select cast(?1 as text)", &[real])? {
                Value::Text(text) => Some(Cow::Owned(text.into_bytes())),
                _ => None,
            },
        })
    }
}

/// Replaces the functions.
pub(super) fn register(db: &Connection, env: &Env) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    let plain = Plain(Arc::new(Mutex::new(Connection::open_in_memory()?)));
    let own = plain.clone();
    db.create_scalar_function("instr", 2, flags, move |context| instr(&own, context))?;
    let own = plain.clone();
    db.create_scalar_function("replace", 3, flags, move |context| replace(&own, context))?;
    for (name, arguments) in [("like", 2), ("like", 3), ("glob", 2)] {
        let (own, stop) = (plain.clone(), env.stop.clone());
        let read = if name == "like" { like } else { glob };
        db.create_scalar_function(name, arguments, flags, move |context| {
            matches(&own, &stop, read, context)
        })?;
    }
    for name in ["trim", "ltrim", "rtrim", "unhex"] {
        let own = plain.clone();
        let sql = format!("select {name}(?1, ?2)");
        db.create_scalar_function(name, 2, flags, move |context| {
            let lengths = [own.text(context, 0)?, own.text(context, 1)?];
            let [of, with] = lengths.map(|text| text.map_or(0, |text| text.len()));
            if of.saturating_mul(with) > WORK {
                return failed(format!(
                    "{name} of a text of {of} bytes with one of {with} exceeds the limit for the product, {WORK}"
                ));
            }
            own.ask(&sql, &[context.get_raw(0), context.get_raw(1)])
        })?;
    }
    Ok(())
}

fn failed<T>(message: String) -> Result<T> {
    Err(Error::UserFunctionError(message.into()))
}

/// The number of characters, as SQLite counts them.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| (**byte as i8) >= -0x40).count()
}

fn instr(plain: &Plain, context: &Context<'_>) -> Result<Option<i64>> {
    let [of, part] = [plain.text(context, 0)?, plain.text(context, 1)?];
    let (Some(of), Some(part)) = (of, part) else {
        return Ok(None);
    };
    let kinds = (context.get_raw(0), context.get_raw(1));
    let in_bytes = matches!(kinds, (ValueRef::Blob(_), ValueRef::Blob(_)));
    let found = Finder::new(&part).find(&of);
    Ok(Some(found.map_or(0, |at| {
        let before = if in_bytes { at } else { characters(&of[..at]) };
        before as i64 + 1
    })))
}

fn replace(plain: &Plain, context: &Context<'_>) -> Result<Option<String>> {
    let mut given = Vec::with_capacity(3);
    for at in 0..3 {
        match plain.text(context, at)? {
            Some(text) => given.push(text),
            None => return Ok(None),
        }
    }
    let [of, part, with] = &given[..] else {
        return Ok(None);
    };
    let mut made: Vec<u8> = Vec::new();
    let mut done = 0;
    if !part.is_empty() {
        for at in Finder::new(part).find_iter(of) {
            made.extend(&of[done..at]);
            made.extend(with.iter());
            done = at + part.len();
            if made.len() > MAX_LENGTH as usize {
                return Err(Error::SqliteFailure(
                    ffi::Error::new(ffi::SQLITE_TOOBIG),
                    None,
                ));
            }
        }
    }
    made.extend(&of[done..]);
    Ok(Some(String::from_utf8_lossy(&made).into_owned()))
}

/// A part of a pattern.
enum Part {
    /// Any characters, also none.
    Any,
    One,
    Char(char),
    /// The same letter of ASCII in upper or lower case.
    Letter(char),
    Set {
        within: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Part {
    fn admits(&self, c: char) -> bool {
        match self {
            Part::Any | Part::One => true,
            Part::Char(own) => *own == c,
            Part::Letter(own) => own.eq_ignore_ascii_case(&c),
            Part::Set { within, ranges } => {
                ranges
                    .iter()
                    .any(|(first, last)| (*first..=*last).contains(&c))
                    == *within
            }
        }
    }
}

/// A pattern of `like`; `None` if it ends with the escape character: it matches nothing.
fn like(pattern: &str, escape: Option<char>) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        parts.push(match c {
            _ if Some(c) == escape => Part::Letter(rest.next()?),
            '%' => Part::Any,
            '_' => Part::One,
            _ => Part::Letter(c),
        });
    }
    Some(parts)
}

/// A pattern of `glob`; `None` if a set has no end: it matches nothing.
fn glob(pattern: &str, _: Option<char>) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        parts.push(match c {
            '*' => Part::Any,
            '?' => Part::One,
            '[' => set(&mut rest)?,
            _ => Part::Char(c),
        });
    }
    Some(parts)
}

/// The rest of a set: `^`, a `]` at its start, and characters and ranges until the next `]`.
fn set(rest: &mut Chars<'_>) -> Option<Part> {
    let mut next = rest.next()?;
    let within = next != '^';
    if !within {
        next = rest.next()?;
    }
    let mut ranges = Vec::new();
    // The start of a range, if the last character can be one.
    let mut start = None;
    if next == ']' {
        ranges.push((']', ']'));
        next = rest.next()?;
    }
    while next != ']' {
        let after = rest.clone().next();
        match start {
            Some(first) if next == '-' && after.is_some_and(|after| after != ']') => {
                next = rest.next()?;
                ranges.push((first, next));
                start = None;
            }
            _ => {
                ranges.push((next, next));
                start = Some(next);
            }
        }
        next = rest.next()?;
    }
    Some(Part::Set { within, ranges })
}

/// `pattern`, text and perhaps the escape character, as SQLite passes them for `text like pattern escape 'c'`.
fn matches(
    plain: &Plain,
    stop: &Stop,
    read: fn(&str, Option<char>) -> Option<Vec<Part>>,
    context: &Context<'_>,
) -> Result<Option<bool>> {
    let [pattern, text] = [plain.text(context, 0)?, plain.text(context, 1)?];
    let (Some(pattern), Some(text)) = (pattern, text) else {
        return Ok(None);
    };
    if pattern.len() > PATTERN {
        return failed("LIKE or GLOB pattern too complex".to_owned());
    }
    let parts = || read(&String::from_utf8_lossy(&pattern), None);
    let parts = if context.len() == 3 {
        let Some(escape) = plain.text(context, 2)? else {
            return Ok(None);
        };
        let escape = String::from_utf8_lossy(&escape);
        let mut escape = escape.chars();
        let (Some(c), None) = (escape.next(), escape.next()) else {
            return failed("ESCAPE expression must be a single character".to_owned());
        };
        Arc::new(read(&String::from_utf8_lossy(&pattern), Some(c)))
    } else {
        context.get_or_create_aux(0, |_| Ok::<_, Error>(parts()))?
    };
    let text = String::from_utf8_lossy(&text);
    match &*parts {
        Some(parts) => is_match(parts, &text, stop).map(Some),
        None => Ok(Some(false)),
    }
}

/// The text from the first place on where a part can match, if that is quickly known; `None` if there is no such place.
fn next_place<'t>(part: &Part, text: &'t str) -> Option<&'t str> {
    let bytes = text.as_bytes();
    let at = match part {
        Part::Char(c) if c.is_ascii() => memchr(*c as u8, bytes)?,
        Part::Letter(c) if c.is_ascii() => {
            let letter = *c as u8;
            memchr2(
                letter.to_ascii_lowercase(),
                letter.to_ascii_uppercase(),
                bytes,
            )?
        }
        _ => 0,
    };
    Some(&text[at..])
}

/// After a mismatch, the last `Any` takes one more character; no earlier one has to.
fn is_match(parts: &[Part], text: &str, stop: &Stop) -> Result<bool> {
    let mut at = 0;
    let mut rest = text.chars();
    let mut retry: Option<(usize, Chars<'_>)> = None;
    let mut left = CHARACTERS;
    loop {
        left -= 1;
        if left == 0 {
            left = CHARACTERS;
            if let Some(cut) = stop.reason() {
                return Err(Error::UserFunctionError(QueryError::Stopped(cut).into()));
            }
        }
        let part = parts.get(at);
        if let Some(Part::Any) = part {
            at += 1;
            if at == parts.len() {
                return Ok(true);
            }
            let Some(place) = next_place(&parts[at], rest.as_str()) else {
                return Ok(false);
            };
            rest = place.chars();
            retry = Some((at, rest.clone()));
            continue;
        }
        match (part, rest.next()) {
            (None, None) => return Ok(true),
            (Some(part), Some(c)) if part.admits(c) => at += 1,
            (Some(_), None) => return Ok(false),
            _ => {
                let Some((from, start)) = &mut retry else {
                    return Ok(false);
                };
                start.next();
                let Some(place) = next_place(&parts[*from], start.as_str()) else {
                    return Ok(false);
                };
                *start = place.chars();
                (at, rest) = (*from, start.clone());
            }
        }
    }
}
