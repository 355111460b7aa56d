//! The answers as JSON Schema.

use super::types::{Body, Field, Shape, Types};
use super::{ANSWERS, LIVE, root};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The version of JSON Schema.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The file of what answers consist of.
const PARTS: &str = "parts.json";

/// The schema of each answer, and one of the types that they contain, by the names of the files in `docs/reference/schema`.
///
/// # Errors
/// An answer without a type.
pub fn schemas(types: &Types) -> Result<Vec<(String, Value)>, String> {
    let mut all = Vec::new();
    let envelope = types.find("Provenance", "crates/report/src/json.rs");
    let envelope = envelope
        .and_then(|it| types.members(it))
        .unwrap_or_default();
    let mut parts = Parts {
        types,
        done: Map::new(),
        open: BTreeSet::new(),
    };
    for answer in ANSWERS.iter().chain(LIVE) {
        let of = root(types, answer)?;
        let name = answer.schema();
        let mut fields = types.members(of).unwrap_or_default();
        fields.retain(|field| field.name != "schema");
        if answer.of.is_none() {
            fields.extend(envelope.iter().cloned());
        }
        let mut schema = parts.object(&fields);
        schema["properties"]["schema"] = json!({ "const": name });
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.insert(0, json!("schema"));
        }
        schema["$schema"] = json!(DRAFT);
        schema["title"] = json!(name);
        schema["description"] = json!(of.doc);
        all.push((format!("{}.json", answer.name), schema));
    }
    let parts =
        json!({ "$schema": DRAFT, "title": "The types that answers contain", "$defs": parts.done });
    all.push((PARTS.to_owned(), parts));
    Ok(all)
}

struct Parts<'t> {
    types: &'t Types,
    /// The definitions so far.
    done: Map<String, Value>,
    /// Those that are being made, because a type may contain itself.
    open: BTreeSet<String>,
}

impl Parts<'_> {
    fn object(&mut self, fields: &[Field]) -> Value {
        let mut properties = Map::new();
        for field in fields {
            let mut value = self.value(&field.shape);
            if !field.doc.is_empty() {
                value["description"] = json!(field.doc);
            }
            properties.insert(field.name.clone(), value);
        }
        let required = fields.iter().filter(|field| !field.may_lack);
        let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": required,
            "properties": properties,
        })
    }

    fn value(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::Text => json!({ "type": "string" }),
            Shape::One(words) => json!({ "enum": words }),
            Shape::Whole => json!({ "type": "integer", "minimum": 0 }),
            Shape::Signed => json!({ "type": "integer" }),
            Shape::Real => json!({ "type": "number" }),
            Shape::Flag => json!({ "type": "boolean" }),
            Shape::Any => json!({}),
            Shape::List(of) => json!({ "type": "array", "items": self.value(of) }),
            Shape::Tuple(all) => {
                let items: Vec<Value> = all.iter().map(|it| self.value(it)).collect();
                json!({ "type": "array", "prefixItems": items, "items": false })
            }
            Shape::Map(of) => json!({ "type": "object", "additionalProperties": self.value(of) }),
            Shape::Optional(of) => json!({ "anyOf": [self.value(of), { "type": "null" }] }),
            Shape::Of(name, file) => self.of(name, file),
        }
    }

    fn of(&mut self, name: &str, file: &str) -> Value {
        let Some(of) = self.types.find(name, file) else {
            return json!({});
        };
        if let Body::As(shape) = &of.body {
            return self.value(shape);
        }
        let title = self.types.title(of);
        if self.open.insert(title.clone()) {
            let fields = self.types.members(of).unwrap_or_default();
            let mut schema = self.object(&fields);
            schema["description"] = json!(of.doc);
            self.done.insert(title.clone(), schema);
        }
        json!({ "$ref": format!("{PARTS}#/$defs/{title}") })
    }
}
