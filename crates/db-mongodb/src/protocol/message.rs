//! Messages of the wire protocol: the frame, OP_MSG with its sections, and the OP_QUERY and OP_REPLY of the first hello. For
//! those who read the traffic of others: all of a message's parts, and headers of messages of old.
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
    /// A write of old, without an answer.
    pub const UPDATE: i32 = 2001;
    /// A write of old, without an answer.
    pub const INSERT: i32 = 2002;
    /// The question of old; servers still accept it for the first hello.
    pub const QUERY: i32 = 2004;
    /// The rest of a question of old.
    pub const GET_MORE: i32 = 2005;
    /// A write of old, without an answer.
    pub const DELETE: i32 = 2006;
    /// The end of questions of old, without an answer.
    pub const KILL_CURSORS: i32 = 2007;
    /// The message of MongoDB 3.2 and 3.4 among themselves and from their shell.
    pub const COMMAND: i32 = 2010;
    /// The answer to it.
    pub const COMMAND_REPLY: i32 = 2011;
    /// Any other message, compressed.
    pub const COMPRESSED: i32 = 2012;
    /// The message of today.
    pub const MSG: i32 = 2013;
}

/// Flag bit: the message ends with a checksum.
pub const CHECKSUM: u32 = 1;
/// Flag bit: the sender goes on without waiting.
pub const MORE_TO_COME: u32 = 1 << 1;
/// Flag bit of OP_QUERY: the server sends all batches without further questions.
pub const QUERY_EXHAUST: u32 = 1 << 6;
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

/// The header at the start of `input`, of whatever operation, however much of the message has come; `None` while the header has
/// not come. Its length may be that of no message.
pub fn peek_header(input: &[u8]) -> Result<Option<Header>, NotMessage> {
    let (Some(bytes), Some(id), Some(to), Some(code)) =
        (int(input, 0), int(input, 4), int(input, 8), int(input, 12))
    else {
        return Ok(None);
    };
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes >= HEADER).ok_or(NotMessage)?;
    Ok(Some(Header { bytes, id, to, code }))
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

/// Sections of an OP_MSG: kind, and what follows it.
struct Sections<'a>(&'a [u8]);

impl<'a> Sections<'a> {
    /// The flags, and the sections behind them.
    #[inline]
    fn open(body: &'a [u8], understood: u32) -> Result<(u32, Self), NotMessage> {
        let flags = int(body, 0).ok_or(NotMessage)? as u32;
        if flags & REQUIRED & !understood != 0 {
            return Err(NotMessage);
        }
        let end =
            if flags & CHECKSUM == 0 { body.len() } else { body.len().checked_sub(4).ok_or(NotMessage)? };
        Ok((flags, Sections(body.get(4..end).ok_or(NotMessage)?)))
    }

    #[inline]
    fn next_section(&mut self) -> Result<Option<(u8, &'a [u8])>, NotMessage> {
        let Some((kind, section)) = self.0.split_first() else { return Ok(None) };
        let bytes = usize::try_from(int(section, 0).ok_or(NotMessage)?).map_err(|_| NotMessage)?;
        if bytes < 5 || bytes > section.len() {
            return Err(NotMessage);
        }
        self.0 = &section[bytes..];
        Ok(Some((*kind, &section[..bytes])))
    }
}

/// The one section of kind 0 of an OP_MSG; sequences of documents (kind 1) are stepped over.
fn sections(body: &[u8]) -> Result<&[u8], NotMessage> {
    // A reply that announces another one answers a question that is never asked here.
    let (_, mut all) = Sections::open(body, CHECKSUM)?;
    let mut found = None;
    while let Some((kind, section)) = all.next_section()? {
        match kind {
            0 if found.is_none() => found = Some(section),
            1 => {}
            _ => return Err(NotMessage),
        }
    }
    found.ok_or(NotMessage)
}

/// A section of kind 1: documents that belong into an array of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentSequence<'a> {
    /// The array's name.
    pub name: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Iterator for DocumentSequence<'a> {
    type Item = Result<&'a [u8], NotMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let found =
            bson::document_length(self.rest).and_then(|bytes| self.rest.split_at_checked(bytes.ok()?));
        let Some((document, rest)) = found else {
            self.rest = &[];
            return Some(Err(NotMessage));
        };
        self.rest = rest;
        Some(Ok(document))
    }
}

/// Everything in the body of an OP_MSG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageParts<'a> {
    /// Its flag bits.
    pub flags: u32,
    /// The one section of kind 0.
    pub document: &'a [u8],
    /// Those of kind 1.
    pub sequences: Vec<DocumentSequence<'a>>,
}

/// Reads everything in the body of an OP_MSG.
pub fn read_parts(body: &[u8]) -> Result<MessageParts<'_>, NotMessage> {
    let (flags, mut all) = Sections::open(body, CHECKSUM | MORE_TO_COME)?;
    let (mut document, mut sequences) = (None, Vec::new());
    while let Some((kind, section)) = all.next_section()? {
        match kind {
            0 if document.is_none() => document = Some(section),
            1 => {
                let named = &section[4..];
                let end = named.iter().position(|byte| *byte == 0).ok_or(NotMessage)?;
                sequences.push(DocumentSequence { name: &named[..end], rest: &named[end + 1..] });
            }
            _ => return Err(NotMessage),
        }
    }
    Ok(MessageParts { flags, document: document.ok_or(NotMessage)?, sequences })
}

/// What an OP_QUERY asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryParts<'a> {
    /// Its flag bits.
    pub flags: u32,
    /// Database and collection; `DATABASE.$cmd` for a command.
    pub collection: &'a [u8],
    /// The question.
    pub document: &'a [u8],
}

/// Reads the body of an OP_QUERY.
pub fn read_query(body: &[u8]) -> Result<QueryParts<'_>, NotMessage> {
    let flags = int(body, 0).ok_or(NotMessage)? as u32;
    let named = &body[4..];
    let end = named.iter().position(|byte| *byte == 0).ok_or(NotMessage)?;
    // Behind the name: how many to step over, and how many to return.
    let document = first_document(named.get(end + 9..).ok_or(NotMessage)?)?;
    Ok(QueryParts { flags, collection: &named[..end], document })
}

/// The first document of an OP_REPLY: flags, cursor, position and count stand before it.
fn first_of_reply(body: &[u8]) -> Result<&[u8], NotMessage> {
    first_document(body.get(20..).ok_or(NotMessage)?)
}

fn first_document(documents: &[u8]) -> Result<&[u8], NotMessage> {
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
    fn all_parts_are_found() {
        let mut out = ping();
        let at = begin_sequence(&mut out, "documents");
        out.extend_from_slice(&[5, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
        end(&mut out, at);
        out[16] |= MORE_TO_COME as u8;
        let parts = read_parts(&out[HEADER..]).unwrap();
        assert_eq!((parts.flags, parts.document.len(), parts.sequences.len()), (2, 30, 1));
        assert_eq!(parts.sequences[0].name, b"documents");
        assert_eq!(parts.sequences[0].map(|one| one.unwrap().len()).collect::<Vec<_>>(), [5, 5]);
        let last = out.len() - 5;
        out[last] = 6;
        assert_eq!(read_parts(&out[HEADER..]).unwrap().sequences[0].last(), Some(Err(NotMessage)));
        let mut query = Vec::new();
        let at = begin_query(&mut query, 3);
        query.extend_from_slice(&[5, 0, 0, 0, 0]);
        end(&mut query, at);
        let parts = read_query(&query[HEADER..]).unwrap();
        assert_eq!((parts.flags, parts.collection, parts.document.len()), (0, &b"admin.$cmd"[..], 5));
        assert!((HEADER..query.len()).all(|cut| read_query(&query[HEADER..cut]).is_err()));
        assert_eq!(peek_header(&query[..15]), Ok(None));
        assert_eq!(peek_header(&query[..16]).unwrap().unwrap().code, code::QUERY);
        assert_eq!(peek_header(&[255; 16]), Err(NotMessage));
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
            let _ = (peek_header(&bytes), read_query(&bytes));
            if let Ok(parts) = read_parts(&bytes) {
                parts.sequences.into_iter().for_each(|mut one| while one.next().is_some() {});
            }
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
