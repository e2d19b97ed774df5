//! Keys by their pattern: what stays, and the numbers in it.

use super::popularity::{Popularity, fit};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Keys of a space whose requests are counted one by one; beyond it every second one is, and so on.
const COUNTED: usize = 1 << 20;

/// A key without digits that has fewer requests is not named.
const POPULAR: u64 = 100;

/// Spaces that are told apart.
const SPACES: usize = 256;

/// Requests of the keys of a pattern.
#[derive(Debug, Default)]
pub(super) struct KeySpace {
    /// The pattern, with `%{n}` for each run of digits; `None` where it is no text.
    pub format: Option<String>,
    /// Requests.
    pub requests: u64,
    /// Requests by the key's hash; only hashes that end in `halved` zero bits.
    counts: HashMap<u64, u32>,
    halved: u32,
    /// The digits of each key have this width, with leading zeros; 0 where they differ.
    width: usize,
}

impl KeySpace {
    /// Number of keys; an estimate where not all were counted.
    pub fn keys(&self) -> u64 {
        ((self.counts.len() as u64) << self.halved).max(1)
    }

    /// The share of the keys that were counted.
    pub fn counted_share(&self) -> f64 {
        1.0 / (1u64 << self.halved) as f64
    }

    /// The only key, where the pattern has no number.
    pub fn only_key(&self) -> Option<&str> {
        let is_popular = self.requests >= POPULAR;
        self.format.as_deref().filter(|format| is_popular && !format.contains("%{n}"))
    }

    /// How popular the keys are, and how far the fit is off.
    pub fn fit_popularity(&self) -> (Popularity, f64) {
        fit(self.counts.values().copied().collect())
    }

    /// The format of keys, as a workload has it.
    pub fn key_format(&self, number: usize) -> String {
        let digits = if self.width > 0 { format!("%{{n:{}}}", self.width) } else { "%{n}".into() };
        match &self.format {
            Some(format) if format.contains("%{n}") => format.replace("%{n}", &digits),
            // A key of few requests may be a name or a token: it stays out of what is learned.
            _ => format!("key{number}:%{{n}}"),
        }
    }
}

/// All spaces, by their patterns.
#[derive(Default)]
pub(super) struct KeySpaces {
    pub all: Vec<KeySpace>,
    by_pattern: HashMap<Vec<u8>, usize>,
    /// The same hashes each time, so that what is learned is the same.
    hasher: BuildHasherDefault<DefaultHasher>,
    /// Requests of keys whose pattern came after all that are told apart.
    pub others: u64,
}

/// The pattern of a key: runs of digits (and of sixteen hexadecimal digits or more) are a zero byte; the width of the only run,
/// where it has leading zeros.
fn pattern_of(key: &[u8]) -> (Vec<u8>, Option<usize>) {
    let mut pattern = Vec::with_capacity(key.len());
    let (mut at, mut runs, mut width) = (0, 0, None);
    while at < key.len() {
        let decimal = key[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let token = key[at..].iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'-').count();
        let length = if token >= 16 { token } else { decimal };
        if length == 0 {
            pattern.push(key[at]);
            at += 1;
            continue;
        }
        runs += 1;
        width = (decimal == length && key[at] == b'0' && length > 1).then_some(length);
        pattern.push(0);
        at += length;
    }
    (pattern, width.filter(|_| runs == 1))
}

impl KeySpaces {
    /// Notes a request of a key; returns the number of its space, and the key's hash.
    pub fn note(&mut self, key: &[u8]) -> Option<(usize, u64)> {
        let (pattern, width) = pattern_of(key);
        let number = match self.by_pattern.get(&pattern) {
            Some(number) => *number,
            None if self.all.len() < SPACES => {
                let number = self.all.len();
                let text = String::from_utf8(pattern.clone()).ok();
                let format = text.filter(|text| text.chars().all(|c| c == '\0' || !c.is_control()));
                // A pattern without digits is one key.
                let format = format.map(|text| text.replace("%{", "%%{").replace('\0', "%{n}"));
                self.all.push(KeySpace { format, width: width.unwrap_or(0), ..KeySpace::default() });
                self.by_pattern.insert(pattern, number);
                number
            }
            None => {
                self.others += 1;
                return None;
            }
        };
        let space = &mut self.all[number];
        if width.unwrap_or(0) != space.width && width.is_some() {
            space.width = 0;
        }
        space.requests += 1;
        let hash = self.hasher.hash_one(key);
        if hash.trailing_zeros() < space.halved {
            return Some((number, hash));
        }
        *space.counts.entry(hash).or_default() += 1;
        if space.counts.len() > COUNTED {
            space.halved += 1;
            let halved = space.halved;
            space.counts.retain(|hash, _| hash.trailing_zeros() >= halved);
        }
        Some((number, hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_pattern_are_a_space() {
        let mut spaces = KeySpaces::default();
        let mut note = |key: &str| spaces.note(key.as_bytes()).map(|(number, _)| number);
        let first: Vec<_> = (0..500).map(|n| note(&format!("user:{n}:cart"))).collect();
        assert!(first.iter().all(|number| *number == Some(0)));
        assert_eq!(note("board"), Some(1));
        for n in 0..100 {
            spaces.note(format!("p:{:06}", n % 10).as_bytes());
        }
        spaces.note(b"session:0123456789abcdef0123456789abcdef");
        spaces.note(b"\xff\xfe1");
        let found: Vec<(String, u64, u64)> = spaces
            .all
            .iter()
            .enumerate()
            .map(|(number, space)| (space.key_format(number), space.keys(), space.requests))
            .collect();
        assert_eq!(
            found,
            [
                ("user:%{n}:cart".into(), 500, 500),
                ("key1:%{n}".into(), 1, 1),
                ("p:%{n:6}".into(), 10, 100),
                ("session:%{n}".into(), 1, 1),
                ("key4:%{n}".into(), 1, 1)
            ]
        );
    }

    #[test]
    fn many_keys_are_counted_in_part() {
        let mut spaces = KeySpaces::default();
        for n in 0..3_000_000u64 {
            spaces.note(format!("k{n}").as_bytes());
        }
        let keys = spaces.all[0].keys() as f64;
        assert!((keys / 3e6 - 1.0).abs() < 0.01, "{keys}");
        assert!(spaces.all[0].counted_share() < 1.0);
    }
}
