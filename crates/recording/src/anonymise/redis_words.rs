//! Commands of Redis, with other words in place of keys, fields and values.

use super::permutation::KeyedPermutation;
use crate::entry::{Arguments, LongValue};
use crate::long::put_long;

/// Commands whose second word is a part of their name.
const CONTAINERS: [&str; 16] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "MODULE",
    "OBJECT", "PUBSUB", "SCRIPT", "SLOWLOG", "XGROUP", "XINFO",
];

/// Commands that carry code, call it, or ask in a language of their own.
const CODE: [&str; 8] =
    ["EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO", "FUNCTION", "SCRIPT"];

/// Beginnings of names of modules' commands that ask in a language of their own.
const LANGUAGES: [&str; 4] = ["FT.", "JSON.", "GRAPH.", "TS."];

/// Commands whose words are patterns.
const PATTERNS: [&str; 3] = ["KEYS", "PSUBSCRIBE", "PUNSUBSCRIBE"];

/// Words of options, which stay as they are wherever they stand.
const OPTIONS: [&str; 101] = [
    "ABSTTL",
    "AFTER",
    "AGGREGATE",
    "ALPHA",
    "AND",
    "ANDOR",
    "ANY",
    "ASC",
    "ASYNC",
    "BCAST",
    "BEFORE",
    "BIT",
    "BLOCK",
    "BY",
    "BYBOX",
    "BYLEX",
    "BYRADIUS",
    "BYSCORE",
    "BYTE",
    "CH",
    "COUNT",
    "DB",
    "DESC",
    "DIFF",
    "DIFF1",
    "ENTRIESREAD",
    "EX",
    "EXAT",
    "FIELDS",
    "FNX",
    "FORCE",
    "FREQ",
    "FROMLONLAT",
    "FROMMEMBER",
    "FT",
    "FULL",
    "FXX",
    "GET",
    "GETNAME",
    "GROUP",
    "GROUPS",
    "GT",
    "ID",
    "IDLE",
    "IDLETIME",
    "INCR",
    "INCRBY",
    "INFO",
    "JUSTID",
    "KEEPTTL",
    "KM",
    "LASTID",
    "LEFT",
    "LEN",
    "LIB-NAME",
    "LIB-VER",
    "LIMIT",
    "LOADING",
    "LT",
    "M",
    "MAX",
    "MAXLEN",
    "MI",
    "MIN",
    "MINID",
    "MINMATCHLEN",
    "MKSTREAM",
    "NO",
    "NOACK",
    "NOLOOP",
    "NOMKSTREAM",
    "NOSAVE",
    "NOT",
    "NOVALUES",
    "NX",
    "OFF",
    "ON",
    "ONE",
    "OPTIN",
    "OPTOUT",
    "OR",
    "OVERFLOW",
    "PERSIST",
    "PX",
    "PXAT",
    "RANK",
    "REPLACE",
    "RETRYCOUNT",
    "REV",
    "RIGHT",
    "SAT",
    "SET",
    "STORE",
    "STOREDIST",
    "STREAMS",
    "SUM",
    "SYNC",
    "TIME",
    "WEIGHTS",
    "WRAP",
    "XOR",
];

/// More of them: what a command's replies are to have.
const WITH: [&str; 12] = [
    "WITHCODE",
    "WITHCOORD",
    "WITHDIST",
    "WITHHASH",
    "WITHMATCHLEN",
    "WITHSCORE",
    "WITHSCORES",
    "WITHVALUES",
    "XX",
    "YES",
    "IDX",
    "FAIL",
];

/// Longest word that is permuted, bytes: a longer one becomes random bytes of the same compressibility.
const PERMUTED: usize = 128;

/// Returns why a command is left out: what it says would say too much, or nothing any more.
pub(super) fn reason_against(arguments: &Arguments, keep_scripts: bool) -> Option<&'static str> {
    if keep_scripts || arguments.is_empty() {
        return None;
    }
    let is = |name: &&str| arguments.is_named(name);
    let has = |from: usize, word: &str| {
        (from..arguments.count()).any(|number| arguments.word(number).eq_ignore_ascii_case(word.as_bytes()))
    };
    let name = arguments.command_name();
    if CODE.iter().any(|name| is(&name)) {
        return Some("commands of scripts, which anonymising leaves out");
    }
    if LANGUAGES.iter().any(|begin| name.starts_with(begin)) {
        return Some("commands of modules with a language of their own, which anonymising leaves out");
    }
    let scans = ["SCAN", "HSCAN", "SSCAN", "ZSCAN"].iter().any(|name| is(&name)) && has(1, "MATCH");
    let sorts = ["SORT", "SORT_RO"].iter().any(|name| is(&name)) && (has(2, "BY") || has(2, "GET"));
    (scans || sorts || PATTERNS.iter().any(|name| is(&name)))
        .then_some("commands with patterns, which anonymising leaves out")
}

/// A number, an id of a stream, a bound of a range, a type of `BITFIELD`: nothing that names anything.
fn is_figure(word: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(word) else { return false };
    let bare = text.strip_prefix(['(', '~', '=', '#']).unwrap_or(text);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_id =
        bare.split_once('-').is_some_and(|(time, number)| digits(time) && (digits(number) || number == "*"));
    let is_type = bare.strip_prefix(['u', 'i']).is_some_and(|bits| digits(bits) && bits.len() <= 2);
    let is_number = bare.len() <= 40 && bare.parse::<f64>().is_ok();
    ["", "*", "$", ">", "+", "-", "~", "="].contains(&text) || is_id || is_type || is_number
}

fn is_option(word: &[u8]) -> bool {
    word.len() <= 16 && OPTIONS.iter().chain(&WITH).any(|option| word.eq_ignore_ascii_case(option.as_bytes()))
}

/// The words that stand for those of a command.
pub(super) fn change_words(
    arguments: &Arguments,
    permutation: &mut KeyedPermutation,
    keep_scripts: bool,
) -> Arguments {
    let named = 1 + usize::from(CONTAINERS.iter().any(|name| arguments.is_named(name)));
    let is_code = keep_scripts && CODE.iter().any(|name| arguments.is_named(name));
    let mut out = Arguments::default();
    for (number, word) in arguments.words().enumerate() {
        if let Some(value) = arguments.long_value(number) {
            let hash = permutation.number_of(&value.hash.to_le_bytes());
            out.push_long(LongValue { hash, ..value });
        } else if number < named || (is_code && number == 1) || is_figure(word) || is_option(word) {
            out.push_word(word);
        } else if word.len() > PERMUTED {
            let like = LongValue { hash: permutation.number_of(word), ..LongValue::of_bytes(word) };
            let mut made = Vec::new();
            put_long(like, &mut made);
            out.push_word(&made);
        } else if let Some((bound @ (b'[' | b'('), rest)) = word.split_first()
            && (arguments.is_named("ZRANGEBYLEX")
                || arguments.is_named("ZREVRANGEBYLEX")
                || arguments.is_named("ZLEXCOUNT"))
        {
            out.push_word(&[&[*bound][..], &permutation.permute(rest)].concat());
        } else {
            out.push_word(&permutation.permute(word));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(&changed("ZRANGEBYLEX names [al (b")[2][..1], "[");
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
