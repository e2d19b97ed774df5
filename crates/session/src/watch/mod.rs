//! Monitors of a run: what there is to watch, and what is kept of it.

pub mod monitor_snapshot;
pub mod sources;

use crate::hosts::others_of;
use crate::watch::monitor_snapshot::MonitorSnapshot;
use crate::watch::monitor_snapshot::{ServerNow, SourceSnapshot};
use dyno_analysis::is_summarised;
use dyno_monitor::prometheus::{PrometheusSource, Url};
use dyno_monitor::{
    Cost, HostSource, Marker, Monitor, Neighbours, Pid, ProcessSource, Roots, SampleSink, Source,
};
use dyno_rundir::monitor::{MonitorWriter, Recording};
use dyno_rundir::schema::OthersUse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How far before a phase to look for a sample that stands in for a missing one at its start.
const BEFORE: Duration = Duration::from_secs(30);

/// Time that the edge of a phase waits for samples of other hosts.
const MARKED: Duration = Duration::from_secs(1);

/// Monitors of another host, as far as a phase's boundaries concern them.
pub trait RemoteMarker: Send + Sync {
    /// Takes a further sample at `at` of this host's clock, or at once where that is past.
    fn mark_at(&self, at: SystemTime);

    /// Takes a further sample now, and returns how many have been told so far.
    fn mark_now(&self) -> u64;

    /// Waits until one more than `before` has been told, but no longer than to `end`. Returns the cores that other programs of
    /// that host have used since the one before, by name; `None` if it was not told.
    fn await_mark(&self, before: u64, end: Instant) -> Option<BTreeMap<String, f64>>;

    /// Name of that host.
    fn host(&self) -> &str;
}

/// A source that says something seldom. It ends when it is dropped.
pub trait SlowSource: Send {
    /// Asks once more, now, and waits for the answer, but not for long.
    fn ask_now(&self);
}

/// Things to watch beside the host, this process and the database.
#[derive(Clone, Debug)]
pub struct WatchPlan {
    /// Time between two ticks.
    pub interval: Duration,
    /// Further processes of this host by name: those called `server`, `server-1` and so on are the database's.
    pub processes: Vec<(String, Pid)>,
    /// Exporters by name.
    pub exporters: Vec<(String, Url)>,
    /// Cores for the monitors: not those of the load threads. None means any.
    pub cores: Vec<usize>,
}

/// Monitors at work.
pub struct MonitorWatch {
    monitor: Monitor,
    seen: Arc<Mutex<MonitorSnapshot>>,
    /// The run directory.
    directory: Option<PathBuf>,
    /// The processes that are the run's own.
    own: Vec<Pid>,
    /// True if a server is among them.
    server_known: bool,
    /// Asked beside the others, in their own time.
    slow: Option<Box<dyn SlowSource>>,
    /// Monitors of other hosts.
    far: Vec<Arc<dyn RemoteMarker>>,
}

/// Asks all monitors of a run for further samples, those of other hosts too.
pub(crate) struct Markers(Marker, Vec<Arc<dyn RemoteMarker>>);

impl Markers {
    /// Takes a further sample at `at`.
    pub fn mark_at(&self, at: SystemTime) {
        self.0.mark_at(at);
        self.1.iter().for_each(|far| far.mark_at(at));
    }
}

impl MonitorWatch {
    /// Begins to watch the host, this process, what the plan names, and `databases`; into `directory`, if there is one.
    pub fn start(
        databases: Vec<Box<dyn Source>>,
        plan: &WatchPlan,
        directory: Option<&Path>,
    ) -> std::io::Result<Self> {
        let roots = Roots::default();
        let this = std::process::id();
        let mut sources: Vec<Box<dyn Source>> = vec![
            Box::new(HostSource::new(roots.clone())),
            Box::new(ProcessSource::new("dyno", roots.clone(), this)),
        ];
        let own = plan.processes.iter().map(|(_, pid)| pid.clone()).collect();
        let server_known = plan.processes.iter().any(|(name, _)| name.starts_with("server"));
        for (name, pid) in &plan.processes {
            sources.push(Box::new(ProcessSource::new(name, roots.clone(), pid.clone())));
        }
        sources.extend(databases);
        for (name, url) in &plan.exporters {
            let name = format!("prometheus-{name}");
            sources.push(Box::new(PrometheusSource::new(&name, url.clone())));
        }
        let interval_ms = plan.interval.as_secs_f64() * 1e3;
        let writer = directory.map(|d| MonitorWriter::create_in(d, interval_ms)).transpose()?;
        let seen = Arc::new(Mutex::new(MonitorSnapshot::new(writer, plan.interval)));
        let monitor = Monitor::start(sources, plan.interval, &plan.cores, seen.clone())?;
        Ok(MonitorWatch {
            monitor,
            seen,
            directory: directory.map(Path::to_owned),
            own,
            server_known,
            slow: None,
            far: Vec::new(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, MonitorSnapshot> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch what other programs of this host use.
    pub(crate) fn neighbours(&self) -> Neighbours {
        Neighbours::start(Roots::default())
    }

    /// Returns what other programs have used since.
    pub(crate) fn others(&self, since: &Neighbours) -> OthersUse {
        let own: Vec<u32> = self.own.iter().filter_map(Pid::get).collect();
        others_of(since.cores_used(&own, self.server_known))
    }

    /// A phase is about to begin: what came before it is only in the files from now on.
    pub(crate) fn begin(&self) {
        self.mark();
        self.seen().forget_source(SystemTime::now());
    }

    /// A sample of everything now: nothing is under way before a phase and after it, so that counters of both are whole. Returns
    /// what other programs of other hosts have used since the one before.
    fn mark(&self) -> BTreeMap<String, OthersUse> {
        self.monitor.take_samples();
        let before: Vec<u64> = self.far.iter().map(|one| one.mark_now()).collect();
        let end = Instant::now() + MARKED;
        let told = self.far.iter().zip(before);
        told.filter_map(|(one, before)| {
            Some((one.host().to_owned(), others_of(one.await_mark(before, end)?)))
        })
        .collect()
    }

    /// Takes samples at given times.
    pub(crate) fn markers(&self) -> Markers {
        Markers(self.monitor.make_marker(), self.far.clone())
    }

    /// A phase has ended. Returns what other programs of other hosts have used in it, by host.
    pub(crate) fn end(&self) -> BTreeMap<String, OthersUse> {
        let others = self.mark();
        self.slow.iter().for_each(|source| source.ask_now());
        others
    }

    /// Returns what monitors have recorded of the phase that began last, at `from`. It is read from the run directory, where
    /// there is one: runs may take days, and memory must not grow with them.
    pub(crate) fn recording(&self, from: SystemTime) -> Recording {
        let Some(directory) = &self.directory else { return self.seen().recording.clone() };
        let from_ms = dyno_monitor::unix_ns(from - BEFORE) as f64 / 1e6;
        let recording = Recording::open_part(directory, from_ms, &is_summarised);
        let recording = recording.map_err(|refused| refused.to_string()).and_then(|found| {
            found.ok_or_else(|| format!("{}: the monitors' folder is not there", directory.display()))
        });
        recording.unwrap_or_else(|why| {
            self.seen().event("summary", &why);
            Recording::new()
        })
    }

    /// Keeps what asks kubelets, until the end.
    pub fn keep_kubelets(&mut self, source: Box<dyn SlowSource>) {
        self.slow = Some(source);
    }

    /// Has the monitors of another host take samples at the edges of phases, too.
    pub fn mark_too(&mut self, far: Arc<dyn RemoteMarker>) {
        self.far.push(far);
    }

    /// Takes what monitors elsewhere read.
    pub fn remote_sink(&self) -> Arc<Mutex<dyn SampleSink>> {
        self.seen.clone()
    }

    /// Sources that answer no more.
    pub(crate) fn silent(&self) -> Vec<String> {
        self.seen().silent_sources()
    }

    /// Returns the latest metrics that the database reports, if it does.
    pub fn latest_metrics(&self) -> Option<ServerNow> {
        self.seen().sum_latest()
    }

    /// Returns the latest snapshot of each server and database, by source.
    pub fn latest_snapshots(&self) -> Vec<(String, SourceSnapshot)> {
        self.seen().latest_snapshots()
    }

    /// Returns events of sources since the last call: when, which, in words.
    pub(crate) fn events(&self) -> Vec<(SystemTime, String)> {
        self.seen().take_events()
    }

    /// Ends all monitors: what they have cost, and the first write that failed.
    pub fn finish(mut self) -> (Cost, Option<String>) {
        drop(self.slow.take());
        let cost = self.monitor.stop();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (cost, seen.take_failure().map(str::to_owned))
    }
}
