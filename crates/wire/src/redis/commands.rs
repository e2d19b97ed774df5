//! Commands of one's own: compiled once into the bytes that never change and the arguments between them.

use super::cluster::key_slot;
use super::exchange::Exchange;
use super::resp::{NotResp, Token, put_array, put_bulk, skip, token};
use super::state::RedisDriver;
use dyno_types::command::{Argument, CommandForm, Traffic};
use dyno_types::{Content, Outcome, Request};
use std::sync::Arc;

/// A part of a command on the wire.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// These bytes: heads and literal arguments.
    Bytes(Vec<u8>),
    /// The argument of this number.
    Rendered(u16),
}

/// A command on the wire.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pieces: Vec<Piece>,
    key: Option<Key>,
    misses: bool,
}

/// The argument that says which node has the data.
#[derive(Clone, Debug)]
enum Key {
    /// Always in this slot.
    Slot(u16),
    Rendered(u16),
}

fn compiled(form: &CommandForm) -> Compiled {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    put_array(&mut bytes, form.arguments.len());
    for (number, argument) in (0..).zip(&form.arguments) {
        match argument {
            Argument::Literal(literal) => put_bulk(&mut bytes, literal),
            Argument::Rendered => {
                pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                pieces.push(Piece::Rendered(number));
            }
        }
    }
    pieces.push(Piece::Bytes(bytes));
    pieces.retain(|piece| !matches!(piece, Piece::Bytes(bytes) if bytes.is_empty()));
    let key = form.key.and_then(|number| match form.arguments.get(usize::from(number))? {
        Argument::Literal(literal) => Some(Key::Slot(key_slot(literal))),
        Argument::Rendered => Some(Key::Rendered(number)),
    });
    Compiled { pieces, key, misses: form.misses }
}

/// Commands and replies between two reports of their bytes.
const REPORTED: u32 = 1_024;

/// What was exchanged for each template and not reported yet.
pub(super) struct Unreported {
    content: Arc<dyn Content>,
    all: Vec<Traffic>,
    counted: u32,
}

impl Unreported {
    pub(super) fn of(content: &Arc<dyn Content>) -> Self {
        let all = vec![Traffic::default(); content.commands().len()];
        Unreported { all, content: content.clone(), counted: 0 }
    }

    fn add(&mut self, template: u16, more: Traffic) {
        let own = &mut self.all[usize::from(template)];
        *own = Traffic {
            sent: own.sent + more.sent,
            received: own.received + more.received,
            misses: own.misses + more.misses,
        };
        self.counted += 1;
        if self.counted >= REPORTED {
            self.report();
        }
    }

    fn report(&mut self) {
        self.counted = 0;
        for (template, own) in (0..).zip(&mut self.all) {
            self.content.exchanged(template, std::mem::take(own));
        }
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        self.report();
    }
}

/// The commands of a content, by the number of their template.
pub(super) fn compile(content: &dyn Content) -> Vec<Vec<Compiled>> {
    content.commands().iter().map(|template| template.commands.iter().map(compiled).collect()).collect()
}

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
        self.traffic.add(request.shape, Traffic { sent: (out.len() - before) as u64, ..Traffic::default() });
    }

    /// The reply to a command of a command request, and the position after it.
    pub(super) fn take_own(
        &mut self,
        x: &mut Exchange,
        command: u32,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some((found, next)) = token(input, 0)? else { return Ok(None) };
        let is_missed = |found: &Token<'_>| matches!(found, Token::Null | Token::Array(0) | Token::Map(0));
        let missed = is_missed(&found) && self.own(&x.request, command).misses;
        let (outcome, end) = match found {
            Token::Error(text) => (self.fail(text), next),
            Token::Array(_) | Token::Map(_) | Token::Push(_) | Token::Attribute(_) => {
                let Some(end) = skip(input, 0)? else { return Ok(None) };
                (Outcome::Ok, end)
            }
            _ => (Outcome::Ok, next),
        };
        x.records += u32::from(outcome.is_ok() && !missed);
        let misses = u64::from(missed);
        self.traffic.add(x.request.shape, Traffic { received: end as u64, misses, ..Traffic::default() });
        Ok(Some((outcome, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(arguments: Vec<Argument>, key: Option<u16>) -> CommandForm {
        CommandForm { arguments, key, writes: true, misses: false }
    }

    #[test]
    fn what_never_changes_is_one_piece() {
        let literal = |text: &str| Argument::Literal(text.as_bytes().to_vec());
        let set = form(vec![literal("SET"), Argument::Rendered, literal("xxx")], Some(1));
        let found = compiled(&set);
        assert_eq!(
            found.pieces,
            [
                Piece::Bytes(b"*3\r\n$3\r\nSET\r\n".to_vec()),
                Piece::Rendered(1),
                Piece::Bytes(b"$3\r\nxxx\r\n".to_vec())
            ]
        );
        assert!(matches!(found.key, Some(Key::Rendered(1))));
        let ping = compiled(&form(vec![literal("PING")], None));
        assert_eq!(ping.pieces, [Piece::Bytes(b"*1\r\n$4\r\nPING\r\n".to_vec())]);
        let fixed = compiled(&form(vec![literal("LPUSH"), literal("mylist")], Some(1)));
        assert!(matches!(fixed.key, Some(Key::Slot(slot)) if slot == key_slot(b"mylist")));
    }
}
