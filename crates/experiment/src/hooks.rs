//! Commands around experiment, run and phase. Words go to the program as they are; no shell sees them.

use crate::experiment_error::ExperimentError;
use dyno_config::values::Span;
use dyno_engine::Control;
use dyno_localhost::machine::Machine;
use dyno_localhost::{process, undo};
use dyno_types::child;
use dyno_types::secret::mask_arguments;
use dyno_types::shell::quoted;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time that a command may take where the file does not say.
const PATIENCE: Duration = Duration::from_secs(300);

/// A command that failed.
#[derive(Debug, thiserror::Error)]
#[error("hooks.{when}: {command}: {source}")]
pub struct HookError {
    when: String,
    /// The command without secrets.
    command: String,
    source: HookFailure,
}

impl From<HookError> for ExperimentError {
    fn from(error: HookError) -> Self {
        ExperimentError::other(error)
    }
}

/// Why it failed.
#[derive(Debug, thiserror::Error)]
enum HookFailure {
    #[error("an empty command")]
    Empty,
    /// There is nowhere to write what it prints.
    #[error("{}: {source}", .path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("could not be started: {0}")]
    Start(#[source] io::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{status}; its output is in {}", .log.display())]
    Ended { status: ExitStatus, log: PathBuf },
    #[error("ended by a signal")]
    GivenUp,
    #[error("did not end within {} s", .0.as_secs_f64())]
    Late(Duration),
}

/// Runs commands one after the other; what they print goes to `hooks.log` in `dir`, what they are told of the run stands in
/// their environment. Ctrl-C ends commands of what lies ahead; those that follow something are ended by a second one.
pub(super) fn run(
    when: &str,
    commands: &[Vec<String>],
    timeout: &Option<Span>,
    dir: &Path,
    environment: &[(String, String)],
    control: &Control,
) -> Result<(), HookError> {
    let ahead = when.starts_with("before");
    let given_up = || if ahead { control.is_stopping() } else { control.is_aborting() };
    let patience = timeout.as_ref().map_or(PATIENCE, |span| Duration::from_nanos(span.0));
    for words in commands {
        let (begun, command) = (Instant::now(), quoted(&mask_arguments(words)));
        tracing::info!(hook = when, command, "a command of the file begins");
        let done = one(words, patience, dir, environment, &given_up);
        let took_ms = begun.elapsed().as_millis() as u64;
        match &done {
            Ok(()) => tracing::info!(hook = when, command, took_ms, "a command of the file has ended"),
            Err(error) => {
                tracing::warn!(hook = when, command, took_ms, %error, "a command of the file has failed")
            }
        }
        done.map_err(|source| HookError {
            when: when.to_owned(),
            command: mask_arguments(words).join(" "),
            source,
        })?;
    }
    Ok(())
}

/// Has a command ended by `dyno stop` or `dyno resume` should this dyno be killed while it runs.
fn noted(dir: &Path, pid: u32) -> Option<(undo::Journal, u64)> {
    let machine = Machine::default();
    let mut journal = undo::Journal::open(&dir.join("hooks"), &machine).ok()?;
    let (started, session) = (process::start_ticks(&machine, pid)?, process::session_of(&machine, pid));
    let id = journal.note_action(undo::Undo::Process { pid, started, session }).ok()?;
    Some((journal, id))
}

fn one(
    words: &[String],
    patience: Duration,
    dir: &Path,
    environment: &[(String, String)],
    given_up: &dyn Fn() -> bool,
) -> Result<(), HookFailure> {
    let Some((program, arguments)) = words.split_first() else { return Err(HookFailure::Empty) };
    let path = dir.join("hooks.log");
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|source| HookFailure::Log { path: path.clone(), source })?;
    let _ = writeln!(log, "$ {}", mask_arguments(words).join(" "));
    let err = log.try_clone()?;
    let mut command = child::clean_command(program);
    command.args(arguments).envs(environment.iter().cloned());
    command.stdin(Stdio::null()).stdout(log).stderr(err).process_group(0);
    let mut child = command.spawn().map_err(HookFailure::Start)?;
    let mut noted = noted(dir, child.id());
    let end = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) => {
                // A process that it has left running is meant to run on.
                if let Some((mut journal, id)) = noted.take() {
                    // A note that cannot be taken back is of a process that has ended.
                    let _ = journal.forget_note(id);
                }
                return match status.success() {
                    true => Ok(()),
                    false => Err(HookFailure::Ended { status, log: path }),
                };
            }
            None if Instant::now() > end || given_up() => {
                // It has a group of its own: its children end with it.
                if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.wait();
                if given_up() {
                    return Err(HookFailure::GivenUp);
                }
                return Err(HookFailure::Late(patience));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
