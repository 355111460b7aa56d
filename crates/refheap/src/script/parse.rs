//! Parses text into a [`Script`].

use vmpi::{BasicType, GcKind};

use super::{ClassDecl, Index, Op, Script, ScriptError, Step, ThreadDecl, Variable, What};

/// The most repetitions of one loop, and the largest array.
const LIMIT: u64 = 1 << 30;

struct Parser {
    script: Script,
    globals: Vec<String>,
    locals: Vec<String>,
    counters: Vec<String>,
    /// Open blocks: their first step and whether they are loops.
    open: Vec<(usize, bool)>,
    line: i32,
}

pub(super) fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut parser = Parser {
        script: Script::default(),
        globals: Vec::new(),
        locals: Vec::new(),
        counters: Vec::new(),
        open: Vec::new(),
        line: 0,
    };
    for line in text.lines() {
        parser.line += 1;
        let code = line.split('#').next().unwrap_or_default();
        let spaced = ["=", "[", "]"].iter().fold(code.to_string(), |code, mark| {
            code.replace(mark, &format!(" {mark} "))
        });
        let words: Vec<_> = spaced.split_whitespace().collect();
        if !words.is_empty() {
            parser.statement(&words)?;
        }
    }
    parser.close_blocks()?;
    Ok(parser.script)
}

impl Parser {
    fn error<T>(&self, what: impl Into<String>) -> Result<T, ScriptError> {
        Err(ScriptError {
            line: self.line,
            what: what.into(),
        })
    }

    fn close_blocks(&self) -> Result<(), ScriptError> {
        if self.open.is_empty() {
            Ok(())
        } else {
            self.error("a repeat or call before this has no end")
        }
    }

    fn statement(&mut self, words: &[&str]) -> Result<(), ScriptError> {
        match words {
            ["class", name, rest @ ..] => self.class(name, rest),
            ["thread", name] => {
                self.close_blocks()?;
                self.locals.clear();
                self.counters.clear();
                self.script.threads.push(ThreadDecl {
                    name: (*name).into(),
                    ..ThreadDecl::default()
                });
                Ok(())
            }
            ["gc"] | ["gc", "full"] => self.step(Op::Gc(GcKind::Full)),
            ["gc", "young"] => self.step(Op::Gc(GcKind::Young)),
            ["repeat", times] => self.repeat(times, ""),
            ["repeat", times, counter] => self.repeat(times, counter),
            ["call", method] => {
                let (class, method) = self.method(method);
                let at = self.thread().steps.len();
                self.open.push((at, false));
                self.step(Op::Call(class, method))
            }
            ["end"] => self.end(),
            [into, "=", "new", what @ ..] => {
                let what = self.what(what)?;
                let into = self.variable(into)?;
                self.step(Op::New(into, what))
            }
            [into, "=", holder, "[", index, "]"] => {
                let (holder, index) = (self.variable(holder)?, self.index(index)?);
                let into = self.variable(into)?;
                self.step(Op::Load(into, holder, index))
            }
            [holder, "[", index, "]", "=", value] => {
                let (holder, index) = (self.variable(holder)?, self.index(index)?);
                let value = self.value(value)?;
                self.step(Op::Store(holder, index, value))
            }
            [into, "=", value] => {
                let value = self.value(value)?;
                let into = self.variable(into)?;
                self.step(Op::Set(into, value))
            }
            _ => self.error(format!("expected a statement, found {}", words.join(" "))),
        }
    }

    fn class(&mut self, name: &str, sizes: &[&str]) -> Result<(), ScriptError> {
        if self.script.classes.iter().any(|class| class.name == name) {
            return self.error(format!("class {name} is there already"));
        }
        let number = |this: &Self, at: usize| match sizes.get(at) {
            None => Ok(0),
            Some(text) => match text.parse::<u32>() {
                Ok(number) if number <= 1 << 16 => Ok(number),
                _ => this.error(format!("expected a number up to 65536, found {text}")),
            },
        };
        if sizes.len() > 2 {
            return self.error("expected: class NAME REFERENCES BYTES");
        }
        let (slots, data) = (number(self, 0)?, number(self, 1)?);
        self.script.classes.push(ClassDecl {
            name: name.into(),
            slots,
            data,
            methods: Vec::new(),
        });
        Ok(())
    }

    /// A method by its name; the part before the last dot is its class, which need not be declared.
    fn method(&mut self, name: &str) -> (usize, usize) {
        let (class, method) = name.rsplit_once('.').unwrap_or(("Script", name));
        let classes = &mut self.script.classes;
        let at = classes
            .iter()
            .position(|one| one.name == class)
            .unwrap_or_else(|| {
                classes.push(ClassDecl {
                    name: class.into(),
                    slots: 0,
                    data: 0,
                    methods: Vec::new(),
                });
                classes.len() - 1
            });
        let methods = &mut classes[at].methods;
        let place = methods
            .iter()
            .position(|one| one == method)
            .unwrap_or_else(|| {
                methods.push(method.into());
                methods.len() - 1
            });
        (at, place)
    }

    fn thread(&mut self) -> &mut ThreadDecl {
        if self.script.threads.is_empty() {
            self.script.threads.push(ThreadDecl {
                name: "main".into(),
                ..ThreadDecl::default()
            });
        }
        self.script.threads.last_mut().expect("one was just made")
    }

    fn step(&mut self, op: Op) -> Result<(), ScriptError> {
        let line = self.line;
        self.thread().steps.push(Step { line, op });
        Ok(())
    }

    fn repeat(&mut self, times: &str, counter: &str) -> Result<(), ScriptError> {
        let times = match times.parse::<u64>() {
            Ok(times) if times <= LIMIT => times,
            _ => return self.error(format!("expected how often, up to {LIMIT}, found {times}")),
        };
        self.counters.push(counter.into());
        let counter = self.counters.len() as u32 - 1;
        let thread = self.thread();
        thread.counters = counter + 1;
        let at = thread.steps.len();
        self.open.push((at, true));
        self.step(Op::Repeat {
            times,
            counter,
            end: 0,
        })
    }

    fn end(&mut self) -> Result<(), ScriptError> {
        let Some((start, is_loop)) = self.open.pop() else {
            return self.error("end of nothing");
        };
        let at = self.thread().steps.len();
        if !is_loop {
            return self.step(Op::EndCall);
        }
        if let Op::Repeat { end, counter, .. } = &mut self.thread().steps[start].op {
            *end = at;
            let counter = *counter as usize;
            // The name can be used again; its index stays occupied.
            self.counters[counter].clear();
        }
        self.step(Op::EndRepeat { start })
    }

    fn variable(&mut self, name: &str) -> Result<Variable, ScriptError> {
        let (all, plain, global) = match name.strip_prefix('$') {
            Some(plain) => (&mut self.globals, plain, true),
            None => (&mut self.locals, name, false),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = plain.chars().all(fits) && !plain.is_empty();
        if !word
            || matches!(plain, "null" | "new")
            || plain.starts_with(|c: char| c.is_ascii_digit())
        {
            return self.error(format!("expected a variable, found {name}"));
        }
        let at = all.iter().position(|one| one == plain).unwrap_or_else(|| {
            all.push(plain.into());
            all.len() - 1
        });
        let at = at as u32;
        Ok(if global {
            Variable::Global(at)
        } else {
            Variable::Local(at)
        })
    }

    fn value(&mut self, name: &str) -> Result<Option<Variable>, ScriptError> {
        if name == "null" {
            Ok(None)
        } else {
            self.variable(name).map(Some)
        }
    }

    fn index(&self, text: &str) -> Result<Index, ScriptError> {
        if let Ok(number) = text.parse::<u32>() {
            return Ok(Index::Number(number));
        }
        match self
            .counters
            .iter()
            .rposition(|one| one == text && !one.is_empty())
        {
            Some(at) => Ok(Index::Counter(at as u32)),
            None => self.error(format!("expected a number or a counter, found {text}")),
        }
    }

    fn what(&self, words: &[&str]) -> Result<What, ScriptError> {
        let (name, len) = match words {
            [name] => (*name, None),
            [name, "[", len, "]"] => match len.parse::<u32>() {
                Ok(len) if u64::from(len) <= LIMIT => (*name, Some(len)),
                _ => return self.error(format!("expected a length, found {len}")),
            },
            _ => return self.error("expected: new CLASS, new CLASS[LENGTH] or new TYPE[LENGTH]"),
        };
        let primitive = match name {
            "boolean" => Some(BasicType::Boolean),
            "char" => Some(BasicType::Char),
            "float" => Some(BasicType::Float),
            "double" => Some(BasicType::Double),
            "byte" => Some(BasicType::Byte),
            "short" => Some(BasicType::Short),
            "int" => Some(BasicType::Int),
            "long" => Some(BasicType::Long),
            _ => None,
        };
        let class = self
            .script
            .classes
            .iter()
            .position(|class| class.name == name);
        match (primitive, class, len) {
            (Some(kind), _, Some(len)) => Ok(What::Primitive(kind, len)),
            (Some(_), _, None) => self.error(format!("expected new {name}[LENGTH]")),
            (None, Some(class), None) => Ok(What::Instance(class)),
            (None, Some(class), Some(len)) => Ok(What::Array(class, len)),
            (None, None, _) => self.error(format!("class {name} is not declared")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT, Script};

    #[test]
    fn faults_are_reported_with_their_line() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Script>().expect_err(text);
            assert_eq!(error.to_string(), expected);
        };
        check("x = new Node", "line 1: class Node is not declared");
        check("class N 1\nclass N 2", "line 2: class N is there already");
        check(
            "repeat 3\n",
            "line 1: a repeat or call before this has no end",
        );
        check("end", "line 1: end of nothing");
        check("\n\nfree x", "line 3: expected a statement, found free x");
        check(
            "class N 1\na = new N\na[i] = a",
            "line 3: expected a number or a counter, found i",
        );
        check("a = new int", "line 1: expected new int[LENGTH]");
        check(
            "repeat many\nend",
            "line 1: expected how often, up to 1073741824, found many",
        );
        check("1 = null", "line 1: expected a variable, found 1");
    }

    #[test]
    fn the_default_script_has_two_threads() {
        let script: Script = DEFAULT.parse().unwrap();
        let names: Vec<_> = script
            .threads
            .iter()
            .map(|thread| thread.name.as_str())
            .collect();
        assert_eq!(names, ["main", "worker"]);
    }
}
