//! Progress of an experiment: a line as each run begins and ends, and the view of the run under way.

use crate::live::Live;
use crate::metrics::MetricsOutlets;
use crate::{pages, terminal};
use dyno_config::experiment::MatrixCell;
use dyno_engine::Job;
use dyno_experiment::context::Watcher;
use dyno_experiment::journal::{RunRecord, RunStatus};
use dyno_experiment::point::SearchPoint;
use dyno_rundir::schema::{Phase, Summary};
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::units::Rate;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Shows progress.
pub struct Watch {
    live: Live,
    metrics: Option<MetricsOutlets>,
    quiet: bool,
    begun: Instant,
    /// Runs that ended since the beginning here.
    ended: usize,
    /// The experiment's directory.
    place: PathBuf,
}

impl Watch {
    pub fn new(place: &Path, still: bool, quiet: bool, metrics: Option<MetricsOutlets>) -> Self {
        let place = place.to_owned();
        Watch { live: Live::new(still), metrics, quiet, begun: Instant::now(), ended: 0, place }
    }

    /// Nothing more is told.
    pub fn end_of_experiment(&mut self) {
        if let Some(metrics) = &mut self.metrics {
            metrics.finish();
        }
    }
}

/// `3 min`, `2 h 05 min`.
pub fn time(seconds: f64) -> String {
    let s = seconds.round().max(0.0) as u64;
    match s {
        0..90 => format!("{s} s"),
        90..3_600 => format!("{} min", s.div_ceil(60)),
        3_600..172_800 => format!("{} h {:02} min", s / 3_600, s / 60 % 60),
        _ => format!("{} days {} h", s / 86_400, s / 3_600 % 24),
    }
}

impl Observer for Watch {
    fn begin(&mut self, phase: &str, plan: &Job) {
        self.live.begin(phase, plan);
        if let Some(metrics) = &mut self.metrics {
            metrics.begin(phase, plan);
        }
    }

    fn second(&mut self, progress: &PhaseProgress<'_>) {
        self.live.second(progress);
        if let Some(metrics) = &mut self.metrics {
            metrics.second(progress);
        }
    }

    fn end(&mut self, phase: &Phase) {
        self.live.end(phase);
        if let Some(metrics) = &mut self.metrics {
            metrics.end(phase);
        }
    }
}

impl Watcher for Watch {
    fn run_begins(&mut self, cell: &MatrixCell, point: &SearchPoint, ended: usize, planned: usize) {
        if let Some(metrics) = &mut self.metrics {
            metrics.of_experiment(cell.number, point.repetition);
        }
        let each = self.begun.elapsed().as_secs_f64() / self.ended.max(1) as f64;
        let left = match self.ended {
            0 => String::new(),
            _ => format!(", about {} left", time(each * planned.saturating_sub(ended) as f64)),
        };
        let label = &point.label;
        let searched = if label.is_empty() { String::new() } else { format!(" {label}") };
        let (number, repetition) = (ended + 1, point.repetition);
        // The number of runs that a search makes is not known before.
        let (of, left) = match cell.spec.strategy.is_some() {
            true => (String::new(), String::new()),
            false => (format!(" of {}", planned.max(number)), left),
        };
        self.live.of_run(format!("run {number}{of}{left}"));
        if !self.quiet {
            let label = cell.levels_label();
            terminal::note(&format!("run {number}{of}: {label}{searched}, repetition {repetition}{left}"));
        }
    }

    fn run_ended(&mut self, _cell: &MatrixCell, record: &RunRecord, _summary: Option<&Summary>) {
        self.ended += 1;
        let run = self.place.join(&record.dir);
        // A run that failed early has no directory.
        if run.join("run.json").is_file() {
            pages::leave(&run);
        }
        if self.quiet {
            return;
        }
        let rate = record.throughput.map(|n| format!("{} ops/s", Rate(n)));
        let message = match record.status {
            RunStatus::Failed => format!("failed: {}", record.cause),
            RunStatus::Interrupted => "interrupted".into(),
            RunStatus::Complete => {
                let why = if record.cause.is_empty() { String::new() } else { format!(": {}", record.cause) };
                format!("{}, {}{why}", rate.unwrap_or_default(), record.trust)
            }
        };
        terminal::note(&format!("  {message}"));
    }
}
