//! Templates of commands, compiled into the bytes that never change and the arguments between them.

use super::cluster::key_slot;
use super::resp::{put_array, put_bulk};
use dyno_types::Content;
use dyno_types::command::{
    CommandArgument, CommandForm, CommandTemplate, KeptReply, ReplyExpectation, SentStamp,
};

/// A part of a command on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// These bytes: heads and literal arguments.
    Bytes(Vec<u8>),
    /// The argument of this number.
    Rendered(u16),
    /// The argument of this number, which uses earlier replies.
    Follows(u16),
}

/// A command on the wire.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) pieces: Vec<Piece>,
    pub(super) key: Option<Key>,
    pub(super) misses: bool,
    /// Each element of an array is one that was asked for.
    pub(super) by_element: bool,
    /// A miss is the outcome, too.
    pub(super) not_found: bool,
    /// What is looked at in its reply, where anything is.
    pub(super) look: Option<Box<ReplyLook>>,
    /// Where messages in its reply have the time at which they were sent.
    pub(super) delivery: Option<SentStamp>,
    pub(super) subscribes: bool,
    /// The same command with the script's text, for a server that does not have the script any more.
    pub(super) script: Option<Vec<Piece>>,
}

/// What is looked at in a reply.
#[derive(Clone, Debug)]
pub(super) struct ReplyLook {
    pub(super) expect: ReplyExpectation,
    pub(super) keeps: Vec<KeptReply>,
}

/// The argument that says which node has the data.
#[derive(Clone, Debug)]
pub(super) enum Key {
    /// Always in this slot.
    Slot(u16),
    Rendered(u16),
    Follows(u16),
}

/// An operation on the wire.
#[derive(Clone, Debug)]
pub(super) struct CompiledTemplate {
    pub(super) commands: Vec<Compiled>,
    /// A transaction: the command whose key says where all of it goes.
    pub(super) atomic: Option<u32>,
}

fn pieces(arguments: &[CommandArgument]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    put_array(&mut bytes, arguments.len());
    for (number, argument) in (0..).zip(arguments) {
        let piece = match argument {
            CommandArgument::Literal(literal) => {
                put_bulk(&mut bytes, literal);
                continue;
            }
            CommandArgument::Rendered => Piece::Rendered(number),
            CommandArgument::Follows => Piece::Follows(number),
        };
        pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
        pieces.push(piece);
    }
    pieces.push(Piece::Bytes(bytes));
    pieces.retain(|piece| !matches!(piece, Piece::Bytes(bytes) if bytes.is_empty()));
    pieces
}

fn compiled(form: &CommandForm) -> Compiled {
    let key = form.key.and_then(|number| match form.arguments.get(usize::from(number))? {
        CommandArgument::Literal(literal) => Some(Key::Slot(key_slot(literal))),
        CommandArgument::Rendered => Some(Key::Rendered(number)),
        CommandArgument::Follows => Some(Key::Follows(number)),
    });
    let script = form.script.as_ref().map(|body| {
        let whole = [b"EVAL".to_vec(), body.clone()].map(CommandArgument::Literal);
        pieces(&[&whole[..], form.arguments.get(2..).unwrap_or_default()].concat())
    });
    let looks = !form.expect.is_empty() || !form.keeps.is_empty();
    let look = || Box::new(ReplyLook { expect: form.expect.clone(), keeps: form.keeps.clone() });
    Compiled {
        pieces: pieces(&form.arguments),
        key,
        misses: form.misses,
        by_element: form.by_element,
        not_found: form.not_found,
        look: looks.then(look),
        delivery: form.delivery.clone(),
        subscribes: form.subscribes,
        script,
    }
}

fn template(template: &CommandTemplate) -> CompiledTemplate {
    let commands: Vec<Compiled> = template.commands.iter().map(compiled).collect();
    let keyed = commands.iter().position(|command| command.key.is_some()).unwrap_or(0);
    CompiledTemplate { commands, atomic: template.atomic.then_some(keyed as u32) }
}

/// The commands of a content, by the number of their template.
pub(super) fn compile(content: &dyn Content) -> Vec<CompiledTemplate> {
    content.commands().iter().map(template).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(arguments: Vec<CommandArgument>, key: Option<u16>) -> CommandForm {
        CommandForm { arguments, key, writes: true, ..CommandForm::default() }
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

    #[test]
    fn a_script_has_its_text_at_hand() {
        let literal = |text: &str| CommandArgument::Literal(text.as_bytes().to_vec());
        let call = vec![literal("EVALSHA"), literal("abc"), literal("1"), CommandArgument::Rendered];
        let call = CommandForm { script: Some(b"return 1".to_vec()), ..form(call, Some(3)) };
        let text = b"*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n".to_vec();
        assert_eq!(compiled(&call).script.unwrap(), [Piece::Bytes(text), Piece::Rendered(3)]);
    }
}
