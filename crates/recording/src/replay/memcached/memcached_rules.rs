//! Which commands of a memcached recording are sent.

use crate::entry::Arguments;
use crate::replay::options::{ReplayOnly, ReplayOptions};
use dyno_db_memcached::protocol::traffic::CommandGroup;

/// Commands that administer a server, and those that remove all data.
const ADMINISTRATION: [&str; 11] = [
    "cache_memlimit",
    "extstore",
    "flush_all",
    "lru",
    "lru_crawler",
    "misbehave",
    "refresh_certs",
    "shutdown",
    "slabs",
    "stats reset",
    "verbosity",
];

/// Commands that would close a connection, or turn it into a listener.
const CONNECTION: [&str; 2] = ["quit", "watch"];

/// Commands that change nothing but what the server knows of its use.
const READS: [&str; 7] = ["get", "gets", "mg", "me", "mn", "stats", "version"];

/// Replies to these say something else each time.
const UNLIKE: [&str; 4] = ["stats", "version", "me", "lru_crawler"];

/// Returns whether replies to a command can be compared.
pub(in crate::replay) fn is_comparable(arguments: &Arguments) -> bool {
    !arguments.is_one_of(&UNLIKE)
}

/// Returns whether a command changes no data, whatever it says.
pub(in crate::replay) fn only_reads(arguments: &Arguments) -> bool {
    // `mg` makes an item that is not there, or lets one live longer, where it is asked to.
    let changes = || arguments.words().skip(2).any(|flag| matches!(flag.first(), Some(b'N' | b'T')));
    arguments.is_one_of(&READS) && !(arguments.word(0) == b"mg" && changes())
}

/// Returns whether a command is one when its words stand on a line: a file may hold what no server has sent.
fn is_one_line(arguments: &Arguments) -> bool {
    let group = CommandGroup::of_name(arguments.word(0)).unwrap_or_default();
    let value = usize::from(group.length_place().is_some());
    let Some(words) = arguments.count().checked_sub(value) else { return false };
    let is_word = |number: usize| {
        let word = arguments.word(number);
        arguments.long_value(number).is_none()
            && !word.is_empty()
            && !word.iter().any(|byte| matches!(byte, b' ' | b'\r' | b'\n' | 0))
    };
    words >= group.length_place().unwrap_or(1) && (0..words).all(is_word)
}

/// Why a command is not sent; `None` if it is.
pub(in crate::replay) fn reason_against(
    options: &ReplayOptions,
    arguments: &Arguments,
) -> Option<&'static str> {
    if arguments.is_empty() {
        return Some("empty commands");
    }
    if !is_one_line(arguments) {
        return Some("commands that are no line of memcached's");
    }
    if arguments.is_one_of(&ADMINISTRATION) && !options.includes(&arguments.command_name()) {
        return Some("commands that administer the server (--include NAME sends them)");
    }
    if arguments.is_one_of(&CONNECTION) {
        return Some("commands that end or silence a connection");
    }
    match options.only {
        Some(ReplayOnly::Reads) if !only_reads(arguments) => Some("commands that may write (--only reads)"),
        Some(ReplayOnly::Writes) if only_reads(arguments) => Some("commands that only read (--only writes)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Arguments {
        Arguments::from_words(line.split(' '))
    }

    #[test]
    fn what_would_harm_the_server_is_not_sent_unless_it_is_named() {
        let options = ReplayOptions::default();
        for line in
            ["flush_all", "shutdown graceful", "stats reset", "verbosity 1", "quit", "watch mutations"]
        {
            assert!(reason_against(&options, &words(line)).is_some(), "{line}");
        }
        for line in ["get k", "stats", "set k 0 0 v", "touch k 9", "mn"] {
            assert_eq!(reason_against(&options, &words(line)), None, "{line}");
        }
        let options = ReplayOptions { include: vec!["FLUSH_ALL".into()], ..options };
        assert_eq!(reason_against(&options, &words("flush_all noreply")), None);
    }

    #[test]
    fn what_would_be_two_lines_is_not_sent() {
        let options = ReplayOptions::default();
        for words in [
            &["get", "k\r\nflush_all"][..],
            &["set", "flush_all"],
            &["set", "k", "0", "v"],
            &["ms", "v"],
            &["get", "a b"],
            &["get", ""],
            &["touch", "k\n", "1"],
        ] {
            assert!(reason_against(&options, &Arguments::from_words(words)).is_some(), "{words:?}");
        }
        for words in [&["set", "k", "0", "0", "two\r\nlines"][..], &["ms", "k", ""], &["mn"]] {
            assert_eq!(reason_against(&options, &Arguments::from_words(words)), None, "{words:?}");
        }
    }

    #[test]
    fn reads_and_writes_are_told_apart() {
        let only = |only| ReplayOptions { only: Some(only), ..ReplayOptions::default() };
        let (reads, writes) = (only(ReplayOnly::Reads), only(ReplayOnly::Writes));
        for (line, expected) in [
            ("get k", (true, false)),
            ("gat 60 k", (false, true)),
            ("mg k v", (true, false)),
            ("mg k v T60", (false, true)),
            ("incr k 1", (false, true)),
        ] {
            let sent = |options: &ReplayOptions| reason_against(options, &words(line)).is_none();
            assert_eq!((sent(&reads), sent(&writes)), expected, "{line}");
        }
    }
}
