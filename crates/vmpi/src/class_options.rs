//! What is recorded and examined of each class, by patterns for modules and classes: the options of the Cougaar memory
//! profiler as lines of text, which may change while the program runs.
//!
//! A line is `MODULE CLASS OPTIONS`. The first line that matches a class applies; a class that no line matches is
//! examined in full.
//!
//! ```
//! use vmpi::class_options::{Choice, Rules};
//!
//! let rules = Rules::parse("java.base java.util.** size,ratio=0.1\n* java.** off\n").unwrap();
//! let list = rules.of("java.base", "java.util.ArrayList");
//! assert!(matches!(list, Choice::Record(options) if options.share.ratio() == 0.1));
//! assert_eq!(*rules.of("java.base", "java.lang.String"), Choice::Off);
//! ```

use std::fmt;

/// The share of objects that is examined, in millionths: the probability of each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Every object.
    pub const ALL: Share = Share(1_000_000);

    /// The nearest share to a ratio above 0 and at most 1, a millionth at least; `None` for
    /// other numbers.
    #[must_use]
    pub fn new(ratio: f64) -> Option<Share> {
        let is_share = ratio > 0.0 && ratio <= 1.0;
        is_share.then(|| Share(((ratio * 1e6).round() as u32).max(1)))
    }

    /// The ratio, above 0 and at most 1.
    #[must_use]
    pub fn ratio(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// In millionths.
    #[must_use]
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// Whether an object is selected, given a random number of 32 bits.
    #[must_use]
    pub fn chooses(self, random: u32) -> bool {
        u64::from(random) * 1_000_000 < u64::from(self.0) << 32
    }
}

impl Default for Share {
    fn default() -> Share {
        Share::ALL
    }
}

/// What is recorded of the objects of a class in addition to their number, and of how many of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassOptions {
    /// The allocation time, which is given by the order in which stacks are first used.
    pub time: bool,
    /// The stacks that allocated them.
    pub stack: bool,
    /// The number of their elements.
    pub size: bool,
    /// The number of elements for which they have space.
    pub capacity: bool,
    /// The thread that allocated them.
    pub context: bool,
    /// How many of them are examined.
    pub share: Share,
}

impl ClassOptions {
    /// Everything but the thread, of every object: the default for classes without a line.
    pub const FULL: ClassOptions = ClassOptions {
        time: true,
        stack: true,
        size: true,
        capacity: true,
        context: false,
        share: Share::ALL,
    };

    /// The bits of the original's options: time 1, stack 2, size 4, capacity 8, context 16.
    #[must_use]
    pub fn from_bits(bits: u8, share: Share) -> ClassOptions {
        let has = |bit: u8| bits & bit != 0;
        ClassOptions {
            time: has(1),
            stack: has(2),
            size: has(4),
            capacity: has(8),
            context: has(16),
            share,
        }
    }

    /// The bits of these options, as in [`ClassOptions::from_bits`].
    #[must_use]
    pub fn bits(self) -> u8 {
        let all = [
            self.time,
            self.stack,
            self.size,
            self.capacity,
            self.context,
        ];
        let bits = all.iter().enumerate();
        bits.map(|(at, on)| u8::from(*on) << at).sum()
    }
}

/// The choice of a line for the classes that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// They are not recorded.
    Off,
    /// They are recorded with these options.
    Record(ClassOptions),
    /// A class of the program decides, with its method `getOptions(module, class)`.
    Ask(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    module: Vec<char>,
    class: Vec<char>,
    choice: Choice,
}

/// All lines.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
    text: String,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.text).finish()
    }
}

/// A line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct WrongLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// The longest accepted text; much longer than any real one.
pub const MOST_TEXT: usize = 1 << 20;
/// The longest pattern.
const MOST_PATTERN: usize = 1024;

/// Whether a pattern matches a name: `*` matches any part of it between dots, `**` anything, `?` one character except a
/// dot. The time is at most the product of the lengths, for every pattern.
fn fits(pattern: &[char], name: &str) -> bool {
    // The prefixes of the pattern that match the part of the name that was read so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let star = |at: usize| pattern.get(at) == Some(&'*');
    // A run of stars also matches nothing.
    let skip = |reached: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            if reached[at] && star(at) {
                reached[at + 1] = true;
            }
        }
    };
    skip(&mut reached);
    for c in name.chars() {
        let mut next = vec![false; pattern.len() + 1];
        for at in (0..pattern.len()).filter(|at| reached[*at]) {
            match pattern[at] {
                '*' => {
                    let is_any = star(at + 1) || at > 0 && star(at - 1);
                    next[at] |= is_any || c != '.';
                }
                '?' => next[at + 1] |= c != '.',
                own => next[at + 1] |= own == c,
            }
        }
        skip(&mut next);
        reached = next;
    }
    reached[pattern.len()]
}

fn pattern(text: &str) -> Result<Vec<char>, String> {
    if text.len() > MOST_PATTERN {
        return Err(format!("a pattern of more than {MOST_PATTERN} bytes"));
    }
    Ok(text.chars().collect())
}

fn choice(words: &str) -> Result<Choice, String> {
    if words == "off" {
        return Ok(Choice::Off);
    }
    if let Some(factory) = words.strip_prefix("factory=") {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$');
        return match !factory.is_empty() && factory.chars().all(is_name) {
            true => Ok(Choice::Ask(factory.to_owned())),
            false => Err(format!("factory={factory}: expected the name of a class")),
        };
    }
    let mut options = ClassOptions::default();
    for word in words.split(',') {
        match (word, word.strip_prefix("ratio=")) {
            ("all", _) => {
                options = ClassOptions {
                    share: options.share,
                    context: options.context,
                    ..ClassOptions::FULL
                }
            }
            ("count", _) => {}
            ("time", _) => options.time = true,
            ("stack", _) => options.stack = true,
            ("size", _) => options.size = true,
            ("capacity", _) => options.capacity = true,
            ("context", _) => options.context = true,
            (_, Some(ratio)) => {
                let share = ratio.parse().ok().and_then(Share::new);
                let wrong = || format!("ratio={ratio}: expected a number above 0 and at most 1");
                options.share = share.ok_or_else(wrong)?;
            }
            _ => {
                return Err(format!(
                    "{word}: expected off, factory=CLASS, or all, count, time, stack, size, \
                     capacity, context and ratio=R"
                ));
            }
        }
    }
    Ok(Choice::Record(options))
}

impl Rules {
    /// Parses lines; empty ones and those that begin with `#` are ignored.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Rules, WrongLine> {
        let wrong = |line: usize, what: String| WrongLine { line, what };
        if text.len() > MOST_TEXT {
            return Err(wrong(0, format!("more than {MOST_TEXT} bytes")));
        }
        let mut rules = Vec::new();
        for (line, printed) in (1..).zip(text.lines()) {
            let printed = printed.trim();
            if printed.is_empty() || printed.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = printed.split_whitespace().collect();
            let [module, class, options] = words[..] else {
                return Err(wrong(line, "expected MODULE CLASS OPTIONS".to_owned()));
            };
            // Any module, named or unnamed.
            let module = if module == "*" { "**" } else { module };
            let rule = pattern(module).and_then(|module| {
                Ok(Rule {
                    module,
                    class: pattern(class)?,
                    choice: choice(options)?,
                })
            });
            rules.push(rule.map_err(|what| wrong(line, what))?);
        }
        Ok(Rules {
            rules,
            text: text.to_owned(),
        })
    }

    /// The lines.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether there are no lines, so that everything is examined in full.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any line lets a class of the program decide.
    #[must_use]
    pub fn asks(&self) -> bool {
        let is_asked = |rule: &Rule| matches!(rule.choice, Choice::Ask(_));
        self.rules.iter().any(is_asked)
    }

    /// Whether allocation times may be needed for any class.
    #[must_use]
    pub fn may_want_time(&self) -> bool {
        for rule in &self.rules {
            let is_all = rule.module == ['*', '*'] && rule.class == ['*', '*'];
            match &rule.choice {
                Choice::Record(options) if options.time => return true,
                Choice::Ask(_) => return true,
                _ if is_all => return false,
                _ => {}
            }
        }
        true
    }

    /// The choice for a class, by its name as in Java source; the module is empty for none.
    #[must_use]
    pub fn of(&self, module: &str, class: &str) -> &Choice {
        const FULL: &Choice = &Choice::Record(ClassOptions::FULL);
        let found = self
            .rules
            .iter()
            .find(|rule| fits(&rule.class, class) && fits(&rule.module, module));
        found.map_or(FULL, |rule| &rule.choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_parts_of_names() {
        let check = |text: &str, name: &str, expected: bool| {
            let pattern = pattern(text).unwrap();
            assert_eq!(fits(&pattern, name), expected, "{text} {name}");
        };
        check("a.b.C", "a.b.C", true);
        check("a.b.C", "a.b.CD", false);
        check("a.*", "a.B", true);
        check("a.*", "a.b.C", false);
        check("a.**", "a.b.C", true);
        check("a.**", "ab.C", false);
        check("**", "", true);
        check("*", "", true);
        check("*.*Map", "util.HashMap", true);
        check("**Map", "java.util.HashMap", true);
        check("***", "a.b", true);
        check("?.B", "a.B", true);
        check("?.B", "..B", false);
        check("a$*[]", "a$b[]", true);
        check("a.*", "", false);
        // No pattern takes long to match.
        let stars = "*a".repeat(500);
        check(&stars, &"a".repeat(499), false);
        check(&stars, &"a".repeat(500), true);
    }

    #[test]
    fn the_first_line_that_fits_holds() {
        let rules = Rules::parse(
            "# what I look at\n\njava.base java.lang.String count,ratio=0.01\n\
             xerces org.apache.* stack,time,context\n* org.apache.** off\n* int[] size\n\
             * old.** factory=foo.MyConfig\n",
        )
        .unwrap();
        let of = |module: &str, class: &str| match rules.of(module, class) {
            Choice::Record(options) => Some(*options),
            _ => None,
        };
        let string = of("java.base", "java.lang.String").unwrap();
        assert_eq!((string.share.ratio(), string.stack), (0.01, false));
        assert_eq!(of("", "java.lang.String"), Some(ClassOptions::FULL));
        let one = of("xerces", "org.apache.Entry").unwrap();
        assert!(one.stack && one.time && one.context && !one.size);
        assert_eq!(*rules.of("xerces", "org.apache.dom.Entry"), Choice::Off);
        assert_eq!(*rules.of("", "org.apache.Entry"), Choice::Off);
        assert!(of("", "int[]").unwrap().size);
        assert_eq!(of("", "org.apachex.Entry"), Some(ClassOptions::FULL));
        let asked = Choice::Ask("foo.MyConfig".to_owned());
        assert_eq!(*rules.of("", "old.Thing"), asked);
    }

    #[test]
    fn times_are_not_wanted_only_if_every_class_is_without() {
        for (text, expected) in [
            ("", true),
            ("* a.** off", true),
            ("* ** count", false),
            ("* a.B time\n* ** count", true),
            ("* ** count\n* a.B time", false),
            ("* a.B factory=c.D\n* ** off", true),
        ] {
            assert_eq!(
                Rules::parse(text).unwrap().may_want_time(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_lines_are_named() {
        let check = |text: &str, part: &str| {
            let fault = Rules::parse(text).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        };
        check("* java.**", "line 1: expected MODULE");
        check("\n* a.B colour", "line 2: colour");
        check("* a.B ratio=0", "ratio=0");
        check("* a.B ratio=nan", "ratio=nan");
        check("* a.B factory=", "factory=");
        check("* a.B factory=a/B", "factory=a/B");
        check(&format!("* {} off", "a".repeat(2000)), "line 1: a pattern");
    }

    #[test]
    fn shares_choose_as_many_as_they_say_and_bits_are_those_of_the_original() {
        assert_eq!(Share::new(0.0), None);
        assert_eq!(Share::new(1.5), None);
        assert_eq!(Share::new(1e-9).map(Share::millionths), Some(1));
        assert!(Share::ALL.chooses(u32::MAX));
        let tenth = Share::new(0.1).unwrap();
        let chosen = (0..1000u32)
            .filter(|n| tenth.chooses(n * 4_294_967))
            .count();
        assert!((99..=101).contains(&chosen), "{chosen}");
        assert_eq!(ClassOptions::FULL.bits(), 15);
        for bits in 0..32 {
            assert_eq!(ClassOptions::from_bits(bits, tenth).bits(), bits);
        }
    }
}
