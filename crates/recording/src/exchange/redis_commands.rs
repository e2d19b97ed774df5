//! Commands of Redis in a stream of bytes that may be cut anywhere.

use super::Unreadable;
use super::inline_command::read_inline;
use super::number::parse_number;
use crate::entry::{Arguments, LongValueParts};

/// Longest line: what servers take of a command that is one.
const LINE_BYTES: usize = 64 << 10;

/// Most words of a command.
const WORDS: i64 = 16 << 20;

/// Longest word that is believed, bytes: servers take 512 MiB unless they are told otherwise.
const WORD_BYTES: i64 = 1 << 36;

/// Bytes of a command that are kept at most: what comes behind them is kept as are values above the limit.
const COMMAND_BYTES: usize = 64 << 20;

/// What comes next.
enum Expected {
    Command,
    WordHead,
    /// So many bytes of a word and its end of line.
    Word(u64),
}

/// Reads commands one after another.
pub(super) struct CommandReader {
    value_limit: usize,
    expected: Expected,
    /// Words of this command that are still to come.
    words_left: u64,
    /// Begin of a line whose end has not come.
    line: Vec<u8>,
    /// The word that is being read, if it is not kept.
    long: Option<Box<LongValueParts>>,
}

/// Takes a line from `bytes`, without its end; `None` if its end has not come. Its begin may be in `kept`.
pub(super) fn take_line<'a>(
    bytes: &'a [u8],
    at: &mut usize,
    kept: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>, Unreadable> {
    let rest = &bytes[*at..];
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        *at = bytes.len();
        kept.extend_from_slice(rest);
        return if kept.len() > LINE_BYTES { Err(Unreadable) } else { Ok(None) };
    };
    *at += end + 1;
    if kept.is_empty() {
        return Ok(Some(&rest[..end]));
    }
    kept.extend_from_slice(&rest[..end]);
    Ok(Some(kept))
}

/// Checks the bytes of `part` that are the end of line behind a text, of which `left` bytes with that end are still to come;
/// returns the number of the text's own bytes.
pub(super) fn text_bytes(part: &[u8], left: u64) -> Result<usize, Unreadable> {
    let own = (left.saturating_sub(2)).min(part.len() as u64) as usize;
    for (nth, byte) in part[own..].iter().enumerate() {
        let expected = if left - (own + nth) as u64 == 2 { b'\r' } else { b'\n' };
        if *byte != expected {
            return Err(Unreadable);
        }
    }
    Ok(own)
}

impl CommandReader {
    /// Values longer than `value_limit` are not kept.
    pub fn new(value_limit: usize) -> Self {
        CommandReader {
            value_limit,
            expected: Expected::Command,
            words_left: 0,
            line: Vec::new(),
            long: None,
        }
    }

    /// Begins anew, at the begin of a command.
    pub fn reset(&mut self) {
        *self = CommandReader::new(self.value_limit);
    }

    /// Returns whether the last byte was that of a command.
    pub fn is_between_commands(&self) -> bool {
        matches!(self.expected, Expected::Command) && self.line.is_empty()
    }

    /// Reads from `at` on into `words`; true if the command is complete, false if all bytes were taken.
    pub fn read_command(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        words: &mut Arguments,
    ) -> Result<bool, Unreadable> {
        while *at < bytes.len() {
            match self.expected {
                Expected::Command => {
                    let Some(line) = take_line(bytes, at, &mut self.line)? else { return Ok(false) };
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    words.clear();
                    let count = match line.strip_prefix(b"*") {
                        Some(count) => parse_number(count)?,
                        None => {
                            read_inline(line, words)?;
                            0
                        }
                    };
                    self.line.clear();
                    if count > WORDS {
                        return Err(Unreadable);
                    }
                    if count > 0 {
                        (self.words_left, self.expected) = (count as u64, Expected::WordHead);
                    } else if !words.is_empty() {
                        return Ok(true);
                    }
                }
                Expected::WordHead => {
                    let Some(line) = take_line(bytes, at, &mut self.line)? else { return Ok(false) };
                    let head = line.strip_suffix(b"\r").and_then(|line| line.strip_prefix(b"$"));
                    let length = parse_number(head.ok_or(Unreadable)?)?;
                    self.line.clear();
                    if !(0..=WORD_BYTES).contains(&length) {
                        return Err(Unreadable);
                    }
                    let length = length as u64;
                    let is_kept = length <= self.value_limit as u64
                        && words.kept_bytes() as u64 + length <= COMMAND_BYTES as u64;
                    self.long = (!is_kept).then(Default::default);
                    self.expected = Expected::Word(length + 2);
                }
                Expected::Word(left) => {
                    let end = at.saturating_add(left as usize).min(bytes.len());
                    let part = &bytes[*at..end];
                    let own = text_bytes(part, left)?;
                    match &mut self.long {
                        Some(long) => long.push_part(&part[..own]),
                        None => words.push_part(&part[..own]),
                    }
                    *at = end;
                    let left = left - part.len() as u64;
                    self.expected = Expected::Word(left);
                    if left > 0 {
                        return Ok(false);
                    }
                    match self.long.take() {
                        Some(long) => words.push_long(long.into_value()),
                        None => words.end_word(),
                    }
                    self.words_left -= 1;
                    self.expected = Expected::WordHead;
                    if self.words_left == 0 {
                        self.expected = Expected::Command;
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}
