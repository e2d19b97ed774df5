//! `dyno init`: an experiment to begin with, as a file.

use super::preview::preset_named;
use crate::options::InitArgs;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_presets::INIT;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// The command.
pub fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let text = match &args.preset {
        None => INIT.to_owned(),
        Some(name) => preset_named(name)?.text(None).map_err(Failure::usage)?,
    };
    let path = args.out.display();
    let refused = |e: std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{path} is there already: name another file with --out"))
        }
        _ => Failure::usage(format!("{path}: {e}")),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(&args.out).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(refused)?;
    terminal::out(&format!(
        "{path} is written. Look at it, then:\n\n  dyno plan {path}\n  dyno run {path}\n"
    ));
    Ok(Exit::Ok)
}
