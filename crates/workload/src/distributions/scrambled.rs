//! YCSB's scrambled zipfian: a zipfian rank out of 10^10 + 1, hashed and taken modulo the number of keys.
//!
//! The skew over the real keys is far below theta, because most of the mass lies on ranks beyond the number of keys
//! and spreads evenly (YCSB#1495). That is what published YCSB numbers rest on, so it is reproduced exactly; use
//! [`super::TrueZipfian`] for the distribution the name promises.

use super::THETA;
use super::zeta::Zeta;
use super::zipfian::Zipfian;
use crate::keys::ycsb_hash;

/// Ranks YCSB draws from: 0 to 10^10 inclusive.
const RANKS: u64 = 10_000_000_001;

/// YCSB's constant for zeta(10^10, 0.99).
const ZETA_N: f64 = 26.469_028_201_783_02;

/// Scrambled zipfian key numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScrambledZipfian {
    ranks: Zipfian,
    first: u64,
    items: u64,
}

impl ScrambledZipfian {
    /// Key numbers `first .. first + items` as YCSB draws them (theta 0.99).
    pub fn new(first: u64, items: u64) -> Self {
        Self::with_theta(first, items, THETA)
    }

    /// The same recipe with another exponent, 0 < theta < 1, which YCSB does not offer.
    pub fn with_theta(first: u64, items: u64, theta: f64) -> Self {
        let zeta_n = if theta == THETA { ZETA_N } else { Zeta::new(theta).at(RANKS) };
        ScrambledZipfian { ranks: Zipfian::with_zeta(RANKS, theta, zeta_n), first, items: items.max(1) }
    }

    /// The rank before scrambling.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        self.ranks.rank(u)
    }

    /// The key number for `u` in [0, 1).
    #[inline]
    pub fn key(&self, u: f64) -> u64 {
        self.first + ycsb_hash(self.rank(u)).unsigned_abs() % self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyNames;
    use dyno_types::rng::{Purpose, draw_at, unit_interval};

    #[test]
    fn ycsb_vectors() {
        // R = 1000 without inserts: the modulus is 1001.
        let z = ScrambledZipfian::new(0, 1001);
        let vectors = [
            (0.03, 0, 144),
            (0.05, 1, 610),
            (0.1, 6, 942),
            (0.25, 296, 809),
            (0.5, 134_552, 367),
            (0.9, 1_170_869_537, 991),
        ];
        for (u, rank, keynum) in vectors {
            assert_eq!((z.rank(u), z.key(u)), (rank, keynum), "u {u}");
        }
        let mut out = Vec::new();
        KeyNames::default().render(z.key(0.03), &mut out);
        assert_eq!(out, b"user1573987489603120213");
        out.clear();
        KeyNames::default().render(z.key(0.05), &mut out);
        assert_eq!(out, b"user5817347222824138717");
    }

    #[test]
    fn skew_is_what_ycsb_users_get() {
        // The sheet's simulation of R = 1000: the top 1, 10, 100, 200 keys take 3.9, 12.6, 29 and 40 %.
        let n = 200_000u64;
        let z = ScrambledZipfian::new(0, 1001);
        let mut counts = vec![0u32; 1001];
        for i in 0..n {
            counts[z.key(unit_interval(draw_at(11, i, Purpose::Key))) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        for (top, share) in [(1, 0.039), (10, 0.126), (100, 0.29), (200, 0.40)] {
            let got = f64::from(counts[..top].iter().sum::<u32>()) / n as f64;
            assert!((got - share).abs() < 0.01, "top {top}: {got}");
        }
    }

    #[test]
    fn other_exponents_stay_in_range() {
        let z = ScrambledZipfian::with_theta(100, 10, 0.5);
        assert!((0..1000).all(|i| (100..110).contains(&z.key(f64::from(i) / 1000.0))));
    }
}
