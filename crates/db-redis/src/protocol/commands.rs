//! Requests of one's own commands into bytes, replies into outcomes.

use super::cluster::key_slot;
use super::command_templates::{Compiled, CompiledTemplate, Key, Piece};
use super::exchange::RedisExchange;
use super::resp::{NotResp, Token, put_bulk, read_token, skip_reply};
use super::state::RedisDriver;
use dyno_db::command_traffic::command_words;
use dyno_types::command::{KeptReply, ReplyFacts, ReplyKind, Traffic};
use dyno_types::{Outcome, Request};

impl RedisDriver {
    fn template(&self, request: &Request) -> &CompiledTemplate {
        &self.commands[usize::from(request.shape)]
    }

    fn own(&self, request: &Request, command: u32) -> &Compiled {
        &self.template(request).commands[command as usize]
    }

    /// Begins a command request; returns the number of its commands.
    pub(super) fn begin_own(&self, x: &mut RedisExchange) -> u32 {
        // Replies are kept from step to step of a script, and no longer.
        if x.request.script != 0 && x.request.step == 0 {
            x.more.replies.iter_mut().for_each(Vec::clear);
        }
        self.template(&x.request).commands.len() as u32
    }

    /// The slot of a command's key; `None` where any node will do.
    pub(super) fn own_slot(&mut self, x: &RedisExchange, command: u32) -> Option<u16> {
        let keyed = self.template(&x.request).atomic.unwrap_or(command);
        let (number, follows) = match self.own(&x.request, keyed).key.as_ref()? {
            Key::Slot(slot) => return Some(*slot),
            Key::Rendered(number) => (*number, false),
            Key::Follows(number) => (*number, true),
        };
        self.scratch.clear();
        match follows {
            true => {
                self.content.argument_after(&x.request, keyed, number, &x.more.replies, &mut self.scratch)
            }
            false => self.content.argument(&x.request, keyed, number, &mut self.scratch),
        }
        Some(key_slot(&self.scratch))
    }

    /// Appends a command of a command request.
    pub(super) fn put_own(&mut self, x: &mut RedisExchange, command: u32, out: &mut Vec<u8>) {
        let request = &x.request;
        let template = &self.commands[usize::from(request.shape)];
        let own = &template.commands[command as usize];
        let before = out.len();
        if own.subscribes {
            self.stamp.clone_from(&own.delivery);
            if !self.subscribed.insert(request.collection) {
                // The connection has subscribed: the next message is the reply.
                return;
            }
        }
        // That a server has lost a script is said by EXEC, too late to send it again.
        let pieces = match &own.script {
            Some(whole) if template.atomic.is_some() || std::mem::take(&mut x.sends_script) => whole,
            _ => &own.pieces,
        };
        for piece in pieces {
            let number = match piece {
                Piece::Bytes(bytes) => {
                    out.extend_from_slice(bytes);
                    continue;
                }
                Piece::Rendered(number) => {
                    self.scratch.clear();
                    self.content.argument(request, command, *number, &mut self.scratch);
                    *number
                }
                Piece::Follows(number) => {
                    self.scratch.clear();
                    let replies = &x.more.replies;
                    self.content.argument_after(request, command, *number, replies, &mut self.scratch);
                    *number
                }
            };
            debug_assert!(number > 0, "the name of a command is literal");
            put_bulk(out, &self.scratch);
        }
        self.traffic
            .add_traffic(request, Traffic { sent: (out.len() - before) as u64, ..Traffic::default() });
    }

    /// Returns whether an error reply says that the server has lost the script that a command calls.
    pub(super) fn has_lost_script(&self, x: &RedisExchange, command: u32, error: &[u8]) -> bool {
        error.starts_with(b"NOSCRIPT") && self.own(&x.request, command).script.is_some()
    }

    /// Returns whether a command belongs to a transaction, whose commands all stay at one node.
    pub(super) fn is_in_transaction(&self, request: &Request) -> bool {
        self.template(request).atomic.is_some()
    }

    /// The reply to a command of a command request, and the position after it.
    pub(super) fn take_own(
        &mut self,
        x: &mut RedisExchange,
        command: u32,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let template = self.template(&x.request);
        if template.atomic.is_some() {
            let last = template.commands.len() as u32 - 1;
            return if command == last { self.take_exec(x, last, input) } else { self.take_queued(input) };
        }
        self.take_reply(x, command, input, 0)
    }

    /// `OK` to `MULTI`, or `QUEUED`.
    fn take_queued(&mut self, input: &[u8]) -> Result<Option<(Outcome, usize)>, NotResp> {
        Ok(match read_token(input, 0)? {
            None => None,
            Some((Token::Simple(_), next)) => Some((Outcome::Ok, next)),
            Some((Token::Error(text), next)) => Some((self.fail(text), next)),
            Some(_) => return Err(NotResp),
        })
    }

    /// The reply to `EXEC`: those to all commands of the transaction.
    fn take_exec(
        &mut self,
        x: &mut RedisExchange,
        last: u32,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some(end) = skip_reply(input, 0)? else { return Ok(None) };
        match read_token(input, 0)? {
            // A command before it was refused, which is the outcome.
            Some((Token::Error(text), _)) => Ok(Some((self.fail(text), end))),
            Some((Token::Array(count), mut at)) if count as u32 == last - 1 => {
                let mut whole = Outcome::Ok;
                for command in 1..last {
                    let Some((outcome, next)) = self.take_reply(x, command, input, at)? else {
                        return Err(NotResp);
                    };
                    if whole.is_ok() {
                        whole = outcome;
                    }
                    at = next;
                }
                Ok(Some((whole, end)))
            }
            // A watched key has changed.
            Some((Token::Null, _)) => Ok(Some((Outcome::Conflict, end))),
            _ => Err(NotResp),
        }
    }

    /// The reply at `at`, and the position after it.
    fn take_reply(
        &mut self,
        x: &mut RedisExchange,
        command: u32,
        input: &[u8],
        at: usize,
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some((found, next)) = read_token(input, at)? else { return Ok(None) };
        // An empty text is what a part of a value that is not there looks like.
        let is_empty = matches!(found, Token::Null | Token::Array(0) | Token::Map(0) | Token::Bulk(b""));
        let own = self.own(&x.request, command);
        let (reads, not_found, looks) = (own.misses, own.not_found, own.look.is_some());
        let by_element = own.by_element;
        let mut missed = reads && is_empty;
        let (outcome, end) = match found {
            Token::Error(text) => (self.fail(text), next),
            Token::Array(_) | Token::Map(_) | Token::Push(_) | Token::Attribute(_) => {
                let Some(end) = skip_reply(input, at)? else { return Ok(None) };
                missed |= not_found && all_nil(found, input, next)?;
                if let (true, Token::Array(count)) = (by_element, found) {
                    let missing = count_nil(count, input, next)?;
                    x.elements = (count as u32 - missing, missing);
                }
                (Outcome::Ok, end)
            }
            _ => match self.content.expected(&x.request) {
                Some(expected) if !matches!(found, Token::Bulk(value) if value == expected) => {
                    let value = if let Token::Bulk(value) = found { Some(value) } else { None };
                    let message = command_words(self.content.as_ref(), &x.request, command, expected, value);
                    self.say(&message);
                    (Outcome::Mismatch, next)
                }
                _ => (Outcome::Ok, next),
            },
        };
        if self.content.follows(&x.request) {
            // `[cursor, [...]]`.
            let cursor = match read_token(input, next)? {
                Some((Token::Bulk(text), _)) if outcome.is_ok() && matches!(found, Token::Array(_)) => {
                    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
                }
                _ => None,
            };
            self.content.ends_at(&x.request, cursor);
        }
        if let (Outcome::Ok, Some(stamp)) = (outcome, &self.own(&x.request, command).delivery) {
            let stamp = stamp.clone();
            self.note_stamps(&stamp, &input[at..end], false);
        }
        let outcome = match outcome {
            Outcome::Ok if looks && !self.meets(x, command, &input[at..end]) => Outcome::Mismatch,
            Outcome::Ok if missed && not_found => Outcome::NotFound,
            other => other,
        };
        x.records += u32::from(outcome.is_ok() && !missed);
        let (hits, misses) = (u64::from(reads && outcome.is_ok() && !missed), u64::from(missed));
        let received = (end - at) as u64;
        self.traffic.add_traffic(&x.request, Traffic { sent: 0, received, hits, misses });
        Ok(Some((outcome, end)))
    }

    /// Keeps the parts of a whole reply that later steps use, and returns whether it is as expected.
    fn meets(&mut self, x: &mut RedisExchange, command: u32, reply: &[u8]) -> bool {
        let own = &self.commands[usize::from(x.request.shape)].commands[command as usize];
        let Some(look) = &own.look else { return true };
        for kept in &look.keeps {
            let number = usize::from(kept.number);
            if x.more.replies.len() <= number {
                x.more.replies.resize(number + 1, Vec::new());
            }
            keep(kept, reply, &mut x.more.replies[number]);
        }
        if look.expect.is_empty() {
            return true;
        }
        let (kind, value, length) = describe(reply, 0);
        match look.expect.mismatch(kind, value, length) {
            None => true,
            Some(why) => {
                let form = &self.content.commands()[usize::from(x.request.shape)].commands[command as usize];
                let message = format!("{}: {why}", String::from_utf8_lossy(form.name()));
                self.say(&message);
                false
            }
        }
    }
}

/// Returns whether each part of an array is nil: nothing of it was found.
fn all_nil(head: Token<'_>, input: &[u8], mut at: usize) -> Result<bool, NotResp> {
    let Token::Array(count) = head else { return Ok(false) };
    for _ in 0..count {
        match read_token(input, at)? {
            Some((Token::Null, next)) => at = next,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// How many of the elements of a whole array are nil.
fn count_nil(count: usize, input: &[u8], mut at: usize) -> Result<u32, NotResp> {
    let mut missing = 0;
    for _ in 0..count {
        missing += u32::from(matches!(read_token(input, at)?, Some((Token::Null, _))));
        at = skip_reply(input, at)?.ok_or(NotResp)?;
    }
    Ok(missing)
}

/// Kind, bytes and length of the whole reply at `at`; an array has elements and no bytes.
fn describe(reply: &[u8], at: usize) -> (ReplyKind, &[u8], u64) {
    let (kind, text) = match read_token(reply, at) {
        Ok(Some((Token::Simple(text), _))) => (ReplyKind::Status, text),
        Ok(Some((Token::Bulk(text) | Token::Error(text), _))) => (ReplyKind::Text, text),
        // Between the sign of its kind and the end of the line.
        Ok(Some((Token::Int(_), next))) => (ReplyKind::Integer, &reply[at + 1..next - 2]),
        Ok(Some((Token::Array(count) | Token::Push(count), _))) => {
            return (ReplyKind::Array, b"", count as u64);
        }
        Ok(Some((Token::Map(count), _))) => return (ReplyKind::Array, b"", 2 * count as u64),
        Ok(Some((Token::Attribute(count), next))) => {
            // What it is about comes behind it.
            let mut next = next;
            for _ in 0..2 * count {
                next = skip_reply(reply, next).ok().flatten().unwrap_or(reply.len());
            }
            return describe(reply, next);
        }
        _ => return (ReplyKind::Nil, b"", 0),
    };
    (kind, text, text.len() as u64)
}

/// What a whole reply is like: its kind, its size, and of an error its class.
pub fn reply_facts(reply: &[u8]) -> ReplyFacts<'_> {
    if let Ok(Some((Token::Error(text), _))) = read_token(reply, 0) {
        let class = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        return ReplyFacts { kind: None, size: 0, error: class };
    }
    let (kind, _, length) = describe(reply, 0);
    let has_size = matches!(kind, ReplyKind::Text | ReplyKind::Array);
    ReplyFacts { kind: Some(kind), size: if has_size { length } else { 0 }, error: b"" }
}

/// Keeps the part of a reply that a path leads to; empty where there is none.
fn keep(kept: &KeptReply, reply: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut at = 0;
    for place in &kept.path {
        let (count, mut next) = match read_token(reply, at) {
            Ok(Some((Token::Array(count) | Token::Push(count), next))) => (count, next),
            Ok(Some((Token::Map(count), next))) => (2 * count, next),
            _ => return,
        };
        if usize::from(*place) >= count {
            return;
        }
        for _ in 0..*place {
            let Ok(Some(end)) = skip_reply(reply, next) else { return };
            next = end;
        }
        at = next;
    }
    out.extend_from_slice(describe(reply, at).1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &[u16], reply: &[u8]) -> String {
        let mut out = b"old".to_vec();
        keep(&KeptReply { number: 0, path: path.to_vec() }, reply, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parts_of_replies_are_kept() {
        // As XREADGROUP answers.
        let stream: &[u8] =
            b"*1\r\n*2\r\n$4\r\njobs\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nt\r\n$1\r\n5\r\n";
        assert_eq!(kept(&[0, 1, 0, 0], stream), "1-0");
        assert_eq!(kept(&[0, 1, 0, 1, 1], stream), "5");
        assert_eq!(kept(&[0, 0], stream), "jobs");
        for path in [&[1][..], &[0, 0, 0], &[]] {
            assert_eq!(kept(path, stream), "");
        }
        assert_eq!(
            (kept(&[], b"$2\r\nab\r\n"), kept(&[], b":-5\r\n"), kept(&[], b"$-1\r\n")),
            ("ab".into(), "-5".into(), "".into())
        );
        assert_eq!(kept(&[1], b"%1\r\n+a\r\n:7\r\n"), "7");
    }

    #[test]
    fn replies_are_described_alike_in_both_versions() {
        let shown = |reply: &[u8]| {
            let (kind, value, length) = describe(reply, 0);
            (kind, String::from_utf8_lossy(value).into_owned(), length)
        };
        assert_eq!(shown(b"+OK\r\n"), (ReplyKind::Status, "OK".into(), 2));
        assert_eq!(shown(b"*-1\r\n"), (ReplyKind::Nil, "".into(), 0));
        assert_eq!(shown(b"_\r\n"), shown(b"$-1\r\n"));
        assert_eq!(shown(b"%1\r\n+a\r\n+b\r\n"), shown(b"*2\r\n+a\r\n+b\r\n"));
        assert_eq!(shown(b",1.5\r\n"), shown(b"$3\r\n1.5\r\n"));
        assert_eq!(shown(b"|1\r\n+ttl\r\n:3\r\n:12\r\n"), (ReplyKind::Integer, "12".into(), 2));
    }

    #[test]
    fn elements_that_are_nil_are_counted() {
        let missing = |count: usize, reply: &[u8]| count_nil(count, reply, 4).unwrap();
        assert_eq!(missing(3, b"*3\r\n$-1\r\n$1\r\na\r\n_\r\n"), 2);
        // As GEOPOS answers.
        assert_eq!(missing(2, b"*2\r\n*2\r\n$1\r\n1\r\n$-1\r\n*-1\r\n"), 1);
        assert!(count_nil(2, b"*2\r\n$-1\r\n", 4).is_err());
    }

    #[test]
    fn nothing_found_at_all_is_a_miss() {
        let nothing = |reply: &[u8]| {
            let (head, next) = read_token(reply, 0).unwrap().unwrap();
            all_nil(head, reply, next).unwrap()
        };
        assert!(nothing(b"*2\r\n$-1\r\n$-1\r\n") && nothing(b"*1\r\n_\r\n"));
        assert!(!nothing(b"*2\r\n$-1\r\n$1\r\na\r\n") && !nothing(b"%1\r\n_\r\n_\r\n"));
    }
}
