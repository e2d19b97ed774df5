//! Thresholds: `p99(read) < 5ms`, `throughput > 10000`, `errors < 1%`, `mean(update.service) <= 800us`.

use crate::blocks::{BlockCounts, Blocks, LatencyKind, Population};
use crate::estimate::{BLOCKS, Quantile, RatioEstimate, interval_of_greater};
use crate::verdict::ResponseTime;
use dyno_rundir::schema::{Claim, ConfidenceInterval, Latency, Metric, Phase, Threshold};
use dyno_types::Outcome;
use dyno_types::metric::CLEANUP;
use dyno_types::units::{BadUnit, parse_duration_ns, parse_rate};

/// A threshold that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "threshold {text:?}: {why}; expected for example 'p99(read) < 5ms', 'max(update.service) < 1s', 'throughput > \
     10000' or 'errors < 0.1%'"
)]
pub struct BadThreshold {
    /// As written.
    pub text: String,
    /// Reason.
    #[source]
    pub why: ThresholdProblem,
}

/// Reason why a threshold is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdProblem {
    /// There is no comparison.
    #[error("no < or >")]
    NoRelation,
    /// A limit that is no rate or no duration.
    #[error(transparent)]
    Limit(#[from] BadUnit),
    /// A limit of errors without its unit.
    #[error("errors are given in %")]
    NoPercent,
    /// A limit of a latency without its unit.
    #[error("{0} has no unit: us, ms or s")]
    NoUnit(String),
    /// A limit that nothing can be below.
    #[error("nothing is below 0")]
    BelowNothing,
    /// A percentage that is no number.
    #[error("{0:?} is no number")]
    NotANumber(String),
    /// Another quantity.
    #[error("{0:?} is neither throughput, errors nor STATISTIC(METRIC)")]
    Quantity(String),
    /// A parenthesis is open.
    #[error("no closing )")]
    OpenParenthesis,
    /// A statistic that is not recorded.
    #[error("{0:?} is no statistic (mean, min, max, p50, p90, p95, p99, p99.9, p99.99, p99.999)")]
    Statistic(String),
    /// A latency of another kind.
    #[error("{0:?} is neither service nor response")]
    Kind(String),
    /// A metric that the workload does not record.
    #[error("this workload records {recorded} (or all), not {metric:?}")]
    Metric {
        /// The metric.
        metric: String,
        /// Names that it records.
        recorded: String,
    },
}

/// Distance below the limit in half widths, and the interval.
type LimitDistance = (f64, Option<ConfidenceInterval>);

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

impl Quantity {
    /// Reads `throughput`, `errors` or `STATISTIC(METRIC)`.
    fn parse(text: &str) -> Result<Self, ThresholdProblem> {
        match text.split_once('(') {
            None if text == "throughput" => Ok(Quantity::Throughput),
            None if text == "errors" => Ok(Quantity::Errors),
            None => Err(ThresholdProblem::Quantity(text.to_owned())),
            Some((statistic, metric)) => {
                let metric = metric.strip_suffix(')').ok_or(ThresholdProblem::OpenParenthesis)?;
                Self::latency(statistic.trim(), metric.trim())
            }
        }
    }

    /// Claims that it rests on: none for a count.
    fn claims(&self) -> Vec<Claim> {
        match self {
            Quantity::Throughput => vec![Claim::Throughput],
            Quantity::Errors => Vec::new(),
            Quantity::Latency { statistic, .. } => match statistic.as_str() {
                "min" | "p50" => vec![Claim::Median],
                "mean" => vec![Claim::Median, Claim::Tail],
                _ => vec![Claim::Tail],
            },
        }
    }

    fn latency(statistic: &str, metric: &str) -> Result<Quantity, ThresholdProblem> {
        let known = matches!(statistic, "mean" | "min" | "max")
            || statistic
                .strip_prefix('p')
                .and_then(|p| p.parse::<f64>().ok())
                .is_some_and(|p| [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999].contains(&p));
        if !known {
            return Err(ThresholdProblem::Statistic(statistic.to_owned()));
        }
        let metric = metric.to_ascii_lowercase();
        let (metric, service) = match metric.split_once('.') {
            Some((metric, "service")) => (metric.to_owned(), true),
            Some((metric, "response")) => (metric.to_owned(), false),
            Some((_, kind)) => return Err(ThresholdProblem::Kind(kind.to_owned())),
            None => (metric, false),
        };
        Ok(Quantity::Latency { statistic: statistic.to_owned(), metric, service })
    }

    /// The figure in a phase: operations per second, percent, or microseconds.
    fn measured_value(&self, phase: &Phase) -> Option<f64> {
        match self {
            Quantity::Throughput => Some(phase.throughput),
            Quantity::Errors => {
                let ok = phase.outcomes.get(Outcome::Ok.name()).copied().unwrap_or(0);
                (phase.arrivals > 0)
                    .then(|| (phase.arrivals - ok.min(phase.arrivals)) as f64 * 100.0 / phase.arrivals as f64)
            }
            Quantity::Latency { statistic, metric, service } => {
                let found: Option<Vec<f64>> = Self::metrics(phase, metric)
                    .filter_map(|m| if *service { m.arrival_service() } else { m.arrival_response() })
                    .map(|l| Self::pick(l, statistic))
                    .collect();
                // Of several metrics the worst counts; one that cannot be told makes the whole untold.
                found.and_then(|f| f.into_iter().reduce(f64::max))
            }
        }
    }

    /// The metrics of a phase that are meant by a name. Closing connections is no operation of the workload.
    fn metrics<'a>(phase: &'a Phase, name: &'a str) -> impl Iterator<Item = &'a Metric> {
        phase.metrics.iter().filter(move |m| match name {
            "all" => m.name != CLEANUP,
            name => m.name.eq_ignore_ascii_case(name),
        })
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

/// A figure of a threshold without its limit: `throughput`, `errors`, `p99(read)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdFigure(Quantity);

impl ThresholdFigure {
    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, BadThreshold> {
        let bad = |why| BadThreshold { text: text.to_owned(), why };
        Quantity::parse(text.trim()).map(ThresholdFigure).map_err(bad)
    }

    /// Value in a phase: operations per second, percent, or microseconds; `None` if it cannot be told.
    pub fn measured_value(&self, phase: &Phase) -> Option<f64> {
        self.0.measured_value(phase)
    }

    /// Returns the claims that it rests on: none for a count.
    pub fn claims(&self) -> Vec<Claim> {
        self.0.claims()
    }

    /// Returns its unit.
    pub fn unit(&self) -> &'static str {
        match self.0 {
            Quantity::Throughput => "1/s",
            Quantity::Errors => "%",
            Quantity::Latency { .. } => "\u{b5}s",
        }
    }
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

/// Where a threshold can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdBound {
    /// The operation of a latency in lower case, `all` for every one; `None`: throughput.
    pub metric: Option<String>,
    /// True for service times.
    pub service: bool,
    /// Operations per second, or microseconds.
    pub limit: f64,
    /// True if the figure is to stay below it.
    pub is_upper: bool,
}

impl Condition {
    /// Returns where it can be drawn; a share of errors cannot.
    pub fn drawable_bound(&self) -> Option<ThresholdBound> {
        let (metric, service) = match &self.quantity {
            Quantity::Throughput => (None, false),
            Quantity::Errors => return None,
            Quantity::Latency { metric, service, .. } => (Some(metric.clone()), *service),
        };
        Some(ThresholdBound { metric, service, limit: self.limit, is_upper: self.is_upper() })
    }

    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, BadThreshold> {
        let bad = |why| BadThreshold { text: text.to_owned(), why };
        let at = text.find(['<', '>']).ok_or_else(|| bad(ThresholdProblem::NoRelation))?;
        let (left, right) = (text[..at].trim(), &text[at..]);
        let (relation, limit) = match right.as_bytes() {
            [b'<', b'=', ..] => (Relation::AtMost, &right[2..]),
            [b'>', b'=', ..] => (Relation::AtLeast, &right[2..]),
            [b'<', ..] => (Relation::Below, &right[1..]),
            _ => (Relation::Above, &right[1..]),
        };
        let limit = limit.trim();
        let quantity = Quantity::parse(left).map_err(bad)?;
        let limit = match quantity {
            Quantity::Throughput => parse_rate(limit).map_err(|e| bad(e.into()))?,
            Quantity::Errors => {
                let percent = limit.strip_suffix('%').ok_or_else(|| bad(ThresholdProblem::NoPercent))?;
                let number = percent.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| bad(ThresholdProblem::NotANumber(percent.to_owned())))?
            }
            // A bare number would be microseconds to some and milliseconds to others.
            Quantity::Latency { .. } if limit.ends_with(|c: char| c.is_ascii_digit() || c == '.') => {
                return Err(bad(ThresholdProblem::NoUnit(limit.to_owned())));
            }
            Quantity::Latency { .. } => {
                parse_duration_ns(limit, 1_000).map_err(|e| bad(e.into()))? as f64 / 1e3
            }
        };
        if relation == Relation::Below && limit <= 0.0 {
            return Err(bad(ThresholdProblem::BelowNothing));
        }
        Ok(Condition { text: text.trim().to_owned(), quantity, relation, limit })
    }

    /// Reads an expression about a run that records `metrics`.
    pub fn parse_for_metrics(text: &str, metrics: &[String]) -> Result<Self, BadThreshold> {
        let condition = Self::parse(text)?;
        condition.check_metric(metrics)?;
        Ok(condition)
    }

    /// Returns it as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Refuses a metric that the run does not record.
    fn check_metric(&self, metrics: &[String]) -> Result<(), BadThreshold> {
        let Quantity::Latency { metric, .. } = &self.quantity else { return Ok(()) };
        if metric == "all" || metrics.iter().any(|m| m.eq_ignore_ascii_case(metric)) {
            return Ok(());
        }
        let recorded = metrics.join(", ").to_lowercase();
        let why = ThresholdProblem::Metric { metric: metric.clone(), recorded };
        Err(BadThreshold { text: self.text.clone(), why })
    }

    /// Itself as written, with the claims that it rests on: none for a count.
    pub fn expression_and_claims(&self) -> (String, Vec<Claim>) {
        (self.text.clone(), self.quantity.claims())
    }

    /// Returns the response time that it is on, if it is on one.
    pub fn response_time(&self) -> Option<ResponseTime> {
        match &self.quantity {
            Quantity::Latency { statistic, metric, service: false } => {
                Some(ResponseTime { statistic: statistic.clone(), metric: metric.clone() })
            }
            _ => None,
        }
    }

    /// Returns whether the figure of a phase is within the limit, and the figure. What cannot be told is not. Failures count
    /// with at least their time in latencies.
    pub fn evaluate_phase(&self, phase: &Phase) -> (Option<f64>, bool) {
        let measured = self.quantity.measured_value(phase);
        let passed = measured.is_some_and(|m| match self.relation {
            Relation::Below => m < self.limit,
            Relation::AtMost => m <= self.limit,
            Relation::Above => m > self.limit,
            Relation::AtLeast => m >= self.limit,
        });
        (measured, passed)
    }

    /// Decides it for a phase, its `blocks` and the operations of its whole seconds.
    pub fn judge_phase(&self, phase: &Phase, blocks: &Blocks, seconds: &[f64]) -> Threshold {
        let (measured, within) = self.evaluate_phase(phase);
        let found = match &self.quantity {
            Quantity::Throughput => self.throughput(phase, seconds),
            Quantity::Errors if self.limit > 0.0 => self.errors(blocks),
            // Not one may fail: a statement about this run alone, as about its slowest operation.
            Quantity::Errors => None,
            Quantity::Latency { statistic, metric, service } => {
                self.latency(statistic, &Self::populations(phase, blocks, metric, *service))
            }
        };
        let (below, interval) = found.map_or((None, None), |(below, interval)| (Some(below), interval));
        let margin = below.map(|below| if self.is_upper() { below } else { -below });
        let too_close = margin.is_some_and(|margin| margin.abs() < 1.0);
        let passed = margin.filter(|_| !too_close).map_or(within, |margin| margin > 0.0);
        Threshold { expression: self.text.clone(), measured, passed, too_close, interval, margin }
    }

    /// Returns whether the figure is to stay below the limit.
    fn is_upper(&self) -> bool {
        matches!(self.relation, Relation::Below | Relation::AtMost)
    }

    fn throughput(&self, phase: &Phase, seconds: &[f64]) -> Option<LimitDistance> {
        let blocks: Vec<BlockCounts> = match seconds {
            [] => vec![(phase.seconds, phase.throughput * phase.seconds)],
            seconds => seconds.iter().map(|count| (1.0, *count)).collect(),
        };
        // Of few seconds at least the error of independent arrivals.
        let is_short = blocks.len() < BLOCKS;
        let estimate = RatioEstimate::new(blocks, if is_short { phase.throughput.sqrt() } else { 0.0 })?;
        // Parts of seconds at both ends belong to the figure.
        let shift = phase.throughput - estimate.figure();
        let half = estimate.half_width();
        let interval = half.map(|half| ConfidenceInterval {
            low: (phase.throughput - half).max(0.0),
            high: Some(phase.throughput + half),
        });
        Some((estimate.distance_below(self.limit - shift)?, interval))
    }

    fn errors(&self, blocks: &Blocks) -> Option<LimitDistance> {
        let estimate = RatioEstimate::from_share(
            blocks.failures_by_block().into_iter().map(|(all, failed)| (all as f64, failed as f64)).collect(),
        )?;
        let wilson = estimate.wilson_interval();
        let interval = estimate.half_width().map(|_| ConfidenceInterval {
            low: wilson.low * 100.0,
            high: wilson.high.map(|high| high * 100.0),
        });
        Some((estimate.share_below(self.limit / 100.0)?, interval))
    }

    /// Latencies of a metric, or of each that a phase has.
    fn populations(phase: &Phase, blocks: &Blocks, metric: &str, service: bool) -> Vec<Population> {
        let kind = if service { LatencyKind::Service } else { LatencyKind::Response };
        let own = Quantity::metrics(phase, metric).filter_map(|one| blocks.number_of(&one.name));
        own.flat_map(|number| blocks.latency_populations(number, kind)).collect()
    }

    /// Of several populations the greatest figure counts: it is below the limit if each is.
    fn latency(&self, statistic: &str, populations: &[Population]) -> Option<LimitDistance> {
        let misses = |us: f64| match self.relation {
            Relation::Below | Relation::AtLeast => us >= self.limit,
            Relation::AtMost | Relation::Above => us > self.limit,
        };
        let one = |population: &Population| match statistic {
            "mean" => {
                let estimate = RatioEstimate::new(population.time_sums_us(), population.deviation_us())?;
                Some((estimate.distance_below(self.limit)?, estimate.confidence_interval()))
            }
            percentile => {
                let share = percentile.strip_prefix('p')?.parse::<f64>().ok()? / 100.0;
                let quantile = Quantile::new(population, share)?;
                Some((quantile.distance_below(misses)?, quantile.confidence_interval()))
            }
        };
        let all: Option<Vec<LimitDistance>> = populations.iter().map(one).collect();
        all?.into_iter().reduce(|one, other| {
            let interval = one.1.zip(other.1).map(|(one, other)| interval_of_greater(one, other));
            (one.0.min(other.0), interval)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PhaseFacts, summarise_phase};
    use dyno_record::{Scale, Totals};
    use std::collections::BTreeMap;

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
            ("p99(read) < 5", "5 has no unit"),
            ("p99(read) < 5.", "no unit"),
            ("p99(read) < 0ms", "nothing is below 0"),
            ("errors < 0%", "nothing is below 0"),
            ("throughput < 0", "above 0"),
            ("errors < NaN%", "is no number"),
            ("p99(read.wall) < 5ms", "neither service nor response"),
        ] {
            let error = Condition::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn figures_have_their_unit_and_no_limit() {
        let of = |text: &str| {
            ThresholdFigure::parse(text)
                .map(|figure| (figure.measured_value(&seen()), figure.unit()))
                .unwrap()
        };
        assert_eq!(of("throughput"), (Some(10_000.0), "1/s"));
        assert_eq!(of(" errors "), (Some(0.5), "%"));
        assert_eq!(of("p99(read)"), (Some(4_000.0), "µs"));
        assert!(ThresholdFigure::parse("p99(read) < 5ms").is_err() && ThresholdFigure::parse("p99").is_err());
    }

    #[test]
    fn metrics_must_exist() {
        let condition = Condition::parse("p99(scan) < 5ms").unwrap();
        assert!(condition.check_metric(&["READ".into()]).unwrap_err().to_string().contains("read"));
        assert!(condition.check_metric(&["SCAN".into()]).is_ok());
    }

    /// 10000 operations a second, one in 200 failed, READ is quicker than UPDATE.
    fn seen() -> Phase {
        let metric = |name: &str, us: f64| {
            let latency = |us: f64| Latency {
                count: 100,
                mean_us: us / 4.0,
                min_us: Some(us / 8.0),
                max_us: Some(us * 2.0),
                percentiles_us: [("p99".to_owned(), Some(us)), ("p95".to_owned(), None)].into(),
                intervals_us: BTreeMap::new(),
            };
            Metric {
                name: name.to_owned(),
                outcomes: BTreeMap::new(),
                service: Some(latency(us / 2.0)),
                response: Some(latency(us)),
                server: None,
                client_us: BTreeMap::new(),
                failed_service: None,
                failed_response: None,
                all_response: None,
                all_service: None,
            }
        };
        Phase {
            throughput: 10_000.0,
            arrivals: 200,
            outcomes: [("ok".to_owned(), 199), ("timeout".to_owned(), 1)].into(),
            metrics: vec![metric("READ", 4_000.0), metric("UPDATE", 8_000.0), metric("CLEANUP", 90_000.0)],
            ..summarise_phase(PhaseFacts::default(), &[], &Totals::new(0, Scale::Ns64))
        }
    }

    fn held(text: &str, phase: &Phase) -> (Option<f64>, bool) {
        Condition::parse(text).unwrap().evaluate_phase(phase)
    }

    #[test]
    fn each_relation_below_at_and_above_its_limit() {
        for (relation, below, at, above) in [
            ("<", false, false, true),
            ("<=", false, true, true),
            (">", true, false, false),
            (">=", true, true, false),
        ] {
            for (limit, passed) in [("9999", below), ("10k", at), ("10001", above)] {
                let text = format!("throughput {relation} {limit}");
                assert_eq!(held(&text, &seen()), (Some(10_000.0), passed), "{text}");
            }
        }
    }

    #[test]
    fn each_statistic_in_microseconds_whatever_the_unit() {
        for (text, measured, passed) in [
            ("p99(read) < 5ms", 4_000.0, true),
            ("p99(READ) < 4ms", 4_000.0, false),
            ("p99(read) <= 0.004s", 4_000.0, true),
            ("p99(read) < 3999us", 4_000.0, false),
            ("p99(read) < 4.001ms", 4_000.0, true),
            ("mean(read) <= 1ms", 1_000.0, true),
            ("min(read) < 501us", 500.0, true),
            ("max(read) < 7ms", 8_000.0, false),
            ("p99(read.service) <= 2ms", 2_000.0, true),
            ("p99(read.response) <= 2ms", 4_000.0, false),
            // Of all operations the worst counts, and closing connections is none.
            ("p99(all) < 8001us", 8_000.0, true),
            ("p99(cleanup) < 1s", 90_000.0, true),
        ] {
            assert_eq!(held(text, &seen()), (Some(measured), passed), "{text}");
        }
    }

    #[test]
    fn the_share_of_errors() {
        assert_eq!(held("errors < 0.5%", &seen()), (Some(0.5), false));
        assert_eq!(held("errors <= 0.5%", &seen()), (Some(0.5), true));
        assert_eq!(held("errors < 0.51 %", &seen()), (Some(0.5), true));
        let none_ended = Phase { outcomes: BTreeMap::new(), ..seen() };
        assert_eq!(held("errors < 1%", &none_ended), (Some(100.0), false));
    }

    #[test]
    fn what_cannot_be_told_has_not_held() {
        let nothing = Phase { arrivals: 0, outcomes: BTreeMap::new(), metrics: Vec::new(), ..seen() };
        assert_eq!(held("errors < 1%", &nothing), (None, false));
        assert_eq!(held("p99(all) < 1s", &nothing), (None, false));
        // Among what was never sent, and of too few samples.
        assert_eq!(held("p95(read) < 1s", &seen()), (None, false));
        assert_eq!(held("p99.9(read) > 1us", &seen()), (None, false));
    }
}
