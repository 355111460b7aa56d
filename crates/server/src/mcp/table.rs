//! The tools: views of the explorer and of a running program, described there, and commands to the program. To add one: an entry here.

use crate::explorer::describe::Kind;
use Argument::{Own, Short, Without};
use live_session::recording::program::Recording;

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The subject of the tool.
    pub(super) of: Of,
    /// The view that is shown, with its title, text and parameters, or the name of the command; empty if there is
    /// neither.
    pub(super) view: &'static str,
    /// Title and description, if they are not those of the view.
    pub(super) own: Option<(&'static str, &'static str)>,
    pub(super) arguments: &'static [Argument],
}

/// The subject of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// A view of a dump.
    Dump,
    /// Two dumps.
    Dumps,
    /// A profile.
    Profile,
    /// A view of the running program.
    Program,
    /// A command to the running program.
    Command,
}

/// How the arguments of a tool differ from the parameters of its view.
pub(super) enum Argument {
    /// A whole number of the view's parameters with another range: least, default, most. Answers to a model are
    /// shorter.
    Short(&'static str, u64, u64, u64),
    /// A parameter that the tool does not have.
    Without(&'static str),
    /// An argument that only the tool has, or describes in its own way.
    Own(&'static str, Kind, &'static str),
}

/// The tool of a view.
const fn of_view(name: &'static str, arguments: &'static [Argument]) -> Tool {
    Tool {
        name,
        of: Of::Dump,
        view: name,
        own: None,
        arguments,
    }
}

/// The number of rows of a table.
const ROWS: &[Argument] = &[Short("limit", 1, 30, 200)];
/// The number of rows, if rows are long.
const FEW: &[Argument] = &[Short("limit", 1, 20, 200)];
/// Objects of a class, of which a sample is examined.
const SAMPLED: &[Argument] = &[
    Short("sample", 1, 1000, 100_000),
    Short("limit", 1, 20, 200),
];

/// The tools for dumps.
pub(super) const DUMP_TOOLS: &[Tool] = &[
    of_view("overview", &[Short("limit", 1, 15, 200)]),
    of_view("leaks", &[]),
    of_view("histogram", ROWS),
    of_view("objects", &[Without("by"), Short("limit", 1, 30, 200)]),
    // The tool for its contents has the same arguments.
    of_view("object", &[Without("inbound"), Short("limit", 1, 20, 200)]),
    Tool {
        name: "paths",
        of: Of::Dump,
        view: "paths",
        own: Some((
            "Paths from roots",
            "Shortest paths from GC roots: why an object is not collected, or, merged, why the objects of a class or set are not.",
        )),
        arguments: &[
            Own(
                "id",
                Kind::Text,
                "An object id such as 0x7f001000; or give set.",
            ),
            Own(
                "set",
                Kind::Text,
                "A class name, or a set as objects takes it: the paths to all its objects, merged.",
            ),
            Short("count", 1, 3, 20),
        ],
    },
    of_view("dominators", FEW),
    of_view(
        "threads",
        &[Short("limit", 1, 20, 1000), Short("locals", 0, 5, 100)],
    ),
    of_view("waste", &[Short("limit", 1, 5, 100)]),
    of_view(
        "query",
        &[Short("limit", 1, 100, 1000), Short("seconds", 1, 60, 600)],
    ),
];

/// The tool that exists when there are several dumps.
pub(super) const COMPARE: Tool = Tool {
    name: "compare",
    of: Of::Dumps,
    view: "",
    own: Some((
        "What changed between dumps",
        "Classes and dominators that grew between two dumps of one program, matched by structure, not by address.",
    )),
    arguments: &[
        Own(
            "before",
            Kind::Text,
            "The earlier dump by name; by default the first one that is not `after`.",
        ),
        Own(
            "after",
            Kind::Text,
            "The later dump by name; by default the last one that is not `before`.",
        ),
        Own("limit", Kind::Number(1, 20, 200), "Rows per table."),
    ],
};

/// The tool that exists when there are profiles.
pub(super) const PROFILE: Tool = Tool {
    name: "profile",
    of: Of::Profile,
    view: "",
    own: Some((
        "Where time or memory goes",
        "Methods and stacks of a recorded profile by a metric (CPU samples, time, allocations, contention), the most expensive first.",
    )),
    arguments: &[
        Own(
            "profile",
            Kind::Text,
            "A profile by name; the first one by default.",
        ),
        Own(
            "metric",
            Kind::Text,
            "One of the metrics that an answer lists; the main one by default.",
        ),
        Own(
            "limit",
            Kind::Number(1, 20, 200),
            "Most methods and stacks.",
        ),
    ],
};

/// A tool that shows a view of the running program.
const fn of_program(
    name: &'static str,
    view: &'static str,
    arguments: &'static [Argument],
) -> Tool {
    Tool {
        name,
        of: Of::Program,
        view,
        own: None,
        arguments,
    }
}

/// A tool that runs a command in the program.
const fn command(
    name: &'static str,
    command: &'static str,
    own: (&'static str, &'static str),
    arguments: &'static [Argument],
) -> Tool {
    Tool {
        name,
        of: Of::Command,
        view: command,
        own: Some(own),
        arguments,
    }
}

/// The state of the program.
pub(super) const STATE: &str = "live_state";
/// Starts and stops recording allocations.
pub(super) const RECORD: &str = "live_record";
/// Starts and stops CPU sampling.
pub(super) const SAMPLE_CPU: &str = "live_sample_cpu";

/// The tools for a running program.
pub(super) const PROGRAM_TOOLS: &[Tool] = &[
    Tool {
        name: STATE,
        of: Of::Program,
        view: "",
        own: Some((
            "State of the running program",
            "Memory by kind, CPU, garbage collection, threads as last measured, the recording, and the heap dumps that were taken.",
        )),
        arguments: &[Own(
            "wait",
            Kind::Number(0, 0, 60),
            "Seconds to wait first, while something is being recorded.",
        )],
    },
    of_program("live_timeline", "timeline", &[Short("points", 2, 60, 600)]),
    of_program("live_allocations", "allocations", ROWS),
    of_program("live_stacks", "stacks", &[Short("limit", 1, 100, 1000)]),
    of_program("live_cpu", "cpu", FEW),
    of_program("live_classes", "classes", ROWS),
    of_program("live_instances", "instances", SAMPLED),
    of_program("live_groups", "groups", SAMPLED),
    of_program("live_references", "references", ROWS),
    of_program("live_growth", "growth", FEW),
    of_program("live_savings", "savings", FEW),
    command(
        RECORD,
        "record",
        (
            "Record allocations",
            "Loads the agent into the program, if it is not there yet, and records what is allocated with stacks and what of it is freed; or stops that. \
             The answer is the new state.",
        ),
        &[
            Own(
                "mode",
                Kind::One(&["sampled", "full", "off"]),
                "sampled costs little and needs JDK 11; full counts every allocation and slows the program several times.",
            ),
            Own(
                "interval",
                Kind::Number(1, Recording::INTERVAL, 1 << 30),
                "Of sampled: bytes between two samples, on average.",
            ),
            Own(
                "depth",
                Kind::Number(1, Recording::DEPTH as u64, 256),
                "Frames per stack.",
            ),
        ],
    ),
    command(
        SAMPLE_CPU,
        "cpu",
        (
            "Sample the CPU",
            "Begins to sample where threads use CPU time, for live_cpu, or ends that. Loads the agent into the program, if it is not there yet. \
             The answer is the new state.",
        ),
        &[Own(
            "mode",
            Kind::One(&["on", "off"]),
            "Whether samples are taken.",
        )],
    ),
    command(
        "live_collect",
        "gc",
        (
            "Collect garbage",
            "Runs a garbage collection, so that what is no longer referenced counts as freed. The program stops for it. The answer is the new state.",
        ),
        &[],
    ),
    command(
        "live_dump",
        "dump",
        (
            "Take a heap dump",
            "Writes a heap dump of the program, which the tools for dumps take by the name in the answer. With a recording the program stops for milliseconds, \
             otherwise until the VM has written it.",
        ),
        &[],
    ),
    command(
        "live_mark",
        "mark",
        (
            "Mark a time",
            "Puts a text on the timeline, such as the begin of a test. The answer is the new state.",
        ),
        &[Own("text", Kind::Needed, "The text.")],
    ),
];
