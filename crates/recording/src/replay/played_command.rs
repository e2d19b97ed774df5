//! A command on its way from the file to a user: what is sent of it, where, and when it is due.

use super::memcached;
use super::mongodb::{Document, ReadCommand, command_words};
use super::redis_rules::sets_state;
use super::slots::{Placement, take_part};
use crate::entry::{Arguments, Entry, RecordedReply};
use crate::long::put_long;
use dyno_db_redis::protocol::resp::{put_array, put_bulk};
use dyno_types::command::RecordedPlace;
use std::collections::HashMap;

/// Memory that a command takes beside its bytes.
const OVERHEAD: u64 = 128;

/// What a command does to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// It chooses a database, or a version of the protocol.
    State,
    /// It begins a transaction.
    Begins,
    /// It ends one.
    Ends,
}

pub(super) fn effect(arguments: &Arguments) -> Effect {
    match arguments {
        all if sets_state(all) => Effect::State,
        all if all.is_named("MULTI") => Effect::Begins,
        all if all.is_named("EXEC") || all.is_named("DISCARD") => Effect::Ends,
        _ => Effect::None,
    }
}

/// When a command is due, where the pauses of then decide it: nanoseconds of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedPause {
    /// Behind the reply to the command before it.
    AfterReply(u64),
    /// Behind the time at which the command before it was due: it was sent before that reply, or when that came is not known.
    AfterDue(u64),
}

/// What follows from a command's name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameTraits {
    pub metric: u16,
    /// The metric as a command of a transaction.
    pub step_metric: u16,
    /// The same where it waits for data, and whether it may.
    pub wait_metric: u16,
    pub may_wait: bool,
    /// Replies to it can be compared.
    pub is_comparable: bool,
    pub effect: Effect,
    /// It may hold an absolute time.
    pub may_expire: bool,
}

impl NameTraits {
    /// Of a command that dyno adds.
    pub fn added(metric: u16, effect: Effect) -> Self {
        NameTraits {
            metric,
            step_metric: metric,
            wait_metric: metric,
            may_wait: false,
            is_comparable: false,
            effect,
            may_expire: false,
        }
    }
}

/// What is sent of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandText {
    /// As it goes over the wire; empty where a value must be made first.
    pub bytes: Box<[u8]>,
    pub made: Option<Box<MadeText>>,
}

/// A command with a value that is made when it is sent.
#[derive(Clone, Debug)]
pub(super) struct MadeText {
    arguments: Arguments,
    put: PutCommand,
}

/// Appends a command as it goes over the wire.
type PutCommand = fn(&Arguments, &mut Vec<u8>);

impl CommandText {
    fn of_arguments(arguments: &Arguments) -> Self {
        CommandText::of_words(arguments, put_command)
    }

    fn of_words(arguments: &Arguments, put: PutCommand) -> Self {
        let is_kept = (0..arguments.count()).all(|number| arguments.long_value(number).is_none());
        if !is_kept {
            let made = Some(Box::new(MadeText { arguments: arguments.clone(), put }));
            return CommandText { bytes: Box::default(), made };
        }
        let mut bytes = Vec::new();
        put(arguments, &mut bytes);
        CommandText { bytes: bytes.into_boxed_slice(), made: None }
    }

    /// Its first words.
    fn first_words(&self, count: usize) -> Vec<&[u8]> {
        match &self.made {
            Some(made) => made.arguments.words().take(count).collect(),
            None if self.bytes.starts_with(b"*") => bulk_strings(&self.bytes).take(count).collect(),
            None => {
                let line = self.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
                line.split(|byte| *byte == b' ').take(count).collect()
            }
        }
    }

    fn put_wire(&self, out: &mut Vec<u8>) {
        match &self.made {
            None => out.extend_from_slice(&self.bytes),
            Some(made) => (made.put)(&made.arguments, out),
        }
    }

    fn memory(&self) -> u64 {
        let made = self.made.as_ref().map_or(0, |made| made.arguments.kept_bytes() as u64);
        self.bytes.len() as u64 + made
    }
}

/// A part of a command that is split over the slots of a cluster.
#[derive(Clone, Debug)]
pub(super) struct PlayedPart {
    pub slot: u16,
    pub text: CommandText,
}

/// A command to be sent.
#[derive(Clone, Debug)]
pub(super) struct PlayedCommand {
    pub at_ns: u64,
    pub metric: u16,
    pub waits: bool,
    /// True if it is sent once more, to bring a new connection into the state of the one before.
    pub restores: bool,
    pub effect: Effect,
    pub text: CommandText,
    /// What it is sent as where it is split over the slots of a cluster.
    pub parts: Box<[PlayedPart]>,
    /// Where it is sent in a cluster.
    pub place: RecordedPlace,
    /// Its place in a transaction: [`FIRST_STEP`], [`INNER_STEP`] or [`LAST_STEP`].
    pub step: Option<u16>,
    /// The most that it may wait for data, milliseconds; 0 for one that does not wait.
    pub wait_ms: u32,
    /// When it is due, where the pauses of then decide it; `None`: at its time.
    pub pause: Option<RecordedPause>,
    /// Of a command of MongoDB, whose bytes are its body.
    pub document: Option<Box<Document>>,
    /// Its number in the file, where its reply can be compared with that of another server.
    pub number: Option<u64>,
    /// The reply of then, where it can be compared.
    pub then: Option<Box<RecordedReply>>,
    /// Time that the reply took then, nanoseconds.
    pub after_ns: Option<u64>,
}

impl PlayedCommand {
    pub fn of_entry(entry: &Entry, traits: NameTraits, placement: &Placement) -> Self {
        let arguments = &entry.arguments;
        let parts = match placement {
            Placement::Split(parts) => parts
                .iter()
                .map(|(slot, keys)| PlayedPart {
                    slot: *slot,
                    text: CommandText::of_arguments(&take_part(arguments, keys)),
                })
                .collect(),
            _ => Vec::new(),
        };
        let text =
            if parts.is_empty() { CommandText::of_arguments(arguments) } else { CommandText::default() };
        PlayedCommand {
            text,
            parts: parts.into_boxed_slice(),
            place: if let Placement::Sent(place) = placement { *place } else { RecordedPlace::AnyNode },
            ..PlayedCommand::of_traits(entry, traits)
        }
    }

    /// When a command is sent and what is known of it, without its text.
    fn of_traits(entry: &Entry, traits: NameTraits) -> Self {
        PlayedCommand {
            at_ns: entry.at_ns,
            metric: traits.metric,
            waits: !entry.overlaps,
            restores: false,
            effect: traits.effect,
            text: CommandText::default(),
            parts: Box::default(),
            place: RecordedPlace::AnyNode,
            step: None,
            wait_ms: 0,
            pause: None,
            number: None,
            document: None,
            then: entry.reply.as_ref().filter(|_| traits.is_comparable).cloned().map(Box::new),
            after_ns: entry.reply.as_ref().and_then(|reply| reply.after_ns),
        }
    }

    /// A command of memcached; points in time move by `by_ns`, where that is known.
    pub fn of_memcached(entry: &Entry, by_ns: Option<i128>, traits: NameTraits) -> Self {
        let text = CommandText::of_words(&memcached::sent_command(entry, by_ns), memcached::put_command);
        PlayedCommand { text, ..PlayedCommand::of_traits(entry, traits) }
    }

    /// A command of MongoDB.
    pub fn of_document(entry: &Entry, read: ReadCommand, metric: u16) -> Self {
        let traits =
            NameTraits { is_comparable: read.is_comparable, ..NameTraits::added(metric, Effect::None) };
        PlayedCommand {
            waits: read.waits,
            text: CommandText { bytes: read.bytes.into_boxed_slice(), made: None },
            document: Some(Box::new(read.document)),
            ..PlayedCommand::of_traits(entry, traits)
        }
    }

    /// Appends the command as it goes over the wire, or part number `number` of it; or its body, which the driver puts into a
    /// message.
    pub fn put_wire(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(part) = self.parts.get(number as usize) {
            return part.text.put_wire(out);
        }
        let from = out.len();
        self.text.put_wire(out);
        if let Some(cursor) = self.document.as_ref().and_then(|document| document.cursor) {
            out[from + cursor.at..][..8].copy_from_slice(&cursor.number.to_le_bytes());
        }
    }

    /// Its name and its first argument, for messages: values stay out of them.
    pub fn first_words(&self) -> String {
        let shown = |line: &str| {
            line.chars().take(60).map(|c| if c.is_control() { '.' } else { c }).collect::<String>()
        };
        if self.document.is_some() {
            return shown(&command_words(&self.text.bytes));
        }
        let text = self.parts.first().map_or(&self.text, |part| &part.text);
        shown(&String::from_utf8_lossy(&text.first_words(2).join(&b' ')))
    }

    pub fn memory(&self) -> u64 {
        self.text.memory()
            + self.parts.iter().map(|part| part.text.memory() + OVERHEAD).sum::<u64>()
            + OVERHEAD
    }
}

/// The words of a command as it goes over the wire, one after the other.
fn bulk_strings(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    std::iter::from_fn(move || {
        let head = bytes.get(at + 1..)?;
        let end = head.iter().position(|byte| *byte == b'\r')?;
        let length: usize = std::str::from_utf8(&head[..end]).ok()?.parse().ok()?;
        let from = at + 1 + end + 2;
        at = from + length + 2;
        bytes.get(from..from + length)
    })
}

fn put_command(arguments: &Arguments, out: &mut Vec<u8>) {
    put_array(out, arguments.count());
    let mut made = Vec::new();
    for (number, word) in arguments.words().enumerate() {
        match arguments.long_value(number) {
            None => put_bulk(out, word),
            Some(value) => {
                made.clear();
                put_long(value, &mut made);
                put_bulk(out, &made);
            }
        }
    }
}

/// Pauses between the commands of each connection of then.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// Of connections: when the last command was sent, and the time that its reply took.
    last: HashMap<u32, (u64, Option<u64>)>,
}

impl Pauses {
    /// The pause before a command that is sent; `None` for the first of its connection.
    pub fn note_sent(&mut self, entry: &Entry) -> Option<RecordedPause> {
        let after_ns = entry.reply.as_ref().and_then(|reply| reply.after_ns);
        let (at_ns, took_ns) = self.last.insert(entry.connection, (entry.at_ns, after_ns))?;
        let gap_ns = entry.at_ns.saturating_sub(at_ns);
        Some(match took_ns {
            Some(took_ns) if !entry.overlaps => RecordedPause::AfterReply(gap_ns.saturating_sub(took_ns)),
            _ => RecordedPause::AfterDue(gap_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::RecordedKind;
    use dyno_types::command::ReplyKind;

    #[test]
    fn pauses_are_those_of_a_connection() {
        let entry = |connection, at_ns, overlaps, after_ns: Option<u64>| Entry {
            at_ns,
            connection,
            overlaps,
            reply: Some(RecordedReply {
                kind: RecordedKind::Reply(ReplyKind::Status),
                size: 0,
                error: String::new(),
                after_ns,
            }),
            ..Entry::default()
        };
        let mut pauses = Pauses::default();
        assert_eq!(pauses.note_sent(&entry(0, 100, false, Some(30))), None);
        assert_eq!(pauses.note_sent(&entry(1, 110, false, None)), None);
        assert_eq!(pauses.note_sent(&entry(0, 150, false, Some(30))), Some(RecordedPause::AfterReply(20)));
        // Sent before the reply, and behind a reply whose time is not known.
        assert_eq!(pauses.note_sent(&entry(0, 160, true, Some(5))), Some(RecordedPause::AfterDue(10)));
        assert_eq!(pauses.note_sent(&entry(1, 210, false, None)), Some(RecordedPause::AfterDue(100)));
    }

    #[test]
    fn messages_name_the_key_and_not_the_value() {
        for (key, shown) in
            [("k", "SET k"), ("$k", "SET $k"), ("*1", "SET *1"), ("", "SET "), ("a\r\n*b", "SET a..*b")]
        {
            let arguments = Arguments::from_words(["SET", key, "secret"]);
            let entry = Entry { arguments, ..Entry::default() };
            assert_eq!(
                PlayedCommand::of_entry(&entry, NameTraits::added(0, Effect::None), &Placement::SINGLE)
                    .first_words(),
                shown
            );
        }
    }
}
