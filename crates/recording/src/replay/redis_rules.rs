//! Which commands of a Redis recording are sent, and what they do to their connection.

use super::options::{ReplayOnly, ReplayOptions};
use super::slots::OF_CLUSTERS;
use crate::entry::Arguments;

/// Commands that administer a server: the category `@admin` of Redis' access lists, and those that remove all data. A name of two
/// words is one subcommand.
const ADMINISTRATION: [&str; 53] = [
    "ACL",
    "BGREWRITEAOF",
    "BGSAVE",
    "CLIENT KILL",
    "CLIENT LIST",
    "CLIENT NO-EVICT",
    "CLIENT PAUSE",
    "CLIENT UNPAUSE",
    "CLUSTER ADDSLOTS",
    "CLUSTER ADDSLOTSRANGE",
    "CLUSTER BUMPEPOCH",
    "CLUSTER DELSLOTS",
    "CLUSTER DELSLOTSRANGE",
    "CLUSTER FAILOVER",
    "CLUSTER FLUSHSLOTS",
    "CLUSTER FORGET",
    "CLUSTER MEET",
    "CLUSTER REPLICATE",
    "CLUSTER RESET",
    "CLUSTER SAVECONFIG",
    "CLUSTER SET-CONFIG-EPOCH",
    "CLUSTER SETSLOT",
    "CONFIG",
    "DEBUG",
    "DFLYCLUSTER",
    "FAILOVER",
    "FLUSHALL",
    "FLUSHDB",
    "FUNCTION FLUSH",
    "FUNCTION RESTORE",
    "LATENCY",
    "MIGRATE",
    "MODULE",
    "MONITOR",
    "PFDEBUG",
    "PFSELFTEST",
    "PSYNC",
    "REPLCONF",
    "REPLICAOF",
    "RESTORE-ASKING",
    "SAVE",
    "SCRIPT DEBUG",
    "SCRIPT FLUSH",
    "SCRIPT KILL",
    "SHUTDOWN",
    "SLAVEOF",
    "SLOWLOG",
    "SWAPDB",
    "SYNC",
    "FUNCTION KILL",
    "FUNCTION DELETE",
    "CLUSTER SLOT-STATS",
    "CLIENT CAPA",
];

/// Commands that would close a connection, or leave it without replies.
const CONNECTION: [&str; 3] = ["QUIT", "CLIENT REPLY", "AUTH"];

/// Commands whose answer may be a long time coming.
const BLOCKING: [&str; 10] =
    ["BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "WAIT", "WAITAOF"];

/// Commands that turn a connection into a listener.
const LISTENING: [&str; 7] =
    ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR"];

/// Replies to these say something else each time.
const UNLIKE: [&str; 27] = [
    "TIME",
    "INFO",
    "SCAN",
    "HSCAN",
    "SSCAN",
    "ZSCAN",
    "RANDOMKEY",
    "SRANDMEMBER",
    "HRANDFIELD",
    "ZRANDMEMBER",
    "SPOP",
    "LASTSAVE",
    "CLIENT",
    "COMMAND",
    "MEMORY",
    "OBJECT",
    "HELLO",
    "CONFIG",
    "LATENCY",
    "SLOWLOG",
    "CLUSTER",
    "DBSIZE",
    "TTL",
    "PTTL",
    "ROLE",
    "LOLWUT",
    "DUMP",
];

/// Returns whether a command's name may be one that waits, by its first letter: most are not.
pub(super) fn may_wait(arguments: &Arguments) -> bool {
    let first = if arguments.is_empty() { None } else { arguments.word(0).first() };
    first.is_some_and(|letter| b"BXPSMWU".contains(&letter.to_ascii_uppercase()))
        && !arguments.is_named("SET")
}

/// Returns whether a command turns its connection into a listener.
pub(super) fn listens(arguments: &Arguments) -> bool {
    arguments.is_one_of(&LISTENING)
}

/// Returns whether a command waits for data, or for copies.
pub(super) fn waits_for_data(arguments: &Arguments) -> bool {
    let blocks = || {
        let words = arguments.words().skip(1);
        let mut options = words.take_while(|word| !word.eq_ignore_ascii_case(b"STREAMS"));
        options.any(|word| word.eq_ignore_ascii_case(b"BLOCK"))
    };
    arguments.is_one_of(&BLOCKING) || (arguments.is_one_of(&["XREAD", "XREADGROUP"]) && blocks())
}

/// Returns whether replies to a command can be compared.
pub(super) fn is_comparable(arguments: &Arguments) -> bool {
    !arguments.is_one_of(&UNLIKE)
}

/// Returns whether a command sets the state of its connection, which later commands depend on.
pub(super) fn sets_state(arguments: &Arguments) -> bool {
    arguments.is_one_of(&["SELECT", "HELLO", "RESET"])
}

/// Returns whether the second word of a command of this name, in capitals, decides what becomes of it.
pub(super) fn has_subcommands(name: &str) -> bool {
    let containers = ADMINISTRATION.iter().chain(&CONNECTION).filter_map(|one| one.split_once(' '));
    containers.into_iter().any(|(container, _)| container == name)
}

/// Why a command is not sent; `None` if it is.
pub(super) fn reason_against(options: &ReplayOptions, arguments: &Arguments) -> Option<&'static str> {
    if arguments.is_empty() {
        return Some("empty commands");
    }
    let name = arguments.command_name();
    if arguments.is_one_of(&ADMINISTRATION) && !options.includes(&name) {
        return Some("commands that administer the server (--include NAME sends them)");
    }
    if arguments.is_one_of(&CONNECTION) {
        return Some("commands that end or silence a connection");
    }
    if options.cluster.is_none() && arguments.is_one_of(&OF_CLUSTERS) {
        return Some("commands about a cluster: the target is none");
    }
    if sets_state(arguments) || is_transaction(arguments) {
        return None;
    }
    let reads = || options.reads.contains(&name);
    match options.only {
        Some(ReplayOnly::Reads) if !reads() => Some("commands that may write (--only reads)"),
        Some(ReplayOnly::Writes) if reads() => Some("commands that only read (--only writes)"),
        _ => None,
    }
}

/// Returns whether a command ends a transaction.
pub(super) fn is_end(arguments: &Arguments) -> bool {
    arguments.is_one_of(&["EXEC", "DISCARD", "RESET"])
}

fn is_transaction(arguments: &Arguments) -> bool {
    arguments.is_one_of(&["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"])
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
            ["flushall", "SHUTDOWN NOSAVE", "config SET a b", "script flush", "client kill ID 7", "QUIT"]
        {
            assert!(reason_against(&options, &words(line)).is_some(), "{line}");
        }
        for line in ["script load x", "client setname a", "get flushall", "SELECT 3"] {
            assert_eq!(reason_against(&options, &words(line)), None, "{line}");
        }
        let options = ReplayOptions { include: vec!["CONFIG".into()], ..options };
        assert_eq!(reason_against(&options, &words("config get a")), None);
        assert!(reason_against(&options, &words("flushdb")).is_some());
    }

    #[test]
    fn a_half_of_the_traffic_keeps_the_state_of_its_connections() {
        let only =
            |only| ReplayOptions { only: Some(only), reads: vec!["GET".into()], ..ReplayOptions::default() };
        let (reads, writes) = (only(ReplayOnly::Reads), only(ReplayOnly::Writes));
        for (line, expected) in
            [("get a", (true, false)), ("SET a b", (false, true)), ("select 1", (true, true))]
        {
            let sent = |options: &ReplayOptions| reason_against(options, &words(line)).is_none();
            assert_eq!((sent(&reads), sent(&writes)), expected, "{line}");
        }
    }

    #[test]
    fn waiting_commands_are_known() {
        for line in ["blpop a 0", "XREAD COUNT 1 BLOCK 0 STREAMS a $", "WAIT 1 0"] {
            assert!(may_wait(&words(line)) && waits_for_data(&words(line)), "{line}");
        }
        for line in ["lpop a", "XREAD STREAMS BLOCK 0", "publish c m", "subscribe c"] {
            assert!(!waits_for_data(&words(line)), "{line}");
        }
        assert!(may_wait(&words("subscribe c")) && listens(&words("subscribe c")));
    }
}
