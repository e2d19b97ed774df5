//! An experiment with the files that it names in it, for workers on other hosts.

use crate::work::{commands, rates};
use dyno_config::experiment::Experiment;
use dyno_types::Refused;

/// The same experiment for workers on other hosts, which have none of its files: the texts of its commands and the files of its
/// rates go with it.
///
/// # Errors
/// Names the file that cannot be read, or is no text.
pub fn with_texts(spec: &Experiment) -> Result<Experiment, Refused> {
    let mut whole = spec.clone();
    commands::add_command_texts(&mut whole)?;
    rates::add_rate_files(&mut whole)?;
    Ok(whole)
}
