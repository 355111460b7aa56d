//! The dialects.

use serde::Serialize;

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// SQL as SQLite supports it.
    Sql,
    /// The OQL of Eclipse MAT.
    Oql,
    /// The OQL of jhat and VisualVM: JavaScript.
    Jhat,
}

impl Lang {
    /// The name of the dialect: `sql`, `oql`, `jhat`.
    pub fn name(self) -> &'static str {
        match self {
            Lang::Sql => "sql",
            Lang::Oql => "oql",
            Lang::Jhat => "jhat",
        }
    }

    /// The dialect of that name.
    pub fn named(name: &str) -> Option<Lang> {
        let all = [Lang::Sql, Lang::Oql, Lang::Jhat];
        all.into_iter().find(|lang| lang.name() == name)
    }
}
