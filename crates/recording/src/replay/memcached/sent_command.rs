//! Commands of then as they are sent now.
//!
//! Each is answered, so that its time is known: `noreply` and the quiet flag are left out. A number that a `cas` was given
//! belongs to then: where it fitted, the command that does the same without it is sent. Expiries that are points in time move.

use crate::entry::{Arguments, Entry, RecordedKind};
use crate::long::put_long;
use dyno_db_memcached::protocol::traffic::CommandGroup;
use dyno_types::command::ReplyKind;

/// Greatest expiry that is a length of time, seconds: above it is one since 1970.
const LONGEST_SPAN: i128 = 60 * 60 * 24 * 30;

const SECOND_NS: i128 = 1_000_000_000;

/// What becomes of a word.
enum Fate {
    Stays,
    Goes,
    Becomes(Vec<u8>),
}

/// What becomes of expiries that are points in time.
#[derive(Clone, Copy)]
enum Expiries {
    /// They move by so many nanoseconds, where that is known.
    Move(Option<i128>),
    /// They become lengths of time from this one on, seconds since 1970; where that is not known, nothing expires.
    Lengths(Option<i128>),
}

/// A command as it is sent: expiries move by `by_ns`, where that is known.
pub(in crate::replay) fn sent_command(entry: &Entry, by_ns: Option<i128>) -> Arguments {
    let kind = entry.reply.as_ref().map(|reply| reply.kind);
    // Where no reply was recorded it most likely fitted, as in all clients that ask for none.
    let fitted = match kind {
        None | Some(RecordedKind::Reply(ReplyKind::Status | ReplyKind::Text)) => true,
        Some(RecordedKind::Reply(_) | RecordedKind::Error) => false,
    };
    changed_command(&entry.arguments, fitted, Expiries::Move(by_ns))
}

/// A command without what belongs to one moment of then, `then_ns` nanoseconds since 1970: conditions on versions, tokens, and
/// expiries that are points in time. Flags, which may stand in any order, stand in that of their letters.
pub fn timeless_command(arguments: &Arguments, then_ns: Option<i128>) -> Arguments {
    let expiries = Expiries::Lengths(then_ns.map(|then_ns| then_ns / SECOND_NS));
    let changed = changed_command(arguments, true, expiries);
    let mut order: Vec<usize> = (0..changed.count()).collect();
    let flags = meta_flags(&changed);
    if flags.is_empty() {
        return changed;
    }
    order[flags].sort_by_key(|number| changed.word(*number).first());
    let mut sorted = Arguments::default();
    for number in order {
        match changed.long_value(number) {
            Some(long) => sorted.push_long(long),
            None => sorted.push_word(changed.word(number)),
        }
    }
    sorted
}

/// Numbers of the words that are flags of a meta command.
pub fn meta_flags(arguments: &Arguments) -> std::ops::Range<usize> {
    let group = CommandGroup::of_name(arguments.word(0)).unwrap_or_default();
    let value = usize::from(group.length_place().is_some());
    let end = if group.is_meta() { arguments.count().saturating_sub(value) } else { 0 };
    2.min(end)..end
}

fn changed_command(arguments: &Arguments, fitted: bool, expiries: Expiries) -> Arguments {
    let group = CommandGroup::of_name(arguments.word(0)).unwrap_or(CommandGroup::Line);
    let has_value = group.length_place().is_some();
    let mut sent = Arguments::default();
    for (number, word) in arguments.words().enumerate() {
        let is_value = has_value && number + 1 == arguments.count();
        if let Some(long) = arguments.long_value(number) {
            sent.push_long(long);
            continue;
        }
        let fate = match (group, number) {
            _ if is_value => Fate::Stays,
            (CommandGroup::Store, 0) if word == b"cas" && fitted => Fate::Becomes(b"replace".to_vec()),
            (CommandGroup::Store, 3) => expiries.fate_of(word),
            (CommandGroup::Store, 4) if arguments.word(0) == b"cas" && fitted => Fate::Goes,
            (CommandGroup::Touch, 2) => expiries.fate_of(word),
            (CommandGroup::Get, 1) if arguments.word(0).starts_with(b"gat") => expiries.fate_of(word),
            (CommandGroup::Line, 1) if word == b"noreply" => Fate::Goes,
            (CommandGroup::Get, _) | (_, 0..=1) => Fate::Stays,
            (group, _) if group.is_meta() => {
                meta_flag(word, expiries, group != CommandGroup::MetaGet && fitted)
            }
            _ if word == b"noreply" => Fate::Goes,
            _ => Fate::Stays,
        };
        match fate {
            Fate::Stays => sent.push_word(word),
            Fate::Becomes(other) => sent.push_word(&other),
            Fate::Goes => {}
        }
    }
    sent
}

/// A flag of the meta protocol. `fitted`: the command has changed what it was to change.
fn meta_flag(flag: &[u8], expiries: Expiries, fitted: bool) -> Fate {
    match flag.split_first() {
        // The server looks at the first letter alone.
        Some((b'q', _)) => Fate::Goes,
        Some((b'C', _)) if fitted => Fate::Goes,
        // A token of the client's, another one each time; keys that are made are no base64.
        Some((b'O' | b'b', _)) if matches!(expiries, Expiries::Lengths(_)) => Fate::Goes,
        Some((mark @ (b'T' | b'N'), time)) => match expiries.fate_of(time) {
            Fate::Becomes(moved) => Fate::Becomes([&[*mark], moved.as_slice()].concat()),
            other => other,
        },
        _ => Fate::Stays,
    }
}

impl Expiries {
    fn fate_of(self, word: &[u8]) -> Fate {
        let time: Option<i128> = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
        let Some(time) = time.filter(|time| *time > LONGEST_SPAN) else { return Fate::Stays };
        let becomes = match self {
            Expiries::Move(None) => return Fate::Stays,
            Expiries::Move(Some(by_ns)) => time.saturating_add(by_ns / SECOND_NS).max(LONGEST_SPAN + 1),
            Expiries::Lengths(None) => 0,
            Expiries::Lengths(Some(then_s)) => time.saturating_sub(then_s).clamp(1, LONGEST_SPAN),
        };
        Fate::Becomes(becomes.to_string().into_bytes())
    }
}

/// Appends a command as it goes over the wire. A value that is not kept is made.
pub(in crate::replay) fn put_command(arguments: &Arguments, out: &mut Vec<u8>) {
    let group = CommandGroup::of_name(arguments.word(0)).unwrap_or(CommandGroup::Line);
    let Some(length_place) = group.length_place() else {
        put_line(arguments, 0..arguments.count(), out);
        out.extend_from_slice(b"\r\n");
        return;
    };
    let last = arguments.count() - 1;
    let length = arguments.long_value(last).map_or(arguments.word(last).len() as u64, |long| long.length);
    let place = length_place.min(last);
    put_line(arguments, 0..place, out);
    out.extend_from_slice(format!(" {length}").as_bytes());
    if place < last {
        out.push(b' ');
        put_line(arguments, place..last, out);
    }
    out.extend_from_slice(b"\r\n");
    match arguments.long_value(last) {
        Some(long) => put_long(long, out),
        None => out.extend_from_slice(arguments.word(last)),
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends some words, with spaces between them.
fn put_line(arguments: &Arguments, numbers: std::ops::Range<usize>, out: &mut Vec<u8>) {
    let first = numbers.start;
    for number in numbers {
        if number > first {
            out.push(b' ');
        }
        out.extend_from_slice(arguments.word(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{LongValue, RecordedReply};

    fn reply(kind: ReplyKind) -> Option<RecordedReply> {
        Some(RecordedReply { kind: RecordedKind::Reply(kind), size: 0, error: String::new(), after_ns: None })
    }

    fn wire(words: &[&str], reply: Option<RecordedReply>) -> String {
        let entry = Entry { arguments: Arguments::from_words(words), reply, ..Entry::default() };
        let mut out = Vec::new();
        put_command(&sent_command(&entry, Some(60 * SECOND_NS)), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_are_sent_so_that_they_are_answered() {
        let status = || reply(ReplyKind::Status);
        for (words, reply, expected) in [
            (&["get", "a", "noreply"][..], None, "get a noreply\r\n"),
            (&["set", "k", "0", "60", "v w"], status(), "set k 0 60 3\r\nv w\r\n"),
            (&["set", "k", "0", "60", "noreply", "noreply"], None, "set k 0 60 7\r\nnoreply\r\n"),
            (&["delete", "noreply", "noreply"], None, "delete noreply\r\n"),
            (&["cas", "k", "0", "0", "77", "v"], status(), "replace k 0 0 1\r\nv\r\n"),
            (&["cas", "k", "0", "0", "77", "v"], reply(ReplyKind::Nil), "cas k 0 0 1 77\r\nv\r\n"),
            (&["ms", "k", "q", "C9", "T30", "v"], status(), "ms k 1 T30\r\nv\r\n"),
            (&["ms", "k", "C9", "v"], reply(ReplyKind::Nil), "ms k 1 C9\r\nv\r\n"),
            (&["cas", "k", "0", "0", "77", "noreply", "v"], None, "replace k 0 0 1\r\nv\r\n"),
            (&["md", "k", "C9", "q"], status(), "md k\r\n"),
            (&["md", "k", "C9"], reply(ReplyKind::Nil), "md k C9\r\n"),
            (&["ms", "k", "v"], None, "ms k 1\r\nv\r\n"),
            (&["mg", "k", "v", "quiet"], None, "mg k v\r\n"),
            (&["mg", "q", "v", "q"], None, "mg q v\r\n"),
            (&["flush_all", "noreply"], None, "flush_all\r\n"),
            (&["mn"], None, "mn\r\n"),
        ] {
            assert_eq!(wire(words, reply), expected, "{words:?}");
        }
    }

    #[test]
    fn points_in_time_move_and_lengths_stay() {
        for (words, expected) in [
            (&["set", "k", "0", "1700000000", "v"][..], "set k 0 1700000060 1\r\nv\r\n"),
            (&["set", "k", "0", "2592000", "v"], "set k 0 2592000 1\r\nv\r\n"),
            (&["set", "k", "0", "-1", "v"], "set k 0 -1 1\r\nv\r\n"),
            (&["touch", "k", "1700000000"], "touch k 1700000060\r\n"),
            (&["gat", "1700000000", "k", "l"], "gat 1700000060 k l\r\n"),
            (&["mg", "k", "v", "T1700000000"], "mg k v T1700000060\r\n"),
            (&["incr", "1700000000", "1700000000"], "incr 1700000000 1700000000\r\n"),
        ] {
            assert_eq!(wire(words, None), expected);
        }
    }

    #[test]
    fn what_belongs_to_a_moment_is_no_part_of_a_timeless_command() {
        let then_ns = Some(1_700_000_000 * SECOND_NS);
        for (words, then_ns, expected) in [
            (&["set", "k", "0", "1700000060", "v"][..], then_ns, "set k 0 60 1\r\nv\r\n"),
            (&["set", "k", "0", "1600000000", "v"], then_ns, "set k 0 1 1\r\nv\r\n"),
            (&["set", "k", "0", "1700000060", "v"], None, "set k 0 0 1\r\nv\r\n"),
            (&["set", "k", "0", "60", "noreply", "v"], then_ns, "set k 0 60 1\r\nv\r\n"),
            (&["cas", "k", "0", "0", "77", "v"], then_ns, "replace k 0 0 1\r\nv\r\n"),
            (&["ms", "k", "O8", "C9", "T30", "q", "v"], then_ns, "ms k 1 T30\r\nv\r\n"),
            (&["mg", "k", "v", "O8", "q"], then_ns, "mg k v\r\n"),
        ] {
            let mut out = Vec::new();
            put_command(&timeless_command(&Arguments::from_words(words), then_ns), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{words:?}");
        }
    }

    #[test]
    fn values_that_are_not_kept_are_made() {
        let mut arguments = Arguments::from_words(["set", "k", "0", "0"]);
        arguments.push_long(LongValue { length: 100_000, hash: 7, compressed: 50 });
        let entry = Entry { arguments, ..Entry::default() };
        let mut out = Vec::new();
        put_command(&sent_command(&entry, None), &mut out);
        assert!(out.starts_with(b"set k 0 0 100000\r\n") && out.ends_with(b"\r\n"));
        assert_eq!(out.len(), 18 + 100_000 + 2);
    }
}
