//! The distributions that need one line each: uniform, hotspot and exponential.
//!
//! YCSB takes a 64-bit number modulo the range; the multiplication used here has the same distribution.

use dyno_types::rng::{Stream, below};

/// Every key of a range equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// First key number.
    pub first: u64,
    /// Number of items; not 0.
    pub items: u64,
}

impl Uniform {
    /// The key number for 64 random bits.
    #[inline]
    pub fn key(&self, bits: u64) -> u64 {
        self.first + below(bits, self.items)
    }
}

/// A hot set at the start of the range takes a given share of the operations; both sets are uniform inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hotspot {
    first: u64,
    hot: u64,
    cold: u64,
    share: f64,
}

impl Hotspot {
    /// Key numbers `first .. first + items`, of which the first `items * data_fraction` (rounded down) get
    /// `operation_fraction` of the operations. `None` if one of the two sets would be empty.
    pub fn new(first: u64, items: u64, data_fraction: f64, operation_fraction: f64) -> Option<Self> {
        let hot = (items as f64 * data_fraction) as u64;
        let cold = items.checked_sub(hot)?;
        (hot > 0 && cold > 0).then_some(Hotspot { first, hot, cold, share: operation_fraction })
    }

    /// A key number.
    #[inline]
    pub fn key(&self, stream: &mut Stream) -> u64 {
        if stream.next_unit() < self.share {
            self.first + stream.next_below(self.hot)
        } else {
            self.first + self.hot + stream.next_below(self.cold)
        }
    }
}

/// An exponentially distributed distance, counted back from the newest key by the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// Mean distance.
    mean: f64,
}

impl Exponential {
    /// `percentile` per cent of the draws fall within `range` items. 0 < percentile < 100, range > 0.
    pub fn new(percentile: f64, range: f64) -> Self {
        Exponential { mean: -range / (1.0 - percentile / 100.0).ln() }
    }

    /// The distance for `u` in [0, 1), rounded down.
    // Inlined, its logarithm would be taken for every draw of every distribution.
    #[inline(never)]
    pub fn distance(&self, u: f64) -> u64 {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        (-(1.0 - u).ln() * self.mean) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_is_uniform() {
        let uniform = Uniform { first: 100, items: 50 };
        let mut stream = Stream::from_bits(1);
        let n = 100_000;
        let mut counts = [0f64; 50];
        for _ in 0..n {
            counts[(uniform.key(stream.next_u64()) - 100) as usize] += 1.0;
        }
        let expected = f64::from(n) / 50.0;
        let chi2: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        // 49 degrees of freedom: the 99.99 % quantile is about 93.
        assert!(chi2 < 93.0, "{chi2}");
    }

    #[test]
    fn hotspot_splits_operations() {
        let hotspot = Hotspot::new(10, 100, 0.2, 0.8).unwrap();
        let mut stream = Stream::from_bits(2);
        let n = 100_000u32;
        let mut counts = [0f64; 100];
        for _ in 0..n {
            counts[(hotspot.key(&mut stream) - 10) as usize] += 1.0;
        }
        let chi2: f64 = counts
            .iter()
            .enumerate()
            .map(|(i, c)| {
                let expected = f64::from(n) * if i < 20 { 0.8 / 20.0 } else { 0.2 / 80.0 };
                (c - expected).powi(2) / expected
            })
            .sum();
        assert!(chi2 < 160.0, "{chi2}");
        assert_eq!(Hotspot::new(0, 4, 0.2, 0.8), None);
        assert_eq!(Hotspot::new(0, 4, 1.0, 0.8), None);
    }

    #[test]
    fn exponential_hits_its_percentile() {
        let exponential = Exponential::new(95.0, 857.0);
        let mut stream = Stream::from_bits(3);
        let n = 100_000;
        let within = (0..n).filter(|_| exponential.distance(stream.next_unit()) < 857).count();
        // Three deviations of a share of 95 % are 0.2 %.
        assert!((within as f64 / f64::from(n) - 0.95).abs() < 0.0025, "{within}");
        assert!(exponential.distance(1.0 - f64::EPSILON / 2.0) < 1_000_000);
    }
}
