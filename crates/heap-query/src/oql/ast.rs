//! A parsed query.

use super::value::Value;

/// A query.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) distinct: bool,
    pub(super) retained_set: bool,
    pub(super) select: Select,
    pub(super) from: From,
    pub(super) filter: Option<Expr>,
    pub(super) unions: Vec<Query>,
    /// Its position in the text, for errors.
    pub(super) at: usize,
}

/// What is selected.
#[derive(Clone, Debug)]
pub(super) enum Select {
    All,
    Objects(Box<Item>),
    Items(Vec<Item>),
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) expr: Expr,
    pub(super) name: String,
}

/// FROM.
#[derive(Clone, Debug)]
pub(super) struct From {
    /// FROM OBJECTS: the term refers to objects, not classes.
    pub(super) objects: bool,
    pub(super) subclasses: bool,
    pub(super) source: Source,
    pub(super) alias: Option<String>,
    pub(super) at: usize,
}

/// The source of the rows.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Class(String),
    Regex(String),
    Addresses(Vec<u64>),
    Ids(Vec<i64>),
    Query(Box<Query>),
    Expr(Box<Expr>),
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
}

/// An expression with its position in the text.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

/// The kind of an expression.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Literal(Value),
    Query(Box<Query>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Like {
        not: bool,
        left: Box<Expr>,
        pattern: regex::Regex,
    },
    In {
        not: bool,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Implements(Box<Expr>, String),
    /// `${name}`, or nothing; then the steps after it.
    Path {
        env: Option<String>,
        facets: Vec<Facet>,
    },
    /// `( ... ).b`: a value and the steps after it.
    Of(Box<Expr>, Vec<Facet>),
}

/// A step of a path.
#[derive(Clone, Debug)]
pub(super) enum Facet {
    /// `field`, `@property`, `method(...)`.
    Name {
        at: usize,
        property: bool,
        name: String,
        arguments: Option<Vec<Expr>>,
    },
    /// `[i]`, `[from:to]`.
    Index {
        at: usize,
        from: Box<Expr>,
        to: Option<Box<Expr>>,
    },
}
