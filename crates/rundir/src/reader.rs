//! Reads a run directory, finished or not.

use crate::files;
use crate::hlog;
use crate::interval_history::IntervalHistory;
use crate::intervals::{ImplausibleInterval, IntervalLine};
use crate::monitor::PhaseSpan;
use crate::schema::{Environment, Pair, Run, Summary, VERSION};
use crate::unit::adds_up;
use crate::writer::{TOTALS, WORKERS};
use dyno_record::{Buckets, Scale, Totals, is_supported};
use dyno_types::bounded;
use dyno_types::bounded::next_line;
use dyno_types::limits::{DOCUMENT_BYTES, RECORDED_S, RESULT_LINE_BYTES};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

/// End of the tags of the server's share of response times.
const SERVER_SHARE: &str = ".ok.server";

/// Why a directory could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing or unreadable.
    #[error("{path}: {error}")]
    File {
        /// Path.
        path: PathBuf,
        /// The system's words.
        error: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}:{line}: {why}")]
    Content {
        /// Path.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Error.
        #[source]
        why: ContentError,
    },
    /// Written by a later version.
    #[error("{path}: format {found} is newer than this dyno reads ({VERSION}): update dyno")]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Format.
        found: u32,
    },
}

/// Error in a row of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// A column has no cell.
    #[error("there is no cell for {0}")]
    NoCell(String),
    /// A cell is no number.
    #[error("{name}: {cell:?} is no number")]
    NotANumber {
        /// The column.
        name: String,
        /// The cell.
        cell: String,
    },
    /// The first cell is empty.
    #[error("the time is missing")]
    NoTime,
    /// The names of the columns do not end.
    #[error("the names do not end")]
    Header,
    /// There are more cells than columns.
    #[error("there are more cells than names")]
    TooManyCells,
}

/// Error in a line of a file.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The file is no JSON, or has not the fields that it should.
    #[error("{}", in_words(.0))]
    Json(#[source] serde_json::Error),
    /// The line is no JSON, or has not the fields that it should.
    #[error(transparent)]
    JsonLine(#[from] serde_json::Error),
    /// The line cannot be read on.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The line is no text.
    #[error(transparent)]
    Utf8(#[from] Utf8Error),
    /// The line of a log is damaged.
    #[error(transparent)]
    Log(#[from] hlog::LogLineError),
    /// The row of a table is damaged.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The interval cannot have been recorded.
    #[error(transparent)]
    Interval(#[from] ImplausibleInterval),
    /// A journal names a run elsewhere.
    #[error("{0}: a run lies below its experiment")]
    Outside(String),
}

/// A phase as far as it was recorded.
#[derive(Debug)]
pub struct RecordedPhase {
    /// `load`, `warmup` or `measure`.
    pub name: String,
    /// Seconds that have begun.
    pub seconds: u64,
    /// Everything counted.
    pub totals: Totals,
}

/// A part of the measured phase.
#[derive(Debug, Default)]
pub struct MeasuredPart {
    /// Whole seconds of it that were recorded.
    pub seconds: u64,
    /// Operations that ended well in them.
    pub operations: u64,
    /// Service times of requests that ended well, by metric.
    pub latencies: std::collections::BTreeMap<String, dyno_record::Buckets>,
}

/// A run directory's content.
#[derive(Debug)]
pub struct RunDir {
    /// Where it is.
    pub path: PathBuf,
    /// Settings of the run.
    pub run: Run,
    /// The machine.
    pub environment: Environment,
    /// The summary, if the run came to its end.
    pub summary: Option<Summary>,
    /// Phases as recorded, in order.
    pub phases: Vec<RecordedPhase>,
    /// Intervals in their order; `None` if they could not be read.
    steps: Option<Vec<IntervalCounts>>,
}

/// Counts of an interval.
#[derive(Clone, Copy, Debug)]
struct IntervalCounts {
    /// Which of the phases.
    phase: usize,
    /// Second since the phase's epoch.
    second: u64,
    /// The first second that it does not reach.
    end_s: u64,
    /// Length, if that is said.
    length_ms: u32,
    /// When it ends, milliseconds since the phase's epoch, if its length is said.
    until_ms: Option<u64>,
    /// Successes within the phase's time.
    completed: u64,
    /// Sum of the response times of operations that ended well, seconds, and how many these are.
    responses: (f64, f64),
}

/// Sum of the response times of operations that ended well, seconds, and how many these are; of an imported result by the
/// mean that it says.
fn responses(line: &IntervalLine) -> (f64, f64) {
    let names: Vec<&str> = line.outcomes.keys().map(String::as_str).collect();
    let of = |name: &str| {
        let tag = format!("{name}.ok.response");
        let ok =
            || line.outcomes.get(name).and_then(|outcomes| outcomes.get("ok")).copied().unwrap_or(0) as f64;
        match (line.exact.get(&tag), line.known.get(&tag)) {
            (Some(exact), _) => (exact.sum_ns as f64 / 1e9, exact.count as f64),
            (None, Some(known)) => (known.mean_us / 1e6 * ok(), ok()),
            (None, None) => (0.0, 0.0),
        }
    };
    let own = names.iter().filter(|name| adds_up(&names, name)).map(|name| of(name));
    own.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1))
}

/// The histograms of whole phases, if they were written and hold exactly what the counters say.
fn totals(path: &Path, scale: Scale, counters: &[IntervalLine]) -> Option<BTreeMap<String, Buckets>> {
    let file = files::open(&path.join(TOTALS)).ok()?;
    let (log, bad) = hlog::read_file(BufReader::new(file), scale).ok()?;
    let whole = counters.iter().all(|line| {
        let mut exact = line.exact.iter();
        exact.all(|(tag, exact)| {
            log.get(&format!("{}.{tag}", line.phase)).map_or(0, Buckets::count) == exact.count
        })
    });
    // Imported results have histograms without counters of their own; those stand in the log alone.
    let any = counters.iter().any(|line| !line.exact.is_empty());
    (bad.is_none() && whole && any).then_some(log)
}

/// A line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Event {
    /// When, RFC 3339.
    pub at: String,
    /// Kind of the event.
    pub event: String,
    /// Text of the event.
    pub text: String,
}

impl Event {
    /// When, Unix time in milliseconds.
    pub fn at_ms(&self) -> Option<f64> {
        Some(self.at.parse::<jiff::Timestamp>().ok()?.as_nanosecond() as f64 / 1e6)
    }
}

pub(crate) fn read(path: &Path) -> Result<String, ReadError> {
    files::read_to_string(path).map_err(|error| ReadError::File { path: path.to_owned(), error })
}

/// The same of a file of results.
pub(crate) fn read_lines(path: &Path) -> Result<String, ReadError> {
    files::read_lines(path).map_err(|error| ReadError::File { path: path.to_owned(), error })
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    let text = read(path)?;
    serde_json::from_str(&text).map_err(|e| ReadError::Content {
        path: path.to_owned(),
        line: e.line(),
        why: ContentError::Json(e),
    })
}

/// Describes an error in a text of JSON; the line stands elsewhere.
fn in_words(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = error.to_string().replace(&place, "");
    match error.classify() {
        serde_json::error::Category::Eof => "ends in the middle: it was cut off, or is being written".into(),
        serde_json::error::Category::Syntax => format!("is no JSON ({message}, column {})", error.column()),
        _ => message,
    }
}

/// Returns the content; or, where a list is kept, nothing, with the error on the list.
fn or_lost<T: Default>(read: Result<T, ReadError>, lost: &mut Option<Vec<String>>) -> Result<T, ReadError> {
    match (read, lost) {
        (Err(error), Some(lost)) => {
            lost.push(error.to_string());
            Ok(T::default())
        }
        (read, _) => read,
    }
}

impl RunDir {
    /// Reads everything.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::read(path, &mut None)
    }

    /// Reads what can be read of a directory that is damaged or incomplete, and says what could not. Only `run.json` must be
    /// there, and of a version that is known.
    pub fn salvage_run(path: &Path) -> Result<(Self, Vec<String>), ReadError> {
        let mut lost = Some(Vec::new());
        let dir = Self::read(path, &mut lost)?;
        Ok((dir, lost.unwrap_or_default()))
    }

    /// With a list to put them on, errors are put there, and what they concern is empty.
    fn read(path: &Path, lost: &mut Option<Vec<String>>) -> Result<Self, ReadError> {
        let run: Run = json(&path.join("run.json"))?;
        if run.version > VERSION {
            return Err(ReadError::Newer { path: path.to_owned(), found: run.version });
        }
        let environment = or_lost(json(&path.join("environment.json")), lost)?;
        let summary_path = path.join("summary.json");
        let summary = or_lost(summary_path.exists().then(|| json(&summary_path)).transpose(), lost)?;
        let scale = if run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
        let (merged, steps) = match Self::counters(&path.join("intervals.jsonl")) {
            Ok((merged, steps)) => (merged, Some(steps)),
            Err(error) => (or_lost(Err(error), lost)?, None),
        };
        let log = match totals(path, scale, &merged) {
            Some(log) => log,
            None => Self::whole_log(&path.join("latency.hlog"), scale, lost)?,
        };
        let phases = merged
            .iter()
            .map(|line| {
                let metrics = run.metrics.get(&line.phase).map_or(&[][..], Vec::as_slice);
                let mut totals = line.phase_totals(metrics, scale, &log);
                totals.threads = run.plans.get(&line.phase).and_then(|plan| plan.threads).unwrap_or(0) as u64;
                RecordedPhase { name: line.phase.clone(), seconds: line.end_s(), totals }
            })
            .collect();
        Ok(RunDir { path: path.to_owned(), run, environment, summary, phases, steps })
    }

    /// The counters of each phase, and what is needed of each interval; a day's lines are never held at once.
    fn counters(path: &Path) -> Result<(Vec<IntervalLine>, Vec<IntervalCounts>), ReadError> {
        let (mut merged, mut steps): (Vec<IntervalLine>, Vec<IntervalCounts>) = (Vec::new(), Vec::new());
        Self::each_line(path, |line: IntervalLine| {
            line.check()?;
            let phase = merged.iter().position(|known| known.phase == line.phase).unwrap_or(merged.len());
            let (second, end_s, length_ms) = (line.second, line.end_s(), line.length_ms);
            let responses = responses(&line);
            let until_ms = (length_ms > 0).then(|| line.start_ms() + u64::from(length_ms));
            let completed = line.count_successes();
            steps.push(IntervalCounts { phase, second, end_s, length_ms, until_ms, completed, responses });
            match merged.get_mut(phase) {
                Some(known) => known.merge(&line),
                None => merged.push(line),
            }
            Ok(())
        })?;
        Ok((merged, steps))
    }

    /// All of the histogram log.
    fn whole_log(
        path: &Path,
        scale: Scale,
        lost: &mut Option<Vec<String>>,
    ) -> Result<BTreeMap<String, Buckets>, ReadError> {
        let failed = |error| ReadError::File { path: path.to_owned(), error };
        let opened = or_lost(files::open(path).map(Some).map_err(failed), lost)?;
        let Some(file) = opened else { return Ok(BTreeMap::new()) };
        let (log, bad) = or_lost(hlog::read_file(BufReader::new(file), scale).map_err(failed), lost)?;
        if let Some(bad) = bad {
            let error = ReadError::Content { path: path.to_owned(), line: bad.line, why: bad.why.into() };
            match lost {
                Some(lost) => lost.push(format!("{error}; later lines are left out")),
                None => return Err(error),
            }
        }
        Ok(log)
    }

    /// Reads the events, in order.
    pub fn read_events(&self) -> Result<Vec<Event>, ReadError> {
        Self::lines(&self.path.join("events.jsonl"), DOCUMENT_BYTES)
    }

    /// Reads the part of each worker in each phase, where workers applied the load.
    pub fn read_workers(&self) -> Result<Vec<Pair>, ReadError> {
        let path = self.path.join(WORKERS);
        if path.is_file() { json(&path) } else { Ok(Vec::new()) }
    }

    /// When a phase began and ended (Unix, milliseconds); see [`RunDir::phase_span`].
    pub fn phase_boundaries(&self, phase: &RecordedPhase) -> Result<Option<(f64, f64)>, ReadError> {
        Ok(self.phase_span(phase)?.map(PhaseSpan::boundaries))
    }

    /// The place of a phase in the run, by the events; one whose end was not recorded ends with its last second. `None` for one
    /// whose beginning was not recorded.
    pub fn phase_span(&self, phase: &RecordedPhase) -> Result<Option<PhaseSpan>, ReadError> {
        let events = self.read_events()?;
        let at =
            |event: &str, name: &str| events.iter().find(|e| e.event == event && e.text == name)?.at_ms();
        let Some(from_ms) = at("begin", &phase.name) else { return Ok(None) };
        // Seconds are counted from the epoch, which is the beginning of the warm-up where there is one.
        let epoch = Some("warmup").filter(|_| phase.name == "measure").and_then(|name| at("begin", name));
        let last = epoch.unwrap_or(from_ms) + phase.seconds as f64 * 1e3;
        let to_ms = at("end", &phase.name).unwrap_or(last);
        let of_others = |event: &'static str| {
            let others = events.iter().filter(move |e| e.event == event && e.text != phase.name);
            others.filter_map(Event::at_ms)
        };
        let idle_since_ms = of_others("end").filter(|end| *end <= from_ms).fold(f64::NEG_INFINITY, f64::max);
        let idle_until_ms = of_others("begin").filter(|begin| *begin >= to_ms).fold(f64::INFINITY, f64::min);
        Ok(Some(PhaseSpan { from_ms, to_ms, idle_since_ms, idle_until_ms }))
    }

    /// The second since its epoch behind a phase's last interval with a success; 0 if there is none.
    pub fn succeeded_until_s(&self, phase: &str) -> u64 {
        let own = self.phases.iter().position(|known| known.name == phase);
        let steps = self.steps.iter().flatten().filter(|step| Some(step.phase) == own && step.completed > 0);
        steps.map(|step| step.end_s).max().unwrap_or(0)
    }

    /// Second after the epoch at which the warm-up ends.
    pub fn begin_s(&self) -> u64 {
        let warmup =
            self.summary.as_ref().and_then(|summary| summary.phases.iter().find(|p| p.name == "warmup"));
        warmup.map_or(0, |phase| phase.seconds.round() as u64)
    }

    /// Successful operations of each second of the measured phase, from the end of the warm-up on. Of an imported result they
    /// are means over its intervals.
    pub fn successes_by_second(&self) -> Result<std::collections::BTreeMap<u64, u64>, ReadError> {
        let begin = self.begin_s();
        // What is recorded behind its end is the drain. Where no length of the phase itself is known, all of it counts.
        let own =
            self.summary.as_ref().and_then(|summary| summary.phases.iter().find(|p| p.name == "measure"));
        let length_s = own.filter(|phase| phase.completed.is_some()).map(|phase| phase.seconds);
        let end = length_s.map_or(u64::MAX, |s| begin.saturating_add(s.ceil() as u64).max(begin + 1));
        let mut seconds = std::collections::BTreeMap::new();
        let within =
            |step: &&IntervalCounts| step.second >= begin && (step.second < end || step.length_ms > 0);
        for step in self.measured()?.iter().filter(within) {
            let (from, ok) = (step.second - begin, step.completed);
            // Operations that are known only over several seconds are spread over them evenly; the sum stays.
            let length = step.end_s - step.second;
            if length > RECORDED_S.saturating_sub(seconds.len() as u64) {
                let path = self.path.join("intervals.jsonl");
                let error = std::io::Error::other(format!("more than {RECORDED_S} seconds are recorded"));
                return Err(ReadError::File { path, error });
            }
            for second in 0..length {
                let until = |second: u64| u128::from(ok) * u128::from(second) / u128::from(length);
                *seconds.entry(from + second).or_default() += (until(second + 1) - until(second)) as u64;
            }
        }
        Ok(seconds)
    }

    /// The intervals of the measured phase.
    fn measured(&self) -> Result<Vec<IntervalCounts>, ReadError> {
        let phase = self.phases.iter().position(|phase| phase.name == "measure");
        let of = |steps: &[IntervalCounts]| {
            steps.iter().filter(|step| Some(step.phase) == phase).copied().collect()
        };
        match &self.steps {
            Some(steps) => Ok(of(steps)),
            // A file that could not be read before fails again, with its reason.
            None => Self::counters(&self.path.join("intervals.jsonl")).map(|(_, steps)| of(&steps)),
        }
    }

    /// Whole seconds of the measured phase, as [`RunDir::successes_by_second`] counts them: to the end of intervals that say
    /// how long they
    /// are, else of the phase; `None` where its length is not known.
    fn whole_s(&self, measured: &[IntervalCounts]) -> Option<u64> {
        let said = measured.iter().filter_map(|step| step.until_ms).max().map(|ms| ms / 1_000);
        let of_phase = || {
            let phases = &self.summary.as_ref()?.phases;
            let of = |name: &str| phases.iter().find(|phase| phase.name == name).map(|phase| phase.seconds);
            // Less than a microsecond is the rounding of a length.
            Some((of("warmup").unwrap_or(0.0) + of("measure")? + 1e-6) as u64)
        };
        said.or_else(of_phase).map(|end_s| end_s.saturating_sub(self.begin_s()))
    }

    /// Successful operations a second over the measured phase.
    pub fn interval_history(&self) -> Result<IntervalHistory, ReadError> {
        let seconds = self.successes_by_second()?;
        let measured = self.measured()?;
        let mut lengths: Vec<u64> =
            measured.iter().map(|step| u64::from(step.length_ms).div_ceil(1_000)).collect();
        lengths.sort_unstable();
        let step = lengths.get(lengths.len() / 2).copied().unwrap_or(1).max(1);
        let begin = self.begin_s();
        let mut responses: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for step in measured.iter().filter(|step| step.second >= begin) {
            let length = (step.end_s - step.second) as f64;
            // Those of single seconds that are within the series.
            for second in
                (step.second..step.end_s).map(|second| second - begin).filter(|at| seconds.contains_key(at))
            {
                let own = responses.entry(second).or_default();
                *own = (own.0 + step.responses.0 / length, own.1 + step.responses.1 / length);
            }
        }
        let mut history = IntervalHistory::of(&seconds, &responses, step, self.whole_s(&measured));
        // Where the client stood still, nothing is known of the target.
        let phase = self.summary.as_ref().and_then(Summary::measured_phase);
        history.close(phase.map_or(&[], |phase| &phase.pauses));
        Ok(history)
    }

    /// The measured phase from second `from` to second `to` after the warm-up: whole seconds that were recorded.
    pub fn measured_window(&self, from: u64, to: u64) -> Result<MeasuredPart, ReadError> {
        let seconds = self.successes_by_second()?;
        let of_phase =
            self.summary.as_ref().and_then(Summary::measured_phase).map_or(0.0, |phase| phase.seconds);
        let end = to.min(of_phase.floor() as u64);
        let warmup =
            self.summary.as_ref().and_then(|summary| summary.phases.iter().find(|p| p.name == "warmup"));
        let before = warmup.map_or(0, |phase| phase.seconds.round() as u64);
        let mut part = MeasuredPart { seconds: end.saturating_sub(from), ..MeasuredPart::default() };
        if part.seconds == 0 {
            return Ok(part);
        }
        part.operations = seconds.range(from..end).map(|(_, n)| n).sum();
        let scale = if self.run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
        let path = self.path.join("latency.hlog");
        let inside = |begin: f64| (from + before..end + before).contains(&(begin.round() as u64));
        let name = |tag: &str| Some(tag.strip_prefix("measure.")?.strip_suffix(".ok.service")?.to_owned());
        let wanted = |tag: &str, begin: f64| name(tag).is_some() && inside(begin);
        let log = hlog::read_part(&read_lines(&path)?, scale, wanted).map_err(|e| ReadError::Content {
            path,
            line: e.line,
            why: e.why.into(),
        })?;
        part.latencies = log.into_iter().filter_map(|(tag, all)| Some((name(&tag)?, all))).collect();
        Ok(part)
    }

    /// p99 of the server's share of response times over time, where it was recorded (open loop), by `PHASE.METRIC`: the begin of
    /// each interval, milliseconds since the phase's epoch, and microseconds.
    pub fn server_p99(&self) -> Result<BTreeMap<String, Vec<(u64, f64)>>, ReadError> {
        let path = self.path.join("latency.hlog");
        let failed = |error| ReadError::File { path: path.clone(), error };
        let scale = if self.run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
        let mut all: BTreeMap<String, Vec<(u64, f64)>> = BTreeMap::new();
        let file = BufReader::new(files::open(&path).map_err(failed)?);
        let is_share = |tag: &str, _: f64| tag.ends_with(SERVER_SHARE);
        hlog::each_interval(file, scale, is_share, |tag, begin_s, counts| {
            let own = tag.trim_end_matches(SERVER_SHARE);
            if is_supported(counts.count(), 99.0) {
                let us = counts.percentile_ns(99.0) as f64 / 1e3;
                all.entry(own.to_owned()).or_default().push(((begin_s * 1e3).round() as u64, us));
            }
        })
        .map_err(failed)?;
        Ok(all)
    }

    /// Arrivals that the rate asked for where it changed on the way: phase, begin of the interval in milliseconds since the
    /// phase's epoch, arrivals.
    pub fn read_due(&self) -> Result<Vec<(String, u64, f64)>, ReadError> {
        let mut all = Vec::new();
        Self::each_line(&self.path.join("intervals.jsonl"), |line: IntervalLine| {
            let begin_ms = line.start_ms();
            all.extend(line.due.filter(|due| due.is_finite()).map(|due| (line.phase, begin_ms, due)));
            Ok(())
        })?;
        Ok(all)
    }

    /// Complete lines only: the last one of a killed run may be torn. All are held: at most `most` bytes.
    pub(crate) fn lines<T: serde::de::DeserializeOwned>(path: &Path, most: u64) -> Result<Vec<T>, ReadError> {
        let mut all = Vec::new();
        let failed = |error| ReadError::File { path: path.to_owned(), error };
        bounded::no_longer(&files::open(path).map_err(failed)?, most).map_err(failed)?;
        Self::each_line(path, |line| {
            all.push(line);
            Ok(())
        })?;
        Ok(all)
    }

    /// The same one by one.
    pub(crate) fn each_line<T: serde::de::DeserializeOwned>(
        path: &Path,
        mut each: impl FnMut(T) -> Result<(), ContentError>,
    ) -> Result<(), ReadError> {
        let failed = |error| ReadError::File { path: path.to_owned(), error };
        let file = files::open(path).map_err(failed)?;
        let mut file = BufReader::with_capacity(1 << 16, file);
        let mut line = Vec::new();
        for number in 1.. {
            next_line(&mut file, &mut line, RESULT_LINE_BYTES).map_err(failed)?;
            let Some(whole) = line.strip_suffix(b"\n") else { break };
            let read = serde_json::from_slice(whole).map_err(ContentError::from).and_then(&mut each);
            read.map_err(|why| ReadError::Content { path: path.to_owned(), line: number, why })?;
        }
        Ok(())
    }
}
