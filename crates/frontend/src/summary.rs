//! The summary of a run: printed, and the code that it leads to.

use crate::exit::{Exit, Failure};
use crate::terminal;
use dyno_report::style::Style;
use dyno_report::summary::{SummaryExtras, render_summary};
use dyno_rundir::schema::{Status, Summary, Trust};

/// Prints a summary, and what is known beside it.
pub fn show(summary: &Summary, known: SummaryExtras<'_>, json: bool) -> Result<(), Failure> {
    if json {
        terminal::out(&json_of(summary)?);
    } else {
        terminal::styled(|colour| render_summary(summary, known, style(colour)));
    }
    Ok(())
}

/// How a summary is drawn on this terminal.
pub fn style(colour: bool) -> Style {
    Style { colour, columns: terminal::columns(), rows: terminal::rows(), details: terminal::has_details() }
}

/// `summary.json`.
///
/// # Errors
/// There is no JSON of it: a fault of dyno.
pub fn json_of(summary: &Summary) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(summary)?;
    Ok(format!("{text}\n"))
}

/// The code that a summary leads to.
pub fn exit_of(summary: &Summary) -> Exit {
    if summary.status == Status::Interrupted {
        return Exit::Interrupted;
    }
    match summary.verdict.trust {
        Trust::Invalid => Exit::Invalid,
        _ if summary.thresholds.iter().any(|t| summary.misses_threshold(t)) => Exit::Threshold,
        _ => Exit::Ok,
    }
}
