//! `series.csv`: one row for every interval (a second unless asked otherwise), phase and metric. Latencies are in microseconds.

use dyno_record::{Buckets, Totals, is_supported};
use dyno_types::Outcome;
use std::fmt::Write as _;
use std::time::Duration;

/// The head line.
pub const HEADER: &str = "second,phase,metric,ok,failed,dropped,service_mean_us,service_p50_us,service_p99_us,\
service_p999_us,service_max_us,response_p50_us,response_p99_us,response_p999_us,response_max_us,lag_p99_us,backlog,\
steal_pct\n";

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn put(out: &mut String, buckets: Option<&Buckets>, percentiles: &[f64]) {
    for &p in percentiles {
        match buckets.filter(|b| b.count() > 0 && (p <= 95.0 || is_supported(b.count(), p))) {
            Some(b) => {
                let _ = write!(out, ",{:.1}", us(b.percentile_ns(p)));
            }
            None => out.push(','),
        }
    }
    match buckets.filter(|b| b.count() > 0) {
        Some(b) => {
            let _ = write!(out, ",{:.1}", us(b.max_ns()));
        }
        None => out.push(','),
    }
}

/// The rows of one interval: every metric that had requests, by arrivals, then `TOTAL`. The successes of `TOTAL` are those within
/// the phase's time, which throughput counts; a percentile that too few samples support is empty, as in the summary.
pub fn interval_rows(
    start: Duration,
    phase: &str,
    metrics: &[String],
    totals: &Totals,
    steal_pct: Option<f64>,
) -> String {
    let mut out = String::new();
    let second = match start.subsec_millis() {
        0 => start.as_secs().to_string(),
        _ => format!("{:.3}", start.as_secs_f64()),
    };
    for (number, name) in metrics.iter().enumerate() {
        let outcomes = &totals.outcomes[number];
        let ok = outcomes[Outcome::Ok as usize];
        let dropped = outcomes[Outcome::Dropped as usize];
        let all: u64 = outcomes.iter().sum();
        if all == 0 {
            continue;
        }
        let slot = totals.ok_slot(number);
        let _ = write!(out, "{second},{phase},{name},{ok},{},{dropped}", all - ok - dropped);
        match slot {
            Some(s) => {
                let _ = write!(out, ",{:.1}", s.service.mean_ns() / 1e3);
            }
            None => out.push(','),
        }
        put(&mut out, slot.map(|s| &s.service), &[50.0, 99.0, 99.9]);
        put(&mut out, slot.map(|s| &s.response), &[50.0, 99.0, 99.9]);
        out.push_str(",,,\n");
    }
    let dropped = totals.ended[Outcome::Dropped as usize];
    let _ = writeln!(
        out,
        "{second},{phase},TOTAL,{},{},{dropped},,,,,,,,,,{},{},{}",
        totals.count_completed(),
        totals.count_failed() - dropped,
        if totals.lag.count() > 0 {
            format!("{:.1}", us(totals.lag.percentile_ns(99.0)))
        } else {
            String::new()
        },
        totals.backlog,
        steal_pct.map_or(String::new(), |s| format!("{s:.1}")),
    );
    out
}

/// A row read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadRow {
    /// Begin of the interval, seconds from the phase's epoch.
    pub start_s: f64,
    /// Phase.
    pub phase: String,
    /// Metric, or `TOTAL`.
    pub metric: String,
    /// Ended well.
    pub ok: u64,
    /// Failed, without dropped ones.
    pub failed: u64,
    /// Dropped.
    pub dropped: u64,
    /// p50, p99, p99.9 and the maximum of the service time, microseconds.
    pub service_us: [Option<f64>; 4],
    /// p50, p99, p99.9 and the maximum of the response time, microseconds.
    pub response_us: [Option<f64>; 4],
    /// Queue of due arrivals; of `TOTAL` alone.
    pub backlog: Option<f64>,
}

/// Reads the rows of `text`, and counts the lines that could not be read. A torn last line is left out.
pub fn read(text: &str) -> (Vec<ReadRow>, usize) {
    let (mut rows, mut bad) = (Vec::new(), 0);
    for line in crate::files::whole_lines(text).skip(1) {
        match row(line) {
            Some(row) => rows.push(row),
            None => bad += 1,
        }
    }
    (rows, bad)
}

/// Columns after the metric, whose name may hold commas.
const FIGURES: usize = 15;

fn row(line: &str) -> Option<ReadRow> {
    let (start, rest) = line.split_once(',')?;
    let (phase, rest) = rest.split_once(',')?;
    let mut from_the_end: Vec<&str> = rest.rsplitn(FIGURES + 1, ',').collect();
    let metric = from_the_end.pop().filter(|_| from_the_end.len() == FIGURES)?;
    from_the_end.reverse();
    let cells = from_the_end;
    let figure = |at: usize| -> Option<f64> { cells[at].parse().ok() };
    let number = |at: usize| -> Option<u64> { cells[at].parse().ok() };
    Some(ReadRow {
        start_s: start.parse().ok()?,
        phase: phase.to_owned(),
        metric: metric.to_owned(),
        ok: number(0)?,
        failed: number(1)?,
        // Imported results do not know it.
        dropped: if cells[2].is_empty() { 0 } else { number(2)? },
        service_us: [figure(4), figure(5), figure(6), figure(7)],
        response_us: [figure(8), figure(9), figure(10), figure(11)],
        backlog: figure(13),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::{Scale, ThreadInterval};

    #[test]
    fn rows_hold_what_was_counted_and_no_times_where_nothing_ended() {
        let mut interval = ThreadInterval::new(3, Scale::Ns64);
        for ns in [1_000_000, 2_000_000, 3_000_050] {
            interval.record_ended(0, Outcome::Ok, ns, 2 * ns);
        }
        interval.record_ended(0, Outcome::Busy, 9_000_000, 9_000_000);
        interval.record_ended(2, Outcome::TimedOut, 9_000_000, 9_000_000);
        interval.outcomes[0][Outcome::Dropped as usize] = 2;
        interval.ended[Outcome::Ok as usize] = 3;
        interval.ended[Outcome::TimedOut as usize] = 1;
        interval.ended[Outcome::Busy as usize] = 1;
        interval.ended[Outcome::Dropped as usize] = 2;
        (interval.backlog, interval.arrivals) = (8, 7);
        interval.lag.record(64_000);
        let mut totals = Totals::new(3, Scale::Ns64);
        totals.add_interval(&interval);
        let names = ["READ", "UPDATE", "SCAN"].map(str::to_owned);
        let text = interval_rows(Duration::from_secs(3), "measure", &names, &totals, None);
        // Percentiles are ends of buckets (2000.9: 31,248 to 31,263 units of 64 ns), none above the greatest.
        let expected = "3,measure,READ,3,1,2,2000.0,2000.9,,,3000.1,4001.8,,,6000.1,,,\n\
                        3,measure,SCAN,0,1,0,,,,,,,,,,,,\n\
                        3,measure,TOTAL,3,2,2,,,,,,,,,,64.0,8,\n";
        assert_eq!(text, expected);
        let (read, bad) = read(&format!("{HEADER}{text}1,load,a,b,1,2,,,,,,,,,,,,,\n2,load,READ,1\n"));
        assert_eq!(bad, 1);
        let total = ReadRow {
            start_s: 3.0,
            phase: "measure".into(),
            metric: "TOTAL".into(),
            ok: 3,
            failed: 2,
            dropped: 2,
            ..ReadRow::default()
        };
        assert_eq!(read[2], ReadRow { backlog: Some(8.0), ..total });
        assert_eq!(
            (read[3].metric.as_str(), read[3].ok, read[3].failed, read[3].dropped),
            ("a,b", 1, 2, 0),
            "a comma in a name"
        );
        assert_eq!(read[0].service_us, [Some(2_000.9), None, None, Some(3_000.1)]);
        assert_eq!(read[0].response_us[3], Some(6_000.1));
        if let Some(slot) = &mut totals.slots[0] {
            slot.response = Buckets::new(Scale::Ns64);
        }
        let text = interval_rows(Duration::from_secs(3), "measure", &names, &totals, None);
        assert!(text.starts_with("3,measure,READ,3,1,2,2000.0,2000.9,,,3000.1,,,,,,,\n"), "{text}");
        let idle = interval_rows(Duration::ZERO, "load", &names, &Totals::new(3, Scale::Ns64), Some(2.25));
        assert_eq!(idle, "0,load,TOTAL,0,0,0,,,,,,,,,,,0,2.2\n");
    }

    #[test]
    fn percentiles_have_ten_operations_beyond_them_and_successes_are_those_of_the_phases_time() {
        let cells = |count: u64| {
            let mut totals = Totals::new(1, Scale::Ns64);
            let mut interval = ThreadInterval::new(1, Scale::Ns64);
            for _ in 0..count {
                interval.record_ended(0, Outcome::Ok, 1_000, 1_000);
                interval.ended[Outcome::Ok as usize] += 1;
            }
            totals.add_interval(&interval);
            // Two were done after the phase, five arrived in the warm-up.
            totals.crossed = 3;
            let text = interval_rows(Duration::ZERO, "measure", &["READ".into()], &totals, None);
            let (read, _) = read(&format!("{HEADER}{text}"));
            (read[0].service_us.map(|cell| cell.is_some()), read[0].ok, read[1].ok)
        };
        assert_eq!(cells(502), ([true, false, false, true], 502, 505));
        assert_eq!(cells(1_000), ([true, true, false, true], 1_000, 1_003));
        assert_eq!(cells(10_000).0, [true; 4]);
    }

    #[test]
    fn every_row_has_every_column() {
        let mut interval = ThreadInterval::new(2, Scale::Ns64);
        interval.record_ended(0, Outcome::Ok, 1_000, 2_000);
        interval.record_ended(1, Outcome::TimedOut, 1_000, 2_000);
        interval.arrivals = 2;
        interval.ended[0] = 1;
        interval.ended[Outcome::TimedOut as usize] = 1;
        let mut totals = Totals::new(2, Scale::Ns64);
        totals.add_interval(&interval);
        let text = interval_rows(
            Duration::from_millis(3_100),
            "measure",
            &["READ".into(), "UPDATE".into()],
            &totals,
            Some(1.5),
        );
        let columns = HEADER.matches(',').count();
        assert_eq!(text.lines().count(), 3);
        let (read, bad) = read(&format!("{HEADER}{text}x,y\n3,meas"));
        assert_eq!((read.len(), bad), (3, 1));
        assert_eq!((read[0].metric.as_str(), read[0].start_s, read[0].ok), ("READ", 3.1, 1));
        assert_eq!((read[0].service_us[0], read[0].response_us[0]), (Some(1.0), Some(2.0)));
        assert_eq!((read[1].failed, read[2].backlog), (1, Some(0.0)));
        for line in text.lines() {
            assert_eq!(line.matches(',').count(), columns, "{line}");
            assert!(line.starts_with("3.100,"), "{line}");
        }
    }
}
