use super::made::{SyntheticRun, SyntheticRunParts, format_interval_lines};
use super::rules::rule::{Limit, SECOND, SuggestedExperiment, Unit};
use super::*;
use dyno_rundir::monitor::Kind::Counter;
use dyno_rundir::schema::{Reason, Setting, Silence, Trust};

const CLIENT: &str = "\"users\": 8, \"pipeline\": 1, \"threads\": 2, \"busy_share\": 0.3";

/// A server with room, on a host of which so much was taken away.
fn host(busy: f64, steal: f64) -> String {
    format!(
        "\"server\": {{\"cpu_cores\": 0.5}}, \"host\": {{\"cpu_busy_share\": {busy}, \"cpu_iowait_share\": 0.0, \
         \"cpu_steal_share\": {steal}, \"network_received_bytes_per_s\": 0.0, \"network_sent_bytes_per_s\": 0.0}}"
    )
}

/// A run that waits for four operations for each in service, or for none.
fn made(monitor: &str, client: &str) -> SyntheticRun {
    let made = SyntheticRun::new(SyntheticRunParts {
        database: "MongoDB 8",
        cores: "0, 1",
        monitor,
        client,
        ..SyntheticRunParts::default()
    });
    made.with_service_times(&[6_400; 10], &[])
}

fn found(run: &RunDir, recording: Option<&Recording>) -> Vec<(&'static str, f64)> {
    let found = diagnose_run(run, recording).findings;
    found.iter().map(|one| (one.rule, (one.confidence * 1e6).round() / 1e6)).collect()
}

#[test]
fn few_users_are_found_only_where_nothing_better_explains_the_throughput() {
    // 0.55, and 0.4 of the rest, as the host is idle.
    assert_eq!(found(&made(&host(0.5, 0.0), CLIENT).run, None), [("few_users", 0.73)]);
    assert_eq!(found(&made(&host(0.65, 0.0), CLIENT).run, None), [("few_users", 0.55)]);
    assert_eq!(found(&made(&host(0.5, 0.05), CLIENT).run, None), [("steal", 0.6)]);
    // A cause that is less sure than even does not explain it; the surest comes first.
    let mut recording = Recording::new();
    for second in 0..=10 {
        let at = f64::from(second);
        let row = [("numa.local_pages", Counter, at * 70.0), ("numa.other_pages", Counter, at * 70.0)];
        recording.push("host", at * 1e3, row);
    }
    let both = made(&host(0.65, 0.0), CLIENT);
    assert_eq!(found(&both.run, Some(&recording)), [("few_users", 0.55), ("numa", 0.45)]);
}

#[test]
fn what_supports_a_claim_raises_it_and_what_speaks_against_it_halves_it() {
    let run = made("", CLIENT);
    let rule = rules::all_rules().find(|rule| rule.name == "client").unwrap();
    let of = |facts: &[(&'static str, f64)]| {
        let all = Facts::from_pairs(facts);
        apply(rule, &all, &run.run)
            .map(|one| ((one.confidence * 1e6).round() / 1e6, one.evidence.len(), one.against.len()))
    };
    let busy = ("client.busy", 0.9);
    assert_eq!((of(&[]), of(&[("client.busy", 0.85)]), of(&[busy])), (None, None, Some((0.6, 1, 0))));
    let (lag, idle) = (("client.lag_share", 0.2), ("server.cpu_of_limit", 0.5));
    assert_eq!((of(&[busy, lag]), of(&[busy, lag, idle])), (Some((0.76, 2, 0)), Some((0.856, 3, 0))));
    let thread = ("server.thread_share", 0.96);
    assert_eq!((of(&[busy, thread]), of(&[busy, lag, thread])), (Some((0.3, 1, 1)), Some((0.38, 2, 1))));
    assert_eq!(of(&[busy, ("client.lag_share", 0.1), ("server.thread_share", 0.95)]), Some((0.6, 1, 0)));
    let words = apply(rule, &Facts::from_pairs(&[busy, thread]), &run.run).unwrap();
    assert_eq!(words.evidence, ["load threads are busy 90.0 % of the time"]);
    assert_eq!(words.against, ["the server's one thread is busy 96.0 % of the time"]);
}

#[test]
fn more_tickets_are_advised_only_where_their_number_is_fixed() {
    let rule = rules::all_rules().find(|rule| rule.name == "tickets").unwrap();
    let used = [("tickets.used_share", 0.99), ("database.queue", 20.0)];
    let of = |database: &str| {
        let made = SyntheticRun::new(SyntheticRunParts {
            database,
            cores: "0",
            client: CLIENT,
            ..SyntheticRunParts::default()
        });
        let adjusted =
            collect_facts(&made.run, None).get("tickets.adjusted_by").map(|by| ("tickets.adjusted_by", by));
        let all: Vec<_> = used.into_iter().chain(adjusted).collect();
        apply(rule, &Facts::from_pairs(&all), &made.run).unwrap()
    };
    for fixed in ["MongoDB 3.6.8", "MongoDB 6.0.20", "FerretDB 7.0", "MongoDB of unknown version"] {
        let found = of(fixed);
        assert!(found.advice.ends_with("before raising their number"), "{fixed}: {}", found.advice);
        assert!(found.against.is_empty(), "{fixed}");
    }
    for adjusted in ["MongoDB 7.0.16", "MongoDB 8.2.1"] {
        let found = of(adjusted);
        assert!(found.advice.ends_with("raising it is no remedy"), "{adjusted}: {}", found.advice);
        assert_eq!((found.against.len(), found.confidence), (1, 0.35), "{adjusted}");
    }
}

#[test]
fn programs_are_named_only_where_others_take_the_cpu() {
    let others = "\"others\": {\"cpu_cores\": 1.0, \"programs\": {\"rustc\": 0.25, \"stress-ng\": 0.75}}";
    let named = |monitor: &str, name: &str| {
        let run = made(monitor, CLIENT);
        let rule = rules::all_rules().find(|rule| rule.name == name).unwrap();
        let facts =
            Facts::from_pairs(&[("host.cpu.busy", 0.95), ("host.cpu.others", 0.5), ("host.cpu.steal", 0.05)]);
        apply(rule, &facts, &run.run).unwrap().evidence.pop().unwrap()
    };
    assert_eq!(named(others, "others"), "most of it: stress-ng 0.75 cores, rustc 0.25");
    assert_eq!(named(others, "steal"), "the hypervisor took 5.0 % of the CPU time");
    let none = "\"others\": {\"cpu_cores\": 1.0, \"programs\": {}}";
    assert_eq!(named(none, "others"), "50.0 % of it goes to neither server nor client");
}

#[test]
fn of_one_user_the_experiment_is_a_second() {
    let run = made("", CLIENT);
    let expected = |name: &str, users: f64| {
        let rule = rules::all_rules().find(|rule| rule.name == name).unwrap();
        let facts = Facts::from_pairs(&[
            ("closed.users", users),
            ("closed.queue", 0.0),
            ("server.throttled", 0.5),
            ("server.cpu_of_limit", 0.1),
            ("client.busy", 0.1),
        ]);
        apply(rule, &facts, &run.run).unwrap().experiment
    };
    assert_eq!(expected("cpu_quota", 1.0), SECOND.expect);
    assert!(expected("cpu_quota", 2.0).starts_with("with half the users"));
    assert!(expected("few_users", 1.0).starts_with("with twice the users"));
}

#[test]
fn figures_are_shown_as_shares_counts_or_with_two_digits() {
    assert_eq!(
        (Unit::Share.format_value(0.1234), Unit::Share.format_value(1.0)),
        ("12.3 %".into(), "100.0 %".into())
    );
    let shown =
        [99.994, 99.996, 100.4, -150.6, 3.0, 0.5, -0.126].map(|value| Unit::Number.format_value(value));
    assert_eq!(shown, ["99.99", "100.00", "100", "-151", "3", "0.50", "-0.13"]);
    // Of a figure that was nothing before, no factor is known.
    assert_eq!([2.5, 1_000.0].map(|factor| Unit::Factor.format_value(factor)), ["2.50", "more than 1000"]);
    let holds = |limit: Limit| {
        let test = FactTest { fact: "client.busy", limit, unit: Unit::Number, message: "{}" };
        [0.9, 1.0, 1.1].map(|value| test.is_met_by(value))
    };
    assert_eq!(holds(Limit::Above(1.0)), [false, false, true]);
    assert_eq!(holds(Limit::Below(1.0)), [true, false, false]);
}

/// The command that varies a run with this command, in words.
fn varied(run: &RunDir, option: &'static str, factor: f64) -> String {
    command::build_varied_command(run, &SuggestedExperiment { option, factor, expect: "" }).join(" ")
}

#[test]
fn the_runs_own_command_is_varied_in_one_value() {
    let command = "\"/usr/bin/dyno\", \"run\", \"-u\", \"8\", \"--users=9\", \"--threads\", \"2\", \"-t=2\", \"-d\", \"10s\", \
                   \"--duration=10s\", \"--field-length\", \"50\", \"--no-load\", \"--out\", \"d\", \"-o=e\", \"--outer\", \"f\"";
    let setting = "{\"key\": \"fieldlength\", \"value\": \"50\", \"source\": \"x\"}";
    let given =
        SyntheticRunParts { client: CLIENT, command, settings: setting, ..SyntheticRunParts::default() };
    let run = &SyntheticRun::new(given);
    for (option, factor, expected) in [
        (
            "--users",
            0.5,
            "--threads 2 -t=2 -d 10s --duration=10s --field-length 50 --no-load --outer f --users 4",
        ),
        (
            "--users",
            0.01,
            "--threads 2 -t=2 -d 10s --duration=10s --field-length 50 --no-load --outer f --users 1",
        ),
        (
            "--threads",
            2.0,
            "-u 8 --users=9 -d 10s --duration=10s --field-length 50 --no-load --outer f --threads 4",
        ),
        (
            "--duration",
            0.5,
            "-u 8 --users=9 --threads 2 -t=2 --field-length 50 --no-load --outer f --duration 5s",
        ),
        (
            "--field-length",
            0.5,
            "-u 8 --users=9 --threads 2 -t=2 -d 10s --duration=10s --outer f --reload --field-length 25",
        ),
    ] {
        assert_eq!(varied(&run.run, option, factor), format!("dyno run {expected}"), "{option}");
    }
    assert_eq!(varied(&run.run, "--rate", 2.0), "");
    let short = SyntheticRunParts { command: "\"dyno\", \"run\"", settings: "", ..given };
    assert_eq!(
        varied(&SyntheticRun::new(short).run, "--field-length", 0.5),
        "dyno run --reload --field-length 50"
    );
    // The open loop has no users to vary, and another command is not run again.
    let open = SyntheticRun::new(SyntheticRunParts { phase: ", \"offered\": 5.0", ..short });
    assert_eq!(
        (varied(&open.run, "--users", 2.0), varied(&open.run, "--threads", 2.0)),
        (String::new(), "dyno run --threads 4".into())
    );
    for command in ["\"dyno\", \"import\", \"x\"", "\"dyno\"", ""] {
        assert_eq!(
            varied(&SyntheticRun::new(SyntheticRunParts { command, ..short }).run, "--users", 2.0),
            "",
            "{command}"
        );
    }
}

#[test]
fn a_cell_of_an_experiment_is_varied_by_its_key() {
    let command = "\"dyno\", \"run\", \"x.yaml\", \"--out\", \"d\", \"-u\", \"3\"";
    let mut made =
        SyntheticRun::new(SyntheticRunParts { client: CLIENT, command, ..SyntheticRunParts::default() });
    let setting =
        |key: &str, value: &str| Setting { key: key.into(), value: value.into(), source: "x".into() };
    made.run.run.settings.push(setting("cell", "1"));
    for (option, factor, set) in [
        ("--users", 0.5, "phases.measure.users=4"),
        ("--threads", 2.0, "client.threads=4"),
        ("--duration", 2.0, "phases.measure.duration=20s"),
        ("--field-length", 0.5, "workload.ycsb.properties.fieldlength=50"),
    ] {
        assert_eq!(varied(&made.run, option, factor), format!("dyno run x.yaml -u 3 --set {set}"));
    }
    // A search's point is pinned; what is about to change is not, by either of its names.
    let point = Setting { source: "strategy x".into(), ..setting("client.threads", "6") };
    made.run.run.settings.push(point);
    let whole = "dyno run x.yaml -u 3 --set strategy=null";
    assert_eq!(varied(&made.run, "--threads", 2.0), format!("{whole} --set client.threads=4"));
    assert_eq!(
        varied(&made.run, "--users", 0.5),
        format!("{whole} --set client.threads=6 --set phases.measure.users=4")
    );
    made.run.run.settings.push(Setting { source: "strategy x".into(), ..setting("password", "***") });
    assert_eq!(varied(&made.run, "--users", 0.5), "");
}

#[test]
fn a_fall_is_held_against_the_burst_credits_of_the_volume() {
    let noise = [0, 7, 3, 9, 5, 1, 8, 2, 6, 4];
    let course: Vec<u64> =
        (0..121).map(|at| if at < 60 { 3_000 + noise[at % 10] } else { 100 + noise[at % 10] / 5 }).collect();
    let disk = "\"host\": {\"cpu_busy_share\": 0.1, \"cpu_iowait_share\": 0.0, \"cpu_steal_share\": 0.0, \
                \"network_received_bytes_per_s\": 0.0, \"network_sent_bytes_per_s\": 0.0, \"disk\": {\"name\": \"sda\", \
                \"reads_per_s\": 0.0, \"writes_per_s\": 0.0, \"read_bytes_per_s\": 0.0, \"written_bytes_per_s\": 0.0, \
                \"busy_share\": 1.0}}";
    let text = format_interval_lines(&course, 1);
    let given =
        SyntheticRunParts { client: CLIENT, monitor: disk, intervals: &text, ..SyntheticRunParts::default() };
    let mut recording = Recording::new();
    let (mut reads, mut writes) = (0.0, 0.0);
    for second in 0..=121 {
        let row = [("disk.sda.reads", Counter, reads), ("disk.sda.writes", Counter, writes)];
        recording.push("host", f64::from(second) * 1e3, row);
        let busy = second < 60;
        reads += if busy { 2_000.0 } else { 66.0 };
        writes += if busy { 1_000.0 } else { 33.0 };
    }
    let of = |system: &str, recording: Option<&Recording>| {
        let made = SyntheticRun::new(SyntheticRunParts { system, ..given });
        let found = collect_facts(&made.run, recording);
        let names = ["ratio", "signs", "looked_at", "before_per_s", "after_per_s", "work_changed"];
        names.map(|name| found.get(&format!("burst.{name}")).map(|value| (value * 1e4).round() / 1e4))
    };
    // From 3,004.5 to a mean of 100.49, as a small volume does; after a minute the bucket is not yet empty.
    let (ratio, work) = (Some(29.898), Some(0.0134));
    let seen = [ratio, Some(3.0), Some(4.0), Some(3_000.0), Some(99.0), work];
    assert_eq!(of("", Some(&recording)), seen);
    // A volume of 2,000 GiB has no bursts.
    let large = [ratio, Some(1.0), Some(4.0), Some(3_000.0), Some(99.0), work];
    assert_eq!(of("\"disks\": {\"sda.size\": \"2147483648000 bytes\"}", Some(&recording)), large);
    assert_eq!(of("", None), [ratio, Some(1.0), Some(2.0), None, None, None]);
    // Twelve intervals of five seconds on either side of the fall.
    let sums: Vec<u64> = course[..120].chunks_exact(5).map(|five| five.iter().sum()).collect();
    let text = format_interval_lines(&sums, 5);
    let made = SyntheticRun::new(SyntheticRunParts { intervals: &text, ..given });
    let found = collect_facts(&made.run, Some(&recording));
    let disk = ["burst.before_per_s", "burst.after_per_s"].map(|name| found.get(name));
    assert_eq!(disk, [Some(3_000.0), Some(99.0)]);
    // A rate that rises does not fall.
    let text = format_interval_lines(&course.iter().rev().copied().collect::<Vec<u64>>(), 1);
    let made = SyntheticRun::new(SyntheticRunParts { intervals: &text, ..given });
    assert_eq!(collect_facts(&made.run, Some(&recording)).get("burst.ratio"), None);
}

#[test]
fn a_server_that_was_gone_explains_a_run_before_anything_else() {
    let found_in = |lengths_s: &[f64], check: &str| {
        let monitor = host(0.99, 0.05);
        let mut made = SyntheticRun::new(SyntheticRunParts {
            database: "MongoDB 8",
            client: CLIENT,
            monitor: &monitor,
            ..SyntheticRunParts::default()
        });
        let reason =
            Reason { check: check.into(), trust: Trust::Invalid, affects: Vec::new(), text: String::new() };
        let summary = made.run.summary.as_mut().unwrap();
        summary.verdict.reasons.push(reason);
        let phase = summary.phases.last_mut().unwrap();
        phase.silences = lengths_s.iter().map(|&length_s| Silence { from_s: 1.0, length_s }).collect();
        let share = collect_facts(&made.run, None).get("server.gone_share").map(|share| share * 10.0);
        (share.map(|s| (s * 1e3).round() / 1e3), found(&made.run, None).first().copied())
    };
    // Of ten seconds.
    assert_eq!(found_in(&[2.5, 0.75], "gone"), (Some(3.25), Some(("gone", 0.95))));
    assert_eq!(found_in(&[2.0], "gone"), (Some(2.0), Some(("gone", 0.95))));
    // A slow server is silent for a moment, too, and more than once: a disk of 150 reads a second was called a server that hung.
    assert_eq!(found_in(&[1.9, 1.9, 1.2], "gone"), (None, Some(("steal", 0.6))));
    // Where the verdict does not say that it was gone, as with faults of the run's own, the figure is not there.
    assert_eq!(found_in(&[2.5], "faults"), (None, Some(("steal", 0.6))));
    let made = SyntheticRun::new(SyntheticRunParts { client: CLIENT, ..SyntheticRunParts::default() });
    let rule = rules::all_rules().find(|rule| rule.name == "gone").unwrap();
    assert_eq!(apply(rule, &Facts::from_pairs(&[("server.gone_share", 0.0)]), &made.run), None);
    let finding = apply(rule, &Facts::from_pairs(&[("server.gone_share", 0.325)]), &made.run).unwrap();
    assert_eq!(finding.evidence, ["nothing succeeded for 32.5 % of the time"]);
}
