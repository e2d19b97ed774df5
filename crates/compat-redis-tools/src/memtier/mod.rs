//! memtier_benchmark.
//!
//! `flags` lists what it takes, `args` and `modes` read words into settings, `words` splits commands as redis-cli does, `target`
//! names the server, `import` reads files of records, `plan` makes the load of the settings, `report` prints what came of it,
//! `json` writes the same as memtier's file, `hdr` writes histograms, `client_stats` the seconds of clients, `statsd` tells a
//! server.

mod args;
mod client_stats;
mod flags;
mod hdr;
mod import;
mod json;
mod modes;
mod plan;
mod report;
mod statsd;
mod target;
mod words;

pub use args::{Breakdown, Import, Parsed, Refusal, Settings, Staircase, Statsd, parse};
pub use client_stats::{ClientFile, client_files};
pub use flags::help;
pub use hdr::{HdrFile, hdr_files};
pub use import::records;
pub use json::json;
pub use plan::{TableRow, load, rows, verification};
pub use report::{MemtierRun, RequestSecond, RequestTotals, Verified, progress, report, verification_report};
pub use statsd::RunSecond;

#[cfg(test)]
mod tests;
