//! `-p`: one document as the original shows it, extended JSON over several lines with rows of inner arrays on one line
//! each, and its size.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_types::bson::{self, Element, kind};
use dyno_workload::pocdriver::{PocConfig, Template};
use jiff::Timestamp;
use std::fmt::Write;

/// Worker and sequence number of the document shown.
const SHOWN: (u32, u64) = (1, 12_345_678);

/// The document and the line about its size.
pub fn print(config: &PocConfig) -> String {
    let mut document = Vec::new();
    Template::new(config).render_document(config.seed, SHOWN.0, SHOWN.1, &mut document);
    sample(&document)
}

fn sample(document: &[u8]) -> String {
    let mut text = String::new();
    write_document(document, 0, &mut text);
    let kib = document.len() as f64 / 1_024.0;
    // Writing into a string cannot fail.
    let _ = write!(text, "\nDocuments are {kib:.2} KB each as BSON\n");
    text
}

fn indent(level: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

fn write_document(document: &[u8], level: usize, out: &mut String) {
    let mut separator = "{";
    for element in elements(document) {
        out.push_str(separator);
        separator = ",";
        indent(level + 1, out);
        string(&String::from_utf8_lossy(element.name), out);
        out.push_str(": ");
        write_value(&element, level + 1, out);
    }
    if separator == "{" {
        out.push_str("{}");
    } else {
        indent(level, out);
        out.push('}');
    }
}

fn elements(document: &[u8]) -> impl Iterator<Item = Element<'_>> {
    bson::read_elements(document).into_iter().flatten().flatten()
}

/// The outer array over several lines, what is in it on one.
fn write_array(array: &[u8], level: usize, inner: bool, out: &mut String) {
    let mut separator = "[";
    for element in elements(array) {
        out.push_str(separator);
        separator = ",";
        if !inner {
            indent(level + 1, out);
        }
        match element.as_document() {
            Some(row) if element.kind == kind::ARRAY => write_array(row, level + 1, true, out),
            _ => write_value(&element, level + 1, out),
        }
    }
    if separator == "[" {
        out.push('[');
    } else if !inner {
        indent(level, out);
    }
    out.push(']');
}

fn write_value(element: &Element<'_>, level: usize, out: &mut String) {
    let wrapped = |name: &str, value: &str, out: &mut String| {
        out.push('{');
        indent(level + 1, out);
        let _ = write!(out, "\"{name}\": {value}");
        indent(level, out);
        out.push('}');
    };
    match element.kind {
        kind::INT32 | kind::INT64 => {
            let _ = write!(out, "{}", element.as_i64().unwrap_or(0));
        }
        kind::STRING => string(element.as_str().unwrap_or_default(), out),
        kind::DOCUMENT => write_document(element.value, level, out),
        kind::ARRAY => write_array(element.value, level, false, out),
        kind::DATE => {
            let millis = element.as_i64().unwrap_or(0);
            wrapped("$date", &date(millis), out);
        }
        kind::BINARY => {
            let mut inner = "{".to_owned();
            indent(level + 2, &mut inner);
            let bytes = STANDARD.encode(element.as_bytes().unwrap_or_default());
            let _ = write!(inner, "\"base64\": \"{bytes}\",");
            indent(level + 2, &mut inner);
            let _ = write!(inner, "\"subType\": \"{:02x}\"", element.value.get(4).copied().unwrap_or(0));
            indent(level + 1, &mut inner);
            inner.push('}');
            wrapped("$binary", &inner, out);
        }
        _ => out.push_str("null"),
    }
}

/// ISO 8601 with as many decimals as are needed; a number before 1970.
fn date(millis: i64) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(at) if millis >= 0 => format!("\"{at}\""),
        _ => format!("{{\"$numberLong\": \"{millis}\"}}"),
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_document() {
        let mut out = Vec::new();
        let all = bson::open(&mut out);
        bson::put_head(&mut out, bson::kind::DOCUMENT, "_id");
        let at = bson::open(&mut out);
        bson::put_int32(&mut out, "w", 1);
        bson::put_int32(&mut out, "i", 12_345_678);
        bson::close(&mut out, at);
        bson::put_head(&mut out, bson::kind::DOCUMENT, "node0");
        let at = bson::open(&mut out);
        bson::put_int64(&mut out, "fld0", 343_012);
        bson::put_date(&mut out, "fld1", 1_608_552_727_070);
        bson::put_string(&mut out, "fld2", "say \"x\"");
        bson::close(&mut out, at);
        bson::put_head(&mut out, bson::kind::ARRAY, "arr");
        let at = bson::open(&mut out);
        for row in 0..2 {
            bson::put_item_head(&mut out, bson::kind::ARRAY, row);
            let at = bson::open(&mut out);
            for column in 0..3 {
                bson::put_item_head(&mut out, bson::kind::INT32, column);
                out.extend_from_slice(&[0; 4]);
            }
            bson::close(&mut out, at);
        }
        bson::close(&mut out, at);
        bson::put_date(&mut out, "old", -5);
        bson::put_binary(&mut out, "bin", &[]);
        bson::close(&mut out, all);
        let expected = r#"{
  "_id": {
    "w": 1,
    "i": 12345678
  },
  "node0": {
    "fld0": 343012,
    "fld1": {
      "$date": "2020-12-21T12:12:07.07Z"
    },
    "fld2": "say \"x\""
  },
  "arr": [
    [0,0,0],
    [0,0,0]
  ],
  "old": {
    "$date": {"$numberLong": "-5"}
  },
  "bin": {
    "$binary": {
      "base64": "",
      "subType": "00"
    }
  }
}
Documents are 0.17 KB each as BSON
"#;
        assert_eq!(sample(&out), expected);
    }
}
