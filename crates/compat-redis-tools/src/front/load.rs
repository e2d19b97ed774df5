//! Commands on a target, as one measured phase.

use dyno_config::experiment::{Arrivals, Experiment};
use dyno_config::values::{Count, Span};
use dyno_databases::registry;
use dyno_db::target::{ClientDriver, Target};
use dyno_engine::{Control, Job, LateUsers};
use dyno_frontend::conductor::{self, AppliedPhases, RunPlan, choose_cores};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_record::Scale;
use dyno_rundir::schema::{Claim, Phase, Reason, Setting, Status, Summary, Trust};
use dyno_session::conductor::Conductor;
use dyno_session::load_generator::LocalGenerator;
use dyno_session::session::{EndedPhase, Observer, PhaseProgress};
use dyno_session::work::measured_job;
use dyno_types::{Content, Outcome};
use dyno_workload::Workload;
use dyno_workload::commands::{CommandRun, Commands};
use std::path::PathBuf;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// What is applied, and how it is kept.
pub(super) struct Load<'a> {
    pub(super) title: String,
    pub(super) uri: &'a str,
    pub(super) commands: &'a Commands,
    /// Connections.
    pub(super) clients: usize,
    /// Requests in all.
    pub(super) requests: Option<u64>,
    pub(super) seconds: Option<u64>,
    pub(super) warmup_s: u64,
    pub(super) pipeline: usize,
    /// Requests a second of all connections, in an open loop.
    pub(super) rate: Option<f64>,
    pub(super) timeout_s: u64,
    /// Requests of a client after which its connection is made anew.
    pub(super) reconnect_every: Option<u64>,
    /// Clients that begin later.
    pub(super) late: Option<LateUsers>,
    pub(super) load_threads: Option<usize>,
    pub(super) out: Option<PathBuf>,
    pub(super) watched: bool,
    pub(super) settings: Vec<Setting>,
}

/// A phase that has been applied, and what it exits with.
pub(super) struct AppliedLoad {
    pub(super) ended: EndedPhase,
    pub(super) exit: Exit,
    /// Nodes of the target.
    pub(super) nodes: usize,
    /// True if nothing was answered any more.
    pub(super) gave_up: bool,
    /// What speaks against it.
    pub(super) doubts: Vec<Reason>,
}

impl Load<'_> {
    fn experiment(&self) -> Experiment {
        let mut spec = Experiment { seed: self.commands.seed, ..Experiment::default() };
        let measure = &mut spec.phases.measure;
        match self.rate {
            Some(rate) => {
                measure.connections = Some(self.clients);
                measure.rate = Some(rate.to_string());
                measure.arrivals = Arrivals::Constant;
            }
            None => measure.users = Some(self.clients),
        }
        measure.operations = self.requests.map(Count);
        measure.duration = self.seconds.map(|seconds| Span(seconds.saturating_mul(SECOND_NS)));
        measure.warmup = Some(Span(self.warmup_s.saturating_mul(SECOND_NS)));
        measure.timeout = Span(self.timeout_s.saturating_mul(SECOND_NS));
        measure.pipeline = self.pipeline;
        spec
    }

    /// Seconds without an answer after which a number of requests is given up: three time-outs. A time ends by itself.
    fn patience_s(&self) -> u64 {
        match (self.seconds, self.timeout_s) {
            (Some(_), _) | (_, 0) => u64::MAX,
            (None, seconds) => seconds.saturating_mul(3),
        }
    }

    /// The workload, which counts its bytes.
    pub(super) fn workload(&self) -> Result<Arc<CommandRun>, Failure> {
        let refused = |bad: dyno_workload::ycsb::BadProperty| {
            Failure::usage(format!("{} {}: expected {}", bad.key, bad.value, bad.expected))
        };
        CommandRun::new(self.commands).map(Arc::new).map_err(refused)
    }

    /// Applies it.
    pub(super) fn apply(
        &self,
        workload: &Arc<CommandRun>,
        control: &Arc<Control>,
        observer: &mut dyn Observer,
    ) -> Result<AppliedLoad, Failure> {
        let (target, opened) = open(self.uri, &workload.content(), self.pipeline)?;
        let job = measured_job(&self.experiment(), workload.clone())?;
        let cores = choose_cores(self.load_threads, job.users, target.is_local(), None)?;
        let cores = cores.into_iter().map(Some).collect();
        let job = Job { cores, reconnect_every: self.reconnect_every, late: self.late, ..job };
        job.check().map_err(Failure::from)?;
        let plan = RunPlan {
            title: self.title.clone(),
            target: target.redacted(),
            conditions: Vec::new(),
            strict: false,
            claims: vec![Claim::Throughput, Claim::Tail],
            out: self.out.clone(),
            settings: self.settings.clone(),
            scale: Scale::Ns64,
            watch: (self.out.is_some() && self.watched).then(conductor::every_second),
            busy: conductor::busy(std::slice::from_ref(&job)),
        };
        let nodes = opened.as_ref().nodes().len();
        let own = Arc::new(Control::below_control(control));
        let mut patient = UnansweredGuard {
            observer,
            control: own.clone(),
            is_answered: false,
            silent_s: 0,
            limit_s: self.patience_s(),
        };
        let pacing = job.pacing.clone();
        let phases = |conductor: &mut Conductor<'_>| {
            let ended = conductor.session.run_workers("measure", &[job], &mut patient)?;
            let gave_up = own.is_stopping() && !control.is_stopping();
            Ok(AppliedPhases { ended, pacing, rest: gave_up })
        };
        let exit = |summary: &Summary, applied: &AppliedPhases<bool>| match applied.rest {
            true => {
                let seconds = self.patience_s();
                terminal::error(&format!("no request was answered for {seconds} s: the run is given up"));
                Exit::Invalid
            }
            false => exit_of(summary),
        };
        let executed = conductor::execute(plan, &opened, own.clone(), phases, exit)?;
        let (gave_up, ended, exit) = (executed.rest, executed.ended, executed.closed.exit);
        let summary = executed.summary;
        let reasons = summary.verdict.reasons.into_iter();
        // The user has not interrupted a run that dyno gave up; why it did has been said.
        let is_said = |reason: &Reason| gave_up && reason.check == "completed";
        let doubts = reasons.filter(|reason| reason.trust != Trust::Valid && !is_said(reason)).collect();
        Ok(AppliedLoad { ended, exit, nodes, gave_up, doubts })
    }
}

/// Ends a run whose requests are answered no more. One that was never answered is ended by the session.
struct UnansweredGuard<'a> {
    observer: &'a mut dyn Observer,
    control: Arc<Control>,
    is_answered: bool,
    silent_s: u64,
    limit_s: u64,
}

impl Observer for UnansweredGuard<'_> {
    fn begin(&mut self, phase: &str, plan: &Job) {
        self.observer.begin(phase, plan);
    }

    fn second(&mut self, now: &PhaseProgress<'_>) {
        self.observer.second(now);
        let answered = Outcome::ALL.iter().filter(|outcome| !outcome.is_unanswered());
        let answers: u64 = answered.map(|outcome| now.last.ended[*outcome as usize]).sum();
        self.is_answered |= answers > 0;
        self.silent_s = if answers == 0 { self.silent_s + 1 } else { 0 };
        if self.is_answered && self.silent_s >= self.limit_s {
            self.control.abort_run();
        }
    }

    fn end(&mut self, phase: &Phase) {
        self.observer.end(phase);
    }
}

/// Settings of a tool: name, value, and whether it was typed.
pub(super) fn settings_of(all: &[(String, String, bool)]) -> Vec<Setting> {
    let source = |typed: bool| if typed { "command line" } else { "default" };
    let one = |(key, value, typed): &(String, String, bool)| Setting {
        key: key.clone(),
        value: value.clone(),
        source: source(*typed).into(),
    };
    all.iter().map(one).collect()
}

/// Opens a target for these requests.
pub(super) fn open(
    uri: &str,
    content: &Arc<dyn Content>,
    pipeline: usize,
) -> Result<(Box<dyn Target>, LocalGenerator), Failure> {
    let target = registry::parse_for(uri, ClientDriver::Wire).map_err(Failure::from)?;
    let opened = conductor::open(target.as_ref(), content, &[], pipeline)?;
    Ok((target, opened))
}

/// Says what speaks against a run.
pub(super) fn say(doubts: &[Reason]) {
    for doubt in doubts {
        terminal::warn(&format!("the run is {} ({}): {}", doubt.trust.trust_word(), doubt.check, doubt.text));
    }
}

/// What a run with this verdict exits with.
fn exit_of(summary: &Summary) -> Exit {
    let invalid = |reason: &Reason| reason.trust == Trust::Invalid && summary.verdict.is_asked(reason);
    match summary.status {
        Status::Interrupted => Exit::Interrupted,
        _ if summary.verdict.reasons.iter().any(invalid) => Exit::Invalid,
        _ => Exit::Ok,
    }
}
