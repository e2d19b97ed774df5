//! What POCDriver prints: a report each ten seconds, a final summary, and its log file.
//!
//! Lines and number formats are those of the original, checked against real outputs. Where the original weighs a slow bulk
//! by the operations in it, the shares here are those of commands, which differ only where bulks differ in size.

use std::fmt::Write;

/// Operations in the order of the reports.
pub const OPERATIONS: [&str; 4] = ["inserts", "keyqueries", "updates", "rangequeries"];

/// What has happened up to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tick {
    /// Seconds since the start.
    pub seconds: u64,
    /// Time of day, `HH:mm:ss`, and date and time, `yyyy-MM-ddTHH:mm:ss`.
    pub clock: (String, String),
    /// Operations so far.
    pub counts: [u64; 4],
    /// Operations of the last interval, and its length in milliseconds.
    pub last: ([u64; 4], u64),
    /// Documents that were there before.
    pub before: u64,
    /// For each operation and threshold: operations that took longer, and all.
    pub slow: [Vec<(u64, u64)>; 4],
}

/// Thousands separated by commas.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn per_cent((slow, all): (u64, u64)) -> f64 {
    if all == 0 { 100.0 } else { 100.0 - slow as f64 * 100.0 / all as f64 }
}

/// The report of an interval; thresholds in milliseconds.
pub fn interval(tick: &Tick, thresholds_ms: &[u64]) -> String {
    let inserted = tick.counts[0];
    let mut out = format!(
        "------------------------\nAfter {} seconds ({}), {} new documents inserted - collection has {} in total \n",
        tick.seconds,
        tick.clock.0,
        grouped(inserted),
        grouped(tick.before + inserted)
    );
    for (at, name) in OPERATIONS.iter().enumerate() {
        let rate = tick.last.0[at] * 1000 / tick.last.1.max(1);
        // Writing into a string cannot fail.
        let _ = writeln!(out, "{} {name} per second since last report ", grouped(rate));
        for (threshold, slow) in thresholds_ms.iter().zip(&tick.slow[at]) {
            let _ = writeln!(out, "\t{:.2} % in under {threshold} milliseconds", per_cent(*slow));
        }
    }
    out.push('\n');
    out
}

/// The summary at the end.
pub fn summary(tick: &Tick) -> String {
    let inserted = tick.counts[0];
    let mut out = format!(
        "------------------------\nAfter {} seconds, {inserted} new documents inserted - collection has {} in total \n",
        tick.seconds,
        tick.before + inserted
    );
    for (count, name) in tick.counts.iter().zip(OPERATIONS) {
        let _ = writeln!(out, "{} {name} per second on average", count / tick.seconds.max(1));
    }
    out.push('\n');
    out
}

/// A line of the log file as the original writes it: the first fields run into each other, and there are no rates.
pub fn original_csv(tick: &Tick) -> String {
    let mut out = format!("{},{}", tick.seconds, tick.counts[0]);
    for slow in &tick.slow {
        let _ = write!(out, "{},{},{}", tick.clock.1, tick.seconds, tick.counts[0]);
        for share in slow {
            let _ = write!(out, ",{:.2}", per_cent(*share));
        }
        out.push(',');
    }
    out.push('\n');
    out
}

/// The head of a log file that can be read: time, seconds, and for each operation count, rate and shares.
pub fn csv_head(thresholds_ms: &[u64]) -> String {
    let mut out = "time,seconds".to_owned();
    for name in OPERATIONS {
        let _ = write!(out, ",{name},{name}_per_s");
        for threshold in thresholds_ms {
            let _ = write!(out, ",{name}_under_{threshold}ms_pct");
        }
    }
    out.push('\n');
    out
}

/// A line under [`csv_head`].
pub fn csv(tick: &Tick) -> String {
    let mut out = format!("{},{}", tick.clock.1, tick.seconds);
    for at in 0..OPERATIONS.len() {
        let rate = tick.last.0[at] as f64 * 1000.0 / tick.last.1.max(1) as f64;
        let _ = write!(out, ",{},{rate:.1}", tick.counts[at]);
        for share in &tick.slow[at] {
            let _ = write!(out, ",{:.2}", per_cent(*share));
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first report of a real run of the original, and its log line.
    fn first() -> Tick {
        Tick {
            seconds: 10,
            clock: ("03:32:05".into(), "2026-11-21T03:32:05".into()),
            counts: [4_017, 5_842, 21_900, 236],
            last: ([4_017, 5_842, 21_900, 236], 10_480),
            before: 0,
            slow: [vec![(92, 10_000)], vec![(3, 10_000)], vec![(18, 10_000)], vec![(0, 236)]],
        }
    }

    #[test]
    fn reports_are_the_originals() {
        let expected = "------------------------\n\
            After 10 seconds (03:32:05), 4,017 new documents inserted - collection has 4,017 in total \n\
            383 inserts per second since last report \n\t99.08 % in under 50 milliseconds\n\
            557 keyqueries per second since last report \n\t99.97 % in under 50 milliseconds\n\
            2,089 updates per second since last report \n\t99.82 % in under 50 milliseconds\n\
            22 rangequeries per second since last report \n\t100.00 % in under 50 milliseconds\n\n";
        assert_eq!(interval(&first(), &[50]), expected);
        let expected = "10,40172026-11-21T03:32:05,10,4017,99.08,2026-11-21T03:32:05,10,4017,99.97,\
            2026-11-21T03:32:05,10,4017,99.82,2026-11-21T03:32:05,10,4017,100.00,\n";
        assert_eq!(original_csv(&first()), expected);
    }

    #[test]
    fn the_summary_is_the_originals() {
        let tick = Tick { seconds: 24, counts: [13_976, 39_624, 69_480, 600], ..Tick::default() };
        let expected = "------------------------\n\
            After 24 seconds, 13976 new documents inserted - collection has 13976 in total \n\
            582 inserts per second on average\n1651 keyqueries per second on average\n\
            2895 updates per second on average\n25 rangequeries per second on average\n\n";
        assert_eq!(summary(&tick), expected);
    }

    #[test]
    fn the_readable_log_has_a_head_of_the_same_width() {
        let (head, line) =
            (csv_head(&[50, 100]), csv(&Tick { slow: [0; 4].map(|_| vec![(1, 4), (0, 0)]), ..first() }));
        assert_eq!(head.matches(',').count(), line.matches(',').count());
        assert!(line.starts_with("2026-11-21T03:32:05,10,4017,383.3,75.00,100.00,5842,"), "{line}");
    }
}
