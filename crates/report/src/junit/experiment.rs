//! An experiment as suites: one for each run, also for those that were not made.

use super::{Case, Document, End, Suite, failed_suite, of_run};
use dyno_rundir::{EndedRun, ExperimentDir, RunDir};

/// A search goes beyond what holds, to find where that is.
const SEARCHED: &str = "a search goes beyond its thresholds on purpose";

/// All suites. Runs are read one after another.
pub fn of_experiment(dir: &ExperimentDir) -> Document {
    let searches = dir.runs.iter().any(|run| !run.point.is_empty());
    let mut suites: Vec<Suite> = dir.runs.iter().map(|run| suite(dir, run, searches)).collect();
    let missing = if dir.searches { 0 } else { dir.planned.saturating_sub(dir.runs.len()) };
    let name = |number: usize| format!("{}: run {} of {}", dir.name, number, dir.planned);
    suites.extend((0..missing).map(|at| {
        let case = Case::new("run".into(), End::Skipped("the run was not made".into()));
        Suite { name: name(dir.runs.len() + at + 1), cases: vec![case], ..Suite::default() }
    }));
    if suites.is_empty() || !dir.complete && !dir.standing {
        suites.push(failed_suite(dir.name.clone(), "the experiment has not come to its end".into()));
    }
    Document { name: dir.name.clone(), suites }
}

fn suite(dir: &ExperimentDir, run: &EndedRun, searches: bool) -> Suite {
    let label = dir.find_cell(run.cell).map_or("", |cell| cell.label.as_str());
    let point = if run.point.is_empty() { String::new() } else { format!(" {}", run.point) };
    let name = format!("{}: {label}{point}, repetition {}", dir.name, run.repetition);
    if run.status != "complete" {
        let why = if run.message.is_empty() { String::new() } else { format!(": {}", run.message) };
        return failed_suite(name, format!("{}{why}", run.status));
    }
    let summary = RunDir::salvage_run(&dir.path.join(&run.dir)).map(|(run, _)| run.summary);
    match summary {
        Ok(Some(summary)) => {
            let mut suite = of_run(name, &summary, searches.then_some(SEARCHED));
            suite.properties.push(("directory", run.dir.clone()));
            suite
        }
        Ok(None) => failed_suite(name, format!("{}: the run has no summary", run.dir)),
        Err(error) => failed_suite(name, error.to_string()),
    }
}
