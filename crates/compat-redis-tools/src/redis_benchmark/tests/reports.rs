//! Reports, against recorded ones: histograms are built from the bounds and counts that these list.

use super::super::{BenchmarkPlan, Ran, Test, TestProgress, head, progress, report, tail, width_of_progress};
use super::{recorded, redis, valkey};
use dyno_record::{Buckets, Scale};

/// A number behind a word.
fn number_after(text: &str, word: &str) -> f64 {
    let rest = &text[text.find(word).unwrap() + word.len()..];
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Bounds (µs) and counts up to them, which a block lists, and those that its percentiles tell.
fn points(block: &str) -> Vec<(u64, u64)> {
    let line = |line: &str| -> Option<(u64, u64)> {
        let (_, rest) = line.split_once("% <= ")?;
        let ms: f64 = rest.split(' ').next()?.parse().ok()?;
        let count = rest.split("count ").nth(1)?.trim_end_matches(')').parse().ok()?;
        Some(((ms * 1_000.0).round() as u64, count))
    };
    let mut all: Vec<(u64, u64)> = block.lines().filter_map(line).collect();
    let total = all.iter().map(|(_, count)| *count).max().unwrap();
    let summary: Vec<f64> =
        block.lines().last().unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    for (at, percent) in [(3, 0.95), (4, 0.99)] {
        let us = (summary[at] * 1_000.0).round() as u64;
        all.push((us, (percent * total as f64 + 0.5) as u64));
    }
    all.sort_unstable();
    all
}

/// Latencies whose cumulative counts are those.
fn buckets(points: &[(u64, u64)]) -> Buckets {
    let mut all = Buckets::new(Scale::Ns64);
    let mut seen = 0;
    for &(us, count) in points {
        // The first microsecond of the bucket of 8 that ends there.
        let ns = (us - us % 8) * 1_000 + 500;
        (seen..count).for_each(|_| all.record(ns));
        seen = seen.max(count);
    }
    all
}

/// The blocks of a recorded text, without progress.
fn blocks(text: &str) -> Vec<String> {
    let (_, blocks) = text.split_once("======").unwrap();
    blocks
        .split("\r======")
        .map(|block| {
            let end = block.find("latency summary").unwrap();
            let lines: usize = block[end..].split_inclusive('\n').take(3).map(str::len).sum();
            format!(" \r======{}", &block[..end + lines])
        })
        .collect()
}

/// A block without its mean, which bounds do not tell.
fn without_mean(block: &str) -> String {
    let summary = block.trim_end().rfind('\n').unwrap() + 1;
    format!("{}{}", &block[..summary], &block[summary + 13..])
}

fn texts_are_equal(plan: &BenchmarkPlan, name: &str, ran: &Ran<'_>) {
    let blocks = blocks(&recorded(name));
    assert_eq!(blocks.len(), plan.tests.len(), "{name}");
    for (block, test) in blocks.iter().zip(&plan.tests) {
        let latencies = buckets(&points(block));
        let requests = number_after(block, "======\n") as u64;
        let rate = number_after(block, "throughput summary: ");
        let elapsed_ms = (requests as f64 / rate * 1_000.0).round() as u64;
        let found = report(plan, test, &Ran { latencies: &latencies, requests, elapsed_ms, ..*ran });
        assert_eq!(without_mean(&found), without_mean(block), "{name}");
    }
}

#[test]
fn blocks_of_text_are_the_recorded_ones() {
    let empty = Buckets::new(Scale::Ns64);
    let ran = Ran {
        latencies: &empty,
        requests: 0,
        elapsed_ms: 0,
        threads: 1,
        config: Some(("", "no")),
        cluster_nodes: 0,
        progress_width: 0,
        rates: &[],
    };
    texts_are_equal(&redis("-n 1000 -t set,get"), "redis-set-get-n1000.stdout", &ran);
    texts_are_equal(&redis("-n 1000 -P 16 -t set,get -r 1000"), "redis-P16.stdout", &ran);
    let own = redis("-n 1000 -r 50 -d 7 lpush mylist __rand_int__ __rand_int__");
    texts_are_equal(&own, "redis-own-command-r.stdout", &ran);
    texts_are_equal(&redis("-n 1000 -t set,get -r 100"), "valkey-set-get.stdout", &ran);
    let two = Ran { threads: 2, ..ran };
    texts_are_equal(&redis("-n 1000 --threads 2 -t set,get,mset"), "redis-threads2.stdout", &two);
    let cluster = Ran { threads: 0, cluster_nodes: 2, ..ran };
    texts_are_equal(&redis("--cluster -n 400 -c 4 -t get -r 100"), "redis-cluster-text.stdout", &cluster);
}

fn ran(latencies: &Buckets, requests: u64, elapsed_ms: u64) -> Ran<'_> {
    Ran {
        latencies,
        requests,
        elapsed_ms,
        threads: 1,
        config: None,
        cluster_nodes: 0,
        progress_width: 0,
        rates: &[],
    }
}

/// Digits as one `9` each run.
fn shape(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if out.ends_with('9') => {}
            '0'..='9' => out.push('9'),
            other => out.push(other),
        }
    }
    out
}

#[test]
fn rows_and_lines_have_the_recorded_form() {
    let mut latencies = Buckets::new(Scale::Ns64);
    latencies.record(743_000);
    let whole = |plan: &BenchmarkPlan, width: usize| {
        let ran = Ran { progress_width: width, ..ran(&latencies, 1_000, 47) };
        let reports: String = plan.tests.iter().map(|test| report(plan, test, &ran)).collect();
        format!("{}{reports}{}", head(plan), tail(plan))
    };
    let csv = redis(
        "-n 1000 --csv -t ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset",
    );
    assert_eq!(shape(&whole(&csv, 0)), shape(&recorded("redis-default-n1000-csv.stdout")));
    assert_eq!(shape(&whole(&redis("--csv -t set,xadd"), 0)), shape(&recorded("valkey-csv.stdout")));
    assert_eq!(shape(&whole(&redis("--csv set k a\"b"), 0)), shape(&recorded("redis-csv-quote.stdout")));
    // Lines, behind the progress texts that are wiped out.
    let quiet = recorded("valkey-default-n200-q.stdout");
    let lines: Vec<String> = quiet
        .split_inclusive('\n')
        .map(|line| line.rsplit_once('\r').map_or(line.to_owned(), |(_, line)| format!(" \r{line}")))
        .collect();
    assert_eq!(shape(&whole(&redis("-q"), 0)), shape(&lines.concat()));
    let own = recorded("redis-t-and-command.stdout");
    let (_, last) = own.split_once("ping: ").unwrap();
    let (text, behind) = last.split_once('\r').unwrap();
    let width = "ping: ".len() + text.len() + 1;
    assert_eq!(shape(&whole(&redis("-q ping"), width)), shape(behind));
}

#[test]
fn a_row_has_the_histograms_numbers() {
    let mut latencies = Buckets::new(Scale::Ns64);
    (0..1_000).for_each(|_| latencies.record(700_000));
    let plan = redis("--csv -t set");
    // 700 µs lie in the bucket of 696 to 703 µs, whose middle is 700 µs; 1000 requests in 47 ms.
    assert_eq!(
        report(&plan, &plan.tests[0], &ran(&latencies, 1_000, 47)),
        "\"SET\",\"21276.60\",\"0.700\",\"0.696\",\"0.703\",\"0.703\",\"0.703\",\"0.703\"\n"
    );
    // Nothing lasts longer than 3 s, where buckets are 2,048 µs wide; no time is an infinite rate.
    let mut long = Buckets::new(Scale::Ns64);
    long.record(60_000_000_000);
    let row = report(&plan, &plan.tests[0], &ran(&long, 1, 0));
    assert!(row.starts_with("\"SET\",\"inf\",\"2999.296\",\"2998.272\",\"3000.319\""), "{row}");
}

#[test]
fn fewer_digits_make_wider_buckets() {
    let mut latencies = Buckets::new(Scale::Ns64);
    (0..100).for_each(|at| latencies.record(20_000_000 + at * 10_000));
    let bounds = |line: &str| -> usize {
        let plan = redis(line);
        let text = report(&plan, &plan.tests[0], &ran(&latencies, 100, 10));
        let (_, rest) = text.split_once("Latency by").unwrap();
        rest.lines().filter(|line| line.contains("% <= ")).count()
    };
    assert!(bounds("-t set --precision 1") < bounds("-t set --precision 4"));
    // Nothing at all is a report, too.
    let plan = redis("-t set");
    let empty = Buckets::new(Scale::Ns64);
    let text = report(&plan, &plan.tests[0], &ran(&empty, 0, 0));
    assert!(text.contains("100.000% <= 0.000 milliseconds (cumulative count 0)\n\nCumulative"), "{text}");
}

#[test]
fn progress_is_the_recorded_one() {
    let plan = redis("-n 60000 -c 10 -t set");
    let text = recorded("redis-long.stdout");
    // Requests and milliseconds that give the recorded rates.
    let steps = [
        (0, 0, 0, 1, f64::NAN, f64::NAN),
        (7_814, 250, 7_814, 250, 0.248, 0.248),
        (15_435, 500, 7_621, 250, 0.249, 0.251),
        (24_855, 751, 9_420, 251, 0.232, 0.204),
    ];
    let (mut width, mut found) = (0, String::new());
    for (requests, elapsed_ms, interval_requests, interval_ms, mean_ms, interval_mean_ms) in steps {
        let now = TestProgress {
            requests,
            elapsed_ms,
            mean_ms,
            interval_requests,
            interval_ms,
            interval_mean_ms,
            is_warmup: false,
            width,
        };
        let next = progress(&plan, &plan.tests[0], &now);
        width = width_of_progress(&next);
        found.push_str(&next);
    }
    assert_eq!(found, text[..found.len()]);
}

#[test]
fn progress_of_valkey_has_requests_or_seconds() {
    let now = TestProgress {
        requests: 10,
        elapsed_ms: 1_000,
        mean_ms: 1.0,
        interval_requests: 10,
        interval_ms: 1_000,
        interval_mean_ms: 1.0,
        is_warmup: false,
        width: 3,
    };
    let shown = |line: &str, now: &TestProgress| {
        let plan = valkey(line);
        progress(&plan, &plan.tests[0], now)
    };
    let means = "avg_msec=1.000 (overall: 1.000)";
    assert_eq!(shown("-t get", &now), format!("   \rGET: rps=10.0 (overall: 10.0) {means} 10 requests\r"));
    assert_eq!(
        shown("--duration 5 -t get", &now),
        format!("   \rGET: rps=10.0 (overall: 10.0) {means} 1.0 seconds\r")
    );
    let warm = TestProgress { is_warmup: true, width: 0, ..now };
    assert_eq!(
        shown("-t get", &warm),
        format!(" \rWarming up GET: rps=10.0 (overall: 10.0) {means} 1.0 seconds\r")
    );
    // Commands are counted, not sequences of them.
    assert!(shown("ping ; ping", &now).contains("rps=20.0 (overall: 20.0)"));
    assert_eq!(shown("--csv -t get", &now), "");
}

#[test]
fn rates_have_a_summary() {
    let mut latencies = Buckets::new(Scale::Ns64);
    (0..4).for_each(|_| latencies.record(100_000));
    let plan = valkey("--rps 1000 -t get --threads 2");
    let rates = [996.0, 1_000.0, 1_001.0, 5_000.0];
    let text = report(&plan, &plan.tests[0], &Ran { rates: &rates, threads: 2, ..ran(&latencies, 4, 1) });
    let expected = "  threads: 2\n\nRPS Summary:\n  target RPS: 1000.00\n  RPS distribution (reqs/sec):\n    \
        \x20     avg       min       p50       p95       p99       max\n    \
        \x20 999.000   996.000  1000.000  1001.000  1001.000  1001.000\n\nLatency by percentile";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn sequences_count_their_commands() {
    let mut latencies = Buckets::new(Scale::Ns64);
    (0..10).for_each(|_| latencies.record(100_000));
    let plan = valkey("-n 20 set a 1 ; get a");
    let test: &Test = &plan.tests[0];
    let text = report(&plan, test, &ran(&latencies, plan.requests.unwrap(), 10));
    assert!(text.contains("  20 requests completed in 0.01 seconds\n"), "{text}");
    assert!(text.contains("(cumulative count 20)") && text.contains("2000.00 requests per second"), "{text}");
}
