//! `-p`: one document as JSON, and its size.

use dyno_types::bson::{self, Element, kind};
use dyno_workload::pocdriver::{PocConfig, Template};
use serde_json::{Map, Value, json};

/// Worker and sequence number of the document shown.
const SHOWN: (u32, u64) = (1, 12_345_678);

/// The document and the line about its size.
pub fn print(config: &PocConfig) -> String {
    let mut document = Vec::new();
    Template::new(config).render(config.seed, SHOWN.0, SHOWN.1, &mut document);
    let text = serde_json::to_string_pretty(&object(&document)).unwrap_or_default();
    format!("{text}\nDocuments are {:.2} KB each as BSON\n", document.len() as f64 / 1024.0)
}

fn object(document: &[u8]) -> Value {
    let elements = bson::elements(document).into_iter().flatten().flatten();
    Value::Object(
        elements.map(|e| (String::from_utf8_lossy(e.name).into_owned(), value(&e))).collect::<Map<_, _>>(),
    )
}

/// Relaxed Extended JSON.
fn value(element: &Element<'_>) -> Value {
    match element.kind {
        kind::DOCUMENT => object(element.value),
        kind::ARRAY => Value::Array(
            bson::elements(element.value).into_iter().flatten().flatten().map(|e| value(&e)).collect(),
        ),
        kind::STRING => element.as_str().into(),
        kind::DATE => {
            let time = jiff::Timestamp::from_millisecond(element.as_i64().unwrap_or(0)).unwrap_or_default();
            json!({ "$date": format!("{time:.3}") })
        }
        kind::BINARY => {
            let bytes = element.as_bytes().unwrap_or_default();
            // All of them are zero: the shortest base64 of so many zero bytes.
            let zeros = "A".repeat((bytes.len() * 8).div_ceil(6));
            let padding = "=".repeat((4 - zeros.len() % 4) % 4);
            json!({ "$binary": { "base64": format!("{zeros}{padding}"), "subType": "00" } })
        }
        _ => element.as_i64().into(),
    }
}
