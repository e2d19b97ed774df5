//! `dyno completions`: made from the command line's own description.

use crate::args::command;
use crate::exit::{Exit, Failure};
use crate::options::CompletionsArgs;
use crate::terminal;

/// The command.
pub fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "dyno", &mut text);
    terminal::out(&String::from_utf8_lossy(&text));
    Ok(Exit::Ok)
}
