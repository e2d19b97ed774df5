//! Summaries of runs whose own is missing or damaged, from what was recorded.

use dyno_analysis::{
    Evidence, PhaseFacts, find_pauses, find_silences, judge_run, summarise_monitors, summarise_phase,
};
use dyno_record::{Gap, Totals};
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{Client, Phase, PhaseHost, Reason, Status, Summary, Trust, VERSION, Verdict};
use dyno_rundir::{ReadError, RecordedPhase, RunDir};
use dyno_types::limits::CONNECTIONS;
use std::path::Path;

/// Reads a run that has come to its end. Where its summary is damaged or gone but the recording is whole, the summary is
/// computed again, and the words say so. A run that has not come to its end has none.
pub fn open_ended_run(path: &Path) -> Result<(RunDir, Option<String>), ReadError> {
    let (mut run, why) = match RunDir::open(path) {
        Ok(run) => (run, "it has no summary.json".to_owned()),
        Err(error) => {
            let (run, lost) = RunDir::salvage_run(path)?;
            let summary = path.join("summary.json").display().to_string();
            let only = run.summary.is_none() && lost.len() == 1 && lost[0].starts_with(&summary);
            if !only {
                return Err(error);
            }
            (run, lost[0].clone())
        }
    };
    if run.summary.is_some() || run.run.status == Status::Running || run.phases.is_empty() {
        return Ok((run, None));
    }
    let recording = Recording::open(path).ok().flatten();
    run.summary = Some(computed(&run, recording.as_ref(), run.run.status));
    let message =
        "its figures were computed from what was recorded, and what the load generator did is not known";
    Ok((run, Some(format!("{}: {why}; {message}", path.display()))))
}

/// The summary of a run that has not written one: everything up to its last complete second. A run that is `under_way` has no
/// verdict yet.
pub fn rebuild_summary(dir: &RunDir, recording: Option<&Recording>, under_way: bool) -> Summary {
    let status = match dir.run.status {
        ended @ (Status::Failed | Status::Interrupted) => ended,
        Status::Running | Status::Complete => Status::Running,
    };
    let mut summary = computed(dir, recording, status);
    if under_way {
        summary.verdict = Verdict::nothing_judged(Trust::Valid);
    }
    summary
}

/// Returns whether a summary is that of a run under way: it has not been judged.
pub fn is_under_way(summary: &Summary) -> bool {
    summary.status == Status::Running && summary.verdict.checks.is_empty()
}

/// Reads the load from the settings: users or connections, and the rate of an open loop, operations/s.
fn load_of(dir: &RunDir) -> (usize, Option<f64>) {
    let number = |keys: &[&str]| {
        let setting = |key: &&str| dir.run.settings.iter().find(|setting| setting.key == *key);
        keys.iter().filter_map(setting).find_map(|setting| setting.value.parse::<f64>().ok())
    };
    let users = number(&[
        "users",
        "connections",
        "threadcount",
        "threads",
        "phases.measure.users",
        "phases.measure.connections",
    ]);
    let rate = number(&["rate", "target", "phases.measure.rate"]).filter(|rate| *rate > 0.0);
    (users.unwrap_or(0.0) as usize, rate)
}

fn computed(dir: &RunDir, recording: Option<&Recording>, status: Status) -> Summary {
    let of = |recorded: &RecordedPhase| {
        // The phase's own length, where its beginning is known: seconds are counted from that of the warm-up.
        let boundaries =
            dir.phase_boundaries(recorded).ok().flatten().map(|(from_ms, to_ms)| (to_ms - from_ms) / 1e3);
        let seconds = boundaries.filter(|s| *s > 0.0).unwrap_or(recorded.seconds as f64);
        // Its end need not be on record; what was recorded behind it is the drain.
        let planned = dir.run.plans.get(&recorded.name).and_then(|plan| plan.seconds);
        let seconds = planned.map_or(seconds, |planned| seconds.min(planned));
        let metrics = dir.run.metrics.get(&recorded.name);
        let mut phase =
            summarise_totals(&recorded.name, seconds, metrics, &recorded.totals, status != Status::Complete);
        if recorded.name == "measure" {
            let (users, offered) = load_of(dir);
            phase.client = Client { users, pipeline: 1, batch: 1, ..phase.client };
            let clock_ns = Some(dir.environment.clock_ns).filter(|ns| *ns > 0);
            let (name, local) = (dir.environment.host.clone(), true);
            phase.hosts = vec![PhaseHost { name, local, clock_ns, ..PhaseHost::default() }];
            phase.offered = offered;
            // How many threads were without a success at the same time is known only of this process's own.
            let warmup_s = dir.run.plans.get(&recorded.name).map_or(0.0, |plan| plan.warmup_s);
            let until_s = (warmup_s + seconds).min(recorded.seconds as f64);
            let (from_ns, until_ns) = ((warmup_s * 1e9) as u64, (until_s * 1e9) as u64);
            let totals = with_open_silence(dir, recorded);
            if totals.threads > 0 {
                phase.silences = find_silences(&totals, from_ns, until_ns);
                phase.pauses = find_pauses(&totals, from_ns, until_ns);
            }
        }
        phase
    };
    let mut phases: Vec<(Phase, &Totals)> = dir.phases.iter().map(|p| (of(p), &p.totals)).collect();
    if let Some(recording) = recording {
        for ((phase, _), recorded) in phases.iter_mut().zip(&dir.phases) {
            // Without readable events there is no window to cut.
            if let Ok(Some((from_ms, to_ms))) = dir.phase_boundaries(recorded) {
                phase.monitor = Some(summarise_monitors(recording, from_ms, to_ms));
            }
        }
    }
    let title = dir.run.settings.iter().find(|s| s.key == "title").map_or("run", |s| s.value.as_str());
    assemble_summary(dir, title.to_owned(), status, status != Status::Complete, &phases)
}

/// Returns the totals of a phase. Its record may end with seconds without a success while operations were under way: a silence
/// that had not ended, and so was not recorded. Where operations failed they may be answers; a pause of the client is none.
fn with_open_silence(dir: &RunDir, recorded: &RecordedPhase) -> Totals {
    let mut totals = recorded.totals.clone();
    let last_s = dir.succeeded_until_s(&recorded.name);
    if last_s < recorded.seconds && totals.arrivals > totals.ended_total() && totals.count_failed() == 0 {
        let paused_ns = totals.pauses.iter().map(|pause| pause.until_ns).max().unwrap_or(0);
        let from_ns = paused_ns.max(last_s * 1_000_000_000);
        let gap = Gap { from_ns, waiting_ns: from_ns, until_ns: u64::MAX };
        totals.gaps.extend((0..totals.threads.min(CONNECTIONS as u64)).map(|_| gap));
    }
    totals
}

/// A phase's figures from its totals alone. Where it was cut off, arrivals without a known end were aborted.
pub fn summarise_totals(
    name: &str,
    seconds: f64,
    metrics: Option<&Vec<String>>,
    totals: &Totals,
    cut_off: bool,
) -> Phase {
    let facts = PhaseFacts {
        name: name.to_owned(),
        seconds,
        client: Client { pinned: true, ..Client::default() },
        cut_off,
        ..PhaseFacts::default()
    };
    summarise_phase(facts, metrics.map_or(&[], Vec::as_slice), totals)
}

/// A summary of phases, with the verdict that can be given without what the load generator did. `partial`: the record ends
/// before what was done, so that there may be arrivals without a known end.
pub fn assemble_summary(
    dir: &RunDir,
    title: String,
    status: Status,
    partial: bool,
    phases: &[(Phase, &Totals)],
) -> Summary {
    let measured = phases.iter().find(|(p, _)| p.name == "measure").or(phases.last());
    let verdict = match measured {
        Some((phase, totals)) => judge_run(&Evidence {
            phase,
            totals,
            think_ns: None,
            wire: false,
            interrupted: status != Status::Complete,
            partial,
            lost: Vec::new(),
            asked: Vec::new(),
            responses: Vec::new(),
            observations: dyno_analysis::RunObservations::default(),
        }),
        // Judged, unlike a run under way.
        None => {
            let check = "samples".to_owned();
            let text = "no second of it was recorded".to_owned();
            let reason = Reason { check: check.clone(), trust: Trust::Invalid, affects: Vec::new(), text };
            Verdict::new(vec![reason], vec![check], &[])
        }
    };
    Summary {
        version: VERSION,
        dyno: dir.run.dyno.clone(),
        status,
        target: dir.run.target.clone(),
        database: dir.run.database.clone(),
        started: dir.run.started.clone(),
        title,
        thresholds: Vec::new(),
        strict: false,
        verdict,
        phases: phases.iter().map(|(p, _)| p.clone()).collect(),
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: Default::default(),
    }
}
