//! Tests of what each check speaks against, and the verdict on what was asked for.

use super::*;
use dyno_record::Stamps;
use dyno_rundir::schema::{Claim, Grade};

/// The grades of throughput, median, tail and resources.
fn grades(change: impl FnOnce(&mut Case)) -> [Trust; 4] {
    let mut case = Case::usual_case();
    change(&mut case);
    let grades: Vec<Grade> = case.judge_case().grades;
    std::array::from_fn(|at| grades[at].trust)
}

const V: Trust = Trust::Valid;
const S: Trust = Trust::Suspect;
const I: Trust = Trust::Invalid;

#[test]
fn a_usual_run_is_valid_in_all_its_claims() {
    assert_eq!(grades(|_| ()), [V; 4]);
}

#[test]
fn wrong_data_and_failures_speak_against_everything() {
    assert_eq!(grades(|case| case.totals.ended[Outcome::Mismatch as usize] = 1), [I; 4]);
    assert_eq!(grades(|case| case.lost.push("worker 1".into())), [I; 4]);
    assert_eq!(grades(|case| case.interrupted = true), [S; 4]);
}

/// The same where a tenth of what was due in each second was not done.
fn behind(mut case: Case) -> Case {
    let seconds = case.phase.seconds;
    let rate = case.totals.arrivals as f64 / seconds;
    case.phase.offered = Some(rate);
    case.totals.crossed = -(case.totals.arrivals as i64 / 10);
    case.observations.series = vec![rate * 0.9; seconds as usize];
    case
}

#[test]
fn who_takes_a_little_of_the_cpu_affects_tails_alone() {
    let steal = |share: f64| grades(|case| case.phase.hosts[0].cpu_steal_share = Some(share));
    assert_eq!([steal(0.02), steal(0.1), steal(0.101)], [[V; 4], [V, V, S, V], [S, S, S, V]]);
    let beside = |share: f64| grades(|case| *case = Case::usual_case().with_other_programs(share));
    assert_eq!([beside(0.02), beside(0.1), beside(0.101)], [[V; 4], [V, V, S, V], [S, S, S, V]]);
    // Other programs do not touch a rate that is kept.
    let paced = |case: &mut Case| {
        *case = Case::usual_case().with_other_programs(0.2);
        case.phase.offered = Some(case.totals.arrivals as f64 / case.phase.seconds);
    };
    assert_eq!(grades(paced), [V, S, S, V]);
    let missed = |case: &mut Case| {
        paced(case);
        *case = behind(case.clone());
    };
    assert_eq!(grades(missed), [S, S, S, V]);
    let words = |share: f64| Case::usual_case().with_other_programs(share).reason_text("neighbours").unwrap();
    assert!(words(0.05).contains("tails are not the target's alone"), "{}", words(0.05));
    assert!(words(0.2).contains("throughput, median and tail are not"), "{}", words(0.2));
    let mut kept = Case::usual_case();
    paced(&mut kept);
    let message = kept.reason_text("neighbours").unwrap();
    assert!(message.contains(": median and tail are not the target's alone"), "{message}");
    // Of a host without cores no share is known.
    let mut none = Case::usual_case().with_other_programs(0.2);
    none.phase.hosts[0].cores = Some(0.0);
    assert_eq!(none.check_trust("neighbours"), None);
}

#[test]
fn who_wakes_late_is_told_by_whom() {
    let advice = |steal: f64, others: f64| {
        let mut case = Case::usual_case().with_other_programs(others).with_lag(Some(300_000), None);
        (case.phase.client.busy_share, case.phase.hosts[0].cpu_steal_share) = (Some(0.1), Some(steal));
        case.reason_text("client_share").unwrap()
    };
    for steal in [0.0, 0.02] {
        assert!(advice(steal, 0.0).contains("give the server cores of its own"), "{}", advice(steal, 0.0));
    }
    assert!(advice(0.03, 0.0).contains("the hypervisor takes its CPU"), "{}", advice(0.03, 0.0));
    assert!(advice(0.03, 0.3).contains("other programs take"), "{}", advice(0.03, 0.3));
}

/// Responses of 10 ms of which so many nanoseconds are the server's.
fn shared(server_ns: u64, stamps: Stamps) -> Case {
    let mut interval = ThreadInterval::new(1, Scale::Ns64);
    for _ in 0..20_000 {
        interval.arrivals += 1;
        interval.ended[Outcome::Ok as usize] += 1;
        interval.record_ended(0, Outcome::Ok, 500_000, 10_000_000);
        interval.record_server(0, server_ns);
    }
    let mut case = Case::usual_case();
    (case.totals, case.totals.stamps) = (Totals::new(1, Scale::Ns64), stamps);
    case.totals.add_interval(&interval);
    case
}

#[test]
fn the_clients_share_is_what_the_servers_lacks() {
    let kernel = Stamps { kernel: 20_000, ..Stamps::default() };
    let trust = |server_ns: u64| shared(server_ns, kernel).check_trust("client_share");
    assert_eq!([trust(9_100_000), trust(8_900_000), trust(5_100_000)], [None, Some(S), Some(S)]);
    assert_eq!(trust(4_900_000), Some(I));
    let text = shared(640_000, kernel).reason_text("client_share").unwrap();
    assert!(text.starts_with("of a response time p99 of 10.0 ms 9.36 ms are the client's own"), "{text}");
    // Too many replies came with later bytes: when they came is not known, and the server is not accused either.
    let hidden = Stamps { shared: 200, ..kernel };
    assert_eq!(shared(640_000, hidden).judge_case().grades[2].trust, V);
    assert_eq!(shared(640_000, hidden).judge_case().grades[1].trust, I, "the median is known");
}

#[test]
fn what_users_wait_for_their_client_is_missing_in_throughput() {
    // 20,000 operations of 1 ms by one user.
    let share = |turn_ns: u64| {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        (0..20_000).for_each(|_| interval.turnaround.record(turn_ns));
        let mut case = Case::usual_case();
        case.totals.add_interval(&interval);
        (case.think_ns, case.phase.seconds) = (Some(0), 20_000.0 * (1_000_000 + turn_ns) as f64 / 1e9);
        case.check_trust("client_share")
    };
    assert_eq!(
        [share(49_000), share(51_000), share(190_000), share(210_000)],
        [None, Some(S), Some(S), Some(I)]
    );
}

/// Lags of this share of the operations are 300 us beside 1 ms, the others are none.
fn late(share: u64) -> Case {
    let mut interval = ThreadInterval::new(1, Scale::Ns64);
    for at in 0..1_000 {
        let ns = if at < share { 300_000 } else { 1_000 };
        interval.lag.record(ns);
        interval.receive_lag.record(ns);
    }
    let mut case = Case::usual_case();
    case.totals.add_interval(&interval);
    case
}

#[test]
fn a_lag_of_few_operations_affects_the_tail_and_one_of_most_the_median() {
    let of = |share: u64| grades(|case| *case = late(share));
    assert_eq!([of(0), of(100), of(600)], [[V; 4], [V, V, S, V], [V, S, S, V]]);
    let reasons = |share: u64| -> Vec<String> {
        let reasons = late(share).judge_case().reasons.into_iter();
        reasons.filter(|reason| reason.check == "client_share").map(|reason| reason.text).collect()
    };
    // Where both are as bad one sentence says so.
    assert_eq!([reasons(100).len(), reasons(600).len()], [1, 1]);
    assert!(reasons(600)[0].starts_with("schedule lag p99 is 300"), "{:?}", reasons(600));
    let mut worse = late(600);
    let mut interval = ThreadInterval::new(1, Scale::Ns64);
    (0..100).for_each(|_| interval.lag.record(900_000));
    worse.totals.add_interval(&interval);
    let verdict = worse.judge_case();
    let trusts: Vec<Trust> = verdict.grades.iter().map(|grade| grade.trust).collect();
    assert_eq!(trusts, [V, S, I, V]);
    let reasons = verdict.reasons;
    let said: Vec<&str> =
        reasons.iter().filter(|r| r.check == "client_share").map(|r| r.text.as_str()).collect();
    assert!(said[0].contains("p99 is 900") && said[1].contains("lag p50 is 300"), "{said:?}");
    assert!(
        said[0].contains(": use fewer operations") && !said[1].contains(": use"),
        "what to do is said once: {said:?}"
    );
    assert_eq!(worse.judge_case().checks.iter().filter(|check| *check == "client_share").count(), 1);
}

#[test]
fn a_busy_client_affects_what_its_delays_are_in() {
    let busy = |offered: Option<f64>, kernel: u64| {
        grades(|case| {
            case.phase.client.busy_share = Some(0.9);
            case.phase.offered = offered.map(|part| part * case.totals.arrivals as f64 / case.phase.seconds);
            case.totals.stamps.kernel = kernel;
        })
    };
    assert_eq!(busy(None, 1_000), [S, V, V, V]);
    assert_eq!(busy(None, 0), [S, S, S, V]);
    assert_eq!(busy(Some(1.0), 1_000), [V, V, S, V]);
    assert_eq!(busy(Some(1.0), 0), [V, S, S, V]);
    // A rate of 0 is none that could be kept.
    assert_eq!(busy(Some(0.0), 0), [S, S, S, V]);
    // One that is missed grows response times by itself.
    let mut missed = Case::usual_case();
    (missed.phase.client.busy_share, missed.totals.stamps.kernel) = (Some(0.9), 1_000);
    assert_eq!(grades(|case| *case = behind(missed)), [S, S, S, V]);
}

#[test]
fn monitors_and_clocks_affect_resources_alone() {
    assert_eq!(grades(|case| case.observations.clock_skew_s = 1.0), [V, V, V, S]);
    assert_eq!(grades(|case| case.observations.silent.push("redis".into())), [V, V, V, S]);
    let mut case = Case::usual_case();
    case.observations.clock_skew_s = 1.0;
    assert_eq!(case.judge_case().trust, V);
}

#[test]
fn a_short_run_has_no_percentiles_and_may_have_a_rate() {
    let ok = |count: u64, seconds: f64| {
        grades(|case| {
            case.totals.arrivals = count;
            case.totals.ended[Outcome::Ok as usize] = count;
            case.phase.seconds = seconds;
        })
    };
    assert_eq!([ok(1_000, 1.0), ok(999, 1.0), ok(1_000, 0.9)], [[V; 4], [V, S, S, V], [S, S, S, V]]);
    assert_eq!(ok(0, 1.0), [I; 4]);
    // Where nothing succeeded that is all that is said.
    let none = Case::usual_case().ended(Outcome::TimedOut, OPERATIONS).judge_case().reasons;
    let samples: Vec<&str> = none.iter().filter(|r| r.check == "samples").map(|r| r.text.as_str()).collect();
    assert_eq!(samples, ["no operation succeeded"]);
}

#[test]
fn the_run_is_judged_by_its_thresholds() {
    let asked = |claims: &[Claim]| {
        let mut case = Case::usual_case().with_other_programs(0.05);
        case.asked = vec![("as written".into(), claims.to_vec())];
        case.judge_case().trust
    };
    assert_eq!(Case::usual_case().with_other_programs(0.05).judge_case().trust, S);
    let of = [&[Claim::Throughput][..], &[Claim::Median], &[Claim::Median, Claim::Tail], &[Claim::Tail], &[]];
    assert_eq!(of.map(asked), [V, V, S, S, V]);
}

#[test]
fn a_threshold_rests_on_the_claim_of_its_figure() {
    let asks = |text: &str| crate::Condition::parse(text).unwrap().expression_and_claims().1;
    assert_eq!(asks("throughput > 5"), [Claim::Throughput]);
    assert_eq!(asks("errors < 1%"), []);
    assert_eq!(asks("p50(read) < 1ms"), [Claim::Median]);
    assert_eq!(asks("min(read) < 1ms"), [Claim::Median]);
    assert_eq!(asks("mean(read.service) < 1ms"), [Claim::Median, Claim::Tail]);
    for text in ["p90(read) < 1ms", "p99.9(all) < 1ms", "max(read) < 1s"] {
        assert_eq!(asks(text), [Claim::Tail], "{text}");
    }
}

/// A time that the client has spoilt where the threshold is, and not at p99.
#[test]
fn a_threshold_is_judged_at_its_own_percentile() {
    // Of 10,000 operations 50 were sent 100 ms late, in a closed loop.
    let mut interval = ThreadInterval::new(1, Scale::Ns64);
    for at in 0..10_000u64 {
        let late_ns = if at % 200 == 0 { 100_000_000 } else { 0 };
        interval.record_ended(0, Outcome::Ok, 1_000_000, 1_000_000 + late_ns);
        interval.turnaround.record(late_ns);
    }
    let told = |text: &str| {
        let mut case = Case::usual_case();
        case.totals = Totals::new(1, Scale::Ns64);
        case.totals.add_interval(&interval);
        case.totals.arrivals = 10_000;
        case.totals.ended[Outcome::Ok as usize] = 10_000;
        (case.think_ns, case.phase.client.users) = (Some(0), 1_000);
        case.observations.mix = vec![("READ".into(), f64::NAN)];
        let condition = crate::Condition::parse(text).unwrap();
        (case.asked, case.responses) =
            (vec![condition.expression_and_claims()], condition.response_time().into_iter().collect());
        let verdict = case.judge_case();
        let reasons = verdict.reasons.iter().filter(|r| r.check == "client_share");
        reasons.map(|r| r.trust).max()
    };
    assert_eq!(told("p99(read) < 5ms"), None);
    assert_eq!(told("p99.9(read) < 5ms"), INVALID);
    assert_eq!(told("max(all) < 5ms"), INVALID);
    // A mean of 1.5 ms, a third of it the client's.
    assert_eq!(told("mean(read) < 5ms"), SUSPECT);
    // A service time ends and begins by the server's doing.
    assert_eq!(told("p99.9(read.service) < 5ms"), None);
    assert_eq!(told("p99.9(update) < 5ms"), None);
}
