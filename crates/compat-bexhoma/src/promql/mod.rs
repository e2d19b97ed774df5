//! Queries of PromQL on what dyno's own monitors have recorded: `sum`, `max`, `min`, `avg`, `rate`, `irate`, `increase`,
//! arithmetic with numbers, and labels that are equal or not. A phase is the window of every rate, and gives one figure.
//!
//! A query of a rate is the mean rate of the phase, whatever kind its metric is said to be: the difference of two rates, which
//! bexhoma prints for counters, is none. Other counters are their increase with resets taken into account, gauges their
//! greatest value in time.

mod error;
mod parse;

pub use error::QueryError;
pub use parse::SyntaxError;

use dyno_rundir::monitor::{PhaseSpan, RecordedSeries, Recording};
use dyno_types::database_series::{
    CONNECTIONS, CONNECTIONS_ACCEPTED, KEYSPACE_EVICTED, KEYSPACE_EXPIRED, KEYSPACE_HITS, KEYSPACE_MISSES,
    MEMORY_BYTES, MEMORY_LIMIT_BYTES, MEMORY_RESIDENT_BYTES, OPERATIONS, RECEIVED_BYTES,
    REPLICATION_REPLICAS, SENT_BYTES,
};
use parse::{Expr, Matcher, parse};

/// Names of exporters, after `redis_` or `dragonfly_`, and what dyno's own monitor of databases calls it.
const OURS: [(&str, &str); 14] = [
    ("reply_total", OPERATIONS),
    ("commands_processed_total", OPERATIONS),
    ("memory_used_bytes", MEMORY_BYTES),
    ("memory_used_rss_bytes", MEMORY_RESIDENT_BYTES),
    ("memory_max_bytes", MEMORY_LIMIT_BYTES),
    ("net_input_bytes_total", RECEIVED_BYTES),
    ("net_output_bytes_total", SENT_BYTES),
    ("connected_clients", CONNECTIONS),
    ("connections_received_total", CONNECTIONS_ACCEPTED),
    ("keyspace_hits_total", KEYSPACE_HITS),
    ("keyspace_misses_total", KEYSPACE_MISSES),
    ("evicted_keys_total", KEYSPACE_EVICTED),
    ("expired_keys_total", KEYSPACE_EXPIRED),
    ("connected_slaves", REPLICATION_REPLICAS),
];

/// A number, or one for each series.
enum Figure {
    Scalar(f64),
    Vector(Vec<f64>),
}

/// Meaning of a metric without a window.
#[derive(Clone, Copy)]
enum Instant {
    /// Value then.
    At(f64),
    /// Increase over the phase.
    Increase,
}

struct Evaluation<'a> {
    recording: &'a Recording,
    span: PhaseSpan,
}

/// Returns whether a query names a window, for which the whole phase is taken here.
pub fn has_window(query: &str) -> bool {
    parse(query).is_ok_and(|expr| expr.has_window())
}

/// Returns whether a query asks for a rate.
pub fn is_rate(query: &str) -> bool {
    parse(query).is_ok_and(|expr| expr.has_rate())
}

/// Reduction of the values of a phase to one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Growth of a counter.
    Increase,
    /// The greatest value.
    Greatest,
    /// The mean of the samples.
    Mean,
}

/// The figure of a phase; otherwise why there is none.
pub fn evaluate(
    query: &str,
    by: Reduction,
    recording: &Recording,
    span: PhaseSpan,
) -> Result<f64, QueryError> {
    let expr = parse(query)?;
    let own = Evaluation { recording, span };
    if expr.has_rate() || expr.has_increase() {
        return own.single(&expr, Instant::At(span.to_ms));
    }
    if by == Reduction::Increase {
        return own.single(&expr, Instant::Increase);
    }
    let mut times = Vec::new();
    own.times(&expr, &mut times)?;
    let values = times.into_iter().map(|at| own.single(&expr, Instant::At(at)));
    let values: Vec<f64> = values.collect::<Result<_, _>>()?;
    let count = values.len() as f64;
    let figure = match by {
        Reduction::Mean => values.into_iter().reduce(|sum, value| sum + value).map(|sum| sum / count),
        _ => values.into_iter().reduce(f64::max),
    };
    figure.ok_or(QueryError::NoSample)
}

impl Evaluation<'_> {
    fn single(&self, expr: &Expr, instant: Instant) -> Result<f64, QueryError> {
        let value = match self.figure(expr, instant)? {
            Figure::Scalar(value) => value,
            Figure::Vector(values) => match values.as_slice() {
                [value] => *value,
                several => return Err(QueryError::SeveralSeries(several.len())),
            },
        };
        // Hits of nothing by nothing, for one.
        Some(value).filter(|value| value.is_finite()).ok_or(QueryError::NotFinite)
    }

    /// Series of a name: those of exporters, or dyno's own of databases.
    fn series(&self, name: &str, matchers: &[Matcher]) -> Result<Vec<RecordedSeries>, QueryError> {
        let mut found = Vec::new();
        for source in self.recording.source_names() {
            for full in self.recording.series_names(source) {
                let (bare, labels) = full.split_once('{').unwrap_or((full, ""));
                if bare == name && matchers.iter().all(|matcher| matches(labels, matcher)) {
                    found.extend(self.recording.find_series(source, full));
                }
            }
        }
        let short = ["redis_", "dragonfly_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        let ours = OURS.iter().find(|(theirs, _)| Some(*theirs) == short);
        if let (true, true, Some((_, ours))) = (found.is_empty(), matchers.is_empty(), ours) {
            let databases = self.recording.source_names().filter(|source| source.starts_with("database"));
            found.extend(databases.filter_map(|source| self.recording.find_series(source, ours)));
        }
        match found.is_empty() {
            true => Err(QueryError::NotRecorded(name.to_owned())),
            false => Ok(found),
        }
    }

    /// Collects the times at which something was recorded in the phase.
    fn times(&self, expr: &Expr, times: &mut Vec<f64>) -> Result<(), QueryError> {
        match expr {
            Expr::Number(_) => Ok(()),
            Expr::Call(_, inner) => self.times(inner, times),
            Expr::Binary(_, a, b) => self.times(a, times).and_then(|()| self.times(b, times)),
            Expr::Series { name, matchers, .. } => {
                let inside = |at: f64| (self.span.from_ms..=self.span.to_ms).contains(&at);
                for series in self.series(name, matchers)? {
                    let known = series.points.iter().filter(|(at, value)| value.is_some() && inside(*at));
                    times.extend(known.map(|(at, _)| *at));
                }
                Ok(())
            }
        }
    }

    fn figure(&self, expr: &Expr, instant: Instant) -> Result<Figure, QueryError> {
        match expr {
            Expr::Number(value) => Ok(Figure::Scalar(*value)),
            Expr::Series { name, window: true, .. } => Err(QueryError::BareWindow(name.clone())),
            Expr::Series { name, matchers, .. } => {
                let value = |series: RecordedSeries| match instant {
                    Instant::Increase => series.increase_over(self.span),
                    Instant::At(at) => {
                        let mut known =
                            series.points.iter().filter(|(then, value)| *then <= at && value.is_some());
                        known.next_back().and_then(|(_, value)| *value)
                    }
                };
                let values: Vec<f64> = self.series(name, matchers)?.into_iter().filter_map(value).collect();
                match values.is_empty() {
                    true => Err(QueryError::TooFewSamples(name.clone())),
                    false => Ok(Figure::Vector(values)),
                }
            }
            Expr::Call(function, inner) => self.call(function, inner, instant),
            Expr::Binary(sign, a, b) => {
                let of = |a: f64, b: f64| match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                };
                match (self.figure(a, instant)?, self.figure(b, instant)?) {
                    (Figure::Scalar(a), Figure::Scalar(b)) => Ok(Figure::Scalar(of(a, b))),
                    (Figure::Vector(all), Figure::Scalar(b)) => {
                        Ok(Figure::Vector(all.into_iter().map(|a| of(a, b)).collect()))
                    }
                    (Figure::Scalar(a), Figure::Vector(all)) => {
                        Ok(Figure::Vector(all.into_iter().map(|b| of(a, b)).collect()))
                    }
                    // After a sum there is one of each.
                    (Figure::Vector(a), Figure::Vector(b)) if a.len() == 1 && b.len() == 1 => {
                        Ok(Figure::Vector(vec![of(a[0], b[0])]))
                    }
                    _ => Err(QueryError::SeveralOnBothSides),
                }
            }
        }
    }

    fn call(&self, function: &str, inner: &Expr, instant: Instant) -> Result<Figure, QueryError> {
        if let Expr::Series { name, matchers, window: true } = inner {
            let (from, to) = self.span.boundaries();
            let value = |series: &RecordedSeries| match function {
                "increase" => series.increase_over(self.span),
                _ => series.rate_between(from, to),
            };
            let values: Vec<f64> = self.series(name, matchers)?.iter().filter_map(value).collect();
            return match values.is_empty() {
                true => Err(QueryError::TooFewSamples(name.clone())),
                false => Ok(Figure::Vector(values)),
            };
        }
        let values = match self.figure(inner, instant)? {
            Figure::Vector(values) => values,
            Figure::Scalar(_) => return Err(QueryError::NoMetric(function.to_owned())),
        };
        let value = match function {
            "sum" => values.iter().sum(),
            "avg" => values.iter().sum::<f64>() / values.len() as f64,
            "max" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            _ => values.iter().copied().fold(f64::INFINITY, f64::min),
        };
        Ok(Figure::Vector(vec![value]))
    }
}

/// Returns whether labels, as exporters write them, are as asked for.
fn matches(labels: &str, matcher: &Matcher) -> bool {
    let wanted = format!("{}=\"{}\"", matcher.label, matcher.value);
    let parts = labels.trim_end_matches('}').split(',');
    parts.into_iter().any(|part| part.trim() == wanted) == matcher.equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_rundir::monitor::Kind;

    /// Two nodes: 100 and 300 commands a second for ten seconds, 1 and 2 GiB that grow by half in the middle.
    fn recording() -> Recording {
        let mut recording = Recording::new();
        for second in 0..=10u32 {
            for (source, commands, gib) in [("database-1", 100.0, 1.0), ("database-2", 300.0, 2.0)] {
                let at = f64::from(second);
                let memory = gib * f64::from(1 << 30) * if second == 5 { 1.5 } else { 1.0 };
                // The second node begins anew after six seconds.
                let count =
                    if source == "database-2" && second > 6 { (at - 6.0) * commands } else { at * commands };
                let row = [("operations", Kind::Counter, count), ("memory_bytes", Kind::Gauge, memory)];
                recording.push(source, at * 1e3, row);
            }
            let lag = [("dragonfly_lag{shard=\"0\"}", 3.0), ("dragonfly_lag{shard=\"1\"}", 7.0)];
            recording.push("exporter", f64::from(second) * 1e3, lag.map(|(name, v)| (name, Kind::Gauge, v)));
        }
        recording
    }

    fn of(query: &str, counter: bool) -> Result<f64, String> {
        let by = if counter { Reduction::Increase } else { Reduction::Greatest };
        evaluate(query, by, &recording(), PhaseSpan::only(0.0, 10_000.0)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_examples_catalogue() {
        // bexhoma's difference of two rates would be near 0 here: both nodes are steady.
        assert_eq!(of("sum(rate(dragonfly_commands_processed_total[5m]))", true), Ok(400.0));
        assert_eq!(of("sum(dragonfly_reply_total)", true), Ok(4_000.0), "across a restart, too");
        assert_eq!(of("sum(dragonfly_memory_used_bytes)/1024/1024/1024", false), Ok(4.5));
        assert_eq!(of("max(dragonfly_memory_used_bytes) / 1024 / 1024 / 1024", false), Ok(3.0));
        assert_eq!(of("sum(increase(redis_commands_processed_total[1m])) / 10", false), Ok(400.0));
        assert_eq!(of("sum(dragonfly_lag)", false), Ok(10.0));
        assert_eq!(of("dragonfly_lag{shard=\"1\"}", false), Ok(7.0));
        assert_eq!(of("max(dragonfly_lag{shard!='1'}) * (2 + 1)", false), Ok(9.0));
        assert!(is_rate("sum(rate(x[5m]))/1024") && !is_rate("sum(x)"));
        assert!(has_window("1+sum(increase(x[1h30m]))") && !has_window("sum(x)/2") && !has_window("x["));
    }

    #[test]
    fn what_is_not_evaluated_says_why() {
        for (query, why) in [
            ("sum(dragonfly_moved_errors_total)", "was not recorded"),
            ("dragonfly_lag", "2 series, and no sum or max"),
            ("histogram_quantile(0.9, x)", "of functions only"),
            ("sum(x{pod=~\"a.*\"})", "patterns are not evaluated here"),
            ("sum(x) by (instance)", "\"by (instance)\": is not evaluated here"),
            ("rate(dragonfly_lag)", "expected a window"),
            ("sum(dragonfly_lag[5m])", "expected no window"),
            ("sum(dragonfly_lag", "expected ')'"),
            ("", "is not evaluated here"),
        ] {
            let error = of(query, false).unwrap_err();
            assert!(error.contains(why), "{query}: {error}");
        }
        assert!(parse(&"(".repeat(60)).is_err());
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod figures;
