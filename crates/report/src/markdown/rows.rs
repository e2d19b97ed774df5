//! Rows of bexhoma's tables: of a pod, of a run, or of several runs of the same cell.

use crate::markdown::entry::{Component, Entry, PhaseFigures};
use crate::markdown::escape_markdown;
use dyno_rundir::schema::{Latency, Phase};
use dyno_types::metric::{READ_MODIFY_WRITE, is_request};
use dyno_types::stats;
use std::fmt::Write as _;

/// Operations in bexhoma's order; others follow by name.
const ORDER: [&str; 5] = ["INSERT", "READ", "UPDATE", "SCAN", READ_MODIFY_WRITE];

pub(super) fn format_two_decimals(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or("-".into(), |v| format!("{v:.2}"))
}

/// A table of Markdown: the first column to the left, the others to the right, as tabulate writes them.
pub(super) fn append_table(out: &mut String, heads: &[String], rows: &[Vec<String>]) {
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain(std::iter::once(heads[at].chars().count())).max().unwrap_or(0)
        })
        .collect();
    let line = |out: &mut String, cells: &[String]| {
        for (at, cell) in cells.iter().enumerate() {
            let fill = " ".repeat(widths[at] - cell.chars().count());
            let _ = if at == 0 { write!(out, "| {cell}{fill} ") } else { write!(out, "| {fill}{cell} ") };
        }
        out.push_str("|\n");
    };
    line(out, heads);
    for (at, width) in widths.iter().enumerate() {
        let dashes = "-".repeat(width + 1);
        let _ = if at == 0 { write!(out, "|:{dashes}") } else { write!(out, "|{dashes}:") };
    }
    out.push_str("|\n");
    rows.iter().for_each(|row| line(out, row));
    out.push('\n');
}

pub(super) fn table_heads(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

/// Name, succeeded, p99, failed, p99 of the failed.
type OperationFigures = (String, u64, Option<f64>, u64, Option<f64>);

/// A phase of a run.
pub(super) type PhasePicker = fn(&Entry) -> Option<&PhaseFigures>;

/// Heads and cells that say what a row is of.
pub(super) type RowLabels = Vec<(&'static str, String)>;

/// A row's figures: of a pod, of a run, or of several runs of the same cell.
pub(super) struct FigureRow {
    /// Columns that say what it is of.
    of: RowLabels,
    users: usize,
    target: Option<f64>,
    pods: usize,
    exceptions: u64,
    throughput: f64,
    seconds: f64,
    operations: Vec<OperationFigures>,
    records: Option<f64>,
}

/// bexhoma's tables: columns stand in its order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BexhomaTable {
    LoadingPods,
    LoadingRuns,
    ExecutionPods,
    ExecutionPhases,
}

fn sorted(operations: impl Iterator<Item = OperationFigures>) -> Vec<OperationFigures> {
    let mut all: Vec<OperationFigures> =
        operations.filter(|(name, ok, _, failed, _)| is_request(name) && ok + failed > 0).collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    all.sort_by(|a, b| (place(&a.0), &a.0).cmp(&(place(&b.0), &b.0)));
    all
}

/// A row for each pod: each worker process. What one process did alone is one row.
pub(super) fn pod_rows(entry: &Entry, pick: PhasePicker, of: &dyn Fn(usize) -> RowLabels) -> Vec<FigureRow> {
    let Some(found) = pick(entry) else { return Vec::new() };
    let each: Vec<&Phase> = entry
        .workers
        .iter()
        .filter_map(|worker| worker.phases.iter().find(|phase| phase.name == found.phase.name))
        .collect();
    if each.is_empty() {
        return combined_row(&[entry], pick, of(1)).into_iter().collect();
    }
    let p99 = |latency: &Option<Latency>| latency.as_ref()?.percentiles_us.get("p99").copied().flatten();
    let row = |(at, phase): (usize, &&Phase)| {
        let operations = phase.metrics.iter().map(|metric| {
            let ok = metric.outcomes.get("ok").copied().unwrap_or(0);
            let failed = metric.outcomes.values().sum::<u64>() - ok;
            (metric.name.clone(), ok, p99(&metric.service), failed, p99(&metric.failed_service))
        });
        FigureRow {
            of: of(at + 1),
            users: phase.client.users,
            target: found.phase.offered.map(|all| all / each.len() as f64),
            pods: each.len(),
            exceptions: exceptions(phase),
            throughput: phase.written_per_s(),
            seconds: phase.seconds,
            operations: sorted(operations),
            // As in bexhoma: the data are loaded when all are done.
            records: entry.record_count(),
        }
    };
    each.iter().enumerate().map(row).collect()
}

/// Several runs as one: counts and histograms add up, throughput and length are means.
pub(super) fn combined_row(
    entries: &[&Entry],
    pick: impl Fn(&Entry) -> Option<&PhaseFigures>,
    of: RowLabels,
) -> Option<FigureRow> {
    let found: Vec<&PhaseFigures> = entries.iter().filter_map(|entry| pick(entry)).collect();
    let first = *found.first()?;
    let mut totals = first.totals.empty_like();
    // Other operations, or another unit: these cannot be added up.
    let alike: Vec<&&PhaseFigures> = found
        .iter()
        .filter(|one| one.names == first.names && one.totals.slot_scale() == totals.slot_scale())
        .collect();
    alike.iter().for_each(|one| totals.merge(&one.totals));
    let merged = PhaseFigures {
        phase: first.phase.clone(),
        names: first.names.clone(),
        totals,
        server: Component::default(),
        client: Component::default(),
        application: Vec::new(),
    };
    let mean =
        |of: &dyn Fn(&PhaseFigures) -> f64| found.iter().map(|one| of(one)).sum::<f64>() / found.len() as f64;
    let operations = merged.names.iter().enumerate().map(|(at, name)| {
        let (ok, failed) = merged.request_counts(at);
        (name.clone(), ok, merged.p99_us(at, false), failed, merged.p99_us(at, true))
    });
    let offered: Vec<f64> = found.iter().filter_map(|one| one.phase.offered).collect();
    let parts = entries[0].workers.iter().flat_map(|worker| &worker.phases);
    let parts: Vec<&Phase> = parts.filter(|one| one.name == first.phase.name).collect();
    // Of a run that failed in this phase its workers know them.
    let users = match first.phase.client.users {
        0 => parts.iter().map(|one| one.client.users).sum(),
        users => users,
    };
    Some(FigureRow {
        of,
        users,
        target: stats::mean(&offered),
        pods: parts.len().max(1),
        exceptions: found.iter().map(|one| exceptions(&one.phase)).sum(),
        throughput: mean(&|one| one.phase.written_per_s()),
        seconds: mean(&|one| one.phase.seconds),
        operations: sorted(operations),
        records: entries[0].record_count(),
    })
}

impl FigureRow {
    /// Heads and cells.
    fn columns(&self, kind: BexhomaTable, all: &[String], failing: &[String]) -> Vec<(String, String)> {
        let mut row: Vec<(String, String)> =
            self.of.iter().map(|(head, cell)| ((*head).to_owned(), cell.clone())).collect();
        let mut put = |head: &str, cell: String| row.push((head.to_owned(), cell));
        put("threads", self.users.to_string());
        put("target", format_two_decimals(self.target));
        if kind == BexhomaTable::ExecutionPhases {
            put("benchmark_run", "1".into());
        }
        put("pod_count", self.pods.to_string());
        put("exceptions", self.exceptions.to_string());
        let sf = self.records.map(|records| records / 1e6);
        let per_hour =
            format_two_decimals(sf.filter(|_| self.seconds > 0.0).map(|sf| sf * 3600.0 / self.seconds));
        if kind == BexhomaTable::LoadingRuns {
            put("sf", format_two_decimals(sf));
            put("Throughput [SF/h]", per_hour.clone());
        }
        put("[OVERALL].Throughput(ops/sec)", format_two_decimals(Some(self.throughput)));
        put("[OVERALL].RunTime(ms)", format_two_decimals(Some(self.seconds * 1e3)));
        let of = |name: &String| self.operations.iter().find(|operation| operation.0 == *name);
        for name in all {
            let count = if name == READ_MODIFY_WRITE { "Operations" } else { "Return=OK" };
            let found = of(name);
            put(
                &format!("[{}].{count}", escape_markdown(name)),
                found.map_or("-".into(), |one| one.1.to_string()),
            );
            put(
                &format!("[{}].99thPercentileLatency(us)", escape_markdown(name)),
                format_two_decimals(found.and_then(|one| one.2)),
            );
        }
        for name in failing {
            let (found, name) = (of(name), escape_markdown(name));
            put(&format!("[{name}-FAILED].Operations"), found.map_or("0".into(), |one| one.3.to_string()));
            put(
                &format!("[{name}-FAILED].99thPercentileLatency(us)"),
                format_two_decimals(found.and_then(|one| one.4)),
            );
        }
        if kind == BexhomaTable::LoadingPods {
            put("sf", format_two_decimals(sf));
            put("Throughput [SF/h]", per_hour);
        }
        row
    }
}

/// A table of lines.
pub(super) fn append_row_table(out: &mut String, kind: BexhomaTable, all: &[FigureRow]) {
    let mut names: Vec<String> = Vec::new();
    let mut failing: Vec<String> = Vec::new();
    for (name, _, _, failed, _) in all.iter().flat_map(|line| &line.operations) {
        if !names.contains(name) {
            names.push(name.clone());
        }
        if *failed > 0 && !failing.contains(name) {
            failing.push(name.clone());
        }
    }
    let rows: Vec<Vec<(String, String)>> =
        all.iter().map(|line| line.columns(kind, &names, &failing)).collect();
    let heads = rows.first().into_iter().flatten().map(|(head, _)| head.clone()).collect::<Vec<_>>();
    let cells = |row: &Vec<(String, String)>| row.iter().map(|(_, cell)| cell.clone()).collect();
    append_table(out, &heads, &rows.iter().map(cells).collect::<Vec<_>>());
}

/// Arrivals that did not end well.
fn exceptions(phase: &Phase) -> u64 {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    phase.outcomes.values().sum::<u64>().saturating_sub(ok)
}
