//! Commands of MongoDB in a replay: which are sent, what becomes of their bodies, and which cursors of now are those of then.
//!
//! A recorded command has three words: its name, its database, and its body as one BSON document.

mod body;
mod commands;
pub(super) mod cursors;
pub(super) mod mongodb_rules;

pub(super) use body::command_words;
pub(super) use commands::{CommandReader, Document, LeftOut, ReadCommand};
