//! Waking in time for the next arrival.
//!
//! A sleeping core needs time to wake: some microseconds on bare metal, 30 to 45 on many virtual machines. The load
//! thread learns how late its sleeps end, asks to be woken that much earlier, and watches its sockets for the few
//! microseconds that may be left.

/// Never sleep shorter by more than this, nanoseconds: what is left of a sleep is spent looking at sockets.
const LONGEST_NS: u64 = 60_000;
/// Change of the estimate per sleep, nanoseconds.
const STEP_NS: u64 = 400;

/// Learns by how much sleeps end late: a running median, moved by a fixed step with every sleep (Robbins and Monro,
/// "A stochastic approximation method", 1951).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alarm {
    early_ns: u64,
}

impl Alarm {
    /// When to ask to be woken in order to be awake at `until`.
    pub fn wake_time(&self, until_ns: u64) -> u64 {
        until_ns.saturating_sub(self.early_ns)
    }

    /// A sleep that was to end at `asked` ended at `woken`.
    pub fn note_wake(&mut self, asked_ns: u64, woken_ns: u64) {
        if woken_ns.saturating_sub(asked_ns) > self.early_ns {
            self.early_ns = (self.early_ns + STEP_NS).min(LONGEST_NS);
        } else {
            self.early_ns = self.early_ns.saturating_sub(STEP_NS);
        }
        debug_assert!(self.early_ns <= LONGEST_NS, "polling would take the rest of every sleep");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lateness_is_learnt_and_bounded() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.wake_time(100_000), 100_000);
        for i in 0..3_000u64 {
            // 20, 30 or 40 microseconds late.
            alarm.note_wake(0, 20_000 + 10_000 * (i % 3));
        }
        assert!((28_000..32_000).contains(&alarm.early_ns), "{}", alarm.early_ns);
        for _ in 0..3_000 {
            alarm.note_wake(0, 1_000_000_000);
        }
        assert_eq!(alarm.early_ns, LONGEST_NS);
        // A clock that is never late (virtual time) asks for nothing.
        for _ in 0..3_000 {
            alarm.note_wake(5, 5);
        }
        assert_eq!(alarm.wake_time(100_000), 100_000);
    }
}
