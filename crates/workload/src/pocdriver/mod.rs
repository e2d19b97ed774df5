//! POCDriver's workload: documents of generated fields under `_id`s `{w: worker, i: sequence}`, written in bulks, and
//! queried and updated by the worker that wrote them.
//!
//! ```text
//! config --> Shape of the document (template) --> PocWorkload: one user is one worker
//!   an arrival is what reaches the server: a query, or a bulk of all writes queued since the last one;
//!   a bulk is a script of runs (inserts, updates, ...), each one command
//! ```
//!
//! Things that the original gets wrong are right here by default: writes still queued at the end are sent (as the last arrivals
//! of a worker with a known number of iterations), keys are chosen uniformly or by a zipfian over existing ones and not
//! by the clock, sequence numbers have 64 bits up to the limit of an int32, array updates are done, updates of several
//! fields use up no sequence number, several collections are found again.

mod config;
mod content;
mod operation_counts;
mod template;
mod text;
mod worker;
mod worker_state;

pub use config::{Choice, PocConfig, Step, WeightMeaning, Weights};
pub use content::PocContent;
pub use operation_counts::AcknowledgedCounts;
pub use template::{FieldKind, Template};
pub use worker::PocWorkload;

#[cfg(test)]
mod tests;
