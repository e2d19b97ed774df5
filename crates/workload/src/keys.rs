//! Key names as YCSB forms them, byte for byte.
//!
//! `key number -> (hash) -> prefix + zero-padded decimal`. The hash is FNV-1a of 64 bits (Fowler, Noll, Vo;
//! draft-eastlake-fnv) over the eight bytes of the number, least significant first, as a Java `long` made
//! non-negative.

/// FNV-1a of 64 bits over the eight bytes of `value`, least significant byte first.
#[inline]
pub fn fnv1a64(value: u64) -> u64 {
    value
        .to_le_bytes()
        .into_iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x100_0000_01B3))
}

/// YCSB's hash of a number: [`fnv1a64`] read as a signed number and made non-negative as Java's `Math.abs` does it
/// (-2^63 stays negative).
#[inline]
pub fn ycsb_hash(value: u64) -> i64 {
    (fnv1a64(value) as i64).wrapping_abs()
}

/// Java's `String.hashCode`: h = 31 h + c over the UTF-16 code units, in 32 bits.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |h: i32, c| h.wrapping_mul(31).wrapping_add(i32::from(c)))
}

/// The same hash continued over ASCII bytes.
#[inline]
pub fn java_hash_ascii(hash: i32, bytes: &[u8]) -> i32 {
    bytes.iter().fold(hash, |h, &c| h.wrapping_mul(31).wrapping_add(i32::from(c)))
}

/// Appends `value` in decimal. Eight digits are made at a time, each group independently of the others, and written where
/// they stay: nothing just stored is loaded again.
#[inline]
pub fn push_decimal(value: u64, out: &mut Vec<u8>) {
    const GROUP: u64 = 100_000_000;
    let (upper, low) = (value / GROUP, value % GROUP);
    if upper == 0 {
        return push_leading(low as u32, out);
    }
    let (high, middle) = (upper / GROUP, upper % GROUP);
    if high == 0 {
        push_leading(middle as u32, out);
    } else {
        push_leading(high as u32, out);
        out.extend_from_slice(&eight_digits(middle as u32).to_le_bytes());
    }
    out.extend_from_slice(&eight_digits(low as u32).to_le_bytes());
}

/// Appends a number below 10^8 without leading zeros.
#[inline]
fn push_leading(value: u32, out: &mut Vec<u8>) {
    let used = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    // As many bytes behind them as are taken off again: copies of a known size need no call.
    out.extend_from_slice(&(eight_digits(value) >> (8 * (8 - used))).to_le_bytes());
    out.truncate(out.len() + used - 8);
}

/// Appends `value` in decimal, with a sign if it is negative.
#[inline]
pub fn push_signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    push_decimal(value.unsigned_abs(), out);
}

/// The eight decimal digits of a number below 10^8, the first in the lowest byte: halved three times, the parts side by
/// side in one word. Divisions are multiplications by reciprocals that are exact for so few digits.
#[inline]
fn eight_digits(value: u32) -> u64 {
    let value = u64::from(value);
    // Two numbers of four digits, in lanes of 32 bits, the first in the lowest.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    let ones = tens | ((twos - tens * 10) << 8);
    ones | 0x3030_3030_3030_3030
}

/// Rule by which key numbers become key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    /// Text that every name starts with; YCSB's is `user`.
    pub prefix: String,
    /// Least number of digits; shorter numbers get leading zeros. Hashed numbers have up to 19 digits.
    pub zero_padding: usize,
    /// True if the number is hashed first, so that neighbours in time are no neighbours in the database.
    pub hashed: bool,
}

impl Default for KeyNames {
    fn default() -> Self {
        KeyNames { prefix: "user".into(), zero_padding: 1, hashed: true }
    }
}

impl KeyNames {
    /// Appends the name of key number `keynum`.
    #[inline]
    pub fn render(&self, keynum: u64, out: &mut Vec<u8>) {
        let number = if self.hashed { ycsb_hash(keynum) } else { keynum as i64 };
        // A copy of a known size needs no call: YCSB's own prefix has four bytes.
        match <&[u8; 4]>::try_from(self.prefix.as_bytes()) {
            Ok(four) => out.extend_from_slice(four),
            Err(_) => out.extend_from_slice(self.prefix.as_bytes()),
        }
        if self.zero_padding > 1 {
            // Java writes a sign after the padding, as part of the number.
            let digits = number.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
            let length = digits + usize::from(number < 0);
            out.extend(std::iter::repeat_n(b'0', self.zero_padding.saturating_sub(length)));
        }
        push_signed(number, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(names: &KeyNames, keynum: u64) -> String {
        let mut out = Vec::new();
        names.render(keynum, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ycsb_key_vectors() {
        let vectors = [
            (0, 6_284_781_860_667_377_211),
            (1, 8_517_097_267_634_966_620),
            (2, 1_820_151_046_732_198_393),
            (3, 4_052_466_453_699_787_802),
            (4, 3_232_700_585_171_816_769),
            (5, 1_000_385_178_204_227_360),
            (999, 2_071_219_101_098_386_137),
            (1_000_000, 1_011_632_231_655_643_464),
        ];
        for (keynum, hash) in vectors {
            assert_eq!(ycsb_hash(keynum), hash);
            assert_eq!(name(&KeyNames::default(), keynum), format!("user{hash}"));
        }
    }

    #[test]
    fn ordered_and_padded() {
        let mut names = KeyNames { hashed: false, zero_padding: 8, ..KeyNames::default() };
        assert_eq!(name(&names, 5), "user00000005");
        assert_eq!(name(&names, 1_234_567_890), "user1234567890");
        names.prefix = "k:".into();
        names.zero_padding = 1;
        assert_eq!(name(&names, 0), "k:0");
    }

    #[test]
    fn java_hash_vectors() {
        assert_eq!(java_hash("user6284781860667377211"), -594_971_599);
        assert_eq!(java_hash("user8517097267634966620"), -314_243_905);
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash_ascii(java_hash("user8517097"), b"267634966620"), -314_243_905);
    }

    proptest! {
        #[test]
        fn decimal_is_decimal(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            push_decimal(value, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
