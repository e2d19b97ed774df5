//! Rates that a workload keeps by itself, user by user, because the program it stands in for does.

use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;

/// Method by which a user is held back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Not at all.
    Free,
    /// One unit of work every so often; what was missed is made up for.
    Even {
        /// Nanoseconds between two units.
        interval_ns: f64,
        /// Most of the missed time that is made up for, nanoseconds: a second's worth under a cap, all of a schedule.
        behind_ns: u64,
    },
    /// At full speed until so many units are done within a second, then nothing until it is over.
    Quota {
        /// Units in a second.
        units: u64,
    },
    /// A pause before every unit, whatever the last one took.
    Pause {
        /// Length of the pause, nanoseconds.
        pause_ns: u64,
    },
}

impl Pace {
    /// At most `per_second` for each of `users` together; free if it is 0.
    pub fn cap(per_second: u64, users: u64) -> Self {
        Pace::even(per_second, users, SECOND_NS)
    }

    /// A rate of `per_second` for all `users` together, which nothing changes; free if it is 0.
    pub fn schedule(per_second: u64, users: u64) -> Self {
        Pace::even(per_second, users, u64::MAX)
    }

    fn even(per_second: u64, users: u64, behind_ns: u64) -> Self {
        match per_second {
            0 => Pace::Free,
            rate => Pace::Even { interval_ns: users as f64 * SECOND_NS as f64 / rate as f64, behind_ns },
        }
    }
}

/// A user's place in its pace. Only the user's own load thread touches it.
#[derive(Debug, Default)]
pub struct Pacer {
    /// When the next unit is due, or when the second ends.
    due_ns: AtomicU64,
    done: AtomicU64,
}

impl Pacer {
    /// `units` of work, the first of which was due at `begun_ns` if they are the user's first, have ended at `now_ns`: when
    /// the next may begin.
    #[inline]
    pub fn resume_ns(&self, pace: &Pace, units: u64, begun_ns: u64, now_ns: u64) -> u64 {
        match *pace {
            Pace::Free => now_ns,
            Pace::Pause { pause_ns } => now_ns + pause_ns * units,
            Pace::Even { interval_ns, behind_ns } => {
                let first = self.done.fetch_add(units, Ordering::Relaxed) == 0;
                let last = if first { begun_ns } else { self.due_ns.load(Ordering::Relaxed) };
                let last = last.max(now_ns.saturating_sub(behind_ns));
                let due = last + (interval_ns * units as f64) as u64;
                self.due_ns.store(due, Ordering::Relaxed);
                due.max(now_ns)
            }
            Pace::Quota { units: quota } => {
                let end = self.due_ns.load(Ordering::Relaxed);
                if now_ns >= end {
                    self.due_ns.store(now_ns + SECOND_NS, Ordering::Relaxed);
                    self.done.store(0, Ordering::Relaxed);
                }
                let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
                if done >= quota { self.due_ns.load(Ordering::Relaxed) } else { now_ns }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units begun within `seconds`, if each takes `service_ns`.
    fn units(pace: Pace, service_ns: u64, seconds: u64) -> u64 {
        let pacer = Pacer::default();
        let (mut now, mut units) = (5 * SECOND_NS, 0);
        let end = now + seconds * SECOND_NS;
        while now < end {
            units += 1;
            now = pacer.resume_ns(&pace, 1, now, now + service_ns);
        }
        units
    }

    #[test]
    fn rates_are_kept() {
        assert_eq!(units(Pace::cap(0, 1), 1_000_000, 2), 2_000);
        let even = units(Pace::cap(1_000, 4), 1_000_000, 10);
        assert!((2_499..=2_502).contains(&even), "{even}");
        // 20,000 a second over 4 users: the original sleeps for 0 ms here.
        let fast = units(Pace::cap(20_000, 4), 100_000, 10);
        assert!((49_990..=50_002).contains(&fast), "{fast}");
        let quota = units(Pace::Quota { units: 7 }, 1_000_000, 10);
        assert!((70..=77).contains(&quota), "{quota}");
        assert_eq!(units(Pace::Pause { pause_ns: 9_000_000 }, 1_000_000, 1), 100);
    }

    #[test]
    fn a_cap_makes_up_for_a_second_of_a_stall_and_a_schedule_for_all_of_it() {
        // A stall of ten seconds.
        for (pace, expected) in [(Pace::cap(100, 1), 100), (Pace::schedule(100, 1), 999)] {
            let pacer = Pacer::default();
            pacer.resume_ns(&pace, 1, SECOND_NS, SECOND_NS);
            let mut free = 0;
            while pacer.resume_ns(&pace, 1, SECOND_NS, 11 * SECOND_NS) == 11 * SECOND_NS {
                free += 1;
            }
            assert_eq!(free, expected);
        }
    }
}
