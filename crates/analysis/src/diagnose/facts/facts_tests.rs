use super::super::made::{SyntheticRun, SyntheticRunParts};
use super::*;
use dyno_rundir::monitor::Kind::{self, Counter, Gauge};

const CLIENT: &str = "\"users\": 4, \"pipeline\": 2, \"batch\": 3, \"threads\": 2, \"user_cpu_s\": 3.0, \"system_cpu_s\": 1.0, \
                      \"busy_share\": 0.4";

/// Figures, rounded to a millionth.
fn told(facts: &Facts) -> Vec<(&'static str, f64)> {
    facts.iter().map(|(name, value)| (name, (value * 1e6).round() / 1e6)).collect()
}

fn summarised_of(given: SyntheticRunParts<'_>) -> Vec<(&'static str, f64)> {
    let made = SyntheticRun::new(SyntheticRunParts { client: CLIENT, ..given });
    let mut facts = Facts::default();
    summarised(&mut facts, &made.run, made.measured_phase());
    told(&facts)
}

const HOST: &str = "\"cpu_busy_share\": 0.5, \"cpu_iowait_share\": 0.0, \"cpu_steal_share\": 0.01, \
                    \"network_received_bytes_per_s\": 0.0, \"network_sent_bytes_per_s\": 0.0";

const EIGHT: &str = "0, 1, 2, 3, 4, 5, 6, 7";

#[test]
fn a_server_of_one_thread_has_one_core_and_others_what_neither_it_nor_the_client_uses() {
    let server = "\"server\": {\"cpu_cores\": 0.9, \"throttled_share\": 0.1, \"major_faults_per_s\": 5.0}";
    let disk = "\"disk\": {\"name\": \"sda\", \"reads_per_s\": 30.0, \"writes_per_s\": 70.0, \"read_bytes_per_s\": 1000.0, \
                \"written_bytes_per_s\": 2000.0, \"busy_share\": 1.0, \"queue\": 1.5}";
    let whole = format!("\"host\": {{{HOST}, {disk}}}, {server}");
    let redis = SyntheticRunParts {
        database: "Redis 8",
        cores: EIGHT,
        monitor: &whole,
        ..SyntheticRunParts::default()
    };
    let always = [
        ("disk.bytes_per_request", 30.0),
        ("disk.bytes_per_s", 3_000.0),
        ("disk.queue", 1.5),
        ("disk.reads_per_op", 0.03),
        ("disk.reads_per_s", 30.0),
        ("disk.writes_per_op", 0.07),
        ("disk.writes_per_s", 70.0),
        ("host.cpu.busy", 0.5),
        // Half of 8 cores, less 0.9 of the server and 0.4 of the client.
        ("host.cpu.others", 2.7 / 8.0),
        ("host.cpu.steal", 0.01),
        ("server.cores", 0.9),
        ("server.cpu_of_limit", 0.9),
        ("server.cpu_share", 0.225),
        ("server.major_faults_per_op", 0.005),
        ("server.major_faults_per_s", 5.0),
        ("server.thread_share", 0.9),
        ("server.throttled", 0.1),
    ];
    assert_eq!(summarised_of(redis), always);
    // With threads for I/O, or of another product, all cores are its limit.
    let of_all = |given: SyntheticRunParts<'_>| {
        let found = summarised_of(given);
        let of = |name: &str| found.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
        (of("server.cpu_of_limit"), of("server.thread_share"))
    };
    let threads = |count: &str| {
        of_all(SyntheticRunParts { facts: &format!("\"io_threads_active\": \"{count}\""), ..redis })
    };
    assert_eq!((threads("0"), threads("1")), ((Some(0.9), Some(0.9)), (Some(0.1125), None)));
    assert_eq!(of_all(SyntheticRunParts { database: "MongoDB 8", ..redis }), (Some(0.1125), None));
    assert_eq!(of_all(SyntheticRunParts { database: "MongoDB 8", cores: "", ..redis }), (None, None));
}

#[test]
fn cores_and_programs_are_those_of_the_host_that_was_watched() {
    let of = |monitor: &str, names: &[&str]| -> Vec<Option<f64>> {
        let found = summarised_of(SyntheticRunParts {
            database: "MongoDB 8",
            cores: EIGHT,
            monitor,
            ..SyntheticRunParts::default()
        });
        let of = |name: &&str| found.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        names.iter().map(of).collect()
    };
    let names = ["host.cpu.others", "server.cpu_of_limit", "server.cpu_share", "server.cores"];
    let server = "\"server\": {\"cpu_cores\": 1.0}";
    let others = "\"others\": {\"cpu_cores\": 2.0, \"programs\": {}}";
    let host = format!("\"host\": {{{HOST}}}");
    assert_eq!(
        of(&format!("{host}, {server}, {others}"), &names),
        [Some(0.25), Some(0.125), Some(0.25), Some(1.0)]
    );
    // Nothing is known of a host that was not watched but its cores; elsewhere not even these.
    assert_eq!(of(&format!("{server}, {others}"), &names), [Some(0.25), Some(0.125), None, Some(1.0)]);
    let far = format!("\"host\": {{{HOST}, \"elsewhere\": \"db\"}}");
    assert_eq!(of(&format!("{far}, {server}"), &names), [None, None, None, Some(1.0)]);
    let four = format!("\"host\": {{{HOST}, \"elsewhere\": \"db\", \"cores\": 4.0}}");
    // The client is not there, nor are the programs of this host.
    assert_eq!(of(&format!("{four}, {server}"), &names), [Some(0.25), Some(0.25), Some(0.5), Some(1.0)]);
    assert_eq!(of(&format!("{four}, {server}, {others}"), &names), [None, Some(0.25), Some(0.5), Some(1.0)]);
    // A pod's node may have any number of cores.
    let pod = "\"server\": {\"cpu_cores\": 1.0, \"in_pods\": true}";
    assert_eq!(of(&format!("{host}, {pod}"), &names), [None, None, None, Some(1.0)]);
    // Others are never fewer than none, and of an idle host nothing has a share.
    let busy = "\"server\": {\"cpu_cores\": 5.0}";
    assert_eq!(of(&format!("{host}, {busy}"), &names[..1]), [Some(0.0)]);
    let idle = HOST.replace("\"cpu_busy_share\": 0.5", "\"cpu_busy_share\": 0.0");
    assert_eq!(of(&format!("\"host\": {{{idle}}}, {server}"), &names[2..]), [None, Some(1.0)]);
    let disk = "\"disk\": {\"name\": \"sda\", \"reads_per_s\": 0.0, \"writes_per_s\": 0.0, \"read_bytes_per_s\": 0.0, \
                \"written_bytes_per_s\": 0.0, \"busy_share\": 0.0}";
    let asked = of(
        &format!("\"host\": {{{HOST}, {disk}}}"),
        &["disk.bytes_per_request", "disk.bytes_per_s", "disk.queue"],
    );
    assert_eq!(asked, [None, Some(0.0), None]);
}

#[test]
fn what_would_be_divided_by_nothing_is_not_told() {
    let disk = |reads: f64| {
        format!(
            "\"host\": {{{HOST}, \"disk\": {{\"name\": \"sda\", \"reads_per_s\": {reads:?}, \"writes_per_s\": 0.0, \
             \"read_bytes_per_s\": 1000.0, \"written_bytes_per_s\": 0.0, \"busy_share\": 0.0}}}}"
        )
    };
    let of = |monitor: &str, cores: &'static str, name: &str| {
        let found = summarised_of(SyntheticRunParts {
            database: "MongoDB 8",
            cores,
            monitor,
            ..SyntheticRunParts::default()
        });
        found.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    };
    let bytes = |reads: f64| of(&disk(reads), EIGHT, "disk.bytes_per_request");
    assert_eq!([bytes(0.0), bytes(10.0)], [None, Some(100.0)]);
    // A host whose cores are not known.
    let others = "\"others\": {\"cpu_cores\": 2.0, \"programs\": {}}, \"server\": {\"cpu_cores\": 1.0}";
    let seen = |name: &str| [EIGHT, ""].map(|cores| of(others, cores, name));
    assert_eq!(seen("host.cpu.others"), [Some(0.25), None]);
    assert_eq!(seen("server.cpu_of_limit"), [Some(0.125), None]);
}

#[test]
fn an_embedded_store_lives_in_the_workers() {
    let monitor = format!("\"host\": {{{HOST}}}, \"workers\": {{\"cpu_cores\": 2.0}}");
    let of = |client: &str| {
        let made = SyntheticRun::new(SyntheticRunParts {
            database: "RocksDB",
            cores: EIGHT,
            monitor: &monitor,
            client,
            ..SyntheticRunParts::default()
        });
        let mut facts = Facts::default();
        summarised(&mut facts, &made.run, made.measured_phase());
        (facts.get("server.cores"), facts.get("host.cpu.others"), facts.get("server.cpu_share"))
    };
    assert_eq!(of("\"pipeline\": 1, \"user_cpu_s\": 9.0"), (Some(2.0), Some(0.25), Some(0.5)));
    assert_eq!(of(CLIENT), (None, None, None));
}

#[test]
fn clients_wait_by_their_own_and_operations_by_the_fastest() {
    let metric = |name: &str, p50: f64| {
        format!(
            "{{\"name\": \"{name}\", \"outcomes\": {{}}, \"service\": {{\"count\": 1, \"mean_us\": 1.0, \
             \"percentiles_us\": {{\"p50\": {p50}}}}}}}"
        )
    };
    let metrics = [metric("READ", 40.0), metric("UPDATE", 20.0), metric("CLEANUP", 500.0)].join(", ");
    let lag = ", \"receive_lag\": {\"count\": 1, \"mean_us\": 1.0, \"percentiles_us\": {\"p50\": 10.0}}";
    let given =
        SyntheticRunParts { client: CLIENT, metrics: &metrics, phase: lag, ..SyntheticRunParts::default() };
    let of = |made: &SyntheticRun| {
        let mut facts = Facts::default();
        client(&mut facts, &made.run, made.measured_phase());
        told(&facts)
    };
    // The hundredth part takes 6,463 ns, the median 19,263: each is the end of its bucket. Failures count for nothing.
    let ok = [vec![6_463; 2], vec![19_263; 97], vec![64_063]].concat();
    let queue = ((19_263.0_f64 / 6_463.0 - 1.0) * 1e6).round() / 1e6;
    let made = SyntheticRun::new(given).with_service_times(&ok, &[1_000_000; 200]);
    let whole =
        [("client.busy", 0.4), ("client.lag_share", 0.25), ("closed.queue", queue), ("closed.users", 24.0)];
    assert_eq!(of(&made), whole);
    // By the kernel's clock, which ends all but one in a thousand, waiting for the client is no part of a service time.
    let stamped = |kernel: u64, client: u64| {
        let stamps = format!(
            "{lag}, \"stamps\": {{\"kernel\": {kernel}, \"client\": {client}, \"shared\": 0, \"shared_most_us\": 0.0}}"
        );
        of(&SyntheticRun::new(SyntheticRunParts { phase: &stamps, ..given }).with_service_times(&ok, &[]))
    };
    assert_eq!((stamped(2_000, 2), stamped(0, 0)), (whole.to_vec(), whole.to_vec()));
    assert_eq!(stamped(2_001, 2), [whole[0], whole[2], whole[3]]);
    let two = CLIENT
        .replace("\"pipeline\": 2, \"batch\": 3", "\"pipeline\": 1")
        .replace("\"users\": 4", "\"users\": 2");
    let made = SyntheticRun::new(SyntheticRunParts { client: &two, ..given }).with_service_times(&ok, &[]);
    assert_eq!(of(&made)[2..], [("closed.queue", 1.0), ("closed.users", 2.0)]);
    // Of times of nothing there is no ratio, and the open loop has no users that wait.
    assert_eq!(of(&SyntheticRun::new(given).with_service_times(&[0; 3], &[])).len(), 3);
    let open = format!("{lag}, \"offered\": 5.0");
    assert_eq!(
        of(&SyntheticRun::new(SyntheticRunParts { phase: &open, ..given }).with_service_times(&ok, &[])),
        whole[..2]
    );
}

/// Rows of seven seconds, one for each second: of each series its values, or a rate.
fn recorded(recording: &mut Recording, source: &str, rates: &[(&'static str, Kind, [f64; 7])]) {
    for second in 0..7 {
        let row = rates.iter().map(|(name, kind, values)| {
            let value = if *kind == Counter { values[..=second].iter().sum() } else { values[second] };
            (*name, *kind, value)
        });
        recording.push(source, second as f64 * 1e3, row);
    }
}

/// A counter that grows by so much a second.
fn steady(name: &'static str, per_s: f64) -> (&'static str, Kind, [f64; 7]) {
    (name, Counter, [per_s; 7])
}

fn watched_of(recording: &Recording, given: SyntheticRunParts<'_>, to_ms: f64) -> Vec<(&'static str, f64)> {
    let made = SyntheticRun::new(given);
    let mut facts = Facts::default();
    set_faults(&mut facts, made.measured_phase(), Some(77.0));
    watched(&mut facts, recording, made.measured_phase(), (0.0, to_ms));
    told(&facts)
}

#[test]
fn what_the_kernel_counts_becomes_rates_of_the_phase() {
    let mut recording = Recording::new();
    let each = |name: &'static str, values: [f64; 7]| (name, Counter, values);
    recorded(
        &mut recording,
        "host",
        &[
            steady("pressure.cpu.some_s", 0.1),
            steady("pressure.io.some_s", 0.2),
            steady("pressure.memory.some_s", 0.3),
            steady("tcp.retransmitted_segments", 1.0),
            steady("tcp.sent_segments", 500.0),
            each("disk.sda.reads", [0.0, 8.0, 10.0, 12.0, 10.0, 9.0, 11.0]),
            each("disk.sda.read_bytes", [0.0, 60.0, 80.0, 100.0, 80.0, 70.0, 90.0]),
            each("disk.sda.written_bytes", [20.0; 7]),
            steady("network.eth0.sent_bytes", 500.0),
            each("network.eth0.received_bytes", [0.0, 800.0, 1_000.0, 1_200.0, 1_000.0, 900.0, 1_100.0]),
            steady("network.lo.sent_bytes", 9_000.0),
            steady("network.eth0.received_drops", 2.0),
            steady("network.eth0.sent_errors", 1.0),
            steady("tcp.backlog_drops", 50.0),
            steady("memory.swapped_in_pages", 3.0),
            steady("memory.swapped_out_pages", 4.0),
            steady("cpu0.softirq_s", 0.3),
            steady("cpu1.softirq_s", 0.6),
            steady("cpu1.user_s", 0.9),
            steady("cpu.softirq_s", 5.0),
            ("cpu.frequency_hz", Gauge, [2.4e9; 7]),
            ("cpu.nominal_hz", Gauge, [3e9; 7]),
            steady("cpu.thermal_throttles", 0.5),
            steady("numa.local_pages", 90.0),
            steady("numa.other_pages", 30.0),
        ],
    );
    recorded(
        &mut recording,
        "server",
        &[
            steady("cgroup.pressure.cpu.some_s", 0.4),
            steady("cgroup.memory_limit_hits", 3.0),
            steady("cgroup.throttled_periods", 2.0),
            steady("cgroup.periods", 10.0),
            each("cgroup.major_faults", [0.0, 100.0, 1.0, 2.0, 3.0, 4.0, 6.0]),
        ],
    );
    let disk = format!(
        "\"host\": {{{HOST}, \"disk\": {{\"name\": \"sda\", \"reads_per_s\": 0.0, \"writes_per_s\": 0.0, \
         \"read_bytes_per_s\": 0.0, \"written_bytes_per_s\": 0.0, \"busy_share\": 0.0}}}}"
    );
    let given = SyntheticRunParts { client: CLIENT, monitor: &disk, ..SyntheticRunParts::default() };
    let expected = [
        // Reads of both kinds: a median of 100 bytes, half of them within 10 of it.
        ("disk.bytes_variation", 0.148_26),
        ("disk.reads_variation", 0.148_26),
        ("host.frequency", 0.8),
        ("host.numa_remote", 0.25),
        ("host.softirq_core", 0.6),
        ("host.swapped_per_s", 7.0),
        ("host.thermal_per_s", 0.5),
        ("network.bytes_per_s", 1_000.0),
        ("network.drops_per_s", 3.0),
        ("network.retransmitted", 0.002),
        ("network.retransmitted_per_s", 1.0),
        ("network.variation", 0.148_26),
        ("pressure.cpu", 0.1),
        ("pressure.io", 0.2),
        ("pressure.memory", 0.3),
        ("server.limit_hits_per_s", 3.0),
        // The usual second, not the first.
        ("server.major_faults_per_op", 0.003_5),
        ("server.major_faults_per_s", 3.5),
        ("server.pressure.cpu", 0.4),
        ("server.throttled_periods", 0.2),
    ];
    assert_eq!(watched_of(&recording, given, 6_000.0), expected);
    // Of three seconds nothing is usual.
    let short = watched_of(&recording, given, 3_000.0);
    let names: Vec<&str> = short.iter().map(|(name, _)| *name).collect();
    for name in
        ["disk.bytes_variation", "disk.reads_variation", "network.variation", "server.major_faults_per_s"]
    {
        assert!(!names.contains(&name), "{name}");
    }
    assert_eq!(short.len(), expected.len() - 5);
}

#[test]
fn what_was_not_counted_is_no_figure() {
    let mut recording = Recording::new();
    recorded(
        &mut recording,
        "host",
        &[
            steady("tcp.retransmitted_segments", 0.0),
            steady("tcp.sent_segments", 0.0),
            steady("memory.swapped_in_pages", 3.0),
            steady("numa.local_pages", 70.0),
            steady("numa.other_pages", 30.0),
            ("cpu.frequency_hz", Gauge, [2.4e9; 7]),
        ],
    );
    // Workers are the server only of embedded stores, whose load threads are not known to be busy.
    recorded(&mut recording, "worker-1", &[steady("major_faults", 8.0), steady("cgroup.periods", 0.0)]);
    let given = SyntheticRunParts { client: CLIENT, ..SyntheticRunParts::default() };
    let kept = [("server.major_faults_per_op", 0.077), ("server.major_faults_per_s", 77.0)];
    let of_host = ("network.retransmitted_per_s", 0.0);
    assert_eq!(watched_of(&recording, given, 6_000.0), [of_host, kept[0], kept[1]]);
    let embedded = SyntheticRunParts { client: "\"pipeline\": 1", ..given };
    let own = [("server.major_faults_per_op", 0.008), ("server.major_faults_per_s", 8.0)];
    assert_eq!(watched_of(&recording, embedded, 6_000.0), [of_host, own[0], own[1]]);
}

#[test]
fn variation_needs_four_values_above_nothing() {
    assert_eq!(variation(&[9.0, 11.0, 9.0]), None);
    assert_eq!(variation(&[9.0, 11.0, 9.0, 11.0]), Some(1.4826 / 10.0));
    assert_eq!((variation(&[0.0; 4]), variation(&[]), variation(&[0.0, 0.0, 0.0, 9.0])), (None, None, None));
    assert_eq!(variation(&[-50.0, 5.0, 5.0, 5.0, 5.0]), None);
    assert_eq!(variation(&[-15.0, 5.0, 5.0, 5.0]), None);
}

#[test]
fn intervals_are_the_whole_seconds_between_two_times() {
    let mut recording = Recording::new();
    recorded(&mut recording, "host", &[("reads", Counter, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    assert_eq!(per_interval(&recording, "host", "reads", 2_000.0, 5_900.0), [3.0, 4.0, 5.0]);
    assert_eq!(per_interval(&recording, "host", "reads", 2_000.0, 2_900.0), Vec::<f64>::new());
}

#[test]
fn a_disks_size_is_that_of_the_partitions_disk() {
    let system = "\"disks\": {\"sda.size\": \"2147483648 bytes\", \"nvme0n1.size\": \"1073741824 bytes\", \
                  \"vdb1.size\": \"536870912 bytes\", \"odd.size\": \"many\"}";
    let made =
        SyntheticRun::new(SyntheticRunParts { client: CLIENT, system, ..SyntheticRunParts::default() });
    let of = |disk: &str| super::fall::size_gib(&made.run, disk);
    assert_eq!((of("sda"), of("sda3"), of("vdb1")), (Some(2.0), Some(2.0), Some(0.5)));
    assert_eq!((of("nvme0n1"), of("nvme0n1p2")), (Some(1.0), Some(1.0)));
    assert_eq!((of("vdc1"), of("odd"), of("")), (None, None, None));
}

#[test]
fn the_measured_phase_gives_what_was_summarised_and_what_was_recorded() {
    let mut recording = Recording::new();
    for second in 0..=10 {
        let at = f64::from(second);
        recording.push("host", at * 1e3, [("pressure.io.some_s", Counter, at * 0.25)]);
        recording.push("database-1", at * 1e3, [("scanned_documents", Counter, at * 4_000.0)]);
    }
    let made = SyntheticRun::new(SyntheticRunParts {
        client: CLIENT,
        database: "Redis",
        ..SyntheticRunParts::default()
    });
    let found = told(&collect_facts(&made.run, Some(&recording)));
    let without = [("client.busy", 0.4), ("closed.users", 24.0)];
    let with = [without[0], without[1], ("database.scanned_per_op", 4.0), ("pressure.io", 0.25)];
    assert_eq!((found, told(&collect_facts(&made.run, None))), (with.to_vec(), without.to_vec()));
}
