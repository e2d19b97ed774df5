//! Messages of the wire protocol: the frame, OP_MSG with its sections, and the OP_QUERY and OP_REPLY of the first hello.
//!
//! The writer appends a message whose lengths are filled in at its end. The reader borrows from the buffer, which may
//! end anywhere, and believes no length that leads beyond it.

use dyno_types::bson;
use dyno_types::limits::MESSAGE_BYTES;

/// Bytes of a message's header: length, request id, id answered, operation code.
pub const HEADER: usize = 16;

/// Operation codes.
pub mod code {
    /// The answer to OP_QUERY.
    pub const REPLY: i32 = 1;
    /// The question of old; servers still accept it for the first hello.
    pub const QUERY: i32 = 2004;
    /// Any other message, compressed.
    pub const COMPRESSED: i32 = 2012;
    /// The message of today.
    pub const MSG: i32 = 2013;
}

/// Flag bit: the message ends with a checksum.
pub const CHECKSUM: u32 = 1;
/// Flag bit: the sender goes on without waiting.
pub const MORE_TO_COME: u32 = 1 << 1;
/// Flag bits that a reader must understand.
const REQUIRED: u32 = 0xFFFF;

/// The bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMessage;

impl From<bson::NotBson> for NotMessage {
    fn from(_: bson::NotBson) -> Self {
        NotMessage
    }
}

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the whole message.
    pub bytes: usize,
    /// Number given by the sender.
    pub id: i32,
    /// Number of the message that this one answers.
    pub to: i32,
    /// Operation code.
    pub code: i32,
}

#[inline]
pub(super) fn int(input: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(*input.get(at..)?.first_chunk::<4>()?))
}

/// The header of the message at the start of `input`; `None` while the message is not complete.
#[inline]
pub fn read_header(input: &[u8]) -> Result<Option<Header>, NotMessage> {
    let Some(bytes) = int(input, 0) else { return Ok(None) };
    let bytes =
        usize::try_from(bytes).ok().filter(|n| (HEADER..=MESSAGE_BYTES).contains(n)).ok_or(NotMessage)?;
    let (Some(id), Some(to), Some(code)) = (int(input, 4), int(input, 8), int(input, 12)) else {
        return Ok(None);
    };
    // Refused before its body has come: what speaks another protocol may never send that many bytes.
    if ![code::REPLY, code::COMPRESSED, code::MSG].contains(&code) {
        return Err(NotMessage);
    }
    Ok((input.len() >= bytes).then_some(Header { bytes, id, to, code }))
}

/// The document of a message's body (what follows the header).
#[inline]
pub fn read_document(code: i32, body: &[u8]) -> Result<&[u8], NotMessage> {
    match code {
        code::MSG => sections(body),
        code::REPLY => first_of_reply(body),
        _ => Err(NotMessage),
    }
}

/// The one section of kind 0 of an OP_MSG; sequences of documents (kind 1) are stepped over.
fn sections(body: &[u8]) -> Result<&[u8], NotMessage> {
    let flags = int(body, 0).ok_or(NotMessage)? as u32;
    // A reply that announces another one answers a question that is never asked here.
    if flags & REQUIRED & !CHECKSUM != 0 {
        return Err(NotMessage);
    }
    let end = if flags & CHECKSUM == 0 { body.len() } else { body.len().checked_sub(4).ok_or(NotMessage)? };
    let mut rest = body.get(4..end).ok_or(NotMessage)?;
    let mut found = None;
    while let Some((kind, section)) = rest.split_first() {
        let bytes = usize::try_from(int(section, 0).ok_or(NotMessage)?).map_err(|_| NotMessage)?;
        if bytes < 5 || bytes > section.len() {
            return Err(NotMessage);
        }
        match kind {
            0 if found.is_none() => found = Some(&section[..bytes]),
            1 => {}
            _ => return Err(NotMessage),
        }
        rest = &section[bytes..];
    }
    found.ok_or(NotMessage)
}

/// The first document of an OP_REPLY: flags, cursor, position and count stand before it.
fn first_of_reply(body: &[u8]) -> Result<&[u8], NotMessage> {
    let documents = body.get(20..).ok_or(NotMessage)?;
    match bson::document_length(documents) {
        Some(bytes) => documents.get(..bytes?).ok_or(NotMessage),
        None => Err(NotMessage),
    }
}

fn header(out: &mut Vec<u8>, id: i32, code: i32) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.to_le_bytes());
    at
}

/// Begins an OP_MSG up to the kind of its first section, which must be a document. Hand the result to [`end`].
#[inline]
pub fn begin(out: &mut Vec<u8>, id: i32) -> usize {
    let at = header(out, id, code::MSG);
    debug_assert_eq!(out.len(), at + HEADER);
    out.extend_from_slice(&[0; 5]);
    at
}

/// Begins an OP_QUERY on `admin.$cmd`; one document must follow. Hand the result to [`end`].
pub fn begin_query(out: &mut Vec<u8>, id: i32) -> usize {
    let at = header(out, id, code::QUERY);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(b"admin.$cmd\0");
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(&(-1i32).to_le_bytes());
    at
}

/// Fills in the length of the message that began at `at`.
#[inline]
pub fn end(out: &mut [u8], at: usize) {
    debug_assert!(i32::try_from(out.len() - at).is_ok(), "the length would have a sign");
    let bytes = (out.len() - at) as i32;
    out[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
}

/// Begins a section of kind 1 called `name`; documents follow. Hand the result to [`end`].
#[inline]
pub fn begin_sequence(out: &mut Vec<u8>, name: &str) -> usize {
    out.push(1);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ping() -> Vec<u8> {
        let mut out = Vec::new();
        let at = begin(&mut out, 7);
        let body = bson::open(&mut out);
        bson::put_int32(&mut out, "ping", 1);
        bson::put_string(&mut out, "$db", "admin");
        bson::close(&mut out, body);
        end(&mut out, at);
        out
    }

    #[test]
    fn golden_bytes() {
        let golden = b"\x33\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
            \x1e\0\0\0\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";
        assert_eq!(ping(), golden);
        let header = read_header(golden).unwrap().unwrap();
        assert_eq!(header, Header { bytes: 51, id: 7, to: 0, code: code::MSG });
        let found = read_document(header.code, &golden[HEADER..]).unwrap();
        assert_eq!(bson::find_element(found, "$db").unwrap().as_str(), Some("admin"));
    }

    #[test]
    fn sequences_and_checksums_are_tolerated() {
        let mut out = ping();
        let at = begin_sequence(&mut out, "documents");
        out.extend_from_slice(&[5, 0, 0, 0, 0]);
        end(&mut out, at);
        let sequence = out[51..].to_vec();
        assert_eq!(sequence, b"\x01\x13\0\0\0documents\0\x05\0\0\0\0");
        out[16] |= CHECKSUM as u8;
        out.extend_from_slice(&[1, 2, 3, 4]);
        end(&mut out, 0);
        let header = read_header(&out).unwrap().unwrap();
        assert_eq!(read_document(header.code, &out[HEADER..]).unwrap().len(), 30);
        // The sequence may stand before the document too.
        let mut turned = out[..20].to_vec();
        turned.extend_from_slice(&sequence);
        turned.extend_from_slice(&out[20..51]);
        turned.extend_from_slice(&[0; 4]);
        assert_eq!(read_document(code::MSG, &turned[HEADER..]).unwrap().len(), 30);
    }

    #[test]
    fn lies_are_refused() {
        let good = ping();
        let with = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            bad
        };
        assert_eq!(read_header(&with(0, 15)), Err(NotMessage));
        assert_eq!(read_header(&with(3, 0x7F)), Err(NotMessage));
        assert_eq!(read_header(&with(3, 0x80)), Err(NotMessage));
        assert_eq!(read_header(&with(12, 0)), Err(NotMessage));
        assert_eq!(read_header(b"HTTP/1.1 400 Bad Request\r\n"), Err(NotMessage));
        let body = |bytes: &[u8]| read_document(code::MSG, &bytes[HEADER..]).map(<[u8]>::len);
        assert_eq!(body(&good), Ok(30));
        // Unknown flags, flags that announce more, an unknown section, a length beyond the end or below the least.
        for (at, value) in [(16, 4), (16, 2), (20, 2), (21, 31), (21, 4), (24, 0x80)] {
            assert_eq!(body(&with(at, value)), Err(NotMessage), "{at} {value}");
        }
        for cut in 0..good.len() {
            assert_eq!(read_header(&good[..cut]), Ok(None), "cut at {cut}");
        }
        assert_eq!(read_document(code::REPLY, &[0; 19]), Err(NotMessage));
        assert_eq!(read_document(code::REPLY, &[0; 24]), Err(NotMessage));
    }

    proptest! {
        #[test]
        fn no_input_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            code in prop::sample::select(vec![1, 2012, 2013]),
        ) {
            let _ = read_header(&bytes);
            let _ = read_document(code, &bytes);
        }

        #[test]
        fn no_changed_byte_panics(at in 0usize..51, value in any::<u8>()) {
            let mut bytes = ping();
            bytes[at] = value;
            if let Ok(Some(header)) = read_header(&bytes) {
                let _ = read_document(header.code, &bytes[HEADER..header.bytes]);
            }
        }
    }
}
