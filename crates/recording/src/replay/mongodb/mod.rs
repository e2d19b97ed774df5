//! Commands of MongoDB in a replay: which are sent, what becomes of their bodies, and which cursors of now are those of then.
//!
//! A recorded command has three words: its name, its database, and its body as one BSON document.

mod body;
mod commands;
pub(super) mod cursors;
pub(super) mod mongodb_rules;

pub(super) use body::command_words;
pub(super) use commands::{CommandReader, Document, LeftOut, ReadCommand};

use super::options::ReplayOptions;
use crate::entry::Arguments;

/// The body of a recorded command as a replay sends it, or why it does not.
///
/// # Errors
/// It is not sent by itself, or not well-formed.
pub fn sent_document(options: &ReplayOptions, arguments: &Arguments) -> Result<Vec<u8>, &'static str> {
    const BROKEN: &str = "no document";
    mongodb_rules::reason_against(options, arguments).map_or(Ok(()), Err)?;
    let (name, database, body) = mongodb_rules::parts_of(arguments).ok_or(BROKEN)?;
    let sent = body::sent_body(name, database, body, options.replay_number).map_err(|_| BROKEN)?;
    Ok(sent.bytes)
}
