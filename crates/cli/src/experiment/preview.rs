//! `dyno plan FILE`: cells, order and duration, without touching anything.

use super::watch::time;
use super::{planned, text_of};
use crate::args::PlanArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;
use dyno_plan::experiment::{Plan, estimate};
use std::fmt::Write as _;

/// Runs that are listed unless all are asked for.
const SHOWN: usize = 40;

/// The command.
pub fn plan(args: &PlanArgs) -> Result<Exit, Failure> {
    let text = text_of(&args.experiment)?;
    let plan = planned(&text, &args.experiment, &args.sets)?;
    match args.json {
        true => terminal::out(&json(&plan)?),
        false => terminal::out(&words(&plan, args.all)),
    }
    Ok(Exit::Ok)
}

fn words(plan: &Plan, all: bool) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", plan.name);
    if let Some(description) = &plan.base.description {
        let _ = writeln!(out, "{}", description.trim());
    }
    for factor in &plan.factors {
        let labels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
        let _ = writeln!(out, "  {}: {}", factor.name, labels.join(", "));
    }
    let (cells, runs) = (plan.cells.len(), plan.runs.len());
    let searched = if plan.base.strategy.is_some() { ", each a search" } else { "" };
    let _ = writeln!(out, "{cells} cells, {} repetitions, {runs} runs{searched}\n", plan.base.repetitions);
    let shown = if all { runs } else { SHOWN.min(runs) };
    let wide = runs.to_string().len();
    for run in plan.runs.iter().take(shown) {
        let cell = &plan.cells[run.cell];
        let _ = writeln!(out, "{:>wide$}  {}, repetition {}", run.number, cell.label(), run.repetition);
    }
    if shown < runs {
        let _ = writeln!(out, "... {} more (--all shows them)", runs - shown);
    }
    let estimate = estimate(plan);
    let loads = if estimate.loads { ", loads come on top" } else { "" };
    let least = if estimate.open_ended { "at least " } else { "about " };
    let _ = writeln!(out, "\nduration: {least}{}{loads}", time(estimate.seconds));
    out
}

fn json(plan: &Plan) -> Result<String, Failure> {
    let cells: Vec<serde_json::Value> = plan
        .cells
        .iter()
        .map(|cell| {
            let settings: Vec<serde_json::Value> = cell
                .tree
                .leaves()
                .into_iter()
                .map(|(key, value, origin)| {
                    let value = dyno_rundir::mask::mask_uris(&value);
                    serde_json::json!({ "key": key, "value": value, "source": origin.to_string() })
                })
                .collect();
            serde_json::json!({ "number": cell.number, "label": cell.label(), "levels": cell.levels, "settings": settings })
        })
        .collect();
    let runs: Vec<serde_json::Value> = plan
        .runs
        .iter()
        .map(|run| serde_json::json!({ "cell": run.cell + 1, "repetition": run.repetition }))
        .collect();
    let estimate = estimate(plan);
    let all = serde_json::json!({
        "name": plan.name,
        "cells": cells,
        "runs": runs,
        "estimated_seconds": estimate.seconds,
        "loads_on_top": estimate.loads,
        "open_ended": estimate.open_ended,
    });
    let text = serde_json::to_string_pretty(&all).map_err(|e| Failure::Internal(e.to_string()))?;
    Ok(format!("{text}\n"))
}
