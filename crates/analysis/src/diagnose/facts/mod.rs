//! A run directory as named figures. What was not measured has no name here.

pub(super) mod change;
pub(super) mod database;
mod fall;
pub(super) mod figures;

pub use figures::Facts;

use crate::series::mean;
use crate::verdict::observations::is_outage;
use dyno_record::Stamps;
use dyno_rundir::RunDir;
use dyno_rundir::monitor::Recording;
use dyno_rundir::schema::{HostRole, Phase, PhaseHost};
use dyno_types::Outcome;
use dyno_types::metric::CLEANUP;
use dyno_types::mongod::MongodVersion;
use dyno_types::stats::median;

/// Products whose name begins with this are mongod or mongos; a version follows.
pub(super) const MONGODB: &str = "MongoDB ";

/// Products that do their work in one thread.
const SINGLE: [&str; 2] = ["Redis", "Valkey"];

/// The measured phase in figures.
pub fn collect_facts(run: &RunDir, recording: Option<&Recording>) -> Facts {
    let mut facts = Facts::default();
    let Some(phase) = run.summary.as_ref().and_then(|summary| summary.measured_phase()) else { return facts };
    base(&mut facts, run, phase);
    gone(&mut facts, run, phase);
    let boundaries = measured_boundaries(run, phase);
    match recording.zip(boundaries) {
        Some((recording, window)) => between(&mut facts, run, phase, recording, window),
        None => summarised(&mut facts, run, phase),
    }
    let disk = phase.monitor.as_ref().and_then(|seen| seen.host.as_ref()?.disk.as_ref());
    let seen = recording
        .zip(boundaries)
        .zip(disk)
        .map(|((recording, (from, _)), disk)| (recording, disk.name.as_str(), from));
    fall::add_fall_facts(&mut facts, run, seen);
    facts
}

/// When the measured phase began and ended (Unix, milliseconds), if that was recorded.
pub(super) fn measured_boundaries(run: &RunDir, phase: &Phase) -> Option<(f64, f64)> {
    let recorded = run.phases.iter().find(|recorded| recorded.name == phase.name)?;
    run.phase_boundaries(recorded).ok().flatten()
}

/// Facts of the load.
fn base(facts: &mut Facts, run: &RunDir, phase: &Phase) {
    client(facts, run, phase);
    let adjusting = mongod_version(run).filter(|version| version.adjusts_tickets());
    facts.set("tickets.adjusted_by", adjusting.map(|version| f64::from(version.major)));
}

/// Facts of what was watched in a part of the phase.
fn between(facts: &mut Facts, run: &RunDir, phase: &Phase, recording: &Recording, window: (f64, f64)) {
    summarised(facts, run, phase);
    watched(facts, recording, phase, window);
    database::add_database_facts(facts, recording, phase.throughput, window);
}

/// The version of the run's mongod or mongos; `None` for other servers, also those that speak its protocol.
pub(super) fn mongod_version(run: &RunDir) -> Option<MongodVersion> {
    MongodVersion::parse(run.run.database.strip_prefix(MONGODB)?)
}

fn client(facts: &mut Facts, run: &RunDir, phase: &Phase) {
    facts.set("client.busy", phase.client.busy_share);
    let service = |quantile: &str| -> Option<f64> {
        let of = |metric: &dyno_rundir::schema::Metric| {
            metric.service.as_ref()?.percentiles_us.get(quantile).copied().flatten()
        };
        phase.metrics.iter().filter(|metric| metric.name != CLEANUP).filter_map(of).reduce(f64::max)
    };
    // By the kernel's clock it is no part of a service time.
    let by_kernel = phase.stamps.as_ref().is_some_and(|found| {
        Stamps { kernel: found.kernel, client: found.client, ..Stamps::default() }.by_kernel()
    });
    let lag = phase
        .receive_lag
        .as_ref()
        .filter(|_| !by_kernel)
        .and_then(|lag| lag.percentiles_us.get("p50").copied().flatten());
    facts.set("client.lag_share", lag.zip(service("p50")).map(|(lag, service)| lag / service));
    if phase.offered.is_some() {
        return;
    }
    let users = (phase.client.users * phase.client.pipeline * phase.client.batch) as f64;
    facts.set("closed.users", Some(users));
    // Number of operations that wait for each one in service: the time of a usual operation by that of the fastest ones, and no
    // more than there are others.
    let recorded = run.phases.iter().find(|recorded| recorded.name == phase.name);
    let ratio = recorded.and_then(|recorded| {
        let slots = recorded.totals.slots.iter().step_by(2).flatten();
        let most = slots.max_by_key(|slot| slot.service.count())?;
        let fast = most.service.percentile_ns(1.0) as f64;
        let usual = most.service.percentile_ns(50.0) as f64;
        (fast > 0.0).then(|| (usual / fast - 1.0).min(users - 1.0))
    });
    facts.set("closed.queue", ratio);
}

/// The share of the run for which the server did not serve, where the verdict says that it was so: of a run with faults of its
/// own it is what was asked for. Short silences are those of a slow server.
fn gone(facts: &mut Facts, run: &RunDir, phase: &Phase) {
    let verdict = run.summary.as_ref().map(|summary| &summary.verdict);
    if !verdict.is_some_and(|verdict| verdict.reasons.iter().any(|reason| reason.check == "gone")) {
        return;
    }
    let lost = [Outcome::Disconnected, Outcome::Unreachable, Outcome::TimedOut];
    let lost = lost.iter().any(|outcome| phase.outcomes.get(outcome.name()).is_some_and(|count| *count > 0));
    let lengths = || phase.silences.iter().map(|silence| silence.length_s);
    if !lengths().any(|length_s| is_outage(phase, length_s, lost)) {
        return;
    }
    let gone_s: f64 = lengths().sum();
    facts.set("server.gone_share", Some(gone_s / phase.seconds));
}

/// The host of the servers, of which the figures of the host are.
pub(super) fn server_host(phase: &Phase) -> Option<&PhaseHost> {
    phase.hosts.iter().find(|host| host.role.is_server())
}

fn summarised(facts: &mut Facts, run: &RunDir, phase: &Phase) {
    let Some(seen) = &phase.monitor else { return };
    let elsewhere = seen.host.as_ref().is_some_and(|host| host.elsewhere.is_some());
    // This host's cores are known even where nothing was watched.
    let own = (!elsewhere).then_some(run.environment.cores.len() as f64);
    let cores = seen.host.as_ref().and_then(|host| host.cores).or(own).unwrap_or(0.0);
    if let Some(host) = &seen.host {
        facts.set("host.cpu.busy", Some(host.cpu_busy_share));
        facts.set("host.cpu.steal", Some(host.cpu_steal_share));
        if let Some(disk) = &host.disk {
            facts.set("disk.reads_per_s", Some(disk.reads_per_s));
            facts.set("disk.reads_per_op", Some(disk.reads_per_s / phase.throughput.max(1e-9)));
            facts.set("disk.writes_per_op", Some(disk.writes_per_s / phase.throughput.max(1e-9)));
            facts.set("disk.writes_per_s", Some(disk.writes_per_s));
            facts.set("disk.queue", disk.queue);
            let (bytes, requests) =
                (disk.read_bytes_per_s + disk.written_bytes_per_s, disk.reads_per_s + disk.writes_per_s);
            facts.set("disk.bytes_per_s", Some(bytes));
            facts.set("disk.bytes_per_request", (requests > 0.0).then(|| bytes / requests));
        }
    }
    // Directories of earlier versions tell of this host alone.
    let others = match server_host(phase) {
        Some(host) => host.others.as_ref(),
        None => seen.others.as_ref().filter(|_| !elsewhere && phase.hosts.is_empty()),
    };
    if let Some(others) = others.filter(|_| cores > 0.0) {
        facts.set("host.cpu.others", Some(others.cpu_cores / cores));
    }
    // Embedded stores live in the workers.
    let embedded = seen.workers.as_ref().filter(|_| phase.client.busy_share.is_none());
    let Some(server) = seen.server.as_ref().or(embedded) else { return };
    facts.set("server.cores", Some(server.cpu_cores));
    facts.set("server.throttled", server.throttled_share);
    set_faults(facts, phase, server.major_faults_per_s);
    let single = SINGLE.iter().any(|name| run.run.database.starts_with(name))
        && run.run.facts.get("io_threads_active").is_none_or(|value| value == "0");
    facts.set("server.thread_share", single.then_some(server.cpu_cores));
    if server.in_pods {
        // The number of cores of its node, and other work there, are not known.
        facts.set("server.cpu_of_limit", single.then_some(server.cpu_cores));
        return;
    }
    let limit = if single { 1.0 } else { cores };
    facts.set("server.cpu_of_limit", (limit > 0.0).then_some(server.cpu_cores / limit));
    let busy = facts.get("host.cpu.busy").filter(|_| cores > 0.0).map(|share| share * cores);
    let client = (phase.client.user_cpu_s + phase.client.system_cpu_s) / phase.seconds.max(1e-9);
    // An embedded store's process is the client, too.
    let beside = server_host(phase).map_or(!elsewhere, |host| host.role == HostRole::Both);
    let both = server.cpu_cores + if seen.server.is_some() && beside { client } else { 0.0 };
    let not_watched = if phase.hosts.is_empty() { seen.others.is_none() } else { others.is_none() };
    if not_watched {
        facts.set("host.cpu.others", busy.map(|busy| ((busy - both) / cores).max(0.0)));
    }
    facts.set("server.cpu_share", busy.filter(|busy| *busy > 0.0).map(|busy| server.cpu_cores / busy));
}

/// Fewer seconds say nothing of what is usual.
const SECONDS: usize = 4;

fn set_faults(facts: &mut Facts, phase: &Phase, per_s: Option<f64>) {
    facts.set("server.major_faults_per_s", per_s);
    facts.set("server.major_faults_per_op", per_s.map(|faults| faults / phase.throughput.max(1e-9)));
}

fn watched(facts: &mut Facts, recording: &Recording, phase: &Phase, (from, to): (f64, f64)) {
    let rate = |source: &str, name: &str| recording.counter_rate(source, name, from, to);
    for (name, series) in [
        ("pressure.cpu", "pressure.cpu.some_s"),
        ("pressure.io", "pressure.io.some_s"),
        ("pressure.memory", "pressure.memory.some_s"),
    ] {
        facts.set(name, rate(recording.host_source(), series));
    }
    let named =
        |start: &str| recording.source_names().find(|source| source.starts_with(start)).map(str::to_owned);
    let embedded = || named("worker").filter(|_| phase.client.busy_share.is_none());
    let server = named("server").or_else(embedded);
    if let Some(server) = &server {
        facts.set("server.pressure.cpu", rate(server, "cgroup.pressure.cpu.some_s"));
        facts.set("server.limit_hits_per_s", rate(server, "cgroup.memory_limit_hits"));
        let (held, all) = (rate(server, "cgroup.throttled_periods"), rate(server, "cgroup.periods"));
        facts.set(
            "server.throttled_periods",
            held.zip(all).filter(|(_, all)| *all > 0.0).map(|(held, all)| held / all),
        );
        // A control group counts faults of all its processes. The usual second counts: a program's own pages are read once, and
        // where the host has given them away that may take a few seconds.
        let faults =
            ["cgroup.major_faults", "major_faults"].iter().find(|series| rate(server, series).is_some());
        if let Some(series) = faults {
            let each = per_interval(recording, server, series, from, to);
            facts.remove_facts(["server.major_faults_per_s", "server.major_faults_per_op"]);
            set_faults(facts, phase, median(&each).filter(|_| each.len() >= SECONDS));
        }
    }
    let (again, sent) = (
        rate(recording.host_source(), "tcp.retransmitted_segments"),
        rate(recording.host_source(), "tcp.sent_segments"),
    );
    facts.set(
        "network.retransmitted",
        again.zip(sent).filter(|(_, sent)| *sent > 0.0).map(|(again, sent)| again / sent),
    );
    if let Some(disk) = phase.monitor.as_ref().and_then(|seen| seen.host.as_ref()?.disk.as_ref()) {
        let reads =
            per_interval(recording, recording.host_source(), &format!("disk.{}.reads", disk.name), from, to);
        facts.set("disk.reads_variation", variation(&reads));
        let of = |what: &str| {
            per_interval(recording, recording.host_source(), &format!("disk.{}.{what}", disk.name), from, to)
        };
        let bytes: Vec<f64> =
            of("read_bytes").iter().zip(of("written_bytes")).map(|(read, written)| read + written).collect();
        facts.set("disk.bytes_variation", variation(&bytes));
    }
    facts.set("network.retransmitted_per_s", again);
    host(facts, recording, (from, to));
    let interfaces: Vec<String> = recording
        .series_names(recording.host_source())
        .filter_map(|name| name.strip_prefix("network.")?.strip_suffix(".sent_bytes").map(str::to_owned))
        .filter(|name| name != "lo")
        .collect();
    let busiest = interfaces
        .iter()
        .flat_map(|name| ["sent_bytes", "received_bytes"].map(|what| format!("network.{name}.{what}")))
        .filter_map(|series| Some((rate(recording.host_source(), &series)?, series)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((bytes, series)) = busiest {
        facts.set("network.bytes_per_s", Some(bytes));
        facts.set(
            "network.variation",
            variation(&per_interval(recording, recording.host_source(), &series, from, to)),
        );
    }
}

/// Memory, clock rates and interrupts of the host.
fn host(facts: &mut Facts, recording: &Recording, (from, to): (f64, f64)) {
    let rate = |name: &str| recording.counter_rate(recording.host_source(), name, from, to);
    let swapped = rate("memory.swapped_in_pages").zip(rate("memory.swapped_out_pages"));
    facts.set("host.swapped_per_s", swapped.map(|(r#in, out)| r#in + out));
    let cores: Vec<&str> = recording
        .series_names(recording.host_source())
        .filter(|name| {
            name.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .collect();
    let interrupts = cores.iter().filter(|name| name.ends_with(".softirq_s")).filter_map(|name| rate(name));
    facts.set("host.softirq_core", interrupts.reduce(f64::max));
    let dropped: Vec<f64> = recording
        .series_names(recording.host_source())
        .filter(|name| {
            name.starts_with("network.") && (name.ends_with("_drops") || name.ends_with("_errors"))
        })
        .filter_map(rate)
        .collect();
    facts.set("network.drops_per_s", (!dropped.is_empty()).then(|| dropped.iter().sum()));
    let frequency = recording.gauge_mean(recording.host_source(), "cpu.frequency_hz", from, to);
    let nominal = recording.gauge_mean(recording.host_source(), "cpu.nominal_hz", from, to);
    facts.set("host.frequency", frequency.zip(nominal).map(|(found, nominal)| found / nominal));
    facts.set("host.thermal_per_s", rate("cpu.thermal_throttles"));
    let (own, other) = (rate("numa.local_pages"), rate("numa.other_pages"));
    facts.set("host.numa_remote", own.zip(other).filter(|(a, b)| a + b > 100.0).map(|(a, b)| b / (a + b)));
}

/// The increase of a counter in each whole interval between two times, a second each.
fn per_interval(recording: &Recording, source: &str, series: &str, from: f64, to: f64) -> Vec<f64> {
    let seconds = ((to - from) / 1e3).floor() as usize;
    let at = |second: usize| from + second as f64 * 1e3;
    (0..seconds)
        .filter_map(|second| recording.counter_rate(source, series, at(second), at(second + 1)))
        .collect()
}

/// Robust variation, as a share; `None` for fewer than four values.
fn variation(all: &[f64]) -> Option<f64> {
    let middle = median(all)?;
    (all.len() >= 4 && mean(all) > 0.0 && middle > 0.0).then(|| crate::series::robust_deviation(all) / middle)
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
