//! The layout of logs.
//!
//! ```text
//! logs-NAME/workload-config.yaml        what was asked for
//! logs-NAME/experiment/                 the experiment's directory, with everything measured
//! logs-NAME/itr-1/kpi.txt               KPIs
//! logs-NAME/itr-1/summary.json          the summary they come from
//! logs-NAME/itr-1/benchmark-0/status    0 where this client's operations all ended well
//! logs-NAME/itr-1/benchmark-0/output.logs   what YCSB would have printed
//! ```
//!
//! Of several TARGETs, which are cells of one experiment, each has a folder `TARGET-1000` with its own workload-config.yaml and
//! `itr-1` and so on.

use crate::folder::{CONFIG, EXPERIMENT};
use crate::report::client::{ClientKpis, client_log, read_log};
use crate::report::kpis::{CombinedKpis, Windowed, kpi_text};
use dyno_config::tree::Node;
use dyno_experiment::directory::{CellRecord, read_record};
use dyno_experiment::journal::{RunRecord, RunStatus};
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_rundir::RunDir;
use dyno_rundir::files;
use dyno_rundir::schema::{Phase, Status};
use std::path::{Path, PathBuf};

/// The folder of one of several TARGETs.
pub fn of_target(target: &str) -> String {
    format!("TARGET-{target}")
}

/// Folders with `itr-1` and so on: that of the logs itself, or one for each TARGET in the order of the cells.
fn points(logs_dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cells = read_record(&logs_dir.join(EXPERIMENT))?.cells;
    let of = |cell: CellRecord| match cell.levels.into_iter().next() {
        Some((_, target)) => logs_dir.join(of_target(&target)),
        None => logs_dir.to_owned(),
    };
    Ok(cells.into_iter().map(of).collect())
}

/// Writes the logs of all runs that have ended; whether all passed.
pub fn write(logs_dir: &Path, ended: &[RunRecord]) -> Result<bool, Failure> {
    let (windows, points) = (windows(logs_dir), points(logs_dir)?);
    let mut passed = true;
    for record in ended {
        let point = points.get(record.cell.saturating_sub(1)).map_or(logs_dir, PathBuf::as_path);
        let folder = point.join(format!("itr-{}", record.repetition));
        std::fs::create_dir_all(&folder)?;
        passed &= match record.status {
            RunStatus::Complete => {
                run(&folder, &logs_dir.join(EXPERIMENT).join(&record.dir), record, &windows)?
            }
            _ => {
                client(&folder, 0, &format!("{}\n", record.cause), false)?;
                false
            }
        };
    }
    Ok(passed)
}

/// One run's logs.
fn run(folder: &Path, dir: &Path, record: &RunRecord, windows: &[(u64, u64)]) -> Result<bool, Failure> {
    let run = RunDir::open(dir)?;
    let Some(summary) = &run.summary else {
        client(folder, 0, "no summary\n", false)?;
        return Ok(false);
    };
    let sound = summary.status == Status::Complete && record.trust != "invalid";
    let clients: Vec<&[Phase]> = match summary.pairs.as_slice() {
        [] => vec![&summary.phases],
        pairs => pairs.iter().map(|pair| pair.phases.as_slice()).collect(),
    };
    let mut all: Vec<ClientKpis> = Vec::new();
    let mut passed = sound;
    for (number, phases) in clients.iter().enumerate() {
        let log = client_log(phases);
        let well = sound && phases.iter().all(ended_well);
        client(folder, number, &log, well)?;
        passed &= well;
        all.push(read_log(&log));
    }
    let mut together = CombinedKpis::of(summary, &run.successes_by_second()?);
    for &asked in windows {
        together.windows.push(windowed(&run, asked)?);
    }
    files::put_file(&folder.join("kpi.txt"), kpi_text(&all, Some(&together)).as_bytes())?;
    std::fs::copy(dir.join("summary.json"), folder.join("summary.json"))?;
    Ok(passed)
}

/// Begin and end of `time` windows, as workload-config.yaml has them.
fn windows(logs_dir: &Path) -> Vec<(u64, u64)> {
    let text = files::read_to_string(&logs_dir.join(CONFIG)).unwrap_or_default();
    let Ok(tree) = Node::parse(&text, CONFIG) else { return Vec::new() };
    let number = |one: &Node, key: &str| one.get(key).and_then(|node| node.to_label().parse::<u64>().ok());
    let of = |one: &Node| {
        let begin = number(one, "begin_s")?;
        Some((begin, begin + number(one, "length_s")?))
    };
    tree.get("trace_windows").and_then(Node::items).unwrap_or_default().iter().filter_map(of).collect()
}

fn windowed(run: &RunDir, asked: (u64, u64)) -> Result<Windowed, Failure> {
    let part = run.measured_window(asked.0, asked.1)?;
    let p99 = |buckets| {
        dyno_analysis::latency_from_buckets(buckets, 0)?.percentiles_us.get("p99").copied().flatten()
    };
    let p99 = part.latencies.iter().filter_map(|(name, all)| Some((name.clone(), p99(all)?))).collect();
    Ok(Windowed { asked, seconds: part.seconds, operations: part.operations, p99 })
}

/// Returns whether every operation that was sent ended well. YCSB exits with 0 in any case.
fn ended_well(phase: &Phase) -> bool {
    let fine = |name: &str| ["ok", "dropped", "aborted"].contains(&name);
    phase.outcomes.iter().all(|(name, count)| fine(name) || *count == 0)
}

fn client(folder: &Path, number: usize, log: &str, passed: bool) -> Result<(), Failure> {
    let own = folder.join(format!("benchmark-{number}"));
    std::fs::create_dir_all(&own)?;
    files::put_file(&own.join("output.logs"), log.as_bytes())?;
    files::put_file(&own.join("status"), if passed { b"0\n" } else { b"1\n" })?;
    Ok(())
}

/// Prints the KPIs; with `-VV` every client's, else the summary.
pub fn show(logs_dir: &Path, verbose: u8) -> Result<(), Failure> {
    for folder in points(logs_dir)?.iter().flat_map(|point| super::kpi::iterations(point)) {
        let Ok(text) = files::read_to_string(&folder.join("kpi.txt")) else { continue };
        let summary = text.find("Summary:").filter(|_| verbose < 2).unwrap_or(0);
        terminal::out(&format!("{}\n{}", folder.display(), &text[summary..]));
    }
    Ok(())
}
