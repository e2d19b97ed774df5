//! Where the commands of a recording go in a cluster.
//!
//! The file is read once more before the run: the node of a transaction is known when the last of its commands is, and `MULTI`
//! is sent first.

use crate::entry::{Arguments, Entry, RecordedKind};
use crate::format::{RecordedEvent, RecordingError, RecordingReader};
use crate::long::put_long;
use dyno_db_redis::protocol::key_slot;
use dyno_types::command::RecordedPlace;
use dyno_types::key_rule::KeyRule;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The slot of a transaction without keys, and that of one whose keys are in several.
const ANY: u16 = u16::MAX - 1;
const SEVERAL: u16 = u16::MAX;

/// Commands that can be sent once for each slot of their keys, and how many words belong to a key.
const SPLITTABLE: [(&str, usize); 5] = [("MGET", 1), ("MSET", 2), ("DEL", 1), ("UNLINK", 1), ("EXISTS", 1)];

/// Commands that every node must get: what they do or tell is a node's own. A name of two words is one subcommand.
const EVERY_NODE: [&str; 11] = [
    "SCRIPT LOAD",
    "SCRIPT FLUSH",
    "FUNCTION LOAD",
    "FUNCTION DELETE",
    "FUNCTION FLUSH",
    "FUNCTION RESTORE",
    "FLUSHALL",
    "FLUSHDB",
    "KEYS",
    "DBSIZE",
    "CONFIG SET",
];

/// Errors by which a cluster asks its client to send the command elsewhere, or once more.
const SENT_AGAIN: [&str; 3] = ["MOVED", "ASK", "TRYAGAIN"];

/// Commands about the cluster that a client speaks to, or about which of its nodes a connection may ask.
pub(super) const OF_CLUSTERS: [&str; 4] = ["ASKING", "CLUSTER", "READONLY", "READWRITE"];

const OTHER_DATABASE: &str = "commands of databases other than 0, which a cluster does not have";
const OF_CONNECTION: &str = "commands about a connection (SELECT, HELLO, READONLY, ...): a cluster has many";

/// Where the commands of a recording go in a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRules {
    rules: BTreeMap<String, KeyRule>,
    split: bool,
    /// By connection: the slots of its transactions, in their order.
    transactions: HashMap<u32, Vec<u16>>,
}

/// What becomes of a command in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Placement {
    /// It is sent there.
    Sent(RecordedPlace),
    /// It is sent once for each of these slots, with the numbers of the words that are its keys.
    Split(BTreeMap<u16, Vec<usize>>),
    /// Its keys, or those of its transaction, are in several slots.
    Crosses,
    /// It is not sent for another reason.
    LeftOut(&'static str),
}

impl Placement {
    /// Outside of clusters, where every command is sent to the one node.
    pub const SINGLE: Placement = Placement::Sent(RecordedPlace::AnyNode);

    pub fn is_sent(&self) -> bool {
        matches!(self, Placement::Sent(_) | Placement::Split(_))
    }
}

/// The slot of both.
fn join_slots(one: u16, other: u16) -> u16 {
    match (one, other) {
        (ANY, slot) | (slot, ANY) => slot,
        (one, other) if one == other => one,
        _ => SEVERAL,
    }
}

/// Returns whether a cluster of then did not carry out a command, and its client has sent it once more: that is in the recording.
pub(super) fn was_sent_again(entry: &Entry) -> bool {
    entry
        .reply
        .as_ref()
        .is_some_and(|reply| reply.kind == RecordedKind::Error && SENT_AGAIN.contains(&reply.error.as_str()))
}

/// The words of a command that are sent for some of its keys.
pub(super) fn take_part(arguments: &Arguments, keys: &[usize]) -> Arguments {
    let stride = SPLITTABLE.iter().find(|(name, _)| arguments.is_named(name)).map_or(1, |(_, words)| *words);
    let mut part = Arguments::from_words([arguments.word(0)]);
    for number in keys.iter().flat_map(|key| *key..key + stride).filter(|at| *at < arguments.count()) {
        match arguments.long_value(number) {
            Some(value) => part.push_long(value),
            None => part.push_word(arguments.word(number)),
        }
    }
    part
}

impl ClusterRules {
    /// Looks at the transactions of a recording. `rules`: where the keys of its commands are, by name; `split`: commands that can
    /// be are sent once for each slot.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_file(
        path: &Path,
        rules: BTreeMap<String, KeyRule>,
        split: bool,
    ) -> Result<Self, RecordingError> {
        let mut reader = RecordingReader::open_file(path)?;
        let mut own = ClusterRules { rules, split, transactions: HashMap::new() };
        // Of connections: the slots of what they watch, and whether a transaction is open.
        let mut states: HashMap<u32, (u16, bool)> = HashMap::new();
        let mut entry = Entry::default();
        while let Some(event) = reader.next_event(&mut entry)? {
            if event != RecordedEvent::Entry {
                continue;
            }
            let arguments = &entry.arguments;
            let state = states.entry(entry.connection).or_insert((ANY, false));
            match state {
                (watched, is_open) if arguments.is_one_of(&["EXEC", "DISCARD", "RESET"]) => {
                    (*watched, *is_open) = (ANY, false);
                }
                (_, true) => {
                    let slot = own.slot_of(arguments);
                    if let Some(last) =
                        own.transactions.get_mut(&entry.connection).and_then(|all| all.last_mut())
                    {
                        *last = join_slots(*last, slot);
                    }
                }
                (watched, is_open) if arguments.is_named("MULTI") => {
                    own.transactions.entry(entry.connection).or_default().push(*watched);
                    *is_open = true;
                }
                (watched, _) if arguments.is_named("WATCH") => {
                    *watched = join_slots(*watched, own.slot_of(arguments));
                }
                (watched, _) if arguments.is_named("UNWATCH") => *watched = ANY,
                _ => {}
            }
        }
        Ok(own)
    }

    /// The keys of a command: their numbers, and their slots.
    fn keys_of(&self, arguments: &Arguments) -> Vec<(usize, u16)> {
        let Some(rule) = self.rules.get(&arguments.command_name()) else { return Vec::new() };
        let words: Vec<&[u8]> = arguments.words().collect();
        let slot = |number: usize| match arguments.long_value(number) {
            None => key_slot(words[number]),
            Some(value) => {
                let mut made = Vec::new();
                put_long(value, &mut made);
                key_slot(&made)
            }
        };
        rule.known_keys(&words).into_iter().map(|number| (number, slot(number))).collect()
    }

    fn slot_of(&self, arguments: &Arguments) -> u16 {
        self.keys_of(arguments).into_iter().fold(ANY, |slot, (_, next)| join_slots(slot, next))
    }
}

/// What is known of a connection of then.
#[derive(Clone, Copy, Debug, Default)]
struct PlacedConnection {
    /// It is in a database that a cluster does not have.
    is_elsewhere: bool,
    /// The slot of the transaction that is open.
    open: Option<u16>,
    /// Transactions that have begun.
    begun: usize,
    /// The slot of what it watches.
    watched: Option<u16>,
}

/// Says of each command of a recording, in their order, where it goes.
pub(super) struct Placer<'a> {
    rules: &'a ClusterRules,
    connections: HashMap<u32, PlacedConnection>,
}

impl<'a> Placer<'a> {
    pub fn new(rules: &'a ClusterRules) -> Self {
        Placer { rules, connections: HashMap::new() }
    }

    /// What becomes of the next command.
    pub fn place(&mut self, entry: &Entry) -> Placement {
        let arguments = &entry.arguments;
        let own = self.connections.entry(entry.connection).or_default();
        let transactions = self.rules.transactions.get(&entry.connection).map_or(&[][..], Vec::as_slice);
        if own.open.is_none() && arguments.is_named("MULTI") {
            own.open = transactions.get(own.begun).copied();
            own.begun += 1;
        }
        let open = own.open;
        if arguments.is_one_of(&["EXEC", "DISCARD", "RESET"]) {
            (own.open, own.watched) = (None, None);
        }
        if arguments.is_named("SELECT") && arguments.count() == 2 {
            own.is_elsewhere = arguments.word(1) != b"0";
            return Placement::LeftOut(OF_CONNECTION);
        }
        if arguments.is_named("RESET") {
            own.is_elsewhere = false;
        }
        if arguments.is_one_of(&["HELLO", "ASKING", "READONLY", "READWRITE"]) {
            return Placement::LeftOut(OF_CONNECTION);
        }
        if own.is_elsewhere {
            return Placement::LeftOut(OTHER_DATABASE);
        }
        match open {
            Some(SEVERAL) => return Placement::Crosses,
            // Whichever node begins it, the same one must end it.
            Some(ANY) => return Placement::Sent(RecordedPlace::Slot(0)),
            Some(slot) => return Placement::Sent(RecordedPlace::Slot(slot)),
            None => {}
        }
        if arguments.is_named("UNWATCH") {
            let slot = own.watched.take();
            return Placement::Sent(slot.map_or(RecordedPlace::AnyNode, RecordedPlace::Slot));
        }
        let watches = arguments.is_named("WATCH");
        // Without the transaction that it guards it would make the next one fail.
        if watches && transactions.get(own.begun) == Some(&SEVERAL) {
            return Placement::Crosses;
        }
        if arguments.is_one_of(&EVERY_NODE) {
            return Placement::Sent(RecordedPlace::EveryNode);
        }
        let keys = self.rules.keys_of(arguments);
        match keys.iter().fold(ANY, |slot, (_, next)| join_slots(slot, *next)) {
            ANY => Placement::SINGLE,
            SEVERAL if self.rules.split && SPLITTABLE.iter().any(|(name, _)| arguments.is_named(name)) => {
                let mut parts: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
                keys.into_iter().for_each(|(number, slot)| parts.entry(slot).or_default().push(number));
                Placement::Split(parts)
            }
            SEVERAL => Placement::Crosses,
            slot => {
                if watches {
                    own.watched = Some(slot);
                }
                Placement::Sent(RecordedPlace::Slot(slot))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{RecordingHeader, RecordingPoint, RecordingWriter};
    use crate::protocol::RecordedProtocol;
    use dyno_types::key_rule::{KeyBegin, KeyFind, KeySpecification};

    fn rule(last: i64, step: i64) -> KeyRule {
        let keys = vec![KeySpecification { begin: KeyBegin::At(1), find: KeyFind::Range(last, step, 0) }];
        KeyRule { keys, ..KeyRule::default() }
    }

    /// The placements of the commands of a recording, a line each: its connection and its words.
    fn placed(lines: &[&str], split: bool) -> Vec<Placement> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.dyno");
        let header = RecordingHeader {
            protocol: RecordedProtocol::Redis,
            source: "capture".into(),
            point: RecordingPoint::Proxy,
            begins_ns: None,
            clock_step_ns: 1,
            lacks: Vec::new(),
            value_limit: 1 << 16,
        };
        let mut writer = RecordingWriter::create_file(&path, &header).unwrap();
        let entries: Vec<Entry> = lines
            .iter()
            .map(|line| {
                let (connection, words) = line.split_once(' ').unwrap();
                let arguments = Arguments::from_words(words.split(' '));
                Entry { connection: connection.parse().unwrap(), arguments, ..Entry::default() }
            })
            .collect();
        for entry in &entries {
            writer.push_entry(entry).unwrap();
        }
        writer.finish().unwrap();
        let one = || rule(0, 1);
        let names = [("GET", one()), ("SET", one()), ("WATCH", rule(-1, 1)), ("MGET", rule(-1, 1))];
        let names = names.into_iter().chain([("MSET", rule(-1, 2))]);
        let rules = names.map(|(name, rule)| (name.to_owned(), rule)).collect();
        let rules = ClusterRules::read_file(&path, rules, split).unwrap();
        let mut placer = Placer::new(&rules);
        entries.iter().map(|entry| placer.place(entry)).collect()
    }

    fn at(slot: u16) -> Placement {
        Placement::Sent(RecordedPlace::Slot(slot))
    }

    /// Slots as `CLUSTER KEYSLOT` of Redis 7.0 tells them.
    const SLOTS: [(&str, u16); 3] = [("a", 15_495), ("b", 3_300), ("{a}2", 15_495)];

    #[test]
    fn a_command_goes_to_the_slot_of_its_keys() {
        let [(_, a), (_, b), _] = SLOTS;
        let lines = ["0 GET a", "0 get {a}2", "0 MGET a {a}2", "0 PING", "0 SCRIPT LOAD x", "0 MGET a b"];
        let found = placed(&lines, false);
        assert_eq!(found[..3], [at(a), at(a), at(a)]);
        let [single, every] = [RecordedPlace::AnyNode, RecordedPlace::EveryNode].map(Placement::Sent);
        assert_eq!(found[3..], [single, every, Placement::Crosses]);
        let split = placed(&["0 MSET a 1 b 2 {a}2 3", "0 SET a 1"], true);
        assert_eq!(split[0], Placement::Split([(a, vec![1, 5]), (b, vec![3])].into()));
        let words = Arguments::from_words("MSET a 1 b 2 {a}2 3".split(' '));
        assert_eq!(take_part(&words, &[1, 5]), Arguments::from_words("MSET a 1 {a}2 3".split(' ')));
        assert_eq!(split[1], at(a));
    }

    #[test]
    fn a_transaction_goes_as_a_whole_with_what_it_watches() {
        let [(_, a), (_, b), _] = SLOTS;
        // Two connections between each other.
        let lines = [
            "0 WATCH a",
            "1 MULTI",
            "0 MULTI",
            "1 SET a 1",
            "0 GET {a}2",
            "1 SET b 1",
            "0 EXEC",
            "1 EXEC",
            "1 GET b",
            // Of keys in one slot each, but not in the same.
            "0 WATCH b",
            "0 MULTI",
            "0 SET a 1",
            "0 EXEC",
            // What watches nothing any more.
            "0 WATCH b",
            "0 UNWATCH",
            "0 MULTI",
            "0 SET a 1",
            "0 DISCARD",
        ];
        let found = placed(&lines, true);
        let of = |numbers: &[usize]| numbers.iter().map(|at| found[*at].clone()).collect::<Vec<_>>();
        assert_eq!(of(&[0, 2, 4, 6]), vec![at(a); 4]);
        assert_eq!(of(&[1, 3, 5, 7]), vec![Placement::Crosses; 4]);
        assert_eq!(of(&[8]), [at(b)]);
        assert_eq!(of(&[9, 10, 11, 12]), vec![Placement::Crosses; 4]);
        assert_eq!(of(&[13, 14]), [at(b), at(b)]);
        assert_eq!(of(&[15, 16, 17]), vec![at(a); 3]);
    }

    #[test]
    fn a_cluster_has_one_database() {
        let found =
            placed(&["0 SELECT 3", "0 GET a", "0 SELECT 0", "0 GET a", "1 GET a", "1 READONLY"], false);
        let left = |placement: &Placement| matches!(placement, Placement::LeftOut(_));
        assert_eq!(found.iter().map(left).collect::<Vec<_>>(), [true, true, true, false, false, true]);
        assert_eq!(found[1], Placement::LeftOut(OTHER_DATABASE));
    }
}
