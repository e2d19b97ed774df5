//! The table of an experiment: one line for each cell.

use crate::cost_efficiency;
use crate::cost_efficiency::CostEfficiency;
use dyno_analysis::ArrivalLatency;
use dyno_analysis::interval::mean_interval;
use dyno_types::stats::mean;
use dyno_types::units::{Rate, ShownLatency};
use serde::Serialize;

/// A cell and what its runs gave.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CellRow {
    /// The level of each factor.
    pub levels: Vec<(String, String)>,
    /// Values that a strategy has set, such as `users=8`.
    pub point: String,
    /// Completed runs.
    pub runs: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs whose verdict is suspect.
    pub suspect: usize,
    /// Runs whose verdict is invalid.
    pub invalid: usize,
    /// Runs that missed a threshold.
    pub missed: usize,
    /// Operations per second of each run.
    pub throughputs: Vec<f64>,
    /// Their mean.
    pub throughput: Option<f64>,
    /// Half of its 95 % interval as a share of the mean; from two runs on.
    pub half_width: Option<f64>,
    /// Percentiles of the response time over all operations of all runs, microseconds: p50, p99, p99.9. From the merged
    /// histograms, failures with at least the time after which they failed; infinite among what was never sent.
    pub response_us: Option<[f64; 3]>,
    /// Of a single run with a window: mean of its intervals and half of the mean's 95 % interval, operations per second.
    pub window: Option<(f64, f64)>,
    /// KiB that the server (of embedded stores: the workers) read from disks for one operation, mean of the runs.
    pub read_kib: Option<f64>,
    /// KiB that it wrote.
    pub written_kib: Option<f64>,
    /// Operations per core-second of the server (of embedded stores: the workers) over the runs where these were watched.
    pub per_core: Option<CostEfficiency>,
    /// Operations for a unit of money, where a price is given.
    pub per_price: Option<CostEfficiency>,
}

impl CellRow {
    /// Adds the worth of throughput: operations per core-second of each run, and the price of an hour.
    pub fn set_cost_efficiency(&mut self, per_core: &[f64], price: Option<f64>) {
        self.per_core = CostEfficiency::of_runs(per_core);
        let each = |price: f64| -> Vec<f64> {
            self.throughputs.iter().map(|one| cost_efficiency::per_price(*one, price)).collect()
        };
        self.per_price = price.and_then(|price| CostEfficiency::of_runs(&each(price)));
    }

    /// Takes over throughputs and merged response times.
    pub fn set_measurements(&mut self, throughputs: Vec<f64>, response: &ArrivalLatency) {
        self.throughput = mean(&throughputs);
        self.half_width = mean_interval(&throughputs).filter(|i| i.mean > 0.0).map(|i| i.half_width / i.mean);
        self.throughputs = throughputs;
        // A percentile that too few samples support is not shown.
        let at = |p: f64| response.supported_ns(p).map(|ns| ns / 1e3);
        self.response_us = at(50.0).zip(at(99.0)).map(|(p50, p99)| [p50, p99, at(99.9).unwrap_or(f64::NAN)]);
    }
}

/// The table as text.
pub fn render_cell_table(rows: &[CellRow]) -> String {
    let factors: Vec<&str> =
        rows.first().map_or(Vec::new(), |row| row.levels.iter().map(|(name, _)| name.as_str()).collect());
    let points = rows.iter().any(|row| !row.point.is_empty());
    let mut head: Vec<String> = factors.iter().map(|name| (*name).to_owned()).collect();
    if points {
        head.push("point".into());
    }
    head.extend(["runs", "ops/s", "±95 %", "p50", "p99", "p99.9"].map(str::to_owned));
    // Stores in memory have nothing to show there.
    let disk =
        rows.iter().any(|row| [row.read_kib, row.written_kib].into_iter().flatten().any(|kib| kib >= 0.005));
    if disk {
        head.extend(["KiB read/op", "written/op"].map(str::to_owned));
    }
    let priced = rows.iter().any(|row| row.per_price.is_some());
    if priced {
        head.extend(["ops/core-s", "ops/currency unit"].map(str::to_owned));
    }
    head.push("remarks".into());
    let mut lines = vec![head];
    for row in rows {
        let mut line: Vec<String> = row.levels.iter().map(|(_, label)| label.clone()).collect();
        if points {
            line.push(row.point.clone());
        }
        line.push(row.runs.to_string());
        line.push(row.throughput.map_or("-".into(), |n| Rate(n).to_string()));
        line.push(row.half_width.map_or("-".into(), |share| format!("{:.1} %", share * 100.0)));
        match row.response_us {
            Some(all) => line.extend(all.map(time)),
            None => line.extend(["-"; 3].map(str::to_owned)),
        }
        if disk {
            let kib = |n: Option<f64>| n.map_or("-".into(), |n| format!("{n:.2}"));
            line.extend([kib(row.read_kib), kib(row.written_kib)]);
        }
        if priced {
            line.extend(
                [row.per_core, row.per_price]
                    .map(|one| one.map_or("-".into(), |one| one.format_with_interval())),
            );
        }
        line.push(remarks(row));
        lines.push(line);
    }
    aligned(&lines, factors.len() + usize::from(points))
}

fn time(us: f64) -> String {
    match us {
        us if us.is_nan() => "-".into(),
        us if us.is_infinite() => "dropped".into(),
        us => ShownLatency((us * 1e3).round() as u64).to_string(),
    }
}

fn remarks(row: &CellRow) -> String {
    let counts = [
        (row.failed, "failed"),
        (row.invalid, "invalid"),
        (row.suspect, "suspect"),
        (row.missed, "missed a threshold"),
    ];
    let words: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    // An interval that holds 0 says nothing of the mean.
    let window = row.window.map(|(mean, half)| {
        let known = if half < mean {
            format!(" ±{half:.1}")
        } else {
            String::from(" (too few intervals to tell its error)")
        };
        format!("window {mean:.1}{known}, truncated {:.0}", mean.trunc())
    });
    words.into_iter().chain(window).collect::<Vec<_>>().join(", ")
}

/// Columns side by side: the first `left` to the left, the last too, figures to the right.
fn aligned(lines: &[Vec<String>], left: usize) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let wide = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let mut out = String::new();
    for line in lines {
        let cells: Vec<String> = line
            .iter()
            .enumerate()
            .map(|(at, text)| match at < left || at + 1 == columns {
                true => format!("{text:<width$}", width = widths[at]),
                false => format!("{text:>width$}", width = widths[at]),
            })
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    #[test]
    fn cells_stand_under_their_heads() {
        let mut response = ArrivalLatency::new(Scale::Ns64);
        (0..2_000).for_each(|i| response.ok.record(100_000 + i));
        let mut row =
            CellRow { levels: vec![("users".into(), "4".into())], runs: 2, suspect: 1, ..CellRow::default() };
        row.set_measurements(vec![1_000.0, 1_200.0], &response);
        let failed = CellRow { levels: vec![("users".into(), "16".into())], failed: 1, ..CellRow::default() };
        let text = render_cell_table(&[row, failed]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("users  runs  ops/s"), "{text}");
        assert!(
            lines[1].contains("1,100") && lines[1].contains("115.5 %") && lines[1].ends_with("1 suspect"),
            "{text}"
        );
        assert!(lines[1].contains("  -  1 suspect"), "p99.9 of 2,000 samples is not shown: {text}");
        assert!(lines[2].starts_with("16") && lines[2].ends_with("1 failed"), "{text}");
        // An interval that is wider than the mean says nothing of it.
        let window = |half: f64| remarks(&CellRow { window: Some((27_238.5, half)), ..CellRow::default() });
        assert_eq!(window(310.0), "window 27238.5 ±310.0, truncated 27238");
        assert_eq!(
            window(103_180.7),
            "window 27238.5 (too few intervals to tell its error), truncated 27238"
        );
    }
}
