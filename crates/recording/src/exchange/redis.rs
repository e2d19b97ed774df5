//! Pairing for Redis and its kin: RESP 2 and 3, inline commands, pipelines, transactions, subscriptions.
//!
//! Replies come in the order of their commands. What comes beside them is told apart: messages of RESP 3 by their mark, those of
//! RESP 2 because a connection that has subscribed gets arrays only as messages.

use super::after_gap::{AfterGap, ProtocolLooks, ReplyGate};
use super::redis_commands::CommandReader;
use super::redis_replies::{Frame, FrameRole, ReplyReader};
use super::{ExchangeSink, reason};
use crate::entry::{Arguments, Entry, RecordedKind, RecordedReply};
use crate::format::RecordingError;
use dyno_db_redis::protocol::resp;
use dyno_types::command::ReplyKind;
use std::collections::VecDeque;

/// Commands of a connection that wait for replies at most.
const PENDING: usize = 1 << 20;

/// A connection of a client.
pub struct RedisExchange {
    connection: u32,
    commands: CommandReader,
    replies: ReplyReader,
    entry: Entry,
    pending: VecDeque<Pending>,
    gate: ReplyGate,
    state: ExchangeState,
    /// Channels and patterns that RESP 2 is subscribed to, and shards' channels.
    subscribed: (i64, i64),
    /// False after CLIENT REPLY OFF.
    replies_on: bool,
    /// True after CLIENT REPLY SKIP: the next command gets no reply.
    skips_next: bool,
    in_transaction: bool,
    counts: ExchangeCounts,
}

/// A command that waits for its reply.
struct Pending {
    /// `None` for one that is not recorded.
    ticket: Option<u64>,
    at_ns: u64,
    role: CommandRole,
    /// Confirmations that are still to come, of a subscription.
    confirmations: usize,
}

/// Commands that change how a connection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandRole {
    Other,
    /// SUBSCRIBE and its kin.
    Subscription(&'static str),
    Reset,
    /// MULTI, outside of a transaction.
    Multi,
    /// What makes the connection a replica's, or shows all commands.
    Replication,
}

/// Messages about channels.
const SUBSCRIPTIONS: [&str; 6] =
    ["subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe"];
const MESSAGES: [&str; 3] = ["message", "pmessage", "smessage"];

enum ExchangeState {
    /// Both directions are understood.
    Paired,
    /// Bytes are missing: nothing is read before the connection is idle.
    Lost {
        gap: AfterGap,
        /// Messages of RESP 2 were among what came.
        is_subscribed: bool,
    },
    /// A replica's, or one of MONITOR: it is of no interest.
    LeftOut,
}

#[derive(Default)]
struct ExchangeCounts {
    gaps: u64,
    lost_bytes: u64,
    left_out: u64,
    refused: u64,
    pushes: u64,
    unasked: u64,
}

impl RedisExchange {
    /// A connection with this number. `is_begin`: what comes first are its first bytes; else it is read from its first idle
    /// moment on. Values longer than `value_limit` are not kept.
    pub fn new(connection: u32, value_limit: usize, is_begin: bool) -> Self {
        let state = match is_begin {
            true => ExchangeState::Paired,
            false => ExchangeState::Lost { gap: AfterGap::new(&LOOKS), is_subscribed: false },
        };
        RedisExchange {
            connection,
            commands: CommandReader::new(value_limit),
            replies: ReplyReader::default(),
            entry: Entry::default(),
            pending: VecDeque::new(),
            gate: ReplyGate::default(),
            state,
            subscribed: (0, 0),
            replies_on: true,
            skips_next: false,
            in_transaction: false,
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
        match &mut self.state {
            ExchangeState::Paired => {}
            ExchangeState::LeftOut => return Ok(()),
            ExchangeState::Lost { gap, is_subscribed } => {
                if !gap.is_idle(at_ns, bytes) {
                    gap.see_request(at_ns, bytes);
                    self.counts.lost_bytes += bytes.len() as u64;
                    return Ok(());
                }
                let (is_subscribed, is_certain) = (*is_subscribed, gap.has_rested(at_ns));
                self.resume(is_subscribed, is_certain);
            }
        }
        let mut at = 0;
        while matches!(self.state, ExchangeState::Paired) {
            match self.commands.read_command(bytes, &mut at, &mut self.entry.arguments) {
                Ok(true) => self.take_command(at_ns, sink)?,
                Ok(false) => break,
                Err(_) => {
                    self.lose_track(sink);
                    self.counts.lost_bytes += (bytes.len() - at) as u64;
                }
            }
        }
        Ok(())
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
        match &mut self.state {
            ExchangeState::Paired => {}
            ExchangeState::LeftOut => return Ok(()),
            ExchangeState::Lost { gap, is_subscribed } => {
                gap.see_reply(at_ns, bytes);
                *is_subscribed |= begins_message(bytes);
                self.counts.lost_bytes += bytes.len() as u64;
                return Ok(());
            }
        }
        let mut at = 0;
        while matches!(self.state, ExchangeState::Paired) {
            match self.replies.read_frame(bytes, &mut at) {
                Ok(Some(frame)) => self.take_frame(at_ns, &frame, sink)?,
                Ok(None) => break,
                // Data for a replica are no reply.
                Err(_)
                    if self.pending.front().is_some_and(|front| front.role == CommandRole::Replication) =>
                {
                    self.leave_out_all(sink);
                }
                Err(_) => {
                    self.lose_track(sink);
                    self.counts.lost_bytes += (bytes.len() - at) as u64;
                }
            }
        }
        if let ExchangeState::Lost { gap, is_subscribed } = &mut self.state {
            gap.see_reply(at_ns, bytes);
            *is_subscribed |= begins_message(bytes);
        }
        Ok(())
    }

    /// Bytes are missing in either direction: the connection is read again from its next idle moment on.
    pub fn note_gap(&mut self, sink: &mut impl ExchangeSink) {
        if !matches!(self.state, ExchangeState::LeftOut) {
            self.lose_track(sink);
        }
    }

    /// The connection has ended, or the recording does: hands over its counts.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(&mut self, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        if self.pending.is_empty() {
            self.gate.open(sink)?;
        }
        self.give_up_all(sink);
        let counts = std::mem::take(&mut self.counts);
        sink.leave_out(reason::GAPS, counts.gaps);
        sink.leave_out(reason::BYTES_AFTER_GAPS, counts.lost_bytes);
        sink.leave_out(reason::REPLICATION, counts.left_out);
        sink.leave_out(reason::REFUSED_REPLICATION, counts.refused);
        sink.leave_out(reason::PUSHES, counts.pushes);
        sink.leave_out(reason::UNASKED_ERRORS, counts.unasked);
        Ok(())
    }

    /// Returns whether everything that came was understood, and no reply is awaited.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, ExchangeState::Paired)
            && self.pending.is_empty()
            && self.commands.is_between_commands()
            && self.replies.is_between_replies()
    }

    fn resume(&mut self, is_subscribed: bool, is_certain: bool) {
        self.commands.reset();
        self.replies.reset();
        self.entry.arguments.clear();
        self.subscribed = (i64::from(is_subscribed), 0);
        (self.replies_on, self.skips_next, self.in_transaction) = (true, false, false);
        if !is_certain {
            self.gate.close();
        }
        self.state = ExchangeState::Paired;
    }

    /// Gives up what waits for a reply, and replies that may belong to other commands.
    fn give_up_all(&mut self, sink: &mut impl ExchangeSink) {
        self.gate.give_up(sink);
        self.pending.drain(..).filter_map(|waits| waits.ticket).for_each(|ticket| sink.give_up(ticket));
    }

    /// It is a replica's, or shows all commands.
    fn leave_out_all(&mut self, sink: &mut impl ExchangeSink) {
        self.give_up_all(sink);
        self.counts.left_out += 1;
        self.state = ExchangeState::LeftOut;
    }

    fn lose_track(&mut self, sink: &mut impl ExchangeSink) {
        self.give_up_all(sink);
        self.counts.gaps += u64::from(matches!(self.state, ExchangeState::Paired));
        self.state =
            ExchangeState::Lost { gap: AfterGap::new(&LOOKS), is_subscribed: self.subscribed != (0, 0) };
    }

    fn take_command(&mut self, at_ns: u64, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        if self.pending.is_empty() {
            self.gate.note_balance(at_ns, sink)?;
        }
        let arguments = &self.entry.arguments;
        let mut role = command_role(arguments);
        if !self.in_transaction && is_replication(arguments) {
            role = CommandRole::Replication;
        } else if !self.in_transaction && arguments.is_named("MULTI") {
            role = CommandRole::Multi;
        }
        let confirmations = arguments.count().saturating_sub(1).max(1);
        let mut awaits = self.replies_on && !std::mem::take(&mut self.skips_next);
        self.in_transaction = match self.in_transaction {
            false => arguments.is_named("MULTI"),
            true => !arguments.is_one_of(&["EXEC", "DISCARD", "RESET"]),
        };
        if !self.in_transaction && arguments.count() == 3 && arguments.is_named("CLIENT") {
            let is = |number: usize, text: &str| arguments.word(number).eq_ignore_ascii_case(text.as_bytes());
            match is(1, "REPLY") {
                true if is(2, "OFF") => (self.replies_on, awaits) = (false, false),
                true if is(2, "ON") => (self.replies_on, awaits) = (true, true),
                true if is(2, "SKIP") => (self.skips_next, awaits) = (self.replies_on, false),
                _ => {}
            }
        }
        if self.pending.len() >= PENDING {
            self.lose_track(sink);
            return Ok(());
        }
        if role == CommandRole::Replication {
            // It is not recorded: what matters is whether the server takes it.
            self.entry.arguments.clear();
            match awaits {
                true => self.pending.push_back(Pending { ticket: None, at_ns, role, confirmations }),
                false => self.leave_out_all(sink),
            }
            return Ok(());
        }
        let mut entry = std::mem::replace(&mut self.entry, sink.take_entry());
        self.entry.arguments.clear();
        (entry.at_ns, entry.connection) = (at_ns, self.connection);
        (entry.overlaps, entry.implied, entry.reply) = (!self.pending.is_empty(), false, None);
        let ticket = sink.push_command(entry, awaits)?;
        if awaits {
            self.pending.push_back(Pending { ticket: Some(ticket), at_ns, role, confirmations });
        } else if role == CommandRole::Reset {
            self.reset_connection();
        }
        Ok(())
    }

    fn reset_connection(&mut self) {
        self.subscribed = (0, 0);
        (self.replies_on, self.skips_next) = (true, false);
    }

    fn take_frame(
        &mut self,
        at_ns: u64,
        frame: &Frame,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        let front = self.pending.front_mut();
        let subscribes = front
            .as_ref()
            .is_some_and(|front| matches!(front.role, CommandRole::Subscription(_) | CommandRole::Reset));
        let is_array = frame.kind == RecordedKind::Reply(ReplyKind::Array);
        let is_push = frame.role == FrameRole::Push;
        if is_push || is_array && (subscribes || self.subscribed != (0, 0)) {
            let is = |name: &&str| frame.first_text() == name.as_bytes();
            let confirms = SUBSCRIPTIONS.iter().find(|name| is(name));
            if let Some(name) = confirms {
                if !is_push {
                    let of_shards = name.starts_with('s') && *name != "subscribe";
                    let count = if of_shards { &mut self.subscribed.1 } else { &mut self.subscribed.0 };
                    *count = frame.number;
                }
                if let Some(front) = front.filter(|front| front.role == CommandRole::Subscription(name)) {
                    front.confirmations -= 1;
                    if front.confirmations > 0 {
                        return Ok(());
                    }
                    return self.pair(at_ns, frame, sink);
                }
            }
            if confirms.is_some() || is_push || MESSAGES.iter().any(&is) {
                self.counts.pushes += 1;
                return Ok(());
            }
        }
        if self.pending.is_empty() {
            if frame.kind == RecordedKind::Error && !self.gate.is_closed() {
                self.counts.unasked += 1;
            } else if is_array && MESSAGES.iter().any(|name| frame.first_text() == name.as_bytes()) {
                // It had subscribed before it was seen.
                self.subscribed.0 = 1;
                self.counts.pushes += 1;
            } else {
                // Replies were under way when it was read again: none since then is where it belongs.
                self.lose_track(sink);
            }
            return Ok(());
        }
        self.pair(at_ns, frame, sink)
    }

    fn pair(
        &mut self,
        at_ns: u64,
        frame: &Frame,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        let Some(waits) = self.pending.pop_front() else { return Ok(()) };
        let is_error = frame.kind == RecordedKind::Error;
        if waits.role == CommandRole::Reset && !is_error {
            self.reset_connection();
        }
        if waits.role == CommandRole::Multi && is_error {
            // No transaction has begun, unless a later MULTI begins one.
            self.in_transaction &= self.pending.iter().any(|other| other.role == CommandRole::Multi);
        }
        let Some(ticket) = waits.ticket else {
            match is_error {
                true => self.counts.refused += 1,
                false => self.leave_out_all(sink),
            }
            return Ok(());
        };
        let reply = RecordedReply {
            kind: frame.kind,
            size: frame.size,
            error: if is_error { frame.error_class() } else { String::new() },
            after_ns: Some(at_ns.saturating_sub(waits.at_ns)),
        };
        if !self.gate.push_reply(at_ns, ticket, reply, sink)? {
            self.lose_track(sink);
        }
        Ok(())
    }
}

/// How RESP looks.
static LOOKS: ProtocolLooks = ProtocolLooks {
    is_command_head,
    is_one_command: |bytes| is_command_head(bytes) && resp::skip_reply(bytes, 0) == Ok(Some(bytes.len())),
    begins_reply: |bytes| bytes.first().is_some_and(|mark| b"+-:$*_,#(!=%~>|".contains(mark)),
};

/// Returns whether bytes of a server's are a message of RESP 2: its client has subscribed.
fn begins_message(bytes: &[u8]) -> bool {
    [&b"*3\r\n$7\r\nmessage\r\n"[..], b"*4\r\n$8\r\npmessage\r\n", b"*3\r\n$8\r\nsmessage\r\n"]
        .iter()
        .any(|head| bytes.starts_with(head))
}

/// Returns whether bytes begin as a command of RESP does: `*3`, then `$`.
pub fn is_command_head(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"*") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let follows = |expected: &[u8]| rest[digits..].iter().zip(expected).all(|(byte, wanted)| byte == wanted);
    (1..=8).contains(&digits) && rest[0] != b'0' && follows(b"\r\n$")
}

/// Commands after which a connection is a replica's, or shows all commands.
fn is_replication(arguments: &Arguments) -> bool {
    arguments.is_one_of(&["SYNC", "PSYNC", "REPLCONF", "MONITOR"])
}

fn command_role(arguments: &Arguments) -> CommandRole {
    let name = if arguments.is_empty() { &[] } else { arguments.word(0) };
    if !(5..=12).contains(&name.len()) {
        return CommandRole::Other;
    }
    if name.eq_ignore_ascii_case(b"RESET") {
        return CommandRole::Reset;
    }
    let found = SUBSCRIPTIONS.iter().find(|one| name.eq_ignore_ascii_case(one.as_bytes()));
    found.map_or(CommandRole::Other, |name| CommandRole::Subscription(name))
}
