//! Latencies as a table on a terminal.

use crate::style::{Style, us};
use dyno_rundir::schema::Latency;
use dyno_types::units::Thousands;
use std::fmt::Write as _;

/// All operations, by the response times of a client that is never late.
pub(crate) const IDEAL: &str = "ideal client";

/// A table of latencies: a title, and a row for each name.
pub(crate) fn table(
    out: &mut String,
    title: &str,
    rows: &[(String, &Latency)],
    columns: &[&str],
    style: Style,
) {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(8);
    // A short title stands in the head of the first column.
    let (above, corner) = if title.len() <= width.max(13) { (None, title) } else { (Some(title), "") };
    let width = width.max(corner.len());
    let above = above.map_or(String::new(), |title| format!("{}\n", style.bold(title)));
    let corner = style.bold(&format!("{corner:width$}"));
    let _ = write!(out, "\n{above}{corner} {:>9}", "mean");
    for column in columns {
        let _ = write!(out, " {column:>9}");
    }
    let _ = writeln!(out, " {:>9} {:>11}", "max", "count");
    for (name, latency) in rows {
        let _ = write!(out, "{name:width$} {:>9}", us(latency.mean_us));
        for column in columns {
            let cell = match latency.percentiles_us.get(*column) {
                Some(Some(value)) => us(*value),
                Some(None) => "dropped".into(),
                None => "-".into(),
            };
            let _ = write!(out, " {cell:>9}");
        }
        let max = latency.max_us.map_or("-".into(), us);
        let _ = writeln!(out, " {max:>9} {:>11}", Thousands(latency.count));
    }
}
