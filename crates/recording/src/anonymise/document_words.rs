//! Words of documents, with others in their place: values, names of fields, paths of them, and names of collections and
//! databases.
//!
//! A name becomes the same name wherever it stands: in a document, as a part of a path, behind the `$` of an expression.
//! A word keeps its length in bytes and stays UTF-8: each character becomes one that takes as many bytes.

use super::permutation::{KeyedPermutation, PERMUTED, Place};
use crate::entry::LongValue;
use crate::long::put_long;
use dyno_types::rng::mix_bits;
use std::collections::HashMap;

/// Words of each kind that are remembered: names come again and again.
const REMEMBERED: usize = 100_000;

/// Bytes of a piece of a long text, of which a part is random and the rest is not.
const PIECE: usize = 1_024;

/// Hundredths to which letters from [`TEXT`] are compressed that are drawn evenly: 6.55 of 8 bits.
const RANDOM_TEXT: usize = 82;

/// Characters of a name: printable ones but space, `$` and `.`.
const NAME: &[u8] =
    b"!\"#%&'()*+,-/0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// Characters of a text: printable ones but `$`, which would make a path of it in an expression.
const TEXT: &[u8] =
    b" !\"#%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// Characters of a database's name. Servers refuse two names that differ in capitals alone.
const DATABASE: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_-";

/// Databases of the servers' own.
const OWN_DATABASES: [&str; 4] = ["admin", "config", "local", "$external"];

/// Parts of the names of collections that are the servers' own.
const OWN_PARTS: [&str; 14] = [
    "$cmd",
    "aggregate",
    "buckets",
    "indexes",
    "js",
    "listCollections",
    "listIndexes",
    "namespaces",
    "profile",
    "roles",
    "system",
    "users",
    "version",
    "views",
];

/// Variables of expressions that are not the application's.
const OWN_VARIABLES: [&str; 12] = [
    "ROOT",
    "CURRENT",
    "REMOVE",
    "DESCEND",
    "PRUNE",
    "KEEP",
    "NOW",
    "CLUSTER_TIME",
    "SEARCH_META",
    "USER_ROLES",
    "this",
    "value",
];

/// Fields of a reference to a document, and the parts of an index that take all fields.
const OWN_FIELDS: [&str; 6] = ["$ref", "$id", "$db", "$**", "$", "$natural"];

/// Digits of a place in an array at most: longer numbers may be those of people or accounts.
const PLACE_DIGITS: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    Text,
    Name,
    Database,
}

impl Alphabet {
    fn characters(self) -> &'static [u8] {
        match self {
            Alphabet::Text => TEXT,
            Alphabet::Name => NAME,
            Alphabet::Database => DATABASE,
        }
    }

    /// The place of a character among those that take as many bytes; `None` for one that stays.
    fn place_of(self, character: char) -> Option<Place> {
        let code = u32::from(character);
        let (symbol, radix) = match character.len_utf8() {
            1 => {
                let characters = self.characters();
                let found = characters.iter().position(|byte| u32::from(*byte) == code)?;
                (found as u32, characters.len() as u32)
            }
            2 => (code - 0x80, 0x780),
            // Without the surrogates.
            3 => (if code < 0xD800 { code - 0x800 } else { code - 0x1000 }, 0xF000),
            _ => (code - 0x1_0000, 0x10_0000),
        };
        Some(Place { symbol, radix })
    }

    fn character_of(self, place: Place) -> char {
        let Place { symbol, radix } = place;
        let code = match radix {
            0x780 => symbol + 0x80,
            0xF000 if symbol < 0xD000 => symbol + 0x800,
            0xF000 => symbol + 0x1000,
            0x10_0000 => symbol + 0x1_0000,
            _ => u32::from(self.characters()[symbol as usize]),
        };
        char::from_u32(code).unwrap_or('\u{fffd}')
    }
}

/// Puts other words in place of those of documents.
pub(super) struct DocumentWords {
    permutation: KeyedPermutation,
    known: [HashMap<String, String>; 3],
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

impl DocumentWords {
    pub(super) fn new(key: &[u8]) -> Self {
        DocumentWords { permutation: KeyedPermutation::new(key), known: Default::default() }
    }

    /// Permutes a word of at most [`PERMUTED`] bytes.
    fn permute_word(&self, alphabet: Alphabet, word: &str) -> String {
        let mut places: Vec<Place> = word.chars().filter_map(|one| alphabet.place_of(one)).collect();
        self.permutation.permute_places(b'0' + alphabet as u8, &mut places);
        let mut places = places.into_iter();
        let change = |one| match alphabet.place_of(one) {
            Some(_) => places.next().map_or(one, |place| alphabet.character_of(place)),
            None => one,
        };
        word.chars().map(change).collect()
    }

    /// A word that is too long to be permuted: letters of which `share` hundredths are random.
    fn make_word(&self, alphabet: Alphabet, word: &str, share: usize) -> String {
        let characters = alphabet.characters();
        let mut state = self.permutation.number_of(word.as_bytes());
        let letters = (0..word.len()).map(|at| {
            if at % PIECE >= PIECE * share / 100 {
                return 'x';
            }
            state = mix_bits(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            char::from(characters[(state % characters.len() as u64) as usize])
        });
        letters.collect()
    }

    /// The word that stands for another; `is_fixed`: words that stay, and that no other becomes.
    fn change_word(&mut self, alphabet: Alphabet, word: &str, is_fixed: impl Fn(&str) -> bool) -> String {
        if is_fixed(word) {
            return word.to_owned();
        }
        if let Some(known) = self.known[alphabet as usize].get(word) {
            return known.clone();
        }
        if word.len() > PERMUTED {
            let share = match alphabet {
                Alphabet::Text => {
                    usize::from(LongValue::of_bytes(word.as_bytes()).compressed) * 100 / RANDOM_TEXT
                }
                Alphabet::Name | Alphabet::Database => 100,
            };
            return self.make_word(alphabet, word, share.min(100));
        }
        // Walked on until it is a word that may change: among these this is a permutation again (cycle walking).
        let mut made = self.permute_word(alphabet, word);
        while is_fixed(&made) {
            made = self.permute_word(alphabet, &made);
        }
        let known = &mut self.known[alphabet as usize];
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(word.to_owned(), made.clone());
        made
    }

    /// A text that is a value.
    pub(super) fn permute_text(&mut self, text: &str) -> String {
        self.change_word(Alphabet::Text, text, str::is_empty)
    }

    /// A part of a path, or of a collection's name, that is no `$` of its own. Numbers are places in arrays.
    fn permute_part(&mut self, part: &str) -> String {
        self.change_word(Alphabet::Name, part, |name| {
            name == "_id" || is_number(name) && name.len() <= PLACE_DIGITS
        })
    }

    /// A path of names of fields, each by itself: `items.0.name`, `items.$[item].name`.
    pub(super) fn permute_path(&mut self, path: &str) -> String {
        let change = |part: &str| {
            if OWN_FIELDS.contains(&part) || part == "$[]" {
                return part.to_owned();
            }
            let variable = part.strip_prefix("$[").and_then(|part| part.strip_suffix(']'));
            match (variable, part.strip_prefix('$')) {
                (Some(name), _) => format!("$[{}]", self.permute_variable(name)),
                (None, Some(name)) => format!("${}", self.permute_part(name)),
                (None, None) => self.permute_part(part),
            }
        };
        path.split('.').map(change).collect::<Vec<_>>().join(".")
    }

    /// A variable's name. Those of applications are short and few letters may stand in them, so that its length is not kept.
    pub(super) fn permute_variable(&self, name: &str) -> String {
        if OWN_VARIABLES.contains(&name) {
            return name.to_owned();
        }
        format!("v{:016x}", self.permutation.number_of(name.as_bytes()))
    }

    /// The first part of a path of a filter for elements of arrays is a variable: `item.name`.
    pub(super) fn permute_element_path(&mut self, path: &str) -> String {
        match path.split_once('.') {
            Some((variable, path)) => {
                format!("{}.{}", self.permute_variable(variable), self.permute_path(path))
            }
            None => self.permute_variable(path),
        }
    }

    /// A text of an expression: a variable, a path, or a value.
    pub(super) fn permute_expression(&mut self, text: &str) -> String {
        if let Some(variable) = text.strip_prefix("$$") {
            return match variable.split_once('.') {
                Some((name, path)) => {
                    format!("$${}.{}", self.permute_variable(name), self.permute_path(path))
                }
                None => format!("$${}", self.permute_variable(variable)),
            };
        }
        match text.strip_prefix('$') {
            Some(path) => format!("${}", self.permute_path(path)),
            None => self.permute_text(text),
        }
    }

    /// A collection's name.
    pub(super) fn permute_collection(&mut self, name: &str) -> String {
        let mut parts = name.split('.').peekable();
        let is_own = parts.peek().is_some_and(|first| ["system", "$cmd"].contains(first));
        let change = |part: &str| match is_own && OWN_PARTS.contains(&part) {
            true => part.to_owned(),
            false => self.permute_part(part),
        };
        parts.map(change).collect::<Vec<_>>().join(".")
    }

    /// A database's name.
    pub(super) fn permute_database(&mut self, name: &str) -> String {
        let is_own = |name: &str| name.is_empty() || OWN_DATABASES.contains(&name);
        if is_own(name) {
            return name.to_owned();
        }
        self.change_word(Alphabet::Database, &name.to_lowercase(), is_own)
    }

    /// `DATABASE.COLLECTION`.
    pub(super) fn permute_namespace(&mut self, name: &str) -> String {
        match name.split_once('.') {
            Some((database, collection)) => {
                format!("{}.{}", self.permute_database(database), self.permute_collection(collection))
            }
            None => self.permute_database(name),
        }
    }

    /// Bytes that are a value.
    pub(super) fn permute_bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.len() <= PERMUTED {
            return self.permutation.permute(bytes);
        }
        let like = LongValue { hash: self.permutation.number_of(bytes), ..LongValue::of_bytes(bytes) };
        let mut made = Vec::new();
        put_long(like, &mut made);
        made
    }

    /// A number for bytes that only the key tells.
    pub(super) fn number_of(&self, bytes: &[u8]) -> u64 {
        self.permutation.number_of(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn all() -> DocumentWords {
        DocumentWords::new(b"a key of sixteen bytes")
    }

    #[test]
    fn names_stay_names_and_apart() {
        let (mut words, mut seen) = (all(), HashSet::new());
        let short = NAME.iter().flat_map(|a| NAME.iter().map(|b| String::from_utf8(vec![*a, *b]).unwrap()));
        let long = (0..500).map(|n| format!("a-field-of-the-application-{n}"));
        let wide = (0..500).map(|n| format!("größe_{n}_数_😀"));
        let mut count = 0;
        for name in short.chain(NAME.iter().map(|one| char::from(*one).to_string())).chain(long).chain(wide) {
            let made = words.permute_path(&name);
            assert_eq!(made.len(), name.len(), "{name}: {made}");
            assert!(!made.contains(['.', '$', ' ', '\0']), "{name}: {made}");
            // A number would be a place in an array.
            assert_eq!(is_number(&made), is_number(&name), "{name}: {made}");
            let stays = is_number(&name) || (made == name && name.len() <= 2);
            assert_eq!(made == name, stays, "{name}: {made}");
            assert!(seen.insert(made), "{name}");
            count += 1;
        }
        assert_eq!(count, NAME.len() * NAME.len() + NAME.len() + 1_000);
        let long = "n".repeat(300);
        assert_eq!(words.permute_path(&long).len(), 300);
        assert_ne!(words.permute_path(&long), words.permute_path(&"m".repeat(300)));
    }

    #[test]
    fn parts_of_a_path_are_names_by_themselves() {
        let mut words = all();
        let (a, b) = (words.permute_path("customer"), words.permute_path("address"));
        assert_eq!(words.permute_path("customer.address"), format!("{a}.{b}"));
        assert_eq!(words.permute_path("customer.0.$.address"), format!("{a}.0.$.{b}"));
        assert_eq!(words.permute_path("customer.$[].address._id"), format!("{a}.$[].{b}._id"));
        assert_eq!(words.permute_path("$**"), "$**");
        assert_eq!(words.permute_expression("$customer.address"), format!("${a}.{b}"));
        assert_eq!(words.permute_expression("$$ROOT.customer"), format!("$$ROOT.{a}"));
        let element = words.permute_element_path("item.address");
        let (variable, path) = element.split_once('.').unwrap();
        assert_eq!(path, b);
        assert_eq!(words.permute_path("customer.$[item].address"), format!("{a}.$[{variable}].{b}"));
        assert_eq!(words.permute_expression("$$item.address"), format!("$${variable}.{b}"));
        // A text stays a text, a path a path.
        for n in 0..2_000 {
            let made = words.permute_expression(&format!("value {n}"));
            assert!(!made.starts_with('$') && made.len() == format!("value {n}").len(), "{made}");
        }
        assert_eq!(words.permute_expression("value 7"), words.permute_text("value 7"));
    }

    #[test]
    fn names_of_collections_and_databases_are_valid() {
        let mut words = all();
        for name in ["admin", "config", "local"] {
            assert_eq!(words.permute_database(name), name);
        }
        let mut seen = HashSet::new();
        for name in (b'a'..=b'z').map(|one| char::from(one).to_string()) {
            let made = words.permute_database(&name);
            assert!(made.len() == 1 && DATABASE.contains(&made.as_bytes()[0]));
            assert!(seen.insert(made));
        }
        assert_eq!(words.permute_database("Shop"), words.permute_database("shop"));
        for name in ["$cmd.aggregate", "system.profile", "$cmd.listCollections"] {
            assert_eq!(words.permute_collection(name), name);
        }
        let indexes = words.permute_collection("$cmd.listIndexes.customers");
        assert_eq!(indexes, format!("$cmd.listIndexes.{}", words.permute_collection("customers")));
        let both = words.permute_namespace("shop.customers.old");
        let database = words.permute_database("shop");
        assert_eq!(both, format!("{database}.{}", words.permute_collection("customers.old")));
        assert!(!both.contains("shop") && !both.contains("customers"));
    }

    #[test]
    fn long_texts_are_as_long_and_as_compressible() {
        let mut words = all();
        let plain = "name: Almeida-Santos, place: Lisbon; ".repeat(200);
        let mut state = 7;
        let random: String = (0..6_000)
            .map(|_| {
                state = mix_bits(state);
                char::from(b'a' + (state % 26) as u8)
            })
            .collect();
        for text in [plain, random, "ä".repeat(2_000)] {
            let made = words.permute_text(&text);
            assert_eq!(made.len(), text.len());
            let [then, now] = [&text, &made].map(|one| LongValue::of_bytes(one.as_bytes()).compressed);
            assert!(then.abs_diff(now) <= 5, "{then} {now}");
            assert!(made != text && made == words.permute_text(&text));
        }
        assert_ne!(words.permute_text(&"a".repeat(200)), words.permute_text(&"b".repeat(200)));
    }
}
