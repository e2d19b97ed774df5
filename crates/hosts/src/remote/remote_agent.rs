//! The controller's end of an agent on another host: asks, waits, and hands on what its monitors read.

use crate::protocol::agent::{FromHost, ToHost};
use crate::protocol::frame::{Frame, read_frame, write_frame};
use crate::protocol::offset::{Offset, quickest_offset};
use crate::protocol::service::Service;
use crate::protocol::silence::Waiting;
use crate::protocol::worker::PROTOCOL;
use crate::remote::channel::{Channel, ProgramInput, Running};
use crate::remote::records::RemoteLogRecords;
use crate::remote::ssh::RemoteError;
use crate::remote::transport::Transport;
use crate::servers::server::fault_preparation::FaultPreparation;
use crate::servers::server::faults::{FaultOutcome, ServerFault, WorkerFault};
use crate::servers::volume::{FoundVolume, Loaded};
use dyno_config::server::ServerSpec;
use dyno_config::server::tuning::HostTuning;
use dyno_engine::Control;
use dyno_monitor::{Sample, SampleSink, SeriesKind};
use dyno_rundir::log;
use dyno_rundir::schema::Environment;
use dyno_session::watch::RemoteMarker;
use dyno_session::watch::sources::DeclaredProcess;
use dyno_types::sync::held;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Starting a cluster or a filesystem takes long.
const LONG: Duration = Duration::from_secs(600);
/// Copying loaded data takes longer.
const VERY_LONG: Duration = Duration::from_secs(7_200);
const SHORT: Duration = Duration::from_secs(30);

/// Further samples told so far, and what other programs had used between the last two.
type Marked = Arc<(Mutex<(u64, BTreeMap<String, f64>)>, Condvar)>;

type Sinks = Arc<Mutex<Option<Arc<Mutex<dyn SampleSink>>>>>;

/// Asks the monitors of another host for further samples, from any thread.
#[derive(Clone)]
pub struct AgentMarker {
    host: String,
    input: ProgramInput,
    clock: Arc<Mutex<Offset>>,
    marked: Marked,
}

impl AgentMarker {
    fn say(&self, at_ns: Option<u64>) {
        if let Some(pipe) = held(&self.input).as_mut() {
            // An agent that is gone shows at the other end.
            let _ = write_frame(pipe, &Frame::Message(&ToHost::Mark { at_ns }));
        }
    }
}

impl RemoteMarker for AgentMarker {
    fn mark_at(&self, at: SystemTime) {
        let own_ns = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        self.say(Some(own_ns.saturating_add_signed(held(&self.clock).ns)));
    }

    fn mark_now(&self) -> u64 {
        let before = held(&self.marked.0).0;
        self.say(None);
        before
    }

    fn await_mark(&self, before: u64, end: Instant) -> Option<BTreeMap<String, f64>> {
        let left = end.saturating_duration_since(Instant::now());
        let waited =
            self.marked.1.wait_timeout_while(held(&self.marked.0), left, |(told, _)| *told == before);
        // A thread that panicked with the number had only counted.
        let (told, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (told.0 > before).then(|| told.1.clone())
    }

    fn host(&self) -> &str {
        &self.host
    }
}

/// An agent on another host.
pub struct RemoteAgent {
    host: Transport,
    /// Description of that host.
    pub environment: Environment,
    running: Running,
    input: ProgramInput,
    /// Its answers; one question at a time waits for one.
    told: Mutex<Receiver<FromHost>>,
    ending: Arc<AtomicBool>,
    /// Set once an answer was not waited for: what comes later would go to the wrong question.
    given_up: AtomicBool,
    sink: Sinks,
    clock: Arc<Mutex<Offset>>,
    marked: Marked,
    log: PathBuf,
}

/// What an agent watches.
#[derive(Clone, Debug, Default)]
pub struct WatchedThere {
    /// True if the host itself is watched (`host-NAME`): one agent of several on a kernel is enough.
    pub host: bool,
    /// Processes by name.
    pub processes: Vec<(String, u32)>,
    /// Processes of servers that others have started, if they are found there.
    pub told: Vec<(String, DeclaredProcess)>,
    /// Further processes of the run, which another agent of the same kernel watches.
    pub beside: Vec<u32>,
    /// Databases to be asked, by URI.
    pub databases: Vec<String>,
}

impl RemoteAgent {
    /// Starts the agent at `program` there; what ssh says goes to `log`.
    pub fn start(
        host: &Transport,
        program: &str,
        directory: Option<&str>,
        log: &Path,
    ) -> Result<RemoteAgent, RemoteError> {
        let errors =
            std::fs::File::create(log).map_err(|e| host.failed(format!("{}: {e}", log.display())))?;
        let service = Service::Host { directory: directory.map(str::to_owned) };
        let Channel { input, mut output, running } = host.open(program, &service, errors)?;
        let (tell, told) = channel();
        let (sink, clock): (Sinks, Arc<Mutex<Offset>>) = Default::default();
        let marked: Marked = Arc::default();
        let counted = marked.clone();
        let (own, at, name) = (sink.clone(), clock.clone(), host.name().to_owned());
        let ending = Arc::new(AtomicBool::new(false));
        let wanted = ending.clone();
        let mut records = RemoteLogRecords::of_source(format!("host-{name}"), Some(clock.clone()));
        let listen = move || {
            let mut sources = BTreeSet::new();
            while let Ok(Frame::Message(word)) = read_frame::<FromHost>(&mut output) {
                records.pass_waiting();
                if let FromHost::Log(record) = word {
                    records.add_record(*record);
                    continue;
                }
                if let FromHost::Sample { source, .. } = &word {
                    sources.insert(source.clone());
                }
                if let FromHost::Marked { others } = word {
                    let mut told = held(&counted.0);
                    *told = (told.0 + 1, others);
                    drop(told);
                    counted.1.notify_all();
                    continue;
                }
                if !pass(word, &name, &own, &at, &tell) {
                    return;
                }
            }
            if !wanted.load(Ordering::Relaxed) {
                tracing::error!(host = name, "the agent on a host was lost");
                fall_silent(&sources, &name, &own);
            }
        };
        let thread = std::thread::Builder::new().name("agent".into());
        thread.spawn(listen).map_err(|e| host.failed(e))?;
        let mut agent = RemoteAgent {
            host: host.clone(),
            environment: Environment::default(),
            running,
            input: Arc::new(Mutex::new(Some(input))),
            told: Mutex::new(told),
            ending,
            given_up: AtomicBool::new(false),
            sink,
            clock,
            marked,
            log: log.to_owned(),
        };
        match agent.ask(&ToHost::Hello { protocol: PROTOCOL, log: log::written_filters() }, SHORT, None) {
            Ok(FromHost::Hello { protocol, environment, .. }) if protocol == PROTOCOL => {
                agent.environment = *environment;
            }
            Ok(FromHost::Hello { dyno, .. }) => {
                return Err(host.failed(format!("dyno {dyno} there speaks another protocol")));
            }
            Ok(_) => return Err(host.failed("another answer than hello")),
            Err(silent) if agent.given_up.load(Ordering::Relaxed) => return Err(silent),
            Err(_) => {
                let how = agent.running.end_status();
                return Err(host.unreachable(host.lost(log, how.as_deref())));
            }
        }
        agent.keep_alive()?;
        agent.ask_clock()?;
        tracing::info!(host = agent.name(), system = agent.environment.host, "an agent has been started");
        Ok(agent)
    }

    fn keep_alive(&self) -> Result<(), RemoteError> {
        if self.running.is_kept_alive() {
            return Ok(());
        }
        let (input, ending) = (self.input.clone(), self.ending.clone());
        let alive = move || {
            while !ending.load(Ordering::Relaxed) {
                if let Some(pipe) = held(&input).as_mut() {
                    // An agent that is gone shows at the other end.
                    let _ = write_frame(pipe, &Frame::Message(&ToHost::Ping));
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        };
        let started = std::thread::Builder::new().name("alive".into()).spawn(alive);
        started.map(drop).map_err(|e| self.host.failed(e))
    }

    /// Returns the answer to a word; the wait ends once `control` stops.
    fn ask(
        &self,
        word: &ToHost,
        patience: Duration,
        control: Option<&Control>,
    ) -> Result<FromHost, RemoteError> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(self.host.failed("it was given up before"));
        }
        if let Some(pipe) = held(&self.input).as_mut() {
            // An agent that is gone shows at the other end.
            let _ = write_frame(pipe, &Frame::Message(word));
        }
        let mut waiting = Waiting::starting(patience);
        loop {
            let left = waiting.left();
            match held(&self.told).recv_timeout(left.min(Duration::from_millis(50))) {
                Ok(FromHost::Failed(message)) => return Err(self.host.failed(message)),
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => {
                    let (host, message) = (self.name().to_owned(), self.host.lost(&self.log, None));
                    return Err(RemoteError::AgentLost { host, message });
                }
                Err(_) if control.is_some_and(Control::is_stopping) => {
                    self.given_up.store(true, Ordering::Relaxed);
                    return Err(self.host.failed("interrupted"));
                }
                Err(_) if left.is_zero() => {
                    self.given_up.store(true, Ordering::Relaxed);
                    return Err(self.host.failed(format!("no answer within {} s", patience.as_secs())));
                }
                Err(_) => {}
            }
        }
    }

    /// The host's clock, asked now.
    pub fn ask_clock(&self) -> Result<Offset, RemoteError> {
        let found = quickest_offset(|| match self.ask(&ToHost::Clock, SHORT, None)? {
            FromHost::Clock { now_ns } => Ok(now_ns),
            _ => Err(self.host.failed("another answer than the time")),
        })?;
        tracing::debug!(
            host = self.name(),
            offset_ns = found.ns,
            within_ns = found.bound_ns,
            "a host's clock is known"
        );
        *held(&self.clock) = found;
        Ok(found)
    }

    /// Has the host's monitors tell `to` what they read.
    pub fn start_watch(
        &self,
        interval: Duration,
        watched: WatchedThere,
        to: Arc<Mutex<dyn SampleSink>>,
    ) -> Result<(), RemoteError> {
        self.ask_clock()?;
        *held(&self.sink) = Some(to);
        let WatchedThere { host, processes, told, beside, databases } = watched;
        let interval_ns = interval.as_nanos() as u64;
        let word = ToHost::Watch { host, interval_ns, databases, processes, told, beside };
        self.ask(&word, SHORT, None).map(drop)
    }

    /// Makes a cluster or a replica set of servers that run elsewhere, unless that has been `made`; their URIs, one for each
    /// instance.
    pub fn form_cluster(
        &self,
        spec: &ServerSpec,
        nodes: &[SocketAddr],
        made: bool,
        control: &Control,
    ) -> Result<Vec<String>, RemoteError> {
        let word = ToHost::Form { spec: Box::new(spec.clone()), nodes: nodes.to_vec(), made };
        match self.ask(&word, LONG, Some(control))? {
            FromHost::Started { uris, .. } => Ok(uris),
            _ => Err(self.host.failed("another answer than servers")),
        }
    }

    /// Keys or documents of servers that run elsewhere, after they have written them to disk where `save` says so.
    pub fn count(
        &self,
        spec: &ServerSpec,
        nodes: &[SocketAddr],
        save: bool,
        control: &Control,
    ) -> Result<u64, RemoteError> {
        let word = ToHost::Count { spec: Box::new(spec.clone()), nodes: nodes.to_vec(), save };
        match self.ask(&word, LONG, Some(control))? {
            FromHost::Counted(count) => Ok(count),
            _ => Err(self.host.failed("another answer than a count")),
        }
    }

    /// Does something to a worker there on purpose; what undoes it, if there is something to undo.
    pub fn inject_into_worker(&self, pid: u32, fault: WorkerFault) -> Result<Option<u64>, RemoteError> {
        match self.ask(&ToHost::InjectIntoWorker { pid, fault }, SHORT, None)? {
            FromHost::Injected(outcome) => Ok(outcome.noted.first().copied()),
            _ => Err(self.host.failed("another answer than what came of it")),
        }
    }

    /// Undoes that.
    pub fn heal_worker(&self, noted: u64) -> Result<(), RemoteError> {
        self.ask(&ToHost::HealWorker { noted }, SHORT, None).map(drop)
    }

    /// The volume there that servers of this description would begin with: its folder, what was found, and the version of their
    /// program.
    pub fn look_at_volume(&self, spec: &ServerSpec) -> Result<(PathBuf, FoundVolume, String), RemoteError> {
        match self.ask(&ToHost::Look { spec: Box::new(spec.clone()) }, SHORT, None)? {
            FromHost::Found { folder, there, record, version } => {
                Ok((folder, FoundVolume { record: record.map(|record| *record), there }, version))
            }
            _ => Err(self.host.failed("another answer than what is there")),
        }
    }

    /// Returns a handle that asks the monitors for further samples.
    pub fn marker(&self) -> AgentMarker {
        AgentMarker {
            host: self.name().to_owned(),
            input: self.input.clone(),
            clock: self.clock.clone(),
            marked: self.marked.clone(),
        }
    }

    /// Ends the monitors.
    pub fn end_watch(&self) -> Result<(), RemoteError> {
        let done = self.ask(&ToHost::Unwatch, SHORT, None).map(drop);
        *held(&self.sink) = None;
        done
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.host.name()
    }
}

/// Tells that nothing more comes of what an agent has read so far.
fn fall_silent(sources: &BTreeSet<String>, host: &str, sink: &Sinks) {
    let Some(to) = held(sink).clone() else { return };
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    for source in sources {
        let named = if source == "host" { format!("host-{host}") } else { source.clone() };
        // One sample may be missing by chance.
        for later in 0..2 {
            held(&to).sample(&named, now_ns + later, None);
        }
        held(&to).event(&named, "the agent there was lost: nothing more is known");
    }
}

/// Hands a word on; false once its receiver no longer listens.
fn pass(word: FromHost, host: &str, sink: &Sinks, clock: &Mutex<Offset>, tell: &Sender<FromHost>) -> bool {
    let named = |source: String| if source == "host" { format!("host-{host}") } else { source };
    let to = held(sink).clone();
    match (word, to) {
        (FromHost::Sample { source, at_ns, readings }, Some(to)) => {
            let at_ns = at_ns.saturating_add_signed(-held(clock).ns);
            let sample = readings.map(|readings| {
                let mut sample = Sample::default();
                for (name, counter, value) in readings {
                    sample.add_figure(
                        name,
                        if counter { SeriesKind::Counter } else { SeriesKind::Gauge },
                        value,
                    );
                }
                sample
            });
            held(&to).sample(&named(source), at_ns, sample.as_ref());
            true
        }
        (FromHost::Event { source, text }, Some(to)) => {
            held(&to).event(&named(source), &text);
            true
        }
        (FromHost::Sample { .. } | FromHost::Event { .. }, None) => true,
        (answer, _) => tell.send(answer).is_ok(),
    }
}

impl Drop for RemoteAgent {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        // Closing the pipe ends the agent and all it has started.
        drop(held(&self.input).take());
        self.running.end(Instant::now() + SHORT);
    }
}

/// Servers on another host.
pub struct RemoteServer {
    agent: RemoteAgent,
    /// Their URIs, one for each instance.
    pub uris: Vec<String>,
    /// Names and numbers of their processes there.
    pub processes: Vec<(String, u32)>,
    /// Cores that they are confined to; none: any.
    pub cores: Vec<usize>,
}

impl RemoteServer {
    /// Creates the servers of an agent, which will start them.
    pub fn of_agent(agent: RemoteAgent) -> RemoteServer {
        RemoteServer { agent, uris: Vec::new(), processes: Vec::new(), cores: Vec::new() }
    }

    /// Starts them, with settings of their host, and with the data of a volume (its folder, and which load they are of) if one is
    /// named. Those that ran before
    /// end.
    pub fn start(
        &mut self,
        (spec, preparation): (&ServerSpec, &FaultPreparation),
        tuning: &HostTuning,
        volume: Option<(PathBuf, String)>,
        control: &Control,
    ) -> Result<(), RemoteError> {
        let word = ToHost::Start {
            spec: Box::new(spec.clone()),
            preparation: Box::new(preparation.clone()),
            volume,
            tuning: Box::new(tuning.clone()),
        };
        match self.agent.ask(&word, LONG, Some(control))? {
            FromHost::Started { uris, processes, cores } => {
                (self.uris, self.processes, self.cores) = (uris, processes, cores);
            }
            _ => return Err(self.agent.host.failed("another answer than servers")),
        }
        Ok(())
    }

    /// Keys or documents of all instances.
    pub fn count_records(&self, control: &Control) -> Result<u64, RemoteError> {
        match self.agent.ask(&ToHost::CountOwn, LONG, Some(control))? {
            FromHost::Counted(count) => Ok(count),
            _ => Err(self.agent.host.failed("another answer than a count")),
        }
    }

    /// Keeps their data as a volume in `folder`.
    pub fn keep_volume(&self, folder: &Path, record: &Loaded, control: &Control) -> Result<(), RemoteError> {
        let word = ToHost::Keep { folder: folder.to_owned(), record: Box::new(record.clone()) };
        self.agent.ask(&word, VERY_LONG, Some(control)).map(drop)
    }

    /// The agent.
    pub fn agent(&self) -> &RemoteAgent {
        &self.agent
    }

    /// Returns facts about the servers, and the reason if they are no longer there.
    pub fn server_facts(&self) -> Result<(BTreeMap<String, String>, Option<String>), RemoteError> {
        match self.agent.ask(&ToHost::Ask, SHORT, None)? {
            FromHost::Facts { facts, died } => Ok((facts, died)),
            _ => Err(self.agent.host.failed("another answer than facts")),
        }
    }

    /// Keeps their logs and configurations in `folder`. What cannot be had is missing there.
    pub fn collect(&self, folder: &Path) {
        let files = match self.agent.ask(&ToHost::Collect, LONG, None) {
            Ok(FromHost::Collected(files)) => files,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "what the servers have said could not be kept");
                return;
            }
        };
        for file in files {
            if let Err(error) = file.write_into(folder) {
                tracing::warn!(%error, "what a server has said could not be kept");
            }
        }
    }

    /// Does something to some of its processes, from 0, on purpose.
    pub fn inject_fault(
        &self,
        which: Range<usize>,
        fault: &ServerFault,
    ) -> Result<FaultOutcome, RemoteError> {
        let word = ToHost::InjectFault { which: (which.start, which.end), fault: fault.clone() };
        match self.agent.ask(&word, LONG, None)? {
            FromHost::Injected(outcome) => Ok(*outcome),
            _ => Err(self.agent.host.failed("another answer than what came of it")),
        }
    }

    /// Undoes that; what there is to say of it.
    pub fn heal_fault(
        &self,
        which: &[usize],
        fault: &ServerFault,
        noted: &[u64],
    ) -> Result<Option<String>, RemoteError> {
        let word = ToHost::Heal { which: which.to_vec(), fault: fault.clone(), noted: noted.to_vec() };
        match self.agent.ask(&word, LONG, None)? {
            FromHost::Healed(said) => Ok(said),
            _ => Err(self.agent.host.failed("another answer than that it is undone")),
        }
    }

    /// Keeps a copy of the loaded data.
    pub fn keep_loaded(&self, control: &Control) -> Result<(), RemoteError> {
        self.agent.ask(&ToHost::Loaded, LONG, Some(control)).map(drop)
    }

    /// Stops them.
    pub fn stop(self) -> Result<(), RemoteError> {
        if self.agent.given_up.load(Ordering::Relaxed) {
            // Closing the pipe, which follows, stops them, too.
            return Ok(());
        }
        self.agent.ask(&ToHost::Stop, LONG, None).map(drop)
    }
}
