//! A fall of throughput and its cause, before against after.

use super::made::{SyntheticRun, SyntheticRunParts, format_interval_lines};
use super::*;
use dyno_rundir::monitor::Kind::{Counter, Gauge};

/// A series, whether it is a counter, and a second of it before and after: a counter's increase, or a gauge's value.
type Sides = (&'static str, &'static str, bool, [f64; 2]);

/// A minute at 5,000/s and a minute at `after` operations a second, with these series on a host of 4 CPUs, of which the server
/// uses 1.5 before.
fn fell(after: u64, series: &[Sides]) -> Diagnosis {
    let noise = [0, 7, 3, 9, 5, 1, 8, 2, 6, 4];
    let course: Vec<u64> = (0..120).map(|at| if at < 60 { 5_000 } else { after } + noise[at % 10]).collect();
    let text = format_interval_lines(&course, 1);
    let client = "\"users\": 8, \"pipeline\": 1, \"threads\": 2, \"busy_share\": 0.3";
    let mut made = SyntheticRun::new(SyntheticRunParts {
        database: "MongoDB 8",
        cores: "0, 1, 2, 3",
        client,
        intervals: &text,
        ..SyntheticRunParts::default()
    });
    made.run.summary.as_mut().unwrap().phases[0].seconds = 120.0;
    let usual: [Sides; 6] = [
        ("host", "cpu.user_s", true, [1.5, 1.5]),
        ("host", "cpu.idle_s", true, [2.5, 2.5]),
        ("host", "disk.a.busy_s", true, [0.5, 0.5]),
        ("server", "cpu.user_s", true, [1.5, 1.5]),
        ("server", "cpu.system_s", true, [0.0, 0.0]),
        ("host", "disk.a.weighted_s", true, [1.0, 1.0]),
    ];
    let all: Vec<Sides> = usual
        .into_iter()
        .filter(|one| series.iter().all(|own| (own.0, own.1) != (one.0, one.1)))
        .chain(series.iter().copied())
        .collect();
    let mut recording = Recording::new();
    for second in 0..=120u32 {
        let at = f64::from(second);
        for source in ["host", "server"] {
            let value = |(_, name, counter, [was, is]): &Sides| match counter {
                true => (*name, Counter, at.min(60.0) * was + (at - 60.0).max(0.0) * is),
                false => (*name, Gauge, if second < 60 { *was } else { *is }),
            };
            recording.push(source, at * 1e3, all.iter().filter(|one| one.0 == source).map(value));
        }
    }
    diagnose_run(&made.run, Some(&recording))
}

/// Reads and bytes of a disk, and the share of the time that tasks wait for it.
fn disk(reads: [f64; 2], waits: [f64; 2]) -> Vec<Sides> {
    let bytes = reads.map(|reads| reads * 4_096.0);
    vec![
        ("host", "disk.a.reads", true, reads),
        ("host", "disk.a.writes", true, [0.0, 0.0]),
        ("host", "disk.a.read_bytes", true, bytes),
        ("host", "disk.a.written_bytes", true, [0.0, 0.0]),
        ("host", "pressure.io.some_s", true, waits),
    ]
}

fn first(found: &Diagnosis) -> &str {
    found.findings.first().map_or("", |finding| finding.rule)
}

#[test]
fn the_cause_of_a_fall_is_what_came_with_it() {
    // 0.4 reads for each operation before and after: the disk serves a tenth of them, and memory is as short as it was.
    let mut slower = disk([2_000.0, 200.0], [0.4, 0.95]);
    slower.extend([
        ("server", "major_faults", true, [500.0, 50.0]),
        ("server", "cgroup.memory_limit_hits", true, [30.0, 3.0]),
        ("host", "pressure.memory.some_s", true, [0.1, 0.1]),
    ]);
    let found = fell(500, &slower);
    assert_eq!(first(&found), "change_disk_slower", "{found:#?}");
    let change = found.change.as_ref().unwrap();
    assert_eq!((change.at_s, change.before.round(), change.after.round()), (60.0, 5_005.0, 505.0));
    let finding = &found.findings[0];
    assert!(finding.claim.starts_with("from 60 s on: the disk serves less"), "{}", finding.claim);
    assert!(
        finding.evidence.iter().any(|message| message == "throughput falls to 10.1 % of what it was"),
        "{finding:?}"
    );
    let memory = found.findings.iter().find(|finding| finding.rule == "memory").unwrap();
    assert!(
        memory.claim.starts_with("before 60 s and after: ") && memory.confidence < finding.confidence / 1.5
    );

    // A real one: reads throttled from 5,900 to 150 a second, while a little more is asked for each operation.
    assert_eq!(first(&fell(150, &disk([3_000.0, 150.0], [0.37, 0.99]))), "change_disk_slower");

    // Another real one, beside a program that uses the disk as well: tasks wait for memory, too, because the pages that they wait
    // for come from that disk.
    let mut beside = disk([3_000.0, 1_410.0], [0.205, 0.877]);
    beside.extend([
        ("host", "pressure.memory.some_s", true, [0.095, 0.255]),
        ("server", "cgroup.memory_limit_hits", true, [1_206.0, 1_206.0]),
    ]);
    let found = fell(155, &beside);
    assert_eq!(first(&found), "change_disk_slower", "{found:#?}");

    // Data that do not fit any more: as many reads a second as the disk can, four times as many for each operation.
    let found = fell(1_250, &disk([2_000.0, 2_000.0], [0.3, 0.9]));
    assert_eq!(first(&found), "change_disk_work", "{found:#?}");

    let busy: Vec<Sides> = vec![
        ("host", "cpu.user_s", true, [1.5, 3.9]),
        ("host", "cpu.idle_s", true, [2.5, 0.1]),
        ("server", "cpu.user_s", true, [1.5, 0.8]),
        ("host", "pressure.cpu.some_s", true, [0.05, 0.6]),
    ];
    // The rule for others, which says the same of what is after it alone, is as good.
    assert!(["change_others", "others"].contains(&first(&fell(2_500, &busy))));

    let throttled: Vec<Sides> = vec![
        ("server", "cgroup.throttled_periods", true, [0.0, 9.0]),
        ("server", "cgroup.periods", true, [10.0, 10.0]),
        ("server", "cpu.user_s", true, [1.5, 0.5]),
        ("host", "cpu.user_s", true, [1.5, 0.5]),
        ("host", "cpu.idle_s", true, [2.5, 3.5]),
    ];
    assert!(["change_throttled", "throttled"].contains(&first(&fell(1_700, &throttled))));

    let lost: Vec<Sides> = vec![
        ("host", "tcp.retransmitted_segments", true, [0.0, 20.0]),
        ("host", "tcp.sent_segments", true, [10_000.0, 1_000.0]),
        ("server", "cpu.user_s", true, [1.5, 0.2]),
    ];
    assert!(["change_network", "network_loss"].contains(&first(&fell(500, &lost))));

    let slow: Vec<Sides> = vec![
        ("host", "cpu.frequency_hz", false, [3e9, 1.5e9]),
        ("host", "cpu.nominal_hz", false, [3e9, 3e9]),
    ];
    // Each operation takes more time of a slower CPU: the clock is the cause of it.
    assert_eq!(first(&fell(2_500, &slow)), "change_frequency");
    assert!(fell(2_500, &slow).findings.iter().any(|finding| finding.rule == "change_cpu_work"));
}

/// A load that has become smaller, or a way that has become longer: every second's figure falls as throughput does.
#[test]
fn what_falls_as_throughput_does_is_no_cause() {
    let mut series = disk([2_000.0, 200.0], [0.4, 0.04]);
    series.extend([
        ("server", "cpu.user_s", true, [1.5, 0.15]),
        ("host", "cpu.user_s", true, [1.5, 0.15]),
        ("host", "cpu.idle_s", true, [2.5, 3.85]),
        ("host", "pressure.cpu.some_s", true, [0.1, 0.01]),
    ]);
    let found = fell(500, &series);
    let change = found.change.as_ref().unwrap();
    assert!(
        found.findings.iter().all(|finding| !finding.rule.starts_with("change_")),
        "{:#?}",
        found.findings
    );
    // Idle time for each operation and time of a disk that is always as busy do not.
    assert!(
        change.moved.iter().all(|one| ["host cpu.idle_s", "host disk.a.busy_s", "host disk.a.weighted_s"]
            .contains(&one.series.as_str())),
        "{change:#?}"
    );
}

#[test]
fn series_that_moved_are_named_with_both_figures() {
    let mut series = disk([2_000.0, 200.0], [0.4, 0.95]);
    series.push(("host", "memory.available_bytes", false, [8e9, 1e9]));
    series.push(("server", "io.errors", true, [0.0, 5.0]));
    let found = fell(500, &series);
    let moved = &found.change.as_ref().unwrap().moved;
    let of = |name: &str| moved.iter().find(|one| one.series == name).map(|one| one.table_cells());
    assert_eq!(of("server io.errors").unwrap(), ["server io.errors", "0/s", "5/s", "from nothing"]);
    let waits = of("host pressure.io.some_s").unwrap();
    assert!(waits[3].starts_with("x 23.5") && waits[3].ends_with("for each operation"), "{waits:?}");
    let memory = of("host memory.available_bytes").unwrap();
    assert_eq!(memory[3], "x 0.125");
    assert_eq!(of("host disk.a.reads"), None, "it fell as throughput did");
}

#[test]
fn a_run_that_keeps_its_level_has_no_change() {
    assert_eq!(fell(5_000, &disk([2_000.0, 2_000.0], [0.4, 0.4])).change, None);
}
