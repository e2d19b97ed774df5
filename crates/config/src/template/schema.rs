//! The JSON Schema of document workloads, for editors. Verbs, their keys and generators are those of the readers.

use crate::template::operations::VERBS;
use crate::template::values::KNOWN;
use serde_json::{Map, Value, json};

/// The JSON Schema of a file of documents and operations.
pub fn documents_schema_text() -> String {
    // Rows of a file are arguments of commands alone.
    let known = KNOWN.iter().filter(|name| !["$row", "$vector"].contains(name));
    let generators: Map<String, Value> = known.map(|name| ((*name).to_owned(), json!({}))).collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Document workload",
        "description": "Documents and operations of one's own, for `dyno run --workload FILE` and `dyno sample FILE`.",
        "type": "object",
        "required": ["collections", "operations"],
        "additionalProperties": false,
        "properties": {
            "seed": {
                "description": "Documents and operations are functions of it. Default: 1.",
                "type": "integer", "minimum": 0, "default": 1
            },
            "batch": {
                "description": "Documents of one insert of the load; fewer where they are large. Default: 1000.",
                "type": "integer", "minimum": 1, "maximum": 100_000, "default": 1_000
            },
            "collections": {
                "description": "Collections by name.",
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/collection" }
            },
            "operations": {
                "description": "Operations by name. A name is what percentiles and thresholds call the operation.",
                "type": "object",
                "additionalProperties": { "oneOf": operations(true) }
            }
        },
        "$defs": {
            "collection": {
                "type": "object",
                "required": ["count", "document"],
                "additionalProperties": false,
                "properties": {
                    "count": {
                        "description": "Documents that are loaded, such as 1000 or 10k.",
                        "type": ["integer", "string"]
                    },
                    "document": {
                        "description": "Fields of a document; _id is its number by default.",
                        "type": "object",
                        "additionalProperties": { "$ref": "#/$defs/value" }
                    },
                    "indexes": {
                        "description": "Names of fields, or mappings of fields to 1 and -1.",
                        "type": "array",
                        "items": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/directions" }] }
                    }
                }
            },
            "value": {
                "description": "A value as it stands, or a generator: a mapping whose only key begins with $.",
                "anyOf": [
                    { "type": ["null", "boolean", "number", "string"] },
                    { "type": "array", "items": { "$ref": "#/$defs/value" } },
                    {
                        "type": "object",
                        "propertyNames": { "pattern": "^[^$]" },
                        "additionalProperties": { "$ref": "#/$defs/value" }
                    },
                    { "$ref": "#/$defs/generator" }
                ]
            },
            "generator": {
                "description": "How a value is drawn.",
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": false,
                "properties": generators
            },
            "directions": {
                "description": "Fields with 1 or -1.",
                "type": "object",
                "additionalProperties": { "enum": [1, -1] }
            },
            "step": { "oneOf": operations(false) }
        }
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// A schema for each verb: operations have a weight and may be transactions, steps of a transaction have a name.
fn operations(whole: bool) -> Vec<Value> {
    let own = match whole {
        true => (
            "weight",
            json!({ "description": "Share of it among all weights. Default: 1.", "type": "number", "minimum": 0 }),
        ),
        false => (
            "name",
            json!({ "description": "Name of its percentiles, behind the operation's.", "type": "string" }),
        ),
    };
    let one = |(verb, keys): &(&str, &[&str])| {
        let mut properties = Map::from_iter([(own.0.to_owned(), own.1.clone())]);
        let of = match *verb {
            "command" => json!({
                "description": "A command of MongoDB: its name with the collection first; values may be generators.",
                "type": "object", "minProperties": 1
            }),
            _ => json!({ "description": "Name of the collection.", "type": "string" }),
        };
        properties.insert((*verb).to_owned(), of);
        properties.extend(keys.iter().map(|key| ((*key).to_owned(), key_schema(key))));
        json!({
            "type": "object", "required": [verb], "additionalProperties": false, "properties": properties
        })
    };
    let mut all: Vec<Value> = VERBS.iter().map(one).collect();
    if whole {
        all.push(json!({
            "type": "object",
            "required": ["transaction"],
            "additionalProperties": false,
            "properties": {
                "weight": own.1,
                "transaction": {
                    "description": "Operations that are done together or not at all.",
                    "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/step" }
                }
            }
        }));
    }
    all
}

/// What may stand behind a key of an operation.
fn key_schema(key: &str) -> Value {
    match key {
        "filter" => json!({
            "description": "Fields that must all match: a value, a generator, or $eq, $in, $gt, $gte, $lt, $lte.",
            "type": "object",
            "propertyNames": { "pattern": "^[^$]" }
        }),
        "projection" => json!({
            "description": "Fields that are returned: a list, or a mapping of fields to true and false.",
            "anyOf": [
                { "type": "array", "items": { "type": "string" } },
                { "type": "object", "additionalProperties": { "enum": [true, false, 1, 0] } }
            ]
        }),
        "sort" => json!({ "$ref": "#/$defs/directions" }),
        "limit" => json!({
            "description": "Most documents; 0: all. Default: 0.",
            "type": "integer", "minimum": 0, "maximum": i32::MAX
        }),
        "field" => json!({ "description": "The field whose values are meant.", "type": "string" }),
        "pipeline" => json!({
            "description": "Stages, each a mapping with one key that begins with $; $match takes generators.",
            "type": "array",
            "items": { "type": "object", "minProperties": 1, "maxProperties": 1 }
        }),
        "documents" => json!({
            "description": "Documents by one command. Default: 1.",
            "type": "integer", "minimum": 1, "maximum": 100_000
        }),
        "change" => json!({
            "description": "Operators with fields and values or generators.",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": false,
            "properties": {
                "$set": { "type": "object" },
                "$inc": { "type": "object" },
                "$push": { "type": "object" },
                "$unset": { "type": "object" }
            }
        }),
        "upsert" => json!({
            "description": "True if a document that is not found is made. Default: false.", "type": "boolean"
        }),
        _ => json!({
            "description": "True if the changed document is returned. Default: false.", "type": "boolean"
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_the_keys_that_the_reader_accepts() {
        let schema: Value = serde_json::from_str(&documents_schema_text()).unwrap();
        let operations =
            schema["properties"]["operations"]["additionalProperties"]["oneOf"].as_array().unwrap();
        for operation in operations.iter().filter(|one| one["required"][0] != "transaction") {
            let verb = operation["required"][0].as_str().unwrap();
            let mut known: Vec<&String> = operation["properties"].as_object().unwrap().keys().collect();
            known.sort();
            let beside = match verb {
                "aggregate" => ", pipeline: []",
                "distinct" | "sum" => ", field: a",
                "update" | "updateMany" | "findAndModify" => ", filter: {}, change: {$inc: {n: 1}}",
                "insert" | "command" => "",
                _ => ", filter: {}",
            };
            let of = if verb == "command" { "{find: c}" } else { "c" };
            let text = |more: &str| {
                format!(
                    "collections: {{c: {{count: 1, document: {{}}}}}}\noperations: {{o: {{{verb}: {of}{beside}{more}}}}}\n"
                )
            };
            crate::template::parse(&text(""), "x.yaml").unwrap_or_else(|error| panic!("{verb}: {error}"));
            let refused = crate::template::parse(&text(", nosuch: 1"), "x.yaml").unwrap_err().text;
            let accepted = refused.split("accepted: ").nth(1).unwrap_or_else(|| panic!("{refused}"));
            let mut accepted: Vec<&str> = accepted.split(", ").collect();
            accepted.sort_unstable();
            assert_eq!(known, accepted, "{verb}");
        }
        let generators = schema["$defs"]["generator"]["properties"].as_object().unwrap();
        let known = KNOWN.iter().filter(|name| !["$row", "$vector"].contains(name));
        assert!(known.clone().all(|name| generators.contains_key(*name)), "{generators:?}");
        assert_eq!(generators.len(), known.count());
    }

    #[test]
    fn a_filter_of_a_pipeline_and_a_limit_of_one_document_are_refused() {
        for operation in ["aggregate: c, pipeline: [], filter: {a: 1}", "findOne: c, limit: 3"] {
            let text = format!(
                "collections: {{c: {{count: 1, document: {{}}}}}}\noperations: {{o: {{{operation}}}}}\n"
            );
            let refused = crate::template::parse(&text, "x.yaml").unwrap_err().text;
            assert!(refused.starts_with("unknown key"), "{refused}");
        }
    }
}
