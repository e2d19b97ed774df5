//! MongoDB and what speaks its protocol.
//!
//! `message` frames, `compress` packs, `options` holds everything a URI can set, `scram` proves passwords, `greeting`
//! is the conversation on a new connection, `command` turns requests into commands (`records`: those of YCSB), `reply`
//! turns replies into outcomes (`recorded_reply`: into what recordings keep of them), `session` numbers writes, `retry` says
//! what may be sent again, `srv` takes hosts from DNS, `description` is what a server says of itself, `topology` follows all
//! servers of a deployment, `deployment` adds their endpoints (`names`: hosts that are looked up during a run), `selection`
//! chooses among them, `driver` ties them together (`exchange`: an operation in flight), `facts` asks a server what it is.

mod command;
pub mod compress;
mod deployment;
mod description;
mod driver;
mod errors;
mod exchange;
mod facts;
mod greeting;
pub mod message;
mod options;
pub mod recorded_reply;
mod records;
mod reply;
mod retry;
pub mod scram;
mod selection;
mod session;
mod srv;
mod topology;

pub use deployment::Deployment;
pub use description::{Limits, ServerDescription, ServerType, Tags, TopologyVersion};
pub use driver::MongoDriver;
pub use errors::{ServerError, StateChange, classify_code, describe_error, error_labels, is_ok};
pub use exchange::MongoExchange;
pub use facts::{DefaultWriteConcern, MongoFacts, QUESTIONS};
pub use greeting::{put_command, take_document};
pub use options::{Auth, MongoOptions, ServerApi, WriteConcern};
pub use retry::{RetryAdvice, Retryable};
pub use scram::Mechanism;
pub use selection::{ReadPreference, Selection, nearest_servers, suitable_servers};
pub use srv::Srv;
pub use topology::{ApplicationError, Handshake, Topology, TopologyServer, TopologyType, WIRE_VERSIONS};
