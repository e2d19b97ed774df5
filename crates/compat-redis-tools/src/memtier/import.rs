//! Files of `--data-import`: a line of column names, then records, with keys and values in quotes.

use super::args::{Refusal, check};
use dyno_workload::commands::ImportedRecord;

/// Begin of the first line.
const HEAD: &[u8] = b"dumpflags, time, exptime";
/// Numbers before the key: flags, time, expiry, length of the value, and so on; the last is the length of the key.
const NUMBERS: usize = 8;
/// Longest key that memcached takes, bytes.
const MEMCACHED_KEY: usize = 250;
/// Bytes that a value's length counts beyond the value: a line's end.
const LINE_END: usize = 2;

/// Reads a file's records.
///
/// # Errors
/// Names the line that is none, or whose key memcached would not take where they are for one.
pub fn records(path: &str, bytes: &[u8], for_memcached: bool) -> Result<Vec<ImportedRecord>, Refusal> {
    if !bytes.starts_with(HEAD) {
        return Err(check(format!("{path}: invalid file, unexpected CSV header.")));
    }
    let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let mut file = File { path, bytes, at: begin, number: 0 };
    let mut all = Vec::new();
    while file.has_more() {
        file.number += 1;
        let record = file.record()?;
        let is_plain = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        // Several keys of a get stand side by side: a blank in one would make it two, a line's end a command.
        if for_memcached && !(record.key.len() <= MEMCACHED_KEY && record.key.iter().all(is_plain)) {
            return file.wrong("a key of at most 250 bytes without blanks, as memcached takes it");
        }
        all.push(record);
    }
    if all.is_empty() {
        return Err(check(format!("{path}: expected one record at least")));
    }
    Ok(all)
}

struct File<'a> {
    path: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The record that is being read.
    number: usize,
}

impl File<'_> {
    fn wrong<T>(&self, expected: &str) -> Result<T, Refusal> {
        Err(check(format!("{}: record {}: expected {expected}", self.path, self.number)))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn has_more(&mut self) -> bool {
        self.blanks();
        self.at < self.bytes.len()
    }

    fn comma(&mut self) -> Result<(), Refusal> {
        if self.peek() != Some(b',') {
            return self.wrong("a comma between two columns");
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<u32, Refusal> {
        self.blanks();
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&rest[..length]).unwrap_or_default();
        self.at += length;
        text.parse().or_else(|_| self.wrong("eight numbers"))
    }

    /// A text of `length` bytes, in quotes or up to the next comma or the line's end.
    fn text(&mut self, length: usize) -> Result<Vec<u8>, Refusal> {
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        let mut out = Vec::with_capacity(length.min(self.bytes.len()));
        if self.peek() == Some(b'"') {
            self.at += 1;
            loop {
                let Some(byte) = self.peek() else { return self.wrong("a closing quote") };
                self.at += 1;
                match (byte, self.peek()) {
                    (b'"', Some(b'"')) => self.at += 1,
                    (b'"', _) => break,
                    _ => {}
                }
                out.push(byte);
            }
        } else {
            while let Some(byte) = self.peek().filter(|byte| !b",\r\n".contains(byte)) {
                out.push(byte);
                self.at += 1;
            }
        }
        match out.len() == length {
            true => Ok(out),
            false => self.wrong(&format!("a text of {length} bytes as the line says, not of {}", out.len())),
        }
    }

    fn record(&mut self) -> Result<ImportedRecord, Refusal> {
        let mut numbers = [0; NUMBERS];
        for number in &mut numbers {
            *number = self.number()?;
            self.comma()?;
        }
        let [_, _, expiry_s, value_length, _, _, _, key_length] = numbers;
        let Some(value_length) = (value_length as usize).checked_sub(LINE_END) else {
            return self.wrong("nbytes of 2 or more: it counts a line's end");
        };
        let key = self.text(key_length as usize)?;
        self.comma()?;
        let value = self.text(value_length)?;
        if key.is_empty() {
            return self.wrong("a key");
        }
        match self.peek() {
            None | Some(b'\r' | b'\n') => Ok(ImportedRecord { key, value, expiry_s }),
            Some(_) => self.wrong("the line's end behind the value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written with the columns that memtier_benchmark 2.3.0 reads; it has read this one, and sent what is expected here.
    const FILE: &[u8] = include_bytes!("../../tests/data/memtier/import.csv");

    #[test]
    fn records_as_memtier_reads_them() {
        let record = |key: &str, value: &str, expiry_s| ImportedRecord {
            key: key.into(),
            value: value.into(),
            expiry_s,
        };
        let expected = [
            record("apple", "red", 0),
            record("pear", "green", 7),
            record("plum", "say \"x\", y", 0),
            record("fig", "a\r\nb", 9),
        ];
        assert_eq!(records("f", FILE, false).unwrap(), expected);
        let plain = b"dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
            0, 0, 60, 7, 0, 0, 1, 2, ab, value";
        assert_eq!(records("f", plain, false).unwrap(), [record("ab", "value", 60)]);
    }

    #[test]
    fn a_key_that_memcached_would_read_as_two_is_refused() {
        let head = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n";
        for (key, is_taken) in
            [("ab", true), ("a b", false), ("a\r\nflush_all", false), (&"k".repeat(251), false)]
        {
            let line = format!("{head}0, 0, 0, 5, 0, 0, 1, {}, \"{key}\", \"red\"\n", key.len());
            assert_eq!(records("f", line.as_bytes(), true).is_ok(), is_taken, "{key:?}");
            assert!(records("f", line.as_bytes(), false).is_ok(), "{key:?}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_number() {
        let refusal = |line: &str| {
            let head = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n";
            records("f", format!("{head}{line}").as_bytes(), false).unwrap_err().to_string()
        };
        assert_eq!(
            records("f", b"key,data\n", false).unwrap_err().to_string(),
            "f: invalid file, unexpected CSV header."
        );
        for (line, expected) in [
            ("", "f: expected one record at least"),
            ("0, 0, 0, 5\n", "f: record 1: expected a comma between two columns"),
            ("0, 0, x", "f: record 1: expected eight numbers"),
            ("0, 0, 0, 5, 0, 0, 1, 2, \"ab\", \"red", "f: record 1: expected a closing quote"),
            (
                "0, 0, 0, 5, 0, 0, 1, 2, \"ab\", \"red\"\n0, 0, 0, 5, 0, 0, 1, 3, \"ab\", \"red\"\n",
                "f: record 2: expected a text of 3 bytes as the line says, not of 2",
            ),
            (
                "0, 0, 0, 1, 0, 0, 1, 2, ab, c",
                "f: record 1: expected nbytes of 2 or more: it counts a line's end",
            ),
            ("0, 0, 0, 3, 0, 0, 1, 0, \"\", c", "f: record 1: expected a key"),
            (
                "0, 0, 0, 3, 0, 0, 1, 1, \"a\", \"c\" d",
                "f: record 1: expected the line's end behind the value",
            ),
        ] {
            assert_eq!(refusal(line), expected, "{line}");
        }
    }
}
