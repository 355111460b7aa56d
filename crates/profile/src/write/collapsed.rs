//! Collapsed stacks: `outer;inner 7`, the input of `flamegraph.pl` and of most viewers.

use crate::{Metric, Profile};
use hprof::visible;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One line for each distinct stack, sorted, with the metric's sum. An allocated class is the
/// innermost frame, in brackets.
pub fn write(profile: &Profile, metric: Metric) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in profile.stacks(metric) {
        let mut path = profile.path(&stack);
        if path.is_empty() {
            path.push("[no stack]".to_owned());
        }
        let path: Vec<String> = path.iter().map(|name| clean(name)).collect();
        let sum = lines.entry(path.join(";")).or_default();
        *sum = sum.saturating_add(stack.value);
    }
    let mut text = String::new();
    for (path, value) in lines {
        let _ = writeln!(text, "{path} {value}");
    }
    text
}

/// A name without the separators of the format, and without what a terminal would interpret.
fn clean(name: &str) -> String {
    visible(&name.replace([';', '\n', '\r'], "_")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;

    #[test]
    fn names_have_no_separators_and_no_terminal_escapes() {
        assert_eq!(clean("a;b\nc"), "a_b_c");
        assert_eq!(
            clean("a.B$C \u{1b}[2J\u{202e}"),
            "a.B$C \\u{1b}[2J\\u{202e}"
        );
    }

    #[test]
    fn stacks_are_outermost_first_and_sorted() {
        let profile = profile();
        assert_eq!(
            write(&profile, Metric::Samples),
            "demo.Cpu.main;demo.Cpu.<init> 3\ndemo.Cpu.main;demo.Cpu.hot 9\n"
        );
        assert_eq!(
            write(&profile, Metric::AllocatedBytes),
            "[demo.</script>] 200\ndemo.Cpu.main;demo.Cpu.<init>;[byte[]] 1600\n"
        );
        assert_eq!(
            write(&profile, Metric::Blocked),
            "demo.Cpu.main;demo.Cpu.<init>;[java.lang.Object] 40000000\n"
        );
    }
}
