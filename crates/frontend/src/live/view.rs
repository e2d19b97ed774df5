//! The live view as text: rates and latencies of the last seconds, the distribution so far, thresholds, counts.

use dyno_analysis::{Condition, PhaseFacts, summarise_phase};
use dyno_engine::{Job, Pacing};
use dyno_record::Totals;
use dyno_record::{Buckets, bucket_high};
use dyno_session::session::PhaseProgress;
use dyno_session::watch::seen::ServerNow;
use dyno_types::units::{Rate, ShownLatency, Thousands};
use std::collections::VecDeque;

/// Seconds that are kept: more than the widest terminal shows.
const KEPT: usize = 120;

/// Columns of names and figures before what is drawn.
const LEFT: usize = 20;

/// Rows of the distribution.
const BINS: usize = 6;

/// Thresholds that are shown.
const THRESHOLDS: usize = 4;

/// Least rows of a terminal that has room for the distribution.
const ROOM: usize = 20;

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// All successful response times together.
pub fn merged(totals: &Totals) -> Buckets {
    let mut all = Buckets::new(totals.slot_scale());
    for slot in totals.slots.iter().step_by(2).flatten() {
        all.merge(&slot.response);
    }
    all
}

/// Data of a phase beside its seconds.
#[derive(Clone, Default)]
pub(super) struct Phase {
    /// Names of the metrics.
    metrics: Vec<String>,
    /// Documents that an operation writes.
    pub each: f64,
    /// Schedule of the arrivals, where they are due.
    pacing: Option<Pacing>,
    warmup_ns: u64,
    rates: VecDeque<f64>,
    medians: VecDeque<f64>,
    tails: VecDeque<f64>,
}

impl Phase {
    /// Nothing has been measured yet.
    pub fn of(job: &Job) -> Self {
        let each = match (job.workload.documents(), job.end.operations) {
            (Some(documents), Some(operations)) => documents as f64 / operations.max(1) as f64,
            _ => 1.0,
        };
        let metrics = job.workload.metrics().to_vec();
        Phase {
            metrics,
            each,
            pacing: Some(job.pacing.clone()),
            warmup_ns: job.warmup_ns,
            ..Phase::default()
        }
    }

    /// Operations of the last second, per second; `None` of one that did not last a second: the first or last of a phase.
    pub fn rate(&self, p: &PhaseProgress<'_>) -> Option<f64> {
        p.whole.then_some(p.last.count_completed() as f64 * self.each)
    }

    /// Rate at which operations are due after so many seconds of the phase.
    fn due(&self, p: &PhaseProgress<'_>) -> Option<f64> {
        let before_ns = if p.phase == "warmup" { 0 } else { self.warmup_ns };
        match self.pacing.as_ref()? {
            Pacing::Open { profile, .. } => Some(profile.rate_at(before_ns + (p.elapsed_s * 1e9) as u64)),
            Pacing::Closed { .. } => None,
        }
    }

    /// Takes a second.
    pub fn take(&mut self, p: &PhaseProgress<'_>) {
        let all = merged(p.last);
        let keep = |kept: &mut VecDeque<f64>, value: f64| {
            kept.push_back(value);
            if kept.len() > KEPT {
                kept.pop_front();
            }
        };
        if let Some(rate) = self.rate(p) {
            keep(&mut self.rates, rate);
        }
        if all.count() > 0 {
            keep(&mut self.medians, all.percentile_ns(50.0) as f64);
            keep(&mut self.tails, all.percentile_ns(99.0) as f64);
        }
    }

    /// Lines of the view, each narrower than the terminal, which has so many columns and rows.
    pub fn lines(
        &self,
        p: &PhaseProgress<'_>,
        conditions: &[Condition],
        (columns, rows): (usize, usize),
    ) -> String {
        let room = columns.saturating_sub(LEFT + 2);
        let latest =
            |kept: &VecDeque<f64>| kept.back().map_or("-".into(), |ns| ShownLatency(*ns as u64).to_string());
        let drawn = |name: &str, figure: String, kept: &VecDeque<f64>, room: usize| {
            format!("{name:7}{figure:>11}  {}", sparkline(kept, room))
        };
        let due = self.due(p).map_or(String::new(), |due| format!("  due {}/s", Rate(due)));
        let rate = self.rate(p).or(self.rates.back().copied());
        let rate = rate.map_or("-".into(), |rate| format!("{}/s", Thousands(rate.round() as u64)));
        let mut lines = vec![
            drawn("rate", rate, &self.rates, room.saturating_sub(due.chars().count())) + &due,
            drawn("p50", latest(&self.medians), &self.medians, room),
            drawn("p99", latest(&self.tails), &self.tails, room),
        ];
        if rows >= ROOM {
            lines.extend(distribution(&merged(p.so_far), room));
        }
        let lag = match p.last.lag.count() {
            0 => String::new(),
            _ => format!(", lag p99 {}", ShownLatency(p.last.lag.percentile_ns(99.0))),
        };
        lines.push(format!(
            "{} ok, {} failed{lag}",
            Thousands((p.so_far.count_ok() as f64 * self.each).round() as u64),
            Thousands(p.so_far.count_failed()),
        ));
        if p.phase == "measure" {
            lines.extend(self.thresholds(p, conditions));
        }
        lines.extend(p.server.as_ref().map(server));
        lines.join("\n")
    }

    /// Thresholds by what has been measured so far.
    fn thresholds(&self, p: &PhaseProgress<'_>, conditions: &[Condition]) -> Vec<String> {
        if conditions.is_empty() {
            return Vec::new();
        }
        let facts =
            PhaseFacts { name: "measure".into(), seconds: p.elapsed_s.max(1.0), ..PhaseFacts::default() };
        let so_far = summarise_phase(facts, &self.metrics, p.so_far);
        let line = |condition: &Condition| {
            let mark = match condition.evaluate_phase(&so_far) {
                // Nothing to judge by yet.
                (None, _) => "    ",
                (Some(_), true) => "PASS",
                (Some(_), false) => "FAIL",
            };
            format!("{mark} {}", condition.as_str())
        };
        let mut lines: Vec<String> = conditions.iter().take(THRESHOLDS).map(line).collect();
        if conditions.len() > THRESHOLDS {
            lines.push(format!("and {} thresholds more", conditions.len() - THRESHOLDS));
        }
        lines
    }
}

/// The last values as bars from zero to the highest of them.
fn sparkline(values: &VecDeque<f64>, width: usize) -> String {
    let shown = values.iter().skip(values.len().saturating_sub(width));
    let most = shown.clone().fold(0.0_f64, |most, value| most.max(*value));
    let bar = |value: &f64| EIGHTHS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1];
    if most > 0.0 { shown.map(bar).collect() } else { String::new() }
}

/// The distribution of response times: an upper end, a bar and a share a row, ends spaced evenly by their logarithms.
fn distribution(all: &Buckets, room: usize) -> Vec<String> {
    let count = all.count();
    if count == 0 {
        return Vec::new();
    }
    let unit = all.bucket_scale().unit_ns();
    let (low, high) = (all.percentile_ns(1.0).max(1) as f64, all.percentile_ns(99.9).max(2) as f64);
    let end = |bin: usize| low * (high / low).powf((bin + 1) as f64 / BINS as f64);
    let mut counts = [0_u64; BINS + 1];
    for (bucket, count) in all.iter() {
        let ns = (bucket_high(bucket) * unit) as f64;
        let bin = (0..BINS).find(|bin| ns <= end(*bin)).unwrap_or(BINS);
        counts[bin] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let row = |bin: usize| {
        let name = match bin {
            BINS => format!("> {}", ShownLatency(end(BINS - 1) as u64)),
            bin => format!("<= {}", ShownLatency(end(bin) as u64)),
        };
        // The share stands behind the bar.
        let width = room.saturating_sub(8) as f64;
        let bar = "█".repeat((counts[bin] as f64 / most * width).round() as usize);
        format!("{name:>18}  {bar} {:.1} %", counts[bin] as f64 * 100.0 / count as f64)
    };
    (0..=BINS).map(row).collect()
}

/// The database's own figures, on one line.
fn server(now: &ServerNow) -> String {
    let count = |value: Option<f64>| value.map(|v| Thousands(v.round() as u64).to_string());
    let parts = [
        count(now.operations_per_s).map(|n| format!("{n} commands/s")),
        count(now.connections).map(|n| format!("{n} connections")),
        now.memory_bytes.map(|bytes| format!("{:.1} MiB", bytes / 1_048_576.0)),
    ];
    format!("server {}", parts.into_iter().flatten().collect::<Vec<_>>().join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    #[test]
    fn bars_end_at_the_highest_value() {
        let values: VecDeque<f64> = [0.0, 1.0, 4.0, 8.0].into();
        assert_eq!(sparkline(&values, 10), "▁▁▄█");
        assert_eq!(sparkline(&values, 2), "▄█");
        assert_eq!(sparkline(&VecDeque::from([0.0]), 10), "");
    }

    #[test]
    fn the_distribution_adds_up_and_fits() {
        let mut all = Buckets::new(Scale::Ns64);
        (1..=1_000_u64).for_each(|n| all.record(n * 1_000));
        let rows = distribution(&all, 38);
        assert_eq!(rows.len(), BINS + 1);
        assert!(rows.iter().all(|row| row.chars().count() < 60), "{rows:#?}");
        let share = |row: &String| row.rsplit(' ').nth(1).unwrap().parse::<f64>().unwrap();
        let sum: f64 = rows.iter().map(share).sum();
        assert!((sum - 100.0).abs() < 0.5, "{rows:#?}");
        assert!(distribution(&Buckets::new(Scale::Ns64), 38).is_empty());
    }
}
