//! Selection of tests: by name, or by ctest's patterns.

use super::WsfArgs;
use crate::plan::cases::{CASES, Reading, WsfCase, choose, names};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use regex_lite::Regex;

/// A test.
pub struct Selected {
    pub case: &'static WsfCase,
    pub reading: Reading,
    /// The name by which it was chosen.
    pub typed: String,
}

fn pattern(option: &str, text: Option<&String>) -> Result<Option<Regex>, Failure> {
    let read = |text: &String| {
        Regex::new(text).map_err(|e| Failure::usage(format!("{option} {text}: no regular expression: {e}")))
    };
    text.map(read).transpose()
}

/// The tests, in the order of the workload's description.
pub fn select(args: &WsfArgs) -> Result<Vec<Selected>, Failure> {
    let reading = args.reading.map(Reading::from);
    if let Some(typed) = args.case.as_ref().or(args.testcase.as_ref()) {
        let chosen = choose(typed)?;
        if let (Some(one), Some(other)) = (chosen.reading, reading)
            && one != other
        {
            return Err(Failure::usage(format!("{typed}: --reading {other} says another reading")));
        }
        let reading = chosen.reading.or(reading).unwrap_or_default();
        return Ok(vec![Selected { case: chosen.case, reading, typed: typed.clone() }]);
    }
    let (include, exclude) = (pattern("-R", args.include.as_ref())?, pattern("-E", args.exclude.as_ref())?);
    if include.is_none() && exclude.is_none() && !args.list && args.verbose == 0 {
        let message =
            "no test: name one, such as `dyno wsf gated`; -N lists them, -R REGEX chooses, -V alone runs all";
        return Err(Failure::usage(message));
    }
    let reading = reading.unwrap_or_default();
    let mut found = Vec::new();
    for case in CASES.iter().filter(|case| case.registered && case.overwrites(reading, false).is_some()) {
        let all = names(case);
        let hit = match &include {
            Some(pattern) => all.iter().find(|name| pattern.is_match(name)),
            None => all.first(),
        };
        let out = exclude.as_ref().is_some_and(|pattern| all.iter().any(|name| pattern.is_match(name)));
        if let Some(name) = hit.filter(|_| !out) {
            found.push(Selected { case, reading, typed: name.clone() });
        }
    }
    if found.is_empty() {
        return Err(Failure::usage("no test matches; -N lists them"));
    }
    Ok(found)
}

/// `-N`: as ctest prints it.
pub fn list(selected: &[Selected]) -> Exit {
    for (at, one) in selected.iter().enumerate() {
        terminal::out(&format!("  Test #{}: {}\n", at + 1, one.typed));
    }
    terminal::out(&format!("\nTotal Tests: {}\n", selected.len()));
    Exit::Ok
}
