//! Every host that takes part is judged alike, and named where it is not the only one.

use crate::verdict::hosts::APART;
use crate::verdict::limits::{Case, INVALID, SUSPECT};
use dyno_rundir::schema::{HostRole, OthersUse, PhaseHost};

fn host(name: &str, role: HostRole) -> PhaseHost {
    let others = OthersUse { cpu_cores: 0.0, programs: [("stress".to_owned(), 0.96)].into() };
    PhaseHost { name: name.into(), role, cores: Some(10.0), others: Some(others), ..PhaseHost::default() }
}

#[test]
fn neighbours_and_the_hypervisor_have_one_limit() {
    let both = |share: f64| {
        let mut case = Case::usual_case().with_other_programs(share);
        case.phase.hosts[0].cpu_steal_share = Some(share);
        (case.check_trust("neighbours"), case.check_trust("steal"))
    };
    assert_eq!((both(0.0199), both(0.0201)), ((None, None), (SUSPECT, SUSPECT)));
}

/// The reason of a check in a run whose server is on `db` and whose load on `load`, with a change to one of them.
fn reason(check: &str, changed: &str, change: impl Fn(&mut PhaseHost)) -> Option<String> {
    let mut case = Case::usual_case().with_other_programs(0.0);
    case.phase.hosts = vec![host("load", HostRole::Client), host("db", HostRole::Server)];
    case.phase.hosts.iter_mut().filter(|host| host.name == changed).for_each(change);
    assert_ne!(case.check_trust(check), INVALID);
    case.reason_text(check)
}

#[test]
fn other_programs_are_looked_for_on_every_host() {
    let beside = |name: &str, share: f64| {
        reason("neighbours", name, |host| host.others.as_mut().unwrap().cpu_cores = share * 10.0)
    };
    assert_eq!([beside("load", 0.0199), beside("db", 0.0199)], [None, None]);
    for name in ["load", "db"] {
        let text = beside(name, 0.096).unwrap();
        let expected = format!("other programs took 9.6 % of {name}'s CPU time (stress 0.96 cores): tails");
        assert!(text.starts_with(&expected), "{text}");
    }
    assert!(beside("db", 0.11).unwrap().contains("throughput, median and tail are not"));
    // The only host is this one; in a pod programs have no names.
    let mut case = Case::usual_case().with_other_programs(0.5);
    assert!(
        case.reason_text("neighbours").unwrap().contains("of this host's CPU time: "),
        "no program is named"
    );
    case.phase.hosts = vec![host("a", HostRole::Both), host("b", HostRole::Client)];
    case.phase.hosts.iter_mut().for_each(|host| host.others.as_mut().unwrap().cpu_cores = 1.0);
    assert!(case.reason_text("neighbours").unwrap().contains(" (and on another host): "));
}

#[test]
fn the_hypervisor_and_the_clock_are_judged_on_every_host() {
    for name in ["load", "db"] {
        let text = reason("steal", name, |host| host.cpu_steal_share = Some(0.03)).unwrap();
        assert!(text.contains(&format!("took away 3.0 % of {name}'s CPU time")), "{text}");
        assert_eq!(reason("steal", name, |host| host.cpu_steal_share = Some(0.0199)), None);
    }
    let slow = |ns| {
        reason("clock", "load", move |host| {
            (host.clock_ns, host.clock_source) = (Some(ns), Some("hpet".into()));
        })
    };
    assert_eq!(slow(100), None);
    assert!(slow(700).unwrap().starts_with("reading the clock takes 700 ns on load (clock source hpet)"));
}

#[test]
fn a_host_that_applies_load_must_have_cpu_time_left() {
    let busy = |name: &str, share: f64, spins: bool| {
        let mut case = Case::usual_case();
        case.phase.client.busy_share = Some(0.3);
        case.phase.hosts = vec![host("load", HostRole::Client), host("db", HostRole::Server)];
        let all = case.phase.hosts.iter_mut().filter(|host| host.name == name);
        all.for_each(|host| (host.cpu_busy_share, host.spins) = (Some(share), spins));
        case.reason_text("client_cpu")
    };
    assert_eq!(
        [busy("load", 0.90, false), busy("load", 1.0, true), busy("db", 1.0, false)],
        [None, None, None]
    );
    assert!(busy("load", 0.98, false).unwrap().starts_with("the CPU of load was 98 % busy"));
    // More threads have nothing to run on there.
    let mut case = Case::usual_case().with_lag(Some(600_000), None);
    case.phase.hosts = vec![host("load", HostRole::Client), host("db", HostRole::Server)];
    case.phase.hosts[0].cpu_busy_share = Some(1.0);
    let advice =
        |case: &Case| case.reason_text("client_share").unwrap().split(" busy: ").last().unwrap().to_owned();
    assert_eq!(advice(&case), "lower the load, or spread it over more hosts");
    // What servers or other programs use, no further host brings back.
    case.phase.hosts[0].role = HostRole::Both;
    assert_eq!(advice(&case), "servers run there, too: give the load a host of its own, or lower it");
    case.phase.hosts[0].others.as_mut().unwrap().cpu_cores = 6.0;
    assert_eq!(advice(&case), "end the other programs there, or use a quiet host");
}

#[test]
fn workers_begin_within_a_hundredth_of_the_phase() {
    // Of 60 s.
    let apart = |late_s| reason("start_skew", "load", move |host| host.late_s = Some(late_s));
    assert_eq!(apart(0.6), None);
    let text = apart(0.66).unwrap();
    assert!(
        text.contains("the last one on load began 660 ms after the first one, 1.1 % of the phase"),
        "{text}"
    );
    let mut case = Case::usual_case();
    case.phase.hosts[0].late_s = Some(0.66);
    assert_eq!(case.check_trust("start_skew"), SUSPECT);
    assert!(
        !Case::usual_case().judge_case().checks.iter().any(|check| check == "start_skew"),
        "one worker begins with itself"
    );
}

/// A server that answers one request in each turn, and workers of a closed loop that share it; half of them begin late by so many
/// turns. Each measures for `phase` turns of its own: the rate of their sum beside the server's, and the share of requests that
/// fewer workers than all have sent.
fn skewed_sum(phase: u64, late: u64) -> (f64, f64) {
    let active = |turn: u64| {
        let halves = [0, late].into_iter().filter(move |begin| (*begin..begin + phase).contains(&turn));
        halves.count()
    };
    let answered = (0..phase + late).filter(|turn| active(*turn) > 0).count();
    let alone = (0..phase + late).filter(|turn| active(*turn) == 1).count();
    (answered as f64 / phase as f64, alone as f64 / answered as f64)
}

/// What the limit of the skew allows, in figures: a rate that is too high by as much, and twice as much of smaller load.
#[test]
fn a_skew_within_its_limit_moves_figures_by_no_more_than_the_limit() {
    let phase = 60_000;
    let limit = (phase as f64 * APART) as u64;
    let (rate, alone) = skewed_sum(phase, limit);
    assert!(rate <= 1.0 + APART && alone < 2.0 * APART, "{rate}: {alone}");
    assert_eq!(skewed_sum(phase, 0), (1.0, 0.0));
    // 160 ms of a minute, as sixty pods have begun.
    let (rate, alone) = skewed_sum(phase, 160);
    assert!((rate - 1.0 - 160.0 / 60_000.0).abs() < 1e-9 && alone < 0.0054, "{rate}: {alone}");
    // A tenth is told.
    let (rate, _) = skewed_sum(phase, phase / 10);
    assert!(rate > 1.0 + APART);
    let text = reason("start_skew", "load", |host| host.late_s = Some(6.0)).unwrap();
    assert!(text.contains("10.0 % of the phase"), "{text}");
}

#[test]
fn a_controller_that_slept_leaves_the_figures_as_they_are() {
    let text = reason("controller", "load", |host| host.unheard_s = Some(61.4)).unwrap();
    assert!(text.starts_with("workers heard nothing of their controller for 61 s and went on"), "{text}");
    let mut case = Case::usual_case();
    let before = case.judge_case();
    assert!(!before.checks.iter().any(|check| check == "controller"), "it was heard");
    case.phase.hosts[0].unheard_s = Some(61.4);
    let grade = |verdict: &dyno_rundir::schema::Verdict, name: &str| {
        verdict.grades.iter().find(|grade| grade.claim == name).map(|grade| grade.trust)
    };
    let after = case.judge_case();
    for claim in before.grades.iter().filter(|grade| grade.claim != "resources") {
        assert_eq!(grade(&after, &claim.claim), Some(claim.trust), "{}", claim.claim);
    }
    assert_eq!(grade(&after, "resources"), SUSPECT);
}

#[test]
fn a_client_on_the_servers_cores_is_told_with_its_host() {
    let text = reason("shared_cores", "db", |host| host.shared_cores = vec![0, 1]).unwrap();
    assert!(text.starts_with("servers and load share the cores 0, 1 of db, each slows"), "{text}");
    let mut case = Case::usual_case();
    case.phase.hosts[0].shared_cores = vec![3];
    assert!(
        case.reason_text("shared_cores")
            .unwrap()
            .starts_with("servers and load share the core 3, each slows")
    );
}

#[test]
fn a_run_in_virtual_time_has_no_hosts_to_judge() {
    let mut case = Case::usual_case();
    case.phase.hosts.clear();
    case.phase.client.steal_share = 0.5;
    assert_eq!(
        (case.check_trust("steal"), case.check_trust("neighbours"), case.check_trust("clock")),
        (None, None, None)
    );
}
