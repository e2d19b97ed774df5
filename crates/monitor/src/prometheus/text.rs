//! Prometheus' text format, written.

use std::fmt::Write as _;

/// Text under construction: a family, then its series.
#[derive(Clone, Debug, Default)]
pub struct Text {
    out: String,
    /// Labels of every series.
    common: Vec<(String, String)>,
}

/// A series' labels.
pub type Labels<'a> = [(&'a str, &'a str)];

impl Text {
    /// Nothing yet.
    pub fn new() -> Self {
        Text::default()
    }

    /// Nothing yet; every series will have these labels, before its own.
    pub fn with(common: &[(String, String)]) -> Self {
        Text { out: String::new(), common: common.to_vec() }
    }

    /// Begins a family; `kind` is `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One series.
    pub fn value(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.out.push_str(name);
        let common = self.common.iter().map(|(label, value)| (label.as_str(), value.as_str()));
        let labels: Vec<(&str, &str)> = common.chain(labels.iter().copied()).collect();
        if !labels.is_empty() {
            self.out.push('{');
            for (i, (label, value)) in labels.iter().enumerate() {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let _ = write!(self.out, "{}{label}=\"{value}\"", if i > 0 { "," } else { "" });
            }
            self.out.push('}');
        }
        let _ = match value {
            v if v == f64::INFINITY => writeln!(self.out, " +Inf"),
            v if v == f64::NEG_INFINITY => writeln!(self.out, " -Inf"),
            v => writeln!(self.out, " {v}"),
        };
    }

    /// One histogram: samples up to each bound, cumulative, then all of them and their sum.
    pub fn histogram(&mut self, name: &str, labels: &Labels<'_>, up_to: &[(f64, u64)], count: u64, sum: f64) {
        let bucket = format!("{name}_bucket");
        for (bound, samples) in up_to {
            let bound = bound.to_string();
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.value(&bucket, &labels, *samples as f64);
        }
        let labels_inf: Vec<_> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.value(&bucket, &labels_inf, count as f64);
        self.value(&format!("{name}_sum"), labels, sum);
        self.value(&format!("{name}_count"), labels, count as f64);
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::parse;
    use crate::sample::{Kind, Sample};

    #[test]
    fn what_is_written_is_read_again() {
        let mut text = Text::new();
        text.family("a_total", "counter", "Back\\slash\nand line.");
        text.value("a_total", &[("x", "q\"uo\\te\n")], 12_345_678_901.0);
        text.family("h", "histogram", "Times.");
        text.histogram("h", &[("m", "READ")], &[(0.001, 1), (0.1, 3)], 4, 0.75);
        let text = text.into_string();
        assert!(text.starts_with("# HELP a_total Back\\\\slash\\nand line.\n# TYPE a_total counter\n"));
        assert!(text.contains("a_total{x=\"q\\\"uo\\\\te\\n\"} 12345678901\n"), "{text}");
        let mut sample = Sample::default();
        parse(&text, &mut sample).unwrap();
        assert_eq!(sample.get("h_bucket{m=\"READ\",le=\"0.1\"}"), Some(3.0));
        assert_eq!(sample.get("h_bucket{m=\"READ\",le=\"+Inf\"}"), Some(4.0));
        assert_eq!(sample.get("h_sum{m=\"READ\"}"), Some(0.75));
        assert!(sample.readings().iter().all(|r| r.kind == Kind::Counter));
    }
}
