//! Keys by their pattern: what stays, and the numbers in it.

use super::hashed::{HashedMap, hash_of};
use super::popularity::{KeyFit, Popularity, even_error, fit};
use super::tiers::Tiers;
use dyno_workload::template::ActiveNumbers;
use std::collections::{BTreeMap, HashMap};

/// Keys of a space whose requests are counted one by one; beyond it every second one is, and so on.
const COUNTED: usize = 1 << 20;

/// A key without digits that has fewer requests is not named.
const POPULAR: u64 = 100;

/// Spaces that are told apart.
const SPACES: usize = 256;

/// Widest number of a key in a workload.
const WIDTH: usize = 40;

/// Digits of the greatest number that a workload's first key may have.
const FIRST_DIGITS: usize = 12;

/// First reads that tell which share of the keys was there.
const TELLING: u64 = 20;

/// Keys of which so many are there may come and go.
const COMING: usize = 20;

/// Keys stay if they span more than this share of what they would if they were asked for all the time.
const STAYS: f64 = 0.5;

/// Requests of a key.
#[derive(Clone, Copy, Debug, Default)]
struct KeyUse {
    requests: u32,
    /// Operations that used it.
    operations: u32,
    /// Numbers of the first and the last of these.
    first: u32,
    last: u32,
}

/// Requests of the keys of a pattern.
#[derive(Debug, Default)]
pub(super) struct KeySpace {
    /// The pattern, with a zero character for each number; `None` where it is no text.
    pattern: Option<String>,
    /// Requests.
    pub requests: u64,
    /// Keys whose first request was a read that told whether they were there: those that were, and all.
    pub first_reads: (u64, u64),
    /// By the key's hash; only hashes that end in `halved` zero bits.
    counts: HashedMap<KeyUse>,
    halved: u32,
    /// Length of the only number, where it is hexadecimal; 0 where lengths differ.
    token: usize,
    /// True if a number has leading zeros.
    is_padded: bool,
    /// Requests by the number of decimal digits of the key.
    digits: BTreeMap<usize, u64>,
    /// Numbers in the pattern.
    runs: usize,
    /// The least and the greatest number, where there is one in the pattern.
    range: Option<(u64, u64)>,
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

    /// The only key, where the pattern has no number: as a workload writes it.
    pub fn only_key(&self) -> Option<String> {
        let is_popular = self.requests >= POPULAR && self.runs == 0;
        self.pattern.as_deref().filter(|_| is_popular).map(|text| text.replace("%{", "%%{"))
    }

    /// Notes a request of the key with this hash, by an operation of this number; returns whether it is the key's first one, as
    /// far as keys are counted.
    pub fn note_hash(&mut self, hash: u64, operation: u64) -> bool {
        self.requests += 1;
        if hash.trailing_zeros() < self.halved {
            return false;
        }
        let operation = u32::try_from(operation).unwrap_or(u32::MAX);
        let key = self.counts.entry(hash).or_default();
        let is_first = key.requests == 0;
        if is_first {
            key.first = operation;
        }
        key.operations += u32::from(key.requests == 0 || key.last != operation);
        key.requests = key.requests.saturating_add(1);
        key.last = operation;
        if self.counts.len() > COUNTED {
            self.halved += 1;
            let halved = self.halved;
            self.counts.retain(|hash, _| hash.trailing_zeros() >= halved);
        }
        is_first
    }

    /// The share of the keys that were there before they were asked for; `None` where too few reads tell.
    pub fn loaded_share(&self) -> Option<f64> {
        let (found, all) = self.first_reads;
        (all >= TELLING).then(|| found as f64 / all as f64)
    }

    /// Operations that asked for keys, each of a key once.
    pub fn draws(&self) -> u64 {
        let counted: u64 = self.counts.values().map(|key| u64::from(key.operations)).sum();
        counted << self.halved
    }

    /// Operations that asked for each of the keys that are counted: a key is drawn once for each.
    pub fn counts(&self) -> Vec<u32> {
        self.counts.values().map(|key| key.operations).collect()
    }

    /// How popular the keys are, how many there are, and how far the fit is off.
    pub fn fit_popularity(&self) -> KeyFit {
        self.of_all(fit(self.counts()))
    }

    /// The same in tiers, where a fit is zipfian.
    pub fn fit_tiers(&self, fit: &KeyFit) -> Option<KeyFit> {
        Some(self.of_all(fit.in_tiers(self.counts())?))
    }

    /// A fit of the keys that are counted as one of all.
    fn of_all(&self, fit: KeyFit) -> KeyFit {
        KeyFit { keys: (fit.keys << self.halved).max(1), error: fit.error.max(self.lost_share()), ..fit }
    }

    /// The tier of each key that has one of its own or shares one with its like, the most popular keys: by their hashes.
    pub fn ranked_keys(&self, tiers: &Tiers) -> HashMap<u64, usize> {
        let mut order: Vec<(u32, u64)> =
            self.counts.iter().map(|(hash, key)| (key.operations, *hash)).collect();
        order.sort_unstable_by_key(|(operations, hash)| (std::cmp::Reverse(*operations), *hash));
        let ranked = tiers.all[..tiers.ranked].iter().enumerate();
        let numbers = ranked.flat_map(|(tier, (keys, _))| std::iter::repeat_n(tier, *keys as usize));
        order.into_iter().zip(numbers).map(|((_, hash), tier)| (hash, tier)).collect()
    }

    /// Returns whether the key with this hash is one of those that are counted.
    pub fn is_counted(&self, hash: u64) -> bool {
        hash.trailing_zeros() >= self.halved
    }

    /// The share of the requests that the counted keys do not stand for: of popular keys that are not among them.
    fn lost_share(&self) -> f64 {
        let counted: f64 = self.counts.values().map(|key| f64::from(key.requests)).sum();
        (1.0 - counted / self.counted_share() / self.requests.max(1) as f64).abs()
    }

    /// The keys as some that are asked for at a time, each for a while, where they are not all asked for all the time; and how
    /// far that is off, as of [`KeySpace::fit_popularity`]. The whole recording has `operations` whose keys were noted, and the
    /// workload makes `made` of them.
    ///
    /// A key that is asked for at n random moments of a while spans (n - 1) / (n + 1) of it; where its while `begins` with the
    /// first of them, and each is as long as another, (n - 1) / n. By Little's law keys, times their
    /// while, are so many at a time, times all operations.
    pub fn fit_active(&self, (operations, made): (u64, u64), begins: bool) -> Option<KeyFit> {
        if self.halved > 0 || self.counts.len() < COMING {
            return None;
        }
        let (mut span, mut of_all) = (0.0, 0.0);
        for key in self.counts.values().filter(|key| key.operations > 1) {
            let uses = f64::from(key.operations);
            span += f64::from(key.last - key.first);
            of_all += operations as f64 * (uses - 1.0) / (uses + if begins { 0.0 } else { 1.0 });
        }
        // What is asked for at random moments of the whole time spans all that it can.
        let share = span / of_all;
        if share.is_nan() || share > STAYS {
            return None;
        }
        let at_a_time = (self.counts.len() as f64 * share).round().max(1.0) as u64;
        let lasts = (share * made as f64).round().max(1.0) as u64;
        let active = ActiveNumbers { at_a_time, operations: lasts };
        let popularity = Popularity::Active(active);
        Some(KeyFit { popularity, keys: self.counts.len() as u64, error: even_error(self.counts()) })
    }

    /// The number of the first of so many keys: the least one where most numbers are there, else the least one that has as many
    /// digits as most requests have, so that keys are as long as they were.
    pub fn first_number(&self, keys: u64) -> u64 {
        if self.width() > 0 {
            return 0;
        }
        if let Some((least, greatest)) = self.range
            && greatest - least < 2 * keys
        {
            return least;
        }
        let digits = self.usual_digits();
        let first = if digits > 1 { 10u64.pow(digits as u32 - 1) } else { 0 };
        // Where more keys are there than numbers with so many digits the first ones are shorter.
        if keys <= first.saturating_mul(9) { first } else { 0 }
    }

    /// Digits of each number of most requests.
    fn usual_digits(&self) -> usize {
        let usual =
            self.digits.iter().max_by_key(|(digits, requests)| (**requests, std::cmp::Reverse(**digits)));
        usual.map_or(0, |(digits, _)| digits / self.runs.max(1))
    }

    /// Digits that every number of a key has, with leading zeros; 0 where numbers are as long as they are.
    fn width(&self) -> usize {
        if self.token > 0 {
            return self.token.min(WIDTH);
        }
        // Numbers of the workload's keys have no more digits than those that one can be given.
        let digits = self.usual_digits();
        let is_padded = self.is_padded && self.runs == 1 && self.digits.len() == 1;
        if is_padded || digits > FIRST_DIGITS { digits.min(WIDTH) } else { 0 }
    }

    /// The format of keys, as a workload has it.
    pub fn key_format(&self, number: usize) -> String {
        let digits = if self.width() > 0 { format!("%{{n:{}}}", self.width()) } else { "%{n}".into() };
        match &self.pattern {
            Some(text) if self.runs > 0 => text.replace("%{", "%%{").replace('\0', &digits),
            // A key of few requests may be a name or a token: it stays out of what is learned.
            _ => format!("key{number}:%{{n}}"),
        }
    }
}

/// All spaces, by their patterns.
#[derive(Default)]
pub(super) struct KeySpaces {
    pub all: Vec<KeySpace>,
    /// By the hash of the pattern.
    by_pattern: HashedMap<usize>,
    /// Requests of keys whose pattern came after all that are told apart.
    pub others: u64,
    /// Number of the operation whose keys are noted.
    pub operation: u64,
}

/// A key by its pattern.
#[derive(Debug, Default, PartialEq, Eq)]
struct PatternedKey {
    /// Runs of digits, and of sixteen hexadecimal digits or more, are a zero byte.
    pattern: Vec<u8>,
    /// Number of these runs.
    runs: usize,
    /// Decimal digits in them.
    digits: usize,
    /// Length of the only run, where it is hexadecimal.
    token: usize,
    /// True if a run has leading zeros.
    is_padded: bool,
    /// The number of the only run.
    number: Option<u64>,
}

fn pattern_of(key: &[u8]) -> PatternedKey {
    let mut found = PatternedKey { pattern: Vec::with_capacity(key.len()), ..PatternedKey::default() };
    let mut at = 0;
    while at < key.len() {
        let decimal = key[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let token = key[at..].iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'-').count();
        let length = if token >= 16 { token } else { decimal };
        if length == 0 {
            // What follows a percent sign is an escape, of an address, and no number.
            let escape = if key[at] == b'%' { 2 } else { 0 };
            let after = key[at + 1..].iter().take(escape).take_while(|byte| byte.is_ascii_hexdigit()).count();
            found.pattern.extend_from_slice(&key[at..=at + after]);
            at += 1 + after;
            continue;
        }
        let is_number = decimal == length;
        found.runs += 1;
        found.digits += if is_number { length } else { 0 };
        found.token = if is_number { 0 } else { length };
        found.is_padded |= is_number && key[at] == b'0' && length > 1;
        let number = || std::str::from_utf8(&key[at..at + length]).ok()?.parse().ok();
        found.number = number().filter(|_| is_number);
        found.pattern.push(0);
        at += length;
    }
    if found.runs != 1 {
        (found.token, found.number) = (0, None);
    }
    found
}

impl KeySpaces {
    /// Notes a request of a key; returns the number of its space, the key's hash, and whether it is the key's first request.
    pub fn note(&mut self, key: &[u8]) -> Option<(usize, u64, bool)> {
        let PatternedKey { pattern, runs, digits, token, is_padded, number } = pattern_of(key);
        let hash_of_pattern = hash_of(&pattern);
        let place = match self.by_pattern.get(&hash_of_pattern) {
            Some(place) => *place,
            None if self.all.len() < SPACES => {
                let place = self.all.len();
                let text = String::from_utf8(pattern).ok();
                let pattern_text = text.filter(|text| text.chars().all(|c| c == '\0' || !c.is_control()));
                self.all.push(KeySpace { pattern: pattern_text, token, runs, ..KeySpace::default() });
                self.by_pattern.insert(hash_of_pattern, place);
                place
            }
            None => {
                self.others += 1;
                return None;
            }
        };
        let space = &mut self.all[place];
        if token != space.token {
            space.token = 0;
        }
        space.is_padded |= is_padded;
        *space.digits.entry(digits).or_default() += 1;
        space.range = match (space.requests, space.range, number) {
            (0, _, Some(number)) => Some((number, number)),
            (_, Some((least, greatest)), Some(number)) => Some((least.min(number), greatest.max(number))),
            _ => None,
        };
        let hash = hash_of(key);
        let is_first = space.note_hash(hash, self.operation);
        Some((place, hash, is_first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_pattern_are_a_space() {
        let mut spaces = KeySpaces::default();
        let mut note = |key: &str| spaces.note(key.as_bytes()).map(|(number, ..)| number);
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
                ("session:%{n:32}".into(), 1, 1),
                ("key4:%{n}".into(), 1, 1)
            ]
        );
    }

    #[test]
    fn keys_that_come_and_go_are_told_from_those_that_stay() {
        let (mut coming, mut staying) = (KeySpaces::default(), KeySpaces::default());
        let all = 40_000;
        for operation in 0..all {
            (coming.operation, staying.operation) = (operation, operation);
            // Ten sessions at a time, each for 400 operations, of which it has a tenth.
            let draw = dyno_types::rng::mix_bits(operation + 1);
            let (place, key) = (draw % 10, (draw >> 8) % 1_000);
            let session = (operation + place * 40) / 400 * 10 + place;
            coming.note(format!("session:{session}").as_bytes());
            coming.note(format!("session:{session}").as_bytes());
            staying.note(format!("session:{key}").as_bytes());
        }
        let Some(KeyFit { popularity: Popularity::Active(found), .. }) =
            coming.all[0].fit_active((all, all), false)
        else {
            panic!("they come and go")
        };
        assert!((9..=11).contains(&found.at_a_time) && (370..=430).contains(&found.operations), "{found:?}");
        assert_eq!(staying.all[0].fit_active((all, all), false), None);
    }

    #[test]
    fn keys_are_as_long_as_they_were() {
        let mut spaces = KeySpaces::default();
        for n in 0..100u64 {
            spaces.note(format!("views:{}", 2_026_113_000 + n).as_bytes());
            spaces.note(format!("product:{}", 1_000 + n * n * 37 % 8_000).as_bytes());
            spaces.note(format!("s{}-{}", 100 + n * 7 % 900, 100 + n).as_bytes());
            spaces.note(format!("all:{}", n * n % 1_000_000).as_bytes());
        }
        let first: Vec<u64> = spaces.all.iter().map(|space| space.first_number(space.keys())).collect();
        assert_eq!(first, [2_026_113_000, 1_000, 100, 1_000]);
    }

    #[test]
    fn signs_of_the_workloads_language_are_signs_in_keys() {
        let mut spaces = KeySpaces::default();
        for n in 0..200 {
            spaces.note(b"a%{n}b");
            spaces.note(b"q:a%20b");
            spaces.note(format!("p:%{{{n}").as_bytes());
            spaces.note(format!("u:{}", if n == 0 { "123456".into() } else { format!("{n:06}") }).as_bytes());
        }
        let only: Vec<Option<String>> = spaces.all.iter().map(KeySpace::only_key).collect();
        assert_eq!(only, [Some("a%%{n}b".to_owned()), Some("q:a%20b".into()), None, None]);
        assert_eq!(spaces.all[2].key_format(2), "p:%%{%{n}");
        assert_eq!(spaces.all[3].key_format(3), "u:%{n:6}");
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
