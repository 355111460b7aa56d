//! The name of the output file (facts: section 1, "File naming").

use super::Format;

/// The default file of the stream of VM events.
pub const USUAL_EVENT_FILE: &str = "java.events";

/// The default name.
pub fn default_name(format: Format) -> &'static str {
    match format {
        Format::Text => "java.hprof.txt",
        Format::Binary => "java.hprof",
    }
}

/// The name `force=n` takes instead of an existing file: the process id moves in front of a
/// `.txt` ending of any case; text without that ending gains one. Any other number can take the place of the process id.
pub fn unique_name(name: &str, format: Format, pid: u32) -> String {
    if format == Format::Binary {
        return format!("{name}.{pid}");
    }
    // The original compares only the first four bytes after the last dot, so `.txt2` moves too.
    if let Some(dot) = name.rfind('.')
        && let Some(ending) = name.get(dot..dot + 4)
        && ending.eq_ignore_ascii_case(".txt")
    {
        return format!("{}.{pid}{}", &name[..dot], &name[dot..]);
    }
    format!("{name}.{pid}.txt")
}

/// The temporary file of a heap dump beside the output.
pub fn temporary_name(name: &str) -> String {
    format!("{name}.TMP")
}

/// The values of `%` patterns in modern mode. The original replaced no patterns.
#[derive(Clone, Debug, Default)]
pub struct Patterns<'a> {
    /// `%p`: the process id.
    pub pid: &'a str,
    /// `%t`: the start time, `20260131-235959`.
    pub time: &'a str,
    /// `%h`: the host's name.
    pub host: &'a str,
}

/// Replaces `%p`, `%t`, `%h`, `%%` and `%{VARIABLE}` (through `variable`); anything else after a
/// per cent sign stays as it is.
pub fn expand(
    name: &str,
    patterns: &Patterns<'_>,
    variable: impl Fn(&str) -> Option<String>,
) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let used = match tail.chars().next() {
            Some('p') => {
                out.push_str(patterns.pid);
                1
            }
            Some('t') => {
                out.push_str(patterns.time);
                1
            }
            Some('h') => {
                out.push_str(patterns.host);
                1
            }
            Some('%') => {
                out.push('%');
                1
            }
            Some('{') if tail.contains('}') => {
                let end = tail.find('}').unwrap_or(0);
                out.push_str(&variable(&tail[1..end]).unwrap_or_default());
                end + 1
            }
            _ => {
                out.push('%');
                0
            }
        };
        rest = &tail[used..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_moves_the_process_id_before_its_ending() {
        let text = |name| unique_name(name, Format::Text, 5280);
        assert_eq!(text("out.txt"), "out.5280.txt");
        assert_eq!(text("out.TXT"), "out.5280.TXT");
        assert_eq!(text("out"), "out.5280.txt");
        assert_eq!(text("out.log"), "out.log.5280.txt");
        assert_eq!(text("java.hprof.txt"), "java.hprof.5280.txt");
        assert_eq!(unique_name("out.txt", Format::Binary, 7), "out.txt.7");
        assert_eq!(unique_name("a.é", Format::Text, 7), "a.é.7.txt");
    }

    #[test]
    fn patterns_are_replaced() {
        let patterns = Patterns {
            pid: "42",
            time: "T",
            host: "box",
        };
        let env = |name: &str| (name == "USER").then(|| "me".to_owned());
        let check = |name: &str, expected: &str| assert_eq!(expand(name, &patterns, env), expected);
        check("a-%p.%t.%h.hprof", "a-42.T.box.hprof");
        check("100%%", "100%");
        check("%{USER}-%{NONE}.txt", "me-.txt");
        check("%x %", "%x %");
        check("%{open", "%{open");
    }
}
