//! A run as operational analysis sees it: users, throughput, times, and what each resource did meanwhile.

use crate::between_requests::between_requests_ns;
use dyno_record::{MergedSlot, Totals};
use dyno_rundir::schema::{Claim, Phase, Trust};
use dyno_rundir::{RunDir, adds_up, unit_name};
use serde::Serialize;

/// Use of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Use {
    /// Name: `server CPU`, `disk vda`.
    pub name: String,
    /// Servers that were busy on average (cores, operations under way).
    pub busy: f64,
    /// Servers it has; `None` where that is not known.
    pub servers: Option<f64>,
    /// True if it has more servers on a host with more cores.
    pub grows: bool,
}

/// A measured phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observed {
    /// Name of several operations: all figures here are of such.
    pub unit: &'static str,
    /// Users with one operation each (closed loop); `None` in the open loop.
    pub users: Option<f64>,
    /// The same without what each has under way beside (`pipeline`, batches): a sweep over users varies these alone.
    #[serde(skip)]
    pub connections: Option<f64>,
    /// Pause of a user, seconds.
    pub think_s: f64,
    /// Scheduled arrivals per second (open loop).
    pub offered: Option<f64>,
    /// The rate that was asked for, operations per second, where it is one and the same all the time.
    pub rate: Option<f64>,
    /// True if arrivals were evenly spaced (open loop).
    pub even: bool,
    /// True if the queue of what was due grew from beginning to end, by the run's verdict.
    pub grows: bool,
    /// True if the run's verdict calls its throughput or its usual times invalid: it is no point of a sweep over users.
    pub invalid: bool,
    /// Mean time from the moment an operation was due to its completion, of successful operations (open loop), seconds.
    pub due_s: Option<f64>,
    /// Length, seconds.
    pub seconds: f64,
    /// The length that was asked for, seconds, where the run ends by the clock.
    pub planned_s: Option<f64>,
    /// Arrivals and completions of any outcome.
    pub flow: (u64, u64),
    /// Successful operations per second.
    pub throughput: f64,
    /// Mean time from sending to completion of successful operations, seconds.
    pub response_s: f64,
    /// Mean time from completion to the next sending of a user, without thinking, seconds: the client's own part.
    pub client_s: f64,
    /// Users that times and throughput imply, counted over the same operations.
    pub implied_users: Option<f64>,
    /// Failed operations.
    pub failed: u64,
    /// Resources.
    pub uses: Vec<Use>,
    /// Other activity a second, by name: `disk reads`, `database commands`, `network bytes`.
    pub rates: Vec<(String, f64)>,
}

/// Observes a run's measured phase; `None` without a summary or a successful operation.
pub fn observe_run(run: &RunDir) -> Option<Observed> {
    let phase = run.summary.as_ref()?.measured_phase()?;
    let recorded = run.phases.iter().find(|recorded| recorded.name == phase.name)?;
    let totals = &recorded.totals;
    if totals.count_ok() == 0 || phase.seconds <= 0.0 {
        return None;
    }
    let names = run.run.metrics.get(&phase.name)?;
    let client = &phase.client;
    let closed = phase.offered.is_none();
    let users = (client.users * client.pipeline * client.batch) as f64;
    let known_users = closed && users > 0.0;
    let think_s = client.think_us.unwrap_or(0.0) / 1e6;
    // Imported results may have means without histograms.
    let by_means = if slots(totals, names).next().is_none() { service_of_summary(phase) } else { None };
    // Seconds of imported results may count what their means do not.
    let (service_ns, count) = by_means.unwrap_or_else(|| (service_ns(totals, names), totals.count_ok()));
    // An imported ladder may have users and throughput alone: what they imply is their response time, and no law is tested.
    let by_law = service_ns <= 0.0 && known_users && run.run.facts.contains_key("imported");
    let (service_ns, count) = match by_law {
        true => (users / phase.throughput * 1e9, 1),
        false => (service_ns, count),
    };
    if service_ns <= 0.0 {
        return None;
    }
    let turns = totals.turnaround.count();
    Some(Observed {
        unit: unit_name(names),
        users: known_users.then_some(users),
        connections: known_users.then_some(client.users as f64),
        think_s,
        offered: phase.offered,
        rate: phase.offered.and_then(|_| asked_rate(run)),
        grows: grows(run),
        invalid: is_invalid(run),
        even: setting(run, "phases.measure.arrivals") == Some("constant"),
        due_s: phase.offered.and_then(|_| due_s(totals, names)).or_else(|| due_of_summary(phase, totals)),
        seconds: phase.seconds,
        planned_s: planned_s(run, phase),
        flow: (totals.arrivals, totals.ended_total()),
        throughput: phase.throughput,
        response_s: service_ns / count.max(1) as f64 / 1e9,
        client_s: if turns > 0 { totals.turnaround.sum_ns() as f64 / turns as f64 / 1e9 } else { 0.0 },
        implied_users: (closed && !by_law)
            .then(|| {
                // The rate is that of the time in which it is known, which may be shorter than the phase.
                if let Some((sum_ns, count)) = by_means {
                    return Some((sum_ns / count.max(1) as f64 / 1e9 + think_s) * phase.throughput);
                }
                crate::users_by_littles_law(totals, (think_s * 1e9) as u64, phase.seconds, names)
            })
            .flatten(),
        failed: totals.count_failed(),
        uses: uses(run, phase),
        rates: rates(phase),
    })
}

/// Histograms of success whose times add up to those of operations.
fn slots<'a>(totals: &'a Totals, names: &'a [String]) -> impl Iterator<Item = &'a MergedSlot> {
    let own = move |name: &String| adds_up(names, name);
    names.iter().enumerate().filter(move |(_, name)| own(name)).filter_map(|(n, _)| totals.ok_slot(n))
}

/// Sum of service times of successful operations, from their first request to their last reply, nanoseconds.
fn service_ns(totals: &Totals, names: &[String]) -> f64 {
    slots(totals, names).map(|slot| slot.service.sum_ns() as f64).sum::<f64>()
        + between_requests_ns(totals, names)
}

/// Mean response time of operations from when they were due, seconds: requests of a script follow each other.
fn due_s(totals: &Totals, names: &[String]) -> Option<f64> {
    let sum: f64 = slots(totals, names).map(|slot| slot.response.sum_ns() as f64).sum();
    (sum > 0.0).then(|| sum / totals.count_ok() as f64 / 1e9)
}

fn is_invalid(run: &RunDir) -> bool {
    let claims = [Claim::Throughput, Claim::Median];
    run.summary.as_ref().is_some_and(|summary| summary.verdict.trust_in(&claims) == Trust::Invalid)
}

fn setting<'a>(run: &'a RunDir, key: &str) -> Option<&'a str> {
    run.run.settings.iter().find(|setting| setting.key == key).map(|setting| setting.value.as_str())
}

fn planned_s(run: &RunDir, phase: &Phase) -> Option<f64> {
    run.run.plans.get(&phase.name)?.seconds
}

fn grows(run: &RunDir) -> bool {
    run.summary.as_ref().is_some_and(|summary| summary.verdict.speaks_against("overload"))
}

/// The rate that a run was asked to keep: of all pairs of servers and clients, each of which is asked for it.
fn asked_rate(run: &RunDir) -> Option<f64> {
    let pairs = setting(run, "server.instances").and_then(|count| count.parse().ok()).unwrap_or(1.0);
    match setting(run, "phases.measure.rate") {
        Some(rate) => dyno_types::units::parse_rate(rate).ok().map(|rate| rate * pairs),
        // An imported result says what its target was, and nothing more.
        None => {
            run.summary.as_ref()?.measured_phase()?.offered.filter(|_| run.run.facts.contains_key("imported"))
        }
    }
}

/// Observes a run as [`observe_run`] does, and also one at a rate at which nothing succeeded: the rate, and that nothing was
/// done.
pub fn observe_rate(run: &RunDir) -> Option<Observed> {
    observe_run(run).or_else(|| {
        let phase = run.summary.as_ref()?.measured_phase()?;
        let recorded = run.phases.iter().find(|recorded| recorded.name == phase.name)?;
        let (rate, totals) = (asked_rate(run)?, &recorded.totals);
        (totals.count_ok() == 0 && phase.offered > Some(0.0)).then(|| Observed {
            unit: run.run.metrics.get(&phase.name).map_or("operations", |names| unit_name(names)),
            users: None,
            connections: None,
            think_s: 0.0,
            offered: phase.offered,
            rate: Some(rate),
            grows: grows(run),
            invalid: is_invalid(run),
            even: setting(run, "phases.measure.arrivals") == Some("constant"),
            due_s: None,
            seconds: phase.seconds,
            planned_s: planned_s(run, phase),
            flow: (totals.arrivals, totals.ended_total()),
            throughput: 0.0,
            response_s: 0.0,
            client_s: 0.0,
            implied_users: None,
            failed: totals.count_failed(),
            uses: Vec::new(),
            rates: Vec::new(),
        })
    })
}

/// Mean response time from when operations were due, by the summary's means (open loop).
fn due_of_summary(phase: &Phase, totals: &Totals) -> Option<f64> {
    phase.offered?;
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let metrics = phase.metrics.iter().filter(|metric| adds_up(&names, &metric.name));
    let sum: Option<f64> =
        metrics.map(|metric| metric.response.as_ref().map(|one| one.mean_us * one.count as f64)).sum();
    sum.filter(|sum| *sum > 0.0).map(|sum| sum / totals.count_ok() as f64 / 1e6)
}

/// Returns the same by the summary's means, and the number of their operations; `None` where an operation has no mean.
fn service_of_summary(phase: &Phase) -> Option<(f64, u64)> {
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let metrics = phase.metrics.iter().filter(|metric| adds_up(&names, &metric.name));
    metrics.map(|metric| metric.service.as_ref()).try_fold((0.0, 0), |(sum, count), one| {
        one.map(|one| (sum + one.mean_us * 1e3 * one.count as f64, count + one.count))
    })
}

fn uses(run: &RunDir, phase: &Phase) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut add = |name: &str, busy: f64, servers: f64, grows: bool| {
        uses.push(Use { name: name.to_owned(), busy, servers: Some(servers), grows });
    };
    let client = &phase.client;
    let cores = run.environment.cores.len() as f64;
    if client.busy_share.is_some() {
        let busy = (client.user_cpu_s + client.system_cpu_s) / phase.seconds;
        add("client CPU", busy, client.threads as f64, false);
    }
    let Some(seen) = &phase.monitor else { return uses };
    if let Some(server) = &seen.server {
        // A server of one thread has one core, however many the host has.
        let single = run.run.database.starts_with("Redis") || run.run.database.starts_with("Valkey");
        let io_threads = run.run.facts.get("io_threads_active").is_some_and(|value| value != "0");
        let one = single && !io_threads;
        // The cores of a pod's node are not known.
        if one || !server.in_pods {
            add("server CPU", server.cpu_cores, if one { 1.0 } else { cores }, !one);
        }
    }
    if let Some(workers) = seen.workers.as_ref().filter(|_| client.busy_share.is_none()) {
        add("worker CPU", workers.cpu_cores, cores, true);
    }
    if let Some(host) = &seen.host {
        add("host CPU", host.cpu_busy_share * cores, cores, true);
        if let Some(disk) = &host.disk {
            // One server at least: a disk that does several things at once is busy, and has room all the same.
            add(&format!("disk {}", disk.name), disk.busy_share, 1.0, false);
        }
    }
    uses
}

fn rates(phase: &Phase) -> Vec<(String, f64)> {
    let mut rates = Vec::new();
    let Some(seen) = &phase.monitor else { return rates };
    if let Some(per_s) = seen.database.as_ref().and_then(|database| database.operations_per_s) {
        rates.push(("database commands".to_owned(), per_s));
    }
    if let Some(host) = &seen.host {
        if let Some(disk) = &host.disk {
            rates.push((format!("reads of {}", disk.name), disk.reads_per_s));
            rates.push((format!("writes of {}", disk.name), disk.writes_per_s));
        }
        rates.push((
            "network bytes".into(),
            host.network_received_bytes_per_s + host.network_sent_bytes_per_s,
        ));
    }
    rates.retain(|(_, per_s)| *per_s > 0.0);
    rates
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
