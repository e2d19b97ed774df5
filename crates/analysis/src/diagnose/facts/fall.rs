//! A fall of throughput in the middle of a run, held against volumes that live on burst credits.

use super::figures::Facts;
use crate::series::burst::{CreditBucket, Fall, Signature, match_signature};
use crate::series::{SegmentLabel, judge_stability};
use dyno_rundir::RunDir;
use dyno_rundir::monitor::Recording;

const GIB: f64 = 1_073_741_824.0;

/// Figures of the fall, if there is one. `disk` is the busiest disk's name, `begin` when the phase began (Unix, milliseconds).
pub(super) fn add_fall_facts(
    facts: &mut Facts,
    run: &RunDir,
    watched: Option<(&Recording, &str, f64)>,
) -> Option<()> {
    let history = run.interval_history().ok()?;
    let found = judge_stability(&history.values)?;
    let at = found.segments.iter().position(|segment| segment.label == SegmentLabel::Collapse)?;
    let (before, after) = (found.segments.get(at.checked_sub(1)?)?, &found.segments[at]);
    let seconds = |interval: usize| history.from_s as f64 + interval as f64 * history.step_s as f64;
    let rates = watched.and_then(|(recording, disk, begin)| {
        let of = |range: (usize, usize)| {
            let (from, to) = (begin + seconds(range.0) * 1e3, begin + seconds(range.1) * 1e3);
            let rate = |what: &str| {
                recording.counter_rate(recording.host_source(), &format!("disk.{disk}.{what}"), from, to)
            };
            Some(rate("reads")? + rate("writes")?)
        };
        Some((of(before.range)?, of(after.range)?))
    });
    let size = watched.and_then(|(_, disk, _)| size_gib(run, disk));
    let seen = Fall { throughput: (before.mean, after.mean), disk: rates, after_s: seconds(after.range.0) };
    let found = judged(&seen, size);
    let held = [Some(found.by_ratio), found.at_levels, found.same_work, Some(found.in_time)];
    facts.set("burst.ratio", Some(found.ratio));
    facts.set("burst.signs", Some(held.iter().filter(|sign| **sign == Some(true)).count() as f64));
    facts.set("burst.looked_at", Some(held.iter().flatten().count() as f64));
    facts.set("burst.before_per_s", rates.map(|(before, _)| before));
    facts.set("burst.after_per_s", rates.map(|(_, after)| after));
    facts.set(
        "burst.work_changed",
        rates.map(|(before, after)| {
            let (x, y) = (before / seen.throughput.0.max(1e-9), after / seen.throughput.1.max(1e-9));
            (y / x.max(1e-9) - 1.0).abs()
        }),
    );
    Some(())
}

/// Against the bucket of a volume of this size; where the size is not known, against that of the smallest one, which falls
/// the deepest.
fn judged(fall: &Fall, size_gib: Option<f64>) -> Signature {
    match_signature(fall, &CreditBucket::from_gp2_size(size_gib.unwrap_or(1.0)))
}

pub(super) fn size_gib(run: &RunDir, disk: &str) -> Option<f64> {
    // A partition is part of its disk.
    let disks = run.environment.system.as_ref()?.facts.get("disks")?;
    let of = |name: &str| disks.get(&format!("{name}.size"))?.strip_suffix(" bytes")?.parse::<f64>().ok();
    let whole = disk.trim_end_matches(|c: char| c.is_ascii_digit());
    of(disk).or_else(|| of(whole)).or_else(|| of(whole.strip_suffix('p')?)).map(|bytes| bytes / GIB)
}
