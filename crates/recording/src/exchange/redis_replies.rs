//! Replies of Redis in a stream of bytes that may be cut anywhere: they are told apart and skipped, not kept.

use super::Unreadable;
use super::number::parse_number;
use super::redis_commands::{take_line, text_bytes};
use crate::entry::RecordedKind;
use dyno_types::command::ReplyKind;

/// Bytes of an error, or of an aggregate's first text, that are kept.
const FIRST_BYTES: usize = 40;

/// Longest text that is believed, bytes.
const TEXT_BYTES: i64 = 1 << 36;

/// Most parts of an aggregate that are believed.
const PARTS: i64 = 1 << 32;

/// Role of what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameRole {
    /// A reply, or a message of RESP 2 that looks like one.
    Reply,
    /// A message of RESP 3.
    Push,
    /// Something about the reply that follows.
    Attribute,
}

/// A whole reply or message, without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub role: FrameRole,
    pub kind: RecordedKind,
    pub size: u64,
    /// The last whole number in it.
    pub number: i64,
    first: [u8; FIRST_BYTES],
    first_length: u8,
    /// True while bytes of a text belong to `first`.
    takes: bool,
}

impl Frame {
    fn new(role: FrameRole, kind: RecordedKind, size: u64) -> Self {
        Frame { role, kind, size, number: 0, first: [0; FIRST_BYTES], first_length: 0, takes: true }
    }

    fn take_first(&mut self, text: &[u8]) {
        let from = usize::from(self.first_length);
        let count = text.len().min(FIRST_BYTES - from);
        self.first[from..from + count].copy_from_slice(&text[..count]);
        self.first_length += count as u8;
    }

    /// The begin of an error, or of an aggregate's first text.
    pub fn first_text(&self) -> &[u8] {
        &self.first[..usize::from(self.first_length)]
    }

    /// The class of an error.
    pub fn error_class(&self) -> String {
        let class = self.first_text().split(|byte| *byte == b' ').next().unwrap_or_default();
        String::from_utf8_lossy(class).into_owned()
    }
}

/// Reads replies one after another.
#[derive(Default)]
pub(super) struct ReplyReader {
    /// Begin of a line whose end has not come.
    line: Vec<u8>,
    /// Bytes of a text and its end of line that are still to come.
    text_left: u64,
    /// Parts of the frame that are still to come.
    parts_left: u64,
    frame: Option<Frame>,
}

impl ReplyReader {
    /// Begins anew, at the begin of a reply.
    pub fn reset(&mut self) {
        *self = ReplyReader::default();
    }

    /// Returns whether the last byte was that of a reply.
    pub fn is_between_replies(&self) -> bool {
        self.frame.is_none() && self.line.is_empty()
    }

    /// Reads from `at` on; the frame that was completed, or `None` if all bytes were taken.
    pub fn read_frame(&mut self, bytes: &[u8], at: &mut usize) -> Result<Option<Frame>, Unreadable> {
        while *at < bytes.len() {
            if self.text_left > 0 {
                let end = at.saturating_add(self.text_left as usize).min(bytes.len());
                let part = &bytes[*at..end];
                let own = text_bytes(part, self.text_left)?;
                if let Some(frame) = self.frame.as_mut().filter(|frame| frame.takes) {
                    frame.take_first(&part[..own]);
                }
                *at = end;
                self.text_left -= part.len() as u64;
                if self.text_left > 0 {
                    return Ok(None);
                }
                if let Some(frame) = &mut self.frame {
                    frame.takes = false;
                }
            } else {
                let mut kept = std::mem::take(&mut self.line);
                let Some(line) = take_line(bytes, at, &mut kept)? else {
                    self.line = kept;
                    return Ok(None);
                };
                let line = line.strip_suffix(b"\r").ok_or(Unreadable)?;
                let (mark, text) = line.split_first().ok_or(Unreadable)?;
                let token = read_head(*mark, text)?;
                self.parts_left =
                    self.parts_left.checked_sub(u64::from(self.frame.is_some())).ok_or(Unreadable)?;
                let text_left = self.take_head(token, text)?;
                kept.clear();
                (self.line, self.text_left) = (kept, text_left);
                if text_left > 0 {
                    continue;
                }
            }
            if self.parts_left == 0
                && let Some(frame) = self.frame.take()
                && frame.role != FrameRole::Attribute
            {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Takes the head of a reply or of a part of one; returns the bytes of its text, with their end, that follow.
    fn take_head(&mut self, head: Head, line: &[u8]) -> Result<u64, Unreadable> {
        let more = match head {
            Head::Aggregate(_, parts) => parts,
            Head::NestedAttribute(parts) if self.frame.is_some() => parts + 1,
            Head::NestedAttribute(parts) => parts,
            _ => 0,
        };
        self.parts_left = self.parts_left.checked_add(more).ok_or(Unreadable)?;
        let Some(frame) = &mut self.frame else {
            let kind = |kind| RecordedKind::Reply(kind);
            let mut frame = match head {
                Head::Status => Frame::new(FrameRole::Reply, kind(ReplyKind::Status), 0),
                Head::Error => Frame::new(FrameRole::Reply, RecordedKind::Error, 0),
                Head::LongError(_) => Frame::new(FrameRole::Reply, RecordedKind::Error, 0),
                Head::Number(_) => Frame::new(FrameRole::Reply, kind(ReplyKind::Integer), 0),
                Head::Short => Frame::new(FrameRole::Reply, kind(ReplyKind::Text), line.len() as u64),
                Head::Text { length, prefix } => {
                    Frame::new(FrameRole::Reply, kind(ReplyKind::Text), length - prefix)
                }
                Head::Null => Frame::new(FrameRole::Reply, kind(ReplyKind::Nil), 0),
                Head::Aggregate(role, parts) => Frame::new(role, kind(ReplyKind::Array), parts),
                Head::NestedAttribute(parts) => {
                    Frame::new(FrameRole::Attribute, kind(ReplyKind::Array), parts)
                }
            };
            match head {
                Head::Error => frame.take_first(line),
                Head::LongError(_) | Head::Aggregate(..) => {}
                _ => frame.takes = false,
            }
            self.frame = Some(frame);
            return Ok(head.text_left());
        };
        match head {
            Head::Number(number) => frame.number = number,
            Head::Status | Head::Error | Head::Short if frame.takes => frame.take_first(line),
            _ => {}
        }
        if !matches!(head, Head::Text { .. } | Head::LongError(_)) {
            frame.takes = false;
        }
        Ok(head.text_left())
    }
}

/// What a line says.
#[derive(Clone, Copy)]
enum Head {
    Status,
    Error,
    LongError(u64),
    Number(i64),
    /// A text within the line.
    Short,
    /// A text behind the line, with so many bytes before its own.
    Text {
        length: u64,
        prefix: u64,
    },
    Null,
    Aggregate(FrameRole, u64),
    NestedAttribute(u64),
}

impl Head {
    fn text_left(self) -> u64 {
        match self {
            Head::Text { length, .. } | Head::LongError(length) => length + 2,
            _ => 0,
        }
    }
}

#[inline]
fn read_head(mark: u8, text: &[u8]) -> Result<Head, Unreadable> {
    let length = |most: i64| match parse_number(text)? {
        -1 => Ok(None),
        length if (0..=most).contains(&length) => Ok(Some(length as u64)),
        _ => Err(Unreadable),
    };
    Ok(match mark {
        b'+' => Head::Status,
        b'-' => Head::Error,
        b':' => Head::Number(parse_number(text)?),
        b'_' => Head::Null,
        b',' | b'#' | b'(' => Head::Short,
        b'$' => length(TEXT_BYTES)?.map_or(Head::Null, |length| Head::Text { length, prefix: 0 }),
        b'!' => length(TEXT_BYTES)?.map_or(Head::Null, Head::LongError),
        // `txt:` stands before a verbatim string.
        b'=' => match length(TEXT_BYTES)? {
            Some(length) if length >= 4 => Head::Text { length, prefix: 4 },
            _ => return Err(Unreadable),
        },
        b'*' | b'~' => length(PARTS)?.map_or(Head::Null, |parts| Head::Aggregate(FrameRole::Reply, parts)),
        b'%' => length(PARTS)?.map_or(Head::Null, |pairs| Head::Aggregate(FrameRole::Reply, 2 * pairs)),
        b'>' => length(PARTS)?.map_or(Head::Null, |parts| Head::Aggregate(FrameRole::Push, parts)),
        b'|' => length(PARTS)?.map_or(Head::Null, |pairs| Head::NestedAttribute(2 * pairs)),
        _ => return Err(Unreadable),
    })
}
