//! Commands of memcached in a stream of bytes that may be cut anywhere.
//!
//! An entry's words are those of the command's line without the length of the value, which is the last word where there is one.

use super::Unreadable;
use super::redis_commands::{take_line, text_bytes};
use crate::entry::{Arguments, LongValueParts};
use dyno_db_memcached::protocol::traffic::CommandGroup;

/// Longest value that is believed, bytes: `item_size_max` is 1 GiB at most.
const VALUE_BYTES: u64 = 1 << 30;

/// Reads commands one after another.
pub(super) struct CommandReader {
    value_limit: usize,
    /// Begin of a line whose end has not come.
    line: Vec<u8>,
    /// Bytes of a value and its end of line that are still to come.
    left: u64,
    /// The value that is being read, if it is not kept.
    long: Option<Box<LongValueParts>>,
}

impl CommandReader {
    /// Values longer than `value_limit` are not kept.
    pub fn new(value_limit: usize) -> Self {
        CommandReader { value_limit, line: Vec::new(), left: 0, long: None }
    }

    /// Begins anew, at the begin of a command.
    pub fn reset(&mut self) {
        *self = CommandReader::new(self.value_limit);
    }

    /// Reads from `at` on into `words`; true if the command is complete, false if all bytes were taken.
    pub fn read_command(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        words: &mut Arguments,
    ) -> Result<bool, Unreadable> {
        while *at < bytes.len() {
            if self.left == 0 {
                let Some(line) = take_line(bytes, at, &mut self.line)? else { return Ok(false) };
                let length = read_line(line, words)?;
                self.line.clear();
                let Some(length) = length else { return Ok(true) };
                self.long = (length > self.value_limit as u64).then(Default::default);
                self.left = length + 2;
                continue;
            }
            let end = at.saturating_add(self.left as usize).min(bytes.len());
            let part = &bytes[*at..end];
            let own = text_bytes(part, self.left)?;
            match &mut self.long {
                Some(long) => long.push_part(&part[..own]),
                None => words.push_part(&part[..own]),
            }
            *at = end;
            self.left -= part.len() as u64;
            if self.left == 0 {
                match self.long.take() {
                    Some(long) => words.push_long(long.into_value()),
                    None => words.end_word(),
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Reads a line's words; the length of the value that follows it, where one does.
fn read_line(line: &[u8], words: &mut Arguments) -> Result<Option<u64>, Unreadable> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    words.clear();
    let mut all = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let name = all.next().ok_or(Unreadable)?;
    // What begins as no name does is another protocol, or not the begin of a command.
    if name.len() > 20 || !name.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') {
        return Err(Unreadable);
    }
    let length_place = CommandGroup::of_name(name).and_then(CommandGroup::length_place);
    words.push_word(name);
    let mut length = None;
    for (number, word) in (1..).zip(all) {
        if length_place == Some(number) {
            let text = std::str::from_utf8(word).map_err(|_| Unreadable)?;
            length = Some(text.parse().map_err(|_| Unreadable)?);
        } else {
            words.push_word(word);
        }
    }
    match (length_place, length) {
        (Some(_), None) => Err(Unreadable),
        (_, Some(length)) if length > VALUE_BYTES => Err(Unreadable),
        (_, length) => Ok(length),
    }
}

/// Returns whether bytes are one whole command.
pub(super) fn is_one_command(bytes: &[u8]) -> bool {
    let (mut reader, mut words, mut at) = (CommandReader::new(0), Arguments::default(), 0);
    reader.read_command(bytes, &mut at, &mut words) == Ok(true) && at == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "get a b\r\nset k 0 60 5 noreply\r\nhe\r\no\r\ncas k 1 0 3 77\r\nabc\r\nms m 4 T0 q\r\nwxyz\r\nmn\n\
        add empty 0 0 0\r\n\r\n";

    fn read_all(size: usize, limit: usize) -> Vec<String> {
        let (mut reader, mut words, mut all) = (CommandReader::new(limit), Arguments::default(), Vec::new());
        for part in STREAM.as_bytes().chunks(size) {
            let mut at = 0;
            while reader.read_command(part, &mut at, &mut words).unwrap() {
                let shown = |number: usize| match words.long_value(number) {
                    Some(long) => format!("<{}>", long.length),
                    None => String::from_utf8_lossy(words.word(number)).into_owned(),
                };
                all.push((0..words.count()).map(shown).collect::<Vec<_>>().join("|"));
            }
        }
        assert!(reader.left == 0 && reader.line.is_empty());
        all
    }

    #[test]
    fn commands_are_read_alike_however_they_are_cut() {
        let expected = [
            "get|a|b",
            "set|k|0|60|noreply|he\r\no",
            "cas|k|1|0|77|abc",
            "ms|m|T0|q|wxyz",
            "mn",
            "add|empty|0|0|",
        ];
        for size in 1..=STREAM.len() {
            assert_eq!(read_all(size, 100), expected, "parts of {size} bytes");
        }
        let long = read_all(7, 4);
        assert_eq!((long[1].as_str(), long[3].as_str()), ("set|k|0|60|noreply|<5>", "ms|m|T0|q|wxyz"));
    }

    #[test]
    fn what_is_no_command_is_told() {
        let mut words = Arguments::default();
        for wrong in [
            "\r\n",
            "GET k\r\n",
            "set k 0 0\r\n",
            "set k 0 0 x\r\n",
            "set k 0 0 -1\r\n",
            "set k 0 0 1\r\nabc",
            "\u{80}\0\0\n",
            "ms k\r\n",
        ] {
            let read = CommandReader::new(9).read_command(wrong.as_bytes(), &mut 0, &mut words);
            assert_eq!(read, Err(Unreadable), "{wrong:?}");
        }
        assert!(is_one_command(b"set k 0 0 1\r\na\r\n") && is_one_command(b"get k\r\n"));
        assert!(!is_one_command(b"set k 0 0 1\r\na\r\nmn\r\n") && !is_one_command(b"get k"));
    }
}
