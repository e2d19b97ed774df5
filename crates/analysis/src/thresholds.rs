//! Thresholds: `p99(read) < 5ms`, `throughput > 10000`, `errors < 1%`, `mean(update.service) <= 800us`.

use dyno_rundir::schema::{Latency, Phase, Threshold};
use dyno_types::Outcome;
use dyno_types::units::{parse_duration_ns, parse_rate};

/// A threshold that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "threshold {text:?}: {why}; expected for example 'p99(read) < 5ms', 'max(update.service) < 1s', 'throughput > \
     10000' or 'errors < 0.1%'"
)]
pub struct BadThreshold {
    /// As written.
    pub text: String,
    /// What is wrong.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

#[derive(Clone, Debug, PartialEq)]
enum Quantity {
    /// Operations per second.
    Throughput,
    /// Share of arrivals that did not end well, percent.
    Errors,
    /// A latency in microseconds: statistic, metric (lower case; `all` for every one), service or response.
    Latency { statistic: String, metric: String, service: bool },
}

/// A threshold that has been understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    quantity: Quantity,
    relation: Relation,
    /// Operations per second, percent, or microseconds.
    limit: f64,
}

impl Condition {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, BadThreshold> {
        let bad = |why: String| BadThreshold { text: text.to_owned(), why };
        let at = text.find(['<', '>']).ok_or_else(|| bad("no < or >".into()))?;
        let (left, right) = (text[..at].trim(), &text[at..]);
        let (relation, limit) = match right.as_bytes() {
            [b'<', b'=', ..] => (Relation::AtMost, &right[2..]),
            [b'>', b'=', ..] => (Relation::AtLeast, &right[2..]),
            [b'<', ..] => (Relation::Below, &right[1..]),
            _ => (Relation::Above, &right[1..]),
        };
        let limit = limit.trim();
        let (quantity, limit) = match left.split_once('(') {
            None if left == "throughput" => {
                (Quantity::Throughput, parse_rate(limit).map_err(|e| bad(e.to_string()))?)
            }
            None if left == "errors" => {
                let percent = limit.strip_suffix('%').ok_or_else(|| bad("errors are given in %".into()))?;
                (
                    Quantity::Errors,
                    percent.trim().parse().map_err(|_| bad(format!("{percent:?} is no number")))?,
                )
            }
            None => return Err(bad(format!("{left:?} is neither throughput, errors nor STATISTIC(METRIC)"))),
            Some((statistic, metric)) => {
                let metric = metric.strip_suffix(')').ok_or_else(|| bad("no closing )".into()))?;
                let ns = parse_duration_ns(limit, 1_000).map_err(|e| bad(e.to_string()))?;
                (Self::latency(statistic.trim(), metric.trim()).map_err(bad)?, ns as f64 / 1e3)
            }
        };
        Ok(Condition { text: text.trim().to_owned(), quantity, relation, limit })
    }

    fn latency(statistic: &str, metric: &str) -> Result<Quantity, String> {
        let known = matches!(statistic, "mean" | "min" | "max")
            || statistic
                .strip_prefix('p')
                .and_then(|p| p.parse::<f64>().ok())
                .is_some_and(|p| [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999].contains(&p));
        if !known {
            return Err(format!(
                "{statistic:?} is no statistic (mean, min, max, p50, p90, p95, p99, p99.9, p99.99, p99.999)"
            ));
        }
        let metric = metric.to_ascii_lowercase();
        let (metric, service) = match metric.split_once('.') {
            Some((metric, "service")) => (metric.to_owned(), true),
            Some((metric, "response")) => (metric.to_owned(), false),
            Some((_, kind)) => return Err(format!("{kind:?} is neither service nor response")),
            None => (metric, false),
        };
        Ok(Quantity::Latency { statistic: statistic.to_owned(), metric, service })
    }

    /// Refuses a metric that the run does not record.
    pub fn check(&self, metrics: &[String]) -> Result<(), BadThreshold> {
        let Quantity::Latency { metric, .. } = &self.quantity else { return Ok(()) };
        if metric == "all" || metrics.iter().any(|m| m.eq_ignore_ascii_case(metric)) {
            return Ok(());
        }
        let why =
            format!("this workload records {} (or all), not {metric:?}", metrics.join(", ").to_lowercase());
        Err(BadThreshold { text: self.text.clone(), why })
    }

    /// Whether it held in a phase. What cannot be told has not held. Failures count with at least their time in latencies.
    pub fn evaluate(&self, phase: &Phase) -> Threshold {
        let measured = match &self.quantity {
            Quantity::Throughput => Some(phase.throughput),
            Quantity::Errors => {
                let ok = phase.outcomes.get(Outcome::Ok.name()).copied().unwrap_or(0);
                (phase.arrivals > 0)
                    .then(|| (phase.arrivals - ok.min(phase.arrivals)) as f64 * 100.0 / phase.arrivals as f64)
            }
            Quantity::Latency { statistic, metric, service } => {
                // Closing connections is no operation of the workload.
                let wanted = phase.metrics.iter().filter(|m| match metric.as_str() {
                    "all" => m.name != "CLEANUP",
                    metric => m.name.eq_ignore_ascii_case(metric),
                });
                let found: Option<Vec<f64>> = wanted
                    .filter_map(|m| if *service { m.felt_service() } else { m.felt_response() })
                    .map(|l| Self::pick(l, statistic))
                    .collect();
                // Of several metrics the worst counts; one that cannot be told makes the whole untold.
                found.and_then(|f| f.into_iter().reduce(f64::max))
            }
        };
        let passed = measured.is_some_and(|m| match self.relation {
            Relation::Below => m < self.limit,
            Relation::AtMost => m <= self.limit,
            Relation::Above => m > self.limit,
            Relation::AtLeast => m >= self.limit,
        });
        Threshold { expression: self.text.clone(), measured, passed }
    }

    fn pick(latency: &Latency, statistic: &str) -> Option<f64> {
        match statistic {
            "mean" => Some(latency.mean_us),
            "min" => latency.min_us,
            "max" => latency.max_us,
            p => latency.percentiles_us.get(p).copied().flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        for text in [
            "p99(read) < 5ms",
            "max(update.service)<=1s",
            "throughput > 10k",
            "errors < 0.1%",
            "p50(all)<1ms",
        ] {
            Condition::parse(text).unwrap_or_else(|e| panic!("{e}"));
        }
        for (text, word) in [
            ("p99(read) = 5ms", "no < or >"),
            ("p98(read) < 5ms", "no statistic"),
            ("p99(read) < 5 parsecs", "duration"),
            ("latency < 5ms", "neither"),
            ("errors < 5", "%"),
            ("p99(read.wall) < 5ms", "neither service nor response"),
        ] {
            let error = Condition::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn metrics_must_exist() {
        let condition = Condition::parse("p99(scan) < 5ms").unwrap();
        assert!(condition.check(&["READ".into()]).unwrap_err().to_string().contains("read"));
        assert!(condition.check(&["SCAN".into()]).is_ok());
    }
}
