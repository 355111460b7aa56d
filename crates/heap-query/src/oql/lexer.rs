//! Tokens of MAT's OQL.

use crate::error::QueryError;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok {
    Ident(String),
    Str(String),
    Char(u16),
    Int(i64),
    Long(i64),
    Hex(u64),
    Float(f32),
    Double(f64),
    /// `${`.
    Env,
    /// One or two characters of punctuation.
    Sign(&'static str),
    End,
}

/// A token and its position.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) from: usize,
    pub(super) to: usize,
}

const SIGNS: &[&str] = &[
    "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ",", ".", "@", ":", "=", "<", ">", "+", "-",
    "*", "/",
];

/// Splits a query.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if rest.starts_with("/*") {
            let end = rest.find("*/");
            at += 2 + end.ok_or_else(|| QueryError::at(text, at, "a comment without its end"))?;
            continue;
        }
        let (tok, length) = token(text, at)?;
        out.push(Token {
            tok,
            from: at,
            to: at + length,
        });
        at += length;
    }
    out.push(Token {
        tok: Tok::End,
        from: text.len(),
        to: text.len(),
    });
    Ok(out)
}

fn token(text: &str, at: usize) -> Result<(Tok, usize), QueryError> {
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with("${") {
        return Ok((Tok::Env, 2));
    }
    if first == '"' {
        let end = rest[1..].find(['"', '\n']);
        return match end {
            Some(n) if rest.as_bytes()[n + 1] == b'"' => Ok((Tok::Str(rest[1..=n].into()), n + 2)),
            _ => Err(QueryError::at(text, at, "a string without its end")),
        };
    }
    if first == '\'' {
        let mut chars = rest[1..].chars();
        return match (chars.next(), chars.next()) {
            (Some(c), Some('\'')) if u32::from(c) <= 0xffff => {
                Ok((Tok::Char(u32::from(c) as u16), c.len_utf8() + 2))
            }
            _ => Err(QueryError::at(
                text,
                at,
                "expected one character between quotes",
            )),
        };
    }
    if first.is_alphabetic() || first == '_' || first == '$' {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        return Ok((Tok::Ident(rest[..end].to_owned()), end));
    }
    let digit_after_dot = |s: &str| s[1..].starts_with(|c: char| c.is_ascii_digit());
    if first.is_ascii_digit() || first == '.' && digit_after_dot(rest) {
        return number(text, at);
    }
    match SIGNS.iter().find(|s| rest.starts_with(**s)) {
        Some(sign) => Ok((Tok::Sign(sign), sign.len())),
        None => Err(QueryError::at(
            text,
            at,
            format!("unexpected character {first:?}"),
        )),
    }
}

fn number(text: &str, at: usize) -> Result<(Tok, usize), QueryError> {
    let rest = &text[at..];
    let bad = |what: &str| QueryError::at(text, at, format!("{what} is no number"));
    let run = |s: &str, test: fn(char) -> bool| s.find(|c| !test(c)).unwrap_or(s.len());
    if rest.starts_with("0x") || rest.starts_with("0X") {
        let end = 2 + run(&rest[2..], |c| c.is_ascii_hexdigit());
        let value = u64::from_str_radix(&rest[2..end], 16).map_err(|_| bad(&rest[..end]))?;
        return Ok((Tok::Hex(value), end));
    }
    let digits = |s: &str| run(s, |c| c.is_ascii_digit());
    let mut end = digits(rest);
    let mut floating = false;
    // `0.length` is not a number; `1.5` and `1.` are.
    if rest[end..].starts_with('.') && !rest[end + 1..].starts_with(char::is_alphabetic) {
        floating = true;
        end += 1 + digits(&rest[end + 1..]);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[end + 1 + sign..]);
        if exponent > 0 {
            floating = true;
            end += 1 + sign + exponent;
        }
    }
    let body = &rest[..end];
    let suffix = rest[end..].chars().next().unwrap_or(' ');
    match suffix {
        'L' | 'l' if !floating => {
            let value = body.parse().map_err(|_| bad(body))?;
            Ok((Tok::Long(value), end + 1))
        }
        'd' | 'D' => Ok((Tok::Double(body.parse().map_err(|_| bad(body))?), end + 1)),
        'f' | 'F' => Ok((Tok::Float(body.parse().map_err(|_| bad(body))?), end + 1)),
        _ if floating => Ok((Tok::Float(body.parse().map_err(|_| bad(body))?), end)),
        _ => {
            // A leading 0 means octal, as in Java.
            let octal = body.len() > 1 && body.starts_with('0');
            let value = i64::from_str_radix(body, if octal { 8 } else { 10 });
            Ok((Tok::Int(value.map_err(|_| bad(body))?), end))
        }
    }
}
