//! Commands, sorted by the replies that they may get.

use super::reply::{ReplyShape, SkippedReply};
use dyno_types::command::ReplyKind;

/// Longest begin of a command that is looked at to tell it from other protocols, bytes.
const HEAD_BYTES: usize = 300;

/// Commands that get the same replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandGroup {
    /// `get`, `gets`: keys; `gat`, `gats`: a time, then keys.
    Get,
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`: a value follows the line.
    Store,
    /// `delete`.
    Delete,
    /// `incr`, `decr`.
    Count,
    /// `touch`.
    Touch,
    /// `mg`.
    MetaGet,
    /// `ms`: a value follows the line.
    MetaSet,
    /// `md`.
    MetaDelete,
    /// `ma`.
    MetaCount,
    /// `me`.
    MetaDebug,
    /// `mn`.
    MetaNoop,
    /// `stats`, and what else is answered by lines.
    Lines,
    /// `watch`: lines without end follow.
    Watch,
    /// `quit`, `shutdown`: no reply.
    Silent,
    /// Whatever else is answered by a line: `version`, `flush_all`, `verbosity`, ...
    #[default]
    Line,
}

/// Names and what they are.
const COMMANDS: [(&str, CommandGroup); 32] = [
    ("get", CommandGroup::Get),
    ("gets", CommandGroup::Get),
    ("gat", CommandGroup::Get),
    ("gats", CommandGroup::Get),
    ("set", CommandGroup::Store),
    ("add", CommandGroup::Store),
    ("replace", CommandGroup::Store),
    ("append", CommandGroup::Store),
    ("prepend", CommandGroup::Store),
    ("cas", CommandGroup::Store),
    ("delete", CommandGroup::Delete),
    ("incr", CommandGroup::Count),
    ("decr", CommandGroup::Count),
    ("touch", CommandGroup::Touch),
    ("mg", CommandGroup::MetaGet),
    ("ms", CommandGroup::MetaSet),
    ("md", CommandGroup::MetaDelete),
    ("ma", CommandGroup::MetaCount),
    ("me", CommandGroup::MetaDebug),
    ("mn", CommandGroup::MetaNoop),
    ("stats", CommandGroup::Lines),
    ("lru_crawler", CommandGroup::Lines),
    ("watch", CommandGroup::Watch),
    ("quit", CommandGroup::Silent),
    ("shutdown", CommandGroup::Silent),
    ("version", CommandGroup::Line),
    ("flush_all", CommandGroup::Line),
    ("verbosity", CommandGroup::Line),
    ("cache_memlimit", CommandGroup::Line),
    ("slabs", CommandGroup::Line),
    ("lru", CommandGroup::Line),
    ("extstore", CommandGroup::Line),
];

impl CommandGroup {
    /// Of a command's name, which has small letters; `None` of one that memcached does not have.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        COMMANDS.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, group)| *group)
    }

    /// The number of the word of a line that is the length of the value behind it, where there is one. The name is word 0.
    pub fn length_place(self) -> Option<usize> {
        match self {
            CommandGroup::Store => Some(4),
            CommandGroup::MetaSet => Some(2),
            _ => None,
        }
    }

    /// Returns whether it is of the meta protocol, whose words behind the key are flags.
    pub fn is_meta(self) -> bool {
        matches!(
            self,
            CommandGroup::MetaGet
                | CommandGroup::MetaSet
                | CommandGroup::MetaDelete
                | CommandGroup::MetaCount
                | CommandGroup::MetaDebug
                | CommandGroup::MetaNoop
        )
    }

    /// Number of keys of a command with so many words, a value behind its line not among them.
    pub fn key_count(self, name: &[u8], words: usize) -> usize {
        match self {
            CommandGroup::Get => words.saturating_sub(if name.starts_with(b"gat") { 2 } else { 1 }),
            CommandGroup::Lines
            | CommandGroup::Watch
            | CommandGroup::Silent
            | CommandGroup::Line
            | CommandGroup::MetaNoop => 0,
            _ => 1,
        }
    }

    /// Kind and size of a reply to a command of this group with so many keys, in the terms of recordings; the kind is `None` for
    /// an error. `None` if such a command cannot get this reply.
    ///
    /// What was found under one key is a text, and of several keys an array of those that were found. Nothing that was found, and
    /// nothing that was changed because a condition did not hold, is nil.
    pub fn reply_facts(self, keys: usize, reply: &SkippedReply) -> Option<(Option<ReplyKind>, u64)> {
        use CommandGroup as Group;
        use ReplyShape as Shape;
        let kind = match (self, reply.shape) {
            (_, Shape::Error) => return Some((None, 0)),
            (Group::Get, Shape::Values(count)) if count <= keys as u64 => {
                return Some(match keys {
                    1 => (Some(ReplyKind::Text), reply.bytes),
                    _ => (Some(ReplyKind::Array), count),
                });
            }
            (Group::Get, Shape::End) if keys != 1 => ReplyKind::Array,
            (Group::Get, Shape::End) | (Group::MetaGet | Group::MetaDebug, Shape::Miss) => ReplyKind::Nil,
            (Group::MetaGet | Group::MetaSet | Group::MetaDelete | Group::MetaCount, Shape::Value) => {
                return Some((Some(ReplyKind::Text), reply.bytes));
            }
            (Group::MetaDebug, Shape::Debug) => ReplyKind::Status,
            (Group::MetaGet | Group::MetaSet | Group::MetaDelete | Group::MetaCount, Shape::Done) => {
                ReplyKind::Status
            }
            (Group::MetaSet | Group::MetaDelete | Group::MetaCount, Shape::Refused) => ReplyKind::Nil,
            (Group::MetaNoop, Shape::Fence) => ReplyKind::Status,
            (Group::Store, Shape::Stored)
            | (Group::Delete, Shape::Deleted)
            | (Group::Touch, Shape::Touched) => ReplyKind::Status,
            (Group::Store, Shape::NotStored)
            | (Group::Store | Group::Delete | Group::Count | Group::Touch, Shape::NotFound) => ReplyKind::Nil,
            (Group::Count, Shape::Number) => ReplyKind::Integer,
            (Group::Lines, Shape::Lines(count)) => return Some((Some(ReplyKind::Array), count)),
            (Group::Lines, Shape::End) => ReplyKind::Array,
            (Group::Lines | Group::Line | Group::Watch, Shape::Ok) | (Group::Line, Shape::Version) => {
                ReplyKind::Status
            }
            _ => return None,
        };
        Some((Some(kind), 0))
    }
}

/// Returns whether bytes begin as a command does: its name, and a line of text as far as it is there.
pub fn is_command_head(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let name = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let ends = line.len() < head.len() || line.len() > name.len();
    ends && CommandGroup::of_name(name).is_some() && line.iter().all(|byte| *byte >= b' ' && *byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::super::ReplyReader;
    use super::*;

    #[test]
    fn replies_mean_what_their_command_asked() {
        let text = |size| Some((Some(ReplyKind::Text), size));
        let other = |kind, size| Some((Some(kind), size));
        let (nil, status) = (other(ReplyKind::Nil, 0), other(ReplyKind::Status, 0));
        let cases: [(&str, usize, &str, Option<(Option<ReplyKind>, u64)>); 32] = [
            ("get", 1, "VALUE k 0 5\r\nhello\r\nEND\r\n", text(5)),
            ("get", 1, "END\r\n", nil),
            ("gets", 3, "VALUE k 0 1 9\r\na\r\nVALUE l 0 1 9\r\nb\r\nEND\r\n", other(ReplyKind::Array, 2)),
            ("gat", 2, "END\r\n", other(ReplyKind::Array, 0)),
            ("get", 1, "VALUE k 0 1\r\na\r\nVALUE l 0 1\r\nb\r\nEND\r\n", None),
            ("set", 1, "STORED\r\n", status),
            ("add", 1, "NOT_STORED\r\n", nil),
            ("cas", 1, "EXISTS\r\n", nil),
            ("cas", 1, "NOT_FOUND\r\n", nil),
            ("set", 1, "SERVER_ERROR object too large for cache\r\n", Some((None, 0))),
            ("set", 1, "DELETED\r\n", None),
            ("delete", 1, "DELETED\r\n", status),
            ("delete", 1, "NOT_FOUND\r\n", nil),
            ("incr", 1, "18446744073709551615\r\n", other(ReplyKind::Integer, 0)),
            ("decr", 1, "NOT_FOUND\r\n", nil),
            ("touch", 1, "TOUCHED\r\n", status),
            ("mg", 1, "VA 3 t-1\r\nabc\r\n", text(3)),
            ("mg", 1, "EN\r\n", nil),
            ("mg", 1, "HD s3\r\n", status),
            ("ms", 1, "HD\r\n", status),
            ("ms", 1, "NS\r\n", nil),
            ("ms", 1, "EX O1\r\n", nil),
            ("ma", 1, "VA 2\r\n10\r\n", text(2)),
            ("md", 1, "NF\r\n", nil),
            ("me", 1, "ME k exp=-1 la=3 cas=2 fetch=no cls=1 size=63\r\n", status),
            ("mn", 0, "MN\r\n", status),
            ("stats", 0, "STAT pid 1\r\nSTAT uptime 2\r\nEND\r\n", other(ReplyKind::Array, 2)),
            ("stats", 0, "RESET\r\n", status),
            ("version", 0, "VERSION 1.6.18\r\n", status),
            ("flush_all", 0, "OK\r\n", status),
            ("foo", 1, "ERROR\r\n", Some((None, 0))),
            ("get", 1, "STORED\r\n", None),
        ];
        for (name, keys, reply, expected) in cases {
            let group = CommandGroup::of_name(name.as_bytes()).unwrap_or(CommandGroup::Line);
            let (mut reader, mut at) = (ReplyReader::default(), 0);
            let read = reader.read_reply(reply.as_bytes(), &mut at).unwrap().unwrap();
            assert_eq!((group.reply_facts(keys, &read), at), (expected, reply.len()), "{name}: {reply}");
        }
    }

    #[test]
    fn commands_are_told_from_other_traffic() {
        for head in ["get k\r\n", "get a b", "set k 0 0 5\r\n\0\x01\x02\x03\x04\r\n", "mn\r\n", "mg k v\r\n"]
        {
            assert!(is_command_head(head.as_bytes()), "{head:?}");
        }
        for head in [
            "get",
            "GET / HTTP/1.1\r\n",
            "GET k\r\n",
            "gets\tk\r\n",
            "VALUE k 0 1\r\n",
            "*1\r\n",
            "",
            "setx k",
        ] {
            assert!(!is_command_head(head.as_bytes()), "{head:?}");
        }
    }
}
