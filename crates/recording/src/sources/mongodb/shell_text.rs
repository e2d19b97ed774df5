//! Documents as logs of MongoDB before 4.4 have them: `{ find: "c", filter: { a: { $gt: 1.5 } }, $db: "t" }`.
//!
//! Texts are not escaped there: one ends at a quotation mark behind which a document or an array goes on. Long ones are cut off
//! after 150 characters, with three points: a document with such a text is not read.

use dyno_types::bson::{self, kind};
use dyno_types::limits::BSON_DEPTH;

/// Characters of a text that was cut off, at least.
const CUT_LENGTH: usize = 140;

/// Reads the document at the begin of a text; its BSON and the text behind it.
pub(super) fn read_shell_document(text: &str) -> Option<(Vec<u8>, &str)> {
    let (mut reader, mut out) = (Reader { rest: text }, Vec::new());
    reader.put_fields(&mut out, 0)?;
    Some((out, reader.rest))
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn take(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn try_take(&mut self, expected: &str) -> bool {
        self.take(expected).is_some()
    }

    /// Takes the text before `end`, and the end.
    fn take_until(&mut self, end: &str) -> Option<&'a str> {
        let (found, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(found)
    }

    /// `{ name: value, ... }` or `{}`.
    fn put_fields(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        if depth > BSON_DEPTH {
            return None;
        }
        self.take("{")?;
        let at = bson::open(out);
        if !self.try_take("}") {
            self.take(" ")?;
            loop {
                let name = self.take_until(": ")?;
                if name.contains(['{', '}', '"', '\0']) {
                    return None;
                }
                self.put_value(out, name, depth)?;
                if self.try_take(" }") {
                    break;
                }
                self.take(", ")?;
            }
        }
        bson::close(out, at);
        Some(())
    }

    /// `[ value, ... ]` or `[]`.
    fn put_items(&mut self, out: &mut Vec<u8>, depth: usize) -> Option<()> {
        if depth > BSON_DEPTH {
            return None;
        }
        self.take("[")?;
        let at = bson::open(out);
        if !self.try_take("]") {
            self.take(" ")?;
            for number in 0u32.. {
                self.put_value(out, &number.to_string(), depth)?;
                if self.try_take(" ]") {
                    break;
                }
                self.take(", ")?;
            }
        }
        bson::close(out, at);
        Some(())
    }

    fn put_value(&mut self, out: &mut Vec<u8>, name: &str, depth: usize) -> Option<()> {
        let typed = |out: &mut Vec<u8>, kind: u8, bytes: &[u8]| {
            bson::put_head(out, kind, name);
            out.extend_from_slice(bytes);
        };
        if self.rest.starts_with('{') {
            bson::put_head(out, kind::DOCUMENT, name);
            return self.put_fields(out, depth + 1);
        }
        if self.rest.starts_with('[') {
            bson::put_head(out, kind::ARRAY, name);
            return self.put_items(out, depth + 1);
        }
        if self.try_take("\"") {
            bson::put_string(out, name, self.take_text()?);
        } else if self.try_take("ObjectId('") {
            typed(out, kind::OBJECT_ID, &read_hex(self.take_until("')")?).filter(|id| id.len() == 12)?);
        } else if self.try_take("UUID(\"") {
            let digits = self.take_until("\")")?.replace('-', "");
            let bytes = read_hex(&digits).filter(|bytes| bytes.len() == 16)?;
            typed(out, kind::BINARY, &binary_value(4, &bytes)?);
        } else if self.try_take("new Date(") {
            bson::put_date(out, name, self.take_until(")")?.parse().ok()?);
        } else if self.try_take("Timestamp(") {
            let (seconds, number) = self.take_until(")")?.split_once(", ")?;
            let part = |text: &str| text.parse::<u32>().ok().map(u32::to_le_bytes);
            typed(out, kind::TIMESTAMP, &[part(number)?, part(seconds)?].concat());
        } else if self.try_take("BinData(") {
            let (subtype, digits) = self.take_until(")")?.split_once(", ")?;
            typed(out, kind::BINARY, &binary_value(subtype.parse().ok()?, &read_hex(digits)?)?);
        } else if self.try_take("/") {
            self.put_regex(out, name)?;
        } else {
            let end = self.rest.find([',', ' '])?;
            let (word, rest) = self.rest.split_at(end);
            self.rest = rest;
            match word {
                "null" => bson::put_null(out, name),
                "true" => bson::put_boolean(out, name, true),
                "false" => bson::put_boolean(out, name, false),
                "undefined" => typed(out, 0x06, &[]),
                "MinKey" => typed(out, 0xFF, &[]),
                "MaxKey" => typed(out, 0x7F, &[]),
                // A cursor's id is one of 64 bits, however small.
                number if name == "getMore" => bson::put_int64(out, name, number.parse().ok()?),
                number if number.contains('.') || number.contains('e') => {
                    bson::put_double(out, name, number.parse().ok()?);
                }
                number => put_integer(out, name, number.parse().ok()?),
            }
        }
        Some(())
    }

    /// A text behind its first quotation mark.
    fn take_text(&mut self) -> Option<&'a str> {
        let goes_on =
            |at: &usize| [", ", " }", " ]"].iter().any(|next| self.rest[at + 1..].starts_with(next));
        let end = self.rest.match_indices('"').map(|(at, _)| at).find(goes_on)?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        (!(text.ends_with("...") && text.len() >= CUT_LENGTH)).then_some(text)
    }

    /// An expression behind its first slash: it ends at a slash behind which options and then something else follow.
    fn put_regex(&mut self, out: &mut Vec<u8>, name: &str) -> Option<()> {
        let end = self.rest.match_indices('/').find_map(|(at, _)| {
            let behind = &self.rest[at + 1..];
            let options = behind.find(|letter: char| !letter.is_ascii_lowercase())?;
            [", ", " }", " ]"].iter().any(|next| behind[options..].starts_with(next)).then_some((at, options))
        });
        let (at, options) = end?;
        bson::put_head(out, kind::REGEX, name);
        for part in [&self.rest[..at], &self.rest[at + 1..at + 1 + options]] {
            if part.contains('\0') {
                return None;
            }
            out.extend_from_slice(part.as_bytes());
            out.push(0);
        }
        self.rest = &self.rest[at + 1 + options..];
        Some(())
    }
}

/// A whole number, in 32 bits where it fits, as the relaxed form has it.
fn put_integer(out: &mut Vec<u8>, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => bson::put_int32(out, name, number),
        Err(_) => bson::put_int64(out, name, number),
    }
}

/// The bytes of a binary value: length, subtype and content.
fn binary_value(subtype: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    let length = i32::try_from(bytes.len()).ok()?;
    Some([&length.to_le_bytes()[..], &[subtype], bytes].concat())
}

/// Bytes of hexadecimal digits.
fn read_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
