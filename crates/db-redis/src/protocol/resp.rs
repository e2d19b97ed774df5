//! RESP2 and RESP3: a token reader over a buffer that may end anywhere, and writers that append.

use dyno_types::limits::{REPLY_BYTES, REPLY_DEPTH};

/// The bytes are not RESP, or more than is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what came is no reply of Redis, or longer than any that is expected")]
pub struct NotResp;

/// One token: a scalar or the head of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// `+text`
    Simple(&'a [u8]),
    /// `-CODE text`, or RESP3's `!`
    Error(&'a [u8]),
    /// `:n`
    Int(i64),
    /// `$n` with its bytes; also RESP3's doubles, big numbers, booleans and verbatim strings as text
    Bulk(&'a [u8]),
    /// `$-1`, `*-1`, `_`
    Null,
    /// `*n`, `~n`: that many replies follow
    Array(usize),
    /// `%n`: twice that many replies follow
    Map(usize),
    /// `>n`: an unasked message of that many parts
    Push(usize),
    /// `|n`: attributes, twice that many parts, then the reply itself
    Attribute(usize),
}

/// A token and the position after it; `None` if the buffer ends before the token does.
pub type FoundToken<'a> = Result<Option<(Token<'a>, usize)>, NotResp>;

#[inline]
fn line(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = input.get(at..)?;
    // Lines are short; a plain search beats a call.
    let end = rest.iter().position(|&b| b == b'\r')?;
    (end + 1 < rest.len()).then(|| (&rest[..end], at + end + 2))
}

#[inline]
fn integer(text: &[u8]) -> Result<i64, NotResp> {
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 19 {
        return Err(NotResp);
    }
    // 19 digits always fit 64 bits without a sign.
    let mut n: u64 = 0;
    for &d in digits {
        if !d.is_ascii_digit() {
            return Err(NotResp);
        }
        n = n * 10 + u64::from(d - b'0');
    }
    let n = i64::try_from(n).map_err(|_| NotResp)?;
    Ok(if negative { -n } else { n })
}

#[inline]
fn length(text: &[u8], limit: usize) -> Result<Option<usize>, NotResp> {
    match integer(text)? {
        -1 => Ok(None),
        n if n >= 0 && n as usize <= limit => Ok(Some(n as usize)),
        _ => Err(NotResp),
    }
}

/// Reads the token at `at`.
#[inline]
pub fn read_token(input: &[u8], at: usize) -> FoundToken<'_> {
    let Some(&kind) = input.get(at) else { return Ok(None) };
    if !matches!(
        kind,
        b'+' | b'-'
            | b':'
            | b'$'
            | b'*'
            | b'_'
            | b'%'
            | b'>'
            | b'~'
            | b','
            | b'#'
            | b'!'
            | b'='
            | b'('
            | b'|'
    ) {
        return Err(NotResp);
    }
    let Some((text, next)) = line(input, at + 1) else {
        // No RESP line is longer than this without its end: inline text of another protocol.
        return if input.len() - at > 64 << 10 { Err(NotResp) } else { Ok(None) };
    };
    let found = match kind {
        b'$' | b'=' | b'!' => return blob(input, kind, text, next),
        b'+' => Token::Simple(text),
        b'-' => Token::Error(text),
        b':' => Token::Int(integer(text)?),
        b'_' => Token::Null,
        b',' | b'#' | b'(' => Token::Bulk(text),
        _ => {
            let Some(n) = length(text, 1 << 30)? else { return Ok(Some((Token::Null, next))) };
            match kind {
                b'*' | b'~' => Token::Array(n),
                b'%' => Token::Map(n),
                b'>' => Token::Push(n),
                _ => Token::Attribute(n),
            }
        }
    };
    Ok(Some((found, next)))
}

#[inline]
fn blob<'a>(input: &'a [u8], kind: u8, text: &[u8], next: usize) -> FoundToken<'a> {
    let Some(n) = length(text, REPLY_BYTES)? else { return Ok(Some((Token::Null, next))) };
    let end = next + n;
    if input.len() < end + 2 {
        return Ok(None);
    }
    if &input[end..end + 2] != b"\r\n" {
        return Err(NotResp);
    }
    let bytes = &input[next..end];
    let found = match kind {
        b'$' => Token::Bulk(bytes),
        b'!' => Token::Error(bytes),
        _ => Token::Bulk(bytes.get(4..).ok_or(NotResp)?), // "txt:" before a verbatim string
    };
    Ok(Some((found, end + 2)))
}

/// The position after the whole reply that begins at `at`; `None` if it is not complete.
pub fn skip_reply(input: &[u8], at: usize) -> Result<Option<usize>, NotResp> {
    skip_within(input, at, REPLY_BYTES)
}

/// The same of a reply of at most so many bytes.
fn skip_within(input: &[u8], at: usize, most: usize) -> Result<Option<usize>, NotResp> {
    let (begun, mut at, mut left) = (at, at, 1usize);
    let mut aggregates = 0usize;
    while left > 0 {
        let Some((found, next)) = read_token(input, at)? else { return Ok(None) };
        debug_assert!(next > at, "a token has bytes");
        debug_assert!(next <= input.len(), "a token ends where the bytes do, or before");
        at = next;
        left -= 1;
        let parts = match found {
            Token::Array(n) | Token::Push(n) => n,
            Token::Map(n) => n * 2,
            Token::Attribute(n) => n * 2 + 1,
            _ if left > 0 && at - begun > most => return Err(NotResp),
            _ => continue,
        };
        aggregates += usize::from(left > 0);
        // A bound on nesting and on hostile lengths: no reply of ours holds more parts than bytes.
        if aggregates > REPLY_DEPTH * 65_536 || parts > REPLY_BYTES {
            return Err(NotResp);
        }
        left += parts;
    }
    Ok(Some(at))
}

/// An error reply. Its first word is its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ErrorReply(String);

impl ErrorReply {
    /// The code, such as `READONLY`.
    pub fn error_code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }
}

/// A whole reply with what it holds, for those who need not be fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespReply {
    /// A status, a text or a number.
    Text(String),
    /// Nothing.
    Null,
    /// Several, maps and attributes too.
    List(Vec<RespReply>),
    /// The server refuses.
    Error(ErrorReply),
}

impl RespReply {
    /// The text; empty for what is none.
    pub fn as_text(&self) -> &str {
        match self {
            RespReply::Text(text) => text,
            _ => "",
        }
    }
}

/// The reply at the start of `input` and its length there; `None` if it is not complete.
///
/// # Errors
/// The bytes are not RESP, nest deeper than [`REPLY_DEPTH`], or would take more than `most` bytes of memory.
pub fn read_reply(input: &[u8], most: usize) -> Result<Option<(RespReply, usize)>, NotResp> {
    match skip_within(input, 0, most)? {
        Some(_) => part(input, 0, REPLY_DEPTH, &mut { most }),
        None => Ok(None),
    }
}

/// The part of a reply at `at`, of at most `depth` lists in each other and `left` bytes.
fn part(
    input: &[u8],
    at: usize,
    depth: usize,
    left: &mut usize,
) -> Result<Option<(RespReply, usize)>, NotResp> {
    let Some((found, mut next)) = read_token(input, at)? else { return Ok(None) };
    *left = left.checked_sub(size_of::<RespReply>() + next - at).ok_or(NotResp)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let count = match found {
        Token::Simple(bytes) | Token::Bulk(bytes) => return Ok(Some((RespReply::Text(text(bytes)), next))),
        Token::Int(number) => return Ok(Some((RespReply::Text(number.to_string()), next))),
        Token::Error(bytes) => return Ok(Some((RespReply::Error(ErrorReply(text(bytes))), next))),
        Token::Null => return Ok(Some((RespReply::Null, next))),
        Token::Array(n) | Token::Push(n) => n,
        Token::Map(n) => 2 * n,
        Token::Attribute(n) => 2 * n + 1,
    };
    let depth = depth.checked_sub(1).ok_or(NotResp)?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let Some((reply, end)) = part(input, next, depth, left)? else { return Ok(None) };
        parts.push(reply);
        next = end;
    }
    Ok(Some((RespReply::List(parts), next)))
}

/// Appends `n` in decimal.
#[inline]
pub fn put_number(out: &mut Vec<u8>, n: u64) {
    if n < 10 {
        out.push(b'0' + n as u8);
        return;
    }
    let mut digits = [0u8; 20];
    let mut at = 20;
    let mut n = n;
    while n > 0 {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a mark, `n` in decimal and the end of the line. Short ones are arrays of known size: no call for a copy.
#[inline]
fn put_head(out: &mut Vec<u8>, mark: u8, n: usize) {
    let digit = |unit: usize| b'0' + (n / unit % 10) as u8;
    match n {
        0..10 => out.extend_from_slice(&[mark, digit(1), b'\r', b'\n']),
        10..100 => out.extend_from_slice(&[mark, digit(10), digit(1), b'\r', b'\n']),
        1000..10_000 => {
            let digits = [digit(1000), digit(100), digit(10), digit(1)];
            out.extend_from_slice(&[mark, digits[0], digits[1], digits[2], digits[3], b'\r', b'\n']);
        }
        _ => {
            out.push(mark);
            put_number(out, n as u64);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Appends the head of a command of `n` parts.
#[inline]
pub fn put_array(out: &mut Vec<u8>, n: usize) {
    put_head(out, b'*', n);
}

/// Appends the head of a bulk string of `n` bytes.
#[inline]
pub fn put_length(out: &mut Vec<u8>, n: usize) {
    put_head(out, b'$', n);
}

/// Appends a bulk string.
#[inline]
pub fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a whole command.
pub fn put_command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    put_array(out, parts.len());
    for part in parts {
        put_bulk(out, part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_of_both_versions() {
        assert_eq!(read_token(b"+OK\r\n", 0), Ok(Some((Token::Simple(b"OK"), 5))));
        assert_eq!(read_token(b"$3\r\nabc\r\n", 0), Ok(Some((Token::Bulk(b"abc"), 9))));
        assert_eq!(read_token(b"$-1\r\n", 0), Ok(Some((Token::Null, 5))));
        assert_eq!(read_token(b"%2\r\n", 0), Ok(Some((Token::Map(2), 4))));
        assert_eq!(read_token(b"=7\r\ntxt:abc\r\n", 0), Ok(Some((Token::Bulk(b"abc"), 13))));
        assert_eq!(read_token(b":-12\r\n", 0), Ok(Some((Token::Int(-12), 6))));
        assert_eq!(read_token(b"HTTP/1.1 400", 0), Err(NotResp));
        assert_eq!(read_token(b"$3\r\nabcde", 0), Err(NotResp));
        assert_eq!(read_token(b"$99999999999\r\n", 0), Err(NotResp));
    }

    #[test]
    fn replies_have_a_length_that_is_believed() {
        for claim in ["$1099511627776\r\nabc", "*1099511627776\r\n:1\r\n", "%1099511627776\r\n:1\r\n"] {
            assert_eq!(skip_reply(claim.as_bytes(), 0), Err(NotResp), "{claim}");
        }
        // A list that has as many parts as may be, and goes on and on.
        let endless = [b"*500000000\r\n".as_slice(), &b":1\r\n".repeat(100)].concat();
        assert_eq!(skip_within(&endless, 0, 1_000), Ok(None));
        assert_eq!(skip_within(&endless, 0, 400), Err(NotResp));
        // One that is complete is read.
        assert_eq!(skip_within(b"*2\r\n:1\r\n:2\r\n", 0, 8), Ok(Some(12)));
    }

    #[test]
    fn replies_are_read_with_what_they_hold() {
        let text = |text: &str| RespReply::Text(text.into());
        let read = |bytes: &[u8]| read_reply(bytes, 1 << 20);
        let list = RespReply::List(vec![
            text("abc"),
            text("-7"),
            RespReply::Null,
            RespReply::List(vec![text("OK")]),
        ]);
        let bytes = b"*4\r\n$3\r\nabc\r\n:-7\r\n$-1\r\n*1\r\n+OK\r\n";
        assert_eq!(read(&[&bytes[..], b"+more"].concat()), Ok(Some((list, bytes.len()))));
        (0..bytes.len()).for_each(|cut| assert_eq!(read(&bytes[..cut]), Ok(None), "cut at {cut}"));
        let Ok(Some((RespReply::Error(refused), 9))) = read(b"-ERR no\r\n") else { panic!("an error reply") };
        assert_eq!((refused.error_code(), refused.to_string().as_str()), ("ERR", "ERR no"));
    }

    #[test]
    fn a_reply_takes_no_more_memory_than_is_believed() {
        let most = 10_000;
        let nested = |depth: usize| [&b"*1\r\n".repeat(depth)[..], b":1\r\n"].concat();
        assert!(read_reply(&nested(REPLY_DEPTH), most).is_ok_and(|read| read.is_some()));
        assert_eq!(read_reply(&nested(REPLY_DEPTH + 1), most), Err(NotResp));
        let long = |count: usize| [format!("*{count}\r\n").as_bytes(), &b"_\r\n".repeat(count)].concat();
        let fits = most / (size_of::<RespReply>() + 3) - 1;
        assert!(read_reply(&long(fits), most).is_ok_and(|read| read.is_some()));
        assert_eq!(read_reply(&long(fits + 1), most), Err(NotResp));
        // Bytes that are not there are not believed.
        assert_eq!(read_reply(b"$1000\r\nabc", most), Ok(None));
    }

    #[test]
    fn nested_replies_are_skipped_whole() {
        let reply = b"*2\r\n*1\r\n:1\r\n%1\r\n+a\r\n|1\r\n+k\r\n+v\r\n$1\r\nx\r\n";
        assert_eq!(skip_reply(reply, 0), Ok(Some(reply.len())));
        for cut in 0..reply.len() {
            assert_eq!(skip_reply(&reply[..cut], 0), Ok(None), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8)) {
            let mut out = Vec::new();
            put_command(&mut out, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let (head, mut at) = read_token(&out, 0).unwrap().unwrap();
            prop_assert_eq!(head, Token::Array(parts.len()));
            for part in &parts {
                let (found, next) = read_token(&out, at).unwrap().unwrap();
                prop_assert_eq!(found, Token::Bulk(part));
                at = next;
            }
            prop_assert_eq!(at, out.len());
            prop_assert_eq!(skip_reply(&out, 0), Ok(Some(out.len())));
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = skip_reply(&bytes, 0);
        }

        #[test]
        fn numbers_as_std_writes_them(n in any::<u64>()) {
            let mut out = Vec::new();
            put_number(&mut out, n);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
