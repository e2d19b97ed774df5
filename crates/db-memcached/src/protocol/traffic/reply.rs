//! Replies in a stream of bytes that may be cut anywhere: they are told apart and skipped, not kept.

use crate::protocol::reply::NotMemcached;

/// Longest line of a reply, bytes: keys have 250, flags and errors a sentence.
const LINE_BYTES: usize = 16 << 10;

/// Longest value that is believed, bytes: `item_size_max` is 1 GiB at most.
const VALUE_BYTES: u64 = 1 << 30;

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyShape {
    /// So many values of the classic protocol, with their `END`.
    Values(u64),
    /// `END` alone.
    End,
    /// `VA` and its bytes.
    Value,
    /// `EN`.
    Miss,
    /// `HD`.
    Done,
    /// `NS`, `EX`, `NF`.
    Refused,
    /// `MN`.
    Fence,
    /// `ME` and what is known of an item.
    Debug,
    /// `STORED`.
    Stored,
    /// `NOT_STORED`, `EXISTS`.
    NotStored,
    /// `NOT_FOUND`.
    NotFound,
    /// `DELETED`.
    Deleted,
    /// `TOUCHED`.
    Touched,
    /// A number.
    Number,
    /// `OK`, `RESET`, `BUSY` with its reason.
    Ok,
    /// `VERSION`.
    Version,
    /// So many lines of statistics or keys, with their `END`.
    Lines(u64),
    /// `ERROR`, `CLIENT_ERROR`, `SERVER_ERROR`.
    Error,
}

/// A whole reply, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedReply {
    /// What it says.
    pub shape: ReplyShape,
    /// Bytes of its values.
    pub bytes: u64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default)]
enum Expected {
    #[default]
    Head,
    /// The next value of the classic protocol, or the end.
    NextValue,
    /// The next line of statistics, or the end.
    NextLine,
    /// So many bytes of a value and its end of line.
    Block { left: u64, meta: bool },
}

/// Reads replies one after another.
#[derive(Debug, Default)]
pub struct ReplyReader {
    /// Begin of a line whose end has not come.
    line: Vec<u8>,
    /// The last line that began a reply.
    head: Vec<u8>,
    expected: Expected,
    values: u64,
    bytes: u64,
    lines: u64,
}

/// A decimal number without a sign.
fn parse_number(text: &[u8]) -> Result<u64, NotMemcached> {
    let number = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    number.and_then(|text| text.parse().ok()).ok_or(NotMemcached)
}

impl ReplyReader {
    /// Begins anew, at the begin of a reply.
    pub fn reset(&mut self) {
        let (mut line, mut head) = (std::mem::take(&mut self.line), std::mem::take(&mut self.head));
        line.clear();
        head.clear();
        *self = ReplyReader { line, head, ..ReplyReader::default() };
    }

    /// The flags of the meta reply that was read last, in the order in which they came.
    pub fn meta_flags(&self) -> impl Iterator<Item = &[u8]> {
        // `VA` has its length before them.
        let skipped = if self.head.starts_with(b"VA ") { 2 } else { 1 };
        self.head.split(|byte| *byte == b' ').skip(skipped).filter(|flag| !flag.is_empty())
    }

    /// The line that has begun the reply that was read last, without its end; of an error its words.
    pub fn first_line(&self) -> &[u8] {
        &self.head
    }

    /// The first word of that line: the class of an error.
    pub fn first_word(&self) -> &[u8] {
        self.head.split(|byte| *byte == b' ').next().unwrap_or_default()
    }

    /// Reads from `at` on; the reply that was completed, or `None` if all bytes were taken.
    ///
    /// # Errors
    /// The bytes are not of the protocol.
    pub fn read_reply(&mut self, bytes: &[u8], at: &mut usize) -> Result<Option<SkippedReply>, NotMemcached> {
        while *at < bytes.len() {
            let found = match self.expected {
                Expected::Block { left, meta } => {
                    let end = at.saturating_add(left as usize).min(bytes.len());
                    for (nth, byte) in
                        bytes[*at..end].iter().enumerate().skip(left.saturating_sub(2) as usize)
                    {
                        let wanted = if left - nth as u64 == 2 { b'\r' } else { b'\n' };
                        if *byte != wanted {
                            return Err(NotMemcached);
                        }
                    }
                    let left = left - (end - *at) as u64;
                    *at = end;
                    self.expected = Expected::Block { left, meta };
                    if left > 0 {
                        return Ok(None);
                    }
                    self.expected = if meta { Expected::Head } else { Expected::NextValue };
                    meta.then_some(ReplyShape::Value)
                }
                _ => {
                    let rest = &bytes[*at..];
                    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                        self.line.extend_from_slice(rest);
                        *at = bytes.len();
                        return if self.line.len() > LINE_BYTES { Err(NotMemcached) } else { Ok(None) };
                    };
                    *at += end + 1;
                    let mut line = std::mem::take(&mut self.line);
                    line.extend_from_slice(&rest[..end]);
                    let found =
                        line.strip_suffix(b"\r").ok_or(NotMemcached).and_then(|line| self.take_line(line));
                    line.clear();
                    self.line = line;
                    found?
                }
            };
            if let Some(shape) = found {
                let bytes = std::mem::take(&mut self.bytes);
                (self.expected, self.values, self.lines) = (Expected::Head, 0, 0);
                return Ok(Some(SkippedReply { shape, bytes }));
            }
        }
        Ok(None)
    }

    /// Takes a line; what the reply says that ends with it.
    fn take_line(&mut self, line: &[u8]) -> Result<Option<ReplyShape>, NotMemcached> {
        let first = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let is_error = matches!(first, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR");
        match self.expected {
            Expected::NextLine if line == b"END" => return Ok(Some(ReplyShape::Lines(self.lines))),
            Expected::NextLine if !is_error => {
                self.lines += 1;
                return Ok(None);
            }
            Expected::NextValue if line == b"END" => return Ok(Some(ReplyShape::Values(self.values))),
            Expected::NextValue if first != b"VALUE" && !is_error => return Err(NotMemcached),
            _ => {}
        }
        if first != b"VALUE" || self.values == 0 {
            self.head.clear();
            self.head.extend_from_slice(line);
        }
        Ok(Some(match first {
            _ if is_error => ReplyShape::Error,
            b"VALUE" => {
                // `VALUE key flags bytes [version]`.
                self.begin_block(line.split(|byte| *byte == b' ').nth(3), false)?;
                self.values += 1;
                return Ok(None);
            }
            b"VA" => {
                self.begin_block(line.split(|byte| *byte == b' ').nth(1), true)?;
                return Ok(None);
            }
            b"STAT" | b"ITEM" => {
                (self.expected, self.lines) = (Expected::NextLine, 1);
                return Ok(None);
            }
            _ if first.starts_with(b"key=") => {
                (self.expected, self.lines) = (Expected::NextLine, 1);
                return Ok(None);
            }
            b"END" => ReplyShape::End,
            b"EN" => ReplyShape::Miss,
            b"HD" => ReplyShape::Done,
            b"NS" | b"EX" | b"NF" => ReplyShape::Refused,
            b"MN" => ReplyShape::Fence,
            b"ME" => ReplyShape::Debug,
            b"STORED" => ReplyShape::Stored,
            b"NOT_STORED" | b"EXISTS" => ReplyShape::NotStored,
            b"NOT_FOUND" => ReplyShape::NotFound,
            b"DELETED" => ReplyShape::Deleted,
            b"TOUCHED" => ReplyShape::Touched,
            b"OK" | b"RESET" | b"BUSY" => ReplyShape::Ok,
            b"VERSION" => ReplyShape::Version,
            // `decr` pads what it leaves behind with spaces.
            number if !number.is_empty() && number.iter().all(u8::is_ascii_digit) => ReplyShape::Number,
            _ => return Err(NotMemcached),
        }))
    }

    fn begin_block(&mut self, length: Option<&[u8]>, meta: bool) -> Result<(), NotMemcached> {
        let length = parse_number(length.unwrap_or_default())?;
        if length > VALUE_BYTES {
            return Err(NotMemcached);
        }
        self.bytes += length;
        self.expected = Expected::Block { left: length + 2, meta };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &[u8] = b"VALUE k 0 5\r\nEND\r\n\r\nVALUE l 7 0 12\r\n\r\nEND\r\nHD O7 kfoo\r\n\
        VA 5 t100 O7\r\nhi\r\n!\r\nEND\r\nSTAT pid 1\r\nSTAT x 2\r\nEND\r\n17\r\nSTORED\r\n\
        SERVER_ERROR out of memory\r\nVALUE k 0 1\r\na\r\nSERVER_ERROR out\r\nkey=a exp=1\r\nEND\r\nMN\r\n";

    #[test]
    fn a_stream_is_read_alike_however_it_is_cut() {
        let expected = [
            (ReplyShape::Values(2), 5),
            (ReplyShape::Done, 0),
            (ReplyShape::Value, 5),
            (ReplyShape::End, 0),
            (ReplyShape::Lines(2), 0),
            (ReplyShape::Number, 0),
            (ReplyShape::Stored, 0),
            (ReplyShape::Error, 0),
            (ReplyShape::Error, 1),
            (ReplyShape::Lines(1), 0),
            (ReplyShape::Fence, 0),
        ];
        for size in 1..STREAM.len() + 1 {
            let mut reader = ReplyReader::default();
            let mut found = Vec::new();
            for part in STREAM.chunks(size) {
                let mut at = 0;
                while let Some(reply) = reader.read_reply(part, &mut at).unwrap() {
                    found.push((reply.shape, reply.bytes));
                }
            }
            assert_eq!(found, expected, "parts of {size} bytes");
            assert!(matches!(reader.expected, Expected::Head) && reader.line.is_empty());
        }
    }

    #[test]
    fn flags_and_classes_are_those_of_the_head() {
        let read = |text: &str| {
            let (mut reader, mut at) = (ReplyReader::default(), 0);
            reader.read_reply(text.as_bytes(), &mut at).unwrap().unwrap();
            let flags: Vec<String> =
                reader.meta_flags().map(|flag| String::from_utf8_lossy(flag).into_owned()).collect();
            (String::from_utf8_lossy(reader.first_word()).into_owned(), flags)
        };
        assert_eq!(read("VA 2 kfoo O12\r\nab\r\n"), ("VA".into(), vec!["kfoo".into(), "O12".into()]));
        assert_eq!(read("HD\r\n"), ("HD".into(), vec![]));
        assert_eq!(read("CLIENT_ERROR bad data chunk\r\n").0, "CLIENT_ERROR");
        assert_eq!(read("VALUE k 0 2\r\nab\r\nSERVER_ERROR out\r\n").0, "SERVER_ERROR");
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for wrong in [
            "\r\n",
            "HD\n",
            "VA x\r\n",
            "VA 2\r\nabc\r\n",
            "VALUE k 0\r\n",
            "HTTP/1.1 400\r\n",
            "-1\r\n",
            "VALUE k 0 1\r\na\r\nSTORED\r\n",
            "VA 99999999999\r\n",
            "XX\r\n",
        ] {
            let (mut reader, mut at) = (ReplyReader::default(), 0);
            assert_eq!(reader.read_reply(wrong.as_bytes(), &mut at), Err(NotMemcached), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in Just(STREAM.to_vec()), changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>()), 0..6), size in 1usize..40) {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut reader = ReplyReader::default();
            'parts: for part in bytes.chunks(size) {
                let mut at = 0;
                loop {
                    match reader.read_reply(part, &mut at) {
                        Ok(Some(_)) => prop_assert!(at <= part.len()),
                        Ok(None) => break,
                        Err(NotMemcached) => break 'parts,
                    }
                }
            }
        }
    }
}
