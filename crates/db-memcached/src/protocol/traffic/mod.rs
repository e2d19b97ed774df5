//! Traffic that others have made: what their commands are about, and what comes back, without its bytes.
//!
//! `command` sorts commands by the replies that they may get, `reply` reads replies from a stream that is cut anywhere. Both text
//! protocols may take turns on one connection.

mod command;
mod reply;

pub use command::{CommandGroup, is_command_head};
pub use reply::{ReplyReader, ReplyShape, SkippedReply};
