//! The page of a run.

use crate::html::analysis_sections::StabilityAnalysis;
use crate::html::charts::{ChartLimit, PageData, metrics_with_shares, of_load, phase_distributions};
use crate::html::document::render_standalone_page;
use crate::html::sections;
use crate::html::sections::{PageParts, Report};
use crate::html::text::format_rate;
use crate::html::timeline::{Mark, Timeline};
use crate::html::watched::build_monitor_charts;
use dyno_analysis::Condition;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::files;
use dyno_rundir::series;
use std::collections::BTreeMap;

/// Events that are marked at most.
const MARKS: usize = 200;

/// The page of one run.
pub fn run_page(report: &Report<'_>) -> String {
    let mut notes: Vec<String> = report.notes.to_vec();
    let rows = match files::read_to_string(&report.dir.path.join("series.csv")) {
        Ok(text) => {
            let (rows, bad) = series::read(&text);
            if bad > 0 {
                notes.push(format!("series.csv: {bad} lines could not be read and are left out"));
            }
            rows
        }
        Err(error) => {
            notes.push(format!("series.csv: {error}: there is nothing to draw over time"));
            Vec::new()
        }
    };
    let mut axis = Timeline::from_run(report.dir, &rows);
    notes.append(&mut axis.notes);
    let measured = report.summary.measured_phase();
    let open = measured.is_some_and(|phase| phase.offered.is_some());
    let steady = judge(report, &mut notes);
    if let Some(steady) = &steady {
        marked(&mut axis, steady);
    }
    let recorded = if open {
        report.dir.server_p99().unwrap_or_else(|error| {
            notes.push(format!("the server's share over time is not known: {error}"));
            BTreeMap::new()
        })
    } else {
        BTreeMap::new()
    };
    let known = measured.map_or(Vec::new(), metrics_with_shares);
    // Files that cannot be read are named above.
    let due = report.dir.read_due().unwrap_or_default();
    let load = of_load(&rows, &axis, &known, open.then_some(&recorded), &due);
    let seen = report.recording.map(|recording| build_monitor_charts(recording, &axis));
    let (first, constant) = (load.len(), seen.as_ref().map_or(Vec::new(), |seen| seen.constant.clone()));
    let mut data = PageData { span: axis.drawn_range(), origin: axis.origin_ms, ..PageData::default() };
    data.bands = axis.spans.iter().map(|span| (span.from, span.to, span.name.clone())).collect();
    let (from, to) = data.span;
    let inside = axis.marks.iter().filter(|mark| (from..=to).contains(&mark.at));
    data.marks = inside.take(MARKS).map(|mark| (mark.at, mark.text.clone())).collect();
    data.charts = load.into_iter().chain(seen.into_iter().flat_map(|seen| seen.charts)).collect();
    data.distributions =
        measured.map_or(Vec::new(), |phase| phase_distributions(report.dir, &phase.name, open));
    data.limits = report.summary.thresholds.iter().filter_map(|one| limit(&one.expression)).collect();
    if let Some(begin) = axis.phase_span("measure").map(|span| span.from) {
        let end = |one: &FaultFigures| begin + one.end_s.unwrap_or(f64::MAX).min(to - begin);
        let fault = |one: &FaultFigures| (begin + one.begin_s, end(one), one.fault.clone());
        data.faults = report.summary.faults.iter().map(fault).collect();
    }
    let made = PageParts { data: &data, load: first, marks: &axis.marks, constant: &constant, notes: &notes };
    let body = sections::render_body(report, &made, steady.as_ref());
    render_standalone_page(&format!("{}: {}", report.summary.title, report.summary.database), &body, &data)
}

/// A threshold on the chart of what it is about.
fn limit(expression: &str) -> Option<ChartLimit> {
    let bound = Condition::parse(expression).ok()?.drawable_bound()?;
    let chart = match (&bound.metric, bound.service) {
        (None, _) => "throughput",
        (Some(_), false) => "response",
        (Some(_), true) => "service",
    };
    // A limit for all operations together is asked of each, as far as a chart can show it.
    let choice = match &bound.metric {
        None => "all operations".to_owned(),
        Some(metric) if metric == "all" => String::new(),
        Some(metric) => metric.clone(),
    };
    Some(ChartLimit {
        chart: chart.into(),
        choice,
        at: bound.limit,
        below: bound.is_upper,
        message: expression.to_owned(),
    })
}

/// Judges how steady the throughput was.
fn judge(report: &Report<'_>, notes: &mut Vec<String>) -> Option<StabilityAnalysis> {
    match report.dir.interval_history() {
        Ok(history) => {
            notes.extend(history.describe_missing());
            StabilityAnalysis::from_history(history)
        }
        Err(error) => {
            notes.push(format!("stability cannot be judged: {error}"));
            None
        }
    }
}

/// Change points and stalls beside the events.
fn marked(axis: &mut Timeline, over_time: &StabilityAnalysis) {
    let Some(begin) = axis.phase_span("measure").map(|span| span.from) else { return };
    let at = |interval: usize| begin + over_time.second_of_interval(interval) as f64;
    let steady = &over_time.found;
    for pair in steady.segments.windows(2) {
        let text = format!(
            "throughput changes from {} to {}/s",
            format_rate(pair[0].mean),
            format_rate(pair[1].mean)
        );
        axis.marks.push(Mark { at: at(pair[1].range.0), text });
    }
    for stall in steady.stalls.iter().take(MARKS / 2) {
        let text = format!(
            "stall of {} s, down to {}/s",
            stall.intervals as u64 * over_time.history.step_s,
            format_rate(stall.least)
        );
        axis.marks.push(Mark { at: at(stall.at), text });
    }
    axis.marks.sort_by(|a, b| a.at.total_cmp(&b.at));
}
