//! Secrets that were found.

use super::Say;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use heap_analysis::share::secrets::Secrets;

impl Say for Secrets {
    const NAME: &'static str = "secrets";

    fn doc(&self) -> Doc {
        let mut rules = Table::new([number("found"), words("rule")]);
        for (rule, count) in &self.rules {
            rules.row([Cell::count(*count), Cell::value(rule.clone())]);
        }
        rules.when_empty = "nothing that looks like a secret";
        let mut found = Table::new([
            words("object"),
            number("length"),
            words("rule"),
            words("text"),
        ]);
        for secret in &self.found {
            found.row([
                Span::Object(secret.object).into(),
                Cell::count(secret.length),
                Cell::value(secret.rule.clone()),
                Cell::value(secret.text.clone()),
            ]);
        }
        found.omitted = self.omitted;
        let mut doc = Doc::new().text([
            Span::Count(self.searched),
            Span::from(" texts were searched."),
        ]);
        if self.tokens > 0 {
            doc = doc.text([
                Span::from("The dump is redacted: "),
                Span::Count(self.tokens),
                Span::from(" secrets are tokens of tenure redact and are not listed."),
            ]);
        }
        let doc = doc.table(rules);
        if self.found.is_empty() {
            return doc;
        }
        doc.table(found).note([Span::from(
            "tenure redact IN OUT writes the dump without any of it.",
        )])
    }
}
