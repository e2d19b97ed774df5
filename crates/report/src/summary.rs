//! The summary a person reads at a glance: verdict first, then throughput, latencies and what explains them.

use crate::rebuilt::is_under_way;
use dyno_rundir::schema::{Grade, Latency, Metric, Phase, Status, Summary, Trust, Verdict};
use dyno_rundir::unit;
use dyno_types::units::{Latency as Ns, Rate, Thousands, counted};
use std::fmt::Write as _;

/// Colours for a terminal, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// True if escape sequences may be used.
    pub colour: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn trust(self, trust: Trust) -> String {
        match trust {
            Trust::Valid => self.paint("1;32", "VALID"),
            Trust::Suspect => self.paint("1;33", "SUSPECT"),
            Trust::Invalid => self.paint("1;31", "INVALID"),
        }
    }
}

const COLUMNS: [&str; 5] = ["p50", "p90", "p99", "p99.9", "p99.99"];

fn us(value: f64) -> String {
    Ns((value * 1e3).round() as u64).to_string()
}

/// Describes how a run ended that has not come to its end.
pub(crate) fn ending(status: Status) -> Option<&'static str> {
    match status {
        Status::Complete => None,
        Status::Running => Some("INCOMPLETE: the run was killed; this is what it recorded"),
        Status::Interrupted => Some("INTERRUPTED: this is what was measured until then"),
        Status::Failed => Some("FAILED: the run ended by an error"),
    }
}

/// Text that is to stay one line, whatever a server or a file has put into it.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// The grade of each claim, in words, where they are not all the same.
pub(crate) fn grades(verdict: &Verdict) -> Option<String> {
    let first = verdict.grades.first()?;
    let differ = verdict.grades.iter().any(|grade| grade.trust != first.trust);
    let one = |grade: &Grade| format!("{}: {}", grade.claim, grade.trust.name());
    let all: Vec<String> = verdict.grades.iter().map(one).collect();
    differ.then(|| all.join(", "))
}

/// The whole summary.
pub fn text(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}  {}",
        match is_under_way(summary) {
            true => style.bold("RUNNING"),
            false => style.trust(summary.verdict.trust),
        },
        style.bold(&one_line(&format!("{} on {}", summary.title, summary.database)))
    );
    let _ = writeln!(out, "target {}, {}", one_line(&summary.target), one_line(&summary.started));
    if is_under_way(summary) {
        out.push_str("The run is under way: this is what it has recorded so far\n");
    } else if let Some(words) = ending(summary.status) {
        let _ = writeln!(out, "{words}");
    }
    if let Some(words) = grades(&summary.verdict) {
        let _ = writeln!(out, "{}", one_line(&words));
    }
    for reason in &summary.verdict.reasons {
        let colour = match reason.trust {
            _ if !summary.verdict.is_asked(reason) => "2",
            Trust::Valid => "2",
            Trust::Suspect => "33",
            Trust::Invalid => "31",
        };
        let mark = style.paint(colour, reason.trust.word());
        let _ = writeln!(out, "  {mark} {}: {}", reason.check, one_line(&reason.text));
    }
    for phase in &summary.phases {
        match phase.name.as_str() {
            "load" => load_line(&mut out, phase),
            "warmup" => {}
            _ => measured(&mut out, phase, style),
        }
    }
    out.push_str(&crate::faults::lines(&summary.faults));
    for phase in &summary.phases {
        if let Some(link) = &phase.link {
            let _ = writeln!(out, "{:9}{link}", phase.name);
        }
    }
    for threshold in &summary.thresholds {
        let mark = if threshold.passed { style.paint("32", "PASS") } else { style.paint("1;31", "FAIL") };
        let measured = match threshold.measured {
            Some(value) => measured_in_unit(&threshold.expression, value),
            None => "not measurable: too few samples, or among arrivals that were never served".into(),
        };
        let _ = writeln!(out, "{mark} {} ({measured})", threshold.expression);
    }
    out
}

fn measured_in_unit(expression: &str, value: f64) -> String {
    if expression.starts_with("throughput") {
        format!("measured {}/s", Rate(value))
    } else if expression.starts_with("errors") {
        format!("measured {value:.3} %")
    } else {
        format!("measured {}", us(value))
    }
}

fn load_line(out: &mut String, phase: &Phase) {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    let failed = phase.arrivals.saturating_sub(ok);
    let (count, what) = phase.documents.map_or((ok, "records"), |documents| (documents, "documents"));
    let _ = write!(
        out,
        "\nload     {} {what} in {:.1} s, {}/s",
        Thousands(count),
        phase.seconds,
        Rate(count as f64 / phase.seconds.max(1e-9))
    );
    let ways = [("pipeline", phase.client.pipeline), ("batches of", phase.client.batch)];
    let ways: Vec<_> = ways.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name} {n}")).collect();
    if !ways.is_empty() {
        let _ = write!(out, " ({})", ways.join(", "));
    }
    if failed > 0 {
        let what = if phase.documents.is_some() { " inserts" } else { "" };
        let _ = write!(out, ", {}{what} FAILED", Thousands(failed));
    }
    out.push('\n');
}

fn measured(out: &mut String, phase: &Phase, style: Style) {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let _ = write!(
        out,
        "\n{} {} in {:.1} s, {} failed",
        style.bold(&format!("measure  {} {}/s:", Rate(phase.throughput), unit(&names))),
        Thousands(ok),
        phase.seconds,
        Thousands(phase.arrivals.saturating_sub(ok)),
    );
    match phase.offered {
        Some(offered) => {
            let _ = writeln!(
                out,
                "; {}/s were due (open loop, {} connections)",
                Rate(offered),
                phase.client.users
            );
        }
        None => {
            match phase.client.users * phase.client.pipeline {
                // An imported result may not say.
                0 => out.push('\n'),
                users => {
                    let _ = writeln!(out, " (closed loop, {})", counted(users, "user"));
                }
            }
        }
    }
    if phase.arrivals > ok {
        let failures: Vec<String> = phase
            .outcomes
            .iter()
            .filter(|(name, _)| *name != "ok")
            .map(|(name, count)| format!("{name} {}", Thousands(*count)))
            .collect();
        let _ = writeln!(out, "         outcomes: {}", failures.join(", "));
    }
    let failures = phase.metrics.iter().any(|m| m.all_response.is_some() && m.name != "CLEANUP");
    if failures {
        let title = "response time (from the intended start; failures count with at least their time)";
        table(out, phase, title, Metric::arrival_response, None, style);
    }
    let some = if failures { ", of successful requests" } else { "" };
    let title = |what: &str, from: &str| format!("{what} time (from {from}{some})");
    let ideal = phase.ideal_response.as_ref();
    table(out, phase, &title("response", "the intended start"), |m| m.response.as_ref(), ideal, style);
    table(out, phase, &title("service", "sending"), |m| m.service.as_ref(), None, style);
    if let Some(seen) = &phase.monitor {
        crate::monitored::block(out, seen, &style.bold("server and host"));
    }
    footer(out, phase);
}

/// All operations, by the response times of a client that is never late.
pub(crate) const IDEAL: &str = "ideal client";

fn table(
    out: &mut String,
    phase: &Phase,
    title: &str,
    pick: impl for<'a> Fn(&'a Metric) -> Option<&'a Latency>,
    ideal: Option<&Latency>,
    style: Style,
) {
    // Closing connections says nothing about the database.
    let metrics = phase.metrics.iter().filter(|m| m.name != "CLEANUP");
    let mut rows: Vec<(&str, &Latency)> =
        metrics.filter_map(|m| pick(m).map(|l| (m.name.as_str(), l))).collect();
    if rows.is_empty() {
        return;
    }
    rows.extend(ideal.map(|latency| (IDEAL, latency)));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(8);
    let shown: Vec<&str> =
        COLUMNS.into_iter().filter(|c| rows.iter().any(|(_, l)| l.percentiles_us.contains_key(*c))).collect();
    let _ = writeln!(out, "\n{}", style.bold(title));
    let _ = write!(out, "{:width$} {:>9}", "", "mean");
    for column in &shown {
        let _ = write!(out, " {column:>9}");
    }
    let _ = writeln!(out, " {:>9} {:>12}", "max", "count");
    for (name, latency) in rows {
        let _ = write!(out, "{name:width$} {:>9}", us(latency.mean_us));
        for column in &shown {
            let cell = match latency.percentiles_us.get(*column) {
                Some(Some(value)) => us(*value),
                Some(None) => "dropped".into(),
                None => "-".into(),
            };
            let _ = write!(out, " {cell:>9}");
        }
        let max = latency.max_us.map_or("-".into(), us);
        let _ = writeln!(out, " {max:>9} {:>12}", Thousands(latency.count));
    }
}

/// Whose clock says when replies arrived. A lag of receiving is sampled only where it is the client's.
pub(crate) fn whose_clock(phase: &Phase) -> Option<String> {
    let Some(stamps) = &phase.stamps else {
        return phase.receive_lag.as_ref().map(|_| "arrivals by the client's clock".to_owned());
    };
    let by_kernel = stamps.kernel.saturating_sub(stamps.card);
    let counts = [(stamps.card, "network card"), (by_kernel, "kernel"), (stamps.client, "client")];
    let mut counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let (_, most) = counts.next()?;
    let all = Thousands(stamps.client + stamps.kernel);
    let others: Vec<String> =
        counts.map(|(count, whose)| format!("{} of {all} by the {whose}'s", Thousands(count))).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    Some(format!("arrivals by the {most}'s clock{others}"))
}

fn footer(out: &mut String, phase: &Phase) {
    let mut parts = Vec::new();
    let p99 = |l: &Option<Latency>| l.as_ref().and_then(|l| l.percentiles_us.get("p99").copied().flatten());
    if let Some(lag) = p99(&phase.schedule_lag) {
        parts.push(format!("schedule lag p99 {}", us(lag)));
    }
    if let Some(lag) = p99(&phase.receive_lag) {
        parts.push(format!("receive lag p99 {}", us(lag)));
    }
    parts.extend(whose_clock(phase));
    let client = &phase.client;
    let driver = client.driver.as_ref().map_or(String::new(), |driver| format!(" ({driver})"));
    if client.cpu_us_per_op > 0.0 {
        parts.push(format!("client{driver} CPU {:.1} us/operation", client.cpu_us_per_op));
    }
    if let Some(busy) = client.busy_share {
        parts.push(format!("{} load thread(s) {:.0} % busy", client.threads, busy * 100.0));
    }
    if client.steal_share > 0.001 {
        parts.push(format!("steal {:.1} %", client.steal_share * 100.0));
    }
    for (count, name) in [
        (phase.reconnects, "reconnects"),
        (phase.redirects, "redirects"),
        (phase.late_replies, "late replies"),
    ] {
        if count > 0 {
            parts.push(format!("{name} {}", Thousands(count)));
        }
    }
    if !parts.is_empty() {
        let _ = writeln!(out, "\n{}", parts.join("; "));
    }
}
