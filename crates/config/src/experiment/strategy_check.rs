//! Checks of a strategy that the types cannot make: its points must be experiments that can be run.

use crate::experiment::cell::MatrixCell;
use crate::experiment::check;
use crate::experiment::factors::{self, Factor};
use crate::experiment::strategies::{Strategy, Tune};
use crate::tree::TreeError;
use dyno_types::limits::RUNS;

/// Refuses a factor that varies what is searched, too: its levels would all make the same search.
pub(super) fn check_strategy(
    cell: &MatrixCell,
    strategy: &Strategy,
    factors: &[Factor],
) -> Result<(), TreeError> {
    let (name, keys): (&str, Vec<&str>) = match strategy {
        Strategy::Ladder(_) => ("ladder", vec!["phases.measure.users"]),
        Strategy::HighestRate(_) => ("highest_rate", vec!["phases.measure.rate"]),
        Strategy::RepeatUntil(_) => ("repeat_until", Vec::new()),
        Strategy::Tune(tune) => ("tune", tune.parameters.keys().map(|key| factors::full_path(key)).collect()),
    };
    for factor in factors {
        let set = factor.levels.iter().flat_map(|level| &level.set);
        if let Some((key, at)) = set.into_iter().find(|(key, _)| keys.contains(&key.as_str())) {
            let text = format!("{key} is what strategy.{name} searches: remove one of the two");
            return Err(at.error_at(&format!("factors.{}", factor.name), text));
        }
    }
    let path = format!("strategy.{name}");
    if let Some((key, most)) = beyond(strategy, check::most_users(&cell.spec)) {
        let place = cell.tree.find_path(&path).unwrap_or(&cell.tree);
        return Err(place.error_at(&format!("{path}.{key}"), format!("expected at most {most}")));
    }
    // The first point says whether there can be others.
    match strategy {
        Strategy::Tune(tune) => check_tune(cell, tune),
        Strategy::Ladder(ladder) => cell.at_point(&[(keys[0].to_owned(), ladder.from.to_string())]).map(drop),
        Strategy::HighestRate(search) => {
            cell.at_point(&[(keys[0].to_owned(), search.from.0.to_string())]).map(drop)
        }
        Strategy::RepeatUntil(_) => Ok(()),
    }
}

/// The first count of a strategy that is greater than what there is room for: its key, and the greatest.
fn beyond(strategy: &Strategy, users: u64) -> Option<(&'static str, usize)> {
    let all = match strategy {
        Strategy::Ladder(ladder) => vec![("to", ladder.to, users as usize)],
        Strategy::HighestRate(_) => Vec::new(),
        Strategy::RepeatUntil(until) => vec![("at_most", until.at_most as usize, RUNS)],
        Strategy::Tune(tune) => vec![
            ("configurations", tune.configurations as usize, RUNS),
            ("repetitions", tune.repetitions as usize, RUNS),
        ],
    };
    all.into_iter().find(|(_, count, most)| count > most).map(|(key, _, most)| (key, most))
}

/// Parameters must be there, be keys of the file, and have values, each of which makes an experiment that can be run and
/// that is not what another value makes.
fn check_tune(cell: &MatrixCell, tune: &Tune) -> Result<(), TreeError> {
    let path = "strategy.tune.parameters";
    let place = cell.tree.find_path(path).unwrap_or(&cell.tree);
    let refuse = |text: String| Err(place.error_at(path, text));
    if tune.parameters.is_empty() {
        return refuse("expected a mapping of keys to values".into());
    }
    for (key, levels) in &tune.parameters {
        let values = match levels.level_values() {
            Ok(values) => values,
            Err(why) => return refuse(format!("{key}: {why}")),
        };
        for value in &values {
            cell.at_point(&[(key.clone(), value.clone())])?;
        }
        if let Some(name) = key.strip_prefix("variables.")
            && !factors::is_used(&cell.unfilled, name)
        {
            return refuse(format!("{key}: no text of the file has {{{name}}}, so nothing would change"));
        }
    }
    if tune.configurations < 2 {
        return Err(place.error_at("strategy.tune.configurations", "expected 2 or more"));
    }
    Ok(())
}
