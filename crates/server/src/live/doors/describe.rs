//! The views of a running program: each view of `api/v1` with its parameters. The reference is derived from these
//! descriptions; the columns of tables are declared with their rows (`live_analysis::columns`).

use crate::explorer::describe::{Kind, Parameter, View};
use live_analysis::allocations::By;
use live_analysis::instances::{self, Uniq};
use live_analysis::{classes, savings};

const fn of(name: &'static str, kind: Kind, help: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        help,
        flag: None,
    }
}

const MOST: u64 = requests::MOST_ROWS as u64;

const FROM: Parameter = of(
    "from",
    Kind::Whole,
    "Start of the range, in milliseconds since 1970.",
);
const TO: Parameter = of(
    "to",
    Kind::Whole,
    "End of the range, in milliseconds since 1970.",
);
const FILTER: Parameter = of(
    "filter",
    Kind::Text,
    "Text that a class name or frame must contain, in upper or lower case.",
);
const REGEX: Parameter = of(
    "regex",
    Kind::Text,
    "Regular expression that a class name or frame must match.",
);
const SORT: Parameter = of("sort", Kind::Text, "The column to sort by.");
const UP: Parameter = of("up", Kind::Flag, "Reverse the order.");
const OFFSET: Parameter = of("offset", Kind::Number(0, 0, MOST), "Rows to skip.");
const LIMIT: Parameter = of(
    "limit",
    Kind::Number(0, 100, MOST),
    "Maximum number of rows.",
);
const FORM: Parameter = of(
    "form",
    Kind::One(&["json", "csv", "html"]),
    "html is one page that sorts without a server.",
);
const HEAP: Parameter = of(
    "heap",
    Kind::One(&["java", "native"]),
    "native: blocks of malloc, by library.",
);
const CLASS: Parameter = of("class", Kind::Needed, "A class name.");
const DUMP: Parameter = of(
    "dump",
    Kind::Whole,
    "Number of a heap dump; the last one by default.",
);
const SAMPLE: Parameter = of(
    "sample",
    Kind::Whole,
    "Objects to examine, chosen at random; all by default.",
);
const OBJECTS: Parameter = of(
    "source",
    Kind::One(&instances::SOURCES),
    "By default what there is; recording needs a step of time in `by`.",
);

const fn view(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
) -> View {
    View {
        name,
        title,
        about,
        command: None,
        parameters,
    }
}

/// The view with a name.
pub(crate) fn named(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name)
}

/// All views.
pub const VIEWS: &[View] = &[
    view(
        "timeline",
        "Timeline",
        "`tenure.live.timeline/1`: `metrics` names the values of each row `[time, values...]`, `events` are collections and marks.",
        &[
            FROM,
            TO,
            of(
                "points",
                Kind::Number(2, 1200, 20_000),
                "Maximum number of rows.",
            ),
            of(
                "after",
                Kind::Whole,
                "Number of the last event that the caller knows.",
            ),
        ],
    ),
    view(
        "allocations",
        "Allocations",
        "What was allocated and freed in the range.",
        &[
            of(
                "by",
                Kind::One(&By::WORDS),
                "What to group by; context is the thread.",
            ),
            HEAP,
            FROM,
            TO,
            FILTER,
            REGEX,
            SORT,
            UP,
            OFFSET,
            LIMIT,
            FORM,
        ],
    ),
    view(
        "stacks",
        "Call stacks",
        "`tenure.live.stacks/1`: the stacks of the range as a tree: a flat list, callers before callees.",
        &[
            HEAP,
            FROM,
            TO,
            FILTER,
            REGEX,
            of(
                "limit",
                Kind::Number(0, 5000, MOST),
                "Maximum number of nodes.",
            ),
        ],
    ),
    view(
        "cpu",
        "CPU time",
        "CPU time of the range by method and stack (`tenure.profile/1`), or what differs from another range (`tenure.profile_difference/1`).",
        &[
            FROM,
            TO,
            of("base_from", Kind::Whole, "Start of the other range."),
            of("base_to", Kind::Whole, "End of the other range."),
            FILTER,
            REGEX,
            LIMIT,
        ],
    ),
    view(
        "profile",
        "Profile",
        "The range as a profile that other tools read.",
        &[
            of(
                "form",
                Kind::One(&["flamegraph", "pprof", "collapsed", "speedscope", "jfr"]),
                "Form of the profile.",
            ),
            of(
                "heap",
                Kind::One(&["java", "native", "cpu"]),
                "Allocations, blocks of malloc, or CPU time.",
            ),
            of("metric", Kind::Text, "Only this metric."),
            FROM,
            TO,
            FILTER,
            REGEX,
        ],
    ),
    view(
        "classes",
        "Instances per class",
        "The instances of every class with sizes and capacities; `sizes` describes the source of these.",
        &[
            of(
                "source",
                Kind::One(&classes::SOURCES),
                "vm is the VM's own histogram, taken at a safepoint; by default the first of the first two that there is.",
            ),
            of(
                "loaders",
                Kind::Flag,
                "Show loaders apart, in a recording and in a dump.",
            ),
            of(
                "contexts",
                Kind::Flag,
                "Show the allocating threads apart, in a recording.",
            ),
            of(
                "brief",
                Kind::Flag,
                "Do not wait for a new reading of sizes.",
            ),
            FROM,
            TO,
            FILTER,
            REGEX,
            SORT,
            UP,
            OFFSET,
            LIMIT,
            FORM,
        ],
    ),
    view(
        "references",
        "JNI references",
        "Global and weak references of native code by class and stack; the objects and bytes that they hold are from the last heap dump taken while they were recorded.",
        &[FROM, TO, FILTER, REGEX, SORT, UP, OFFSET, LIMIT, FORM],
    ),
    view(
        "instances",
        "Objects of a class",
        "The objects of a class, now or in a heap dump. Sorting live objects by `rank`, `value` or `hash` runs their `compareTo`, `toString` or `hashCode` if that is allowed.",
        &[
            CLASS,
            OBJECTS,
            DUMP,
            SAMPLE,
            of(
                "value",
                Kind::Number(0, 200, MOST),
                "Maximum number of characters of a value.",
            ),
            FROM,
            TO,
            SORT,
            UP,
            OFFSET,
            LIMIT,
            FORM,
        ],
    ),
    view(
        "groups",
        "Objects of a class, counted",
        "The objects of a class counted by what they have in common; by a step of time of their allocation, `source=recording` counts all allocated objects.",
        &[
            CLASS,
            of("by", Kind::One(&Uniq::WORDS), "What they have in common."),
            of(
                "step",
                Kind::Number(1, 1, MOST),
                "For `by=size`: the width of a step.",
            ),
            OBJECTS,
            DUMP,
            SAMPLE,
            FROM,
            TO,
            SORT,
            UP,
            OFFSET,
            LIMIT,
            FORM,
        ],
    ),
    view(
        "growth",
        "What grows",
        "Sites whose live objects increase over the garbage collections of the range.",
        &[FROM, TO, FILTER, REGEX, SORT, UP, OFFSET, LIMIT, FORM],
    ),
    view(
        "savings",
        "What could be saved",
        "Memory that the program could save, as found in the last heap dump of the range, by class and allocating stack, or by kind.",
        &[
            of(
                "by",
                Kind::One(&savings::GROUPS),
                "Class and stack, or kind of waste.",
            ),
            FROM,
            TO,
            FILTER,
            REGEX,
            SORT,
            UP,
            OFFSET,
            LIMIT,
            FORM,
        ],
    ),
    view(
        "saved",
        "A saved table",
        "A saved table of classes, as it is in its file.",
        &[
            of("number", Kind::Needed, "Number of the saved table."),
            FORM,
        ],
    ),
    view(
        "compare",
        "What changed",
        "The changes between two saved tables of classes.",
        &[
            of("from", Kind::Needed, "Number of the first table."),
            of("to", Kind::Needed, "Number of the second table."),
            FILTER,
            REGEX,
            SORT,
            UP,
            OFFSET,
            LIMIT,
            FORM,
        ],
    ),
    view(
        "options",
        "Class filters",
        "`tenure.live.options/1`: the lines of the class filters.",
        &[],
    ),
    view(
        "source",
        "Source",
        "`tenure.live.source/1`: the source lines around that of a frame.",
        &[of(
            "frame",
            Kind::Needed,
            "A frame such as Class.method(File.java:1).",
        )],
    ),
];
