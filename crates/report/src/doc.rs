//! A document that is independent of the output format: headings, paragraphs, facts, tables. Numbers stay numbers
//! until a renderer decides how to show them, and names are escaped only by a renderer.

use heap_analysis::objects::describe::{Address, ObjectRef};
use std::borrow::Cow;

/// A piece of text with a meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Tenure's own words.
    Text(String),
    /// Tenure's own words, emphasized.
    Strong(String),
    /// Tenure's own words, less prominent.
    Dim(String),
    /// A class name: shortened from the left where space is limited. It stands for the objects of the class.
    Class(String),
    /// A name that looks like a class name: of a package, a field, one of several classes of a name.
    Name {
        /// The name.
        text: String,
        /// The set of objects that it stands for, as requests name sets; `None` if it stands for none.
        set: Option<String>,
    },
    /// A text from the dump: field, thread name, value. The caller adds quotes if necessary.
    Value(String),
    /// An object id.
    Object(Address),
    /// A size.
    Bytes(u64),
    /// A size, emphasized.
    StrongBytes(u64),
    /// A number of items.
    Count(u64),
    /// A share from 0 to 1, shown in percent.
    Share(f64),
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Span::Text(text.to_owned())
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Span::Text(text)
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its content.
    pub spans: Vec<Span>,
    /// Levels of indentation, for trees.
    pub indent: usize,
    /// A share (0 to 1), drawn as a thin bar in formats that can.
    pub bar: Option<f64>,
}

impl Cell {
    /// A cell of several spans.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Cell {
        Cell {
            spans: spans.into_iter().collect(),
            ..Cell::default()
        }
    }

    /// An empty cell.
    pub fn empty() -> Cell {
        Cell::default()
    }

    /// A size.
    pub fn bytes(bytes: hprof::Bytes) -> Cell {
        Span::Bytes(bytes.0).into()
    }

    /// A number.
    pub fn count(count: u64) -> Cell {
        Span::Count(count).into()
    }

    /// A share with its bar.
    pub fn share(share: f64) -> Cell {
        Cell {
            spans: vec![Span::Share(share)],
            indent: 0,
            bar: Some(share),
        }
    }

    /// A class name.
    pub fn class(name: impl Into<String>) -> Cell {
        Span::Class(name.into()).into()
    }

    /// A name that looks like a class name and stands for no objects.
    pub fn name(text: impl Into<String>) -> Cell {
        let text = text.into();
        Span::Name { text, set: None }.into()
    }

    /// A text from the dump.
    pub fn value(text: impl Into<String>) -> Cell {
        Span::Value(text.into()).into()
    }

    /// An object: class, value, id.
    pub fn object(object: &ObjectRef) -> Cell {
        Cell::new(object_spans(object))
    }

    /// The same cell, indented.
    pub fn at_depth(mut self, depth: usize) -> Cell {
        self.indent = depth;
        self
    }
}

impl From<Span> for Cell {
    fn from(span: Span) -> Self {
        Cell::new([span])
    }
}

/// An object as text: class, id, value.
pub fn object_spans(object: &ObjectRef) -> Vec<Span> {
    let mut spans = vec![
        Span::Class(object.title()),
        Span::from(" "),
        Span::Object(object.object),
    ];
    if let Some(value) = object.detail() {
        spans.push(Span::from(" "));
        spans.push(Span::Value(format!("\"{value}\"")));
    }
    spans
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub title: Cow<'static, str>,
    /// Alignment.
    pub align: Align,
}

/// A column of numbers.
pub const fn number(title: &'static str) -> Column {
    Column {
        title: Cow::Borrowed(title),
        align: Align::Right,
    }
}

/// A column of words.
pub const fn words(title: &'static str) -> Column {
    Column {
        title: Cow::Borrowed(title),
        align: Align::Left,
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
    /// A last row with sums.
    pub total: Option<Vec<Cell>>,
    /// Rows that were left out.
    pub omitted: u64,
    /// The text to show when there are no rows.
    pub when_empty: &'static str,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            columns: columns.into_iter().collect(),
            when_empty: "none",
            ..Table::default()
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading, level 1 to 3.
    Heading(u8, Vec<Span>),
    /// A paragraph.
    Text(Vec<Span>),
    /// Names and their values.
    Facts(Vec<(&'static str, Vec<Span>)>),
    /// A table.
    Table(Table),
    /// A less prominent remark: where the numbers come from, which command to use next.
    Note(Vec<Span>),
    /// Preformatted lines, such as a stack.
    Lines(Vec<String>),
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Doc {
    /// Its parts.
    pub blocks: Vec<Block>,
}

impl Doc {
    /// An empty document.
    pub fn new() -> Doc {
        Doc::default()
    }

    /// Adds a heading of level 1.
    pub fn heading(self, text: impl Into<Span>) -> Doc {
        self.with(Block::Heading(1, vec![text.into()]))
    }

    /// Adds a heading of level 2 made of spans.
    pub fn subheading(self, spans: impl IntoIterator<Item = Span>) -> Doc {
        self.with(Block::Heading(2, spans.into_iter().collect()))
    }

    /// Adds a paragraph.
    pub fn text(self, spans: impl IntoIterator<Item = Span>) -> Doc {
        self.with(Block::Text(spans.into_iter().collect()))
    }

    /// Adds a remark.
    pub fn note(self, spans: impl IntoIterator<Item = Span>) -> Doc {
        self.with(Block::Note(spans.into_iter().collect()))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Doc {
        self.with(Block::Table(table))
    }

    /// Adds lines.
    pub fn lines(self, lines: Vec<String>) -> Doc {
        self.with(Block::Lines(lines))
    }

    /// Adds facts.
    pub fn facts(self, facts: Vec<(&'static str, Vec<Span>)>) -> Doc {
        self.with(Block::Facts(facts))
    }

    /// Adds another document.
    pub fn append(mut self, other: Doc) -> Doc {
        self.blocks.extend(other.blocks);
        self
    }

    fn with(mut self, block: Block) -> Doc {
        self.blocks.push(block);
        self
    }
}
