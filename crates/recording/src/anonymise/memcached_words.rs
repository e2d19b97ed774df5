//! Commands of memcached, with other words in place of keys and values.

use super::permutation::{KeyedPermutation, is_number};
use crate::entry::Arguments;
use dyno_db_memcached::protocol::traffic::CommandGroup;

/// Returns why a command is left out: what its words are is not known.
pub(super) fn reason_against(arguments: &Arguments) -> Option<&'static str> {
    let is_known = !arguments.is_empty() && CommandGroup::of_name(arguments.word(0)).is_some();
    (!is_known).then_some("commands that memcached does not have, which anonymising leaves out")
}

/// The words that stand for those of a command. Figures stay, so that counters count; of the flags those go that may say
/// something of the application, all whose argument is no number, and that a key is base64 (`b`), which the key that stands for
/// it is not.
pub(super) fn change_words(arguments: &Arguments, permutation: &mut KeyedPermutation) -> Arguments {
    let name = arguments.word(0);
    let group = CommandGroup::of_name(name).unwrap_or_default();
    let value = group.length_place().map(|_| arguments.count() - 1);
    let first = if name.starts_with(b"gat") { 2 } else { 1 };
    let keys = first..first + group.key_count(name, value.unwrap_or(arguments.count()));
    let is_said = |number: usize| {
        let (flag, rest) = arguments.word(number).split_first().unwrap_or((&b'b', &[]));
        let is_mode = *flag == b'M' && rest.len() == 1;
        let is_plain = is_mode || rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        group.is_meta() && number > 1 && (matches!(flag, b'O' | b'b') || !is_plain)
    };
    // What stands where a figure should may be anything.
    let is_stray = |number: usize, word: &[u8]| {
        !group.is_meta()
            && group.key_count(name, 2) + group.key_count(name, 3) > 0
            && number > 0
            && word != b"noreply"
    };
    let mut out = Arguments::default();
    for (number, word) in arguments.words().enumerate() {
        let is_figure = is_number(word);
        if keys.contains(&number) && !is_figure {
            out.push_word(&permutation.permute_key(word));
        } else if Some(number) == value {
            match is_figure && arguments.long_value(number).is_none() {
                true => out.push_word(word),
                false => permutation.push_other(arguments, number, &mut out),
            }
        } else if !is_figure && is_stray(number, word) {
            out.push_word(&permutation.permute_key(word));
        } else if !is_said(number) {
            out.push_word(word);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(words: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut permutation = KeyedPermutation::new(b"a key of sixteen bytes");
        let out = change_words(&Arguments::from_words(words), &mut permutation);
        out.words().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn keys_and_values_are_changed_and_the_rest_stays() {
        for (line, stays) in [
            ("get user:1 user:2", "100"),
            ("gat 60 user:1", "110"),
            ("set user:1 7 60 secret", "10110"),
            ("cas user:1 0 0 77 secret", "101110"),
            ("incr hits 5", "101"),
            ("set hits 0 0 12", "10111"),
            ("mg user:1 v t k", "10111"),
            ("ms user:1 T60 secret", "1010"),
            ("stats items", "11"),
        ] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let made = changed(&words);
            assert_eq!(made.len(), words.len(), "{line}");
            for ((word, made), stays) in words.iter().zip(&made).zip(stays.bytes()) {
                assert_eq!(word == made, stays == b'1', "{line}: {made:?}");
                assert_eq!(word.len(), made.len(), "{line}");
            }
        }
        assert_eq!(changed(&[b"get", b"user:1"])[1], changed(&[b"delete", b"user:1"])[1]);
        let flags = changed(&[b"mg", b"dXNlcjox", b"b", b"v", b"Osecret", b"Psecret", b"T60", b"N-1"]);
        assert_eq!(flags[2..], [&b"v"[..], b"T60", b"N-1"]);
        assert_ne!(changed(&[b"incr", b"k", b"secret"])[2], b"secret");
        assert_eq!(changed(&[b"delete", b"k", b"noreply"])[2], b"noreply");
        // What ends with such a letter is a value.
        assert_eq!(changed(&[b"ms", b"user:1", b"Only"]).len(), 3);
        for value in [&b""[..], b"1.5", b"1e9", b"12"] {
            assert_eq!(changed(&[b"ms", b"user:1", b"T60", value])[2..], [&b"T60"[..], value]);
        }
        assert!(reason_against(&Arguments::from_words(["secret", "word"])).is_some());
        assert_eq!(reason_against(&Arguments::from_words(["touch", "k", "1"])), None);
    }

    #[test]
    fn keys_stay_keys() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..3_000 {
            let key = format!("a-rather-long-key-of-the-application:{n}:{}", "x".repeat(n % 200));
            let made = changed(&[b"get", key.as_bytes()]).remove(1);
            assert!(
                made.len() == key.len() && made.iter().all(|byte| (0x21..=0x7e).contains(byte)),
                "{made:?}"
            );
            assert!(seen.insert(made));
        }
        let made = changed(&[b"get", "Käse".as_bytes()]).remove(1);
        assert!(made.len() == 5 && made.iter().all(|byte| *byte > b' ' && *byte != 0x7f), "{made:?}");
        assert_ne!(made, "Käse".as_bytes());
    }
}
