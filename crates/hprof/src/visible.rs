//! Names in a dump are hostile input: [`visible`] makes them safe to print.

use std::borrow::Cow;
use std::fmt::Write;

/// True for characters that must not be printed unescaped.
pub fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Replaces unsafe characters by `\n`, `\t`, `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unsafe(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_text_shows_what_it_hides() {
        assert_eq!(visible("plain"), "plain");
        assert_eq!(visible("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(visible("x\u{202e}gpj"), "x\\u{202e}gpj");
        assert_eq!(visible("ü😀"), "ü😀");
    }
}
