//! MongoDB's Extended JSON, as BSON: version 2, relaxed and canonical, and version 1 as tools up to 4.0 have written it.

use bson::{Bson, Document};
use dyno_types::bson::check;
use serde_json::{Value, json};

/// Why a text is no document.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotDocument {
    /// It is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It has a typed value that means nothing.
    #[error("extended JSON that has no meaning: {0}")]
    Typed(#[from] bson::error::Error),
    /// Another value, or a document that is nested too deeply.
    #[error("expected a document that MongoDB can hold")]
    Other,
}

/// What documents of extended JSON are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonOf {
    /// Data: `$regex` with `$options` is a regular expression, as version 1 wrote it.
    Data,
    /// Commands: there `$regex` is an operator.
    Commands,
}

/// A document of extended JSON.
pub(super) fn to_document(value: Value, of: JsonOf) -> Result<Document, NotDocument> {
    match Bson::try_from(modern(value, of))? {
        Bson::Document(document) => Ok(document),
        _ => Err(NotDocument::Other),
    }
}

/// The bytes of a document of extended JSON.
pub(super) fn to_bytes(value: Value, of: JsonOf) -> Result<Vec<u8>, NotDocument> {
    let bytes = to_document(value, of)?.to_vec()?;
    match check(&bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(NotDocument::Other),
    }
}

/// The bytes of the document of a line.
pub(super) fn read_line(line: &[u8], of: JsonOf) -> Result<Vec<u8>, NotDocument> {
    to_bytes(serde_json::from_slice(line)?, of)
}

/// The forms of version 1 as version 2 has them.
fn modern(value: Value, of: JsonOf) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(|inner| modern(inner, of)).collect()),
        Value::Object(fields) => {
            let two = |one: &str, other: &str| match (fields.len(), fields.get(one), fields.get(other)) {
                (2, Some(Value::String(one)), Some(Value::String(other))) => Some((one, other)),
                _ => None,
            };
            if let Some((base64, subtype)) = two("$binary", "$type") {
                return json!({"$binary": {"base64": base64, "subType": subtype}});
            }
            if let (JsonOf::Data, Some((pattern, options))) = (of, two("$regex", "$options")) {
                return json!({"$regularExpression": {"pattern": pattern, "options": options}});
            }
            Value::Object(fields.into_iter().map(|(name, inner)| (name, modern(inner, of))).collect())
        }
        other => other,
    }
}
