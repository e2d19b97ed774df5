//! Findings of tunings, in words: the same for the terminal, the page and Markdown.

use dyno_rundir::tuning::{Tuned, TunedCell};
use dyno_types::units::{Change, Significant};

/// The conclusion for a cell.
pub fn cell_headline(cell: &TunedCell) -> String {
    let Tuned { best, gain, gain_half_width, noise, beyond_noise, .. } = &cell.found;
    // More than twice as much is a factor, and so is its uncertainty.
    let gains = match *gain > 1.0 {
        true => format!("gains: {} ±{}", Change(1.0 + gain), Significant(*gain_half_width)),
        false => format!("gains {:.1} % ±{:.1}", gain * 100.0, gain_half_width * 100.0),
    };
    let noise = format!("the defaults alone vary by ±{:.1} %", noise * 100.0);
    let label = &cell.label;
    match (best.as_str(), beyond_noise) {
        ("defaults", _) => format!("{label}: nothing beats the defaults ({noise})"),
        (best, true) => format!("{label}: {best} {gains} ({noise})"),
        (best, false) => {
            format!("{label}: {best} {gains}: not beyond the noise ({noise})")
        }
    }
}

/// Describes the effect of each parameter in a cell, the strongest first.
pub fn describe_effects(cell: &TunedCell) -> Vec<String> {
    let one = |effect: &dyno_rundir::tuning::Effect| {
        let levels: Vec<String> =
            effect.levels.iter().map(|(level, mean)| format!("{level}: {}", Significant(*mean))).collect();
        let share = effect.spread * 100.0;
        format!("{}: {share:.1} % between best and worst ({})", effect.parameter, levels.join(", "))
    };
    cell.found.effects.iter().map(one).collect()
}

/// Parameters whose best value depends on the cell.
pub fn describe_interactions(all: &[TunedCell]) -> Vec<String> {
    let mut out = Vec::new();
    for effect in all.first().map_or(&[][..], |first| &first.found.effects) {
        let mut best: Vec<(&str, Vec<&str>)> = Vec::new();
        for cell in all {
            // A difference within the noise has no best value.
            let own = cell.found.effects.iter();
            let mut own = own.filter(|e| e.parameter == effect.parameter && e.spread > cell.found.noise);
            let Some(own) = own.next() else { continue };
            match best.iter_mut().find(|(value, _)| *value == own.best) {
                Some((_, cells)) => cells.push(&cell.label),
                None => best.push((&own.best, vec![&cell.label])),
            }
        }
        if best.len() > 1 {
            let words: Vec<String> =
                best.iter().map(|(value, cells)| format!("{value} ({})", cells.join("; "))).collect();
            out.push(format!(
                "{}: the best value depends on the cell: {}",
                effect.parameter,
                words.join(", ")
            ));
        }
    }
    out
}

/// All of it, as the terminal shows it; empty where nothing was tuned.
pub fn render_tunings(all: &[TunedCell]) -> String {
    let mut out = String::new();
    for cell in all {
        out += &format!("\n{}\n", cell_headline(cell));
        describe_effects(cell).iter().for_each(|message| out += &format!("  {message}\n"));
    }
    describe_interactions(all).iter().for_each(|message| out += &format!("\n{message}\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::tuning::Effect;

    fn cell(label: &str, best: &str, gain: f64, beyond_noise: bool) -> TunedCell {
        let effect = Effect {
            parameter: "server.options.hz".into(),
            levels: vec![("10".into(), 1_000.0), (best.into(), 1_000.0 * (1.0 + gain))],
            spread: gain,
            best: best.into(),
        };
        let found = Tuned {
            best: format!("hz={best}"),
            defaults: 1_000.0,
            objective: 1_000.0 * (1.0 + gain),
            gain,
            gain_half_width: 0.01,
            noise: 0.005,
            beyond_noise,
            effects: vec![effect],
        };
        TunedCell { cell: 1, label: label.into(), found }
    }

    #[test]
    fn a_gain_beyond_twice_as_much_is_a_factor() {
        let message = cell_headline(&cell("all", "100", 23.0, true));
        assert!(message.starts_with("all: hz=100 gains: 24 times as much ±0.0100 ("), "{message}");
    }

    #[test]
    fn cells_that_disagree_are_told() {
        let both = [cell("ycsb=a", "100", 0.2, true), cell("ycsb=c", "500", 0.1, true)];
        let message = render_tunings(&both);
        assert!(
            message.contains("ycsb=a: hz=100 gains 20.0 % ±1.0 (the defaults alone vary by ±0.5 %)"),
            "{message}"
        );
        assert!(message.contains("depends on the cell: 100 (ycsb=a), 500 (ycsb=c)"), "{message}");
        let noise = [cell("ycsb=a", "100", 0.2, true), cell("ycsb=c", "500", 0.004, false)];
        let message = render_tunings(&noise);
        assert!(
            message.contains("not beyond the noise") && !message.contains("depends on the cell"),
            "{message}"
        );
        assert_eq!(render_tunings(&[]), "");
    }
}
