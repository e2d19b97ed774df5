//! Queues that a lag of the client has caused at the server. What was due while the client stood still comes at once behind it,
//! and waits at the server for what came with it: that wait is the client's, not the server's.

/// Least lag that is followed by a burst, nanoseconds.
const LAG_NS: u64 = 10_000_000;
/// Time behind it in which operations wait for the burst, nanoseconds.
const BEHIND_NS: u64 = 1_000_000_000;

/// Estimate of the wait that lags of the client have caused.
#[derive(Debug)]
pub(super) struct Induced {
    /// Operations due by then are behind a lag.
    until_ns: u64,
    /// The longest of the lags that they are behind.
    lag_ns: u64,
    /// Median of the service times of each metric outside of such times, nanoseconds; 0 of none yet.
    usual_ns: Vec<u64>,
}

impl Induced {
    pub fn new(metrics: usize) -> Self {
        Induced { until_ns: 0, lag_ns: 0, usual_ns: vec![0; metrics] }
    }

    /// Something was sent at `now`, so much later than a client would have that is never late.
    #[inline]
    pub fn sent(&mut self, now: u64, lag_ns: u64) {
        if lag_ns < LAG_NS {
            return;
        }
        self.lag_ns = if now < self.until_ns { self.lag_ns.max(lag_ns) } else { lag_ns };
        self.until_ns = now + BEHIND_NS;
    }

    /// The client's part of a service time of `metric`, of an operation that was due at `due_ns`: what exceeds the usual time,
    /// but no more than the lag, because a server that keeps up with the rate has worked off a burst in the time that it took to
    /// build up.
    #[inline]
    pub fn part_ns(&mut self, metric: u16, due_ns: u64, service_ns: u64) -> u64 {
        let usual_ns = &mut self.usual_ns[metric as usize];
        if due_ns >= self.until_ns {
            *usual_ns = median_step(*usual_ns, service_ns);
            return 0;
        }
        if *usual_ns == 0 { 0 } else { service_ns.saturating_sub(*usual_ns).min(self.lag_ns) }
    }
}

/// The next value of a running median: a sixteenth up or down (Robbins and Monro 1951, with steps that stay constant).
fn median_step(median_ns: u64, value_ns: u64) -> u64 {
    match median_ns {
        0 => value_ns.max(1),
        median if value_ns > median => median + (median / 16).max(1),
        median => (median - (median / 16).max(1)).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_burst_behind_a_lag_is_the_clients_up_to_the_lag() {
        let mut induced = Induced::new(2);
        // A server that takes one to three milliseconds.
        let mut at = 0;
        for round in 0..3_000 {
            at += MS;
            assert_eq!(induced.part_ns(0, at, (1 + round % 3) * MS), 0);
        }
        induced.sent(at, 9 * MS);
        assert_eq!(induced.part_ns(0, at, 30 * MS), 0, "no lag to speak of");
        induced.sent(at, 20 * MS);
        let usual = 30 * MS - 20 * MS;
        assert_eq!(induced.part_ns(0, at, usual + 15 * MS) / MS, 20);
        // No more than the lag, and nothing of the usual time.
        assert_eq!(induced.part_ns(0, at, 500 * MS), 20 * MS);
        assert_eq!(induced.part_ns(0, at, MS), 0);
        let part = induced.part_ns(0, at + 999 * MS, 10 * MS);
        assert!((7 * MS..9 * MS).contains(&part), "{part}");
        assert_eq!(induced.part_ns(0, at + 1_000 * MS, 30 * MS), 0);
        // Whose usual time is not known has no part.
        induced.sent(at + 1_000 * MS, 20 * MS);
        assert_eq!(induced.part_ns(1, at + 1_000 * MS, 30 * MS), 0);
    }

    #[test]
    fn the_usual_time_is_the_median() {
        let mut median = 0;
        // A tenth of the values are a hundred times as long.
        for round in 0..1_000u64 {
            median =
                median_step(median, if round % 10 == 0 { 100 * MS } else { (80 + round % 41) * MS / 100 });
        }
        assert!((900_000..1_150_000).contains(&median), "{median}");
    }
}
