//! A sweep over rates as text: what is kept, and where the capacity is.

use super::explained::OfRates;
use super::figures::{half, rate, time};
use dyno_analysis::laws::Rates;
use dyno_types::units::span;

pub(super) fn of_rates(one: &OfRates) -> String {
    let found = &one.rates;
    let of = if one.what.is_empty() { String::new() } else { format!(" of {}", one.what) };
    let mut out = format!("rates{of}\n{}", answer(found));
    out += "\n      rate/s  runs        X/s  ±95 %   of what was due          R      model R\n";
    for level in &found.levels {
        out += &format!(
            "{:>12}  {:>4}  {:>9}  {:>6}  {:>16.2} %  {:>9}  {:>11}\n",
            rate(level.rate),
            level.runs,
            rate(level.throughput),
            half(level.half_width, level.throughput),
            level.ratio * 100.0,
            level.response_s.map_or("-".to_owned(), time),
            level.model_s.map_or("-".to_owned(), time)
        );
    }
    out + "R counts from when an operation was due\n\n"
}

fn answer(found: &Rates) -> String {
    let at = found.missed.and_then(|(missed, _)| found.levels.iter().find(|level| level.rate == missed));
    let grows = if at.is_some_and(|level| level.grows) { ", and its queue grows" } else { "" };
    let mut out = match (found.kept, found.missed) {
        (Some(kept), None) if found.disturbed.is_empty() => {
            format!("  every rate up to {}/s is kept\n", rate(kept))
        }
        (Some(kept), None) => format!("  {}/s is kept\n", rate(kept)),
        (Some(kept), Some((missed, done))) => {
            format!("  {}/s is kept; of {}/s {}/s are done{grows}\n", rate(kept), rate(missed), rate(done))
        }
        (None, Some((missed, done))) => {
            format!("  not even {}/s is kept: {}/s are done{grows}\n", rate(missed), rate(done))
        }
        (None, None) => String::new(),
    };
    for (missed, done) in &found.disturbed {
        out += &format!(
            "  of {}/s only {}/s are done, although higher rates are kept: see what its runs say\n",
            rate(*missed),
            rate(*done)
        );
    }
    match (&found.fit, &found.why) {
        (Some(fit), _) => {
            out += &format!(
                "  response times are those of {} and {} for an operation ({}, typical error {:.0} %): the capacity is \
                 about {}/s{},\n  {:.0} % of it was used\n",
                if fit.servers == 1 { "one server".to_owned() } else { format!("{} servers", fit.servers) },
                time(fit.service_s),
                fit.kendall_notation(),
                fit.error * 100.0,
                rate(fit.capacity),
                between(fit.interval),
                fit.utilisation * 100.0
            );
            found.describe_doubts().iter().for_each(|message| out += &format!("  {message}\n"));
        }
        (None, Some(why)) => out += &format!("  {why}\n"),
        (None, None) => {}
    }
    out
}

/// A 95 % interval behind its value.
fn between((low, high): (f64, f64)) -> String {
    format!(" (95 % interval {})", span((rate(low), rate(high)), ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_analysis::laws::RateLevel;

    #[test]
    fn a_rate_at_which_nothing_is_done_has_no_interval() {
        let level = |throughput: f64, half_width: Option<f64>| RateLevel {
            rate: 100.0,
            runs: 2,
            throughput,
            half_width,
            ratio: throughput / 100.0,
            grows: false,
            response_s: None,
            model_s: None,
        };
        let levels = vec![level(0.0, Some(0.0)), level(50.0, Some(5.0)), level(50.0, None)];
        let rates = Rates { levels, kept: None, missed: None, disturbed: Vec::new(), fit: None, why: None };
        let out = of_rates(&OfRates { what: String::new(), rates });
        assert!(!out.contains("NaN") && out.contains("10.0 %"), "{out}");
    }
}
