//! Charts drawn into the page: what is seen without a script and in print. The script puts its own in their place, which can be
//! zoomed.

use crate::html::axes::{even_ticks, log_ticks, nice_step, round_label, tenths};
use crate::html::charts::{Chart, Distribution, PageData};
use crate::html::points::{PackedSeries, SeriesPoint, decimate_points};
use crate::html::text::{format_rate, format_us};
use dyno_types::units::Thousands;
use maud::{Markup, html};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 24.0;

/// Points of a line: more are not seen at this width.
const POINTS: usize = 360;

/// Dashes of lines in their order, as the script has them.
const DASH: [&str; 8] = ["", "7 3", "2 3", "9 3 2 3", "4 4", "12 4", "1 2", "6 2 1 2 1 2"];

/// Steps of an axis of time, seconds.
const SECONDS: [f64; 17] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0,
    43_200.0, 86_400.0,
];

/// The axis up: its ends, and whether it is logarithmic.
struct AxisUp {
    low: f64,
    high: f64,
    log: bool,
    base: f64,
}

impl AxisUp {
    /// The axis that holds the values.
    fn of(values: impl Iterator<Item = f64>, log: bool, height: f64) -> Self {
        let values = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let (low, high) = match (low > high, log) {
            (true, true) => (1.0, 10.0),
            (true, false) => (0.0, 1.0),
            (false, true) => (low * 0.8, (high * 1.25).max(low * 2.0)),
            (false, false) => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                (low, if high > low { high + (high - low) * 0.06 } else { low + 1.0 })
            }
        };
        AxisUp { low, high, log, base: height - BOTTOM }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln(),
            false => (value.clamp(self.low, self.high) - self.low) / (self.high - self.low),
        };
        self.base - share * (self.base - TOP)
    }

    /// Three ticks or more.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            return log_ticks(self.low, self.high);
        }
        let count = if self.low == 0.0 { 5.0 } else { 8.0 };
        even_ticks(self.low, self.high, nice_step(self.high - self.low, count))
    }

    fn render(&self, shown: impl Fn(f64) -> String) -> Markup {
        html! {
            @for tick in self.ticks() {
                @let y = self.place(tick);
                line class="grid" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(tenths(y)) y2=(tenths(y)) {}
                text x=(LEFT - 6.0) y=(tenths(y + 4.0)) text-anchor="end" { (round_label(&shown(tick))) }
            }
        }
    }
}

fn points_of(series: &PackedSeries) -> Vec<SeriesPoint> {
    let times = series.t.iter().scan(0, |at, step| {
        *at += step;
        Some(*at as f64 / 100.0)
    });
    let points: Vec<SeriesPoint> = times.zip(series.v.iter().copied()).collect();
    decimate_points(&points, POINTS)
}

/// The path of a line in whole units, each step from the one before: a third of the bytes.
fn path_of(points: &[SeriesPoint], x: impl Fn(f64) -> f64, up: &AxisUp) -> String {
    let (mut path, mut pen) = (String::new(), None);
    for (at, value) in points {
        let Some(value) = value.filter(|value| !up.log || *value > 0.0) else {
            pen = None;
            continue;
        };
        let (px, py) = (x(*at).round() as i64, up.place(value).round() as i64);
        path += &match pen {
            None => format!("M{px} {py}h1"),
            Some((bx, by)) => format!("l{} {}", px - bx, py - by),
        };
        // The pen stands behind the unit that makes a lone point seen.
        pen = Some(if pen.is_none() { (px + 1, py) } else { (px, py) });
    }
    path
}

/// A time on the axis: `90 s`, `1:30:00`.
fn clock(seconds: f64) -> String {
    let s = seconds.round() as i64;
    match s {
        ..120 => format!("{s} s"),
        120..3_600 => format!("{}:{:02}", s / 60, s % 60),
        _ => format!("{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60),
    }
}

/// A chart over time as a drawing; of several choices the first.
pub(super) fn draw_chart(chart: &Chart, data: &PageData, height: f64) -> Markup {
    let Some(choice) = chart.choices.first() else { return html! {} };
    let (from, to) = data.span;
    let x = |at: f64| LEFT + (at - from) / (to - from).max(1e-9) * (WIDTH - LEFT - RIGHT);
    let lines: Vec<Vec<SeriesPoint>> = choice.s.iter().map(points_of).collect();
    // What is seen of the measured phase sets the scale, as in the script.
    let measured =
        data.bands.iter().find(|band| band.2 == "measure").map_or((from, to), |band| (band.0, band.1));
    let inside = |point: &&SeriesPoint| point.0 >= measured.0 && point.0 <= measured.1;
    let mut values: Vec<f64> = lines.iter().flatten().filter(inside).filter_map(|point| point.1).collect();
    if values.is_empty() {
        values = lines.iter().flatten().filter_map(|point| point.1).collect();
    }
    let up = AxisUp::of(values.into_iter(), chart.log, height);
    let span = to - from;
    let step = match span / 5.0 {
        raw if raw > 1.0 => {
            SECONDS.into_iter().find(|n| *n >= raw).unwrap_or(86_400.0 * (raw / 86_400.0).ceil())
        }
        _ => nice_step(span, 5.0),
    };
    let shown = |value: f64| if chart.unit == "us" { format_us(value) } else { shorten(value) };
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(chart.title) {
            @for (begin, end, name) in data.bands.iter().filter(|band| band.2 != "measure") {
                @let (x1, x2) = (x(begin.max(from)), x(end.min(to)));
                @if x2 > x1 {
                    rect class="band" x=(tenths(x1)) y=(TOP) width=(tenths(x2 - x1)) height=(up.base - TOP) {}
                    @if x2 - x1 > name.len() as f64 * 8.0 { text x=(tenths(x1 + 3.0)) y="11" { (name) } }
                }
            }
            (up.render(shown))
            @for tick in even_ticks(from, to, step) {
                text x=(tenths(x(tick))) y=(height - 6.0) text-anchor=(anchor(x(tick))) { (clock(tick)) }
            }
            @for (number, points) in lines.iter().enumerate() {
                (line_of(number, &path_of(points, x, &up)))
            }
        }
    }
}

fn line_of(number: usize, path: &str) -> Markup {
    let dash = Some(DASH[number % DASH.len()]).filter(|dash| !dash.is_empty());
    html! { path class={ "s k" (number % 8) } stroke-dasharray=[dash] d=(path) {} }
}

fn anchor(x: f64) -> &'static str {
    match x {
        x if x > WIDTH - 40.0 => "end",
        x if x < LEFT + 20.0 => "start",
        _ => "middle",
    }
}

/// A figure beside an axis, short: `2 M`, `150 k`.
fn shorten(value: f64) -> String {
    match value.abs() {
        a if a >= 1e9 => format!("{} G", format_rate(value / 1e9)),
        a if a >= 1e6 => format!("{} M", format_rate(value / 1e6)),
        a if a >= 1e3 && value.fract() == 0.0 => Thousands(value as u64).to_string(),
        _ => format_rate(value),
    }
}

/// Names of a chart's lines, for those who have no script.
pub(super) fn draw_legend<'a>(names: impl Iterator<Item = &'a str>) -> Markup {
    html! {
        @for (number, name) in names.enumerate() {
            span { svg viewBox="0 0 26 10" aria-hidden="true" { (line_of(number, "M0 5H26")) } " " (name) }
        }
    }
}

/// Latency by percentile as a drawing.
pub(super) fn draw_percentiles(all: &[Distribution]) -> Markup {
    const HEIGHT: f64 = 300.0;
    let last = all.iter().filter_map(|one| one.x.last().copied()).fold(1.0, f64::max);
    let x = |at: f64| LEFT + at / last * (WIDTH - LEFT - RIGHT);
    let up = AxisUp::of(all.iter().flat_map(|one| one.y.iter().copied()), true, HEIGHT);
    let nines = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999].map(|p: f64| (p, -(1.0 - p).log2()));
    let mut shown: Vec<(f64, f64)> = Vec::new();
    for (p, at) in nines.into_iter().filter(|(_, at)| *at <= last) {
        if shown.last().is_none_or(|(_, before)| x(at) - x(*before) >= 62.0) {
            shown.push((p, at));
        }
    }
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="Latency by percentile" {
            (up.render(format_us))
            @for (p, at) in shown {
                @let message = format!("{} %", (p * 1e8).round() / 1e6);
                text x=(tenths(x(at))) y=(HEIGHT - 6.0) text-anchor=(anchor(x(at))) { (message) }
            }
            @for (number, one) in all.iter().enumerate() {
                @let points: Vec<SeriesPoint> = one.x.iter().zip(&one.y).map(|(x, y)| (*x, Some(*y))).collect();
                (line_of(number, &path_of(&points, x, &up)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::charts::ChartChoice;
    use crate::html::points::{MOST, pack_series};

    #[test]
    fn every_axis_has_three_ticks_or_more() {
        for log in [false, true] {
            for (low, high) in
                [(30.0, 60.0), (0.1, 9_000.0), (99.0, 101.0), (1.0, 1.0), (0.0, 0.0), (5e6, 7e6)]
            {
                let up = AxisUp::of([low, high].into_iter(), log, 180.0);
                let ticks = up.ticks();
                assert!((3..=60).contains(&ticks.len()), "{low} to {high}, {log}: {ticks:?}");
                assert!(ticks.iter().all(|tick| (up.low..=up.high * 1.001).contains(tick)), "{ticks:?}");
            }
        }
    }

    #[test]
    fn a_gap_is_drawn_as_one_and_the_scale_is_that_of_the_measured_phase() {
        let points: Vec<SeriesPoint> =
            [(0.5, Some(900.0)), (1.5, Some(100.0)), (2.5, None), (3.5, Some(50.0))].to_vec();
        let series = vec![pack_series("ok", &points, MOST)];
        let chart = Chart::without_choices("t", "Throughput", "1/s", series).unwrap();
        let bands = vec![(0.0, 1.0, "load".to_owned()), (1.0, 4.0, "measure".to_owned())];
        let data = PageData { span: (0.0, 4.0), bands, ..PageData::default() };
        let drawn = draw_chart(&chart, &data, 180.0).into_string();
        let path = drawn.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
        // Two strokes; 100 of 106 is 156 - 142 * 100 / 106 = 22 from above, 50 is 89.
        assert_eq!(path, "M140 14h1l162 8M630 89h1");
        assert!(drawn.contains(">load<") && drawn.contains(">4 s<"), "{drawn}");
        let empty = Chart { choices: vec![ChartChoice { n: String::new(), s: Vec::new() }], ..chart };
        assert!(draw_chart(&empty, &data, 180.0).into_string().contains("<svg"));
    }
}
