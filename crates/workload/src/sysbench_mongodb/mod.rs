//! sysbench-mongodb: the loader's documents and the 18 commands of its transaction, bit for bit.
//!
//! ```text
//! config --> SysbenchLoad   index -> collection;  bind takes the collection's next batch under its lock (a fast scan
//!        |                  of the generator), the load thread writes the documents from the batch's own state
//!        '-> SysbenchRun    user -> its own generator; a transaction is a script, each request carries the
//!                           generator's state before its own draws
//! ```
//!
//! `generator` makes documents, `content` renders requests, `shapes` lists the commands. Two dialects: the version of
//! 2015 writes 32-bit `_id`s when loading, the last one 64-bit; both insert 32-bit ones in transactions.

mod config;
mod content;
mod generator;
mod load;
mod run;
mod shapes;

pub use config::{Counts, Dialect, Sharding, Streams, SysbenchConfig, UNLIMITED_TPS};
pub use content::SysbenchContent;
pub use generator::{Generator, IdKind};
pub use load::SysbenchLoad;
pub use run::SysbenchRun;
pub use shapes::Command;

/// Name and field of the secondary index, which is made before loading.
pub const INDEX: (&str, &str) = ("k_1", "k");

/// Metric of the loader: one insert of a batch.
pub const LOAD_METRIC: &str = "INSERT";

/// Metric of a whole transaction.
pub const TRANSACTION: &str = "TRANSACTION";

#[cfg(test)]
mod tests;
