//! Documents as relaxed Extended JSON, for people.

use base64::Engine;
use dyno_types::bson::{self, Element, kind};
use serde_json::{Map, Value, json};

/// A document, indented.
pub fn pretty(document: &[u8]) -> String {
    serde_json::to_string_pretty(&object(document)).unwrap_or_default()
}

fn object(document: &[u8]) -> Value {
    let elements = bson::read_elements(document).into_iter().flatten().flatten();
    Value::Object(
        elements.map(|e| (String::from_utf8_lossy(e.name).into_owned(), value(&e))).collect::<Map<_, _>>(),
    )
}

fn value(element: &Element<'_>) -> Value {
    match element.kind {
        kind::DOCUMENT => object(element.value),
        kind::ARRAY => Value::Array(
            bson::read_elements(element.value).into_iter().flatten().flatten().map(|e| value(&e)).collect(),
        ),
        kind::STRING => element.as_str().into(),
        kind::DATE => {
            let time = jiff::Timestamp::from_millisecond(element.as_i64().unwrap_or(0)).unwrap_or_default();
            json!({ "$date": format!("{time:.3}") })
        }
        kind::BINARY => {
            let bytes = element.as_bytes().unwrap_or_default();
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            json!({ "$binary": { "base64": text, "subType": "00" } })
        }
        kind::OBJECT_ID => {
            let hex = hex::encode(element.value);
            json!({ "$oid": hex })
        }
        kind::DOUBLE => element.as_f64().into(),
        kind::BOOLEAN => element.is_true().into(),
        kind::NULL => Value::Null,
        _ => element.as_i64().into(),
    }
}
