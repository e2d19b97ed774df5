//! The worker's end: does what the pipe says, and stops when the pipe falls silent.
//!
//! One thread reads the pipe and acts at once on what cannot wait (begin, stop, abort); one watches the lease; the
//! caller's thread opens the target and runs phases.

use crate::protocol::frame::{Frame, FrameError, read_frame, write_frame};
use crate::protocol::outbox::Outbox;
use crate::protocol::silence::{GONE, Silence};
use crate::protocol::worker::{
    Assignment, FromWorker, HostCpuShare, PROTOCOL, PhaseDone, Stage, ToWorker, WorkerHost,
};
use dyno_config::experiment::Experiment;
use dyno_databases::registry;
use dyno_db::target::{OpenTarget, in_words};
use dyno_db::target_error::TargetError;
use dyno_engine::net::monotonic_ns;
use dyno_engine::{Control, Gate, Job, RunError, affinity};
use dyno_monitor::{CLOCK_SOURCE, CpuTimes, HostCpu, boot_id, host_cores, read_host_facts};
use dyno_record::Totals;
use dyno_rundir::log::{self, TargetFilter};
use dyno_session::cores::choose_cores;
use dyno_session::load_generator::run_jobs;
use dyno_session::work::{Prepared, Work, with_jobs_beside};
use dyno_types::{RefusalCode, Refused};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads the work of an experiment.
pub type ReadWork<'a> = &'a dyn Fn(&Experiment) -> Result<Box<dyn Work>, Refused>;

/// Why a worker could not go on: told to the controller.
struct WorkerFailure {
    unreachable: bool,
    text: String,
}

impl From<Refused> for WorkerFailure {
    fn from(refused: Refused) -> Self {
        WorkerFailure { unreachable: false, text: refused.to_string() }
    }
}

impl From<TargetError> for WorkerFailure {
    fn from(error: TargetError) -> Self {
        WorkerFailure { unreachable: matches!(error, TargetError::Unreachable(_)), text: error.to_string() }
    }
}

impl From<RunError> for WorkerFailure {
    fn from(error: RunError) -> Self {
        WorkerFailure { unreachable: matches!(error, RunError::Unreachable { .. }), text: error.to_string() }
    }
}

/// The phase under way, and what has been said since the controller asked for it: a word may come before the phase is under
/// way, or between its end and the sending of what was still queued, and it is said once.
#[derive(Default)]
struct RunningPhase {
    under_way: Option<(Arc<Control>, Arc<Gate>)>,
    stop: bool,
    abort: bool,
}

impl RunningPhase {
    /// The controller asks for another one: what was said before is not of it.
    fn asked(&mut self) {
        (self.stop, self.abort) = (false, false);
    }

    fn stop(&mut self) {
        self.stop = true;
        if let Some((control, _)) = &self.under_way {
            control.stop();
        }
    }

    fn abort(&mut self) {
        self.abort = true;
        if let Some((control, _)) = &self.under_way {
            control.abort_run();
        }
    }

    fn enter(&mut self, control: &Arc<Control>, gate: &Arc<Gate>) {
        if self.stop {
            control.stop();
        }
        if self.abort {
            control.abort_run();
        }
        self.under_way = Some((control.clone(), gate.clone()));
    }
}

/// State that the threads share.
struct ServeState {
    /// When the controller was last heard, monotonic nanoseconds.
    heard_ns: AtomicU64,
    /// Time that a worker goes on without a word, nanoseconds.
    lease_ns: AtomicU64,
    /// True if the lease has run out.
    lapsed: AtomicBool,
    /// The controller's longest silence in the phase under way, nanoseconds.
    longest_silence_ns: AtomicU64,
    phase: Mutex<RunningPhase>,
    /// Set once the pipe has closed.
    closed: AtomicBool,
}

impl ServeState {
    fn new() -> Self {
        ServeState {
            heard_ns: AtomicU64::new(monotonic_ns()),
            lease_ns: AtomicU64::new(u64::MAX),
            lapsed: AtomicBool::new(false),
            longest_silence_ns: AtomicU64::new(0),
            phase: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    fn phase(&self) -> MutexGuard<'_, RunningPhase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a load. The end of the phase ends it, too.
    fn enter(&self, control: &Arc<Control>, gate: &Arc<Gate>) {
        self.phase().enter(control, gate);
        if self.closed.load(Ordering::Relaxed) {
            control.abort_run();
        }
    }

    fn leave(&self) {
        self.phase().under_way = None;
    }
}

pub(super) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Time that what was said last may take to go out.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Serves one controller until it says goodbye or closes the pipe. `output` must be a stream that nothing else writes to.
pub fn serve_controller(
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
    read_work: ReadWork<'_>,
) -> Result<(), FrameError> {
    greet(&mut input, &mut output)?;
    let shared = Arc::new(ServeState::new());
    let (tell, told) = channel();
    let listening = shared.clone();
    std::thread::Builder::new().name("pipe".into()).spawn(move || listen(input, &listening, &tell))?;
    let watching = shared.clone();
    std::thread::Builder::new().name("lease".into()).spawn(move || watch(&watching))?;
    let output = Outbox::start(output)?;
    let (beating, beats) = (shared.clone(), output.clone());
    std::thread::Builder::new().name("alive".into()).spawn(move || give_signs_of_life(&beating, &beats))?;
    let ended = WorkerLoop { output: output.clone(), shared: shared.clone(), told, read_work }.run();
    output.close(LAST_WORDS);
    shared.closed.store(true, Ordering::Relaxed);
    ended
}

/// Shows the controller that this process runs, whatever its load does.
fn give_signs_of_life(shared: &ServeState, output: &Outbox) {
    // A pipe that fails shows elsewhere, too.
    while !shared.closed.load(Ordering::Relaxed) && output.send(Frame::Message(&FromWorker::Alive)).is_ok() {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The first words, on both sides.
fn greet(input: &mut dyn Read, output: &mut dyn Write) -> Result<(), FrameError> {
    let Frame::Message(ToWorker::Hello { protocol, now_ns, log }) = read_frame(input)? else {
        return Err(FrameError::Malformed("the first word must be hello".into()));
    };
    // The controller has read them.
    log::set_filters(log.iter().filter_map(|text| TargetFilter::parse(text).ok()).collect());
    let hello = FromWorker::Hello {
        protocol: PROTOCOL,
        dyno: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        heard_ns: now_ns,
        now_ns: unix_ns(),
    };
    write_frame(output, &Frame::Message(&hello))?;
    if protocol != PROTOCOL {
        let text =
            format!("the controller speaks protocol {protocol}, this worker {PROTOCOL}: use the same dyno");
        return Err(FrameError::Malformed(text));
    }
    Ok(())
}

/// Reads the pipe to its end.
fn listen(mut input: impl Read, shared: &ServeState, tell: &Sender<ToWorker>) {
    while let Ok(Frame::Message(message)) = read_frame::<ToWorker>(&mut input) {
        shared.heard_ns.store(monotonic_ns(), Ordering::Relaxed);
        match message {
            ToWorker::Ping => {}
            ToWorker::Begin { at_ns } => {
                if let Some((_, gate)) = &shared.phase().under_way {
                    gate.open(monotonic_ns() + at_ns.saturating_sub(unix_ns()));
                }
            }
            ToWorker::Stop => shared.phase().stop(),
            ToWorker::Abort => shared.phase().abort(),
            other => {
                if matches!(other, ToWorker::Start { .. }) {
                    shared.phase().asked();
                }
                if tell.send(other).is_err() {
                    return;
                }
            }
        }
    }
    // The controller has gone: it cannot hear of further load.
    shared.closed.store(true, Ordering::Relaxed);
    shared.phase().abort();
}

/// Ends the load when the lease runs out, and the worker when its controller does not come back.
fn watch(shared: &ServeState) {
    let mut silence = Silence::starting(shared.heard_ns.load(Ordering::Relaxed));
    while !shared.closed.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        look_after(shared, &mut silence, monotonic_ns());
    }
}

/// Holds the lease against the clock.
fn look_after(shared: &ServeState, silence: &mut Silence, now_ns: u64) {
    let silent_ns = silence.look(shared.heard_ns.load(Ordering::Relaxed), now_ns);
    shared.longest_silence_ns.fetch_max(silent_ns, Ordering::Relaxed);
    let lease_ns = shared.lease_ns.load(Ordering::Relaxed);
    if silent_ns > lease_ns
        && let Some((control, _)) = &shared.phase().under_way
        && !control.is_stopping()
    {
        shared.lapsed.store(true, Ordering::Relaxed);
        tracing::error!(
            silent_ns,
            lease_ns,
            "the controller is silent: the lease has run out and the load stops"
        );
        control.stop();
    }
    // A cut connection may never show as a closed pipe: a controller that was silent for that long does not come back.
    if silent_ns / u64::from(GONE) > lease_ns {
        shared.closed.store(true, Ordering::Relaxed);
    }
}

struct WorkerLoop<'a> {
    output: Outbox,
    shared: Arc<ServeState>,
    told: Receiver<ToWorker>,
    read_work: ReadWork<'a>,
}

/// This worker's host.
fn own_host() -> WorkerHost {
    WorkerHost {
        boot_id: boot_id().unwrap_or_default(),
        cores: host_cores(),
        clock_ns: affinity::clock_cost_ns(),
        clock_source: read_host_facts().tuning.remove(CLOCK_SOURCE).unwrap_or_default(),
    }
}

/// A target that is open, and what is done with it.
struct AssignedTarget {
    assignment: Assignment,
    opened: Box<dyn OpenTarget>,
    work: Box<dyn Work>,
    cores: Vec<usize>,
}

impl WorkerLoop<'_> {
    fn run(&mut self) -> Result<(), FrameError> {
        let mut assigned = None;
        loop {
            let message = match self.told.recv_timeout(Duration::from_millis(200)) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) if !self.shared.closed.load(Ordering::Relaxed) => {
                    send_log(&self.output)?;
                    continue;
                }
                Err(_) => return Ok(()),
            };
            // A record that cannot be sent shows with the answer.
            let _ = send_log(&self.output);
            let answer = match message {
                ToWorker::Assign(assignment) => self.assign(*assignment).map(|(ready, opened)| {
                    assigned = Some(opened);
                    ready
                }),
                ToWorker::Clock => Ok(FromWorker::Clock { now_ns: unix_ns() }),
                ToWorker::Prepare => match &mut assigned {
                    Some(assigned) => prepare(assigned).map(FromWorker::Prepared),
                    None => Err(early()),
                },
                ToWorker::Start { stage, prepared } => match &mut assigned {
                    Some(assigned) => self.stage(assigned, stage, &prepared).map(FromWorker::Done),
                    None => Err(early()),
                },
                ToWorker::Bye => return Ok(()),
                _ => continue,
            };
            let answer = answer.unwrap_or_else(|t| {
                tracing::error!(unreachable = t.unreachable, reason = t.text, "this worker cannot go on");
                FromWorker::Failed { unreachable: t.unreachable, cause: t.text }
            });
            say(&self.output, &answer)?;
        }
    }

    fn assign(&self, assignment: Assignment) -> Result<(FromWorker, AssignedTarget), WorkerFailure> {
        self.shared.lease_ns.store(assignment.lease_ms * 1_000_000, Ordering::Relaxed);
        let spec = &assignment.spec;
        let work = (self.read_work)(spec)?;
        let mut target = registry::parse_for(&assignment.target, spec.client.driver.into())?;
        if let Some(database) = work.database() {
            target.set_database(&database);
        }
        let shared = &self.shared;
        let uri = target.redacted();
        tracing::info!(
            uri,
            number = assignment.index,
            of = assignment.total,
            lease_ms = assignment.lease_ms,
            "opens its target"
        );
        let opened = target.open(work.content(), &|| shared.closed.load(Ordering::Relaxed))?;
        opened.check(&work.content(), &work.verbs())?;
        opened.check_pipeline(spec.phases.measure.pipeline)?;
        let cores = match (&spec.client.cores, assignment.cores.as_slice()) {
            (Some(cores), _) => cores.0.clone(),
            (None, []) => choose_cores(spec.client.threads, usize::MAX, assignment.local, None)?,
            (None, given) => given.iter().copied().take(spec.client.threads.unwrap_or(usize::MAX)).collect(),
        };
        tracing::info!(uri, facts = in_words(&opened.facts()), ?cores, "its target is open");
        let ready = FromWorker::Ready {
            target_info: opened.info(),
            facts: opened.facts(),
            shown: uri,
            cores: cores.clone(),
            host: own_host(),
        };
        Ok((ready, AssignedTarget { assignment, opened, work, cores }))
    }

    fn stage(
        &self,
        assigned: &mut AssignedTarget,
        stage: Stage,
        prepared: &Prepared,
    ) -> Result<PhaseDone, WorkerFailure> {
        assigned.work.adopt(prepared)?;
        let whole = match stage {
            Stage::Load => assigned.work.load()?.ok_or_else(|| {
                Refused::new(RefusalCode::Conflict, "phases.load", "there is nothing to load")
            })?,
            Stage::Measure => assigned.work.measure()?,
        };
        let (control, gate) = (Arc::new(Control::default()), Arc::new(Gate::default()));
        let jobs = assigned.jobs(whole, stage, &gate)?;
        let users = jobs[0].users;
        let threads = if assigned.opened.is_wire() { jobs[0].cores.len() } else { users };
        self.shared.lapsed.store(false, Ordering::Relaxed);
        self.shared.longest_silence_ns.store(0, Ordering::Relaxed);
        tracing::info!(phase = stage.name(), users, threads, "connects its users");
        self.shared.enter(&control, &gate);
        let mut pipe = Ok(());
        let mut whole: Option<Totals> = None;
        let pipes = &self.output;
        let (mut host_cpu, mut measured) = (HostCpu::start(), CpuTimes::default());
        let applied = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !gate.await_connected(Duration::from_millis(20)) {
                    if control.is_stopping() {
                        return;
                    }
                }
                tracing::info!(phase = stage.name(), "its users have connected");
                // A pipe that fails shows with the first second.
                let _ = say(pipes, &FromWorker::Connected);
            });
            let applied = run_jobs(assigned.opened.as_ref(), &jobs, &control, &mut |second| {
                let lap = host_cpu.lap_times().filter(|_| !second.warmup);
                lap.iter().for_each(|lap| measured.add_times(lap));
                if !second.warmup {
                    let whole = whole.get_or_insert_with(|| second.totals.empty_like());
                    whole.merge(&second.totals);
                    // The controller has them from the seconds; over a day they are many.
                    whole.gaps.clear();
                    whole.pauses.clear();
                }
                let written = pipes.send::<FromWorker>(Frame::Second(Box::new(second)));
                if written.is_err() {
                    control.abort_run();
                    pipe = written;
                }
            });
            let stopped = control.is_stopping();
            // Lets go of the thread above where the run never came to connecting.
            control.stop();
            applied.map(|applied| (applied, stopped))
        });
        self.shared.leave();
        pipe.map_err(|error| WorkerFailure {
            unreachable: false,
            text: format!("the pipe failed: {error}"),
        })?;
        let (applied, stopped) = applied?;
        let finished = applied.finished;
        for (outcome, message) in &finished.errors {
            tracing::warn!(
                phase = stage.name(),
                outcome = outcome.name(),
                message,
                "the phase had errors: the first of a kind"
            );
        }
        tracing::info!(
            phase = stage.name(),
            elapsed_ns = finished.elapsed_ns,
            stopped,
            "its phase has ended"
        );
        if let Some(whole) = whole {
            // A pipe that fails shows with the answer, too.
            if let Err(error) = pipes.send::<FromWorker>(Frame::Whole(Box::new(whole))) {
                tracing::warn!(reason = %error, "what it has measured in the whole phase could not be sent");
            }
        }
        let rest = if stage == Stage::Measure { self.send_rest(assigned, stopped)? } else { (0, 0) };
        let lapsed = self.shared.lapsed.load(Ordering::Relaxed);
        Ok(PhaseDone {
            errors: finished.errors.into_iter().map(|(o, message)| (o.name().to_owned(), message)).collect(),
            epoch_ns: finished.epoch.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64,
            late_ns: control.begun_late_ns(),
            elapsed_ns: finished.elapsed_ns,
            measured_ns: finished.measured_ns,
            busy_rate: finished.busy_rate,
            connecting_ns: finished.connecting_ns,
            pinned: finished.pinned,
            user_s: applied.user_s,
            system_s: applied.system_s,
            peak_resident_bytes: applied.peak_resident_bytes,
            threads,
            users,
            rest,
            replayed: applied.replayed.map(Box::new),
            host_cpu: (measured.total > 0)
                .then(|| HostCpuShare { busy: measured.busy_share(), steal: measured.steal_share() }),
            unheard_ns: self.shared.longest_silence_ns.load(Ordering::Relaxed),
            ended_early: lapsed.then(|| "the controller was silent for longer than the lease".into()),
        })
    }

    /// Sends what was still queued at the end, unless the load was told to stop; how many were sent and were not.
    fn send_rest(&self, assigned: &AssignedTarget, stopped: bool) -> Result<(u64, u64), WorkerFailure> {
        let Some(job) = assigned.work.rest() else { return Ok((0, 0)) };
        let all = job.end.operations.unwrap_or(0);
        if stopped || all == 0 {
            return Ok((0, all));
        }
        let job = Job { cores: vec![None; assigned.cores.len().clamp(1, job.users.max(1))], ..job };
        let mut sent = 0;
        let control = Arc::new(Control::default());
        self.shared.enter(&control, &Arc::new(Gate::default()));
        if control.is_stopping() {
            self.shared.leave();
            return Ok((0, all));
        }
        let done = run_jobs(assigned.opened.as_ref(), &[job], &control, &mut |second| {
            sent += second.totals.count_ok()
        });
        self.shared.leave();
        done?;
        Ok((sent.min(all), all - sent.min(all)))
    }
}

/// Sends what the log holds by now.
fn send_log(output: &Outbox) -> io::Result<()> {
    let records = log::take_waiting().into_iter().map(|record| FromWorker::Log(Box::new(record)));
    let records: Vec<FromWorker> = records.collect();
    output.send_all(records.iter().map(Frame::Message))
}

fn say(output: &Outbox, message: &FromWorker) -> io::Result<()> {
    send_log(output)?;
    output.send(Frame::Message(message))
}

fn early() -> WorkerFailure {
    WorkerFailure { unreachable: false, text: "a word that comes before the assignment".into() }
}

/// A controller that does not want it any more ends this process.
fn prepare(assigned: &mut AssignedTarget) -> Result<Prepared, WorkerFailure> {
    Ok(assigned.work.prepare(assigned.opened.as_ref(), &Arc::new(Control::default()))?)
}

impl AssignedTarget {
    /// This worker's part of a job, on its cores, and of the first worker what is beside it; behind the gate.
    fn jobs(&self, whole: Job, stage: Stage, gate: &Arc<Gate>) -> Result<Vec<Job>, Refused> {
        let (assignment, spec) = (&self.assignment, &self.assignment.spec);
        let mut job = whole;
        let pinned = spec.client.pin && !self.opened.is_virtual();
        job.cores = self.cores.iter().map(|core| pinned.then_some(*core)).collect();
        job.cores.truncate(job.users.max(1));
        if self.opened.is_virtual() {
            job.cores = vec![None];
        }
        if stage == Stage::Load || !self.opened.is_wire() {
            job.pipeline = self.opened.usable_pipeline(job.pipeline);
        }
        job.spin = spec.client.wait.does_spin(assignment.spin && pinned);
        let all = spec.taking_part(stage == Stage::Load, assignment.total);
        let number = assignment.index.checked_sub(all.start).filter(|number| *number < all.len());
        let number = number.ok_or_else(|| {
            Refused::new(RefusalCode::Conflict, "workers", "this worker takes no part in the phase")
        })?;
        let part = self.work.part(&job, number, all.len())?;
        part.check()?;
        let first = stage == Stage::Measure && number == 0;
        let beside = if first { self.work.beside()? } else { Vec::new() };
        Ok(with_jobs_beside(part, beside, Some(gate.clone())))
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod conversation;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::silence::LEASE;

    fn heard(words: &[ToWorker]) -> ServeState {
        let mut bytes = Vec::new();
        words.iter().for_each(|word| write_frame(&mut bytes, &Frame::Message(word)).unwrap());
        let (shared, (tell, _told)) = (ServeState::new(), channel());
        listen(bytes.as_slice(), &shared, &tell);
        shared
    }

    #[test]
    fn a_word_that_comes_while_nothing_runs_is_kept_for_its_phase_alone() {
        let start = ToWorker::Start { stage: Stage::Measure, prepared: Prepared::default() };
        let stopped = heard(&[start.clone(), ToWorker::Stop]);
        assert!(stopped.phase().stop);
        // The end of the pipe aborts whatever comes.
        assert!(stopped.phase().abort);
        assert!(!heard(&[start.clone(), ToWorker::Stop, ToWorker::Abort, start]).phase().stop);
    }

    #[test]
    fn what_was_said_before_load_began_ends_it() {
        let (mut phase, gate) = (RunningPhase::default(), Arc::new(Gate::default()));
        let begun = |phase: &mut RunningPhase| {
            let control = Arc::new(Control::default());
            phase.enter(&control, &gate);
            phase.under_way = None;
            (control.is_stopping(), control.is_aborting())
        };
        assert_eq!(begun(&mut phase), (false, false));
        phase.stop();
        // Of the measured phase and of what it had still queued.
        assert_eq!([begun(&mut phase), begun(&mut phase)], [(true, false); 2]);
        phase.abort();
        assert!(begun(&mut phase).1);
        phase.asked();
        assert_eq!(begun(&mut phase), (false, false));
    }

    const SECOND: u64 = 1_000_000_000;

    /// A worker with a load under way, heard at 1 s.
    fn leased() -> (ServeState, Arc<Control>) {
        let (shared, control) = (ServeState::new(), Arc::new(Control::default()));
        shared.heard_ns.store(SECOND, Ordering::Relaxed);
        shared.lease_ns.store(LEASE.as_nanos() as u64, Ordering::Relaxed);
        shared.enter(&control, &Arc::new(Gate::default()));
        (shared, control)
    }

    #[test]
    fn a_load_ends_with_its_lease_and_not_before() {
        let state = |shared: &ServeState, control: &Control| {
            (
                shared.lapsed.load(Ordering::Relaxed),
                control.is_stopping(),
                shared.closed.load(Ordering::Relaxed),
            )
        };
        let (shared, control) = leased();
        let (mut silence, end_ns) = (Silence::starting(SECOND), SECOND + LEASE.as_nanos() as u64);
        // Looks a second apart, up to this instant.
        let mut look = |shared: &ServeState, from_ns: u64, to_ns: u64| {
            (from_ns..to_ns)
                .step_by(SECOND as usize)
                .chain([to_ns])
                .for_each(|now_ns| look_after(shared, &mut silence, now_ns));
        };
        look(&shared, SECOND, end_ns);
        assert_eq!(state(&shared, &control), (false, false, false), "a minute of silence breaks nothing");
        assert_eq!(shared.longest_silence_ns.load(Ordering::Relaxed), LEASE.as_nanos() as u64);
        look(&shared, end_ns, end_ns + 1);
        assert_eq!(state(&shared, &control), (true, true, false), "it stops and can say why");
        // The same once more, and the controller does not come back.
        let gone_ns = SECOND + 2 * LEASE.as_nanos() as u64;
        look(&shared, end_ns + 1, gone_ns + 1);
        assert_eq!(state(&shared, &control), (true, true, false));
        look(&shared, gone_ns + 1, gone_ns + 2);
        assert_eq!(state(&shared, &control), (true, true, true));
        // A word renews it.
        let (shared, control) = leased();
        shared.heard_ns.store(2 * SECOND, Ordering::Relaxed);
        look(&shared, 2 * SECOND, end_ns + SECOND);
        assert_eq!(state(&shared, &control), (false, false, false));
        look(&shared, end_ns + SECOND, end_ns + SECOND + 1);
        assert_eq!(state(&shared, &control), (true, true, false));
        // A load that another caller has stopped has not lost its controller.
        let (shared, control) = leased();
        control.stop();
        shared.heard_ns.store(3 * SECOND, Ordering::Relaxed);
        look(&shared, 3 * SECOND, end_ns + 3 * SECOND);
        assert!(!shared.lapsed.load(Ordering::Relaxed));
        // Between phases there is nothing to end.
        let (shared, control) = leased();
        shared.leave();
        shared.heard_ns.store(4 * SECOND, Ordering::Relaxed);
        look(&shared, 4 * SECOND, end_ns + 4 * SECOND);
        assert_eq!(state(&shared, &control), (false, false, false));
    }

    #[test]
    fn every_word_of_the_controller_renews_the_lease() {
        for word in [ToWorker::Ping, ToWorker::Clock, ToWorker::Stop] {
            let before = monotonic_ns();
            assert!(heard(&[word]).heard_ns.load(Ordering::Relaxed) >= before);
        }
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &Frame::Message(&ToWorker::Ping)).unwrap();
        let (shared, (tell, _told)) = (ServeState::new(), channel());
        shared.heard_ns.store(0, Ordering::Relaxed);
        listen(bytes.as_slice(), &shared, &tell);
        assert!(shared.heard_ns.load(Ordering::Relaxed) > 0);
    }
}
