//! Reasons for which a case cannot be carried out.

use crate::plan::window::WindowError;
use dyno_config::properties::PropertiesError;
use dyno_types::Refused;

/// A case that cannot be carried out as it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum LowerError {
    /// Variables or options that exclude each other or are not offered.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The windows of traces are not understood.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The file of properties cannot be read.
    #[error("WORKLOAD_FILE: {name}: {source}")]
    WorkloadFile {
        /// Name as given.
        name: String,
        /// Cause.
        source: PropertiesError,
    },
}
