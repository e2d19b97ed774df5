//! A sweep over rates: what is kept, how response times grow, and the station that explains them.

use crate::html::gathered::{CellRuns, Gathered, mean_dots};
use crate::html::plot::{Across, Plot, PlotLine};
use crate::html::text::{format_percent, format_rate, format_us, join_markup, render_lines, render_table};
use dyno_analysis::laws::{Observed, Rates, analyse_rates, factors_of_rates};
use dyno_types::units::span;
use maud::{Markup, html};

/// The section, where the rate that is asked for varies.
pub fn render_rates_section(all: &Gathered<'_>) -> Option<Markup> {
    let varying = all.factors_of(factors_of_rates);
    let mut parts = Vec::new();
    for (message, rows) in all.sweep_groups(&varying) {
        let observed: Vec<Observed> =
            rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.at_rate.clone()).collect();
        let Some(found) = analyse_rates(&observed) else { continue };
        let unit = observed[0].unit;
        parts.push(html! {
            @if !message.is_empty() { h3 { (message) } }
            // Tables of several groups have names of their own.
            (levels(&found, unit, &if message.is_empty() { String::new() } else { format!(", {message}") }))
            (render_lines(words_of(&found)))
            (plots(&found, &rows, unit))
        });
    }
    (!parts.is_empty()).then(|| join_markup(parts, ""))
}

fn levels(found: &Rates, unit: &str, of: &str) -> Markup {
    let (rate, throughput) = (format!("rate, {unit}/s"), format!("X, {unit}/s"));
    let heads = [&rate, "runs", &throughput, "95 % interval", "of what was due", "R", "model of R"];
    let rows = found.levels.iter().map(|level| {
        [
            format_rate(level.rate),
            level.runs.to_string(),
            format_rate(level.throughput),
            level.half_width.map_or("one run: none".into(), |half| format!("±{}", format_rate(half))),
            format_percent(level.ratio),
            level.response_s.map_or("-".into(), |found| format_us(found * 1e6)),
            level.model_s.map_or("-".into(), |model| format_us(model * 1e6)),
        ]
    });
    let caption = format!("Rates that were asked for; R counts from when an operation was due{of}");
    render_table(&caption, &heads, rows, 0)
}

fn words_of(found: &Rates) -> Vec<String> {
    let mut lines = Vec::new();
    match (found.kept, found.missed) {
        (Some(kept), None) if found.disturbed.is_empty() => {
            lines.push(format!("Throughput keeps up with every rate up to {}/s.", format_rate(kept)));
        }
        (Some(kept), None) => lines.push(format!("Throughput keeps up with {}/s.", format_rate(kept))),
        (Some(kept), Some((missed, done))) => lines.push(format!(
            "{}/s is kept; of {}/s only {}/s are done.",
            format_rate(kept),
            format_rate(missed),
            format_rate(done)
        )),
        (None, Some((missed, done))) => {
            lines.push(format!(
                "Not even {}/s is kept: {}/s are done.",
                format_rate(missed),
                format_rate(done)
            ));
        }
        (None, None) => {}
    }
    lines.extend(found.disturbed.iter().map(|(missed, done)| {
        format!(
            "Of {}/s only {}/s are done, although higher rates are kept: see what its runs say.",
            format_rate(*missed),
            format_rate(*done)
        )
    }));
    match (&found.fit, &found.why) {
        (Some(fit), _) => lines.push(format!(
            "Response times are those of {} with {} for an operation (typical error {}): the capacity is about {}/s (95 % \
             interval {}), of which {} was used at the greatest rate that is kept.",
            fit.kendall_notation(),
            format_us(fit.service_s * 1e6),
            format_percent(fit.error),
            format_rate(fit.capacity),
            span((format_rate(fit.interval.0), format_rate(fit.interval.1)), ""),
            format_percent(fit.utilisation)
        )),
        (None, Some(why)) => lines.push(format!("The capacity cannot be told: {why}.")),
        (None, None) => {}
    }
    lines.extend(found.describe_doubts().into_iter().map(|message| format!("But {message}.")));
    lines
}

fn plots(found: &Rates, rows: &[&CellRuns], unit: &str) -> Markup {
    let (first, last) = (found.levels[0].rate, found.levels[found.levels.len() - 1].rate);
    let between = |to: f64| (0..=60).map(move |n| first + (to - first) * f64::from(n) / 60.0);
    let throughput = Plot {
        title: format!("Throughput against the rate, {unit}/s"),
        across: format!("{unit}/s asked for"),
        axis: Across::Numbers,
        dots: mean_dots(rows, |run| run.rate, |run| Some(run.throughput)),
        faint: Vec::new(),
        lines: vec![PlotLine {
            name: "all of it".into(),
            style: 1,
            points: between(last).map(|rate| (rate, rate)).collect(),
        }],
        top: 0.0,
        bottom: 0.0,
        log: false,
        show: format_rate,
    };
    // As far as the model goes: at the capacity times grow without end.
    let lines = found.fit.as_ref().map(|fit| {
        let to = found.kept.unwrap_or(first).min(fit.capacity * 0.99);
        let points = between(to).filter_map(|rate| Some((rate, fit.response_s(rate)? * 1e6))).collect();
        PlotLine { name: fit.kendall_notation(), style: 2, points }
    });
    let response = Plot {
        title: "Response time against rates that are kept".into(),
        across: format!("{unit}/s asked for"),
        axis: Across::Numbers,
        // Of a rate that is not kept they grow for as long as the run lasts.
        dots: mean_dots(
            rows,
            |run| run.rate.filter(|rate| found.is_rate_kept(*rate)),
            |run| Some(run.due_s? * 1e6),
        ),
        faint: Vec::new(),
        lines: lines.into_iter().collect(),
        top: 0.0,
        bottom: 0.0,
        log: false,
        show: format_us,
    };
    let kept = found.levels.iter().filter(|level| found.kept >= Some(level.rate)).count();
    html! {
        div.grid2 {
            (throughput.render_figure())
            @if kept > 1 { (response.render_figure()) }
        }
    }
}
