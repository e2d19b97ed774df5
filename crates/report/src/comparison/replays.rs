//! Two replays of a recording: times of then beside those of both, and how much of the traffic each of them has met alike.

use super::number::format_number;
use dyno_rundir::schema::ThenLatency;

/// What two sides have made of the same recording.
#[derive(Debug, Default, serde::Serialize)]
pub struct ComparedReplays {
    /// Where times were taken then, in words.
    pub point: String,
    /// Share of the replies that are not those of then, on each side.
    pub differing: (f64, f64),
    /// Share of the commands that had to wait for the one before on their connection.
    pub held: (f64, f64),
    /// Share of the commands that were not sent because their keys are in several slots of a cluster.
    pub cross_slot: (f64, f64),
    /// Times from command to reply, the most frequent command first.
    pub times: Vec<ComparedTimes>,
}

/// Times from command to reply of one operation.
#[derive(Debug, serde::Serialize)]
pub struct ComparedTimes {
    /// The operation.
    pub metric: String,
    /// Then.
    pub then: ThenLatency,
    /// Median and 99th percentile of the first side, microseconds, where enough samples support them.
    pub first: (Option<f64>, Option<f64>),
    /// The same of the second.
    pub second: (Option<f64>, Option<f64>),
}

/// Difference of two shares that is worth a note: the sides have done different work.
const DIFFERENT: f64 = 0.01;

impl ComparedReplays {
    /// Heads of the table of times.
    pub(crate) const HEADS: [&str; 7] =
        ["operation", "p50 then", "p50 first", "p50 second", "p99 then", "p99 first", "p99 second"];

    /// What the table of times is about.
    pub(crate) fn title(&self) -> String {
        format!("from command to reply, us: then ({}), first and second", self.point)
    }

    /// The table of times.
    pub(crate) fn rows(&self) -> Vec<[String; 7]> {
        let shown = |us: Option<f64>| us.map_or("-".into(), format_number);
        let row = |one: &ComparedTimes| {
            [
                one.metric.clone(),
                format_number(one.then.p50_us),
                shown(one.first.0),
                shown(one.second.0),
                format_number(one.then.p99_us),
                shown(one.first.1),
                shown(one.second.1),
            ]
        };
        self.times.iter().map(row).collect()
    }

    /// Shares of the traffic, with what they are of.
    pub(crate) fn shares(&self) -> Vec<(&'static str, String, String)> {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        let all = [
            ("replies that are not those of then", self.differing, true),
            ("commands that waited for the one before", self.held, true),
            ("commands not sent: keys in several slots", self.cross_slot, self.cross_slot != (0.0, 0.0)),
        ];
        let shown = all.into_iter().filter(|(.., is_shown)| *is_shown);
        shown.map(|(name, (one, other), _)| (name, percent(one), percent(other))).collect()
    }

    /// Reasons against a comparison.
    pub fn warnings(&self, first: &str, second: &str) -> Vec<String> {
        let kinds = [
            (self.differing, "of the replies are not those of then"),
            (self.cross_slot, "of the commands are not sent, because their keys are in several slots"),
        ];
        let apart = kinds.into_iter().filter(|((one, other), _)| (one - other).abs() > DIFFERENT);
        apart
            .map(|((one, other), what)| {
                let (one, other) = (one * 100.0, other * 100.0);
                format!("{one:.1} % {what} on {first}, and {other:.1} % on {second}: they have not done the same work")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_that_have_done_other_work_are_named() {
        let alike = ComparedReplays { differing: (0.001, 0.009), held: (0.0, 0.9), ..Default::default() };
        assert!(alike.warnings("a", "b").is_empty());
        let apart = ComparedReplays { cross_slot: (0.0, 0.2), ..alike };
        let found = apart.warnings("a", "b");
        assert!(found.len() == 1 && found[0].contains("on a, and 20.0 % on b"), "{found:?}");
        assert_eq!(apart.shares().len(), 3);
    }
}
