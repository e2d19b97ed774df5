//! Tests of what a check needs before it speaks, and the figures in its words.

use super::*;
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::schema::{DiskUse, ProcessUse, Silence};

const VALID: Option<Trust> = Some(Trust::Valid);

/// A store on a disk whose server and host were watched: so many reads and bytes read each second.
fn on_disk(reads_per_s: f64, read_bytes_per_s: Option<f64>) -> Case {
    let mut case = Case::usual_case();
    case.observations.on_disk = true;
    let disk = DiskUse { reads_per_s, ..DiskUse::default() };
    let host = HostUse { disk: Some(disk), ..HostUse::default() };
    let server = ProcessUse { read_bytes_per_s, ..ProcessUse::default() };
    case.phase.monitor = Some(Monitored { host: Some(host), server: Some(server), ..Monitored::default() });
    // A client of its own is another process than the server.
    case.phase.client.busy_share = Some(0.5);
    case
}

#[test]
fn a_disk_is_read_from_one_read_for_a_thousand_operations_on() {
    // 20,000 operations in 40 s: half a read each second is one for a thousand.
    let reads = |reads: f64, bytes: Option<f64>| {
        let mut case = on_disk(reads, bytes);
        case.phase.throughput = 500.0;
        case.check_trust("cache")
    };
    assert_eq!([reads(0.499, None), reads(0.5, None)], [VALID, None]);
    // Reads by others are not the server's: half a page of 4,096 bytes each second is half a read.
    assert_eq!([reads(9.0, Some(2_047.0)), reads(9.0, Some(2_048.0))], [VALID, None]);
}

#[test]
fn data_that_do_not_fit_and_are_not_read_are_suspect() {
    let fits = |data, memory| {
        let mut case = on_disk(0.0, None);
        case.observations.data = Some((data, memory));
        (case.check_trust("cache"), case.reason_text("cache").unwrap().contains("do not fit"))
    };
    assert_eq!(fits(1_000, 1_000), (VALID, false));
    assert_eq!(fits(1_001, 1_000), (SUSPECT, true));
}

#[test]
fn a_cache_is_told_only_where_a_disk_could_have_been_read() {
    let told = |change: fn(&mut Case)| {
        let mut case = on_disk(0.0, None);
        change(&mut case);
        case.check_trust("cache")
    };
    assert_eq!(told(|_| ()), VALID);
    assert_eq!(told(|case| case.observations.on_disk = false), None, "a store in memory");
    assert_eq!(told(|case| case.phase.metrics[0].name = "INSERT".into()), None, "nothing that reads");
    let in_pods =
        |case: &mut Case| case.phase.monitor.as_mut().unwrap().server.as_mut().unwrap().in_pods = true;
    assert_eq!(told(in_pods), None, "the disk of another host");
    let unwatched = |case: &mut Case| case.phase.monitor.as_mut().unwrap().server = None;
    assert_eq!(told(unwatched), None, "a server elsewhere");
    // An embedded store has no server and no client: both are one process.
    let embedded = |case: &mut Case| {
        case.phase.monitor.as_mut().unwrap().server = None;
        case.phase.client.busy_share = None;
    };
    assert_eq!(told(embedded), VALID);
    let operations = |count: u64| {
        let mut case = on_disk(0.0, None).ended(Outcome::NotFound, OPERATIONS - count);
        case.phase.throughput = 500.0;
        case.check_trust("cache")
    };
    assert_eq!([operations(999), operations(1_000)], [None, VALID]);
}

/// One user whose 20,000 operations of 1 ms take 30 s: half of the time is missing.
fn unlawful(change: impl FnOnce(&mut Case)) -> Option<String> {
    let mut case = Case::usual_case();
    (case.think_ns, case.phase.seconds) = (Some(0), 30.0);
    change(&mut case);
    case.reason_text("littles_law")
}

#[test]
fn littles_law_is_asked_of_whole_runs_of_a_thousand_operations() {
    assert!(unlawful(|_| ()).is_some());
    assert_eq!(unlawful(|case| case.think_ns = None), None);
    assert_eq!(unlawful(|case| case.interrupted = true), None);
    let one = |case: &mut Case| {
        case.totals.ended[Outcome::Ok as usize] -= 1;
        case.totals.ended[Outcome::TimedOut as usize] += 1;
    };
    assert_eq!(unlawful(one), None);
    let only = |count: u64| move |case: &mut Case| case.totals.ended[Outcome::Ok as usize] = count;
    assert_eq!(unlawful(only(999)), None);
    assert!(unlawful(only(1_000)).is_some());
}

#[test]
fn littles_law_counts_users_turnaround_and_think_time() {
    // 20 s of service in 30 s are 0.67 users, a third off from the one that was.
    let text = unlawful(|_| ()).unwrap();
    assert!(text.contains("gives 0.67 users where 1 were") && text.contains("33.3 % off"), "{text}");
    // 0.5 ms of thinking after each operation are the missing 10 s.
    assert_eq!(unlawful(|case| case.think_ns = Some(500_000)), None);
    let turned = |case: &mut Case| {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        (0..OPERATIONS).for_each(|_| interval.turnaround.record(500_000));
        case.totals.add_interval(&interval);
    };
    assert_eq!(unlawful(turned), None);
    // In 1.25 s of it 16 are at work: 2 users with 2 in the pipeline and batches of 4.
    let many = |seconds: f64| {
        unlawful(|case| {
            case.phase.seconds = seconds;
            let client = &mut case.phase.client;
            (client.users, client.pipeline, client.batch) = (2, 2, 4);
        })
    };
    assert_eq!(many(1.25), None);
    let text = many(1.0).unwrap();
    assert!(text.contains("gives 20.00 users where 16 were") && text.contains("25.0 % off"), "{text}");
}

#[test]
fn littles_law_counts_the_time_of_a_script_once() {
    // Of three metrics the first did not occur; the second is a part of the third.
    let mut interval = ThreadInterval::new(3, Scale::Ns64);
    for _ in 0..OPERATIONS {
        interval.arrivals += 1;
        interval.ended[Outcome::Ok as usize] += 1;
        interval.record_ended(1, Outcome::Ok, 400_000, 400_000);
        interval.record_ended(2, Outcome::Ok, 1_000_000, 1_000_000);
    }
    let mut case = Case::usual_case();
    case.totals = Totals::new(3, Scale::Ns64);
    case.totals.add_interval(&interval);
    let names = ["SCAN", "POINT-SELECT", "TRANSACTION"].map(str::to_owned);
    let facts = PhaseFacts { seconds: 20.0, client: case.phase.client.clone(), ..PhaseFacts::default() };
    case.phase = summarise_phase(facts, &names, &case.totals);
    case.think_ns = Some(0);
    assert_eq!(case.reason_text("littles_law"), None);
}

#[test]
fn a_mix_is_judged_where_a_thousand_operations_went_well() {
    // Nothing that was asked for was done.
    let mix = |arrivals: u64, failed: u64, asked: f64, interrupted: bool| {
        let mut case = Case::usual_case().ended(Outcome::TimedOut, failed);
        case.totals.arrivals = arrivals;
        case.interrupted = interrupted;
        case.totals.outcomes[0] = [0; Outcome::COUNT];
        case.observations.mix = vec![("READ".to_owned(), asked)];
        case.check_trust("mix")
    };
    assert_eq!([mix(999, 0, 0.5, false), mix(1_000, 0, 0.5, false)], [None, SUSPECT]);
    assert_eq!([mix(20_000, 200, 0.5, false), mix(20_000, 201, 0.5, false)], [SUSPECT, None]);
    assert_eq!(mix(20_000, 0, 0.5, true), None);
    // Of 1,000 draws a share of 2.4 % scatters by five times 0.48 %, one of 2.6 % by five times 0.50 %.
    assert_eq!([mix(1_000, 0, 0.024, false), mix(1_000, 0, 0.026, false)], [None, SUSPECT]);
    let mut case = Case::usual_case();
    case.observations.mix = vec![("READ".to_owned(), 0.5)];
    let text = case.reason_text("mix").unwrap();
    assert!(text.starts_with("100.0 % of the operations are READ, where 50.0 % were asked for"), "{text}");
}

#[test]
fn a_queue_that_grows_is_told_with_its_first_and_last_quarter() {
    let ramp = |from: f64, step: f64, count: u32| (0..count).map(|at| from + step * f64::from(at)).collect();
    let grows = |users: usize, response_step: f64, count: u32| {
        let mut case = Case::usual_case();
        (case.phase.offered, case.phase.throughput) = (Some(1_000.0), 900.0);
        case.phase.client.users = users;
        case.observations.series = vec![900.0; count as usize];
        case.observations.backlog = ramp(0.0, 100.0, count);
        case.observations.response_s = ramp(0.0, response_step, count);
        case.reason_text("overload")
    };
    // Of 40 seconds the first ten have a mean of 450 waiting, the last of 3,450.
    let text = grows(1, 0.1, 40).unwrap();
    assert!(text.contains("of 1,000/s that are due 900/s are done"), "{text}");
    assert!(text.contains("rises from 450 ms to 3.45 s and the backlog from 450 to 3450"), "{text}");
    // A user each is no queue, and less than a millisecond is not felt: 30 seconds' steps are between the quarters.
    assert_eq!([grows(3_449, 0.1, 40).is_some(), grows(3_450, 0.1, 40).is_some()], [true, false]);
    assert_eq!([grows(1, 0.000_034, 40).is_some(), grows(1, 0.000_033, 40).is_some()], [true, false]);
    // Fewer than ten seconds have no trend.
    assert_eq!([grows(1, 0.1, 10).is_some(), grows(1, 0.1, 9).is_some()], [true, false]);
}

#[test]
fn a_queue_grows_where_backlog_and_response_times_surely_do() {
    let told = |backlog: &[f64], response_s: &[f64], offered: f64| {
        let mut case = Case::usual_case();
        (case.phase.offered, case.phase.throughput) = (Some(offered), 900.0);
        case.observations.series = vec![900.0; backlog.len()];
        (case.observations.backlog, case.observations.response_s) = (backlog.to_vec(), response_s.to_vec());
        case.reason_text("overload").is_some()
    };
    let ramp = |from: f64| -> Vec<f64> { (0..40).map(|at| from + 2.0 * f64::from(at)).collect() };
    assert!(told(&ramp(50.0), &ramp(50.0), 1_000.0));
    assert!(!told(&ramp(50.0), &ramp(50.0), 0.0), "nothing was due");
    assert!(!told(&ramp(50.0), &ramp(50.0)[1..], 1_000.0), "which second is which is not known");
    // Means of 60 and 120: no more than twice the beginning.
    assert!(!told(&ramp(51.0), &ramp(50.0), 1_000.0) && !told(&ramp(50.0), &ramp(51.0), 1_000.0));
    // The second quarter is no longer than the first.
    let mut rests = ramp(0.0);
    (10..20).for_each(|at| rests[at] = rests[at - 10]);
    assert!(!told(&rests, &ramp(50.0), 1_000.0) && !told(&ramp(50.0), &rests, 1_000.0));
    // Quarters of 4, 6, 9 and 13 that chance may have made.
    let chance = [4.0, 0.0, 0.0, 1.0, 5.0, 0.0, 2.0, 6.0, 1.0, 3.0, 8.0, 2.0];
    let sure: Vec<f64> = (1..=12).map(f64::from).collect();
    assert!(told(&sure, &sure, 1_000.0));
    assert!(!told(&chance, &sure, 1_000.0) && !told(&sure, &chance, 1_000.0));
}

#[test]
fn what_is_named_is_counted() {
    let fault = |at: usize| FaultFigures {
        number: at,
        fault: format!("pause on server {at}"),
        begin_s: at as f64,
        end_s: Some(at as f64 + 0.5),
        ..FaultFigures::default()
    };
    let faults = |count: usize| {
        let mut case = Case::usual_case();
        case.observations.faults = (1..=count).map(fault).collect();
        case.reason_text("faults").unwrap()
    };
    assert!(faults(3).contains("pause on server 3 at 3.00 s for 0.50 s: "), "{}", faults(3));
    assert!(faults(5).contains("pause on server 3 at 3.00 s for 0.50 s and 2 more: "), "{}", faults(5));
    let several = |check: &str, change: fn(&mut RunObservations, usize), count: usize| {
        let mut case = Case::usual_case();
        change(&mut case.observations, count);
        case.reason_text(check).unwrap()
    };
    let missed = |observations: &mut RunObservations, count| {
        observations.not_carried_out = vec!["1 kill on server".into(); count]
    };
    assert!(several("faults_carried_out", missed, 1).ends_with("did not come: 1 kill on server"));
    assert!(several("faults_carried_out", missed, 3).ends_with("1 kill on server (and 2 more)"));
    let changed = |observations: &mut RunObservations, count| {
        observations.changed = vec!["cpu: governor".into(); count]
    };
    assert!(several("environment", changed, 1).ends_with("the run: cpu: governor"));
    assert!(several("environment", changed, 3).ends_with("cpu: governor (and 2 more)"));
    // The server was away twice.
    let mut case = Case::usual_case();
    case.phase.seconds = 60.0;
    case.phase.silences =
        [(10.0, 2.0), (30.0, 3.0)].map(|(from_s, length_s)| Silence { from_s, length_s }).to_vec();
    let text = case.reason_text("gone").unwrap();
    assert!(text.contains("for 5 of 60 s measured (30 to 33 s, and 1 more)"), "{text}");
    assert_eq!(check_trust("pinning", |case| case.phase.client.pinned = false), SUSPECT);
}

#[test]
fn failures_of_a_load_are_those_of_the_phase_before() {
    let named = |name: &str, ok: u64, failed: u64| {
        let mut phase = Case::usual_case().phase;
        phase.name = name.into();
        phase.outcomes =
            [(Outcome::Ok.name().to_owned(), ok), (Outcome::TimedOut.name().to_owned(), failed)].into();
        phase
    };
    let phases = [named("warmup", 1, 9), named("load", 90, 10), named("measure", 5, 5)];
    assert_eq!(
        crate::load_failed(&phases, &phases[2]),
        Some(LoadFailures { failed: 10, all: 100, most: Some(Outcome::TimedOut) })
    );
    // A load that is measured itself is no load before it.
    assert_eq!(crate::load_failed(&phases, &phases[1]), None);
    assert_eq!(crate::load_failed(&phases[2..], &phases[2]), None);
}

#[test]
fn users_with_a_pipeline_can_be_fewer() {
    let mut case = Case::usual_case().with_lag(None, Some(900_000));
    let advice = |case: &Case| case.reason_text("receive_lag").unwrap();
    assert!(advice(&case).contains("the client is woken late"), "{}", advice(&case));
    (case.phase.client.users, case.phase.client.pipeline) = (2, 2);
    assert!(advice(&case).contains("use fewer users"), "{}", advice(&case));
}

#[path = "claims_tests.rs"]
mod claims;
