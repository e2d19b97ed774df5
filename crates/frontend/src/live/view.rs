//! The live view as text: rates and latencies of the last seconds, the distribution so far, thresholds, counts.

use dyno_analysis::{Condition, PhaseFacts, summarise_phase};
use dyno_engine::{Job, Pacing};
use dyno_record::Totals;
use dyno_record::{Buckets, bucket_high};
use dyno_session::session::PhaseProgress;
use dyno_session::watch::monitor_snapshot::ServerNow;
use dyno_types::Outcome;
use dyno_types::units::{Rate, ShownLatency, Thousands};
use std::collections::VecDeque;

/// Seconds that are kept: more than the widest terminal shows.
const KEPT: usize = 400;

/// Columns of names and figures before what is drawn.
const LEFT: usize = 20;

/// Rows of the distribution: at least, and where there is room.
const BINS: usize = 6;
const MOST_BINS: usize = 11;

/// Thresholds that are shown.
const THRESHOLDS: usize = 4;

/// Least rows of a terminal that has room for the distribution.
const ROOM: usize = 20;

/// Rows of a panel at most.
const PANEL: usize = 12;

/// Seconds below which no rate is told.
const SHORTEST_S: f64 = 0.25;

/// Kinds of errors that are shown.
const ERRORS: usize = 3;

/// Rows above and below the view: the bar, the time, and the line on which the cursor stands.
const AROUND: usize = 3;

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// All successful response times together.
pub fn merged(totals: &Totals) -> Buckets {
    let mut all = Buckets::new(totals.slot_scale());
    for slot in totals.slots.iter().step_by(2).flatten() {
        all.merge(&slot.response);
    }
    all
}

/// The server's share of all successful response times: in the closed loop it is the service time. `None` where it is not known.
fn server_shares(totals: &Totals, closed: bool) -> Option<Buckets> {
    let mut all = Buckets::new(totals.slot_scale());
    match closed {
        true if totals.turnaround.count() == 0 => return None,
        true => totals.slots.iter().step_by(2).flatten().for_each(|slot| all.merge(&slot.service)),
        false => totals.server.iter().flatten().for_each(|share| all.merge(share)),
    }
    (all.count() > 0).then_some(all)
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
    rates: Seconds,
    medians: Seconds,
    tails: Seconds,
}

/// Values of the last seconds; `None` of a second that has none.
type Seconds = VecDeque<Option<f64>>;

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

    /// Operations of the last second, per second of what it took. `None` where that is not known, or too little to tell: the
    /// first and the last of a phase may be short.
    pub fn rate(&self, p: &PhaseProgress<'_>) -> Option<f64> {
        let length_s = p.length_s.filter(|length_s| *length_s >= SHORTEST_S)?;
        Some(p.last.count_completed() as f64 * self.each / length_s)
    }

    /// Seconds of the warm-up, where it is over.
    fn before_s(&self, p: &PhaseProgress<'_>) -> f64 {
        if p.phase == "warmup" { 0.0 } else { self.warmup_ns as f64 / 1e9 }
    }

    /// Rate at which operations are due after so many seconds of the phase.
    fn due(&self, p: &PhaseProgress<'_>) -> Option<f64> {
        match self.pacing.as_ref()? {
            Pacing::Open { profile, .. } => {
                Some(profile.rate_at(((self.before_s(p) + p.elapsed_s) * 1e9) as u64))
            }
            Pacing::Closed { .. } | Pacing::Recorded => None,
        }
    }

    /// Takes a second.
    pub fn take(&mut self, p: &PhaseProgress<'_>) {
        let all = merged(p.last);
        let keep = |kept: &mut Seconds, value: Option<f64>| {
            kept.push_back(value);
            if kept.len() > KEPT {
                kept.pop_front();
            }
        };
        // One value a second in each, so that they stand below each other: a second without a reply is a gap.
        let percentile = |p| (all.count() > 0).then(|| all.percentile_ns(p) as f64);
        // A part of a second would be drawn as a whole one.
        let rate = self.rate(p).filter(|_| p.is_whole_second());
        keep(&mut self.rates, rate);
        keep(&mut self.medians, percentile(50.0));
        keep(&mut self.tails, percentile(99.0));
    }

    /// Lines of the view, each narrower than the terminal, which has so many columns and rows. What is left of its rows is shared
    /// by the panels of rate and latencies, and the distribution.
    pub fn lines(
        &self,
        p: &PhaseProgress<'_>,
        conditions: &[Condition],
        (columns, rows): (usize, usize),
    ) -> String {
        let room = columns.saturating_sub(LEFT + 2);
        let mut below: Vec<String> = self.shares(p).into_iter().collect();
        let lag = match p.last.lag.count() {
            0 => String::new(),
            _ => format!(", lag p99 {}", ShownLatency(p.last.lag.percentile_ns(99.0))),
        };
        below.push(format!(
            "{} ok, {} failed{lag}",
            Thousands((p.so_far.count_ok() as f64 * self.each).round() as u64),
            Thousands(p.so_far.count_failed()),
        ));
        below.extend(errors(p, columns));
        if p.phase == "measure" {
            below.extend(self.thresholds(p, conditions));
        }
        below.extend(p.server.as_ref().map(server));
        let all = merged(p.so_far);
        let least_bins = if rows >= ROOM && all.count() > 0 { BINS + 1 } else { 0 };
        let spare = rows.saturating_sub(AROUND + 3 + below.len() + least_bins);
        // Of what is left the distribution gets up to five rows, after two panels have three.
        let bins = BINS + spare.saturating_sub(4).min(MOST_BINS - BINS);
        let spare = spare - (bins - BINS).min(spare);
        let (rate_rows, tail_rows) = ((1 + spare.div_ceil(2)).min(PANEL), (1 + spare / 2).min(PANEL));
        let median_rows = (1 + spare + 2 - rate_rows - tail_rows).min(PANEL);
        let mut lines = self.panels(p, room, [rate_rows, median_rows, tail_rows]);
        if least_bins > 0 {
            lines.extend(distribution(&all, room, bins));
        }
        lines.extend(below);
        lines.join("\n")
    }

    /// Rate, p50 and p99 of the last seconds, each with so many rows. A phase that is shorter than the window fills it at its
    /// end.
    fn panels(&self, p: &PhaseProgress<'_>, room: usize, rows: [usize; 3]) -> Vec<String> {
        let latest = |kept: &Seconds| {
            kept.back().copied().flatten().map_or("-".into(), |ns| ShownLatency(ns as u64).to_string())
        };
        let latency = |ns: f64| ShownLatency(ns as u64).to_string();
        let due = self.due(p).map_or(String::new(), |due| format!("  due {}/s", Rate(due)));
        let rate = self.rate(p).or(self.rates.iter().rev().copied().flatten().next());
        let rate = rate.map_or("-".into(), |rate| format!("{}/s", Thousands(rate.round() as u64)));
        let per_s = |rate: f64| format!("{}/s", Thousands(rate.round() as u64));
        let width = room.saturating_sub(due.chars().count());
        let seconds = p.left_s.map_or(0.0, |left| (self.before_s(p) + p.elapsed_s + left).ceil()) as usize;
        let each = if seconds == 0 { 1 } else { (width / seconds.max(self.rates.len())).max(1) };
        let shape = |rows: usize| Shape { width, each, rows };
        let mut lines = panel("rate", &rate, &self.rates, shape(rows[0]), per_s);
        lines[0] += &due;
        lines.extend(panel("p50", &latest(&self.medians), &self.medians, shape(rows[1]), latency));
        lines.extend(panel("p99", &latest(&self.tails), &self.tails, shape(rows[2]), latency));
        lines
    }

    /// The server's and the client's share of the last second's percentiles.
    fn shares(&self, p: &PhaseProgress<'_>) -> Option<String> {
        let closed = !matches!(self.pacing, Some(Pacing::Open { .. } | Pacing::Recorded));
        let (all, server) = (merged(p.last), server_shares(p.last, closed)?);
        let share = |percentile: f64| {
            let (all, server) = (all.percentile_ns(percentile), server.percentile_ns(percentile));
            let client = all.saturating_sub(server);
            format!("p{percentile} server {} client {}", ShownLatency(server), ShownLatency(client))
        };
        Some(format!("shares  {}, {}", share(50.0), share(99.0)))
    }

    /// Thresholds by what has been measured so far.
    fn thresholds(&self, p: &PhaseProgress<'_>, conditions: &[Condition]) -> Vec<String> {
        if conditions.is_empty() {
            return Vec::new();
        }
        let facts = PhaseFacts {
            name: "measure".into(),
            seconds: p.elapsed_s.max(SHORTEST_S),
            ..PhaseFacts::default()
        };
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

/// Room of a panel's bars.
#[derive(Clone, Copy)]
struct Shape {
    /// Columns.
    width: usize,
    /// Columns of a second.
    each: usize,
    /// Rows.
    rows: usize,
}

/// Name, figure and bars of the last values, with the highest of them beside the second row.
fn panel(
    name: &str,
    figure: &str,
    values: &Seconds,
    shape: Shape,
    written: impl Fn(f64) -> String,
) -> Vec<String> {
    let (bars, most) = bars(values, shape);
    let left = |row: usize| match row {
        0 => format!("{name:7}{figure:>11}"),
        1 if most > 0.0 => format!("{:>18}", format!("top {}", written(most))),
        _ => " ".repeat(18),
    };
    bars.into_iter().enumerate().map(|(row, bar)| format!("{}  {bar}", left(row))).collect()
}

/// The last values as bars from zero to the highest of them, which is returned too, in rows from the top.
fn bars(values: &Seconds, Shape { width, each, rows }: Shape) -> (Vec<String>, f64) {
    let shown = || values.iter().skip(values.len().saturating_sub(width / each));
    let most = shown().flatten().fold(0.0_f64, |most, value| most.max(*value));
    let bar = |value: f64, row: usize| {
        let below = (rows - 1 - row) * 8;
        let eighths = if most > 0.0 { (value / most * (rows * 8) as f64).ceil() as usize } else { 0 };
        match eighths.saturating_sub(below).min(8) {
            // The last row shows that there was a second.
            0 if row + 1 == rows && most > 0.0 => EIGHTHS[0],
            0 => ' ',
            some => EIGHTHS[some - 1],
        }
    };
    let line = |row: usize| {
        let bars = shown().map(|value| value.map_or(' ', |value| bar(value, row)));
        bars.flat_map(|bar| std::iter::repeat_n(bar, each)).collect::<String>().trim_end().to_owned()
    };
    ((0..rows).map(line).collect(), most)
}

/// Failures so far by outcome, the most first, each with the first text of its kind.
fn errors(p: &PhaseProgress<'_>, columns: usize) -> Vec<String> {
    let counts = Outcome::ALL.into_iter().map(|outcome| (outcome, p.so_far.ended[outcome as usize]));
    let mut all: Vec<(Outcome, u64)> =
        counts.filter(|(outcome, count)| *outcome != Outcome::Ok && *count > 0).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let line = |(outcome, count): &(Outcome, u64)| {
        let text = p.errors.iter().find(|(known, text)| known == outcome && !text.is_empty());
        let text = text.map_or(String::new(), |(_, text)| format!(": {}", text.replace('\n', " ")));
        let line = format!("  {} {}{text}", outcome.name(), Thousands(*count));
        match line.chars().count() < columns {
            true => line,
            false => line.chars().take(columns.saturating_sub(2)).chain(['…']).collect(),
        }
    };
    all.iter().take(ERRORS).map(line).collect()
}

/// The distribution of response times: an upper end, a bar and a share a row, ends spaced evenly by their logarithms.
fn distribution(all: &Buckets, room: usize, bins: usize) -> Vec<String> {
    let count = all.count();
    if count == 0 {
        return Vec::new();
    }
    let unit = all.bucket_scale().unit_ns();
    let (low, high) = (all.percentile_ns(1.0).max(1) as f64, all.percentile_ns(99.9).max(2) as f64);
    let end = |bin: usize| low * (high / low).powf((bin + 1) as f64 / bins as f64);
    let mut counts = vec![0_u64; bins + 1];
    for (bucket, count) in all.iter() {
        let ns = (bucket_high(bucket) * unit) as f64;
        let bin = (0..bins).find(|bin| ns <= end(*bin)).unwrap_or(bins);
        counts[bin] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let row = |bin: usize| {
        let name = match bin {
            last if last == bins => format!("> {}", ShownLatency(end(bins - 1) as u64)),
            bin => format!("<= {}", ShownLatency(end(bin) as u64)),
        };
        // The share stands behind the bar.
        let width = room.saturating_sub(8) as f64;
        let bar = "█".repeat((counts[bin] as f64 / most * width).round() as usize);
        format!("{name:>18}  {bar} {:.1} %", counts[bin] as f64 * 100.0 / count as f64)
    };
    (0..=bins).map(row).collect()
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
    use dyno_engine::arrivals::{Process, Profile};
    use dyno_record::{Scale, ThreadInterval};

    #[test]
    fn bars_end_at_the_highest_value() {
        let values: Seconds = [0.0, 1.0, 4.0, 8.0].map(Some).into();
        let shape = |width, rows| Shape { width, each: 1, rows };
        let one = |values: &Seconds, width| bars(values, shape(width, 1)).0;
        assert_eq!(one(&values, 10), ["▁▁▄█"]);
        assert_eq!(one(&values, 2), ["▄█"]);
        assert_eq!(one(&VecDeque::from([Some(0.0)]), 10), [""]);
        assert_eq!(bars(&values, shape(10, 2)), (vec!["   █".to_owned(), "▁▂██".to_owned()], 8.0));
        // A second takes three columns where the phase has few, and one without a reply is a gap.
        let gap: Seconds = [Some(8.0), None, Some(4.0)].into();
        assert_eq!(bars(&gap, Shape { width: 12, each: 3, rows: 1 }).0, ["███   ▄▄▄"]);
        let panel = panel("rate", "8/s", &values, shape(10, 2), |most| most.to_string());
        assert_eq!(panel, ["rate           8/s     █".to_owned(), "             top 8  ▁▂██".to_owned()]);
    }

    #[test]
    fn the_view_fills_the_window_and_no_more() {
        let (mut so_far, mut last) = (Totals::new(1, Scale::Ns64), Totals::new(1, Scale::Ns64));
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        (1..=1_000_u64).for_each(|n| interval.record_ended(0, Outcome::Ok, n * 1_000, n * 2_000));
        (1..=1_000_u64).for_each(|n| interval.record_server(0, n * 1_000));
        interval.ended[Outcome::Ok as usize] = 1_000;
        interval.ended[Outcome::TimedOut as usize] = 3;
        last.add_interval(&interval);
        so_far.add_interval(&interval);
        let profile = Profile::Constant { rate: 1_000.0 };
        let mut phase = Phase {
            metrics: vec!["READ".into()],
            each: 1.0,
            pacing: Some(Pacing::Open { profile, process: Process::Poisson }),
            ..Phase::default()
        };
        let progress = |left_s| PhaseProgress {
            phase: "measure",
            elapsed_s: 5.0,
            second: 4,
            done: None,
            left_s,
            so_far: &so_far,
            last: &last,
            length_s: Some(1.0),
            errors: vec![(Outcome::TimedOut, "no reply\nwithin 1 s".into())],
            server: None,
            said: Vec::new(),
        };
        let p = progress(None);
        (0..200).for_each(|_| phase.take(&p));
        for (columns, rows) in [(80, 24), (120, 40), (60, 12), (160, 50)] {
            let text = phase.lines(&p, &[], (columns, rows));
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest < columns.max(80), "{columns}: {text}");
            let count = text.lines().count();
            assert!(count <= rows.max(12) - AROUND && (rows < ROOM || count + 6 >= rows), "{rows}: {text}");
        }
        // Of a phase of ten seconds five have gone: half of the window.
        let begun = Phase {
            rates: [1_000.0; 5].map(Some).into(),
            medians: VecDeque::new(),
            tails: VecDeque::new(),
            ..phase.clone()
        };
        // "  due 1,000/s" leaves 45 of 58 columns: four for each of ten seconds.
        let text = begun.lines(&progress(Some(5.0)), &[], (80, 24));
        assert_eq!(text.lines().next().unwrap().matches('█').count(), 5 * 4, "{text}");
        let text = phase.lines(&p, &[], (80, 24));
        // Half of each time is the server's.
        assert!(
            text.contains("shares  p50 server 500 µs client 500 µs, p99 server 990 µs client 990 µs"),
            "{text}"
        );
        assert!(text.contains("  timed_out 3: no reply within 1 s"), "{text}");
    }

    #[test]
    fn the_distribution_adds_up_and_fits() {
        let mut all = Buckets::new(Scale::Ns64);
        (1..=1_000_u64).for_each(|n| all.record(n * 1_000));
        let rows = distribution(&all, 38, BINS);
        assert_eq!(rows.len(), BINS + 1);
        assert!(rows.iter().all(|row| row.chars().count() < 60), "{rows:#?}");
        let share = |row: &String| row.rsplit(' ').nth(1).unwrap().parse::<f64>().unwrap();
        let sum: f64 = rows.iter().map(share).sum();
        assert!((sum - 100.0).abs() < 0.5, "{rows:#?}");
        assert!(distribution(&Buckets::new(Scale::Ns64), 38, BINS).is_empty());
    }

    #[test]
    fn a_part_of_a_second_is_told_as_a_part() {
        let mut totals = Totals::new(1, Scale::Ns64);
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        (0..400).for_each(|_| interval.record_ended(0, Outcome::Ok, 64_000, 64_000));
        interval.ended[Outcome::Ok as usize] = 400;
        totals.add_interval(&interval);
        let of = |elapsed_s, length_s, left_s| {
            let p = PhaseProgress {
                phase: "measure",
                elapsed_s,
                second: 0,
                done: None,
                left_s,
                so_far: &totals,
                last: &totals,
                length_s,
                errors: Vec::new(),
                server: None,
                said: Vec::new(),
            };
            crate::live::plain_line(&Phase { each: 1.0, ..Phase::default() }, &p)
        };
        let latencies = "p50 64.0 µs  p99 64.0 µs  p99.9 64.0 µs, 0 failed";
        // 400 in 0.4 s are 1,000 a second, and a run that has come to its end has nothing left.
        assert_eq!(of(10.4, Some(0.4), Some(0.0)), format!("measure 10.4 s: 1,000/s  {latencies}"));
        assert_eq!(of(5.0, Some(1.0), Some(5.4)), format!("measure 5 s: 400/s  {latencies}, 5 s left"));
        // Of a tenth of a second, or one that was cut off, no rate is known.
        assert_eq!(of(3.1, Some(0.1), None), format!("measure 3.1 s: {latencies}"));
        assert_eq!(of(3.0, None, None), format!("measure 3 s: {latencies}"));
        assert_eq!(
            [2.5, 2.54, 30.0, 0.9, 89.6].map(crate::live::time),
            ["2.5 s", "2.5 s", "30 s", "900 ms", "1 min 30 s"]
        );
    }
}
