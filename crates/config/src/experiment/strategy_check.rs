//! Checks of a strategy that the types cannot make: its points must be experiments that can be run.

use crate::experiment::cell::{MatrixCell, SET_BY_STRATEGY};
use crate::experiment::check;
use crate::experiment::factors::{self, Factor};
use crate::experiment::strategies::{Ladder, RepeatUntil, Strategy, Tune};
use crate::tree::{Origin, TreeError};
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
    if let Some((key, problem)) = wrong_number(strategy, check::most_users(&cell.spec)) {
        return Err(refusal(cell, &format!("{path}.{key}"), problem));
    }
    // The first point says whether there can be others.
    match strategy {
        Strategy::Tune(tune) => check_tune(cell, tune),
        Strategy::Ladder(ladder) => {
            if cell.spec.phases.measure.rate.is_some() {
                let why =
                    "strategy.ladder searches the users of a closed loop: remove rate, or use highest_rate";
                return Err(refusal(cell, "phases.measure.rate", why));
            }
            check_point(cell, keys[0], &ladder.from.to_string(), &format!("{path}.from"))
        }
        Strategy::HighestRate(search) => {
            check_point(cell, keys[0], &search.from.0.to_string(), &format!("{path}.from"))
        }
        Strategy::RepeatUntil(_) => Ok(()),
    }
}

/// An error about a key, where the file says it, or else about what is nearest around it.
fn refusal(cell: &MatrixCell, path: &str, problem: impl Into<String>) -> TreeError {
    TreeError { origin: Some(cell.tree.origin_at(path).clone()), path: path.to_owned(), text: problem.into() }
}

/// Checks the experiment with `key` set to a value of the strategy. Its error is placed where the file has that value: `path`.
fn check_point(cell: &MatrixCell, key: &str, value: &str, path: &str) -> Result<(), TreeError> {
    let checked = cell.at_point(&[(key.to_owned(), value.to_owned())]);
    checked.map(drop).map_err(|error| replace_origin(error, cell.tree.origin_at(path)))
}

/// The first number of a strategy that means nothing, or that there is no room for: its key, and what is wrong with it.
fn wrong_number(strategy: &Strategy, users: u64) -> Option<(&'static str, String)> {
    let is_share = |share: f64| share > 0.0 && share < 1.0;
    let share = "expected a share above 0 and below 1, such as 0.02 or 2%";
    let count = |least: u64, most: u64| format!("expected {least} to {most}");
    let runs = RUNS as u64;
    let in_runs = |least: u64, n: u32| (least..=runs).contains(&n.into());
    let all: Vec<(&str, bool, String, String)> = match strategy {
        Strategy::Ladder(Ladder { from, to, times, gain }) => vec![
            ("from", (1..=users).contains(&(*from as u64)), from.to_string(), count(1, users)),
            ("to", *to as u64 <= users, to.to_string(), count(*from as u64, users)),
            ("to", to >= from, to.to_string(), {
                let end = Ladder::default().to;
                let unsaid = if *to == end {
                    format!(": a ladder ends at {end} users unless `to` says otherwise")
                } else {
                    String::new()
                };
                format!("expected {from} or more, as from says{unsaid}")
            }),
            ("times", *times > 1.0, times.to_string(), "expected a factor above 1".into()),
            ("gain", is_share(*gain), gain.to_string(), share.into()),
        ],
        Strategy::HighestRate(search) => vec![
            (
                "to",
                search.to >= search.from,
                search.to.to_string(),
                format!("expected {} or more, as from says", search.from),
            ),
            ("precision", is_share(search.precision), search.precision.to_string(), share.into()),
        ],
        Strategy::RepeatUntil(RepeatUntil { half_width, at_least, at_most }) => vec![
            ("half_width", is_share(*half_width), half_width.to_string(), share.into()),
            ("at_least", in_runs(1, *at_least), at_least.to_string(), count(1, runs)),
            (
                "at_most",
                in_runs((*at_least).into(), *at_most),
                at_most.to_string(),
                count((*at_least).into(), runs),
            ),
        ],
        Strategy::Tune(tune) => vec![
            (
                "configurations",
                in_runs(2, tune.configurations),
                tune.configurations.to_string(),
                count(2, runs),
            ),
            ("repetitions", in_runs(1, tune.repetitions), tune.repetitions.to_string(), count(1, runs)),
        ],
    };
    all.into_iter()
        .find(|(_, fits, ..)| !fits)
        .map(|(key, _, value, expected)| (key, format!("{value}: {expected}")))
}

/// Parameters must be there, be keys of the file, and have values, each of which makes an experiment that can be run and
/// that is not what another value makes.
fn check_tune(cell: &MatrixCell, tune: &Tune) -> Result<(), TreeError> {
    let path = "strategy.tune.parameters";
    let place = cell.tree.find_path(path).unwrap_or(&cell.tree);
    if tune.parameters.is_empty() {
        return Err(place.error_at(path, "expected a mapping of keys to values"));
    }
    for (key, levels) in &tune.parameters {
        let path = format!("{path}.{key}");
        let written = place.get(key).unwrap_or(place);
        let refuse = |text: String| Err(written.error_at(&path, text));
        let values = match levels.level_values() {
            Ok(values) => values,
            Err(why) => return refuse(why.to_string()),
        };
        for (at, value) in values.iter().enumerate() {
            let own = written.items().and_then(|items| items.get(at)).unwrap_or(written);
            let point = [(key.clone(), value.clone())];
            cell.at_point(&point).map_err(|error| replace_origin(error, &own.origin))?;
        }
        if let Some(name) = key.strip_prefix("variables.")
            && !factors::is_used(&cell.unfilled, name)
        {
            return refuse(format!("no text of the file has {{{name}}}, so nothing would change"));
        }
    }
    Ok(())
}

/// An error about a value that a strategy has set, placed where the file has it.
fn replace_origin(mut error: TreeError, origin: &Origin) -> TreeError {
    if matches!(&error.origin, Some(Origin::Option(words)) if words.starts_with(SET_BY_STRATEGY)) {
        error.origin = Some(origin.clone());
    }
    error
}
