//! Latencies as a table on a terminal.

use crate::style::{Style, format_us};
use dyno_rundir::schema::{ConfidenceInterval, Latency};
use dyno_types::units::Thousands;
use std::fmt::Write as _;

/// All operations, by the response times of a client that is never late.
pub(crate) const IDEAL: &str = "ideal client";

/// Row of the lower ends of intervals.
const FROM: &str = "  95 % from";

/// A table of latencies: a title, and a row for each name; columns that do not fit are left out, those first that say least.
pub(crate) fn append_latency_table(
    out: &mut String,
    title: &str,
    rows: &[(String, &Latency)],
    percentiles: &[&str],
    style: Style,
) {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(8);
    let has_intervals = style.details && rows.iter().any(|(_, latency)| !latency.intervals_us.is_empty());
    let width = if has_intervals { width.max(FROM.len()) } else { width };
    // A short title stands in the head of the first column.
    let (above, corner) = if title.len() <= width.max(13) { (None, title) } else { (Some(title), "") };
    let width = width.max(corner.len());
    let above = above.map_or(String::new(), |title| format!("{}\n", style.bold(title)));
    let mut columns = vec!["mean"];
    columns.extend(percentiles);
    columns.extend(["max", "count"]);
    let wide = |columns: &[&str]| width + columns.iter().map(|name| 1 + cell_width(name)).sum::<usize>();
    for least in ["p99.99", "p90", "count", "mean", "p50", "p99.9"] {
        // A reader who asked for all details gets them.
        if style.details || wide(&columns) <= style.columns {
            break;
        }
        columns.retain(|name| *name != least);
    }
    let _ = write!(out, "\n{above}{}", style.bold(&format!("{corner:width$}")));
    for name in &columns {
        let _ = write!(out, " {name:>wide$}", wide = cell_width(name));
    }
    out.push('\n');
    for (name, latency) in rows {
        let mut line = format!("{name:width$}");
        for column in &columns {
            let _ = write!(line, " {:>wide$}", cell(latency, column), wide = cell_width(column));
        }
        let _ = writeln!(out, "{}", line.trim_end());
        if style.details {
            intervals(out, latency, &columns, width);
        }
    }
}

/// Both ends of the 95 % intervals of a row, below its percentiles.
fn intervals(out: &mut String, latency: &Latency, columns: &[&str], width: usize) {
    if latency.intervals_us.is_empty() {
        return;
    }
    let low = |found: &ConfidenceInterval| format_us(found.low);
    let high = |found: &ConfidenceInterval| found.high.map_or("beyond".into(), format_us);
    let ends: [(&str, &dyn Fn(&ConfidenceInterval) -> String); 2] = [(FROM, &low), ("  to", &high)];
    for (name, end) in ends {
        let mut line = format!("{name:width$}");
        for column in columns {
            let cell = latency.intervals_us.get(*column).map_or(String::new(), end);
            let _ = write!(line, " {cell:>wide$}", wide = cell_width(column));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn cell_width(column: &str) -> usize {
    if column == "count" { 11 } else { 9 }
}

fn cell(latency: &Latency, column: &str) -> String {
    match column {
        "mean" => format_us(latency.mean_us),
        "max" => latency.max_us.map_or("-".into(), format_us),
        // The client's share is of the requests above it.
        "count" if latency.count == 0 => String::new(),
        "count" => Thousands(latency.count).to_string(),
        percentile => match latency.percentiles_us.get(percentile) {
            Some(Some(value)) => format_us(*value),
            Some(None) => "dropped".into(),
            None => "-".into(),
        },
    }
}
