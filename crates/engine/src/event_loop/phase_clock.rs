//! When the phase of a load thread begins, is measured and ends.

use super::alarm::Alarm;

/// Why nothing more is sent, and until when replies are awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// When operations that are still under way end as aborted.
    pub until_ns: u64,
    /// All operations that were asked for have been sent, rather than that the time is over: none may be lost that a server
    /// would have answered.
    pub counted: bool,
    /// Operations under way when this was looked at last.
    pub left: usize,
}

impl Drain {
    /// Not begun.
    pub const NONE: Drain = Drain { until_ns: u64::MAX, counted: false, left: 0 };
}

/// Times of a phase, nanoseconds of the network's clock, and what is counted over it.
pub(super) struct PhaseClock {
    pub(super) next_swap_ns: u64,
    pub(super) epoch_ns: u64,
    pub(super) measure_ns: u64,
    pub(super) end_ns: u64,
    /// When the measured phase is over at the latest, as far as that is known yet.
    pub(super) bound_ns: u64,
    /// The last completion of a measured operation.
    pub(super) done_ns: u64,
    /// Successes of measured operations.
    pub(super) completed: u64,
    /// Closed loop: when the first user had nothing left to do, and the successes until then.
    pub(super) first_out: Option<(u64, u64)>,
    /// Time of users in the measured phase that the histograms lack, less what they hold of times outside it, nanoseconds.
    pub(super) clipped_ns: i64,
    pub(super) measuring: bool,
    pub(super) issued_all: bool,
    pub(super) drain: Drain,
    pub(super) alarm: Alarm,
}

impl PhaseClock {
    /// Not begun.
    pub(super) fn new() -> Self {
        PhaseClock {
            next_swap_ns: u64::MAX,
            epoch_ns: 0,
            measure_ns: 0,
            end_ns: u64::MAX,
            bound_ns: u64::MAX,
            done_ns: 0,
            completed: 0,
            first_out: None,
            clipped_ns: 0,
            measuring: false,
            issued_all: false,
            drain: Drain::NONE,
            alarm: Alarm::default(),
        }
    }

    /// A user has nothing left to do since `since_ns`.
    #[inline]
    pub(super) fn note_user_out(&mut self, since_ns: u64) {
        self.first_out.get_or_insert((since_ns.max(self.measure_ns), self.completed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_user_that_is_done_is_noted_from_the_measured_phase_on() {
        let mut clock = PhaseClock::new();
        (clock.measure_ns, clock.completed) = (100, 7);
        clock.note_user_out(90);
        clock.completed = 9;
        clock.note_user_out(120);
        assert_eq!(clock.first_out, Some((100, 7)));
    }
}
