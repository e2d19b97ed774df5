//! Which records are there: reads before the first phase.

use dyno_db::target::OpenTarget;
use dyno_engine::{Control, End, Job, RunError};
use dyno_types::{Content, Outcome, RefusalCode, Refused, Request, Verb};
use dyno_workload::ycsb::CoreConfig;
use dyno_workload::{Draw, Frontier, Workload};
use std::sync::Arc;

/// Records that are looked at beyond the first free key: inserts that were under way when an earlier run was killed may
/// have left gaps before them.
const BEYOND: u64 = 1_024;

/// Time-outs after which a server is not asked for records any longer.
const TIMEOUTS: u64 = 3;

/// Time that a reply is awaited, nanoseconds.
const TIMEOUT_NS: u64 = 5_000_000_000;

/// Reads, or deletions, of keys spread evenly over a range, its first and last among them.
struct Presence {
    verb: Verb,
    metrics: Vec<String>,
    content: Arc<dyn Content>,
    first: u64,
    count: u64,
    samples: u64,
}

impl Workload for Presence {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        self.content.clone()
    }

    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        let offset = match self.samples {
            0 | 1 => 0,
            n => (u128::from(draw.index) * u128::from(self.count - 1) / u128::from(n - 1)) as u64,
        };
        debug_assert!(draw.index >= self.samples.max(1) || offset < self.count, "no key beyond the range");
        Request { verb: self.verb, key: self.first + offset, ..Request::default() }
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Results of reads of keys; those that failed are neither.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoundKeys {
    pub there: u64,
    pub missing: u64,
}

/// Counts how many of `samples` keys, spread evenly over the `count` from `first` on, are there.
pub(crate) fn count_found(
    opened: &dyn OpenTarget,
    content: &Arc<dyn Content>,
    (first, count): (u64, u64),
    samples: u64,
    control: &Arc<Control>,
) -> Result<FoundKeys, RunError> {
    let mut found = FoundKeys::default();
    run_before_phases(opened, job(Verb::Read, content, (first, count), samples, 1), control, &mut |ended| {
        // A record whose values are not the expected ones is there, too.
        found.there += ended[Outcome::Ok as usize] + ended[Outcome::Mismatch as usize];
        found.missing += ended[Outcome::NotFound as usize];
    })?;
    debug_assert!(found.there + found.missing <= samples, "each key is asked for once");
    Ok(found)
}

/// Carries out a job before the first phase; `hear` gets the outcomes of each second. An error where the server stays silent, or
/// `control` ends it.
fn run_before_phases(
    opened: &dyn OpenTarget,
    job: Job,
    control: &Arc<Control>,
    hear: &mut dyn FnMut(&[u64]),
) -> Result<(), RunError> {
    let (own, mut silent) = (Arc::new(Control::below_control(control)), 0);
    let ended = opened.run(job, own.clone(), &mut |second| {
        hear(&second.totals.ended);
        silent += second.totals.ended[Outcome::TimedOut as usize];
        if silent >= TIMEOUTS {
            own.abort_run();
        }
    });
    let unreachable = |outcome, message: String| Err(RunError::Unreachable { outcome, message });
    match ended {
        _ if control.is_stopping() => unreachable(Outcome::Aborted, "interrupted".into()),
        Ok(_) if silent >= TIMEOUTS => {
            let seconds = TIMEOUT_NS / 1_000_000_000;
            let message = format!("{silent} requests that look for records have no reply within {seconds} s");
            unreachable(Outcome::TimedOut, format!("{}: {message}", opened.redacted()))
        }
        ended => ended.map(drop),
    }
}

/// A job of `samples` requests over the `count` keys from `first` on.
fn job(
    verb: Verb,
    content: &Arc<dyn Content>,
    (first, count): (u64, u64),
    samples: u64,
    users: usize,
) -> Job {
    let metrics = vec![format!("{verb:?}").to_uppercase()];
    Job {
        timeout_ns: Some(TIMEOUT_NS),
        drain_ns: 5_000_000_000,
        ..Job::closed_loop(
            Arc::new(Presence { verb, metrics, content: content.clone(), first, count, samples }),
            users,
            End { operations: Some(samples), duration_ns: None },
        )
    }
}

/// Most records that are looked for.
const SAMPLES: u64 = 100;

/// The number of records of so many that [`are_records_present`] looks for.
pub fn looked_for(records: u64) -> u64 {
    records.min(SAMPLES)
}

/// Returns whether the records that `workload` expects are there: 100 of them, spread evenly, are read. True only if all are.
pub fn are_records_present(
    opened: &dyn OpenTarget,
    workload: &Arc<dyn Workload>,
    control: &Arc<Control>,
) -> Result<bool, RunError> {
    let Some((count, first)) = workload.expects().filter(|(count, _)| *count > 0) else { return Ok(true) };
    let samples = looked_for(count);
    Ok(count_found(opened, &workload.content(), (first, count), samples, control)?.there == samples)
}

/// Run-phase inserts of earlier runs of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// The number of its keys up to the last that is there.
    pub end: u64,
    /// Keys among them that are not there, in order.
    pub missing: Vec<u64>,
}

/// The run-phase inserts of this client that are there from earlier runs. Their end is found by doubling and halving,
/// about forty reads, and by looking at the next 1,024 keys; gaps are looked for in the 1,024 before it, too.
pub fn find_inserted(
    opened: &dyn OpenTarget,
    content: &Arc<dyn Content>,
    config: &CoreConfig,
    control: &Arc<Control>,
) -> Result<Inserted, RunError> {
    let stride = config.client_count;
    let key = |rank: u64| config.record_count + rank * stride + config.client_id;
    // Keys of this client, from the one of this rank on.
    let count = |rank: u64, ranks: u64| {
        let found = count_found(opened, content, (key(rank), (ranks - 1) * stride + 1), ranks, control)?;
        let failed = ranks.saturating_sub(found.there + found.missing);
        match failed {
            0 => Ok(found.there),
            n => {
                let message = "reads failed that look for the inserts of earlier runs (dyno.insert.resume)";
                Err(RunError::from(Refused::new(
                    RefusalCode::OtherData,
                    "dyno.insert.resume",
                    format!("{n} {message}"),
                )))
            }
        }
    };
    let some = |rank: u64, ranks: u64| match rank < MOST_INSERTED {
        true => count(rank, ranks).map(|found| found > 0),
        false => Err(RunError::from(Refused::new(
            RefusalCode::OtherData,
            "dyno.insert.resume",
            "every key that was looked for is there: the target says nothing of earlier inserts (dyno.insert.resume)",
        ))),
    };
    let (mut there, mut free) = (0, 1);
    // Ranks below `there` exist; the first at or above `free - 1` that is looked at does not.
    while some(free - 1, 1)? {
        there = free;
        free *= 2;
    }
    while there + 1 < free {
        let middle = there + (free - there) / 2;
        match some(middle - 1, 1)? {
            true => there = middle,
            false => free = middle,
        }
    }
    debug_assert_eq!(there + 1, free, "the first rank that is not there comes behind the last that is");
    let from = there.saturating_sub(BEYOND);
    while some(there, BEYOND)? {
        // The last one of the window: at least one of those from `there` on exists.
        let (mut low, mut high) = (there, there + BEYOND);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match some(middle, there + BEYOND - middle)? {
                true => low = middle,
                false => high = middle,
            }
        }
        there = low + 1;
    }
    let mut missing = Vec::new();
    gaps(&count, from, there - from, &mut missing)?;
    Ok(Inserted { end: there, missing })
}

/// More inserts of one client than any run has made: a target that has a key beyond them has every key (`null:`).
const MOST_INSERTED: u64 = 1 << 40;

/// Appends the ranks that are not there, of `ranks` from `first` on.
fn gaps(
    count: &dyn Fn(u64, u64) -> Result<u64, RunError>,
    first: u64,
    ranks: u64,
    missing: &mut Vec<u64>,
) -> Result<(), RunError> {
    match if ranks == 0 { 0 } else { count(first, ranks)? } {
        found if found == ranks => {}
        0 => missing.extend(first..first + ranks),
        _ => {
            let half = ranks / 2;
            gaps(count, first, half, missing)?;
            gaps(count, first + half, ranks - half, missing)?;
        }
    }
    Ok(())
}

/// Users that count or delete.
const USERS: u64 = 16;

/// Counts those of `keys` records that are there, `stride` apart from `first` on: each is read.
pub(crate) fn count_range(
    opened: &dyn OpenTarget,
    content: &Arc<dyn Content>,
    (first, stride): (u64, u64),
    keys: u64,
    control: &Arc<Control>,
) -> Result<u64, RunError> {
    if keys == 0 {
        return Ok(0);
    }
    let job = job(Verb::Read, content, (first, (keys - 1) * stride + 1), keys, keys.min(USERS) as usize);
    let mut there = 0;
    run_before_phases(opened, job, control, &mut |ended| {
        there += ended[Outcome::Ok as usize] + ended[Outcome::Mismatch as usize];
    })?;
    Ok(there)
}

/// Deletes `keys` records whose keys are `stride` apart, from `first` on.
pub(crate) fn remove_range(
    opened: &dyn OpenTarget,
    content: &Arc<dyn Content>,
    first: u64,
    stride: u64,
    keys: u64,
    control: &Arc<Control>,
) -> Result<(), RunError> {
    if keys == 0 {
        return Ok(());
    }
    let range = (first, (keys - 1) * stride + 1);
    run_before_phases(
        opened,
        job(Verb::Delete, content, range, keys, keys.min(USERS) as usize),
        control,
        &mut |_| {},
    )
}

/// Deletes the records that `workload` expects, if any of them is there: what is loaded then is not mixed with what was.
pub fn remove_records(
    opened: &dyn OpenTarget,
    workload: &Arc<dyn Workload>,
    control: &Arc<Control>,
) -> Result<(), RunError> {
    let Some((count, first)) = workload.expects().filter(|(count, _)| *count > 0) else { return Ok(()) };
    let content = workload.content();
    if count_found(opened, &content, (first, count), count.min(100), control)?.there > 0 {
        remove_range(opened, &content, first, 1, count, control)?;
    }
    Ok(())
}
