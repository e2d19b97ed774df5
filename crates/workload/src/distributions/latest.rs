//! YCSB's "latest": the newest key is the most popular one, and popularity falls off with age.
//!
//! The number of items grows with every insert. YCSB extends zeta under a lock; here it is computed for the number at
//! hand, in constant time, so the draw stays a pure function. As in YCSB a part of the constant eta keeps the number of
//! items that the run has begun with, key 0 is never chosen, and the first key number and count of the workload play no
//! part.

use super::true_zipf::RejectionInversion;
use super::zeta::Zeta;
use super::zipfian::tail_rank;
use dyno_types::rng::Stream;

/// Keys counted back from the newest one.
#[derive(Clone, Debug, PartialEq)]
pub enum Latest {
    /// With YCSB's zipfian approximation.
    Ycsb(GrowingZipfian),
    /// With the exact zipfian distribution, any exponent.
    Exact(RejectionInversion),
}

impl Latest {
    /// YCSB's distribution with exponent `theta`, 0 < theta < 1, of a run that begins with `newest` as the newest key.
    pub fn ycsb(theta: f64, newest: u64) -> Self {
        Latest::Ycsb(GrowingZipfian::new(theta, newest))
    }

    /// The exact distribution with exponent `theta` of at least 0.
    pub fn exact(theta: f64) -> Self {
        Latest::Exact(RejectionInversion::new(theta))
    }

    /// A key number up to `newest`. Never inlined: its logarithm of `newest`, which has no effects, would be computed for
    /// every draw of every other distribution too.
    #[inline(never)]
    pub fn key(&self, newest: u64, stream: &mut Stream) -> u64 {
        newest
            - match self {
                Latest::Ycsb(zipfian) => zipfian.rank(newest, stream.next_unit()),
                Latest::Exact(zipf) => zipf.rank(newest.max(1), stream).min(newest),
            }
    }
}

/// Zipfian ranks after Gray over a number of items that may differ from draw to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowingZipfian {
    zeta: Zeta,
    alpha: f64,
    second: f64,
    /// The numerator of eta: 1 - (2 / items)^(1 - theta), for the number of items at first.
    numerator: f64,
}

impl GrowingZipfian {
    /// Exponent `theta`, 0 < theta < 1; `items` at first.
    pub fn new(theta: f64, items: u64) -> Self {
        GrowingZipfian {
            zeta: Zeta::new(theta),
            alpha: 1.0 / (1.0 - theta),
            second: 1.0 + 0.5f64.powf(theta),
            // Of two items or fewer YCSB makes no number at all.
            numerator: 1.0 - (2.0 / items.max(3) as f64).powf(1.0 - theta),
        }
    }

    /// The rank out of `0..items` for `u` in [0, 1); 0 if there are no items.
    #[inline]
    pub fn rank(&self, items: u64, u: f64) -> u64 {
        if items < 2 {
            return 0;
        }
        let zeta_n = self.zeta.at(items);
        let scaled = u * zeta_n;
        if scaled < 1.0 {
            0
        } else if scaled < self.second || items == 2 {
            1
        } else {
            let eta = self.numerator / (1.0 - self.second / zeta_n);
            tail_rank(items, eta, self.alpha, u)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Zipfian;

    #[test]
    fn ycsb_vectors() {
        // R = 1000: the newest key is 999, so there are 999 items.
        let z = GrowingZipfian::new(0.99, 999);
        for (u, key) in [(0.05, 999), (0.15, 998), (0.2, 997), (0.5, 977), (0.9, 528), (0.99, 73)] {
            assert_eq!(999 - z.rank(999, u), key, "u {u}");
        }
    }

    #[test]
    fn agrees_with_the_fixed_zipfian() {
        for items in [3, 10, 64, 1000, 1_000_000_000] {
            let growing = GrowingZipfian::new(0.8, items);
            let fixed = Zipfian::new(items, 0.8);
            for i in 0..1000 {
                let u = f64::from(i) / 1000.0;
                let (a, b) = (growing.rank(items, u), fixed.rank(u));
                assert!(a.abs_diff(b) <= 1 + items / 1_000_000_000, "{items} {u}: {a} {b}");
            }
        }
    }

    #[test]
    fn few_keys_are_safe() {
        for latest in [Latest::ycsb(0.99, 2), Latest::exact(1.2)] {
            let mut stream = Stream::from_bits(1);
            for newest in 0..5 {
                assert!((0..1000).all(|_| latest.key(newest, &mut stream) <= newest));
            }
        }
    }
}
