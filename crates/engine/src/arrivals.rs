//! When operations are due: intended starts as a pure function of the arrival's index.
//!
//! A [`Profile`] is a rate over time (`rates`); its integral counts expected arrivals, and its inverse turns a position on that
//! count into a time. `constant` arrivals stand at the whole numbers, `poisson` arrivals at the partial sums of unit
//! exponentials (time change of a Poisson process). A load thread keeps every `stripes`-th arrival; for Poisson it
//! still walks the global gap sequence, so that N threads apply what one would.

pub use crate::rates::profile::Profile;

use dyno_types::rng::{Purpose, draw_at, unit_interval};

/// Arrival process within the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Evenly.
    Constant,
    /// As a Poisson process.
    Poisson,
}

/// One load thread's share of the arrivals, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    profile: Profile,
    process: Process,
    seed: u64,
    stripe: u64,
    stripes: u64,
    /// Index of the arrival that `due` belongs to.
    index: u64,
    count: f64,
    due_ns: u64,
    /// Index of the first arrival that is not wanted any more, of all shares.
    end: u64,
    /// Integrated rate at which it is due, once it has been passed.
    end_count: Option<f64>,
}

impl Schedule {
    /// The arrivals whose index is `stripe` modulo `stripes`, from time 0 on.
    pub fn new(profile: Profile, process: Process, seed: u64, stripe: u64, stripes: u64) -> Self {
        let mut schedule = Schedule {
            profile,
            process,
            seed,
            stripe,
            stripes,
            index: 0,
            count: 0.0,
            due_ns: 0,
            end: u64::MAX,
            end_count: None,
        };
        debug_assert!(stripe < stripes);
        if process == Process::Poisson {
            schedule.count = schedule.gap(0);
        }
        schedule.skip_to(stripe);
        schedule
    }

    fn gap(&self, index: u64) -> f64 {
        let gap = -(1.0 - unit_interval(draw_at(self.seed, index, Purpose::Arrival))).ln();
        debug_assert!(gap >= 0.0, "an arrival does not come before the one before");
        debug_assert!(gap.is_finite(), "no arrival would come any more");
        gap
    }

    fn skip_to(&mut self, index: u64) {
        debug_assert!(index >= self.index, "the gaps that were walked over are not kept");
        match self.process {
            Process::Constant => self.count = index as f64,
            Process::Poisson => {
                for i in self.index + 1..=index {
                    self.count += self.gap(i);
                    if i == self.end {
                        self.end_count = Some(self.count);
                    }
                }
            }
        }
        self.index = index;
        self.due_ns = self.profile.time_of(self.count) as u64;
    }

    /// Ends the schedule of all shares before arrival `index`, which this share has not passed yet.
    pub fn end_before(&mut self, index: u64) {
        self.end = index;
        self.end_count = match self.process {
            Process::Constant => Some(index as f64),
            Process::Poisson => (self.index == index).then_some(self.count),
        };
    }

    /// Returns when the first arrival beyond the end would be due, nanoseconds, as soon as that is known: at the latest when the
    /// next one of this share is not before it.
    pub fn end_due_ns(&self) -> Option<u64> {
        self.end_count.map(|count| self.profile.time_of(count) as u64)
    }

    /// The next arrival of this share: its index and its intended start in nanoseconds.
    #[inline]
    pub fn peek_arrival(&self) -> (u64, u64) {
        (self.index, self.due_ns)
    }

    /// Goes on to the one after.
    #[inline]
    pub fn advance_arrival(&mut self) {
        debug_assert_eq!(self.index % self.stripes, self.stripe);
        self.skip_to(self.index + self.stripes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::text::ProfileSource;

    fn arrivals(profile: &Profile, process: Process, stripe: u64, stripes: u64, n: usize) -> Vec<(u64, u64)> {
        let mut s = Schedule::new(profile.clone(), process, 7, stripe, stripes);
        (0..n)
            .map(|_| {
                let at = s.peek_arrival();
                s.advance_arrival();
                at
            })
            .collect()
    }

    #[test]
    fn constant_rate_stands_on_whole_ticks() {
        let all = arrivals(&Profile::Constant { rate: 1000.0 }, Process::Constant, 0, 1, 4);
        assert_eq!(all, [(0, 0), (1, 1_000_000), (2, 2_000_000), (3, 3_000_000)]);
    }

    #[test]
    fn every_share_knows_when_the_first_arrival_beyond_the_end_is_due() {
        for process in [Process::Constant, Process::Poisson] {
            let whole = arrivals(&after(), process, 0, 1, 101);
            for (stripe, stripes) in [(0, 1), (0, 3), (1, 3), (2, 3)] {
                let mut share = Schedule::new(after(), process, 7, stripe, stripes);
                share.end_before(100);
                while share.peek_arrival().0 < 100 {
                    share.advance_arrival();
                }
                assert_eq!(share.end_due_ns(), Some(whole[100].1), "{process:?} {stripe} of {stripes}");
            }
        }
    }

    #[test]
    fn stripes_together_are_the_whole() {
        let profiles = [
            Profile::Constant { rate: 12_345.6 },
            Profile::Ramp { from: 100.0, to: 5_000.0, over_ns: 50_000_000 },
            Profile::Steps { steps: vec![(500.0, 10_000_000), (9_000.0, 10_000_000)] },
            after(),
        ];
        for profile in profiles.iter().chain(&changing()) {
            for process in [Process::Constant, Process::Poisson] {
                let whole = arrivals(profile, process, 0, 1, 600);
                let mut parts: Vec<_> = (0..3).flat_map(|s| arrivals(profile, process, s, 3, 200)).collect();
                parts.sort_unstable();
                assert_eq!(whole, parts);
                assert!(whole.windows(2).all(|w| w[0].1 <= w[1].1), "not monotone: {profile:?}");
            }
        }
    }

    /// One of each kind that is read from a text, with pauses in them.
    fn changing() -> Vec<Profile> {
        let file =
            |_: &str| Ok("time,rate\n0,0\n0.01,5000\n0.02,5000\n0.021,0\n0.03,0\n0.04,9000\n".to_owned());
        let source = ProfileSource { seed: 3, file: &file };
        let texts = [
            "file:x",
            "file:x:repeat",
            "file:x:steps",
            "day:0:5k:20ms",
            "day:100:9k:50ms:10ms",
            "bursty:1k:9k:5ms",
            "mmpp:0:2ms,9k:3ms",
            "steps:5k:10ms,0:10ms,9k:10ms",
            "ramp:0-5k:50ms",
        ];
        texts.iter().map(|text| Profile::parse(text, &source).unwrap()).collect()
    }

    /// 20 ms at 500/s, then a ramp.
    fn after() -> Profile {
        Profile::first_then(
            Profile::Constant { rate: 500.0 },
            20_000_000,
            Profile::Ramp { from: 100.0, to: 5_000.0, over_ns: 50_000_000 },
        )
    }

    #[test]
    fn one_profile_after_another() {
        let profile = after();
        assert_eq!((profile.rate_at(19_999_999), profile.rate_at(20_000_000)), (500.0, 100.0));
        let times: Vec<u64> =
            arrivals(&profile, Process::Constant, 0, 1, 11).into_iter().map(|(_, at)| at).collect();
        assert_eq!(times[..11], [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20].map(|ms| ms * 1_000_000));
        assert!((profile.time_of(10.0 + 127.5) - 70e6).abs() < 1.0);
    }

    #[test]
    fn counts_and_times_are_each_other_s_inverse() {
        let steps = Profile::Steps { steps: vec![(500.0, 10_000_000), (9_000.0, 10_000_000)] };
        let ramp = Profile::Ramp { from: 100.0, to: 5_000.0, over_ns: 50_000_000 };
        for profile in [Profile::Constant { rate: 77.0 }, ramp, steps, after()] {
            for ms in [0, 1, 10, 15, 20, 33, 50, 70, 200] {
                let ns = ms * 1_000_000;
                assert!((profile.time_of(profile.count_at(ns)) - ns as f64).abs() < 1.0, "{profile:?} {ms}");
            }
        }
        for profile in changing() {
            let mut before = -1.0;
            for tenth in 0..2_000 {
                let count = f64::from(tenth) / 10.0;
                let at = profile.time_of(count);
                assert!(at >= before, "not monotone: {profile:?} {count}");
                // A time is cut off to a nanosecond, in which some thousandths of an arrival are due at most.
                assert!((profile.count_at(at as u64) - count).abs() < 1e-4, "{profile:?} {count} {at}");
                before = at;
            }
            for ms in 0..200 {
                let (from, to) = (ms * 1_000_000, (ms + 1) * 1_000_000);
                let steps = 1_000;
                let rate = |step: u64| profile.rate_at(from + (to - from) / steps * step + 500);
                let sum: f64 = (0..steps).map(rate).sum::<f64>() / steps as f64 / 1e3;
                let counted = profile.count_at(to) - profile.count_at(from);
                assert!((counted - sum).abs() < 0.011, "{profile:?} {ms}: {counted} of {sum}");
            }
        }
    }

    #[test]
    fn a_ramp_reaches_its_count() {
        let ramp = Profile::Ramp { from: 100.0, to: 300.0, over_ns: 2_000_000_000 };
        assert!((ramp.time_of(400.0) - 2e9).abs() < 1.0);
        assert!((ramp.time_of(700.0) - 3e9).abs() < 1.0);
        assert!((ramp.time_of(150.0) - 1e9).abs() < 1.0);
        assert_eq!(ramp.rate_at(1_000_000_000), 200.0);
        let flat = Profile::Ramp { from: 100.0, to: 100.0, over_ns: 1_000_000_000 };
        assert!((flat.time_of(50.0) - 0.5e9).abs() < 1.0);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let n = 100_000;
        let all = arrivals(&Profile::Constant { rate: 1e6 }, Process::Poisson, 0, 1, n);
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1].1 - w[0].1) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1_000.0).abs() < 12.0, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    /// Variance by mean of the arrivals in windows of `window_s` seconds: of a two-state Markov-modulated Poisson process it is
    /// 1 + 2 a b (x - y)^2 / ((a + b)^2 (x b + y a)) (1 - (1 - e^-(a + b) t) / ((a + b) t)), with the rates x and y and the rates
    /// a and b at which it leaves them (Heffes and Lucantoni 1986).
    #[test]
    fn the_dispersion_of_a_two_state_process_is_that_of_its_closed_form() {
        let source = ProfileSource { seed: 11, file: &|_| Ok(String::new()) };
        let profile = Profile::parse("mmpp:20:400ms,120:200ms", &source).unwrap();
        let ((x, y), (a, b)): ((f64, f64), (f64, f64)) = ((20.0, 120.0), (1.0 / 0.4, 1.0 / 0.2));
        let mut schedule = Schedule::new(profile, Process::Poisson, 5, 0, 1);
        let (windows, shortest_ns) = (64_000, 250_000_000);
        let mut counts = vec![0.0; windows];
        while schedule.peek_arrival().1 < windows as u64 * shortest_ns {
            counts[(schedule.peek_arrival().1 / shortest_ns) as usize] += 1.0;
            schedule.advance_arrival();
        }
        for wide in [1, 4, 16] {
            let sums: Vec<f64> = counts.chunks_exact(wide).map(|part| part.iter().sum()).collect();
            let mean = sums.iter().sum::<f64>() / sums.len() as f64;
            let variance = sums.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / (sums.len() - 1) as f64;
            let (t, out) = (wide as f64 * 0.25, a + b);
            let own = 2.0 * a * b * (x - y).powi(2) / (out.powi(2) * (x * b + y * a));
            let expected = 1.0 + own * (1.0 - (1.0 - (-out * t).exp()) / (out * t));
            let found = variance / mean;
            assert!((found / expected - 1.0).abs() < 0.06, "{t} s: {found} of {expected}");
            assert!(expected > 3.0, "a Poisson process has 1");
        }
    }
}
