//! Hashes, and maps whose keys are hashes already.

use dyno_types::rng::mix_bits;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The hash of bytes, the same each time, so that what is learned is the same.
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = mix_bits(bytes.len() as u64 + 1);
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        hash = mix_bits(hash ^ u64::from_le_bytes(eight.try_into().unwrap_or_default()));
    }
    let mut rest = [0; 8];
    rest[..eights.remainder().len()].copy_from_slice(eights.remainder());
    mix_bits(hash ^ u64::from_le_bytes(rest))
}

/// A map of hashes.
pub(super) type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<HashedHasher>>;

/// Takes a hash as it is, turned: of a sample the low bits are all zero.
#[derive(Debug, Default)]
pub(super) struct HashedHasher(u64);

impl Hasher for HashedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash.rotate_right(24);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_differ_and_their_low_bits_are_even() {
        let all: Vec<u64> = (0..100_000).map(|n| hash_of(format!("user:{n}").as_bytes())).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 100_000);
        // One in 64 ends in six zero bits: 1,562, give or take four times the 39 that are one standard deviation.
        let zeros = all.iter().filter(|hash| hash.trailing_zeros() >= 6).count();
        assert!((1_400..1_725).contains(&zeros), "{zeros}");
        let words = [&b""[..], b"\0", b"\0\0", b"12345678", b"12345678\0"].map(hash_of);
        assert_eq!(HashSet::from(words).len(), 5);
        let map: HashedMap<u32> = all.iter().filter(|hash| **hash % 64 == 0).map(|hash| (*hash, 1)).collect();
        assert_eq!(map.len(), zeros);
    }
}
