//! Replies of the meta protocol and of the classic text protocol: no line begins a reply in both, so one reader serves both.
//!
//! Replies come strictly in the order of the commands. A miss and an error do not echo the opaque value of the meta protocol,
//! so that it could not tell replies apart: it is not used.

use dyno_types::limits::REPLY_BYTES;

/// The bytes are not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMemcached;

/// Longest line of a reply, bytes: keys have 250, and errors a sentence.
const LINE_BYTES: usize = 4_096;

/// One reply, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Done: `HD`, `STORED`, `DELETED`, `OK`.
    Done,
    /// The answer to `mn`: `MN`.
    Fence,
    /// A value: `VA` with its bytes; `VALUE` with its bytes, then `END`.
    Value {
        /// Bytes.
        data: &'a [u8],
        /// Version, if it was asked for.
        cas: Option<u64>,
    },
    /// Nothing was found by a read: `EN`, `END`.
    Miss,
    /// Nothing was found by another command: `NF`, `NOT_FOUND`.
    NotFound,
    /// The condition of a write does not hold: `NS`, `NOT_STORED`.
    NotStored,
    /// The value has another version: `EX`, `EXISTS`.
    Changed,
    /// `VERSION` and the version.
    Version(&'a [u8]),
    /// `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR` with its words: the whole line.
    Error(&'a [u8]),
}

/// The line that begins at `at`, without its end, and the position after it.
#[inline]
pub(super) fn line(input: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, NotMemcached> {
    let rest = input.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(LINE_BYTES)];
    // Lines are short; a plain search beats a call.
    match rest.iter().position(|&b| b == b'\n') {
        Some(end) if end > 0 && rest[end - 1] == b'\r' => Ok(Some((&rest[..end - 1], at + end + 1))),
        None if rest.len() < LINE_BYTES => Ok(None),
        _ => Err(NotMemcached),
    }
}

/// A number without a sign.
#[inline]
fn number(text: &[u8]) -> Result<u64, NotMemcached> {
    if text.is_empty() {
        return Err(NotMemcached);
    }
    text.iter().try_fold(0u64, |n, &digit| {
        let digit = digit.checked_sub(b'0').filter(|d| *d < 10).ok_or(NotMemcached)?;
        n.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit))).ok_or(NotMemcached)
    })
}

/// The `length` bytes of a value at `at`, and the position after them and the end of their line.
#[inline]
fn block<'a>(input: &'a [u8], at: usize, length: &[u8]) -> Result<Option<(&'a [u8], usize)>, NotMemcached> {
    let length = number(length)?;
    if length > REPLY_BYTES as u64 {
        return Err(NotMemcached);
    }
    let end = at + length as usize;
    match input.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((&input[at..end], end + 2))),
        Some(_) => Err(NotMemcached),
        None => Ok(None),
    }
}

/// Reads the reply at the start of `input`: the reply and how many bytes it has; `None` if it is not complete.
#[inline]
pub fn read_reply(input: &[u8]) -> Result<Option<(Reply<'_>, usize)>, NotMemcached> {
    let Some((line, next)) = line(input, 0)? else { return Ok(None) };
    // The meta protocol's codes have two letters; flags may follow.
    let found = match line {
        [a, b] | [a, b, b' ', ..] => match [*a, *b] {
            [b'H', b'D'] => Reply::Done,
            [b'V', b'A'] => return value(input, line.get(3..).unwrap_or_default(), next),
            [b'E', b'N'] => Reply::Miss,
            [b'N', b'S'] => Reply::NotStored,
            [b'N', b'F'] => Reply::NotFound,
            [b'E', b'X'] => Reply::Changed,
            [b'M', b'N'] => Reply::Fence,
            [b'O', b'K'] if line.len() == 2 => Reply::Done,
            _ => return Err(NotMemcached),
        },
        b"STORED" | b"DELETED" => Reply::Done,
        b"END" => Reply::Miss,
        b"NOT_STORED" => Reply::NotStored,
        b"NOT_FOUND" => Reply::NotFound,
        b"EXISTS" => Reply::Changed,
        _ => return worded(input, line, next),
    };
    debug_assert!(next <= input.len(), "a reply ends where the bytes do, or before");
    Ok(Some((found, next)))
}

/// `VA`: its length and flags are in `head`.
#[inline]
fn value<'a>(input: &'a [u8], head: &[u8], next: usize) -> Result<Option<(Reply<'a>, usize)>, NotMemcached> {
    let mut words = head.split(|&b| b == b' ');
    let Some((data, end)) = block(input, next, words.next().unwrap_or_default())? else { return Ok(None) };
    let cas = words.find_map(|word| word.strip_prefix(b"c")).map(number).transpose()?;
    Ok(Some((Reply::Value { data, cas }, end)))
}

/// A reply that begins with a longer word.
fn worded<'a>(
    input: &'a [u8],
    line: &'a [u8],
    next: usize,
) -> Result<Option<(Reply<'a>, usize)>, NotMemcached> {
    if let Some(head) = line.strip_prefix(b"VALUE ") {
        // `VALUE key flags bytes [version]`, for the one key that was asked for.
        let mut words = head.split(|&b| b == b' ').skip(2);
        let length = words.next().unwrap_or_default();
        let Some((data, end)) = block(input, next, length)? else { return Ok(None) };
        let cas = words.next().map(number).transpose()?;
        return match self::line(input, end)? {
            None => Ok(None),
            Some((b"END", after)) => Ok(Some((Reply::Value { data, cas }, after))),
            Some(_) => Err(NotMemcached),
        };
    }
    if let Some(version) = line.strip_prefix(b"VERSION ") {
        return Ok(Some((Reply::Version(version), next)));
    }
    let first = line.split(|&b| b == b' ').next().unwrap_or_default();
    match first {
        b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" => Ok(Some((Reply::Error(line), next))),
        _ => Err(NotMemcached),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUE: Reply<'static> = Reply::Value { data: b"hi\r\n!", cas: None };

    /// Every kind, as servers send it, and what it means.
    const ALL: [(&[u8], Reply<'static>); 24] = [
        (b"HD\r\n", Reply::Done),
        (b"HD O7 t-1\r\n", Reply::Done),
        (b"VA 5\r\nhi\r\n!\r\n", VALUE),
        (b"VA 5 t100 O7\r\nhi\r\n!\r\n", VALUE),
        (b"VA 0\r\n\r\n", Reply::Value { data: b"", cas: None }),
        (
            b"VA 5 c18446744073709551615 s5\r\nhi\r\n!\r\n",
            Reply::Value { data: b"hi\r\n!", cas: Some(u64::MAX) },
        ),
        (b"EN\r\n", Reply::Miss),
        (b"NS\r\n", Reply::NotStored),
        (b"NF O1\r\n", Reply::NotFound),
        (b"EX\r\n", Reply::Changed),
        (b"MN\r\n", Reply::Fence),
        (b"OK\r\n", Reply::Done),
        (b"STORED\r\n", Reply::Done),
        (b"DELETED\r\n", Reply::Done),
        (b"NOT_STORED\r\n", Reply::NotStored),
        (b"NOT_FOUND\r\n", Reply::NotFound),
        (b"EXISTS\r\n", Reply::Changed),
        (b"END\r\n", Reply::Miss),
        (b"VALUE key 0 5\r\nhi\r\n!\r\nEND\r\n", VALUE),
        (
            b"VALUE key 4294967295 5 12\r\nhi\r\n!\r\nEND\r\n",
            Reply::Value { data: b"hi\r\n!", cas: Some(12) },
        ),
        (b"VERSION 1.6.18\r\n", Reply::Version(b"1.6.18")),
        (b"ERROR\r\n", Reply::Error(b"ERROR")),
        (b"CLIENT_ERROR bad data chunk\r\n", Reply::Error(b"CLIENT_ERROR bad data chunk")),
        (
            b"SERVER_ERROR object too large for cache\r\n",
            Reply::Error(b"SERVER_ERROR object too large for cache"),
        ),
    ];

    #[test]
    fn every_kind_is_read_whole_or_waited_for() {
        for (bytes, expected) in ALL {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(read_reply(bytes), Ok(Some((expected, bytes.len()))), "{shown:?}");
            for cut in 0..bytes.len() {
                assert_eq!(read_reply(&bytes[..cut]), Ok(None), "{shown:?} cut at {cut}");
            }
            for (next, _) in ALL {
                let two = [bytes, next].concat();
                assert_eq!(read_reply(&two), Ok(Some((expected, bytes.len()))), "{shown:?} and another");
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let wrong: [&[u8]; 18] = [
            b"\r\n",
            b"\n",
            b"HD\n",
            b"HDX\r\n",
            b"XX\r\n",
            b"VA\r\n",
            b"VA x\r\n",
            b"VA -1\r\n",
            b"VA 2\r\nabc\r\n",
            b"VA 1 c\r\na\r\n",
            b"VA 99999999999999999999999\r\n",
            b"VA 1099511627776\r\n",
            b"VALUE k 0\r\n",
            b"VALUE k 0 2\r\nab\r\nVALUE l 0 2\r\nab\r\nEND\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            b"-ERR unknown command\r\n",
            b"STAT pid 1\r\n",
            b"ERRORS\r\n",
        ];
        for bytes in wrong {
            assert_eq!(read_reply(bytes), Err(NotMemcached), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(read_reply(&[b'x'; LINE_BYTES - 1]), Ok(None));
        assert_eq!(read_reply(&[b'x'; LINE_BYTES]), Err(NotMemcached), "a line has an end");
    }

    proptest! {
        #[test]
        fn no_input_panics_or_is_used_beyond_its_end(
            mut bytes in prop::sample::select(ALL.to_vec()).prop_map(|(bytes, _)| bytes.to_vec()),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(Some((found, used))) = read_reply(&bytes) {
                prop_assert!(used > 0 && used <= bytes.len());
                prop_assert_eq!(read_reply(&bytes[..used]), Ok(Some((found, used))));
                prop_assert_eq!(read_reply(&bytes[..used - 1]), Ok(None));
            }
        }
    }
}
