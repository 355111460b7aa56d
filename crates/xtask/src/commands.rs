//! Commands in a Markdown file, with what the text claims about them.
//!
//! A fenced block of `sh` is a script; in a block of `console` a line `$ command` is followed by
//! its output. A comment right above the fence says what is special:
//!
//! ```text
//! <!-- test: needs a JDK -->         run only where a JDK is found
//! <!-- test: exit 1 -->              the last command ends with this code, not 0
//! <!-- test: not run: reason -->     not run at all
//! <!-- test: output varies -->       the exit code is checked, the output is not
//! <!-- test: file rules.toml -->     not run: the commands of this document find it as a file
//! ```
//!
//! In shown output, `...` stands for any lines, and times are not compared.

/// A block of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Line of the fence, from 1.
    pub line: usize,
    /// The commands in order.
    pub steps: Vec<Step>,
    /// True when it runs only where a JDK is found.
    pub needs_jdk: bool,
    /// The exit code that the last command must have.
    pub exit: i32,
    /// Why it is not run.
    pub not_run: Option<String>,
    /// True when the shown output is only an example.
    pub output_varies: bool,
}

/// A command and the output shown for it; a script has one step without output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Text for the shell.
    pub command: String,
    /// The lines shown below it.
    pub output: Vec<String>,
}

/// A Markdown text as its test sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// All `sh` and `console` blocks.
    pub blocks: Vec<Block>,
    /// Name and content of the blocks that are marked as files.
    pub files: Vec<(String, String)>,
    /// Line and text of the code spans in sentences and tables.
    pub spans: Vec<(usize, String)>,
}

/// Reads a Markdown text.
///
/// # Errors
/// The line of a comment `test:` that says something unknown, of a block that does not close, or
/// of a command in a block of another language.
pub fn document(markdown: &str) -> Result<Document, String> {
    let mut found = Document::default();
    let mut marks: Vec<(usize, String)> = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        if let Some(mark) = mark_of(line) {
            marks.push((i + 1, mark.to_owned()));
        } else if let Some(language) = line.strip_prefix("```") {
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    Some((_, "```")) => break,
                    Some((_, text)) => body.push(text.to_owned()),
                    None => return Err(format!("line {}: the block does not close", i + 1)),
                }
            }
            let file = marks
                .iter()
                .find_map(|(_, mark)| mark.strip_prefix("file "));
            if let Some(name) = file {
                found.files.push((name.to_owned(), body.join("\n") + "\n"));
            } else if language == "sh" || language == "console" {
                found.blocks.push(block(i + 1, language, body, &marks)?);
            } else if let Some(command) = body.iter().find(|line| is_command(line)) {
                return Err(format!(
                    "line {}: `{command}` is not in a block of sh or console",
                    i + 1
                ));
            }
            marks.clear();
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found
                .spans
                .extend(spans.map(|span| (i + 1, span.to_owned())));
            if !line.is_empty() {
                marks.clear();
            }
        }
    }
    Ok(found)
}

/// Whether a line starts one of the programs of this repository.
fn is_command(line: &str) -> bool {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    ["tenure ", "./x "]
        .iter()
        .any(|program| line.starts_with(program))
}

fn mark_of(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- test: ")?.strip_suffix(" -->")
}

fn block(
    line: usize,
    language: &str,
    body: Vec<String>,
    marks: &[(usize, String)],
) -> Result<Block, String> {
    let mut b = Block {
        line,
        ..Block::default()
    };
    for (at, mark) in marks {
        if mark == "needs a JDK" {
            b.needs_jdk = true;
        } else if mark == "output varies" {
            b.output_varies = true;
        } else if let Some(reason) = mark.strip_prefix("not run: ") {
            b.not_run = Some(reason.to_owned());
        } else if let Some(code) = mark.strip_prefix("exit ").and_then(|c| c.parse().ok()) {
            b.exit = code;
        } else {
            return Err(format!("line {at}: unknown mark {mark:?}"));
        }
    }
    if language == "sh" {
        b.steps = vec![Step {
            command: body.join("\n"),
            output: Vec::new(),
        }];
        return Ok(b);
    }
    for text in body {
        match (text.strip_prefix("$ "), b.steps.last_mut()) {
            (Some(command), _) => {
                b.steps.push(Step {
                    command: command.to_owned(),
                    output: Vec::new(),
                });
            }
            (None, Some(step)) => step.output.push(text),
            (None, None) => return Err(format!("line {line}: output before the first command")),
        }
    }
    Ok(b)
}

/// The first shown line that the real output does not have at its place; `None` when it is all
/// true.
pub fn first_untrue<'a>(shown: &'a [String], real: &str) -> Option<&'a str> {
    let real: Vec<String> = real.lines().map(without_times).collect();
    let mut at = 0;
    let mut anywhere = false;
    for line in shown {
        let want = without_times(line);
        if want == "..." {
            anywhere = true;
            continue;
        }
        let place = real[at..].iter().position(|have| *have == want);
        match place {
            Some(0) => at += 1,
            Some(n) if anywhere => at += n + 1,
            _ => return Some(line),
        }
        anywhere = false;
    }
    let rest = real[at..].iter().any(|l| !l.is_empty());
    if rest && !anywhere {
        Some("(the real output goes on)")
    } else {
        None
    }
}

/// The line without blanks at its end, and with `#` for a number before `s` or `ms`.
fn without_times(line: &str) -> String {
    let mut words: Vec<&str> = line.trim_end().split(' ').collect();
    for i in 1..words.len() {
        let unit = words[i].trim_end_matches([',', '.', ';', ')']);
        let number = words[i - 1].trim_start_matches('(');
        if (unit == "s" || unit == "ms") && number.parse::<f64>().is_ok() {
            words[i - 1] = "#";
            words[i] = "time";
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Step, document, first_untrue};

    #[test]
    fn commands_output_and_marks_are_read() {
        let text = "<!-- test: exit 4 -->\n<!-- test: needs a JDK -->\n\n```console\n$ a b\nx\ny\n$ c\n```\n\
            text\n```sh\nd\ne\n```\n```rust\nfn f() {}\n```\n";
        let found = document(text).expect("good text").blocks;
        assert_eq!(found.len(), 2);
        assert!(found[0].needs_jdk && found[0].exit == 4 && found[0].line == 4);
        let step = |c: &str, o: &[&str]| Step {
            command: c.into(),
            output: o.iter().map(|l| l.to_string()).collect(),
        };
        assert_eq!(found[0].steps, [step("a b", &["x", "y"]), step("c", &[])]);
        assert_eq!(found[1].steps, [step("d\ne", &[])]);
        assert!(!found[1].needs_jdk, "marks belong to one block");
    }

    #[test]
    fn a_misspelt_mark_and_an_open_block_are_errors() {
        assert!(document("<!-- test: need a JDK -->\n```sh\na\n```\n").is_err());
        assert!(document("```sh\na\n").is_err());
        assert!(document("```console\nno command\n```\n").is_err());
        assert!(document("```\n$ tenure leaks\n```\n").is_err());
    }

    #[test]
    fn files_and_spans_are_found() {
        let text = "Say `tenure x --y` or\n| `a` | b `c` |\n\n<!-- test: file r.toml -->\n```toml\n[a]\nb = `1`\n```\n";
        let found = document(text).expect("good text");
        let span = |line: usize, text: &str| (line, text.to_owned());
        assert_eq!(
            found.spans,
            [span(1, "tenure x --y"), span(2, "a"), span(2, "c")]
        );
        assert_eq!(
            found.files,
            [("r.toml".to_owned(), "[a]\nb = `1`\n".to_owned())]
        );
    }

    #[test]
    fn shown_lines_must_be_true_in_order() {
        let check = |shown: &[&str], real: &str, want: Option<&str>| {
            let shown: Vec<String> = shown.iter().map(|s| s.to_string()).collect();
            assert_eq!(first_untrue(&shown, real), want, "{shown:?}");
        };
        check(&["a", "b"], "a\nb\n", None);
        check(&["a", "..."], "a\nb\n", None);
        check(&["...", "c"], "a\nb\nc\n", None);
        check(&["read in 1.25 s."], "read in 0.9 s.  ", None);
        check(&["a", "c"], "a\nb\nc\n", Some("c"));
        check(&["a"], "a\nb\n", Some("(the real output goes on)"));
        check(&["b", "a"], "a\nb\n", Some("b"));
    }
}
