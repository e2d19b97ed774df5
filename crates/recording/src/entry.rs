//! One command of a recording.

use dyno_types::command::ReplyKind;

/// Longest value that is kept as it is by default, bytes.
pub const VALUE_LIMIT: usize = 64 << 10;

/// The field of a command of MongoDB that names the command whose reply has opened the cursor of this one.
pub const OPENED_BY: &str = "_openedBy";

/// A value that was too long to be kept: what is needed to make one like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongValue {
    /// Its length, bytes.
    pub length: u64,
    /// A hash of its bytes: equal values are made equal.
    pub hash: u64,
    /// The size to which its first 64 KiB are compressed, in hundredths of them.
    pub compressed: u8,
}

impl LongValue {
    /// Of a value.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut parts = LongValueParts::default();
        parts.push_part(bytes);
        parts.into_value()
    }
}

/// A value that is not kept, and comes in parts.
#[derive(Clone, Debug)]
pub struct LongValueParts {
    length: u64,
    hash: u64,
    /// Bytes that are not hashed yet: the hash takes eight at a time.
    rest: [u8; 8],
    /// The first 64 KiB.
    sample: Vec<u8>,
}

impl Default for LongValueParts {
    fn default() -> Self {
        LongValueParts { length: 0, hash: 0xcbf2_9ce4_8422_2325, rest: [0; 8], sample: Vec::new() }
    }
}

impl LongValueParts {
    /// FNV-1a by eight bytes at a time: it tells values apart, and keeps no secrets.
    fn hash_word(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    /// Takes the next part.
    pub fn push_part(&mut self, mut part: &[u8]) {
        let sampled = part.len().min(VALUE_LIMIT - self.sample.len());
        self.sample.extend_from_slice(&part[..sampled]);
        let filled = (self.length % 8) as usize;
        self.length += part.len() as u64;
        if filled > 0 {
            let taken = part.len().min(8 - filled);
            self.rest[filled..filled + taken].copy_from_slice(&part[..taken]);
            part = &part[taken..];
            if filled + taken < 8 {
                return;
            }
            self.hash_word(u64::from_le_bytes(self.rest));
        }
        let mut eights = part.chunks_exact(8);
        for eight in &mut eights {
            self.hash_word(u64::from_le_bytes(eight.try_into().unwrap_or_default()));
        }
        let left = eights.remainder();
        self.rest[..left.len()].copy_from_slice(left);
    }

    /// The value, of which all parts were taken.
    pub fn into_value(mut self) -> LongValue {
        let left = (self.length % 8) as usize;
        for at in 0..left {
            self.hash_word(u64::from(self.rest[at]));
        }
        let sample = &self.sample;
        let packed = zstd::bulk::compress(sample, 1).map_or(sample.len(), |packed| packed.len());
        let compressed = (packed * 100 / sample.len().max(1)).min(100) as u8;
        LongValue { length: self.length, hash: self.hash, compressed }
    }
}

/// The words of a command, end to end: its name and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Words that were too long to be kept, by their numbers: nothing of them is in `bytes`.
    long: Vec<(u32, LongValue)>,
}

impl Arguments {
    /// Of words.
    pub fn from_words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut all = Arguments::default();
        words.into_iter().for_each(|word| all.push_word(word.as_ref()));
        all
    }

    /// Forgets all words, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.long.clear();
    }

    /// Appends a word as it is.
    pub fn push_word(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Appends a part of a word, which [`Arguments::end_word`] ends.
    pub fn push_part(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }

    /// Ends a word of parts.
    pub fn end_word(&mut self) {
        self.ends.push(self.bytes.len() as u32);
    }

    /// Bytes of the words that are kept.
    pub fn kept_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory that is held, bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.long.capacity() * size_of::<(u32, LongValue)>()
    }

    /// Appends a word that is not kept.
    pub fn push_long(&mut self, value: LongValue) {
        self.long.push((self.ends.len() as u32, value));
        self.ends.push(self.bytes.len() as u32);
    }

    /// Appends a word, which is kept as it is where it has at most `limit` bytes.
    pub fn push_limited(&mut self, word: &[u8], limit: usize) {
        if word.len() > limit { self.push_long(LongValue::of_bytes(word)) } else { self.push_word(word) }
    }

    /// Number of words.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Word number `number`; nothing of one that is not kept.
    pub fn word(&self, number: usize) -> &[u8] {
        let from = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.bytes[from..self.ends[number] as usize]
    }

    /// What is known of word number `number`, where it is not kept.
    pub fn long_value(&self, number: usize) -> Option<LongValue> {
        let found = self.long.binary_search_by_key(&number, |(at, _)| *at as usize).ok()?;
        Some(self.long[found].1)
    }

    /// All words, with nothing of those that are not kept.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count()).map(|number| self.word(number))
    }

    /// The command's name in capitals.
    pub fn command_name(&self) -> String {
        let name = if self.is_empty() { &[] } else { self.word(0) };
        match std::str::from_utf8(name) {
            Ok(text) if text.is_ascii() => text.to_ascii_uppercase(),
            _ => String::from_utf8_lossy(name).to_uppercase(),
        }
    }

    /// Returns whether the command has this name, in whatever letters.
    pub fn is_named(&self, name: &str) -> bool {
        !self.is_empty() && self.word(0).eq_ignore_ascii_case(name.as_bytes())
    }

    /// Returns whether the command has one of these names; a name of two words is that of a subcommand.
    pub fn is_one_of(&self, names: &[&str]) -> bool {
        if self.is_empty() {
            return false;
        }
        let own = self.word(0);
        names.iter().any(|name| {
            // Most names differ in their length, which costs nothing to see.
            let (name, length) = (name.as_bytes(), own.len());
            match name.get(length) {
                None => name.len() == length && name.eq_ignore_ascii_case(own),
                Some(b' ') => {
                    name[..length].eq_ignore_ascii_case(own)
                        && self.count() > 1
                        && self.word(1).eq_ignore_ascii_case(&name[length + 1..])
                }
                Some(_) => false,
            }
        })
    }

    /// Length of all words, bytes.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.long.iter().map(|(_, value)| value.length).sum::<u64>()
    }
}

/// Kind of a recorded reply, the same in all versions of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedKind {
    /// What is no error.
    Reply(ReplyKind),
    /// An error.
    Error,
}

/// The reply to a command, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedReply {
    /// Its kind.
    pub kind: RecordedKind,
    /// Length of a text in bytes; elements of an array, a set or a map (two of each pair); 0 of anything else.
    pub size: u64,
    /// The class of an error: its first word, such as `WRONGTYPE`; empty otherwise.
    pub error: String,
    /// Time from the command's last byte to the reply's last byte at the recording point, nanoseconds; `None` where the source
    /// has no times of replies.
    pub after_ns: Option<u64>,
}

/// A command that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// When its last byte passed the recording point, from the recording's begin on, nanoseconds.
    pub at_ns: u64,
    /// Number of its connection, from 0 on.
    pub connection: u32,
    /// Its words.
    pub arguments: Arguments,
    /// True if it was sent before the reply to the command before it on its connection had come. False where that is unknown.
    pub overlaps: bool,
    /// True if it was never sent in the recorded time: it brings a connection that began earlier into the state in which it was
    /// (`SELECT`).
    pub implied: bool,
    /// Its reply; `None` where none was recorded.
    pub reply: Option<RecordedReply>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_parts_are_those_as_a_whole() {
        let bytes: Vec<u8> = (0..200_003u64).map(|n| ((n * n) >> 7) as u8).collect();
        let whole = LongValue::of_bytes(&bytes);
        for size in [1, 3, 8, 13, 4_096, 70_000] {
            let mut parts = LongValueParts::default();
            bytes.chunks(size).for_each(|part| parts.push_part(part));
            assert_eq!(parts.into_value(), whole, "parts of {size}");
        }
        assert_ne!(LongValue::of_bytes(&bytes[1..]).hash, whole.hash);
    }

    #[test]
    fn words_stand_end_to_end() {
        let mut all = Arguments::from_words(["set", "", "ü"]);
        let long = LongValue { length: 70_000, hash: 7, compressed: 40 };
        all.push_long(long);
        all.push_word(b"EX");
        let words: Vec<&[u8]> = all.words().collect();
        assert_eq!(words, [b"set".as_slice(), b"", "ü".as_bytes(), b"", b"EX"]);
        assert_eq!((all.long_value(3), all.long_value(1)), (Some(long), None));
        assert_eq!((all.command_name().as_str(), all.is_named("SET"), all.count()), ("SET", true, 5));
        assert_eq!(all.length(), 3 + 2 + 70_000 + 2);
        let names = ["SE", "SETEX", "SET PX", "GET"];
        assert!(!all.is_one_of(&names) && all.is_one_of(&["GET", "set"]));
        let config = Arguments::from_words(["config", "Set", "a"]);
        assert!(config.is_one_of(&["CONFIG SET"]) && !config.is_one_of(&["CONFIG GET", "CONFIG SE"]));
        assert!(!Arguments::from_words(["config"]).is_one_of(&["CONFIG SET"]));
        assert!(!Arguments::default().is_one_of(&["", "GET"]));
    }
}
