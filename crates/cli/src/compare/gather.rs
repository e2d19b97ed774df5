//! Directories into groups of runs that are repetitions of each other.

use super::settings::{RunTrait, RunTraits, differ, what};
use dyno_frontend::exit::Failure;
use dyno_rundir::schema::{Claim, Reason, Trust, Verdict};
use dyno_rundir::{EndedRun, ExperimentDir, RunDir};
use std::path::Path;

/// Runs of the same thing.
#[derive(Debug)]
pub struct Group {
    /// Name in a comparison.
    pub name: String,
    /// The level of each factor, and what a strategy has set.
    pub levels: Vec<(String, String)>,
    /// Runs with a result.
    pub runs: Vec<RunDir>,
}

/// Content of one argument.
#[derive(Debug)]
pub struct ComparedSide {
    /// Path.
    pub name: String,
    /// An experiment's name, else the path.
    label: String,
    /// Groups: one for a run, or for a folder of runs.
    pub groups: Vec<Group>,
    /// Notes on what had to be left out.
    pub warnings: Vec<String>,
    /// Notes on claims of runs that are invalid, where the others are not.
    pub in_part: Vec<String>,
    take: Take,
}

impl Group {
    /// Returns the levels in words.
    pub fn key(&self) -> String {
        join_levels(self.levels.iter())
    }

    /// Runs whose claims can be used, all of them.
    pub fn usable(&self, claims: &[Claim]) -> Vec<&RunDir> {
        let usable = |verdict: &Verdict| verdict.trust_in(claims) != Trust::Invalid;
        let runs = self.runs.iter();
        runs.filter(|run| run.summary.as_ref().is_none_or(|summary| usable(&summary.verdict))).collect()
    }

    /// Returns the levels without those of some factors.
    pub fn without(&self, factors: &[&str]) -> String {
        join_levels(self.levels.iter().filter(|(name, _)| !factors.contains(&name.as_str())))
    }
}

fn join_levels<'a>(levels: impl Iterator<Item = &'a (String, String)>) -> String {
    levels.map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(" ")
}

/// Gives groups that are to stand beside each other names that tell the sides apart: labels, or paths where labels are the same.
/// Levels that cells have in common are said elsewhere; where nothing but one cell of each is compared, its levels are in the
/// name.
pub fn tell_apart(sides: &mut [ComparedSide]) {
    let mut labels: Vec<String> = sides.iter().map(|side| side.label.clone()).collect();
    let different = labels.iter().enumerate().all(|(at, label)| !labels[..at].contains(label));
    if !different {
        labels = sides.iter().map(|side| side.name.clone()).collect();
    }
    let keys: Vec<String> = sides.iter().flat_map(|side| side.groups.iter().map(Group::key)).collect();
    let single = sides.iter().all(|side| side.groups.len() == 1);
    let levels = single && keys.windows(2).any(|pair| pair[0] != pair[1]);
    for (side, label) in sides.iter_mut().zip(labels) {
        for group in &mut side.groups {
            group.name = match levels {
                true => format!("{label} {}", group.key()).trim().to_owned(),
                false => label.clone(),
            };
        }
    }
}

/// Gives the groups of an experiment whose levels of a factor stand beside each other these levels as names. Those of other
/// factors are the same on both sides of a pair, and are said once, as its cell. Returns the experiment's name.
pub fn name_by_level(side: &mut ComparedSide, factor: &str) -> String {
    for group in &mut side.groups {
        if let Some((name, level)) = group.levels.iter().find(|(name, _)| name == factor) {
            group.name = format!("{name}={level}");
        }
    }
    side.label.clone()
}

/// Runs that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Runs whose result may be used.
    Usable,
    /// Every run with a summary.
    All,
}

/// Reads what a path holds; nothing that can be taken is an error.
pub fn side(path: &Path, take: Take) -> Result<ComparedSide, Failure> {
    let side = read(path, take)?;
    if side.groups.is_empty() {
        return Err(side.empty());
    }
    Ok(side)
}

/// Reads what a path holds; there may be nothing that can be taken.
pub fn read(path: &Path, take: Take) -> Result<ComparedSide, Failure> {
    let name = path.display().to_string();
    let mut side = ComparedSide {
        name: name.clone(),
        label: name.clone(),
        groups: Vec::new(),
        warnings: Vec::new(),
        in_part: Vec::new(),
        take,
    };
    if ExperimentDir::is_one(path) {
        experiment(path, &mut side)?;
    } else if path.join("run.json").is_file() {
        side.add(name.clone(), Vec::new(), path)?;
    } else {
        let mut folders: Vec<_> =
            std::fs::read_dir(path).map_err(|e| Failure::usage(format!("{name}: {e}")))?.flatten().collect();
        folders.sort_by_key(std::fs::DirEntry::file_name);
        for folder in folders.iter().map(std::fs::DirEntry::path) {
            if ExperimentDir::is_one(&folder) {
                // The same experiment, made several times.
                experiment(&folder, &mut side)?;
                side.label.clone_from(&name);
            } else if folder.join("run.json").is_file() {
                side.add(name.clone(), Vec::new(), &folder)?;
            }
        }
    }
    side.groups.retain(|group| !group.runs.is_empty());
    Ok(side)
}

fn experiment(path: &Path, side: &mut ComparedSide) -> Result<(), Failure> {
    let experiment = ExperimentDir::open(path)?;
    side.label = experiment.name.clone();
    let mut runs: Vec<&EndedRun> = experiment.runs.iter().filter(|run| run.status == "complete").collect();
    // The file's order, not that in which runs were made: the first level is the first group, and searched values go up.
    let place = |run: &EndedRun| run.point.split_once('=').and_then(|(_, value)| value.parse::<f64>().ok());
    for failed in experiment.runs.iter().filter(|run| run.status == "failed") {
        let place = path.join(&failed.dir);
        side.warnings.push(format!("{} is left out: it failed: {}", place.display(), failed.message));
    }
    runs.sort_by(|a, b| {
        let searched = place(a).unwrap_or(0.0).total_cmp(&place(b).unwrap_or(0.0));
        a.cell.cmp(&b.cell).then(searched).then(a.repetition.cmp(&b.repetition))
    });
    for run in runs {
        let mut levels = experiment.find_cell(run.cell).map(|cell| cell.levels.clone()).unwrap_or_default();
        if let Some((name, value)) = run.point.split_once('=') {
            levels.push((name.to_owned(), value.to_owned()));
        }
        let name = format!("{} {}", experiment.name, join_levels(levels.iter())).trim().to_owned();
        side.add(name, levels, &path.join(&run.dir))?;
    }
    Ok(())
}

impl ComparedSide {
    /// The error that nothing of it can be taken.
    pub fn empty(&self) -> Failure {
        let left = self.warnings.first().map_or(String::new(), |w| format!(" ({w})"));
        Failure::usage(format!("{}: no run with a result in it{left}", self.name))
    }

    /// Gives it another name than its path.
    pub fn call(&mut self, name: &str) {
        let before = std::mem::replace(&mut self.name, name.to_owned());
        if self.label == before {
            self.label = name.to_owned();
        }
        self.groups
            .iter_mut()
            .filter(|group| group.name == before)
            .for_each(|group| group.name = name.into());
        for warning in self.warnings.iter_mut().chain(&mut self.in_part) {
            *warning = warning.replace(&before, name);
        }
    }

    /// Adds a run to the group of its levels; one without a result, or of which no figure can be used, is left out.
    fn add(&mut self, name: String, levels: Vec<(String, String)>, path: &Path) -> Result<(), Failure> {
        let shown = path.display();
        let run = match dyno_report::recompute_summary::open_ended_run(path) {
            Ok((run, words)) => {
                self.warnings.extend(words);
                run
            }
            Err(error) => {
                self.warnings.push(format!("{shown} is left out: {error}"));
                return Ok(());
            }
        };
        let why = match &run.summary {
            None => Some("it has not come to its end".to_owned()),
            Some(summary) if summary.measured_phase().is_none() => {
                Some("it was cut off before it measured".to_owned())
            }
            Some(summary) => {
                // All figures are compared, whatever was asked of the run.
                let verdict = &summary.verdict;
                let reason = |claim: &Claim| {
                    let mut reasons = verdict.reasons.iter().filter(|reason| reason.trust == Trust::Invalid);
                    reasons
                        .find(|reason| reason.is_about(&[*claim]))
                        .map_or("", |reason| reason.text.as_str())
                };
                let invalid = |claim: &&Claim| verdict.trust_in(&[**claim]) == Trust::Invalid;
                let invalid = Claim::FIGURES.iter().filter(invalid).filter(|_| self.take == Take::Usable);
                let invalid: Vec<&Claim> = invalid.collect();
                let whole = invalid.len() == Claim::FIGURES.len();
                if let Some(first) = invalid.first().filter(|_| !whole) {
                    let names: Vec<&str> = invalid.iter().map(|claim| claim.name()).collect();
                    let names = names.join(" and ");
                    self.in_part.push(format!("{shown}: its {names} is left out: {}", reason(first)));
                }
                whole.then(|| format!("it is invalid: {}", reason(&Claim::Throughput)))
            }
        };
        if let Some(why) = why {
            self.warnings.push(format!("{shown} is left out: {why}"));
            return Ok(());
        }
        match self.groups.iter_mut().find(|group| group.levels == levels) {
            Some(group) => group.runs.push(run),
            None => self.groups.push(Group { name, levels, runs: vec![run] }),
        }
        Ok(())
    }
}

/// Settings and facts of the database that differ between the first runs of two groups.
pub fn settings(first: &Group, second: &Group) -> Vec<(String, String, String)> {
    let of = |group: &Group| group.runs.first().map(shape).unwrap_or_default();
    let mut found = differences(&of(first), &of(second));
    // Settings that make the load another one come first.
    found.sort_by_key(|(key, ..)| LOAD.iter().position(|load| *load == last_part(key)).unwrap_or(LOAD.len()));
    found
}

/// Settings that say how much load is applied, and how.
const LOAD: [&str; 16] = [
    "loop",
    "users",
    "connections",
    "threadcount",
    "rate",
    "target",
    "arrivals",
    "think",
    "pipeline",
    "dyno.pipeline",
    "workload.recording.file",
    "workload.recording.speed",
    "workload.recording.pace",
    "workload.recording.from",
    "workload.recording.to",
    "workload.recording.only",
];

/// `users` of `phases.measure.users`; properties with a dot of their own stay whole.
fn last_part(key: &str) -> &str {
    let dotted = key.starts_with("phases.measure.") || key.starts_with("client.") || key.starts_with("load.");
    if dotted { key.rsplit('.').next().unwrap_or(key) } else { key }
}

/// Describes what was run, and in which loop.
fn shape(run: &RunDir) -> RunTraits {
    let mut all = what(&run.run);
    let measured = run.summary.iter().flat_map(|summary| &summary.phases).find(|p| p.name == "measure");
    if let Some(phase) = measured {
        let how = if phase.offered.is_some() { "open" } else { "closed" };
        all.insert("loop".into(), RunTrait::chosen(how));
    }
    all
}

/// That two groups apply different loads, if they do.
fn other_question(first: &Group, second: &Group) -> Option<String> {
    let differ = settings(first, second);
    // YCSB's target is a rate, that of an experiment a server.
    let is_server = |key: &str, value: &str| key == "target" && value.contains(':');
    let (key, one, other) =
        differ.iter().find(|(key, one, _)| LOAD.contains(&last_part(key)) && !is_server(key, one))?;
    Some(match last_part(key) {
        "loop" => format!(
            "{one} and {other} loop answer different questions: how much so many users can do, and how long people wait at \
             a rate"
        ),
        name => format!("{name} is {one} and {other}: runs under different loads answer different questions"),
    })
}

fn differences(one: &RunTraits, other: &RunTraits) -> Vec<(String, String, String)> {
    let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
    keys.sort();
    keys.dedup();
    let of = |key: &String| differ(key, (one, other), "-").map(|(one, other)| (key.clone(), one, other));
    keys.into_iter().filter_map(of).collect()
}

/// Facts of the environment that differ between the first runs of two groups.
pub fn environment(first: &Group, second: &Group) -> Vec<(String, String, String)> {
    let system = |group: &Group| group.runs.first()?.environment.system.clone();
    let (Some(one), Some(other)) = (system(first), system(second)) else { return Vec::new() };
    let shown = |value: Option<String>| value.unwrap_or("-".into());
    let found = one.list_differences(&other).into_iter();
    found.map(|d| (format!("{}: {}", d.group, d.name), shown(d.first), shown(d.second))).collect()
}

/// Checks that say that throughput was not the same throughout.
const UNSTEADY: [&str; 8] =
    ["gone", "warm_up", "level", "drift", "period", "stalls", "overload", "response_level"];

/// Returns how many runs of a group were not steady, and what the first of them is blamed for.
fn unsteady(group: &Group) -> Option<(usize, String)> {
    let blamed = |run: &RunDir| {
        let reasons = &run.summary.as_ref()?.verdict.reasons;
        let of = |reason: &&Reason| reason.trust != Trust::Valid && UNSTEADY.contains(&reason.check.as_str());
        reasons.iter().find(of).map(|reason| reason.text.clone())
    };
    let all: Vec<String> = group.runs.iter().filter_map(blamed).collect();
    Some((all.len(), all.first()?.clone()))
}

/// Lists what stands in the way of a comparison.
pub fn warnings(first: &Group, second: &Group) -> Vec<String> {
    let mut warnings: Vec<String> = other_question(first, second).into_iter().collect();
    let one_pair = first.runs.len() == 1 && second.runs.len() == 1;
    for group in [first, second] {
        let name = &group.name;
        let suspect = |run: &&RunDir| {
            let verdict = run.summary.as_ref().map(|summary| &summary.verdict);
            let of =
                |claim: Claim| verdict.is_some_and(|verdict| verdict.trust_in(&[claim]) == Trust::Suspect);
            Claim::FIGURES.into_iter().any(of)
        };
        let count = group.runs.iter().filter(suspect).count();
        if count > 0 {
            warnings.push(format!("{count} of {} runs of {name} are suspect", group.runs.len()));
        }
        if let Some((count, first)) = unsteady(group) {
            warnings.push(format!(
                "{count} of {} runs of {name} were not steady, and their means describe no state of the server: {first}",
                group.runs.len()
            ));
        }
        let mut hashes: Vec<&str> = group
            .runs
            .iter()
            .filter_map(|run| run.environment.system.as_ref().map(|system| system.hash.as_str()))
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        if hashes.len() > 1 {
            warnings.push(format!("runs of {name} were made in {} different environments", hashes.len()));
        }
        if group.runs.len() == 1 && !one_pair {
            let message = "says nothing about how much runs differ";
            warnings.push(format!("one run of {name} {message}"));
        }
    }
    if one_pair {
        warnings.push(
            "one run of each says how far these two are apart, not whether two runs of the same thing differ as much: there \
             is no interval and no p; make each four times or more, by turns (dyno run A --versus B)"
                .into(),
        );
    }
    let unit = |group: &Group| group.runs.first().map(|run| run.run.unit_ns);
    if unit(first) != unit(second) {
        warnings.push("latencies were recorded in different units: small ones cannot be told apart".into());
    }
    warnings.dedup();
    warnings
}

/// When a run began, to put runs in order. The second in which it began is recorded; of runs of one second the first event
/// decides, in nanoseconds.
pub fn begin_of(run: &RunDir) -> (String, Option<i128>) {
    let events = run.read_events().unwrap_or_default();
    let times = events.iter().filter_map(|event| event.at.parse::<jiff::Timestamp>().ok());
    (run.run.started.clone(), times.map(|at| at.as_nanosecond()).min())
}
