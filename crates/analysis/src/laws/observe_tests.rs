use super::*;
use crate::diagnose::made::{SyntheticRun, SyntheticRunParts};
use dyno_rundir::schema::{Planned, Reason, Setting, Trust};

const CLIENT: &str = "\"users\": 4, \"pipeline\": 2, \"batch\": 3, \"threads\": 2, \"user_cpu_s\": 3.0, \"system_cpu_s\": 1.0, \
                      \"busy_share\": 0.4, \"think_us\": 500.0";

const GIVEN: SyntheticRunParts<'_> = SyntheticRunParts {
    database: "MongoDB 8",
    facts: "",
    settings: "",
    command: "",
    cores: "0, 1, 2, 3",
    system: "",
    phase: "",
    client: CLIENT,
    monitor: "",
    metrics: "",
    intervals: "",
};

/// A run whose operations took 2, 4 and 6 ms, and whose users took 1 ms between them.
fn timed(given: SyntheticRunParts<'_>) -> SyntheticRun {
    let mut made =
        SyntheticRun::new(given).with_service_times(&[2_000_000, 4_000_000, 6_000_000], &[9_000_000]);
    let totals = &mut made.run.phases[0].totals;
    totals.ended[dyno_types::Outcome::Ok as usize] = 3;
    totals.ended[dyno_types::Outcome::TimedOut as usize] = 2;
    totals.arrivals = 7;
    [500_000, 1_500_000].iter().for_each(|ns| totals.turnaround.record(*ns));
    made
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-9, "{found} instead of {expected}");
}

fn setting(key: &str, value: &str) -> Setting {
    Setting { key: key.into(), value: value.into(), source: "x".into() }
}

#[test]
fn a_closed_loop_is_seen_with_its_users_and_times() {
    let seen = observe_run(&timed(GIVEN).run).unwrap();
    assert_eq!((seen.users, seen.flow, seen.throughput, seen.seconds), (Some(24.0), (7, 5), 1_000.0, 10.0));
    assert_eq!((seen.offered, seen.rate, seen.due_s, seen.failed), (None, None, None, 2));
    assert_eq!((seen.planned_s, seen.grows), (None, false));
    near(seen.think_s, 0.000_5);
    near(seen.response_s, 0.004);
    near(seen.client_s, 0.001);
    // 12 ms of service, 2 ms between operations and three times 0.5 ms of thinking in 10 s.
    near(seen.implied_users.unwrap(), 0.001_55);
    // The plan says its length, and the verdict whether the queue grew.
    let mut made = timed(GIVEN);
    let plan = Planned { seconds: Some(30.0), ..Planned::default() };
    made.run.run.plans.insert("measure".into(), plan);
    let overload = Reason::of_all("overload", Trust::Suspect, String::new());
    made.run.summary.as_mut().unwrap().verdict.reasons.push(overload);
    let seen = observe_run(&made.run).unwrap();
    assert_eq!((seen.planned_s, seen.grows), (Some(30.0), true));
    // A run whose users are not known has none, and without turns between operations nothing is the client's.
    let imported = CLIENT.replace("\"users\": 4, ", "");
    let mut made = timed(SyntheticRunParts { client: &imported, ..GIVEN });
    made.run.phases[0].totals.turnaround = dyno_record::Buckets::new(dyno_record::Scale::Ns64);
    let seen = observe_run(&made.run).unwrap();
    assert_eq!((seen.users, seen.client_s), (None, 0.0));
    // Nothing is seen where nothing succeeded, or took no time.
    let mut none = timed(GIVEN);
    none.run.phases[0].totals.ended[dyno_types::Outcome::Ok as usize] = 0;
    assert_eq!((observe_run(&none.run), observe_rate(&none.run)), (None, None));
    let mut made = SyntheticRun::new(GIVEN).with_service_times(&[0], &[]);
    made.run.phases[0].totals.ended[dyno_types::Outcome::Ok as usize] = 1;
    assert_eq!(observe_run(&made.run), None);
    made.run.summary.as_mut().unwrap().phases[0].seconds = 0.0;
    assert_eq!(observe_run(&made.run), None);
}

#[test]
fn an_open_loop_is_seen_with_its_rate_and_from_when_operations_were_due() {
    let open = SyntheticRunParts { phase: ", \"offered\": 950.0", ..GIVEN };
    let of = |settings: &[(&str, &str)], facts: &str| {
        let mut made = timed(SyntheticRunParts { facts, ..open });
        made.run.run.settings = settings.iter().map(|(key, value)| setting(key, value)).collect();
        observe_run(&made.run).unwrap()
    };
    let seen = of(&[("phases.measure.rate", "900/s"), ("phases.measure.arrivals", "constant")], "");
    assert_eq!((seen.users, seen.offered, seen.rate, seen.even), (None, Some(950.0), Some(900.0), true));
    near(seen.due_s.unwrap(), 0.004);
    assert_eq!(seen.implied_users, None);
    // Each of three pairs is asked for the rate; an imported result knows only what was offered.
    let seen = of(&[("phases.measure.rate", "900/s"), ("server.instances", "3")], "");
    assert_eq!((seen.rate, seen.even), (Some(2_700.0), false));
    assert_eq!((of(&[], "").rate, of(&[], "\"imported\": \"x\"").rate), (None, Some(950.0)));
    // A rate at which nothing succeeds is one that was asked for; without a rate there is none.
    let nothing = |settings: &[(&str, &str)], phase: &str| {
        let mut made = timed(SyntheticRunParts { phase, ..GIVEN });
        made.run.run.settings = settings.iter().map(|(key, value)| setting(key, value)).collect();
        made.run.phases[0].totals.ended[dyno_types::Outcome::Ok as usize] = 0;
        observe_rate(&made.run)
    };
    let rate = [("phases.measure.rate", "900/s")];
    let seen = nothing(&rate, ", \"offered\": 950.0").unwrap();
    assert_eq!((seen.rate, seen.throughput, seen.flow, seen.failed), (Some(900.0), 0.0, (7, 2), 2));
    let even = [rate[0], ("phases.measure.arrivals", "constant")];
    assert_eq!((seen.even, nothing(&even, ", \"offered\": 950.0").unwrap().even), (false, true));
    assert_eq!(
        (nothing(&[], ", \"offered\": 950.0"), nothing(&rate, ", \"offered\": 0.0"), nothing(&rate, "")),
        (None, None, None)
    );
}

#[test]
fn without_histograms_the_summarys_means_are_taken() {
    let latency = |mean_us: f64, count: u64| {
        format!("{{\"count\": {count}, \"mean_us\": {mean_us}, \"percentiles_us\": {{}}}}")
    };
    let metric = |name: &str, mean_us: f64, count: u64| {
        let one = latency(mean_us, count);
        format!("{{\"name\": \"{name}\", \"outcomes\": {{}}, \"service\": {one}, \"response\": {one}}}")
    };
    let metrics = [metric("READ", 1_000.0, 30), metric("UPDATE", 3_000.0, 10)].join(", ");
    let of = |metrics: &str, phase: &str| {
        let mut made = SyntheticRun::new(SyntheticRunParts { metrics, phase, ..GIVEN });
        made.run.phases[0].totals.ended[dyno_types::Outcome::Ok as usize] = 50;
        observe_run(&made.run)
    };
    // 30 of 1 ms and 10 of 3 ms take 60 ms.
    let closed = of(&metrics, "").unwrap();
    near(closed.response_s, 0.060 / 40.0);
    // At the rate that the result states: a table with gaps has one of a part of its seconds.
    near(closed.implied_users.unwrap(), (0.060 / 40.0 + 0.000_5) * 1_000.0);
    assert_eq!(closed.due_s, None);
    let open = of(&metrics, ", \"offered\": 5.0").unwrap();
    near(open.due_s.unwrap(), 0.060 / 50.0);
    // Times of nothing are not known.
    let unknown = format!(
        "{{\"name\": \"READ\", \"outcomes\": {{}}, \"service\": {}, \"response\": {}}}",
        latency(1_000.0, 30),
        latency(0.0, 30)
    );
    assert_eq!(of(&unknown, ", \"offered\": 5.0").unwrap().due_s, None);
    // An operation without times leaves nothing to add up.
    let without = format!("{metrics}, {{\"name\": \"SCAN\", \"outcomes\": {{}}}}");
    assert_eq!(of(&without, ""), None);
}

#[test]
fn resources_have_the_servers_that_are_known() {
    let host = "\"host\": {\"cpu_busy_share\": 0.5, \"cpu_iowait_share\": 0.0, \"cpu_steal_share\": 0.0, \
                \"network_received_bytes_per_s\": 10.0, \"network_sent_bytes_per_s\": 20.0, \"disk\": {\"name\": \"sda\", \
                \"reads_per_s\": 30.0, \"writes_per_s\": 0.0, \"read_bytes_per_s\": 0.0, \"written_bytes_per_s\": 0.0, \
                \"busy_share\": 0.9}}";
    let whole = format!(
        "{host}, \"server\": {{\"cpu_cores\": 0.8}}, \"workers\": {{\"cpu_cores\": 1.5}}, \
         \"database\": {{\"nodes\": 1, \"operations_per_s\": 1234.0}}"
    );
    let of = |given: SyntheticRunParts<'_>| {
        let made = SyntheticRun::new(given);
        let told = |one: Use| (one.name, (one.busy * 1e6).round() / 1e6, one.servers.unwrap(), one.grows);
        (
            uses(&made.run, made.measured_phase()).into_iter().map(told).collect::<Vec<_>>(),
            rates(made.measured_phase()),
        )
    };
    let (used, activity) = of(SyntheticRunParts { monitor: &whole, ..GIVEN });
    let one = |name: &str, busy: f64, servers: f64, grows: bool| (name.to_owned(), busy, servers, grows);
    let (client, all) = (one("client CPU", 0.4, 2.0, false), one("host CPU", 2.0, 4.0, true));
    let disk = one("disk sda", 0.9, 1.0, false);
    assert_eq!(used, [client.clone(), one("server CPU", 0.8, 4.0, true), all.clone(), disk.clone()]);
    let named =
        |all: Vec<(&str, f64)>| all.into_iter().map(|(name, x)| (name.to_owned(), x)).collect::<Vec<_>>();
    // A resource that did nothing is not told.
    assert_eq!(
        activity,
        named(vec![("database commands", 1_234.0), ("reads of sda", 30.0), ("network bytes", 30.0)])
    );
    let server =
        |given: SyntheticRunParts<'_>| of(SyntheticRunParts { monitor: &whole, ..given }).0.swap_remove(1);
    let threads = |facts| server(SyntheticRunParts { database: "Valkey 8", facts, ..GIVEN });
    assert_eq!(threads(""), one("server CPU", 0.8, 1.0, false));
    assert_eq!(threads("\"io_threads_active\": \"0\""), one("server CPU", 0.8, 1.0, false));
    assert_eq!(threads("\"io_threads_active\": \"1\""), one("server CPU", 0.8, 4.0, true));
    assert_eq!(
        server(SyntheticRunParts { database: "Redis 8", ..GIVEN }),
        one("server CPU", 0.8, 1.0, false)
    );
    // Cores of a pod's node are not known, but one thread is one.
    let pods = whole.replace("\"cpu_cores\": 0.8", "\"cpu_cores\": 0.8, \"in_pods\": true");
    let in_pods = |database| of(SyntheticRunParts { monitor: &pods, database, ..GIVEN }).0;
    assert_eq!(in_pods("MongoDB 8"), [client, all.clone(), disk.clone()]);
    assert_eq!(in_pods("Redis 8")[1], one("server CPU", 0.8, 1.0, false));
    // Embedded stores live in the workers.
    let embedded = of(SyntheticRunParts { client: "\"pipeline\": 1", monitor: &whole, ..GIVEN }).0;
    assert_eq!(embedded, [one("server CPU", 0.8, 4.0, true), one("worker CPU", 1.5, 4.0, true), all, disk]);
    assert_eq!(of(SyntheticRunParts { client: "\"pipeline\": 1", ..GIVEN }), (vec![], vec![]));
}
