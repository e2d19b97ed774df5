//! The counter-based generator: a draw is a pure function of (seed, index, stream).
//!
//! The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014, with Stafford's variant 13 constants). A [`Stream`] is SplitMix64 itself, started at a mixed state.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Purpose of a draw. Streams of one index are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The kind of operation.
    Mix = 1,
    /// The key.
    Key = 2,
    /// Field numbers, scan lengths and other small choices.
    Choice = 3,
    /// Values.
    Value = 4,
    /// Gaps between arrivals.
    Arrival = 5,
    /// The permutation inside a block of indexes.
    Block = 6,
    /// A simulated server's service time.
    Service = 7,
    /// Start delays and jitter of back-off.
    Jitter = 8,
    /// The states of a rate that changes by chance.
    Modulation = 9,
}

/// A seed that no other run has, of 32 bits: what is typed to have the run again.
pub fn fresh_seed() -> u64 {
    // Keyed by the operating system's random numbers.
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) >> 32
}

/// SplitMix64's finaliser: a bijection on 64 bits.
#[inline]
pub fn mix_bits(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A 64-bit draw for `index`.
#[inline]
pub fn draw_at(seed: u64, index: u64, purpose: Purpose) -> u64 {
    Keyed::new(seed, purpose).draw_keyed(index)
}

/// The draws of one seed and purpose: [`draw_at`] with half of its work done once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed(u64);

impl Keyed {
    /// The draws of `seed` for `purpose`.
    #[inline]
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Keyed(mix_bits(seed ^ (purpose as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93)))
    }

    /// The 64-bit draw for `index`.
    #[inline]
    pub fn draw_keyed(self, index: u64) -> u64 {
        mix_bits(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }
}

/// Maps 64 random bits to [0, 1) with 53 bits of resolution.
#[inline]
pub fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Maps 64 random bits to `0..n` by multiplication (Lemire); `n` must not be 0. The bias is below n / 2^64.
#[inline]
pub fn below(bits: u64, n: u64) -> u64 {
    debug_assert!(n > 0);
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// A sequence of draws for one index.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream of `purpose` that belongs to `index`.
    #[inline]
    pub fn new(seed: u64, index: u64, purpose: Purpose) -> Self {
        Stream(draw_at(seed, index, purpose))
    }

    /// A stream that continues from 64 bits drawn earlier.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Stream(bits)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix_bits(self.0)
    }

    /// The next number in [0, 1).
    #[inline]
    pub fn next_unit(&mut self) -> f64 {
        unit_interval(self.next_u64())
    }

    /// The next number in `0..n`.
    #[inline]
    pub fn next_below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_golden_vector() {
        // The published first outputs of SplitMix64 for seed 1234567 (Rosetta Code, from Vigna's reference).
        let mut s = Stream::from_bits(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| s.next_u64()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn draws_are_uniform_and_streams_differ() {
        let n = 200_000u64;
        let mut buckets = [0u64; 64];
        let mut equal = 0;
        for i in 0..n {
            buckets[below(draw_at(1, i, Purpose::Key), 64) as usize] += 1;
            equal += u64::from(draw_at(1, i, Purpose::Key) == draw_at(1, i, Purpose::Mix));
        }
        assert_eq!(equal, 0);
        let expected = n as f64 / 64.0;
        let chi2: f64 = buckets.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        // 63 degrees of freedom: 99.99 % quantile is about 112; the draws are fixed, so this cannot flake.
        assert!(chi2 < 112.0, "chi2 {chi2}");
    }

    #[test]
    fn unit_is_half_open() {
        assert_eq!(unit_interval(0), 0.0);
        assert!(unit_interval(u64::MAX) < 1.0);
        assert_eq!(below(u64::MAX, 10), 9);
    }
}
