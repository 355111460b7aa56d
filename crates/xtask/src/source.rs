//! Rust text with comments and literals blanked, so that a rule about code does not stumble over
//! words in prose. A small lexer, not a parser: it knows where a literal begins and ends.

/// The text with comments, strings and characters replaced by blanks; line breaks stay.
pub fn code_only(text: &str) -> String {
    let b = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < b.len() {
        let end = literal_end(b, at);
        if end == at {
            // Only ASCII matters to the rules; the rest may as well be blank.
            out.push(if b[at].is_ascii() { b[at] as char } else { ' ' });
            at += 1;
        } else {
            out.extend(
                b[at..end]
                    .iter()
                    .map(|c| if *c == b'\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// The comments of a text, without the marks in front of them; all else is blank, and line breaks stay.
pub fn comments_only(text: &str) -> String {
    let b = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < b.len() {
        let end = literal_end(b, at).max(at + 1);
        let is_comment = b[at..].starts_with(b"//") || b[at..].starts_with(b"/*");
        let part = String::from_utf8_lossy(&b[at..end]);
        match is_comment {
            true => out.push_str(part.trim_start_matches(['/', '!', '*', ' '])),
            false => out.extend(part.chars().filter(|c| *c == '\n')),
        }
        at = end;
    }
    out
}

/// The strings of a text that have a blank and so are words for a user; what is filled into them is left out, as is all
/// else. Line breaks stay.
pub fn sentences_only(text: &str) -> String {
    let b = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < b.len() {
        let end = literal_end(b, at).max(at + 1);
        let part = String::from_utf8_lossy(&b[at..end]);
        let is_sentence = part.starts_with(['"', 'r', 'b']) && part.len() > 2 && part.contains(' ');
        match is_sentence {
            true => out.push_str(&without_fillings(&part)),
            false => out.extend(part.chars().filter(|c| *c == '\n')),
        }
        at = end;
    }
    out
}

/// Points in place of escapes and of what is in braces; a line that is continued stays one sentence.
fn without_fillings(literal: &str) -> String {
    let mut out = String::with_capacity(literal.len());
    let mut chars = literal.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'\n') => out.push(' '),
            '\\' => {
                chars.next();
                out.push('.');
            }
            '{' => {
                let inside = chars.by_ref().take_while(|c| *c != '}');
                out.extend(inside.filter(|c| *c == '\n'));
                out.push('.');
            }
            c => out.push(c),
        }
    }
    out
}

/// The end of the comment or literal that begins at `at`; `at` itself when none does.
fn literal_end(b: &[u8], at: usize) -> usize {
    let rest = &b[at..];
    let after_word = at > 0 && (b[at - 1].is_ascii_alphanumeric() || b[at - 1] == b'_');
    if rest.starts_with(b"//") {
        return at + find(rest, b"\n").unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    if rest[0] == b'"' {
        return at + quoted(rest, 1);
    }
    if !after_word && (rest.starts_with(b"b\"") || rest.starts_with(b"c\"")) {
        return at + quoted(rest, 2);
    }
    if !after_word && let Some(length) = raw_string(rest) {
        return at + length;
    }
    if rest[0] == b'\'' {
        at + character(rest)
    } else {
        at
    }
}

fn find(in_bytes: &[u8], what: &[u8]) -> Option<usize> {
    in_bytes.windows(what.len()).position(|w| w == what)
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted(rest: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = rest.iter().take(2).position(|c| *c == b'r')? + 1;
    if prefix == 2 && !matches!(rest[0], b'b' | b'c') {
        return None;
    }
    let hashes = rest[prefix..].iter().take_while(|c| **c == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let body = prefix + hashes + 1;
    Some(find(&rest[body..], &close).map_or(rest.len(), |n| body + n + close.len()))
}

/// A character literal, or 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|c| *c == b'\'');
        return close.map_or(rest.len(), |n| n + 4);
    }
    let text = String::from_utf8_lossy(&rest[1..rest.len().min(6)]);
    let Some(c) = text.chars().next() else {
        return 0;
    };
    if rest.get(1 + c.len_utf8()) == Some(&b'\'') {
        c.len_utf8() + 2
    } else {
        0
    }
}

/// Lines (from 1) and lengths in lines of all functions with a body.
pub fn functions(code: &str) -> Vec<(usize, usize)> {
    let b = code.as_bytes();
    let word = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
    let mut found = Vec::new();
    let mut line = 1;
    for (at, c) in b.iter().enumerate() {
        line += usize::from(*c == b'\n');
        let keyword = b[at..].starts_with(b"fn ") && !(at > 0 && word(b.get(at - 1)));
        if let (true, Some(lines)) = (keyword, body_lines(&b[at..])) {
            found.push((line, lines));
        }
    }
    found
}

/// Lines from a function's keyword to its closing brace; `None` for a declaration or a type.
fn body_lines(rest: &[u8]) -> Option<usize> {
    let (mut depth, mut brackets, mut lines) = (0_i32, 0_i32, 1);
    for c in rest {
        match c {
            b'\n' => lines += 1,
            b'(' | b'[' => brackets += 1,
            b')' | b']' => {
                brackets -= 1;
                if brackets < 0 {
                    return None;
                }
            }
            b';' | b',' | b'=' if depth == 0 && brackets == 0 && *c == b';' => return None,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                match depth {
                    0 => return Some(lines),
                    d if d < 0 => return None,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{code_only, functions, sentences_only};

    #[test]
    fn sentences_are_strings_with_a_blank() {
        for (text, want) in [
            ("f(\"one\"); // a b", ""),
            ("f(\"one two\")", "\"one two\""),
            ("f(\"one {two} three\\n\")", "\"one . three.\""),
            ("f(\"one \\\n   two\")", "\"one  \n   two\""),
        ] {
            assert_eq!(sentences_only(text), want, "{text}");
        }
    }

    #[test]
    fn comments_and_literals_are_blank_and_lines_stay() {
        for (text, want) in [
            ("a // b\nc", "a     \nc"),
            ("/* a /* b */ c */d", "                 d"),
            (r#"f("x\"y")"#, "f(      )"),
            ("r#\"a\"b\"#;", "        ;"),
            ("br\"a\\\";", "      ;"),
            ("'a' 'static '\\n'", "    'static     "),
            ("'日' x", "      x"),
            ("for_r\"x\"", "for_r   "),
        ] {
            assert_eq!(code_only(text), want, "{text}");
        }
    }

    #[test]
    fn functions_are_measured_from_keyword_to_closing_brace() {
        let text = "fn a() {\n  if x {\n  }\n}\ntrait T { fn d(&self); }\nstruct S { f: fn (u8) -> u8 }\nfn b() -> [u8; 4] { [0; 4] }";
        assert_eq!(functions(text), [(1, 4), (7, 1)]);
    }
}
