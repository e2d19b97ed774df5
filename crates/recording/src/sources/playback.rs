//! Playback files: messages of MongoDB's wire protocol, as `mongoreplay record` writes them, and `mongotrafficreader` of the
//! traffic that a server has recorded itself.
//!
//! ```text
//! {playbackfileversion: 1, ...}                                                     (later versions)
//! {rawop: {header: {...}, body: BinData(a message, its header included)}, seen: {sec, nsec}, seenconnectionnum: 7, ...}
//! ```
//!
//! Seconds count from the year 1. mongoreplay names both ends of a message (`srcendpoint`, `dstendpoint`). Where they are not
//! told, a message that answers another is known by that one's number in its header: a reply to number 0 looks like a request.

use super::bson_file::{NextDocument, read_document};
use super::clock::SourceClock;
use super::{NewRecording, SourceError};
use crate::exchange::{Exchange, ExchangeSettings, ExchangeSink, PairedProtocol};
use crate::format::{OrderedEntries, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingTotals};
use dyno_types::bson::{self, kind};
use dyno_types::limits::MESSAGE_BYTES;
use std::collections::HashMap;
use std::io::{BufRead, Write};

/// Longest document, bytes: a message and what is said of it.
const DOCUMENT_BYTES: u64 = MESSAGE_BYTES as u64 + (64 << 10);

/// Seconds from the year 1 to 1970.
const BEFORE_1970_S: i64 = 62_135_596_800;

/// Bytes of a message's header: its length, its number, the number that it answers, its kind.
const HEADER_BYTES: usize = 16;

mod reason {
    pub const SHORTENED: &str = "replies that mongoreplay has shortened (--full-replies keeps them)";
    pub const UNREADABLE: &str = "documents that are no messages";
    pub const CUT_OFF: &str = "documents that are cut off at the file's end";
}

/// Returns whether a file that begins with these bytes is a playback file.
pub fn is_playback(head: &[u8]) -> bool {
    let length = bson::document_length(head).and_then(Result::ok);
    let is_document = length.is_some_and(|length| length as u64 <= DOCUMENT_BYTES);
    is_document
        && (head[4..].starts_with(b"\x03rawop\0") || head[4..].starts_with(b"\x10playbackfileversion\0"))
}

/// A message of a playback file.
struct PlayedMessage<'a> {
    connection: i64,
    /// Nanoseconds since 1970.
    at_ns: u64,
    bytes: &'a [u8],
    /// Sender and receiver, where the file names them.
    ends_of: Option<(&'a str, &'a str)>,
    /// The connection ends with it.
    ends: bool,
}

impl PlayedMessage<'_> {
    /// Returns whether it has the number of a message that it answers.
    fn answers(&self) -> bool {
        header_number(self.bytes, 8).is_some_and(|number| number != 0)
    }
}

/// Nanoseconds since 1970 of `{sec, nsec}`.
fn read_time(seen: &[u8]) -> Option<u64> {
    let number = |name: &str| bson::find_element(seen, name)?.as_i64();
    let seconds = u64::try_from(number("sec")?.checked_sub(BEFORE_1970_S)?).ok()?;
    let rest = number("nsec").and_then(|rest| u64::try_from(rest).ok()).unwrap_or(0);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

fn read_message(document: &[u8]) -> Option<PlayedMessage<'_>> {
    let find = |name: &str| bson::find_element(document, name);
    let raw = find("rawop")?.as_document()?;
    let body = bson::find_element(raw, "body").filter(|body| body.kind == kind::BINARY);
    let end = |name: &str| find(name)?.as_str().filter(|end| !end.is_empty());
    Some(PlayedMessage {
        ends_of: end("srcendpoint").zip(end("dstendpoint")),
        connection: find("seenconnectionnum")?.as_i64()?,
        at_ns: read_time(find("seen")?.as_document()?)?,
        // A connection that ends has an empty one.
        bytes: body.and_then(|body| body.as_bytes()).unwrap_or_default(),
        ends: find("eof").is_some_and(|eof| eof.is_true()),
    })
}

/// Number in the header of a message.
fn header_number(message: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*message.get(at..)?.first_chunk::<4>()?))
}

/// A connection, and its client's end where that is told.
struct PlayedConnection {
    exchange: Exchange,
    client: Option<String>,
}

impl PlayedConnection {
    fn is_request(&self, message: &PlayedMessage<'_>) -> bool {
        match (&self.client, message.ends_of) {
            (Some(client), Some((sender, _))) => client == sender,
            _ => !message.answers(),
        }
    }
}

/// Connections by their numbers in the file, and what is recorded of them.
struct PlayedConnections<W: Write> {
    ordered: OrderedEntries<W>,
    exchanges: ExchangeSettings,
    open: HashMap<i64, PlayedConnection>,
    next: u32,
}

impl<W: Write> PlayedConnections<W> {
    fn take_message(&mut self, at_ns: u64, message: &PlayedMessage<'_>) -> Result<(), SourceError> {
        if message.bytes.len() < HEADER_BYTES {
            self.leave_out(reason::UNREADABLE, u64::from(!message.ends));
        } else if header_number(message.bytes, 0) != u32::try_from(message.bytes.len()).ok() {
            self.leave_out(reason::SHORTENED, 1);
        } else {
            let connection = self.open.entry(message.connection).or_insert_with(|| {
                self.next += 1;
                let client = message
                    .ends_of
                    .map(|(sender, receiver)| if message.answers() { receiver } else { sender });
                PlayedConnection {
                    exchange: self.exchanges.open_exchange(self.next - 1, true),
                    client: client.map(str::to_owned),
                }
            });
            match connection.is_request(message) {
                true => connection.exchange.feed_request(at_ns, message.bytes, &mut self.ordered)?,
                false => connection.exchange.feed_reply(at_ns, message.bytes, &mut self.ordered)?,
            }
        }
        if message.ends
            && let Some(mut connection) = self.open.remove(&message.connection)
        {
            connection.exchange.finish(&mut self.ordered)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, reason: &str, count: u64) {
        if count > 0 {
            ExchangeSink::leave_out(&mut self.ordered, reason, count);
        }
    }

    fn finish(mut self) -> Result<RecordingTotals, SourceError> {
        for connection in self.open.values_mut() {
            connection.exchange.finish(&mut self.ordered)?;
        }
        let totals = self.ordered.into_writer()?.finish()?;
        if totals.commands == 0 { Err(SourceError::Nothing("commands of MongoDB")) } else { Ok(totals) }
    }
}

/// Records a playback file.
///
/// # Errors
/// It is damaged, holds no commands, or the recording cannot be written.
pub fn record_playback<W: Write>(
    input: &mut dyn BufRead,
    new: &mut NewRecording<'_, W>,
) -> Result<RecordingTotals, SourceError> {
    let limit = new.value_limit(RecordedProtocol::Mongodb);
    let mut connections: Option<PlayedConnections<W>> = None;
    let mut document = Vec::new();
    let (mut clock, mut unreadable) = (SourceClock::default(), 0);
    let end = loop {
        match read_document(input, DOCUMENT_BYTES, &mut document)? {
            NextDocument::Document => {}
            end => break end,
        }
        if document[4..].starts_with(b"\x10playbackfileversion\0") {
            continue;
        }
        let Some(message) = read_message(&document) else {
            unreadable += 1;
            continue;
        };
        let (begins_ns, at_ns) = clock.take_time(message.at_ns);
        let known = match &mut connections {
            Some(known) => known,
            None => connections.insert(PlayedConnections {
                ordered: OrderedEntries::new(new.begin(&header(begins_ns, limit))?),
                exchanges: ExchangeSettings::new(PairedProtocol::Mongodb, limit),
                open: HashMap::new(),
                next: 0,
            }),
        };
        known.take_message(at_ns, &message)?;
    };
    let Some(mut connections) = connections else { return Err(SourceError::Nothing("messages of MongoDB")) };
    connections.leave_out(reason::UNREADABLE, unreadable);
    clock.note_backward(connections.ordered.writer());
    connections.leave_out(reason::CUT_OFF, u64::from(end == NextDocument::CutOff));
    connections.finish()
}

fn header(begins_ns: u64, value_limit: usize) -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Mongodb,
        source: "mongodb-playback".into(),
        // mongoreplay reads captures, wherever they were made.
        point: RecordingPoint::Unknown,
        begins_ns: Some(begins_ns),
        clock_step_ns: 1_000,
        lacks: Vec::new(),
        value_limit: value_limit as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::recorded;

    /// A message as it goes over the wire: `OP_MSG` with one document.
    fn message(number: i32, answers: i32, document: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let length = 16 + 4 + 1 + document.len() as i32;
        for word in [length, number, answers, 2013, 0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(0);
        out.extend_from_slice(document);
        out
    }

    fn entry(connection: i64, at: (i64, i32), body: &[u8], eof: bool) -> Vec<u8> {
        entry_between(connection, at, body, eof, ("", ""))
    }

    fn entry_between(
        connection: i64,
        (sec, nsec): (i64, i32),
        body: &[u8],
        eof: bool,
        (sender, receiver): (&str, &str),
    ) -> Vec<u8> {
        bson::build_document(|out| {
            bson::put_string(out, "srcendpoint", sender);
            bson::put_string(out, "dstendpoint", receiver);
            let raw = bson::build_document(|out| bson::put_binary(out, "body", body));
            bson::put_document(out, "rawop", &raw);
            let seen = bson::build_document(|out| {
                bson::put_int64(out, "sec", sec + BEFORE_1970_S);
                bson::put_int32(out, "nsec", nsec);
            });
            bson::put_document(out, "seen", &seen);
            bson::put_int64(out, "seenconnectionnum", connection);
            bson::put_boolean(out, "eof", eof);
        })
    }

    fn find() -> Vec<u8> {
        bson::build_document(|out| {
            bson::put_string(out, "find", "c");
            bson::put_string(out, "$db", "d");
        })
    }

    fn found() -> Vec<u8> {
        bson::build_document(|out| {
            let cursor = bson::build_document(|out| {
                bson::put_head(out, kind::ARRAY, "firstBatch");
                let at = bson::open(out);
                bson::put_item_head(out, kind::DOCUMENT, 0);
                let inner = bson::open(out);
                bson::close(out, inner);
                bson::close(out, at);
                bson::put_int64(out, "id", 0);
                bson::put_string(out, "ns", "d.c");
            });
            bson::put_document(out, "cursor", &cursor);
            bson::put_double(out, "ok", 1.0);
        })
    }

    #[test]
    fn messages_are_paired_by_connection() {
        let second = 1_700_000_000;
        let mut file = bson::build_document(|out| bson::put_int32(out, "playbackfileversion", 1));
        assert!(is_playback(&file));
        for part in [
            entry(3, (second, 0), &message(1, 0, &find()), false),
            entry(9, (second, 1_000), &message(1, 0, &find()), false),
            entry(3, (second, 2_000), &message(70, 1, &found()), false),
            entry(9, (second + 1, 0), &message(71, 1, &found())[..30], false),
            entry(3, (second + 2, 0), &[], true),
            bson::build_document(|out| bson::put_int32(out, "other", 1)),
        ] {
            file.extend_from_slice(&part);
        }
        file.extend_from_slice(&[9, 0]);
        let (all, totals, header) = recorded(|new| record_playback(&mut &file[..], new));
        let shown: Vec<_> =
            all.iter().map(|one| (one.at_ns, one.connection, one.arguments.is_named("find"))).collect();
        assert_eq!(shown, [(0, 0, true), (1_000, 1, true)]);
        let reply = all[0].reply.as_ref().unwrap();
        assert_eq!((reply.size, reply.after_ns), (1, Some(2_000)));
        assert_eq!(all[1].reply, None);
        assert_eq!(header.begins_ns, Some(second as u64 * 1_000_000_000));
        let left = |reason: &str| totals.left_out.get(reason).copied();
        assert_eq!(left(reason::SHORTENED), Some(1));
        assert_eq!((left(reason::UNREADABLE), left(reason::CUT_OFF)), (Some(1), Some(1)));
    }

    /// The reply to message 0 says that it answers 0, as a request does.
    #[test]
    fn ends_tell_a_reply_to_message_0_from_a_request() {
        let ends = ("127.0.0.1:50000", "127.0.0.1:27017");
        let file = [
            entry_between(3, (5, 0), &message(0, 0, &find()), false, ends),
            entry_between(3, (5, 900), &message(70, 0, &found()), false, (ends.1, ends.0)),
        ]
        .concat();
        let (all, ..) = recorded(|new| record_playback(&mut &file[..], new));
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].reply.as_ref().unwrap().after_ns, Some(900));
    }

    /// Written by mongoreplay 4.0.9 of a capture of pymongo 3.13 and mongod 3.6.8, whose counters said what is expected here.
    #[test]
    fn a_file_of_mongoreplay_itself() {
        let packed = include_bytes!("../../tests/data/mongoreplay-4.0.playback.gz");
        let mut file = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut file).unwrap();
        assert!(is_playback(&file));
        let (all, totals, _) = recorded(|new| record_playback(&mut &file[..], new));
        let names: Vec<_> =
            all.iter().map(|one| String::from_utf8_lossy(one.arguments.word(0)).into_owned()).collect();
        let expected = [
            "insert",
            "createIndexes",
            "find",
            "getMore",
            "getMore",
            "update",
            "aggregate",
            "insert",
            "delete",
        ];
        assert_eq!(names, expected);
        let sizes: Vec<u64> = all.iter().map(|one| one.reply.as_ref().unwrap().size).collect();
        assert_eq!(sizes[2..5], [4, 4, 2]);
        assert_eq!(all[7].reply.as_ref().unwrap().kind, crate::RecordedKind::Error);
        assert!(
            totals.left_out.contains_key(crate::exchange::reason::SERVER_CHECKS),
            "{:?}",
            totals.left_out
        );
    }

    #[test]
    fn what_holds_no_messages_is_refused() {
        let refused = |file: &[u8]| {
            let mut new = NewRecording::new(None, |header| crate::RecordingWriter::new(Vec::new(), header));
            record_playback(&mut &file[..], &mut new).unwrap_err().to_string()
        };
        assert_eq!(refused(&bson::build_document(|_| {})), "it has no messages of MongoDB");
        assert_eq!(refused(&entry(1, (5, 0), &[], true)), "it has no commands of MongoDB");
        assert!(refused(&[255, 255, 255, 127, 0]).contains("damaged"));
        assert!(!is_playback(b"\x10\0\0\0\x02op\0") && !is_playback(b"{\"op\""));
    }
}
