//! MongoDB by the official Rust driver, as an application uses it: the same requests as `crate::protocol` sends, with
//! every authentication and topology the driver supports.
//!
//! `options` reads the URI, `deployment` connects and asks the server what it is, `store` is the [`dyno_types::Store`]
//! of one job: one client, whose pool has a connection for each user. `session` does what YCSB asks for, `documents`
//! the operations on documents, `render` makes the driver's documents of a content's operands, `errors` the outcomes.
//!
//! ```text
//! OfficialOptions --Official::open--> Official --OfficialStore::new--> OfficialStore --session()--> one per user
//! ```
//!
//! The driver is asynchronous and has a runtime of its own here; a session blocks its thread until an operation ends,
//! as the driver's own synchronous interface does.

mod deployment;
mod documents;
mod errors;
mod options;
mod render;
mod session;
mod shapes;
mod store;

pub use deployment::Official;
pub use errors::OfficialFailure;
pub use options::OfficialOptions;
pub use store::OfficialStore;

/// The driver and its version, for the report.
pub const DRIVER: &str = concat!("official, mongodb ", env!("DYNO_MONGODB_VERSION"));
