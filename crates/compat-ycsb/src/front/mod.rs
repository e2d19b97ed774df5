//! `dyno ycsb load|run|shell BINDING ...`: takes YCSB's command lines and prints what YCSB prints, so that
//! scripts and parsers made for it go on working.
//!
//! ```text
//! arguments --crate::plan--> command --crate::work--> job, measurement options --run--> session
//!                                                        watch: status lines, .hdr files, as it goes
//!                                                        output: the report, at the end
//! ```
//!
//! `shell` holds the interactive client. Without `--compat-exit` exit codes are dyno's own ([`dyno_frontend::exit`]).

mod audit;
mod help;
mod output;
mod run;
mod shell;
mod watch;
mod ycsb_failure;

use crate::plan::{Invocation, Mode, parse, wants_compat_exit};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_types::secret::mask_arguments;
use std::process::ExitCode;
use ycsb_failure::YcsbFailure;

/// The command.
pub fn ycsb(arguments: &[String]) -> ExitCode {
    let compat = wants_compat_exit(arguments);
    match carry_out(arguments) {
        // YCSB ends well whatever became of its operations.
        Ok(Exit::Invalid | Exit::Threshold) if compat => ExitCode::SUCCESS,
        Ok(exit) => exit.unless_output_lost().into(),
        Err(trouble) => refuse(&trouble, compat),
    }
}

fn carry_out(arguments: &[String]) -> Result<Exit, YcsbFailure> {
    let command = match parse(arguments)? {
        Invocation::Help => {
            terminal::out(&help::text());
            return Ok(Exit::Ok);
        }
        Invocation::Command(command) => *command,
    };
    match command.mode {
        Mode::Load | Mode::Run => {
            let shown = mask_arguments(arguments);
            let shown = if command.extras.compat_exit { command.as_original(&shown) } else { shown };
            run::run(command, &shown.join(" "))
        }
        Mode::Shell => shell::shell(command),
    }
}

/// Says what is wrong, in YCSB's words and with its code if `compat`.
fn refuse(trouble: &YcsbFailure, compat: bool) -> ExitCode {
    match trouble {
        YcsbFailure::Command(error) if compat => {
            let original = error.as_original();
            match original.message {
                Some(message) => terminal::out(&format!("{message}\n")),
                None => terminal::error(&error.to_string()),
            }
            ExitCode::from(original.exit)
        }
        YcsbFailure::Command(error) => {
            terminal::error(&error.to_string());
            Exit::Usage.into()
        }
        YcsbFailure::Failed(failure) => {
            terminal::error(&failure.to_string());
            match failure {
                // Threads that cannot connect die of it in YCSB, and the run "succeeds".
                Failure::Unreachable(_) if compat => ExitCode::SUCCESS,
                Failure::Usage(_) if compat => Exit::Internal.into(),
                failure => failure.exit().into(),
            }
        }
    }
}
