//! Messages of MongoDB's wire protocol out of bytes that are cut anywhere.

use super::Unreadable;
use dyno_db_mongodb::protocol::message::{HEADER, Header, code, peek_header};
use dyno_types::limits::MESSAGE_BYTES;
use std::ops::Range;

/// Memory that is kept for the next message, bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Operations that clients send.
const REQUESTS: [i32; 9] = [
    code::MSG,
    code::COMPRESSED,
    code::QUERY,
    code::UPDATE,
    code::INSERT,
    code::GET_MORE,
    code::DELETE,
    code::KILL_CURSORS,
    code::COMMAND,
];

/// Operations that servers send.
const REPLIES: [i32; 4] = [code::MSG, code::COMPRESSED, code::REPLY, code::COMMAND_REPLY];

/// Side that sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    Server,
}

/// Place of a message that has come as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundMessage {
    /// Its body is here, in the bytes that came last.
    Here(Header, Range<usize>),
    /// It came in several parts: the reader holds it, header included.
    Held(Header),
    /// It is longer than any may be: it is skipped.
    TooLong(Header),
}

/// Returns whether a header is one that this side may send: its operation, and whether it answers something.
fn is_plausible(sender: Sender, header: &Header) -> bool {
    match sender {
        // Drivers answer nothing; some have written -1 for that.
        Sender::Client => REQUESTS.contains(&header.code) && (header.to == 0 || header.to == -1),
        Sender::Server => REPLIES.contains(&header.code),
    }
}

/// Returns whether bytes begin as a message of this side does, as far as they go: a header that is plausible, and of OP_MSG
/// flags and a section that fit.
pub(super) fn is_message_head(sender: Sender, bytes: &[u8]) -> bool {
    let Ok(Some(header)) = peek_header(bytes) else { return false };
    if !is_plausible(sender, &header) || header.bytes > MESSAGE_BYTES {
        return false;
    }
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    match header.code {
        code::MSG => {
            let flags_fit = number(HEADER).is_none_or(|flags| flags & 0xFFFC == 0);
            let kind_fits = bytes.get(HEADER + 4).is_none_or(|kind| *kind <= 1);
            let section_fits = number(HEADER + 5)
                .is_none_or(|length| length >= 5 && length as usize + HEADER + 5 <= header.bytes);
            header.bytes >= HEADER + 10 && flags_fit && kind_fits && section_fits
        }
        code::COMPRESSED => {
            let code = number(HEADER).map(|code| code as i32);
            let length = number(HEADER + 4).map(|length| length as usize);
            code.is_none_or(|code| REQUESTS.contains(&code) || REPLIES.contains(&code))
                && length.is_none_or(|length| length <= MESSAGE_BYTES)
                && bytes.get(HEADER + 8).is_none_or(|by| *by <= 3)
        }
        _ => true,
    }
}

/// Returns whether bytes begin as a request of MongoDB's does.
pub fn is_request_head(bytes: &[u8]) -> bool {
    is_message_head(Sender::Client, bytes)
}

/// Reads the messages of one direction.
#[derive(Debug)]
pub(super) struct MessageReader {
    sender: Sender,
    /// What has come of the message that is being read.
    held: Vec<u8>,
    /// Bytes of a message that are still to be skipped.
    skipped: usize,
}

impl MessageReader {
    pub fn new(sender: Sender) -> Self {
        MessageReader { sender, held: Vec::new(), skipped: 0 }
    }

    /// Forgets what it has read of a message.
    pub fn reset(&mut self) {
        (self.held, self.skipped) = (Vec::new(), 0);
    }

    /// Returns whether no message has begun and not ended.
    pub fn is_between_messages(&self) -> bool {
        self.held.is_empty() && self.skipped == 0
    }

    /// Reads on from place `at`; `None` if all bytes were taken and no message has ended.
    pub fn read_message(&mut self, bytes: &[u8], at: &mut usize) -> Result<Option<FoundMessage>, Unreadable> {
        let skipped = self.skipped.min(bytes.len() - *at);
        (self.skipped, *at) = (self.skipped - skipped, *at + skipped);
        let rest = &bytes[*at..];
        if rest.is_empty() {
            return Ok(None);
        }
        if self.held.is_empty() {
            let Some(header) = self.read_header(rest)? else {
                self.held.extend_from_slice(rest);
                *at = bytes.len();
                return Ok(None);
            };
            if header.bytes > MESSAGE_BYTES {
                return Ok(Some(self.skip_message(header)));
            }
            if rest.len() >= header.bytes {
                let body = *at + HEADER..*at + header.bytes;
                *at = body.end;
                return Ok(Some(FoundMessage::Here(header, body)));
            }
            self.held.extend_from_slice(rest);
            *at = bytes.len();
            return Ok(None);
        }
        if self.held.len() < HEADER {
            let taken = (HEADER - self.held.len()).min(rest.len());
            self.held.extend_from_slice(&rest[..taken]);
            *at += taken;
        }
        let Some(header) = self.read_header(&self.held)? else { return Ok(None) };
        if header.bytes > MESSAGE_BYTES {
            self.held.clear();
            let found = self.skip_message(header);
            self.skipped -= HEADER;
            return Ok(Some(found));
        }
        let taken = (header.bytes - self.held.len()).min(bytes.len() - *at);
        self.held.extend_from_slice(&bytes[*at..*at + taken]);
        *at += taken;
        Ok((self.held.len() == header.bytes).then_some(FoundMessage::Held(header)))
    }

    fn skip_message(&mut self, header: Header) -> FoundMessage {
        self.skipped = header.bytes;
        FoundMessage::TooLong(header)
    }

    fn read_header(&self, bytes: &[u8]) -> Result<Option<Header>, Unreadable> {
        match peek_header(bytes) {
            Ok(Some(header)) if is_plausible(self.sender, &header) => Ok(Some(header)),
            Ok(None) => Ok(None),
            Ok(Some(_)) | Err(_) => Err(Unreadable),
        }
    }

    /// Hands out the message that it holds.
    pub fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Takes the memory of a message that was read.
    pub fn give_back(&mut self, mut memory: Vec<u8>) {
        if memory.capacity() <= KEPT_BYTES {
            memory.clear();
            self.held = memory;
        }
    }
}
