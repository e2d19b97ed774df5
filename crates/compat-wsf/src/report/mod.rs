//! The files that the Workload Services Framework's Mongo-YCSB workload leaves behind: each client's log in YCSB's words, KPIs in
//! the framework's grammar, and statistics of KPIs over iterations.
//!
//! ```text
//! Summary's pairs --client_log()--> output.logs --read_log()--> ClientKpis
//! ClientKpis of all clients + CombinedKpis --kpi_text()--> kpi.txt --read_kpis()--> [Kpi] --statistics()--> list, CSV
//! ```
//!
//! Logs of the framework itself are read by the same functions.

pub mod client;
pub mod grammar;
pub mod kpis;
pub mod list;

#[cfg(test)]
mod tests;
