//! Prometheus' text format, version 0.0.4, and what OpenMetrics adds to it.

use super::error::{SERIES, TextError};
use crate::sample::{Kind, Sample};
use std::collections::HashMap;

/// Adds every series, named as the exporter names it, labels included. Values that are not finite are missing.
/// Refuses text that is something else, naming the line.
pub fn parse(text: &str, into: &mut Sample) -> Result<(), TextError> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if let (Some("TYPE"), Some(name), Some(kind)) = (words.next(), words.next(), words.next()) {
                kinds.insert(name, kind);
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let bad = || TextError::Line { line: number + 1, shown: line.chars().take(60).collect() };
        let (name, labels, rest) = series(line).ok_or_else(bad)?;
        let value = rest.split_ascii_whitespace().next().and_then(value).ok_or_else(bad)?;
        if into.readings().len() >= SERIES {
            return Err(TextError::TooMany);
        }
        into.put(format!("{name}{labels}"), kind_of(name, &kinds), value);
    }
    Ok(())
}

/// A number; Rust's parser knows `NaN` and `+Inf` too.
fn value(word: &str) -> Option<f64> {
    word.parse().ok()
}

/// The name, the labels with their braces (or nothing), and what follows.
fn series(line: &str) -> Option<(&str, &str, &str)> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if !rest.starts_with('{') {
        return rest.starts_with([' ', '\t']).then_some((name, "", rest));
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => {
                let labels = &rest[..=at];
                return Some((name, if labels == "{}" { "" } else { labels }, &rest[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

/// Counters, and the parts of histograms and summaries that only grow.
fn kind_of(name: &str, kinds: &HashMap<&str, &str>) -> Kind {
    if let Some(kind) = kinds.get(name) {
        return if *kind == "counter" { Kind::Counter } else { Kind::Gauge };
    }
    let part = |end: &str, of: &[&str]| {
        let family = name.strip_suffix(end).and_then(|family| kinds.get(family));
        family.is_some_and(|kind| of.contains(kind))
    };
    // OpenMetrics names a counter's family without its end.
    let grows = part("_total", &["counter"])
        || part("_bucket", &["histogram"])
        || part("_sum", &["histogram", "summary"])
        || part("_count", &["histogram", "summary"]);
    if grows { Kind::Counter } else { Kind::Gauge }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, Kind, f64)> {
        let mut sample = Sample::default();
        parse(text, &mut sample).unwrap();
        sample.readings().iter().map(|r| (r.name.clone(), r.kind, r.value)).collect()
    }

    #[test]
    fn all_types_are_read() {
        let text = "# HELP a_total Things, \"quoted\".\n# TYPE a_total counter\na_total{x=\"1\",y=\"}\\\" #\"} 5 1700000000000\n\
            # TYPE b gauge\nb 2.5\n# TYPE h histogram\nh_bucket{le=\"0.1\"} 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 0.4\nh_count 3\n\
            # TYPE s summary\ns{quantile=\"0.5\"} 7\ns_sum 9\nuntyped{} 1e3\nnan NaN\ninf +Inf\n\
            # TYPE o counter\no_total 4 # {trace=\"x\"} 1\n# EOF\n";
        use Kind::{Counter, Gauge};
        let expected = [
            ("a_total{x=\"1\",y=\"}\\\" #\"}", Counter, 5.0),
            ("b", Gauge, 2.5),
            ("h_bucket{le=\"0.1\"}", Counter, 1.0),
            ("h_bucket{le=\"+Inf\"}", Counter, 3.0),
            ("h_sum", Counter, 0.4),
            ("h_count", Counter, 3.0),
            ("s{quantile=\"0.5\"}", Gauge, 7.0),
            ("s_sum", Counter, 9.0),
            ("untyped", Gauge, 1_000.0),
            ("o_total", Counter, 4.0),
        ];
        let expected: Vec<_> = expected.map(|(n, k, v)| (n.to_owned(), k, v)).into();
        assert_eq!(parsed(text), expected);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["<html>", "a", "a{x=\"1\" 5", "a{x=\"1\"}", "a five", "1a 5", "{} 5", "a-b 5"] {
            assert!(parse(text, &mut Sample::default()).is_err(), "{text}");
        }
        let long: String = (0..=SERIES).map(|i| format!("a{{i=\"{i}\"}} 1\n")).collect();
        assert_eq!(parse(&long, &mut Sample::default()), Err(TextError::TooMany));
    }
}
