//! When operations are due: intended starts as a pure function of the arrival's index.
//!
//! A [`Profile`] is a rate over time; its integral counts expected arrivals, and its inverse turns a position on that
//! count into a time. `constant` arrivals stand at the whole numbers, `poisson` arrivals at the partial sums of unit
//! exponentials (time change of a Poisson process). A load thread keeps every `stripes`-th arrival; for Poisson it
//! still walks the global gap sequence, so that N threads apply what one would.

use dyno_types::rng::{Purpose, draw_at, unit_interval};
use dyno_types::units::{BadUnit, parse_duration_ns, parse_rate};

const NS: f64 = 1e9;

/// Rate over time, operations per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Profile {
    /// The same rate for ever.
    Constant {
        /// Operations per second.
        rate: f64,
    },
    /// From one rate to another in a straight line, then constant.
    Ramp {
        /// Operations per second at the start.
        from: f64,
        /// Operations per second at the end.
        to: f64,
        /// Length of the ramp in nanoseconds.
        over_ns: u64,
    },
    /// Rates one after another, the last for ever.
    Steps {
        /// (operations per second, length in nanoseconds).
        steps: Vec<(f64, u64)>,
    },
    /// One profile for so long, then another from its beginning.
    After {
        /// The profile of the beginning.
        first: Box<Profile>,
        /// Length in nanoseconds.
        length_ns: u64,
        /// Arrivals in it.
        before: f64,
        /// The profile from then on.
        then: Box<Profile>,
    },
}

/// A text that is no rate over time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; a rate over time is ramp:FROM-TO:DURATION or steps:RATE:DURATION,RATE:DURATION")]
pub struct BadProfile {
    /// What is wrong with it.
    #[source]
    pub why: ProfileProblem,
}

/// Error in a rate over time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileProblem {
    /// A ramp without its length.
    #[error("a ramp needs a duration")]
    NoDuration,
    /// A ramp without two rates.
    #[error("a ramp needs two rates")]
    NoRates,
    /// A step without its length.
    #[error("the step {0:?} needs a rate and a duration")]
    Step(String),
    /// A rate or a duration that is none.
    #[error(transparent)]
    Quantity(#[from] BadUnit),
}

impl Profile {
    /// `first` for `length_ns` nanoseconds, then `then` from its beginning.
    pub fn first_then(first: Profile, length_ns: u64, then: Profile) -> Self {
        let before = first.count_at(length_ns);
        Profile::After { first: Box::new(first), length_ns, before, then: Box::new(then) }
    }

    /// Reads `20000`, `ramp:1000-20000:30s` or `steps:1000:10s,2000:10s`.
    pub fn parse(text: &str) -> Result<Self, BadProfile> {
        Self::read(text).map_err(|why| BadProfile { why })
    }

    fn read(text: &str) -> Result<Self, ProfileProblem> {
        let second = 1_000_000_000;
        if let Some(rest) = text.strip_prefix("ramp:") {
            let (rates, over) = rest.split_once(':').ok_or(ProfileProblem::NoDuration)?;
            let (from, to) = rates.split_once('-').ok_or(ProfileProblem::NoRates)?;
            return Ok(Profile::Ramp {
                from: parse_rate(from)?,
                to: parse_rate(to)?,
                over_ns: parse_duration_ns(over, second)?.max(1),
            });
        }
        if let Some(rest) = text.strip_prefix("steps:") {
            let step = |part: &str| {
                let (rate, length) =
                    part.split_once(':').ok_or_else(|| ProfileProblem::Step(part.to_owned()))?;
                let rate = parse_rate(rate)?;
                Ok((rate, parse_duration_ns(length, second)?.max(1)))
            };
            return Ok(Profile::Steps {
                steps: rest.split(',').map(step).collect::<Result<_, ProfileProblem>>()?,
            });
        }
        Ok(Profile::Constant { rate: parse_rate(text)? })
    }

    /// The time in nanoseconds at which `count` arrivals are expected: the inverse of the integrated rate.
    pub fn time_of(&self, count: f64) -> f64 {
        match self {
            Profile::Constant { rate } => count / rate * NS,
            Profile::Ramp { from, to, over_ns } => {
                let over = *over_ns as f64 / NS;
                let ramped = (from + to) / 2.0 * over;
                if count >= ramped {
                    return (over + (count - ramped) / to) * NS;
                }
                let slope = (to - from) / over;
                // The root of from*t + slope*t^2/2 = count that is stable for slopes near 0.
                2.0 * count / (from + (from * from + 2.0 * slope * count).max(0.0).sqrt()) * NS
            }
            Profile::Steps { steps } => {
                let (mut before, mut at) = (0.0, 0.0);
                for (i, &(rate, length_ns)) in steps.iter().enumerate() {
                    let here = rate * length_ns as f64 / NS;
                    if count < before + here || i + 1 == steps.len() {
                        return at + (count - before) / rate * NS;
                    }
                    before += here;
                    at += length_ns as f64;
                }
                f64::INFINITY
            }
            Profile::After { first, before, .. } if count < *before => first.time_of(count),
            Profile::After { length_ns, before, then, .. } => {
                *length_ns as f64 + then.time_of(count - before)
            }
        }
    }

    /// Computes how many arrivals are expected up to a time in nanoseconds: the integrated rate.
    pub fn count_at(&self, ns: u64) -> f64 {
        let seconds = ns as f64 / NS;
        match self {
            Profile::Constant { rate } => rate * seconds,
            Profile::Ramp { from, to, over_ns } => {
                let over = *over_ns as f64 / NS;
                let ramped = seconds.min(over);
                from * ramped + (to - from) / over * ramped * ramped / 2.0 + to * (seconds - ramped)
            }
            Profile::Steps { steps } => {
                let (mut count, mut left) = (0.0, ns);
                for (i, &(rate, length_ns)) in steps.iter().enumerate() {
                    let here = if i + 1 == steps.len() { left } else { left.min(length_ns) };
                    count += rate * here as f64 / NS;
                    left -= here;
                }
                count
            }
            Profile::After { first, length_ns, then, .. } => {
                first.count_at(ns.min(*length_ns)) + then.count_at(ns.saturating_sub(*length_ns))
            }
        }
    }

    /// The rate at a time in nanoseconds, operations per second.
    pub fn rate_at(&self, ns: u64) -> f64 {
        match self {
            Profile::Constant { rate } => *rate,
            Profile::Ramp { from, to, over_ns } => {
                from + (to - from) * (ns as f64 / *over_ns as f64).min(1.0)
            }
            Profile::Steps { steps } => {
                let mut end = 0;
                let found = steps.iter().find(|(_, length)| {
                    end += length;
                    ns < end
                });
                found.or(steps.last()).map_or(0.0, |(rate, _)| *rate)
            }
            Profile::After { first, length_ns, then, .. } => match ns.checked_sub(*length_ns) {
                Some(after) => then.rate_at(after),
                None => first.rate_at(ns),
            },
        }
    }
}

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
        for profile in &profiles {
            for process in [Process::Constant, Process::Poisson] {
                let whole = arrivals(profile, process, 0, 1, 600);
                let mut parts: Vec<_> = (0..3).flat_map(|s| arrivals(profile, process, s, 3, 200)).collect();
                parts.sort_unstable();
                assert_eq!(whole, parts);
                assert!(whole.windows(2).all(|w| w[0].1 <= w[1].1), "not monotone: {profile:?}");
            }
        }
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

    #[test]
    fn profiles_as_typed() {
        assert_eq!(Profile::parse("20k"), Ok(Profile::Constant { rate: 20_000.0 }));
        assert_eq!(
            Profile::parse("ramp:1k-20k:30s"),
            Ok(Profile::Ramp { from: 1e3, to: 2e4, over_ns: 30_000_000_000 })
        );
        assert!(
            matches!(Profile::parse("steps:1k:10s,2k:5s"), Ok(Profile::Steps { steps }) if steps.len() == 2)
        );
        assert!(Profile::parse("ramp:5").unwrap_err().to_string().contains("a ramp needs a duration"));
    }
}
