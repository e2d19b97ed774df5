//! How far a result can be trusted: every check with its threshold, what was found and what to do.

mod client;
pub(crate) mod observations;

use dyno_record::Totals;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::schema::{Claim, Phase, Reason, Trust, Verdict};
use dyno_types::Outcome;
use dyno_types::units::Rate;

/// Evidence for the verdict.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The measured phase.
    pub phase: &'a Phase,
    /// Totals.
    pub totals: &'a Totals,
    /// Think time of the users in nanoseconds; `None` for the open loop.
    pub think_ns: Option<u64>,
    /// True if the engine's own threads apply the load (false for embedded stores).
    pub wire: bool,
    /// Median cost of reading the clock, nanoseconds; 0 where time is virtual.
    pub clock_ns: u64,
    /// True if the run was ended early by a signal.
    pub interrupted: bool,
    /// True if the record ends before the run does: operations may be under way.
    pub partial: bool,
    /// Workers that were lost on the way, in words.
    pub lost: Vec<String>,
    /// Thresholds as written, with the claims that each rests on.
    pub asked: Vec<(String, Vec<Claim>)>,
    /// Further observations.
    pub observations: RunObservations,
}

/// Observations of a run while it is made, beyond its counts.
#[derive(Clone, Debug, Default)]
pub struct RunObservations {
    /// Of the operations of a schedule that the workload keeps by itself: those that it had not come to when the time was
    /// over, and all.
    pub missed: Option<(u64, u64)>,
    /// Successful operations of each whole second of the measured phase; nothing is done in an empty one.
    pub series: Vec<f64>,
    /// The parts of seconds before and behind these that are measured as well: successful operations, and length in seconds.
    pub partial_seconds: [(f64, f64); 2],
    /// Longest queue of due arrivals in each of them.
    pub backlog: Vec<f64>,
    /// Mean response time of the successful requests that ended in each of them, seconds; 0 where none did.
    pub response_s: Vec<f64>,
    /// True if the load was to change on the way: its levels and drifts are what was asked for.
    pub varied: bool,
    /// True if the load ends by the number of its operations: users end one after the other then.
    pub counted: bool,
    /// Distinct keys in a sample of the operations, and the number of records.
    pub keys: Option<(u64, u64)>,
    /// By how much the wall clock and the steady clock disagree about the length of the run, seconds.
    pub clock_skew_s: f64,
    /// Metrics in the engine's order, and the share of the arrivals that each was to have: `NaN` where none was asked for.
    pub mix: Vec<(String, f64)>,
    /// True if the data belong on a disk, not in memory alone.
    pub on_disk: bool,
    /// Bytes of the data, and of the memory that may hold them, where both are known.
    pub data: Option<(u64, u64)>,
    /// True if monitors were to look on.
    pub watched: bool,
    /// Sources of the monitors that had fallen silent by the end of the phase.
    pub silent: Vec<String>,
    /// Changes between begin and end, in words.
    pub changed: Vec<String>,
    /// Cores on which both the load and servers ran, ascending, as far as that is known.
    pub shared_cores: Vec<usize>,
    /// Nodes of the target that did not answer before the run, in words.
    pub missing: Option<String>,
    /// Faults that the experiment asked for, and what they did.
    pub faults: Vec<FaultFigures>,
    /// Failed operations that belong to them.
    pub failed_in_faults: u64,
    /// Faults that were asked for and did not come, in words.
    pub not_carried_out: Vec<String>,
    /// Operations of the run's load that failed, and all of them.
    pub load_failed: Option<(u64, u64)>,
}

/// Finding of a check: the trust that it leaves, and its text.
pub(crate) type Found = Option<(Trust, String)>;

/// The claims that a check can speak against.
pub(crate) const EVERY: &[Claim] = &[];
pub(crate) const THROUGHPUT: &[Claim] = &[Claim::Throughput];
pub(crate) const LATENCIES: &[Claim] = &[Claim::Median, Claim::Tail];
pub(crate) const MEDIAN: &[Claim] = &[Claim::Median];
pub(crate) const TAIL: &[Claim] = &[Claim::Tail];
pub(crate) const RATE_AND_TAIL: &[Claim] = &[Claim::Throughput, Claim::Tail];
pub(crate) const FIGURES: &[Claim] = &[Claim::Throughput, Claim::Median, Claim::Tail];
pub(crate) const RESOURCES: &[Claim] = &[Claim::Resources];

pub(crate) struct Checks {
    reasons: Vec<Reason>,
    names: Vec<String>,
}

impl Checks {
    /// A check was made; what it found speaks against these claims.
    pub(crate) fn check(&mut self, name: &str, affects: &[Claim], found: Found) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        if let Some((trust, text)) = found {
            self.reasons.push(Reason { check: name.to_owned(), trust, affects: affects.to_vec(), text });
        }
    }

    /// A lag is compared at p99 for the tail and at p50 for the median; where both are as bad one reason says so. What to do is
    /// said once.
    fn lag(&mut self, name: &str, found: impl Fn(f64) -> Found, advice: &str) {
        let advised = |(trust, text): (Trust, String)| (trust, format!("{text}: {advice}"));
        let (tail, median) = (found(99.0), found(50.0));
        let as_bad = |one: &Found| one.as_ref().map(|(trust, _)| *trust);
        if as_bad(&tail) == as_bad(&median) {
            return self.check(name, LATENCIES, tail.map(advised));
        }
        let median = if tail.is_none() { median.map(advised) } else { median };
        self.check(name, TAIL, tail.map(advised));
        self.check(name, MEDIAN, median);
    }
}

/// Makes every check.
pub fn verdict(e: &Evidence<'_>) -> Verdict {
    let mut checks = Checks { reasons: Vec::new(), names: Vec::new() };
    checks.check("invariants", EVERY, invariants(e));
    checks.check("completed", EVERY, completed(e));
    checks.check("workers", EVERY, workers(e));
    checks.check("samples", EVERY, nothing(e));
    checks.check("samples", if e.phase.seconds < 1.0 { FIGURES } else { LATENCIES }, samples(e));
    checks.check("data", EVERY, data(e));
    checks.check("errors", EVERY, errors(e));
    checks.check("found", EVERY, found(e));
    checks.check("drops", EVERY, drops(e));
    checks.check("offered_rate", FIGURES, offered_rate(e));
    if !too_short(e) {
        checks.lag(
            "schedule_lag",
            |percentile| client::schedule_lag(e, percentile),
            &client::schedule_advice(e),
        );
        checks.lag("receive_lag", |percentile| client::receive_lag(e, percentile), client::receive_advice(e));
        checks.check("client_cpu", client::slowed_by_client(e), client::client_cpu(e));
        checks.check("littles_law", FIGURES, littles_law(e));
    }
    checks.check("steal", client::affected_by_others(e, e.phase.client.steal_share), client::steal(e));
    checks.check(
        "neighbours",
        client::affected_by_others(e, client::others_share(e).unwrap_or(0.0)),
        client::neighbours(e),
    );
    checks.check("pinning", TAIL, client::pinning(e));
    checks.check("clock", LATENCIES, client::clock(e));
    observations::checks(e, &mut checks);
    Verdict::new(checks.reasons, checks.names, &e.asked)
}

fn invariants(e: &Evidence<'_>) -> Found {
    let (arrivals, ended) = (e.totals.arrivals, e.totals.ended_total());
    let lost = if e.partial || !e.lost.is_empty() { arrivals < ended } else { arrivals != ended };
    lost.then(|| {
        (
            Trust::Invalid,
            format!("{arrivals} arrivals but {ended} outcomes: the engine lost count; please report this"),
        )
    })
}

fn workers(e: &Evidence<'_>) -> Found {
    let first = e.lost.first()?;
    let others = if e.lost.len() > 1 { format!(" (and {} more)", e.lost.len() - 1) } else { String::new() };
    Some((Trust::Invalid, format!("{first}{others}: what it did since its last second is missing")))
}

fn completed(e: &Evidence<'_>) -> Found {
    let aborted =
        e.totals.ended[Outcome::Aborted as usize] - unsent(e).min(e.totals.ended[Outcome::Aborted as usize]);
    if e.interrupted {
        return Some((
            Trust::Suspect,
            format!("interrupted after {:.1} s; {aborted} operations had not ended", e.phase.seconds),
        ));
    }
    (aborted > 0).then(|| {
        (
            Trust::Suspect,
            format!("{aborted} operations had no reply when the run ended; see --timeout and --drain"),
        )
    })
}

/// Operations that were due and had not been sent when the time was over.
fn unsent(e: &Evidence<'_>) -> u64 {
    (0..e.totals.outcomes.len()).map(|metric| e.totals.unsent(metric)).sum()
}

/// Too short for percentiles, and so for every check that compares them.
fn too_short(e: &Evidence<'_>) -> bool {
    e.totals.ok() < 1_000 || e.phase.seconds < 1.0
}

fn nothing(e: &Evidence<'_>) -> Found {
    (e.totals.ok() == 0).then(|| (Trust::Invalid, "no operation succeeded".into()))
}

fn samples(e: &Evidence<'_>) -> Found {
    (e.totals.ok() > 0 && too_short(e)).then(|| {
        (
            Trust::Suspect,
            format!(
                "only {} operations in {:.2} s: too short for percentiles; let it run for 30 s or more",
                e.totals.ok(),
                e.phase.seconds
            ),
        )
    })
}

/// Records that were read and did not hold what was written: nothing that is measured on wrong data counts.
fn data(e: &Evidence<'_>) -> Found {
    let wrong = e.totals.ended[Outcome::Mismatch as usize];
    (wrong > 0).then(|| {
        let text = format!(
            "{wrong} operations of {} read records that do not hold what was written (VERIFY): the server has changed them, \
             or they were loaded with other settings",
            e.totals.ended_total()
        );
        (Trust::Invalid, text)
    })
}

fn errors(e: &Evidence<'_>) -> Found {
    // These have a check of their own.
    let apart = [Outcome::Aborted, Outcome::Dropped, Outcome::Mismatch];
    let aborted: u64 = apart.iter().map(|outcome| e.totals.ended[*outcome as usize]).sum();
    // What fails while a fault lasts that was asked for is no surprise; the check of faults has it.
    let failed = (e.totals.failed() - aborted).saturating_sub(e.observations.failed_in_faults);
    if failed == 0 {
        return None;
    }
    let share = failed as f64 / e.totals.ended_total() as f64;
    let worst = Outcome::ALL
        .into_iter()
        .filter(|o| *o != Outcome::Ok && !apart.contains(o))
        .max_by_key(|o| e.totals.ended[*o as usize])?;
    let words = e.phase.errors.get(worst.name()).filter(|w| !w.is_empty());
    let words = words.map_or(String::new(), |w| format!(" (\"{w}\")"));
    let beside = if e.observations.faults.is_empty() { "" } else { " apart from those of the faults" };
    let text = format!(
        "{failed} operations ({:.3} %) failed{beside}, most as {}{words}; percentiles and thresholds count \
         them with at least the time after which they failed",
        share * 100.0,
        worst.name()
    );
    Some((if share > 0.05 { Trust::Invalid } else { Trust::Suspect }, text))
}

/// Steps of transactions that have found nothing and have not failed them: a few race with other users, many mean other data.
fn found(e: &Evidence<'_>) -> Found {
    let missed = |outcomes: &[u64; Outcome::COUNT]| outcomes[Outcome::NotFound as usize];
    let all: u64 = e.totals.outcomes.iter().flatten().sum();
    // What has failed its operation counts as the step and as the whole, and the check of errors has it.
    let missed =
        e.totals.outcomes.iter().map(missed).sum::<u64>().saturating_sub(2 * missed(&e.totals.ended));
    let share = missed as f64 / all.max(1) as f64;
    (share > 0.05).then(|| {
        let share = share * 100.0;
        let text = format!(
            "{missed} requests within transactions ({share:.1} %) found nothing: are the data those that the run expects?"
        );
        (Trust::Suspect, text)
    })
}

fn drops(e: &Evidence<'_>) -> Found {
    let dropped = e.totals.ended[Outcome::Dropped as usize];
    let share = dropped as f64 / e.totals.ended_total().max(1) as f64;
    (dropped > 0).then(|| {
        (
            if share > 0.01 { Trust::Invalid } else { Trust::Suspect },
            format!(
                "{dropped} arrivals ({:.3} %) were dropped from a queue that was full, or after the time that they \
                 may wait there; percentiles count them as infinite: lower --rate, or raise --connections or --queue",
                share * 100.0
            ),
        )
    })
}

pub(crate) fn offered_rate(e: &Evidence<'_>) -> Found {
    let (unsent, due) = e.observations.missed.unwrap_or((unsent(e), e.totals.ended_total()));
    if unsent > 0 && !e.interrupted {
        let text = format!(
            "{unsent} of {due} operations that were due had not been sent when the time was over: the target or the \
             connections do not keep up with the rate"
        );
        return Some((Trust::Suspect, text));
    }
    let offered = e.phase.offered.filter(|o| *o > 0.0)?;
    let late_s = e.phase.seconds - e.totals.arrivals as f64 / offered;
    (late_s > 0.1 && late_s > e.phase.seconds * 0.01).then(|| {
        (
            Trust::Suspect,
            format!(
                "{} operations/s were due, but the last one ended {late_s:.1} s after the schedule: the target \
                 or the connections do not keep up, so response times grow with the length of the run",
                Rate(offered)
            ),
        )
    })
}

/// Users = throughput x (service + turnaround + think), on the engine's own figures.
fn littles_law(e: &Evidence<'_>) -> Found {
    let think_ns = e.think_ns?;
    if !e.wire || e.totals.failed() > 0 || e.totals.ok() < 1_000 || e.interrupted {
        return None;
    }
    let client = &e.phase.client;
    let users = (client.users * client.pipeline * client.batch) as f64;
    // The summary names the metrics that occurred.
    let mut occurred = e.phase.metrics.iter().map(|metric| metric.name.as_str());
    let name = |counts: &[u64; Outcome::COUNT]| match counts.iter().any(|count| *count > 0) {
        true => occurred.next().unwrap_or_default(),
        false => "",
    };
    let names: Vec<&str> = e.totals.outcomes.iter().map(name).collect();
    let found = users_by_littles_law(e.totals, think_ns, e.phase.seconds, &names)?;
    let error = (found - users).abs() / users;
    // Users who have done their share are at work no more: up to a second's worth of them may be missing.
    let ending = if e.observations.counted && found < users { 1.0 / e.phase.seconds } else { 0.0 };
    (error > 0.02 + ending).then(|| {
        (
            Trust::Suspect,
            format!(
                "Little's law gives {found:.2} users where {users} were: times and throughput do not belong together \
                 ({:.1} % off)",
                error * 100.0
            ),
        )
    })
}

/// The number of users that throughput and times imply, by the metrics whose times add up to those of operations. `names`
/// are those of all metrics, in the order of the totals.
pub fn users_by_littles_law<S: AsRef<str>>(
    totals: &Totals,
    think_ns: u64,
    seconds: f64,
    names: &[S],
) -> Option<f64> {
    if seconds <= 0.0 {
        return None;
    }
    let service: u128 = names
        .iter()
        .enumerate()
        .filter(|(_, name)| dyno_rundir::adds_up(names, name.as_ref()))
        .filter_map(|(number, _)| totals.ok_slot(number))
        .map(|slot| slot.service.sum_ns())
        .sum();
    let thinking = u128::from(think_ns) * u128::from(totals.ok());
    Some((service + totals.turnaround.sum_ns() + thinking) as f64 / (seconds * 1e9))
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod limits;
