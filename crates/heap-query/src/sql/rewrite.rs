//! Rewrites what users write to what SQLite accepts: class names as tables (`java.util.HashMap`, `instanceof."a.B"`,
//! `byte[]`), ids of objects without quotes (`0x7f00`), the table `references`, whose name is a keyword of SQL, and the
//! `apply` and `table(...)` of the MAT Calcite dialect.

use crate::error::QueryError;
use hprof::ObjectId;

/// A piece of SQL text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    Quoted,
    Literal,
    Sign,
    Blank,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    from: usize,
    to: usize,
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        let until = |stop: &[u8]| {
            let found = rest.windows(stop.len()).position(|w| w == stop);
            found.map_or(rest.len(), |n| n + stop.len())
        };
        let run =
            |test: &dyn Fn(u8) -> bool| rest.iter().position(|b| !test(*b)).unwrap_or(rest.len());
        let (kind, length) = match rest[0] {
            b if b.is_ascii_whitespace() => (Kind::Blank, run(&|b| b.is_ascii_whitespace())),
            b'-' if rest.starts_with(b"--") => (Kind::Blank, until(b"\n")),
            b'/' if rest.starts_with(b"/*") => {
                let close = text[at + 2..].find("*/").map_or(rest.len(), |n| n + 4);
                (Kind::Blank, close)
            }
            b'\'' => (Kind::Literal, quoted(rest, b'\'')),
            b'"' => (Kind::Quoted, quoted(rest, b'"')),
            b'`' => (Kind::Quoted, quoted(rest, b'`')),
            b if b.is_ascii_digit() => (Kind::Literal, run(&is_word)),
            b if is_word(b) => (Kind::Word, run(&is_word)),
            _ => (Kind::Sign, 1),
        };
        let to = at + length;
        out.push(Token { kind, from: at, to });
        at = to;
    }
    out
}

/// Length of a quoted piece; a doubled quote stands for one quote.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        if rest[at] == quote {
            if rest.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 1;
        }
        at += 1;
    }
    rest.len()
}

/// A query as SQLite accepts it.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) sql: String,
    /// Class names used as tables: the name as a table, the class, with subclasses or not.
    pub(crate) classes: Vec<(String, String, bool)>,
    /// Pairs of offsets, in `sql` and in the original text, from which both are identical.
    anchors: Vec<(usize, usize)>,
}

impl Rewritten {
    /// The offset in the original text for an offset in `sql`.
    pub(crate) fn original(&self, offset: usize) -> usize {
        let at = self.anchors.partition_point(|a| a.0 <= offset);
        at.checked_sub(1)
            .map_or(offset, |n| self.anchors[n].1 + offset - self.anchors[n].0)
    }
}

/// What the heap has.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// True for the name of a class.
    pub(crate) is_class: &'a dyn Fn(&str) -> bool,
    /// True for the id of an object or class.
    pub(crate) is_id: &'a dyn Fn(ObjectId) -> bool,
}

struct Rewriter<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    known: Known<'a>,
    out: Rewritten,
}

/// Rewrites a query for a heap that has these names and ids.
pub(crate) fn rewrite(text: &str, known: Known<'_>) -> Result<Rewritten, QueryError> {
    let mut rewriter = Rewriter {
        text,
        tokens: tokens(text),
        known,
        out: Rewritten::default(),
    };
    rewriter.one_statement()?;
    if rewriter.solid(0) == rewriter.tokens.len() {
        return Err(QueryError::Run("the query is empty".to_owned()));
    }
    let mut at = 0;
    // Parentheses of `table( ... )` to be omitted.
    let mut dropped = Vec::new();
    let mut depth = 0i64;
    while at < rewriter.tokens.len() {
        at = rewriter.step(at, &mut depth, &mut dropped);
    }
    Ok(rewriter.out)
}

impl Rewriter<'_> {
    fn piece(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |t| &self.text[t.from..t.to])
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.piece(at).eq_ignore_ascii_case(word)
    }

    /// The first token at or after `at` that is not blank.
    fn solid(&self, mut at: usize) -> usize {
        while self.tokens.get(at).is_some_and(|t| t.kind == Kind::Blank) {
            at += 1;
        }
        at
    }

    fn one_statement(&mut self) -> Result<(), QueryError> {
        let Some(end) = (0..self.tokens.len()).find(|n| self.piece(*n) == ";") else {
            return Ok(());
        };
        let after = self.solid(end + 1);
        if let Some(token) = self.tokens.get(after) {
            let message = "one statement at a time";
            return Err(QueryError::at(self.text, token.from, message));
        }
        self.tokens.truncate(end);
        Ok(())
    }

    /// Whether a literal is compared by its order or calculated with, as sizes are and ids are not.
    fn is_number(&self, at: usize) -> bool {
        let piece = |token: &Token| &self.text[token.from..token.to];
        let signs = |tokens: &mut dyn Iterator<Item = &Token>| -> String {
            let solid = tokens.filter(|token| token.kind != Kind::Blank);
            let signs = solid.take_while(|token| token.kind == Kind::Sign);
            signs.take(2).map(piece).collect()
        };
        let before = signs(&mut self.tokens[..at].iter().rev());
        let after = signs(&mut self.tokens[at + 1..].iter());
        let is_order = |signs: &str, differs: &str| {
            signs != differs
                && signs.starts_with(['<', '>', '+', '-', '*', '/', '%', '&', '|', '~'])
        };
        is_order(&before, "><")
            || matches!(&*before, "=<" | "=>")
            || is_order(&after, "<>")
            || self.names_numbers()
    }

    /// Whether the statement names an address, in a column or function, or a view of Perfetto, which are numbers.
    fn names_numbers(&self) -> bool {
        let names = self.tokens.iter();
        let mut names = names.filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
        names.any(|token| {
            let name = self.text[token.from..token.to].to_ascii_lowercase();
            let name = name.trim_matches(['"', '`']);
            // The bounds of `between` are compared by order.
            name.ends_with("address") || name.starts_with("heap_graph") || name == "between"
        })
    }

    fn push(&mut self, text: &str, from: usize) {
        self.out.anchors.push((self.out.sql.len(), from));
        self.out.sql.push_str(text);
    }

    /// Copies or rewrites the text that begins at a token; returns the next token.
    fn step(&mut self, at: usize, depth: &mut i64, dropped: &mut Vec<i64>) -> usize {
        let token = self.tokens[at];
        let text = self.text;
        let piece = &text[token.from..token.to];
        match (token.kind, piece) {
            (Kind::Sign, "(") => *depth += 1,
            (Kind::Sign, ")") => {
                *depth -= 1;
                if dropped.last() == Some(depth) {
                    dropped.pop();
                    self.push(" ", token.from);
                    return at + 1;
                }
            }
            // SQLite reads a number, but ids are texts in all tables.
            (Kind::Literal, _) => {
                let id = Some(piece).filter(|p| p.starts_with('0') && !self.is_number(at));
                let id = id.and_then(|p| p.parse().ok());
                if let Some(id) = id.filter(|id| (self.known.is_id)(*id)) {
                    self.push(&format!("'{id}'"), token.from);
                    return at + 1;
                }
            }
            (Kind::Word | Kind::Quoted, _) => {
                if let Some(next) = self.class(at) {
                    return next;
                }
            }
            _ => {}
        }
        if token.kind == Kind::Word {
            let next = self.solid(at + 1);
            let replaced = if self.is(at, "references") {
                Some(("\"references\"", at + 1))
            } else if self.is(at, "table") && self.piece(next) == "(" {
                dropped.push(*depth);
                *depth += 1;
                Some((" ", next + 1))
            } else if self.is(at, "lateral") {
                Some((" ", at + 1))
            } else if self.is(at, "cross") && self.is(next, "apply") {
                Some(("join", next + 1))
            } else if self.is(at, "outer") && self.is(next, "apply") {
                Some(("left join", next + 1))
            } else if self.is(at, "plan") && self.is(next, "for") {
                Some(("query plan", next + 1))
            } else {
                None
            };
            if let Some((text, next)) = replaced {
                self.push(text, token.from);
                return next;
            }
        }
        self.push(piece, token.from);
        at + 1
    }

    /// A class name that begins at a token: written as one quoted name, and added to `classes`.
    fn class(&mut self, at: usize) -> Option<usize> {
        let mut name = String::new();
        let mut next = at;
        let mut best = None;
        loop {
            let token = self.tokens.get(next)?;
            if !matches!(token.kind, Kind::Word | Kind::Quoted) {
                break;
            }
            name.push_str(&unquoted(self.piece(next)));
            next += 1;
            let mut array = next;
            let mut full = name.clone();
            loop {
                if self.known(&full) {
                    best = Some((full.clone(), array));
                }
                if self.piece(array) != "[" || self.piece(array + 1) != "]" {
                    break;
                }
                full.push_str("[]");
                array += 2;
            }
            if self.piece(next) != "." || next - at > 200 {
                break;
            }
            name.push('.');
            next += 1;
            if next >= self.tokens.len() {
                break;
            }
        }
        let (full, next) = best?;
        let table = self.table(&full);
        // In an obfuscated program, classes may be called `as` or `in`: without quotes this is the word of SQL.
        if next == at + 1 && self.tokens[at].kind == Kind::Word && is_keyword(&full) {
            return None;
        }
        let quoted = format!("\"{}\"", table.replace('"', "\"\""));
        self.push(&quoted, self.tokens[at].from);
        Some(next)
    }

    fn known(&self, full: &str) -> bool {
        let is_class = self.known.is_class;
        full == "native.ThreadStackFrames"
            || is_class(full)
            || full.strip_prefix("instanceof.").is_some_and(is_class)
    }

    /// The name of the table of a class. SQLite does not distinguish `a.B` from `a.b`, Java does.
    fn table(&mut self, full: &str) -> String {
        if full == "native.ThreadStackFrames" {
            return "ThreadStackFrames".to_owned();
        }
        let (class, subclasses) = match full.strip_prefix("instanceof.") {
            Some(class) if (self.known.is_class)(class) => (class, true),
            _ => (full, false),
        };
        let known = self.out.classes.iter();
        let same = known
            .clone()
            .find(|(_, c, s)| c == class && *s == subclasses);
        if let Some((table, _, _)) = same {
            return table.clone();
        }
        let alike = known
            .filter(|(t, _, _)| t.eq_ignore_ascii_case(full))
            .count();
        let table = match alike {
            0 => full.to_owned(),
            n => format!("{full}#{n}"),
        };
        self.out
            .classes
            .push((table.clone(), class.to_owned(), subclasses));
        table
    }
}

/// The keywords of SQLite and of the MAT Calcite dialect.
const KEYWORDS: &str = "action add after all alter always analyze and apply as asc attach autoincrement before begin \
    between by cascade case cast check collate column commit conflict constraint create cross \
    current current_date current_time current_timestamp database default deferrable deferred delete \
    desc detach distinct do drop each else end escape except exclude exclusive exists explain fail \
    filter first following for foreign from full generated glob group groups having if ignore \
    immediate in index indexed initially inner insert instead intersect into is isnull join key \
    last lateral left like limit match materialized natural no not nothing notnull null nulls of \
    offset on or order others outer over partition plan pragma preceding primary query raise range \
    recursive references regexp reindex release rename replace restrict returning right rollback \
    row rows savepoint select set table temp temporary then ties to transaction trigger unbounded \
    union unique update using vacuum values view virtual when where window with within without";

fn is_keyword(word: &str) -> bool {
    let mut keywords = KEYWORDS.split(' ');
    keywords.any(|keyword| keyword.eq_ignore_ascii_case(word))
}

fn unquoted(piece: &str) -> String {
    for quote in ['"', '`'] {
        if let Some(inner) = piece.strip_prefix(quote) {
            let inner = inner.strip_suffix(quote).unwrap_or(inner);
            return inner.replace(&format!("{quote}{quote}"), &quote.to_string());
        }
    }
    piece.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, is_class: &dyn Fn(&str) -> bool) -> Result<Rewritten, QueryError> {
        let is_id = &|id: ObjectId| id.0 == 0x7f00;
        rewrite(text, Known { is_class, is_id })
    }

    fn check(text: &str, want: &str) {
        let classes = [
            "java.util.HashMap",
            "a.B",
            "a.b",
            "byte[]",
            "Node",
            "a.B[][]",
        ];
        let found = with(text, &|name| classes.contains(&name)).expect("one statement");
        assert_eq!(found.sql, want, "{text}");
    }

    #[test]
    fn what_people_write_becomes_what_sqlite_reads() {
        for (text, want) in [
            ("select 1", "select 1"),
            (
                "select * from references r",
                "select * from \"references\" r",
            ),
            ("select 'references' from x", "select 'references' from x"),
            (
                "select * from java.util.HashMap m",
                "select * from \"java.util.HashMap\" m",
            ),
            (
                "select m.size from \"java.util.HashMap\" m",
                "select m.size from \"java.util.HashMap\" m",
            ),
            (
                "select * from instanceof.\"java.util.HashMap\"",
                "select * from \"instanceof.java.util.HashMap\"",
            ),
            (
                "select * from \"instanceof\".java.util.HashMap",
                "select * from \"instanceof.java.util.HashMap\"",
            ),
            ("select * from byte[] b", "select * from \"byte[]\" b"),
            ("select * from a.B[][]", "select * from \"a.B[][]\""),
            ("select * from a.B, a.b", "select * from \"a.B\", \"a.b#1\""),
            (
                "select u.this from Node u cross apply table(getOutboundReferences(u.this)) r",
                "select u.this from \"Node\" u join  getOutboundReferences(u.this)  r",
            ),
            ("explain plan for select 1", "explain query plan select 1"),
            (
                "select 0x7f01, 7, '0x7f00' from x where id in (0X7F00,0x007f00) -- 0x7f00",
                "select 0x7f01, 7, '0x7f00' from x where id in ('0x7f00','0x7f00') -- 0x7f00",
            ),
            (
                "select 1 from objects where address = 0x7f00",
                "select 1 from objects where address = 0x7f00",
            ),
            (
                "select 1 where id between 0x7f00 and 0x7f01",
                "select 1 where id between 0x7f00 and 0x7f01",
            ),
            (
                "select 1 where a > 0x7f00 or 0x7f00 <= a or a <> 0x7f00 or a >= 0x7f00 or 0x7f00+1=a",
                "select 1 where a > 0x7f00 or 0x7f00 <= a or a <> '0x7f00' or a >= 0x7f00 or 0x7f00+1=a",
            ),
            (
                "select * from objects -- a.B\n;",
                "select * from objects -- a.B\n",
            ),
            (
                "select java.util.HashMapp from x",
                "select java.util.HashMapp from x",
            ),
        ] {
            check(text, want);
        }
    }

    #[test]
    fn a_keyword_without_quotes_is_no_class() {
        for (text, want) in [
            (
                "select x as y from a.B in is by Desc",
                "select x as y from a.B in is by Desc",
            ),
            ("select * from \"as\"", "select * from \"as\""),
            ("select as.x from as[]", "select as.x from \"as[]\""),
            (
                "select * from instanceof.as a",
                "select * from \"instanceof.as\" a",
            ),
            ("select * from references", "select * from \"references\""),
            (
                "select 1 from x cross apply table(f(x))",
                "select 1 from x join  f(x) ",
            ),
        ] {
            let is_class = |name: &str| is_keyword(name) || name == "as[]";
            let found = with(text, &is_class).expect("one statement");
            assert_eq!(found.sql, want, "{text}");
        }
    }

    #[test]
    fn places_lead_back_to_the_text() {
        let text = "select * from references where frm = 1";
        let found = with(text, &|_| false).expect("one statement");
        let at = found.sql.find("frm").expect("still there");
        assert_eq!(found.original(at), text.find("frm").expect("there"));
    }

    #[test]
    fn a_second_statement_is_refused_at_its_place() {
        let error = with("select 1; drop table x", &|_| false).expect_err("two statements");
        assert_eq!(error.place().map(|p| p.offset), Some(10));
    }
}
