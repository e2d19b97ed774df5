//! `dyno merge DIR...`: runs of one load, from several load generators or one after the other, as one.
//!
//! Histograms and counters add up, percentiles are computed once, from the sums. That means something only if the runs
//! did the same thing: whatever shapes the load must be equal, no run may be counted twice, and their measured phases
//! must overlap (or, with `--sequential`, be repetitions). The verdict is the worst of theirs, with all reasons.

use crate::compare::{RunTrait, RunTraits, differ, what_was_run};
use crate::options::MergeArgs;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::summary::{exit_of, show};
use dyno_frontend::terminal;
use dyno_record::Totals;
use dyno_report::recompute_summary::{assemble_summary, open_ended_run, summarise_totals};
use dyno_report::summary::SummaryExtras;
use dyno_rundir::RunDir;
use dyno_rundir::schema::{Claim, Phase, Reason, Status, Summary, Trust, Verdict};
use dyno_types::units::ShownLatency;

/// Settings that may differ between load generators of one load: which stream of operations is theirs, which cores they
/// have, and what they write.
const OWN: [&str; 20] = [
    "seed",
    "dyno.seed",
    "dyno.client.id",
    "dyno.load.threads",
    "client.threads",
    "client.cores",
    "client.wait",
    "client.pin",
    "phases.measure.interval",
    // Which of them loads the records.
    "phases.load.when",
    "phases.load.batch",
    "phases.load.pipeline",
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

/// Share of the longest run by which the others may begin after the first.
const APART: f64 = 0.01;

/// How runs lie beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SideBySide {
    /// From the first beginning to the last end, seconds.
    seconds: f64,
    /// Share of that for which all of them ran.
    share: f64,
    /// From the first beginning to the last one, seconds.
    skew_s: f64,
    /// Length of the longest, seconds.
    longest_s: f64,
}

/// A run with the window of its measured phase, Unix milliseconds.
struct MergedRun {
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
        let (dir, words) = open_ended_run(path)?;
        words.iter().for_each(|message| terminal::note(message));
        let why = match &dir.summary {
            None => Some("the run has not come to its end; merge it when it has"),
            Some(summary) if summary.measured_phase().is_none() => {
                Some("the run was cut off before it measured")
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            return Err(Failure::usage(format!("{}: {why}", path.display())));
        }
        let measured = dir.phases.iter().find(|phase| phase.name == "measure").or(dir.phases.last());
        let window = measured.map(|phase| dir.phase_boundaries(phase)).transpose()?.flatten();
        parts.push(MergedRun { dir, window });
    }
    for (at, part) in parts.iter().enumerate() {
        parts[..at].iter().try_for_each(|earlier| alike(earlier, part))?;
    }
    let beside = if args.sequential { None } else { Some(side_by_side(&parts)?) };
    let phases = add_up(&parts, args.sequential)?;
    // What a lost worker did in its last second is in no record.
    let lost = |part: &MergedRun| {
        part.dir.summary.iter().flat_map(|s| &s.verdict.reasons).any(|r| r.check == "workers")
    };
    let partial = parts.iter().any(lost);
    let phases: Vec<(Phase, &Totals)> = phases
        .iter()
        .map(|merged| {
            let phase = summarise_totals(
                &merged.name,
                merged.seconds,
                Some(&merged.metrics),
                &merged.totals,
                partial,
            );
            (Phase { offered: merged.offered, ..phase }, &merged.totals)
        })
        .collect();
    let how = if args.sequential { "one after the other" } else { "side by side" };
    let title = format!("{} runs {how}, merged", parts.len());
    let mut summary = assemble_summary(&parts[0].dir, title, Status::Complete, partial, &phases);
    inherit(&mut summary, &parts, beside);
    show(&summary, SummaryExtras::default(), args.json)?;
    Ok(exit_of(&summary))
}

/// Refuses two runs that are the same one, or that did different things.
fn alike(one: &MergedRun, other: &MergedRun) -> Result<(), Failure> {
    let (a, b) = (&one.dir, &other.dir);
    let names = (a.path.display(), b.path.display());
    let refuse = |why: String| Err(Failure::usage(format!("{} and {}: {why}", names.0, names.1)));
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
    let different = keys.into_iter().find_map(|key| Some((key, differ(key, (&mine, &theirs), "not set")?)));
    if let Some((key, (one, other))) = different {
        let message = "runs that apply different loads have no common figures";
        return refuse(format!("{key} is {one} and {other}: {message}"));
    }
    Ok(())
}

/// Everything that shaped a run: its settings but those that each load generator has of its own, its loop, and what it ran
/// against.
fn shape(dir: &RunDir) -> RunTraits {
    let mut shape = what_was_run(&dir.run);
    // Each of them watches what it likes.
    let is_apart = |key: &str| key.starts_with("database: ") || key.starts_with("monitors.");
    shape.retain(|key, _| !is_apart(key) && !OWN.contains(&key.as_str()));
    let measured = dir.summary.iter().flat_map(|summary| &summary.phases).find(|p| p.name == "measure");
    if let Some(phase) = measured {
        let how = if phase.offered.is_some() { "open" } else { "closed" };
        shape.insert("loop".into(), RunTrait::chosen(how));
    }
    shape
}

/// Refuses runs whose measured phases have no moment in common.
fn side_by_side(parts: &[MergedRun]) -> Result<SideBySide, Failure> {
    let window = |part: &MergedRun| {
        part.window.ok_or_else(|| {
            let why = "when its measured phase began was not recorded; --sequential merges repetitions";
            Failure::usage(format!("{}: {why}", part.dir.path.display()))
        })
    };
    let windows = parts.iter().map(window).collect::<Result<Vec<_>, _>>()?;
    together(&windows).map_err(|apart| {
        Failure::usage(format!(
            "the measured phases did not overlap (the last began {apart:.1} s after the first had ended): rates of runs that \
             were made one after the other do not add up; --sequential merges them as repetitions"
        ))
    })
}

/// From the first beginning to the last end, milliseconds.
fn span(windows: &[(f64, f64)]) -> (f64, f64) {
    windows.iter().fold((f64::MAX, f64::MIN), |all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// Returns how windows in milliseconds lie beside each other; an error says how many seconds lie between two of them.
fn together(windows: &[(f64, f64)]) -> Result<SideBySide, f64> {
    let (from, to) = span(windows);
    let common = windows.iter().fold((f64::MIN, f64::MAX), |all, one| (all.0.max(one.0), all.1.min(one.1)));
    match common.1 - common.0 {
        length if length > 0.0 => Ok(SideBySide {
            seconds: (to - from) / 1e3,
            share: length / (to - from),
            skew_s: (common.0 - from) / 1e3,
            longest_s: windows.iter().map(|one| one.1 - one.0).fold(0.0, f64::max) / 1e3,
        }),
        apart => Err(-apart / 1e3),
    }
}

/// Every phase of all runs. Side by side a phase lasts from the first beginning to the last end; one after the other as
/// long as all together, so that rates are means.
fn add_up(parts: &[MergedRun], sequential: bool) -> Result<Vec<Merged>, Failure> {
    let mut all: Vec<(Merged, Vec<(f64, f64)>)> = Vec::new();
    for part in parts {
        let dir = &part.dir;
        for phase in &dir.phases {
            let metrics = dir.run.metrics.get(&phase.name).cloned().unwrap_or_default();
            let known = dir.summary.iter().flat_map(|s| &s.phases).find(|known| known.name == phase.name);
            let seconds = known.map_or(phase.seconds as f64, |known| known.seconds);
            let offered = known.and_then(|known| known.offered);
            let window = dir.phase_boundaries(phase)?.unwrap_or((0.0, seconds * 1e3));
            let found = all.iter().position(|(merged, _)| merged.name == phase.name);
            let at = found.unwrap_or_else(|| {
                let totals = Totals::new(metrics.len(), phase.totals.slot_scale());
                let name = phase.name.clone();
                all.push((
                    Merged { name, metrics: metrics.clone(), seconds: 0.0, offered: None, totals },
                    Vec::new(),
                ));
                all.len() - 1
            });
            let (merged, windows) = &mut all[at];
            if merged.metrics != metrics {
                return Err(Failure::usage(format!(
                    "{}: phase {} records {}, not {} as the others",
                    dir.path.display(),
                    phase.name,
                    metrics.join(", "),
                    merged.metrics.join(", ")
                )));
            }
            merged.totals.merge(&phase.totals);
            merged.seconds += seconds;
            // Side by side what was due adds up; one after the other each has the whole.
            merged.offered = match (merged.offered, offered) {
                (before, Some(own)) if !sequential => Some(before.unwrap_or(0.0) + own * seconds),
                (Some(mean), Some(own)) if merged.seconds > 0.0 => {
                    Some(mean + (own - mean) * seconds / merged.seconds)
                }
                (before, own) => before.or(own),
            };
            windows.push(window);
        }
    }
    let lasted = |(mut merged, windows): (Merged, Vec<(f64, f64)>)| {
        if !sequential {
            let (from, to) = span(&windows);
            merged.seconds = (to - from) / 1e3;
            // As throughput: the mean over all of it.
            merged.offered = merged.offered.map(|due| due / merged.seconds.max(1e-9));
        }
        merged
    };
    Ok(all.into_iter().map(lasted).collect())
}

/// The verdict of the whole has every reason and whose it is, and is asked what its parts were asked.
fn inherit(summary: &mut Summary, parts: &[MergedRun], beside: Option<SideBySide>) {
    // Findings about the load generators are in their own verdicts, not in the sums.
    summary.verdict.reasons.extend(beside.and_then(apart_for_long));
    summary.verdict.reasons.extend(beside.and_then(begun_apart));
    let verdicts = parts.iter().filter_map(|part| Some((&part.dir, &part.dir.summary.as_ref()?.verdict)));
    worst_of(&mut summary.verdict, verdicts.map(|(dir, verdict)| (dir.path.display().to_string(), verdict)));
}

/// A reason where runs were not under way together for most of the time.
fn apart_for_long(SideBySide { seconds, share, .. }: SideBySide) -> Option<Reason> {
    (share < SIDE_BY_SIDE).then(|| Reason {
        check: "side_by_side".into(),
        trust: Trust::Suspect,
        affects: vec![Claim::Throughput],
        text: format!(
            "all runs were under way together for {:.0} % of the {seconds:.1} s from the first beginning to the last end: \
             rates are means over all of it",
            share * 100.0
        ),
    })
}

/// A reason where runs began further apart than workers of one run may.
fn begun_apart(SideBySide { skew_s, longest_s, .. }: SideBySide) -> Option<Reason> {
    (skew_s > APART * longest_s).then(|| Reason {
        check: "start_skew".into(),
        trust: Trust::Suspect,
        affects: vec![Claim::Throughput, Claim::Median, Claim::Tail],
        text: format!(
            "the last run began {} after the first one, {:.1} % of the longest: their sum is of phases that only overlap",
            ShownLatency((skew_s * 1e9) as u64),
            skew_s / longest_s * 100.0
        ),
    })
}

/// Adds the reasons of named verdicts, and what was asked of them: the whole is as bad as the worst of them.
fn worst_of<'a>(verdict: &mut Verdict, parts: impl Iterator<Item = (String, &'a Verdict)> + Clone) {
    verdict.ask_as(parts.clone().map(|(_, own)| own));
    for (name, own) in parts {
        verdict.reasons.extend(
            own.reasons
                .iter()
                .map(|reason| Reason { text: format!("{name}: {}", reason.text), ..reason.clone() }),
        );
        let new = own.checks.iter().filter(|check| !verdict.checks.contains(check));
        let new: Vec<String> = new.cloned().collect();
        verdict.checks.extend(new);
    }
    verdict.grade_claims();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_by_side_seconds_count_from_the_first_beginning_to_the_last_end() {
        let of = |seconds, share, skew_s, longest_s| Ok(SideBySide { seconds, share, skew_s, longest_s });
        assert_eq!(together(&[(1_000.0, 11_000.0), (2_000.0, 13_000.0)]), of(12.0, 9.0 / 12.0, 1.0, 11.0));
        assert_eq!(together(&[(0.0, 10_000.0); 3]), of(10.0, 1.0, 0.0, 10.0));
        // No moment in common: they touch, or seconds lie between them.
        assert_eq!(together(&[(0.0, 1_000.0), (1_000.0, 2_000.0)]), Err(0.0));
        assert_eq!(together(&[(5_000.0, 6_000.0), (0.0, 1_000.0)]), Err(4.0));
        assert!(together(&[(0.0, 1_000.0), (999.0, 2_000.0)]).is_ok());
    }

    #[test]
    fn a_tenth_of_the_time_apart_is_no_reason_yet() {
        let beside = |share: f64, skew_s: f64| SideBySide { seconds: 10.0, share, skew_s, longest_s: 10.0 };
        let trust = |share: f64| apart_for_long(beside(share, 0.0)).map(|reason| reason.trust);
        assert_eq!([trust(1.0), trust(0.9), trust(0.899)], [None, None, Some(Trust::Suspect)]);
        // A hundredth of the longest is as much as the beginnings may differ.
        let trust = |skew_s: f64| begun_apart(beside(0.99, skew_s)).map(|reason| reason.trust);
        assert_eq!([trust(0.0), trust(0.1), trust(0.11)], [None, None, Some(Trust::Suspect)]);
        assert!(
            begun_apart(beside(0.9, 1.2)).unwrap().text.contains("1.20 s after the first one, 12.0 % of")
        );
    }

    #[test]
    fn the_whole_is_as_bad_as_the_worst_part() {
        let of = |trusts: &[Trust]| {
            let reason = |trust: &Trust| Reason::of_all("errors", *trust, "x".into());
            Verdict::new(trusts.iter().map(reason).collect(), vec!["errors".into()], &[])
        };
        for (parts, worst) in [
            ([&[][..], &[]], Trust::Valid),
            ([&[], &[Trust::Suspect]], Trust::Suspect),
            ([&[Trust::Suspect], &[Trust::Invalid, Trust::Suspect]], Trust::Invalid),
        ] {
            let parts = parts.map(of);
            let mut whole = Verdict::new(Vec::new(), Vec::new(), &[]);
            worst_of(&mut whole, ["a", "b"].map(String::from).into_iter().zip(&parts));
            assert_eq!(whole.trust, worst);
            let reasons: usize = parts.iter().map(|part| part.reasons.len()).sum();
            assert_eq!(whole.reasons.len(), reasons);
            assert!(whole.reasons.is_sorted_by(|one, next| one.trust >= next.trust));
            assert!(whole.reasons.iter().all(|reason| reason.text == "a: x" || reason.text == "b: x"));
            assert_eq!(whole.checks, ["errors"]);
        }
    }

    #[test]
    fn the_whole_is_asked_what_its_parts_were_asked() {
        let lag = |claim: Claim| Reason {
            affects: vec![claim],
            ..Reason::of_all("lag", Trust::Invalid, "x".into())
        };
        let part = |claim: Claim, asked: Claim| {
            Verdict::new(vec![lag(claim)], Vec::new(), &[(format!("{asked:?}"), vec![asked])])
        };
        let merged = |parts: &[Verdict]| {
            let mut whole = Verdict::new(Vec::new(), Vec::new(), &[]);
            worst_of(&mut whole, parts.iter().map(|part| ("a".to_owned(), part)));
            whole
        };
        // A tail that is invalid, where only throughput was asked for, and a median where it was.
        let throughput = part(Claim::Tail, Claim::Throughput);
        let median = part(Claim::Median, Claim::Median);
        assert_eq!((throughput.trust, median.trust), (Trust::Valid, Trust::Invalid));
        assert_eq!(merged(&[throughput.clone(), throughput.clone()]).trust, Trust::Valid);
        let both = merged(&[throughput, median]);
        assert_eq!(both.trust, Trust::Invalid);
        assert_eq!(
            both.asked_grades().map(|grade| grade.claim.as_str()).collect::<Vec<_>>(),
            ["Throughput", "Median"]
        );
        // Parts of earlier versions were asked for everything.
        let old = Verdict {
            reasons: vec![Reason::of_all("lag", Trust::Invalid, String::new())],
            ..Verdict::nothing_judged(Trust::Invalid)
        };
        assert_eq!(merged(&[old]).trust, Trust::Invalid);
    }
}
