//! Requests of one's own commands and of recorded ones into bytes, replies into outcomes.

use super::driver::{Exchange, MemcachedDriver};
use super::errors::loses_step;
use super::own::CommandKind;
use super::reply::{NotMemcached, Reply, read_reply, values};
use super::traffic::{CommandGroup, ReplyReader};
use dyno_db::command_traffic::command_words;
use dyno_types::command::{CommandArgument, ReplyFacts, Traffic};
use dyno_types::{Outcome, Request};
use dyno_workload::keys::push_decimal;

impl MemcachedDriver {
    /// Appends an argument of a request's command.
    fn put_argument(&self, request: &Request, number: u16, out: &mut Vec<u8>) {
        match &self.own[usize::from(request.shape)].arguments[usize::from(number)] {
            CommandArgument::Literal(bytes) => out.extend_from_slice(bytes),
            // Those that use replies are refused when templates are compiled.
            CommandArgument::Rendered | CommandArgument::Follows => {
                self.content.argument(request, 0, number, out)
            }
        }
    }

    /// Appends the key of a command that says which server it goes to.
    pub(super) fn put_own_key(&self, request: &Request, out: &mut Vec<u8>) {
        self.put_argument(request, 1, out);
    }

    /// Appends a request's command.
    pub(super) fn put_own(&mut self, request: &Request, out: &mut Vec<u8>) {
        let before = out.len();
        let own = &self.own[usize::from(request.shape)];
        match own.kind {
            CommandKind::Set => {
                out.extend_from_slice(b"set ");
                for number in 1..4 {
                    self.put_argument(request, number, out);
                    out.push(b' ');
                }
                let mut value = std::mem::take(&mut self.value);
                value.clear();
                self.put_argument(request, 4, &mut value);
                push_decimal(value.len() as u64, out);
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(&value);
                self.value = value;
            }
            CommandKind::Get(keys) => {
                out.extend_from_slice(b"get");
                for number in 1..=keys as u16 {
                    out.push(b' ');
                    self.put_argument(request, number, out);
                }
            }
        }
        out.extend_from_slice(b"\r\n");
        let sent = (out.len() - before) as u64;
        self.traffic.add_traffic(request, Traffic { sent, ..Traffic::default() });
    }

    /// The reply to a request's command, and the position after it.
    pub(super) fn take_own(
        &mut self,
        x: &mut Exchange,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotMemcached> {
        let (mut hits, mut misses) = (0, 0);
        let (outcome, end) = match self.own[usize::from(x.request.shape)].kind {
            CommandKind::Get(keys) => {
                let Some((found, end)) = values(input)? else { return Ok(None) };
                let wrong = self.content.expected(&x.request).and_then(|expected| match read_reply(input) {
                    Ok(Some((Reply::Value { data, .. }, _))) if data == expected => None,
                    Ok(Some((Reply::Value { data, .. }, _))) => Some((expected, Some(data))),
                    _ => Some((expected, None)),
                });
                let wrong = wrong.map(|(expected, found)| {
                    command_words(self.content.as_ref(), &x.request, 0, expected, found)
                });
                match found {
                    Ok(_) if wrong.is_some() => {
                        self.say(&wrong.unwrap_or_default());
                        (Outcome::Mismatch, end)
                    }
                    Ok(found) => {
                        hits = u64::from(found);
                        misses = u64::from(keys).saturating_sub(hits);
                        let nothing = hits == 0 && self.own[usize::from(x.request.shape)].not_found;
                        (if nothing { Outcome::NotFound } else { Outcome::Ok }, end)
                    }
                    Err(text) => (self.fail(text), end),
                }
            }
            CommandKind::Set => {
                let Some((found, end)) = read_reply(input)? else { return Ok(None) };
                match found {
                    Reply::Done => (Outcome::Ok, end),
                    Reply::Error(text) if !loses_step(text) => (self.fail(text), end),
                    Reply::NotStored => {
                        self.say("the server stored nothing");
                        (Outcome::ServerError, end)
                    }
                    _ => return Err(NotMemcached),
                }
            }
        };
        x.records += hits as u32;
        self.traffic.add_traffic(&x.request, Traffic { sent: 0, received: end as u64, hits, misses });
        Ok(Some((outcome, end)))
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
