//! Rows of bexhoma's tables: of a pod, of a run, or of several runs of the same cell.

use crate::markdown::entry::{Component, Entry, PhaseFigures};
use crate::markdown::esc;
use dyno_rundir::schema::{Latency, Phase};
use dyno_types::stats;
use std::fmt::Write as _;

/// Operations in bexhoma's order; others follow by name.
const ORDER: [&str; 5] = ["INSERT", "READ", "UPDATE", "SCAN", "READ-MODIFY-WRITE"];

pub(super) fn two(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or("-".into(), |v| format!("{v:.2}"))
}

/// A table of Markdown: the first column to the left, the others to the right, as tabulate writes them.
pub(super) fn table(out: &mut String, heads: &[String], rows: &[Vec<String>]) {
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

pub(super) fn heads(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

/// Name, succeeded, p99, failed, p99 of the failed.
type Operation = (String, u64, Option<f64>, u64, Option<f64>);

/// A phase of a run.
pub(super) type Pick = fn(&Entry) -> Option<&PhaseFigures>;

/// Heads and cells that say what a row is of.
pub(super) type Of = Vec<(&'static str, String)>;

/// A row's figures: of a pod, of a run, or of several runs of the same cell.
pub(super) struct Line {
    /// Columns that say what it is of.
    of: Of,
    users: usize,
    target: Option<f64>,
    pods: usize,
    exceptions: u64,
    throughput: f64,
    seconds: f64,
    operations: Vec<Operation>,
    records: Option<f64>,
}

/// bexhoma's tables: columns stand in its order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    LoadingPods,
    LoadingRuns,
    ExecutionPods,
    ExecutionPhases,
}

fn sorted(operations: impl Iterator<Item = Operation>) -> Vec<Operation> {
    let mut all: Vec<Operation> =
        operations.filter(|(name, ok, _, failed, _)| name != "CLEANUP" && ok + failed > 0).collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    all.sort_by(|a, b| (place(&a.0), &a.0).cmp(&(place(&b.0), &b.0)));
    all
}

/// A row for each pod: each worker process. What one process did alone is one row.
pub(super) fn pods(entry: &Entry, pick: Pick, of: &dyn Fn(usize) -> Of) -> Vec<Line> {
    let Some(found) = pick(entry) else { return Vec::new() };
    let each: Vec<&Phase> = entry
        .workers
        .iter()
        .filter_map(|worker| worker.phases.iter().find(|phase| phase.name == found.phase.name))
        .collect();
    if each.is_empty() {
        return line(&[entry], pick, of(1)).into_iter().collect();
    }
    let p99 = |latency: &Option<Latency>| latency.as_ref()?.percentiles_us.get("p99").copied().flatten();
    let row = |(at, phase): (usize, &&Phase)| {
        let operations = phase.metrics.iter().map(|metric| {
            let ok = metric.outcomes.get("ok").copied().unwrap_or(0);
            let failed = metric.outcomes.values().sum::<u64>() - ok;
            (metric.name.clone(), ok, p99(&metric.service), failed, p99(&metric.failed_service))
        });
        Line {
            of: of(at + 1),
            users: phase.client.users,
            target: found.phase.offered.map(|all| all / each.len() as f64),
            pods: each.len(),
            exceptions: exceptions(phase),
            throughput: phase.written_per_s(),
            seconds: phase.seconds,
            operations: sorted(operations),
            // As in bexhoma: the data are loaded when all are done.
            records: entry.records(),
        }
    };
    each.iter().enumerate().map(row).collect()
}

/// Several runs as one: counts and histograms add up, throughput and length are means.
pub(super) fn line(
    entries: &[&Entry],
    pick: impl Fn(&Entry) -> Option<&PhaseFigures>,
    of: Of,
) -> Option<Line> {
    let found: Vec<&PhaseFigures> = entries.iter().filter_map(|entry| pick(entry)).collect();
    let first = *found.first()?;
    let mut totals = first.totals.emptied();
    // Other operations, or another unit: these cannot be added up.
    let alike: Vec<&&PhaseFigures> =
        found.iter().filter(|one| one.names == first.names && one.totals.scale() == totals.scale()).collect();
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
        let (ok, failed) = merged.counts(at);
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
    Some(Line {
        of,
        users,
        target: stats::mean(&offered),
        pods: parts.len().max(1),
        exceptions: found.iter().map(|one| exceptions(&one.phase)).sum(),
        throughput: mean(&|one| one.phase.written_per_s()),
        seconds: mean(&|one| one.phase.seconds),
        operations: sorted(operations),
        records: entries[0].records(),
    })
}

impl Line {
    /// Heads and cells.
    fn columns(&self, kind: Table, all: &[String], failing: &[String]) -> Vec<(String, String)> {
        let mut row: Vec<(String, String)> =
            self.of.iter().map(|(head, cell)| ((*head).to_owned(), cell.clone())).collect();
        let mut put = |head: &str, cell: String| row.push((head.to_owned(), cell));
        put("threads", self.users.to_string());
        put("target", two(self.target));
        if kind == Table::ExecutionPhases {
            put("benchmark_run", "1".into());
        }
        put("pod_count", self.pods.to_string());
        put("exceptions", self.exceptions.to_string());
        let sf = self.records.map(|records| records / 1e6);
        let per_hour = two(sf.filter(|_| self.seconds > 0.0).map(|sf| sf * 3600.0 / self.seconds));
        if kind == Table::LoadingRuns {
            put("sf", two(sf));
            put("Throughput [SF/h]", per_hour.clone());
        }
        put("[OVERALL].Throughput(ops/sec)", two(Some(self.throughput)));
        put("[OVERALL].RunTime(ms)", two(Some(self.seconds * 1e3)));
        let of = |name: &String| self.operations.iter().find(|operation| operation.0 == *name);
        for name in all {
            let count = if name == "READ-MODIFY-WRITE" { "Operations" } else { "Return=OK" };
            let found = of(name);
            put(&format!("[{}].{count}", esc(name)), found.map_or("-".into(), |one| one.1.to_string()));
            put(&format!("[{}].99thPercentileLatency(us)", esc(name)), two(found.and_then(|one| one.2)));
        }
        for name in failing {
            let (found, name) = (of(name), esc(name));
            put(&format!("[{name}-FAILED].Operations"), found.map_or("0".into(), |one| one.3.to_string()));
            put(&format!("[{name}-FAILED].99thPercentileLatency(us)"), two(found.and_then(|one| one.4)));
        }
        if kind == Table::LoadingPods {
            put("sf", two(sf));
            put("Throughput [SF/h]", per_hour);
        }
        row
    }
}

/// A table of lines.
pub(super) fn lines(out: &mut String, kind: Table, all: &[Line]) {
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
    table(out, &heads, &rows.iter().map(cells).collect::<Vec<_>>());
}

/// Arrivals that did not end well.
fn exceptions(phase: &Phase) -> u64 {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    phase.outcomes.values().sum::<u64>().saturating_sub(ok)
}
