//! BSON, the form in which documents travel: appended to a buffer, read without copying.
//!
//! The writer appends and never looks back except for the four bytes of a document's length. The reader borrows: it
//! hands out elements as slices of the input and believes no length that leads beyond it. Source: bsonspec.org 1.1.

use crate::limits::BSON_DEPTH;

/// Type bytes of elements.
pub mod kind {
    /// 64-bit floating point.
    pub const DOUBLE: u8 = 0x01;
    /// UTF-8 text.
    pub const STRING: u8 = 0x02;
    /// A document inside the document.
    pub const DOCUMENT: u8 = 0x03;
    /// An array: a document with the names 0, 1, 2 ...
    pub const ARRAY: u8 = 0x04;
    /// Bytes with a subtype.
    pub const BINARY: u8 = 0x05;
    /// Twelve bytes.
    pub const OBJECT_ID: u8 = 0x07;
    /// One byte, 0 or 1.
    pub const BOOLEAN: u8 = 0x08;
    /// Milliseconds since 1970, UTC.
    pub const DATE: u8 = 0x09;
    /// Nothing.
    pub const NULL: u8 = 0x0A;
    /// A regular expression.
    pub const REGEX: u8 = 0x0B;
    /// 32-bit integer.
    pub const INT32: u8 = 0x10;
    /// MongoDB's own time stamp.
    pub const TIMESTAMP: u8 = 0x11;
    /// 64-bit integer.
    pub const INT64: u8 = 0x12;
    /// 128-bit decimal.
    pub const DECIMAL: u8 = 0x13;
}

/// Begins a document (or an array); hand the result to [`close`].
#[inline]
pub fn open(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends the document that began at `at`.
#[inline]
pub fn close(out: &mut Vec<u8>, at: usize) {
    out.push(0);
    let bytes = (out.len() - at) as i32;
    out[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
}

/// Appends the head of an element: its type and name. The value must follow.
#[inline]
pub fn put_head(out: &mut Vec<u8>, kind: u8, name: &str) {
    out.push(kind);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Appends the head of element `index` of an array.
#[inline]
pub fn put_item_head(out: &mut Vec<u8>, kind: u8, index: u32) {
    out.push(kind);
    put_decimal(out, index);
    out.push(0);
}

/// Appends a number in decimal digits.
#[inline]
pub fn put_decimal(out: &mut Vec<u8>, mut n: u32) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a 32-bit integer.
#[inline]
pub fn put_int32(out: &mut Vec<u8>, name: &str, value: i32) {
    put_head(out, kind::INT32, name);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a 64-bit integer.
#[inline]
pub fn put_int64(out: &mut Vec<u8>, name: &str, value: i64) {
    put_head(out, kind::INT64, name);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a floating-point number.
#[inline]
pub fn put_double(out: &mut Vec<u8>, name: &str, value: f64) {
    put_head(out, kind::DOUBLE, name);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a date, milliseconds since 1970.
#[inline]
pub fn put_date(out: &mut Vec<u8>, name: &str, millis: i64) {
    put_head(out, kind::DATE, name);
    out.extend_from_slice(&millis.to_le_bytes());
}

/// Appends true or false.
#[inline]
pub fn put_boolean(out: &mut Vec<u8>, name: &str, value: bool) {
    put_head(out, kind::BOOLEAN, name);
    out.push(u8::from(value));
}

/// Appends a null.
#[inline]
pub fn put_null(out: &mut Vec<u8>, name: &str) {
    put_head(out, kind::NULL, name);
}

/// Appends a text.
#[inline]
pub fn put_string(out: &mut Vec<u8>, name: &str, value: &str) {
    put_head(out, kind::STRING, name);
    put_text_value(out, value.as_bytes());
}

/// Appends the value of a text: length, bytes, 0. The bytes must be UTF-8.
#[inline]
pub fn put_text_value(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as i32 + 1).to_le_bytes());
    out.extend_from_slice(value);
    out.push(0);
}

/// Appends bytes of the generic subtype.
#[inline]
pub fn put_binary(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    put_head(out, kind::BINARY, name);
    out.extend_from_slice(&(value.len() as i32).to_le_bytes());
    out.push(0);
    out.extend_from_slice(value);
}

/// Appends a document that exists as bytes.
#[inline]
pub fn put_document(out: &mut Vec<u8>, name: &str, document: &[u8]) {
    put_head(out, kind::DOCUMENT, name);
    out.extend_from_slice(document);
}

/// The bytes are not a BSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a BSON document")]
pub struct NotBson;

/// One element of a document: type, name, and the value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Type byte, see [`kind`].
    pub kind: u8,
    /// Name, as bytes.
    pub name: &'a [u8],
    /// The value as it stands in the document.
    pub value: &'a [u8],
}

impl<'a> Element<'a> {
    /// The value as a whole number, where it is a number (or true, false) and whole.
    pub fn as_i64(&self) -> Option<i64> {
        match self.kind {
            kind::INT32 => Some(i64::from(i32::from_le_bytes(self.value.try_into().ok()?))),
            kind::INT64 | kind::DATE => Some(i64::from_le_bytes(self.value.try_into().ok()?)),
            kind::BOOLEAN => Some(i64::from(self.value[0])),
            kind::DOUBLE => {
                let number = f64::from_le_bytes(self.value.try_into().ok()?);
                (number.trunc() == number && number.abs() < 9e15).then_some(number as i64)
            }
            _ => None,
        }
    }

    /// The value as a floating-point number, where it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self.kind {
            kind::DOUBLE => Some(f64::from_le_bytes(self.value.try_into().ok()?)),
            _ => self.as_i64().map(|n| n as f64),
        }
    }

    /// Returns whether the value means yes: true, or a number other than 0.
    pub fn is_true(&self) -> bool {
        self.as_f64().is_some_and(|n| n != 0.0)
    }

    /// MongoDB's own time stamp: seconds in the upper half, order within the second in the lower, so that they compare.
    pub fn as_timestamp(&self) -> Option<u64> {
        let bytes = self.value.try_into().ok()?;
        (self.kind == kind::TIMESTAMP).then(|| u64::from_le_bytes(bytes))
    }

    /// The value as text.
    pub fn as_str(&self) -> Option<&'a str> {
        let text = self.value.get(4..self.value.len().checked_sub(1)?)?;
        if self.kind == kind::STRING { std::str::from_utf8(text).ok() } else { None }
    }

    /// The bytes of a binary value, without length and subtype.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if self.kind == kind::BINARY { self.value.get(5..) } else { None }
    }

    /// The bytes of a document or an array.
    pub fn as_document(&self) -> Option<&'a [u8]> {
        matches!(self.kind, kind::DOCUMENT | kind::ARRAY).then_some(self.value)
    }
}

/// Builds a document of the fields that `fields` appends.
pub fn build_document(fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let at = open(&mut out);
    fields(&mut out);
    close(&mut out, at);
    out
}

/// The length that a document at the start of `input` says it has; `None` if there are fewer than four bytes.
#[inline]
pub fn document_length(input: &[u8]) -> Option<Result<usize, NotBson>> {
    let bytes = i32::from_le_bytes(*input.first_chunk::<4>()?);
    Some(usize::try_from(bytes).ok().filter(|&n| n >= 5).ok_or(NotBson))
}

/// The elements of a document, one after the other. After an error it ends.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    broken: bool,
}

/// Reads the document that fills `input` exactly.
pub fn read_elements(input: &[u8]) -> Result<Elements<'_>, NotBson> {
    match document_length(input) {
        Some(Ok(n)) if n == input.len() && input[n - 1] == 0 => {
            Ok(Elements { rest: &input[4..n - 1], broken: false })
        }
        _ => Err(NotBson),
    }
}

impl<'a> Elements<'a> {
    fn take(&mut self) -> Result<Element<'a>, NotBson> {
        let (&kind, rest) = self.rest.split_first().ok_or(NotBson)?;
        let end = rest.iter().position(|&b| b == 0).ok_or(NotBson)?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let bytes = value_bytes(kind, rest)?;
        let value = rest.get(..bytes).ok_or(NotBson)?;
        self.rest = &rest[bytes..];
        Ok(Element { kind, name, value })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, NotBson>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.broken {
            return None;
        }
        let taken = self.take();
        self.broken = taken.is_err();
        Some(taken)
    }
}

/// Returns how many bytes of `rest` the value of this type takes.
fn value_bytes(kind: u8, rest: &[u8]) -> Result<usize, NotBson> {
    let counted = |least: i32, extra: usize| {
        let bytes = rest.first_chunk::<4>().map(|b| i32::from_le_bytes(*b)).ok_or(NotBson)?;
        if bytes < least { Err(NotBson) } else { Ok(bytes as usize + extra) }
    };
    let terminated = |from: usize| {
        let rest = rest.get(from..).ok_or(NotBson)?;
        rest.iter().position(|&b| b == 0).map(|n| from + n + 1).ok_or(NotBson)
    };
    Ok(match kind {
        kind::DOUBLE | kind::DATE | kind::TIMESTAMP | kind::INT64 => 8,
        // Text, code and symbol end with a 0 that their length counts.
        kind::STRING | 0x0D | 0x0E => {
            let bytes = counted(1, 4)?;
            if rest.get(bytes - 1) == Some(&0) { bytes } else { return Err(NotBson) }
        }
        kind::DOCUMENT | kind::ARRAY => counted(5, 0)?,
        kind::BINARY => counted(0, 5)?,
        kind::OBJECT_ID => 12,
        kind::BOOLEAN => 1,
        // Null, undefined, smallest key, largest key.
        kind::NULL | 0x06 | 0xFF | 0x7F => 0,
        kind::REGEX => terminated(terminated(0)?)?,
        // A reference: text and object id.
        0x0C => counted(1, 16)?,
        // Code with scope: its length counts itself.
        0x0F => counted(14, 0)?,
        kind::INT32 => 4,
        kind::DECIMAL => 16,
        _ => return Err(NotBson),
    })
}

/// Returns whether `input` is one well-formed document, inner ones included, not nested deeper than [`BSON_DEPTH`].
pub fn check(input: &[u8]) -> Result<(), NotBson> {
    fn walk(input: &[u8], depth: usize) -> Result<(), NotBson> {
        if depth > BSON_DEPTH {
            return Err(NotBson);
        }
        for element in read_elements(input)? {
            if let Some(inner) = element?.as_document() {
                walk(inner, depth + 1)?;
            }
        }
        Ok(())
    }
    walk(input, 0)
}

/// The first element called `name`, if the document is well-formed up to there.
pub fn find_element<'a>(input: &'a [u8], name: &str) -> Option<Element<'a>> {
    read_elements(input).ok()?.map_while(Result::ok).find(|e| e.name == name.as_bytes())
}

/// The element at a dotted path (`a.b.0`).
pub fn element_at_path<'a>(input: &'a [u8], path: &str) -> Option<Element<'a>> {
    match path.split_once('.') {
        None => find_element(input, path),
        Some((first, rest)) => self::element_at_path(find_element(input, first)?.as_document()?, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        let at = open(&mut out);
        put_int32(&mut out, "a", -7);
        put_string(&mut out, "b", "été");
        put_head(&mut out, kind::ARRAY, "c");
        let inner = open(&mut out);
        put_item_head(&mut out, kind::INT64, 0);
        out.extend_from_slice(&12345678901i64.to_le_bytes());
        put_item_head(&mut out, kind::NULL, 10);
        close(&mut out, inner);
        put_binary(&mut out, "d", &[1, 2, 3]);
        put_boolean(&mut out, "e", true);
        put_double(&mut out, "f", 2.5);
        put_date(&mut out, "g", 1000);
        put_null(&mut out, "h");
        close(&mut out, at);
        out
    }

    #[test]
    fn what_is_written_is_read_again() {
        let bytes = sample();
        check(&bytes).unwrap();
        assert_eq!(find_element(&bytes, "a").unwrap().as_i64(), Some(-7));
        assert_eq!(find_element(&bytes, "b").unwrap().as_str(), Some("été"));
        assert_eq!(element_at_path(&bytes, "c.0").unwrap().as_i64(), Some(12345678901));
        assert_eq!(element_at_path(&bytes, "c.10").unwrap().kind, kind::NULL);
        assert_eq!(find_element(&bytes, "d").unwrap().as_bytes(), Some(&[1u8, 2, 3][..]));
        assert!(find_element(&bytes, "e").unwrap().is_true());
        assert_eq!(find_element(&bytes, "f").unwrap().as_f64(), Some(2.5));
        assert_eq!(find_element(&bytes, "f").unwrap().as_i64(), None);
        assert_eq!(find_element(&bytes, "g").unwrap().as_i64(), Some(1000));
        assert!(!find_element(&bytes, "h").unwrap().is_true());
        assert_eq!(find_element(&bytes, "z"), None);
    }

    #[test]
    fn cut_or_lying_documents_are_refused_and_never_read_beyond_their_end() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert_eq!(check(&bytes[..cut]), Err(NotBson), "cut at {cut}");
        }
        // Any single changed byte must neither panic nor read outside.
        for at in 0..bytes.len() {
            for value in [0u8, 1, 0x7F, 0x80, 0xFF] {
                let mut other = bytes.clone();
                other[at] = value;
                let _ = check(&other);
                let _ = element_at_path(&other, "c.10");
                for element in read_elements(&other).into_iter().flatten().flatten() {
                    let _ = (element.as_str(), element.as_bytes(), element.as_i64());
                }
            }
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let mut out = Vec::new();
        let mut open_at = Vec::new();
        for _ in 0..=BSON_DEPTH + 1 {
            open_at.push(open(&mut out));
            put_head(&mut out, kind::DOCUMENT, "a");
        }
        let at = open(&mut out);
        close(&mut out, at);
        for at in open_at.into_iter().rev() {
            close(&mut out, at);
        }
        assert_eq!(check(&out), Err(NotBson));
    }
}
