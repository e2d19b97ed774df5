//! A run reduced to the figures of the summary.

use crate::markdown::host_facts;
use crate::markdown::host_facts::{HostFacts, HostSections};
use dyno_analysis::latency_from_buckets;
use dyno_record::Totals;
use dyno_rundir::RunDir;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::files;
use dyno_rundir::monitor::{PhaseSpan, RecordedSeries, Recording};
use dyno_rundir::schema::{Pair, Phase, Status, Summary, Trust};
use dyno_types::database_series::{
    CONNECTIONS, CPU_SYSTEM_S, CPU_USER_S, KEYSPACE_MISSES, MEMORY_BYTES, MEMORY_RESIDENT_BYTES, OPERATIONS,
    RECEIVED_BYTES, REPLICATION_LAG_BYTES, REPLICATION_LAG_RECORDS, REPLICATION_PARTIAL_SYNCS,
    REPLICATION_REPLICAS, UPTIME_S,
};
use std::collections::{BTreeMap, BTreeSet};

/// CPU and memory of a component during a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Component {
    /// CPU-seconds.
    pub cpu_s: Option<f64>,
    /// Greatest number of cores in one interval of the monitor.
    pub most: Option<f64>,
    /// Greatest resident memory, GiB.
    pub resident: Option<f64>,
    /// Greatest memory of its control group, with the page cache, GiB.
    pub cached: Option<f64>,
}

/// A phase of a run.
pub(super) struct PhaseFigures {
    /// Summary.
    pub phase: Phase,
    /// Histograms.
    pub totals: Totals,
    /// Names of the metrics.
    pub names: Vec<String>,
    /// The server.
    pub server: Component,
    /// The load generator.
    pub client: Component,
    /// Metrics that the database reports: title and figure.
    pub application: Vec<(String, Option<f64>)>,
}

/// A run.
pub(super) struct Entry {
    /// `Redis-1`.
    pub configuration: String,
    /// Number of the cell.
    pub cell: usize,
    /// Levels in words.
    pub label: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Which round of its configuration it is, if it has several.
    pub client: Option<String>,
    /// Values that a strategy has set.
    pub point: String,
    /// True if several servers are one: a cluster, or a primary with copies.
    pub cluster: bool,
    /// Product and version.
    pub database: String,
    /// The target.
    pub target: String,
    /// Facts of hosts.
    pub hosts: HostSections,
    /// Facts of the database and of dyno's own servers.
    pub facts: HostFacts,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// Effects of the faults that were asked for.
    pub faults: Vec<FaultFigures>,
    /// Status of the run.
    pub status: Status,
    /// Trust in the run.
    pub trust: Trust,
    /// Length, seconds.
    pub seconds: f64,
    /// Part of each worker, by phases.
    pub workers: Vec<Pair>,
    /// Loading.
    pub load: Option<PhaseFigures>,
    /// Execution.
    pub measure: Option<PhaseFigures>,
    /// Phases and where a dashboard shows their time.
    pub links: Vec<(String, String)>,
    /// True if the server's process began anew; `None` where it was not watched.
    pub restarted: Option<bool>,
}

/// The first word of what a database says it is.
pub(super) fn product_name(database: &str) -> String {
    let word = database.split_whitespace().next().unwrap_or("database");
    word.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect()
}

const GIB: f64 = 1_073_741_824.0;

/// Increase of the CPU's time in each interval: the greatest number of cores.
fn most_cores(recording: &Recording, sources: &[&str], from_ms: f64, to_ms: f64) -> Option<f64> {
    let mut sum = 0.0;
    for source in sources {
        let own: Option<Vec<RecordedSeries>> =
            [CPU_USER_S, CPU_SYSTEM_S].iter().map(|name| recording.find_series(source, name)).collect();
        let series = own.or_else(|| Some(vec![recording.find_series(source, "cgroup.cpu_s")?]))?;
        let steps = series[0].points.windows(2).filter(|pair| {
            // Samples that stand beside those at the edges of phases are too close for a rate.
            pair[0].0 >= from_ms - 1.0 && pair[1].0 <= to_ms + 1.0 && pair[1].0 - pair[0].0 > 50.0
        });
        let rates = steps.filter_map(|pair| -> Option<f64> {
            series.iter().map(|one| one.rate_between(pair[0].0, pair[1].0)).sum()
        });
        sum += rates.reduce(f64::max)?;
    }
    (!sources.is_empty()).then_some(sum)
}

pub(super) fn read_component(
    recording: Option<&Recording>,
    prefixes: &[&str],
    boundaries: Option<(f64, f64)>,
) -> Component {
    let (Some(recording), Some((from, to))) = (recording, boundaries) else { return Component::default() };
    // Primaries are asked alone: where there are replicas, they do not tell of all.
    let alone = |source: &str| recording.max(source, REPLICATION_REPLICAS, from, to).is_none_or(|n| n == 0.0);
    // A kubelet looks every 10 to 15 seconds: of a phase that it has not looked at twice it says nothing.
    let tells = |source: &&str| {
        if source.starts_with("database") {
            return alone(source);
        }
        let Some(told) = recording.find_series(source, "cgroup.cpu_s") else { return true };
        let within = told.points.iter().filter(|(at, value)| (from..=to).contains(at) && value.is_some());
        recording.find_series(source, CPU_USER_S).is_some() || within.count() > 1
    };
    let of = |prefix: &&str| -> Vec<&str> {
        recording.source_names().filter(|name| name.starts_with(*prefix)).filter(tells).collect()
    };
    // The first of the kinds that was watched.
    let Some(sources) = prefixes.iter().map(of).find(|found| !found.is_empty()) else {
        return Component::default();
    };
    let sum =
        |one: &dyn Fn(&str) -> Option<f64>| -> Option<f64> { sources.iter().map(|source| one(source)).sum() };
    // Of pods that a kubelet tells of, the control group is known alone.
    let cpu = |source: &str| {
        let rate = |name: &str| recording.counter_rate(source, name, from, to);
        let own = || Some(rate(CPU_USER_S)? + rate(CPU_SYSTEM_S)?);
        own().or_else(|| rate("cgroup.cpu_s"))
    };
    let resident = |source: &str| {
        let names = ["resident_bytes", "cgroup.memory_working_set_bytes", MEMORY_RESIDENT_BYTES];
        names.iter().find_map(|name| recording.max(source, name, from, to))
    };
    Component {
        cpu_s: sum(&cpu).map(|cores| cores * (to - from) / 1e3),
        most: most_cores(recording, &sources, from, to),
        resident: sum(&resident).map(|bytes| bytes / GIB),
        cached: sum_of_groups(recording, &sources, (from, to)).map(|bytes| bytes / GIB),
    }
}

/// The series of a process that tells its control group from others.
const GROUP: &str = "cgroup.number";

/// Greatest memory of the control groups of sources, bytes: a group that several share counts once. One that is also dyno's own
/// is a whole session's, in which anything may run: it tells nothing of a component.
fn sum_of_groups(recording: &Recording, sources: &[&str], (from, to): (f64, f64)) -> Option<f64> {
    let group = |source: &str| recording.max(source, GROUP, from, to);
    let (own, mut seen, mut sum) = (group("dyno"), BTreeSet::new(), 0.0);
    for source in sources {
        let found = group(source);
        if found.is_some() && found == own {
            return None;
        }
        if found.is_none_or(|number| seen.insert(number.to_bits())) {
            sum += recording.max(source, "cgroup.memory_bytes", from, to)?;
        }
    }
    (!sources.is_empty()).then_some(sum)
}

/// Reduction of a series to a figure of a phase.
#[derive(Clone, Copy)]
enum SeriesReduction {
    /// By how much a counter grew.
    Increase,
    /// Increase per second over the phase.
    PerSecond,
    /// The greatest value.
    Most,
}

/// Metrics of databases: title, name of the series, what makes a figure of it, and by what that is
/// divided. The first five are bexhoma's of Dragonfly, whose MB are MiB.
const APPLICATION: [(&str, &str, SeriesReduction, f64); 9] = [
    ("Replies Sent [count]", OPERATIONS, SeriesReduction::Increase, 1.0),
    ("Memory Usage [Gi]", MEMORY_BYTES, SeriesReduction::Most, GIB),
    ("Processed Commands [per second]", OPERATIONS, SeriesReduction::PerSecond, 1.0),
    ("Network Input [MB/sec]", RECEIVED_BYTES, SeriesReduction::PerSecond, 1_048_576.0),
    ("Replica Lag [records]", REPLICATION_LAG_RECORDS, SeriesReduction::Most, 1.0),
    ("Replica Lag [bytes]", REPLICATION_LAG_BYTES, SeriesReduction::Most, 1.0),
    ("PSync [count]", REPLICATION_PARTIAL_SYNCS, SeriesReduction::Increase, 1.0),
    ("Connections [count]", CONNECTIONS, SeriesReduction::Most, 1.0),
    ("Keyspace Misses [count]", KEYSPACE_MISSES, SeriesReduction::Increase, 1.0),
];

/// The place of the lag among them.
const LAG: usize = 4;

fn application(recording: Option<&Recording>, span: Option<PhaseSpan>) -> Vec<(String, Option<f64>)> {
    let (Some(recording), Some(span)) = (recording, span) else { return Vec::new() };
    let (from, to) = span.boundaries();
    let sources: Vec<&str> = recording.source_names().filter(|name| name.starts_with("database")).collect();
    let told = |name: &str| -> Vec<RecordedSeries> {
        sources.iter().filter_map(|source| recording.find_series(source, name)).collect()
    };
    let figure = |series: &RecordedSeries, of: SeriesReduction| match of {
        SeriesReduction::Increase => series.increase_over(span),
        SeriesReduction::PerSecond => series.increase_over(span).map(|count| count / ((to - from) / 1e3)),
        // A short phase may lie between two samples: the one after it tells of it, too.
        SeriesReduction::Most => series.max(from, to).or_else(|| {
            series.points.iter().find(|(at, value)| *at > to && value.is_some()).and_then(|(_, value)| *value)
        }),
    };
    let all = APPLICATION.iter().filter_map(|(title, name, of, by)| {
        let series = told(name);
        let sum = series.iter().map(|series| figure(series, *of)).sum::<Option<f64>>();
        (!series.is_empty()).then(|| ((*title).to_owned(), sum.map(|value| value / by)))
    });
    let mut all: Vec<(String, Option<f64>)> = all.collect();
    // bexhoma has the column of a server without replicas, too.
    if all.len() >= LAG && all.iter().all(|(title, _)| !title.starts_with("Replica Lag")) {
        all.insert(LAG, ("Replica Lag [records]".into(), None));
    }
    all
}

/// Figures of a catalogue of metrics that a front end has left in the run's directory (`application.json`): by phase, title and
/// figure. They stand in the place of those above.
fn catalogue(dir: &RunDir) -> BTreeMap<String, Vec<(String, Option<f64>)>> {
    let text = files::read(&dir.path.join("application.json")).unwrap_or_default();
    let read: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let figure = |one: &serde_json::Value| Some((one["title"].as_str()?.to_owned(), one["value"].as_f64()));
    let phases = read["phases"].as_object().into_iter().flatten();
    let figures = |all: &serde_json::Value| all.as_array().into_iter().flatten().filter_map(figure).collect();
    phases.map(|(phase, all)| (phase.clone(), figures(all))).collect()
}

/// Returns whether a server's process is not the one that it was in the beginning: by its CPU time, by how long a
/// database says that it has been up, or because there is none any more. `None` where no server was watched.
fn restarted(recording: Option<&Recording>) -> Option<bool> {
    let recording = recording?;
    let falls = |series: &RecordedSeries| {
        let known: Vec<f64> = series.points.iter().filter_map(|(_, value)| *value).collect();
        (!known.is_empty()).then(|| known.windows(2).any(|pair| pair[1] < pair[0]))
    };
    let process = |source: &str| {
        let own = recording
            .find_series(source, CPU_USER_S)
            .or_else(|| recording.find_series(source, "cgroup.cpu_s"))?;
        // One sample may be missing by chance.
        let gone = own.points.len() > 2 && own.points.iter().rev().take(2).all(|(_, value)| value.is_none());
        falls(&own).map(|falls| falls || gone)
    };
    let found = recording.source_names().filter_map(|source| match source {
        source if source.starts_with("server") => Some(process(source)),
        source if source.starts_with("database") => {
            falls(&recording.find_series(source, UPTIME_S)?).map(Some)
        }
        _ => None,
    });
    let all: Option<Vec<bool>> = found.collect();
    all.filter(|found| !found.is_empty()).map(|found| found.contains(&true))
}

impl Entry {
    /// A run's figures; its configuration, repetition and point.
    pub(super) fn from_run(
        dir: &RunDir,
        summary: &Summary,
        recording: Option<&Recording>,
        (configuration, repetition, point): (String, u32, String),
    ) -> Self {
        let mut catalogue = catalogue(dir);
        let mut figures = |name: &str| -> Option<PhaseFigures> {
            let phase = summary.phases.iter().find(|phase| phase.name == name)?.clone();
            let recorded = dir.phases.iter().find(|recorded| recorded.name == name);
            let span = recorded.and_then(|recorded| dir.phase_span(recorded).ok().flatten());
            let boundaries = span.map(PhaseSpan::boundaries);
            let names = dir.run.metrics.get(name).cloned().unwrap_or_default();
            let mut totals = Totals::new(names.len(), dyno_record::Scale::Ns64);
            if let Some(recorded) = recorded {
                totals = recorded.totals.empty_like();
                totals.merge(&recorded.totals);
            }
            Some(PhaseFigures {
                phase,
                totals,
                names,
                // Figures that a database reports of its own process stand in for what no monitor saw.
                server: read_component(recording, &["server", "database"], boundaries),
                client: read_component(recording, &["worker", "dyno"], boundaries),
                application: catalogue.remove(name).unwrap_or_else(|| application(recording, span)),
            })
        };
        let told = |key: &str| key.starts_with("pod.") || key.starts_with("node.");
        let rest = dir.run.facts.iter().filter(|(key, _)| !told(key));
        let facts = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
        let settings = &dir.run.settings;
        let (load, measure) = (figures("load"), figures("measure"));
        Entry {
            configuration,
            cell: 1,
            label: String::new(),
            repetition,
            client: None,
            cluster: false,
            point,
            database: summary.database.clone(),
            target: summary.target.clone(),
            hosts: host_facts::read_host_sections(dir, summary, recording),
            facts,
            settings: settings.iter().map(|s| (s.key.clone(), s.value.clone())).collect(),
            faults: summary.faults.clone(),
            status: summary.status,
            trust: summary.verdict.trust,
            seconds: summary.phases.iter().map(|phase| phase.seconds).sum(),
            workers: dir.read_workers().unwrap_or_default(),
            load,
            measure,
            links: summary
                .phases
                .iter()
                .filter_map(|one| Some((one.name.clone(), one.link.clone()?)))
                .collect(),
            restarted: restarted(recording),
        }
    }

    /// `Redis-1-2`, with the round of a configuration and the point of a search.
    pub(super) fn name(&self) -> String {
        let client = self.client.as_ref().map_or(String::new(), |client| format!("-{client}"));
        let point = if self.point.is_empty() { String::new() } else { format!("-{}", self.point) };
        format!("{}-{}{client}{point}", self.configuration, self.repetition)
    }

    /// Which round it is: there may be one only.
    pub(super) fn client_round(&self) -> &str {
        self.client.as_deref().unwrap_or("1")
    }

    /// The point of a search, as a name ends with it.
    pub(super) fn at_point(&self) -> String {
        if self.point.is_empty() { String::new() } else { format!("-{}", self.point) }
    }

    /// bexhoma's names: `Redis-1-2` of a configuration and its repetition ...
    pub(super) fn run_name(&self) -> String {
        format!("{}-{}", self.configuration, self.repetition)
    }

    /// ... `Redis-1-2-1` of a round of it ...
    pub(super) fn phase_name(&self) -> String {
        format!("{}-{}{}", self.run_name(), self.client_round(), self.at_point())
    }

    /// ... and `Redis-1-2-1-1` of the job of a round, of which there is one.
    pub(super) fn job_name(&self) -> String {
        format!("{}-{}-1{}", self.run_name(), self.client_round(), self.at_point())
    }

    /// bexhoma's parameters of the servers that are known here, by its names.
    pub(super) fn eval_parameters(&self) -> Vec<(&'static str, String)> {
        let number = |key: &str| self.settings.get(key).and_then(|value| value.parse::<u64>().ok());
        let replicas = number("server.replicas").filter(|replicas| *replicas > 0);
        let topology = self.settings.get("server.topology").map_or("single", String::as_str);
        let workers = match topology {
            "single" => None,
            "replication" => replicas.map(|replicas| replicas + 1),
            _ => number("server.members"),
        };
        let all = [("BEXHOMA_REPLICAS", replicas), ("BEXHOMA_WORKERS", workers)];
        all.into_iter().filter_map(|(name, value)| Some((name, value?.to_string()))).collect()
    }

    /// Workers that took part in measuring.
    fn pods(&self) -> usize {
        let measured = |one: &&Pair| one.phases.iter().any(|phase| phase.name == "measure");
        self.workers.iter().filter(measured).count().max(1)
    }

    /// Line of the workflow, as the one that was planned.
    pub(super) fn workflow_line(&self) -> String {
        let (configuration, run, client) = (&self.configuration, self.repetition, self.client_round());
        format!("DBMS {configuration} - Experiment {run} Client {client}: ycsb ({} pods)", self.pods())
    }

    /// `Redis-1`, with the round where its configuration has several.
    pub(super) fn cell_name(&self) -> String {
        let client = self.client.as_ref().map_or(String::new(), |client| format!(" Client {client}"));
        format!("{}{client}", self.configuration)
    }

    /// Records that the data set was to have.
    pub(super) fn record_count(&self) -> Option<f64> {
        self.settings.get("recordcount").and_then(|value| value.parse().ok())
    }
}

impl PhaseFigures {
    /// The 99th percentile of the service time of a metric's requests, microseconds; `None` where too few samples support it.
    pub(super) fn p99_us(&self, metric: usize, failed: bool) -> Option<f64> {
        let slot = if failed { self.totals.failed_slot(metric) } else { self.totals.ok_slot(metric) };
        latency_from_buckets(&slot?.service, 0)?.percentiles_us.get("p99").copied().flatten()
    }

    /// Requests of a metric that ended well, and those that failed.
    pub(super) fn request_counts(&self, metric: usize) -> (u64, u64) {
        let all = &self.totals.outcomes[metric];
        let ok = all[dyno_types::Outcome::Ok as usize];
        (ok, all.iter().sum::<u64>() - ok)
    }

    /// Arrivals that did not end well.
    pub(super) fn exception_count(&self) -> u64 {
        let ok = self.phase.outcomes.get("ok").copied().unwrap_or(0);
        self.phase.outcomes.values().sum::<u64>().saturating_sub(ok)
    }
}
