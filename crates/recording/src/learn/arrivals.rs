//! When operations came: their rate, and how bursty it is.

/// Scales at which the index of dispersion is told, nanoseconds.
pub(super) const SCALES_NS: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];

/// Counts of commands in windows of several lengths: mean and variance come as they are counted.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    windows: [Window; SCALES_NS.len()],
    count: u64,
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
    /// A command came at this time, not before the one before.
    pub fn note(&mut self, at_ns: u64) {
        for (window, scale) in self.windows.iter_mut().zip(SCALES_NS) {
            window.close_until(at_ns / scale);
            window.count += 1;
        }
        self.count += 1;
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / (self.last_ns.max(1) as f64 / 1e9)
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

#[cfg(test)]
mod tests {
    use super::*;

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
