//! Java's `.properties` files, the grammar of `java.util.Properties.load(InputStream)`, with line numbers.
//!
//! ```text
//! bytes (ISO-8859-1) -> natural lines -> logical lines (continued, no comments) -> key, value -> escapes undone
//! ```
//!
//! Worth knowing: white space before a value is dropped and white space after it is kept; `\` at the end of a line
//! continues it, but not that of a comment; bytes are never UTF-8. Two cases differ from Java: half a surrogate pair is
//! refused, because no Rust string can hold it, and a file that consists of one lone `\` has no entry.

use dyno_types::bounded;
use dyno_types::limits::{LINE_BYTES, TEXT_BYTES};
use std::collections::HashMap;
use std::path::Path;

/// One property of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyEntry {
    /// Key, case-sensitive.
    pub key: String,
    /// Value; white space at the end is kept.
    pub value: String,
    /// The line it starts on, from 1.
    pub line: u32,
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadLine {
    /// The line, from 1.
    pub line: u32,
    /// Problem of the line.
    #[source]
    pub problem: LineError,
}

/// Problem of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A logical line beyond [`LINE_BYTES`].
    #[error("longer than {LINE_BYTES} bytes")]
    TooLong,
    /// An escape of a character without its digits.
    #[error("\\u without four hexadecimal digits; expected such as \\u00e9 (a backslash is \\\\)")]
    Escape,
    /// An escape of half a character.
    #[error("\\u{0:04x} is half of a surrogate pair; expected both halves, such as \\ud83d\\ude00")]
    Surrogate(u16),
}

/// Why a property file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    /// The operating system's reason.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line breaks the grammar.
    #[error("{0}")]
    Line(#[from] BadLine),
}

/// Reads the file at `path`.
pub fn read_file(path: &Path) -> Result<Vec<PropertyEntry>, PropertiesError> {
    Ok(parse(&bounded::bytes_file(path, TEXT_BYTES)?)?)
}

/// Reads the properties in `bytes`, in the order of their first appearance. Of a key given twice the last value, with
/// its line, is returned.
pub fn parse(bytes: &[u8]) -> Result<Vec<PropertyEntry>, BadLine> {
    let mut lines = NaturalLines { rest: bytes, line: 0 };
    let mut entries: Vec<PropertyEntry> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    while let Some((line, text)) = lines.logical()? {
        let (key, value) = split(&text);
        let unescape = |part| unescape(part).map_err(|problem| BadLine { line, problem });
        let entry = PropertyEntry { key: unescape(key)?, value: unescape(value)?, line };
        match places.get(&entry.key) {
            Some(&place) => entries[place] = entry,
            None => {
                places.insert(entry.key.clone(), entries.len());
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&b| !is_blank(b)).unwrap_or(text.len());
    &text[start..]
}

/// Text left to read, and the number of natural lines that have been read.
struct NaturalLines<'a> {
    rest: &'a [u8],
    line: u32,
}

impl<'a> NaturalLines<'a> {
    /// The next natural line without its end, which is LF, CR or CR LF.
    fn natural(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(self.rest.len());
        let (line, tail) = self.rest.split_at(end);
        self.rest = match tail {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => tail,
        };
        self.line += 1;
        Some(line)
    }

    /// The next logical line, continuations joined, and the number of the natural line it starts on.
    fn logical(&mut self) -> Result<Option<(u32, Vec<u8>)>, BadLine> {
        let mut text = Vec::new();
        let mut first = 0;
        while let Some(natural) = self.natural() {
            let body = skip_blanks(natural);
            match body.first() {
                None if text.is_empty() => {}
                None => return Ok(Some((first, text))),
                // A comment can only start a logical line, not continue one; a line of nothing but a backslash has not begun.
                Some(b'#' | b'!') if text.is_empty() => {}
                Some(_) => {
                    if text.is_empty() {
                        first = self.line;
                    }
                    let backslashes = body.iter().rev().take_while(|&&b| b == b'\\').count();
                    let continued = backslashes % 2 == 1;
                    text.extend_from_slice(&body[..body.len() - usize::from(continued)]);
                    if text.len() > LINE_BYTES {
                        return Err(BadLine { line: first, problem: LineError::TooLong });
                    }
                    if !continued {
                        return Ok(Some((first, text)));
                    }
                }
            }
        }
        Ok((!text.is_empty()).then_some((first, text)))
    }
}

/// Splits a logical line at its separator: blanks, or `=` or `:` with blanks around it.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = text.iter().position(|&b| {
        let separates = !escaped && (is_blank(b) || matches!(b, b'=' | b':'));
        escaped = b == b'\\' && !escaped;
        separates
    });
    let (key, rest) = text.split_at(end.unwrap_or(text.len()));
    let rest = skip_blanks(rest);
    match rest {
        [b'=' | b':', value @ ..] => (key, skip_blanks(value)),
        value => (key, value),
    }
}

/// Undoes escapes and decodes ISO-8859-1.
fn unescape(text: &[u8]) -> Result<String, LineError> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            units.push(u16::from(byte));
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else { break };
        rest = after;
        units.push(match escape {
            b't' => 0x09,
            b'n' => 0x0a,
            b'f' => 0x0c,
            b'r' => 0x0d,
            b'u' => {
                let unit = rest.get(..4).and_then(hex);
                rest = rest.get(4..).unwrap_or_default();
                unit.ok_or(LineError::Escape)?
            }
            other => u16::from(other),
        });
    }
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map_err(|half| LineError::Surrogate(half.unpaired_surrogate()))
}

fn hex(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0, |sum: u16, &digit| Some(sum << 4 | char::from(digit).to_digit(16)? as u16))
}

#[cfg(test)]
#[path = "properties_tests.rs"]
mod tests;
