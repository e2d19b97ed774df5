//! Values that were too long to be kept, made anew: as long, as compressible, and equal where they were equal.

use crate::entry::LongValue;
use dyno_types::rng::mix_bits;

/// Bytes of a piece, of which a part is random and the rest is not.
const PIECE: u64 = 1_024;

/// Appends a value like the one that was recorded.
pub(crate) fn put_long(value: LongValue, out: &mut Vec<u8>) {
    out.reserve(value.length as usize);
    let random = PIECE * u64::from(value.compressed.min(100)) / 100;
    let (mut left, mut state) = (value.length, value.hash);
    while left > 0 {
        let piece = left.min(PIECE);
        let mut noise = piece.min(random);
        while noise > 0 {
            state = mix_bits(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            let part = noise.min(8) as usize;
            out.extend_from_slice(&state.to_le_bytes()[..part]);
            noise -= part as u64;
        }
        out.resize(out.len() + (piece - piece.min(random)) as usize, b'x');
        left -= piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_as_long_and_as_compressible_as_it_was() {
        for compressed in [1, 25, 60, 98] {
            let value = LongValue { length: 200_003, hash: 77, compressed };
            let mut made = Vec::new();
            put_long(value, &mut made);
            assert_eq!(made.len(), 200_003);
            let again = LongValue::of_bytes(&made);
            assert!(again.compressed.abs_diff(compressed) <= 4, "{} of {compressed}", again.compressed);
            let mut same = Vec::new();
            put_long(value, &mut same);
            let mut other = Vec::new();
            put_long(LongValue { hash: 78, ..value }, &mut other);
            assert!(same == made && other != made);
        }
    }
}
