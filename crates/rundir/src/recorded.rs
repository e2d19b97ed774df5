//! Intervals one by one, with their histograms: for exports, which must not hold a day's histograms at once.

use crate::hlog;
use crate::intervals::IntervalLine;
use crate::reader::{ReadError, RunDir, read_lines};
use crate::schema::Latency;
use dyno_record::{Buckets, Scale};
use dyno_types::limits::RESULT_BYTES;
use std::collections::{BTreeMap, HashMap};

/// One operation in one interval.
#[derive(Clone, Debug, Default)]
pub struct RecordedMetric {
    /// Name.
    pub name: String,
    /// Requests by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Histograms by `OUTCOME.KIND`, such as `ok.response`.
    pub histograms: BTreeMap<String, Buckets>,
    /// Latencies known without a histogram, in the same way: imported results.
    pub known: BTreeMap<String, Latency>,
}

/// One interval of a phase.
#[derive(Clone, Debug)]
pub struct RecordedInterval {
    /// `load`, `warmup` or `measure`.
    pub phase: String,
    /// Begin since the phase's epoch, seconds.
    pub start_s: f64,
    /// Seconds of it that lie in its phase: fewer than the others have where operations or a stop ended the phase within it, and
    /// where the warm-up did. `None` where no length is known.
    pub length_s: Option<f64>,
    /// Arrivals by outcome.
    pub ended: BTreeMap<String, u64>,
    /// Longest queue.
    pub backlog: u64,
    /// Operations.
    pub metrics: Vec<RecordedMetric>,
}

/// Lines of the histogram log by phase and begin in milliseconds.
type LinePlaces<'a> = HashMap<(&'a str, u64), Vec<(usize, &'a str)>>;

fn places(log: &str) -> LinePlaces<'_> {
    let mut places = LinePlaces::new();
    for (number, line) in crate::files::whole_lines(log).enumerate() {
        let Some((tag, rest)) = line.strip_prefix("Tag=").and_then(|rest| rest.split_once(',')) else {
            continue;
        };
        let begin = rest.split(',').next().and_then(|begin| begin.parse::<f64>().ok());
        if let (Some((phase, _)), Some(begin)) = (tag.split_once('.'), begin) {
            places.entry((phase, (begin * 1e3).round() as u64)).or_default().push((number, line));
        }
    }
    places
}

impl RunDir {
    /// Hands every recorded interval to `each`, in the order of time; only one is held at once.
    pub fn each_interval(&self, mut each: impl FnMut(RecordedInterval)) -> Result<(), ReadError> {
        let scale = if self.run.unit_ns == 1_000 { Scale::Micros } else { Scale::Ns64 };
        let path = self.path.join("latency.hlog");
        let log = read_lines(&path)?;
        let places = places(&log);
        let lines: Vec<IntervalLine> = Self::lines(&self.path.join("intervals.jsonl"), RESULT_BYTES)?;
        for line in lines {
            let mut histograms = BTreeMap::new();
            for (number, text) in places.get(&(line.phase.as_str(), line.start_ms())).into_iter().flatten() {
                let found = hlog::read(&format!("{text}\n"), scale).map_err(|e| ReadError::Content {
                    path: path.clone(),
                    line: number + 1,
                    why: e.why.into(),
                })?;
                histograms.extend(found);
            }
            let length_s = match line.length_ms {
                0 => self.length_within_phase(&line.phase, line.start_ms()),
                ms => Some(f64::from(ms) / 1e3),
            };
            each(RecordedInterval { length_s, ..recorded(line, &histograms) });
        }
        Ok(())
    }

    /// Seconds of an interval that lie in its phase. Intervals are counted from the warm-up's begin on where there is one, and
    /// what is received behind a phase's end has an interval as well, of which nothing does.
    fn length_within_phase(&self, phase: &str, start_ms: u64) -> Option<f64> {
        // The warm-up's plan is that of the phase that follows it.
        let plan = self.run.plans.get(if phase == "warmup" { "measure" } else { phase })?;
        let phases = &self.summary.as_ref()?.phases;
        let seconds = |name: &str| Some(phases.iter().find(|known| known.name == name)?.seconds);
        let begin_s = if phase == "measure" { seconds("warmup").unwrap_or(0.0) } else { 0.0 };
        let start_s = start_ms as f64 / 1e3;
        let end_s = (start_s + plan.interval_s).min(begin_s + seconds(phase)?);
        let length_s = (end_s - start_s.max(begin_s)).max(0.0);
        // Sums of tenths of a second are no tenths.
        Some((length_s * 1e9).round() / 1e9)
    }
}

fn recorded(line: IntervalLine, histograms: &BTreeMap<String, Buckets>) -> RecordedInterval {
    let metric = |(name, outcomes): (&String, &BTreeMap<String, u64>)| {
        let mut metric =
            RecordedMetric { name: name.clone(), outcomes: outcomes.clone(), ..Default::default() };
        for kind in ["ok.service", "ok.response", "failed.service", "failed.response"] {
            let tag = format!("{name}.{kind}");
            if let Some(found) = histograms.get(&format!("{}.{tag}", line.phase)) {
                let mut buckets = found.clone();
                if let Some(exact) = line.exact.get(&tag) {
                    exact.restore_buckets(&mut buckets);
                }
                metric.histograms.insert(kind.to_owned(), buckets);
            }
            if let Some(latency) = line.known.get(&tag) {
                metric.known.insert(kind.to_owned(), latency.clone());
            }
        }
        metric
    };
    RecordedInterval {
        start_s: line.start_ms() as f64 / 1e3,
        length_s: None,
        backlog: line.backlog,
        metrics: line.outcomes.iter().map(metric).collect(),
        ended: line.ended.clone(),
        phase: line.phase,
    }
}
