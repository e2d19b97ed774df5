//! Live metrics of a run: served to Prometheus (`--metrics`), and sent to receivers (`--remote-write`, `--otlp`).
//!
//! `families` makes them, once for all; `receivers` sends them on.

mod args;
mod families;
mod receivers;

pub use args::{LiveArgs, Outlets};

use crate::exit::Failure;
use crate::push::Sender;
use crate::terminal;
use dyno_engine::{Job, Pacing};
use dyno_monitor::ProcessCpu;
use dyno_monitor::prometheus::{MetricsServer, render_families};
use dyno_record::Totals;
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_session::watch::monitor_snapshot::SourceSnapshot;
use receivers::Receivers;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// One phase as it was when it was last told of.
struct PhaseTotals {
    metrics: Vec<String>,
    totals: Totals,
    /// Begin: not later than its first operation.
    since: SystemTime,
}

/// Serves and sends what observers are told.
pub struct MetricsOutlets {
    exporter: Option<MetricsServer>,
    receivers: Receivers,
    run: String,
    target: String,
    metrics: Vec<String>,
    users: usize,
    rate: Option<f64>,
    phase: String,
    told: BTreeMap<String, PhaseTotals>,
    /// Begin of the phase under way, or of its warm-up, and of what follows the warm-up.
    begun: (SystemTime, SystemTime),
    /// Begin of this process.
    process: Option<SystemTime>,
    /// Of the experiment's run under way, on every series.
    labels: Vec<(String, String)>,
    /// Last samples of servers and databases.
    said: Vec<(String, SourceSnapshot)>,
}

impl MetricsOutlets {
    /// Opens the outlets that are wanted, for the run called `run` on `target`; `None`: none is.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn open(outlets: Outlets, run: String, target: String) -> Result<Option<Self>, Failure> {
        if outlets.is_empty() {
            return Ok(None);
        }
        let exporter = outlets.metrics.as_deref().map(listen).transpose()?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let sender = Sender { host, run: run.clone(), target: target.clone(), version };
        let receivers = Receivers::start(outlets.receivers, &sender, outlets.push_interval)?;
        let now = SystemTime::now();
        let mut metrics = MetricsOutlets {
            exporter,
            receivers,
            run,
            target,
            metrics: Vec::new(),
            users: 0,
            rate: None,
            phase: "preparing".into(),
            told: BTreeMap::new(),
            begun: (now, now),
            process: ProcessCpu::start_time(),
            labels: Vec::new(),
            said: Vec::new(),
        };
        metrics.publish(true);
        Ok(Some(metrics))
    }

    /// A run of an experiment begins: its cell and repetition are labels of every series from now on.
    pub fn of_experiment(&mut self, cell: usize, repetition: u32) {
        self.labels = vec![("cell".into(), cell.to_string()), ("repetition".into(), repetition.to_string())];
        self.told.clear();
        self.said.clear();
        self.phase = "preparing".into();
        self.publish(true);
    }

    /// Ends pushing: flushes the queues and reports what was lost. The served page stays.
    pub fn finish(&mut self) {
        self.receivers.end();
    }

    /// `at_once`: receivers get it whatever their interval.
    fn publish(&mut self, at_once: bool) {
        self.receivers.complain();
        let due = self.receivers.are_due(at_once);
        if self.exporter.is_none() && !due {
            return;
        }
        let families = self.families();
        if let Some(exporter) = &self.exporter {
            exporter.publish_text(render_families(&families));
        }
        if due {
            self.receivers.push(families);
        }
    }
}

/// Listens on `place`. A port alone is one of the loopback.
fn listen(place: &str) -> Result<MetricsServer, Failure> {
    let port = place.strip_prefix(':').unwrap_or(place).parse::<u16>();
    let exporter = match port {
        Ok(port) => MetricsServer::listen_on(&format!("127.0.0.1:{port}")),
        Err(_) => MetricsServer::listen_on(place),
    };
    let exporter = exporter.map_err(|e| Failure::usage(format!("--metrics {place}: {e}")))?;
    terminal::note(&format!("metrics for Prometheus: http://{}/metrics", exporter.listening_address()));
    Ok(exporter)
}

impl Observer for MetricsOutlets {
    fn begin(&mut self, phase: &str, job: &Job) {
        self.phase = if job.warmup_ns > 0 { "warmup".into() } else { phase.to_owned() };
        self.metrics = job.workload.metrics().to_vec();
        self.users = job.users;
        self.rate = match &job.pacing {
            Pacing::Open { profile, .. } => Some(profile.rate_at(job.warmup_ns)),
            Pacing::Closed { .. } | Pacing::Recorded => None,
        };
        let now = SystemTime::now();
        self.begun = (now, now + Duration::from_nanos(job.warmup_ns));
        let first = PhaseTotals {
            metrics: self.metrics.clone(),
            totals: Totals::new(self.metrics.len(), job.scale),
            since: now,
        };
        self.told.insert(self.phase.clone(), first);
        self.publish(true);
    }

    fn second(&mut self, p: &PhaseProgress<'_>) {
        self.phase = p.phase.to_owned();
        self.said.clone_from(&p.said);
        let mut totals = Totals::new(self.metrics.len(), p.so_far.slot_scale());
        totals.merge(p.so_far);
        // Virtual time may be ahead of the clock.
        let since = if p.phase == "warmup" { self.begun.0 } else { self.begun.1.min(SystemTime::now()) };
        let since = self.told.get(&self.phase).map_or(since, |told| told.since);
        self.told.insert(self.phase.clone(), PhaseTotals { metrics: self.metrics.clone(), totals, since });
        self.publish(false);
    }

    fn end(&mut self, _phase: &Phase) {
        self.phase = "ended".into();
        self.publish(true);
    }
}

/// Both are told.
pub struct ObserverPair<'a>(pub &'a mut dyn Observer, pub Option<&'a mut MetricsOutlets>);

impl Observer for ObserverPair<'_> {
    fn begin(&mut self, phase: &str, job: &Job) {
        self.0.begin(phase, job);
        if let Some(metrics) = &mut self.1 {
            metrics.begin(phase, job);
        }
    }

    fn second(&mut self, progress: &PhaseProgress<'_>) {
        self.0.second(progress);
        if let Some(metrics) = &mut self.1 {
            metrics.second(progress);
        }
    }

    fn end(&mut self, phase: &Phase) {
        self.0.end(phase);
        if let Some(metrics) = &mut self.1 {
            metrics.end(phase);
        }
    }
}
