//! Tests of what `intervals.jsonl` and the histogram log hold, and what comes back from them.

use super::*;
use crate::hlog;
use dyno_record::Scale;

fn names() -> Vec<String> {
    vec!["READ".to_owned(), "UPDATE".to_owned()]
}

fn times(ns: &[u64]) -> Buckets {
    let mut buckets = Buckets::new(Scale::Ns64);
    ns.iter().for_each(|ns| buckets.record(*ns));
    buckets
}

/// Three reads, and an update that failed.
fn seen() -> Totals {
    let mut totals = Totals::new(2, Scale::Ns64);
    totals.slots[0] = Some(MergedSlot {
        service: times(&[100_001, 200_002, 300_003]),
        response: times(&[110_001, 220_002, 330_003]),
    });
    totals.slots[3] = Some(MergedSlot { service: times(&[400_004]), response: times(&[440_004]) });
    totals.outcomes[0][Outcome::Ok as usize] = 3;
    totals.outcomes[1][Outcome::Busy as usize] = 1;
    totals.ended[Outcome::Ok as usize] = 3;
    totals.ended[Outcome::Busy as usize] = 1;
    totals.arrivals = 5;
    (totals.carried, totals.carried_arrivals) = (6, 7);
    (totals.late, totals.reconnects, totals.redirects) = (8, 9, 10);
    (totals.backlog, totals.busy_ns) = (11, 12);
    totals.lag = times(&[50_005]);
    totals.drops = vec![(2, 13)];
    totals
}

fn line() -> IntervalLine {
    IntervalLine::from_interval("measure", Duration::from_millis(2_500), &names(), &seen())
}

#[test]
fn an_imported_result_may_know_one_of_two_times() {
    let log = hlog::read(&hlog::interval_lines("measure", &names(), 2.5, 1.0, &seen()), Scale::Ns64).unwrap();
    for (kind, expected) in [("service", (3, 0)), ("response", (0, 3))] {
        let tag = format!("READ.ok.{kind}");
        let only = log.clone().into_iter().filter(|(name, _)| name.ends_with(&tag)).collect();
        let slots = line().phase_totals(&names(), Scale::Ns64, &only).slots;
        let counts: Vec<_> =
            slots.iter().map(|slot| slot.as_ref().map(|s| (s.service.count(), s.response.count()))).collect();
        assert_eq!(counts, [Some(expected), None, None, None]);
        // Exact figures are for the samples that they were counted of.
        let few = IntervalLine {
            exact: [(tag, Exact { count: 2, sum_ns: 9, min_ns: 9, max_ns: 9 })].into(),
            ..line()
        };
        let slot = few.phase_totals(&names(), Scale::Ns64, &only).slots[0].clone().unwrap();
        assert!(slot.service.max_ns().max(slot.response.max_ns()) > 300_000);
    }
}

#[test]
fn what_a_line_holds() {
    let line = line();
    assert_eq!(line.ended, [("ok".to_owned(), 3), ("busy".to_owned(), 1)].into());
    assert_eq!(line.outcomes["READ"], [("ok".to_owned(), 3)].into());
    assert_eq!(line.outcomes["UPDATE"], [("busy".to_owned(), 1)].into());
    let service = Exact { count: 3, sum_ns: 600_006, min_ns: 100_001, max_ns: 300_003 };
    assert_eq!(line.exact["READ.ok.service"], service);
    assert_eq!(line.exact.len(), 5, "no lag without a sample: {:?}", line.exact.keys());
    let mut both = seen();
    (both.slots[1], both.slots[2]) = (both.slots[3].clone(), both.slots[0].clone());
    let both = IntervalLine::from_interval("measure", Duration::ZERO, &names(), &both);
    let counts: Vec<_> = both.exact.iter().map(|(tag, exact)| (tag.as_str(), exact.count)).collect();
    let expected = [
        ("READ.failed.response", 1),
        ("READ.failed.service", 1),
        ("READ.ok.response", 3),
        ("READ.ok.service", 3),
        ("UPDATE.failed.response", 1),
        ("UPDATE.failed.service", 1),
        ("UPDATE.ok.response", 3),
        ("UPDATE.ok.service", 3),
        ("client.lag.schedule", 1),
    ];
    assert_eq!(counts, expected);
    let text = serde_json::to_string(&line).unwrap();
    assert!(text.contains("\"ms\":500") && !text.contains("length_ms"), "{text}");
    let idle = IntervalLine::from_interval("measure", Duration::ZERO, &names(), &Totals::new(2, Scale::Ns64));
    assert!(idle.outcomes.is_empty() && idle.exact.is_empty() && idle.ended.is_empty(), "{idle:?}");
}

#[test]
fn begins_and_ends() {
    let at = |second, ms, length_ms| IntervalLine { second, ms, length_ms, ..IntervalLine::default() };
    assert_eq!((at(2, 500, 0).start_ms(), at(2, 500, 0).end_s()), (2_500, 3));
    assert_eq!((at(2, 0, 0).end_s(), at(2, 500, 10_000).end_s(), at(2, 0, 10_000).end_s()), (3, 13, 12));
}

#[test]
fn sums_of_two_intervals() {
    let mut sum = line();
    let mut later = IntervalLine { second: 3, ms: 0, backlog: 4, drops: vec![(3, 1)], ..line() };
    later.ended.insert("ok".to_owned(), 4);
    later.outcomes.remove("UPDATE");
    sum.merge(&later);
    assert_eq!(sum.arrivals, 10);
    assert_eq!(sum.ended, [("ok".to_owned(), 7), ("busy".to_owned(), 2)].into());
    assert_eq!((sum.outcomes["READ"]["ok"], sum.outcomes["UPDATE"]["busy"]), (6, 1));
    let service = Exact { count: 6, sum_ns: 1_200_012, min_ns: 100_001, max_ns: 300_003 };
    assert_eq!(sum.exact["READ.ok.service"], service);
    assert_eq!((sum.carried, sum.links), ((12, 14), (16, 18, 20)));
    assert_eq!((sum.backlog, sum.busy_ns, sum.drops.as_slice()), (11, 24, &[(2, 13), (3, 1)][..]));
    assert_eq!((sum.second, sum.ms, sum.end_s()), (3, 0, 4));
}

#[test]
fn stamps_are_written_where_there_are_any() {
    let written = |kernel: u64| {
        let line = IntervalLine { stamps: (kernel, 0, 0, 0), ..line() };
        serde_json::to_string(&line).unwrap().contains("stamps")
    };
    assert_eq!((written(0), written(1)), (false, true));
}
