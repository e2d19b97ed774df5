//! Results of other programs: their files are read here, and become run directories (`dyno_rundir::imported`).
//!
//! What a file does not hold is absent in the run directory, never zero, and the verdict of an imported run is at best suspect,
//! with a reason that says what is not known.

pub mod csv;
pub mod hdr;
pub mod pocdriver;
pub mod sysbench;
pub mod ycsb;
pub mod ycsb_status;

#[cfg(test)]
mod tests;

use dyno_analysis::{IntervalFigures, judge_steadiness};
use dyno_rundir::imported::{Imported, ImportedInterval, ImportedMetric};
use dyno_rundir::schema::{
    Client, Environment, Latency, Metric, Phase, Reason, Run, Setting, Status, Summary, Trust, VERSION,
    Verdict,
};
use dyno_types::limits::IMPORT_COUNT;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Something in a file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: expected {expected}, found {found}", path.display())]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Expected text.
    pub expected: String,
    /// Text that is there.
    pub found: String,
}

impl BadFile {
    pub(crate) fn new(path: &Path, line: usize, expected: &str, found: &str) -> Self {
        let mut found: String = found.chars().take(80).collect();
        if found.trim().is_empty() {
            found = "nothing".into();
        }
        BadFile { path: path.to_owned(), line, expected: expected.to_owned(), found }
    }
}

/// A file to be read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where it is.
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

/// Details that the user gives about results whose files do not have them.
#[derive(Clone, Debug, Default)]
pub struct ImportDetails {
    /// Users (threads).
    pub users: Option<usize>,
    /// No rate was set: a response time is a service time.
    pub closed_loop: bool,
    /// Product and version.
    pub database: Option<String>,
    /// Title of the run.
    pub title: Option<String>,
    /// Begin, RFC 3339.
    pub started: Option<String>,
    /// The command line of the import.
    pub command: Vec<String>,
    /// Version of dyno.
    pub dyno: String,
}

/// Results of the files.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The program.
    pub program: &'static str,
    /// `load` or `measure`.
    pub phase: &'static str,
    /// Begin, RFC 3339; `None` where no file says it.
    pub started: Option<String>,
    /// Length, seconds.
    pub seconds: f64,
    /// Operations by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Successful operations per second, as the file says it.
    pub throughput: Option<f64>,
    /// Set rate, operations per second.
    pub offered: Option<f64>,
    /// Users.
    pub users: Option<usize>,
    /// Operations.
    pub metrics: Vec<Metric>,
    /// Intervals; none where only the whole is known.
    pub intervals: Vec<ImportedInterval>,
    /// Lines of a histogram log in microseconds, tagged `PHASE.METRIC.ok.KIND`.
    pub log: String,
    /// Settings.
    pub settings: Vec<Setting>,
    /// Facts.
    pub facts: BTreeMap<String, String>,
    /// Notes on what is not known.
    pub unknown: Vec<String>,
}

/// A count that a file tells as a number.
pub(crate) fn counted(x: f64) -> Option<u64> {
    (0.0..=IMPORT_COUNT as f64).contains(&x).then_some(x as u64)
}

/// A latency of which only some figures are known.
pub(crate) fn latency(count: u64, mean_us: f64) -> Latency {
    Latency {
        count,
        mean_us,
        min_us: None,
        max_us: None,
        percentiles_us: BTreeMap::new(),
        intervals_us: BTreeMap::new(),
    }
}

/// An operation with a service time, which is its response time too where no rate was set.
pub(crate) fn metric(
    name: &str,
    outcomes: BTreeMap<String, u64>,
    service: Option<Latency>,
    closed: bool,
) -> Metric {
    Metric {
        name: name.to_owned(),
        outcomes,
        response: service.clone().filter(|_| closed),
        service,
        server: None,
        client_us: BTreeMap::new(),
        failed_service: None,
        failed_response: None,
        all_response: None,
        all_service: None,
    }
}

/// The same of an interval.
pub(crate) fn in_interval(name: &str, ok: u64, service: Option<Latency>, closed: bool) -> ImportedMetric {
    let mut known = BTreeMap::new();
    if let Some(service) = service {
        if closed {
            known.insert("response".to_owned(), service.clone());
        }
        known.insert("service".to_owned(), service);
    }
    ImportedMetric { name: name.to_owned(), outcomes: count(ok), known }
}

/// Successes alone.
pub(crate) fn count(ok: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("ok".to_owned(), ok)])
}

fn verdict(found: &Found, files: &str) -> Verdict {
    let unknown = match found.unknown.is_empty() {
        true => "what the machines did meanwhile is not known".to_owned(),
        false => format!("not known: what the machines did meanwhile, {}", found.unknown.join(", ")),
    };
    let text = format!("a result of {}, imported from {files}; {unknown}", found.program);
    let mut reasons = vec![Reason::of_all("imported", Trust::Suspect, text)];
    let mut checks = vec!["imported".to_owned(), "operations".to_owned()];
    if found.outcomes.get("ok").copied().unwrap_or(0) == 0 {
        reasons.push(Reason::of_all("operations", Trust::Invalid, "no operation ended well".into()));
    }
    let (found, made) = over_time(&found.intervals);
    reasons.extend(found);
    checks.extend(made);
    Verdict::new(reasons, checks, &[])
}

/// Judges whether the result is steady, by the longest part of it whose intervals follow each other and are of about one length:
/// clocks that are written down in milliseconds jitter.
fn over_time(intervals: &[ImportedInterval]) -> (Vec<Reason>, Vec<String>) {
    let follows = |one: &ImportedInterval, next: &ImportedInterval| {
        let alike = next.length_ms.abs_diff(one.length_ms) <= one.length_ms / 10;
        alike && next.start_ms == one.start_ms.saturating_add(one.length_ms)
    };
    let Some(part) = intervals.chunk_by(follows).max_by_key(|part| part.len()) else {
        return Default::default();
    };
    let whole_ms: f64 = part.iter().map(|interval| interval.length_ms as f64).sum();
    let (step_s, from_s) = (whole_ms / part.len() as f64 / 1e3, part[0].start_ms as f64 / 1e3);
    if step_s <= 0.0 {
        return Default::default();
    }
    let ok = |outcomes: &BTreeMap<String, u64>| outcomes.get("ok").copied().unwrap_or(0) as f64;
    let rates: Vec<f64> =
        part.iter().map(|interval| ok(&interval.ended) / interval.length_ms as f64 * 1e3).collect();
    // The mean over all operations, of those whose own mean is known.
    let response_s = |interval: &ImportedInterval| {
        let known = |metric: &ImportedMetric| {
            let mean_us = metric.known.get("response").or(metric.known.get("service"))?.mean_us;
            Some((mean_us * ok(&metric.outcomes), ok(&metric.outcomes)))
        };
        let sums = interval
            .metrics
            .iter()
            .filter_map(known)
            .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        if sums.1 > 0.0 { sums.0 / sums.1 / 1e6 } else { 0.0 }
    };
    let responses_s: Vec<f64> = part.iter().map(response_s).collect();
    judge_steadiness(&IntervalFigures {
        rates: &rates,
        responses_s: &responses_s,
        tails: None,
        step_s,
        from_s,
    })
}

fn phase(found: &Found, said: &ImportDetails) -> Phase {
    let ok = found.outcomes.get("ok").copied().unwrap_or(0);
    let rate = if found.seconds > 0.0 { ok as f64 / found.seconds } else { 0.0 };
    Phase {
        name: found.phase.to_owned(),
        seconds: found.seconds,
        elapsed_s: None,
        completed: None,
        arrivals: found.outcomes.values().sum(),
        outcomes: found.outcomes.clone(),
        throughput: found.throughput.unwrap_or(rate),
        offered: found.offered,
        metrics: found.metrics.clone(),
        schedule_lag: None,
        receive_lag: None,
        stamps: None,
        turnaround: None,
        ideal_response: None,
        late_replies: 0,
        unexpected_replies: 0,
        broken_replies: 0,
        reconnects: 0,
        redirects: 0,
        documents: None,
        backlog: 0,
        silences: Vec::new(),
        pauses: Vec::new(),
        drops: BTreeMap::new(),
        client: Client {
            driver: Some(format!("{}, imported", found.program)),
            users: said.users.or(found.users).unwrap_or(0),
            pipeline: 1,
            batch: 1,
            ..Client::default()
        },
        errors: BTreeMap::new(),
        link: None,
        monitor: None,
        hosts: Vec::new(),
        collections: None,
        replay: None,
    }
}

/// The run directory's content. `files` names the files it came from; `fallback` is the time at which the newest was written.
pub fn assemble(mut found: Found, said: &ImportDetails, files: &str, fallback: &str) -> Imported {
    let message = "the file's modification time, less the length: the files do not say when the run began";
    let started = match said.started.clone().or(found.started.clone()) {
        Some(started) => started,
        None => {
            found.facts.insert("started".into(), message.into());
            let end = fallback.parse::<jiff::Timestamp>().unwrap_or_default();
            let length = std::time::Duration::from_secs_f64(found.seconds.max(0.0));
            end.checked_sub(length).unwrap_or(end).to_string()
        }
    };
    found.facts.insert("imported".into(), found.program.to_owned());
    found.facts.insert("imported_from".into(), files.to_owned());
    let database = said.database.clone().unwrap_or_else(|| "unknown database".into());
    let title = said.title.clone().unwrap_or_else(|| format!("{} (imported)", found.program));
    let verdict = verdict(&found, files);
    let phase = phase(&found, said);
    let names: Vec<String> = found.metrics.iter().map(|metric| metric.name.clone()).collect();
    if found.intervals.is_empty() {
        let metrics = found.metrics.iter().map(|m| ImportedMetric {
            name: m.name.clone(),
            outcomes: m.outcomes.clone(),
            known: BTreeMap::new(),
        });
        found.intervals.push(ImportedInterval {
            start_ms: 0,
            length_ms: (found.seconds * 1e3).round() as u64,
            ended: found.outcomes.clone(),
            metrics: metrics.collect(),
        });
    }
    let target = format!("unknown (imported from {})", found.program);
    let summary = Summary {
        version: VERSION,
        dyno: said.dyno.clone(),
        status: Status::Complete,
        target: target.clone(),
        database: database.clone(),
        started: started.clone(),
        title: title.clone(),
        verdict,
        thresholds: Vec::new(),
        strict: false,
        phases: vec![phase],
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: BTreeMap::new(),
    };
    let mut settings = found.settings;
    settings.push(Setting { key: "title".into(), value: title, source: "import".into() });
    Imported {
        run: Run {
            version: VERSION,
            dyno: said.dyno.clone(),
            command: said.command.clone(),
            started,
            status: Status::Running,
            target,
            database,
            facts: found.facts,
            settings,
            metrics: BTreeMap::from([(found.phase.to_owned(), names)]),
            unit_ns: 1_000,
            plans: Default::default(),
        },
        environment: Environment {
            host: "unknown (imported)".into(),
            kernel: "unknown".into(),
            cpu: "unknown".into(),
            ..Environment::default()
        },
        summary,
        phase: found.phase.to_owned(),
        intervals: found.intervals,
        log: found.log,
    }
}
