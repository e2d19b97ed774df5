//! Additions of `-v` to the summary: every table of latencies, what monitors saw, and what the client did.

use crate::latency_table::{IDEAL, append_latency_table};
use crate::style::{Style, format_us};
use dyno_rundir::schema::{Latency, Metric, Phase};
use dyno_types::metric::is_request;
use dyno_types::units::{Thousands, counted};
use std::fmt::Write as _;

const COLUMNS: [&str; 5] = ["p50", "p90", "p99", "p99.9", "p99.99"];

/// The measured phase below its line.
pub(crate) fn append_phase_details(out: &mut String, phase: &Phase, style: Style) {
    let failures = phase.metrics.iter().any(|m| m.all_response.is_some() && is_request(&m.name));
    if failures {
        let title = "response time (from the intended start; failures count with at least their time)";
        all(out, phase, title, Metric::arrival_response, None, style);
    }
    let some = if failures { ", of successful requests" } else { "" };
    let title = |what: &str, from: &str| format!("{what} time (from {from}{some})");
    let ideal = phase.ideal_response.as_ref();
    all(out, phase, &title("response", "the intended start"), |m| m.response.as_ref(), ideal, style);
    all(out, phase, &title("service", "sending"), |m| m.service.as_ref(), None, style);
    let share = format!("server's share of the response time{some}");
    all(out, phase, &share, |m| m.server.as_ref(), None, style);
    if let Some(seen) = &phase.monitor {
        crate::monitored::append_monitored(out, seen, &phase.hosts, &style.bold("server and host"));
    }
    footer(out, phase, style);
}

fn all(
    out: &mut String,
    phase: &Phase,
    title: &str,
    pick: impl for<'a> Fn(&'a Metric) -> Option<&'a Latency>,
    ideal: Option<&Latency>,
    style: Style,
) {
    // Closing connections says nothing about the database.
    let metrics = phase.metrics.iter().filter(|m| is_request(&m.name));
    let mut rows: Vec<(String, &Latency)> =
        metrics.filter_map(|m| pick(m).map(|l| (m.name.clone(), l))).collect();
    if rows.is_empty() {
        return;
    }
    rows.extend(ideal.map(|latency| (IDEAL.to_owned(), latency)));
    let some = |column: &&str| rows.iter().any(|(_, l)| l.percentiles_us.contains_key(*column));
    let columns: Vec<&str> = COLUMNS.into_iter().filter(some).collect();
    append_latency_table(out, title, &rows, &columns, style);
}

/// Clock that says when replies arrived. Stamps are not counted where all are the client's; an imported result has no users with
/// connections either.
pub(crate) fn whose_clock(phase: &Phase) -> Option<String> {
    let Some(stamps) = &phase.stamps else {
        let is_own = phase.receive_lag.is_some() || phase.client.connected.is_some();
        return is_own.then(|| "arrivals by the client's clock".to_owned());
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

fn footer(out: &mut String, phase: &Phase, style: Style) {
    let mut parts = Vec::new();
    let p99 = |l: &Option<Latency>| l.as_ref().and_then(|l| l.percentiles_us.get("p99").copied().flatten());
    if let Some(lag) = p99(&phase.schedule_lag) {
        parts.push(format!("schedule lag p99 {}", format_us(lag)));
    }
    // Of the metric in which it is largest.
    let own = phase.metrics.iter().filter_map(|metric| metric.client_us.get("p99").copied().flatten());
    if let Some(share) = own.reduce(f64::max) {
        parts.push(format!("client's share of p99 {}", format_us(share)));
    }
    if let Some(lag) = p99(&phase.receive_lag) {
        parts.push(format!("receive lag p99 {}", format_us(lag)));
    }
    parts.extend(whose_clock(phase));
    let client = &phase.client;
    let driver = client.driver.as_ref().map_or(String::new(), |driver| format!(" ({driver})"));
    if client.cpu_us_per_op > 0.0 {
        parts.push(format!("client{driver} CPU {:.1} µs/operation", client.cpu_us_per_op));
    }
    if let Some(busy) = client.busy_share {
        parts.push(format!("{} {:.0} % busy", counted(client.threads, "load thread"), busy * 100.0));
    }
    if client.steal_share > 0.001 {
        parts.push(format!("steal {:.1} %", client.steal_share * 100.0));
    }
    for (count, name) in [
        (phase.reconnects, "reconnects"),
        (phase.redirects, "redirects"),
        (phase.late_replies, "late replies"),
        (phase.unexpected_replies, "unexpected replies"),
        (phase.broken_replies, "broken replies"),
    ] {
        if count > 0 {
            parts.push(format!("{name} {}", Thousands(count)));
        }
    }
    if !parts.is_empty() {
        let _ = writeln!(out, "\n{}", style.wrap_text(&parts.join("; "), 0));
    }
}
