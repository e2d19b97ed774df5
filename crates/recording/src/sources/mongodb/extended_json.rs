//! MongoDB's Extended JSON, as BSON: version 2, relaxed and canonical, and version 1 as `mongoexport` has written it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_types::bson::{self, kind};
use dyno_types::limits::BSON_DEPTH;
use serde_json::{Map, Value};

/// The document of a line; `None` if it is none, or holds something that cannot be read.
pub(super) fn read_document(line: &[u8]) -> Option<Vec<u8>> {
    match serde_json::from_slice(line).ok()? {
        Value::Object(fields) => to_document(&fields),
        _ => None,
    }
}

/// A document of fields.
pub(super) fn to_document(fields: &Map<String, Value>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    put_fields(&mut out, fields.iter().map(|(name, value)| (name.as_str(), value)), 0)?;
    Some(out)
}

fn put_fields<'a>(
    out: &mut Vec<u8>,
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
    depth: usize,
) -> Option<()> {
    if depth > BSON_DEPTH {
        return None;
    }
    let at = bson::open(out);
    for (name, value) in fields {
        if name.contains('\0') {
            return None;
        }
        put_value(out, name, value, depth)?;
    }
    bson::close(out, at);
    Some(())
}

fn put_value(out: &mut Vec<u8>, name: &str, value: &Value, depth: usize) -> Option<()> {
    match value {
        Value::Null => bson::put_null(out, name),
        Value::Bool(value) => bson::put_boolean(out, name, *value),
        Value::String(text) => bson::put_string(out, name, text),
        Value::Number(number) => match number.as_i64() {
            Some(number) => put_integer(out, name, number),
            None => bson::put_double(out, name, number.as_f64()?),
        },
        Value::Array(items) => {
            let names: Vec<String> = (0..items.len()).map(|number| number.to_string()).collect();
            bson::put_head(out, kind::ARRAY, name);
            put_fields(out, names.iter().map(String::as_str).zip(items), depth + 1)?;
        }
        Value::Object(fields) => {
            if let Some(found) = typed_value(fields)? {
                bson::put_head(out, found.0, name);
                out.extend_from_slice(&found.1);
            } else {
                bson::put_head(out, kind::DOCUMENT, name);
                put_fields(out, fields.iter().map(|(name, value)| (name.as_str(), value)), depth + 1)?;
            }
        }
    }
    Some(())
}

/// A whole number, in 32 bits where it fits, as the relaxed form has it.
pub(super) fn put_integer(out: &mut Vec<u8>, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => bson::put_int32(out, name, number),
        Err(_) => bson::put_int64(out, name, number),
    }
}

/// Kind and bytes of a value that is written as a document; `Some(None)` if it is a document, `None` if it cannot be read.
fn typed_value(fields: &Map<String, Value>) -> Option<Option<(u8, Vec<u8>)>> {
    let Some((name, value)) = fields.iter().next() else { return Some(None) };
    let number = |value: &Value| -> Option<i64> {
        match value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            Value::Object(fields) if fields.len() == 1 => fields.get("$numberLong")?.as_str()?.parse().ok(),
            _ => None,
        }
    };
    let is_alone = fields.len() == 1;
    let found = match name.as_str() {
        "$oid" if is_alone => (kind::OBJECT_ID, read_hex(value.as_str()?).filter(|id| id.len() == 12)?),
        "$numberInt" if is_alone => (kind::INT32, i32::try_from(number(value)?).ok()?.to_le_bytes().to_vec()),
        "$numberLong" if is_alone => (kind::INT64, number(value)?.to_le_bytes().to_vec()),
        "$numberDouble" if is_alone => {
            (kind::DOUBLE, value.as_str()?.parse::<f64>().ok()?.to_le_bytes().to_vec())
        }
        "$date" if is_alone => {
            let millis = match value {
                Value::String(text) => text.parse::<jiff::Timestamp>().ok()?.as_millisecond(),
                other => number(other)?,
            };
            (kind::DATE, millis.to_le_bytes().to_vec())
        }
        "$timestamp" if is_alone => {
            let part = |name: &str| value.get(name)?.as_u64().and_then(|part| u32::try_from(part).ok());
            (kind::TIMESTAMP, [part("i")?.to_le_bytes(), part("t")?.to_le_bytes()].concat())
        }
        "$uuid" if is_alone => {
            let bytes = read_hex(&value.as_str()?.replace('-', "")).filter(|bytes| bytes.len() == 16)?;
            (kind::BINARY, binary_value(4, &bytes)?)
        }
        "$binary" => {
            let (text, subtype) = match value {
                Value::String(text) => (text, fields.get("$type")?),
                other => (other.get("base64").and_then(value_text)?, other.get("subType")?),
            };
            let subtype = u8::from_str_radix(subtype.as_str()?, 16).ok()?;
            (kind::BINARY, binary_value(subtype, &STANDARD.decode(text).ok()?)?)
        }
        "$regularExpression" if is_alone => {
            let part =
                |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.contains('\0'));
            (kind::REGEX, [part("pattern")?.as_bytes(), b"\0", part("options")?.as_bytes(), b"\0"].concat())
        }
        "$minKey" if is_alone => (0xFF, Vec::new()),
        "$maxKey" if is_alone => (0x7F, Vec::new()),
        "$undefined" if is_alone => (0x06, Vec::new()),
        // Seldom, and nothing that a command needs.
        "$numberDecimal" | "$symbol" | "$code" | "$dbPointer" => return None,
        _ => return Some(None),
    };
    Some(Some(found))
}

fn value_text(value: &Value) -> Option<&String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

/// The bytes of a binary value: length, subtype and content.
pub(super) fn binary_value(subtype: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    let length = i32::try_from(bytes.len()).ok()?;
    Some([&length.to_le_bytes()[..], &[subtype], bytes].concat())
}

/// Bytes of hexadecimal digits.
pub(super) fn read_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
