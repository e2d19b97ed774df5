//! Progress: one tidy view on a terminal, one plain line an interval elsewhere, nothing with `--quiet`.

mod view;

use crate::terminal;
use dyno_analysis::Condition;
use dyno_engine::{Job, Pacing};
use dyno_record::{Scale, Totals};
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::units::{Rate, ShownLatency, Thousands, counted};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};
use textwrap::Options;
use view::merged;

/// Time between two plain lines: five seconds of the run, which come a little before or after five of the clock.
const PLAIN: Duration = Duration::from_millis(4_500);

/// Display of the progress.
enum Screen {
    /// Nowhere.
    Quiet,
    /// A line now and then; when the last was written.
    Plain(Option<Instant>),
    /// A view that redraws itself.
    Terminal(Option<ProgressBar>),
}

/// Shows progress.
pub struct Live {
    screen: Screen,
    phase: view::Phase,
    conditions: Vec<Condition>,
    /// The run among those of its experiment.
    place: String,
}

impl Live {
    /// Chooses by the terminal.
    pub fn new(quiet: bool) -> Self {
        let screen = match quiet {
            true => Screen::Quiet,
            false if terminal::live() => Screen::Terminal(None),
            false => Screen::Plain(None),
        };
        Live { screen, phase: view::Phase::default(), conditions: Vec::new(), place: String::new() }
    }

    /// Shows how thresholds stand.
    pub fn with_thresholds(self, conditions: &[Condition]) -> Self {
        Live { conditions: conditions.to_vec(), ..self }
    }

    /// Says which run of an experiment is shown from now on.
    pub fn of_run(&mut self, place: String) {
        self.place = place;
    }
}

fn percentiles(totals: &Totals) -> String {
    let all = merged(totals);
    if all.count() == 0 {
        return "no completed operation".into();
    }
    let at = |p| ShownLatency(all.percentile_ns(p)).to_string();
    format!("p50 {}  p99 {}  p99.9 {}", at(50.0), at(99.0), at(99.9))
}

fn lag(totals: &Totals) -> String {
    match totals.lag.count() {
        0 => String::new(),
        _ => format!("  lag p99 {}", ShownLatency(totals.lag.percentile_ns(99.0))),
    }
}

fn time(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 1.0 {
        return ShownLatency((seconds * 1e9).round() as u64).to_string();
    }
    let s = seconds.round().max(0.0) as u64;
    match s {
        0..60 => whole_or_tenths(seconds),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}

/// Seconds with one decimal place, where they are not whole.
fn whole_or_tenths(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round() / 10.0;
    if tenths.fract() == 0.0 { format!("{tenths:.0} s") } else { format!("{tenths:.1} s") }
}

/// What is left of a run, in whole seconds; nothing where it has come to its end.
fn left(p: &PhaseProgress<'_>) -> String {
    p.left_s.filter(|s| *s > 0.0).map_or(String::new(), |s| format!(", {} left", time(s.round().max(1.0))))
}

/// Rate and latencies of the last second, and what has failed so far.
fn plain_line(phase: &view::Phase, p: &PhaseProgress<'_>) -> String {
    let rate = phase.rate(p).map_or(String::new(), |rate| format!("{}/s  ", Thousands(rate.round() as u64)));
    format!(
        "{} {}: {rate}{}, {} failed{}{}",
        p.phase,
        whole_or_tenths(p.elapsed_s),
        percentiles(p.last),
        Thousands(p.so_far.count_failed()),
        lag(p.last),
        left(p),
    )
}

/// Breaks lines at words so that none is as wide as the terminal: the view counts its lines to redraw itself.
fn folded(text: &str, columns: usize) -> String {
    text.lines().map(|line| textwrap::fill(line, Options::new(columns - 1))).collect::<Vec<_>>().join("\n")
}

/// Colours the marks of thresholds, after lines were broken, where the terminal has colours.
fn marked(text: String) -> String {
    if !terminal::errors_have_colours() {
        return text;
    }
    let mark = |line: &str| match line.split_at_checked(4) {
        Some(("PASS", rest)) => format!("\x1b[32mPASS\x1b[0m{rest}"),
        Some(("FAIL", rest)) => format!("\x1b[31mFAIL\x1b[0m{rest}"),
        _ => line.to_owned(),
    };
    text.lines().map(mark).collect::<Vec<_>>().join("\n")
}

/// Columns and rows of the terminal as it is now; 80 by 24 where it does not say.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 => (usize::from(size.ws_col).max(20), usize::from(size.ws_row)),
        _ => (80, 24),
    }
}

impl Observer for Live {
    fn begin(&mut self, phase: &str, job: &Job) {
        self.phase = view::Phase::of(job);
        match &mut self.screen {
            Screen::Quiet => {}
            Screen::Plain(last) => {
                *last = Some(Instant::now());
                terminal::note(&format!("{phase}: {}", describe(job)));
            }
            Screen::Terminal(bar) => {
                let new = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr_with_hz(10));
                let style = ProgressStyle::with_template("{prefix:8} {wide_bar} {percent:>3} %\n{msg}");
                new.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
                new.set_prefix(phase.to_owned());
                new.set_message(folded(&describe(job), size().0));
                new.enable_steady_tick(Duration::from_millis(200));
                terminal::show_view(Some(&new));
                *bar = Some(new);
            }
        }
    }

    fn second(&mut self, p: &PhaseProgress<'_>) {
        match &mut self.screen {
            Screen::Quiet | Screen::Terminal(None) => {}
            Screen::Plain(last) => {
                if last.is_some_and(|l| l.elapsed() < PLAIN) {
                    return;
                }
                *last = Some(Instant::now());
                terminal::note(&plain_line(&self.phase, p));
            }
            Screen::Terminal(Some(bar)) => {
                self.phase.take(p);
                bar.set_prefix(p.phase.to_owned());
                if let Some(done) = p.done {
                    bar.set_position((done * 1_000.0) as u64);
                }
                let gap = if self.place.is_empty() { "" } else { "; " };
                let (columns, rows) = size();
                let time = format!("{}{}{gap}{}", time(p.elapsed_s.round()), left(p), self.place);
                let lines = self.phase.lines(p, &self.conditions, (columns, rows));
                bar.set_message(marked(folded(&format!("{time}\n{lines}"), columns)));
            }
        }
    }

    fn end(&mut self, phase: &Phase) {
        if let Screen::Terminal(bar) = &mut self.screen
            && let Some(bar) = bar.take()
        {
            terminal::show_view(None);
            bar.finish_and_clear();
        }
        // On a terminal the view was there, and the summary follows.
        if !matches!(self.screen, Screen::Plain(_)) {
            return;
        }
        let ok = phase.outcomes.get("ok").copied().unwrap_or(0);
        let (count, what) =
            phase.documents.map_or((phase.count_successes(), ""), |documents| (documents, " documents"));
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
        Pacing::Recorded => format!("as recorded, on {}", counted(job.users, "connection")),
        Pacing::Open { profile, .. } => {
            let changes = if profile.is_constant() { "" } else { " at first" };
            format!("{}/s{changes} on {} connections", Rate(profile.rate_at(job.warmup_ns)), job.users)
        }
    };
    let warmup = match job.warmup_ns {
        0 => String::new(),
        ns => format!(" after {} of warm-up", time(ns as f64 / 1e9)),
    };
    let unit = if job.scale == Scale::Micros { ", whole microseconds" } else { "" };
    // All of a recording has no end but its own.
    let end = if end.is_empty() { String::new() } else { format!("{end}{warmup}, ") };
    format!("{end}{load}{unit}")
}
