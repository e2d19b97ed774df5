//! Progress: one tidy view on a terminal, one plain line an interval elsewhere, nothing with `--quiet`.

use crate::terminal;
use dyno_engine::{Job, Pacing};
use dyno_record::{Buckets, Scale, Totals};
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, Progress};
use dyno_session::watch::seen::ServerNow;
use dyno_types::units::{Latency, Rate, Thousands, counted};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Seconds between two plain lines.
const PLAIN_S: u64 = 5;

/// Display of progress.
pub enum Live {
    /// Nothing.
    Quiet,
    /// A line now and then.
    Plain { last: Option<Instant>, each: f64 },
    /// A view that redraws itself.
    Terminal { bar: Option<ProgressBar>, each: f64 },
}

impl Live {
    /// Chooses by the terminal.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            Live::Quiet
        } else if terminal::live() {
            Live::Terminal { bar: None, each: 1.0 }
        } else {
            Live::Plain { last: None, each: 1.0 }
        }
    }
}

/// All successful response times of an interval together.
fn merged(totals: &Totals) -> Buckets {
    let mut all = Buckets::new(totals.scale());
    for slot in totals.slots.iter().step_by(2).flatten() {
        all.merge(&slot.response);
    }
    all
}

fn percentiles(totals: &Totals) -> String {
    let all = merged(totals);
    if all.count() == 0 {
        return "no completed operation".into();
    }
    let at = |p| Latency(all.percentile_ns(p)).to_string();
    format!("p50 {}  p99 {}  p99.9 {}", at(50.0), at(99.0), at(99.9))
}

fn lag(totals: &Totals) -> String {
    match totals.lag.count() {
        0 => String::new(),
        _ => format!("  lag p99 {}", Latency(totals.lag.percentile_ns(99.0))),
    }
}

/// Operations of the last second; nothing of one that did not last a second: the first or last of a phase.
fn rate(p: &Progress<'_>, each: f64) -> String {
    let done = (p.last.ok() as f64 * each).round() as u64;
    if p.whole { format!("{}/s  ", Thousands(done)) } else { String::new() }
}

/// Documents that an operation of the job writes: one, unless it is a load of batches.
fn documents_each(job: &Job) -> f64 {
    match (job.workload.documents(), job.end.operations) {
        (Some(documents), Some(operations)) => documents as f64 / operations.max(1) as f64,
        _ => 1.0,
    }
}

/// The database's own figures, on one line.
fn server(now: &ServerNow) -> String {
    let count = |value: Option<f64>| value.map(|v| Thousands(v.round() as u64).to_string());
    let parts = [
        count(now.operations_per_s).map(|n| format!("{n} commands/s")),
        count(now.connections).map(|n| format!("{n} connections")),
        now.memory_bytes.map(|bytes| format!("{:.1} MiB", bytes / 1_048_576.0)),
    ];
    format!("server {}", parts.into_iter().flatten().collect::<Vec<_>>().join("  "))
}

fn time(seconds: f64) -> String {
    let s = seconds.round().max(0.0) as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}

/// Breaks lines at spaces so that none is wider than the terminal: the view counts its lines to redraw itself.
fn folded(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for line in text.lines() {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if column > 0 && column + length >= width {
                out.push('\n');
                column = 0;
            }
            out.push_str(word);
            column += word.chars().count();
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// Columns of the terminal; 80 where it does not say.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 80,
    }
}

impl Observer for Live {
    fn begin(&mut self, phase: &str, job: &Job) {
        match self {
            Live::Quiet => {}
            Live::Plain { last, each } => {
                (*last, *each) = (Some(Instant::now()), documents_each(job));
                terminal::note(&format!("{phase}: {}", describe(job)));
            }
            Live::Terminal { bar, each } => {
                let new = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr_with_hz(10));
                let style = ProgressStyle::with_template("{prefix:8} {wide_bar} {percent:>3} %\n{msg}");
                new.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
                new.set_prefix(phase.to_owned());
                new.set_message(folded(&describe(job), columns()));
                new.enable_steady_tick(Duration::from_millis(200));
                *each = documents_each(job);
                terminal::show_view(Some(&new));
                *bar = Some(new);
            }
        }
    }

    fn second(&mut self, p: &Progress<'_>) {
        let left = p.left_s.map_or(String::new(), |s| format!("{} left", time(s)));
        match self {
            Live::Quiet => {}
            Live::Plain { last, each } => {
                if last.is_some_and(|l| l.elapsed() < Duration::from_secs(PLAIN_S)) {
                    return;
                }
                *last = Some(Instant::now());
                terminal::note(&format!(
                    "{} {:.0} s: {}{}, {} failed{}{}{left}",
                    p.phase,
                    p.elapsed_s,
                    rate(p, *each),
                    percentiles(p.last),
                    Thousands(p.so_far.failed()),
                    lag(p.last),
                    if left.is_empty() { "" } else { ", " },
                ));
            }
            Live::Terminal { bar: Some(bar), each } => {
                bar.set_prefix(p.phase.to_owned());
                if let Some(done) = p.done {
                    bar.set_position((done * 1_000.0) as u64);
                }
                let elapsed = time(p.elapsed_s);
                let gap = if left.is_empty() { "" } else { ", " };
                let message = format!(
                    "{elapsed}{gap}{left}\n{}{}\n{} ok, {} failed{}",
                    rate(p, *each),
                    percentiles(p.last),
                    Thousands((p.so_far.ok() as f64 * *each).round() as u64),
                    Thousands(p.so_far.failed()),
                    lag(p.last),
                );
                let server = p.server.as_ref().map_or(String::new(), |now| format!("\n{}", server(now)));
                bar.set_message(folded(&(message + &server), columns()));
            }
            Live::Terminal { bar: None, .. } => {}
        }
    }

    fn end(&mut self, phase: &Phase) {
        if let Live::Terminal { bar, .. } = self
            && let Some(bar) = bar.take()
        {
            terminal::show_view(None);
            bar.finish_and_clear();
        }
        if matches!(self, Live::Quiet) {
            return;
        }
        let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
        let (count, what) = phase.documents.map_or((ok, ""), |documents| (documents, " documents"));
        terminal::note(&format!(
            "{}: {}{what} ok, {} failed in {}, {}/s",
            phase.name,
            Thousands(count),
            Thousands(phase.arrivals.saturating_sub(ok)),
            time(phase.seconds),
            Rate(count as f64 / phase.seconds.max(1e-9)),
        ));
    }
}

fn describe(job: &Job) -> String {
    let end = match (job.end.operations, job.end.duration_ns) {
        (Some(n), None) => match job.workload.documents() {
            Some(documents) => format!("{} documents", Thousands(documents)),
            None => format!("{} operations", Thousands(n)),
        },
        (None, Some(d)) => time(d as f64 / 1e9),
        (Some(n), Some(d)) => format!("{} operations or {}", Thousands(n), time(d as f64 / 1e9)),
        (None, None) => String::new(),
    };
    let load = match &job.pacing {
        Pacing::Closed { .. } if job.pipeline > 1 => {
            format!("{} connections with {} operations each under way", job.users, job.pipeline)
        }
        Pacing::Closed { .. } => counted(job.users, "user"),
        Pacing::Open { profile, .. } => {
            format!("{}/s on {} connections", Rate(profile.rate_at(job.warmup_ns)), job.users)
        }
    };
    let warmup = match job.warmup_ns {
        0 => String::new(),
        ns => format!(" after {} of warm-up", time(ns as f64 / 1e9)),
    };
    let unit = if job.scale == Scale::Micros { ", whole microseconds" } else { "" };
    format!("{end}{warmup}, {load}{unit}")
}
