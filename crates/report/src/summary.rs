//! The summary a person reads at a glance, made for a terminal of 24 rows and 80 columns: a line for each claim, throughput, one
//! table of latencies, what limits the run, and where its report is. `details` has the rest.

use crate::details;
use crate::latency_table::{IDEAL, append_latency_table};
use crate::recompute_summary::is_under_way;
use crate::replay;
use crate::style::{Style, format_us};
use dyno_analysis::diagnose::DiagnosisFinding;
use dyno_rundir::schema::{
    Client, ConfidenceInterval, Decision, Grade, Latency, Metric, Phase, Reason, Status, Summary, Threshold,
    Trust, Verdict,
};
use dyno_rundir::unit_name;
use dyno_types::Outcome;
use dyno_types::metric::{HITS, MISSES, is_request};
use dyno_types::units::{Rate, Thousands, counted};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Facts that are known of a run beside its summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct SummaryExtras<'a> {
    /// Findings of the diagnosis, the surest first; `None` if there was no diagnosis.
    pub findings: Option<&'a [DiagnosisFinding]>,
    /// Address of the report.
    pub page: Option<&'a str>,
}

/// Percentiles of the table.
const COLUMNS: [&str; 3] = ["p50", "p99", "p99.9"];

/// Reasons that are told without details where not all have room.
const REASONS: usize = 3;

/// Name of rows of service times, where the server's share of response times is not known.
const SERVICE: &str = "  service";

/// Names of rows of the server's and of the client's share of the response times above them.
const SERVER: &str = "  server";
const CLIENT: &str = "  client";

/// Lines that a command may print behind a summary.
const AFTERWARDS: usize = 4;

/// With more rows than this the table has response times alone.
const ROWS: usize = 6;

/// Service times are shown where a percentile differs from the response time's by more than this share.
const DIFFERS: f64 = 0.1;

/// Describes how a run ended that has not come to its end.
pub(crate) fn describe_ending(status: Status) -> Option<&'static str> {
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
pub(crate) fn describe_grades(verdict: &Verdict) -> Option<String> {
    let first = verdict.grades.first()?;
    let differ = verdict.grades.iter().any(|grade| grade.trust != first.trust);
    let one = |grade: &Grade| format!("{}: {}", grade.claim, grade.trust.name());
    let all: Vec<String> = verdict.grades.iter().map(one).collect();
    differ.then(|| all.join(", "))
}

/// What stands behind the verdict of a run without monitors: nothing is known of its hosts and of its server.
pub(crate) const NOT_WATCHED: &str = ", not watched";

/// Shares of response times that are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shares {
    /// Of every operation, with service times where shares are not known.
    All,
    /// Of the operation of whose p99 the client has most.
    Worst,
    /// Those of its p99, in a sentence.
    Sentence,
}

/// Room for what may be left out: reasons beyond so many, shares, and claims and failures beyond a few.
#[derive(Clone, Copy)]
struct Shown {
    reasons: usize,
    shares: Shares,
    all: bool,
}

/// Claims and kinds of failures where not all are shown: those that speak against the run come first.
const FEW: usize = 3;

/// The whole summary. Without details it fits the screen, so that the verdict stays on it: the least important goes first.
pub fn render_summary(summary: &Summary, known: SummaryExtras<'_>, style: Style) -> String {
    // On a higher screen there is room for what a command says after it.
    let rows = style.rows.saturating_sub(AFTERWARDS).max(Style::SMALL_ROWS);
    let fits = |text: &str| style.details || text.lines().count() < rows;
    let mut text = String::new();
    use Shares::{All, Sentence, Worst};
    let less = [
        (usize::MAX, All, true),
        (REASONS, All, true),
        (2, All, true),
        (1, All, true),
        (1, Worst, true),
        (1, Worst, false),
        (1, Sentence, false),
    ];
    for (reasons, shares, all) in less {
        text = made(summary, known, style, Shown { reasons, shares, all });
        if fits(&text) {
            break;
        }
    }
    text
}

fn made(summary: &Summary, known: SummaryExtras<'_>, style: Style, shown: Shown) -> String {
    let mut out = String::new();
    let under_way = is_under_way(summary);
    let mark = if under_way { style.bold("RUNNING") } else { style.paint_trust(summary.verdict.trust) };
    let title = one_line(&format!("{} on {}", summary.title, summary.database));
    let unwatched = if under_way || summary.is_watched() { "" } else { NOT_WATCHED };
    let _ = writeln!(out, "{mark}{unwatched}  {}", style.bold(&title));
    let _ = writeln!(out, "{}", style.dim(&one_line(&format!("{}, {}", summary.target, summary.started))));
    if under_way {
        out.push_str("The run is under way: this is what it has recorded so far\n");
    } else if let Some(message) = describe_ending(summary.status) {
        let _ = writeln!(out, "{message}");
    }
    claims(&mut out, summary, style, shown);
    reasons(&mut out, &summary.verdict, style, shown);
    out.push('\n');
    for phase in &summary.phases {
        match phase.name.as_str() {
            "load" => load_line(&mut out, phase, style),
            "warmup" => {}
            _ => measured(&mut out, phase, style, shown),
        }
    }
    out.push_str(&crate::faults::render_fault_lines(&summary.faults));
    out.push('\n');
    if let Some(message) = known.findings.and_then(|findings| limit(summary, findings)) {
        let _ = writeln!(out, "{}", style.wrap_text(&one_line(&format!("limit    {message}")), 9));
    }
    for phase in &summary.phases {
        if let Some(link) = &phase.link {
            let _ = writeln!(out, "{:9}{link}", phase.name);
        }
    }
    if let Some(page) = known.page {
        let _ = writeln!(out, "report:  {page}");
    }
    out
}

/// A line for each claim: what was asked for, and what else is not valid; a threshold with what was measured.
fn claims(out: &mut String, summary: &Summary, style: Style, room: Shown) {
    let grades = &summary.verdict.grades;
    let threshold = |claim: &str| summary.thresholds.iter().find(|one| one.expression == claim);
    let shown = |grade: &&Grade| {
        style.details || grade.asked || grade.trust != Trust::Valid && summary.thresholds.is_empty()
    };
    let mut shown: Vec<&Grade> = grades.iter().filter(shown).collect();
    let many = shown.len();
    if !room.all && many > FEW {
        // Missed thresholds first, then the worse grades.
        let held = |grade: &Grade| {
            threshold(&grade.claim).is_none_or(|one| one.threshold_answer() != Decision::Fail)
        };
        shown.sort_by_key(|grade| (held(grade), std::cmp::Reverse(grade.trust)));
        shown.truncate(FEW);
    }
    let left_out = many - shown.len();
    // Results that were judged as a whole, and those that others have made, have thresholds without grades.
    let plain =
        summary.thresholds.iter().filter(|one| grades.iter().all(|grade| grade.claim != one.expression));
    let width = shown.iter().map(|grade| grade.claim.chars().count()).max().unwrap_or(0);
    for grade in shown {
        let verdict = |style: Style| {
            threshold(&grade.claim).map_or(String::new(), |one| format!("  {}", passed(one, style)))
        };
        let claim = format!("  {:width$}  {:7}", one_line(&grade.claim), grade.trust.name());
        // A line that runs into the next would push the verdict off the screen: what does not fit is counted.
        let plain = verdict(Style { colour: false, ..style });
        let taken = claim.chars().count() + plain.chars().count();
        let against = |told: usize| {
            let more = match grade.against.len() - told {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("  {}{more}", grade.against[..told].join(", "))
        };
        let fits = |told: &usize| style.details || taken + against(*told).chars().count() <= style.columns;
        let told = (1..=grade.against.len()).rev().find(fits);
        let against = told.map_or(String::new(), against);
        let mark = format!("{:7}", grade.trust.name());
        if taken > style.columns {
            // A wrapped line is no place for escape sequences but those of its mark.
            let whole = style
                .wrap_text(format!("  {}  {mark}{plain}{against}", one_line(&grade.claim)).trim_end(), 4);
            let _ = writeln!(
                out,
                "{}",
                whole.replacen(mark.trim_end(), &style.paint_grade(grade.trust, mark.trim_end()), 1)
            );
            continue;
        }
        let trust = style.paint_grade(grade.trust, &mark);
        let claim = format!("  {:width$}  {trust}", one_line(&grade.claim));
        let _ = writeln!(out, "{}", format!("{claim}{}{against}", verdict(style)).trim_end());
    }
    for threshold in plain {
        let _ = writeln!(out, "  {}  {}", one_line(&threshold.expression), passed(threshold, style));
    }
    if left_out > 0 {
        let _ = writeln!(out, "  {} more with -v", counted(left_out, "claim"));
    }
}

/// Says whether a threshold was met, and by what.
fn passed(threshold: &Threshold, style: Style) -> String {
    let decision = threshold.threshold_answer();
    let colour = match decision {
        Decision::Pass => "32",
        Decision::Fail => "1;31",
        Decision::TooClose => "33",
    };
    format!("{} ({})", style.paint(colour, decision.name()), measured_of(threshold, style.details))
}

/// Reasons against what was asked for, the worst first; with details all of them, and notes.
fn reasons(out: &mut String, verdict: &Verdict, style: Style, shown: Shown) {
    let told = |reason: &&Reason| style.details || reason.trust != Trust::Valid && verdict.is_asked(reason);
    let told: Vec<&Reason> = verdict.reasons.iter().filter(told).collect();
    let most = if style.details { told.len() } else { shown.reasons };
    for reason in told.iter().take(most) {
        let text = format!("  {} {}: {}", reason.trust.trust_word(), reason.check, one_line(&reason.text));
        // In full: half a reason is none. Those that have no room are counted.
        let text = style.wrap_text(&text, 4);
        // The mark alone is coloured: a wrapped line is no place for escape sequences.
        let mark = match verdict.is_asked(reason) {
            true => style.paint_grade(reason.trust, reason.trust.trust_word()),
            false => style.dim(reason.trust.trust_word()),
        };
        let _ = writeln!(out, "{}", text.replacen(reason.trust.trust_word(), &mark, 1));
    }
    if told.len() > most {
        let _ = writeln!(out, "  {} more with -v", counted(told.len() - most, "reason"));
    }
}

/// Limit of the run, and how sure that is; nothing of a simulation or of a load alone.
fn limit(summary: &Summary, findings: &[DiagnosisFinding]) -> Option<String> {
    let phase = summary.phases.iter().find(|phase| phase.name == "measure")?;
    if let Some(finding) = findings.first() {
        return Some(format!(
            "{} ({}, {:.0} %)",
            finding.claim,
            finding.confidence_word(),
            finding.confidence * 100.0
        ));
    }
    phase.monitor.as_ref().map(|_| "nothing that was watched is near one".to_owned())
}

/// Measured value of a threshold, or why there is none; with its interval where that decides, and with details.
pub(crate) fn measured_of(threshold: &Threshold, details: bool) -> String {
    let unit = |value: f64| in_unit(&threshold.expression, value);
    let measured = match threshold.measured {
        Some(value) => format!("measured {}", unit(value)),
        None => "not measurable: too few samples, or among arrivals that were never served".into(),
    };
    match (threshold.interval, threshold.threshold_answer()) {
        (Some(found), decision) if details || decision == Decision::TooClose => {
            format!("{measured}, 95 % interval {}", format_interval(&found, unit))
        }
        (None, Decision::TooClose) => format!("{measured}, too few to decide"),
        _ => measured,
    }
}

/// An interval in the words of its unit.
pub(crate) fn format_interval(found: &ConfidenceInterval, unit: impl Fn(f64) -> String) -> String {
    let high = found.high.map_or("beyond all".into(), &unit);
    format!("{} to {high}", unit(found.low))
}

/// A value in the unit of its threshold.
pub(crate) fn in_unit(expression: &str, value: f64) -> String {
    if expression.starts_with("throughput") {
        format!("{}/s", Rate(value))
    } else if expression.starts_with("errors") {
        format!("{value:.3} %")
    } else {
        format_us(value)
    }
}

fn load_line(out: &mut String, phase: &Phase, style: Style) {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    let failed = phase.arrivals.saturating_sub(ok);
    let (count, what) = phase.documents.map_or((ok, "records"), |documents| (documents, "documents"));
    let rate = Rate(count as f64 / phase.seconds.max(1e-9));
    let mut line = format!("load     {} {what} in {:.1} s, {rate}/s", Thousands(count), phase.seconds);
    let ways = [("pipeline", phase.client.pipeline), ("batches of", phase.client.batch)];
    let ways: Vec<_> = ways.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name} {n}")).collect();
    if !ways.is_empty() {
        let _ = write!(line, " ({})", ways.join(", "));
    }
    if failed > 0 {
        let what = if phase.documents.is_some() { " inserts" } else { "" };
        let _ = write!(line, ", {}{what} FAILED", Thousands(failed));
    }
    let _ = writeln!(out, "{}", style.wrap_text(&line, 9));
}

/// How many users had a connection, where some had none: `, 2.1 connected on average`.
pub(crate) fn describe_connected(client: &Client) -> String {
    let some = client.connected.filter(|connected| *connected < client.users as f64 * 0.99);
    some.map_or(String::new(), |connected| format!(", {connected:.1} connected on average"))
}

fn measured(out: &mut String, phase: &Phase, style: Style, shown: Shown) {
    let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
    let names: Vec<&str> = phase.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let rate = format!("measure  {} {}/s:", Rate(phase.throughput), unit_name(&names));
    let failed = Thousands(phase.arrivals.saturating_sub(ok));
    let done =
        format!("{rate} {} in {:.1} s, {failed} failed", Thousands(phase.count_successes()), phase.seconds);
    let users = phase.client.users;
    let line = match (phase.offered, users * phase.client.pipeline) {
        // Of merged runs they are not known.
        (Some(due), 0) => format!("{done}; {}/s were due (open loop)", Rate(due)),
        (Some(due), _) => {
            let connected = describe_connected(&phase.client);
            format!("{done}; {}/s were due (open loop, {users} connections{connected})", Rate(due))
        }
        // An imported result may not say.
        (None, 0) => done,
        (None, users) => {
            format!("{done} (closed loop, {}{})", counted(users, "user"), describe_connected(&phase.client))
        }
    };
    let _ = writeln!(out, "{}", style.wrap_text(&line, 9).replacen(&rate, &style.bold(&rate), 1));
    if phase.arrivals > ok {
        let mut kinds: Vec<(&String, &u64)> =
            phase.outcomes.iter().filter(|(name, count)| *name != "ok" && **count > 0).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let most = if shown.all { kinds.len() } else { FEW };
        for (name, count) in kinds.iter().take(most) {
            // The first of its kind, in the words of the server or the system.
            let message =
                phase.errors.get(*name).map_or(String::new(), |message| format!(": {}", one_line(message)));
            let line = format!("         {name} {}{message}", Thousands(**count));
            let line = if shown.all { style.wrap_text(&line, 11) } else { style.cut_line(&line) };
            let _ = writeln!(out, "{line}");
        }
        if kinds.len() > most {
            let _ = writeln!(out, "         {} more with -v", counted(kinds.len() - most, "kind"));
        }
    }
    append_elements(out, phase);
    replay::append_replay(out, phase, style);
    if style.details {
        details::append_phase_details(out, phase, style);
    } else {
        latencies(out, phase, style, shown);
    }
}

/// Elements that commands asked for and found, where these are counted one by one.
fn append_elements(out: &mut String, phase: &Phase) {
    let named = |metric: &Metric, part: &str| {
        let name = metric.name.strip_suffix(part)?.strip_suffix('.')?.to_owned();
        Some((name, metric.outcomes.values().sum::<u64>()))
    };
    let of = |wanted: &'static str| phase.metrics.iter().filter_map(move |metric| named(metric, wanted));
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    of(HITS).for_each(|(name, count)| all.entry(name).or_default().0 += count);
    of(MISSES).for_each(|(name, count)| all.entry(name).or_default().1 += count);
    for (name, (hits, misses)) in all {
        let share = hits as f64 * 100.0 / (hits + misses).max(1) as f64;
        let (hits, asked) = (Thousands(hits), Thousands(hits + misses));
        let _ = writeln!(out, "         {name}: {hits} of {asked} elements were there ({share:.1} %)");
    }
}

/// One table: response times of all that was asked for, and the server's and the client's share of each; service times where
/// these are not known and differ.
fn latencies(out: &mut String, phase: &Phase, style: Style, shown: Shown) {
    // Closing connections says nothing about the database.
    let metrics: Vec<&Metric> = phase.metrics.iter().filter(|m| is_request(&m.name)).collect();
    let failures = metrics.iter().any(|m| m.all_response.is_some());
    let clients: Vec<Option<Latency>> = metrics.iter().map(|metric| client_share(metric)).collect();
    let worst = metrics.iter().filter_map(|metric| Some((metric.name.as_str(), metric.shares_us("p99")?.1)));
    let worst = worst.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(name, _)| name);
    // Each with the operation that it is of, where it may be left out.
    let mut rows: Vec<(String, &Latency, Option<&str>)> = Vec::new();
    for (metric, client) in metrics.iter().zip(&clients) {
        let response = if failures { metric.arrival_response() } else { metric.response.as_ref() };
        rows.extend(response.map(|latency| (metric.name.clone(), latency, None)));
        let of = Some(metric.name.as_str());
        match (&metric.server, client) {
            // Shares are of successful requests: they do not add up to a time that counts failures.
            (Some(server), Some(client)) if !failures => {
                rows.extend([(SERVER.to_owned(), server, of), (CLIENT.to_owned(), client, of)]);
            }
            _ => {
                let service =
                    metric.service.as_ref().filter(|one| response.is_none_or(|other| differ(one, other)));
                // An imported result may have service times alone.
                let (name, of) = match response {
                    Some(_) => (SERVICE.to_owned(), of),
                    None => (format!("{} service", metric.name), None),
                };
                rows.extend(service.map(|latency| (name, latency, of)));
            }
        }
    }
    match shown.shares {
        Shares::All if rows.len() <= ROWS => {}
        Shares::Sentence => rows.retain(|(.., of)| of.is_none()),
        _ => rows.retain(|(name, _, of)| of.is_none() || *of == worst && name != SERVICE),
    }
    if rows.is_empty() {
        return;
    }
    let mut rows: Vec<(String, &Latency)> =
        rows.into_iter().map(|(name, latency, _)| (name, latency)).collect();
    let has_shares = rows.iter().any(|(name, _)| name == CLIENT);
    rows.extend(phase.ideal_response.as_ref().map(|latency| (IDEAL.to_owned(), latency)));
    let title = if failures { "response time, failures included" } else { "response time" };
    append_latency_table(out, title, &rows, &COLUMNS, style);
    // What was never sent has a place among percentiles, and no time that a mean could take in.
    let dropped = phase.outcomes.get(Outcome::Dropped.name()).copied().unwrap_or(0);
    if failures && dropped > 0 {
        let message =
            format!("mean, max and count are of what was sent, without {} dropped", Thousands(dropped));
        let _ = writeln!(out, "{}", style.wrap_text(&message, 0));
    }
    if !has_shares && let Some(message) = describe_shares(&metrics) {
        let _ = writeln!(out, "{}", style.wrap_text(&message, 0));
    }
}

/// The client's share of a metric's response times as a row of the table; `None` where it is not known.
fn client_share(metric: &Metric) -> Option<Latency> {
    let known = metric.client_us.iter().filter_map(|(name, us)| Some((name.clone(), Some((*us)?))));
    let percentiles_us: BTreeMap<String, Option<f64>> = known.collect();
    let (response, server) = (metric.response.as_ref()?, metric.server.as_ref()?);
    let mean_us = (response.mean_us - server.mean_us).max(0.0);
    let share = Latency { count: 0, mean_us, min_us: None, max_us: None, percentiles_us, ..response.clone() };
    (!share.percentiles_us.is_empty()).then(|| Latency { intervals_us: BTreeMap::new(), ..share })
}

/// The shares of p99 of the operation of which the client has most, as a sentence.
fn describe_shares(metrics: &[&Metric]) -> Option<String> {
    let known = metrics.iter().filter_map(|metric| Some((metric, metric.shares_us("p99")?)));
    let (metric, (server, client)) = known.max_by(|(_, one), (_, other)| one.1.total_cmp(&other.1))?;
    let (server, client) = (format_us(server), format_us(client));
    Some(format!("of the p99 of successful {} {server} are the server's, {client} the client's", metric.name))
}

/// Returns whether two distributions differ in what the table shows of them.
fn differ(a: &Latency, b: &Latency) -> bool {
    let apart = |a: f64, b: f64| (a - b).abs() > DIFFERS * a.max(b);
    let percentile = |column: &&str| match (a.percentiles_us.get(*column), b.percentiles_us.get(*column)) {
        (Some(Some(a)), Some(Some(b))) => apart(*a, *b),
        (a, b) => a != b,
    };
    apart(a.mean_us, b.mean_us) || COLUMNS.iter().any(percentile)
}
