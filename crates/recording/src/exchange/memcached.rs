//! Pairing for memcached: both text protocols, pipelines, commands without replies.
//!
//! Replies come in the order of their commands. Each is looked at whether its command can get it. A quiet command of the meta
//! protocol is answered only where there is something to tell: what it returns of the command (its key, its opaque value) tells
//! whose reply came.

use super::after_gap::{AfterGap, ProtocolLooks, ReplyGate};
use super::memcached_commands::{CommandReader, is_one_command};
use super::{ExchangeSink, reason};
use crate::credentials::CREDENTIALS;
use crate::entry::{Arguments, Entry, RecordedKind, RecordedReply};
use crate::format::RecordingError;
use dyno_db_memcached::protocol::reply::NotMemcached;
use dyno_db_memcached::protocol::traffic::{
    CommandGroup, ReplyReader, ReplyShape, SkippedReply, is_command_head,
};
use dyno_types::command::ReplyKind;
use std::collections::VecDeque;

/// Commands of a connection that wait for replies at most.
const PENDING: usize = 1 << 20;

/// Longest value that can be a login, bytes.
const LOGIN_BYTES: usize = 512;

/// How memcached's text protocols look.
static LOOKS: ProtocolLooks = ProtocolLooks {
    is_command_head,
    is_one_command,
    begins_reply: |bytes| {
        bytes.first().is_some_and(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    },
};

/// A connection of a client.
pub struct MemcachedExchange {
    connection: u32,
    commands: CommandReader,
    replies: ReplyReader,
    entry: Entry,
    pending: VecDeque<Pending>,
    gate: ReplyGate,
    state: ExchangeState,
    /// The next `set` may be a login: none has come yet, or the server has refused one.
    awaits_login: bool,
    /// A command without a reply was sent since the last that awaits one.
    is_behind_silent: bool,
    counts: ExchangeCounts,
}

enum ExchangeState {
    /// Both directions are understood.
    Paired,
    /// Bytes are missing: nothing is read before the connection is idle.
    Lost(AfterGap),
    /// It shows the server's log: it is of no interest.
    LeftOut,
}

#[derive(Default)]
struct ExchangeCounts {
    gaps: u64,
    lost_bytes: u64,
    left_out: u64,
    unasked: u64,
}

/// A command that waits for its reply.
struct Pending {
    /// `None` for one that is not recorded.
    ticket: Option<u64>,
    at_ns: u64,
    group: CommandGroup,
    keys: usize,
    /// Of a quiet one: what its reply says of it.
    quiet: Option<ReturnedFlags>,
    /// A command that asked for no reply was sent before it: an error may be that one's.
    is_behind_silent: bool,
}

/// Flags that a reply has as they were in the command: `O` and its token, and `k` with the key.
struct ReturnedFlags {
    opaque: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// Whether a reply is that of a quiet command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Yes,
    No,
    /// Nothing tells.
    Maybe,
}

impl Pending {
    /// Returns whether a reply can be its.
    fn claim(&self, reply: &SkippedReply, flags: &ReplyReader) -> Claim {
        let Some(quiet) = &self.quiet else {
            return match self.group.reply_facts(self.keys, reply) {
                Some(_) => Claim::Yes,
                None => Claim::No,
            };
        };
        let is_silent = match (self.group, reply.shape) {
            (_, ReplyShape::Error) => return Claim::Maybe,
            (CommandGroup::MetaGet, shape) => shape == ReplyShape::Miss,
            (CommandGroup::MetaSet, shape) => shape == ReplyShape::Done,
            _ => false,
        };
        if is_silent || self.group.reply_facts(self.keys, reply).is_none() {
            return Claim::No;
        }
        let returned = |mark: u8| {
            let found = flags.meta_flags().find(|flag| flag[0] == mark);
            found.map(|flag| &flag[1..])
        };
        for (own, mark) in [(&quiet.opaque, b'O'), (&quiet.key, b'k')] {
            if let Some(own) = own {
                return if returned(mark) == Some(own.as_slice()) { Claim::Yes } else { Claim::No };
            }
        }
        Claim::Maybe
    }

    /// The reply that it did not get, as far as silence tells.
    fn silent_reply(&self) -> Option<RecordedReply> {
        let kind = match self.group {
            CommandGroup::MetaGet => ReplyKind::Nil,
            CommandGroup::MetaSet => ReplyKind::Status,
            // Done, or nothing found: it says neither.
            _ => return None,
        };
        Some(RecordedReply { kind: RecordedKind::Reply(kind), size: 0, error: String::new(), after_ns: None })
    }
}

impl MemcachedExchange {
    /// A connection with this number. `is_begin`: what comes first are its first bytes; else it is read from its first idle
    /// moment on. Values longer than `value_limit` are not kept.
    pub fn new(connection: u32, value_limit: usize, is_begin: bool) -> Self {
        MemcachedExchange {
            connection,
            commands: CommandReader::new(value_limit),
            replies: ReplyReader::default(),
            entry: Entry::default(),
            pending: VecDeque::new(),
            gate: ReplyGate::default(),
            state: if is_begin { ExchangeState::Paired } else { ExchangeState::Lost(AfterGap::new(&LOOKS)) },
            awaits_login: is_begin,
            is_behind_silent: false,
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
            ExchangeState::Lost(gap) => {
                if !gap.is_idle(at_ns, bytes) {
                    gap.see_request(at_ns, bytes);
                    self.counts.lost_bytes += bytes.len() as u64;
                    return Ok(());
                }
                if !gap.has_rested(at_ns) {
                    self.gate.close();
                }
                self.commands.reset();
                self.replies.reset();
                self.entry.arguments.clear();
                self.state = ExchangeState::Paired;
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
        if let ExchangeState::Lost(gap) = &mut self.state {
            gap.see_reply(at_ns, bytes);
            self.counts.lost_bytes += bytes.len() as u64;
            return Ok(());
        }
        let mut at = 0;
        while matches!(self.state, ExchangeState::Paired) {
            match self.replies.read_reply(bytes, &mut at) {
                Ok(Some(reply)) => self.take_reply(at_ns, &reply, sink)?,
                Ok(None) => break,
                Err(NotMemcached) => {
                    self.lose_track(sink);
                    self.counts.lost_bytes += (bytes.len() - at) as u64;
                }
            }
        }
        if let ExchangeState::Lost(gap) = &mut self.state {
            gap.see_reply(at_ns, bytes);
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
        sink.leave_out(reason::WATCHERS, counts.left_out);
        sink.leave_out(reason::UNASKED_ERRORS, counts.unasked);
        Ok(())
    }

    /// Gives up what waits for a reply, and replies that may belong to other commands.
    fn give_up_all(&mut self, sink: &mut impl ExchangeSink) {
        self.gate.give_up(sink);
        self.pending.drain(..).filter_map(|waits| waits.ticket).for_each(|ticket| sink.give_up(ticket));
    }

    fn lose_track(&mut self, sink: &mut impl ExchangeSink) {
        self.give_up_all(sink);
        self.counts.gaps += u64::from(matches!(self.state, ExchangeState::Paired));
        self.state = ExchangeState::Lost(AfterGap::new(&LOOKS));
    }

    fn take_command(&mut self, at_ns: u64, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        if self.pending.is_empty() {
            self.gate.note_balance(at_ns, sink)?;
        }
        if self.pending.len() >= PENDING {
            self.lose_track(sink);
            return Ok(());
        }
        let arguments = &self.entry.arguments;
        let name = arguments.word(0);
        let group = CommandGroup::of_name(name).unwrap_or(CommandGroup::Line);
        let keys = group.key_count(name, arguments.count());
        let (is_quiet, awaits) = match group {
            CommandGroup::Silent => (false, false),
            group if group.is_meta() => (has_flag(arguments, group, b'q'), true),
            group => (false, !says_noreply(arguments, group)),
        };
        let is_behind_silent = awaits && std::mem::take(&mut self.is_behind_silent);
        self.is_behind_silent |= !awaits;
        let mut waits = Pending { ticket: None, at_ns, group, keys, quiet: None, is_behind_silent };
        if is_quiet {
            waits.quiet = Some(returned_flags(arguments, group));
        }
        let is_set = arguments.word(0) == b"set";
        let is_login = self.awaits_login && is_set && may_be_login(arguments);
        self.awaits_login &= !is_set;
        if is_login || group == CommandGroup::Watch {
            if is_login {
                sink.leave_out(CREDENTIALS, 1);
            }
            self.entry.arguments.clear();
        } else {
            let mut entry = std::mem::replace(&mut self.entry, sink.take_entry());
            self.entry.arguments.clear();
            (entry.at_ns, entry.connection) = (at_ns, self.connection);
            (entry.overlaps, entry.implied, entry.reply) = (!self.pending.is_empty(), false, None);
            waits.ticket = Some(sink.push_command(entry, awaits)?);
        }
        if awaits {
            self.pending.push_back(waits);
        }
        Ok(())
    }

    fn take_reply(
        &mut self,
        at_ns: u64,
        reply: &SkippedReply,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        let refuses_login = [&b"CLIENT_ERROR unauthenticated"[..], b"CLIENT_ERROR authentication failure"];
        self.awaits_login |= refuses_login.iter().any(|words| self.replies.first_line().starts_with(words));
        loop {
            let Some(front) = self.pending.front() else {
                match reply.shape {
                    // To a command that asked for no reply.
                    ReplyShape::Error if !self.gate.is_closed() => self.counts.unasked += 1,
                    _ => self.lose_track(sink),
                }
                return Ok(());
            };
            if reply.shape == ReplyShape::Error && front.is_behind_silent {
                self.lose_track(sink);
                return Ok(());
            }
            let mut claim = front.claim(reply, &self.replies);
            if claim == Claim::Maybe {
                // Those that may be answered before the next that is answered for sure, and that one.
                let loud = self.pending.iter().skip(1).position(|other| other.quiet.is_none());
                let others = self.pending.iter().skip(1).take(loud.map_or(usize::MAX, |place| place + 1));
                let mut others = others.map(|other| other.claim(reply, &self.replies));
                claim = if others.any(|other| other != Claim::No) { Claim::Maybe } else { Claim::Yes };
            }
            match claim {
                Claim::Yes => return self.pair(at_ns, reply, sink),
                Claim::No if front.quiet.is_some() => self.pass_over_silent(at_ns, sink)?,
                Claim::No | Claim::Maybe => {
                    self.lose_track(sink);
                    return Ok(());
                }
            }
        }
    }

    /// The front was answered by silence.
    fn pass_over_silent(&mut self, at_ns: u64, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        let Some(waits) = self.pending.pop_front() else { return Ok(()) };
        let Some(ticket) = waits.ticket else { return Ok(()) };
        match waits.silent_reply() {
            Some(reply) => self.hand_over(at_ns, ticket, reply, sink),
            None => {
                sink.give_up(ticket);
                Ok(())
            }
        }
    }

    fn pair(
        &mut self,
        at_ns: u64,
        reply: &SkippedReply,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        let Some(waits) = self.pending.pop_front() else { return Ok(()) };
        let Some((kind, size)) = waits.group.reply_facts(waits.keys, reply) else { return Ok(()) };
        if waits.group == CommandGroup::Watch && kind.is_some() {
            self.give_up_all(sink);
            self.counts.left_out += 1;
            self.state = ExchangeState::LeftOut;
            return Ok(());
        }
        let Some(ticket) = waits.ticket else { return Ok(()) };
        let error = match kind {
            Some(_) => String::new(),
            None => String::from_utf8_lossy(self.replies.first_word()).into_owned(),
        };
        let reply = RecordedReply {
            kind: kind.map_or(RecordedKind::Error, RecordedKind::Reply),
            size,
            error,
            after_ns: Some(at_ns.saturating_sub(waits.at_ns)),
        };
        self.hand_over(at_ns, ticket, reply, sink)
    }

    fn hand_over(
        &mut self,
        at_ns: u64,
        ticket: u64,
        reply: RecordedReply,
        sink: &mut impl ExchangeSink,
    ) -> Result<(), RecordingError> {
        if !self.gate.push_reply(at_ns, ticket, reply, sink)? {
            self.lose_track(sink);
        }
        Ok(())
    }
}

/// The words of a meta command that are flags.
fn meta_flags(arguments: &Arguments, group: CommandGroup) -> impl Iterator<Item = &[u8]> {
    let first = if group == CommandGroup::MetaNoop { 1 } else { 2 };
    let value = usize::from(group.length_place().is_some());
    (first..arguments.count().saturating_sub(value)).map(|number| arguments.word(number))
}

/// Returns whether a meta command has this flag: the server looks at the first letter alone.
fn has_flag(arguments: &Arguments, group: CommandGroup, flag: u8) -> bool {
    meta_flags(arguments, group).any(|word| word.first() == Some(&flag))
}

fn returned_flags(arguments: &Arguments, group: CommandGroup) -> ReturnedFlags {
    let opaque = meta_flags(arguments, group).find_map(|word| word.strip_prefix(b"O")).map(<[u8]>::to_vec);
    let has_key = arguments.count() > 1 && has_flag(arguments, group, b'k');
    ReturnedFlags { opaque, key: has_key.then(|| arguments.word(1).to_vec()) }
}

/// Returns whether a command of the classic protocol asks for no reply.
fn says_noreply(arguments: &Arguments, group: CommandGroup) -> bool {
    let value = usize::from(group.length_place().is_some());
    let last = arguments.count().checked_sub(1 + value);
    let takes = matches!(
        group,
        CommandGroup::Store
            | CommandGroup::Delete
            | CommandGroup::Count
            | CommandGroup::Touch
            | CommandGroup::Line
    );
    takes && last.is_some_and(|last| last > 0 && arguments.word(last) == b"noreply")
}

/// Returns whether a `set` may be a login: its value is a name and a password, with a space between them.
fn may_be_login(arguments: &Arguments) -> bool {
    let last = arguments.count() - 1;
    let value = arguments.word(last);
    let parts =
        value.iter().position(|byte| *byte == b' ').map(|space| (&value[..space], &value[space + 1..]));
    let is_line = !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    let has_both = parts.is_some_and(|(name, password)| !name.is_empty() && !password.is_empty());
    arguments.long_value(last).is_none() && value.len() <= LOGIN_BYTES && is_line && has_both
}
