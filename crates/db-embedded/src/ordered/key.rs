//! BSON values as bytes that compare as the values do: what keys, indexes, comparisons and sorts are made of.
//!
//! A value is one byte for its class, in MongoDB's order of types, and bytes that end by themselves: no value's bytes
//! begin another's, so several may follow each other in one key. Whole and floating-point numbers are one class and
//! compare by what they are worth. Decimals, code and references have no order here and are refused.

use super::RequestError;
use dyno_types::bson::{self, Element, kind};

/// Class of the smallest key.
const SMALLEST: u8 = 0x08;
/// Class of null, and of a field that is not there.
pub(super) const NULL: u8 = 0x10;
const NUMBER: u8 = 0x18;
const STRING: u8 = 0x20;
const DOCUMENT: u8 = 0x28;
const ARRAY: u8 = 0x30;
const BINARY: u8 = 0x38;
const OBJECT_ID: u8 = 0x40;
const BOOLEAN: u8 = 0x48;
const DATE: u8 = 0x50;
const TIMESTAMP: u8 = 0x58;
const REGEX: u8 = 0x60;
const LARGEST: u8 = 0xF0;

/// Ends a document or an array: less than every class.
const END: u8 = 0;

/// Appends the value of `element`.
pub(super) fn encode(element: &Element<'_>, out: &mut Vec<u8>) -> Result<(), RequestError> {
    let class = class(element.kind)?;
    out.push(class);
    payload(element, class, out)
}

/// Appends the value of a field, which counts as null where it is not there.
pub(super) fn encode_field(element: Option<&Element<'_>>, out: &mut Vec<u8>) -> Result<(), RequestError> {
    match element {
        Some(element) => encode(element, out),
        None => {
            out.push(NULL);
            Ok(())
        }
    }
}

/// The least bytes above all that begin with `prefix`; empty if there are none.
pub(super) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut out = prefix.to_vec();
    while let Some(last) = out.pop() {
        if last < 0xFF {
            out.push(last + 1);
            break;
        }
    }
    out
}

/// The least bytes of a class that a comparison means: what is not a number is below all numbers, and outside.
pub(super) fn least(class: u8) -> Vec<u8> {
    match class {
        NUMBER => vec![NUMBER, 0, 0, 0, 0, 0, 0, 0, 1],
        other => vec![other],
    }
}

fn class(of: u8) -> Result<u8, RequestError> {
    Ok(match of {
        0xFF => SMALLEST,
        kind::NULL | 0x06 => NULL,
        kind::INT32 | kind::INT64 | kind::DOUBLE => NUMBER,
        kind::STRING | 0x0E => STRING,
        kind::DOCUMENT => DOCUMENT,
        kind::ARRAY => ARRAY,
        kind::BINARY => BINARY,
        kind::OBJECT_ID => OBJECT_ID,
        kind::BOOLEAN => BOOLEAN,
        kind::DATE => DATE,
        kind::TIMESTAMP => TIMESTAMP,
        kind::REGEX => REGEX,
        0x7F => LARGEST,
        kind::DECIMAL => return Err(RequestError::ComparesDecimal),
        other => return Err(RequestError::ComparesType(other)),
    })
}

fn payload(element: &Element<'_>, class: u8, out: &mut Vec<u8>) -> Result<(), RequestError> {
    let value = element.value;
    match class {
        NUMBER => number(element, out),
        STRING => text(&value[4..value.len() - 1], out),
        DOCUMENT | ARRAY => return members(value, class == DOCUMENT, out),
        BINARY => {
            let bytes = &value[5..];
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.push(value[4]);
            out.extend_from_slice(bytes);
        }
        DATE => {
            let millis = element.as_i64().unwrap_or_default();
            out.extend_from_slice(&(millis as u64 ^ 1 << 63).to_be_bytes());
        }
        TIMESTAMP => out.extend(value.iter().rev()),
        REGEX => {
            for part in value.split(|&byte| byte == 0).take(2) {
                text(part, out);
            }
        }
        // An object id and a truth value compare as their bytes; null and the two ends have none.
        _ => out.extend_from_slice(value),
    }
    Ok(())
}

/// Members compare by type, then name (in a document), then value.
fn members(document: &[u8], named: bool, out: &mut Vec<u8>) -> Result<(), RequestError> {
    for member in bson::read_elements(document)? {
        let member = member?;
        let class = class(member.kind)?;
        out.push(class);
        if named {
            text(member.name, out);
        }
        payload(&member, class, out)?;
    }
    out.push(END);
    Ok(())
}

/// A text ends with two zero bytes; a zero byte inside is followed by 0xFF.
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// The nearest floating-point number, and how much a whole number is above or below it.
fn number(element: &Element<'_>, out: &mut Vec<u8>) {
    let (near, rest) = match element.kind {
        kind::DOUBLE => (element.as_f64().unwrap_or_default(), 0),
        _ => {
            let whole = element.as_i64().unwrap_or_default();
            let near = whole as f64;
            (near, i128::from(whole) - near as i128)
        }
    };
    // -0 is 0, and what is not a number is below all numbers.
    let bits = (near + 0.0).to_bits();
    let ordered = match near {
        _ if near.is_nan() => 0,
        _ if bits >> 63 == 1 => !bits,
        _ => bits | 1 << 63,
    };
    out.extend_from_slice(&ordered.to_be_bytes());
    out.extend_from_slice(&((rest + 0x8000) as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut document = Vec::new();
        let at = bson::open(&mut document);
        write(&mut document);
        bson::close(&mut document, at);
        let mut out = Vec::new();
        encode(&bson::find_element(&document, "v").unwrap(), &mut out).unwrap();
        out
    }

    fn long(n: i64) -> Vec<u8> {
        key(|out| bson::put_int64(out, "v", n))
    }

    fn double(n: f64) -> Vec<u8> {
        key(|out| bson::put_double(out, "v", n))
    }

    fn string(text: &str) -> Vec<u8> {
        key(|out| bson::put_string(out, "v", text))
    }

    fn pair(w: i32, i: i32) -> Vec<u8> {
        key(|out| {
            bson::put_head(out, kind::DOCUMENT, "v");
            let at = bson::open(out);
            bson::put_int32(out, "w", w);
            bson::put_int32(out, "i", i);
            bson::close(out, at);
        })
    }

    #[test]
    fn numbers_are_equal_by_worth() {
        for n in [0, 1, -1, 7, 1 << 20, i32::MIN, i32::MAX] {
            assert_eq!(long(i64::from(n)), key(|out| bson::put_int32(out, "v", n)));
            assert_eq!(long(i64::from(n)), double(f64::from(n)));
        }
        assert_eq!(double(-0.0), double(0.0));
        assert!(double(f64::NAN) < double(f64::NEG_INFINITY));
        assert!(long(i64::MAX) < double(9_223_372_036_854_775_808.0));
        assert!(long((1 << 53) + 1) > double(9_007_199_254_740_992.0));
        assert!(long((1 << 53) + 1) < double(9_007_199_254_740_994.0));
    }

    #[test]
    fn classes_are_in_mongodbs_order() {
        let date = key(|out| bson::put_date(out, "v", -5));
        let ordered = [
            key(|out| bson::put_null(out, "v")),
            double(f64::INFINITY),
            string(""),
            pair(0, 0),
            key(|out| bson::put_binary(out, "v", b"")),
            key(|out| bson::put_boolean(out, "v", false)),
            key(|out| bson::put_boolean(out, "v", true)),
            date,
            key(|out| bson::put_date(out, "v", 5)),
        ];
        assert!(ordered.is_sorted());
        assert!(key(|out| bson::put_binary(out, "v", b"z")) < key(|out| bson::put_binary(out, "v", b"aa")));
    }

    #[test]
    fn what_has_no_order_is_refused() {
        let decimal = Element { kind: kind::DECIMAL, name: b"v", value: &[0; 16] };
        assert!(encode(&decimal, &mut Vec::new()).is_err());
    }

    #[test]
    fn after_is_above_all_that_begin_alike() {
        assert_eq!(after(b"ab"), b"ac");
        assert_eq!(after(&[1, 0xFF, 0xFF]), [2]);
        assert!(after(&[0xFF]).is_empty());
    }

    proptest! {
        #[test]
        fn whole_numbers_keep_their_order(a: i64, b: i64, shift in 0u32..63) {
            for (a, b) in [(a, b), (a >> shift, b >> shift), (a, a.wrapping_add(1))] {
                prop_assert_eq!(a.cmp(&b), long(a).cmp(&long(b)));
            }
        }

        #[test]
        fn whole_and_floating_numbers_keep_their_order(a: i64, b: f64) {
            prop_assume!(!b.is_nan());
            let near = a as f64;
            for b in [b, near, f64::from_bits(near.to_bits() + 1), f64::from_bits(near.to_bits() ^ 1)] {
                if b.abs() < 1e19 {
                    let whole = b.floor();
                    let expected = i128::from(a).cmp(&(whole as i128));
                    let expected = if expected.is_eq() && b > whole { std::cmp::Ordering::Less } else { expected };
                    prop_assert_eq!(expected, long(a).cmp(&double(b)), "{} {}", a, b);
                }
            }
        }

        #[test]
        fn floating_numbers_keep_their_order(a: f64, b: f64) {
            if let Some(order) = a.partial_cmp(&b) {
                prop_assert_eq!(order, double(a).cmp(&double(b)));
            }
        }

        #[test]
        fn texts_keep_their_order_and_none_begins_another(a in "[\0-\x02a-c]{0,5}", b in "[\0-\x02a-c]{0,5}") {
            prop_assert_eq!(a.cmp(&b), string(&a).cmp(&string(&b)));
            prop_assert_eq!(a == b, string(&a).starts_with(&string(&b)));
        }

        #[test]
        fn documents_compare_member_by_member(a: (i32, i32), b: (i32, i32)) {
            prop_assert_eq!(a.cmp(&b), pair(a.0, a.1).cmp(&pair(b.0, b.1)));
        }
    }
}
