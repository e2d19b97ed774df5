//! Times of arrival on the monotonic clock.
//!
//! The kernel stamps what arrives by CLOCK_REALTIME, a network card by its own clock; both may be set or slewed at any moment.
//! Once for each wake-up of a load thread both clocks are read; their difference maps the stamps of what is received then.
//! Where it has jumped since the reading before, nothing that was stamped about that time is mapped at all.

use super::monotonic::monotonic_ns;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Two readings of the monotonic clock around one of the wall clock are near each other if they are no further apart.
const NEAR_NS: u64 = 2_000;

/// Readings that are further apart than this, even at the best attempt, say nothing.
const FAR_NS: u64 = 50_000;

/// Attempts at a pair of readings that are near each other.
const ATTEMPTS: usize = 3;

/// The kernel slews its clock by less than a thousandth: what differs by more has been set.
const SLEW: u64 = 1_000;

/// For so long after a jump nothing is mapped: what was stamped before it may still be waiting to be received.
const DOUBT_NS: u64 = 100_000_000;

/// A time in nanoseconds.
pub(super) fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A moment on both clocks, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    /// Monotonic, before the wall clock was read.
    pub before_ns: u64,
    /// The other clock.
    pub wall_ns: u64,
    /// Monotonic, after it.
    pub after_ns: u64,
}

impl ClockReading {
    /// The clocks of this host now.
    pub fn read_now() -> Self {
        ClockReading::read_with(|| Some(clock_gettime(ClockId::Realtime)))
    }

    /// The monotonic clock and another one now. Of a clock that does not answer nothing is known: the readings are far apart.
    pub fn read_with(other: impl FnOnce() -> Option<Timespec>) -> Self {
        let before_ns = monotonic_ns();
        match other() {
            Some(time) => ClockReading { before_ns, wall_ns: ns(time), after_ns: monotonic_ns() },
            None => ClockReading { before_ns, wall_ns: 0, after_ns: before_ns + 2 * FAR_NS },
        }
    }

    fn width_ns(&self) -> u64 {
        debug_assert!(self.before_ns <= self.after_ns, "the monotonic clock never goes back");
        self.after_ns - self.before_ns
    }
}

/// Offset of the wall clock, or of a card's.
#[derive(Clone, Debug, Default)]
pub(super) struct WallClock {
    /// Wall less monotonic at the last reading, and when that was.
    known: Option<(i64, u64)>,
    /// Until then nothing is mapped, monotonic nanoseconds.
    doubted_until_ns: u64,
    fresh: bool,
}

impl WallClock {
    /// The thread has woken up: both clocks are to be read again before the next stamp is mapped.
    pub fn note_wake(&mut self) {
        self.fresh = false;
    }

    /// A stamp on the monotonic clock; `None` where the wall clock cannot be relied on.
    pub fn arrived_ns(&mut self, stamp_ns: u64, read: impl FnMut() -> ClockReading) -> Option<u64> {
        if !self.fresh {
            self.read(read);
        }
        let (difference, _) = self.known.filter(|(_, read_ns)| *read_ns >= self.doubted_until_ns)?;
        u64::try_from((stamp_ns as i64).checked_sub(difference)?).ok()
    }

    fn read(&mut self, mut read: impl FnMut() -> ClockReading) {
        self.fresh = true;
        let mut best = read();
        for _ in 1..ATTEMPTS {
            if best.width_ns() <= NEAR_NS {
                break;
            }
            let next = read();
            if next.width_ns() < best.width_ns() {
                best = next;
            }
        }
        let at_ns = best.before_ns + best.width_ns() / 2;
        if best.width_ns() > FAR_NS {
            self.doubted_until_ns = self.doubted_until_ns.max(at_ns + 1);
        }
        let difference = best.wall_ns as i64 - at_ns as i64;
        if let Some((before, since_ns)) = self.known {
            let allowed = NEAR_NS + best.width_ns() + at_ns.saturating_sub(since_ns) / SLEW;
            if difference.abs_diff(before) > allowed {
                self.doubted_until_ns = self.doubted_until_ns.max(at_ns + DOUBT_NS);
            }
        }
        self.known = Some((difference, at_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks that are told the time, and whose readings take so long.
    struct Clocks {
        now_ns: u64,
        difference: i64,
        width_ns: u64,
    }

    impl Clocks {
        fn read(&mut self) -> ClockReading {
            let before_ns = self.now_ns;
            self.now_ns += self.width_ns;
            let middle_ns = before_ns + self.width_ns / 2;
            ClockReading {
                before_ns,
                wall_ns: (middle_ns as i64 + self.difference) as u64,
                after_ns: self.now_ns,
            }
        }
    }

    const EPOCH: i64 = 1_800_000_000_000_000_000;

    fn clocks() -> Clocks {
        Clocks { now_ns: 5_000_000_000, difference: EPOCH, width_ns: 50 }
    }

    /// Maps a stamp of so long ago, as that time ago again.
    fn ago(wall: &mut WallClock, clocks: &mut Clocks, ns: u64) -> Option<u64> {
        let stamp_ns = (clocks.now_ns as i64 + clocks.difference) as u64 - ns;
        let now_ns = clocks.now_ns;
        wall.note_wake();
        Some(now_ns - wall.arrived_ns(stamp_ns, || clocks.read())?)
    }

    #[test]
    fn stamps_keep_their_distance_while_the_clock_goes_on_and_is_slewed() {
        let (mut wall, mut clocks) = (WallClock::default(), clocks());
        for _ in 0..1_000 {
            let found = ago(&mut wall, &mut clocks, 700_000).unwrap();
            assert_eq!(found, 700_000);
            // A wake-up each millisecond, and 500 parts in a million.
            clocks.now_ns += 1_000_000;
            clocks.difference += 500;
        }
    }

    #[test]
    fn nothing_that_was_stamped_about_a_jump_is_mapped() {
        for jump in [-3_600_000_000_000, -10_000, 10_000, 3_600_000_000_000] {
            let (mut wall, mut clocks) = (WallClock::default(), clocks());
            assert_eq!(ago(&mut wall, &mut clocks, 9_000), Some(9_000));
            clocks.now_ns += 1_000_000;
            clocks.difference += jump;
            assert_eq!(ago(&mut wall, &mut clocks, 9_000), None, "{jump}");
            clocks.now_ns += DOUBT_NS - 1_000;
            assert_eq!(ago(&mut wall, &mut clocks, 9_000), None, "{jump}");
            clocks.now_ns += 2_000;
            assert_eq!(ago(&mut wall, &mut clocks, 9_000), Some(9_000), "{jump}");
        }
    }

    #[test]
    fn readings_that_were_interrupted_are_made_again_and_else_say_nothing() {
        let (mut wall, mut clocks) = (WallClock::default(), clocks());
        let stamp_ns = (clocks.now_ns as i64 + EPOCH) as u64;
        let mut widths = [9_000_000, 80, 9_000_000].into_iter();
        let read = |clocks: &mut Clocks, width_ns| {
            clocks.width_ns = width_ns;
            clocks.read()
        };
        let found = wall.arrived_ns(stamp_ns, || read(&mut clocks, widths.next().unwrap()));
        assert_eq!(found, Some(5_000_000_000));
        assert_eq!(widths.next(), Some(9_000_000), "the second was near enough");
        wall.note_wake();
        assert_eq!(wall.arrived_ns(stamp_ns, || read(&mut clocks, 9_000_000)), None);
        wall.note_wake();
        assert_eq!(wall.arrived_ns(stamp_ns, || read(&mut clocks, 50)), Some(5_000_000_000));
    }

    #[test]
    fn clocks_are_read_once_for_each_time_the_thread_wakes() {
        let (mut wall, mut clocks, mut count) = (WallClock::default(), clocks(), 0);
        let mut read = || {
            count += 1;
            clocks.read()
        };
        for _ in 0..5 {
            wall.arrived_ns(EPOCH as u64 + 1, &mut read);
        }
        wall.note_wake();
        wall.arrived_ns(EPOCH as u64 + 1, &mut read);
        assert_eq!(count, 2);
    }
}
