//! The status line: progress and the latencies of the last interval.
//!
//! The clock is the caller's. A metric stays in the line once it has been seen, as in YCSB, with zeros for an interval
//! without samples. Quirks that scripts may rely on are kept: the label has no separator, and `second` is the singular
//! of every number with one digit.

use crate::report::forms;
use crate::report::java;
use crate::report::metrics::{Metric, Metrics};
use crate::report::options::MeasurementOptions;
use jiff::Timestamp;
use jiff::tz::TimeZone;

const INTENDED: &str = "Intended-";

/// Progress of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusProgress {
    /// Time since the run began, milliseconds, monotonic.
    pub elapsed_ms: u64,
    /// Operations done, failed ones included.
    pub operations: u64,
    /// Operations still to do; 0 if there is no end.
    pub todo: u64,
}

/// Writes status lines, one after the other.
#[derive(Debug)]
pub struct StatusLines {
    options: MeasurementOptions,
    zone: TimeZone,
    seen: Vec<String>,
    last: StatusProgress,
}

impl StatusLines {
    /// Before the first line. Local times are those of `zone`.
    pub fn new(options: &MeasurementOptions, zone: TimeZone) -> Self {
        let last = StatusProgress { elapsed_ms: 0, operations: 0, todo: 0 };
        StatusLines { options: options.clone(), zone, seen: Vec::new(), last }
    }

    /// The line at wall-clock time `at`, without its line end; `interval` holds what was recorded since the last line.
    pub fn line(&mut self, at: Timestamp, progress: StatusProgress, interval: &Metrics) -> String {
        let local = at.to_zoned(self.zone.clone());
        let mut line = format!(
            "{}{}:{:03} {} sec: {} operations; ",
            self.options.label,
            local.strftime("%Y-%m-%d %H:%M:%S"),
            local.millisecond(),
            progress.elapsed_ms / 1_000,
            progress.operations
        );
        if progress.operations != 0 {
            let rate = per_second(
                progress.operations.saturating_sub(self.last.operations),
                progress.elapsed_ms.saturating_sub(self.last.elapsed_ms),
            );
            line += &format!("{} current ops/sec; ", java::decimal(rate));
        }
        if progress.todo != 0 {
            let rate = per_second(progress.operations, progress.elapsed_ms);
            // As in Java, NaN becomes 0, and infinity the largest number of 64 bits.
            let remaining_s = (progress.todo as f64 / rate).ceil() as i64;
            line += &format!("est completion in {}", remaining(remaining_s));
        }
        self.last = progress;
        line + &self.summary(interval)
    }

    /// The texts of all metrics seen so far, each with one blank after it.
    fn summary(&mut self, interval: &Metrics) -> String {
        for metric in &interval.list {
            if !self.seen.contains(&metric.name) {
                self.seen.push(metric.name.clone());
            }
        }
        let (intended, plain): (Vec<&str>, Vec<&str>) =
            self.seen.iter().map(String::as_str).partition(|name| name.starts_with(INTENDED));
        let mut text = String::new();
        for names in [plain, intended] {
            let keys: Vec<&str> =
                names.iter().map(|name| name.strip_prefix(INTENDED).unwrap_or(name)).collect();
            for index in java::concurrent_map_order(&keys) {
                let name = names[index];
                text += &match interval.list.iter().find(|metric| metric.name == name) {
                    Some(metric) => forms::summary(metric, &self.options),
                    None => forms::summary(&Metric::empty(name), &self.options),
                };
                text.push(' ');
            }
        }
        text
    }
}

/// The machine's time zone; UTC where it has none.
pub fn local_zone() -> TimeZone {
    Some(TimeZone::system()).filter(|zone| !zone.is_unknown()).unwrap_or(TimeZone::UTC)
}

fn per_second(operations: u64, elapsed_ms: u64) -> f64 {
    1000.0 * (operations as f64 / elapsed_ms as f64)
}

/// Seconds in words: no minutes beside days, seconds only if there is nothing else. Each part ends with a blank.
fn remaining(seconds: i64) -> String {
    let part = |n: i64, unit: &str| match n {
        0 => String::new(),
        1 => format!("1 {unit} "),
        n => format!("{n} {unit}s "),
    };
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let minutes = if days == 0 { minutes } else { 0 };
    let text = part(days, "day") + &part(hours, "hour") + &part(minutes, "minute");
    match text.is_empty() {
        true if seconds < 10 => format!("{seconds} second "),
        // Only days without hours could leave more than a minute here, and they are not empty.
        true => format!("{seconds} seconds "),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::options::Interval;
    use dyno_record::{Scale, Totals};
    use dyno_types::Outcome;
    use std::time::UNIX_EPOCH;

    fn options(set: &[(&str, &str)]) -> MeasurementOptions {
        let mut lookup = |key: &str| set.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned());
        MeasurementOptions::from_lookup(&mut lookup).unwrap()
    }

    #[test]
    fn remaining_times() {
        for (seconds, text) in [
            (0, "0 second "),
            (1, "1 second "),
            (8, "8 second "),
            (10, "10 seconds "),
            (59, "59 seconds "),
            (60, "1 minute "),
            (125, "2 minutes "),
            (3_600, "1 hour "),
            (6_960, "1 hour 56 minutes "),
            (86_400, "1 day "),
            (86_400 + 60, "1 day "),
            (2 * 86_400 + 3_600 + 120, "2 days 1 hour "),
            (i64::MAX, "106751991167300 days 15 hours "),
        ] {
            assert_eq!(remaining(seconds), text);
        }
    }

    /// Lines of a real run: `ycsb-run-a.err` and `ycsb-maxexec.err`.
    #[test]
    fn progress_as_in_the_samples() {
        let none = Metrics { list: Vec::new(), warnings: Vec::new(), samples: false };
        let at: Timestamp = "2026-11-21T03:30:18.417Z".parse().unwrap();
        let mut run_a = StatusLines::new(&options(&[("label", "")]), TimeZone::UTC);
        let mut shown = |elapsed_ms, operations, todo| {
            run_a.line(at, StatusProgress { elapsed_ms, operations, todo }, &none)
        };
        let head = "2026-11-21 03:30:18:417";
        assert_eq!(shown(0, 0, 200_000), format!("{head} 0 sec: 0 operations; est completion in 0 second "));
        assert_eq!(
            shown(2_000, 41_801, 158_199),
            format!("{head} 2 sec: 41801 operations; 20900.5 current ops/sec; est completion in 8 second ")
        );
        assert_eq!(
            shown(4_000, 120_443, 79_557),
            format!("{head} 4 sec: 120443 operations; 39321 current ops/sec; est completion in 3 second ")
        );
        assert_eq!(
            shown(6_000, 190_764, 9_236),
            format!("{head} 6 sec: 190764 operations; 35160.5 current ops/sec; est completion in 1 second ")
        );
        assert_eq!(
            shown(6_368, 200_000, 0),
            format!("{head} 6 sec: 200000 operations; 25097.83 current ops/sec; ")
        );

        let mut maxexec = StatusLines::new(&options(&[("label", "one:")]), TimeZone::UTC);
        let mut shown = |elapsed_ms, operations, todo| {
            maxexec.line(at, StatusProgress { elapsed_ms, operations, todo }, &none)
        };
        let head = format!("one:{head}");
        assert_eq!(
            shown(0, 238, 99_999_762),
            format!("{head} 0 sec: 238 operations; ∞ current ops/sec; est completion in 0 second ")
        );
        assert_eq!(
            shown(1_001, 14_370, 99_985_630),
            format!(
                "{head} 1 sec: 14370 operations; 14117.88 current ops/sec; est completion in 1 hour 56 minutes "
            )
        );
        let mut stalled = StatusLines::new(&options(&[]), TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(
            stalled.line(at, StatusProgress { elapsed_ms: 1_000, operations: 0, todo: 5 }, &none),
            "2026-11-21 05:30:18:417 1 sec: 0 operations; est completion in 106751991167300 days 15 hours "
        );
    }

    #[test]
    fn a_metric_once_seen_stays() {
        let names = ["UPDATE".to_owned(), "READ".to_owned()];
        let metrics = |metric: Option<u16>, interval| {
            let mut counts = dyno_record::ThreadInterval::new(2, Scale::Micros);
            if let Some(metric) = metric {
                counts.record_ended(metric, Outcome::Ok, 88_000, 90_000);
            }
            let mut totals = Totals::new(2, Scale::Micros);
            totals.add_interval(&counts);
            crate::report::metrics::metrics(&names, &totals, UNIX_EPOCH, &options(&[]), interval)
        };
        let at: Timestamp = "2026-11-21T03:30:18.417Z".parse().unwrap();
        let mut lines = StatusLines::new(&options(&[]), TimeZone::UTC);
        let mut shown = |metric, interval| {
            let progress = StatusProgress { elapsed_ms: 0, operations: 0, todo: 0 };
            let line = lines.line(at, progress, &metrics(metric, interval));
            line["2026-11-21 03:30:18:417 0 sec: 0 operations; ".len()..].to_owned()
        };
        let idle = "Count=0, Max=0, Min=0, Avg=0, 50=0, 90=0, 99=0, 99.9=0, 99.99=0]";
        let busy = "Count=1, Max=88, Min=88, Avg=88, 50=88, 90=88, 99=88, 99.9=88, 99.99=88]";
        assert_eq!(shown(None, Interval::Op), "");
        assert_eq!(shown(Some(0), Interval::Op), format!("[UPDATE: {busy} "));
        assert_eq!(shown(Some(1), Interval::Op), format!("[READ: {busy} [UPDATE: {idle} "));
        assert!(shown(Some(0), Interval::Both).ends_with("50=90, 90=90, 99=90, 99.9=90, 99.99=90] "));
        let last = shown(None, Interval::Both);
        assert_eq!(last, format!("[READ: {idle} [UPDATE: {idle} [Intended-UPDATE: {idle} "));
    }
}
