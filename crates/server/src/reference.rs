//! The parts of the reference that are generated from declarations: views, tools and the columns of live tables. Each
//! is the text between two marks in a document of `docs/reference`; `cargo run -p tenure-server --example reference`
//! writes them, and a test compares them.

use crate::explorer::describe;
use crate::live::doors;
use crate::mcp;
use live_analysis::allocations;
use live_analysis::classes::ClassRow;
use live_analysis::columns::{Kind, Tabular};
use live_analysis::comparison::Change;
use live_analysis::growth::Growing;
use live_analysis::instances::{Group, Instance};
use live_analysis::references;
use live_analysis::savings::Saving;
use report::live;
use serde_json::{Map, Value, json};

/// A generated part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file in `docs/reference`.
    pub document: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

impl Part {
    /// A document with this part replaced; `None` if the document has no marks for it.
    pub fn put(&self, document: &str) -> Option<String> {
        let (begin, end) = (
            format!("<!-- generated: {} -->\n", self.name),
            "<!-- end -->\n",
        );
        let (before, rest) = document.split_once(&begin)?;
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{begin}{}{end}{after}", self.text))
    }
}

/// All generated parts.
pub fn parts() -> Vec<Part> {
    let part = |document, name, text| Part {
        document,
        name,
        text,
    };
    vec![
        part("api.md", "views", describe::reference(describe::VIEWS)),
        part(
            "live.md",
            "views",
            describe::reference(doors::describe::VIEWS),
        ),
        part("mcp.md", "tools", mcp::reference()),
        part("live-tables.md", "tables", tables()),
    ]
}

/// Calls a function for each table of a running program.
macro_rules! of_tables {
    ($function:ident) => {
        [
            $function::<allocations::Row>(),
            $function::<ClassRow>(),
            $function::<Instance>(),
            $function::<Group>(),
            $function::<references::Row>(),
            $function::<Growing>(),
            $function::<Saving>(),
            $function::<Change>(),
        ]
    };
}

/// The tables of a running program with their columns.
fn tables() -> String {
    of_tables!(table).concat()
}

fn name_of<R: Tabular>() -> &'static str {
    let name = R::SCHEMA.trim_start_matches("tenure.live.");
    name.split('/').next().unwrap_or(name)
}

fn table<R: Tabular>() -> String {
    let (name, schema, about, sort) = (name_of::<R>(), R::SCHEMA, R::ABOUT, R::SORT);
    let columns = live::reference(R::COLUMNS);
    format!(
        "## `{name}`\n\n{about} Schema `{schema}` ([file](schema/live.{name}.json)), sorted by `{sort}` by default.\n\n{columns}\n"
    )
}

/// The JSON Schema files, by their names in `docs/reference/schema`.
pub fn schemas() -> Vec<(String, Value)> {
    fn one<R: Tabular>() -> (String, Value) {
        (format!("live.{}.json", name_of::<R>()), schema::<R>())
    }
    of_tables!(one).into()
}

/// The JSON Schema of a table.
fn schema<R: Tabular>() -> Value {
    let mut row = Map::new();
    for column in R::COLUMNS {
        let value = match column.kind {
            Kind::Name => json!({"type": "string"}),
            Kind::Text | Kind::Detail | Kind::Description => json!({"type": ["string", "null"]}),
            Kind::Stack => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Count | Kind::Bytes | Kind::Milliseconds | Kind::Time => {
                json!({"type": ["integer", "null"], "minimum": 0})
            }
            Kind::CountChange | Kind::BytesChange | Kind::Number => {
                json!({"type": ["integer", "null"]})
            }
            Kind::Mean | Kind::Percent | Kind::Rate => json!({"type": ["number", "null"]}),
            Kind::Interval => {
                let end = json!({"type": "integer", "minimum": 0});
                json!({"type": ["array", "null"], "items": end, "minItems": 2, "maxItems": 2})
            }
        };
        let mut value = value;
        value["description"] = json!(column.help);
        match column.name.split_once('.') {
            None => {
                row.insert(column.name.to_owned(), value);
            }
            Some((object, field)) => {
                let part = row
                    .entry(object)
                    .or_insert_with(|| json!({"type": ["object", "null"], "properties": {}}));
                part["properties"][field] = value;
            }
        }
    }
    let required: Vec<&String> = row.keys().collect();
    let row = json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": row,
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": R::SCHEMA,
        "description": R::ABOUT,
        "type": "object",
        "required": ["schema", "range", "source", "notes", "count", "offset", "columns", "total", "rows"],
        "properties": {
            "schema": {"const": R::SCHEMA},
            "range": {
                "description": "The range of time, in milliseconds since 1970; it ends with the time of the answer if no earlier end was requested. Null where it has no meaning.",
                "type": ["object", "null"],
                "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
            },
            "source": {"description": "Where the counts come from.", "type": "string"},
            "sizes": {"description": "Where sizes and capacities come from.", "type": "object"},
            "dump": {"description": "Number of the heap dump that the rows are from.", "type": "integer"},
            "collections": {"description": "Number of garbage collections that were examined.", "type": "integer"},
            "class": {"description": "The class that the table is about.", "type": "string"},
            "objects": {"description": "Number of objects of the class.", "type": "integer"},
            "sampled": {"description": "Number of objects that were examined.", "type": "integer"},
            "own_code": {"description": "Whether the program's code may run to describe them.", "type": "boolean"},
            "notes": {"description": "What could not be determined, and why.", "type": "array", "items": {"type": "string"}},
            "count": {"description": "Number of all rows.", "type": "integer"},
            "offset": {"description": "Number of rows before the first one.", "type": "integer"},
            "columns": {"description": "The columns, as this reference describes them.", "type": "array"},
            "total": {"description": "The sum of all rows, where it has a meaning.", "type": ["object", "null"]},
            "rows": {"type": "array", "items": row},
        },
    })
}
