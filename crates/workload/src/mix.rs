//! Which kind of operation an index is: the mix.
//!
//! Stratified (the default): indexes come in blocks of 1,024; a permutation keyed by seed and block shuffles the
//! places inside a block, and the place decides the kind by exact integer arithmetic. Whole blocks hold every kind in
//! exactly its share (to within rounding).
//!
//! The arithmetic: with weight w out of a total t, place r is of the first kind exactly when
//! floor((r + 1) w / t) > floor(r w / t), and then floor(r w / t) places of that kind come before it. The other places,
//! renumbered without gaps as r - floor(r w / t), are split among the remaining kinds in the same way.
//!
//! Independent (`iid`): every index draws its kind by itself as YCSB does.
//!
//! A mix does not say which key an insert writes. Keys of inserts are handed out when operations are sent
//! ([`crate::Frontier::next_key`]), so that they ascend in the order of sending and leave no gap.

use crate::permute::shuffle_block;
use dyno_types::rng::{Keyed, Purpose, unit_interval};

/// Indexes per block. Workers own whole blocks.
pub const BLOCK: u64 = 1 << BLOCK_BITS;

const BLOCK_BITS: u32 = crate::permute::BLOCK_BITS;

/// Totals of integer weights stay below this, so that products of two of them fit 64 bits.
const MAX_TOTAL: u64 = 1 << 31;

/// Method by which kinds are spread over the indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MixMode {
    /// Exact shares in every block of [`BLOCK`] indexes, in shuffled order.
    #[default]
    Stratified,
    /// Every index draws by itself.
    Independent,
}

/// One step of the split: `weight` out of `total` go to `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    kind: usize,
    weight: u64,
    total: Divisor,
}

impl Split {
    /// Number of places below `place` that are of this kind, and whether `place` is.
    #[inline]
    fn at(&self, place: u64) -> (u64, bool) {
        let (whole, part) = self.total.divide(place);
        let (more, rest) = self.total.divide(part * self.weight);
        (whole * self.weight + more, rest + self.weight >= self.total.value)
    }
}

/// A number that many others are divided by: multiplication by its reciprocal takes a third of the time (Granlund and
/// Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divisor {
    value: u64,
    reciprocal: u64,
    shift: u32,
}

impl Divisor {
    /// A divisor from 2 to 2^31; 1 is never needed, for a mix with one kind divides nothing.
    fn new(value: u64) -> Self {
        debug_assert!((1..=MAX_TOTAL).contains(&value));
        // Smallest s with 2^s >= value; exact for all dividends below 2^63.
        let shift = value.max(2).next_power_of_two().trailing_zeros();
        let reciprocal = ((1u128 << (63 + shift)) / u128::from(value.max(2)) + 1) as u64;
        Divisor { value, reciprocal, shift: shift - 1 }
    }

    /// Quotient and remainder.
    #[inline]
    fn divide(self, x: u64) -> (u64, u64) {
        if x >> 63 != 0 || self.value < 2 {
            return (x / self.value, x % self.value);
        }
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64 >> self.shift;
        (quotient, x - quotient * self.value)
    }
}

/// A choice among kinds of operation, weighted.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    blocks: Keyed,
    independent: Keyed,
    mode: MixMode,
    inserts: Option<usize>,
    /// Kinds of positive weight, the inserts first.
    splits: Vec<Split>,
}

impl Mix {
    /// A mix of the kinds `0..weights.len()`; the kind `inserts`, if there is one, is left out by
    /// [`Mix::others_before`]. `None` if a weight is negative or not finite, or none is above 0.
    pub fn new(weights: &[f64], inserts: Option<usize>, mode: MixMode, seed: u64) -> Option<Self> {
        let whole = integer_weights(weights)?;
        let inserts = inserts.filter(|&k| whole[k] > 0);
        let mut order: Vec<usize> = (0..whole.len()).filter(|&k| whole[k] > 0).collect();
        // The inserts first, then the greatest weights, so that most draws end early.
        order.sort_by_key(|&k| (Some(k) != inserts, std::cmp::Reverse(whole[k]), k));
        let mut total = whole.iter().sum();
        let mut splits = Vec::new();
        for kind in order {
            splits.push(Split { kind, weight: whole[kind], total: Divisor::new(total) });
            total -= whole[kind];
        }
        let (blocks, independent) = (Keyed::new(seed, Purpose::Block), Keyed::new(seed, Purpose::Mix));
        Some(Mix { blocks, independent, mode, inserts, splits })
    }

    /// The kind of `index`: an index into the weights.
    #[inline]
    pub fn kind(&self, index: u64) -> usize {
        if let [only] = self.splits[..] {
            return only.kind;
        }
        match self.mode {
            MixMode::Stratified => self.stratified(index),
            MixMode::Independent => self.drawn(index),
        }
    }

    #[inline]
    fn stratified(&self, index: u64) -> usize {
        let block = index >> BLOCK_BITS;
        let slot = shuffle_block(index & (BLOCK - 1), self.blocks.draw_keyed(block));
        let mut place = block << BLOCK_BITS | slot;
        let (last, splits) = self.splits.split_last().expect("a mix has at least one kind");
        for split in splits {
            let (before, is_here) = split.at(place);
            if is_here {
                return split.kind;
            }
            place -= before;
        }
        last.kind
    }

    #[inline]
    fn drawn(&self, index: u64) -> usize {
        let mut left = unit_interval(self.independent.draw_keyed(index)) * self.splits[0].total.value as f64;
        for split in &self.splits {
            if left < split.weight as f64 {
                return split.kind;
            }
            left -= split.weight as f64;
        }
        self.splits.last().expect("a mix has at least one kind").kind
    }

    /// Number of operations before `index` that are no inserts. Exact where the mix is stratified, which takes up to a
    /// microsecond; `index` itself where nothing is inserted or kinds are drawn one by one.
    pub fn others_before(&self, index: u64) -> u64 {
        let (Some(_), MixMode::Stratified) = (self.inserts, self.mode) else { return index };
        let inserts = self.splits[0];
        if self.splits.len() == 1 {
            return 0;
        }
        let start = index & !(BLOCK - 1);
        let key = self.blocks.draw_keyed(index >> BLOCK_BITS);
        let in_block =
            (0..index & (BLOCK - 1)).filter(|&at| inserts.at(start | shuffle_block(at, key)).1).count();
        index - inserts.at(start).0 - in_block as u64
    }

    /// The share of `kind` among all operations, 0 to 1.
    pub fn share(&self, kind: usize) -> f64 {
        let total = self.splits[0].total.value as f64;
        self.splits.iter().find(|s| s.kind == kind).map_or(0.0, |s| s.weight as f64 / total)
    }
}

/// Whole numbers in the proportions of `weights`: exact for decimals of up to nine places, else to 30 bits.
fn integer_weights(weights: &[f64]) -> Option<Vec<u64>> {
    let sum: f64 = weights.iter().sum();
    if weights.iter().any(|w| !w.is_finite() || *w < 0.0) || !sum.is_finite() || sum <= 0.0 {
        return None;
    }
    for places in 0..=9 {
        let scale = 10f64.powi(places);
        let scaled: Vec<f64> = weights.iter().map(|w| w * scale).collect();
        if scaled.iter().any(|s| *s > 2f64.powi(52) || (s - s.round()).abs() > 1e-9 * s.max(1e-3)) {
            continue;
        }
        let whole: Vec<u64> = scaled.iter().map(|s| s.round() as u64).collect();
        let divisor = whole.iter().copied().fold(0, gcd);
        if divisor > 0 && whole.iter().sum::<u64>() / divisor < MAX_TOTAL {
            return Some(whole.into_iter().map(|w| w / divisor).collect());
        }
    }
    let share = |w: &f64| if *w > 0.0 { ((w / sum * 2f64.powi(30)).round() as u64).max(1) } else { 0 };
    Some(weights.iter().map(share).collect())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_shares(weights: &[f64], blocks: u64, seed: u64) -> Result<(), TestCaseError> {
        let mix = Mix::new(weights, Some(0), MixMode::Stratified, seed).unwrap();
        let n = blocks * BLOCK;
        let mut counts = vec![0f64; weights.len()];
        for index in 0..n {
            if index % 97 == 0 && weights[0] > 0.0 {
                prop_assert_eq!(mix.others_before(index), counts[1..].iter().sum::<f64>() as u64);
            }
            counts[mix.kind(index)] += 1.0;
        }
        let sum: f64 = weights.iter().sum();
        for (k, w) in weights.iter().enumerate() {
            prop_assert!((counts[k] - n as f64 * w / sum).abs() < 2.001, "kind {}: {}", k, counts[k]);
        }
        Ok(())
    }

    fn weight() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), 0.0..1.0, (0u32..100).prop_map(|w| f64::from(w) / 100.0)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn shares_are_exact(
            weights in prop::collection::vec(weight(), 1..6),
            blocks in 1u64..12,
            seed: u64,
        ) {
            prop_assume!(weights.iter().sum::<f64>() > 0.0);
            check_shares(&weights, blocks, seed)?;
        }
    }

    #[test]
    fn stock_weights() {
        for weights in
            [[0.05, 0.95, 0.0], [0.5, 0.25, 0.25], [0.000_5, 0.9, 0.1], [1.0, 0.0, 0.0], [1e-12, 1.0, 3.0]]
        {
            check_shares(&weights, 40, 1).unwrap();
        }
    }

    proptest! {
        #[test]
        fn divisions_are_exact(value in 1..=MAX_TOTAL, x: u64, down in 0u32..64) {
            let (x, divisor) = (x >> down, Divisor::new(value));
            prop_assert_eq!(divisor.divide(x), (x / value, x % value));
            let multiple = x / value * value;
            prop_assert_eq!(divisor.divide(multiple), (x / value, 0));
            prop_assert_eq!(divisor.divide(multiple.saturating_sub(1)).0, multiple.saturating_sub(1) / value);
        }
    }

    #[test]
    fn high_indexes_do_not_overflow() {
        let mix = Mix::new(&[0.05, 0.95], Some(0), MixMode::Stratified, 1).unwrap();
        let start = (1u64 << 60) - BLOCK;
        let inserts = (start..start + BLOCK).filter(|i| mix.kind(*i) == 0).count() as u64;
        assert_eq!(mix.others_before(1 << 60), (1u64 << 60) - (1u64 << 60) / 20);
        assert_eq!(mix.others_before(1 << 60) - mix.others_before(start), BLOCK - inserts);
        assert!(mix.others_before(1 << 63 | 77) < 1 << 63 | 77);
    }

    #[test]
    fn kinds_are_shuffled_inside_a_block() {
        // Runs of equal kinds in a fair mix of two: the expected number is n / 2, give or take sqrt(n) / 2.
        let mix = Mix::new(&[0.5, 0.5], None, MixMode::Stratified, 9).unwrap();
        let n = 100 * BLOCK;
        let kinds: Vec<usize> = (0..n).map(|i| mix.kind(i)).collect();
        let runs = kinds.windows(2).filter(|w| w[0] != w[1]).count() as f64;
        assert!((runs - n as f64 / 2.0).abs() < 4.0 * (n as f64).sqrt() / 2.0, "{runs}");
        assert_eq!(mix.others_before(77), 77, "nothing is inserted");
    }

    #[test]
    fn independent_draws_have_their_shares() {
        let mix = Mix::new(&[0.95, 0.0, 0.05], Some(2), MixMode::Independent, 3).unwrap();
        let n = 200_000;
        let kinds: Vec<usize> = (0..n).map(|i| mix.kind(i)).collect();
        let inserts = kinds.iter().filter(|kind| **kind == 2).count() as f64;
        assert!((inserts / n as f64 - 0.05).abs() < 0.002, "{inserts}");
        assert!(!kinds.contains(&1));
        assert!((mix.share(2) - 0.05).abs() < 1e-12);
    }

    #[test]
    fn bad_weights_are_refused() {
        for weights in [&[0.0, 0.0][..], &[-1.0, 2.0], &[f64::NAN], &[f64::INFINITY], &[]] {
            assert_eq!(Mix::new(weights, None, MixMode::Stratified, 1), None);
        }
        assert_eq!(integer_weights(&[0.95, 0.05]), Some(vec![19, 1]));
        assert_eq!(integer_weights(&[95.0, 5.0]), Some(vec![19, 1]));
        assert_eq!(integer_weights(&[0.333, 0.667]), Some(vec![333, 667]));
    }
}
