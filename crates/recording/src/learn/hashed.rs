//! Maps whose keys are hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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
