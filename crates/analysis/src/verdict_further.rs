//! Checks of what is known beyond a run's counts: its level over time, its keys, the clock, the monitors, the environment.

use crate::series::{Label, Stability, stability};
use crate::verdict::{Checks, Evidence};
use dyno_rundir::schema::Trust;

/// Seconds that a judgement of levels needs.
const SECONDS: usize = 30;

/// A drift over the run by so much is worth a word.
const DRIFT: f64 = 0.10;

/// Disagreement of the clocks, seconds: more than any slewing does in a run of minutes.
const SKEW_S: f64 = 0.25;

/// Makes every check.
pub(crate) fn checks(e: &Evidence<'_>, checks: &mut Checks) {
    let found = (e.further.series.len() >= SECONDS).then(|| stability(&e.further.series)).flatten();
    if let Some(found) = &found {
        checks.check("level", level(found));
        checks.check("drift", drift(found));
        checks.check("stalls", stalls(found));
    }
    checks.check("keys", keys(e));
    checks.check("clock_jump", clock_jump(e));
    checks.check("monitors", monitors(e));
    checks.check("environment", environment(e));
    checks.check("target", target(e));
}

fn level(found: &Stability) -> Option<(Trust, String)> {
    let segment = &found.segments[found.alarm?];
    let before = &found.segments[found.alarm? - 1];
    Some((
        Trust::Suspect,
        format!(
            "throughput changes from {:.0}/s to {:.0}/s at {} s: the mean of the run describes neither; `dyno explain` shows \
             the levels",
            before.median, segment.median, segment.range.0
        ),
    ))
}

fn drift(found: &Stability) -> Option<(Trust, String)> {
    if found.alarm.is_some() {
        return None;
    }
    let last = &found.segments[found.headline];
    let within = found
        .trend
        .filter(|trend| trend.p < 0.01)
        .map_or(0.0, |trend| trend.slope * (last.range.1 - last.range.0) as f64 / last.median.max(1e-9));
    // A drift that is long enough looks like stairs.
    let first = found.segments.iter().find(|segment| segment.label != Label::WarmUp)?;
    let between = last.median / first.median.max(1e-9) - 1.0;
    let share = within + between;
    (share.abs() > DRIFT).then(|| {
        (
            Trust::Suspect,
            format!(
                "throughput drifts by {:+.0} % over the run: it has not settled; run longer",
                share * 100.0
            ),
        )
    })
}

fn stalls(found: &Stability) -> Option<(Trust, String)> {
    let own: Vec<_> = found.stalls.iter().filter(|stall| stall.at >= found.warm_up).collect();
    let collapsed = found.alarm.is_some();
    let first = own.first().filter(|_| !collapsed)?;
    let seconds: usize = own.iter().map(|stall| stall.intervals).sum();
    Some((
        Trust::Suspect,
        format!(
            "throughput falls below half of its median in {seconds} s, first at {} s: look for checkpoints, snapshots or \
             neighbours there",
            first.at
        ),
    ))
}

fn keys(e: &Evidence<'_>) -> Option<(Trust, String)> {
    let (distinct, records) = e.further.keys?;
    // A sample of 2,000 operations on a skewed choice still meets hundreds of keys.
    (distinct * 20 < records.min(2_000)).then(|| {
        (
            Trust::Suspect,
            format!(
                "2,000 operations ask for only {distinct} of {records} records: check insertcount, recordcount and \
                 requestdistribution; what is measured is a cache"
            ),
        )
    })
}

fn clock_jump(e: &Evidence<'_>) -> Option<(Trust, String)> {
    let skew = e.further.clock_skew_s;
    (skew.abs() > SKEW_S).then(|| {
        (
            Trust::Suspect,
            format!("the wall clock was set by {skew:+.2} s during the run: monitors and other hosts are out of step"),
        )
    })
}

fn monitors(e: &Evidence<'_>) -> Option<(Trust, String)> {
    let host = e.phase.monitor.as_ref().and_then(|seen| seen.host.as_ref());
    // Shorter than two samples there is nothing to see.
    (e.further.watched && host.is_none() && e.phase.seconds >= 3.0)
        .then(|| (Trust::Suspect, "monitors were lost during the run: resources are not known".to_owned()))
}

fn environment(e: &Evidence<'_>) -> Option<(Trust, String)> {
    let first = e.further.changed.first()?;
    let more = e.further.changed.len() - 1;
    let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some((Trust::Suspect, format!("the environment changed during the run: {first}{others}")))
}

fn target(e: &Evidence<'_>) -> Option<(Trust, String)> {
    let missing = e.further.missing.as_ref()?;
    Some((
        Trust::Suspect,
        format!("routers did not answer before the run and were left out until they did: {missing}"),
    ))
}

#[cfg(test)]
#[path = "verdict_further_tests.rs"]
mod tests;
