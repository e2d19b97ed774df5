//! Java's generator of random numbers (`java.util.Random`), bit for bit, for data that must equal a Java program's.
//!
//! It is a linear congruential generator of 48 bits. Here its state stands in the upper 48 bits of a word, so that the
//! modulus is the word's own overflow and the top bits are one shift away.
//!
//! Many decimal digits are drawn at once: the state j steps ahead is `state * A^j + C_j`, so the draws do not wait for
//! each other. Java repeats a draw that would favour small numbers; of digits that is 8 in 2^31 draws, and a batch
//! in which it happens is drawn again, one by one.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB << 16;
/// Draws of 31 bits from here on are repeated when a digit is wanted.
const DIGIT_LIMIT: u64 = (1 << 31) / 10 * 10;

/// Digits that can be drawn at once.
pub const DIGITS: usize = 165;

/// (A^j, C_j) for j = 1, 2, ...
static AHEAD: [(u64, u64); DIGITS] = ahead();

const fn ahead() -> [(u64, u64); DIGITS] {
    let mut table = [(0, 0); DIGITS];
    let (mut multiplier, mut increment, mut j) = (1u64, 0u64, 0);
    while j < DIGITS {
        multiplier = multiplier.wrapping_mul(MULTIPLIER);
        increment = increment.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        table[j] = (multiplier, increment);
        j += 1;
    }
    table
}

/// A bound of draws, with what is worth computing once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    n: u32,
    /// Draws of 31 bits from here on are repeated; 2^31 if none are.
    limit: u32,
}

impl Bound {
    /// Draws of `0..n`; `n` is taken as 1 if it is 0 and as 2^31 - 1, Java's largest, if it is larger.
    pub fn new(n: u32) -> Self {
        let n = n.clamp(1, i32::MAX as u32);
        Bound { n, limit: (1 << 31) / n * n }
    }

    /// Count of different numbers that are drawn.
    pub fn count(self) -> u32 {
        self.n
    }
}

/// The generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaRandom(u64);

impl JavaRandom {
    /// As `new Random(seed)`.
    #[inline]
    pub fn new(seed: i64) -> Self {
        JavaRandom((seed as u64 ^ MULTIPLIER) << 16)
    }

    /// Continues where [`JavaRandom::state`] left off; only the low 48 bits count.
    #[inline]
    pub fn from_state(state: u64) -> Self {
        JavaRandom(state << 16)
    }

    /// The 48 bits of state.
    #[inline]
    pub fn state(self) -> u64 {
        self.0 >> 16
    }

    #[inline]
    fn next_31(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        (self.0 >> 33) as u32
    }

    /// As `nextInt(n)`.
    #[inline]
    pub fn below(&mut self, bound: Bound) -> u32 {
        if bound.n.is_power_of_two() {
            return ((u64::from(bound.n) * u64::from(self.next_31())) >> 31) as u32;
        }
        loop {
            let bits = self.next_31();
            if bits < bound.limit {
                return bits % bound.n;
            }
        }
    }

    /// As N times `nextInt(10)`, as ASCII digits; N is at most [`DIGITS`].
    #[inline]
    pub fn digits<const N: usize>(&mut self, out: &mut [u8; N]) {
        let (mut worst, mut state) = (0, self.0);
        for (digit, (multiplier, increment)) in out.iter_mut().zip(&AHEAD[..N]) {
            state = self.0.wrapping_mul(*multiplier).wrapping_add(*increment);
            worst = worst.max(state);
            *digit = b'0' + ((state >> 33) as u32 % 10) as u8;
        }
        if worst >> 33 < DIGIT_LIMIT {
            self.0 = state;
        } else {
            self.digits_slowly(out);
        }
    }

    /// Goes on as [`JavaRandom::digits`] does, without the digits.
    #[inline]
    pub fn skip_digits<const N: usize>(&mut self) {
        let (mut worst, mut state) = (0, self.0);
        for (multiplier, increment) in &AHEAD[..N] {
            state = self.0.wrapping_mul(*multiplier).wrapping_add(*increment);
            worst = worst.max(state);
        }
        if worst >> 33 < DIGIT_LIMIT {
            self.0 = state;
        } else {
            self.digits_slowly(&mut [0; N]);
        }
    }

    #[cold]
    fn digits_slowly(&mut self, out: &mut [u8]) {
        let ten = Bound::new(10);
        out.fill_with(|| b'0' + self.below(ten) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first `nextInt(100)` of a JVM's `new Random(42)`.
    #[test]
    fn draws_are_those_of_java() {
        let mut random = JavaRandom::new(42);
        let hundred = Bound::new(100);
        let first: Vec<u32> = (0..6).map(|_| random.below(hundred)).collect();
        assert_eq!(first, [30, 63, 48, 84, 70, 25]);
        assert_eq!(JavaRandom::new(0).below(Bound::new(10)), 0);
        assert_eq!(JavaRandom::new(42).state(), 42 ^ 0x5_DEEC_E66D);
    }

    fn one_by_one<const N: usize>(random: &mut JavaRandom) -> [u8; N] {
        let mut out = [0; N];
        random.digits_slowly(&mut out);
        out
    }

    #[test]
    fn a_repeated_draw_in_the_middle_of_a_batch() {
        // Walk to states whose draw must be repeated, by undoing steps from one that is just beyond the limit.
        let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(MULTIPLIER.wrapping_mul(x))));
        for back in [1, 2, 60, 165, 166] {
            let mut state = (0x7FFF_FFF9u64 << 33) | (12_345 << 16);
            for _ in 0..back {
                state = state.wrapping_sub(INCREMENT).wrapping_mul(inverse);
            }
            let (mut fast, mut slow, mut skipping) =
                (JavaRandom(state), JavaRandom(state), JavaRandom(state));
            let mut digits = [0; 165];
            fast.digits(&mut digits);
            skipping.skip_digits::<165>();
            assert_eq!(digits, one_by_one::<165>(&mut slow));
            assert_eq!((fast, skipping), (slow, slow));
            let plain = JavaRandom(state.wrapping_mul(AHEAD[164].0).wrapping_add(AHEAD[164].1));
            assert_eq!(fast == plain, back == 166, "{back} steps back");
        }
    }

    proptest! {
        #[test]
        fn many_digits_at_once_are_the_same(seed: i64) {
            let (mut fast, mut slow) = (JavaRandom::new(seed), JavaRandom::new(seed));
            let mut digits = [0; 110];
            fast.digits(&mut digits);
            prop_assert_eq!(digits, one_by_one::<110>(&mut slow));
            prop_assert_eq!(fast, slow);
            prop_assert_eq!(JavaRandom::from_state(fast.state()), fast);
        }

        #[test]
        fn draws_stay_below_the_bound(seed: i64, n in 1u32..=i32::MAX as u32) {
            let mut random = JavaRandom::new(seed);
            for _ in 0..20 {
                prop_assert!(random.below(Bound::new(n)) < n);
            }
        }
    }
}
