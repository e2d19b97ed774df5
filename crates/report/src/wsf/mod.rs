//! What the Workload Services Framework's Mongo-YCSB workload leaves behind: each client's log in YCSB's words, KPIs in the
//! framework's grammar, and statistics of KPIs over iterations.
//!
//! ```text
//! Summary's pairs --client_log()--> output.logs --read_log()--> ClientKpis
//! ClientKpis of all clients + Together --kpi_text()--> kpi.txt --read_kpis()--> [Kpi] --statistics()--> list, CSV
//! ```
//!
//! Logs of the framework itself are read by the same functions.

mod client;
mod grammar;
mod kpis;
mod list;

#[cfg(test)]
mod tests;

pub(crate) use client::lines;
pub use client::{ClientKpis, Half, Operation, client_log, read_log};
pub use grammar::{Kpi, Kpis, read_kpis};
pub use kpis::{Together, Windowed, kpi_text};
pub use list::{Axes, Iteration, Listing, NoParameter, csv, list, pivot};
