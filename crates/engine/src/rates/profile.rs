//! A rate over time, its integral and the inverse of that.

use super::day::DayCurve;
use super::pieces::{Pieces, count_on_line, time_on_line};

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
    /// Straight pieces: a file's points, bursts, a two-state process.
    Pieces(Pieces),
    /// A day's curve, again and again.
    Day(DayCurve),
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

impl Profile {
    /// `first` for `length_ns` nanoseconds, then `then` from its beginning.
    pub fn first_then(first: Profile, length_ns: u64, then: Profile) -> Self {
        let before = first.count_at(length_ns);
        Profile::After { first: Box::new(first), length_ns, before, then: Box::new(then) }
    }

    /// Returns whether the rate never changes; that of a beginning apart, such as a warm-up's.
    pub fn is_constant(&self) -> bool {
        match self {
            Profile::Constant { .. } => true,
            Profile::After { then, .. } => then.is_constant(),
            Profile::Pieces(pieces) => pieces.is_level(),
            Profile::Day(day) => day.low == day.high,
            Profile::Ramp { .. } | Profile::Steps { .. } => false,
        }
    }

    /// Arrivals that there ever are; `None` where they do not end.
    pub fn total(&self) -> Option<f64> {
        match self {
            Profile::Steps { steps } if steps.last().is_some_and(|(rate, _)| *rate == 0.0) => {
                Some(steps.iter().map(|(rate, length_ns)| rate * *length_ns as f64 / NS).sum())
            }
            Profile::Pieces(pieces) => pieces.total(),
            Profile::After { before, then, .. } => then.total().map(|total| before + total),
            Profile::Constant { .. } | Profile::Ramp { .. } | Profile::Steps { .. } | Profile::Day(_) => None,
        }
    }

    /// The time in nanoseconds at which `count` arrivals are expected: the inverse of the integrated rate. Where nothing is due
    /// for a while it is the end of that while, and infinite where nothing ever is again.
    pub fn time_of(&self, count: f64) -> f64 {
        match self {
            Profile::Constant { rate } => count / rate * NS,
            Profile::Ramp { from, to, over_ns } => {
                let over = *over_ns as f64 / NS;
                let ramped = (from + to) / 2.0 * over;
                match count >= ramped {
                    true => (over + (count - ramped) / to) * NS,
                    false => time_on_line(*from, *to, over, count) * NS,
                }
            }
            Profile::Steps { steps } => {
                let (mut before, mut at) = (0.0, 0.0);
                for (i, &(rate, length_ns)) in steps.iter().enumerate() {
                    let here = rate * length_ns as f64 / NS;
                    let last = i + 1 == steps.len();
                    if last && rate == 0.0 {
                        break;
                    }
                    if count < before + here || last {
                        return at + (count - before) / rate * NS;
                    }
                    before += here;
                    at += length_ns as f64;
                }
                f64::INFINITY
            }
            Profile::Pieces(pieces) => pieces.time_of(count),
            Profile::Day(day) => day.time_of(count),
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
                count_on_line(*from, *to, over, ramped) + to * (seconds - ramped)
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
            Profile::Pieces(pieces) => pieces.count_at(ns),
            Profile::Day(day) => day.count_at(ns),
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
            Profile::Pieces(pieces) => pieces.rate_at(ns),
            Profile::Day(day) => day.rate_at(ns),
            Profile::After { first, length_ns, then, .. } => match ns.checked_sub(*length_ns) {
                Some(after) => then.rate_at(after),
                None => first.rate_at(ns),
            },
        }
    }
}
