//! Why a command of YCSB's could not be carried out.

use crate::plan::error::YcsbError;
use dyno_config::settings::BadSetting;
use dyno_frontend::exit::Failure;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum YcsbFailure {
    /// The command line or a property was refused.
    #[error(transparent)]
    Command(#[from] YcsbError),
    /// Anything later.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<BadSetting> for YcsbFailure {
    fn from(bad: BadSetting) -> Self {
        YcsbFailure::Command(YcsbError::Setting(bad))
    }
}
