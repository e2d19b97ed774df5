//! `dyno merge DIR...`: runs of one load, from several load generators or one after the other, as one.
//!
//! Histograms and counters add up, percentiles are computed once, from the sums. That means something only if the runs
//! did the same thing: whatever shapes the load must be equal, no run may be counted twice, and their measured phases
//! must overlap (or, with `--sequential`, be repetitions). The verdict is the worst of theirs, with all reasons.

use crate::args::MergeArgs;
use crate::compare::what_was_run;
use crate::exit::{Exit, Failure};
use crate::report::{exit_of, show};
use crate::terminal;
use dyno_record::Totals;
use dyno_report::rebuilt::{assemble, open, summarise};
use dyno_rundir::RunDir;
use dyno_rundir::schema::{Phase, Reason, Status, Summary, Trust};
use std::collections::BTreeMap;

/// Settings that may differ between load generators of one load: which stream of operations is theirs, which cores they
/// have, and what they write.
const OWN: [&str; 16] = [
    "seed",
    "dyno.seed",
    "dyno.client.id",
    "dyno.load.threads",
    "threads",
    "cores",
    "wait",
    "interval",
    "threadIdStart",
    "first-writer",
    "status",
    "status.interval",
    "label",
    "exportfile",
    "logfile",
    "hdrhistogram.output.path",
];

/// Less of the longer run than this beside the others makes the merged run suspect.
const SIDE_BY_SIDE: f64 = 0.9;

/// A run with the window of its measured phase, Unix milliseconds.
struct Part {
    dir: RunDir,
    window: Option<(f64, f64)>,
}

/// A phase of all runs.
struct Merged {
    name: String,
    metrics: Vec<String>,
    seconds: f64,
    offered: Option<f64>,
    totals: Totals,
}

/// The command.
pub fn merge(args: &MergeArgs) -> Result<Exit, Failure> {
    let mut parts = Vec::new();
    for path in &args.dirs {
        let (dir, words) = open(path)?;
        words.iter().for_each(|words| terminal::note(words));
        if dir.summary.is_none() {
            let why = "the run has not come to its end; merge it when it has";
            return Err(Failure::Usage(format!("{}: {why}", path.display())));
        }
        let measured = dir.phases.iter().find(|phase| phase.name == "measure").or(dir.phases.last());
        let window = measured.map(|phase| dir.edges(phase)).transpose()?.flatten();
        parts.push(Part { dir, window });
    }
    for (at, part) in parts.iter().enumerate() {
        parts[..at].iter().try_for_each(|earlier| alike(earlier, part))?;
    }
    let beside = if args.sequential { None } else { Some(side_by_side(&parts)?) };
    let phases = add_up(&parts, args.sequential)?;
    let phases: Vec<(Phase, &Totals)> = phases
        .iter()
        .map(|merged| {
            let phase = summarise(&merged.name, merged.seconds, Some(&merged.metrics), &merged.totals, false);
            (Phase { offered: merged.offered, ..phase }, &merged.totals)
        })
        .collect();
    let how = if args.sequential { "one after the other" } else { "side by side" };
    let title = format!("{} runs {how}, merged", parts.len());
    let mut summary = assemble(&parts[0].dir, title, Status::Complete, &phases);
    inherit(&mut summary, &parts, beside);
    show(&summary, args.json)?;
    Ok(exit_of(&summary))
}

/// Refuses two runs that are the same one, or that did different things.
fn alike(one: &Part, other: &Part) -> Result<(), Failure> {
    let (a, b) = (&one.dir, &other.dir);
    let names = (a.path.display(), b.path.display());
    let refuse = |why: String| Err(Failure::Usage(format!("{} and {}: {why}", names.0, names.1)));
    let place = |dir: &RunDir| std::fs::canonicalize(&dir.path).ok();
    let arrivals = |dir: &RunDir| dir.phases.iter().map(|phase| phase.totals.arrivals).collect::<Vec<_>>();
    let same = a.run.started == b.run.started && one.window == other.window && arrivals(a) == arrivals(b);
    if place(a) == place(b) || (same && one.window.is_some()) {
        return refuse("they are the same run: its operations would count twice".into());
    }
    if a.run.unit_ns != b.run.unit_ns {
        let units = (a.run.unit_ns, b.run.unit_ns);
        return refuse(format!("they count in units of {} and {} ns: no exact merge", units.0, units.1));
    }
    let (mine, theirs) = (shape(a), shape(b));
    let mut keys: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
    // The kind of load says more than what follows from it.
    keys.sort_by_key(|key| *key != "loop");
    if let Some(key) = keys.into_iter().find(|key| mine.get(*key) != theirs.get(*key)) {
        let value =
            |all: &BTreeMap<String, String>| all.get(key).map_or("not set", String::as_str).to_owned();
        return refuse(format!(
            "{key} is {} and {}: runs that apply different loads have no common figures",
            value(&mine),
            value(&theirs)
        ));
    }
    Ok(())
}

/// What shaped a run: its settings but those that each load generator has of its own, its loop, and what it ran against.
fn shape(dir: &RunDir) -> BTreeMap<String, String> {
    let mut shape = what_was_run(&dir.run);
    shape.retain(|key, _| !key.starts_with("database: ") && !OWN.contains(&key.as_str()));
    let measured = dir.summary.iter().flat_map(|summary| &summary.phases).find(|p| p.name == "measure");
    if let Some(phase) = measured {
        shape.insert("loop".into(), if phase.offered.is_some() { "open" } else { "closed" }.into());
    }
    shape
}

/// Refuses runs whose measured phases have no moment in common. From the first beginning to the last end, seconds, and the
/// share of that time for which all of them ran.
fn side_by_side(parts: &[Part]) -> Result<(f64, f64), Failure> {
    let mut all = (f64::MAX, f64::MIN);
    let mut common = (f64::MIN, f64::MAX);
    for part in parts {
        let Some((from, to)) = part.window else {
            let why = "when its measured phase began was not recorded; --sequential merges repetitions";
            return Err(Failure::Usage(format!("{}: {why}", part.dir.path.display())));
        };
        all = (all.0.min(from), all.1.max(to));
        common = (common.0.max(from), common.1.min(to));
    }
    if common.1 <= common.0 {
        let apart = (common.0 - common.1) / 1e3;
        return Err(Failure::Usage(format!(
            "the measured phases did not overlap (the last began {apart:.1} s after the first had ended): rates of runs that \
             were made one after the other do not add up; --sequential merges them as repetitions"
        )));
    }
    let length = all.1 - all.0;
    Ok((length / 1e3, (common.1 - common.0) / length))
}

/// Every phase of all runs. Side by side a phase lasts from the first beginning to the last end; one after the other as
/// long as all together, so that rates are means.
fn add_up(parts: &[Part], sequential: bool) -> Result<Vec<Merged>, Failure> {
    let mut all: Vec<(Merged, Vec<(f64, f64)>)> = Vec::new();
    for part in parts {
        let dir = &part.dir;
        for phase in &dir.phases {
            let metrics = dir.run.metrics.get(&phase.name).cloned().unwrap_or_default();
            let known = dir.summary.iter().flat_map(|s| &s.phases).find(|known| known.name == phase.name);
            let seconds = known.map_or(phase.seconds as f64, |known| known.seconds);
            let offered = known.and_then(|known| known.offered);
            let window = dir.edges(phase)?.unwrap_or((0.0, seconds * 1e3));
            let found = all.iter().position(|(merged, _)| merged.name == phase.name);
            let at = found.unwrap_or_else(|| {
                let totals = Totals::new(metrics.len(), phase.totals.scale());
                let name = phase.name.clone();
                all.push((
                    Merged { name, metrics: metrics.clone(), seconds: 0.0, offered: None, totals },
                    Vec::new(),
                ));
                all.len() - 1
            });
            let (merged, windows) = &mut all[at];
            if merged.metrics != metrics {
                return Err(Failure::Usage(format!(
                    "{}: phase {} records {}, not {} as the others",
                    dir.path.display(),
                    phase.name,
                    metrics.join(", "),
                    merged.metrics.join(", ")
                )));
            }
            merged.totals.merge(&phase.totals);
            merged.seconds += seconds;
            // Side by side their rates add up; one after the other each has the whole.
            merged.offered = match (merged.offered, offered) {
                (Some(sum), Some(own)) if !sequential => Some(sum + own),
                (before, own) => before.or(own),
            };
            windows.push(window);
        }
    }
    let lasted = |(mut merged, windows): (Merged, Vec<(f64, f64)>)| {
        if !sequential {
            let from = windows.iter().map(|window| window.0).fold(f64::MAX, f64::min);
            let to = windows.iter().map(|window| window.1).fold(f64::MIN, f64::max);
            merged.seconds = (to - from) / 1e3;
        }
        merged
    };
    Ok(all.into_iter().map(lasted).collect())
}

/// The verdict of the whole is the worst of all, with every reason and whose it is.
fn inherit(summary: &mut Summary, parts: &[Part], beside: Option<(f64, f64)>) {
    let verdict = &mut summary.verdict;
    // What the load generators did is in their own verdicts, not in the sums.
    if let Some((seconds, share)) = beside.filter(|(_, share)| *share < SIDE_BY_SIDE) {
        verdict.reasons.push(Reason {
            check: "side_by_side".into(),
            trust: Trust::Suspect,
            text: format!(
                "all runs were under way together for {:.0} % of the {seconds:.1} s from the first beginning to the last end: \
                 rates are means over all of it",
                share * 100.0
            ),
        });
    }
    for part in parts {
        let Some(own) = &part.dir.summary else { continue };
        let name = part.dir.path.display();
        verdict.reasons.extend(own.verdict.reasons.iter().map(|reason| Reason {
            check: reason.check.clone(),
            trust: reason.trust,
            text: format!("{name}: {}", reason.text),
        }));
        let new = own.verdict.checks.iter().filter(|check| !verdict.checks.contains(check));
        let new: Vec<String> = new.cloned().collect();
        verdict.checks.extend(new);
    }
    verdict.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.trust));
    verdict.trust = verdict.reasons.iter().map(|reason| reason.trust).max().unwrap_or(Trust::Valid);
}
