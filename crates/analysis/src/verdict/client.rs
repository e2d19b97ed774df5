//! Effects of the client: lags, CPU, pinning.

use super::checks::{CheckFinding, FIGURES, LATENCIES, TAIL, THROUGHPUT};
use super::counts::keeps_rate;
use super::evidence::{Evidence, ResponseTime};
use super::hosts;
use dyno_record::Buckets;
use dyno_rundir::schema::{Claim, Trust};
use dyno_types::units::ShownLatency;

/// The least percentile in nanoseconds over the metrics with a twentieth of the requests or more, of service or response time: a
/// lag delays all of them alike, and is judged beside those that it delays most.
fn least_ns(e: &Evidence<'_>, service: bool, percentile: f64) -> Option<u64> {
    let slots = || e.totals.slots.iter().step_by(2).flatten();
    let all: u64 = slots().map(|slot| slot.service.count()).sum();
    let usual = slots().filter(|slot| slot.service.count() * 20 >= all);
    usual.map(|s| if service { &s.service } else { &s.response }).map(|b| b.percentile_ns(percentile)).min()
}

/// Checks the client's share of response times: a percentile less the same one of the server's share. A lag delays all metrics
/// alike; the one that it spoils most is told.
pub(crate) fn client_share(e: &Evidence<'_>, percentile: f64) -> CheckFinding {
    let shares =
        Some(usual_shares(e)).filter(|all| !all.is_empty() && !e.totals.stamps.hides_arrivals(percentile));
    let Some(shares) = shares else { return unexplained_lag(e, percentile) };
    most_spoiled(&shares, &format!("p{percentile}"), |times| times.percentile_ns(percentile))
}

/// The same of the response time that a threshold is on: `mean`, `max` or a percentile of a metric, `all` for every one.
pub(crate) fn client_share_of(
    e: &Evidence<'_>,
    ResponseTime { statistic, metric }: &ResponseTime,
) -> CheckFinding {
    let names = e.observations.mix.iter().map(|(name, _)| name);
    let wanted = names.enumerate().filter(|(_, name)| metric == "all" || name.eq_ignore_ascii_case(metric));
    let shares: Vec<Shares<'_>> = wanted.filter_map(|(number, _)| shares(e, number)).collect();
    let percentile = match statistic.as_str() {
        "mean" => return most_spoiled(&shares, statistic, |times| times.mean_ns() as u64),
        "min" => 0.0,
        "max" => 100.0,
        percentile => percentile.trim_start_matches('p').parse().ok()?,
    };
    let known = !e.totals.stamps.hides_arrivals(percentile);
    most_spoiled(&shares, statistic, |times| times.percentile_ns(percentile)).filter(|_| known)
}

/// Response times, and the server's share of them.
type Shares<'a> = (&'a Buckets, &'a Buckets);

fn most_spoiled(shares: &[Shares<'_>], what: &str, figure: impl Fn(&Buckets) -> u64) -> CheckFinding {
    let of = |(response, server): &Shares<'_>| {
        let (all, own) = (figure(response), figure(server));
        (all.saturating_sub(own), all)
    };
    let (client, all) = shares.iter().map(of).max_by_key(|(client, all)| client * 1_000 / (*all).max(1))?;
    let trust = spoiled(client, all)?;
    let text = format!(
        "of a response time {what} of {} {} are the client's own, the server's share is {}",
        ShownLatency(all),
        ShownLatency(client),
        ShownLatency(all - client)
    );
    Some((trust, text))
}

/// Shares of a metric; `None` where the server's was not recorded.
fn shares<'a>(e: &'a Evidence<'_>, metric: usize) -> Option<Shares<'a>> {
    let slot = e.totals.ok_slot(metric)?;
    let closed = e.think_ns.is_some();
    let server = e.totals.server_share(metric).or_else(|| closed.then_some(&slot.service))?;
    Some((&slot.response, server))
}

/// Shares of the metrics with a twentieth of the requests or more.
fn usual_shares<'a>(e: &'a Evidence<'_>) -> Vec<Shares<'a>> {
    let count = |metric: usize| e.totals.ok_slot(metric).map_or(0, |slot| slot.service.count());
    let metrics = 0..e.totals.outcomes.len();
    let all: u64 = metrics.clone().map(count).sum();
    metrics.filter(|&metric| count(metric) * 20 >= all).filter_map(|metric| shares(e, metric)).collect()
}

/// Checks how late sending was where the server's share of response times is not known.
fn unexplained_lag(e: &Evidence<'_>, percentile: f64) -> CheckFinding {
    if e.totals.lag.count() == 0 {
        return None;
    }
    let lag = e.totals.lag.percentile_ns(percentile);
    compare_lag(lag, least_ns(e, false, percentile)?, percentile, ["schedule lag", "response time"])
}

/// A turn of the client that takes this long is a pause, nanoseconds.
const LONG_NS: u64 = 10_000_000;

/// Checks the client's share of the time of users, which throughput waits for. In an open loop it does not.
pub(crate) fn client_share_of_throughput(e: &Evidence<'_>) -> CheckFinding {
    if e.wire && e.think_ns.is_none() {
        return None;
    }
    // Whom the end of the run finds waiting for a client that stands still has not turned: no turn tells of that.
    let both = [stood_still(e), waited(e).filter(|_| e.wire)];
    both.into_iter().flatten().max_by_key(|(trust, _)| *trust)
}

/// Turns of the client that users waited for.
fn waited(e: &Evidence<'_>) -> CheckFinding {
    let turns = &e.totals.turnaround;
    let client = &e.phase.client;
    let users = (client.users * client.pipeline * client.batch) as f64;
    let mean_ns = if turns.count() > 0 { turns.mean_ns() } else { 0.0 };
    let share = turns.sum_ns() as f64 / (users * e.phase.seconds * 1e9);
    if !share.is_finite() {
        return None;
    }
    // However many operations a pause is a part of, it is none of their usual times.
    let paused = turns.iter().filter_map(|(bucket, count)| {
        let ns = dyno_record::bucket_low(bucket) * turns.bucket_scale().unit_ns();
        (ns >= LONG_NS).then_some(ns as f64 * count as f64)
    });
    let paused = paused.sum::<f64>() / (users * e.phase.seconds * 1e9);
    let trust = match (share, mean_ns) {
        (share, mean_ns) if share > 0.10 && (mean_ns > 200_000.0 || paused > 0.10) => Trust::Invalid,
        (share, mean_ns) if share > 0.02 && (mean_ns > 50_000.0 || paused > 0.02) => Trust::Suspect,
        _ => return None,
    };
    let text = format!(
        "users waited for the client for {:.0} % of their time, {} for each operation: {}",
        share * 100.0,
        ShownLatency(mean_ns as u64),
        receive_advice(e)
    );
    Some((trust, text))
}

/// Pauses of the client. Users of an embedded store are threads of the client: a pause is none of their turns, but a part of the
/// store's times.
fn stood_still(e: &Evidence<'_>) -> CheckFinding {
    let total_s: f64 = e.phase.pauses.iter().map(|pause| pause.length_s).sum();
    let longest = e.phase.pauses.iter().max_by(|one, other| one.length_s.total_cmp(&other.length_s))?;
    let trust = match total_s / e.phase.seconds {
        share if share > 0.10 => Trust::Invalid,
        share if share > 0.02 => Trust::Suspect,
        _ => return None,
    };
    let text = format!(
        "the client itself did not run for {total_s:.1} of {:.1} s (at {:.1} s for {:.1} s): it was stopped, or its host had no \
         CPU time for it",
        e.phase.seconds, longest.from_s, longest.length_s
    );
    Some((trust, text))
}

pub(crate) fn client_share_advice(e: &Evidence<'_>) -> String {
    if e.phase.offered.is_some() || e.think_ns.is_none() {
        return schedule_advice(e);
    }
    receive_advice(e)
}

fn schedule_advice(e: &Evidence<'_>) -> String {
    let used_up = hosts::used_up_advice(e);
    // Less work does not help who sleeps.
    let idle = e.phase.client.busy_share.map(|busy| 1.0 - busy).filter(|idle| *idle > 0.5);
    let Some(idle) = idle else {
        return used_up.unwrap_or_else(|| "use fewer operations per second or more load threads".to_owned());
    };
    let what = hosts::lateness_advice(e).or(used_up).unwrap_or_else(|| {
        "give the server cores of its own and let them spin, or use a host whose cores nothing else needs"
            .to_owned()
    });
    format!(
        "the load threads were idle {:.0} % of the time, so it is the host that wakes them late: {what}",
        idle * 100.0
    )
}

/// Returns whether service times end by the kernel's clock.
fn by_kernel(e: &Evidence<'_>) -> bool {
    e.totals.stamps.by_kernel()
}

pub(crate) fn receive_lag(e: &Evidence<'_>, percentile: f64) -> CheckFinding {
    // By the kernel's clock it is part of hardly a service time.
    if e.totals.receive_lag.count() == 0 || by_kernel(e) {
        return None;
    }
    let lag = e.totals.receive_lag.percentile_ns(percentile);
    compare_lag(lag, least_ns(e, true, percentile)?, percentile, ["receive lag", "service time"])
}

pub(crate) fn receive_advice(e: &Evidence<'_>) -> String {
    let client = &e.phase.client;
    if let Some(advice) = hosts::others_advice(e).or_else(|| hosts::used_up_advice(e)) {
        return advice;
    }
    let advice = match client.users * client.pipeline {
        // No advice on users or threads: one user cannot be fewer, and more threads have nothing to do.
        1 => "the client is woken late: give its load thread a core that nothing else needs",
        _ if e.phase.offered.is_some() => {
            "the client handles replies late: use a lower rate or more load threads"
        }
        _ => {
            "the client handles replies late: use fewer users, more load threads or an open loop below saturation"
        }
    };
    advice.to_owned()
}

/// Trust in a time of `of` nanoseconds of which so many are the client's; `None` where they are few.
fn spoiled(lag: u64, of: u64) -> Option<Trust> {
    if lag < 50_000 || lag * 10 <= of {
        return None;
    }
    Some(if lag * 2 > of && lag >= 200_000 { Trust::Invalid } else { Trust::Suspect })
}

/// A lag is suspect above 10 % of the latency it is part of and invalid above 50 %, each at the same percentile: p99 for the
/// tail, p50 for the median. Below 50 us it is noise, and below 200 us no more than suspect: waking a sleeping core takes that
/// long on some virtual machines.
pub(crate) fn compare_lag(lag: u64, of: u64, percentile: f64, [name, of_name]: [&str; 2]) -> CheckFinding {
    let trust = spoiled(lag, of)?;
    let (lag, of) = (ShownLatency(lag), ShownLatency(of));
    Some((trust, format!("{name} p{percentile} is {lag} beside a {of_name} p{percentile} of {of}")))
}

/// Returns the claims that a busy client affects. Users who wait for it do less; a rate that is kept is kept. With
/// the kernel's stamps service times do not include its delays, but the tail of response times does.
pub(crate) fn slowed_by_client(e: &Evidence<'_>) -> &'static [Claim] {
    match (keeps_rate(e), by_kernel(e)) {
        (false, true) => THROUGHPUT,
        (false, false) => FIGURES,
        (true, true) => TAIL,
        (true, false) => LATENCIES,
    }
}

pub(crate) fn client_cpu(e: &Evidence<'_>) -> CheckFinding {
    let share = e.phase.client.busy_share?;
    if share <= 0.85 {
        return hosts::client_host_used_up(e);
    }
    Some({
        (
            Trust::Suspect,
            format!(
                "load threads were busy {:.0} % of the time: the client may be the bottleneck; {}",
                share * 100.0,
                match e.phase.client.users {
                    1 => "one user has no more than one thread, so its times are the client's own in part",
                    _ =>
                        "lower the load, or give it more cores (--threads where some are left, or a host of its own)",
                }
            ),
        )
    })
}

pub(crate) fn check_pinning(e: &Evidence<'_>) -> CheckFinding {
    (!e.phase.client.pinned).then(|| {
        (
            Trust::Suspect,
            "load threads could not be pinned to their cores: --no-pin says so on purpose".to_owned(),
        )
    })
}
