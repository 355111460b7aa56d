//! The questions of the live view, and their answers as sheets of text: the same functions that
//! answer the page (`live_session::answers`).

use super::saved;
use super::sheet::{Sheet, plain_row, rows_of};
use super::view::View;
use live_analysis::range::Range;
use live_analysis::timeline::{Event, EventKind};
use live_session::Live;
use live_session::answers::{advice, objects, tables};
use report::escape::visible;
use report::live as words;
use report::units::{grouped, utc};
use requests::Fault;
use requests::Params;

/// Most rows of a sheet: a screen is for looking.
pub(super) const ROWS: usize = 1000;
/// Objects of a class that are examined.
const SAMPLE: usize = 10_000;

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// What about.
    pub view: View,
    /// Group or source; empty for the view's own choice.
    pub by: &'static str,
    /// Column, or `name`.
    pub sort: &'static str,
    /// Least first.
    pub up: bool,
    /// What class or frame must contain.
    pub filter: String,
    /// `filter` is a regular expression.
    pub regex: bool,
    /// Class of the objects.
    pub class: String,
    /// Numbers of the tables that are compared.
    pub tables: (usize, usize),
    /// The stack whose source is shown, innermost frame first.
    pub stack: Vec<String>,
    /// Milliseconds since 1970.
    pub from: Option<u64>,
    /// Milliseconds since 1970.
    pub to: Option<u64>,
}

impl Question {
    pub(super) fn params(&self, by: &str) -> Params {
        let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
        let filter = if self.regex { "regex" } else { "filter" };
        let pairs = [
            (by, self.by.to_owned()),
            ("sort", self.sort.to_owned()),
            ("up", u8::from(self.up).to_string()),
            (filter, self.filter.clone()),
            ("from", number(self.from)),
            ("to", number(self.to)),
            ("limit", ROWS.to_string()),
        ];
        Params::new(pairs.map(|(name, value)| (name.to_owned(), value)))
    }

    /// Answers it. It may take as long as the VM or the first look into a heap dump takes.
    ///
    /// # Errors
    /// When there is nothing to ask yet, in words.
    pub fn answer(&self, live: &Live) -> Result<Sheet, String> {
        let answer = match self.view {
            View::Memory => Ok(self.events(live)),
            View::Allocations => self.allocations(live, "java"),
            View::Native => self.allocations(live, "native"),
            View::References => self.references(live),
            View::Instances => self.classes(live),
            View::Objects => self.objects(live),
            View::Growth => self.growth(live),
            View::Savings => self.savings(live),
            View::Saved => Ok(saved::tables(live)),
            View::Changes => saved::changes(self.params("by"), self.tables, live),
            View::Options => Ok(saved::options(live)),
            View::Source => saved::source(&self.stack, live),
        };
        answer.map_err(|fault| fault.message)
    }

    fn range(&self) -> Range {
        Range {
            from: self.from.unwrap_or(0),
            to: self.to.unwrap_or(u64::MAX),
        }
    }

    fn events(&self, live: &Live) -> Sheet {
        let Range { from, to } = self.range();
        let events = live.timeline(from, to, 2, None).events;
        let row = |event: &Event| {
            let (name, pause) = match &event.kind {
                EventKind::Gc {
                    collector,
                    count,
                    pause_ms,
                    cause,
                } => {
                    let times = if *count == 1 {
                        String::new()
                    } else {
                        format!("{count} × ")
                    };
                    let name = format!("{times}{collector}: {cause}");
                    (name, format!("{pause_ms:.1} ms"))
                }
                EventKind::Marker { text } => (text.clone(), String::new()),
            };
            let when = utc(event.time_ms);
            // The day is today's.
            let when = when.split(' ').nth(1).unwrap_or(&when).to_owned();
            plain_row(vec![when, pause], &name, Vec::new())
        };
        Sheet {
            heading: format!("{} collections and marks", grouped(events.len() as u64)),
            rows: events.iter().rev().take(ROWS).map(row).collect(),
            empty: "Nothing has happened in this range.",
        }
    }

    fn allocations(&self, live: &Live, heap: &str) -> Result<Sheet, Fault> {
        let params = self.params("by").with("heap", heap);
        let answer = tables::allocations(live, &params)?;
        let mut rows = rows_of(&answer);
        if let Some(total) = answer.total.as_ref().filter(|_| !rows.is_empty()) {
            rows.push(plain_row(
                words::cells(answer.columns, total),
                "All",
                Vec::new(),
            ));
        }
        Ok(Sheet {
            heading: format!("{} rows by {}", grouped(answer.count as u64), self.by),
            rows,
            empty: "Nothing was recorded in this range.",
        })
    }

    fn references(&self, live: &Live) -> Result<Sheet, Fault> {
        let answer = tables::references(live, &self.params("by"))?;
        Ok(Sheet {
            heading: format!(
                "{} classes and stacks, from: {}",
                grouped(answer.count as u64),
                answer.source
            ),
            rows: rows_of(&answer),
            empty: "Native code has made no reference.",
        })
    }

    fn classes(&self, live: &Live) -> Result<Sheet, Fault> {
        let answer = tables::classes(live, &self.params("source"))?;
        Ok(Sheet {
            heading: format!(
                "{} classes, from: {}",
                grouped(answer.count as u64),
                answer.source
            ),
            rows: rows_of(&answer),
            empty: "No class has instances.",
        })
    }

    fn objects(&self, live: &Live) -> Result<Sheet, Fault> {
        let params = self
            .params("by")
            .with("class", &self.class)
            .with("sample", &SAMPLE.to_string());
        let answer = objects::list(live, &params)?;
        let examined = answer.examined.clone().unwrap_or_default();
        Ok(Sheet {
            heading: format!(
                "{} objects of {}, {} examined",
                grouped(examined.objects),
                visible(&examined.class),
                grouped(examined.sampled as u64)
            ),
            rows: rows_of(&answer),
            empty: "The last heap dump has no such object.",
        })
    }

    fn growth(&self, live: &Live) -> Result<Sheet, Fault> {
        let answer = advice::growth(live, &self.params("by"))?;
        let collections = answer.collections.unwrap_or(0) as u64;
        Ok(Sheet {
            heading: format!("growth over {} collections", grouped(collections)),
            rows: rows_of(&answer),
            empty: "No site grows. Growth is known after three garbage collections with a recording.",
        })
    }

    fn savings(&self, live: &Live) -> Result<Sheet, Fault> {
        let answer = advice::savings(live, &self.params("by"))?;
        let from = match answer.dump {
            Some(number) => format!("savings of heap dump {number}"),
            None => "savings need a heap dump (d)".to_owned(),
        };
        Ok(Sheet {
            heading: from,
            rows: rows_of(&answer),
            empty: "Nothing is known that could be saved.",
        })
    }
}
