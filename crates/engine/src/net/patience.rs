//! How long an answer is awaited.

/// Time that is left for an answer. Only time in which this process looked for it counts: an answer may have come long ago
/// while the process was stopped or starved of CPU time, and a server is not to be called silent for that.
pub struct Patience {
    left_ns: u64,
    looked_ns: u64,
    /// Time between two looks, nanoseconds. More than that was not spent waiting.
    look_ns: u64,
}

impl Patience {
    /// Waits from `now` for `length_ns`, with a look every `look_ns` at the latest.
    pub fn new(now: u64, length_ns: u64, look_ns: u64) -> Self {
        Patience { left_ns: length_ns, looked_ns: now, look_ns }
    }

    /// Counts the time since the last look, and returns what is left, nanoseconds.
    pub fn count_wait(&mut self, now: u64) -> u64 {
        let waited_ns = now.saturating_sub(self.looked_ns).min(self.look_ns);
        self.looked_ns = now;
        self.left_ns = self.left_ns.saturating_sub(waited_ns);
        self.left_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 looks of 10 ms use up one second; a process that was stopped for an hour between two of them has waited 10 ms more.
    #[test]
    fn a_process_that_does_not_run_does_not_wait() {
        let (second, look_ns) = (1_000_000_000, 10_000_000);
        let mut patience = Patience::new(5, second, look_ns);
        for look in 1..50 {
            assert_eq!(patience.count_wait(5 + look * look_ns), second - look * look_ns);
        }
        let stopped = 5 + 49 * look_ns + 3_600 * second;
        assert_eq!(patience.count_wait(stopped), second / 2);
        assert_eq!(patience.count_wait(stopped + 1_000), second / 2 - 1_000);
        for look in 1..=50 {
            patience.count_wait(stopped + 1_000 + look * look_ns);
        }
        assert_eq!(patience.count_wait(stopped + second), 0);
    }
}
