//! Lines of real runs of the original.

use crate::report::average::Average;
use crate::report::average::AverageWindow;
use crate::report::average::average;
use crate::report::console::ReportedStage;
use crate::report::console::Reporter;
use crate::report::console::Tick;
use crate::report::console::Wording;
use crate::report::console::finish;
use crate::report::header::ExecuteHeader;
use crate::report::header::LoadHeader;

/// (elapsed, documents, batches, milliseconds of all batches) of a load of 2 x 5,000 documents in batches of 500.
const LOAD: [(u64, u64, u64, f64); 11] = [
    (1_012, 1_000, 2, 860.0),
    (2_024, 10_000, 20, 2_593.04),
    (3_039, 10_000, 20, 2_593.04),
    (4_088, 10_000, 20, 2_593.04),
    (5_063, 10_000, 20, 2_593.04),
    (6_069, 10_000, 20, 2_593.04),
    (7_088, 10_000, 20, 2_593.04),
    (8_101, 10_000, 20, 2_593.04),
    (9_102, 10_000, 20, 2_593.04),
    (10_006, 10_000, 20, 2_593.04),
    (10_108, 10_000, 20, 2_593.04),
];

fn load(faithful: bool) -> (String, String) {
    let mut reporter = Reporter::new(Wording::Head, ReportedStage::Load, 2, faithful);
    let (mut console, mut table) = (String::new(), reporter.table_header().to_owned());
    for (number, (elapsed_ms, done, latencies, latency_ms)) in LOAD.into_iter().enumerate() {
        let tick = Tick { elapsed_ms, done, failed: 0, latency_ms, latencies };
        let last = number + 1 == LOAD.len();
        let (text, row) = if last { reporter.last_line(&tick) } else { reporter.line(&tick) };
        console.push_str(&text);
        table.push_str(&row);
    }
    (console, table)
}

#[test]
fn a_load_of_the_last_version() {
    let (console, table) = load(true);
    let head = "Thread[Thread-0,5,main]";
    let lines: Vec<&str> = console.lines().collect();
    assert_eq!(
        lines[..3],
        [
            format!("{head}1,000 inserts : 1 seconds : cum ips=988.14 : int ips=988.14 : int lat=430.00"),
            format!("{head}10,000 inserts : 2 seconds : cum ips=4,940.71 : int ips=8,893.28 : int lat=96.28"),
            format!("{head}10,000 inserts : 3 seconds : cum ips=3,290.56 : int ips=0.00 : int lat=0.00"),
        ]
    );
    assert_eq!(lines[10], format!("{head}10,000 inserts : 10 seconds : cum ips=989.32 : int ips=0.00"));
    let expected = "tot_inserts\telap_secs\tcum_ips\tint_ips\tint_lat\n1000\t1\t988.14\t988.14\n10000\t2\t4940.71\t8893.28\n";
    assert!(table.starts_with(expected), "{table}");
    assert!(table.ends_with("\n10000\t10\t999.40\t0.00\n10000\t10\t989.32\t0.00\n"), "{table}");
    // Five names, five values where it need not be as in the original.
    let (_, whole) = load(false);
    assert!(whole.lines().all(|line| line.split('\t').count() == 5), "{whole}");
    assert!(whole.contains("1000\t1\t988.14\t988.14\t430.00\n"));
}

/// (elapsed, transactions, mean latency of the interval) of a run with 4 users.
const RUN: [(u64, u64, f64); 4] =
    [(5_035, 65, 302.51), (10_066, 207, 143.18), (15_090, 392, 108.17), (20_011, 599, 95.71)];

#[test]
fn a_run_of_both_versions() {
    let run = |wording| {
        let mut reporter = Reporter::new(wording, ReportedStage::Execute, 4, false);
        let (mut console, mut table) = (String::new(), reporter.table_header().to_owned());
        let mut tick = Tick::default();
        for (elapsed_ms, done, latency) in RUN {
            let latency_ms = tick.latency_ms + latency * (done - tick.done) as f64;
            tick = Tick { elapsed_ms, done, failed: 0, latency_ms, latencies: done };
            let (text, row) = reporter.line(&tick);
            console.push_str(&text);
            table.push_str(&row);
        }
        (console, table)
    };
    let (console, table) = run(Wording::Head);
    let (head, zero) = ("Thread[Thread-4,5,main]", "cum ips=0.00 : int ips=0.00");
    let rates = [
        ("12.91", "12.91", "302.51"),
        ("20.56", "28.23", "143.18"),
        ("25.98", "36.82", "108.17"),
        ("29.93", "42.06", "95.71"),
    ];
    let mut lines = String::new();
    let mut rows = "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tcum_excp\tint_excp\tint_lat\n".to_owned();
    for (number, (cum, int, lat)) in rates.into_iter().enumerate() {
        let s = number * 5 + 5;
        let excp = "cum excp=0 : int excpt=0 : writers=4";
        lines +=
            &format!("{head}{s} seconds : cum tps={cum} : int tps={int} : {zero} : {excp} : int lat={lat}\n");
        rows += &format!("{s}\t{cum}\t{int}\t0.00\t0.00\t0\t0\t{lat}\n");
    }
    assert_eq!((console, table), (lines, rows));

    let (console, table) = run(Wording::Y2015);
    let first = format!("{head}5 seconds : cum tps=12.91 : int tps=12.91 : {zero} : writers=4");
    assert_eq!(console.lines().next(), Some(first.as_str()));
    let start = "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\n5\t12.91\t12.91\t0.00\t0.00\n";
    assert!(table.starts_with(start), "{table}");
}

#[test]
fn failures_and_large_numbers() {
    let mut reporter = Reporter::new(Wording::Head, ReportedStage::Execute, 64, false);
    reporter.line(&Tick { elapsed_ms: 3_600_000, done: 1_000_000, failed: 1_200, ..Tick::default() });
    let (text, row) = reporter.line(&Tick {
        elapsed_ms: 3_610_000,
        done: 1_020_000,
        failed: 1_203,
        latency_ms: 40_000_000.0,
        latencies: 20_000,
    });
    let expected = "Thread[Thread-64,5,main]3,610 seconds : cum tps=282.55 : int tps=2,000.00 : cum ips=0.00 : \
                    int ips=0.00 : cum excp=1,203 : int excpt=3 : writers=64 : int lat=2,000.00\n";
    assert_eq!(text, expected);
    assert_eq!(row, "3610\t282.55\t2000.00\t0.00\t0.00\t1203\t3\t2000.00\n");
    assert_eq!(
        finish(ReportedStage::Execute, "Mon", 93_784),
        "Mon | sysbench benchmark duration = 01:02:03:04\n"
    );
    assert_eq!(finish(ReportedStage::Load, "Mon", 5), "Mon | sysbench loader duration = 00:00:00:05\n");
}

#[test]
fn headers_of_the_last_version() {
    let load = LoadHeader {
        wording: Wording::Head,
        collections: 2,
        database: "sbtest".into(),
        loaders: 2,
        documents: 5_000,
        batch: 500,
        feedback_seconds: 1,
        feedback_inserts: -1,
        table: "sysbench-load.tsv".into(),
        old: Default::default(),
        uri: "mongodb://127.0.0.1:27151/?retryWrites=false".into(),
    };
    let expected = "\
Application Parameters
--------------------------------------------------
  2 collections
  database name = sbtest
  2 writer thread(s)
  5,000 documents per collection
  Documents Per Insert = 500
  Feedback every 1 seconds(s)
  Feedback every -1 inserts(s)
  logging to file sysbench-load.tsv
  connection string = mongodb://127.0.0.1:27151/?retryWrites=false
setting mongodb driver log level to WARNING
--------------------------------------------------
";
    assert_eq!(load.text().replace("Thread[main,5,main]", ""), expected);
    let execute = ExecuteHeader {
        wording: Wording::Head,
        collections: 2,
        database: "sbtest".into(),
        writers: 4,
        documents: 5_000,
        feedback_seconds: 5,
        table: "sysbench-execute.tsv".into(),
        run_seconds: 22,
        counts: [100, 10, 1, 1, 1, 1, 1, 1, 1],
        tps: [999_999, 249_999],
        seed: 1,
        old: Default::default(),
        uri: "mongodb://127.0.0.1:27151/?retryWrites=false".into(),
    };
    let expected = "\
Application Parameters
-------------------------------------------------------------------------------------------------
  collections              = 2
  database name            = sbtest
  writer threads           = 4
  documents per collection = 5,000
  feedback seconds         = 5
  log file                 = sysbench-execute.tsv
  run seconds              = 22
  oltp range size          = 100
  oltp point selects       = 10
  oltp simple ranges       = 1
  oltp sum ranges          = 1
  oltp order ranges        = 1
  oltp distinct ranges     = 1
  oltp index updates       = 1
  oltp non index updates   = 1
  oltp inserts             = 1
  maximum tps (global)     = 999999
  maximum tps (per thread) = 249999
  seed                     = 1
  uri                      = mongodb://127.0.0.1:27151/?retryWrites=false
-------------------------------------------------------------------------------------------------
setting mongodb driver log level to WARNING
";
    let text = execute.text();
    assert!(text.lines().all(|line| line.starts_with("Thread[main,5,main]")));
    assert_eq!(text.replace("Thread[main,5,main]", ""), expected);
    let old = ["Y", "SAFE", "h:1", "none"].map(str::to_owned);
    let old = ExecuteHeader { wording: Wording::Y2015, old, ..execute }.text();
    for line in ["  auto commit              = Y", "  write concern            = SAFE", "  Server:Port = h:1"]
    {
        assert!(old.contains(line), "{old}");
    }
    assert!(!old.contains("uri"));
}

/// A table of three hours: a first hour that must not count, a second of 26.59 on the average, a third.
fn three_hours(head: bool) -> String {
    let mut table =
        Reporter::new(if head { Wording::Head } else { Wording::Y2015 }, ReportedStage::Execute, 64, true)
            .table_header()
            .to_owned();
    for t in (10..=10_800).step_by(10) {
        let rate = match t {
            ..=3_600 => 900.0,
            3_601..=7_200 if t % 20 == 0 => 20.09,
            3_601..=7_200 => 33.09,
            _ => 500.0,
        };
        table.push_str(&format!(
            "{t}\t1.00\t{rate:.2}\t0.00\t0.00{}\n",
            if head { "\t0\t0\t9.99" } else { "" }
        ));
    }
    table
}

#[test]
fn the_second_hour_is_averaged_and_cut_off() {
    for head in [false, true] {
        let second = average(&three_hours(head), AverageWindow::SECOND_HOUR).unwrap();
        assert_eq!((second.lines, second.truncated()), (360, 26));
        assert!((second.mean - 26.59).abs() < 1e-9);
    }
    assert_eq!(Average { mean: 53.95, lines: 1 }.truncated(), 53);
    let (_, load) = load(false);
    let all = average(&load, AverageWindow { after_s: 0, to_s: 100 }).unwrap();
    assert_eq!(all.lines, 11);
}

#[test]
fn tables_that_are_none() {
    let why = |table: &str| average(table, AverageWindow::SECOND_HOUR).unwrap_err().to_string();
    assert!(why("a\tb\n").contains("expected columns elap_secs"));
    assert!(
        why("elap_secs\tint_tps\n10\tx\n")
            .contains("no line lies after 3600 s and up to 7200 s: the last is of 10 s")
    );
    assert!(
        why("elap_secs\tint_tps\n4000\t1,234.00\n").contains("line 2: expected a number in column int_tps")
    );
    assert!(why("").contains("line 1"));
}
