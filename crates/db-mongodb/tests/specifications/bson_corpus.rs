//! Documents that are BSON, and bytes that are none (suite `bson-corpus`), before the reader of `dyno_types::bson`.

use crate::harness::{Checked, Suite, expect};
use dyno_types::bson::{self, Element, NotBson, kind};
use serde_json::Value;

#[test]
fn documents() {
    Suite::named("bson-corpus").run();
}

/// A good document is read and written again byte by byte; a bad one is refused, or has a value that is.
pub fn check(case: &Value, _data: &Value) -> Checked {
    let bytes = |name: &str| case[name].as_str().map(|text| hex::decode(text).unwrap());
    if let Some(bad) = bytes("bad") {
        return expect(!is_readable(&bad), || "is accepted".into());
    }
    let good = bytes("bson").unwrap();
    expect(is_readable(&good), || "is refused".into())?;
    expect(rewrite(&good).as_deref() == Ok(&good[..]), || "is written otherwise".into())?;
    if let Some(degenerate) = bytes("degenerate") {
        expect(is_readable(&degenerate), || "the degenerate form is refused".into())?;
    }
    match (case["key"].as_str(), &case["is"]) {
        (Some(key), expected) => {
            let element = bson::find_element(&good, key).unwrap();
            expect(is_value(&element, expected), || format!("{element:?} is not {expected}"))
        }
        (None, _) => Ok(()),
    }
}

/// Returns whether the document is well-formed and all of its texts are read as texts.
fn is_readable(document: &[u8]) -> bool {
    fn has_texts(document: &[u8]) -> bool {
        let Ok(mut all) = bson::read_elements(document) else { return false };
        all.all(|element| {
            element.is_ok_and(|element| match element.kind {
                kind::STRING => element.as_str().is_some(),
                kind::DOCUMENT | kind::ARRAY => element.as_document().is_some_and(has_texts),
                _ => true,
            })
        })
    }
    bson::check(document).is_ok() && has_texts(document)
}

/// The same elements, written again.
fn rewrite(document: &[u8]) -> Result<Vec<u8>, NotBson> {
    let mut out = Vec::new();
    let at = bson::open(&mut out);
    for element in bson::read_elements(document)? {
        let element = element?;
        bson::put_head(&mut out, element.kind, std::str::from_utf8(element.name).map_err(|_| NotBson)?);
        match element.as_document() {
            Some(inner) => out.extend_from_slice(&rewrite(inner)?),
            None => out.extend_from_slice(element.value),
        }
    }
    bson::close(&mut out, at);
    Ok(out)
}

/// Returns whether the reader takes the element for this value; numbers are texts in the data.
fn is_value(element: &Element<'_>, expected: &Value) -> bool {
    let text = expected.as_str().unwrap_or_default();
    match element.kind {
        kind::INT32 | kind::INT64 | kind::DATE => element.as_i64() == text.parse().ok(),
        kind::DOUBLE => {
            let number: f64 = text.parse().unwrap();
            element.as_f64().is_some_and(|found| found == number || found.is_nan() && number.is_nan())
        }
        kind::BOOLEAN => Some(element.is_true()) == expected.as_bool(),
        _ => element.as_str() == Some(text),
    }
}
