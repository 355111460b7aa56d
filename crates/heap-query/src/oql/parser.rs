//! Parses tokens to a query, one function per production.

use super::ast::{Expr, Facet, From, Item, Kind, Op, Query, Select, Source};
use super::lexer::{Tok, Token, tokens};
use super::value::Value;
use crate::error::{QueryError, bad_pattern};

/// The deepest nesting of parentheses, sub-queries and calls: a hostile text must not overflow the stack.
const MAX_DEPTH: usize = 64;

/// The longest chain of operators, or of steps of one path; the resulting tree is as deep.
const MAX_CHAIN: usize = 256;

const RESERVED: &[&str] = &[
    "INSTANCEOF",
    "IMPLEMENTS",
    "AND",
    "OR",
    "TRUE",
    "FALSE",
    "NULL",
];

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    chain: usize,
}

type Parsed<T> = Result<T, QueryError>;

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Parsed<Query> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        chain: 0,
    };
    let query = parser.query()?;
    match parser.peek() {
        Tok::End => Ok(query),
        _ => Err(parser.error("expected the end of the query")),
    }
}

impl Parser<'_> {
    fn peek(&self) -> &Tok {
        &self.tokens[self.at].tok
    }

    fn peek_after(&self, n: usize) -> &Tok {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + n).min(last)].tok
    }

    fn place(&self) -> usize {
        self.tokens[self.at].from
    }

    /// Where the last taken token ended.
    fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |n| self.tokens[n].to)
    }

    fn take(&mut self) -> Tok {
        let tok = self.peek().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        tok
    }

    fn error(&self, message: &str) -> QueryError {
        QueryError::at(self.text, self.place(), message)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Tok::Ident(name) if name.eq_ignore_ascii_case(word))
    }

    fn is_word_after(&self, n: usize, word: &str) -> bool {
        matches!(self.peek_after(n), Tok::Ident(name) if name.eq_ignore_ascii_case(word))
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.take();
        }
        found
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(s) if *s == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.sign(sign) {
            Ok(())
        } else {
            Err(self.error(&format!("expected `{sign}`")))
        }
    }

    /// A name that is not a reserved word.
    fn name(&mut self, what: &str) -> Parsed<String> {
        match self.peek() {
            Tok::Ident(name) if !RESERVED.iter().any(|r| r.eq_ignore_ascii_case(name)) => {
                let name = name.clone();
                self.take();
                Ok(name)
            }
            _ => Err(self.error(&format!("expected {what}"))),
        }
    }

    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn link(&mut self) -> Parsed<()> {
        self.chain += 1;
        if self.chain > MAX_CHAIN {
            return Err(self.error("too many operators"));
        }
        Ok(())
    }

    fn query(&mut self) -> Parsed<Query> {
        self.deeper(Self::query_inside)
    }

    fn query_inside(&mut self) -> Parsed<Query> {
        let at = self.place();
        if !self.word("SELECT") {
            return Err(self.error("expected SELECT"));
        }
        // These words are names, too: `select distinct from X` selects a field.
        let mut distinct = false;
        let mut retained_set = false;
        if self.is_word("DISTINCT") && !self.is_word_after(1, "FROM") && !self.continues(1) {
            self.take();
            distinct = true;
        }
        if self.is_word("AS") && self.is_word_after(1, "RETAINED") && self.is_word_after(2, "SET") {
            self.at += 3;
            retained_set = true;
        }
        let select = self.select()?;
        if !self.word("FROM") {
            return Err(self.error("expected FROM, or an operator"));
        }
        let from = self.from()?;
        let filter = if self.word("WHERE") {
            Some(self.or()?)
        } else {
            None
        };
        let mut unions = Vec::new();
        while self.word("UNION") {
            self.link()?;
            self.expect("(")?;
            unions.push(self.query()?);
            self.expect(")")?;
        }
        Ok(Query {
            distinct,
            retained_set,
            select,
            from,
            filter,
            unions,
            at,
        })
    }

    /// Whether the token after next makes the next one part of an expression.
    fn continues(&self, n: usize) -> bool {
        matches!(self.peek_after(n), Tok::Sign(s) if !matches!(*s, "*" | "@" | "(" | "-" | "+"))
    }

    fn select(&mut self) -> Parsed<Select> {
        if self.sign("*") {
            return Ok(Select::All);
        }
        if self.is_word("OBJECTS") && !self.is_word_after(1, "FROM") && !self.continues(1) {
            self.take();
            return Ok(Select::Objects(Box::new(self.item()?)));
        }
        let mut items = vec![self.item()?];
        while self.sign(",") {
            items.push(self.item()?);
        }
        Ok(Select::Items(items))
    }

    fn item(&mut self) -> Parsed<Item> {
        let from = self.place();
        let expr = self.add()?;
        let text = self.text[from..self.end().max(from)].to_owned();
        let name = if self.word("AS") {
            match self.peek().clone() {
                Tok::Str(name) => {
                    self.take();
                    name
                }
                _ => self.name("a column name")?,
            }
        } else {
            text
        };
        Ok(Item { expr, name })
    }

    fn from(&mut self) -> Parsed<From> {
        let at = self.place();
        // OBJECTS could be the name of a class, if no term follows.
        let term_follows = match self.peek_after(1) {
            Tok::Ident(word) => !["WHERE", "UNION"]
                .iter()
                .any(|w| w.eq_ignore_ascii_case(word)),
            Tok::Str(_) | Tok::Int(_) | Tok::Hex(_) | Tok::Env | Tok::Sign("(") => true,
            _ => false,
        };
        let objects = self.is_word("OBJECTS") && term_follows && self.word("OBJECTS");
        let subclasses = self.word("INSTANCEOF");
        let source = self.source()?;
        let is_alias = matches!(self.peek(), Tok::Ident(_))
            && !self.is_word("WHERE")
            && !self.is_word("UNION");
        let alias = if is_alias {
            Some(self.name("an alias")?)
        } else {
            None
        };
        Ok(From {
            objects,
            subclasses,
            source,
            alias,
            at,
        })
    }

    fn source(&mut self) -> Parsed<Source> {
        match self.peek().clone() {
            Tok::Str(pattern) => {
                self.take();
                Ok(Source::Regex(pattern))
            }
            Tok::Hex(_) => self
                .list(|tok| match tok {
                    Tok::Hex(n) => Some(*n),
                    _ => None,
                })
                .map(Source::Addresses),
            Tok::Int(_) => self
                .list(|tok| match tok {
                    Tok::Int(n) => Some(*n),
                    _ => None,
                })
                .map(Source::Ids),
            Tok::Env => Ok(Source::Expr(Box::new(self.primary()?))),
            Tok::Sign("(") => {
                let at = self.place();
                self.take();
                let inner = if self.is_query() {
                    Source::Query(Box::new(self.query()?))
                } else {
                    Source::Expr(Box::new(self.deeper(Self::or)?))
                };
                self.expect(")")?;
                if !self.is_sign(".") && !self.is_sign("[") {
                    return Ok(inner);
                }
                let value = match inner {
                    Source::Query(query) => Expr {
                        at,
                        kind: Kind::Query(query),
                    },
                    Source::Expr(expr) => *expr,
                    _ => return Err(self.error("expected a class")),
                };
                Ok(Source::Expr(Box::new(self.tail(value)?)))
            }
            Tok::Ident(_) => self.class().map(Source::Class),
            _ => Err(self.error("expected a class, a string, an address or a sub-query")),
        }
    }

    fn list<T>(&mut self, of: impl Fn(&Tok) -> Option<T>) -> Parsed<Vec<T>> {
        let mut found = Vec::new();
        loop {
            found.push(
                of(self.peek()).ok_or_else(|| self.error("expected a number of the same kind"))?,
            );
            self.take();
            if !self.sign(",") {
                return Ok(found);
            }
        }
    }

    fn class(&mut self) -> Parsed<String> {
        let mut class = self.name("a class name")?;
        while self.is_sign(".") {
            self.take();
            class.push('.');
            class.push_str(&self.name("a class name")?);
        }
        while self.is_sign("[") && matches!(self.peek_after(1), Tok::Sign("]")) {
            self.at += 2;
            class.push_str("[]");
        }
        Ok(class)
    }

    fn is_query(&self) -> bool {
        // `(select)` and `(select + 1)` refer to a field of that name.
        self.is_word("SELECT")
            && match self.peek_after(1) {
                Tok::Sign(sign) => {
                    matches!(*sign, "*" | "@" | "(")
                        && !matches!(self.peek_after(2), Tok::Sign(")"))
                }
                Tok::End => false,
                Tok::Ident(word) => !["AND", "OR", "LIKE", "IN", "NOT", "IMPLEMENTS"]
                    .iter()
                    .any(|w| w.eq_ignore_ascii_case(word)),
                _ => true,
            }
    }

    fn binary(
        &mut self,
        next: fn(&mut Self) -> Parsed<Expr>,
        op: fn(&Self) -> Option<Op>,
    ) -> Parsed<Expr> {
        let at = self.place();
        let mut left = next(self)?;
        while let Some(op) = op(self) {
            self.link()?;
            self.take();
            let right = next(self)?;
            let kind = Kind::Binary(op, Box::new(left), Box::new(right));
            left = Expr { at, kind };
        }
        Ok(left)
    }

    fn or(&mut self) -> Parsed<Expr> {
        self.binary(Self::and, |p| p.is_word("OR").then_some(Op::Or))
    }

    fn and(&mut self) -> Parsed<Expr> {
        self.binary(Self::equality, |p| p.is_word("AND").then_some(Op::And))
    }

    fn equality(&mut self) -> Parsed<Expr> {
        self.binary(Self::relation, |p| match p.peek() {
            Tok::Sign("=") => Some(Op::Eq),
            Tok::Sign("!=") => Some(Op::Ne),
            _ => None,
        })
    }

    fn relation(&mut self) -> Parsed<Expr> {
        let at = self.place();
        let left = Box::new(self.add()?);
        let op = match self.peek() {
            Tok::Sign("<") => Some(Op::Lt),
            Tok::Sign(">") => Some(Op::Gt),
            Tok::Sign("<=") => Some(Op::Le),
            Tok::Sign(">=") => Some(Op::Ge),
            _ => None,
        };
        if let Some(op) = op {
            self.take();
            let right = Box::new(self.add()?);
            return Ok(Expr {
                at,
                kind: Kind::Binary(op, left, right),
            });
        }
        if self.word("IMPLEMENTS") {
            return Ok(Expr {
                at,
                kind: Kind::Implements(left, self.class()?),
            });
        }
        let not =
            self.is_word("NOT") && (self.is_word_after(1, "LIKE") || self.is_word_after(1, "IN"));
        if not {
            self.take();
        }
        if self.word("LIKE") {
            let place = self.place();
            let Tok::Str(pattern) = self.peek().clone() else {
                return Err(self.error("expected a regular expression in double quotes"));
            };
            let pattern = regex::Regex::new(&format!("^(?s:{pattern})$"))
                .map_err(|e| QueryError::at(self.text, place, bad_pattern(&pattern, &e)))?;
            self.take();
            return Ok(Expr {
                at,
                kind: Kind::Like { not, left, pattern },
            });
        }
        if self.word("IN") {
            let right = Box::new(self.add()?);
            return Ok(Expr {
                at,
                kind: Kind::In { not, left, right },
            });
        }
        Ok(*left)
    }

    fn add(&mut self) -> Parsed<Expr> {
        self.binary(Self::multiply, |p| match p.peek() {
            Tok::Sign("+") => Some(Op::Add),
            Tok::Sign("-") => Some(Op::Sub),
            _ => None,
        })
    }

    fn multiply(&mut self) -> Parsed<Expr> {
        self.binary(Self::primary, |p| match p.peek() {
            Tok::Sign("*") => Some(Op::Mul),
            Tok::Sign("/") => Some(Op::Div),
            _ => None,
        })
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let at = self.place();
        if self.sign("(") {
            let inner = if self.is_query() {
                let query = Box::new(self.query()?);
                Expr {
                    at,
                    kind: Kind::Query(query),
                }
            } else {
                self.deeper(Self::or)?
            };
            self.expect(")")?;
            return self.tail(inner);
        }
        if let Some(value) = self.literal()? {
            return Ok(Expr {
                at,
                kind: Kind::Literal(value),
            });
        }
        if matches!(self.peek(), Tok::Env) {
            self.take();
            let name = self.name("a name such as snapshot")?;
            self.expect("}")?;
            let facets = self.facets()?;
            return Ok(Expr {
                at,
                kind: Kind::Path {
                    env: Some(name),
                    facets,
                },
            });
        }
        let mut facets = vec![self.facet()?];
        facets.extend(self.facets()?);
        Ok(Expr {
            at,
            kind: Kind::Path { env: None, facets },
        })
    }

    fn tail(&mut self, value: Expr) -> Parsed<Expr> {
        let facets = self.facets()?;
        if facets.is_empty() {
            return Ok(value);
        }
        Ok(Expr {
            at: value.at,
            kind: Kind::Of(Box::new(value), facets),
        })
    }

    fn literal(&mut self) -> Parsed<Option<Value>> {
        let signed = match self.peek() {
            Tok::Sign(sign @ ("+" | "-")) => {
                let number = matches!(
                    self.peek_after(1),
                    Tok::Int(_) | Tok::Long(_) | Tok::Float(_) | Tok::Double(_)
                );
                number.then_some(*sign)
            }
            _ => None,
        };
        if signed.is_some() {
            self.take();
        }
        let minus = signed == Some("-");
        let value = match self.peek().clone() {
            Tok::Str(text) => Value::Str(text),
            Tok::Char(c) => Value::Char(c),
            Tok::Int(n) => {
                let n = if minus { -n } else { n };
                Value::Int(
                    i32::try_from(n)
                        .map_err(|_| self.error("too large for an int; write an L behind it"))?,
                )
            }
            Tok::Long(n) => Value::Long(if minus { -n } else { n }),
            Tok::Float(n) => Value::Float(if minus { -n } else { n }),
            Tok::Double(n) => Value::Double(if minus { -n } else { n }),
            Tok::Hex(n) => Value::Long(n as i64),
            Tok::Ident(word) if word.eq_ignore_ascii_case("true") => Value::Bool(true),
            Tok::Ident(word) if word.eq_ignore_ascii_case("false") => Value::Bool(false),
            Tok::Ident(word) if word.eq_ignore_ascii_case("null") => Value::Null,
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(value))
    }

    fn facets(&mut self) -> Parsed<Vec<Facet>> {
        let mut facets = Vec::new();
        loop {
            if self.sign(".") {
                facets.push(self.facet()?);
            } else if self.is_sign("[") {
                let at = self.place();
                self.take();
                let from = Box::new(self.deeper(Self::add)?);
                let to = if self.sign(":") {
                    Some(Box::new(self.deeper(Self::add)?))
                } else {
                    None
                };
                self.expect("]")?;
                facets.push(Facet::Index { at, from, to });
            } else {
                return Ok(facets);
            }
            self.link()?;
        }
    }

    fn facet(&mut self) -> Parsed<Facet> {
        let at = self.place();
        let property = self.sign("@");
        let name = self.name("a value")?;
        let mut arguments = None;
        if self.sign("(") {
            let mut list = Vec::new();
            if !self.is_sign(")") {
                list.push(self.deeper(Self::add)?);
                while self.sign(",") {
                    list.push(self.deeper(Self::add)?);
                }
            }
            self.expect(")")?;
            arguments = Some(list);
        }
        Ok(Facet::Name {
            at,
            property,
            name,
            arguments,
        })
    }
}
