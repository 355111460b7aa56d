//! The tools: names, what they are for, arguments. To add one: a line in [`TOOLS`]; its view is one
//! of the explorer.

use super::Files;
use super::message::{fresh, short};
use heap_query::{TableKind, tables};
use serde_json::{Map, Value as Json, json};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The view of the explorer that answers; empty for [`COMPARE`] and [`PROFILE`].
    pub(super) view: &'static str,
    arguments: &'static [Argument],
}

/// An argument.
struct Argument {
    name: &'static str,
    what: What,
    description: &'static str,
}

/// What an argument may be.
enum What {
    /// A text that must be given.
    Needed,
    /// A text.
    Text,
    /// One of these.
    One(&'static [&'static str]),
    /// A whole number: least, default, most.
    Number(u64, u64, u64),
    /// True or false.
    Flag,
}

const fn argument(name: &'static str, what: What, description: &'static str) -> Argument {
    Argument {
        name,
        what,
        description,
    }
}

const SETS: &str = "A set of objects: all, unreachable, roots:KIND, object:0xID,0xID, class:NAME, class:0xID, \
    sub:NAME (with subclasses), package:NAME, loader:0xID, heap:NAME, site:N, stack:0xID, sql:(select ...), oql:(...); of a set: \
    in:SET (what refers to it), out:SET, dominated:SET, dominators:SET, retained:SET; SET and SET.";

const GROUPS: What = What::One(&["class", "superclass", "package", "loader", "heap", "site"]);
const SORTS: What = What::One(&["retained", "shallow", "objects", "name"]);
const ALL: Argument = argument("all", What::Flag, "Count unreachable objects, too.");
const OFFSET: Argument = argument(
    "offset",
    What::Number(0, 0, 1_000_000_000),
    "Rows to leave out at the beginning.",
);

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "overview",
        title: "Overview of a heap dump",
        description: "The first look: size, counts, the largest classes and objects, the first leak suspects, the state of the file.",
        view: "overview",
        arguments: &[],
    },
    Tool {
        name: "leaks",
        title: "Leak suspects",
        description: "What keeps too much memory alive: each suspect with its share, the object where the memory piles up, the field that holds it, and the path to it.",
        view: "leaks",
        arguments: &[
            argument(
                "threshold",
                What::Number(1, 10, 100),
                "Percent of the heap above which something is a suspect.",
            ),
            argument(
                "deep",
                What::Flag,
                "Follow suspects that are many objects of one class to their common holder.",
            ),
        ],
    },
    Tool {
        name: "histogram",
        title: "Histogram",
        description: "Objects, shallow and retained bytes by group, of the heap or of a set.",
        view: "histogram",
        arguments: &[
            argument(
                "by",
                GROUPS,
                "What to group by; class unless told otherwise.",
            ),
            argument("set", What::Text, SETS),
            argument(
                "filter",
                What::Text,
                "A regular expression that names must match.",
            ),
            argument(
                "sort",
                SORTS,
                "Order, largest first; retained unless told otherwise.",
            ),
            ALL,
            argument("limit", What::Number(1, 30, 200), "Rows."),
            OFFSET,
        ],
    },
    Tool {
        name: "objects",
        title: "Objects of a set",
        description: "The objects of a set with their sizes and readable values, largest first.",
        view: "objects",
        arguments: &[
            argument("set", What::Needed, SETS),
            argument(
                "sort",
                SORTS,
                "Order, largest first; retained unless told otherwise.",
            ),
            ALL,
            argument("limit", What::Number(1, 30, 200), "Rows."),
            OFFSET,
        ],
    },
    Tool {
        name: "object",
        title: "One object",
        description: "An object's fields or elements, what a collection holds, who refers to it, what dominates it, what it keeps alive.",
        view: "object",
        arguments: &[
            argument("id", What::Needed, "An object id such as 0x7f001000."),
            argument(
                "limit",
                What::Number(1, 20, 200),
                "Most fields, elements, referrers and entries.",
            ),
        ],
    },
    Tool {
        name: "paths",
        title: "Paths from roots",
        description: "Shortest paths from GC roots: why an object is not collected, or, merged, why the objects of a class or set are not.",
        view: "paths",
        arguments: &[
            argument(
                "id",
                What::Text,
                "An object id such as 0x7f001000; or give set.",
            ),
            argument(
                "set",
                What::Text,
                "A class name, or a set as objects takes it: the paths to all its objects, merged.",
            ),
            argument("count", What::Number(1, 3, 20), "Most paths to an object."),
            argument(
                "exclude",
                What::Text,
                "References that do not count: none, all, or some of soft,weak,final,phantom; all, and none if no path is left, unless told otherwise.",
            ),
        ],
    },
    Tool {
        name: "dominators",
        title: "Dominator tree",
        description: "The largest objects directly below an object in the dominator tree, or at its top: where the memory is.",
        view: "dominators",
        arguments: &[
            argument(
                "id",
                What::Text,
                "An object id; the top of the tree without it.",
            ),
            argument("limit", What::Number(1, 20, 200), "Rows."),
        ],
    },
    Tool {
        name: "threads",
        title: "Threads",
        description: "The threads of the heap with their states, stacks, and the objects that their local variables hold.",
        view: "threads",
        arguments: &[
            argument(
                "limit",
                What::Number(1, 20, 1000),
                "Most threads, those that hold most first.",
            ),
            argument(
                "locals",
                What::Number(0, 5, 100),
                "Most local variables of a thread.",
            ),
        ],
    },
    Tool {
        name: "waste",
        title: "Wasted memory",
        description: "What could be smaller without the program doing less: equal strings and arrays, empty and sparse collections, boxed numbers, room that is not used.",
        view: "waste",
        arguments: &[
            ALL,
            argument("limit", What::Number(1, 5, 100), "Rows per table."),
        ],
    },
    Tool {
        name: "query",
        title: "SQL or OQL",
        description: "Any question, read only: SQLite's SQL over the tables below, the OQL of Eclipse MAT, or the OQL of jhat (JavaScript). Ids of objects in rows are arguments of the other tools.",
        view: "query",
        arguments: &[
            argument("text", What::Needed, "The query."),
            argument(
                "lang",
                What::One(&["sql", "oql", "jhat"]),
                "Its language; recognised unless told.",
            ),
            argument("limit", What::Number(1, 100, 1000), "Most rows."),
            argument(
                "seconds",
                What::Number(1, 60, 600),
                "Time after which the rows found until then are the answer.",
            ),
        ],
    },
];

/// The tool that is there when there are several dumps.
pub(super) const COMPARE: Tool = Tool {
    name: "compare",
    title: "What changed between dumps",
    description: "Classes and dominators that grew between two dumps of one program, matched by structure, not by address.",
    view: "",
    arguments: &[
        argument(
            "before",
            What::Text,
            "The earlier dump by name; the first one unless told otherwise.",
        ),
        argument(
            "after",
            What::Text,
            "The later dump by name; the last one unless told otherwise.",
        ),
        argument("limit", What::Number(1, 20, 200), "Rows per table."),
    ],
};

/// The tool that is there when there are profiles.
pub(super) const PROFILE: Tool = Tool {
    name: "profile",
    title: "Where time or memory goes",
    description: "Methods and stacks of a recorded profile by a metric (CPU samples, time, allocations, contention), the most expensive first.",
    view: "",
    arguments: &[
        argument(
            "profile",
            What::Text,
            "A profile by name; the first one unless told otherwise.",
        ),
        argument(
            "metric",
            What::Text,
            "One of the metrics that an answer lists; the main one unless told otherwise.",
        ),
        argument(
            "limit",
            What::Number(1, 20, 200),
            "Most methods and stacks.",
        ),
    ],
};

/// The tools for these files.
fn all(files: &Files) -> impl Iterator<Item = &'static Tool> {
    const COMPARES: &Tool = &COMPARE;
    const PROFILES: &Tool = &PROFILE;
    let of_dumps = if files.dumps.is_empty() { &[] } else { TOOLS };
    let compare = (files.dumps.len() > 1).then_some(COMPARES);
    let profile = (!files.profiles.is_empty()).then_some(PROFILES);
    of_dumps.iter().chain(compare).chain(profile)
}

/// The tool of a name.
pub(super) fn named(name: &str, files: &Files) -> Option<&'static Tool> {
    all(files).find(|tool| tool.name == name)
}

/// The answer to `tools/list`.
pub(super) fn list(files: &Files) -> Json {
    fresh(
        "tools",
        all(files).map(|tool| tool.described(files)).collect(),
    )
}

impl Tool {
    fn described(&self, files: &Files) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for argument in self.arguments {
            let mut schema = match argument.what {
                What::Needed | What::Text => json!({ "type": "string" }),
                What::One(words) => json!({ "type": "string", "enum": words }),
                What::Number(least, default, most) => {
                    json!({ "type": "integer", "minimum": least, "default": default, "maximum": most })
                }
                What::Flag => json!({ "type": "boolean" }),
            };
            schema["description"] = json!(argument.description);
            properties.insert(argument.name.to_owned(), schema);
            if matches!(argument.what, What::Needed) {
                required.push(argument.name);
            }
        }
        if self.is_of_a_dump() && files.dumps.len() > 1 {
            let names: Vec<&str> = files.dumps.iter().map(|d| d.name.as_str()).collect();
            let description = "Which dump; the first one unless told otherwise.";
            let schema = json!({ "type": "string", "enum": names, "description": description });
            properties.insert("dump".to_owned(), schema);
        }
        let description = match self.name {
            "query" => format!("{}\n\n{}", self.description, tables_text()),
            _ => self.description.to_owned(),
        };
        json!({
            "name": self.name,
            "title": self.title,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }

    /// Whether it takes the name of a dump.
    fn is_of_a_dump(&self) -> bool {
        !self.view.is_empty()
    }

    /// The arguments of a call as parameters of a view: checked, with their defaults.
    ///
    /// # Errors
    /// A sentence that says what is expected.
    pub(super) fn read(&self, given: &Map<String, Json>) -> Result<Vec<(String, String)>, String> {
        for name in given.keys() {
            let own = self.arguments.iter().any(|a| a.name == name);
            let known = own || (name == "dump" && self.is_of_a_dump());
            if !known {
                let names: Vec<&str> = self.arguments.iter().map(|a| a.name).collect();
                let name = short(name);
                let tool = self.name;
                return Err(format!(
                    "{tool} has no argument {name}; it has: {}",
                    names.join(", ")
                ));
            }
        }
        let mut pairs = Vec::new();
        for argument in self.arguments {
            let value = given.get(argument.name).filter(|v| !v.is_null());
            if let Some(text) = argument.read(value)? {
                pairs.push((argument.name.to_owned(), text));
            }
        }
        Ok(pairs)
    }
}

impl Argument {
    fn read(&self, value: Option<&Json>) -> Result<Option<String>, String> {
        let name = self.name;
        let Some(value) = value else {
            return match self.what {
                What::Needed => Err(format!("{name} is missing: {}", self.description)),
                What::Number(_, default, _) => Ok(Some(default.to_string())),
                What::Text | What::One(_) | What::Flag => Ok(None),
            };
        };
        let given = || short(&value.to_string());
        match (&self.what, value) {
            (What::Needed, Json::String(text)) if text.trim().is_empty() => {
                Err(format!("{name} is empty: {}", self.description))
            }
            (What::Needed | What::Text, Json::String(text)) => Ok(Some(text.clone())),
            (What::Needed | What::Text, _) => Err(format!("{name}: {}: expected a text", given())),
            (What::One(words), value) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(Some(word.to_owned())),
                _ => Err(format!(
                    "{name}: {}: expected one of {}",
                    given(),
                    words.join(", ")
                )),
            },
            (What::Number(least, _, most), value) => match value.as_u64() {
                Some(n) if (*least..=*most).contains(&n) => Ok(Some(n.to_string())),
                _ => Err(format!(
                    "{name}: {}: expected a whole number from {least} to {most}",
                    given()
                )),
            },
            (What::Flag, Json::Bool(flag)) => Ok(flag.then(|| "1".to_owned())),
            (What::Flag, _) => Err(format!("{name}: {}: expected true or false", given())),
        }
    }
}

/// The tables of SQL in a few lines.
fn tables_text() -> String {
    let mut lines = vec!["Tables and functions (in FROM) with their columns:".to_owned()];
    // The names of other tools say the same again.
    let own = tables()
        .into_iter()
        .filter(|t| t.kind != TableKind::View && !t.name.starts_with("get"));
    for table in own {
        let columns: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        let arguments = match table.arguments.is_empty() {
            true => String::new(),
            false => format!("({})", table.arguments.join(", ")),
        };
        lines.push(format!("{}{arguments}: {}", table.name, columns.join(" ")));
    }
    lines.push(
        "Each class is a table, too: \"java.lang.Thread\", or instanceof.\"java.util.Map\" with subclasses; this is the \
         object, its fields are the columns (select name, type from fields where class = 'a.B')."
            .to_owned(),
    );
    lines.push(
        "Values of an object: to_string(id), field(id, 'a.b[3].c'), class_of(id), retained_size(id), collection_size(id). \
         All objects are there; where reachable takes the live ones. regexp matches regular expressions."
            .to_owned(),
    );
    lines.join("\n")
}
