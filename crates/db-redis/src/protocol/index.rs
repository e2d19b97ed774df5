//! The index of keys: a sorted set of every key with its Java hash as the score.

use super::resp::put_length;
use dyno_workload::keys::java_hash_ascii;
use std::io::Write;

/// The key of the index.
pub(super) const INDEX_KEY: &[u8] = b"_indices";

/// Appends the score of a key's index entry as a bulk string.
pub(super) fn put_score(out: &mut Vec<u8>, key: &[u8]) {
    let score = java_hash_ascii(0, key);
    let digits = score.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
    let length = digits + usize::from(score < 0);
    put_length(out, length);
    let at = out.len();
    // Writing to a vector cannot fail.
    let _ = write!(out, "{score}\r\n");
    debug_assert_eq!(out.len() - at, length + 2, "what follows would be read as part of the score");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_decimal() {
        for (key, expected) in [(&b""[..], "$1\r\n0\r\n"), (b"a", "$2\r\n97\r\n")] {
            let mut out = Vec::new();
            put_score(&mut out, key);
            assert_eq!(out, expected.as_bytes());
        }
        let mut out = Vec::new();
        put_score(&mut out, b"user8517097267634966620");
        assert_eq!(out, b"$10\r\n-314243905\r\n");
    }
}
