//! Checks of every host that takes part: CPU time that others take, busy clients, the clock, shared cores, a common begin.

use super::checks::{CheckFinding, Checks, FIGURES, LATENCIES, RESOURCES, TAIL};
use super::counts::keeps_rate;
use super::evidence::Evidence;
use dyno_rundir::schema::{Claim, HostRole, PhaseHost, Trust};
use dyno_types::units::ShownLatency;

/// Share of a host's CPU time that may go to others.
const TAKEN: f64 = 0.02;
/// Share from which on throughput and medians are not the target's alone either.
const MUCH: f64 = 0.10;
/// Share of a host's CPU time from which on other programs make the load generator late.
const BUSY: f64 = 0.25;
/// Share of busy CPU time from which on a host has none left for the load.
const USED_UP: f64 = 0.90;
/// Share of a phase by which workers may begin apart. Each measures for as long as the others, by itself: with a skew of this
/// share the sum of a closed loop at its server's limit is too high by as much, and that of an open loop is right. No more than
/// twice the share of the requests meets a smaller load, which moves percentiles by that share of their rank from the end.
pub(super) const APART: f64 = 0.01;
/// Cost of reading the clock that is noticed, nanoseconds.
const CLOCK_NS: u64 = 100;

/// Makes the checks of who takes the CPU, and of the clock. A run in virtual time has no hosts.
pub(crate) fn run_host_checks(e: &Evidence<'_>, checks: &mut Checks) {
    let stolen = worst(e, |host| host.cpu_steal_share);
    checks.record_check(
        "steal",
        affected_by_others(e, stolen.map_or(0.0, |(_, share)| share)),
        steal(e, stolen),
    );
    // Without a monitor there is nothing to check.
    if e.phase.monitor.is_some() {
        let taken = worst(e, PhaseHost::others_share);
        let affected = affected_by_others(e, taken.map_or(0.0, |(_, share)| share));
        checks.record_check("neighbours", affected, neighbours(e, taken));
    }
    checks.record_check("clock", LATENCIES, clock(e));
    checks.record_check("shaping", if keeps_rate(e) { LATENCIES } else { FIGURES }, shaping(e));
}

/// Makes the checks of what was placed where, and of the common begin.
pub(crate) fn checks_of_placement(e: &Evidence<'_>, checks: &mut Checks) {
    checks.record_check("shared_cores", FIGURES, shared_cores(e));
    if e.phase.hosts.iter().any(|host| host.late_s.is_some()) {
        checks.record_check("start_skew", FIGURES, start_skew(e));
    }
    if e.phase.hosts.iter().any(|host| host.unheard_s.is_some()) {
        checks.record_check("controller", RESOURCES, controller(e));
    }
}

/// The host with the greatest figure.
fn worst<'a>(e: &Evidence<'a>, of: impl Fn(&PhaseHost) -> Option<f64>) -> Option<(&'a PhaseHost, f64)> {
    let all = e.phase.hosts.iter().filter_map(|host| Some((host, of(host)?)));
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Hosts that apply load.
fn clients<'a>(e: &Evidence<'a>) -> impl Iterator<Item = &'a PhaseHost> {
    e.phase.hosts.iter().filter(|host| host.role.is_client())
}

/// A host in a sentence: the only one is this host, if it is the one that conducted the run.
fn named(e: &Evidence<'_>, host: &PhaseHost) -> String {
    if host.local && e.phase.hosts.len() == 1 { "this host".to_owned() } else { host.name.clone() }
}

/// Further hosts beyond the worst one that a limit also holds for, in words.
fn and_more(e: &Evidence<'_>, over: impl Fn(&PhaseHost) -> bool) -> String {
    match e.phase.hosts.iter().filter(|host| over(host)).count() {
        0 | 1 => String::new(),
        2 => " (and on another host)".to_owned(),
        count => format!(" (and on {} other hosts)", count - 1),
    }
}

/// Returns the claims that are affected where others take this share of a host's CPU time: an operation in fifty waits for
/// them, or one in ten.
fn affected_by_others(e: &Evidence<'_>, share: f64) -> &'static [Claim] {
    match (share > MUCH, keeps_rate(e)) {
        (true, false) => FIGURES,
        (true, true) => LATENCIES,
        (false, _) => TAIL,
    }
}

/// The same in words.
fn not_alone(affected: &[Claim]) -> &'static str {
    match affected {
        FIGURES => "throughput, median and tail are not the target's alone",
        LATENCIES => "median and tail are not the target's alone",
        _ => "tails are not the target's alone",
    }
}

fn steal(e: &Evidence<'_>, stolen: Option<(&PhaseHost, f64)>) -> CheckFinding {
    let (host, share) = stolen.filter(|(_, share)| *share > TAKEN)?;
    let text = format!(
        "the hypervisor took away {:.1} % of {}'s CPU time{}: {}",
        share * 100.0,
        named(e, host),
        and_more(e, |host| host.cpu_steal_share.is_some_and(|share| share > TAKEN)),
        not_alone(affected_by_others(e, share))
    );
    Some((Trust::Suspect, text))
}

/// Checks other programs by the rule for the hypervisor: if one of them takes the CPU, tails are not the target's alone.
fn neighbours(e: &Evidence<'_>, taken: Option<(&PhaseHost, f64)>) -> CheckFinding {
    let (host, share) = taken.filter(|(_, share)| *share > TAKEN)?;
    let programs =
        host.others.as_ref().map(|others| others.describe_programs()).filter(|programs| !programs.is_empty());
    let text = format!(
        "other programs took {:.1} % of {}'s CPU time{}{}: {}; end them, or use a quiet host",
        share * 100.0,
        named(e, host),
        programs.map_or(String::new(), |programs| format!(" ({programs})")),
        and_more(e, |host| host.others_share().is_some_and(|share| share > TAKEN)),
        not_alone(affected_by_others(e, share)),
    );
    Some((Trust::Suspect, text))
}

fn clock(e: &Evidence<'_>) -> CheckFinding {
    let (host, ns) = worst(e, |host| host.clock_ns.map(|ns| ns as f64))?;
    (ns > CLOCK_NS as f64).then(|| {
        let source = host.clock_source.as_deref().filter(|source| *source != "tsc");
        let text = format!(
            "reading the clock takes {ns} ns on {}{}: use a kernel clock source such as tsc",
            named(e, host),
            source.map_or(String::new(), |source| format!(" (clock source {source})")),
        );
        (Trust::Suspect, text)
    })
}

/// What a client's own host holds back is no time of the target's, though the kernel's stamps count it as such.
fn shaping(e: &Evidence<'_>) -> CheckFinding {
    let host = clients(e).find(|host| host.shaped.is_some())?;
    let (device, kind) = host.shaped.as_deref()?.split_once(": ")?;
    let text = format!(
        "{} holds back what it sends by {device} (queueing discipline {kind}): times are not the target's alone; see \
         `tc qdisc show dev {device}`",
        named(e, host)
    );
    Some((Trust::Suspect, text))
}

fn shared_cores(e: &Evidence<'_>) -> CheckFinding {
    let host = e.phase.hosts.iter().find(|host| !host.shared_cores.is_empty())?;
    let cores: Vec<String> = host.shared_cores.iter().map(ToString::to_string).collect();
    let text = format!(
        "servers and load share the {} {}{}, each slows the other: give the load cores or a host of its own",
        if cores.len() == 1 { "core" } else { "cores" },
        cores.join(", "),
        if named(e, host) == "this host" { String::new() } else { format!(" of {}", host.name) },
    );
    Some((Trust::Suspect, text))
}

/// Workers that begin apart measure phases that only overlap.
fn start_skew(e: &Evidence<'_>) -> CheckFinding {
    let (host, late_s) = worst(e, |host| host.late_s)?;
    let share = late_s / e.phase.seconds;
    (share > APART).then(|| {
        let text = format!(
            "workers did not begin together: {} began {} after the first one, {:.1} % of the phase: their sum is of phases that \
             only overlap; measure for longer, or see what delays it",
            if e.phase.hosts.len() == 1 { "the last one".to_owned() } else { format!("the last one on {}", host.name) },
            ShownLatency((late_s * 1e9) as u64),
            share * 100.0
        );
        (Trust::Suspect, text)
    })
}

/// Workers that hear nothing of their controller finish the phase, and what they measure is whole. What only the controller does
/// stood still meanwhile: its monitors, faults, thresholds that end a run.
fn controller(e: &Evidence<'_>) -> CheckFinding {
    let (_, unheard_s) = worst(e, |host| host.unheard_s)?;
    let text = format!(
        "workers heard nothing of their controller for {unheard_s:.0} s and went on by themselves: the load is whole, but what \
         the controller alone does (its monitors, faults, thresholds that end a run) stood still; keep its host awake, or run it \
         where the load is"
    );
    Some((Trust::Suspect, text))
}

/// A client's host without CPU time left, and its busy share. Load threads that spin use it up without being short of it.
fn used_up<'a>(e: &Evidence<'a>) -> Option<(&'a PhaseHost, f64)> {
    let (host, share) =
        worst(e, |host| host.cpu_busy_share.filter(|_| host.role.is_client() && !host.spins))?;
    (share > USED_UP).then_some((host, share))
}

/// Checks hosts that apply load alone: a server beside it may be what uses their CPU time.
pub(super) fn client_host_used_up(e: &Evidence<'_>) -> CheckFinding {
    let (host, share) = used_up(e).filter(|(host, _)| host.role == HostRole::Client)?;
    let text = format!(
        "the CPU of {} was {:.0} % busy: the client may be the bottleneck; {}",
        named(e, host),
        share * 100.0,
        relief(host)
    );
    Some((Trust::Suspect, text))
}

/// What to do about a client's host without CPU time left, by who uses it.
fn relief(host: &PhaseHost) -> &'static str {
    match host.role {
        _ if host.others_share().is_some_and(|share| share > BUSY) => {
            "end the other programs there, or use a quiet host"
        }
        HostRole::Both => "servers run there, too: give the load a host of its own, or lower it",
        _ => "lower the load, or spread it over more hosts",
    }
}

/// What to do about a host whose CPU time is used up: more threads have nothing to run on.
pub(super) fn used_up_advice(e: &Evidence<'_>) -> Option<String> {
    let (host, share) = used_up(e)?;
    Some(format!("the CPU of {} is {:.0} % busy: {}", named(e, host), share * 100.0, relief(host)))
}

/// What to do about other programs that make the load generator late.
pub(super) fn others_advice(e: &Evidence<'_>) -> Option<String> {
    let host = clients(e).find(|host| host.others_share().is_some_and(|share| share > BUSY))?;
    Some(format!("other programs take {}'s CPU: end them, or use a quiet host", named(e, host)))
}

/// Says what to do about the program or hypervisor that takes the CPU of a load generator that is woken late.
pub(super) fn lateness_advice(e: &Evidence<'_>) -> Option<String> {
    let stolen = || {
        let host = clients(e).find(|host| host.cpu_steal_share.is_some_and(|share| share > TAKEN))?;
        let whose = if named(e, host) == "this host" { "its".to_owned() } else { format!("{}'s", host.name) };
        Some(format!(
            "the hypervisor takes {whose} CPU: use a host that shares its cores with no other guest"
        ))
    };
    others_advice(e).or_else(stolen)
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
