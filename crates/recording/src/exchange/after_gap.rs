//! Connections whose commands are answered in their order, from a gap in their bytes on: when they can be read again, and whether
//! the replies that come then belong to the commands that were seen.

use super::ExchangeSink;
use crate::entry::RecordedReply;
use crate::format::RecordingError;

/// Time without a byte in either direction after which a connection counts as idle, nanoseconds.
pub const IDLE_NS: u64 = 20_000_000;

/// Time without a byte after which nothing is under way, nanoseconds: then no count is needed.
pub const REST_NS: u64 = 1_000_000_000;

/// Times that one command and its reply have followed each other, after which nothing else can be under way.
const ALTERNATIONS: u32 = 16;

/// Replies that are held back after a gap at most.
const TRIAL_REPLIES: usize = 10_000;

/// Commands that were sent after all before them were answered, after which the count of what is under way is believed.
const BALANCED: u32 = 256;

/// How the bytes of a protocol look.
pub(super) struct ProtocolLooks {
    /// Bytes begin as a command does.
    pub is_command_head: fn(&[u8]) -> bool,
    /// Bytes are one whole command.
    pub is_one_command: fn(&[u8]) -> bool,
    /// Bytes begin as a reply does.
    pub begins_reply: fn(&[u8]) -> bool,
}

/// What was seen since bytes were missing.
pub(super) struct AfterGap {
    looks: &'static ProtocolLooks,
    seen_ns: u64,
    turn: Turn,
    /// Exchanges of one command and one reply, without anything else.
    alternations: u32,
}

/// Who has sent last.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Unknown,
    /// The client; true if it was one whole command.
    Client(bool),
    /// The server; true if the last bytes were an end of line.
    Server { ends: bool },
}

impl AfterGap {
    /// Of a protocol that looks so.
    pub fn new(looks: &'static ProtocolLooks) -> Self {
        AfterGap { looks, seen_ns: 0, turn: Turn::default(), alternations: 0 }
    }

    /// Returns whether a client that sends `bytes` now begins with a command after everything before it was answered.
    pub fn is_idle(&self, now_ns: u64, bytes: &[u8]) -> bool {
        let is_answered = matches!(self.turn, Turn::Server { ends: true });
        let is_quiet = now_ns.saturating_sub(self.seen_ns) >= IDLE_NS || self.alternations >= ALTERNATIONS;
        is_answered && is_quiet && (self.looks.is_command_head)(bytes)
    }

    /// Returns whether it was quiet for so long that nothing was under way.
    pub fn has_rested(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.seen_ns) >= REST_NS
    }

    /// The client has sent something.
    pub fn see_request(&mut self, at_ns: u64, bytes: &[u8]) {
        let follows = match self.turn {
            Turn::Server { ends } => ends,
            // The first one of all.
            Turn::Unknown => true,
            Turn::Client(_) => false,
        };
        let is_one = follows && (self.looks.is_one_command)(bytes);
        if !is_one {
            self.alternations = 0;
        }
        (self.turn, self.seen_ns) = (Turn::Client(is_one), at_ns);
    }

    /// The server has sent something.
    pub fn see_reply(&mut self, at_ns: u64, bytes: &[u8]) {
        if let Turn::Client(is_one) = self.turn {
            let is_reply = is_one && (self.looks.begins_reply)(bytes);
            self.alternations = if is_reply { self.alternations + 1 } else { 0 };
        }
        (self.turn, self.seen_ns) = (Turn::Server { ends: bytes.ends_with(b"\r\n") }, at_ns);
    }
}

/// Replies on their way to the recording. After a gap they are held back: they belong to their commands only if nothing was
/// under way when the connection was read again.
#[derive(Default)]
pub(super) struct ReplyGate(Option<Trial>);

/// Replies that are held back.
#[derive(Default)]
struct Trial {
    replies: Vec<(u64, RecordedReply)>,
    /// When the last one came.
    seen_ns: u64,
    /// Commands that were sent when all before them were answered.
    balanced: u32,
}

impl ReplyGate {
    /// Holds replies back from now on.
    pub fn close(&mut self) {
        self.0 = Some(Trial::default());
    }

    /// Returns whether replies are held back.
    pub fn is_closed(&self) -> bool {
        self.0.is_some()
    }

    /// A command comes at this time, and all before it are answered. Hands over what is held if that was so as often, or after
    /// such a pause, that no other replies can be under way.
    pub fn note_balance(&mut self, at_ns: u64, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        let Some(trial) = self.0.as_mut().filter(|trial| !trial.replies.is_empty()) else { return Ok(()) };
        trial.balanced += 1;
        if trial.balanced >= BALANCED || at_ns.saturating_sub(trial.seen_ns) >= IDLE_NS {
            return self.open(sink);
        }
        Ok(())
    }

    /// What is held belongs to its commands: hands it over, and what follows.
    pub fn open(&mut self, sink: &mut impl ExchangeSink) -> Result<(), RecordingError> {
        let held = self.0.take().map(|trial| trial.replies).unwrap_or_default();
        held.into_iter().try_for_each(|(ticket, reply)| sink.push_reply(ticket, reply))
    }

    /// What is held may belong to other commands.
    pub fn give_up(&mut self, sink: &mut impl ExchangeSink) {
        let held = self.0.take().map(|trial| trial.replies).unwrap_or_default();
        held.into_iter().for_each(|(ticket, _)| sink.give_up(ticket));
    }

    /// Hands a reply over, or holds it back; false if there are too many: the connection never rests, and nothing shows what was
    /// under way.
    pub fn push_reply(
        &mut self,
        at_ns: u64,
        ticket: u64,
        reply: RecordedReply,
        sink: &mut impl ExchangeSink,
    ) -> Result<bool, RecordingError> {
        let Some(trial) = &mut self.0 else { return sink.push_reply(ticket, reply).map(|()| true) };
        trial.replies.push((ticket, reply));
        trial.seen_ns = at_ns;
        Ok(trial.replies.len() <= TRIAL_REPLIES)
    }
}
