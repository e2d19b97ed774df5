//! Records of a block, to and from bytes.

use super::RecordingError;
use crate::entry::{Entry, LongValue, RecordedKind, RecordedReply};
use dyno_types::command::ReplyKind;

/// Connections of a recording: readers keep some bytes for each.
const CONNECTIONS: u64 = 1 << 26;

const REPLY: u8 = 1;
const OVERLAPS: u8 = 2;
const IMPLIED: u8 = 4;
const LATE: u8 = 16;

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn kind_number(kind: RecordedKind) -> u8 {
    match kind {
        RecordedKind::Reply(kind) => ReplyKind::ALL.iter().position(|one| *one == kind).unwrap_or(0) as u8,
        RecordedKind::Error => ReplyKind::ALL.len() as u8,
    }
}

fn put_reply(reply: &RecordedReply, out: &mut Vec<u8>) {
    out.push(kind_number(reply.kind));
    put_number(reply.size, out);
    put_number(reply.after_ns.map_or(0, |ns| ns + 1), out);
    if reply.kind == RecordedKind::Error {
        put_number(reply.error.len() as u64, out);
        out.extend_from_slice(reply.error.as_bytes());
    }
}

/// Appends a command; `before_ns`: time of the one before it in the block.
pub(super) fn put_entry(entry: &Entry, before_ns: u64, out: &mut Vec<u8>) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(
        flag(entry.reply.is_some(), REPLY) | flag(entry.overlaps, OVERLAPS) | flag(entry.implied, IMPLIED),
    );
    put_number(zigzag(entry.at_ns.wrapping_sub(before_ns) as i64), out);
    put_number(u64::from(entry.connection), out);
    put_number(entry.arguments.count() as u64, out);
    for (number, word) in entry.arguments.words().enumerate() {
        match entry.arguments.long_value(number) {
            None => {
                put_number((word.len() as u64) << 1, out);
                out.extend_from_slice(word);
            }
            Some(long) => {
                put_number(long.length << 1 | 1, out);
                out.extend_from_slice(&long.hash.to_le_bytes());
                out.push(long.compressed);
            }
        }
    }
    if let Some(reply) = &entry.reply {
        put_reply(reply, out);
    }
}

/// Appends a reply that came after its command was written.
pub(super) fn put_late(number: u64, reply: &RecordedReply, out: &mut Vec<u8>) {
    out.push(LATE);
    put_number(number, out);
    put_reply(reply, out);
}

/// What a record was.
pub(super) enum Record {
    /// A command, which was put into the entry.
    Entry,
    /// The reply to an earlier command.
    Late(u64, RecordedReply),
}

/// Reads the records of a block one by one.
pub(super) struct Records<'a> {
    input: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, RecordingError>;

fn damaged<T>(what: &'static str) -> Read<T> {
    Err(RecordingError::Damaged(what))
}

impl<'a> Records<'a> {
    /// Those from byte `at` on.
    pub fn new(input: &'a [u8], at: usize) -> Self {
        Records { input, at }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Read<u8> {
        let Some(byte) = self.input.get(self.at) else { return damaged("a block ends within a record") };
        self.at += 1;
        Ok(*byte)
    }

    fn bytes(&mut self, count: u64) -> Read<&'a [u8]> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let Some(found) = end.and_then(|end| self.input.get(self.at..end)) else {
            return damaged("a block ends within a word");
        };
        self.at += found.len();
        Ok(found)
    }

    fn number(&mut self) -> Read<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        damaged("a number has more than 64 bits")
    }

    fn reply(&mut self) -> Read<RecordedReply> {
        let kind = usize::from(self.byte()?);
        let kind = match ReplyKind::ALL.get(kind) {
            Some(kind) => RecordedKind::Reply(*kind),
            None if kind == ReplyKind::ALL.len() => RecordedKind::Error,
            None => return damaged("a reply of no known kind"),
        };
        let (size, after) = (self.number()?, self.number()?);
        let error = match kind {
            RecordedKind::Error => {
                let length = self.number()?;
                String::from_utf8_lossy(self.bytes(length)?).into_owned()
            }
            RecordedKind::Reply(_) => String::new(),
        };
        Ok(RecordedReply { kind, size, error, after_ns: after.checked_sub(1) })
    }

    /// Reads the next record; `entry` holds the command before it in the block, or time 0, and then this one.
    pub fn next_record(&mut self, entry: &mut Entry) -> Read<Record> {
        let flags = self.byte()?;
        if flags == LATE {
            let number = self.number()?;
            return Ok(Record::Late(number, self.reply()?));
        }
        if flags & !(REPLY | OVERLAPS | IMPLIED) != 0 {
            return damaged("a record of no known kind");
        }
        entry.at_ns = entry.at_ns.wrapping_add(unzigzag(self.number()?) as u64);
        let connection = self.number()?;
        if connection >= CONNECTIONS {
            return damaged("a connection's number");
        }
        entry.connection = connection as u32;
        (entry.overlaps, entry.implied) = (flags & OVERLAPS != 0, flags & IMPLIED != 0);
        let count = self.number()?;
        if count > (self.input.len() - self.at) as u64 {
            return damaged("a command has more words than its block has bytes");
        }
        entry.arguments.clear();
        for _ in 0..count {
            let word = self.number()?;
            if word & 1 == 0 {
                entry.arguments.push_word(self.bytes(word >> 1)?);
                continue;
            }
            let mut hash = [0; 8];
            hash.copy_from_slice(self.bytes(8)?);
            let compressed = self.byte()?;
            let hash = u64::from_le_bytes(hash);
            entry.arguments.push_long(LongValue { length: word >> 1, hash, compressed });
        }
        entry.reply = if flags & REPLY != 0 { Some(self.reply()?) } else { None };
        Ok(Record::Entry)
    }
}
