//! A run reduced to the figures of the summary.

use dyno_analysis::latency;
use dyno_record::Totals;
use dyno_rundir::RunDir;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::monitor::{Recording, Series};
use dyno_rundir::schema::{Phase, Status, Summary, Trust};
use std::collections::BTreeMap;

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
    /// Its summary.
    pub phase: Phase,
    /// Its histograms.
    pub totals: Totals,
    /// Names of the metrics.
    pub names: Vec<String>,
    /// The server.
    pub server: Component,
    /// The load generator.
    pub client: Component,
    /// What the database says of itself: title and figure.
    pub application: Vec<(String, Option<f64>)>,
}

/// A run.
pub(super) struct Entry {
    /// `Redis-1`.
    pub configuration: String,
    /// Number of the cell.
    pub cell: usize,
    /// Its levels in words.
    pub label: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Which round of its configuration it is, if it has several.
    pub client: Option<String>,
    /// What a strategy has set.
    pub point: String,
    /// Product and version.
    pub database: String,
    /// The target.
    pub target: String,
    /// Facts of the host and the database.
    pub facts: Vec<(String, String)>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// What faults did that were asked for.
    pub faults: Vec<FaultFigures>,
    /// How far it came.
    pub status: Status,
    /// How far it can be trusted, and why not.
    pub trust: Trust,
    /// Its length, seconds.
    pub seconds: f64,
    /// Loading.
    pub load: Option<PhaseFigures>,
    /// Execution.
    pub measure: Option<PhaseFigures>,
    /// Phases and where a dashboard shows their time.
    pub links: Vec<(String, String)>,
    /// Whether the server's process began anew; `None` where it was not watched.
    pub restarted: Option<bool>,
}

/// The first word of what a database says it is.
pub(super) fn product(database: &str) -> String {
    let word = database.split_whitespace().next().unwrap_or("database");
    word.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect()
}

const GIB: f64 = 1_073_741_824.0;

/// Increase of the CPU's time in each interval: the greatest number of cores.
fn most_cores(recording: &Recording, sources: &[&str], from_ms: f64, to_ms: f64) -> Option<f64> {
    let mut sum = 0.0;
    for source in sources {
        let own: Option<Vec<Series>> =
            ["cpu.user_s", "cpu.system_s"].iter().map(|name| recording.series(source, name)).collect();
        let series = own.or_else(|| Some(vec![recording.series(source, "cgroup.cpu_s")?]))?;
        let steps = series[0].points.windows(2).filter(|pair| {
            // Samples that stand beside those at the edges of phases are too close for a rate.
            pair[0].0 >= from_ms - 1.0 && pair[1].0 <= to_ms + 1.0 && pair[1].0 - pair[0].0 > 50.0
        });
        let rates = steps.filter_map(|pair| -> Option<f64> {
            series.iter().map(|one| one.rate(pair[0].0, pair[1].0)).sum()
        });
        sum += rates.reduce(f64::max)?;
    }
    (!sources.is_empty()).then_some(sum)
}

fn component(recording: Option<&Recording>, prefixes: &[&str], edges: Option<(f64, f64)>) -> Component {
    let (Some(recording), Some((from, to))) = (recording, edges) else { return Component::default() };
    let of = |prefix: &&str| -> Vec<&str> {
        recording.sources().filter(|name| name.starts_with(*prefix)).collect()
    };
    // The first of the kinds that was watched.
    let Some(sources) = prefixes.iter().map(of).find(|found| !found.is_empty()) else {
        return Component::default();
    };
    let sum =
        |one: &dyn Fn(&str) -> Option<f64>| -> Option<f64> { sources.iter().map(|source| one(source)).sum() };
    // Of pods that a kubelet tells of, the control group is known alone.
    let cpu = |source: &str| {
        let rate = |name: &str| recording.rate(source, name, from, to);
        let own = || Some(rate("cpu.user_s")? + rate("cpu.system_s")?);
        own().or_else(|| rate("cgroup.cpu_s"))
    };
    let most = |names: &[&str]| {
        let greatest = |source: &str| names.iter().find_map(|name| recording.max(source, name, from, to));
        sum(&greatest).map(|bytes| bytes / GIB)
    };
    Component {
        cpu_s: sum(&cpu).map(|cores| cores * (to - from) / 1e3),
        most: most_cores(recording, &sources, from, to),
        resident: most(&["resident_bytes", "cgroup.memory_working_set_bytes"]),
        cached: most(&["cgroup.memory_bytes"]),
    }
}

/// What is asked of databases: title, name of the series, whether it is its increase over the phase or its greatest value,
/// and by what it is divided.
const APPLICATION: [(&str, &str, bool, f64); 4] = [
    ("Processed Commands [count]", "operations", true, 1.0),
    ("Memory Usage [Gi]", "memory_bytes", false, GIB),
    ("Connections [count]", "connections", false, 1.0),
    ("Keyspace Misses [count]", "keyspace.misses", true, 1.0),
];

fn application(recording: Option<&Recording>, edges: Option<(f64, f64)>) -> Vec<(String, Option<f64>)> {
    let (Some(recording), Some((from, to))) = (recording, edges) else { return Vec::new() };
    let sources: Vec<&str> = recording.sources().filter(|name| name.starts_with("database")).collect();
    if sources.is_empty() {
        return Vec::new();
    }
    let mut all: Vec<(String, Option<f64>)> = APPLICATION
        .iter()
        .map(|(title, name, increase, by)| {
            let one = |source: &&str| match increase {
                true => recording.rate(source, name, from, to).map(|per_s| per_s * (to - from) / 1e3),
                false => recording.max(source, name, from, to),
            };
            ((*title).to_owned(), sources.iter().map(one).sum::<Option<f64>>().map(|value| value / by))
        })
        .collect();
    let per_s = all[0].1.map(|count| count / ((to - from) / 1e3));
    all.insert(1, ("Processed Commands [per second]".to_owned(), per_s));
    all.retain(|(_, value)| value.is_some());
    all
}

/// Figures of a catalogue of metrics that a front end has left in the run's directory (`application.json`): by phase, title and
/// figure. They stand in the place of those above.
fn catalogue(dir: &RunDir) -> BTreeMap<String, Vec<(String, Option<f64>)>> {
    let text = std::fs::read(dir.path.join("application.json")).unwrap_or_default();
    let read: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let figure = |one: &serde_json::Value| Some((one["title"].as_str()?.to_owned(), one["value"].as_f64()));
    let phases = read["phases"].as_object().into_iter().flatten();
    let figures = |all: &serde_json::Value| all.as_array().into_iter().flatten().filter_map(figure).collect();
    phases.map(|(phase, all)| (phase.clone(), figures(all))).collect()
}

fn restarted(recording: Option<&Recording>) -> Option<bool> {
    let recording = recording?;
    let servers: Vec<&str> = recording.sources().filter(|name| name.starts_with("server")).collect();
    let falls = |source: &&str| {
        let series =
            recording.series(source, "cpu.user_s").or_else(|| recording.series(source, "cgroup.cpu_s"))?;
        let known: Vec<f64> = series.points.iter().filter_map(|(_, value)| *value).collect();
        (!known.is_empty()).then(|| known.windows(2).any(|pair| pair[1] < pair[0]))
    };
    let all: Option<Vec<bool>> = servers.iter().map(falls).collect();
    all.filter(|found| !found.is_empty()).map(|found| found.contains(&true))
}

impl Entry {
    /// A run's figures; its configuration, repetition and point.
    pub(super) fn of(
        dir: &RunDir,
        summary: &Summary,
        recording: Option<&Recording>,
        (configuration, repetition, point): (String, u32, String),
    ) -> Self {
        let mut catalogue = catalogue(dir);
        let mut figures = |name: &str| -> Option<PhaseFigures> {
            let phase = summary.phases.iter().find(|phase| phase.name == name)?.clone();
            let recorded = dir.phases.iter().find(|recorded| recorded.name == name);
            let edges = recorded.and_then(|recorded| dir.edges(recorded).ok().flatten());
            let names = dir.run.metrics.get(name).cloned().unwrap_or_default();
            let mut totals = Totals::new(names.len(), dyno_record::Scale::Ns64);
            if let Some(recorded) = recorded {
                totals = recorded.totals.emptied();
                totals.merge(&recorded.totals);
            }
            Some(PhaseFigures {
                phase,
                totals,
                names,
                server: component(recording, &["server"], edges),
                client: component(recording, &["worker", "dyno"], edges),
                application: catalogue.remove(name).unwrap_or_else(|| application(recording, edges)),
            })
        };
        let host = &dir.environment;
        let mut facts = vec![
            ("RAM".to_owned(), host.memory_bytes.to_string()),
            ("CPU".into(), host.cpu.clone()),
            ("Cores".into(), host.cores.len().to_string()),
            ("host".into(), host.kernel.clone()),
            ("node".into(), host.host.clone()),
        ];
        facts.extend(dir.run.facts.iter().map(|(key, value)| (key.clone(), value.clone())));
        let settings = &dir.run.settings;
        let (load, measure) = (figures("load"), figures("measure"));
        Entry {
            configuration,
            cell: 1,
            label: String::new(),
            repetition,
            client: None,
            point,
            database: summary.database.clone(),
            target: summary.target.clone(),
            facts,
            settings: settings.iter().map(|s| (s.key.clone(), s.value.clone())).collect(),
            faults: summary.faults.clone(),
            status: summary.status,
            trust: summary.verdict.trust,
            seconds: summary.phases.iter().map(|phase| phase.seconds).sum(),
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

    /// `Redis-1`, with the round where its configuration has several.
    pub(super) fn cell_name(&self) -> String {
        let client = self.client.as_ref().map_or(String::new(), |client| format!(" Client {client}"));
        format!("{}{client}", self.configuration)
    }

    /// Records that the data set was to have.
    pub(super) fn records(&self) -> Option<f64> {
        self.settings.get("recordcount").and_then(|value| value.parse().ok())
    }
}

impl PhaseFigures {
    /// The 99th percentile of the service time of a metric's requests, microseconds; `None` where too few samples support it.
    pub(super) fn p99_us(&self, metric: usize, failed: bool) -> Option<f64> {
        let slot = if failed { self.totals.failed_slot(metric) } else { self.totals.ok_slot(metric) };
        latency(&slot?.service, 0)?.percentiles_us.get("p99").copied().flatten()
    }

    /// Requests of a metric that ended well, and those that failed.
    pub(super) fn counts(&self, metric: usize) -> (u64, u64) {
        let all = &self.totals.outcomes[metric];
        let ok = all[dyno_types::Outcome::Ok as usize];
        (ok, all.iter().sum::<u64>() - ok)
    }

    /// Arrivals that did not end well.
    pub(super) fn exceptions(&self) -> u64 {
        let ok = self.phase.outcomes.get("ok").copied().unwrap_or(0);
        self.phase.outcomes.values().sum::<u64>().saturating_sub(ok)
    }
}
