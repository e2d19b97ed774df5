//! MongoDB and what speaks its protocol.
//!
//! `message` frames, `compress` packs, `options` holds everything a URI can set, `scram` proves passwords, `greeting`
//! is the conversation on a new connection, `command` turns requests into commands (`records`: those of YCSB), `reply`
//! turns replies into outcomes, `session` numbers writes, `srv` takes hosts from DNS, `deployment` knows nodes and
//! `selection` chooses among them, `driver` ties them together (`exchange`: an operation in flight), `facts` asks a
//! server what it is.

mod command;
pub mod compress;
mod deployment;
mod driver;
mod errors;
mod exchange;
mod facts;
mod greeting;
pub mod message;
mod options;
mod records;
mod reply;
pub mod scram;
mod selection;
mod session;
mod srv;

pub use deployment::Deployment;
pub use driver::MongoDriver;
pub use errors::{ServerError, classify, describe, is_ok};
pub use exchange::Exchange;
pub use facts::{DefaultWriteConcern, Facts, QUESTIONS};
pub use greeting::{put_command, take_document};
pub use options::{Auth, MongoOptions, ServerApi, WriteConcern};
pub use scram::Mechanism;
pub use selection::{Member, ReadPreference, Role, Selection, Tags, eligible};
pub use srv::Srv;
