//! The tools: views of the explorer, described there. To add one: a line in [`TOOLS`].

use super::Files;
use super::message::{fresh, short};
use crate::explorer::describe::{self, Kind, Parameter};
use Argument::{Of, Own, Short};
use heap_query::{TableKind, tables};
use serde_json::{Map, Value as Json, json};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The view of the explorer that answers, with its title, text and parameters; empty for [`COMPARE`] and [`PROFILE`].
    pub(super) view: &'static str,
    /// Title and description, where they are not those of the view.
    own: Option<(&'static str, &'static str)>,
    arguments: &'static [Argument],
}

/// An argument of a tool.
enum Argument {
    /// A parameter of the view.
    Of(&'static str),
    /// A whole number of the view's parameters with another range: least, default, most. Answers to a model are short.
    Short(&'static str, u64, u64, u64),
    /// One that only the tool has.
    Own(&'static str, Kind, &'static str),
}

/// The tool of a view.
const fn of_view(name: &'static str, arguments: &'static [Argument]) -> Tool {
    Tool {
        name,
        view: name,
        own: None,
        arguments,
    }
}

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    of_view("overview", &[]),
    of_view("leaks", &[Of("threshold"), Of("deep")]),
    of_view(
        "histogram",
        &[
            Of("by"),
            Of("set"),
            Of("filter"),
            Of("sort"),
            Of("all"),
            Short("limit", 1, 30, 200),
            Of("offset"),
        ],
    ),
    of_view(
        "objects",
        &[
            Of("set"),
            Of("sort"),
            Of("all"),
            Short("limit", 1, 30, 200),
            Of("offset"),
        ],
    ),
    of_view("object", &[Of("id"), Short("limit", 1, 20, 200)]),
    Tool {
        name: "paths",
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
            Of("exclude"),
        ],
    },
    of_view("dominators", &[Of("id"), Short("limit", 1, 20, 200)]),
    of_view(
        "threads",
        &[Short("limit", 1, 20, 1000), Short("locals", 0, 5, 100)],
    ),
    of_view("waste", &[Of("all"), Short("limit", 1, 5, 100)]),
    of_view(
        "query",
        &[
            Of("text"),
            Of("lang"),
            Short("limit", 1, 100, 1000),
            Short("seconds", 1, 60, 600),
        ],
    ),
];

/// The tool that is there when there are several dumps.
pub(super) const COMPARE: Tool = Tool {
    name: "compare",
    view: "",
    own: Some((
        "What changed between dumps",
        "Classes and dominators that grew between two dumps of one program, matched by structure, not by address.",
    )),
    arguments: &[
        Own(
            "before",
            Kind::Text,
            "The earlier dump by name; the first one by default.",
        ),
        Own(
            "after",
            Kind::Text,
            "The later dump by name; the last one by default.",
        ),
        Own("limit", Kind::Number(1, 20, 200), "Rows per table."),
    ],
};

/// The tool that is there when there are profiles.
pub(super) const PROFILE: Tool = Tool {
    name: "profile",
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

/// The tools as a table of the reference, in Markdown.
pub(crate) fn reference() -> String {
    let mut out = String::from("| Tool | Arguments | Answer |\n|---|---|---|\n");
    for tool in TOOLS.iter().chain([&COMPARE, &PROFILE]) {
        let parameters = tool.parameters();
        let arguments: Vec<String> = parameters.iter().map(Parameter::short).collect();
        let (name, about) = (tool.name, tool.words().1);
        out.push_str(&format!(
            "| `{name}` | {} | {about} |\n",
            arguments.join(", ")
        ));
    }
    out
}

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
    /// Title and description.
    fn words(&self) -> (&'static str, &'static str) {
        let view = || describe::named(self.view).map(|view| (view.title, view.about));
        self.own.or_else(view).unwrap_or_default()
    }

    /// The arguments, as parameters of a view.
    fn parameters(&self) -> Vec<Parameter> {
        let view = describe::named(self.view);
        let of = |name| view.and_then(|view| view.parameter(name)).copied();
        let arguments = self
            .arguments
            .iter()
            .filter_map(|argument| match *argument {
                Of(name) => of(name),
                Short(name, least, default, most) => of(name).map(|parameter| Parameter {
                    kind: Kind::Number(least, default, most),
                    ..parameter
                }),
                Own(name, kind, help) => Some(Parameter {
                    name,
                    kind,
                    help,
                    flag: None,
                }),
            });
        arguments.collect()
    }

    fn described(&self, files: &Files) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for argument in self.parameters() {
            let mut schema = match argument.kind {
                Kind::Needed | Kind::Text => json!({ "type": "string" }),
                Kind::One(words) => json!({ "type": "string", "enum": words }),
                Kind::Number(least, default, most) => {
                    json!({ "type": "integer", "minimum": least, "default": default, "maximum": most })
                }
                Kind::Flag => json!({ "type": "boolean" }),
            };
            schema["description"] = json!(argument.help);
            properties.insert(argument.name.to_owned(), schema);
            if argument.kind == Kind::Needed {
                required.push(argument.name);
            }
        }
        if self.is_of_a_dump() && files.dumps.len() > 1 {
            let names: Vec<&str> = files.dumps.iter().map(|d| d.name.as_str()).collect();
            let description = "Which dump; the first one by default.";
            let schema = json!({ "type": "string", "enum": names, "description": description });
            properties.insert("dump".to_owned(), schema);
        }
        let (title, description) = self.words();
        let description = match self.name {
            "query" => format!(
                "{description} Ids of objects in rows are arguments of the other tools.\n\n{}",
                tables_text()
            ),
            _ => description.to_owned(),
        };
        json!({
            "name": self.name,
            "title": title,
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
        let arguments = self.parameters();
        for name in given.keys() {
            let own = arguments.iter().any(|a| a.name == name);
            let known = own || (name == "dump" && self.is_of_a_dump());
            if !known {
                let names: Vec<&str> = arguments.iter().map(|a| a.name).collect();
                let name = short(name);
                let tool = self.name;
                return Err(format!(
                    "{tool} has no argument {name}; it has: {}",
                    names.join(", ")
                ));
            }
        }
        let mut pairs = Vec::new();
        for argument in arguments {
            let value = given.get(argument.name).filter(|v| !v.is_null());
            if let Some(text) = read(&argument, value)? {
                pairs.push((argument.name.to_owned(), text));
            }
        }
        Ok(pairs)
    }
}

/// The value of an argument as text, its default if it is not given.
fn read(argument: &Parameter, value: Option<&Json>) -> Result<Option<String>, String> {
    let name = argument.name;
    let Some(value) = value else {
        return match argument.kind {
            Kind::Needed => Err(format!("{name} is missing: {}", argument.help)),
            Kind::Number(_, default, _) => Ok(Some(default.to_string())),
            Kind::Text | Kind::One(_) | Kind::Flag => Ok(None),
        };
    };
    let given = || short(&value.to_string());
    match (argument.kind, value) {
        (Kind::Needed, Json::String(text)) if text.trim().is_empty() => {
            Err(format!("{name} is empty: {}", argument.help))
        }
        (Kind::Needed | Kind::Text, Json::String(text)) => Ok(Some(text.clone())),
        (Kind::Needed | Kind::Text, _) => Err(format!("{name}: {}: expected a text", given())),
        (Kind::One(words), value) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(Some(word.to_owned())),
            _ => Err(format!(
                "{name}: {}: expected one of {}",
                given(),
                words.join(", ")
            )),
        },
        (Kind::Number(least, _, most), value) => match value.as_u64() {
            Some(n) if (least..=most).contains(&n) => Ok(Some(n.to_string())),
            _ => Err(format!(
                "{name}: {}: expected a whole number from {least} to {most}",
                given()
            )),
        },
        (Kind::Flag, Json::Bool(flag)) => Ok(flag.then(|| "1".to_owned())),
        (Kind::Flag, _) => Err(format!("{name}: {}: expected true or false", given())),
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
