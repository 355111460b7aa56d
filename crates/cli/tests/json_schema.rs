//! A value against a JSON Schema, as far as the files of `docs/reference/schema` use it.

use serde_json::Value;
use testkit::corpus::workspace;

/// The schema of an answer, as it is published.
pub(crate) fn published(name: &str) -> Value {
    let path = workspace().join(format!("docs/reference/schema/{name}.json"));
    let text = std::fs::read_to_string(path).expect(name);
    serde_json::from_str(&text).expect(name)
}

/// What of a value does not fit a schema, each with its place.
pub(crate) fn misfits(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    fit(&published("parts"), (schema, value), "", &mut found);
    found
}

fn fit(parts: &Value, (schema, value): (&Value, &Value), at: &str, found: &mut Vec<String>) {
    if let Some(target) = schema["$ref"].as_str() {
        let target = target.strip_prefix("parts.json#").expect("a part");
        let target = parts.pointer(target);
        return fit(parts, (target.expect("a definition"), value), at, found);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().map(|one| {
            let mut problems = Vec::new();
            fit(parts, (one, value), at, &mut problems);
            problems
        });
        let least = fits.min_by_key(Vec::len).unwrap_or_default();
        return found.extend(least);
    }
    let is_of = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    let is_one = |words: &Value| words.as_array().is_none_or(|all| all.contains(value));
    let is_const = schema["const"].is_null() || schema["const"] == *value;
    if !(kinds.is_empty() || kinds.iter().any(|kind| is_of(kind)))
        || !is_one(&schema["enum"])
        || !is_const
    {
        return found.push(format!(
            "{at}: {value} is not {kinds:?} {}{}",
            schema["enum"], schema["const"]
        ));
    }
    match value {
        Value::Array(values) => {
            for (n, value) in values.iter().enumerate() {
                let one = schema["prefixItems"].get(n).unwrap_or(&schema["items"]);
                fit(parts, (one, value), &format!("{at}[]"), found);
            }
        }
        Value::Object(members) => {
            for name in schema["required"].as_array().into_iter().flatten() {
                if !members.contains_key(name.as_str().unwrap_or_default()) {
                    found.push(format!("{at}: {name} is missing"));
                }
            }
            for (name, value) in members {
                let place = format!("{at}.{name}");
                match (
                    schema["properties"].get(name),
                    &schema["additionalProperties"],
                ) {
                    (Some(one), _) => fit(parts, (one, value), &place, found),
                    (None, Value::Bool(false)) => found.push(format!("{place}: not declared")),
                    (None, more) => fit(parts, (more, value), &place, found),
                }
            }
        }
        _ => {}
    }
}
