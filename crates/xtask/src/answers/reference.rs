//! The fields of all answers as tables in Markdown.

use super::types::{Body, Shape, Type, Types};
use super::{ANSWERS, root};
use std::collections::VecDeque;

/// The generated part of `docs/reference/json.md`: a table for each answer, then one for each type that they contain.
///
/// # Errors
/// An answer without a type.
pub fn reference(types: &Types) -> Result<String, String> {
    let mut out = String::new();
    let mut parts = Parts {
        types,
        answers: Vec::new(),
        found: Vec::new(),
        waiting: VecDeque::new(),
    };
    for answer in ANSWERS {
        parts.answers.push((root(types, answer)?, answer.name));
    }
    for answer in ANSWERS {
        let of = root(types, answer)?;
        let name = answer.name;
        let command = match answer.command {
            "" => " ([api.md](api.md))".to_owned(),
            command => format!(" (`{}`)", command.replace(", ", "`, `")),
        };
        out.push_str(&format!(
            "### {}\n\n{}{command}, [schema](schema/{name}.json).\n\n",
            answer.schema(),
            of.doc.trim_end_matches('.')
        ));
        parts.table(of, &mut out);
    }
    out.push_str("## Parts of answers\n\n");
    let mut texts: Vec<(String, String)> = Vec::new();
    while let Some(part) = parts.waiting.pop_front() {
        let title = types.title(part);
        let mut text = format!("### {title}\n\n{}\n\n", part.doc);
        parts.table(part, &mut text);
        texts.push((title, text));
    }
    texts.sort();
    out.extend(texts.into_iter().map(|(_, text)| text));
    Ok(out)
}

struct Parts<'t> {
    types: &'t Types,
    /// The types that are answers, which other answers may contain.
    answers: Vec<(&'t Type, &'static str)>,
    found: Vec<&'t Type>,
    waiting: VecDeque<&'t Type>,
}

impl Parts<'_> {
    fn table(&mut self, of: &Type, out: &mut String) {
        let Some(fields) = self.types.members(of) else {
            return;
        };
        out.push_str("| Field | Value | Meaning |\n|---|---|---|\n");
        for field in fields.iter().filter(|field| field.name != "schema") {
            let absent = if field.may_lack {
                ", may be absent"
            } else {
                ""
            };
            let value = self.value(&field.shape);
            let (name, doc) = (&field.name, field.doc.replace('|', "\\|"));
            out.push_str(&format!("| `{name}` | {value}{absent} | {doc} |\n"));
        }
        out.push('\n');
    }

    /// A value in words.
    fn value(&mut self, shape: &Shape) -> String {
        match shape {
            Shape::Text => "text".to_owned(),
            Shape::One(words) => format!("`{}`", words.join("`, `")),
            Shape::Whole | Shape::Signed => "whole number".to_owned(),
            Shape::Real => "number".to_owned(),
            Shape::Flag => "true or false".to_owned(),
            Shape::Any => "any".to_owned(),
            Shape::List(of) => format!("list: {}", self.value(of)),
            Shape::Tuple(all) => {
                let all: Vec<String> = all.iter().map(|it| self.value(it)).collect();
                format!("list of {}: {}", all.len(), all.join("; "))
            }
            Shape::Map(of) => format!("object by name: {}", self.value(of)),
            Shape::Optional(of) => format!("{} or null", self.value(of)),
            Shape::Of(name, file) => self.of(name, file),
        }
    }

    fn of(&mut self, name: &str, file: &str) -> String {
        let Some(of) = self.types.find(name, file) else {
            return "any".to_owned();
        };
        if let Body::As(shape) = &of.body {
            return self.value(shape);
        }
        let mut answers = self.answers.iter();
        if let Some((_, name)) = answers.find(|(known, _)| std::ptr::eq(*known, of)) {
            return format!("[{name}](#tenure{name}1)");
        }
        if !self.found.iter().any(|known| std::ptr::eq(*known, of)) {
            self.found.push(of);
            self.waiting.push_back(of);
        }
        let title = self.types.title(of);
        format!("[{title}](#{})", title.to_lowercase())
    }
}
