//! MongoDB and what speaks its protocol.
//!
//! `message` frames, `compress` packs, `options` holds everything a URI can set, `scram` proves passwords, `greeting`
//! is the conversation on a new connection, `command` turns requests into commands (`records`:
//! those of YCSB), `reply` turns replies into
//! outcomes, `session` numbers writes, `srv` takes hosts from DNS, `driver` ties them together, `facts` asks a server what it is.

mod command;
pub mod compress;
mod driver;
mod errors;
mod facts;
mod greeting;
pub mod message;
mod options;
mod records;
mod reply;
mod scram;
mod session;
mod srv;

pub use driver::{Deployment, Exchange, MongoDriver};
pub use errors::{classify, describe, is_ok};
pub use facts::{Facts, QUESTIONS};
pub use greeting::{put_command, take_document};
pub use options::{Auth, MongoOptions, ReadPreference, WriteConcern};
pub use scram::Mechanism;
pub use srv::Srv;
