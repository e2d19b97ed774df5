//! Pairing for MongoDB and what speaks its wire protocol: OP_MSG, compressed or not, and commands in OP_QUERY.
//!
//! Each reply names the message that it answers, so that replies may come in any order. Where bytes are missing, each direction
//! is read again from the first piece on that begins as a message does: a reply to a command that was not seen names none that
//! waits, and is told from the others.

use super::cursor_links::{CursorLinks, CursorOpener};
use super::mongodb_commands::{CommandParts, CommandRole};
use super::mongodb_reader::{FoundMessage, MessageReader, Sender, is_message_head};
use super::{ExchangeSink, Unreadable, reason};
use crate::credentials::{CREDENTIALS, Credentials, of_command};
use crate::entry::{RecordedKind, RecordedReply};
use crate::format::RecordingError;
use crate::protocol::RecordedProtocol;
use dyno_db_mongodb::protocol::compress::Codec;
use dyno_db_mongodb::protocol::message::{
    HEADER, Header, MORE_TO_COME, QUERY_EXHAUST, code, read_document, read_parts, read_query,
};
use dyno_db_mongodb::protocol::recorded_reply::classify_reply;
use dyno_types::bson;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use super::mongodb_reader::is_request_head;

/// Commands of a connection that wait for replies at most.
const PENDING: usize = 1 << 20;

/// Memory that is kept for the next message that is compressed, bytes.
const KEPT_BYTES: usize = 1 << 20;

/// What all connections of a recording share: cursors, which are used on any of them, and contexts that are too large for each.
pub struct MongodbShared {
    links: CursorLinks,
    codec: Codec,
    expanded: Vec<u8>,
}

impl Default for MongodbShared {
    fn default() -> Self {
        // The level is that of a compression which never takes place.
        MongodbShared { links: CursorLinks::default(), codec: Codec::new(-1), expanded: Vec::new() }
    }
}

/// A connection of a client.
pub struct MongodbExchange {
    connection: u32,
    value_limit: usize,
    shared: Arc<Mutex<MongodbShared>>,
    /// What the client sends, and what the server sends.
    client: Direction,
    server: Direction,
    pending: HashMap<i32, Pending>,
    /// Entries of this connection so far.
    entries: u64,
    is_left_out: bool,
    counts: ExchangeCounts,
}

struct Direction {
    reader: MessageReader,
    /// False while it is not known where its messages begin.
    is_read: bool,
}

/// A command that waits for its reply.
struct Pending {
    /// `None` for one that is not recorded.
    entry: Option<PendingEntry>,
    role: CommandRole,
}

struct PendingEntry {
    ticket: u64,
    at_ns: u64,
    /// It and its number, should it open a cursor.
    opener: CursorOpener,
}

#[derive(Default)]
struct ExchangeCounts {
    gaps: u64,
    lost_bytes: u64,
    server_checks: u64,
    legacy: u64,
    too_long: u64,
    unawaited: u64,
    unread_replies: u64,
    unasked: u64,
}

/// A message with its body, which was compressed or not.
struct Message<'a> {
    header: Header,
    code: i32,
    body: &'a [u8],
}

impl MongodbExchange {
    /// A connection with this number. `is_begin`: what comes first are its first bytes; else it is read from the first piece on
    /// that begins as a message does. Bodies longer than `value_limit` are not kept.
    pub fn new(
        connection: u32,
        value_limit: usize,
        is_begin: bool,
        shared: Arc<Mutex<MongodbShared>>,
    ) -> Self {
        let direction = |sender| Direction { reader: MessageReader::new(sender), is_read: is_begin };
        MongodbExchange {
            connection,
            value_limit,
            shared,
            client: direction(Sender::Client),
            server: direction(Sender::Server),
            pending: HashMap::new(),
            entries: 0,
            is_left_out: false,
            counts: ExchangeCounts::default(),
        }
    }

    /// Takes bytes of the client's, which came at a time, nanoseconds.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn feed_request(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        self.feed(Sender::Client, at_ns, bytes, sink)
    }

    /// Takes bytes of the server's.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn feed_reply(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        self.feed(Sender::Server, at_ns, bytes, sink)
    }

    fn direction(&mut self, sender: Sender) -> &mut Direction {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }

    fn feed(
        &mut self,
        sender: Sender,
        at_ns: u64,
        bytes: &[u8],
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        if self.is_left_out || bytes.is_empty() {
            return Ok(());
        }
        let direction = self.direction(sender);
        if !direction.is_read {
            if !is_message_head(sender, bytes) {
                self.counts.lost_bytes += bytes.len() as u64;
                return Ok(());
            }
            direction.is_read = true;
            direction.reader.reset();
        }
        let shared = self.shared.clone();
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        while !self.is_left_out {
            let direction = self.direction(sender);
            let taken = match direction.reader.read_message(bytes, &mut at) {
                Ok(None) => return Ok(()),
                Ok(Some(FoundMessage::Here(header, body))) => {
                    self.take_message(sender, at_ns, header, &bytes[body], &mut shared, sink)
                }
                Ok(Some(FoundMessage::Held(header))) => {
                    let held = direction.reader.take_held();
                    let taken = self.take_message(sender, at_ns, header, &held[HEADER..], &mut shared, sink);
                    self.direction(sender).reader.give_back(held);
                    taken
                }
                Ok(Some(FoundMessage::TooLong(header))) => {
                    self.skip_message(sender, header, sink);
                    continue;
                }
                Err(Unreadable) => Err(Failure::Unreadable),
            };
            match taken {
                Ok(()) => {}
                Err(Failure::Recording(error)) => return Err(error),
                Err(Failure::Unreadable) => {
                    self.lose_track(sink);
                    self.counts.lost_bytes += (bytes.len() - at) as u64;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Bytes are missing in either direction.
    pub fn note_gap(&mut self, sink: &mut impl ExchangeSink) {
        if !self.is_left_out {
            self.lose_track(sink);
        }
    }

    /// The connection has ended, or the recording does: hands over its counts.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(&mut self, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        self.give_up_all(sink);
        let counts = std::mem::take(&mut self.counts);
        for (name, count) in [
            (reason::GAPS, counts.gaps),
            (reason::BYTES_AFTER_MONGODB_GAPS, counts.lost_bytes),
            (reason::SERVER_CHECKS, counts.server_checks),
            (reason::LEGACY, counts.legacy),
            (reason::TOO_LONG, counts.too_long),
            (reason::UNAWAITED, counts.unawaited),
            (reason::UNREAD_REPLIES, counts.unread_replies),
            (reason::UNASKED_STREAMS, counts.unasked),
        ] {
            sink.leave_out(name, count);
        }
        Ok(())
    }

    /// Returns whether everything that came was understood, and no reply is awaited.
    pub fn is_idle(&self) -> bool {
        let is_between = |one: &Direction| one.is_read && one.reader.is_between_messages();
        self.pending.is_empty() && is_between(&self.client) && is_between(&self.server)
    }

    fn give_up_all(&mut self, sink: &mut impl ExchangeSink) {
        self.pending.drain().filter_map(|(_, waits)| waits.entry).for_each(|one| sink.give_up(one.ticket));
    }

    fn lose_track(&mut self, sink: &mut impl ExchangeSink) {
        self.give_up_all(sink);
        self.counts.gaps += u64::from(self.client.is_read || self.server.is_read);
        for direction in [&mut self.client, &mut self.server] {
            direction.reader.reset();
            direction.is_read = false;
        }
    }

    /// Its server goes on unasked: requests and replies are no pairs any more.
    fn leave_out_all(&mut self, sink: &mut impl ExchangeSink) {
        self.give_up_all(sink);
        self.client.reader.reset();
        self.server.reader.reset();
        self.counts.unasked += 1;
        self.is_left_out = true;
    }

    /// A message is longer than any may be.
    fn skip_message(&mut self, sender: Sender, header: Header, sink: &mut impl ExchangeSink) {
        self.counts.too_long += 1;
        if sender == Sender::Server
            && let Some(entry) = self.pending.remove(&header.to).and_then(|waits| waits.entry)
        {
            sink.give_up(entry.ticket);
        }
    }

    fn take_message(
        &mut self,
        sender: Sender,
        at_ns: u64,
        header: Header,
        body: &[u8],
        shared: &mut MongodbShared,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), Failure> {
        if header.code != code::COMPRESSED {
            let message = Message { header, code: header.code, body };
            return self.take_plain(sender, at_ns, &message, &mut shared.links, sink);
        }
        let mut expanded = std::mem::take(&mut shared.expanded);
        let code = shared.codec.expand_body(header, body, &mut expanded).map_err(|_| Failure::Unreadable)?;
        let message = Message { header, code, body: &expanded };
        let taken = self.take_plain(sender, at_ns, &message, &mut shared.links, sink);
        if expanded.capacity() <= KEPT_BYTES {
            shared.expanded = expanded;
        }
        taken
    }

    fn take_plain(
        &mut self,
        sender: Sender,
        at_ns: u64,
        message: &Message<'_>,
        links: &mut CursorLinks,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), Failure> {
        match sender {
            Sender::Client => self.take_request(at_ns, message, links, sink),
            Sender::Server => self.take_reply(at_ns, message, links, sink),
        }
    }

    fn take_request(
        &mut self,
        at_ns: u64,
        message: &Message<'_>,
        links: &mut CursorLinks,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), Failure> {
        match message.code {
            code::MSG => {
                let parts = read_parts(message.body).map_err(|_| Unreadable)?;
                let awaits = parts.flags & MORE_TO_COME == 0;
                self.take_command(at_ns, message, &CommandParts::of_message(parts), awaits, links, sink)
            }
            code::QUERY => {
                let query = read_query(message.body).map_err(|_| Unreadable)?;
                if query.flags as u32 & QUERY_EXHAUST != 0 {
                    self.leave_out_all(sink);
                    return Ok(());
                }
                match CommandParts::of_query(&query) {
                    Some(parts) => self.take_command(at_ns, message, &parts, true, links, sink),
                    None => self.take_legacy(message, true, sink),
                }
            }
            code::GET_MORE | code::COMMAND => self.take_legacy(message, true, sink),
            code::UPDATE | code::INSERT | code::DELETE | code::KILL_CURSORS => {
                self.take_legacy(message, false, sink)
            }
            _ => Err(Failure::Unreadable),
        }
    }

    /// An operation of a driver from before MongoDB 3.6.
    fn take_legacy(
        &mut self,
        message: &Message<'_>,
        awaits: bool,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), Failure> {
        self.counts.legacy += 1;
        if awaits {
            self.await_reply(message.header.id, None, CommandRole::Other, sink);
        }
        Ok(())
    }

    fn await_reply(
        &mut self,
        id: i32,
        entry: Option<PendingEntry>,
        role: CommandRole,
        sink: &mut impl ExchangeSink,
    ) {
        // A number that is used again while it waits.
        let before = self.pending.insert(id, Pending { entry, role });
        if let Some(entry) = before.and_then(|before| before.entry) {
            sink.give_up(entry.ticket);
        }
        if self.pending.len() > PENDING {
            self.lose_track(sink);
        }
    }

    fn take_command(
        &mut self,
        at_ns: u64,
        message: &Message<'_>,
        parts: &CommandParts<'_>,
        awaits: bool,
        links: &mut CursorLinks,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), Failure> {
        let role = CommandRole::of_name(parts.command_name()?);
        if role == CommandRole::ServerCheck {
            self.counts.server_checks += 1;
            if awaits {
                self.await_reply(message.header.id, None, role, sink);
            }
            return Ok(());
        }
        let mut entry = sink.take_entry();
        entry.arguments.clear();
        let opener = parts.find_opener(role, links);
        parts.put_words(opener, self.value_limit, &mut entry.arguments)?;
        if of_command(RecordedProtocol::Mongodb, &entry.arguments) != Credentials::None {
            sink.leave_out(CREDENTIALS, 1);
            if awaits {
                self.await_reply(message.header.id, None, CommandRole::Other, sink);
            }
            return Ok(());
        }
        (entry.at_ns, entry.connection) = (at_ns, self.connection);
        (entry.overlaps, entry.implied, entry.reply) = (!self.pending.is_empty(), false, None);
        let ticket = sink.push_command(entry, awaits).map_err(Failure::Recording)?;
        let opener = CursorOpener { connection: self.connection, command: self.entries };
        self.entries += 1;
        if awaits {
            let waits = PendingEntry { ticket, at_ns, opener };
            self.await_reply(message.header.id, Some(waits), role, sink);
        }
        Ok(())
    }

    fn take_reply(
        &mut self,
        at_ns: u64,
        message: &Message<'_>,
        links: &mut CursorLinks,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), Failure> {
        let (document, is_divided) = match message.code {
            code::MSG => {
                let parts = read_parts(message.body).map_err(|_| Unreadable)?;
                if parts.flags & MORE_TO_COME != 0 {
                    self.leave_out_all(sink);
                    return Ok(());
                }
                (parts.document, !parts.sequences.is_empty())
            }
            code::REPLY => (read_document(code::REPLY, message.body).unwrap_or_default(), false),
            code::COMMAND_REPLY => (&[][..], false),
            _ => return Err(Failure::Unreadable),
        };
        let Some(waits) = self.pending.remove(&message.header.to) else {
            self.counts.unawaited += 1;
            return Ok(());
        };
        let Some(entry) = waits.entry else {
            if waits.role == CommandRole::ServerCheck && names_hosts(document) {
                sink.note_other_servers();
            }
            return Ok(());
        };
        // A batch outside of its reply's document: servers do so among themselves only.
        if is_divided {
            self.counts.unread_replies += 1;
            sink.give_up(entry.ticket);
            return Ok(());
        }
        let Ok(class) = classify_reply(document) else {
            sink.give_up(entry.ticket);
            return Err(Failure::Unreadable);
        };
        // The rest of a cursor belongs to the command that has opened it.
        if let Some(cursor) = class.cursor.filter(|id| *id != 0 && waits.role != CommandRole::GetMore) {
            links.note_opened(cursor, entry.opener);
        }
        let reply = RecordedReply {
            kind: class.kind.map_or(RecordedKind::Error, RecordedKind::Reply),
            size: class.size,
            error: class.error.into_owned(),
            after_ns: Some(at_ns.saturating_sub(entry.at_ns)),
        };
        sink.push_reply(entry.ticket, reply).map_err(Failure::Recording)
    }
}

/// Returns whether a server's answer about itself names members of a replica set.
fn names_hosts(document: &[u8]) -> bool {
    let hosts = bson::find_element(document, "hosts").and_then(|hosts| hosts.as_document());
    hosts.is_some_and(|hosts| hosts.len() > 5)
}

/// Why a message is not taken.
enum Failure {
    Unreadable,
    Recording(RecordingError),
}

impl From<Unreadable> for Failure {
    fn from(_: Unreadable) -> Self {
        Failure::Unreadable
    }
}
