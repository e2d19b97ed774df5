//! Queues that a lag of the client has caused at the server. What was due while the client stood still comes at once behind it,
//! and waits at the server for what came with it: that wait is the client's, not the server's.

/// Least lag that is followed by a burst, nanoseconds.
const LAG_NS: u64 = 10_000_000;
/// Time behind it in which operations wait for the burst, nanoseconds.
const BEHIND_NS: u64 = 1_000_000_000;

/// Estimate of the wait that lags of the client have caused.
#[derive(Debug)]
pub(super) struct Induced {
    /// Operations due from the one to the other are behind a lag.
    from_ns: u64,
    until_ns: u64,
    /// The longest of the lags that they are behind.
    lag_ns: u64,
    /// The 99th percentile of the service times of each metric outside of such times, nanoseconds; 0 of none yet. What is not
    /// longer is as it always is.
    usual_ns: Vec<f64>,
}

impl Induced {
    pub fn new(metrics: usize) -> Self {
        Induced { from_ns: 0, until_ns: 0, lag_ns: 0, usual_ns: vec![0.0; metrics] }
    }

    /// Something was sent at `now`, so long after it was due and had a place. Not after a client would have sent it that is never
    /// late: one lag would explain the next, and all that a slow server does.
    #[inline]
    pub fn note_sent(&mut self, now: u64, lag_ns: u64) {
        if lag_ns < LAG_NS {
            return;
        }
        let begun_ns = now.saturating_sub(lag_ns);
        (self.from_ns, self.lag_ns) = match now < self.until_ns {
            true => (self.from_ns.min(begun_ns), self.lag_ns.max(lag_ns)),
            false => (begun_ns, lag_ns),
        };
        self.until_ns = now + BEHIND_NS;
        debug_assert!(self.from_ns < self.until_ns);
    }

    /// The client's part of a service time of `metric`, of an operation that was due at `due_ns`: what exceeds the usual times,
    /// but no more than the lag, because a server that keeps up with the rate has worked off a burst in the time that it took to
    /// build up.
    #[inline]
    pub fn part_ns(&mut self, metric: u16, due_ns: u64, service_ns: u64) -> u64 {
        let usual_ns = &mut self.usual_ns[metric as usize];
        if due_ns < self.from_ns || due_ns >= self.until_ns {
            *usual_ns = step(*usual_ns, service_ns as f64);
            return 0;
        }
        debug_assert!(*usual_ns >= 0.0);
        let part_ns = match *usual_ns {
            0.0 => 0,
            usual_ns => service_ns.saturating_sub(usual_ns as u64).min(self.lag_ns),
        };
        debug_assert!(part_ns <= service_ns, "a part is no more than the whole");
        part_ns
    }
}

/// Greatest step of the percentile, as a part of it.
const STEP: f64 = 1.0 / 16.0;

/// The next value of a running 99th percentile: up by 99 parts where a value is above it, down by one where it is below (Robbins
/// and Monro 1951, with steps that stay constant).
fn step(usual: f64, value: f64) -> f64 {
    match usual {
        0.0 => value.max(1.0),
        usual if value > usual => usual * (1.0 + STEP * 0.99),
        usual if value < usual => usual * (1.0 - STEP * 0.01),
        usual => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_burst_behind_a_lag_is_the_clients_up_to_the_lag() {
        let mut induced = Induced::new(2);
        // A server that always takes three milliseconds.
        let mut at = 0;
        for _ in 0..3_000 {
            at += MS;
            assert_eq!(induced.part_ns(0, at, 3 * MS), 0);
        }
        induced.note_sent(at, 9 * MS);
        assert_eq!(induced.part_ns(0, at, 30 * MS), 0, "no lag to speak of");
    }

    #[test]
    fn what_is_usual_is_the_servers_whatever_the_client_does() {
        let mut induced = Induced::new(2);
        let mut at = 0;
        for _ in 0..100 {
            at += MS;
            induced.part_ns(0, at, 3 * MS);
        }
        induced.note_sent(at, 20 * MS);
        let parts = [1, 3, 10, 23, 500].map(|ms| induced.part_ns(0, at, ms * MS) / MS);
        // Nothing of the usual time, and no more than the lag.
        assert_eq!(parts, [0, 0, 7, 20, 20]);
        assert_eq!(induced.part_ns(0, at + 999 * MS, 10 * MS), 7 * MS);
        assert_eq!(induced.part_ns(0, at + 1_000 * MS, 30 * MS), 0);
        // Whose usual time is not known has no part.
        induced.note_sent(at + 1_000 * MS, 20 * MS);
        assert_eq!(induced.part_ns(1, at + 1_000 * MS, 30 * MS), 0);
    }

    #[test]
    fn what_was_due_before_the_lag_is_the_servers() {
        let mut induced = Induced::new(1);
        (1..100).for_each(|ms| assert_eq!(induced.part_ns(0, ms * MS, 3 * MS), 0));
        // Late by 20 ms: it was due at 100.
        induced.note_sent(120 * MS, 20 * MS);
        assert_eq!([99, 100].map(|due| induced.part_ns(0, due * MS, 30 * MS) / MS), [0, 20]);
    }

    #[test]
    fn the_usual_time_is_the_99th_percentile() {
        let mut usual = 0.0;
        let mut mean = 0.0;
        // Uniform from 0 to 1, in an order without a pattern.
        for round in 0..200_000u64 {
            let value = (round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
            usual = step(usual, value * 1e9);
            mean += if round >= 100_000 { usual / 1e5 } else { 0.0 };
        }
        assert!((0.95e9..1.03e9).contains(&mean), "{mean}");
    }
}
