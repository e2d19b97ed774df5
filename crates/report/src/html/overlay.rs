//! Two factors: the throughput of every level of one laid over each other for each level of the other, and a table of one by
//! the other with intervals, as Percona compared storage engines by memory.

use crate::html::charts::{Chart, PageData};
use crate::html::document::{render_figure, render_tools};
use crate::html::gathered::{CellRuns, Gathered, GatheredRun};
use crate::html::points::{MOST, SeriesPoint, pack_series};
use crate::html::text::{format_rate, render_table};
use dyno_analysis::interval::mean_interval;
use dyno_types::stats::mean;
use maud::{Markup, html};

/// Names of factors that are laid over each other, where there is a choice.
const PRODUCTS: [&str; 5] = ["engine", "database", "store", "server", "target"];

/// Throughput of ten seconds, mean over runs; of tens that were recorded in full.
fn tens(rows: &[&CellRuns]) -> Vec<SeriesPoint> {
    let runs: Vec<&GatheredRun> =
        rows.iter().flat_map(|row| &row.runs).filter(|run| !run.seconds.is_empty()).collect();
    let last = runs.iter().filter_map(|run| run.seconds.keys().last()).max().map_or(0, |last| last + 1);
    (0..last / 10)
        .map(|ten| {
            let whole: Vec<f64> = runs
                .iter()
                .filter(|run| run.seconds.range(ten * 10..ten * 10 + 10).count() == 10)
                .map(|run| {
                    run.seconds.range(ten * 10..ten * 10 + 10).map(|(_, n)| *n as f64).sum::<f64>() / 10.0
                })
                .collect();
            ((ten * 10 + 5) as f64, mean(&whole))
        })
        .collect()
}

/// Which factor is laid over itself, and which has a chart for each level: of an experiment with factors called engine and
/// memory these, else of one with two factors, repetitions and runs of ten seconds. A factor that a product is named by is the
/// first; else the one whose levels are words where the other's are numbers; else the first of the file.
fn chosen(all: &Gathered<'_>) -> Option<(usize, usize)> {
    let factors = all.factor_names();
    let named = |name: &str| factors.iter().position(|factor| *factor == name);
    if let (Some(engine), Some(memory)) = (named("engine"), named("memory")) {
        return Some((engine, memory));
    }
    let repeated = all.rows.iter().any(|row| row.figures.runs >= 2);
    let long = all.rows.iter().flat_map(|row| &row.runs).any(|run| run.seconds.len() >= 10);
    let searched = all.rows.iter().any(|row| !row.figures.point.is_empty());
    if factors.len() != 2 || !repeated || !long || searched {
        return None;
    }
    if let Some(product) = factors.iter().position(|name| PRODUCTS.contains(name)) {
        return Some((product, 1 - product));
    }
    let numbers = |factor: usize| all.factor_levels(factor).iter().all(|level| level.parse::<f64>().is_ok());
    match (numbers(0), numbers(1)) {
        (true, false) => Some((1, 0)),
        _ => Some((0, 1)),
    }
}

/// The section with its title, where there is one.
pub fn render_overlay(all: &Gathered<'_>, data: &mut PageData) -> Option<(String, Markup)> {
    let (over, by) = chosen(all)?;
    let (over_name, by_name) = (all.factor_names()[over], all.factor_names()[by]);
    let of = |size: &str, name: &str| -> Vec<&CellRuns> {
        let level = |row: &CellRuns, factor: usize, wanted: &str| row.figures.levels[factor].1 == wanted;
        all.rows.iter().filter(|row| level(row, over, name) && level(row, by, size)).collect()
    };
    let (sizes, names) = (all.factor_levels(by), all.factor_levels(over));
    let last = all.rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.seconds.keys().last()).max();
    data.span = (0.0, last.map_or(1.0, |last| (*last + 1) as f64));
    let mut figures = Vec::new();
    for size in &sizes {
        let series = names.iter().map(|name| pack_series(name, &tens(&of(size, name)), MOST)).collect();
        let title = format!("{by_name} {size}: throughput of ten seconds");
        let chart = Chart::without_choices(&format!("overlay-{size}"), &title, "operations/s", series);
        figures.push(match &chart {
            Some(chart) => render_figure(data.charts.len(), chart, data),
            None => html! { p { (by_name) " " (size) ": no run of ten seconds or more." } },
        });
        data.charts.extend(chart);
    }
    let heads = [&[by_name], names.as_slice()].concat();
    let row = |size: &&str| {
        let cells = names.iter().map(|name| cell(&of(size, name)));
        std::iter::once((*size).to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let title = format!("Throughput by {by_name} and {over_name}, operations/s, 95 % intervals over runs");
    let section = html! {
        (render_tools())
        @for figure in figures { (figure) }
        (render_table(&title, &heads, sizes.iter().map(row), 1))
    };
    Some((format!("{over_name} by {by_name}"), section))
}

/// Mean and interval over the runs of a cell.
fn cell(rows: &[&CellRuns]) -> String {
    let runs: Vec<f64> = rows.iter().flat_map(|row| row.figures.throughputs.iter().copied()).collect();
    match (mean_interval(&runs), runs.first()) {
        (Some(found), _) => format!("{} ±{}", format_rate(found.mean), format_rate(found.half_width)),
        (None, Some(one)) => format!("{} (one run)", format_rate(*one)),
        (None, None) => "-".into(),
    }
}
