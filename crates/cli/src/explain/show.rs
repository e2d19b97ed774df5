//! Explanations as text: what it means first, then the figures.

use super::explained::{ExplainedParts, OfRun, OfSweep};
use super::figures::{half, rate, time};
use super::show_rates::of_rates;
use dyno_analysis::diagnose::{DiagnosisFinding, Moved, ThroughputChange};
use dyno_analysis::laws::{Holds, Maximum, Observed, Sweep};
use dyno_analysis::scalability::describe_parameter;
use dyno_analysis::series::{SegmentLabel, Stability, StabilityAnswer};
use dyno_types::shell::quoted;
use dyno_types::units::{counted, ends, format_error, span, symbol};
use std::iter;

/// All of it.
pub fn text(all: &ExplainedParts) -> String {
    let mut out = String::new();
    all.sweeps.iter().for_each(|one| out += &of_sweep(one));
    all.rates.iter().for_each(|one| out += &of_rates(one));
    if !all.alone.is_empty() {
        out += "in no sweep\n";
    }
    for one in &all.alone {
        out += &format!(
            "  {}: {}/s, R {} ({} run(s))\n",
            one.what,
            rate(one.throughput),
            time(one.response_s),
            one.runs
        );
    }
    out += if all.alone.is_empty() { "" } else { "\n" };
    all.runs.iter().for_each(|one| out += &of_run(one));
    out
}

fn of_run(run: &OfRun) -> String {
    let mut out = format!("{}\n{}\n", run.title, run.dir);
    out += &headline(run);
    run.verdict.iter().for_each(|message| out += &format!("  verdict: {message}\n"));
    out += &run.change.as_ref().map_or(String::new(), of_change);
    if run.findings.is_empty() {
        out += if run.watched {
            "\nwhat limits it\n  nothing that was watched is near a limit\n"
        } else {
            "\nwhat limits it\n  cannot be said: nothing was watched\n"
        };
    } else {
        out += "\nwhat limits it\n";
        run.findings.iter().for_each(|finding| out += &of_finding(finding));
    }
    if !run.laws.is_empty() {
        out += "\nlaws\n";
    }
    for law in &run.laws {
        let figures = match law.holds {
            Holds::NotTestable => String::new(),
            _ => format!(
                "  {} against {} {} ({})",
                number(law.measured),
                number(law.expected),
                symbol(law.unit),
                format_error(law.error)
            ),
        };
        out += &format!("  {:<30} {:<16} {}{figures}\n", law.law, law.formula, law.holds.as_str());
        if let Some(cause) = &law.cause {
            out += &format!("    {cause}\n");
        }
    }
    out += &demands(run.observed.as_ref());
    if let Some(stability) = &run.stability {
        out += &of_stability(stability, run.step_s as usize, run.from_s as usize);
        out += &match (run.responses, &run.responses_found) {
            (_, Some(found)) => format!("  response times: not steady: {found}\n"),
            (Some(StabilityAnswer::Steady), None) => "  mean response time: steady\n".to_owned(),
            (Some(_), None) => "  mean response time: whether it is steady cannot be told\n".to_owned(),
            (None, None) => String::new(),
        };
    }
    for message in &run.missing {
        out += &format!("\nnot known: {message}\n");
    }
    out.push('\n');
    out
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 10_000.0 => rate(value),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Throughput with the interval of the same mean, then what operations took: from when they were due, where that is not the
/// same as from sending.
fn headline(run: &OfRun) -> String {
    let Some(observed) = &run.observed else { return String::new() };
    let stability = run.stability.as_ref();
    let sure = match stability.and_then(|stability| stability.steady.as_ref()) {
        // Wider than the mean itself, it says nothing.
        Some(steady) if steady.interval.half_width > steady.interval.mean => {
            ", too uneven for an interval within this run".to_owned()
        }
        Some(steady) => {
            let share = steady.interval.half_width / steady.interval.mean.max(1e-9) * 100.0;
            format!(", ±{share:.1} % within this run")
        }
        None if stability.is_some_and(|found| found.answer == StabilityAnswer::NotSteady) => {
            ", a mean over what was not steady".to_owned()
        }
        None => String::new(),
    };
    let load = match (observed.users, observed.offered) {
        (Some(users), _) => format!(" by {}", counted(users as usize, "user")),
        (None, Some(offered)) => format!("; {}/s due", rate(offered)),
        (None, None) => String::new(),
    };
    let times = match observed.due_s {
        Some(due) => format!("mean response time {}, service time {}", time(due), time(observed.response_s)),
        None => format!("mean service time {}", time(observed.response_s)),
    };
    format!("  {} {}/s{sure}; {times}{load}\n", rate(observed.throughput), observed.unit)
}

fn of_change(change: &ThroughputChange) -> String {
    let mut out = format!("\nwhat changed\n  {}\n", change.describe_change());
    if !change.moved.is_empty() {
        let rows: Vec<[String; 4]> = iter::once(Moved::HEADS.map(str::to_owned))
            .chain(change.moved.iter().map(Moved::table_cells))
            .collect();
        let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [0, 1, 2].map(wide);
        for [series, before, after, ratio] in &rows {
            out += &format!(
                "  {series:<0$}  {before:>1$}  {after:>2$}  {ratio}\n",
                widths[0], widths[1], widths[2]
            );
        }
    }
    out
}

fn of_finding(finding: &DiagnosisFinding) -> String {
    let mut out =
        format!("  {} ({}, {:.0} %)\n", finding.claim, finding.confidence_word(), finding.confidence * 100.0);
    finding.evidence.iter().for_each(|message| out += &format!("    + {message}\n"));
    finding.against.iter().for_each(|message| out += &format!("    - {message}\n"));
    out += &format!("    do: {}\n", finding.advice);
    if !finding.command.is_empty() {
        out += &format!("    to settle it: {}\n      {}\n", finding.experiment, quoted(&finding.command));
    }
    out
}

fn demands(observed: Option<&Observed>) -> String {
    let Some(observed) = observed.filter(|observed| !observed.uses.is_empty()) else { return String::new() };
    let mut out = "\nfor one operation (service demand D = U m / X; visits V = X_k / X)\n".to_owned();
    for used in &observed.uses {
        let share = used.servers.filter(|n| *n > 0.0);
        let share =
            share.map_or(String::new(), |n| format!("  {:.1} % of {n:.0} used", used.busy / n * 100.0));
        out += &format!("  {:<24} {:>10}{share}\n", used.name, time(used.busy / observed.throughput));
    }
    for (name, per_s) in &observed.rates {
        out += &format!("  {:<24} {:>10.3}\n", name, per_s / observed.throughput);
    }
    out
}

/// Stalls that are named.
const STALLS: usize = 5;

/// `step_s` is how many seconds an interval has, `from_s` when the first one begins.
fn of_stability(found: &Stability, step_s: usize, from_s: usize) -> String {
    let at = |interval: usize| from_s + interval * step_s;
    let mut out = "\nover time\n".to_owned();
    let levels = found.segments.len();
    out += &match (found.answer, levels) {
        (StabilityAnswer::Steady, 1) => "  throughput: steady: one level".to_owned(),
        (StabilityAnswer::Steady, _) => format!("  throughput: steady: {levels} levels that hardly differ"),
        (StabilityAnswer::CannotTell, _) => {
            format!("  throughput: whether it is steady cannot be told: {}", found.describe_unseen_steps())
        }
        (StabilityAnswer::NotSteady, 1) => "  throughput: not steady".to_owned(),
        (StabilityAnswer::NotSteady, _) => format!("  throughput: not steady: {levels} levels"),
    };
    if found.warm_up > 0 {
        out += &format!(", warm-up {} s", found.warm_up * step_s);
    }
    out += &format!(", varies by {:.1} %\n", found.variation.0 * 100.0);
    if levels > 1 {
        for segment in &found.segments {
            let word = match segment.label {
                SegmentLabel::WarmUp => "warm-up",
                SegmentLabel::Level => "level",
                SegmentLabel::Collapse => "collapse",
                SegmentLabel::Recovery => "recovery",
            };
            let (from, to) = (at(segment.range.0), at(segment.range.1));
            out += &format!("  {from:>6} to {to:>6} s  {:>12}/s  {word}\n", rate(segment.mean));
        }
    }
    if let Some(period) = &found.period {
        let (low, high) = period.levels;
        let between = if period.relative_swing() > 0.0 {
            format!(", between {}/s and {}/s", rate(low), rate(high))
        } else {
            String::new()
        };
        out += &format!(
            "  repeats every {} s (r = {:.2}){between}\n",
            period.intervals * step_s,
            period.strength
        );
    }
    if let Some(share) = found.drift {
        out += &format!("  drifts by {:+.1} % along a line\n", share * 100.0);
    }
    if let Some(alarm) = found.alarm {
        out += &format!(
            "  the mean of the whole run describes nothing: its level changes at {} s; the last level is {}/s\n",
            at(found.segments[alarm].range.0),
            rate(found.segments[levels - 1].mean)
        );
    }
    if !found.stalls.is_empty() {
        let seconds: usize = found.stalls.iter().map(|stall| stall.intervals * step_s).sum();
        let named = found.stalls.iter().take(STALLS);
        let named: Vec<String> =
            named.map(|stall| format!("{} to {} s", at(stall.at), at(stall.at + stall.intervals))).collect();
        let more = if found.stalls.len() > STALLS { ", ..." } else { "" };
        out += &format!("  below half of the median for {seconds} s: {}{more}\n", named.join(", "));
    }
    out
}

fn of_sweep(one: &OfSweep) -> String {
    let sweep = &one.sweep;
    let of = if one.what.is_empty() { String::new() } else { format!(" of {}", one.what) };
    let mut out = format!("users{of}\n");
    out += &answer(sweep);
    if sweep.left_out > 0 {
        out += &format!("  {} left out: invalid\n", counted(sweep.left_out, "run"));
    }
    out += &levels(sweep);
    let (kneedle, power) = sweep.knees;
    let knee = |users: Option<f64>| users.map_or("-".to_owned(), |users| format!("{users:.0}"));
    out += &format!(
        "knees: N* {:.1}, distance from the chord {}, greatest power {} (range {:.0} to {:.0})\n",
        sweep.saturation,
        knee(kneedle),
        knee(power),
        sweep.levels[0].users,
        sweep.reach / 2.0
    );
    out += &models(sweep);
    if !sweep.demands.is_empty() {
        out += "demands by regression over the levels\n";
    }
    for demand in &sweep.demands {
        let used = demand.utilisation.map_or(String::new(), |u| format!(", at most {:.0} % used", u * 100.0));
        let steady = if demand.variation < 0.15 { "does not depend on load" } else { "depends on load" };
        out += &format!(
            "  {:<16} {:>10}  + {:.3} without load{used}; {steady} (varies by {:.0} %)\n",
            demand.name,
            time(demand.demand_s),
            demand.background,
            demand.variation * 100.0
        );
    }
    for visits in &sweep.visits {
        out += &format!(
            "  {:<24} {:.3} for one operation (varies by {:.0} %)\n",
            visits.name,
            visits.visits,
            visits.variation * 100.0
        );
    }
    if !sweep.what_if.is_empty() {
        out += "what if (upper limits, by the demands)\n";
    }
    for what_if in &sweep.what_if {
        out += &format!(
            "  {:<24} {:>12}/s, limited by {}\n",
            what_if.change,
            rate(what_if.limit),
            what_if.bottleneck
        );
    }
    out.push('\n');
    out
}

/// Lists what was measured at each number of users, beside the bounds.
fn levels(sweep: &Sweep) -> String {
    let mut out = String::new();
    out += "\n    N  runs        X/s  ±95 %          R  X (R+Z) - N     bound/s    single servers/s      model/s\n";
    for level in &sweep.levels {
        let little = level.little.map_or("-".to_owned(), format_error);
        let model = level.model.map_or("-".to_owned(), rate);
        let balanced = format!("{} to {}", rate(level.balanced.0), rate(level.balanced.1));
        out += &format!(
            "{:>5}  {:>4}  {:>9}  {:>6}  {:>9}  {:>11}  {:>10}  {:>18}  {:>11}{}\n",
            level.users,
            level.runs,
            rate(level.throughput),
            half(level.half_width, level.throughput),
            time(level.response_s),
            little,
            rate(level.bound),
            balanced,
            model,
            if level.above { "  above the bound" } else { "" }
        );
    }
    let crossing = sweep.saturation_interval;
    out += &format!(
        "\nbounds: D = {}, Dmax = {}, N* = (D + Z) / Dmax = {:.1} users{}\n",
        time(sweep.total_s),
        time(sweep.bottleneck_s),
        sweep.saturation,
        crossing.map_or(String::new(), |(low, high)| {
            format!(" (95 % interval over runs: {})", span(ends(low, high, 1), ""))
        })
    );
    out += "  single servers: the balanced job bounds, which hold where every station is one server; stations of several \
            do more than\n  the greater of them\n";
    if sweep.levels.iter().any(|level| level.above) {
        out += "  throughput above the bound by more than its interval: bounds follow from the response time of few users and \
                from the mean\n  of many, and these levels contradict them: trust the levels\n";
    }
    out
}

/// The maximum, how sure it is, and whether the laws hold.
fn answer(sweep: &Sweep) -> String {
    let known = sweep.levels.iter().any(|level| level.little.is_some());
    let worst = sweep.levels.iter().filter_map(|level| level.little).map(f64::abs).fold(0.0, f64::max);
    let laws = match worst {
        _ if !known => "Little's law cannot be tested on these runs",
        w if w <= 0.01 => "Little's law holds at every level",
        w if w <= 0.05 => "Little's law holds nearly: users had idle time that was not measured",
        _ => "Little's law fails: do not use these figures before the cause is known",
    };
    let best = rate(sweep.best.0);
    let level = sweep.levels.iter().find(|level| level.users == sweep.best.1);
    let half = level.and_then(|level| level.half_width);
    let own = half.map_or(" (one run)".into(), |half| {
        if half > sweep.best.0 {
            return " (its runs differ by more than that: no interval)".to_owned();
        }
        let ends = (rate((sweep.best.0 - half).max(0.0)), rate(sweep.best.0 + half));
        format!(" (95 % interval over runs: {})", span(ends, ""))
    });
    let users = sweep.best.1;
    let mut beyond = sweep.levels.iter().filter(|level| level.users >= sweep.near);
    let near = match beyond.all(|level| level.throughput >= 0.95 * sweep.best.0) {
        _ if sweep.near >= users => String::new(),
        true => format!("; from {} users on it stays within 5 % of that", sweep.near),
        false => format!("; {} users are within 5 % of it", sweep.near),
    };
    let measured = format!("the maximum is {best}/s{own} at {users} users, as measured");
    let lowest = sweep.levels.iter().filter(|level| level.users > users);
    let lowest = lowest.min_by(|a, b| a.throughput.total_cmp(&b.throughput));
    let maximum = match (sweep.maximum, lowest) {
        (Maximum::Fall(lowest, throughput), _) => {
            format!("{measured}{near}; beyond, throughput falls, to {}/s at {lowest} users", rate(throughput))
        }
        (Maximum::Unsure(share), _) => {
            // A share above its mean says no more than that.
            let sure = if share > 1.0 {
                "by more than itself".to_owned()
            } else {
                format!("±{:.0} %", share * 100.0)
            };
            format!(
                "the greatest mean is {best}/s at {users} users, but its runs differ too much to say where the maximum is \
                 ({sure}): make more repetitions"
            )
        }
        (Maximum::Growing, None) => {
            format!(
                "the maximum is not reached: {best}/s{own} at {users} users, and still growing; try more users"
            )
        }
        (Maximum::Peak, Some(low)) if low.throughput < 0.95 * sweep.best.0 => format!(
            "{measured}{near}; beyond, throughput falls, to {}/s at {} users",
            rate(low.throughput),
            low.users
        ),
        (_, Some(low)) if low.throughput >= 0.95 * sweep.best.0 => {
            format!("{measured}{near}; the levels beyond show no fall")
        }
        (_, Some(low)) => format!(
            "{measured}{near}; beyond, {}/s at {} users, no more than runs differ",
            rate(low.throughput),
            low.users
        ),
        (_, None) => format!("{measured}{near}; nothing was measured beyond"),
    };
    let law = of_law(sweep);
    format!("  {maximum}\n{law}  {laws} (greatest error {:.2} %)\n", worst * 100.0)
}

/// What the chosen law says, where it describes all levels: its greatest throughput with the interval over runs.
fn of_law(sweep: &Sweep) -> String {
    let Some(fit) = sweep.fits.first() else { return String::new() };
    if !sweep.fits_all {
        return sweep.misfit.map_or(String::new(), |share| {
            if share <= 0.15 {
                return "  levels lie above what the best law allows: trust the levels\n".to_owned();
            }
            format!(
                "  no law fits all levels (the best one misses one by {:.0} %): trust the levels\n",
                share * 100.0
            )
        });
    }
    let sure = sweep.maximum_interval.map_or(String::new(), |(low, high)| {
        format!(" (95 % interval over runs: {})", span((rate(low), rate(high)), ""))
    });
    let greatest = match &sweep.peak {
        Some((users, throughput)) => {
            let between = sweep
                .peak_interval
                .map_or(String::new(), |(low, high)| format!(" ({})", span(ends(low, high, 0), "")));
            format!("its peak is {}/s{sure} at {users:.0} users{between}", rate(*throughput))
        }
        None if sweep.maximum == Maximum::Growing => return String::new(),
        None => format!("its greatest throughput is {}/s{sure}", rate(1.0 / sweep.bottleneck_s)),
    };
    let misfit = sweep.misfit.unwrap_or(0.0) * 100.0;
    format!("  {} fits every level within {misfit:.0} %: {greatest}\n", fit.model)
}

/// A parameter with its value.
fn parameter(name: &str, value: f64) -> String {
    let (name, value) = describe_parameter(name, value);
    format!("{name} {value}")
}

fn models(sweep: &Sweep) -> String {
    if sweep.fits.is_empty() {
        return "models: fewer than six numbers of users; none can be chosen\n".to_owned();
    }
    let mut out = "models, the chosen one first: the simplest within 2 of the least AICc\n".to_owned();
    for fit in &sweep.fits {
        let words: Vec<String> = fit.parameters.iter().map(|(name, value)| parameter(name, *value)).collect();
        let intervals: Vec<String> = fit
            .parameters
            .iter()
            .zip(&fit.intervals)
            .map(|((name, _), (low, high))| {
                let (shown, low) = describe_parameter(name, *low);
                format!("{shown} {}", span((low, describe_parameter(name, *high).1), ""))
            })
            .collect();
        let aicc = fit.aicc.map_or("-".to_owned(), |aicc| format!("{aicc:.1}"));
        out += &format!(
            "  {:<26} {:<56} rmse {:>8}  AICc {aicc}\n",
            fit.model,
            words.join(", "),
            rate(fit.rmse)
        );
        if !intervals.is_empty() {
            out += &format!("    95 % intervals over runs: {}\n", intervals.join(", "));
        }
    }
    if let (None, Some(ends)) = (&sweep.peak, sweep.peak_interval) {
        out += &format!("  {}\n", no_peak(ends));
    }
    out
}

/// Where a peak may lie that the runs do not show: an interval may have no upper end.
fn no_peak((low, high): (f64, f64)) -> String {
    match high.is_finite() {
        true => format!("no peak is claimed: its interval is {}", span(ends(low, high, 0), " users")),
        false => format!(
            "no peak is claimed: it may lie anywhere from {} on, or nowhere",
            counted(low.round() as usize, "user")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_of_microseconds_has_its_digits() {
        // 12.34 us: four digits behind the point of a second are 0.0000.
        assert_eq!(parameter("demand_s", 12.34e-6), "demand 12.3 µs");
        assert_eq!(parameter("kappa", 2.5e-5), "kappa 2.50e-5");
        assert_eq!(parameter("sigma", 0.0421), "sigma 0.0421");
    }

    #[test]
    fn a_peak_without_an_upper_end_may_lie_nowhere() {
        assert_eq!(no_peak((12.4, 96.0)), "no peak is claimed: its interval is 12 to 96 users");
        let nowhere = |low: f64| no_peak((low, f64::INFINITY));
        assert_eq!(nowhere(40.2), "no peak is claimed: it may lie anywhere from 40 users on, or nowhere");
        assert_eq!(nowhere(1.0), "no peak is claimed: it may lie anywhere from 1 user on, or nowhere");
    }
}
