//! Programs that dyno starts: they do not inherit its password variables.

use crate::secret;
use std::ffi::OsStr;
use std::process::Command;

/// A command whose program does not see the variables of `DYNO_` with a secret's name, such as `DYNO_REDIS_PASSWORD`, nor those
/// that `--password-from env:NAME` named.
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // A dyno that is started again from here starts no turn of a comparison.
    command.env_remove("DYNO_TURN_OF");
    let own = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let own = own.filter(|name| name.starts_with("DYNO_") && (secret::is_secret(name) || is_address(name)));
    for name in own.chain(secret::variables()) {
        command.env_remove(name);
    }
    command
}

/// Returns whether a variable names a database, with its login.
fn is_address(name: &str) -> bool {
    name.ends_with("_URI") || name.ends_with("_URL")
}
