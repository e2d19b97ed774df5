//! Replays of one recording beside each other.

use super::gather::Group;
use dyno_analysis::ArrivalLatency;
use dyno_report::comparison::replays::{ComparedReplays, ComparedTimes};
use dyno_rundir::RunDir;
use dyno_rundir::schema::{Claim, Phase, ReplayFigures};
use dyno_types::metric::{HELD, MULTI_EXEC};
use std::cmp::Reverse;

/// What two groups have made of a recording; `None` where one of them is no replay.
pub fn compare_replays(first: &Group, second: &Group) -> Option<ComparedReplays> {
    let (one, other) = (replays_of(first), replays_of(second));
    let (_, recorded) = *one.first()?;
    other.first()?;
    let both = |share: &dyn Fn(&Phase, &ReplayFigures) -> (u64, u64)| {
        (share_of(&one, share), share_of(&other, share))
    };
    let mut names: Vec<&String> = recorded.then.keys().collect();
    names.sort_by_key(|name| Reverse(recorded.then[*name].count));
    let times = names.into_iter().map(|name| ComparedTimes {
        metric: name.clone(),
        then: recorded.then[name].clone(),
        first: service_of(first, name),
        second: service_of(second, name),
    });
    Some(ComparedReplays {
        point: recorded.describe_point(),
        differing: both(&|_, replay| (replay.count_differing(), replay.compared)),
        held: both(&|phase, _| (count_of(phase, |name| name == HELD), count_of(phase, is_command))),
        cross_slot: both(&|phase, replay| {
            let crossing = replay.cross_slot.as_ref().map_or(0, |crossing| crossing.count);
            (crossing, crossing + count_of(phase, is_command))
        }),
        times: times.filter(is_known).collect(),
    })
}

/// Returns whether a side has a figure of an operation.
fn is_known(one: &ComparedTimes) -> bool {
    [one.first, one.second].iter().any(|(median, tail)| median.is_some() || tail.is_some())
}

fn is_command(name: &str) -> bool {
    name != HELD && name != MULTI_EXEC
}

fn count_of(phase: &Phase, is_wanted: impl Fn(&str) -> bool) -> u64 {
    let wanted = phase.metrics.iter().filter(|metric| is_wanted(&metric.name));
    wanted.flat_map(|metric| metric.outcomes.values()).sum()
}

fn replay_of(run: &RunDir) -> Option<(&Phase, &ReplayFigures)> {
    let phase = run.summary.as_ref()?.measured_phase()?;
    Some((phase, phase.replay.as_ref()?))
}

fn replays_of(group: &Group) -> Vec<(&Phase, &ReplayFigures)> {
    group.runs.iter().filter_map(replay_of).collect()
}

/// A share over all runs of a side.
fn share_of(runs: &[(&Phase, &ReplayFigures)], share: &dyn Fn(&Phase, &ReplayFigures) -> (u64, u64)) -> f64 {
    let counts = runs.iter().map(|(phase, replay)| share(phase, replay));
    let (part, all) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    part as f64 / all.max(1) as f64
}

/// Median and 99th percentile of the service times of a metric over the runs of a side of which they can be used, microseconds.
fn service_of(group: &Group, metric: &str) -> (Option<f64>, Option<f64>) {
    let at = |claim, percentile| service_at(&group.usable(&[claim]), metric, percentile);
    (at(Claim::Median, 50.0), at(Claim::Tail, 99.0))
}

fn service_at(runs: &[&RunDir], metric: &str, percentile: f64) -> Option<f64> {
    let of_run = |run: &RunDir| {
        let phase = run.phases.iter().find(|phase| phase.name == "measure")?;
        let number = run.run.metrics.get(&phase.name)?.iter().position(|name| name == metric)?;
        Some(ArrivalLatency::from_service_times(&phase.totals, number))
    };
    let mut runs = runs.iter().filter_map(|run| of_run(run));
    let mut all = runs.next()?;
    runs.for_each(|one| all.merge(&one));
    all.supported_ns(percentile).map(|ns| ns / 1e3)
}
