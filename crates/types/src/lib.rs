//! Parts that every room of dyno shares: units, requests, outcomes, the counter-based generator, the limits, and the
//! traits by which the engine meets a database.
//!
//! Nothing here does input or output, reads a clock or depends on another crate of the workspace. [`child`] and [`secret`] know
//! the environment and the secrets of this process.

pub mod address;
pub mod bounded;
pub mod bson;
pub mod child;
pub mod command;
pub mod content;
pub mod database_series;
pub mod document;
pub mod driver;
pub mod host_facts;
pub mod host_header;
pub mod key_rule;
pub mod limits;
pub mod metric;
pub mod mongod;
pub mod outcome;
pub mod percent;
pub mod refused;
pub mod request;
pub mod rng;
pub mod secret;
pub mod shell;
pub mod stats;
pub mod suggest;
pub mod sync;
pub mod system_error;
pub mod units;

pub use content::Content;
pub use driver::{
    ConnectionStep, Decoded, Driver, Endpoint, Executed, GreetingStep, ReceivedMessage, RecordVerification,
    Store, StoreSession, Then,
};
pub use outcome::Outcome;
pub use refused::{RefusalCode, Refused};
pub use request::{Fields, Request, Verb};
