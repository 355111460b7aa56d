//! The views of a heap dump: each is described once, with its parameters. The command line that a page shows, the
//! arguments of the MCP tools and the reference are derived from these descriptions.

use requests::Fault;
use requests::Params;

/// The kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A required text.
    Needed,
    /// A text.
    Text,
    /// One of these words; the first one by default, unless the help names another default.
    One(&'static [&'static str]),
    /// A whole number; the help has its default.
    Whole,
    /// A percentage: the default.
    Percent(u64),
    /// A whole number: least, default, most.
    Number(u64, u64, u64),
    /// `1` or `true`.
    Flag,
}

/// A parameter of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in an address.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its effect, in a sentence.
    pub help: &'static str,
    /// How the command takes it; `None` if the command has nothing of the kind.
    pub flag: Option<Flag>,
}

/// How the command that gives the same answer as a view takes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// An argument without a name.
    Positional,
    /// An option with the value; both have the same default.
    Value(&'static str),
    /// An option with the value; the command has another default, also in JSON, where it lists everything.
    Always(&'static str),
    /// An option without a value.
    Switch(&'static str),
    /// An option without a value that leaves out what `0` leaves out.
    Off(&'static str),
}

impl Flag {
    /// The option; `None` for an argument without a name.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Flag::Positional => None,
            Flag::Value(option)
            | Flag::Always(option)
            | Flag::Switch(option)
            | Flag::Off(option) => Some(option),
        }
    }
}

impl Parameter {
    /// Its name with the permitted values, in Markdown: `limit` (100, at most 200).
    pub fn short(&self) -> String {
        let name = self.name;
        match self.kind {
            Kind::Needed => format!("**`{name}`**"),
            Kind::Text | Kind::Whole | Kind::Flag => format!("`{name}`"),
            Kind::One(words) => format!("`{name}` ({})", words.join(", ")),
            Kind::Percent(default) => format!("`{name}` ({default}, at most 100)"),
            Kind::Number(_, default, MOST) => format!("`{name}` ({default})"),
            Kind::Number(_, default, most) => format!("`{name}` ({default}, at most {most})"),
        }
    }
}

/// Views as a table of the reference, in Markdown; required parameters are bold.
pub fn reference(views: &[View]) -> String {
    let mut out = String::from("| View | Parameters | Answer |\n|---|---|---|\n");
    for view in views {
        let parameters: Vec<String> = view.parameters.iter().map(Parameter::short).collect();
        let (name, about) = (view.name, view.about);
        out.push_str(&format!(
            "| `{name}` | {} | {about} |\n",
            parameters.join(", ")
        ));
    }
    out
}

/// A view.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its name in an address.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Describes it in a sentence.
    pub about: &'static str,
    /// The command of `tenure` that gives the same answer.
    pub command: Option<&'static str>,
    /// Its parameters, in the order of the command line.
    pub parameters: &'static [Parameter],
}

impl View {
    /// A parameter by its name.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|it| it.name == name)
    }

    /// Refuses parameters that this view does not have, and flags that are neither set nor unset.
    pub(crate) fn check(&self, params: &Params) -> Result<(), Fault> {
        let known: Vec<&str> = self.parameters.iter().map(|it| it.name).collect();
        params.check_names(self.name, &known)?;
        let mut flags = self.parameters.iter().filter(|it| it.kind == Kind::Flag);
        flags.try_for_each(|it| params.switch(it.name).map(drop))
    }
}

/// The view with a name.
pub fn named(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name)
}

const fn of(name: &'static str, kind: Kind, help: &'static str, flag: Option<Flag>) -> Parameter {
    Parameter {
        name,
        kind,
        help,
        flag,
    }
}

const MOST: u64 = requests::MOST_ROWS as u64;

/// The syntax of a set; the tools of an assistant have this text, too.
pub const SETS: &str = "A set of objects: a class name or 0xID alone; all, unreachable, roots:KIND, object:0xID,0xID, class:NAME, \
    class:0xID, sub:NAME (with subclasses), package:NAME, loader:0xID, heap:NAME, site:N, stack:0xID, sql:(select ...), oql:(...); of a set: \
    in:SET (what refers to it), out:SET, dominated:SET, dominators:SET, retained:SET; SET and SET.";

const GROUPS: Kind = Kind::One(&["class", "superclass", "package", "loader", "heap", "site"]);
const SORTS: Kind = Kind::One(&["retained", "shallow", "objects", "name"]);
const EXCLUDED: &str = "References that do not count: none, all, or some of soft,weak,final,phantom; by default all, and none if \
    no path is left.";

const BY: Parameter = of("by", GROUPS, "What to group by.", Some(Flag::Value("--by")));
const SORT: Parameter = of(
    "sort",
    SORTS,
    "Order, largest first.",
    Some(Flag::Value("--sort")),
);
const FILTER: Parameter = of(
    "filter",
    Kind::Text,
    "A regular expression that names must match.",
    Some(Flag::Value("--filter")),
);
const fn all(option: &'static str) -> Parameter {
    let help = "Include unreachable objects.";
    of("all", Kind::Flag, help, Some(Flag::Switch(option)))
}

const ALL: Parameter = all("--all");
/// Commands without an own option for unreachable objects know the global one.
const UNREACHABLE: Parameter = all("--unreachable");
const EMPTY: Parameter = of(
    "empty",
    Kind::Flag,
    "Include groups without objects.",
    Some(Flag::Switch("--empty")),
);
const SET: Parameter = of("set", Kind::Needed, SETS, Some(Flag::Positional));
const PART: Parameter = of("set", Kind::Text, SETS, Some(Flag::Value("--set")));
const OFFSET: Parameter = of(
    "offset",
    Kind::Number(0, 0, MOST),
    "Rows to skip at the beginning.",
    Some(Flag::Value("--skip-rows")),
);
const ID: Parameter = of(
    "id",
    Kind::Needed,
    "An object id such as 0x7f001000.",
    Some(Flag::Positional),
);
const EXCLUDE: Parameter = of(
    "exclude",
    Kind::Text,
    EXCLUDED,
    Some(Flag::Value("--exclude")),
);
const TEXT: Parameter = of("text", Kind::Needed, "The query.", Some(Flag::Positional));
const LANG: Parameter = of(
    "lang",
    Kind::One(&["sql", "oql", "jhat"]),
    "Its language; recognized by default.",
    Some(Flag::Value("--lang")),
);

const fn limit(default: u64, flag: Option<Flag>) -> Parameter {
    of("limit", Kind::Number(0, default, MOST), "Rows.", flag)
}

const LIMIT: Option<Flag> = Some(Flag::Always("--limit"));

/// A view with the parameters of its command line.
macro_rules! view {
    ($name:literal, $title:literal, $command:expr, $about:literal, [$($parameter:expr),* $(,)?]) => {
        View {
            name: $name,
            title: $title,
            about: $about,
            command: $command,
            parameters: &[$($parameter),*],
        }
    };
}

/// All views.
pub const VIEWS: &[View] = &[
    view!(
        "overview",
        "Overview",
        Some("overview"),
        "Size, counts, the largest classes and objects, the first leak suspects, the state of the file.",
        [limit(15, None)]
    ),
    view!(
        "leaks",
        "Leak suspects",
        Some("leaks"),
        "What keeps too much memory alive: each suspect with its share, where the memory accumulates, the field that holds it, and the path to it.",
        [
            of(
                "threshold",
                Kind::Percent(10),
                "Percent of the heap above which something is a suspect.",
                Some(Flag::Value("--threshold"))
            ),
            of(
                "deep",
                Kind::Flag,
                "Follow suspects that are many objects of one class to their common holder.",
                Some(Flag::Switch("--deep"))
            ),
        ]
    ),
    view!(
        "histogram",
        "Histogram",
        Some("histogram"),
        "Objects, shallow and retained bytes by group, of the heap or of a set.",
        [
            BY,
            FILTER,
            SORT,
            OFFSET,
            limit(100, LIMIT),
            ALL,
            EMPTY,
            of("set", Kind::Text, SETS, Some(Flag::Positional)),
        ]
    ),
    view!(
        "quick_histogram",
        "Histogram of the first pass",
        Some("histogram --no-retained"),
        "Counts of the first pass over the file, before the index is complete; if there was an index already, the histogram.",
        [
            FILTER,
            of("by", GROUPS, "What to group by.", None),
            SORT,
            OFFSET,
            limit(100, LIMIT),
            ALL,
            EMPTY,
        ]
    ),
    view!(
        "objects",
        "Objects of a set",
        Some("objects"),
        "The objects of a set with their sizes and readable values, largest first.",
        [
            SET,
            of(
                "by",
                GROUPS,
                "Groups in place of the objects: the histogram of the set, by this.",
                Some(Flag::Value("--by"))
            ),
            SORT,
            OFFSET,
            limit(100, LIMIT),
            ALL,
        ]
    ),
    view!(
        "immediate_dominators",
        "Immediate dominators",
        Some("objects --dominators --limit 0"),
        "The objects immediately above those of a set in the dominator tree, by class.",
        [
            SET,
            of(
                "skip",
                Kind::Text,
                "A regular expression: dominators of these classes are passed over.",
                Some(Flag::Value("--skip"))
            ),
            ALL,
        ]
    ),
    view!(
        "merged_paths",
        "Merged paths from roots",
        Some("objects --paths"),
        "The shortest paths from GC roots to the objects of a set, merged into a tree.",
        [
            SET,
            EXCLUDE,
            of(
                "depth",
                Kind::Number(0, 24, 200),
                "Levels of the tree.",
                Some(Flag::Value("--depth"))
            ),
            of("top", Kind::Number(0, 5, 100), "Branches of a node.", LIMIT),
            of(
                "max_paths",
                Kind::Number(0, 1000, 100_000),
                "Objects of the set that are followed; of more, an even sample.",
                Some(Flag::Always("--max-paths"))
            ),
            ALL,
        ]
    ),
    view!(
        "dominators",
        "Dominator tree",
        Some("dominators"),
        "The largest objects immediately below an object in the dominator tree, or at its top: where the memory is.",
        [
            of(
                "id",
                Kind::Text,
                "An object id; the top of the tree without it.",
                Some(Flag::Positional)
            ),
            of(
                "depth",
                Kind::Number(0, 1, 64),
                "Levels.",
                Some(Flag::Always("--depth"))
            ),
            limit(100, LIMIT),
        ]
    ),
    view!(
        "dominator_groups",
        "Dominators by group",
        Some("dominators"),
        "The objects at the top of the dominator tree, by group.",
        [
            of(
                "by",
                Kind::One(&["class", "package", "loader"]),
                "What to group the top of the tree by.",
                Some(Flag::Always("--by"))
            ),
            limit(100, LIMIT)
        ]
    ),
    view!(
        "treemap",
        "The dominator tree as areas",
        None,
        "The dominator tree below an object, cut to so many areas.",
        [
            of(
                "id",
                Kind::Text,
                "An object id; the top of the tree without it.",
                None
            ),
            of("areas", Kind::Number(0, 800, 20_000), "Areas.", None),
        ]
    ),
    view!(
        "top",
        "Biggest consumers",
        Some("top"),
        "The largest objects, classes, packages and loaders by retained size.",
        [limit(20, LIMIT)]
    ),
    view!(
        "object",
        "One object",
        Some("object"),
        "The fields or elements of an object, what refers to it, what dominates it, and what it keeps alive.",
        [
            ID,
            limit(100, LIMIT),
            of(
                "inbound",
                Kind::One(&["1", "0"]),
                "0 leaves out what refers to it.",
                Some(Flag::Off("--no-inbound"))
            ),
        ]
    ),
    view!(
        "contents",
        "Contents of a collection",
        None,
        "The elements or entries of a collection of the JDK.",
        [ID, limit(100, None)]
    ),
    view!(
        "paths",
        "Paths from roots",
        Some("paths"),
        "The shortest paths from GC roots to an object: why it is not collected.",
        [
            ID,
            of("count", Kind::Number(1, 3, 100), "Paths.", LIMIT),
            EXCLUDE,
        ]
    ),
    view!(
        "roots",
        "GC roots",
        Some("roots"),
        "The GC roots by kind, with what they retain.",
        [
            of(
                "kind",
                Kind::Text,
                "Only roots of this kind, such as JNI_GLOBAL.",
                Some(Flag::Value("--kind"))
            ),
            limit(20, LIMIT),
        ]
    ),
    view!(
        "threads",
        "Threads",
        Some("threads"),
        "The threads with their states, stacks, and the objects that their local variables hold.",
        [
            limit(1000, LIMIT),
            of(
                "locals",
                Kind::Number(0, 20, MOST),
                "Local variables of a frame.",
                Some(Flag::Always("--locals"))
            ),
        ]
    ),
    view!(
        "strings",
        "Strings",
        Some("strings"),
        "Strings that match a regular expression.",
        [
            of(
                "find",
                Kind::Needed,
                "A regular expression.",
                Some(Flag::Value("--find"))
            ),
            UNREACHABLE,
            PART,
            limit(100, LIMIT),
        ]
    ),
    view!(
        "duplicate_strings",
        "Duplicate strings",
        Some("strings"),
        "Equal strings, with the bytes that one copy of each would save.",
        [
            limit(100, LIMIT),
            of(
                "holders",
                Kind::Flag,
                "Add the fields that hold them (one more pass over the file).",
                Some(Flag::Switch("--holders"))
            ),
            UNREACHABLE,
            PART,
        ]
    ),
    view!(
        "collections",
        "Collections",
        Some("collections"),
        "Collections by class: how many, how full, and what they could save.",
        [limit(100, LIMIT), UNREACHABLE, PART,]
    ),
    view!(
        "waste",
        "Waste",
        Some("waste"),
        "What could be smaller without a change of what the program does: equal strings and arrays, empty and sparse collections, boxed numbers, unused capacity.",
        [limit(20, LIMIT), UNREACHABLE, PART,]
    ),
    view!(
        "loaders",
        "Class loaders",
        Some("loaders"),
        "The class loaders with their classes and objects.",
        [limit(1000, LIMIT)]
    ),
    view!(
        "properties",
        "System properties",
        Some("properties"),
        "The system properties of the program.",
        []
    ),
    view!(
        "unreachable",
        "Unreachable objects",
        Some("unreachable"),
        "Objects that no GC root reaches, by class.",
        [limit(1000, LIMIT)]
    ),
    view!(
        "compare",
        "What changed",
        Some("diff"),
        "Classes and dominators that grew since another dump of the program; of a live page, the dump before.",
        [
            limit(100, LIMIT),
            of(
                "threshold",
                Kind::Percent(1),
                "Percent of the first heap that a place must have grown or shrunk by.",
                Some(Flag::Value("--threshold"))
            ),
        ]
    ),
    view!(
        "android",
        "Android",
        Some("android"),
        "Activities, services and views that should be gone, objects that LeakCanary watches, and bitmaps.",
        [limit(20, LIMIT)]
    ),
    view!(
        "bitmaps",
        "Bitmaps",
        None,
        "The bitmaps of an Android app.",
        []
    ),
    view!(
        "bitmap_picture",
        "The picture of a bitmap",
        None,
        "The pixels of a bitmap, reduced.",
        [
            ID,
            of(
                "most",
                Kind::Number(1, 512, 2048),
                "Pixels on the longer side.",
                None
            ),
        ]
    ),
    view!(
        "query",
        "SQL or OQL",
        Some("query"),
        "Any question, read only: SQL of SQLite, OQL of Eclipse MAT, or OQL of jhat. It ends when the client closes the connection.",
        [
            TEXT,
            LANG,
            limit(1000, LIMIT),
            of(
                "seconds",
                Kind::Number(1, 60, 3600),
                "Time after which the rows found until then are the answer.",
                Some(Flag::Always("--timeout"))
            ),
        ]
    ),
    view!(
        "query_plan",
        "Plan of a query",
        Some("query --explain"),
        "How a query is answered.",
        [TEXT, LANG]
    ),
    view!(
        "query_tables",
        "Tables and columns",
        Some("query --tables"),
        "The tables and functions of queries.",
        []
    ),
    view!(
        "complete",
        "Completion",
        None,
        "Proposals for the word before the caret of a query.",
        [
            of("before", Kind::Text, "The text before the caret.", None),
            of("after", Kind::Text, "The text after the caret.", None),
        ]
    ),
    view!(
        "summary",
        "The file",
        Some("summary"),
        "What the file is, and what is in it.",
        []
    ),
    view!(
        "validate",
        "State of the file",
        Some("validate"),
        "Damage and contradictions of the file.",
        []
    ),
];
