//! Checks that this machine has what a plan asks for.

use crate::exit::Failure;
use crate::terminal;
use dyno_config::experiment::{ExperimentPlan, MatrixCell};
use dyno_experiment::preflight::{
    MissingProgram, UnmetRequirement, missing_engines, missing_programs, unmet_requirements,
};
use dyno_hosts::kubernetes::manifest_overrides::read as read_manifests;
use dyno_localhost::machine::Machine;
use std::collections::BTreeSet;
use std::path::Path;

/// Things that a plan asks for and this machine does not have.
pub struct Findings {
    /// Cores, limits and the like beyond this machine.
    pub unmet_requirements: Vec<UnmetRequirement>,
    /// Programs that are not installed.
    pub missing_programs: Vec<MissingProgram>,
    cells: usize,
}

impl Findings {
    /// Looks for what these cells ask for.
    pub fn of(cells: &[MatrixCell]) -> Self {
        let machine = Machine::default();
        Findings {
            unmet_requirements: unmet_requirements(cells, &machine),
            missing_programs: missing_programs(cells, &machine),
            cells: cells.len(),
        }
    }

    fn beyond(&self, refused: bool) -> impl Iterator<Item = String> {
        self.unmet_requirements
            .iter()
            .filter(move |one| one.refused == refused)
            .map(|one| one.describe_notes(self.cells))
    }

    /// Cores and limits beyond this machine, a line for each place.
    pub fn refusal(&self) -> Option<String> {
        let words: Vec<String> = self.beyond(true).collect();
        (!words.is_empty()).then(|| words.join("\n"))
    }

    /// Says what can be carried out and may not go well.
    pub fn warn(&self) {
        self.beyond(false).for_each(|message| terminal::warn(&message));
    }

    /// Programs that are missing, a line for each.
    pub fn missing(&self) -> Vec<String> {
        let of = |one: &MissingProgram| match one.cells.as_slice() {
            all if all.len() == self.cells => one.text.clone(),
            [one_cell] => format!("cell {one_cell}: {}", one.text),
            all => format!("{} of {} cells: {}", all.len(), self.cells, one.text),
        };
        self.missing_programs.iter().map(of).collect()
    }

    /// Returns whether no cell can be run for want of a program.
    pub fn nothing_runs(&self) -> bool {
        self.missing_programs.iter().map(|one| one.cells.len()).sum::<usize>() == self.cells
    }
}

/// Refuses a plan that this machine cannot carry out; cells whose program is missing are told, the rest goes on.
pub fn ready(plan: &ExperimentPlan) -> Result<(), Failure> {
    ready_for(&plan.cells)
}

/// The same of some of its cells; nothing is asked for by none.
pub fn ready_for(cells: &[MatrixCell]) -> Result<(), Failure> {
    if cells.is_empty() {
        return Ok(());
    }
    manifests(cells)?;
    let mut findings = Findings::of(cells);
    findings.warn();
    if let Some(message) = findings.refusal() {
        return Err(Failure::usage(message));
    }
    findings.missing_programs.extend(missing_engines(cells, &Machine::default()));
    if findings.nothing_runs() {
        return Err(Failure::usage(findings.missing().join("\n")));
    }
    for message in findings.missing() {
        terminal::warn(&format!("{message}; their runs will fail, the others are made"));
    }
    Ok(())
}

/// Checks that the user's manifests parse; warns of unknown keys.
fn manifests(cells: &[MatrixCell]) -> Result<(), Failure> {
    let asked = cells.iter().filter_map(|cell| cell.spec.kubernetes.as_ref()?.manifests.clone());
    for folder in asked.collect::<BTreeSet<String>>() {
        for warning in read_manifests(Path::new(&folder))?.warnings {
            terminal::warn(&warning);
        }
    }
    Ok(())
}
