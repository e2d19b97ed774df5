//! Requests of one's own commands into bytes, replies into outcomes.

use super::cluster::key_slot;
use super::command_templates::{Compiled, Key, Piece};
use super::exchange::RedisExchange;
use super::resp::{NotResp, Token, put_bulk, read_token, skip_reply};
use super::state::RedisDriver;
use dyno_db::command_traffic::command_words;
use dyno_types::command::Traffic;
use dyno_types::{Outcome, Request};

impl RedisDriver {
    /// Commands of a command request.
    pub(super) fn own_commands(&self, request: &Request) -> u32 {
        self.commands[usize::from(request.shape)].len() as u32
    }

    fn own(&self, request: &Request, command: u32) -> &Compiled {
        &self.commands[usize::from(request.shape)][command as usize]
    }

    /// The slot of a command's key; `None` where any node will do.
    pub(super) fn own_slot(&mut self, request: &Request, command: u32) -> Option<u16> {
        match self.own(request, command).key.as_ref()? {
            Key::Slot(slot) => Some(*slot),
            Key::Rendered(number) => {
                let number = *number;
                self.scratch.clear();
                self.content.argument(request, command, number, &mut self.scratch);
                Some(key_slot(&self.scratch))
            }
        }
    }

    /// Appends a command of a command request.
    pub(super) fn put_own(&mut self, request: &Request, command: u32, out: &mut Vec<u8>) {
        let own = &self.commands[usize::from(request.shape)][command as usize];
        let before = out.len();
        for piece in &own.pieces {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Rendered(number) => {
                    self.scratch.clear();
                    self.content.argument(request, command, *number, &mut self.scratch);
                    put_bulk(out, &self.scratch);
                }
            }
        }
        self.traffic
            .add_traffic(request, Traffic { sent: (out.len() - before) as u64, ..Traffic::default() });
    }

    /// The reply to a command of a command request, and the position after it.
    pub(super) fn take_own(
        &mut self,
        x: &mut RedisExchange,
        command: u32,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some((found, next)) = read_token(input, 0)? else { return Ok(None) };
        // An empty text is what a part of a value that is not there looks like.
        let is_empty = matches!(found, Token::Null | Token::Array(0) | Token::Map(0) | Token::Bulk(b""));
        let reads = self.own(&x.request, command).misses;
        let missed = reads && is_empty;
        let (outcome, end) = match found {
            Token::Error(text) => (self.fail(text), next),
            Token::Array(_) | Token::Map(_) | Token::Push(_) | Token::Attribute(_) => {
                let Some(end) = skip_reply(input, 0)? else { return Ok(None) };
                (Outcome::Ok, end)
            }
            _ => match self.content.expected(&x.request) {
                Some(expected) if !matches!(found, Token::Bulk(value) if value == expected) => {
                    let value = if let Token::Bulk(value) = found { Some(value) } else { None };
                    let words = command_words(self.content.as_ref(), &x.request, command, expected, value);
                    self.say(&words);
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
        x.records += u32::from(outcome.is_ok() && !missed);
        let (hits, misses) = (u64::from(reads && outcome.is_ok() && !missed), u64::from(missed));
        self.traffic.add_traffic(&x.request, Traffic { sent: 0, received: end as u64, hits, misses });
        Ok(Some((outcome, end)))
    }
}
