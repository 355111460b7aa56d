//! The options of the library itself.

use std::path::PathBuf;

/// The clock that `GetCurrentThreadCpuTime` reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CpuTime {
    /// CPU time, but elapsed time while monitor events are enabled: agents measure blocking with this function, and a
    /// blocked thread uses no CPU.
    #[default]
    Auto,
    /// CPU time of the thread.
    Thread,
    /// Elapsed time.
    Elapsed,
}

/// The parsed words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) cpu_time: CpuTime,
    /// Mean bytes between two allocation events of the sampler, 0 for every allocation.
    pub(crate) alloc: i32,
}

/// The agent to load, and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentLibrary {
    pub(crate) path: PathBuf,
    pub(crate) options: String,
}

/// Reads `[:words:][LIBRARY[:options]]`, with words `cputime=auto|thread|elapsed`
/// and `alloc=BYTES`, separated by commas.
///
/// # Errors
/// One line that states which word is wrong.
pub(crate) fn parse(text: &str) -> Result<(Words, Option<AgentLibrary>), String> {
    let mut words = Words::default();
    let mut rest = text;
    if let Some(own) = text.strip_prefix(':') {
        let (own, after) = own.split_once(':').unwrap_or((own, ""));
        rest = after;
        for word in own.split(',').filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("cputime", "auto")) => words.cpu_time = CpuTime::Auto,
                Some(("cputime", "thread")) => words.cpu_time = CpuTime::Thread,
                Some(("cputime", "elapsed")) => words.cpu_time = CpuTime::Elapsed,
                Some(("alloc", bytes)) => {
                    let bytes = bytes.parse::<i32>().ok().filter(|bytes| *bytes >= 0);
                    words.alloc = bytes
                        .ok_or(format!("{word}: expected a number of bytes, such as 65536"))?;
                }
                _ => {
                    return Err(format!(
                        "{word} is not one of cputime=auto|thread|elapsed, alloc=BYTES"
                    ));
                }
            }
        }
    }
    if rest.is_empty() {
        return Ok((words, None));
    }
    let (path, options) = rest.split_once(':').unwrap_or((rest, ""));
    let library = AgentLibrary {
        path: PathBuf::from(path),
        options: options.to_owned(),
    };
    Ok((words, Some(library)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_come_before_the_agent_and_its_options() {
        let check = |text: &str, cpu, alloc, library: Option<(&str, &str)>| {
            let (words, found) = parse(text).unwrap();
            assert_eq!((words.cpu_time, words.alloc), (cpu, alloc), "{text}");
            let found = found.map(|l| (l.path.to_str().unwrap().to_owned(), l.options));
            let expected = library.map(|(path, options)| (path.to_owned(), options.to_owned()));
            assert_eq!(found, expected, "{text}");
        };
        check("", CpuTime::Auto, 0, None);
        check("/a/libx.so", CpuTime::Auto, 0, Some(("/a/libx.so", "")));
        check(
            "x:heap=all,b:c",
            CpuTime::Auto,
            0,
            Some(("x", "heap=all,b:c")),
        );
        check(":cputime=elapsed:", CpuTime::Elapsed, 0, None);
        check(
            ":cputime=thread,alloc=512:x:y",
            CpuTime::Thread,
            512,
            Some(("x", "y")),
        );
    }

    #[test]
    fn a_wrong_word_is_named() {
        for text in [":cputime=never:x", ":alloc=-1:x", ":alloc=much:x", ":fast"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
