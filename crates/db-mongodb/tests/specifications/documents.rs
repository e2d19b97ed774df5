//! Extended JSON of cases as BSON.

use dyno_types::bson::{self, kind};
use serde_json::Value;

/// A document of the fields of a JSON object.
pub fn document(value: &Value) -> Vec<u8> {
    bson::build_document(|out| {
        value.as_object().unwrap().iter().for_each(|(name, value)| element(name, value, out))
    })
}

fn element(name: &str, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => bson::put_null(out, name),
        Value::Bool(flag) => bson::put_boolean(out, name, *flag),
        Value::String(text) => bson::put_string(out, name, text),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => match i32::try_from(whole) {
                Ok(small) => bson::put_int32(out, name, small),
                Err(_) => bson::put_int64(out, name, whole),
            },
            None => bson::put_double(out, name, number.as_f64().unwrap()),
        },
        Value::Array(list) => {
            bson::put_head(out, kind::ARRAY, name);
            let at = bson::open(out);
            list.iter().enumerate().for_each(|(index, value)| element(&index.to_string(), value, out));
            bson::close(out, at);
        }
        Value::Object(fields) => match (fields.get("$oid"), fields.get("$numberLong"), fields.get("$date")) {
            (Some(id), ..) => {
                bson::put_head(out, kind::OBJECT_ID, name);
                out.extend_from_slice(&object_id(id));
            }
            (_, Some(number), _) => bson::put_int64(out, name, long(number)),
            (.., Some(date)) => bson::put_date(out, name, long(&date["$numberLong"])),
            _ => bson::put_document(out, name, &document(value)),
        },
    }
}

fn long(text: &Value) -> i64 {
    text.as_str().unwrap().parse().unwrap()
}

/// The bytes of an object id in hexadecimal digits.
pub fn object_id(digits: &Value) -> [u8; 12] {
    let digits = digits.as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}
