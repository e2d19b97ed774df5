//! Prometheus' text format, written.

use super::family::Family;
use std::fmt::Write as _;

/// Families as text.
pub fn render_families(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families {
        let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
        let (name, kind) = (family.name, family.kind.name());
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        family.each_classic(|name, labels, value| line(&mut out, name, labels, value));
    }
    out
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    out.push_str(name);
    if !labels.is_empty() {
        out.push('{');
        for (i, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(out, "{}{label}=\"{value}\"", if i > 0 { "," } else { "" });
        }
        out.push('}');
    }
    let _ = match value {
        v if v == f64::INFINITY => writeln!(out, " +Inf"),
        v if v == f64::NEG_INFINITY => writeln!(out, " -Inf"),
        v => writeln!(out, " {v}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::parse;
    use crate::prometheus::{Families, FamilyKind, MetricHistogram, SeriesValue};
    use crate::sample::{Sample, SeriesKind};

    #[test]
    fn what_is_written_is_read_again() {
        let mut families = Families::with_labels(&[("cell".into(), "1".into())]);
        families.begin("a_total", FamilyKind::Counter, "1", "Back\\slash\nand line.");
        families.add_series(&[("x", "q\"uo\\te\n")], None, SeriesValue::Number(12_345_678_901.0));
        families.begin("h", FamilyKind::Histogram, "s", "Times.");
        let histogram = MetricHistogram { up_to: vec![(0.001, 1), (0.1, 3)], count: 4, sum: 0.75 };
        families.add_series(&[("m", "READ")], None, SeriesValue::Histogram(histogram));
        let text = render_families(&families.into_vec());
        assert!(text.starts_with("# HELP a_total Back\\\\slash\\nand line.\n# TYPE a_total counter\n"));
        assert!(text.contains("a_total{cell=\"1\",x=\"q\\\"uo\\\\te\\n\"} 12345678901\n"), "{text}");
        let mut sample = Sample::default();
        parse(&text, &mut sample).unwrap();
        assert_eq!(sample.get("h_bucket{cell=\"1\",m=\"READ\",le=\"0.1\"}"), Some(3.0));
        assert_eq!(sample.get("h_bucket{cell=\"1\",m=\"READ\",le=\"+Inf\"}"), Some(4.0));
        assert_eq!(sample.get("h_sum{cell=\"1\",m=\"READ\"}"), Some(0.75));
        assert_eq!(sample.get("h_count{cell=\"1\",m=\"READ\"}"), Some(4.0));
        assert!(sample.all_readings().iter().all(|r| r.kind == SeriesKind::Counter));
    }
}
