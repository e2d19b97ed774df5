//! The Workload Services Framework: its cases and variables as experiments, and the logs that it leaves.

pub mod folder;
pub mod front;
pub mod plan;
pub mod report;

dyno_frontend::usage_errors!(
    crate::plan::ResolveError,
    crate::plan::cases::CaseError,
    crate::plan::lower::error::LowerError,
    crate::plan::sets::SetError
);
