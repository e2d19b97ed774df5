//! Effect on the load of a fault that the experiment asked for, as `summary.json` has it.

use dyno_types::units::{Rate, ShownLatency};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fault of the experiment, and what it did to the load. Times are seconds from the begin of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultFigures {
    /// Which of the file's faults, from 1.
    pub number: usize,
    /// Kind of the fault, and its target: `pause on server`.
    pub fault: String,
    /// By what means: a signal, a control group, dyno's own TCP proxy.
    pub means: String,
    /// When it began.
    pub begin_s: f64,
    /// When it was undone; absent if it lasted until the end of the phase.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end_s: Option<f64>,
    /// Successful operations per second before: the median of at most ten seconds. Absent where there were fewer than three.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before_per_s: Option<f64>,
    /// From its begin to the end of the first interval with failed or missing operations; absent if nothing was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detect_s: Option<f64>,
    /// Successful operations per second in the worst second, or in the worst part that is as long as the fault, where that was
    /// shorter than a second. Absent where the fault was shorter than an interval and nothing was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worst_per_s: Option<f64>,
    /// By what share that is below the median before, 0 to 1. Absent where the fault was shorter than an interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<f64>,
    /// Operations that are missing against the median before, until it has recovered or the next fault or the end comes. Absent
    /// where the fault was shorter than an interval and nothing was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lost: Option<f64>,
    /// Operations that failed in that time: told apart from other failures by the verdict.
    #[serde(default)]
    pub failed: u64,
    /// Mean response time before, microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before_us: Option<f64>,
    /// The greatest mean response time of an interval from its begin until it was over, microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worst_us: Option<f64>,
    /// From its begin until the throughput is at 90 % or more of the median before, and stays there for three seconds; absent
    /// if nothing was seen, or if it did not recover before the next fault or the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recover_s: Option<f64>,
    /// Why figures are missing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

/// Microseconds for people.
fn time(us: f64) -> ShownLatency {
    ShownLatency((us * 1e3).round() as u64)
}

impl FaultFigures {
    /// When it was, in words: `at 5.00 s for 1.00 s`.
    pub fn describe_time(&self) -> String {
        match self.end_s {
            Some(end) => format!("at {:.2} s for {:.2} s", self.begin_s, end - self.begin_s),
            None => format!("at {:.2} s until the end", self.begin_s),
        }
    }

    /// Describes its effect.
    pub fn describe_effect(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.detect_s.map(|s| format!("seen within {s:.2} s")));
        if let (Some(depth), Some(worst), Some(before)) = (self.depth, self.worst_per_s, self.before_per_s) {
            let (worst, before) = (Rate(worst), Rate(before));
            words.push(format!("at worst {worst}/s, {:.0} % below {before}/s", depth * 100.0));
        }
        if let (Some(worst), Some(before)) = (self.worst_us, self.before_us) {
            words.push(format!("mean response time {} at most, {} before", time(worst), time(before)));
        }
        words.extend(self.lost.map(|lost| format!("{lost:.0} operations lost")));
        if self.failed > 0 {
            words.push(format!("{} failed", self.failed));
        }
        words.extend(self.recover_s.map(|s| format!("recovered after {s:.2} s")));
        words.extend(self.note.clone());
        words.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_words() {
        let mut fault = FaultFigures { begin_s: 5.0, end_s: Some(6.5), ..FaultFigures::default() };
        assert_eq!(
            (fault.describe_time(), fault.describe_effect()),
            ("at 5.00 s for 1.50 s".into(), String::new())
        );
        fault.end_s = None;
        assert_eq!(fault.describe_time(), "at 5.00 s until the end");
        (fault.detect_s, fault.recover_s, fault.lost) = (Some(0.25), Some(2.0), Some(700.0));
        (fault.depth, fault.worst_per_s, fault.before_per_s) = (Some(0.9), Some(100.0), Some(1_000.0));
        (fault.worst_us, fault.before_us, fault.failed) = (Some(2_000.0), Some(250.0), 1);
        fault.note = Some("nothing more".into());
        let message = "seen within 0.25 s; at worst 100/s, 90 % below 1,000/s; mean response time 2.00 ms at most, \
            250 µs before; 700 operations lost; 1 failed; recovered after 2.00 s; nothing more";
        assert_eq!(fault.describe_effect(), message);
    }
}
