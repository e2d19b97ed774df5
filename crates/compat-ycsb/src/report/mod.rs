//! Everything YCSB prints: status lines, the final report in each measurement type and exporter, and its log files.
//!
//! Parsers of YCSB's output must not notice that dyno wrote it, so names, order, layout and number formats are
//! YCSB's (0.18.0-SNAPSHOT of 2026), checked against its real outputs. Nothing is printed here; callers get text or
//! hand in a writer. The way of a number:
//!
//! ```text
//! Totals --metrics()--> Metrics --report()--> [Line] --Exporter::write()--> standard output or exportfile
//!                          |--StatusLines::line()--> standard error
//!                          '--HdrFiles::interval()--> <path><METRIC>.hdr
//! ```

pub mod exporter;
pub mod forms;
pub mod hdrfiles;
pub mod java;
pub mod line;
pub mod metrics;
pub mod options;
pub mod render;
pub mod return_code;
pub mod status;

#[cfg(test)]
mod golden_tests;
