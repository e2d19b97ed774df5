use crate::import::*;
use std::path::Path;

/// What YCSB printed of a short run with a target: both clocks.
const REPORT: &str = "[OVERALL], RunTime(ms), 2000\n[OVERALL], Throughput(ops/sec), 50.0\n[TOTAL_GCs], Count, 1\n\
    [READ], Operations, 99\n[READ], AverageLatency(us), 10.5\n[READ], MinLatency(us), 5\n[READ], MaxLatency(us), 40\n\
    [READ], 95thPercentileLatency(us), 30\n[READ], 99.9PercentileLatency(us), 40\n[READ], Return=OK, 99\n\
    [READ], Return=NOT_FOUND, 1\n[CLEANUP], Operations, 4\n[CLEANUP], AverageLatency(us), 7.0\n";

const STATUS: &str = "Command line: -t -db site.ycsb.db.RedisClient -p redis.password=geheim -threads 4\n\
    2026-11-21 03:30:20:000 1 sec: 40 operations; 40 current ops/sec; [READ: Count=40, Max=40, Min=5, Avg=10, 99=39] \n\
    2026-11-21 03:30:21:000 2 sec: 100 operations; 60 current ops/sec; [READ: Count=60, Max=9, Min=5, Avg=11, 99=9] \n";

fn input(name: &str, text: &str) -> Input {
    Input { path: name.into(), text: text.to_owned() }
}

fn written(found: Found) -> (tempfile::TempDir, dyno_rundir::RunDir) {
    let folder = tempfile::tempdir().unwrap();
    let imported = assemble(found, &ImportDetails::default(), "a file", "2026-11-21T04:00:00Z");
    dyno_rundir::imported::write(folder.path(), &imported).unwrap();
    let run = dyno_rundir::RunDir::open(folder.path()).unwrap();
    (folder, run)
}

#[test]
fn ycsb_with_status_lines_becomes_a_run() {
    let files = [input("run.out", REPORT), input("run.err", STATUS)];
    let found = ycsb::read(&files, &ImportDetails::default()).unwrap();
    assert_eq!(found.users, Some(4));
    let (_folder, run) = written(found);
    let summary = run.summary.as_ref().unwrap();
    assert_eq!(summary.started, "2026-11-21T03:30:19Z");
    let phase = summary.measured_phase().unwrap();
    assert_eq!((phase.throughput, phase.arrivals), (49.5, 100));
    assert_eq!(phase.outcomes, BTreeMap::from([("ok".into(), 99), ("not_found".into(), 1)]));
    let read = phase.metrics[0].response.as_ref().unwrap();
    assert_eq!((read.mean_us, read.min_us, read.max_us), (10.5, Some(5.0), Some(40.0)));
    assert_eq!(read.percentiles_us.keys().collect::<Vec<_>>(), ["p95", "p99.9"]);
    assert_eq!(run.successes_by_second().unwrap().into_values().collect::<Vec<_>>(), [40, 60]);
    let password = run.run.settings.iter().find(|s| s.key == "redis.password").unwrap();
    assert_eq!(password.value, "***");
    // What is not known is not in the file.
    let text = std::fs::read_to_string(run.path.join("summary.json")).unwrap();
    assert!(
        !text.contains("user_cpu_s") && !text.contains("peak_resident") && text.contains("imported"),
        "{text}"
    );
    assert!(!std::fs::read_to_string(run.path.join("environment.json")).unwrap().contains("memory_bytes"));
    // The laws take the means.
    let seen = dyno_analysis::laws::observe_run(&run).unwrap();
    assert!((seen.response_s - 10.5e-6).abs() < 1e-12 && seen.users == Some(4.0), "{seen:?}");
}

#[test]
fn without_a_command_line_nothing_is_claimed_about_response_times() {
    let found = ycsb::read(&[input("run.out", REPORT)], &ImportDetails::default()).unwrap();
    assert!(found.metrics[0].response.is_none() && found.metrics[0].service.is_some());
    assert!(found.unknown.iter().any(|message| message.contains("--closed-loop")), "{:?}", found.unknown);
    let said = ImportDetails { closed_loop: true, ..ImportDetails::default() };
    assert!(ycsb::read(&[input("run.out", REPORT)], &said).unwrap().metrics[0].response.is_some());
}

#[test]
fn tables_become_courses() {
    let text = "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tcum_excp\tint_excp\tint_lat\n\
        5\t10.00\t10.00\t0.00\t0.00\t0\t0\t300.00\n10\t15.00\t20.00\t0.00\t0.00\t3\t3\t150.00\n";
    let found = sysbench::read(&input("t.tsv", text), &ImportDetails::default(), None).unwrap();
    assert_eq!(found.outcomes, BTreeMap::from([("ok".into(), 150), ("server_error".into(), 3)]));
    let mean = found.metrics[0].service.as_ref().unwrap().mean_us;
    assert!((mean - (50.0 * 300e3 + 100.0 * 150e3) / 150.0).abs() < 1e-6, "{mean}");
    let (_folder, run) = written(found);
    assert_eq!(run.phases[0].seconds, 10);
    assert_eq!(
        run.successes_by_second().unwrap().into_values().collect::<Vec<_>>()[..6],
        [10, 10, 10, 10, 10, 20]
    );
    let series = std::fs::read_to_string(run.path.join("series.csv")).unwrap();
    let columns = dyno_rundir::series::HEADER.matches(',').count();
    assert!(series.lines().all(|line| line.matches(',').count() == columns), "{series}");
    let poc = "10,402026-11-21T03:32:05,10,40,99.08,2026-11-21T03:32:05,10,40,99.97,2026-11-21T03:32:05,10,40,99.82,\
        2026-11-21T03:32:05,10,40,100.00,\n";
    let found = pocdriver::read(&input("poc.csv", poc), &ImportDetails::default()).unwrap();
    assert_eq!((found.outcomes["ok"], found.seconds), (40, 10.0));
    assert_eq!(found.started.as_deref(), Some("2026-11-21T03:31:55Z"));
    assert_eq!(found.facts["rangequeries within the slow threshold, per cent"], "100.00");
    assert!(found.metrics[0].service.is_none());
}

#[test]
fn columns_are_named_and_gaps_are_gaps() {
    let columns = csv::Columns { time: Some("t".into()), throughput: "x".into(), ..Default::default() };
    let found = csv::time_series(&input("l.csv", "t,x\n10,100\n20,\n30,50.04\n"), &columns).unwrap();
    assert_eq!((found.seconds, found.outcomes["ok"], found.intervals.len()), (30.0, 1_500, 2));
    assert_eq!(found.throughput, Some(75.0), "over the 20 s that are known");
    assert!(found.unknown.contains(&"throughput in 10 s without a rate".to_owned()), "{:?}", found.unknown);
    let begins = csv::time_series(&input("l.csv", "t,x\n0,100\n10,50\n"), &columns).unwrap();
    assert_eq!((begins.seconds, begins.intervals[1].start_ms), (20.0, 10_000));
}

#[test]
fn what_is_wrong_is_named_with_file_line_and_what_was_expected() {
    let columns = csv::Columns { time: Some("t".into()), throughput: "x".into(), ..Default::default() };
    let said = ImportDetails::default();
    for (error, message) in [
        (
            csv::time_series(&input("l.csv", "t,y\n1,2\n"), &columns).unwrap_err(),
            "l.csv:1: expected a column x in the head, found t,y",
        ),
        (
            csv::time_series(&input("l.csv", "t,x\n1,2\n1,3\n"), &columns).unwrap_err(),
            "l.csv:3: expected times in column t that grow",
        ),
        (
            csv::time_series(&input("l.csv", "t,x\n1,2\n2,-3\n"), &columns).unwrap_err(),
            "l.csv:3: expected a number from 0 to 1e15 in column x",
        ),
        (ycsb::read(&[input("y.out", "hello\n")], &said).unwrap_err(), "y.out:1: expected YCSB's report"),
        (
            ycsb::read(&[input("y.out", "[READ], Operations, many\n")], &said).unwrap_err(),
            "y.out:1: expected a number as the third part",
        ),
        (
            ycsb::read(
                &[input("y.err", &format!("{REPORT}5 sec: x operations; 1 current ops/sec;\n"))],
                &said,
            )
            .unwrap_err(),
            "y.err:14: expected a status line",
        ),
        (
            ycsb::read(
                &[input("y.hdr", "#[Logging for: READ]\n#[Histogram log format version 1.3]\n0,1,1,AAAA\n")],
                &said,
            )
            .unwrap_err(),
            "y.hdr:3: expected a compressed HdrHistogram",
        ),
        (
            sysbench::read(&input("s.tsv", "a\tb\n"), &said, None).unwrap_err(),
            "s.tsv:1: expected columns elap_secs and int_tps",
        ),
        (
            sysbench::read(&input("s.tsv", "elap_secs\tint_tps\n5\tx\n"), &said, None).unwrap_err(),
            "s.tsv:2: expected a number from 0 to 1e9 in column int_tps, found x",
        ),
        (
            csv::time_series(&input("l.csv", "t,x\n1,2\n2e14,3\n3e14,9\n"), &columns).unwrap_err(),
            "l.csv:4: expected up to 1e15 operations in all, found more",
        ),
        (
            sysbench::read(&input("s.tsv", "elap_secs\tint_tps\n1e300\t1\n"), &said, None).unwrap_err(),
            "s.tsv:2: expected a number from 0 to 1e9 in column elap_secs",
        ),
        (
            ycsb::read(&[input("y.out", &REPORT.replace("Return=OK, 99", "Return=OK, 1e30"))], &said)
                .unwrap_err(),
            "y.out:10: expected a count up to 1000000000000000",
        ),
        (
            pocdriver::read(&input("p.csv", "10,20,30\n"), &said).unwrap_err(),
            "p.csv:1: expected SECONDS,INSERTS",
        ),
    ] {
        let text = error.to_string();
        assert!(text.starts_with(message), "{text}");
    }
    assert_eq!(BadFile::new(Path::new("f"), 3, "a", "").to_string(), "f:3: expected a, found nothing");
}

#[test]
fn users_are_those_that_cleaned_up_or_that_the_command_line_says() {
    let without = REPORT.replace("[CLEANUP], Operations, 4\n", "");
    let of = |report: &str, message: &str| {
        let status = format!("Command line: -t -db site.ycsb.db.RedisClient {message}\n");
        let files = [input("run.out", report), input("run.err", &status)];
        let found = ycsb::read(&files, &ImportDetails::default()).unwrap();
        (found.users, found.offered, found.metrics[0].response.is_some())
    };
    assert_eq!(of(&without, "-threads 8"), (Some(8), None, true));
    assert_eq!(of(&without, "-p threadcount=8 -p target=500"), (Some(8), Some(500.0), false));
    // A thread without an operation is none: YCSB starts no more threads than operations.
    assert_eq!(of(REPORT, "-threads 8"), (Some(4), None, true));
    // YCSB's own files set neither; of others that is not known.
    assert_eq!(of(&without, "-P workloads/workloada"), (Some(1), None, true));
    assert_eq!(of(&without, "-P mine.properties"), (None, None, false));
    assert_eq!(of(&without, "-P mine.properties -threads 8 -target 100"), (Some(8), Some(100.0), false));
}

#[test]
fn status_lines_without_samples_have_no_mean() {
    let line = "2026-11-21 03:30:22:000 3 sec: 100 operations; 0 current ops/sec; [READ: Count=0, Max=0, Min=9, Avg=";
    for nothing in ["?", "\u{fffd}", "NaN"] {
        let files =
            [input("run.out", REPORT), input("run.err", &format!("{STATUS}{line}{nothing}, 99=0] \n"))];
        let found = ycsb::read(&files, &ImportDetails::default()).unwrap();
        assert_eq!(found.intervals.len(), 3);
        assert!(found.intervals[2].metrics.is_empty());
    }
}
