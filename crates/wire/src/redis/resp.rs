//! RESP2 and RESP3: a token reader over a buffer that may end anywhere, and writers that append.

use dyno_types::limits::{REPLY_BYTES, REPLY_DEPTH};

/// The bytes are not RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub type Found<'a> = Result<Option<(Token<'a>, usize)>, NotResp>;

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
pub fn token(input: &[u8], at: usize) -> Found<'_> {
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
fn blob<'a>(input: &'a [u8], kind: u8, text: &[u8], next: usize) -> Found<'a> {
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
pub fn skip(input: &[u8], at: usize) -> Result<Option<usize>, NotResp> {
    skip_within(input, at, REPLY_BYTES)
}

/// The same of a reply of at most so many bytes.
fn skip_within(input: &[u8], at: usize, most: usize) -> Result<Option<usize>, NotResp> {
    let (begun, mut at, mut left) = (at, at, 1usize);
    let mut aggregates = 0usize;
    while left > 0 {
        let Some((found, next)) = token(input, at)? else { return Ok(None) };
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
        assert_eq!(token(b"+OK\r\n", 0), Ok(Some((Token::Simple(b"OK"), 5))));
        assert_eq!(token(b"$3\r\nabc\r\n", 0), Ok(Some((Token::Bulk(b"abc"), 9))));
        assert_eq!(token(b"$-1\r\n", 0), Ok(Some((Token::Null, 5))));
        assert_eq!(token(b"%2\r\n", 0), Ok(Some((Token::Map(2), 4))));
        assert_eq!(token(b"=7\r\ntxt:abc\r\n", 0), Ok(Some((Token::Bulk(b"abc"), 13))));
        assert_eq!(token(b":-12\r\n", 0), Ok(Some((Token::Int(-12), 6))));
        assert_eq!(token(b"HTTP/1.1 400", 0), Err(NotResp));
        assert_eq!(token(b"$3\r\nabcde", 0), Err(NotResp));
        assert_eq!(token(b"$99999999999\r\n", 0), Err(NotResp));
    }

    #[test]
    fn replies_have_a_length_that_is_believed() {
        for claim in ["$1099511627776\r\nabc", "*1099511627776\r\n:1\r\n", "%1099511627776\r\n:1\r\n"] {
            assert_eq!(skip(claim.as_bytes(), 0), Err(NotResp), "{claim}");
        }
        // A list that has as many parts as may be, and goes on and on.
        let endless = [b"*500000000\r\n".as_slice(), &b":1\r\n".repeat(100)].concat();
        assert_eq!(skip_within(&endless, 0, 1_000), Ok(None));
        assert_eq!(skip_within(&endless, 0, 400), Err(NotResp));
        // One that is complete is read.
        assert_eq!(skip_within(b"*2\r\n:1\r\n:2\r\n", 0, 8), Ok(Some(12)));
    }

    #[test]
    fn nested_replies_are_skipped_whole() {
        let reply = b"*2\r\n*1\r\n:1\r\n%1\r\n+a\r\n|1\r\n+k\r\n+v\r\n$1\r\nx\r\n";
        assert_eq!(skip(reply, 0), Ok(Some(reply.len())));
        for cut in 0..reply.len() {
            assert_eq!(skip(&reply[..cut], 0), Ok(None), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8)) {
            let mut out = Vec::new();
            put_command(&mut out, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let (head, mut at) = token(&out, 0).unwrap().unwrap();
            prop_assert_eq!(head, Token::Array(parts.len()));
            for part in &parts {
                let (found, next) = token(&out, at).unwrap().unwrap();
                prop_assert_eq!(found, Token::Bulk(part));
                at = next;
            }
            prop_assert_eq!(at, out.len());
            prop_assert_eq!(skip(&out, 0), Ok(Some(out.len())));
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = skip(&bytes, 0);
        }

        #[test]
        fn numbers_as_std_writes_them(n in any::<u64>()) {
            let mut out = Vec::new();
            put_number(&mut out, n);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
