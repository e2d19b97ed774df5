//! How long the other end of a pipe has said nothing.

use dyno_engine::net::{Patience, monotonic_ns};
use std::time::Duration;

/// Time that a worker, an agent and the hub of a relay go on without a word of their controller. A laptop that sleeps for a
/// minute and looks for its network again breaks no run: the workers finish the phase and keep its seconds for it.
pub const LEASE: Duration = Duration::from_secs(90);

/// Leases without a word after which the controller is gone.
pub const GONE: u32 = 2;

/// A controller that was silent for longer is told of: its monitors, faults and thresholds stood still. A controller
/// gives a sign of life each second or more often.
pub const NOTED: Duration = Duration::from_secs(3);

/// Time between two looks, at most: more than that was not spent waiting.
const LOOK_NS: u64 = 1_000_000_000;

/// Longest silence that can be counted.
const FOREVER_NS: u64 = u64::MAX;

/// How long the other end has been silent. Only time in which this process looked counts: what the other end has said while this
/// one was stopped waits in the pipe, and it is not to be called silent for that.
pub struct Silence {
    heard_ns: u64,
    patience: Patience,
}

impl Silence {
    /// Begins now, monotonic nanoseconds.
    pub fn starting(now_ns: u64) -> Self {
        let patience = Patience::new(now_ns, FOREVER_NS, LOOK_NS);
        Silence { heard_ns: now_ns, patience }
    }

    /// Looks at `now_ns`, when the other end was last heard at `heard_ns`; returns how long it has been silent, nanoseconds.
    pub fn look(&mut self, heard_ns: u64, now_ns: u64) -> u64 {
        if heard_ns != self.heard_ns {
            self.heard_ns = heard_ns;
            self.patience = Patience::new(heard_ns.min(now_ns), FOREVER_NS, LOOK_NS);
        }
        FOREVER_NS - self.patience.count_wait(now_ns)
    }
}

/// Time that is left for an answer, of which only that counts in which this process looked.
pub struct Waiting(Patience);

impl Waiting {
    /// Begins now.
    pub fn starting(patience: Duration) -> Self {
        let length_ns = u64::try_from(patience.as_nanos()).unwrap_or(FOREVER_NS);
        Waiting(Patience::new(monotonic_ns(), length_ns, LOOK_NS))
    }

    /// Returns what is left now.
    pub fn left(&mut self) -> Duration {
        Duration::from_nanos(self.0.count_wait(monotonic_ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_silence_lasts_from_the_last_word_and_a_word_ends_it() {
        let mut silence = Silence::starting(5);
        for second in 1..=60 {
            assert_eq!(silence.look(5, 5 + second * SECOND), second * SECOND);
        }
        assert_eq!(silence.look(60 * SECOND, 60 * SECOND + 7), 7);
        assert_eq!(silence.look(61 * SECOND, 61 * SECOND), 0);
    }

    /// A process that is stopped for an hour has not listened for an hour: it counts one look.
    #[test]
    fn a_process_that_was_stopped_accuses_no_one() {
        let mut silence = Silence::starting(0);
        assert_eq!(silence.look(0, SECOND), SECOND);
        assert_eq!(silence.look(0, 3_600 * SECOND), 2 * SECOND);
        assert_eq!(silence.look(0, 3_600 * SECOND + SECOND / 2), 2 * SECOND + SECOND / 2);
    }
}
