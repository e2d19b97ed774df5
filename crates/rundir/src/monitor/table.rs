//! Recorded series in memory, and what can be computed from them.

use super::Kind;
use dyno_types::stats::mean;
use std::collections::BTreeMap;

/// Rows that have the same series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TablePart {
    /// Unix time of each row, milliseconds, ascending.
    pub times: Vec<f64>,
    /// By name; as long as `times`, NaN where missing.
    pub columns: BTreeMap<String, Vec<f64>>,
}

/// Everything monitors saw, by source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub(super) sources: BTreeMap<String, Vec<TablePart>>,
    pub(super) kinds: BTreeMap<String, BTreeMap<String, Kind>>,
    /// The target is on another host than the load generator.
    pub(super) elsewhere: bool,
    /// The host that the target runs on, where it was named to be watched.
    pub(super) watched: Option<String>,
}

/// The fact of `run.json` that says so, where it is so.
pub const ELSEWHERE: &str = "target.elsewhere";

/// The fact of `run.json` that names the hosts that the target runs on, where they were only watched; see [`WATCHED_BETWEEN`].
pub const WATCHED: &str = "target.hosts";

/// Separator of their names.
pub const WATCHED_BETWEEN: &str = ", ";

/// One series over time.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSeries {
    /// Counter or gauge.
    pub kind: Kind,
    /// Unix time in milliseconds and value, ascending; `None` is a missing value.
    pub points: Vec<(f64, Option<f64>)>,
}

impl Recording {
    /// Nothing yet.
    pub fn new() -> Self {
        Recording::default()
    }

    /// Adds one row of a source; the names missing in it are missing at this time. `None` is a missing sample.
    pub fn push<'a>(
        &mut self,
        source: &str,
        at_ms: f64,
        row: impl IntoIterator<Item = (&'a str, Kind, f64)>,
    ) {
        let parts = self.sources.entry(source.to_owned()).or_insert_with(|| vec![TablePart::default()]);
        let kinds = self.kinds.entry(source.to_owned()).or_default();
        let Some(part) = parts.last_mut() else { return };
        let rows = part.times.len();
        part.times.push(at_ms);
        for (name, kind, value) in row {
            match part.columns.get_mut(name) {
                Some(column) if column.len() == rows => column.push(value),
                // Named twice in one row: the first counts.
                Some(_) => {}
                None => {
                    kinds.insert(name.to_owned(), kind);
                    let mut column = vec![f64::NAN; rows];
                    column.push(value);
                    part.columns.insert(name.to_owned(), column);
                }
            }
        }
        for column in part.columns.values_mut().filter(|column| column.len() == rows) {
            column.push(f64::NAN);
        }
    }

    /// Forgets what is older than `before_ms`, but keeps the last row before it.
    pub fn forget_before(&mut self, before_ms: f64) {
        for part in self.sources.values_mut().flatten() {
            let old = part.times.partition_point(|t| *t < before_ms).saturating_sub(1);
            part.times.drain(..old);
            part.columns.values_mut().for_each(|column| drop(column.drain(..old)));
        }
    }

    /// Names of the sources.
    pub fn source_names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// The source that tells of the host of the servers: `host-NAME` where they were started or watched there, else this host. A
    /// target on another host that no monitor watched has none: the name is empty, and no series is found under it.
    pub fn host_source(&self) -> &str {
        if let Some(watched) = &self.watched {
            return watched;
        }
        let serves = |source: &&str| {
            let own = source.strip_prefix("host-").map(|name| format!("server-{name}-"));
            own.is_some_and(|own| self.source_names().any(|source| source.starts_with(&own)))
        };
        self.source_names().find(serves).unwrap_or(if self.elsewhere { "" } else { "host" })
    }

    /// Names of a source's series.
    pub fn series_names(&self, source: &str) -> impl Iterator<Item = &str> {
        self.kinds.get(source).into_iter().flat_map(|kinds| kinds.keys().map(String::as_str))
    }

    /// A series; `None` where there is none of this name.
    pub fn find_series(&self, source: &str, name: &str) -> Option<RecordedSeries> {
        let kind = *self.kinds.get(source)?.get(name)?;
        let mut points = Vec::new();
        for part in self.sources.get(source)? {
            let column = part.columns.get(name);
            points.extend(part.times.iter().enumerate().map(|(row, at)| {
                let value = column.and_then(|c| c.get(row)).copied().filter(|v| !v.is_nan());
                (*at, value)
            }));
        }
        Some(RecordedSeries { kind, points })
    }

    /// Increase of a counter per second from `from_ms` to `to_ms`; see [`RecordedSeries::rate_between`].
    pub fn counter_rate(&self, source: &str, name: &str, from_ms: f64, to_ms: f64) -> Option<f64> {
        self.find_series(source, name)?.rate_between(from_ms, to_ms)
    }

    /// Mean of a gauge; see [`RecordedSeries::mean_between`].
    pub fn gauge_mean(&self, source: &str, name: &str, from_ms: f64, to_ms: f64) -> Option<f64> {
        self.find_series(source, name)?.mean_between(from_ms, to_ms)
    }

    /// Greatest value of a gauge from `from_ms` to `to_ms`.
    pub fn max(&self, source: &str, name: &str, from_ms: f64, to_ms: f64) -> Option<f64> {
        self.find_series(source, name)?.max(from_ms, to_ms)
    }
}

/// Distance from the boundary of a phase, milliseconds, up to which a sample may be to be the one before it, or the one after it.
const NEAR_MS: f64 = 5_000.0;

/// Share of a window that must be covered by samples for a figure to stand for it.
const COVERED: f64 = 0.5;

/// The place of a phase in a run. Times are Unix time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseSpan {
    /// Its beginning.
    pub from_ms: f64,
    /// Its end.
    pub to_ms: f64,
    /// When the load of the phase before it had ended: that of a warm-up ends with the beginning of this one. `-∞` if there is
    /// none.
    pub idle_since_ms: f64,
    /// When the load of the next phase begins; `∞` if there is none.
    pub idle_until_ms: f64,
}

impl PhaseSpan {
    /// The span of a run's only phase.
    pub fn only(from_ms: f64, to_ms: f64) -> PhaseSpan {
        PhaseSpan { from_ms, to_ms, idle_since_ms: f64::NEG_INFINITY, idle_until_ms: f64::INFINITY }
    }

    /// Beginning and end.
    pub fn boundaries(self) -> (f64, f64) {
        (self.from_ms, self.to_ms)
    }
}

impl RecordedSeries {
    /// Values that are there.
    fn known(&self) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|(at, value)| value.map(|v| (*at, v))).collect()
    }

    /// Increase per second between two times. At the edges the counter is interpolated between the samples around them;
    /// across missing samples it is known, because it is cumulative. One that falls has begun anew from zero. `None` if
    /// samples cover less than half of the window.
    pub fn rate_between(&self, from_ms: f64, to_ms: f64) -> Option<f64> {
        let known = self.known();
        let (first, last) = (known.first()?.0, known.last()?.0);
        let (from, to) = (from_ms.max(first), to_ms.min(last));
        if to_ms <= from_ms || to - from < (to_ms - from_ms) * COVERED {
            return None;
        }
        let mut increase = 0.0;
        for pair in known.windows(2) {
            let [(begin, before), (end, after)] = [pair[0], pair[1]];
            let shared = end.min(to) - begin.max(from);
            if shared > 0.0 {
                let step = if after >= before { after - before } else { after };
                increase += step * shared / (end - begin);
            }
        }
        Some(increase / (to - from) * 1_000.0)
    }

    /// Increase of a counter over a phase: from the last sample before it to the first one after it, a whole number of a counter
    /// of whole numbers. Both must lie where no other phase's load was under way; monitors look there, right before a phase and
    /// right after it. Where there are no such samples (a warm-up, monitors that began or ended in it), it is the rate over the
    /// phase.
    pub fn increase_over(&self, span: PhaseSpan) -> Option<f64> {
        let known = self.known();
        let first = known.partition_point(|(at, _)| *at <= span.from_ms).checked_sub(1);
        let last = known.partition_point(|(at, _)| *at < span.to_ms);
        let near =
            |at: usize, edge: f64| known.get(at).is_some_and(|(then, _)| (then - edge).abs() < NEAR_MS);
        let is_idle = |first: usize| {
            let within = known[first].0 >= span.idle_since_ms && known[last].0 <= span.idle_until_ms;
            within && near(first, span.from_ms)
        };
        match first.filter(|first| near(last, span.to_ms) && is_idle(*first)) {
            Some(first) => {
                let steps = known[first..=last].windows(2).map(|pair| (pair[0].1, pair[1].1));
                Some(steps.map(|(before, after)| if after >= before { after - before } else { after }).sum())
            }
            None => {
                let (from_ms, to_ms) = span.boundaries();
                self.rate_between(from_ms, to_ms).map(|per_s| per_s * (to_ms - from_ms) / 1e3)
            }
        }
    }

    /// Mean over time between two times; spans with a missing sample at either end are left out. `None` without any
    /// sample.
    pub fn mean_between(&self, from_ms: f64, to_ms: f64) -> Option<f64> {
        let (mut sum, mut length) = (0.0, 0.0);
        for pair in self.points.windows(2) {
            let ((begin, Some(before)), (end, Some(after))) = (pair[0], pair[1]) else { continue };
            let (from, to) = (begin.max(from_ms), end.min(to_ms));
            if to > from {
                let at = |t: f64| before + (after - before) * (t - begin) / (end - begin);
                sum += (at(from) + at(to)) / 2.0 * (to - from);
                length += to - from;
            }
        }
        if length > 0.0 {
            return Some(sum / length);
        }
        mean(self.within(from_ms, to_ms))
    }

    /// Greatest value between two times.
    pub fn max(&self, from_ms: f64, to_ms: f64) -> Option<f64> {
        self.within(from_ms, to_ms).reduce(f64::max)
    }

    fn within(&self, from_ms: f64, to_ms: f64) -> impl Iterator<Item = f64> {
        let inside = self.points.iter().filter(move |(at, _)| (from_ms..=to_ms).contains(at));
        inside.filter_map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(kind: Kind, points: &[(f64, Option<f64>)]) -> RecordedSeries {
        RecordedSeries { kind, points: points.to_vec() }
    }

    #[test]
    fn rates_are_cut_at_the_edges() {
        // 100/s for a second, then 300/s.
        let counter =
            series(Kind::Counter, &[(0.0, Some(50.0)), (1_000.0, Some(150.0)), (2_000.0, Some(450.0))]);
        assert_eq!(counter.rate_between(0.0, 1_000.0), Some(100.0));
        assert_eq!(counter.rate_between(500.0, 1_500.0), Some(200.0));
        assert_eq!(counter.rate_between(1_250.0, 1_750.0), Some(300.0));
        // The part that is covered stands for the whole if it is at least half.
        assert_eq!(counter.rate_between(1_500.0, 2_400.0), Some(300.0));
        assert_eq!(counter.rate_between(1_500.0, 4_000.0), None);
        assert_eq!(counter.rate_between(1_000.0, 1_000.0), None);
    }

    #[test]
    fn half_of_a_window_stands_for_it_and_a_clock_that_stands_still_for_nothing() {
        let counter = [(1_000.0, Some(150.0)), (2_000.0, Some(450.0)), (2_000.0, Some(470.0))];
        let counter = series(Kind::Counter, &counter);
        assert_eq!(counter.rate_between(1_500.0, 2_500.0), Some(300.0), "exactly half");
        assert_eq!(counter.rate_between(1_500.0, 2_501.0), None);
        assert_eq!(
            (counter.rate_between(500.0, 1_500.0), counter.rate_between(499.0, 1_500.0)),
            (Some(300.0), None)
        );
        assert_eq!(
            (counter.rate_between(2_000.0, 1_000.0), counter.rate_between(2_000.0, 2_000.0)),
            (None, None)
        );
    }

    #[test]
    fn a_counter_across_a_gap_and_after_a_restart() {
        let gap = series(Kind::Counter, &[(0.0, Some(0.0)), (1_000.0, None), (2_000.0, Some(200.0))]);
        assert_eq!(gap.rate_between(0.0, 2_000.0), Some(100.0));
        let restarted =
            series(Kind::Counter, &[(0.0, Some(900.0)), (1_000.0, Some(1_000.0)), (2_000.0, Some(60.0))]);
        assert_eq!(restarted.rate_between(0.0, 2_000.0), Some(80.0));
    }

    #[test]
    fn an_increase_is_whole() {
        let counter = [(0.0, Some(5.0)), (900.0, Some(7.0)), (1_300.0, Some(100.0)), (2_100.0, Some(207.0))];
        let counter = series(Kind::Counter, &counter);
        assert_eq!(
            counter.increase_over(PhaseSpan::only(1_000.0, 2_000.0)),
            Some(200.0),
            "of what was before and after, nothing is cut"
        );
        let again = [(900.0, Some(7.0)), (1_300.0, Some(100.0)), (2_100.0, Some(60.0))];
        assert_eq!(
            series(Kind::Counter, &again).increase_over(PhaseSpan::only(1_000.0, 2_000.0)),
            Some(153.0)
        );
        // The load was under way before: its warm-up.
        let after_warmup = |from_ms: f64, to_ms: f64| PhaseSpan {
            idle_since_ms: from_ms,
            ..PhaseSpan::only(from_ms, to_ms)
        };
        let warm = [(0.0, Some(0.0)), (900.0, Some(90.0)), (1_100.0, Some(110.0)), (2_100.0, Some(210.0))];
        assert_eq!(series(Kind::Counter, &warm).increase_over(after_warmup(1_000.0, 2_000.0)), Some(100.0));
        // The warm-up is shorter than the distance of samples; the one of its end is right behind it.
        let short = [(0.0, Some(0.0)), (1_000.5, Some(100.0)), (2_001.0, Some(200.0))];
        let found = series(Kind::Counter, &short).increase_over(after_warmup(1_000.0, 2_000.0)).unwrap();
        assert!((found - 100.0).abs() < 0.1, "{found}");
        // The same before a long phase, of which a second of warm-up is less than a fiftieth.
        let seconds: Vec<(f64, Option<f64>)> =
            (0..65).map(|s| (f64::from(s) * 1_000.0 + 0.5, Some(f64::from(s) * 100.0))).collect();
        let found = series(Kind::Counter, &seconds).increase_over(after_warmup(3_000.0, 63_000.0)).unwrap();
        assert!((found - 6_000.0).abs() < 1.0, "{found}");
        // No sample stands before the phase, or far before it.
        let late = [(1_000.0, Some(0.0)), (2_000.0, Some(100.0))];
        assert_eq!(series(Kind::Counter, &late).increase_over(PhaseSpan::only(500.0, 1_900.0)), Some(140.0));
        let far = [(0.0, Some(0.0)), (10_000.0, Some(100.0)), (20_000.0, Some(200.0))];
        assert_eq!(
            series(Kind::Counter, &far).increase_over(PhaseSpan::only(9_000.0, 19_000.0)),
            Some(100.0)
        );
        assert_eq!(counter.increase_over(PhaseSpan::only(5_000.0, 9_000.0)), None);
    }

    #[test]
    fn samples_at_the_edges_of_a_phase_are_those_before_and_after_it() {
        let counter =
            [(0.0, Some(5.0)), (1_000.0, Some(5.0)), (2_000.0, Some(105.0)), (3_000.0, Some(155.0))];
        assert_eq!(
            series(Kind::Counter, &counter).increase_over(PhaseSpan::only(1_000.0, 2_000.0)),
            Some(100.0)
        );
        // Nothing was done in the phase, much before it.
        let idle = [(0.0, Some(0.0)), (900.0, Some(90.0)), (2_100.0, Some(90.0))];
        assert_eq!(series(Kind::Counter, &idle).increase_over(PhaseSpan::only(1_000.0, 2_000.0)), Some(0.0));
    }

    #[test]
    fn a_gauge_without_neighbours_has_the_mean_of_its_samples() {
        let gauge = series(
            Kind::Gauge,
            &[(1_000.0, Some(1.0)), (2_000.0, None), (3_000.0, Some(4.0)), (4_000.0, None)],
        );
        assert_eq!((gauge.mean_between(0.0, 5_000.0), gauge.max(0.0, 5_000.0)), (Some(2.5), Some(4.0)));
        assert_eq!(
            (gauge.mean_between(1_000.0, 1_000.0), gauge.max(1_000.0, 1_000.0)),
            (Some(1.0), Some(1.0))
        );
        assert_eq!((gauge.mean_between(1_001.0, 2_999.0), gauge.max(1_001.0, 2_999.0)), (None, None));
        // Twice at the same time: 10 to 20 over a second, 50 over another.
        let gauge = [(0.0, Some(10.0)), (1_000.0, Some(20.0)), (1_000.0, Some(50.0)), (2_000.0, Some(50.0))];
        let gauge = series(Kind::Gauge, &gauge);
        assert_eq!(
            (gauge.mean_between(0.0, 2_000.0), gauge.mean_between(500.0, 1_500.0)),
            (Some(32.5), Some(33.75))
        );
    }

    #[test]
    fn a_sample_is_near_a_phase_within_five_seconds() {
        // 10/s: half of the increase lies in half of the time.
        let counter = series(Kind::Counter, &[(0.0, Some(0.0)), (10_000.0, Some(100.0))]);
        assert_eq!(counter.increase_over(PhaseSpan::only(5_001.0, 10_000.0)).map(f64::round), Some(50.0));
        assert_eq!(counter.increase_over(PhaseSpan::only(5_000.0, 10_000.0)), Some(50.0));
        assert_eq!(counter.increase_over(PhaseSpan::only(4_999.0, 10_000.0)), Some(100.0));
        assert_eq!(
            (
                counter.increase_over(PhaseSpan::only(0.0, 5_000.0)),
                counter.increase_over(PhaseSpan::only(0.0, 5_001.0))
            ),
            (Some(50.0), Some(100.0))
        );
    }

    #[test]
    fn load_of_other_phases_is_cut_off() {
        // 1,000 of another phase until 1.4 s, 100 of this one from 2 to 4 s, and from 5 s on those of the next.
        let counter = [
            (500.0, Some(0.0)),
            (1_500.0, Some(1_000.0)),
            (4_500.0, Some(1_100.0)),
            (5_500.0, Some(1_600.0)),
        ];
        let counter = series(Kind::Counter, &counter);
        let span =
            PhaseSpan { idle_since_ms: 1_400.0, idle_until_ms: 5_000.0, ..PhaseSpan::only(2_000.0, 4_000.0) };
        assert_eq!(counter.increase_over(span), Some(100.0), "however much came before it");
        // The sample before it, or the one after it, is of another phase's load: only the rate between them is known.
        let rate = Some(100.0 / 3.0 * 2.0);
        assert_eq!(counter.increase_over(PhaseSpan { idle_since_ms: 1_501.0, ..span }), rate);
        assert_eq!(counter.increase_over(PhaseSpan { idle_until_ms: 4_499.0, ..span }), rate);
        assert_eq!(counter.increase_over(PhaseSpan { idle_since_ms: 1_500.0, ..span }), Some(100.0));
        assert_eq!(counter.increase_over(PhaseSpan { idle_until_ms: 4_500.0, ..span }), Some(100.0));
    }

    #[test]
    fn figures_of_a_recording_are_those_of_its_series() {
        let mut recording = Recording::new();
        recording.push("s", 0.0, [("c", Kind::Counter, 50.0), ("g", Kind::Gauge, 10.0)]);
        recording.push("s", 2_000.0, [("c", Kind::Counter, 250.0), ("g", Kind::Gauge, 20.0)]);
        assert_eq!(recording.counter_rate("s", "c", 0.0, 2_000.0), Some(100.0));
        assert_eq!(recording.gauge_mean("s", "g", 0.0, 2_000.0), Some(15.0));
        assert_eq!(recording.max("s", "g", 0.0, 2_000.0), Some(20.0));
        assert_eq!(recording.counter_rate("s", "x", 0.0, 2_000.0), None);
    }

    #[test]
    fn means_are_over_time_and_leave_gaps_out() {
        // A further sample at an edge weighs no more than its time.
        let gauge = series(Kind::Gauge, &[(0.0, Some(10.0)), (1.0, Some(10.0)), (1_000.0, Some(20.0))]);
        assert!((gauge.mean_between(0.0, 1_000.0).unwrap() - 14.995).abs() < 0.001);
        let gap = [(0.0, Some(1.0)), (1_000.0, Some(3.0)), (2_000.0, None), (3_000.0, Some(900.0))];
        let gap = series(Kind::Gauge, &gap);
        assert_eq!(gap.mean_between(0.0, 3_000.0), Some(2.0));
        assert_eq!(gap.max(0.0, 2_000.0), Some(3.0));
        assert_eq!(gap.mean_between(1_500.0, 2_500.0), None, "what is missing is not zero");
        assert_eq!(gap.max(1_500.0, 2_500.0), None);
    }

    #[test]
    fn rows_may_lack_names_and_bring_new_ones() {
        let mut recording = Recording::new();
        recording.push("s", 1.0, [("a", Kind::Counter, 1.0)]);
        recording.push("s", 2.0, [("b", Kind::Gauge, 5.0)]);
        recording.push("s", 3.0, []);
        recording.push(
            "s",
            4.0,
            [("a", Kind::Counter, 4.0), ("b", Kind::Gauge, 6.0), ("b", Kind::Gauge, 9.0)],
        );
        let points = |name: &str| recording.find_series("s", name).unwrap().points;
        assert_eq!(points("a"), [(1.0, Some(1.0)), (2.0, None), (3.0, None), (4.0, Some(4.0))]);
        assert_eq!(points("b"), [(1.0, None), (2.0, Some(5.0)), (3.0, None), (4.0, Some(6.0))]);
        assert!(recording.find_series("s", "c").is_none() && recording.find_series("x", "a").is_none());
        let mut next = recording.clone();
        next.push("s", 5.0, [("b", Kind::Gauge, 7.0)]);
        assert_eq!(next.find_series("s", "b").unwrap().points[4], (5.0, Some(7.0)), "one figure a row");
        let mut at_a_row = recording.clone();
        at_a_row.forget_before(4.0);
        recording.forget_before(3.5);
        assert_eq!(recording.find_series("s", "a").unwrap().points, [(3.0, None), (4.0, Some(4.0))]);
        assert_eq!(
            at_a_row.find_series("s", "a"),
            recording.find_series("s", "a"),
            "the last row before it is kept"
        );
    }
}
