//! Commands of Redis, with other words in place of keys, fields and values.

use super::permutation::{KeyedPermutation, is_number};
use crate::entry::Arguments;
use crate::redis_options::is_option;

/// Commands whose second word is a part of their name.
const CONTAINERS: [&str; 16] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "MODULE",
    "OBJECT", "PUBSUB", "SCRIPT", "SLOWLOG", "XGROUP", "XINFO",
];

/// Commands that carry code, call it, or ask in a language of their own.
const CODE: [&str; 8] =
    ["EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO", "FUNCTION", "SCRIPT"];

/// Beginnings of names of modules' commands, whose words dyno does not know.
const LANGUAGES: [&str; 9] = ["FT.", "JSON.", "GRAPH.", "TS.", "BF.", "CF.", "CMS.", "TOPK.", "TDIGEST."];

/// Commands of vector sets, and of values that carry a checksum: changed, they would be refused.
const CHECKED: [&str; 13] = [
    "RESTORE",
    "RESTORE-ASKING",
    "VADD",
    "VCARD",
    "VDIM",
    "VEMB",
    "VGETATTR",
    "VINFO",
    "VISMEMBER",
    "VLINKS",
    "VRANDMEMBER",
    "VREM",
    "VSIM",
];

/// Commands whose words are patterns.
const PATTERNS: [&str; 3] = ["KEYS", "PSUBSCRIBE", "PUNSUBSCRIBE"];

/// Returns why a command is left out: what it says would say too much, or nothing any more.
pub(super) fn reason_against(arguments: &Arguments, keep_scripts: bool) -> Option<&'static str> {
    let is = |names: &[&str]| arguments.is_one_of(names);
    if is(&CHECKED) {
        return Some("values with a checksum and vectors, which anonymising leaves out");
    }
    if keep_scripts || arguments.is_empty() {
        return None;
    }
    let has = |from: usize, word: &str| {
        (from..arguments.count()).any(|number| arguments.word(number).eq_ignore_ascii_case(word.as_bytes()))
    };
    let name = arguments.command_name();
    if is(&CODE) {
        return Some("commands of scripts, which anonymising leaves out");
    }
    if LANGUAGES.iter().any(|begin| name.starts_with(begin)) {
        return Some("commands of modules, which anonymising leaves out");
    }
    let scans = is(&["SCAN", "HSCAN", "SSCAN", "ZSCAN"]) && has(1, "MATCH");
    let sorts = is(&["SORT", "SORT_RO"]) && (has(2, "BY") || has(2, "GET"));
    let ranges = name.contains("BYLEX")
        || name.contains("LEXCOUNT")
        || (name.starts_with("ZRANGE") && has(2, "BYLEX"));
    (scans || sorts || ranges || is(&PATTERNS))
        .then_some("commands with patterns or ranges of names, which anonymising leaves out")
}

/// An id of a stream, or what stands for one.
fn is_stream_id(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bare = text.strip_prefix('(').unwrap_or(text);
    let is_id =
        bare.split_once('-').is_some_and(|(time, number)| digits(time) && (digits(number) || number == "*"));
    is_id || ["*", "$", ">", "+", "-", "~", "="].contains(&text)
}

/// A type or a place of `BITFIELD`.
fn is_bits(text: &str) -> bool {
    let digits =
        |text: &str| !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.strip_prefix(['u', 'i', '#']).is_some_and(digits)
}

/// Returns whether word `number` of a command names nothing: a figure, or an option where one may stand.
fn stays(arguments: &Arguments, number: usize, word: &[u8]) -> bool {
    let begins = |begin: &[u8]| {
        arguments.word(0).get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin))
    };
    let Ok(text) = std::str::from_utf8(word) else { return false };
    let is_figure =
        is_number(word) || (begins(b"X") && is_stream_id(text)) || (begins(b"BITFIELD") && is_bits(text));
    is_figure || is_option(arguments, number)
}

/// Returns whether `--keep-scripts` keeps a command as it is.
fn is_kept_whole(arguments: &Arguments) -> bool {
    reason_against(arguments, false).is_some()
        && !arguments.is_one_of(&["EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO"])
}

/// The words that stand for those of a command.
pub(super) fn change_words(
    arguments: &Arguments,
    permutation: &mut KeyedPermutation,
    keep_scripts: bool,
) -> Arguments {
    if keep_scripts && is_kept_whole(arguments) {
        return arguments.clone();
    }
    let named = 1 + usize::from(arguments.is_one_of(&CONTAINERS));
    let is_code = arguments.is_one_of(&CODE);
    let mut out = Arguments::default();
    for (number, word) in arguments.words().enumerate() {
        let before = number.checked_sub(1).map_or(&b""[..], |before| arguments.word(before));
        let is_long = arguments.long_value(number).is_some();
        if !is_long && (number < named || (is_code && number == 1) || stays(arguments, number, word)) {
            out.push_word(word);
        } else if before.eq_ignore_ascii_case(b"SETNAME") {
            // The server takes no name with a space.
            out.push_word(format!("name-{:016x}", permutation.number_of(word)).as_bytes());
        } else {
            permutation.push_other(arguments, number, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::LongValue;

    fn changed(line: &str) -> Vec<String> {
        let mut permutation = KeyedPermutation::new(b"a key of sixteen bytes");
        let arguments = Arguments::from_words(line.split(' '));
        let out = change_words(&arguments, &mut permutation, false);
        out.words().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    }

    #[test]
    fn names_options_and_numbers_stay_and_the_rest_does_not() {
        for (line, stays) in [
            ("SET user:1 secret EX 60 nx", "100111"),
            ("ZADD board GT CH 1.5 alice 2 bob", "10111010"),
            ("XADD jobs MAXLEN ~ 1000 * field value", "10111100"),
            ("XREADGROUP GROUP g c COUNT 10 STREAMS jobs >", "110011101"),
            ("XGROUP CREATE jobs grp $ MKSTREAM", "110011"),
            ("CLIENT SETINFO LIB-NAME redis-py", "1110"),
            ("GEOADD places 13.36 38.11 Palermo", "10110"),
            ("ZRANGEBYSCORE board (1 +inf LIMIT 0 5", "1011111"),
            ("BITFIELD bits INCRBY u8 #2 1", "101111"),
            ("HSET cart:{u7} sku-1 3", "1001"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let stays = stays.bytes().map(|byte| byte == b'1');
            for ((word, made), stays) in words.iter().zip(changed(line)).zip(stays) {
                assert_eq!(*word == made, stays, "{line}: {word} is {made}");
                assert_eq!(word.len(), made.len(), "{line}: {word} is {made}");
            }
        }
        assert_eq!(changed("GET user:1")[1], changed("DEL user:1")[1]);
        // What looks like an option or an id is none where data stand.
        for line in
            ["HSET time group yes", "GET id", "SET limit nx", "SADD phones 0171-5551234", "HSET u i7 u12"]
        {
            let words: Vec<&str> = line.split(' ').collect();
            for (word, made) in words.iter().zip(changed(line)).skip(1) {
                assert_ne!(*word, made, "{line}");
            }
        }
        assert!(changed("CLIENT SETNAME worker")[2].starts_with("name-"));
        assert!(changed("HELLO 3 SETNAME worker")[3].starts_with("name-") && changed("HELLO 3")[1] == "3");
    }

    #[test]
    fn what_cannot_be_changed_is_left_out() {
        let against = |line: &str| reason_against(&Arguments::from_words(line.split(' ')), false).is_some();
        for line in [
            "EVAL x 0",
            "evalsha abc 1 k",
            "FT.SEARCH i q",
            "JSON.GET k $.a",
            "KEYS user:*",
            "SCAN 0 MATCH u*",
            "SORT k BY w_*",
        ] {
            assert!(against(line), "{line}");
        }
        for line in ["SCAN 0 COUNT 10", "SORT k LIMIT 0 5", "GET eval", "PING"] {
            assert!(!against(line), "{line}");
        }
        assert_eq!(reason_against(&Arguments::from_words(["EVAL", "x", "0"]), true), None);
    }

    #[test]
    fn long_values_are_as_long_and_as_compressible() {
        let text = "name: Almeida-Santos, place: Lisbon; ".repeat(2_000);
        let arguments = Arguments::from_words(["SET", "k", &text]);
        let mut permutation = KeyedPermutation::new(b"a key of sixteen bytes");
        let out = change_words(&arguments, &mut permutation, false);
        assert_eq!(out.word(2).len(), text.len());
        let (then, now) = (LongValue::of_bytes(text.as_bytes()), LongValue::of_bytes(out.word(2)));
        assert!(then.compressed.abs_diff(now.compressed) <= 4, "{} {}", then.compressed, now.compressed);
        assert!(!out.word(2).windows(8).any(|eight| eight == b"Almeida-"));
    }
}
