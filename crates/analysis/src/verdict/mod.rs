//! Trust in a result: every check with its threshold, what was found and what to do.

mod checks;
mod client;
mod counts;
mod evidence;
mod hosts;
pub(crate) mod observations;
mod steadiness;

pub use evidence::{Evidence, ResponseTime, RunObservations};
pub use steadiness::{IntervalFigures, judge_steadiness, steadiness_of_responses};

use crate::between_requests::between_requests_ns;
use checks::{CheckFinding, Checks, EVERY, FIGURES, LATENCIES, MEDIAN, TAIL, THROUGHPUT};
use dyno_record::Totals;
use dyno_rundir::schema::{Trust, Verdict};
use dyno_types::Outcome;
use dyno_types::units::Rate;

/// Name of the check of the client's share of response times and of throughput.
const CLIENT_SHARE: &str = "client_share";

/// Makes every check.
pub fn judge_run(e: &Evidence<'_>) -> Verdict {
    let mut checks = Checks::default();
    checks.record_check("invariants", EVERY, counts::check_invariants(e));
    checks.record_check("completed", EVERY, counts::check_completion(e));
    checks.record_check("workers", EVERY, counts::check_workers(e));
    checks.record_check("samples", EVERY, counts::check_any_success(e));
    checks.record_check(
        "samples",
        if e.phase.seconds < 1.0 { FIGURES } else { LATENCIES },
        counts::check_sample_count(e),
    );
    checks.record_check("data", EVERY, counts::check_data(e));
    checks.record_check("errors", EVERY, counts::check_errors(e));
    if e.wire {
        checks.record_check("protocol", EVERY, counts::check_protocol(e));
        checks.record_check("reconnects", TAIL, counts::check_reconnects(e));
    }
    if let Some(replay) = &e.phase.replay {
        checks.record_check("recording", EVERY, replay.unread.clone().map(|why| (Trust::Invalid, why)));
        checks.record_check("divergence", EVERY, counts::check_divergence(replay));
        checks.record_check("cross_slot", EVERY, counts::check_cross_slot(replay));
        checks.record_check("against", EVERY, counts::check_against(replay));
    }
    checks.record_check("beside", EVERY, counts::check_beside(e));
    checks.record_check("found", EVERY, counts::check_not_found(e));
    checks.record_check("drops", EVERY, counts::check_drops(e));
    if e.phase.client.connected.is_some() {
        checks.record_check("connections", FIGURES, counts::check_connections(e));
    }
    checks.record_check("offered_rate", FIGURES, counts::offered_rate(e));
    if !counts::too_short(e) {
        checks.record_lag_check(
            CLIENT_SHARE,
            |percentile| client::client_share(e, percentile),
            &client::client_share_advice(e),
        );
        for one in &e.responses {
            let median = ["min", "p50"].contains(&one.statistic.as_str());
            let affected = if median { MEDIAN } else { TAIL };
            let found = client::client_share_of(e, one);
            checks.check_more(CLIENT_SHARE, affected, found, &client::client_share_advice(e));
        }
        checks.record_lag_check(
            "receive_lag",
            |percentile| client::receive_lag(e, percentile),
            &client::receive_advice(e),
        );
        checks.record_check("client_cpu", client::slowed_by_client(e), client::client_cpu(e));
        checks.record_check("littles_law", FIGURES, littles_law(e));
    }
    // A share of the users' time, which needs no percentile.
    if e.phase.seconds >= 1.0 {
        checks.record_check(CLIENT_SHARE, THROUGHPUT, client::client_share_of_throughput(e));
    }
    if e.observations.counted {
        checks.record_check("idle_users", THROUGHPUT, idle_users(e));
    }
    checks.record_check("pinning", TAIL, client::check_pinning(e));
    hosts::run_host_checks(e, &mut checks);
    observations::run_observation_checks(e, &mut checks);
    hosts::checks_of_placement(e, &mut checks);
    Verdict::new(checks.reasons, checks.names, &e.asked)
}

/// Share of the users' time by which Little's law may be missed, and which they may have nothing to do for.
const USERS: f64 = 0.02;

/// Users = throughput x (service + turnaround + think), on the engine's own figures.
fn littles_law(e: &Evidence<'_>) -> CheckFinding {
    let (found, users) = users_found(e).filter(|_| e.totals.count_ok() >= 1_000)?;
    // Those who have done their share are at work no more: that has a check of its own.
    let ending = e.observations.busy_rate.is_some() && found < users;
    let error = (found - users).abs() / users;
    (error > USERS && !ending).then(|| {
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

/// Users of a load that ends by the number of its operations, of which none was left for them.
fn idle_users(e: &Evidence<'_>) -> CheckFinding {
    let busy_rate = e.observations.busy_rate?;
    let (found, users) = users_found(e)?;
    let idle = 1.0 - found / users;
    (idle > USERS).then(|| {
        (
            Trust::Suspect,
            format!(
                "users had nothing left to do for {:.1} % of their time, because the operations ran out: {}/s until the \
                 first of them was idle; ask for more operations, or for a time (--duration)",
                idle * 100.0,
                Rate(busy_rate)
            ),
        )
    })
}

/// The users of a closed loop by Little's law, and those that there were.
fn users_found(e: &Evidence<'_>) -> Option<(f64, f64)> {
    let think_ns = e.think_ns?;
    if e.totals.count_failed() > 0 || e.interrupted {
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
    Some((users_by_littles_law(e.totals, think_ns, e.phase.seconds, &names)?, users)).filter(|_| users > 0.0)
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
    let thinking = u128::from(think_ns) * u128::from(totals.count_ok());
    let between = between_requests_ns(totals, names);
    let recorded = (service + totals.turnaround.sum_ns() + thinking) as f64 + between;
    // Times are those of the arrivals: where a boundary of the phase lies in one, its part on the other side is set right.
    Some((recorded + totals.clipped_ns as f64) / (seconds * 1e9))
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod limits;
