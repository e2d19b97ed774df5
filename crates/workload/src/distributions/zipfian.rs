//! Zipfian ranks after Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly generating billion-record
//! synthetic databases" (SIGMOD 1994), as YCSB uses them: one uniform number in, one rank out.
//!
//! Ranks 0 and 1 have their exact probabilities, all others come from a continuous approximation.

use super::zeta::Zeta;

/// Zipfian ranks over a fixed number of items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipfian {
    items: u64,
    zeta_n: f64,
    alpha: f64,
    eta: f64,
    /// zeta(2): below it (scaled) lies rank 1.
    second: f64,
}

impl Zipfian {
    /// Ranks `0..items` with exponent `theta`, 0 < theta < 1; `items` of 0 is taken as 1.
    pub fn new(items: u64, theta: f64) -> Self {
        let items = items.max(1);
        Self::with_zeta(items, theta, Zeta::new(theta).at(items))
    }

    /// The same with zeta(items, theta) given.
    pub fn with_zeta(items: u64, theta: f64, zeta_n: f64) -> Self {
        let second = 1.0 + 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - second / zeta_n);
        Zipfian { items, zeta_n, alpha: 1.0 / (1.0 - theta), eta, second }
    }

    /// Number of ranks.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The rank that belongs to `u` in [0, 1): the larger `u`, the less popular.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let scaled = u * self.zeta_n;
        if scaled < 1.0 {
            0
        } else if scaled < self.second {
            1
        } else {
            tail_rank(self.items, self.eta, self.alpha, u)
        }
    }
}

/// The approximated rank; the last rank where rounding would step over it.
#[inline]
pub(super) fn tail_rank(items: u64, eta: f64, alpha: f64, u: f64) -> u64 {
    ((items as f64 * (eta * u - eta + 1.0).powf(alpha)) as u64).min(items - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::{Purpose, draw_at, unit_interval};

    #[test]
    fn small_numbers_of_items_are_safe() {
        for items in [0, 1, 2, 3] {
            let z = Zipfian::new(items, 0.99);
            for i in 0..=1000 {
                let rank = z.rank(f64::from(i) / 1000.1);
                assert!(rank < items.max(1));
            }
        }
        assert_eq!(Zipfian::new(2, 0.99).rank(0.999), 1);
    }

    #[test]
    fn first_ranks_have_their_exact_share() {
        let n = 400_000u64;
        let z = Zipfian::new(1000, 0.99);
        let mut counts = [0f64; 1000];
        for i in 0..n {
            counts[z.rank(unit_interval(draw_at(7, i, Purpose::Key))) as usize] += 1.0;
        }
        let zeta = Zeta::new(0.99).at(1000);
        for (rank, count) in counts[..2].iter().enumerate() {
            let p = ((rank + 1) as f64).powf(-0.99) / zeta;
            let sigma = (n as f64 * p * (1.0 - p)).sqrt();
            assert!((count - n as f64 * p).abs() < 4.0 * sigma);
        }
        // True zipf(0.99) over 1000: the first ten take 38.2 %, the first hundred 68.5 %; the approximation, solved
        // for u, gives 39.8 % and 69.6 %.
        assert!((counts[..10].iter().sum::<f64>() / n as f64 - 0.398).abs() < 0.004);
        assert!((counts[..100].iter().sum::<f64>() / n as f64 - 0.696).abs() < 0.004);
        assert!(counts[..20].is_sorted_by(|a, b| a > b));
    }
}
