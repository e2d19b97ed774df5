//! Run and experiment directories in forms that other programs read, from the files alone.
//!
//! ```text
//! directory --Source::open()--> runs with their levels
//!   --intervals()--> Table, one row an interval and operation     --csv()-->     text
//!   --runs()------> Table, one row a run                          --parquet()--> bytes
//!   --workbook()--> a spreadsheet: the lab's columns, charts, a pivot of two factors
//!   --originals::*--> what YCSB, sysbench-mongodb, POCDriver, the WSF and bexhoma print
//! ```

pub mod intervals;
pub mod originals;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod pivot;
pub mod runs;
pub mod source;
pub mod table;
#[cfg(feature = "xlsx")]
pub mod workbook;

#[cfg(test)]
mod tests;

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A directory could not be read.
    #[error(transparent)]
    Read(#[from] dyno_rundir::ReadError),
    /// The runs do not hold what the form needs.
    #[error("{0}")]
    Lacking(String),
    /// A writer of a format failed.
    #[error("{format}: {source}")]
    Format {
        /// Which.
        format: &'static str,
        /// Error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
