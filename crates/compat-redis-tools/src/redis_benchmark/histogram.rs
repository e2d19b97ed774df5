//! Latencies as HdrHistogram has them: microseconds from 10 µs to 3 s, and the two lists of a report.

use dyno_record::{Buckets, bucket_high};
use hdrhistogram::Histogram;

/// Least value with the histogram's precision, microseconds.
const LEAST: u64 = 10;
/// Greatest value; longer latencies are counted as this one, microseconds.
const GREATEST: u64 = 3_000_000;
/// Steps of the second list, microseconds: up to `FINE_UNTIL`, and beyond.
const FINE: u64 = 100;
const COARSE: u64 = 1_000;
const FINE_UNTIL: u64 = 2_000;

/// A line of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ListLine {
    /// Share of latencies, per cent.
    pub percent: f64,
    /// Bound, microseconds.
    pub bound_us: u64,
    /// Latencies up to the bound.
    pub count: u64,
}

/// The histogram.
pub(super) struct Latencies(Histogram<u64>);

/// Makes a histogram; bounds and digits of a plan are always possible.
fn histogram(least: u64, greatest: u64, digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(least, greatest.max(2 * least), digits.clamp(1, 4))
        .expect("the bounds are a power of two apart, and digits are 1 to 4")
}

impl Latencies {
    /// Latencies of operations, each of which is counted `times` times.
    pub fn new(buckets: &Buckets, digits: u8, times: u64) -> Self {
        let mut all = histogram(LEAST, GREATEST, digits);
        let unit_ns = buckets.bucket_scale().unit_ns();
        for (bucket, count) in buckets.iter() {
            let us = bucket_high(bucket).saturating_mul(unit_ns) / 1_000;
            all.saturating_record_n(us.min(GREATEST), count * times);
        }
        Latencies(all)
    }

    /// Requests a second of intervals, whose target is `rate`; values above its double are dropped, as in the original.
    pub fn of_rates(rates: &[f64], rate: f64, digits: u8) -> Self {
        let greatest = rate as u64 * 2;
        let mut all = histogram(1, greatest, digits);
        for rate in rates.iter().map(|rate| *rate as u64).filter(|rate| *rate <= greatest) {
            all.saturating_record(rate);
        }
        Latencies(all)
    }

    pub fn mean(&self) -> f64 {
        let sum: f64 =
            self.recorded().map(|(value, count)| self.0.median_equivalent(value) as f64 * count as f64).sum();
        sum / self.0.len() as f64
    }

    pub fn min(&self) -> u64 {
        self.0.min()
    }

    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The bound below which a share of the latencies lies, with the original's rounding of counts.
    pub fn at(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0 * self.0.len() as f64 + 0.5) as u64).max(1);
        let mut seen = 0;
        let found = self.recorded().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |(value, _)| self.0.highest_equivalent(value))
    }

    /// Values with their counts, in ascending order.
    fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()))
    }

    /// The first list: half of the remaining way to 100 % in each step.
    pub fn percentiles(&self) -> Vec<ListLine> {
        let total = self.0.len();
        let (mut seen, mut bound_us, mut wanted) = (0, 0, 0.0);
        let mut lines = Vec::new();
        for (value, count) in self.recorded() {
            seen += count;
            bound_us = self.0.highest_equivalent(value);
            while wanted <= 100.0 * seen as f64 / total as f64 {
                lines.push(ListLine { percent: wanted, bound_us, count: seen });
                wanted += step_towards_hundred(wanted);
                if seen == total {
                    break;
                }
            }
        }
        lines.push(ListLine { percent: 100.0, bound_us, count: seen });
        changed(lines, total)
    }

    /// The second list: steps of equal length.
    pub fn distribution(&self) -> Vec<ListLine> {
        let total = self.0.len();
        let mut lines = Vec::new();
        let mut place = Place { all: &self.0, passed: 0, value: 0, seen: 0 };
        let (mut step, mut level) = (FINE, FINE);
        while place.seen < total || place.is_next_above(self.0.lowest_equivalent(level)) {
            let lowest = self.0.lowest_equivalent(level);
            while place.value < lowest && place.advance() {}
            level += step;
            let bound_us = self.0.highest_equivalent(place.value);
            let percent = place.seen as f64 / total as f64 * 100.0;
            lines.push(ListLine { percent, bound_us, count: place.seen });
            if bound_us > FINE_UNTIL {
                step = COARSE;
            }
        }
        changed(lines, total)
    }
}

/// A place on the way through all buckets of a histogram.
struct Place<'a> {
    all: &'a Histogram<u64>,
    /// Buckets up to this place.
    passed: usize,
    /// Least value of the last one.
    value: u64,
    /// Latencies up to this place.
    seen: u64,
}

impl Place<'_> {
    fn next_value(&self) -> u64 {
        if self.passed == 0 { 0 } else { self.all.next_non_equivalent(self.value) }
    }

    /// Goes on to the next bucket; false behind the last.
    fn advance(&mut self) -> bool {
        let value = self.next_value();
        self.passed += 1;
        if self.passed > self.all.distinct_values() {
            return false;
        }
        self.value = value;
        self.seen += self.all.count_at(value);
        true
    }

    fn is_next_above(&self, bound: u64) -> bool {
        self.passed <= self.all.distinct_values() && self.next_value() > bound
    }
}

/// Half of the way to 100 %, rounded to a power of two as HdrHistogram does.
fn step_towards_hundred(percent: f64) -> f64 {
    let halvings = ((100.0 / (100.0 - percent)).ln() / 2.0f64.ln()) as i32 + 1;
    100.0 / 2.0f64.powi(halvings)
}

/// Leaves out lines whose count is that of the line before, unless it is the total.
fn changed(lines: Vec<ListLine>, total: u64) -> Vec<ListLine> {
    let mut last = None;
    let is_shown = |line: &ListLine| last.replace(line.count) != Some(line.count) || line.count == total;
    lines.into_iter().filter(is_shown).collect()
}
