//! Other formats: export of runs as tables and spreadsheets, import of what other tools have written.

pub mod export;
pub mod import;
