//! Names in a dump are hostile input. [`visible`] shows control characters (terminal escapes), bidirectional overrides
//! and invisible characters (text that reads differently from what it is) as escapes, in the same way in every format for
//! people; [`html`] and [`markdown`] also escape the markup of their format.

pub use hprof::{is_unsafe, visible};

/// Text and attribute values of HTML.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text of Markdown, also inside a table cell. An address in it does not become a link, nor a name a mention.
pub fn markdown(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        match c {
            // Markdown interprets HTML, and a backslash does not escape it.
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // Renderers find addresses such as https://a.b and www.a.b in the text as it is written,
            ':' if text[at..].starts_with("://") => out.push_str("&#58;"),
            '.' if text[..at].ends_with("www") => out.push_str("&#46;"),
            // but a@b and @a in the text as it is shown.
            '@' => out.push_str("@<!-- -->"),
            c => out.push(c),
        }
    }
    out
}

/// A word of a command for a POSIX shell, quoted if necessary.
pub fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_for_a_shell_is_quoted() {
        assert_eq!(shell("a/b-1.hprof"), "a/b-1.hprof");
        assert_eq!(shell("my dump (1).hprof"), "'my dump (1).hprof'");
        assert_eq!(shell("a'; id; '$b"), "'a'\\''; id; '\\''$b'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(
            html("<script>alert('x')</script>&"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;"
        );
        assert_eq!(
            markdown("a|b*c* <img> [x](y)"),
            "a\\|b\\*c\\* &lt;img&gt; \\[x\\](y)"
        );
        assert_eq!(
            markdown("https://a.b/c:d www.a.b a@b.c"),
            "https&#58;//a.b/c:d www&#46;a.b a@<!-- -->b.c"
        );
    }
}
