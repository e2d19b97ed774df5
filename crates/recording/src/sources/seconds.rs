//! Commands whose times are whole seconds: those of a second are spread evenly over it.

use super::SourceError;
use crate::entry::Entry;
use crate::format::RecordingWriter;
use std::io::Write;

pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Commands of one second that are spread over it: beyond this the first ones are written with the second's begin.
const SPREAD: usize = 1 << 20;

/// Commands of one second, until it is known how many there are.
#[derive(Default)]
pub(super) struct SpreadSecond {
    begins_ns: u64,
    commands: Vec<Entry>,
}

impl SpreadSecond {
    /// A second begins at this time of the recording, nanoseconds: what waits is written, if it is a later one. Returns whether
    /// it is an earlier one; commands then stay in the second before.
    pub(super) fn begin_second<W: Write>(
        &mut self,
        at_ns: u64,
        writer: Option<&mut RecordingWriter<W>>,
    ) -> Result<bool, SourceError> {
        if at_ns > self.begins_ns {
            if let Some(writer) = writer {
                self.write(writer, at_ns)?;
            }
            self.begins_ns = at_ns;
        }
        Ok(at_ns < self.begins_ns)
    }

    /// Takes a command of this second.
    pub(super) fn push<W: Write>(
        &mut self,
        entry: Entry,
        writer: &mut RecordingWriter<W>,
    ) -> Result<(), SourceError> {
        if self.commands.len() == SPREAD {
            self.write(writer, self.begins_ns)?;
        }
        self.commands.push(entry);
        Ok(())
    }

    /// Writes what waits: spread over the second.
    pub(super) fn finish<W: Write>(mut self, writer: &mut RecordingWriter<W>) -> Result<(), SourceError> {
        self.write(writer, self.begins_ns.saturating_add(SECOND_NS))
    }

    /// Writes the commands, spread over the time until the next ones at `until_ns`, at most a second.
    fn write<W: Write>(&mut self, writer: &mut RecordingWriter<W>, until_ns: u64) -> Result<(), SourceError> {
        let span_ns = until_ns.saturating_sub(self.begins_ns).clamp(1, SECOND_NS);
        let count = self.commands.len() as u64;
        for (number, mut entry) in (0..).zip(self.commands.drain(..)) {
            entry.at_ns = self.begins_ns + span_ns * number / count;
            writer.push_entry(&entry)?;
        }
        Ok(())
    }
}
