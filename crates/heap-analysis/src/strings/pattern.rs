//! Whether a text has a match of a pattern. A long text is read character by character, never decoded as a whole: one
//! string may have hundreds of millions.

use heap_graph::{string_characters, string_text};
use hprof::BasicType;
use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::start;

/// Texts with more bytes are read character by character.
const LONG: usize = 1 << 20;

/// A pattern with the scratch space of one thread.
pub(crate) struct Matcher {
    pattern: Regex,
    /// An automaton for long texts; the inner `None` if there is none for this pattern.
    automaton: Option<Option<(DFA, Cache)>>,
    long: usize,
}

impl Matcher {
    pub(crate) fn new(pattern: &Regex) -> Matcher {
        Matcher {
            // Each clone has its own scratch space, so that workers do not wait for each other.
            pattern: pattern.clone(),
            automaton: None,
            long: LONG,
        }
    }

    /// Whether the text in these bytes of an array matches; false if they have none.
    pub(crate) fn is_match(&mut self, element: BasicType, coder: Option<i8>, data: &[u8]) -> bool {
        if data.len() > self.long
            && let Some(characters) = string_characters(element, coder, data)
            && let Some(matches) = self.in_characters(characters)
        {
            return matches;
        }
        string_text(element, coder, data).is_some_and(|text| self.pattern.is_match(&text))
    }

    /// `None` if it cannot be decided without the whole text.
    fn in_characters(&mut self, characters: impl Iterator<Item = char>) -> Option<bool> {
        let pattern = self.pattern.as_str();
        let automaton = self.automaton.get_or_insert_with(|| {
            let config = DFA::config().unicode_word_boundary(true);
            let built = DFA::builder().configure(config).build(pattern).ok()?;
            let cache = built.create_cache();
            Some((built, cache))
        });
        let (automaton, cache) = automaton.as_mut()?;
        let mut state = automaton.start_state(cache, &start::Config::new()).ok()?;
        let mut bytes = [0; 4];
        for character in characters {
            for byte in character.encode_utf8(&mut bytes).bytes() {
                state = automaton.next_state(cache, state, byte).ok()?;
                if state.is_tagged() {
                    if state.is_match() {
                        return Some(true);
                    }
                    if state.is_dead() {
                        return Some(false);
                    }
                    if state.is_quit() {
                        return None;
                    }
                }
            }
        }
        let end = automaton.next_eoi_state(cache, state).ok()?;
        Some(end.is_match())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_match_as_short_ones_do() {
        let patterns = [
            "^$",
            "^ab",
            "b$",
            "a.*z",
            "(?i)XY",
            r"\bxy\b",
            "\u{e9}",
            "[^a]{3}",
            "",
            "(?m)^x",
            r"\d+\b$",
            "\u{1f600}|q",
        ];
        let texts = [
            "",
            "ab",
            "aab",
            "xy",
            "a xy z",
            "a\u{e9} xy\n x",
            "\u{1f600}",
            "zzz1",
            "q",
            "caf\u{e9}s 12",
            "xy\u{e9}",
        ];
        for pattern in patterns {
            let regex = Regex::new(pattern).expect("a pattern");
            let mut matcher = Matcher {
                long: 0,
                ..Matcher::new(&regex)
            };
            for text in texts {
                let want = regex.is_match(text);
                let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
                let got = matcher.is_match(BasicType::Char, None, &wide);
                assert_eq!(got, want, "{pattern} in {text:?}");
                if text.chars().all(|c| c < '\u{100}') {
                    let narrow: Vec<u8> = text.chars().map(|c| c as u8).collect();
                    let got = matcher.is_match(BasicType::Byte, Some(0), &narrow);
                    assert_eq!(got, want, "{pattern} in {text:?}");
                }
            }
        }
    }

    #[test]
    fn the_usual_patterns_need_no_whole_text() {
        for pattern in [
            "jdbc:.*",
            "^https?://",
            "a|b",
            r"(?i)secret\s*=",
            "\u{e9}+$",
        ] {
            let regex = Regex::new(pattern).expect("a pattern");
            let mut matcher = Matcher::new(&regex);
            let text = "x\u{e9}".chars().cycle().take(1000);
            let want = pattern.starts_with('\u{e9}');
            assert_eq!(matcher.in_characters(text), Some(want), "{pattern}");
        }
    }
}
