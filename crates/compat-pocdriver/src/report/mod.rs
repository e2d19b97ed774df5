//! Output of POCDriver: a report each ten seconds, a final summary, and its log file.
//!
//! Lines and number formats are those of the original, checked against real outputs.

use std::fmt::Write;

/// Operations in the order of the reports.
pub const OPERATIONS: [&str; 4] = ["inserts", "keyqueries", "updates", "rangequeries"];

/// Counts up to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PocTick {
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
pub fn interval(tick: &PocTick, thresholds_ms: &[u64]) -> String {
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
pub fn summary(tick: &PocTick) -> String {
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
pub fn original_csv(tick: &PocTick) -> String {
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
pub fn csv(tick: &PocTick) -> String {
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
mod golden_tests;
