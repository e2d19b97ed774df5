//! A keyed permutation of words: each word becomes another of the same length, and two words never the same.
//!
//! A Feistel network over the word's symbols, as in format-preserving encryption (NIST SP 800-38G), with HMAC-SHA-256 as its
//! round function. Printable words stay printable, and braces stay where they are.

use crate::entry::{Arguments, LongValue};
use crate::long::put_long;
use dyno_db_redis::protocol::hash_tag;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::HashMap;

/// Longest word that is permuted, bytes: a longer one becomes random bytes of the same compressibility.
pub(super) const PERMUTED: usize = 128;

/// Rounds of the network.
const ROUNDS: u8 = 8;

/// Words that are remembered, and the longest of them: keys come again and again.
const REMEMBERED: (usize, usize) = (100_000, 128);

/// First and last printable character.
const PRINTABLE: std::ops::RangeInclusive<u8> = 0x20..=0x7e;

/// Printable characters that are no braces.
const SYMBOLS: u16 = 93;

/// Bytes that are no braces.
const BYTES: u16 = 254;

/// A symbol of a word, which is less than its radix: each place may have a radix of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub symbol: u32,
    pub radix: u32,
}

/// Permutes words by a key.
pub(super) struct KeyedPermutation {
    mac: Hmac<Sha256>,
    known: HashMap<Vec<u8>, Vec<u8>>,
    /// Words stay in the slots of a cluster that they have as keys.
    pub(super) keeps_slots: bool,
}

pub(super) fn is_printable(word: &[u8]) -> bool {
    word.iter().all(|byte| PRINTABLE.contains(byte))
}

pub(super) fn is_brace(byte: u8) -> bool {
    matches!(byte, b'{' | b'}')
}

/// A number, or what stands for one: these stay as they are, so that counters count and ranges are ranges.
pub(super) fn is_number(word: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(word) else { return false };
    let bare = text.strip_prefix('(').unwrap_or(text);
    let infinite = ["inf", "+inf", "-inf"].contains(&bare);
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let finite =
        !bare.is_empty() && bare.len() <= 40 && bare.bytes().all(is_part) && bare.parse::<f64>().is_ok();
    text.is_empty() || infinite || finite
}

/// Returns whether a byte may stand in a key of memcached's text protocols: no space and no control character.
fn is_key_byte(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Bytes that may stand in a key of memcached.
const KEY_SYMBOLS: u16 = 222;

/// The number of such a byte among them.
fn key_symbol_of(byte: u8) -> u16 {
    u16::from(byte) - 0x21 - u16::from(byte > 0x7f)
}

fn key_byte_of(symbol: u16) -> u8 {
    let byte = symbol as u8 + 0x21;
    byte + u8::from(byte >= 0x7f)
}

/// The number of a byte that is no brace among those from `first` on.
fn symbol_of(byte: u8, first: u8) -> u16 {
    debug_assert!(!is_brace(byte) && byte >= first, "braces stay, and control characters are no text");
    u16::from(byte - first - u8::from(byte > b'{') - u8::from(byte > b'}'))
}

fn byte_of(symbol: u16, first: u8) -> u8 {
    let byte = symbol as u8 + first;
    match byte {
        b'{' => b'|',
        byte if byte > b'{' => byte + 2,
        byte => byte,
    }
}

impl KeyedPermutation {
    pub(super) fn new(key: &[u8]) -> Self {
        // HMAC takes keys of any length.
        let mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
        KeyedPermutation { mac, known: HashMap::new(), keeps_slots: false }
    }

    /// The same, whose words stay in their slots.
    pub(super) fn keeping_slots(self) -> Self {
        KeyedPermutation { keeps_slots: true, ..self }
    }

    /// A number for a word that only the key tells.
    pub(super) fn number_of(&self, word: &[u8]) -> u64 {
        let mut mac = self.mac.clone();
        mac.update(b"n");
        mac.update(word);
        let bytes = mac.finalize().into_bytes();
        bytes.first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// The word that stands for `word`. Of one with a hash tag the tag is permuted by itself, so that equal tags stay equal.
    /// Numbers stay, and no other word becomes one: it is permuted until it is none, among which this is a permutation again
    /// (cycle walking, Black and Rogaway, 2002).
    pub(super) fn permute(&mut self, word: &[u8]) -> Vec<u8> {
        if is_number(word) {
            return word.to_vec();
        }
        if let Some(known) = self.known.get(word) {
            return known.clone();
        }
        let in_slot = if self.keeps_slots { self.permute_in_slot(word) } else { None };
        let made = in_slot.unwrap_or_else(|| match is_printable(word) {
            true => self.walk_printable(word.to_vec(), |made| !is_number(made)),
            false => self.permute_bytes(word),
        });
        if word.len() <= REMEMBERED.1 {
            if self.known.len() >= REMEMBERED.0 {
                self.known.clear();
            }
            self.known.insert(word.to_vec(), made.clone());
        }
        made
    }

    /// The same of a key of memcached, which has neither spaces nor control characters, and becomes one of such. What has them
    /// is no key: it becomes hexadecimal digits of the same length.
    pub(super) fn permute_key(&mut self, key: &[u8]) -> Vec<u8> {
        if key.iter().copied().all(is_key_byte) {
            let fits = |made: &[u8]| !made.contains(&b' ') && !is_number(made);
            return match is_printable(key) {
                true if is_number(key) => key.to_vec(),
                true => {
                    let made = self.permute(key);
                    if fits(&made) { made } else { self.walk_printable(made, fits) }
                }
                false => self.walk_bytes((b'k', KEY_SYMBOLS), (key, key_symbol_of), key_byte_of),
            };
        }
        let digits = (0u64..).flat_map(|part| {
            let number = self.number_of(&[key, &part.to_le_bytes()[..]].concat());
            format!("{number:016x}").into_bytes()
        });
        digits.take(key.len()).collect()
    }

    /// Appends the word that stands for word `number` of a command, where that says something.
    pub(super) fn push_other(&mut self, arguments: &Arguments, number: usize, out: &mut Arguments) {
        let word = arguments.word(number);
        if let Some(value) = arguments.long_value(number) {
            out.push_long(LongValue { hash: self.number_of(&value.hash.to_le_bytes()), ..value });
        } else if word.len() > PERMUTED {
            let like = LongValue { hash: self.number_of(word), ..LongValue::of_bytes(word) };
            let mut made = Vec::new();
            put_long(like, &mut made);
            out.push_word(&made);
        } else {
            out.push_word(&self.permute(word));
        }
    }

    /// Permutes a printable word once, and on until it fits.
    fn walk_printable(&self, word: Vec<u8>, fits: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut made = self.permute_printable(&word);
        while !fits(&made) {
            made = self.permute_printable(&made);
        }
        made
    }

    fn permute_printable(&self, word: &[u8]) -> Vec<u8> {
        let mut out = word.to_vec();
        match hash_tag(word) {
            None => self.permute_but_braces(b'w', true, out.iter_mut()),
            Some(tag) => {
                self.permute_but_braces(b't', true, out[tag.clone()].iter_mut());
                self.permute_but_braces(b'b', true, out[..tag.start].iter_mut());
                self.permute_but_braces(b'a', true, out[tag.end..].iter_mut());
            }
        }
        out
    }

    /// Permutes the characters that are no braces among these: printable ones (`is_text`), or bytes of any kind.
    pub(super) fn permute_but_braces<'a>(
        &self,
        part: u8,
        is_text: bool,
        bytes: impl Iterator<Item = &'a mut u8>,
    ) {
        let mut places: Vec<&mut u8> = bytes.filter(|byte| !is_brace(**byte)).collect();
        let (first, radix) = if is_text { (*PRINTABLE.start(), SYMBOLS) } else { (0, BYTES) };
        let mut symbols: Vec<u16> = places.iter().map(|byte| symbol_of(**byte, first)).collect();
        // Among bytes of any kind it is another permutation.
        self.feistel(if is_text { part } else { part.to_ascii_uppercase() }, radix, &mut symbols);
        for (byte, symbol) in places.iter_mut().zip(symbols) {
            **byte = byte_of(symbol, first);
        }
    }

    /// Bytes of any kind.
    fn permute_bytes(&self, word: &[u8]) -> Vec<u8> {
        self.walk_bytes((b'x', 256), (word, u16::from), |symbol| symbol as u8)
    }

    /// Bytes of an alphabet of so many. What would come out printable is permuted again: printable words come from printable
    /// ones alone.
    fn walk_bytes(
        &self,
        (part, radix): (u8, u16),
        (word, symbol_of): (&[u8], impl Fn(u8) -> u16),
        byte_of: impl Fn(u16) -> u8,
    ) -> Vec<u8> {
        let mut symbols: Vec<u16> = word.iter().map(|byte| symbol_of(*byte)).collect();
        loop {
            self.feistel(part, radix, &mut symbols);
            let made: Vec<u8> = symbols.iter().map(|symbol| byte_of(*symbol)).collect();
            if !is_printable(&made) {
                return made;
            }
        }
    }

    /// The network: each round adds to one half what the other half and the key say.
    fn feistel(&self, part: u8, radix: u16, symbols: &mut [u16]) {
        let length = symbols.len() as u64;
        let (left, right) = symbols.split_at_mut(symbols.len() / 2);
        for round in 0..ROUNDS {
            let (from, to): (&[u16], &mut [u16]) =
                if round % 2 == 0 { (&*left, &mut *right) } else { (&*right, &mut *left) };
            for (block, chunk) in (0u64..).zip(to.chunks_mut(16)) {
                let mut mac = self.mac.clone();
                mac.update(&[b'f', part, round]);
                mac.update(&length.to_le_bytes());
                mac.update(&block.to_le_bytes());
                from.iter().for_each(|symbol| mac.update(&symbol.to_le_bytes()));
                let bytes = mac.finalize().into_bytes();
                for (symbol, two) in chunk.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *symbol = (*symbol + u16::from_le_bytes(*two) % radix) % radix;
                }
            }
        }
    }

    /// The same network over places with radices of their own, which stay where they are.
    pub(super) fn permute_places(&self, part: u8, places: &mut [Place]) {
        let length = places.len() as u64;
        let (left, right) = places.split_at_mut(places.len() / 2);
        for round in 0..ROUNDS {
            let (from, to): (&[Place], &mut [Place]) =
                if round % 2 == 0 { (&*left, &mut *right) } else { (&*right, &mut *left) };
            for (block, chunk) in (0u64..).zip(to.chunks_mut(8)) {
                let mut mac = self.mac.clone();
                mac.update(&[b'p', part, round]);
                mac.update(&length.to_le_bytes());
                mac.update(&block.to_le_bytes());
                from.iter().for_each(|place| mac.update(&place.symbol.to_le_bytes()));
                let bytes = mac.finalize().into_bytes();
                for (place, four) in chunk.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    place.symbol = (place.symbol + u32::from_le_bytes(*four) % place.radix) % place.radix;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_keep_their_length_and_stay_apart() {
        let mut all = KeyedPermutation::new(b"a key of sixteen bytes");
        let mut made = HashSet::new();
        // Every word of two letters, and every byte but one of a kind that is not printable.
        let printable = PRINTABLE.flat_map(|a| PRINTABLE.map(move |b| vec![a, b]));
        let other = (0..=255u8).flat_map(|a| (0..8u8).map(move |b| vec![a, b]));
        let mut count = 0;
        for word in printable.chain(other) {
            let out = all.permute(&word);
            assert_eq!((out.len(), is_printable(&out)), (word.len(), is_printable(&word)), "{word:?}");
            made.insert(out);
            count += 1;
        }
        assert_eq!(made.len(), count);
        assert_eq!(all.permute(b""), b"");
        // Numbers stay, and nothing else becomes one.
        for word in [&b"7"[..], b"12", b"-1", b"+inf", b"1e9"] {
            assert_eq!(all.permute(word), word);
        }
        for (byte, symbol) in (0..=255u8).filter(|byte| is_key_byte(*byte)).zip(0..KEY_SYMBOLS) {
            assert_eq!((key_symbol_of(byte), key_byte_of(symbol)), (symbol, byte));
        }
        for (first, last) in [(b' ', b'~'), (0, 255)] {
            for (byte, symbol) in (first..=last).filter(|byte| !is_brace(*byte)).zip(0..) {
                assert_eq!((symbol_of(byte, first), byte_of(symbol, first)), (symbol, byte));
            }
        }
    }

    #[test]
    fn short_keys_stay_keys_and_stay_apart() {
        let mut all = KeyedPermutation::new(b"a key of sixteen bytes");
        let letters = || (0..=255u8).filter(|byte| is_key_byte(*byte));
        let keys: Vec<Vec<u8>> = letters()
            .map(|a| vec![a])
            .chain(letters().flat_map(|a| letters().map(move |b| vec![a, b])))
            .collect();
        let mut made = HashSet::new();
        for key in &keys {
            let out = all.permute_key(key);
            assert!(out.len() == key.len() && out.iter().copied().all(is_key_byte), "{key:?}: {out:?}");
            assert_eq!(is_number(&out), is_number(key), "{key:?}: {out:?}");
            made.insert(out);
        }
        assert_eq!(made.len(), keys.len());
    }

    #[test]
    fn tags_are_words_of_their_own() {
        let mut all = KeyedPermutation::new(b"a key of sixteen bytes");
        let tag = |word: &[u8]| {
            let open = word.iter().position(|byte| *byte == b'{').unwrap();
            let close = word.iter().position(|byte| *byte == b'}').unwrap();
            word[open + 1..close].to_vec()
        };
        let (one, two) = (all.permute(b"cart:{user:7}:a"), all.permute(b"{user:7}"));
        assert_eq!(tag(&one), tag(&two));
        assert_ne!(tag(&one), b"user:7");
        assert_eq!((one[5], one[12], two[7]), (b'{', b'}', b'}'));
        assert_ne!(tag(&all.permute(b"{user:8}")), tag(&two));
        // An empty tag is none.
        assert_eq!(all.permute(b"{}abcdefgh")[..2], *b"{}");
    }

    #[test]
    fn another_key_is_another_permutation() {
        let (mut one, mut same, mut other) = (
            KeyedPermutation::new(b"a key of sixteen bytes"),
            KeyedPermutation::new(b"a key of sixteen bytes"),
            KeyedPermutation::new(b"another key of so many"),
        );
        assert_eq!(one.permute(b"session:42"), same.permute(b"session:42"));
        assert_ne!(one.permute(b"session:42"), other.permute(b"session:42"));
        assert_ne!(one.number_of(b"session:42"), other.number_of(b"session:42"));
    }
}
