//! YCSB's command line: `dyno ycsb <load|run|shell> <binding> [options]`, as `bin/ycsb` and `site.ycsb.Client` take it.
//!
//! ```text
//! load redis -P workloads/workloada -p redis.host=h -threads 8 --out DIR
//! |    |     |                      |               |          our own, two dashes
//! |    |     file or built-in       split at first = YCSB's flags, one dash, value in the next argument
//! |    binding                      all -P lose to all of the command line, wherever they stand
//! phase: wins over -load and -t
//! ```
//!
//! `arguments` goes through the arguments, `flags` lists the flags, `files` finds what `-P` names, `error` holds every
//! refusal in our words and in YCSB's. Where YCSB keeps silent (unknown properties, passwords that all users of the host can
//! see, flags without effect) a note is made.

pub mod arguments;
mod command;
pub mod error;
pub mod files;
mod flags;

pub use command::{Extras, Mode, YcsbCommand};

use crate::known;
use crate::plan::error::YcsbError;
use dyno_config::settings::{PropertySettings, Source, unknown_property};
use dyno_types::secret::{MASK, mask_value};

/// A command line: help, or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// The usage text.
    Help,
    /// Something to do.
    Command(Box<YcsbCommand>),
}

/// Reads the arguments after `dyno ycsb`, and the files that they name.
pub fn parse(arguments: &[String]) -> Result<Invocation, YcsbError> {
    let Some(taken) = arguments::take(arguments)? else { return Ok(Invocation::Help) };
    let mut command = taken.finish()?;
    let warnings = passwords(&command.settings).chain(unknown(&command.settings));
    command.notes.extend(warnings.collect::<Vec<_>>());
    Ok(Invocation::Command(Box::new(command)))
}

/// Returns whether `--compat-exit` stands among `arguments`; for when they cannot be understood.
pub fn wants_compat_exit(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "--compat-exit")
}

fn passwords(settings: &PropertySettings) -> impl Iterator<Item = String> + '_ {
    let typed = settings.iter().filter(|(_, setting)| setting.source == Source::CommandLine);
    let secret = typed.filter(|(key, setting)| mask_value(key, &setting.value) != setting.value);
    secret.map(|(key, _)| {
        let variable = crate::bindings::ENVIRONMENT.iter().find(|(_, known)| *known == key);
        let instead = variable.map_or(String::new(), |(variable, _)| format!(" or in ${variable}"));
        format!("-p {key}={MASK}: every user of this machine can see it in the process list; put it in a -P file{instead}")
    })
}

fn unknown(settings: &PropertySettings) -> impl Iterator<Item = String> + '_ {
    let known = known::all();
    settings.iter().filter_map(move |(key, setting)| {
        let names = || known.iter().map(|p| p.name.as_ref());
        let read = known::is_foreign(key) || names().any(|name| name == key);
        (!read).then(|| unknown_property(key, &setting.source, names()))
    })
}

#[cfg(test)]
mod tests;
