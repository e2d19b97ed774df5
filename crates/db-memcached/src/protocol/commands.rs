//! Requests of one's own commands and of recorded ones into bytes, replies into outcomes.

use super::driver::{Exchange, KeySpan, MemcachedDriver};
use super::errors::loses_step;
use super::own::{self, BadWord, OwnCommand};
use super::reply::NotMemcached;
use super::traffic::{CommandGroup, ReplyReader, SkippedReply};
use dyno_db::command_traffic::command_words;
use dyno_types::command::{CommandArgument, ReplyFacts, ReplyKind, Traffic};
use dyno_types::driver::UNSENDABLE;
use dyno_types::{Outcome, Request};

/// Returns whether a reply says that something is there, but not as the command demands.
fn is_condition(line: &[u8]) -> bool {
    let first = line.trim_ascii_end().split(|byte| *byte == b' ').next();
    matches!(first, Some(b"NS" | b"EX"))
}

/// Returns whether the reply to an `mg` that makes what it does not find (flag `N`) says that it did so, or another client just
/// before: won (`W`) or lost (`Z`) is the right to fill it, and it is empty. `X` is an old value that is to be replaced.
fn is_vivified(line: &[u8], value_bytes: u64) -> bool {
    let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
    let flags = match words.next() {
        Some(b"HD") => 0,
        Some(b"VA") => 1,
        _ => return false,
    };
    let mut is_new = false;
    for flag in words.skip(flags) {
        is_new |= matches!(flag, b"W" | b"Z");
        if flag == b"X" {
            return false;
        }
    }
    is_new && value_bytes == 0
}

impl MemcachedDriver {
    fn own(&self, request: &Request, command: u32) -> &OwnCommand {
        &self.own[usize::from(request.shape)].commands[command as usize]
    }

    /// Begins a command request: renders its commands, whose keys say where they go; returns their number.
    pub(super) fn begin_own(&mut self, x: &mut Exchange) -> u32 {
        // Replies are kept from step to step of a script, and no longer.
        if x.request.script != 0 && x.request.step == 0 {
            x.more.replies.iter_mut().for_each(Vec::clear);
        }
        let count = self.own[usize::from(x.request.shape)].commands.len() as u32;
        (x.batched, x.waiting) = (count > 1, count);
        x.more.batch.clear();
        for command in 0..count {
            let place = self.render_own(x, command);
            if place.server == UNSENDABLE {
                // None of them is sent: the replies to those before it would be to an operation that has ended.
                (x.batched, x.waiting, x.place) = (false, 1, place);
                return 1;
            }
            match x.batched {
                true => x.more.batch.push((x.request, place, Outcome::Ok)),
                false => x.place = place,
            }
        }
        count
    }

    /// Appends a command to the bytes of the exchange; returns where it is, and its server. Of one that cannot be sent there is
    /// the word that is at fault.
    fn render_own(&mut self, x: &mut Exchange, command: u32) -> KeySpan {
        let (request, replies, out) = (&x.request, &x.more.replies, &mut x.keys);
        let own = &self.own[usize::from(request.shape)].commands[command as usize];
        let content = self.content.as_ref();
        let mut put = |number: usize, out: &mut Vec<u8>| match &own.arguments[number] {
            CommandArgument::Literal(bytes) => out.extend_from_slice(bytes),
            CommandArgument::Rendered => content.argument(request, command, number as u16, out),
            CommandArgument::Follows => content.argument_after(request, command, number as u16, replies, out),
        };
        let begin = out.len();
        let put = own::put_command(own.group, own.arguments.len(), &mut put, (&mut self.value, out));
        let server = match put {
            Ok(key) if key.is_empty() => 0,
            Ok(key) => self.servers.server_of(&out[key]),
            Err(BadWord) => UNSENDABLE,
        };
        KeySpan { server, encoded: false, begin: begin as u32, end: out.len() as u32 }
    }

    /// Appends a request's command, which was rendered when it began.
    pub(super) fn put_own(&mut self, x: &Exchange, command: u32, out: &mut Vec<u8>) {
        let (request, place) = x.part(command);
        let line = &x.keys[place.begin as usize..place.end as usize];
        out.extend_from_slice(line);
        self.traffic.add_traffic(request, Traffic { sent: line.len() as u64, ..Traffic::default() });
    }

    /// The reply to a request's command, and the position after it.
    pub(super) fn take_own(
        &mut self,
        x: &mut Exchange,
        command: u32,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotMemcached> {
        // Kept from reply to reply: a new one would cost an allocation each.
        let mut reader = std::mem::take(&mut self.reader);
        reader.reset();
        let mut end = 0;
        let taken = match reader.read_reply(input, &mut end) {
            Ok(Some(reply)) => self.take_own_reply(x, command, (&reader, reply), &input[..end]).map(Some),
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        self.reader = reader;
        Ok(taken?.map(|outcome| (outcome, end)))
    }

    fn take_own_reply(
        &mut self,
        x: &mut Exchange,
        command: u32,
        (reader, reply): (&ReplyReader, SkippedReply),
        input: &[u8],
    ) -> Result<Outcome, NotMemcached> {
        let own = self.own(&x.request, command);
        let (kind, size) = own.group.reply_facts(own.keys, &reply).ok_or(NotMemcached)?;
        let received = input.len() as u64;
        // What was made because nothing was there is nothing that was found.
        let (kind, size) = match own.vivifies && is_vivified(reader.first_line(), size) {
            true => (Some(ReplyKind::Nil), 0),
            false => (kind, size),
        };
        let Some(kind) = kind else {
            if own.group.length_place().is_some() && loses_step(reader.first_line()) {
                return Err(NotMemcached);
            }
            self.traffic.add_traffic(&x.request, Traffic { received, ..Traffic::default() });
            return Ok(self.fail(reader.first_line()));
        };
        let value = match kind {
            ReplyKind::Text => text_of(input, size),
            ReplyKind::Integer | ReplyKind::Status => reader.first_line().trim_ascii_end(),
            ReplyKind::Array | ReplyKind::Nil => b"",
        };
        let found = match kind {
            ReplyKind::Array => size,
            ReplyKind::Nil => 0,
            _ => 1,
        };
        let is_read = matches!(own.group, CommandGroup::Get | CommandGroup::MetaGet);
        let hits = if is_read { found } else { 0 };
        let misses = if is_read { (own.keys as u64).saturating_sub(found) } else { 0 };
        let is_missing = found == 0 && !(own.needs_item && is_condition(reader.first_line()));
        let (missed, not_found) = (own.misses && is_missing, own.not_found);
        let outcome = if own.must_store && kind == ReplyKind::Nil {
            self.say("the server stored nothing");
            Outcome::ServerError
        } else if is_read && self.holds_other(x, command, kind, value)
            || !self.meets(
                x,
                command,
                kind,
                value,
                if kind == ReplyKind::Array { size } else { value.len() as u64 },
            )
        {
            Outcome::Mismatch
        } else if missed && not_found {
            Outcome::NotFound
        } else {
            Outcome::Ok
        };
        x.records += hits as u32;
        self.traffic.add_traffic(&x.request, Traffic { sent: 0, received, hits, misses });
        Ok(outcome)
    }

    /// Returns whether a key does not hold what the workload knows that it holds, and says so.
    fn holds_other(&mut self, x: &Exchange, command: u32, kind: ReplyKind, value: &[u8]) -> bool {
        // A status says that it is there, and not what it is.
        let expected = self.content.expected(&x.request).filter(|_| kind != ReplyKind::Status);
        let Some(expected) = expected else { return false };
        let found = (kind == ReplyKind::Text).then_some(value);
        if found == Some(expected) {
            return false;
        }
        let message = command_words(self.content.as_ref(), &x.request, command, expected, found);
        self.say(&message);
        true
    }

    /// Keeps a reply that later steps use, and returns whether it is as expected.
    fn meets(&mut self, x: &mut Exchange, command: u32, kind: ReplyKind, value: &[u8], length: u64) -> bool {
        let own = &self.own[usize::from(x.request.shape)].commands[command as usize];
        for kept in &own.keeps {
            let number = usize::from(kept.number);
            if x.more.replies.len() <= number {
                x.more.replies.resize(number + 1, Vec::new());
            }
            x.more.replies[number].clear();
            x.more.replies[number].extend_from_slice(value);
        }
        if own.expect.is_empty() {
            return true;
        }
        let Some(why) = own.expect.mismatch(kind, value, length) else { return true };
        let form = &self.content.commands()[usize::from(x.request.shape)].commands[command as usize];
        let message = format!("{}: {why}", String::from_utf8_lossy(form.name()));
        self.say(&message);
        false
    }

    /// Appends a recorded command.
    pub(super) fn put_recorded(&self, x: &mut Exchange, out: &mut Vec<u8>) {
        let from = out.len();
        self.content.recorded_command(&x.request, 0, out);
        let line = out[from..].split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let name = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let group = CommandGroup::of_name(name).unwrap_or(CommandGroup::Line);
        let keys = group.key_count(name, line.split(|byte| *byte == b' ').count());
        x.recorded = (group, u16::try_from(keys).unwrap_or(u16::MAX));
    }

    /// The reply to a recorded command, and the position after it. An error as it was then is no failure.
    pub(super) fn take_recorded(
        &mut self,
        x: &mut Exchange,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotMemcached> {
        // Kept from reply to reply: a new one would cost an allocation each.
        let mut reader = std::mem::take(&mut self.reader);
        reader.reset();
        let taken = self.take_recorded_by(&mut reader, x, input);
        self.reader = reader;
        taken
    }

    fn take_recorded_by(
        &mut self,
        reader: &mut ReplyReader,
        x: &mut Exchange,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotMemcached> {
        let mut end = 0;
        let Some(reply) = reader.read_reply(input, &mut end)? else { return Ok(None) };
        let (group, keys) = x.recorded;
        let (kind, size) = group.reply_facts(usize::from(keys), &reply).ok_or(NotMemcached)?;
        if kind.is_none() && group.length_place().is_some() && loses_step(reader.first_line()) {
            return Err(NotMemcached);
        }
        let error = if kind.is_none() { reader.first_word() } else { &[] };
        let as_then = self.content.compare_reply(&x.request, &ReplyFacts { kind, size, error });
        x.records += 1;
        let outcome = if kind.is_none() && !as_then { self.fail(reader.first_line()) } else { Outcome::Ok };
        Ok(Some((outcome, end)))
    }
}

/// The value of a whole reply that has one, of so many bytes: it follows the first line.
fn text_of(reply: &[u8], bytes: u64) -> &[u8] {
    let from = reply.iter().position(|byte| *byte == b'\n').map_or(reply.len(), |end| end + 1);
    &reply[from..reply.len().min(from + bytes as usize)]
}
