//! What learning has to know of a protocol: names, keys, and which commands show what a key holds.

use crate::entry::{Arguments, Entry, RecordedKind, RecordedReply};
use crate::format::RecordingHeader;
use crate::protocol::RecordedProtocol;
use crate::redis_options::is_option;
use crate::replay::{meta_flags, timeless_command};
use dyno_db_memcached::protocol::traffic::CommandGroup;
use dyno_types::command::ReplyKind;
use std::borrow::Cow;

/// A protocol whose commands make a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// That of Redis and its kin: names in capitals.
    Redis,
    /// The text protocols of memcached: names in small letters, a value is the last word.
    Memcached,
}

/// Commands that fill a key, the usual first.
const FILLING_REDIS: [&str; 15] = [
    "SET", "HSET", "ZADD", "SADD", "RPUSH", "LPUSH", "XADD", "SETEX", "PSETEX", "HMSET", "GEOADD", "PFADD",
    "INCR", "INCRBY", "SETBIT",
];

/// Reads of one key that find nothing where it is not there, and something where it is.
const TELLING_REDIS: [&str; 4] = ["GET", "GETEX", "HGETALL", "SMEMBERS"];

/// Commands that set up a connection, or make a transaction of others.
const SETUP_REDIS: [&str; 16] = [
    "SELECT",
    "HELLO",
    "CLIENT",
    "COMMAND",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "READONLY",
    "READWRITE",
    "ASKING",
    "WAIT",
    "CLUSTER",
    "RESET",
    "QUIT",
];

impl Dialect {
    /// That of a recording; `None` where nothing is learned of such.
    pub fn of_recording(header: &RecordingHeader) -> Option<Dialect> {
        match header.protocol {
            RecordedProtocol::Redis => Some(Dialect::Redis),
            RecordedProtocol::Memcached => Some(Dialect::Memcached),
            RecordedProtocol::Mongodb => None,
        }
    }

    /// A command as it can be learned: without what belongs to one moment.
    pub fn timeless(self, entry: &Entry, begins_ns: Option<u64>) -> Cow<'_, Arguments> {
        let then_ns = begins_ns.map(|begins_ns| i128::from(begins_ns) + i128::from(entry.at_ns));
        self.timeless_words(&entry.arguments, then_ns)
    }

    /// The same of one of `then_ns` nanoseconds since 1970.
    pub fn timeless_words(self, arguments: &Arguments, then_ns: Option<i128>) -> Cow<'_, Arguments> {
        match self {
            Dialect::Redis => timeless_redis(arguments, then_ns),
            Dialect::Memcached => Cow::Owned(timeless_command(arguments, then_ns)),
        }
    }

    /// Options of a command with their places, or the letters of its flags: commands that differ in them are learned apart.
    pub fn options(self, arguments: &Arguments) -> String {
        match self {
            Dialect::Redis => (1..arguments.count())
                .filter(|number| is_option(arguments, *number))
                .map(|number| {
                    let word = String::from_utf8_lossy(arguments.word(number)).to_ascii_uppercase();
                    format!("{number} {word} ")
                })
                .collect(),
            Dialect::Memcached => {
                let letter = |number: usize| arguments.word(number).first().copied().map(char::from);
                meta_flags(arguments).filter_map(letter).collect()
            }
        }
    }

    /// The name under which a command is learned, and sent.
    pub fn command_name(self, arguments: &Arguments) -> String {
        match self {
            Dialect::Redis => arguments.command_name(),
            Dialect::Memcached => arguments.command_name().to_ascii_lowercase(),
        }
    }

    /// Numbers of the arguments that are keys; 0 is the command's name. `command_name` is that of the command in this dialect.
    pub fn key_places(self, command_name: &str, arguments: &Arguments) -> Vec<usize> {
        match self {
            Dialect::Redis => redis_keys(command_name, arguments),
            Dialect::Memcached => {
                let name = arguments.word(0);
                let group = CommandGroup::of_name(name).unwrap_or_default();
                let first = if name.starts_with(b"gat") { 2 } else { 1 };
                (first..first + group.key_count(name, arguments.count())).collect()
            }
        }
    }

    /// Returns whether a command sets up a connection, asks a server what it is, or makes a transaction of others.
    pub fn is_setup(self, name: &str) -> bool {
        match self {
            Dialect::Redis => SETUP_REDIS.contains(&name),
            Dialect::Memcached => {
                ["version", "mn", "me", "stats", "lru_crawler", "verbosity"].contains(&name)
            }
        }
    }

    /// Commands that fill a key, the usual first.
    pub fn filling_commands(self) -> &'static [&'static str] {
        match self {
            Dialect::Redis => &FILLING_REDIS,
            Dialect::Memcached => &["set", "add"],
        }
    }

    /// Returns whether a command of the first kind with these options fills a key that is not there, for longer than a moment.
    pub fn fills(self, options: &str) -> bool {
        let against = ["XX", "LT", "GT", "EXAT", "PXAT"];
        self == Dialect::Memcached || !options.split(' ').any(|option| against.contains(&option))
    }

    /// Commands whose last word is what a key holds, or a part of it, but that do not make a key themselves, or not for sure.
    pub fn changing_commands(self) -> &'static [&'static str] {
        match self {
            Dialect::Redis => &[],
            Dialect::Memcached => &["ms", "replace", "append", "prepend"],
        }
    }

    /// Commands that count what is there already.
    pub fn counting_commands(self) -> &'static [&'static str] {
        match self {
            Dialect::Redis => &[],
            Dialect::Memcached => &["incr", "decr", "ma"],
        }
    }

    /// Reads of one key whose replies show what it holds.
    pub fn reading_commands(self) -> &'static [&'static str] {
        match self {
            Dialect::Redis => &["GET"],
            Dialect::Memcached => &["get", "mg", "gets", "gat", "gats"],
        }
    }

    /// Whether the key of a read was there, where its reply tells.
    pub fn was_there(self, arguments: &Arguments, reply: &RecordedReply) -> Option<bool> {
        let RecordedKind::Reply(kind) = reply.kind else { return None };
        let reads = match self {
            Dialect::Redis => arguments.is_one_of(&TELLING_REDIS),
            Dialect::Memcached => self.reading_commands().contains(&self.command_name(arguments).as_str()),
        };
        match kind {
            _ if !reads => None,
            ReplyKind::Nil => Some(false),
            ReplyKind::Text => Some(true),
            ReplyKind::Array => Some(reply.size > 0),
            _ => None,
        }
    }

    /// The command that fills a key with a text, each as a workload has it.
    pub fn put_text(self, key: &str, text: &str) -> String {
        match self {
            Dialect::Redis => format!("[\"SET\", {key}, {text}]"),
            Dialect::Memcached => format!("[\"set\", {key}, \"0\", \"0\", {text}]"),
        }
    }
}

/// A command of Redis whose expiry is a length, where it was a point in time and that of the command is known.
fn timeless_redis(arguments: &Arguments, then_ns: Option<i128>) -> Cow<'_, Arguments> {
    let names: [(&str, &str, i128); 2] =
        [("EXPIREAT", "EXPIRE", 1_000_000_000), ("PEXPIREAT", "PEXPIRE", 1_000_000)];
    let options: [(&str, &str, i128); 2] = [("EXAT", "EX", 1_000_000_000), ("PXAT", "PX", 1_000_000)];
    let is = |number: usize, name: &str| arguments.word(number).eq_ignore_ascii_case(name.as_bytes());
    let found = match arguments.is_one_of(&["SET", "GETEX"]) {
        true => (2..arguments.count()).find_map(|place| {
            let option = options.iter().find(|(name, ..)| is(place, name))?;
            Some((place, place + 1, option))
        }),
        false => names.iter().find(|(name, ..)| is(0, name)).map(|name| (0, 2, name)),
    };
    let Some(((word, time, (_, length, unit_ns)), then_ns)) = found.zip(then_ns) else {
        return Cow::Borrowed(arguments);
    };
    let due = (time < arguments.count())
        .then(|| std::str::from_utf8(arguments.word(time)).ok()?.parse::<i128>().ok());
    let Some(due) = due.flatten() else { return Cow::Borrowed(arguments) };
    let mut out = Arguments::default();
    for number in 0..arguments.count() {
        match arguments.long_value(number) {
            Some(long) => out.push_long(long),
            None if number == word => out.push_word(length.as_bytes()),
            None if number == time => {
                out.push_word((due - then_ns / unit_ns).max(1).to_string().as_bytes());
            }
            None => out.push_word(arguments.word(number)),
        }
    }
    Cow::Owned(out)
}

/// Numbers of the arguments that are keys, as far as names tell; 0 is the command's name.
fn redis_keys(command_name: &str, arguments: &Arguments) -> Vec<usize> {
    let count = arguments.count();
    let number = |at: usize| -> usize {
        let text = if at < count { arguments.word(at) } else { b"" };
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0).min(count)
    };
    match command_name {
        "PING" | "ECHO" | "INFO" | "TIME" | "COMMAND" | "CLIENT" | "SCRIPT" | "FUNCTION" | "PUBLISH"
        | "SPUBLISH" | "PUBSUB" | "CLUSTER" | "SCAN" | "DBSIZE" | "RANDOMKEY" | "KEYS" | "ROLE"
        | "LASTSAVE" | "LOLWUT" | "READONLY" | "READWRITE" => Vec::new(),
        "MGET" | "DEL" | "UNLINK" | "EXISTS" | "TOUCH" | "SUNION" | "SINTER" | "SDIFF" | "PFCOUNT"
        | "PFMERGE" | "SUNIONSTORE" | "SINTERSTORE" | "SDIFFSTORE" => (1..count).collect(),
        "MSET" | "MSETNX" => (1..count).step_by(2).collect(),
        "RENAME" | "RENAMENX" | "COPY" | "SMOVE" | "LMOVE" | "RPOPLPUSH" | "LCS" | "GEOSEARCHSTORE"
        | "ZRANGESTORE" => (1..count.min(3)).collect(),
        "EVAL" | "EVALSHA" | "FCALL" | "EVAL_RO" | "EVALSHA_RO" | "FCALL_RO" => {
            (3..(3 + number(2)).min(count)).collect()
        }
        "ZUNION" | "ZINTER" | "ZDIFF" | "SINTERCARD" | "ZINTERCARD" | "LMPOP" | "ZMPOP" => {
            (2..(2 + number(1)).min(count)).collect()
        }
        "ZUNIONSTORE" | "ZINTERSTORE" | "ZDIFFSTORE" => {
            std::iter::once(1).chain(3..(3 + number(2)).min(count)).filter(|at| *at < count).collect()
        }
        "OBJECT" | "XGROUP" | "XINFO" | "MEMORY" | "BITOP" => (2..count.min(3)).collect(),
        "XREAD" | "XREADGROUP" => {
            let streams = (1..count).find(|at| arguments.word(*at).eq_ignore_ascii_case(b"STREAMS"));
            streams.map_or(Vec::new(), |at| (at + 1..at + 1 + (count - at - 1) / 2).collect())
        }
        _ if count > 1 => vec![1],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(line: &str) -> Vec<usize> {
        let arguments = Arguments::from_words(line.split(' '));
        redis_keys(&arguments.command_name(), &arguments)
    }

    #[test]
    fn points_in_time_become_lengths() {
        let then_ns = Some(1_700_000_000i128 * 1_000_000_000);
        for (line, expected) in [
            ("SET k v EXAT 1700000060", "SET k v EX 60"),
            ("set k v nx pxat 1700000000500", "set k v nx PX 500"),
            ("EXPIREAT k 1699999999", "EXPIRE k 1"),
            ("PEXPIREAT k 1700000001000 NX", "PEXPIRE k 1000 NX"),
            ("SET k EXAT", "SET k EXAT"),
            ("LPUSH k EXAT 1700000060", "LPUSH k EXAT 1700000060"),
        ] {
            let then = Arguments::from_words(line.split(' '));
            let found = Dialect::Redis.timeless_words(&then, then_ns);
            assert_eq!(*found, Arguments::from_words(expected.split(' ')), "{line}");
            assert_eq!(*Dialect::Redis.timeless_words(&then, None), then);
        }
    }

    #[test]
    fn keys_are_where_names_say() {
        assert_eq!(places("get a"), [1]);
        assert_eq!(places("MSET a 1 b 2"), [1, 3]);
        assert_eq!(places("EVAL x 2 a b c"), [3, 4]);
        assert_eq!(places("XREADGROUP GROUP g c STREAMS a b > >"), [5, 6]);
        assert_eq!(places("ZUNIONSTORE d 2 a b"), [1, 3, 4]);
        assert!(places("PING").is_empty() && places("EVAL x 99").is_empty());
    }

    #[test]
    fn keys_of_memcached_follow_the_name_or_the_time() {
        let places = |line: &str| Dialect::Memcached.key_places("", &Arguments::from_words(line.split(' ')));
        assert_eq!(
            (places("get a b"), places("gat 60 a"), places("set a 0 0 v")),
            (vec![1, 2], vec![2], vec![1])
        );
        assert_eq!((places("mg a v"), places("mn")), (vec![1], vec![]));
    }
}
