//! The zipfian distribution itself: exact for any exponent (also 1 and above) and any number of items, in constant
//! time, by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
//! discrete distributions", ACM TOMACS 6, 1996). About 1.1 pairs of numbers are used per draw.

use crate::permute::Permutation;
use dyno_types::rng::Stream;

/// Zipfian ranks over any number of items for one exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RejectionInversion {
    theta: f64,
    /// H(3/2) - h(1): where the range of the inverted integral begins.
    low: f64,
    /// Distance below which a candidate is accepted at once.
    squeeze: f64,
}

impl RejectionInversion {
    /// Exponent `theta`, a finite number of at least 0.
    pub fn new(theta: f64) -> Self {
        let mut this = RejectionInversion { theta, low: 0.0, squeeze: 0.0 };
        this.low = this.integral(1.5) - 1.0;
        this.squeeze = 2.0 - this.inverse(this.integral(2.5) - this.density(2.0));
        this
    }

    /// The upper end of the inverted integral for `items` items.
    #[inline]
    fn high(&self, items: u64) -> f64 {
        self.integral(items as f64 + 0.5)
    }

    /// A rank out of `0..items`; `items` must not be 0.
    #[inline]
    pub fn rank(&self, items: u64, stream: &mut Stream) -> u64 {
        self.rank_below(items, self.high(items), stream)
    }

    #[inline]
    fn rank_below(&self, items: u64, high: f64, stream: &mut Stream) -> u64 {
        debug_assert!(items > 0);
        loop {
            let y = high + stream.next_unit() * (self.low - high);
            let x = self.inverse(y);
            let k = x.round().clamp(1.0, items as f64);
            if k - x <= self.squeeze || y >= self.integral(k + 0.5) - self.density(k) {
                return (k as u64).min(items) - 1;
            }
        }
    }

    /// h(x) = x^-theta.
    #[inline]
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// H(x), the integral of h from 1 to x: (x^(1 - theta) - 1) / (1 - theta), or ln x.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let exponent = 1.0 - self.theta;
        let ln = x.ln();
        if exponent == 0.0 { ln } else { (exponent * ln).exp_m1() / exponent }
    }

    /// The inverse of H.
    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        let exponent = 1.0 - self.theta;
        if exponent == 0.0 {
            return y.exp();
        }
        // Rounding may step below the pole of the logarithm.
        let t = (y * exponent).max(-1.0);
        (t.ln_1p() / exponent).exp()
    }
}

/// Zipfian key numbers: the ranks of [`RejectionInversion`], scattered over the keys by a permutation, so that every
/// key has exactly one rank and popular keys are no neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueZipfian {
    zipf: RejectionInversion,
    high: f64,
    first: u64,
    items: u64,
    places: Permutation,
}

impl TrueZipfian {
    /// Key numbers `first .. first + items` with exponent `theta` of at least 0; `key` chooses which are popular.
    pub fn new(first: u64, items: u64, theta: f64, key: u64) -> Self {
        let items = items.max(1);
        let zipf = RejectionInversion::new(theta);
        TrueZipfian { zipf, high: zipf.high(items), first, items, places: Permutation::new(items, key) }
    }

    /// The rank of a draw, before it is scattered.
    #[inline]
    pub fn rank(&self, stream: &mut Stream) -> u64 {
        self.zipf.rank_below(self.items, self.high, stream)
    }

    /// The key number of `rank`.
    #[inline]
    pub fn key_of(&self, rank: u64) -> u64 {
        self.first + self.places.apply(rank)
    }

    /// A key number.
    #[inline]
    pub fn key(&self, stream: &mut Stream) -> u64 {
        self.key_of(self.rank(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Zeta;

    #[test]
    fn chi_square_against_the_definition() {
        let n = 200_000u32;
        for (seed, theta) in [0.0, 0.5, 0.99, 1.0, 1.2, 2.0].into_iter().enumerate() {
            for items in [1u64, 2, 10, 50] {
                let zipf = RejectionInversion::new(theta);
                let zeta = Zeta::new(theta).at(items);
                let mut counts = vec![0f64; items as usize];
                let mut stream = Stream::from_bits(seed as u64 * 1000 + items);
                for _ in 0..n {
                    counts[zipf.rank(items, &mut stream) as usize] += 1.0;
                }
                let chi2: f64 = counts
                    .iter()
                    .enumerate()
                    .map(|(i, c)| {
                        let expected = f64::from(n) * ((i + 1) as f64).powf(-theta) / zeta;
                        (c - expected).powi(2) / expected
                    })
                    .sum();
                // Mean df, deviation sqrt(2 df): four deviations and the skew of few degrees; the draws are fixed.
                let df = (items - 1) as f64;
                assert!(chi2 <= df + 4.0 * (2.0 * df).sqrt() + 4.0, "theta {theta} items {items}: {chi2}");
            }
        }
    }

    #[test]
    fn billions_of_items() {
        let n = 100_000;
        let items = 10_000_000_000;
        let zipf = RejectionInversion::new(0.99);
        let mut stream = Stream::from_bits(5);
        let mut first = 0f64;
        let mut low_half = 0f64;
        for _ in 0..n {
            let rank = zipf.rank(items, &mut stream);
            assert!(rank < items);
            first += f64::from(u8::from(rank == 0));
            low_half += f64::from(u8::from(rank < 134_552));
        }
        // 1 / zeta(10^10) = 3.78 % for the first, and half the mass below the sheet's median rank.
        assert!((first / f64::from(n) - 0.0378).abs() < 0.003, "{first}");
        assert!((low_half / f64::from(n) - 0.5).abs() < 0.01, "{low_half}");
    }

    #[test]
    fn every_key_has_one_rank() {
        let zipf = TrueZipfian::new(500, 1000, 1.0, 42);
        let mut keys: Vec<u64> = (0..1000).map(|r| zipf.key_of(r)).collect();
        assert!(keys[..100].windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count() < 5);
        keys.sort_unstable();
        assert_eq!(keys, (500..1500).collect::<Vec<u64>>());
        let mut stream = Stream::from_bits(1);
        assert!((0..1000).all(|_| (500..1500).contains(&zipf.key(&mut stream))));
    }
}
