//! The tools as a client gets them, and the arguments of a call.

use super::message::{fresh, short};
use super::subjects::Subjects;
use super::table::Argument::{Own, Short, Without};
use super::table::{COMPARE, DUMP_TOOLS, Of, PROFILE, PROGRAM_TOOLS, Tool};
use crate::explorer::describe::{self, Kind, Parameter, View};
use crate::live::doors;
use heap_query::{TableKind, tables};
use serde_json::{Map, Value as Json, json};

/// Parameters of views that are useless for a model: it reads JSON, and it waits.
const UNUSED: [&str; 2] = ["form", "brief"];

/// The tools as a table of the reference, in Markdown.
pub(crate) fn reference() -> String {
    let mut out = String::from("| Tool | Arguments | Answer |\n|---|---|---|\n");
    let files = DUMP_TOOLS.iter().chain([&COMPARE, &PROFILE]);
    for tool in files.chain(PROGRAM_TOOLS) {
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

/// The tools for these subjects.
fn all(subjects: &Subjects) -> impl Iterator<Item = &'static Tool> {
    const COMPARES: &Tool = &COMPARE;
    const PROFILES: &Tool = &PROFILE;
    let names = subjects.fixed_names();
    let dumps = subjects.may_have_dumps().then_some(DUMP_TOOLS);
    let compare = names
        .is_none_or(|names| names.len() > 1)
        .then_some(COMPARES);
    let profile = (!subjects.profiles.is_empty()).then_some(PROFILES);
    let program = subjects.program.as_ref().map(|_| PROGRAM_TOOLS);
    let of_files = dumps.into_iter().flatten().chain(compare).chain(profile);
    of_files.chain(program.into_iter().flatten())
}

/// The tool with a name.
pub(super) fn named(name: &str, subjects: &Subjects) -> Option<&'static Tool> {
    all(subjects).find(|tool| tool.name == name)
}

/// The answer to `tools/list`.
pub(super) fn list(subjects: &Subjects) -> Json {
    fresh(
        "tools",
        all(subjects).map(|tool| tool.described(subjects)).collect(),
    )
}

impl Tool {
    /// The view that the tool shows.
    fn shown(&self) -> Option<&'static View> {
        match self.of {
            Of::Dump => describe::named(self.view),
            Of::Program => doors::describe::named(self.view),
            Of::Dumps | Of::Profile | Of::Command => None,
        }
    }

    /// Title and description.
    fn words(&self) -> (&'static str, &'static str) {
        let view = || self.shown().map(|view| (view.title, view.about));
        self.own.or_else(view).unwrap_or_default()
    }

    /// The arguments, as parameters of a view.
    fn parameters(&self) -> Vec<Parameter> {
        let of_view = self.shown().map_or(&[][..], |view| view.parameters);
        let of_view = of_view.iter().filter(|it| !UNUSED.contains(&it.name));
        let mut all: Vec<Parameter> = of_view.copied().collect();
        for argument in self.arguments {
            let (name, own) = match *argument {
                Without(name) => (name, None),
                Own(name, kind, help) => (name, Some((kind, help))),
                Short(name, least, default, most) => {
                    if let Some(it) = all.iter_mut().find(|it| it.name == name) {
                        it.kind = Kind::Number(least, default, most);
                    }
                    continue;
                }
            };
            all.retain(|it| it.name != name);
            all.extend(own.map(|(kind, help)| Parameter {
                name,
                kind,
                help,
                flag: None,
            }));
        }
        all
    }

    fn described(&self, subjects: &Subjects) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for argument in self.parameters() {
            let mut schema = match argument.kind {
                Kind::Needed | Kind::Text => json!({ "type": "string" }),
                Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
                Kind::One(words) => json!({ "type": "string", "enum": words }),
                Kind::Percent(default) => {
                    json!({ "type": "number", "minimum": 0, "default": default, "maximum": 100 })
                }
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
        let dump = match subjects.fixed_names() {
            None => Some(
                json!({ "type": "string", "description": "Which dump by name; by default the last one that was taken of the program, else the first one." }),
            ),
            Some(names) if names.len() > 1 => Some(
                json!({ "type": "string", "enum": names, "description": "Which dump; the first one by default." }),
            ),
            Some(_) => None,
        };
        if let (Of::Dump, Some(schema)) = (self.of, dump) {
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
                "readOnlyHint": self.of != Of::Command,
                "destructiveHint": false,
                "idempotentHint": self.of != Of::Command,
                "openWorldHint": false,
            },
        })
    }

    /// The arguments of a call as parameters of a view: checked, with their defaults.
    ///
    /// # Errors
    /// A sentence that describes what is expected.
    pub(super) fn read(&self, given: &Map<String, Json>) -> Result<Vec<(String, String)>, String> {
        let arguments = self.parameters();
        for name in given.keys() {
            let own = arguments.iter().any(|a| a.name == name);
            let known = own || (name == "dump" && self.of == Of::Dump);
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
            Kind::Number(_, default, _) | Kind::Percent(default) => Ok(Some(default.to_string())),
            Kind::Text | Kind::Whole | Kind::One(_) | Kind::Flag => Ok(None),
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
        (Kind::Whole, value) => match whole(value) {
            Some(n) => Ok(Some(n.to_string())),
            None => Err(format!("{name}: {}: expected a whole number", given())),
        },
        (Kind::Percent(_), value) => match value.as_f64() {
            Some(n) if (0.0..=100.0).contains(&n) => Ok(Some(n.to_string())),
            _ => Err(format!(
                "{name}: {}: expected a number from 0 to 100",
                given()
            )),
        },
        (Kind::Number(least, _, most), value) => match whole(value) {
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

/// A whole number, also one that is written with decimals that are 0: to a JSON schema, 5.0 is an integer.
fn whole(value: &Json) -> Option<u64> {
    const MOST: f64 = (1u64 << 53) as f64;
    let real = || value.as_f64().filter(|n| n.fract() == 0.0);
    let of_real = || real().filter(|n| (0.0..=MOST).contains(n));
    value.as_u64().or_else(|| of_real().map(|n| n as u64))
}

/// The tables of SQL in a few lines.
fn tables_text() -> String {
    let mut lines = vec!["Tables and functions (in FROM) with their columns:".to_owned()];
    // The names of other tools would be repetitions.
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
