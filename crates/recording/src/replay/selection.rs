//! Which commands of a recording are sent.

use crate::entry::{Arguments, Entry};
use std::collections::HashMap;

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

/// Commands whose answer may be a long time coming, or that turn a connection into a listener.
const WAITING: [&str; 15] = [
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BLMOVE",
    "BLMPOP",
    "BZPOPMIN",
    "BZPOPMAX",
    "BZMPOP",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "MONITOR",
];

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

/// Which half of the traffic is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayOnly {
    /// Commands that only read.
    Reads,
    /// Commands that may write.
    Writes,
}

/// How a recording is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// How many times as fast as it was recorded; `None`: each command as soon as it may be sent.
    pub speed: Option<f64>,
    /// Part of the recording: from this time on, nanoseconds.
    pub from_ns: u64,
    /// Up to this time.
    pub to_ns: u64,
    /// A half of it alone.
    pub only: Option<ReplayOnly>,
    /// Commands that administer a server and are sent all the same, in capitals.
    pub include: Vec<String>,
    /// Names of commands that only read, in capitals: what a server says of them.
    pub reads: Vec<String>,
    /// This worker, and the number of workers: each has every n-th connection.
    pub part: (u32, u32),
    /// Number of the database in which connections begin: the target's.
    pub database: u32,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            speed: Some(1.0),
            from_ns: 0,
            to_ns: u64::MAX,
            only: None,
            include: Vec::new(),
            reads: Vec::new(),
            part: (0, 1),
            database: 0,
        }
    }
}

/// Returns whether a command has one of these names.
fn is_one_of(arguments: &Arguments, names: &[&str]) -> bool {
    let is = |number: usize, name: &str| {
        arguments.count() > number && arguments.word(number).eq_ignore_ascii_case(name.as_bytes())
    };
    names.iter().any(|name| match name.split_once(' ') {
        Some((first, second)) => is(0, first) && is(1, second),
        None => is(0, name),
    })
}

/// Returns whether a command's name may be one that waits, by its first letter: most are not.
pub(super) fn may_wait(arguments: &Arguments) -> bool {
    let first = if arguments.is_empty() { None } else { arguments.word(0).first() };
    first.is_some_and(|letter| b"BXPSMWU".contains(&letter.to_ascii_uppercase()))
        && !arguments.is_named("SET")
}

/// Returns whether a command waits for data, or for messages.
pub(super) fn waits_for_data(arguments: &Arguments) -> bool {
    let blocks = || {
        let words = arguments.words().skip(1);
        let mut options = words.take_while(|word| !word.eq_ignore_ascii_case(b"STREAMS"));
        options.any(|word| word.eq_ignore_ascii_case(b"BLOCK"))
    };
    is_one_of(arguments, &WAITING)
        || (is_one_of(arguments, &["XREAD", "XREADGROUP"]) && blocks())
        || is_one_of(arguments, &["WAIT", "WAITAOF"])
}

/// Returns whether replies to a command can be compared.
pub(super) fn is_comparable(arguments: &Arguments) -> bool {
    !is_one_of(arguments, &UNLIKE)
}

/// Returns whether a command sets the state of its connection, which later commands depend on.
pub(super) fn sets_state(arguments: &Arguments) -> bool {
    is_one_of(arguments, &["SELECT", "HELLO", "RESET"])
}

/// What the name of a command decides, or that its second word does, too.
#[derive(Clone, Copy, Debug)]
enum Decided {
    ByName(Option<&'static str>),
    BySubcommand,
}

/// Decides which commands are sent, once for each name as far as that is enough.
pub(crate) struct Chooser<'a> {
    options: &'a ReplayOptions,
    known: HashMap<Vec<u8>, Decided>,
}

impl<'a> Chooser<'a> {
    /// As these options say.
    pub fn new(options: &'a ReplayOptions) -> Self {
        Chooser { options, known: HashMap::new() }
    }

    /// Why a command is not sent; `None` if it is.
    pub fn reason_against(&mut self, entry: &Entry) -> Option<&'static str> {
        let arguments = &entry.arguments;
        if arguments.is_empty() {
            return self.options.reason_against(entry);
        }
        match self.known.get(arguments.word(0)) {
            Some(Decided::ByName(reason)) => return *reason,
            Some(Decided::BySubcommand) => return self.options.reason_against(entry),
            None => {}
        }
        let reason = self.options.reason_against(entry);
        let name = arguments.command_name();
        let has_subcommands = |all: &[&str]| {
            all.iter().filter_map(|one| one.split_once(' ')).any(|(container, _)| container == name)
        };
        let decided = match has_subcommands(&ADMINISTRATION) || has_subcommands(&CONNECTION) {
            true => Decided::BySubcommand,
            false => Decided::ByName(reason),
        };
        // Names are few; what is none fills no memory.
        if self.known.len() < 10_000 {
            self.known.insert(arguments.word(0).to_vec(), decided);
        }
        reason
    }
}

impl ReplayOptions {
    /// Why a command is not sent; `None` if it is.
    fn reason_against(&self, entry: &Entry) -> Option<&'static str> {
        let arguments = &entry.arguments;
        if arguments.is_empty() {
            return Some("empty commands");
        }
        let name = arguments.command_name();
        if is_one_of(arguments, &ADMINISTRATION) && !self.include.contains(&name) {
            return Some("commands that administer the server (--include NAME sends them)");
        }
        if is_one_of(arguments, &CONNECTION) {
            return Some("commands that end or silence a connection");
        }
        if sets_state(arguments) || is_transaction(arguments) {
            return None;
        }
        let reads = || self.reads.contains(&name);
        match self.only {
            Some(ReplayOnly::Reads) if !reads() => Some("commands that may write (--only reads)"),
            Some(ReplayOnly::Writes) if reads() => Some("commands that only read (--only writes)"),
            _ => None,
        }
    }

    /// Returns whether a connection is one of this worker's.
    pub(super) fn is_own(&self, connection: u32) -> bool {
        let (index, total) = self.part;
        connection % total == index
    }

    /// Returns whether a time of the recording is in the part that is replayed.
    pub(super) fn is_in_part(&self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    /// When a command is due after the epoch, nanoseconds; `None` where commands have no times.
    pub(super) fn due_ns(&self, at_ns: u64) -> Option<u64> {
        let after = at_ns.saturating_sub(self.from_ns);
        self.speed.map(|speed| if speed == 1.0 { after } else { (after as f64 / speed) as u64 })
    }
}

fn is_transaction(arguments: &Arguments) -> bool {
    is_one_of(arguments, &["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: &str) -> Entry {
        Entry { arguments: Arguments::from_words(line.split(' ')), ..Entry::default() }
    }

    #[test]
    fn what_would_harm_the_server_is_not_sent_unless_it_is_named() {
        let options = ReplayOptions::default();
        for line in
            ["flushall", "SHUTDOWN NOSAVE", "config SET a b", "script flush", "client kill ID 7", "QUIT"]
        {
            assert!(options.reason_against(&entry(line)).is_some(), "{line}");
        }
        for line in ["script load x", "client setname a", "get flushall", "SELECT 3", "cluster slots"] {
            assert_eq!(options.reason_against(&entry(line)), None, "{line}");
        }
        let options = ReplayOptions { include: vec!["CONFIG".into()], ..options };
        assert_eq!(options.reason_against(&entry("config get a")), None);
        assert!(options.reason_against(&entry("flushdb")).is_some());
    }

    #[test]
    fn a_half_of_the_traffic_keeps_the_state_of_its_connections() {
        let only =
            |only| ReplayOptions { only: Some(only), reads: vec!["GET".into()], ..ReplayOptions::default() };
        let (reads, writes) = (only(ReplayOnly::Reads), only(ReplayOnly::Writes));
        for (line, expected) in
            [("get a", (true, false)), ("SET a b", (false, true)), ("select 1", (true, true))]
        {
            let sent = |options: &ReplayOptions| options.reason_against(&entry(line)).is_none();
            assert_eq!((sent(&reads), sent(&writes)), expected, "{line}");
        }
    }

    #[test]
    fn waiting_commands_are_known() {
        for line in ["blpop a 0", "XREAD COUNT 1 BLOCK 0 STREAMS a $", "subscribe c", "WAIT 1 0"] {
            assert!(waits_for_data(&entry(line).arguments), "{line}");
        }
        for line in ["lpop a", "XREAD STREAMS BLOCK 0", "publish c m"] {
            assert!(!waits_for_data(&entry(line).arguments), "{line}");
        }
    }

    #[test]
    fn times_are_scaled_from_the_part_s_begin_on() {
        let options =
            ReplayOptions { speed: Some(2.0), from_ns: 100, to_ns: 200, ..ReplayOptions::default() };
        assert_eq!((options.due_ns(100), options.due_ns(150)), (Some(0), Some(25)));
        assert_eq!([99, 100, 199, 200].map(|at| options.is_in_part(at)), [false, true, true, false]);
        assert_eq!(ReplayOptions { speed: None, ..options }.due_ns(150), None);
    }
}
