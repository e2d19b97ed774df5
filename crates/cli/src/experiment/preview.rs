//! `dyno plan FILE`: cells, order and duration, without touching anything.

use super::text_of;
use crate::options::{PlanArgs, PresetsArgs};
use dyno_config::experiment::ExperimentPlan;
use dyno_config::experiment::estimate::estimate_duration;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment::{Findings, manifests, planned, time};
use dyno_frontend::terminal;
use dyno_presets::Preset;
use dyno_types::secret::conceal_json;
use dyno_types::units::counted;
use std::fmt::Write as _;

/// Runs that are listed unless all are asked for.
const SHOWN: usize = 40;

/// The command.
pub fn plan(args: &PlanArgs) -> Result<Exit, Failure> {
    let text = text_of(&args.experiment, args.scale)?;
    let plan = planned(&text, &args.experiment, &args.sets)?;
    let findings = Findings::of(&plan.cells);
    match args.json {
        true => terminal::out(&conceal_json(&json(&plan, &findings)?)),
        false => terminal::out(&render_plan(&plan, args.all)),
    }
    findings.missing().iter().for_each(|message| terminal::note(message));
    findings.warn();
    if let Some(folder) = &args.manifests {
        manifests::write(&plan, folder)?;
    }
    match findings.refusal() {
        // A plan for another machine can be looked at all the same.
        Some(message) => Err(Failure::usage(message)),
        None => Ok(Exit::Ok),
    }
}

fn render_plan(plan: &ExperimentPlan, all: bool) -> String {
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
    let counts = [(cells, "cell"), (plan.base.repetitions as usize, "repetition"), (runs, "run")];
    let counts = counts.map(|(count, what)| counted(count, what)).join(", ");
    let _ = writeln!(out, "{counts}{searched}\n");
    let shown = if all { runs } else { SHOWN.min(runs) };
    let wide = runs.to_string().len();
    for run in plan.runs.iter().take(shown) {
        let cell = &plan.cells[run.cell];
        let _ =
            writeln!(out, "{:>wide$}  {}, repetition {}", run.number, cell.levels_label(), run.repetition);
    }
    if shown < runs {
        let _ = writeln!(out, "... {} more (--all shows them)", runs - shown);
    }
    let estimate = estimate_duration(plan);
    let loads = if estimate.loads { ", plus loading" } else { "" };
    let least = if estimate.open_ended { "at least " } else { "about " };
    let _ = writeln!(out, "\nduration: {least}{}{loads}", time(estimate.seconds));
    out
}

fn json(plan: &ExperimentPlan, findings: &Findings) -> Result<String, Failure> {
    let cells: Vec<serde_json::Value> = plan
        .cells
        .iter()
        .map(|cell| {
            let shown = cell.masked_tree()?;
            let settings: Vec<serde_json::Value> = shown
                .list_leaves()
                .into_iter()
                .map(|(key, value, origin)| {
                    serde_json::json!({ "key": key, "value": value, "source": origin.to_string() })
                })
                .collect();
            let label = cell.levels_label();
        Ok(serde_json::json!({ "number": cell.number, "label": label, "levels": cell.levels, "settings": settings }))
        })
        .collect::<Result<_, Failure>>()?;
    let runs: Vec<serde_json::Value> = plan
        .runs
        .iter()
        .map(|run| serde_json::json!({ "cell": run.cell + 1, "repetition": run.repetition }))
        .collect();
    let estimate = estimate_duration(plan);
    let all = serde_json::json!({
        "name": plan.name,
        "cells": cells,
        "runs": runs,
        "estimated_seconds": estimate.seconds,
        "loads_on_top": estimate.loads,
        "open_ended": estimate.open_ended,
        "beyond_this_machine": findings.unmet_requirements,
        "missing_programs": findings.missing_programs,
    });
    let text = serde_json::to_string_pretty(&all)?;
    Ok(format!("{text}\n"))
}

/// `dyno presets [NAME]`.
pub fn presets(args: &PresetsArgs) -> Result<Exit, Failure> {
    let all = &dyno_presets::PRESETS;
    let Some(name) = &args.name else {
        let wide = all.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
        for preset in all {
            let scales: Vec<String> = preset.scales.iter().map(u32::to_string).collect();
            let scaled =
                if scales.is_empty() { String::new() } else { format!(" (--scale {})", scales.join("|")) };
            terminal::out(&format!("{:<wide$}  {}{scaled}\n", preset.name, preset.about));
        }
        terminal::note(
            "`dyno presets NAME` prints one as a file, `dyno plan NAME` its cells, `dyno run NAME` runs it",
        );
        return Ok(Exit::Ok);
    };
    terminal::out(&preset_named(name)?.text(args.scale).map_err(Failure::usage)?);
    Ok(Exit::Ok)
}

/// Finds a preset.
///
/// # Errors
/// There is none of this name.
pub(super) fn preset_named(name: &str) -> Result<&'static Preset, Failure> {
    let names = || dyno_presets::PRESETS.iter().map(|preset| preset.name);
    dyno_presets::find(name).ok_or_else(|| {
        let hint = dyno_types::suggest::hint(name, names());
        Failure::usage(format!(
            "{name:?} is no preset{hint}\nPresets: {}",
            names().collect::<Vec<_>>().join(", ")
        ))
    })
}
