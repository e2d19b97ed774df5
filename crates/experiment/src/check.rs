//! Finds problems of a file without touching anything, and where they were written.

use crate::steps;
use dyno_config::experiment::{Experiment, ExperimentPlan, MatrixCell};
use dyno_config::tree::{Node, TreeError};
use dyno_databases::registry;
use dyno_hosts::remote::worker::serve::ReadWork;
use dyno_monitor::prometheus::Url;
use dyno_types::Refused;

/// Checks what can be checked without touching anything: targets and their options, workloads, rates, thresholds and
/// exporters of every cell.
pub fn check(plan: &ExperimentPlan, read_work: ReadWork<'_>) -> Result<(), TreeError> {
    let mut known: Vec<&Experiment> = Vec::new();
    for cell in &plan.cells {
        let spec = &cell.spec;
        // Cells often differ in nothing that matters here.
        let same = |other: &&&Experiment| {
            (&other.workload, &other.require, &other.phases, &other.strategy, &other.target, &other.client)
                == (&spec.workload, &spec.require, &spec.phases, &spec.strategy, &spec.target, &spec.client)
                && other.monitors == spec.monitors
        };
        if known.iter().any(|other| same(&other)) {
            continue;
        }
        of_cell(cell, read_work).map_err(|mut error| {
            if plan.cells.len() > 1 {
                error.text = format!("{} (cell {}: {})", error.text, cell.number, cell.levels_label());
            }
            error
        })?;
        known.push(spec);
    }
    Ok(())
}

fn of_cell(cell: &MatrixCell, read_work: ReadWork<'_>) -> Result<(), TreeError> {
    let spec = &cell.spec;
    let wrong = |key: &str, words: String| placed(&cell.tree, key, words);
    let refuse = |key: &str, refused: &Refused| name_place(&cell.tree, key, refused);
    if let Some(uri) = &spec.target {
        let target = registry::parse_for(&uri.replace("{dir}", "dir"), spec.client.driver.into())
            .map_err(|refused| refuse("target", &refused))?;
        if !spec.ssh.watched.is_empty() && !target.is_watched() {
            let servers = registry::servers_in_words();
            return Err(wrong(
                "ssh.watched",
                format!("expected a target whose servers run there: {servers}"),
            ));
        }
    }
    for (name, url) in &spec.monitors.prometheus {
        Url::parse(url).map_err(|e| wrong(&format!("monitors.prometheus.{name}"), e.to_string()))?;
    }
    let work = read_work(spec).map_err(|refused| refuse("workload", &refused))?;
    let job = work.measure().map_err(|refused| refuse("phases", &refused))?;
    let conditions = steps::conditions(spec, job.workload.metrics());
    conditions.map_err(|refused| refuse("require", &refused)).map(drop)
}

/// An error at the key of a refusal, which its words need not name again, or at `key` where they do not begin with one.
fn name_place(tree: &Node, key: &str, refused: &Refused) -> TreeError {
    let (own, words) = (refused.refused_place(), refused.to_string());
    match words.strip_prefix(own).and_then(|rest| rest.strip_prefix(": ")) {
        Some(text) if !own.is_empty() && tree.find_path(own).is_some() => placed(tree, own, text.to_owned()),
        _ => placed(tree, key, words),
    }
}

/// An error at the deepest part of a key that the user has written.
pub(super) fn placed(tree: &Node, key: &str, text: String) -> TreeError {
    let mut at = key;
    let node = loop {
        match (tree.find_path(at), at.rsplit_once('.')) {
            (Some(node), _) => break node,
            (None, Some((above, _))) => at = above,
            (None, None) => break tree,
        }
    };
    node.error_at(key, text)
}
