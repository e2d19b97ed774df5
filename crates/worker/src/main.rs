//! `dyno-worker`: what dyno starts on other hosts and in pods, without anything else.

use clap::{Parser, Subcommand};
use dyno_compat_pocdriver::WorkFrontEnd;
use dyno_types::secret::{conceal, remember_arguments};
use dyno_worker::args::{HostArgs, PlaceArgs, PodArgs, RelayArgs, TendArgs, WorkerArgs};
use dyno_worker::{WorkerError, host, outlive_long_files, place, pod, relay, tend, worker};
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// Applies load and starts servers for a dyno elsewhere, which starts this program and speaks to it.
#[derive(Parser)]
#[command(name = "dyno-worker", version)]
struct WorkerCli {
    #[command(subcommand)]
    command: WorkerCommand,
}

#[derive(Subcommand)]
enum WorkerCommand {
    /// Apply load as a controller says
    Worker(WorkerArgs),
    /// Do on this host what a controller elsewhere asks for
    Host(HostArgs),
    /// Wait in a pod for a controller to speak to it
    Pod(PodArgs),
    /// Write how a server is started on the cores of its node
    Place(PlaceArgs),
    /// Change settings of a server's host for a time, and remove its data at the end
    Tend(TendArgs),
    /// Carry what a controller and the pods of its run say to each other
    Relay(RelayArgs),
}

/// Says something to the process that started this one: standard error is kept by the controller.
fn warn(text: &str) {
    say("warning", text);
}

fn say(mark: &str, text: &str) {
    // A controller that has closed standard error does not want to hear it.
    let _ = writeln!(stderr(), "{mark}: {}", conceal(text));
}

/// Prints for the log of a pod.
fn print(text: &str) {
    // Without a log nothing can be said.
    let _ = stdout().write_all(text.as_bytes());
}

fn main() -> ExitCode {
    outlive_long_files();
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    remember_arguments(&words);
    // What is logged goes to the controller.
    dyno_rundir::log::begin(Vec::new(), None);
    let ended = match WorkerCli::parse().command {
        // A worker's signals are its controller's business: it ends with its pipe.
        WorkerCommand::Worker(args) => worker(&args, WorkFrontEnd { warn, interrupted: || false }),
        WorkerCommand::Host(args) => host(&args),
        WorkerCommand::Pod(args) => pod(&args, print),
        WorkerCommand::Place(args) => place(&args),
        WorkerCommand::Tend(args) => tend(&args, print),
        WorkerCommand::Relay(args) => relay(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say("error", &error.to_string());
            // Exit codes of dyno: 2 is wrong usage, 1 anything else.
            ExitCode::from(if matches!(error, WorkerError::Refused(_)) { 2 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerCli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_whole() {
        WorkerCli::command().debug_assert();
    }
}
