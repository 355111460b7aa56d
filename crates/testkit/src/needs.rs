//! What a test needs of the machine, and what becomes of a test on a machine that lacks it.
//!
//! A test that cannot run calls [`skip`] and returns. That is printed, counted at the end of
//! `./x test`, and is a failure where `TENURE_REQUIRE` names the need: `TENURE_REQUIRE=jdk,node`.

use std::io::Write;

/// Something that a test needs and a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A JDK with a compiler.
    Jdk,
    /// A JDK 8, which has the original agent and jhat.
    Jdk8,
    /// A part that only some JDKs have: a collector, a version, a tool.
    JdkPart,
    /// A C compiler.
    Cc,
    /// Chromium.
    Chromium,
    /// Node.
    Node,
    /// The TypeScript compiler.
    Tsc,
    /// A linter for JavaScript.
    Oxlint,
    /// Python 3.
    Python,
    /// The Python package `duckdb`.
    DuckDb,
    /// The shared corpus, workloads and recorded runs beside the workspace.
    Shared,
    /// Another program: a terminal recorder, a reader of profiles.
    Program,
    /// The rights of root.
    Root,
    /// A package from a registry.
    Network,
    /// Time: the test runs in `./x matrix` only.
    Matrix,
}

impl Need {
    /// Every need.
    pub const ALL: [Need; 15] = [
        Need::Jdk,
        Need::Jdk8,
        Need::JdkPart,
        Need::Cc,
        Need::Chromium,
        Need::Node,
        Need::Tsc,
        Need::Oxlint,
        Need::Python,
        Need::DuckDb,
        Need::Shared,
        Need::Program,
        Need::Root,
        Need::Network,
        Need::Matrix,
    ];

    /// The word for it in `TENURE_REQUIRE`.
    pub fn word(self) -> &'static str {
        match self {
            Need::Jdk => "jdk",
            Need::Jdk8 => "jdk8",
            Need::JdkPart => "jdk-part",
            Need::Cc => "cc",
            Need::Chromium => "chromium",
            Need::Node => "node",
            Need::Tsc => "tsc",
            Need::Oxlint => "oxlint",
            Need::Python => "python",
            Need::DuckDb => "duckdb",
            Need::Shared => "shared",
            Need::Program => "program",
            Need::Root => "root",
            Need::Network => "network",
            Need::Matrix => "matrix",
        }
    }
}

/// Reports that a test, or a part of it, does nothing on this machine.
///
/// # Panics
/// If `TENURE_REQUIRE` names the need, or a word that is no need.
#[expect(
    clippy::print_stderr,
    reason = "tests talk to the person who runs them"
)]
pub fn skip(test: &str, need: Need, reason: &str) {
    let required = std::env::var("TENURE_REQUIRE").unwrap_or_default();
    match is_required(need, &required) {
        Ok(false) => {}
        Ok(true) => panic!("TENURE_REQUIRE names {}, but {test}: {reason}", need.word()),
        Err(word) => panic!("TENURE_REQUIRE: {word:?} is no need of a test"),
    }
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(list) = std::env::var_os("TENURE_SKIPPED") {
        let name = std::env::var("NEXTEST_TEST_NAME").unwrap_or_default();
        let line = format!("{name}\t{}\t{test}: {reason}\n", need.word());
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&list);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    }
}

/// Whether a list of words, separated by commas, has the need; the first unknown word otherwise.
fn is_required(need: Need, required: &str) -> Result<bool, String> {
    let words = required
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let mut found = false;
    for word in words {
        if !Need::ALL.iter().any(|known| known.word() == word) {
            return Err(word.to_owned());
        }
        found |= word == need.word();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Need, is_required};

    #[test]
    fn only_a_need_that_is_named_is_required() {
        assert_eq!(is_required(Need::Jdk, ""), Ok(false));
        assert_eq!(is_required(Need::Jdk, "jdk8, node"), Ok(false));
        assert_eq!(is_required(Need::Jdk8, "jdk8, node"), Ok(true));
        assert_eq!(is_required(Need::Jdk, "jdk9"), Err("jdk9".to_owned()));
    }
}
