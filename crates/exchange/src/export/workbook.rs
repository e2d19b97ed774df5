//! A spreadsheet: the lab's columns over users with bounds and charts, every run, a pivot of two factors; of a single run its
//! seconds.

use crate::export::ExportError;
use crate::export::pivot::Pivot;
use crate::export::runs::runs;
use crate::export::source::ExportSource;
use crate::export::table::{Cell, ExportTable};
use dyno_analysis::laws::{Sweep, analyse_sweep, observe_run};
use rust_xlsxwriter::{Chart, ChartType, Format, Workbook, Worksheet, XlsxError};

/// Rows that a sheet can hold.
const ROWS: usize = 1_048_576;

impl From<XlsxError> for ExportError {
    fn from(error: XlsxError) -> Self {
        ExportError::Format { format: "xlsx", source: error.into() }
    }
}

/// Heads of the lab's sheet. Times are in microseconds, rates per second.
const HEADS: [&str; 12] = [
    "N",
    "runs",
    "X (ops/s)",
    "R (us)",
    "N_sys = X*R",
    "Z = N/X - R (us)",
    "N_think = N - N_sys",
    "X bound (ops/s)",
    "R bound (us)",
    "X model (ops/s)",
    "Little (X(R+Z)/N - 1)",
    "X/N (ops/s)",
];

/// The file's bytes. `seed` is that of the models' resampling.
pub fn workbook(
    source: &ExportSource,
    pivot: Option<&(String, Pivot)>,
    seed: u64,
) -> Result<Vec<u8>, ExportError> {
    let mut book = Workbook::new();
    let head = Format::new().set_bold();
    let observed = source.runs.iter().filter_map(|run| run.dir.as_ref()).filter_map(observe_run);
    let seen: Vec<_> = observed.filter(|run| !run.invalid).collect();
    let added = book.add_worksheet().set_name("Laws")?;
    match analyse_sweep(&seen, seed) {
        Some(found) => {
            let think_s = seen.iter().find(|run| run.users.is_some()).map_or(0.0, |run| run.think_s);
            laws(added, &found, think_s, &head)?;
        }
        None => {
            let needs =
                "no laws: they need usable closed-loop runs of two or more numbers of users, one think time";
            added.write(0, 0, needs)?;
        }
    }
    if let Some((measure, pivot)) = pivot {
        pivot_sheet(book.add_worksheet().set_name("Pivot")?, measure, pivot, &head)?;
    }
    sheet(book.add_worksheet().set_name("Runs")?, &runs(source), &head)?;
    if source.runs.len() == 1 {
        seconds(&mut book, source, &head)?;
    }
    Ok(book.save_to_buffer()?)
}

fn sheet(sheet: &mut Worksheet, table: &ExportTable, head: &Format) -> Result<(), ExportError> {
    if table.rows.len() >= ROWS {
        let message = format!("{} rows: a sheet holds {ROWS}; export csv or parquet", table.rows.len());
        return Err(ExportError::Lacking(message));
    }
    for (column, (name, _)) in (0u16..).zip(&table.columns) {
        sheet.write_with_format(0, column, name.as_str(), head)?;
    }
    for (row, cells) in (1u32..).zip(&table.rows) {
        for (column, cell) in (0u16..).zip(cells) {
            match cell {
                Cell::None => {}
                Cell::Text(text) => drop(sheet.write_string(row, column, short(text))?),
                Cell::Int(n) => drop(sheet.write_number(row, column, *n as f64)?),
                Cell::Real(x) => drop(sheet.write_number(row, column, *x)?),
            }
        }
    }
    sheet.set_freeze_panes(1, 0)?;
    Ok(())
}

/// A cell holds 32,767 characters.
fn short(text: &str) -> &str {
    text.char_indices().nth(32_000).map_or(text, |(at, _)| &text[..at])
}

/// Measured columns are figures, derived ones formulas, so that the sheet shows how they come about.
fn laws(sheet: &mut Worksheet, found: &Sweep, think_s: f64, head: &Format) -> Result<(), ExportError> {
    for (column, name) in (0u16..).zip(HEADS) {
        sheet.write_with_format(0, column, name, head)?;
    }
    for (row, level) in (1u32..).zip(&found.levels) {
        let line = row + 1;
        let (x, r_us) = (level.throughput, level.response_s * 1e6);
        let z_us = (level.users / x - level.response_s) * 1e6;
        let inside = x * level.response_s;
        let formula =
            |text: String, value: f64| rust_xlsxwriter::Formula::new(text).set_result(value.to_string());
        sheet.write(row, 0, level.users)?.write(row, 1, level.runs as f64)?;
        sheet.write(row, 2, x)?.write(row, 3, r_us)?;
        sheet.write(row, 4, formula(format!("=C{line}*D{line}/1000000"), inside))?;
        sheet.write(row, 5, formula(format!("=A{line}/C{line}*1000000-D{line}"), z_us))?;
        sheet.write(row, 6, formula(format!("=A{line}-E{line}"), level.users - inside))?;
        sheet.write(row, 7, level.bound)?;
        // No operation is faster than one alone, nor than N at the greatest throughput.
        let least_s = found.total_s.max(level.users * found.bottleneck_s - think_s);
        sheet.write(row, 8, least_s * 1e6)?;
        if let Some(model) = level.model {
            sheet.write(row, 9, model)?;
        }
        if let Some(little) = level.little {
            sheet.write(row, 10, little)?;
        }
        sheet.write(row, 11, formula(format!("=C{line}/A{line}"), x / level.users))?;
    }
    let last = found.levels.len() as u32;
    let facts = [
        ("total demand D, the least R above (us)", Some(found.total_s * 1e6)),
        ("demand of the bottleneck (us)", Some(found.bottleneck_s * 1e6)),
        ("N* where the bounds cross", Some(found.saturation)),
        ("greatest X measured (ops/s)", Some(found.best.0)),
        ("at N", Some(found.best.1)),
        ("think time (us)", Some(think_s * 1e6)),
        ("N at the model's peak", found.peak.map(|peak| peak.0)),
    ];
    for (row, (name, value)) in (last + 2..).zip(facts) {
        sheet.write_with_format(row, 0, name, head)?;
        match value {
            Some(value) => drop(sheet.write(row, 4, value)?),
            None => drop(sheet.write(row, 4, "the data support none")?),
        }
    }
    let charts = [
        ("X against N", 0, [("measured", 2), ("bound", 7), ("model", 9)].as_slice(), "users N", "X (ops/s)"),
        ("R against N", 0, &[("measured", 3), ("bound", 8)], "users N", "R (us)"),
        ("N against XR", 4, &[("N", 0)], "N_sys = X*R", "users N"),
    ];
    for (number, (title, over, series, x_name, y_name)) in (0u32..).zip(charts) {
        let mut chart = Chart::new(ChartType::ScatterStraightWithMarkers);
        for (name, column) in series {
            if *column == 9 && found.fits.is_empty() {
                continue;
            }
            let line = chart.add_series().set_name(*name);
            line.set_categories(("Laws", 1, over, last, over))
                .set_values(("Laws", 1, *column, last, *column));
        }
        chart.title().set_name(title);
        chart.x_axis().set_name(x_name);
        chart.y_axis().set_name(y_name);
        sheet.insert_chart(last + 11 + number * 16, 0, &chart)?;
    }
    sheet.set_freeze_panes(1, 1)?;
    Ok(())
}

fn pivot_sheet(
    sheet: &mut Worksheet,
    measure: &str,
    pivot: &Pivot,
    head: &Format,
) -> Result<(), ExportError> {
    let (rows, columns) = &pivot.factors;
    sheet.write_with_format(0, 0, format!("{measure}, mean of the runs: {rows} by {columns}"), head)?;
    sheet.write_with_format(2, 0, format!("{rows} \\ {columns}"), head)?;
    let put = |sheet: &mut Worksheet, row: u32, column: u16, level: &str| match level.parse::<f64>() {
        Ok(number) if number.is_finite() => sheet.write_with_format(row, column, number, head).map(drop),
        _ => sheet.write_with_format(row, column, level, head).map(drop),
    };
    for (column, level) in (1u16..).zip(&pivot.columns) {
        put(sheet, 2, column, level)?;
    }
    for ((row, level), cells) in (3u32..).zip(&pivot.rows).zip(&pivot.cells) {
        put(sheet, row, 0, level)?;
        for (column, cell) in (1u16..).zip(cells) {
            if let Some((mean, _)) = cell {
                sheet.write_number(row, column, *mean)?;
            }
        }
    }
    let (wide, last) = (pivot.columns.len() as u16, pivot.rows.len() as u32 + 2);
    let mut chart = Chart::new(ChartType::Column);
    for column in 1..=wide {
        let line = chart.add_series().set_name(("Pivot", 2, column));
        line.set_categories(("Pivot", 3, 0, last, 0)).set_values(("Pivot", 3, column, last, column));
    }
    chart.title().set_name(measure);
    chart.x_axis().set_name(rows.as_str());
    sheet.insert_chart(last + 2, 0, &chart)?;
    Ok(())
}

/// The seconds of a single run with a chart of its throughput.
fn seconds(book: &mut Workbook, source: &ExportSource, head: &Format) -> Result<(), ExportError> {
    let mut table = crate::export::intervals::intervals(source)?;
    let at = |table: &ExportTable, name: &str| table.columns.iter().position(|(known, _)| known == name);
    let (Some(metric), Some(second), Some(ok)) =
        (at(&table, "metric"), at(&table, "second"), at(&table, "ok"))
    else {
        return Ok(());
    };
    table.rows.retain(|row| row[metric] == Cell::Text("TOTAL".into()));
    if table.rows.is_empty() {
        return Ok(());
    }
    let added = book.add_worksheet().set_name("Seconds")?;
    sheet(added, &table, head)?;
    let last = table.rows.len() as u32;
    let mut chart = Chart::new(ChartType::ScatterStraight);
    let (second, ok) = (second as u16, ok as u16);
    let line = chart.add_series().set_name("successful operations");
    line.set_categories(("Seconds", 1, second, last, second)).set_values(("Seconds", 1, ok, last, ok));
    chart.title().set_name("Operations of each interval");
    chart.x_axis().set_name("seconds since the epoch of the phase");
    added.insert_chart(1, table.columns.len() as u16 + 1, &chart)?;
    Ok(())
}
