//! The table of an experiment, from its directory.

use crate::exit::Failure;
use crate::terminal;
use dyno_analysis::ArrivalLatency;
use dyno_experiment::directory::ExperimentRecord;
use dyno_experiment::journal::{RunRecord, RunStatus};
use dyno_record::Scale;
use dyno_report::cost_efficiency;
use dyno_report::experiment::{CellRow, render_cell_table};
use dyno_rundir::RunDir;
use dyno_rundir::schema::Phase;
use dyno_types::stats::mean;
use std::path::Path;

/// One row for each cell, and for each point of a search.
pub fn rows(path: &Path, record: &ExperimentRecord, ended: &[RunRecord], price: Option<f64>) -> Vec<CellRow> {
    let mut rows = Vec::new();
    for cell in &record.cells {
        let runs: Vec<&RunRecord> = ended.iter().filter(|run| run.cell == cell.number).collect();
        let mut points: Vec<&str> = Vec::new();
        for run in &runs {
            if !points.contains(&run.point.as_str()) {
                points.push(&run.point);
            }
        }
        for point in points {
            let own: Vec<&RunRecord> = runs.iter().copied().filter(|run| run.point == point).collect();
            rows.push(row(path, &cell.levels, &own, price));
        }
    }
    rows
}

fn row(path: &Path, levels: &[(String, String)], runs: &[&RunRecord], price: Option<f64>) -> CellRow {
    let count = |holds: &dyn Fn(&RunRecord) -> bool| runs.iter().filter(|run| holds(run)).count();
    let mut row = CellRow {
        levels: levels.to_vec(),
        point: runs.first().map_or(String::new(), |run| run.point.clone()),
        runs: count(&|run| run.status == RunStatus::Complete),
        failed: count(&|run| run.status == RunStatus::Failed),
        suspect: count(&|run| run.trust == "suspect"),
        invalid: count(&|run| run.trust == "invalid"),
        missed: count(&|run| run.status == RunStatus::Complete && !run.passed),
        ..CellRow::default()
    };
    let measured = runs.iter().filter(|run| run.status == RunStatus::Complete);
    let throughputs = measured.clone().filter_map(|run| run.throughput).collect();
    let mut response = ArrivalLatency::new(Scale::Ns64);
    let (mut read, mut written, mut per_core) = (Vec::new(), Vec::new(), Vec::new());
    for run in measured {
        // A directory that was moved away gives no latencies.
        let Ok(dir) = RunDir::open(&path.join(&run.dir)) else { continue };
        if let Some(phase) = dir.summary.as_ref().and_then(|summary| summary.measured_phase()) {
            let (one, other) = disk_kib(phase);
            read.extend(one);
            written.extend(other);
            per_core.extend(cost_efficiency::per_core(phase));
        }
        response.merge(&ArrivalLatency::of_run(&dir, "measure", Scale::Ns64));
    }
    row.set_measurements(throughputs, &response);
    row.set_cost_efficiency(&per_core, price);
    if let ([one], Some(found)) = (runs, runs.first().and_then(|run| run.window)) {
        row.window =
            found.half_width.filter(|_| one.status == RunStatus::Complete).map(|half| (found.mean, half));
    }
    (row.read_kib, row.written_kib) = (mean(&read), mean(&written));
    row
}

/// KiB read and written for one operation by the server, or where there is none by the workers.
fn disk_kib(phase: &Phase) -> (Option<f64>, Option<f64>) {
    let Some(seen) = &phase.monitor else { return (None, None) };
    let Some(process) = seen.server.as_ref().or(seen.workers.as_ref()) else { return (None, None) };
    let each =
        |bytes: Option<f64>| bytes.filter(|_| phase.throughput > 0.0).map(|b| b / 1024.0 / phase.throughput);
    (each(process.read_bytes_per_s), each(process.written_bytes_per_s))
}

/// The table as text or JSON.
pub fn text(rows: &[CellRow], json: bool) -> Result<String, Failure> {
    match json {
        true => {
            let text = serde_json::to_string_pretty(rows)?;
            Ok(format!("{text}\n"))
        }
        false => Ok(format!("\n{}", render_cell_table(rows))),
    }
}

/// Prints the table.
pub fn show(rows: &[CellRow], json: bool) -> Result<(), Failure> {
    terminal::out(&text(rows, json)?);
    Ok(())
}
