//! Templates of commands, compiled into the bytes that never change and the arguments between them.

use super::cluster::key_slot;
use super::resp::{put_array, put_bulk};
use dyno_types::Content;
use dyno_types::command::{CommandArgument, CommandForm};

/// A part of a command on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// These bytes: heads and literal arguments.
    Bytes(Vec<u8>),
    /// The argument of this number.
    Rendered(u16),
}

/// A command on the wire.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) pieces: Vec<Piece>,
    pub(super) key: Option<Key>,
    pub(super) misses: bool,
}

/// The argument that says which node has the data.
#[derive(Clone, Debug)]
pub(super) enum Key {
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
            CommandArgument::Literal(literal) => put_bulk(&mut bytes, literal),
            CommandArgument::Rendered => {
                pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                pieces.push(Piece::Rendered(number));
            }
        }
    }
    pieces.push(Piece::Bytes(bytes));
    pieces.retain(|piece| !matches!(piece, Piece::Bytes(bytes) if bytes.is_empty()));
    let key = form.key.and_then(|number| match form.arguments.get(usize::from(number))? {
        CommandArgument::Literal(literal) => Some(Key::Slot(key_slot(literal))),
        CommandArgument::Rendered => Some(Key::Rendered(number)),
    });
    Compiled { pieces, key, misses: form.misses }
}

/// The commands of a content, by the number of their template.
pub(super) fn compile(content: &dyn Content) -> Vec<Vec<Compiled>> {
    content.commands().iter().map(|template| template.commands.iter().map(compiled).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(arguments: Vec<CommandArgument>, key: Option<u16>) -> CommandForm {
        CommandForm { arguments, key, writes: true, misses: false }
    }

    #[test]
    fn what_never_changes_is_one_piece() {
        let literal = |text: &str| CommandArgument::Literal(text.as_bytes().to_vec());
        let set = form(vec![literal("SET"), CommandArgument::Rendered, literal("xxx")], Some(1));
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
