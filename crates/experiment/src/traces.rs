//! Trace windows: commands of the file that run for a part of a phase, placed on the phase's exact epoch.
//!
//! ```text
//! expect -> [the engine announces its epoch] -> a thread for each: wait, start, wait, SIGINT, SIGKILL -> end: events
//! ```

use crate::clock::PhaseTimes;
use crate::experiment_error::ExperimentError;
use dyno_config::experiment::traces::{Trace, TracedPhase};
use dyno_localhost::machine::Machine;
use dyno_localhost::{process, undo};
use dyno_session::session::RunSession;
use dyno_types::child;
use dyno_types::secret::mask_arguments;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Time that a command may take to end after SIGINT.
const GRACE: Duration = Duration::from_secs(5);

/// Interval at which the end of a command is looked for.
const POLL: Duration = Duration::from_millis(5);

/// A trace that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[error("traces[{number}]: {source}")]
pub struct TraceError {
    number: usize,
    source: TraceFailure,
}

impl From<TraceError> for ExperimentError {
    fn from(error: TraceError) -> Self {
        ExperimentError::other(error)
    }
}

/// Why it cannot.
#[derive(Debug, thiserror::Error)]
enum TraceFailure {
    #[error("an empty command")]
    Empty,
    #[error("{0}: not found on PATH")]
    Absent(String),
    /// There is nowhere to write what it prints.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// The command cannot be started.
    #[error(transparent)]
    Start(#[from] io::Error),
}

/// An event of a trace.
type TraceEvent = (SystemTime, &'static str, String);

/// Traces of one phase (a warm-up and the measurement after it are one run of the engine).
#[derive(Debug, Default)]
pub(super) struct Traces {
    clock: Arc<PhaseTimes>,
    threads: Vec<JoinHandle<Vec<TraceEvent>>>,
}

/// One command and where it is kept.
struct TraceWindow {
    number: usize,
    trace: Trace,
    folder: PathBuf,
    environment: Vec<(String, String)>,
}

impl Traces {
    /// Prepares the traces of `phases`; they begin when the engine tells its epoch.
    pub fn expect(
        traces: &[Trace],
        phases: &[TracedPhase],
        environment: &[(String, String)],
        session: &mut RunSession<'_>,
    ) -> Result<Self, TraceError> {
        let mut all = Traces::default();
        let wanted = traces.iter().enumerate().filter(|(_, trace)| phases.contains(&trace.phase));
        let clock = all.clock();
        session.on_epoch(move |epoch, warmup| clock.begin(epoch, warmup));
        // Without a run directory there is no place for what they print.
        let Some(dir) = session.run_writer().map(|writer| writer.run_path().to_owned()) else {
            return Ok(all);
        };
        for (at, trace) in wanted {
            let number = at + 1;
            let refuse = |source| TraceError { number, source };
            let program = trace.command.first().ok_or_else(|| refuse(TraceFailure::Empty))?;
            if !program.contains('/') && Machine::default().find_program(program).is_none() {
                return Err(refuse(TraceFailure::Absent(program.clone())));
            }
            let folder = dir.join("traces");
            let made = std::fs::create_dir_all(&folder);
            made.map_err(|source| refuse(TraceFailure::File { path: folder.clone(), source }))?;
            let window =
                TraceWindow { number, trace: trace.clone(), folder, environment: environment.to_vec() };
            let clock = all.clock.clone();
            all.threads.push(std::thread::spawn(move || window.follow(&clock)));
        }
        Ok(all)
    }

    /// Returns the clock that knows the epoch and the end of the phase.
    pub fn clock(&self) -> Arc<PhaseTimes> {
        self.clock.clone()
    }

    /// The phase is over: ends what still runs, and writes what happened to the events.
    pub fn end(mut self, session: &mut RunSession<'_>) {
        let mut happened = self.finish();
        happened.sort_by_key(|(at, ..)| *at);
        if let Some(writer) = session.run_writer() {
            happened.iter().for_each(|(at, kind, message)| writer.event_at(*at, kind, message));
        }
    }

    fn finish(&mut self) -> Vec<TraceEvent> {
        self.clock.end();
        self.threads.drain(..).flat_map(|thread| thread.join().unwrap_or_default()).collect()
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.finish();
    }
}

impl TraceWindow {
    /// Waits for the window, and has the command run in it.
    fn follow(&self, clock: &PhaseTimes) -> Vec<TraceEvent> {
        let mut happened = Vec::new();
        let message = format!("{} {}", self.number, mask_arguments(&self.trace.command).join(" "));
        let Some((epoch, warmup)) = clock.epoch() else {
            return vec![(SystemTime::now(), "trace_failed", format!("{message}: the phase did not begin"))];
        };
        let after = if self.trace.phase == TracedPhase::Measure { warmup } else { Duration::ZERO };
        let begin = epoch + after + Duration::from_nanos(self.trace.from.0);
        if clock.wait(Some(begin), Duration::MAX) {
            return vec![(
                SystemTime::now(),
                "trace_failed",
                format!("{message}: the phase ended before its window"),
            )];
        }
        match self.start() {
            Err(why) => happened.push((SystemTime::now(), "trace_failed", format!("{message}: {why}"))),
            Ok((mut child, journal)) => {
                happened.push((SystemTime::now(), "trace_begin", message.clone()));
                let end = self.trace.length.as_ref().map(|length| begin + Duration::from_nanos(length.0));
                let ended = watch(&mut child, clock, end);
                drop(journal.map(|mut journal| journal.undo_all()));
                happened.push((SystemTime::now(), "trace_end", format!("{message}: {ended}")));
            }
        }
        happened
    }

    /// Starts the command in a group of its own; the journal has it ended if dyno is killed.
    fn start(&self) -> Result<(Child, Option<undo::Journal>), TraceFailure> {
        let path = self.folder.join(format!("{}.log", self.number));
        let named = |source| TraceFailure::File { path: path.clone(), source };
        let log: File =
            OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(named)?;
        let errors = log.try_clone().map_err(named)?;
        let (program, arguments) = self.trace.command.split_first().ok_or(TraceFailure::Empty)?;
        let mut command = child::clean_command(program);
        command.args(arguments).envs(self.environment.iter().cloned()).process_group(0);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn()?;
        let machine = Machine::default();
        let work_dir = self.folder.join(self.number.to_string());
        let journal = undo::Journal::open(&work_dir, &machine).ok().and_then(|mut journal| {
            let started = process::start_ticks(&machine, child.id())?;
            let (pid, session) = (child.id(), process::session_of(&machine, child.id()));
            journal.note_action(undo::Undo::Process { pid, started, session }).ok()?;
            Some(journal)
        });
        Ok((child, journal))
    }
}

/// Waits for the end of the window or of the phase, then ends the command; how it went, in words.
fn watch(child: &mut Child, clock: &PhaseTimes, end: Option<SystemTime>) -> String {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return format!("ended by itself, {status}"),
            Ok(None) => {}
            Err(error) => return error.to_string(),
        }
        let over = clock.wait(end, POLL);
        if over || end.is_some_and(|end| SystemTime::now() >= end) {
            return stop(child);
        }
    }
}

/// SIGINT to the command's group, so that it says what it has; SIGKILL if that does not end it.
fn stop(child: &mut Child) -> String {
    let group = Pid::from_raw(child.id() as i32);
    let send = |signal| group.map(|group| kill_process_group(group, signal));
    send(Signal::INT);
    let until = std::time::Instant::now() + GRACE;
    while std::time::Instant::now() < until {
        if let Ok(Some(status)) = child.try_wait() {
            return told(status);
        }
        std::thread::sleep(POLL);
    }
    send(Signal::KILL);
    let killed = child.wait().map_or_else(|e| e.to_string(), told);
    format!("did not end within {} s of SIGINT; {killed}", GRACE.as_secs())
}

fn told(status: ExitStatus) -> String {
    format!("ended at the end of its window, {status}")
}
