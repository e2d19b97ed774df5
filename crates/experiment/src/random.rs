//! Random names, and passwords that the user has not given.

use crate::experiment_error::ExperimentError;
use dyno_config::server::{ServerSpec, Setting};
use dyno_localhost::error::LocalError;

/// So many random bytes as hexadecimal digits.
pub(super) fn random(count: usize) -> Result<String, ExperimentError> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|e| LocalError::failed_step("no random numbers", e))?;
    Ok(hex::encode(bytes))
}

/// A name for the objects of one run in a cluster.
pub fn random_name() -> Result<String, LocalError> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|e| LocalError::failed_step("no random numbers", e))?;
    Ok(format!("dyno-{}", hex::encode(bytes)))
}

/// Adds a password, where any client that reaches the address could come in without one.
pub(super) fn secured(server: &ServerSpec) -> Result<ServerSpec, ExperimentError> {
    let mut own = server.clone();
    if let Some(option) = server.lacks_password() {
        own.options.insert(option.into(), Setting::Text(random(16)?));
    }
    Ok(own)
}
