//! Flat histograms with HdrHistogram's bucket index for three significant digits.
//!
//! A value in *units* (64 ns, or whole microseconds for YCSB's reports) below 2048 has a bucket of its own; above, each
//! doubling is divided into 1024 buckets. The index equals HdrHistogram's `countsArrayIndex`, so a histogram in units
//! of 64 ns is, count by count, one with `lowestDiscernibleValue` 64. Thread-side counts are u32 (a thread cannot
//! record 2^32 samples in a second); merged counts are u64.

use dyno_types::limits::HISTOGRAM_BITS;

/// Buckets below the first doubling.
const LINEAR: u64 = 2048;
/// Number of buckets of a histogram.
const LEN: usize = ((HISTOGRAM_BITS - 11) as usize) * 1024 + 2048;
const MAX_UNITS: u64 = (1 << HISTOGRAM_BITS) - 1;

/// The unit values are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// 64 nanoseconds: the engine's own.
    Ns64,
    /// Whole microseconds, truncated: what YCSB records.
    Micros,
}

impl Scale {
    /// Length of the unit in nanoseconds.
    pub fn unit_ns(self) -> u64 {
        match self {
            Scale::Ns64 => 64,
            Scale::Micros => 1_000,
        }
    }

    /// Nanoseconds to whole units, truncated.
    #[inline]
    pub fn to_units(self, ns: u64) -> u64 {
        match self {
            Scale::Ns64 => ns >> 6,
            Scale::Micros => ns / 1_000,
        }
    }
}

/// The bucket of a value in units (HdrHistogram's `countsArrayIndex` for 2048 sub-buckets).
#[inline]
pub fn bucket_of(units: u64) -> usize {
    if units < LINEAR {
        return units as usize;
    }
    let doubling = 53 - units.leading_zeros() as u64;
    debug_assert!((LINEAR / 2..LINEAR).contains(&(units >> doubling)), "each doubling has 1024 buckets");
    ((doubling << 10) + (units >> doubling)) as usize
}

/// The lowest value in units that falls into a bucket.
pub fn bucket_low(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < LINEAR {
        return bucket;
    }
    let doubling = (bucket >> 10) - 1;
    (bucket - (doubling << 10)) << doubling
}

/// The highest value in units that falls into a bucket ("highest equivalent value").
pub fn bucket_high(bucket: usize) -> u64 {
    let doubling = (bucket as u64 >> 10).saturating_sub(1);
    bucket_low(bucket) + (1 << doubling) - 1
}

/// A load thread's histogram of one interval.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32]>,
    scale: Scale,
    sum_ns: u64,
    /// Above the greatest if there are no samples. The number of samples is the sum of the counts.
    min_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// An empty histogram: 108 KiB of address space, resident only where touched.
    pub fn new(scale: Scale) -> Self {
        Histogram { counts: vec![0; LEN].into_boxed_slice(), scale, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = self.bucket(ns);
        self.counts[bucket] += 1;
        self.sum_ns += ns;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    #[inline]
    fn bucket(&self, ns: u64) -> usize {
        let units = self.scale.to_units(ns).min(MAX_UNITS);
        let bucket = bucket_of(units);
        debug_assert!(bucket < LEN);
        debug_assert!(bucket_low(bucket) <= units, "a value lies in its bucket");
        debug_assert!(units <= bucket_high(bucket), "a value lies in its bucket");
        bucket
    }

    /// The buckets that may hold something.
    fn touched(&self) -> std::ops::Range<usize> {
        if self.is_empty() { 0..0 } else { self.bucket(self.min_ns)..self.bucket(self.max_ns) + 1 }
    }

    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.min_ns > self.max_ns
    }

    /// Number of samples, added up.
    pub fn count(&self) -> u64 {
        self.counts[self.touched()].iter().map(|n| u64::from(*n)).sum()
    }

    /// Forgets everything, touching only what was touched.
    pub fn reset(&mut self) {
        let touched = self.touched();
        self.counts[touched].fill(0);
        (self.sum_ns, self.min_ns, self.max_ns) = (0, u64::MAX, 0);
    }
}

/// Merged counts: what travels to logs, reports and percentiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    counts: Vec<u64>,
    scale: Scale,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// Samples that must lie beyond a percentile for it to be shown.
const BEYOND: f64 = 10.0;

/// Returns whether ten of `count` samples lie beyond a percentile: of 1,000 beyond the 99th, of 10,000 beyond the 99.9th.
pub fn is_supported(count: u64, percentile: f64) -> bool {
    // 100 - 99.9 is a little below 0.1.
    count as f64 * (100.0 - percentile) / 100.0 > BEYOND - 1e-6
}

impl Buckets {
    /// No samples yet.
    pub fn new(scale: Scale) -> Self {
        Buckets { counts: Vec::new(), scale, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// The unit of the buckets.
    pub fn bucket_scale(&self) -> Scale {
        self.scale
    }

    /// Adds a thread's histogram of the same scale.
    pub fn add(&mut self, other: &Histogram) {
        assert_eq!(self.scale, other.scale, "histograms of one run share their scale");
        if other.is_empty() {
            return;
        }
        let touched = other.touched();
        debug_assert!(!touched.is_empty(), "what holds a sample has touched its bucket");
        let before = self.count;
        if self.counts.len() < touched.end {
            self.counts.resize(touched.end, 0);
        }
        for bucket in touched {
            self.counts[bucket] += u64::from(other.counts[bucket]);
            self.count += u64::from(other.counts[bucket]);
        }
        self.sum_ns += u128::from(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        debug_assert!(self.count > before, "a histogram that is not empty adds samples");
        debug_assert!(self.min_ns <= self.max_ns);
    }

    /// Adds merged counts of the same scale.
    pub fn merge(&mut self, other: &Buckets) {
        assert_eq!(self.scale, other.scale, "histograms of one run share their scale");
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Adds counts of the same scale that list their buckets.
    fn merge_sparse(&mut self, other: &SparseBuckets) {
        assert_eq!(self.scale, other.scale, "histograms of one run share their scale");
        let Some((last, _)) = other.counts.last() else { return };
        if self.counts.len() <= *last as usize {
            self.counts.resize(*last as usize + 1, 0);
        }
        for (bucket, count) in &other.counts {
            self.counts[*bucket as usize] += count;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Counts one latency in nanoseconds (not for the hot path).
    pub fn record(&mut self, ns: u64) {
        self.add_bucket(bucket_of(self.scale.to_units(ns).min(MAX_UNITS)), 1);
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds `count` samples to a bucket, as a reader of a log does; sum and extremes must be set by
    /// [`Buckets::restore_extremes`].
    pub fn add_bucket(&mut self, bucket: usize, count: u64) {
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
        self.count += count;
    }

    /// Sets sum and extremes (nanoseconds) of counts that were read back from a file.
    pub fn restore_extremes(&mut self, sum_ns: u128, min_ns: u64, max_ns: u64) {
        (self.sum_ns, self.min_ns, self.max_ns) = (sum_ns, min_ns, max_ns);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all samples in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean in nanoseconds; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Exact minimum in nanoseconds; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Exact maximum in nanoseconds; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Buckets that hold samples, in ascending order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|&(_, c)| c > 0)
    }

    /// The bucket in which the `percentile` (0 to 100) lies, by HdrHistogram 2.1.12's rule: the smallest bucket whose
    /// cumulative count reaches `max(1, ceil(nextDown(p) / 100 * n))`.
    fn bucket_at(&self, percentile: f64) -> Option<usize> {
        let wanted = wanted(percentile, self.count);
        let mut seen = 0;
        let found = self.iter().find_map(|(bucket, count)| {
            seen += count;
            (seen >= wanted).then_some(bucket)
        });
        debug_assert_eq!(found.is_some(), self.count > 0, "the buckets hold as many samples as were counted");
        found
    }

    /// Percentile in units: the highest equivalent value of its bucket; 0 when empty.
    pub fn percentile_units(&self, percentile: f64) -> u64 {
        self.bucket_at(percentile).map_or(0, bucket_high)
    }

    /// Percentile in nanoseconds: the end of its bucket, but never above the exact maximum.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        let unit = self.scale.unit_ns();
        self.bucket_at(percentile).map_or(0, |b| (bucket_high(b) * unit + unit - 1).min(self.max_ns))
    }

    /// HdrHistogram's mean in units: each sample counts as its bucket's median-equivalent value.
    pub fn hdr_mean_units(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let sum: f64 = self.iter().map(|(bucket, count)| middle(bucket) as f64 * count as f64).sum();
        sum / self.count as f64
    }

    /// HdrHistogram's minimum in units: lowest equivalent of the smallest value.
    pub fn hdr_min_units(&self) -> u64 {
        self.iter().next().map_or(0, |(bucket, _)| bucket_low(bucket))
    }

    /// HdrHistogram's maximum in units: highest equivalent of the largest value.
    pub fn hdr_max_units(&self) -> u64 {
        self.counts.iter().rposition(|&c| c > 0).map_or(0, bucket_high)
    }
}

/// Merged counts as they travel: only the buckets that hold samples.
///
/// A second of a worker touches some hundreds of the thousands of buckets. Adding up those of many workers costs what they hold,
/// not what they could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseBuckets {
    pub(crate) scale: Scale,
    pub(crate) count: u64,
    pub(crate) sum_ns: u128,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    /// Bucket and count, in ascending order.
    pub(crate) counts: Vec<(u32, u64)>,
}

impl SparseBuckets {
    /// No samples.
    pub(crate) fn new(scale: Scale) -> Self {
        SparseBuckets { scale, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0, counts: Vec::new() }
    }

    /// Counts by bucket, in ascending order, as a reader of a log has them: in the sum each sample counts as its bucket's middle,
    /// and the extremes are ends of buckets.
    pub fn from_counts(scale: Scale, counts: Vec<(u32, u64)>) -> Self {
        debug_assert!(counts.windows(2).all(|pair| pair[0].0 < pair[1].0), "buckets ascend");
        let unit = scale.unit_ns();
        let mut all = SparseBuckets { counts, ..SparseBuckets::new(scale) };
        for (bucket, count) in &all.counts {
            let bucket = *bucket as usize;
            all.count += count;
            all.sum_ns += u128::from(*count) * u128::from(middle(bucket) * unit);
            all.min_ns = all.min_ns.min(bucket_low(bucket) * unit);
            all.max_ns = all.max_ns.max(bucket_high(bucket).saturating_mul(unit).saturating_add(unit - 1));
        }
        all
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Percentile in nanoseconds, as [`Buckets::percentile_ns`] has it; 0 when empty.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        let (wanted, unit) = (wanted(percentile, self.count), self.scale.unit_ns());
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |(bucket, _)| (bucket_high(*bucket as usize) * unit + unit - 1).min(self.max_ns))
    }
}

/// Counts that can be added to [`Buckets`].
pub trait Counts {
    /// Adds them to `buckets` of the same scale.
    fn add_to(&self, buckets: &mut Buckets);
}

impl Counts for Buckets {
    fn add_to(&self, buckets: &mut Buckets) {
        buckets.merge(self);
    }
}

impl Counts for SparseBuckets {
    fn add_to(&self, buckets: &mut Buckets) {
        buckets.merge_sparse(self);
    }
}

/// Percentiles (0 to 100, in ascending order) of counts that begin with the bucket `first`, in nanoseconds: as
/// [`Buckets::percentile_ns`] gives them one by one, none above `greatest`. Zeros where nothing was counted.
pub fn percentiles_of(
    counts: &[u64],
    first: usize,
    scale: Scale,
    greatest: u64,
    percentiles: &[f64],
) -> Vec<u64> {
    let (all, unit) = (counts.iter().sum::<u64>(), scale.unit_ns());
    let mut steps = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let (mut seen, mut bucket) = (0, None);
    let mut out = Vec::with_capacity(percentiles.len());
    for percentile in percentiles {
        let wanted = wanted(*percentile, all);
        while seen < wanted {
            let Some((at, count)) = steps.next() else { break };
            (seen, bucket) = (seen + count, Some(first + at));
        }
        out.push(bucket.map_or(0, |bucket| (bucket_high(bucket) * unit + unit - 1).min(greatest)));
    }
    out
}

/// Returns how many samples lie up to a percentile, by HdrHistogram 2.1.12's rule.
fn wanted(percentile: f64, count: u64) -> u64 {
    let wanted = percentile.clamp(0.0, 100.0).next_down().max(0.0) * count as f64 / 100.0;
    (wanted.ceil() as u64).clamp(1, count.max(1))
}

/// HdrHistogram's median-equivalent value of a bucket, in units.
fn middle(bucket: usize) -> u64 {
    let size = bucket_high(bucket) - bucket_low(bucket) + 1;
    bucket_low(bucket) + (size >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_example_of_a_bucket() {
        // 2240512..2242559 us share a bucket and count as 2241536 in the mean.
        let bucket = bucket_of(2_240_512);
        assert_eq!(bucket_of(2_242_559), bucket);
        assert_eq!((bucket_low(bucket), bucket_high(bucket)), (2_240_512, 2_242_559));
        assert_eq!(middle(bucket), 2_241_536);
        assert_ne!(bucket_of(2_242_560), bucket);
    }

    #[test]
    fn counts_that_list_their_buckets_have_the_percentiles_of_all() {
        let mut all = Buckets::new(Scale::Ns64);
        (1..=5_000_u64).for_each(|n| all.record(n * n * 64));
        let listed = all.iter().map(|(bucket, count)| (bucket as u32, count)).collect();
        let listed = SparseBuckets::from_counts(Scale::Ns64, listed);
        let mut merged = Buckets::new(Scale::Ns64);
        listed.add_to(&mut merged);
        assert_eq!(listed.count(), 5_000);
        assert_eq!(merged.iter().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
        for percentile in [0.0, 1.0, 50.0, 99.0, 99.99] {
            assert_eq!(listed.percentile_ns(percentile), merged.percentile_ns(percentile), "{percentile}");
        }
        // The highest value of the last bucket, in nanoseconds: 25,000,000 units are in one of 16,384.
        assert_eq!(listed.percentile_ns(100.0), (25_000_000 / 16_384 * 16_384 + 16_384) * 64 - 1);
        assert_eq!(SparseBuckets::from_counts(Scale::Ns64, Vec::new()).percentile_ns(50.0), 0);
    }

    #[test]
    fn reset_forgets_everything() {
        let mut h = Histogram::new(Scale::Ns64);
        for ns in [1, 1_000, 1_000_000, 5_000_000_000, u64::MAX / 4] {
            h.record(ns);
        }
        h.reset();
        assert!(h.counts.iter().all(|&c| c == 0));
        assert_eq!(h.count(), 0);
    }

    #[test]
    fn too_long_a_latency_is_counted_at_the_top() {
        let mut b = Buckets::new(Scale::Ns64);
        b.record(u64::MAX);
        assert_eq!(b.count(), 1);
        assert_eq!(b.max_ns(), u64::MAX);
    }

    proptest! {
        #[test]
        fn agrees_with_the_hdrhistogram_crate(values in prop::collection::vec(0u64..3_600_000_000, 1..400),
                                              p in 0.0f64..100.0) {
            let mut ours = Buckets::new(Scale::Micros);
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
            for &us in &values {
                ours.record(us * 1_000 + us % 1_000);
                theirs.record(us).unwrap();
            }
            prop_assert_eq!(ours.percentile_units(p), theirs.value_at_percentile(p));
            prop_assert_eq!(ours.hdr_max_units(), theirs.max());
            prop_assert_eq!(ours.hdr_min_units(), theirs.min());
            let difference = (ours.hdr_mean_units() - theirs.mean()).abs();
            prop_assert!(difference <= theirs.mean() * 1e-12 + 1e-9);
        }

        #[test]
        fn several_percentiles_are_those_of_one(samples in prop::collection::vec(100u64..10_000_000_000, 0..200),
                mut wanted in prop::collection::vec(0.0..=100.0f64, 1..8)) {
            let mut buckets = Buckets::new(Scale::Ns64);
            samples.iter().for_each(|&ns| buckets.record(ns));
            wanted.sort_by(f64::total_cmp);
            let each: Vec<u64> = wanted.iter().map(|p| buckets.percentile_ns(*p)).collect();
            let first = buckets.iter().next().map_or(0, |(at, _)| at);
            let counts = buckets.counts.get(first..).unwrap_or_default();
            prop_assert_eq!(percentiles_of(counts, first, Scale::Ns64, buckets.max_ns(), &wanted), each);
        }

        #[test]
        fn buckets_cover_every_value_once(units in 0u64..(1 << 36)) {
            let bucket = bucket_of(units);
            prop_assert!(bucket < LEN);
            prop_assert!(bucket_low(bucket) <= units && units <= bucket_high(bucket));
            prop_assert_eq!(bucket_of(bucket_low(bucket)), bucket);
            prop_assert_eq!(bucket_of(bucket_high(bucket)), bucket);
        }

        #[test]
        fn merging_parts_equals_the_whole(parts in prop::collection::vec(
                prop::collection::vec(0u64..10_000_000_000, 0..50), 1..6)) {
            let mut whole = Buckets::new(Scale::Ns64);
            let mut merged = Buckets::new(Scale::Ns64);
            for part in &parts {
                let mut h = Histogram::new(Scale::Ns64);
                let mut b = Buckets::new(Scale::Ns64);
                for &ns in part {
                    whole.record(ns);
                    h.record(ns);
                }
                b.add(&h);
                merged.merge(&b);
            }
            prop_assert_eq!(whole, merged);
        }
    }
}
