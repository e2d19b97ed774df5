//! Checks of what is known beyond a run's counts: its level over time, its keys, the clock, the monitors, the environment.

use super::checks::{CheckFinding, Checks, EVERY, LATENCIES, RATE_AND_TAIL, RESOURCES};
use super::evidence::{Evidence, LoadFailures};
use super::steadiness::{self, IntervalFigures};
use crate::series::mean;
use crate::series::trend::estimate_trend;
use dyno_rundir::schema::{Phase, Silence, Trust};
use dyno_types::Outcome;
use dyno_types::metric::{BULK, CLEANUP};
use dyno_types::units::{BinaryBytes, Rate, ShownLatency, Thousands};

/// Disagreement of the clocks, seconds: more than any slewing does in a run of minutes.
const SKEW_S: f64 = 0.25;

/// Makes every check.
pub(crate) fn run_observation_checks(e: &Evidence<'_>, checks: &mut Checks) {
    if !e.observations.faults.is_empty() || !e.observations.not_carried_out.is_empty() {
        // Levels and stalls of such a run are what was asked for.
        checks.record_check("faults", EVERY, faults(e));
        checks.record_check("faults_carried_out", EVERY, not_carried_out(e));
    } else {
        over_time(e, checks);
    }
    checks.record_check("load", EVERY, load(e));
    checks.record_check("keys", EVERY, keys(e));
    checks.record_check("mix", EVERY, mix(e));
    if e.phase.monitor.is_some() {
        checks.record_check("cache", EVERY, cache(e));
    }
    checks.record_check("clock_jump", RESOURCES, clock_jump(e));
    if e.observations.watched || !e.observations.silent.is_empty() {
        checks.record_check("monitors", RESOURCES, monitors(e));
    }
    checks.record_check("environment", EVERY, environment(e));
    checks.record_check("target", EVERY, target(e));
}

/// Checks whether the figures stand for the whole run. Silences are judged from what was under way, whatever the load was to do.
fn over_time(e: &Evidence<'_>, checks: &mut Checks) {
    let silent = silent(e);
    let was_there = silent.as_ref().is_none_or(|silent| !silent.outage);
    let affected = if was_there { RATE_AND_TAIL } else { EVERY };
    checks.record_check("gone", affected, silent.as_ref().map(|silent| gone(e, silent)));
    if e.observations.varied {
        return;
    }
    let observations = &e.observations;
    // What the client has spoilt says nothing of the target.
    let from_s = observations.partial_seconds[0].1;
    let without = |values: &[f64], times| steadiness::without_pauses(values.to_vec(), times, &e.phase.pauses);
    let (rates, responses_s) =
        (without(&observations.series, (1.0, from_s)), without(&observations.response_s, (1.0, from_s)));
    let tails = observations.tail.as_ref();
    let tails = tails.map(|(step_s, from_s, values)| (*step_s, *from_s, without(values, (*step_s, *from_s))));
    let over_time = IntervalFigures {
        rates: &rates,
        responses_s: &responses_s,
        tails: tails.as_ref().map(|(step_s, from_s, values)| (*step_s, *from_s, values.as_slice())),
        step_s: 1.0,
        from_s,
    };
    // What a silence has said with more precision is no stall as well.
    let told: &[Silence] = match &silent {
        Some(silent) if silent.trust != Trust::Valid => &e.phase.silences,
        _ => &[],
    };
    steadiness::run_steadiness_checks(&over_time, was_there, told, checks);
    checks.record_check("overload", LATENCIES, overload(e));
}

fn faults(e: &Evidence<'_>) -> CheckFinding {
    let all = &e.observations.faults;
    let named: Vec<String> =
        all.iter().take(3).map(|one| format!("{} {}", one.fault, one.describe_time())).collect();
    let more = if all.len() > 3 { format!(" and {} more", all.len() - 3) } else { String::new() };
    let failed = match e.observations.failed_in_faults {
        0 => "no operation failed by them".to_owned(),
        count => format!("{} operations failed by them, which are told apart", Thousands(count)),
    };
    (!all.is_empty()).then(|| {
        let message = format!(
            "the experiment asked for {}{more}: throughput and latencies of the whole phase have them in; {failed}",
            named.join(", ")
        );
        (Trust::Valid, message)
    })
}

fn not_carried_out(e: &Evidence<'_>) -> CheckFinding {
    let first = e.observations.not_carried_out.first().filter(|_| !e.interrupted)?;
    let more = e.observations.not_carried_out.len() - 1;
    let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some((Trust::Suspect, format!("a fault that was asked for did not come: {first}{others}")))
}

/// Counts the failures of the load before the phase `measured`; `None` if there was none.
pub fn load_failed(phases: &[Phase], measured: &Phase) -> Option<LoadFailures> {
    let load = phases.iter().find(|phase| phase.name == "load" && phase.name != measured.name)?;
    let of = |outcome: Outcome| load.outcomes.get(outcome.name()).copied().unwrap_or(0);
    let all: u64 = load.outcomes.values().sum();
    let failures = Outcome::ALL.into_iter().filter(|one| *one != Outcome::Ok && of(*one) > 0);
    Some(LoadFailures {
        failed: all - of(Outcome::Ok).min(all),
        all,
        most: failures.max_by_key(|one| of(*one)),
    })
}

fn load(e: &Evidence<'_>) -> CheckFinding {
    let LoadFailures { failed, all, most } = e.observations.load_failed.filter(|found| found.failed > 0)?;
    let share = failed as f64 / all.max(1) as f64;
    let most = match most {
        Some(Outcome::Duplicate) => ", most because their records were there already".to_owned(),
        Some(most) => format!(", most as {}", most.name()),
        None => String::new(),
    };
    let text = format!(
        "{} of {} operations of the load ({:.3} %) failed{most}: the data are not those that were asked for",
        Thousands(failed),
        Thousands(all),
        share * 100.0
    );
    Some((if share > 0.05 { Trust::Invalid } else { Trust::Suspect }, text))
}

/// Silences as a whole.
struct Silent {
    /// All of them together, seconds.
    total_s: f64,
    longest: Silence,
    /// As long as an outage.
    outage: bool,
    trust: Trust,
}

/// Shortest silence that is an outage, seconds; of a run of less than ten seconds a fifth of it, but not less than a second, or
/// half a second where operations were lost.
const OUTAGE_S: f64 = 2.0;
/// Share of the time from which on outages leave no figure: where operations were lost, where users waited (a closed loop counts
/// each of them once, however long it lasts), and where all that was due has its wait in the response times.
const GONE: (f64, f64, f64) = (0.05, 0.10, 0.50);
/// Share of the time from which on silences are worth a doubt, and seconds of one that is in any run.
const DOUBTFUL: (f64, f64) = (0.01, 1.0);

/// Returns whether a silence of so many seconds says that the server was not there, and not that it was slow. `lost`: operations
/// were.
pub(crate) fn is_outage(phase: &Phase, length_s: f64, lost: bool) -> bool {
    let least_s = if lost { 0.5 } else { 1.0 };
    length_s >= OUTAGE_S.min(phase.seconds / 5.0).max(least_s)
}

fn silent(e: &Evidence<'_>) -> Option<Silent> {
    let all = &e.phase.silences;
    let longest = *all.iter().max_by(|one, other| one.length_s.total_cmp(&other.length_s))?;
    let total_s: f64 = all.iter().map(|one| one.length_s).sum();
    let lost = [Outcome::Disconnected, Outcome::Unreachable, Outcome::TimedOut];
    let lost = lost.iter().any(|outcome| e.totals.ended[*outcome as usize] > 0);
    let (share, outage) = (total_s / e.phase.seconds, is_outage(e.phase, longest.length_s, lost));
    let gone = match (lost, e.think_ns) {
        (true, _) => GONE.0,
        (false, Some(_)) => GONE.1,
        (false, None) => GONE.2,
    };
    let trust = match outage && share > gone {
        true => Trust::Invalid,
        false if share >= DOUBTFUL.0 || longest.length_s >= DOUBTFUL.1 => Trust::Suspect,
        false => Trust::Valid,
    };
    Some(Silent { total_s, longest, outage, trust })
}

/// A server that did not answer for a part of the run: the few operations that failed do not say for how long.
fn gone(e: &Evidence<'_>, silent: &Silent) -> (Trust, String) {
    let tenths = |s: f64| if s < 1.0 { (s * 1e2).round() / 1e2 } else { (s * 10.0).round() / 10.0 };
    let Silence { from_s, length_s } = silent.longest;
    let more = match e.phase.silences.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let text = format!(
        "nothing succeeded for {} of {} s measured ({} to {} s{more}) while operations waited: whatever the share of failed \
         operations says, users wait instead of failing",
        tenths(silent.total_s),
        tenths(e.phase.seconds),
        tenths(from_s),
        tenths(from_s + length_s),
    );
    (silent.trust, text)
}

/// Least growth of a queue over the run, seconds of waiting, that is worth a word.
const GROWTH_S: f64 = 0.001;

/// An open loop whose queue grows from beginning to end: a little more is due than is done.
fn overload(e: &Evidence<'_>) -> CheckFinding {
    let offered = e.phase.offered.filter(|offered| *offered > 0.0)?;
    let (backlog, response) = (&e.observations.backlog, &e.observations.response_s);
    let quarter = backlog.len() / 4;
    let parts = |all: &[f64]| -> Option<Vec<f64>> {
        let quarters: Vec<f64> = all.chunks_exact(quarter).take(4).map(mean).collect();
        let grows = quarters.windows(2).all(|pair| pair[1] > pair[0]) && quarters[3] > 2.0 * quarters[0];
        grows.then_some(quarters)
    };
    let rises = |all: &[f64]| estimate_trend(all).is_some_and(|trend| trend.p < 0.01 && trend.slope > 0.0);
    if backlog.len() != response.len() || !rises(backlog) || !rises(response) {
        return None;
    }
    let (queued, waited) = (parts(backlog)?, parts(response)?);
    // The queue at the end must be worth a wait that is felt, beyond what chance queues at a rate that is kept.
    let enough = waited[3] - waited[0] > GROWTH_S && queued[3] > e.phase.client.users as f64;
    enough.then(|| {
        let ns = |s: f64| ShownLatency((s * 1e9) as u64);
        let text = format!(
            "the queue grows: of {}/s that are due {}/s are done; from the first quarter of the run to the last the mean \
             response time rises from {} to {} and the backlog from {:.0} to {:.0}: response times say how long the run was; \
             lower --rate",
            Rate(offered),
            Rate(e.phase.throughput),
            ns(waited[0]),
            ns(waited[3]),
            queued[0],
            queued[3]
        );
        (Trust::Suspect, text)
    })
}

fn keys(e: &Evidence<'_>) -> CheckFinding {
    let (distinct, records) = e.observations.keys?;
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

/// A mix that is further off than this is another one.
const MIX: f64 = 0.02;

fn mix(e: &Evidence<'_>) -> CheckFinding {
    let arrivals = e.totals.arrivals as f64;
    if e.totals.arrivals < 1_000 || e.totals.count_failed() as f64 > arrivals * 0.01 || e.interrupted {
        return None;
    }
    let done = |metric: usize| {
        e.totals.outcomes.get(metric).map(|counts| counts.iter().sum::<u64>() as f64 / arrivals)
    };
    let (name, asked, done) = e.observations.mix.iter().enumerate().find_map(|(metric, (name, asked))| {
        let done = done(metric)?;
        // Shares that are drawn scatter.
        let scatter = 5.0 * (asked * (1.0 - asked).max(0.0) / arrivals).sqrt();
        ((done - asked).abs() > MIX.max(scatter)).then_some((name, asked, done))
    })?;
    Some((
        Trust::Suspect,
        format!(
            "{:.1} % of the operations are {name}, where {:.1} % were asked for: check the proportions, which should add up to 1",
            done * 100.0,
            asked * 100.0
        ),
    ))
}

/// Operations that read no page of a disk by their nature.
const BLIND: [&str; 5] = ["INSERT", "DELETE", CLEANUP, BULK, "TOPOLOGY"];

/// Fewer disk reads than one for so many operations are none.
const READS: f64 = 0.001;
/// Bytes of a page: the least that is read.
const PAGE: f64 = 4_096.0;

fn cache(e: &Evidence<'_>) -> CheckFinding {
    let seen = e.phase.monitor.as_ref()?;
    let host = seen.host.as_ref()?;
    // The disk that was watched is the server's only where both are on one host.
    let local =
        seen.server.as_ref().is_some_and(|server| !server.in_pods) || e.phase.client.busy_share.is_none();
    let reads = e.phase.metrics.iter().any(|metric| !BLIND.contains(&metric.name.as_str()));
    if !e.observations.on_disk || !local || !reads || e.totals.count_ok() < 1_000 {
        return None;
    }
    // Others may read from the disk, too: what the store's own processes have fetched is no less than this many pages.
    let own = seen.server.as_ref().or(seen.workers.as_ref()).and_then(|one| one.read_bytes_per_s);
    let pages = own.map_or(f64::INFINITY, |bytes| bytes / PAGE);
    let reads_per_s = host.disk.as_ref().map_or(0.0, |disk| disk.reads_per_s).min(pages);
    if reads_per_s >= READS * e.phase.throughput {
        return None;
    }
    let none = "hardly a read reached a disk";
    Some(match e.observations.data {
        Some((data, memory)) if data > memory => (
            Trust::Suspect,
            format!(
                "{none}, although {} of data do not fit into {} of memory: the operations ask for a part that does; check \
                 requestdistribution and insertcount, or load more records",
                BinaryBytes(data as f64),
                BinaryBytes(memory as f64)
            ),
        ),
        Some((data, memory)) => (
            Trust::Valid,
            format!(
                "{none}: all {} of data fit into {} of memory, so the cache was measured",
                BinaryBytes(data as f64),
                BinaryBytes(memory as f64)
            ),
        ),
        None => {
            (Trust::Valid, format!("{none}: what was asked for lies in memory, so the cache was measured"))
        }
    })
}

fn clock_jump(e: &Evidence<'_>) -> CheckFinding {
    let skew = e.observations.clock_skew_s;
    (skew.abs() > SKEW_S).then(|| {
        (
            Trust::Suspect,
            format!("the wall clock was set by {skew:+.2} s during the run: monitors and other hosts are out of step"),
        )
    })
}

fn monitors(e: &Evidence<'_>) -> CheckFinding {
    // The host of a target elsewhere is not watched: what monitors cost is known as long as they look on.
    let looked =
        e.phase.monitor.as_ref().is_some_and(|seen| seen.host.is_some() || seen.cost_share.is_some());
    // Shorter than two samples there is nothing to see.
    if e.observations.watched && !looked && e.phase.seconds >= 3.0 {
        return Some((
            Trust::Suspect,
            "monitors were lost during the run: resources are not known".to_owned(),
        ));
    }
    let silent = &e.observations.silent;
    (!silent.is_empty()).then(|| {
        let message = format!(
            "monitors fell silent during the run ({}): what they said is of a part of it; events.jsonl says why",
            silent.join(", ")
        );
        // A server that was killed on purpose says nothing either.
        let asked = e.observations.faults.iter().any(|one| one.fault.ends_with("server") || one.fault.contains("server "));
        (if asked { Trust::Valid } else { Trust::Suspect }, message)
    })
}

fn environment(e: &Evidence<'_>) -> CheckFinding {
    let first = e.observations.changed.first()?;
    let more = e.observations.changed.len() - 1;
    let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some((Trust::Suspect, format!("the environment changed during the run: {first}{others}")))
}

fn target(e: &Evidence<'_>) -> CheckFinding {
    let missing = e.observations.missing.as_ref()?;
    Some((
        Trust::Suspect,
        format!(
            "members or routers did not answer before the run and were left out until they did: {missing}"
        ),
    ))
}

#[cfg(test)]
#[path = "observations_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rates_tests.rs"]
mod rates;
