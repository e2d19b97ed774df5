//! The agent: does on this host what a controller elsewhere asks for, and ends with its pipe.

use crate::protocol::agent::{FromHost, ToHost};
use crate::protocol::frame::{Frame, FrameError, read_frame, write_frame};
use crate::protocol::outbox::Outbox;
use crate::protocol::silence::{GONE, LEASE, Silence};
use crate::protocol::worker::PROTOCOL;
use crate::servers::preflight::version_of;
use crate::servers::server::fault_preparation::FaultPreparation;
use crate::servers::server::faults::{FaultOutcome, ServerFault, WorkerFault};
use crate::servers::server::{Beginning, Server, volume};
use crate::servers::volume::Loaded;
use dyno_config::server::tuning::HostTuning;
use dyno_config::server::{IfNotPermitted, ServerSpec};
use dyno_databases::registry;
use dyno_db::target::OpenTarget;
use dyno_db::target_error::TargetError;
use dyno_engine::Control;
use dyno_engine::net::monotonic_ns;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::tuning::{Tuned, apply_settings};
use dyno_localhost::undo;
use dyno_monitor::{
    HostSource, Monitor, Neighbours, Pid, ProcessSource, Roots, Sample, SampleSink, SeriesKind, Source,
};
use dyno_rundir::log::{self, TargetFilter};
use dyno_rundir::schema::Environment;
use dyno_session::watch::sources::{DeclaredProcess, watch_all};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time that what was said last may take to go out.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Says a word, after what the log holds by now.
fn say(output: &Outbox, word: &FromHost) -> io::Result<()> {
    let records = log::take_waiting().into_iter().map(|record| FromHost::Log(Box::new(record)));
    let records: Vec<FromHost> = records.collect();
    output.send_all(records.iter().chain([word]).map(Frame::Message))
}

/// Passes on what monitors read.
struct SampleForwarder(Outbox);

impl SampleSink for SampleForwarder {
    fn sample(&mut self, source: &str, at_ns: u64, sample: Option<&Sample>) {
        let each = |r: &dyno_monitor::Reading| (r.name.clone(), r.kind == SeriesKind::Counter, r.value);
        let readings = sample.map(|sample| sample.all_readings().iter().map(each).collect());
        // A controller that is gone shows at the other end of the pipe.
        let _ = say(&self.0, &FromHost::Sample { source: source.to_owned(), at_ns, readings });
    }

    fn event(&mut self, source: &str, message: &str) {
        let _ = say(&self.0, &FromHost::Event { source: source.to_owned(), text: message.to_owned() });
    }
}

/// The folder in an agent's own that has the journal of workers.
const WORKERS: &str = "workers";
/// The folder of the journal of settings of this host.
const SETTINGS: &str = "settings";

/// Other programs of this host, and which are not others: those of the run.
struct OtherPrograms {
    since: Neighbours,
    own: Vec<Pid>,
    /// True if a server is among them.
    server_known: bool,
}

impl OtherPrograms {
    /// Returns what they have used since the last call, or since this was made.
    fn lap(&mut self) -> BTreeMap<String, f64> {
        let own: Vec<u32> = self.own.iter().filter_map(Pid::get).collect();
        let used = self.since.cores_used(&own, self.server_known);
        self.since = Neighbours::start(Roots::default());
        used
    }
}

/// State of an agent: servers, monitors and journals that it has for its controller.
struct Host {
    work_dir: PathBuf,
    output: Outbox,
    control: Arc<Control>,
    server: Option<Server>,
    /// True if a copy of loaded data is asked for.
    keeps: bool,
    monitor: Option<Monitor>,
    /// Other programs of this host since the last sample that was asked for.
    neighbours: Option<OtherPrograms>,
    /// Of workers that are stopped.
    workers: Option<undo::Journal>,
    /// Settings of this host that are put back with the end of the servers.
    tuned: Option<Tuned>,
}

/// Serves one controller until it closes the pipe or is silent for too long. Servers have their files in a folder of their own
/// below `directory`, which goes with them; what an agent that was killed has left there is undone first.
pub fn serve_agent(
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
    directory: &Path,
    environment: Environment,
) -> Result<(), FrameError> {
    let Frame::Message(ToHost::Hello { protocol, log }) = read_frame(&mut input)? else {
        return Err(FrameError::Malformed("the first word must be hello".into()));
    };
    // The controller has read them.
    log::set_filters(log.iter().filter_map(|text| TargetFilter::parse(text).ok()).collect());
    let dyno = env!("CARGO_PKG_VERSION").into();
    // The greeting comes first, before what the log holds.
    let hello = FromHost::Hello { protocol: PROTOCOL, dyno, environment: Box::new(environment) };
    write_frame(&mut output, &Frame::Message(&hello))?;
    if protocol != PROTOCOL {
        let text =
            format!("the controller speaks protocol {protocol}, this host {PROTOCOL}: use the same dyno");
        return Err(FrameError::Malformed(text));
    }
    let control = Arc::new(Control::default());
    let heard = Arc::new(AtomicU64::new(monotonic_ns()));
    let closed = Arc::new(AtomicBool::new(false));
    let (tell, told) = channel();
    let (listening, hearing, closing) = (control.clone(), heard.clone(), closed.clone());
    let listen = move || {
        listen(&mut input, &hearing, &tell);
        closing.store(true, Ordering::Relaxed);
        // The controller no longer waits for the answer that is being waited for.
        listening.abort_run();
    };
    std::thread::Builder::new().name("pipe".into()).spawn(listen)?;
    clean(directory);
    let work_dir = directory.join(format!("{}{}", own_folders(), std::process::id()));
    let output = Outbox::start(output)?;
    let mut host = Host {
        work_dir,
        output: output.clone(),
        control,
        server: None,
        keeps: false,
        monitor: None,
        neighbours: None,
        workers: None,
        tuned: None,
    };
    host.serve(&told, &heard, &closed);
    host.end();
    output.close(LAST_WORDS);
    Ok(())
}

fn listen(input: &mut impl Read, heard: &AtomicU64, tell: &Sender<ToHost>) {
    while let Ok(Frame::Message(word)) = read_frame::<ToHost>(input) {
        heard.store(monotonic_ns(), Ordering::Relaxed);
        if !matches!(word, ToHost::Ping) && tell.send(word).is_err() {
            return;
        }
    }
}

/// Returns the prefix of the names of this host's folders: several hosts may share a home, and each knows its own
/// processes alone.
fn own_folders() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().replace('/', "_");
    format!("host-{name}-")
}

/// Undoes what agents that were killed have left: their folders are named by processes that are no more.
fn clean(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(&own_folders()).and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        let program = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&program);
        if words.split('\0').any(|word| word == "host") && words.contains("--stdio") {
            continue;
        }
        // A folder that cannot be undone stays there to be looked at.
        let undone =
            |folder: PathBuf| undo::revert_journal(&folder.join(undo::NAME), &Machine::default()).is_ok();
        let own = [entry.path().join(WORKERS), entry.path().join(SETTINGS), entry.path()];
        if own.into_iter().all(undone) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Why this host cannot do what it is asked for.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    /// A server, its data or what must be put back.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A file or a folder.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// The folder of volumes.
    #[error("server.data.path: {}: {source}", .path.display())]
    DataPath { path: PathBuf, source: io::Error },
    /// The controller does not take what it is told.
    #[error(transparent)]
    Pipe(#[from] io::Error),
    /// No monitors look on.
    #[error("cannot start the monitors: {0}")]
    Monitors(#[source] io::Error),
    /// A volume is looked for that is not named.
    #[error("no volume is asked for")]
    NoVolume,
    /// No server was started.
    #[error("there is no server")]
    NoServer,
    /// Fewer processes were started.
    #[error("there is no such server")]
    NoSuchServer,
    /// A volume would keep other data than were loaded.
    #[error("{loaded} were loaded, {there} are there now")]
    Changed { loaded: u64, there: u64 },
    /// A process that is no worker of the agent's.
    #[error("process {0} is no worker")]
    NoWorker(u32),
}

/// Servers that run elsewhere: made one, and awaited.
fn form(
    spec: &ServerSpec,
    nodes: &[SocketAddr],
    made: bool,
    control: &Control,
) -> Result<FromHost, AgentError> {
    let uris = dyno_databases::container::form_elsewhere(spec, nodes, made, control)?;
    Ok(FromHost::Started { uris, processes: Vec::new(), cores: Vec::new() })
}

/// Counts keys or documents of servers that run elsewhere.
fn count(spec: &ServerSpec, nodes: &[SocketAddr], save: bool) -> Result<FromHost, AgentError> {
    if save {
        dyno_databases::container::save_elsewhere(spec, nodes)?;
    }
    Ok(FromHost::Counted(dyno_databases::container::count_elsewhere(spec, nodes)?))
}

/// The volume that servers of this description would begin with.
fn look(spec: &ServerSpec) -> Result<FromHost, AgentError> {
    let (Some(asked), Some(path)) = (&spec.data.volume, &spec.data.path) else {
        return Err(AgentError::NoVolume);
    };
    let path = path.of_process(0);
    let base =
        path.canonicalize().map_err(|source| AgentError::DataPath { path: path.to_owned(), source })?;
    let folder = volume::volume_folder(&base, &asked.name);
    let version = version_of(spec, &Machine::default())?;
    let found = volume::look_into(&folder);
    Ok(FromHost::Found { folder, there: found.there, record: found.record.map(Box::new), version })
}

fn file(path: &Path, source: io::Error) -> AgentError {
    AgentError::File { path: path.to_owned(), source }
}

impl Host {
    fn serve(&mut self, told: &Receiver<ToHost>, heard: &AtomicU64, closed: &AtomicBool) {
        let mut silence = Silence::starting(heard.load(Ordering::Relaxed));
        while !closed.load(Ordering::Relaxed) {
            let silent_ns = silence.look(heard.load(Ordering::Relaxed), monotonic_ns());
            // Servers outlive the load, which ends with the lease.
            if u128::from(silent_ns) > (GONE * LEASE).as_nanos() {
                tracing::error!(silent_ns, "the controller is silent: this agent ends");
                return;
            }
            let word = match told.recv_timeout(Duration::from_millis(50)) {
                Ok(word) => word,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let answer = match word {
                ToHost::Clock => {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                    Ok(FromHost::Clock { now_ns: now.as_nanos() as u64 })
                }
                ToHost::Start { spec, preparation, volume, tuning } => {
                    self.start(&spec, &preparation, &tuning, volume.as_ref())
                }
                ToHost::Look { spec } => look(&spec),
                ToHost::Keep { folder, record } => self.keep(&folder, &record),
                ToHost::CountOwn => self.count(),
                ToHost::InjectFault { which, fault } => self.inject(which.0..which.1, &fault),
                ToHost::InjectIntoWorker { pid, fault } => self.inject_into_worker(pid, fault),
                ToHost::HealWorker { noted } => self.heal_worker(noted),
                ToHost::Heal { which, fault, noted } => self.heal(&which, &fault, &noted),
                ToHost::Form { spec, nodes, made } => form(&spec, &nodes, made, &self.control),
                ToHost::Count { spec, nodes, save } => count(&spec, &nodes, save),
                ToHost::Watch { host, interval_ns, databases, processes, told, beside } => {
                    self.watch(interval_ns, &databases, (host, &processes), (&told, &beside))
                }
                ToHost::Mark { at_ns: Some(at_ns) } => {
                    let at = UNIX_EPOCH + Duration::from_nanos(at_ns);
                    self.monitor.iter().for_each(|monitor| monitor.make_marker().mark_at(at));
                    continue;
                }
                ToHost::Mark { at_ns: None } => {
                    self.monitor.iter().for_each(Monitor::take_samples);
                    let others = self.neighbours.as_mut().map(OtherPrograms::lap).unwrap_or_default();
                    Ok(FromHost::Marked { others })
                }
                ToHost::Unwatch => {
                    self.monitor.take().map(Monitor::stop);
                    self.neighbours = None;
                    Ok(FromHost::Done)
                }
                ToHost::Ask => Ok(self.facts()),
                ToHost::Collect => Ok(FromHost::Collected(
                    self.server.as_ref().map(Server::collect_files).unwrap_or_default(),
                )),
                ToHost::Loaded => self.loaded(),
                ToHost::Stop => self.stop(),
                ToHost::Hello { .. } | ToHost::Ping => continue,
            };
            let answer = answer.unwrap_or_else(|error| {
                tracing::error!(%error, "this agent has not done what it was asked for");
                FromHost::Failed(error.to_string())
            });
            if say(&self.output, &answer).is_err() {
                return;
            }
        }
    }

    fn start(
        &mut self,
        spec: &ServerSpec,
        preparation: &FaultPreparation,
        tuning: &HostTuning,
        volume: Option<&(PathBuf, String)>,
    ) -> Result<FromHost, AgentError> {
        self.stop()?;
        self.keeps = spec.data.snapshot;
        std::fs::create_dir_all(&self.work_dir).map_err(|source| file(&self.work_dir, source))?;
        let machine = Machine::default();
        if !tuning.is_nothing() {
            let own = self.work_dir.join(SETTINGS);
            std::fs::create_dir_all(&own).map_err(|source| file(&own, source))?;
            let go_on = spec.if_not_permitted == IfNotPermitted::Continue;
            self.tuned = Some(apply_settings(tuning, &machine, &own, go_on)?);
        }
        let volume = volume.map(|(folder, record)| (folder.as_path(), record.as_str()));
        let begin =
            Beginning { preparation: preparation.clone(), volume, lasting: false, loads: false, ways: &[] };
        let started = Server::start_with(spec, &begin, &self.work_dir, &machine, Some(self.control.clone()));
        let server = self.server.insert(started?);
        Ok(FromHost::Started {
            uris: server.client_uris(),
            processes: server.running_processes(),
            cores: server.given_cores(),
        })
    }

    fn own(&mut self) -> Result<&mut Server, AgentError> {
        self.server.as_mut().ok_or(AgentError::NoServer)
    }

    fn count(&mut self) -> Result<FromHost, AgentError> {
        Ok(FromHost::Counted(self.own()?.count_records()?))
    }

    /// Keeps the data as a volume, which is removed again if the servers then have others than were loaded.
    fn keep(&mut self, folder: &Path, record: &Loaded) -> Result<FromHost, AgentError> {
        let server = self.own()?;
        server.keep_copy(folder, record)?;
        let count = server.count_records()?;
        if count != record.count {
            volume::remove_volume(folder).map_err(|source| file(folder, source))?;
            return Err(AgentError::Changed { loaded: record.count, there: count });
        }
        Ok(FromHost::Done)
    }

    /// The servers, if they have so many processes.
    fn having(&mut self, which: &Range<usize>) -> Result<&mut Server, AgentError> {
        let server =
            self.server.as_mut().filter(|server| which.start <= which.end && which.end <= server.count());
        server.ok_or(AgentError::NoSuchServer)
    }

    fn inject(&mut self, which: Range<usize>, fault: &ServerFault) -> Result<FromHost, AgentError> {
        let server = self.having(&which)?;
        Ok(FromHost::Injected(Box::new(server.inject_fault(which, fault))))
    }

    fn heal(&mut self, which: &[usize], fault: &ServerFault, noted: &[u64]) -> Result<FromHost, AgentError> {
        let server = self.having(&(0..which.iter().max().map_or(0, |last| last.saturating_add(1))))?;
        Ok(FromHost::Healed(server.heal_fault(which, fault, noted)?))
    }

    fn inject_into_worker(&mut self, pid: u32, fault: WorkerFault) -> Result<FromHost, AgentError> {
        let machine = Machine::default();
        let words = std::fs::read(machine.proc.join(format!("{pid}/cmdline"))).unwrap_or_default();
        if !String::from_utf8_lossy(&words).contains("worker\0--stdio") {
            return Err(AgentError::NoWorker(pid));
        }
        let journal = match &mut self.workers {
            Some(journal) => journal,
            none => none.insert(undo::Journal::open(&self.work_dir.join(WORKERS), &machine)?),
        };
        let noted = crate::servers::server::faults::inject_into_worker(&machine, journal, pid, fault)?;
        let noted = noted.into_iter().collect();
        Ok(FromHost::Injected(Box::new(FaultOutcome { noted, ..FaultOutcome::default() })))
    }

    fn heal_worker(&mut self, noted: u64) -> Result<FromHost, AgentError> {
        self.workers.as_mut().map_or(Ok(()), |journal| journal.undo_one(noted))?;
        Ok(FromHost::Done)
    }

    fn watch(
        &mut self,
        interval_ns: u64,
        databases: &[String],
        (host, processes): (bool, &[(String, u32)]),
        (told, beside): (&[(String, DeclaredProcess)], &[u32]),
    ) -> Result<FromHost, AgentError> {
        let roots = Roots::default();
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        if host {
            sources.push(Box::new(HostSource::new(roots.clone())));
        }
        let (mut ours, mut server_known) = (beside.iter().copied().map(Pid::from).collect::<Vec<_>>(), false);
        // This host's own servers may be ended and started again, and may have been: they are known by their names.
        let own = self.server.as_ref().map_or(Vec::new(), Server::watched_processes);
        for (name, pid) in processes {
            let named =
                |own: &&(String, Pid)| name.strip_suffix(&own.0).is_some_and(|before| before.ends_with('-'));
            let pid = own.iter().find(named).map_or_else(|| (*pid).into(), |(_, own)| own.clone());
            server_known |= name.starts_with("server");
            ours.push(pid.clone());
            sources.push(Box::new(ProcessSource::new(name, roots.clone(), pid)));
        }
        for (name, told) in told {
            if told.is_here() {
                server_known = true;
                ours.push(told.pid.into());
                sources.push(Box::new(ProcessSource::new(name, roots.clone(), told.pid)));
            } else {
                let text = format!("process {} of {} was not found on this host", told.pid, told.program);
                let word = FromHost::Event { source: "host".into(), text };
                say(&self.output, &word)?;
            }
        }
        let mut opened: Vec<Box<dyn OpenTarget>> = Vec::new();
        for uri in databases {
            match registry::parse(uri)
                .map_err(TargetError::from)
                .and_then(|target| target.open_for_look(&|| self.control.is_stopping()))
            {
                Ok(one) => opened.push(one),
                Err(why) => {
                    let words = FromHost::Event { source: "database".into(), text: why.to_string() };
                    say(&self.output, &words)?;
                }
            }
        }
        sources.extend(watch_all(&opened));
        let sink = Arc::new(Mutex::new(SampleForwarder(self.output.clone())));
        self.monitor.take().map(Monitor::stop);
        let started = Monitor::start(sources, Duration::from_nanos(interval_ns), &[], sink);
        self.monitor = Some(started.map_err(AgentError::Monitors)?);
        self.neighbours = Some(OtherPrograms { since: Neighbours::start(roots), own: ours, server_known });
        Ok(FromHost::Done)
    }

    fn facts(&mut self) -> FromHost {
        match &mut self.server {
            Some(server) => {
                let mut facts = server.server_facts();
                let lost = self.tuned.iter().flat_map(|tuned| &tuned.lost).cloned().collect::<Vec<_>>();
                if !lost.is_empty() {
                    facts.insert("settings_lost".into(), lost.join("; "));
                }
                FromHost::Facts { facts, died: server.describe_death() }
            }
            None => FromHost::Facts { facts: Default::default(), died: None },
        }
    }

    fn loaded(&mut self) -> Result<FromHost, AgentError> {
        if let Some(server) = self.server.as_mut().filter(|_| self.keeps) {
            server.take_snapshot()?;
        }
        Ok(FromHost::Done)
    }

    fn stop(&mut self) -> Result<FromHost, AgentError> {
        // Dropping the journal lets workers that are still stopped go on.
        self.workers = None;
        let stopped = self.server.take().map(Server::stop).transpose();
        // The host is as it was, whatever has become of the servers.
        self.tuned.take().map_or(Ok(()), Tuned::revert_settings)?;
        if stopped?.is_some() {
            std::fs::remove_dir_all(&self.work_dir).map_err(|source| file(&self.work_dir, source))?;
        }
        Ok(FromHost::Done)
    }

    fn end(&mut self) {
        self.monitor.take().map(Monitor::stop);
        if self.stop().is_err() {
            // The next agent tries again.
            return;
        }
        // Nothing is there if no server was started.
        let _ = std::fs::remove_dir_all(&self.work_dir);
    }
}
