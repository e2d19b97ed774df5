use super::*;
use dyno_record::ThreadInterval as Counts;

fn options(set: &[(&str, &str)]) -> MeasurementOptions {
    let mut lookup = |key: &str| set.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned());
    MeasurementOptions::from_lookup(&mut lookup).unwrap()
}

/// Records (metric name, outcome, service in us, response in us), with single samples if asked for.
fn totals(records: &[(&str, Outcome, u64, u64)], samples: bool) -> (Vec<String>, Totals) {
    let mut names: Vec<String> = Vec::new();
    for (name, ..) in records {
        if !names.iter().any(|n| n == name) {
            names.push((*name).to_owned());
        }
    }
    let mut counts = Counts::new(names.len(), Scale::Micros);
    for (i, &(name, outcome, service, response)) in records.iter().enumerate() {
        let metric = names.iter().position(|n| n == name).unwrap() as u16;
        let (service_ns, response_ns) = (service * 1_000 + 999, response * 1_000 + 1);
        counts.record_ended(metric, outcome, service_ns, response_ns);
        if samples {
            let done_ns = (i as u64 + 1) * 1_000_000;
            counts.samples.push(RawSample { metric, outcome, done_ns, service_ns, response_ns });
        }
    }
    let mut totals = Totals::new(names.len(), Scale::Micros);
    totals.add_interval(&counts);
    (names, totals)
}

fn shown(metrics: &Metrics) -> Vec<String> {
    let line = |m: &Metric| {
        let returns: Vec<String> =
            m.returns.iter().map(|(code, n)| format!(" {}={n}", code.name())).collect();
        format!("{} {}x{}{}", m.name, m.buckets.count(), m.buckets.hdr_max_units(), returns.concat())
    };
    metrics.list.iter().map(line).collect()
}

const MIXED: [(&str, Outcome, u64, u64); 10] = [
    ("UPDATE", Outcome::Ok, 10, 1_010),
    ("READ", Outcome::Ok, 20, 1_020),
    ("READ", Outcome::NotFound, 30, 1_030),
    ("READ", Outcome::Busy, 40, 1_040),
    ("READ", Outcome::TimedOut, 50, 1_050),
    ("READ-MODIFY-WRITE", Outcome::Ok, 60, 1_060),
    ("READ-MODIFY-WRITE", Outcome::NotFound, 70, 1_070),
    ("SCAN-LATENCY-PER-RECORD", Outcome::Ok, 80, 80),
    ("VERIFY", Outcome::Mismatch, 90, 90),
    ("CLEANUP", Outcome::Ok, 100, 100),
];

#[test]
fn failures_are_apart_and_only_operations_have_them() {
    let (names, totals) = totals(&MIXED, false);
    let metrics = metrics(&names, &totals, UNIX_EPOCH, &options(&[]), Interval::Op);
    let expected = [
        "READ 1x20 OK=1 SERVICE_UNAVAILABLE=1 NOT_FOUND=1 ERROR=1",
        "READ-MODIFY-WRITE 2x70",
        "CLEANUP 1x100",
        "SCAN-LATENCY-PER-RECORD 1x80",
        "UPDATE 1x10 OK=1",
        "READ-FAILED 3x50",
        "VERIFY 1x90 UNEXPECTED_STATE=1",
    ];
    assert_eq!(shown(&metrics), expected);
    assert!(metrics.warnings.is_empty() && !metrics.samples);
}

#[test]
fn intended_takes_the_response_time() {
    let (names, totals) = totals(&MIXED, false);
    let both = metrics(&names, &totals, UNIX_EPOCH, &options(&[]), Interval::Both);
    let expected = [
        "Intended-READ 1x1020",
        "Intended-READ-MODIFY-WRITE 2x1070",
        "Intended-CLEANUP 1x100",
        "Intended-UPDATE 1x1010",
        "Intended-READ-FAILED 3x1050",
    ];
    assert_eq!(shown(&both)[7..], expected);
    let intended = metrics(&names, &totals, UNIX_EPOCH, &options(&[]), Interval::Intended);
    let expected = [
        "READ 1x1020 OK=1 SERVICE_UNAVAILABLE=1 NOT_FOUND=1 ERROR=1",
        "READ-MODIFY-WRITE 2x1070",
        "CLEANUP 1x100",
        "UPDATE 1x1010 OK=1",
        "READ-FAILED 3x1050",
        "VERIFY 0x0 UNEXPECTED_STATE=1",
    ];
    assert_eq!(shown(&intended), expected);
}

#[test]
fn return_codes_may_have_metrics_of_their_own() {
    let reads = |metrics: &Metrics| -> Vec<String> {
        shown(metrics).into_iter().filter(|line| line.starts_with("READ-") && !line.contains("MOD")).collect()
    };
    let (names, with) = totals(&MIXED, true);
    let each = options(&[("reportlatencyforeacherror", "true")]);
    let found = metrics(&names, &with, UNIX_EPOCH, &each, Interval::Op);
    let mut split = reads(&found);
    split.sort();
    assert_eq!(split, ["READ-ERROR 1x50", "READ-NOT_FOUND 1x30", "READ-SERVICE_UNAVAILABLE 1x40"]);
    assert!(found.samples);
    let tracked = options(&[("latencytrackederrors", "NOT_FOUND")]);
    let mut split = reads(&metrics(&names, &with, UNIX_EPOCH, &tracked, Interval::Op));
    split.sort();
    assert_eq!(split, ["READ-FAILED 2x50", "READ-NOT_FOUND 1x30"]);
    // Without samples the failures stay together, and a line says so.
    let (names, without) = totals(&MIXED, false);
    let found = metrics(&names, &without, UNIX_EPOCH, &each, Interval::Op);
    assert_eq!(reads(&found), ["READ-FAILED 3x50"]);
    assert_eq!(found.warnings.len(), 1);
    // One way of failing needs no samples.
    let (names, one) = totals(&[("READ", Outcome::NotFound, 5, 5)], false);
    let found = metrics(&names, &one, UNIX_EPOCH, &each, Interval::Op);
    assert_eq!(shown(&found), ["READ 0x0 NOT_FOUND=1", "READ-NOT_FOUND 1x5"]);
}

#[test]
fn a_metric_without_latency_has_no_intended_twin() {
    let (names, totals) = totals(&[("READ", Outcome::Unreachable, 5, 9)], false);
    let found = metrics(&names, &totals, UNIX_EPOCH, &options(&[]), Interval::Both);
    assert_eq!(shown(&found), ["READ 0x0 ERROR=1", "READ-FAILED 1x5", "Intended-READ-FAILED 1x9"]);
}

#[test]
fn samples_become_points_in_order_of_completion() {
    let (names, mut totals) = totals(&MIXED, true);
    totals.samples.reverse();
    let raw = options(&[("measurementtype", "raw")]);
    let epoch = UNIX_EPOCH + std::time::Duration::from_micros(5_000_500);
    let found = metrics(&names, &totals, epoch, &raw, Interval::Op);
    let failed = found.list.iter().find(|m| m.name == "READ-FAILED").unwrap();
    let points: Vec<(u64, u64)> = failed.points.iter().map(|p| (p.done_ms, p.latency_us)).collect();
    assert_eq!(points, [(5_003, 30), (5_004, 40), (5_005, 50)]);
}

#[test]
fn what_was_never_sent_has_no_latency() {
    let (names, mut totals) =
        totals(&[("READ", Outcome::Ok, 20, 30), ("READ", Outcome::Aborted, 40, 50)], false);
    totals.outcomes[0][Outcome::Aborted as usize] += 3;
    let seen =
        |totals: &Totals| shown(&metrics(&names, totals, UNIX_EPOCH, &options(&[]), Interval::Op)).join("; ");
    assert_eq!(seen(&totals), "READ 1x20 OK=1 ERROR=1; READ-FAILED 1x40");
    totals.outcomes[0][Outcome::Dropped as usize] = 2;
    assert_eq!(seen(&totals), "READ 1x20 OK=1 ERROR=3; READ-FAILED 1x40");
    totals.outcomes[0][Outcome::Aborted as usize] = 0;
    totals.slots[1] = None;
    assert_eq!(seen(&totals), "READ 1x20 OK=1 ERROR=2");
}
