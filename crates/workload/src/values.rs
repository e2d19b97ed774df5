//! The bytes of field values: a pure function of (kind, seed, length), always of the exact length asked for.
//!
//! The random bits come from one SplitMix64 stream per field, so a retry, a redirect or a replica renders the same
//! bytes again. Values of the data-integrity mode depend on the key and the field name instead and can be checked.

use crate::keys::{java_hash_ascii, push_signed};
use dyno_types::rng::{Purpose, Stream};
use std::sync::OnceLock;

/// Content of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueKind {
    /// YCSB's printable bytes (32 to 127), six from 32 random bits: entropy coders shrink them to about 2/3.
    #[default]
    Random,
    /// Such bytes, cut out of 512 KiB that are made once: 1 KB in 15 ns instead of 235. Of two values of 1 KB one pair
    /// in 260 has bytes in common: zlib saves 3 % more of a page of 32 KiB.
    Pool,
    /// Lower-case letters a to z, nearly uniform.
    Text,
    /// Bytes of value 0.
    Zero,
    /// One N-th of the value is random over 64 characters, the rest is one repeated character: a compressor without
    /// entropy coding (snappy, lz4) reaches about N on long values, one with it (zstd, zlib) about 4/3 N.
    Compressible(u32),
}

impl ValueKind {
    /// Appends `len` bytes of the value that `seed` and the field's number choose.
    #[inline]
    pub fn render_value(self, seed: u64, field: u64, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let mut stream = Stream::new(seed, field, Purpose::Value);
        match self {
            ValueKind::Random => {
                out.resize(start + len, 0);
                fill::<12>(&mut out[start..], || two_groups(stream.next_u64()));
            }
            ValueKind::Pool => {
                let pool = value_pool();
                while out.len() < start + len {
                    let piece = (start + len - out.len()).min(PIECE);
                    let from = stream.next_below((pool.len() - piece) as u64 + 1) as usize;
                    out.extend_from_slice(&pool[from..from + piece]);
                }
            }
            ValueKind::Text => {
                out.resize(start + len, 0);
                fill::<8>(&mut out[start..], || letters(stream.next_u64()));
            }
            ValueKind::Zero => out.resize(start + len, 0),
            ValueKind::Compressible(ratio) => {
                let random = len.div_ceil(ratio.max(1) as usize);
                out.resize(start + random, 0);
                fill::<10>(&mut out[start..], || ten_characters(stream.next_u64()));
                out.resize(start + len, b'.');
            }
        }
    }
}

/// Bytes of the pool, and most that are cut out of it at once.
const POOL: usize = 512 << 10;
const PIECE: usize = 64 << 10;

/// Bytes that values are cut from.
pub fn value_pool() -> &'static [u8] {
    static POOLED: OnceLock<Vec<u8>> = OnceLock::new();
    POOLED.get_or_init(|| {
        let mut out = Vec::with_capacity(POOL);
        ValueKind::Random.render_value(1, 0, POOL, &mut out);
        out
    })
}

/// Fills `dest` with pieces of `N` bytes, the last one cut.
#[inline]
fn fill<const N: usize>(dest: &mut [u8], mut next: impl FnMut() -> [u8; N]) {
    let (pieces, rest) = dest.as_chunks_mut::<N>();
    for piece in pieces {
        *piece = next();
    }
    if !rest.is_empty() {
        let last = next();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Twelve bytes of YCSB's random value: two groups of six, the low 32 bits first.
#[inline]
fn two_groups(bits: u64) -> [u8; 12] {
    let (a, b) = (group(bits as u32), group((bits >> 32) as u32));
    let mut out = [0u8; 12];
    out[..8].copy_from_slice(&(a | b << 48).to_le_bytes());
    out[8..].copy_from_slice(&((b >> 16) as u32).to_le_bytes());
    out
}

/// Six bytes of YCSB's random value from 32 bits, the first in the lowest byte.
///
/// Bytes 3 to 5 are taken from the bits 15 places further up in the same way as bytes 0 to 2, so both halves are
/// spread at once: byte 0 holds 5 bits, byte 1 six bits from bit 5, byte 2 the mask 0x5F from bit 10.
#[inline]
fn group(r: u32) -> u64 {
    let r = u64::from(r);
    let halves = (r & 0x1_FFFF) | ((r >> 15) & 0x1_FFFF) << 24;
    let spread =
        (halves & 0x0000_1F00_001F) | ((halves << 3) & 0x003F_0000_3F00) | ((halves << 6) & 0x5F00_005F_0000);
    spread + 0x2020_2020_2020
}

/// Eight letters, each from one byte as floor(byte * 26 / 256); even and odd bytes are multiplied four at a time.
#[inline]
fn letters(bits: u64) -> [u8; 8] {
    const EVEN: u64 = 0x00FF_00FF_00FF_00FF;
    let even = (((bits & EVEN) * 26) >> 8) & EVEN;
    let odd = (((bits >> 8) & EVEN) * 26) & !EVEN;
    ((even | odd) + 0x6161_6161_6161_6161).to_le_bytes()
}

/// Ten of 64 characters (`0` to `o` in ASCII order), six bits each.
#[inline]
fn ten_characters(bits: u64) -> [u8; 10] {
    std::array::from_fn(|i| b'0' + ((bits >> (6 * i)) & 63) as u8)
}

/// Appends `len` bytes of YCSB's data-integrity value, which a reader that knows the key and the field can check.
///
/// The text `key:field` is continued by `:` and the decimal Java string hash of all text so far, that colon included, until
/// it is long enough, then cut. `key` appends the key's name; it and `field` must be ASCII for YCSB to agree.
pub fn put_integrity_value(key: impl FnOnce(&mut Vec<u8>), field: &[u8], len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    key(out);
    out.push(b':');
    out.extend_from_slice(field);
    let mut hashed = start;
    let mut hash = 0;
    while out.len() - start < len {
        out.push(b':');
        hash = java_hash_ascii(hash, &out[hashed..]);
        hashed = out.len();
        push_signed(i64::from(hash), out);
    }
    out.truncate(start + len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn integrity_text(key: &str, field: &str, len: usize) -> String {
        let mut out = Vec::new();
        put_integrity_value(|out| out.extend_from_slice(key.as_bytes()), field.as_bytes(), len, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Checks values that YCSB 0.17.0 itself writes.
    #[test]
    fn integrity_vectors() {
        assert_eq!(
            integrity_text("user6284781860667377211", "field0", 100),
            "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:-1039977118:-10"
        );
        assert_eq!(
            integrity_text("user8517097267634966620", "field9", 40),
            "user8517097267634966620:field9:-55795254"
        );
        assert_eq!(integrity_text("user8517097267634966620", "field9", 6), "user85");
    }

    /// The six bytes as YCSB's formula states them.
    fn plain_group(r: u32) -> [u8; 6] {
        let r = r as i32;
        let parts = [r & 31, (r >> 5) & 63, (r >> 10) & 95, (r >> 15) & 31, (r >> 20) & 63, (r >> 25) & 95];
        parts.map(|p| (p + 32) as u8)
    }

    proptest! {
        #[test]
        fn groups_are_ycsbs(bits: u64) {
            let mut expected = plain_group(bits as u32).to_vec();
            expected.extend(plain_group((bits >> 32) as u32));
            prop_assert_eq!(two_groups(bits).to_vec(), expected);
        }

        #[test]
        fn letters_are_what_they_say(bits: u64) {
            let plain = bits.to_le_bytes().map(|b| b'a' + ((u16::from(b) * 26) >> 8) as u8);
            prop_assert_eq!(letters(bits), plain);
        }

        #[test]
        fn lengths_are_exact_and_bytes_are_pure(
            seed: u64, field in 0u64..100, len in 0usize..300, ratio in 1u32..101,
        ) {
            for kind in [ValueKind::Random, ValueKind::Pool, ValueKind::Text, ValueKind::Zero, ValueKind::Compressible(ratio)] {
                let mut a = b"kept".to_vec();
                kind.render_value(seed, field, len, &mut a);
                prop_assert_eq!(a.len(), 4 + len);
                prop_assert_eq!(&a[..4], b"kept");
                prop_assert!(a.is_ascii());
                let mut b = Vec::new();
                kind.render_value(seed, field, len, &mut b);
                prop_assert_eq!(&a[4..], &b[..]);
            }
        }
    }

    #[test]
    fn fields_and_seeds_differ() {
        let value = |seed, field| {
            let mut out = Vec::new();
            ValueKind::Random.render_value(seed, field, 100, &mut out);
            out
        };
        assert_ne!(value(1, 0), value(1, 1));
        assert_ne!(value(1, 0), value(2, 0));
        assert!(value(1, 0).iter().all(|b| (32..128).contains(b)));
    }

    #[test]
    fn pieces_of_the_pool_are_its_bytes_and_differ() {
        let value = |seed, len| {
            let mut out = Vec::new();
            ValueKind::Pool.render_value(seed, 0, len, &mut out);
            out
        };
        let found = |bytes: &[u8]| value_pool().windows(bytes.len()).any(|window| window == bytes);
        assert!(found(&value(7, 1_000)) && found(&value(8, 1_000)[..100]));
        assert_ne!(value(7, 1_000), value(8, 1_000));
        // Longer ones consist of several pieces.
        let long = value(9, 2 * PIECE + 5);
        assert!(
            found(&long[..PIECE]) && found(&long[PIECE..2 * PIECE]) && !found(&long[PIECE - 50..PIECE + 50])
        );
        assert_eq!(value(9, POOL + 1).len(), POOL + 1);
    }

    #[test]
    fn compressible_has_one_random_part() {
        let mut out = Vec::new();
        ValueKind::Compressible(10).render_value(3, 0, 1000, &mut out);
        assert_eq!(out.iter().filter(|&&b| b == b'.').count(), 900);
        out.clear();
        ValueKind::Text.render_value(3, 0, 1000, &mut out);
        assert!(out.iter().all(u8::is_ascii_lowercase));
    }
}
