//! Every option in one table: the parser's names, the help text and the documentation come from
//! here (facts: `spec/hprof-agent.md` section 1).

/// Where an option comes from, which decides where the help text shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the original's help.
    Original,
    /// Accepted by the original, with no effect there or here.
    Obsolete,
    /// Accepted by the original, absent from its help.
    Undocumented,
    /// Accepted by the original only to report that the option was removed.
    Removed,
    /// New in Tenure.
    New,
}

/// The kind of value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// `y` or `n`.
    Switch,
    /// One of the listed words.
    Words,
    /// A whole number of zero or more.
    Number,
    /// A time: milliseconds when it has no unit.
    Time,
    /// A number of bytes with an optional `k`, `m` or `g`.
    Size,
    /// A share between 0 and 1.
    Ratio,
    /// Free text up to the next comma.
    Text,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// The name before the `=`.
    pub name: &'static str,
    /// The form of the value in the help text.
    pub form: &'static str,
    /// What the option does, in the help text.
    pub help: &'static str,
    /// The default, in the help text.
    pub default: &'static str,
    /// The kind of value.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

const fn row(
    origin: Origin,
    name: &'static str,
    value: Value,
    form: &'static str,
    help: &'static str,
    default: &'static str,
) -> OptionRow {
    OptionRow {
        name,
        form,
        help,
        default,
        value,
        origin,
    }
}

use Origin::{New, Obsolete, Original, Removed, Undocumented};
use Value::{Number, Ratio, Size, Switch, Text, Time, Words};

/// Every option the agent knows, in the order of the original's help.
pub const OPTIONS: &[OptionRow] = &[
    row(
        Original,
        "heap",
        Words,
        "dump|sites|all",
        "heap profiling",
        "all",
    ),
    row(
        Original,
        "cpu",
        Words,
        "samples|times|old",
        "CPU usage",
        "off",
    ),
    row(
        Original,
        "monitor",
        Switch,
        "y|n",
        "monitor contention",
        "n",
    ),
    row(
        Original,
        "format",
        Words,
        "a|b",
        "text(txt) or binary output",
        "a",
    ),
    row(
        Original,
        "file",
        Text,
        "<file>",
        "write data to file",
        "java.hprof[{.txt}]",
    ),
    row(
        Original,
        "net",
        Text,
        "<host>:<port>",
        "send data over a socket",
        "off",
    ),
    row(
        Original,
        "depth",
        Number,
        "<size>",
        "stack trace depth",
        "4",
    ),
    row(
        Original,
        "interval",
        Time,
        "<ms>",
        "sample interval in ms",
        "10",
    ),
    row(
        Original,
        "cutoff",
        Ratio,
        "<value>",
        "output cutoff point",
        "0.0001",
    ),
    row(
        Original,
        "lineno",
        Switch,
        "y|n",
        "line number in traces?",
        "y",
    ),
    row(Original, "thread", Switch, "y|n", "thread in traces?", "n"),
    row(Original, "doe", Switch, "y|n", "dump on exit?", "y"),
    row(
        Original,
        "msa",
        Switch,
        "y|n",
        "Solaris micro state accounting",
        "n",
    ),
    row(
        Original,
        "force",
        Switch,
        "y|n",
        "force output to <file>",
        "y",
    ),
    row(
        Original,
        "verbose",
        Switch,
        "y|n",
        "print messages about dumps",
        "y",
    ),
    row(Obsolete, "gc_okay", Switch, "y|n", "no effect", "n"),
    row(
        Undocumented,
        "primfields",
        Switch,
        "y|n",
        "primitive fields in binary dumps",
        "y",
    ),
    row(
        Undocumented,
        "primarrays",
        Switch,
        "y|n",
        "primitive arrays in binary dumps",
        "y",
    ),
    row(Undocumented, "logflags", Number, "<mask>", "no effect", "0"),
    row(
        Undocumented,
        "debugflags",
        Number,
        "<mask>",
        "no effect",
        "0",
    ),
    row(Undocumented, "coredump", Switch, "y|n", "no effect", "n"),
    row(Undocumented, "errorexit", Switch, "y|n", "no effect", "n"),
    row(Undocumented, "pause", Switch, "y|n", "no effect", "n"),
    row(Undocumented, "debug", Switch, "y|n", "no effect", "n"),
    row(Undocumented, "X", Number, "<mask>", "no effect", "0"),
    row(Removed, "exitpause", Text, "", "", ""),
    row(Removed, "precrash", Text, "", "", ""),
    row(
        New,
        "alloc",
        Size,
        "<size>",
        "sample one allocation per size",
        "off",
    ),
    row(
        New,
        "memory",
        Size,
        "<size>",
        "most native memory of tables",
        "256m",
    ),
    row(
        New,
        "tracked",
        Number,
        "<n>",
        "most tracked objects, 0: all",
        "by the GC",
    ),
    row(New, "live", Switch, "y|n", "track sampled objects", "y"),
    row(
        New,
        "events",
        Size,
        "<size>",
        "VM events, an object per size",
        "off",
    ),
    row(
        New,
        "events-file",
        Text,
        "<file>",
        "events output beside a profile",
        "java.events",
    ),
    row(
        New,
        "events-depth",
        Number,
        "<size>",
        "depth of their stacks, 64 at most",
        "4",
    ),
    row(
        New,
        "events-net",
        Text,
        "<host>:<port>",
        "the same, over a socket",
        "off",
    ),
    row(New, "loop", Time, "<time>", "a new file each <time>", "off"),
    row(
        New,
        "keep",
        Size,
        "<n>|<size>",
        "files of loop= to keep",
        "24",
    ),
    row(
        New,
        "duration",
        Time,
        "<time>",
        "end the recording after it",
        "none",
    ),
    row(
        New,
        "exact",
        Switch,
        "y|n",
        "exact live counts of all sites",
        "n",
    ),
    row(
        New,
        "stacks",
        Words,
        "exact|sampled",
        "stacks of heap=sites",
        "exact",
    ),
    row(
        New,
        "oom",
        Words,
        "y|n|snapshot",
        "dump at first OutOfMemoryError",
        "as modern",
    ),
    row(
        New,
        "cow-limit",
        Size,
        "<size>",
        "most memory of that snapshot",
        "free/4",
    ),
    row(New, "jni", Switch, "y|n", "global references of JNI", "n"),
    row(New, "own", Switch, "y|n", "run toString, equals, ...", "n"),
    row(
        New,
        "secret-file",
        Text,
        "<file>",
        "secret shared with collector",
        "none",
    ),
    row(
        New,
        "insecure",
        Switch,
        "y|n",
        "net= elsewhere without secret",
        "n",
    ),
    row(
        New,
        "native",
        Size,
        "<size>",
        "sample malloc, a block per size",
        "off",
    ),
    row(
        New,
        "wall",
        Time,
        "<time>|y|n",
        "sample running, waiting threads",
        "n",
    ),
    row(
        New,
        "safepoint",
        Switch,
        "y|n",
        "sample at safepoints only",
        "n",
    ),
    row(
        New,
        "frames",
        Words,
        "java|native|kernel",
        "frames of samples",
        "java",
    ),
    row(
        New,
        "compat",
        Switch,
        "y|n",
        "output as the original's",
        "y",
    ),
    row(New, "modern", Switch, "y|n", "wide ids, true stacks", "n"),
];

/// The row of a name, if there is such an option.
pub fn find(name: &str) -> Option<&'static OptionRow> {
    OPTIONS.iter().find(|row| row.name == name)
}

const INTRO: &str = "
     HPROF: Heap and CPU Profiling Agent (JVMTI Demonstration Code)

hprof usage: java -agentlib:hprof=[help]|[<option>=<value>, ...]

Option Name and Value  Description                    Default
---------------------  -----------                    -------
";

const NOTES: &str = "
Obsolete Options
----------------
gc_okay=y|n

Examples
--------
  - Get sample cpu information every 20 millisec, with a stack depth of 3:
      java -agentlib:hprof=cpu=samples,interval=20,depth=3 classname
  - Get heap usage information based on the allocation sites:
      java -agentlib:hprof=heap=sites classname

Notes
-----
  - The option format=b cannot be used with monitor=y.
  - The option format=b cannot be used with cpu=old|times.
  - Use of the -Xrunhprof interface can still be used, e.g.
       java -Xrunhprof:[help]|[<option>=<value>, ...]
    will behave exactly the same as:
       java -agentlib:hprof=[help]|[<option>=<value>, ...]

Warnings
--------
  - This is demonstration code for the JVMTI interface and use of BCI,
    it is not an official product or formal part of the JDK.
  - The -Xrunhprof interface will be removed in a future release.
  - The option format=b is considered experimental, this format may change
    in a future release.
";

const ADDED: &str = "
Options of this implementation
------------------------------
";

/// The text of `-agentlib:hprof=help`: the original's, byte for byte, then Tenure's options.
pub fn help() -> String {
    let mut text = String::from(INTRO);
    rows(&mut text, Origin::Original);
    text.push_str(NOTES);
    text.push_str(ADDED);
    rows(&mut text, Origin::New);
    text
}

fn rows(text: &mut String, origin: Origin) {
    for row in OPTIONS.iter().filter(|row| row.origin == origin) {
        let form = format!("{}={}", row.name, row.form);
        let line = format!("{form:<22} {:<30} {}", row.help, row.default);
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
