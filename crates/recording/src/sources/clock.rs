//! Times of sources with a clock of their own, which may be set back.

use crate::format::RecordingWriter;
use std::io::Write;

/// Times from the first one on, in the order in which they stand: one that lies before an earlier one is taken as that.
#[derive(Debug, Default)]
pub(super) struct SourceClock {
    begins_ns: Option<u64>,
    last_ns: u64,
    backward: u64,
}

impl SourceClock {
    /// Takes the next time, nanoseconds since 1970. Returns the first one, and the time since then.
    pub(super) fn take_time(&mut self, at_ns: u64) -> (u64, u64) {
        let begins_ns = *self.begins_ns.get_or_insert(at_ns);
        self.last_ns = self.last_ns.max(begins_ns);
        self.backward += u64::from(at_ns < self.last_ns);
        self.last_ns = self.last_ns.max(at_ns);
        (begins_ns, self.last_ns - begins_ns)
    }

    /// Counts the times that went back.
    pub(super) fn note_backward<W: Write>(&self, writer: &mut RecordingWriter<W>) {
        writer.leave_out("times that went back (taken as the time before)", self.backward);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_never_go_back() {
        let mut clock = SourceClock::default();
        let since = [100, 130, 120, 90, 140].map(|at_ns| clock.take_time(at_ns));
        assert_eq!(since, [(100, 0), (100, 30), (100, 30), (100, 30), (100, 40)]);
        assert_eq!(clock.backward, 2);
    }
}
