//! Commands in the order of their times, each with its reply where that comes in time.

use super::{RecordingError, RecordingWriter};
use crate::entry::{Entry, RecordedReply};
use std::collections::{HashMap, VecDeque};
use std::io::Write;

/// Longest time that a command waits for its reply before it is written, nanoseconds.
pub const REPLY_WINDOW_NS: u64 = 1_000_000_000;

/// Most commands that wait.
pub const REPLY_WINDOW: usize = 100_000;

/// Most bytes of commands that wait.
const WINDOW_BYTES: u64 = 64 << 20;

/// Entries whose memory is kept for others at most.
const SPARE: usize = 1_000;

/// Memory of such an entry at most, bytes.
const SPARE_BYTES: usize = 4 << 10;

/// Commands on their way into a recording: they come in the order of their times, and their replies in any.
pub struct OrderedEntries<W: Write> {
    writer: RecordingWriter<W>,
    /// Those that wait, and whether each still has no reply. The first one has the number `first`.
    waiting: VecDeque<(Entry, bool)>,
    first: u64,
    waiting_bytes: u64,
    /// Of commands that were written without a reply: their numbers in the file.
    late: HashMap<u64, u64>,
    spare: Vec<Entry>,
}

impl<W: Write> OrderedEntries<W> {
    /// Into a recording.
    pub fn new(writer: RecordingWriter<W>) -> Self {
        OrderedEntries {
            writer,
            waiting: VecDeque::new(),
            first: 0,
            waiting_bytes: 0,
            late: HashMap::new(),
            spare: Vec::new(),
        }
    }

    /// An entry to be filled, with memory of an earlier one.
    pub fn take_spare(&mut self) -> Entry {
        self.spare.pop().unwrap_or_default()
    }

    /// A command was sent; `awaits`: a reply to it is expected. Returns the ticket of its reply.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError> {
        let now_ns = entry.at_ns;
        let ticket = self.first + self.waiting.len() as u64;
        self.waiting_bytes += entry.arguments.kept_bytes() as u64;
        self.waiting.push_back((entry, awaits));
        self.write_ready(now_ns)?;
        Ok(ticket)
    }

    /// The reply to the command with this ticket has come.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn push_reply(&mut self, ticket: u64, reply: RecordedReply) -> Result<(), RecordingError> {
        if let Some(number) = self.late.remove(&ticket) {
            return self.writer.push_late_reply(number, &reply);
        }
        let place = ticket.checked_sub(self.first).and_then(|at| self.waiting.get_mut(at as usize));
        if let Some((entry, awaits)) = place {
            (entry.reply, *awaits) = (Some(reply), false);
        }
        Ok(())
    }

    /// There will be no reply to the command with this ticket.
    pub fn give_up(&mut self, ticket: u64) {
        self.late.remove(&ticket);
        let place = ticket.checked_sub(self.first).and_then(|at| self.waiting.get_mut(at as usize));
        if let Some((_, awaits)) = place {
            *awaits = false;
        }
    }

    /// Writes the commands that have their replies, or have waited long enough at `now_ns`.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn write_ready(&mut self, now_ns: u64) -> Result<(), RecordingError> {
        while let Some((entry, awaits)) = self.waiting.front() {
            let is_old = now_ns.saturating_sub(entry.at_ns) > REPLY_WINDOW_NS;
            let is_room = self.waiting.len() <= REPLY_WINDOW && self.waiting_bytes <= WINDOW_BYTES;
            if *awaits && !is_old && is_room {
                return Ok(());
            }
            self.write_first()?;
        }
        Ok(())
    }

    fn write_first(&mut self) -> Result<(), RecordingError> {
        let Some((entry, awaits)) = self.waiting.pop_front() else { return Ok(()) };
        self.waiting_bytes -= entry.arguments.kept_bytes() as u64;
        let number = self.writer.push_entry(&entry)?;
        if let Some(number) = number.filter(|_| awaits) {
            self.late.insert(self.first, number);
        }
        self.first += 1;
        if self.spare.len() < SPARE && entry.arguments.held_bytes() <= SPARE_BYTES {
            self.spare.push(entry);
        }
        Ok(())
    }

    /// The recording, for counts of what is left out.
    pub fn writer(&mut self) -> &mut RecordingWriter<W> {
        &mut self.writer
    }

    /// Writes what waits; returns the recording, to be finished.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn into_writer(mut self) -> Result<RecordingWriter<W>, RecordingError> {
        while !self.waiting.is_empty() {
            self.write_first()?;
        }
        Ok(self.writer)
    }
}
