//! Prometheus' text format, version 0.0.4, and what OpenMetrics adds to it.

use super::error::{SERIES, TextError};
use crate::sample::{Sample, SeriesKind};
use std::collections::HashMap;

/// Kinds of metrics, of the text format 0.0.4 and of OpenMetrics.
const KINDS: [&str; 9] =
    ["counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset", "gaugehistogram"];

/// Adds every series, named as the exporter names it, labels included, without blanks between them. Values that are not finite
/// are missing. Refuses text that is something else, naming the line.
pub fn parse(text: &str, into: &mut Sample) -> Result<(), TextError> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let bad = || TextError::Line { line: number + 1, shown: line.chars().take(60).collect() };
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if words.next() == Some("TYPE") {
                let (Some(name), Some(kind), None) = (words.next(), words.next(), words.next()) else {
                    return Err(bad());
                };
                // One metric has one kind.
                if !KINDS.contains(&kind) || kinds.insert(name, kind).is_some_and(|other| other != kind) {
                    return Err(bad());
                }
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let (name, series, rest) = series(line).ok_or_else(bad)?;
        let value = value_of(rest).ok_or_else(bad)?;
        if into.all_readings().len() >= SERIES {
            return Err(TextError::TooMany);
        }
        into.add_figure(series, kind_of(name, &kinds), value);
    }
    Ok(())
}

/// A number; Rust's parser knows `NaN` and `+Inf` too.
fn number(word: &str) -> Option<f64> {
    word.parse().ok()
}

/// The value, behind which a timestamp and OpenMetrics' exemplar may stand.
fn value_of(rest: &str) -> Option<f64> {
    let mut words = rest.split_ascii_whitespace();
    let value = number(words.next()?)?;
    let mut next = words.next();
    if next.is_some_and(|word| number(word).is_some()) {
        next = words.next();
    }
    // Of an exemplar nothing is read.
    next.is_none_or(|word| word.starts_with('#')).then_some(value)
}

/// The end of a name of a metric, or of a label, in which no colon stands.
fn name_end(text: &str, colons: bool) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' && colons;
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    (end > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then_some(end)
}

/// The name, the series (the name with its labels in braces, if there are any), and what follows.
fn series(line: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = line.split_at(name_end(line, true)?);
    let behind = rest.trim_ascii_start();
    let Some(mut rest) = behind.strip_prefix('{') else {
        return (behind.len() < rest.len()).then(|| (name, name.to_owned(), behind));
    };
    let mut labels = String::new();
    loop {
        rest = rest.trim_ascii_start();
        // A comma may stand behind the last one.
        if let Some(rest) = rest.strip_prefix('}') {
            let series = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{labels}}}") };
            return Some((name, series, rest));
        }
        let (label, behind) = rest.split_at(name_end(rest, false)?);
        let value = behind.trim_ascii_start().strip_prefix('=')?.trim_ascii_start();
        let end = quoted_end(value)?;
        labels = format!("{labels}{}{label}={}", if labels.is_empty() { "" } else { "," }, &value[..end]);
        rest = value[end..].trim_ascii_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// The end of a text in quotes that begins here, in which `\\`, `\"` and `\n` are the only escapes.
fn quoted_end(text: &str) -> Option<usize> {
    let mut rest = text.char_indices();
    rest.next().filter(|(_, c)| *c == '"')?;
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => return Some(at + 1),
            '\\' => drop(rest.next().filter(|(_, c)| matches!(c, '\\' | '"' | 'n'))?),
            _ => {}
        }
    }
    None
}

/// Counters, and the parts of histograms and summaries that only grow.
fn kind_of(name: &str, kinds: &HashMap<&str, &str>) -> SeriesKind {
    if let Some(kind) = kinds.get(name) {
        return if *kind == "counter" { SeriesKind::Counter } else { SeriesKind::Gauge };
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
    if grows { SeriesKind::Counter } else { SeriesKind::Gauge }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, SeriesKind, f64)> {
        let mut sample = Sample::default();
        parse(text, &mut sample).unwrap();
        sample.all_readings().iter().map(|r| (r.name.clone(), r.kind, r.value)).collect()
    }

    #[test]
    fn all_types_are_read() {
        let text = "# HELP a_total Things, \"quoted\".\n# TYPE a_total counter\na_total{x=\"1\",y=\"}\\\" #\"} 5 1700000000000\n\
            # TYPE b gauge\nb 2.5\n# TYPE h histogram\nh_bucket{le=\"0.1\"} 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 0.4\nh_count 3\n\
            # TYPE s summary\ns{quantile=\"0.5\"} 7\ns_sum 9\nuntyped{} 1e3\nnan NaN\ninf +Inf\n\
            # TYPE o counter\no_total 4 # {trace=\"x\"} 1\n# EOF\n";
        use SeriesKind::{Counter, Gauge};
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
    fn blanks_between_tokens_are_no_part_of_a_series() {
        let text = "a {x=\"1\"} 5\na\t{ x = \"1\" , y=\"a b\", }\t6  1700000000000\nb {} 7\nc{x=\"1\"}8\n\
                    # TYPE a gauge\n# TYPE a gauge\n# TYPER a\n";
        let found: Vec<(String, f64)> =
            parsed(text).into_iter().map(|(name, _, value)| (name, value)).collect();
        let expected = [("a{x=\"1\"}", 5.0), ("a{x=\"1\",y=\"a b\"}", 6.0), ("b", 7.0), ("c{x=\"1\"}", 8.0)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "<html>",
            "a",
            "a{x=\"1\" 5",
            "a{x=\"1\"}",
            "a five",
            "1a 5",
            "{} 5",
            "a-b 5",
            // Labels: names, quotes, commas, escapes.
            "a{1x=\"1\"} 5",
            "a{x:y=\"1\"} 5",
            "a{x=1} 5",
            "a{x} 5",
            "a{x=\"1\" y=\"2\"} 5",
            "a{,} 5",
            "a{x=\"1\",,} 5",
            "a{x=\"\\q\"} 5",
            // What is behind the value.
            "a 5 soon",
            "a 5 1700000000000 6",
            "a{x=\"1\"} 5 x",
            // Kinds.
            "# TYPE a number\na 5",
            "# TYPE a\na 5",
            "# TYPE a counter\n# TYPE a gauge\na 5",
        ] {
            assert!(parse(text, &mut Sample::default()).is_err(), "{text}");
        }
        let long: String = (0..=SERIES).map(|i| format!("a{{i=\"{i}\"}} 1\n")).collect();
        assert_eq!(parse(&long, &mut Sample::default()), Err(TextError::TooMany));
    }
}
