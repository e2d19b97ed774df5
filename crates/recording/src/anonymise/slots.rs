//! Words that stay in the slots of their keys: Redis Cluster puts a key where the CRC-16 of its hash tag says, or of all of it.
//!
//! All characters of a tag but two neighbours are permuted. For what these two become, each of the 65,536 sums has one choice
//! (a CRC is a linear map, and one to one in two bytes), so four choices are in the slot: the key tells which, one to one.

use super::permutation::{KeyedPermutation, is_brace, is_number, is_printable};
use dyno_db_redis::protocol::{crc16, hash_tag};

/// The part of the sum that is the slot.
const SLOT: u16 = 0x3fff;

/// The sum (CRC-16) before this byte: the lowest bit says whether the polynomial was added.
fn step_back(sum: u16, byte: u8) -> u16 {
    let before = (0..8).fold(sum, |sum, _| match sum & 1 {
        0 => sum >> 1,
        _ => (sum ^ 0x1021) >> 1 | 0x8000,
    });
    before ^ u16::from(byte) << 8
}

impl KeyedPermutation {
    /// The word that stands for `word` in the same slot. Printable parts stay printable, and others do not become so. `None`
    /// where no two characters stand side by side that could decide the slot.
    pub(super) fn permute_in_slot(&self, word: &[u8]) -> Option<Vec<u8>> {
        let Some(tag) = hash_tag(word) else {
            return self.walk_tag(word, |made| !is_number(made));
        };
        let mut out = word.to_vec();
        let made = self.walk_tag(&word[tag.clone()], |_| true)?;
        out[tag.clone()].copy_from_slice(&made);
        self.permute_beside(b'b', &mut out[..tag.start]);
        self.permute_beside(b'a', &mut out[tag.end..]);
        Some(out)
    }

    /// Permutes what decides the slot until it is a word again, of the same kind as before (cycle walking).
    fn walk_tag(&self, tag: &[u8], fits: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let pair = tag.windows(2).rposition(|two| !two.iter().any(|byte| is_brace(*byte)))?;
        let is_text = is_printable(tag);
        let mut made = tag.to_vec();
        loop {
            self.permute_tag(pair, is_text, &mut made);
            let has_braces = made[pair..pair + 2].iter().any(|byte| is_brace(*byte));
            if !has_braces && is_printable(&made) == is_text && fits(&made) {
                return Some(made);
            }
        }
    }

    /// Permutes a tag within its slot. The pair may become any two bytes; braces elsewhere stay.
    fn permute_tag(&self, pair: usize, is_text: bool, tag: &mut [u8]) {
        let sum = crc16(0, tag);
        let (head, rest) = tag.split_at_mut(pair);
        let (two, tail) = rest.split_at_mut(2);
        self.permute_but_braces(b's', is_text, head.iter_mut().chain(&mut *tail));
        let choice = self.number_of(&[b"slot", &*head, &[0], &*tail].concat()) as u16;
        let wanted = (sum & SLOT) | ((sum >> 14).wrapping_add(choice) & 3) << 14;
        let behind = tail.iter().rev().fold(wanted, |sum, byte| step_back(sum, *byte));
        let both = step_back(step_back(behind, 0), 0) ^ crc16(0, head);
        two.copy_from_slice(&both.to_be_bytes());
    }

    /// Permutes what stands before or behind a tag.
    fn permute_beside(&self, part: u8, bytes: &mut [u8]) {
        let is_text = is_printable(bytes);
        loop {
            self.permute_but_braces(part, is_text, bytes.iter_mut());
            if is_printable(bytes) == is_text {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_db_redis::protocol::key_slot;
    use std::collections::{BTreeMap, BTreeSet};

    fn permutation() -> KeyedPermutation {
        KeyedPermutation::new(b"a key of sixteen bytes").keeping_slots()
    }

    #[test]
    fn a_sum_is_taken_back_byte_by_byte() {
        // The specification of Redis Cluster: the sum of "123456789".
        assert_eq!(crc16(0, b"123456789"), 0x31c3);
        for sum in (0..=u16::MAX).step_by(251) {
            for byte in [0, 1, b'{', 0x80, 255] {
                assert_eq!(step_back(crc16(sum, &[byte]), byte), sum);
            }
        }
    }

    #[test]
    fn words_stay_in_their_slots_and_apart() {
        let mut all = permutation();
        let mut made = BTreeMap::new();
        let letters = || (b' '..=b'~').filter(|byte| !is_brace(*byte));
        // Every printable word of two characters, keys, tags, and bytes of any kind.
        let pairs = letters().flat_map(|a| letters().map(move |b| vec![a, b]));
        let keys = (0..2_000).flat_map(|n| {
            [
                format!("user:{n}:cart"),
                format!("cart:{{user:{n}}}"),
                format!("{{}}a{n}b"),
                format!("x}}y{n}z{{w"),
            ]
            .map(String::into_bytes)
        });
        let bytes = (0..=255u8).map(|byte| [b"\x00\xffk{tu", &[byte][..], b"\xfeg}\x01z"].concat());
        for word in pairs.chain(keys).chain(bytes) {
            let out = all.permute(&word);
            assert_eq!(key_slot(&out), key_slot(&word), "{word:?}: {out:?}");
            let kind = |word: &[u8]| (word.len(), is_printable(word), is_number(word), hash_tag(word));
            assert_eq!(kind(&out), kind(&word), "{word:?}: {out:?}");
            if !is_number(&word) && word.len() > 4 {
                assert_ne!(out, word);
            }
            assert_eq!(made.insert(out, word.clone()), None, "{word:?}");
        }
    }

    #[test]
    fn equal_tags_stay_equal_whatever_stands_beside_them() {
        let mut all = permutation();
        let words: [&[u8]; 4] = [b"{user:7}", b"cart:{user:7}:a", b"\x00\x01{user:7}", b"{user:7}}\xff"];
        let tags: BTreeSet<Vec<u8>> = words
            .iter()
            .map(|word| {
                let out = all.permute(word);
                out[hash_tag(&out).unwrap()].to_vec()
            })
            .collect();
        assert_eq!(tags.len(), 1, "{tags:?}");
        assert!(!tags.contains(&b"user:7"[..]));
    }

    #[test]
    fn one_character_decides_no_slot() {
        let mut all = permutation();
        assert_eq!(all.permute_in_slot(b"k"), None);
        assert_eq!(all.permute_in_slot(b"cart:{7}"), None);
        let out = all.permute(b"cart:{7}");
        assert_eq!((out.len(), hash_tag(&out)), (8, Some(6..7)));
    }
}
