//! When operations came: their rate, and how bursty it is.

/// Scales at which the index of dispersion is told, nanoseconds.
pub(super) const SCALES_NS: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];

/// Counts of commands in windows of several lengths: mean and variance come as they are counted.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    windows: [Window; SCALES_NS.len()],
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

/// Windows of one length.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    number: u64,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Window {
    fn close_until(&mut self, number: u64) {
        if number <= self.number {
            return;
        }
        self.sum += self.count as f64;
        self.squares += (self.count as f64).powi(2);
        // Windows without commands count, too: they add nothing to either sum.
        (self.number, self.count) = (number, 0);
    }
}

impl Arrivals {
    /// A command came at this time, not before the one before. Before the first one there is no time.
    pub fn note(&mut self, at_ns: u64) {
        if self.count == 0 {
            self.first_ns = at_ns;
        }
        let at_ns = at_ns.saturating_sub(self.first_ns);
        for (window, scale) in self.windows.iter_mut().zip(SCALES_NS) {
            window.close_until(at_ns / scale);
            window.count += 1;
        }
        self.count += 1;
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.seconds().max(1e-9)
    }

    /// Time from the first to the last one, seconds.
    pub fn seconds(&self) -> f64 {
        self.last_ns as f64 / 1e9
    }

    /// Variance by mean of the counts in whole windows of each scale (Cox and Lewis 1966): 1 for a Poisson process, more for
    /// bursts; `None` of a scale with fewer than 30 windows.
    pub fn dispersion(&self) -> [Option<f64>; SCALES_NS.len()] {
        self.windows.map(|window| {
            let windows = window.number as f64;
            let mean = window.sum / windows;
            let variance = (window.squares - windows * mean * mean) / (windows - 1.0);
            (windows >= 30.0 && mean > 0.0).then(|| variance / mean)
        })
    }
}

/// Operations of a workload by their number of commands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OperationSizes {
    count: f64,
    commands: f64,
    squares: f64,
}

impl OperationSizes {
    /// Adds so many operations of so many commands.
    pub fn add_operations(&mut self, operations: u64, commands: usize) {
        let (operations, commands) = (operations as f64, commands as f64);
        self.count += operations;
        self.commands += operations * commands;
        self.squares += operations * commands * commands;
    }

    /// The index of dispersion of the commands' counts in windows of a length, where operations come at a rate: by chance
    /// (a compound Poisson process), or evenly.
    pub fn dispersion(&self, rate: f64, scale_ns: u64, is_even: bool) -> f64 {
        let (mean, square) = (self.commands / self.count, self.squares / self.count);
        if !is_even {
            return square / mean;
        }
        let operations = rate * scale_ns as f64 / 1e9;
        // As many operations as fit, or one more.
        let part = operations.fract();
        (mean * mean * part * (1.0 - part) + operations * (square - mean * mean)) / (operations * mean)
    }

    /// Whether arrivals that come evenly are nearer to these indices than those that come by chance.
    pub fn are_even(&self, rate: f64, indices: [Option<f64>; SCALES_NS.len()]) -> bool {
        // Below a tenth all are even.
        let far = |a: f64, b: f64| ((a + 0.1) / (b + 0.1)).ln().abs();
        let off = |is_even: bool| -> f64 {
            let known = indices.iter().zip(SCALES_NS).filter_map(|(index, scale)| Some(((*index)?, scale)));
            known.map(|(index, scale)| far(index, self.dispersion(rate, scale, is_even))).sum()
        };
        self.count > 0.0 && off(true) < off(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_several_commands_are_bursts() {
        let mut sizes = OperationSizes::default();
        sizes.add_operations(10, 1);
        sizes.add_operations(10, 3);
        // Mean 2, mean square 5.
        assert_eq!(sizes.dispersion(100.0, 1_000_000_000, false), 2.5);
        // A hundred operations in each second: 100 times the variance 1, by 200 commands.
        assert_eq!(sizes.dispersion(100.0, 1_000_000_000, true), 0.5);
        // Of a quarter of an operation: 4 * 3 / 16 + 1 / 4, by a half.
        assert!((sizes.dispersion(25.0, 10_000_000, true) - 2.0).abs() < 1e-12);
        assert!(
            sizes.are_even(100.0, [None, None, Some(0.6)])
                && !sizes.are_even(100.0, [None, Some(2.0), Some(2.4)])
        );
        assert!(!OperationSizes::default().are_even(100.0, [None; 3]));
    }

    #[test]
    fn even_commands_have_no_dispersion_and_bursts_have_much() {
        let mut even = Arrivals::default();
        (0..100_000u64).for_each(|n| even.note(n * 1_000_000));
        assert!(even.dispersion().iter().flatten().all(|index| *index < 1e-6), "{:?}", even.dispersion());
        // A hundred at a time, each second: in windows of 10 ms the variance is 100 times 99 hundredths of the mean.
        let mut bursts = Arrivals::default();
        (0..100u64).for_each(|n| (0..100).for_each(|_| bursts.note(n * 1_000_000_000)));
        let [fine, _, coarse] = bursts.dispersion();
        assert!((fine.unwrap() - 99.0).abs() < 1.0 && coarse.unwrap() < 1e-6, "{fine:?} {coarse:?}");
    }
}
