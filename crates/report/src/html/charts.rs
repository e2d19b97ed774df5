//! Charts of the page: throughput, latencies, queue, percentiles; what monitors saw is in `watched`.

use crate::html::points::{MOST, PackedSeries, SeriesPoint, pack_series};
use crate::html::timeline::{Span, Timeline, interval_length};
use dyno_analysis::ArrivalLatency;
use dyno_rundir::schema::Phase;
use dyno_rundir::series::ReadRow;
use dyno_rundir::{RunDir, unit_name};
use dyno_types::metric::is_request;
use serde::Serialize;
use std::collections::BTreeMap;

/// Option of a chart: usually an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChartChoice {
    /// Name.
    pub n: String,
    /// Series.
    pub s: Vec<PackedSeries>,
}

/// A chart over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// Stable name.
    pub id: String,
    /// Title.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// True if the axis is logarithmic.
    pub log: bool,
    /// One or more.
    pub choices: Vec<ChartChoice>,
}

/// Latency by percentile.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Operation and kind of time.
    pub n: String,
    /// `log2(1 / (1 - p))`.
    pub x: Vec<f64>,
    /// Microseconds.
    pub y: Vec<f64>,
}

/// A threshold on a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChartLimit {
    /// Stable name of the chart.
    pub chart: String,
    /// The chart's choice in lower case; empty: all of them.
    pub choice: String,
    /// The limit, in the chart's unit.
    pub at: f64,
    /// True if figures are to stay below it.
    pub below: bool,
    /// The threshold as written.
    #[serde(rename = "words")]
    pub message: String,
}

/// All that scripts draw.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageData {
    /// Begin and end of the axis of time, seconds.
    pub span: (f64, f64),
    /// Unix time of the axis' 0, milliseconds, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<f64>,
    /// Phases: begin, end, name.
    pub bands: Vec<(f64, f64, String)>,
    /// Events: time, words.
    pub marks: Vec<(f64, String)>,
    /// Faults: begin, end, name.
    pub faults: Vec<(f64, f64, String)>,
    /// Thresholds that can be drawn.
    pub limits: Vec<ChartLimit>,
    /// Charts over time, in their order on the page.
    pub charts: Vec<Chart>,
    /// Latency by percentile.
    pub distributions: Vec<Distribution>,
}

impl Chart {
    /// A chart with nothing to choose; `None` where no series has a value.
    pub fn without_choices(id: &str, title: &str, unit: &str, series: Vec<PackedSeries>) -> Option<Self> {
        let series: Vec<PackedSeries> = series.into_iter().filter(PackedSeries::has_value).collect();
        let choices = vec![ChartChoice { n: String::new(), s: series }];
        (!choices[0].s.is_empty()).then(|| Chart {
            id: id.into(),
            title: title.into(),
            unit: unit.into(),
            log: false,
            choices,
        })
    }
}

/// Metrics in the order of their numbers of requests, the most first. Closing connections says nothing about the database.
pub fn metrics_by_requests(rows: &[ReadRow]) -> Vec<String> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for row in rows.iter().filter(|row| row.metric != "TOTAL" && is_request(&row.metric)) {
        let count = if row.phase == "measure" { row.ok + row.failed } else { 0 };
        match all.iter_mut().find(|(name, _)| *name == row.metric) {
            Some((_, sum)) => *sum += count,
            None => all.push((row.metric.clone(), count)),
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.1));
    all.into_iter().map(|(name, _)| name).collect()
}

/// Rows by metric, and what is known of their phases. There are some sixty series, and a day has half a million rows: each series
/// looks at its own.
struct RowsByMetric<'a> {
    rows: BTreeMap<&'a str, Vec<&'a ReadRow>>,
    phases: BTreeMap<&'a str, PhaseRows<'a>>,
}

/// A phase that has rows.
struct PhaseRows<'a> {
    span: Option<&'a Span>,
    /// Usual length of its intervals, seconds.
    usual: f64,
    /// Intervals.
    count: usize,
}

impl<'a> RowsByMetric<'a> {
    fn of(rows: &'a [ReadRow], axis: &'a Timeline) -> Self {
        let mut all = RowsByMetric { rows: BTreeMap::new(), phases: BTreeMap::new() };
        for row in rows {
            all.rows.entry(&row.metric).or_default().push(row);
            let phase = all.phases.entry(&row.phase).or_insert_with(|| PhaseRows {
                span: axis.phase_span(&row.phase),
                usual: interval_length(rows, &row.phase),
                count: 0,
            });
            phase.count += usize::from(row.metric == "TOTAL");
        }
        all
    }

    fn of_metric(&self, metric: &str) -> &[&'a ReadRow] {
        self.rows.get(metric).map_or(&[], Vec::as_slice)
    }
}

/// A figure of the rows of one metric over time.
fn over_time(
    rows: &RowsByMetric<'_>,
    metric: &str,
    of: impl Fn(&ReadRow, f64) -> Option<f64>,
) -> Vec<SeriesPoint> {
    // Begin, end, value and usual length of each.
    let mut drawn: Vec<(f64, f64, Option<f64>, f64)> = Vec::new();
    for row in rows.of_metric(metric) {
        let Some(phase) = rows.phases.get(row.phase.as_str()) else { continue };
        let (Some(span), usual) = (phase.span, phase.usual) else { continue };
        let at = span.epoch + row.start_s;
        if span.to - at > usual && phase.count == 1 {
            drawn.push((at, span.to, of(row, span.to - at), usual));
            continue;
        }
        // The first and the last interval of a phase may be short; of a very short one nothing can be said.
        let (from, to) = (at.max(span.from), (at + usual).min(span.to));
        if to - from < usual / 4.0 {
            continue;
        }
        drawn.push((from, to, of(row, to - from), usual));
    }
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut points: Vec<SeriesPoint> = Vec::new();
    let mut before: Option<f64> = None;
    for (from, to, value, usual) in drawn {
        // The two intervals that are left out around the begin of a phase take less than half of the usual one.
        if let Some(end) = before.filter(|end| from - end > 0.75 * usual) {
            points.push((end.midpoint(from), None));
        }
        match to - from > usual * 1.001 {
            // A mean over the whole phase is a line from its beginning to its end.
            true => points.extend([(from, value), (to, value)]),
            false => points.push((from.midpoint(to), value)),
        }
        before = Some(to);
    }
    points
}

/// Arrivals that a rate which changed asked for: phase, begin of the interval in milliseconds since the phase's epoch, arrivals.
pub type DueArrivals = [(String, u64, f64)];

/// Throughput: all operations beside what was `due`, then each.
fn throughput(rows: &RowsByMetric<'_>, names: &[String], due: &DueArrivals) -> Chart {
    let of = |metric: &str| -> Vec<PackedSeries> {
        let some = |of: &dyn Fn(&ReadRow) -> u64| rows.of_metric(metric).iter().any(|row| of(row) > 0);
        let series = |name: &str, of: &dyn Fn(&ReadRow) -> u64| {
            pack_series(name, &over_time(rows, metric, |row, length| Some(of(row) as f64 / length)), MOST)
        };
        let mut all = vec![series("succeeded", &|row| row.ok)];
        if some(&|row| row.failed) {
            all.push(series("failed", &|row| row.failed));
        }
        if some(&|row| row.dropped) {
            all.push(series("dropped", &|row| row.dropped));
        }
        all
    };
    let mut all = of("TOTAL");
    if !due.is_empty() {
        let known: BTreeMap<(&str, u64), f64> =
            due.iter().map(|(phase, begin_ms, due)| ((phase.as_str(), *begin_ms), *due)).collect();
        let rate = |row: &ReadRow, length: f64| {
            Some(known.get(&(row.phase.as_str(), (row.start_s * 1e3).round() as u64))? / length)
        };
        all.push(pack_series("due", &over_time(rows, "TOTAL", rate), MOST));
    }
    let mut choices = vec![ChartChoice { n: "all operations".into(), s: all }];
    if names.len() > 1 {
        choices.extend(names.iter().map(|name| ChartChoice { n: name.clone(), s: of(name) }));
    }
    Chart {
        id: "throughput".into(),
        title: "Throughput".into(),
        unit: format!("{}/s", unit_name(names)),
        log: false,
        choices,
    }
}

fn latencies(rows: &RowsByMetric<'_>, names: &[String], id: &str, title: &str) -> Chart {
    let service = id == "service";
    let choice = |name: &String| ChartChoice {
        n: name.clone(),
        s: ["p50", "p99", "p99.9", "max"]
            .iter()
            .enumerate()
            .map(|(at, label)| {
                let of =
                    |row: &ReadRow, _: f64| if service { row.service_us[at] } else { row.response_us[at] };
                pack_series(label, &over_time(rows, name, of), MOST)
            })
            .collect(),
    };
    let measured = |name: &&String| rows.of_metric(name).iter().any(|row| row.response_us[0].is_some());
    let mut choices: Vec<ChartChoice> = names.iter().filter(measured).map(choice).collect();
    // A percentile that no interval of any operation supports is no line; lines look the same for each operation.
    let lines = choices.first().map_or(0, |choice| choice.s.len());
    let drawn: Vec<bool> =
        (0..lines).map(|at| choices.iter().any(|choice| choice.s[at].has_value())).collect();
    for choice in &mut choices {
        let mut drawn = drawn.iter();
        choice.s.retain(|_| drawn.next().is_some_and(|drawn| *drawn));
    }
    Chart { id: id.into(), title: title.into(), unit: "us".into(), log: true, choices }
}

/// p99 of the server's share by `PHASE.METRIC`: begin of each interval, milliseconds since the phase's epoch, and microseconds.
pub type ServerShares = BTreeMap<String, Vec<(u64, f64)>>;

/// p99 of the response time with the server's and the client's share of it, of operations whose shares are `known`. In the closed
/// loop (`recorded` is `None`) the server's is the service time.
fn shares(rows: &RowsByMetric<'_>, known: &[String], recorded: Option<&ServerShares>) -> Chart {
    const P99: usize = 1;
    let server = |row: &ReadRow| match recorded {
        None => row.service_us[P99],
        Some(all) => {
            let own = all.get(&format!("{}.{}", row.phase, row.metric))?;
            let at = (row.start_s * 1e3).round() as u64;
            own.binary_search_by_key(&at, |(begin, _)| *begin).ok().map(|found| own[found].1)
        }
    };
    let client = |row: &ReadRow| Some((row.response_us[P99]? - server(row)?).max(0.0));
    let choice = |name: &String| {
        let series = |label: &str, of: &dyn Fn(&ReadRow) -> Option<f64>| {
            pack_series(label, &over_time(rows, name, |row, _| of(row)), MOST)
        };
        let s = vec![
            series("response", &|row| row.response_us[P99]),
            series("server", &server),
            series("client", &client),
        ];
        ChartChoice { n: name.clone(), s }
    };
    Chart {
        id: "shares".into(),
        title: "p99 of the response time, server's and client's share".into(),
        unit: "us".into(),
        log: false,
        choices: known.iter().map(choice).filter(|choice| choice.s[0].has_value()).collect(),
    }
}

/// Operations of a phase whose shares of p99 are known.
pub fn metrics_with_shares(phase: &Phase) -> Vec<String> {
    let known = phase.metrics.iter().filter(|metric| metric.shares_us("p99").is_some());
    known.filter(|metric| is_request(&metric.name)).map(|metric| metric.name.clone()).collect()
}

/// Throughput, latencies with the shares of operations where these are `known`, and the queue of a run; `recorded` has the
/// server's shares of an open loop, `due` the arrivals of a rate that changed.
pub fn of_load(
    rows: &[ReadRow],
    axis: &Timeline,
    known: &[String],
    recorded: Option<&ServerShares>,
    due: &DueArrivals,
) -> Vec<Chart> {
    let open = recorded.is_some();
    if rows.is_empty() {
        return Vec::new();
    }
    let names = metrics_by_requests(rows);
    let rows = &RowsByMetric::of(rows, axis);
    let mut charts = vec![throughput(rows, &names, due)];
    let title = if open { "Response time (from the intended start)" } else { "Response time" };
    charts.push(latencies(rows, &names, "response", title));
    charts.push(shares(rows, known, recorded));
    if open {
        charts.push(latencies(rows, &names, "service", "Service time (from sending)"));
        if rows.of_metric("TOTAL").iter().any(|row| row.backlog.is_some_and(|n| n > 0.0)) {
            let points = over_time(rows, "TOTAL", |row, _| row.backlog);
            charts.extend(Chart::without_choices(
                "backlog",
                "Due arrivals that wait",
                "arrivals",
                vec![pack_series("queue", &points, MOST)],
            ));
        }
    }
    charts.retain(|chart| !chart.choices.is_empty());
    charts
}

/// Steps of the axis between a share and half of what is beyond it.
const STEPS: i32 = 6;

/// Latency by percentile. Arrivals that were never sent are beyond any that was measured: the line ends where they begin.
pub fn latency_distribution(name: &str, times: &ArrivalLatency) -> Option<Distribution> {
    // Times of failures alone are no latency.
    if times.ok.count() == 0 {
        return None;
    }
    let all = times.count() as f64;
    let mut out = Distribution { n: name.to_owned(), ..Distribution::default() };
    for step in 0.. {
        let x = f64::from(step) / f64::from(STEPS);
        let share = 1.0 - (-x).exp2();
        let us = times.percentile_ns((share * 100.0).max(1e-9)) / 1e3;
        // Beyond the last sample there is nothing.
        if all * (1.0 - share) < 1.0 || us.is_infinite() {
            break;
        }
        out.x.push((x * 1e3).round() / 1e3);
        out.y.push(format!("{us:.3e}").parse().unwrap_or(us));
    }
    Some(out)
}

/// Latency by percentile of the measured phase.
pub fn phase_distributions(dir: &RunDir, phase: &str, open: bool) -> Vec<Distribution> {
    let Some(recorded) = dir.phases.iter().find(|recorded| recorded.name == phase) else { return Vec::new() };
    let names = dir.run.metrics.get(phase).map_or(&[][..], Vec::as_slice);
    let mut all = Vec::new();
    for (number, name) in names.iter().enumerate().filter(|(_, name)| is_request(name)) {
        all.extend(latency_distribution(
            &format!("{name} response"),
            &ArrivalLatency::from_response_times(&recorded.totals, number),
        ));
        if open {
            all.extend(latency_distribution(
                &format!("{name} service"),
                &ArrivalLatency::from_service_times(&recorded.totals, number),
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(phase: &str, start_s: f64, ok: u64) -> ReadRow {
        ReadRow { phase: phase.into(), start_s, metric: "TOTAL".into(), ok, ..ReadRow::default() }
    }

    #[test]
    fn shares_of_the_server_and_of_the_client_make_the_response_time() {
        let axis = Timeline {
            spans: vec![Span { name: "measure".into(), from: 0.0, to: 2.0, epoch: 0.0 }],
            ..Timeline::default()
        };
        let mut rows = Vec::new();
        for (second, response) in [(0.0, 400.0), (1.0, 800.0)] {
            let times = |us: f64| [None, Some(us), None, None];
            let read =
                ReadRow { metric: "READ".into(), response_us: times(response), ..row("measure", second, 9) };
            rows.push(ReadRow { service_us: times(response / 4.0), ..read });
            rows.push(row("measure", second, 9));
        }
        let of = |recorded: Option<&ServerShares>| {
            let chart = shares(&RowsByMetric::of(&rows, &axis), &["READ".into()], recorded);
            chart.choices[0].s.iter().map(|one| one.v.clone()).collect::<Vec<_>>()
        };
        let closed = of(None);
        assert_eq!(closed[1..], [[Some(100.0), Some(200.0)], [Some(300.0), Some(600.0)]]);
        // Of an open loop the server's share was recorded; that of the second interval was not.
        let open = of(Some(&[("measure.READ".to_owned(), vec![(0, 350.0)])].into()));
        assert_eq!(open[1..], [[Some(350.0), None], [Some(50.0), None]]);
    }

    #[test]
    fn a_percentile_that_no_interval_supports_is_not_named() {
        let axis = Timeline {
            spans: vec![Span { name: "measure".into(), from: 0.0, to: 2.0, epoch: 0.0 }],
            ..Timeline::default()
        };
        // Enough reads for p99 in one of two seconds, too few updates in both.
        let mut rows = Vec::new();
        for (second, read) in [(0.0, Some(900.0)), (1.0, None)] {
            for (name, p99) in [("READ", read), ("UPDATE", None)] {
                let times = [Some(100.0), p99, None, Some(5_000.0)];
                let measured = row("measure", second, 9);
                rows.push(ReadRow { metric: name.into(), response_us: times, service_us: times, ..measured });
            }
            rows.push(row("measure", second, 18));
        }
        let names = ["READ", "UPDATE"].map(str::to_owned);
        let charts = of_load(&rows, &axis, &names, None, &[]);
        let lines = |id: &str| -> Vec<(&str, Vec<&str>)> {
            let chart = charts.iter().find(|chart| chart.id == id).unwrap();
            fn name(one: &PackedSeries) -> &str {
                &one.n
            }
            chart
                .choices
                .iter()
                .map(|choice| (choice.n.as_str(), choice.s.iter().map(name).collect()))
                .collect()
        };
        let both = vec!["p50", "p99", "max"];
        assert_eq!(lines("response"), [("READ", both.clone()), ("UPDATE", both)]);
        assert_eq!(lines("shares"), [("READ", vec!["response", "server", "client"])]);
        let few: Vec<ReadRow> = rows.into_iter().filter(|row| row.metric != "READ").collect();
        let charts = of_load(&few, &axis, &names, None, &[]);
        assert!(charts.iter().all(|chart| chart.id != "shares"), "nothing of it can be drawn");
    }

    #[test]
    fn a_second_that_was_not_recorded_is_a_gap() {
        let span = |name: &str, from: f64, to: f64| Span { name: name.into(), from, to, epoch: from };
        let axis = Timeline {
            spans: vec![span("load", 0.0, 60.0), span("measure", 60.0, 66.0)],
            ..Timeline::default()
        };
        // The load has one mean; of the six seconds of the measurement the third is missing.
        let mut rows = vec![row("load", 0.0, 600)];
        rows.extend([0.0, 1.0, 3.0, 4.0, 5.0].map(|at| row("measure", at, 7)));
        let points =
            over_time(&RowsByMetric::of(&rows, &axis), "TOTAL", |row, length| Some(row.ok as f64 / length));
        let expected = [
            (0.0, Some(10.0)),
            (60.0, Some(10.0)),
            (60.5, Some(7.0)),
            (61.5, Some(7.0)),
            (62.5, None),
            (63.5, Some(7.0)),
            (64.5, Some(7.0)),
            (65.5, Some(7.0)),
        ];
        assert_eq!(points, expected);
    }
}
