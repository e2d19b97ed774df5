//! Meaning of the figures: stability, operational laws, diagnosis.

use crate::html::text::{format_percent, format_rate, format_us, render_lines, render_table};
use dyno_analysis::diagnose::{Diagnosis, DiagnosisFinding, Moved};
use dyno_analysis::laws::{check_laws, observe_run};
use dyno_analysis::series::{Segment, SegmentLabel, Stability, StabilityAnswer, judge_stability};
use dyno_analysis::steadiness_of_responses;
use dyno_rundir::{IntervalHistory, RunDir};
use dyno_types::shell::quoted;
use dyno_types::units::{counted, format_error};
use maud::{Markup, html};

/// The measured phase over time, and what was found in it.
pub struct StabilityAnalysis {
    /// The series, as `dyno explain` takes it.
    pub history: IntervalHistory,
    /// Levels, period, drift.
    pub found: Stability,
}

impl StabilityAnalysis {
    /// Of a series with enough intervals.
    pub fn from_history(history: IntervalHistory) -> Option<Self> {
        let found = judge_stability(&history.values)?;
        Some(StabilityAnalysis { history, found })
    }

    /// What was found in its response times, in words; `None` where they are not known.
    fn responses(&self) -> Option<String> {
        let (answer, found) = steadiness_of_responses(&dyno_analysis::IntervalFigures {
            responses_s: &self.history.responses_s,
            step_s: self.history.step_s as f64,
            from_s: self.history.from_s as f64,
            ..Default::default()
        })?;
        Some(match (answer, found) {
            (_, Some(found)) => format!("Response times are not steady: {found}."),
            (StabilityAnswer::Steady, None) => "The mean response time is steady.".to_owned(),
            (_, None) => "Whether the mean response time is steady cannot be told.".to_owned(),
        })
    }

    /// Seconds after the warm-up at which an interval of the series begins.
    pub fn second_of_interval(&self, interval: usize) -> u64 {
        self.history.from_s + interval as u64 * self.history.step_s
    }
}

/// The section "stability".
pub fn render_stability(over_time: Option<&StabilityAnalysis>) -> Markup {
    let Some(over_time) = over_time else {
        return html! {
            p {
                "Whether the run was steady cannot be said: that takes at least 5 whole intervals of the measured \
                 phase."
            }
        };
    };
    let (found, step_s) = (&over_time.found, over_time.history.step_s);
    let row = |segment: &Segment| {
        let what = match segment.label {
            SegmentLabel::WarmUp => "warm-up",
            SegmentLabel::Level => "level",
            SegmentLabel::Collapse => "collapse",
            SegmentLabel::Recovery => "recovery",
        };
        let [from, to] = [segment.range.0, segment.range.1].map(|at| over_time.second_of_interval(at));
        [what.to_owned(), format!("{from} to {to} s"), format_rate(segment.mean)]
    };
    let mut lines = vec![match (found.answer, found.segments.len()) {
        (StabilityAnswer::Steady, 1) => "Steady: no change of level of 5 % or more was found.".to_owned(),
        (StabilityAnswer::CannotTell, 1) => {
            format!("Whether it is steady cannot be told: {}. Run longer.", found.describe_unseen_steps())
        }
        (StabilityAnswer::NotSteady, 1) => "Not steady.".to_owned(),
        (_, n) => format!("The level changed {}.", counted(n - 1, "time")),
    }];
    if let Some(alarm) = found.alarm {
        let (before, after) = (&found.segments[alarm - 1], &found.segments[alarm]);
        lines.push(format!(
            "After {} s throughput went from {}/s to {}/s: one figure for the whole run would hide it.",
            over_time.second_of_interval(after.range.0),
            format_rate(before.mean),
            format_rate(after.mean)
        ));
    }
    if found.warm_up > 0 {
        lines.push(format!(
            "Warm-up inside of the measured phase: {} s, which every figure has in.",
            found.warm_up as u64 * step_s
        ));
    }
    lines.push(match &found.steady {
        Some(steady) if steady.interval.half_width > steady.interval.mean => {
            "The run is too uneven for an interval of its mean.".into()
        }
        Some(steady) => format!(
            "Mean of the run: {}/s ± {}/s (95 %; neighbouring intervals correlate by {:.2}, which is allowed for).",
            format_rate(steady.interval.mean),
            format_rate(steady.interval.half_width),
            steady.correlation
        ),
        None if found.answer == StabilityAnswer::NotSteady => {
            "Throughput was not steady, so no interval is given.".into()
        }
        None => "The run is too short for an interval of its mean: that takes ten intervals.".into(),
    });
    if let Some(share) = found.drift {
        lines.push(format!(
            "It changes by {} from beginning to end along a straight line.",
            format_percent(share)
        ));
    }
    lines.push(match &found.period {
        Some(period) => format!(
            "It repeats itself every {} s between {}/s and {}/s (autocorrelation {:.2}): measure many whole periods.",
            period.intervals as u64 * step_s,
            format_rate(period.levels.0),
            format_rate(period.levels.1),
            period.strength
        ),
        None => "No period was found.".into(),
    });
    lines.extend(over_time.responses());
    let (plain, rest) = found.variation;
    lines.push(format!(
        "Variation between intervals: {} (about what was found: {}).",
        format_percent(plain),
        format_percent(rest)
    ));
    lines.push(match found.stalls.first() {
        None => "No interval stands out as a stall: below half of the median, and out of the usual scatter."
            .into(),
        Some(first) => format!(
            "Throughput fell below half of its median {}, first from {} to {} s.",
            counted(found.stalls.len(), "time"),
            over_time.second_of_interval(first.at),
            over_time.second_of_interval(first.at + first.intervals)
        ),
    });
    let heads = ["level", "seconds", "mean, 1/s"];
    html! {
        (render_table("Levels of throughput", &heads, found.segments.iter().map(row), 2))
        // Of a table that was imported from a later second on they are those of the table.
        @if over_time.second_of_interval(0) == 0 {
            p.dim { "Seconds count from the beginning of the measured phase." }
        }
        (render_lines(lines))
    }
}

/// The section "laws".
pub fn render_laws(dir: &RunDir) -> Markup {
    let Some(observed) = observe_run(dir) else {
        let ok = dir.phases.iter().any(|phase| phase.totals.count_ok() > 0);
        let why = if ok { "times of the operations are not known" } else { "no operation succeeded" };
        return html! { p { "The laws cannot be checked: " (why) "." } };
    };
    let side = |value: f64, unit: &str| match unit {
        "us" => format_us(value),
        unit => format!("{} {unit}", format_rate(value)),
    };
    let rows = check_laws(&observed).into_iter().map(|law| {
        let testable = law.holds != dyno_analysis::laws::Holds::NotTestable;
        let cell = |text: String| if testable { text } else { "-".into() };
        [
            law.law.to_owned(),
            law.formula.to_owned(),
            law.holds.as_str().to_owned(),
            law.cause.clone().unwrap_or_default(),
            cell(side(law.measured, law.unit)),
            cell(side(law.expected, law.unit)),
            cell(format_error(law.error)),
        ]
    });
    let heads = ["law", "formula", "verdict", "cause", "measured", "by the law", "error"];
    let uses = observed.uses.iter().map(|used| {
        [
            used.name.clone(),
            format!("{:.2}", used.busy),
            used.servers.map_or("unknown".into(), |n| format!("{n:.0}")),
            used.servers.filter(|n| *n > 0.0).map_or("-".into(), |n| format_percent(used.busy / n)),
            format_us(used.busy / observed.throughput * 1e6),
        ]
    });
    let heads_of_uses = ["resource", "busy on average", "it has", "utilisation", "demand of an operation"];
    html! {
        p { "Identities that hold for every system; where one fails, the measurement is wrong." }
        div.long { (render_table("Operational laws", &heads, rows, 4)) }
        @if !observed.uses.is_empty() {
            (render_table("Utilisation and service demand (U = X D)", &heads_of_uses, uses, 1))
        }
    }
}

/// The section "diagnosis": what changed in the run, and what limits it.
pub fn render_diagnosis(Diagnosis { change, findings }: &Diagnosis, watched: bool) -> Markup {
    html! {
        @if let Some(change) = change {
            p { "What changed: " (change.describe_change()) "." }
            @if !change.moved.is_empty() {
                @let rows = change.moved.iter().map(Moved::table_cells);
                (render_table(
                    "Series that moved in another way than throughput did, a usual second before and after",
                    &Moved::HEADS, rows, 1,
                ))
            }
        }
        @if findings.is_empty() {
            p {
                @if watched {
                    "Nothing that was watched is near a limit: no finding."
                } @else {
                    "Host, server and database were not watched: what limits the run cannot be said."
                }
            }
        }
        @for (number, finding) in findings.iter().enumerate() { (render_finding(number + 1, finding)) }
    }
}

fn render_finding(number: usize, finding: &DiagnosisFinding) -> Markup {
    let confidence = format!("{:.0} %", finding.confidence * 100.0);
    html! {
        article.finding {
            h3 {
                (number) ". " (finding.claim) " "
                small.dim { (finding.confidence_word()) ", confidence " (confidence) }
            }
            @for (title, lines) in [("For it", &finding.evidence), ("Against it", &finding.against)] {
                @if !lines.is_empty() { p { (title) ":" } (render_lines(lines)) }
            }
            p { (finding.advice) }
            p { "To settle it: " (finding.experiment) }
            @if !finding.command.is_empty() { pre { (quoted(&finding.command)) } }
        }
    }
}
