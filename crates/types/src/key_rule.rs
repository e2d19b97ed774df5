//! Which words of a command are keys, as its server says (`COMMAND INFO`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where keys of a command begin, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySpecification {
    /// Where the first of them is.
    pub begin: KeyBegin,
    /// How the others are found.
    pub find: KeyFind,
}

/// Where keys begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyBegin {
    /// At this word.
    At(i64),
    /// Behind this word, which is looked for from this place on; backwards from the end where it is negative.
    Word(String, i64),
    /// The server cannot say.
    Unknown,
}

/// How many keys follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyFind {
    /// Last key, counted from the first one or, if negative, from the end; step; of the rest every so many parts.
    Range(i64, i64, i64),
    /// The argument with their number, the first key, and the step.
    Number(i64, i64, i64),
    /// The server cannot say.
    Unknown,
}

impl KeySpecification {
    /// Numbers of the keys of a command; `None`: the specification does not say.
    pub fn find_keys(&self, words: &[&[u8]]) -> Option<Vec<usize>> {
        let end = words.len() as i64;
        let begin = match &self.begin {
            KeyBegin::At(at) => *at,
            KeyBegin::Word(word, from) => {
                let is_word = |at: &i64| words[*at as usize].eq_ignore_ascii_case(word.as_bytes());
                let found = match *from < 0 {
                    true => (1..=(end + from).min(end - 1)).rev().find(is_word),
                    false => (*from..end).find(is_word),
                };
                // A word that is not there has no keys behind it.
                let Some(at) = found else { return Some(Vec::new()) };
                at + 1
            }
            KeyBegin::Unknown => return None,
        };
        let (first, last, step) = match self.find {
            KeyFind::Range(last, step, limit) => {
                let last = match last {
                    -1 if limit > 1 => begin + (end - begin) / limit - 1,
                    last if last < 0 => end + last,
                    last => begin + last,
                };
                (begin, last, step)
            }
            KeyFind::Number(place, first, step) => {
                let text = words.get(usize::try_from(begin + place).ok()?)?;
                let count: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
                let last = count.checked_sub(1)?.checked_mul(step.max(1))?.checked_add(begin + first)?;
                (begin + first, last, step)
            }
            KeyFind::Unknown => return None,
        };
        let keys = (first..=last.min(end - 1)).step_by(step.max(1) as usize);
        Some(keys.filter(|at| *at > 0).map(|at| at as usize).collect())
    }
}

/// Where the keys of the commands of one name are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRule {
    /// Where keys are; several specifications add up.
    pub keys: Vec<KeySpecification>,
    /// The same of its subcommands, by their names in small letters.
    pub subcommands: BTreeMap<String, KeyRule>,
}

impl KeyRule {
    /// Numbers of the words of a command that are keys, as far as the server can say; ascending.
    pub fn known_keys(&self, words: &[&[u8]]) -> Vec<usize> {
        let subcommand = words
            .get(1)
            .filter(|_| !self.subcommands.is_empty())
            .and_then(|name| self.subcommands.get(&String::from_utf8_lossy(name).to_ascii_lowercase()));
        let own = subcommand.unwrap_or(self);
        let mut all: Vec<usize> = own.keys.iter().filter_map(|one| one.find_keys(words)).flatten().collect();
        if words.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SORT")) {
            all.extend(sort_destination(words));
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Number of the word that names where `SORT` stores its result: no specification says it, since it may stand anywhere, and the
/// last one counts (Redis' `sortGetKeys`).
fn sort_destination(words: &[&[u8]]) -> Option<usize> {
    let (mut at, mut found) = (2, None);
    while let Some(word) = words.get(at) {
        let arguments = match word.to_ascii_uppercase().as_slice() {
            b"LIMIT" => 2,
            b"BY" | b"GET" => 1,
            b"STORE" => {
                found = (at + 1 < words.len()).then_some(at + 1);
                1
            }
            _ => 0,
        };
        at += 1 + arguments;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: KeyBegin, find: KeyFind) -> KeySpecification {
        KeySpecification { begin, find }
    }

    fn keys(rule: &KeyRule, line: &str) -> Vec<usize> {
        rule.known_keys(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// As Redis 7.0 answers for SORT and XGROUP.
    #[test]
    fn what_a_server_cannot_say_leaves_the_rest_known() {
        let first = at(KeyBegin::At(1), KeyFind::Range(0, 1, 0));
        let sort = KeyRule {
            keys: vec![first, at(KeyBegin::Unknown, KeyFind::Unknown)],
            subcommands: BTreeMap::new(),
        };
        assert_eq!(keys(&sort, "SORT a BY w_*"), [1]);
        // What the server's own COMMAND GETKEYS answers.
        assert_eq!(keys(&sort, "SORT a BY w_* STORE b"), [1, 5]);
        assert_eq!(keys(&sort, "sort a limit 0 store get store desc store c"), [1, 9]);
        assert_eq!(keys(&sort, "SORT a STORE"), [1]);
        let create = KeyRule {
            keys: vec![at(KeyBegin::At(2), KeyFind::Range(0, 1, 0))],
            subcommands: BTreeMap::new(),
        };
        let xgroup = KeyRule { keys: Vec::new(), subcommands: [("create".into(), create)].into() };
        assert_eq!(keys(&xgroup, "XGROUP CREATE s g $"), [2]);
        assert!(keys(&xgroup, "XGROUP HELP").is_empty());
    }

    #[test]
    fn a_number_of_keys_that_no_command_has_is_none() {
        let eval = KeyRule {
            keys: vec![at(KeyBegin::At(2), KeyFind::Number(0, 1, 1))],
            subcommands: BTreeMap::new(),
        };
        assert_eq!(keys(&eval, "EVAL x 2 a b c"), [3, 4]);
        for line in ["EVAL x -9223372036854775808 a", "EVAL x 9223372036854775807 a", "EVAL x b", "EVAL"] {
            assert!(keys(&eval, line).iter().all(|at| *at < line.split(' ').count()), "{line}");
        }
    }
}
