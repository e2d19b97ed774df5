//! Keyed permutations of `0..n`: a small Feistel network, walked until it lands inside.
//!
//! A Feistel network permutes a power of two, whatever its round function (Luby and Rackoff, "How to construct
//! pseudorandom permutations from pseudorandom functions", 1988); applying it again while the result is outside
//! `0..n` restricts it to `0..n` (cycle walking: Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).

use dyno_types::rng::mix_bits;

/// Rounds, each of which changes one half and then the other. Two (the four steps that Luby and Rackoff ask for)
/// leave visible patterns when the halves have only five bits, as the tests show; three do not.
const ROUNDS: u32 = 3;

/// Bits of a place that [`shuffle_block`] permutes.
pub const BLOCK_BITS: u32 = 10;

/// A permutation of `0..n`, chosen by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    low_bits: u32,
    high_bits: u32,
    key: u64,
}

impl Permutation {
    /// The permutation of `0..n` that `key` chooses; `n` of 0 is taken as 1.
    pub fn new(n: u64, key: u64) -> Self {
        let n = n.max(1);
        let bits = (64 - (n - 1).leading_zeros()).max(2);
        Permutation { n, low_bits: bits / 2, high_bits: bits - bits / 2, key: mix_bits(key) }
    }

    /// Where `x` of `0..n` goes. Takes less than two walks of the network on average.
    #[inline]
    pub fn apply(&self, x: u64) -> u64 {
        debug_assert!(x < self.n);
        let mut x = x;
        loop {
            x = feistel(x, self.low_bits, self.high_bits, self.key);
            if x < self.n {
                return x;
            }
        }
    }
}

/// Permutes `0..1024` in a third of the time of [`feistel`]: four rounds of an odd factor, an addend and a shifted
/// exclusive or, each a bijection of ten bits. Shifts and rounds are the fewest that the tests find no pattern in.
#[inline]
pub fn shuffle_block(x: u64, key: u64) -> u64 {
    const PLACES: u32 = (1 << BLOCK_BITS) - 1;
    let mut x = x as u32;
    for (turn, shift) in [(0, 5), (13, 4), (26, 3), (39, 5)] {
        let key = key.rotate_right(turn);
        x = x.wrapping_mul(key as u32 | 1).wrapping_add((key >> 32) as u32) & PLACES;
        x ^= x >> shift;
    }
    u64::from(x)
}

/// Permutes `0 .. 2^(low_bits + high_bits)`; both at least 1, together at most 64.
#[inline]
fn feistel(x: u64, low_bits: u32, high_bits: u32, key: u64) -> u64 {
    let mut low = x & (u64::MAX >> (64 - low_bits));
    let mut high = x >> low_bits;
    for round in 0..ROUNDS {
        let subkey = key.rotate_left(round * 21);
        low ^= scramble(high ^ subkey) >> (64 - low_bits);
        high ^= scramble(low ^ !subkey) >> (64 - high_bits);
    }
    high << low_bits | low
}

/// The round function: only its top bits are used.
#[inline]
fn scramble(x: u64) -> u64 {
    let x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_permutation(n in 1u64..3000, key: u64) {
            let p = Permutation::new(n, key);
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let y = p.apply(x) as usize;
                prop_assert!(!seen[y]);
                seen[y] = true;
            }
        }
    }

    #[test]
    fn places_and_differences_are_uniform() {
        // 1024 places, where 0 goes and how far 1 lands from it, over 64 Ki keys: 1023 degrees of freedom have a
        // 99.99 % quantile near 1200. The keys are fixed, so this cannot flake.
        let keys = 1u64 << 16;
        let (mut place, mut gap) = ([0f64; 1024], [0f64; 1024]);
        for key in 0..keys {
            let p = Permutation::new(1024, key);
            let (a, b) = (p.apply(0), p.apply(1));
            place[a as usize] += 1.0;
            gap[(b.wrapping_sub(a) & 1023) as usize] += 1.0;
        }
        let chi2 = |counts: &[f64], expected: f64| -> f64 {
            counts.iter().map(|c| (c - expected).powi(2) / expected).sum()
        };
        assert!(chi2(&place, keys as f64 / 1024.0) < 1200.0);
        assert_eq!(gap[0], 0.0);
        assert!(chi2(&gap[1..], keys as f64 / 1023.0) < 1250.0, "{}", chi2(&gap[1..], keys as f64 / 1023.0));
    }

    #[test]
    fn blocks_are_permuted() {
        for key in 0..200 {
            let mut seen = [false; 1024];
            for x in 0..1024 {
                let y = shuffle_block(x, mix_bits(key)) as usize;
                assert!(!seen[y]);
                seen[y] = true;
            }
        }
    }

    #[test]
    fn blocks_show_no_pattern() {
        // Where a place goes, and how two lie to each other afterwards (difference, exclusive or), over 64 Ki keys; pairs
        // that differ in one bit, in several, at both ends. The bound is the one above; the keys are fixed.
        let pairs = [
            (0, 1),
            (0, 2),
            (0, 32),
            (0, 512),
            (5, 37),
            (3, 515),
            (31, 32),
            (511, 512),
            (0, 1023),
            (17, 900),
        ];
        let keys = 1u64 << 16;
        let chi2 = |counts: &[f64]| -> f64 {
            let expected = keys as f64 / counts.len() as f64;
            counts.iter().map(|c| (c - expected).powi(2) / expected).sum()
        };
        for (i, j) in pairs {
            let [mut place, mut gap, mut bits] = [[0f64; 1024]; 3];
            for key in 0..keys {
                let (a, b) = (shuffle_block(i, mix_bits(key)), shuffle_block(j, mix_bits(key)));
                place[a as usize] += 1.0;
                gap[(b.wrapping_sub(a) & 1023) as usize] += 1.0;
                bits[(a ^ b) as usize] += 1.0;
            }
            for (what, counts) in [("place", &place[..]), ("gap", &gap[1..]), ("bits", &bits[1..])] {
                assert!(chi2(counts) < 1250.0, "{what} of {i} and {j}: {}", chi2(counts));
            }
        }
    }

    #[test]
    fn huge_domains_work() {
        let p = Permutation::new(u64::MAX, 3);
        assert!(p.apply(u64::MAX - 1) < u64::MAX);
        assert_eq!(Permutation::new(1, 9).apply(0), 0);
    }
}
