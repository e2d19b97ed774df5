//! Requests and replies of a connection, paired: from the bytes of both directions to commands with their replies.
//!
//! Bytes come as a proxy or a capture sees them, cut anywhere. Nothing is held but the command that is being read (of MongoDB the
//! message, either way): replies of Redis and memcached are skipped, and values above the limit are hashed as they pass.

mod after_gap;
mod any_exchange;
mod cursor_links;
mod inline_command;
pub mod memcached;
mod memcached_commands;
pub mod mongodb;
mod mongodb_commands;
mod mongodb_reader;
mod number;
pub mod redis;
mod redis_commands;
mod redis_replies;

pub use after_gap::{IDLE_NS, REST_NS};
pub use any_exchange::{Exchange, ExchangeSettings, PairedProtocol};
pub(crate) use cursor_links::{CursorLinks, CursorOpener};
pub(crate) use inline_command::read_inline;
pub(crate) use mongodb_commands::{CommandRole, put_opener};

use crate::entry::{Entry, RecordedReply};
use crate::format::{OrderedEntries, RecordingError};
use std::io::Write;

/// Reasons for which something that was seen is not in a recording.
pub mod reason {
    /// Parts of a connection's bytes are missing, or cannot be understood.
    pub const GAPS: &str = "gaps in connections";
    /// What came between a gap and the moment from which the connection is read again.
    pub const BYTES_AFTER_GAPS: &str = "bytes between a gap and the next idle moment of a connection";
    /// Connections that carry no commands of clients.
    pub const REPLICATION: &str = "connections of replicas and of MONITOR";
    /// Commands that would have made a connection one of those.
    pub const REFUSED_REPLICATION: &str = "commands of replicas and MONITOR that the server has refused";
    /// Published messages, invalidations and the like.
    pub const PUSHES: &str = "messages that no command has asked for";
    /// Connections of memcached that show its log.
    pub const WATCHERS: &str = "connections of watch";
    /// Errors that a server sends of its own.
    pub const UNASKED_ERRORS: &str = "errors that no command has asked for";
    /// What came of a connection of MongoDB between a gap and the next piece that begins as a message does.
    pub const BYTES_AFTER_MONGODB_GAPS: &str = "bytes between a gap and the next begin of a message";
    /// Questions of MongoDB's drivers.
    pub const SERVER_CHECKS: &str = "checks of the server (hello, isMaster)";
    /// Operations of MongoDB's wire protocol before OP_MSG, but for commands.
    pub const LEGACY: &str =
        "operations of drivers from before MongoDB 3.6 (OP_QUERY, OP_INSERT and the like)";
    /// Messages above the bound of the protocol.
    pub const TOO_LONG: &str = "messages longer than MongoDB allows";
    /// Replies to what was not seen.
    pub const UNAWAITED: &str = "replies to commands that were not seen, or not kept";
    /// Replies that are not in one document.
    pub const UNREAD_REPLIES: &str = "replies whose batch is outside of their document";
    /// Connections on which one question has many answers.
    pub const UNASKED_STREAMS: &str = "connections of exhaust cursors and of hello that goes on by itself";
}

/// Place that commands and replies go to.
pub trait ExchangeSink {
    /// An entry to be filled.
    fn take_entry(&mut self) -> Entry;

    /// A command was sent; `awaits`: a reply to it is expected. Returns the ticket of its reply.
    ///
    /// # Errors
    /// The recording cannot be written.
    fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError>;

    /// The reply to the command with this ticket has come.
    ///
    /// # Errors
    /// The recording cannot be written.
    fn push_reply(&mut self, ticket: u64, reply: RecordedReply) -> Result<(), RecordingError>;

    /// There will be no reply to the command with this ticket.
    fn give_up(&mut self, ticket: u64);

    /// Counts what was seen and cannot be recorded.
    fn leave_out(&mut self, reason: &str, count: u64);

    /// A reply has named other servers, to which the client may go.
    fn note_other_servers(&mut self) {}
}

impl<W: Write> ExchangeSink for OrderedEntries<W> {
    fn take_entry(&mut self) -> Entry {
        self.take_spare()
    }

    fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError> {
        OrderedEntries::push_command(self, entry, awaits)
    }

    fn push_reply(&mut self, ticket: u64, reply: RecordedReply) -> Result<(), RecordingError> {
        OrderedEntries::push_reply(self, ticket, reply)
    }

    fn give_up(&mut self, ticket: u64) {
        OrderedEntries::give_up(self, ticket);
    }

    fn leave_out(&mut self, reason: &str, count: u64) {
        self.writer().leave_out(reason, count);
    }
}

/// The bytes are not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

#[cfg(test)]
mod memcached_tests;
#[cfg(test)]
mod mongodb_tests;
#[cfg(test)]
mod redis_tests;
