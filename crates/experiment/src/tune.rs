//! Tuning: which configuration comes next, and what the runs say at the end. Pure functions of the runs that have ended.
//!
//! ```text
//! defaults, a field that fills the space, defaults again -> the better half, once more, with the defaults -> ... -> the best
//! and the defaults in turn, until both have their repetitions
//! ```
//! Successive halving (Karnin, Koren, Somekh, 2013) over a field in which every level of a parameter occurs equally often.

use crate::journal::{RunRecord, RunStatus};
use crate::point::SearchPoint;
use dyno_analysis::interval::{mean_difference, mean_interval};
use dyno_config::experiment::{ExperimentPlan, Goal, MatrixCell, Strategy, Tune};
use dyno_rundir::tuning::{Effect, Tuned, TunedCell};
use dyno_types::rng::Stream;
use dyno_types::stats::mean;

/// A configuration: parameters and values; empty for the defaults.
type Configuration = Vec<(String, String)>;

/// The field: the defaults, then configurations that fill the space. The same for every call with the same seed.
fn field(tune: &Tune, seed: u64) -> Vec<Configuration> {
    let mut draws = Stream::from_bits(seed ^ 0x7475_6e65);
    let count = tune.configurations as usize;
    let mut columns: Vec<(String, Vec<String>)> = Vec::new();
    for (key, levels) in &tune.parameters {
        // They have been checked.
        let values = levels.level_values().unwrap_or_default();
        // Levels in turn, then shuffled: each occurs equally often, and no two parameters move together.
        let mut column: Vec<String> =
            (0..count).map(|i| values[i * values.len() / count.max(1) % values.len()].clone()).collect();
        for i in (1..column.len()).rev() {
            let j = ((u128::from(draws.next_u64()) * (i as u128 + 1)) >> 64) as usize;
            column.swap(i, j);
        }
        columns.push((key.clone(), column));
    }
    let mut all: Vec<Configuration> = vec![Vec::new()];
    for i in 0..count {
        let one: Configuration =
            columns.iter().map(|(key, column)| (key.clone(), column[i].clone())).collect();
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// In words: `io-threads=2 hz=10`; `defaults`.
fn label(configuration: &Configuration) -> String {
    let words: Vec<String> = configuration
        .iter()
        .map(|(key, value)| format!("{}={value}", key.rsplit('.').next().unwrap_or(key)))
        .collect();
    if words.is_empty() { "defaults".into() } else { words.join(" ") }
}

/// Runs of one configuration.
struct ConfigurationRuns<'a> {
    number: usize,
    runs: Vec<&'a RunRecord>,
}

impl ConfigurationRuns<'_> {
    /// Runs that say something of the configuration: one that the client spoiled is no fault of it, and no merit.
    fn sound(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.iter().copied().filter(|run| !run.spoiled)
    }

    /// Mean of the objective; `None` if a run failed or missed a constraint, or none says anything.
    fn score(&self, goal: Goal) -> Option<f64> {
        let kept = |run: &RunRecord| run.status == RunStatus::Complete && run.passed;
        if !self.sound().all(kept) {
            return None;
        }
        let all: Option<Vec<f64>> = self.sound().map(|run| run.objective).collect();
        let mean = mean(all?)?;
        Some(if goal == Goal::Maximise { mean } else { -mean })
    }
}

fn runs_by_configuration<'a>(labels: &[String], history: &[&'a RunRecord]) -> Vec<ConfigurationRuns<'a>> {
    let of = |(number, label): (usize, &String)| ConfigurationRuns {
        number,
        runs: history.iter().copied().filter(|run| run.point == *label).collect(),
    };
    labels.iter().enumerate().map(of).collect()
}

/// The configurations of `among` by their score, the best first; those without one are out.
fn ranked(all: &[ConfigurationRuns<'_>], among: &[usize], goal: Goal) -> Vec<usize> {
    let mut scored: Vec<(usize, f64)> =
        among.iter().filter_map(|number| Some((*number, all[*number].score(goal)?))).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.into_iter().map(|(number, _)| number).collect()
}

/// The next run; `None` when the search has ended.
pub(super) fn next(tune: &Tune, seed: u64, history: &[&RunRecord]) -> Option<SearchPoint> {
    let field = field(tune, seed);
    let labels: Vec<String> = field.iter().map(label).collect();
    // Replays the schedule: what it asks for, the history has had, up to its end.
    let mut made = 0;
    let mut left: Vec<usize> = (1..field.len()).collect();
    let mut schedule: Vec<usize> = [&[0][..], &left, &[0]].concat();
    loop {
        if made + schedule.len() > history.len() {
            return Some(point(&field, &labels, schedule[history.len() - made], history));
        }
        made += schedule.len();
        let runs_by_configuration = runs_by_configuration(&labels, &history[..made]);
        let order = ranked(&runs_by_configuration, &left, tune.goal);
        if left.len() > 1 {
            left = order.into_iter().take(left.len() / 2).collect();
        } else {
            left = order;
        }
        // Nothing keeps the constraints: there is nothing to be had.
        let best = *left.first()?;
        let enough = |number: usize| runs_by_configuration[number].runs.len() >= tune.repetitions as usize;
        if left.len() == 1 && enough(best) && enough(0) {
            return None;
        }
        schedule = [&[0][..], &left].concat();
    }
}

fn point(field: &[Configuration], labels: &[String], number: usize, history: &[&RunRecord]) -> SearchPoint {
    let before = history.iter().filter(|run| run.point == labels[number]).count();
    let repetition = before as u32 + 1;
    SearchPoint {
        sets: field[number].clone(),
        label: labels[number].clone(),
        value: number as f64,
        repetition,
        draw: repetition,
    }
}

/// Returns what the tunings of all cells have found.
pub(super) fn found(plan: &ExperimentPlan, ended: &[RunRecord]) -> Vec<TunedCell> {
    let of = |cell: &MatrixCell| {
        let Some(Strategy::Tune(tune)) = &cell.spec.strategy else { return None };
        let runs: Vec<&RunRecord> = ended.iter().filter(|run| run.cell == cell.number).collect();
        let found = report(tune, cell.spec.seed, &runs)?;
        Some(TunedCell { cell: cell.number, label: cell.levels_label(), found })
    };
    plan.cells.iter().filter_map(of).collect()
}

/// Says what the runs of one cell have shown; `None` while there is too little.
fn report(tune: &Tune, seed: u64, history: &[&RunRecord]) -> Option<Tuned> {
    let field = field(tune, seed);
    let labels: Vec<String> = field.iter().map(label).collect();
    let all = runs_by_configuration(&labels, history);
    let objectives =
        |number: usize| -> Vec<f64> { all[number].sound().filter_map(|run| run.objective).collect() };
    let base = objectives(0);
    let own = mean_interval(&base).filter(|interval| interval.mean != 0.0)?;
    let contenders: Vec<usize> =
        (1..field.len()).filter(|n| all[*n].runs.len() as u32 >= tune.repetitions).collect();
    let best = ranked(&all, &contenders, tune.goal).first().copied();
    let (gain, half_width, objective) = match best.map(objectives) {
        Some(tuned) => {
            let found = mean_difference(&tuned, &base)?;
            let sign = if tune.goal == Goal::Maximise { 1.0 } else { -1.0 };
            (sign * found.mean / own.mean, found.half_width / own.mean, mean(&tuned)?)
        }
        None => (0.0, 0.0, own.mean),
    };
    let beyond_noise = best.is_some() && gain - half_width > 0.0;
    Some(Tuned {
        best: best.filter(|_| gain > 0.0).map_or("defaults".into(), |number| labels[number].clone()),
        defaults: own.mean,
        objective,
        gain,
        gain_half_width: half_width,
        noise: own.half_width / own.mean,
        beyond_noise,
        effects: effects(tune, &field, &all),
    })
}

fn effects(tune: &Tune, field: &[Configuration], all: &[ConfigurationRuns<'_>]) -> Vec<Effect> {
    // The screening alone: later rounds have only what was good.
    let first = |standing: &ConfigurationRuns<'_>| standing.sound().next().and_then(|run| run.objective);
    let mut effects: Vec<Effect> = Vec::new();
    for (key, levels) in &tune.parameters {
        let mut means = Vec::new();
        for level in levels.level_values().unwrap_or_default() {
            let with =
                |s: &&ConfigurationRuns<'_>| field[s.number].iter().any(|(k, v)| k == key && *v == level);
            means.extend(mean(all.iter().filter(with).filter_map(first)).map(|mean| (level, mean)));
        }
        let better =
            |a: f64, b: f64| if tune.goal == Goal::Maximise { a.total_cmp(&b) } else { b.total_cmp(&a) };
        let best = means.iter().max_by(|a, b| better(a.1, b.1));
        let worst = means.iter().min_by(|a, b| better(a.1, b.1));
        let mean = mean(means.iter().map(|(_, value)| value));
        let (Some(best), Some(worst), Some(mean)) = (best, worst, mean) else { continue };
        let spread = if mean == 0.0 { 0.0 } else { (best.1 - worst.1).abs() / mean.abs() };
        effects.push(Effect { parameter: key.clone(), spread, best: best.0.clone(), levels: means });
    }
    effects.sort_by(|a, b| b.spread.total_cmp(&a.spread));
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tune() -> Tune {
        let text = "strategy: {tune: {parameters: {server.options.a: [1, 2, 4, 8], server.options.b: [x, y]}}}\n\
                    server: {kind: redis}\n";
        let plan = dyno_config::experiment::read_plan(text, "x.yaml", &[]).unwrap();
        match plan.base.strategy {
            Some(Strategy::Tune(tune)) => tune,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the search against a system whose throughput depends on the parameters, with some noise.
    fn search(system: impl Fn(&Configuration) -> f64) -> Vec<RunRecord> {
        search_with(7, system)
    }

    fn search_with(seed: u64, system: impl Fn(&Configuration) -> f64) -> Vec<RunRecord> {
        let tune = tune();
        let mut runs: Vec<RunRecord> = Vec::new();
        let mut draws = Stream::from_bits(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        while let Some(point) = next(&tune, 1, &runs.iter().collect::<Vec<_>>()) {
            let noise = 1.0 + 0.01 * ((draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5);
            runs.push(RunRecord {
                cell: 1,
                repetition: point.repetition,
                point: point.label.clone(),
                value: point.value,
                dir: String::new(),
                status: RunStatus::Complete,
                unreachable: false,
                out_of_reach: false,
                not_started: false,
                cause: String::new(),
                trust: "valid".into(),
                throughput: None,
                offered: None,
                passed: true,
                too_close: false,
                margin: None,
                overloaded: false,
                spoiled: false,
                window: None,
                objective: Some(system(&point.sets) * noise),
            });
            assert!(runs.len() < 100);
        }
        runs
    }

    fn value(configuration: &Configuration, key: &str) -> Option<String> {
        configuration.iter().find(|(k, _)| k.ends_with(key)).map(|(_, v)| v.clone())
    }

    #[test]
    fn a_parameter_that_matters_is_found() {
        let runs = search(|c| 1_000.0 + 100.0 * value(c, ".a").map_or(0.0, |a| a.parse().unwrap()));
        let found = report(&tune(), 1, &runs.iter().collect::<Vec<_>>()).unwrap();
        assert!(found.best.contains("a=8"), "{found:?}");
        assert!(found.beyond_noise && (0.7..0.9).contains(&found.gain), "{found:?}");
        assert_eq!(
            (found.effects[0].parameter.as_str(), found.effects[0].best.as_str()),
            ("server.options.a", "8")
        );
        assert!(found.effects[1].spread < 0.2 * found.effects[0].spread + 0.5, "{found:?}");
        let runs_of = |point: &str| runs.iter().filter(|run| run.point == point).count();
        assert!(runs_of("defaults") >= 5 && runs_of(&found.best) >= 5);
    }

    #[test]
    fn a_run_that_the_client_spoiled_is_no_merit_of_its_configuration() {
        // Screened: the defaults at 1,000, one configuration at 1,100, and another at 9,000 by a spoiled run alone.
        let tune = tune();
        let labels: Vec<String> = field(&tune, 1).iter().map(label).collect();
        let base = search(|_| 1_000.0).swap_remove(0);
        let run = |number: usize, objective: f64, spoiled: bool| RunRecord {
            point: labels[number].clone(),
            objective: Some(objective),
            spoiled,
            ..base.clone()
        };
        let runs = [run(0, 1_000.0, false), run(1, 1_100.0, false), run(2, 9_000.0, true)];
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let all = runs_by_configuration(&labels, &runs);
        assert_eq!(ranked(&all, &[1, 2], tune.goal), [1]);
        // With a run that counts, that one alone decides.
        let more = [runs[0].clone(), runs[1].clone(), runs[2].clone(), run(2, 900.0, false)];
        let more: Vec<&RunRecord> = more.iter().collect();
        let all = runs_by_configuration(&labels, &more);
        assert_eq!(ranked(&all, &[1, 2], tune.goal), [1, 2]);
    }

    #[test]
    fn noise_is_not_called_a_gain() {
        // The best of eight that are the same was best by luck, which halving takes out for the most part: its interval alone
        // would be wrong in one of forty, with the luck that is left it is one in twelve.
        let rounds = 200;
        let claims = (0..rounds).filter(|seed| {
            let runs = search_with(*seed, |_| 1_000.0);
            let found = report(&tune(), 1, &runs.iter().collect::<Vec<_>>()).unwrap();
            assert!(found.gain < 0.02 && found.gain_half_width > 0.0 && found.noise > 0.0, "{found:?}");
            found.beyond_noise
        });
        let claims = claims.count();
        assert!(claims * 100 <= 15 * rounds as usize, "{claims} claims in {rounds} tunings of nothing");
        // The same judgement says yes where there is something.
        let better =
            |c: &Configuration| if value(c, ".a").as_deref() == Some("8") { 1_030.0 } else { 1_000.0 };
        let seen = (0..20).filter(|seed| {
            let runs = search_with(*seed, better);
            report(&tune(), 1, &runs.iter().collect::<Vec<_>>()).unwrap().beyond_noise
        });
        assert_eq!(seen.count(), 20);
    }

    #[test]
    fn the_field_holds_every_level_equally_often() {
        let field = field(&tune(), 3);
        for level in ["1", "2", "4", "8"] {
            let held = field.iter().filter(|c| value(c, ".a").as_deref() == Some(level)).count();
            assert!((1..=2).contains(&held), "{field:?}");
        }
    }
}
