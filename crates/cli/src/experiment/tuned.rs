//! What a tuning has found, in words.

use crate::terminal;
use dyno_plan::experiment::{Cell, Plan, Strategy};
use dyno_rig::experiment::RunRecord;
use dyno_rig::experiment::tune::{Tuned, report};
use std::fmt::Write as _;

/// Prints the findings of every cell that was tuned, and where cells disagree.
pub fn show(plan: &Plan, ended: &[RunRecord]) {
    let found: Vec<(&Cell, Tuned)> =
        plan.cells.iter().filter_map(|cell| Some((cell, of(cell, ended)?))).collect();
    if found.is_empty() {
        return;
    }
    let mut out = String::new();
    for (cell, tuned) in &found {
        let _ = writeln!(out, "\n{}", headline(cell, tuned));
        for effect in &tuned.effects {
            let levels: Vec<String> =
                effect.levels.iter().map(|(level, mean)| format!("{level}: {mean:.4}")).collect();
            let share = effect.spread * 100.0;
            let _ = writeln!(
                out,
                "  {}: {share:.1} % between best and worst ({})",
                effect.parameter,
                levels.join(", ")
            );
        }
    }
    out.push_str(&interactions(&found));
    terminal::out(&out);
}

fn of(cell: &Cell, ended: &[RunRecord]) -> Option<Tuned> {
    let Some(Strategy::Tune(tune)) = &cell.spec.strategy else { return None };
    let runs: Vec<&RunRecord> = ended.iter().filter(|run| run.cell == cell.number).collect();
    report(tune, cell.spec.seed, &runs)
}

fn headline(cell: &Cell, tuned: &Tuned) -> String {
    let (gain, half) = (tuned.gain * 100.0, tuned.gain_half_width * 100.0);
    let noise = format!("the defaults alone vary by +-{:.1} %", tuned.noise * 100.0);
    match (tuned.best.as_str(), tuned.beyond_noise) {
        ("defaults", _) => format!("{}: nothing beats the defaults ({noise})", cell.label()),
        (best, true) => format!("{}: {best} gains {gain:.1} % +-{half:.1} ({noise})", cell.label()),
        (best, false) => {
            format!("{}: {best} gains {gain:.1} % +-{half:.1}: not beyond the noise ({noise})", cell.label())
        }
    }
}

/// Parameters whose best value depends on the cell.
fn interactions(found: &[(&Cell, Tuned)]) -> String {
    let mut out = String::new();
    let Some((_, first)) = found.first() else { return out };
    for effect in &first.effects {
        let mut best: Vec<(&str, Vec<String>)> = Vec::new();
        for (cell, tuned) in found {
            // A difference within the noise has no best value.
            let Some(own) =
                tuned.effects.iter().find(|e| e.parameter == effect.parameter && e.spread > tuned.noise)
            else {
                continue;
            };
            match best.iter_mut().find(|(value, _)| *value == own.best) {
                Some((_, cells)) => cells.push(cell.label()),
                None => best.push((&own.best, vec![cell.label()])),
            }
        }
        if best.len() > 1 {
            let words: Vec<String> =
                best.iter().map(|(value, cells)| format!("{value} ({})", cells.join("; "))).collect();
            let _ = writeln!(
                out,
                "\n{}: the best value depends on the cell: {}",
                effect.parameter,
                words.join(", ")
            );
        }
    }
    out
}
