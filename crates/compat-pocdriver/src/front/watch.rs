//! The reports while the load runs, and the log file.

use crate::plan::args::PocArgs;
use crate::report::{PocTick, csv, csv_head, interval, original_csv, summary};
use dyno_engine::Job;
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_rundir::files;
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_workload::pocdriver::PocWorkload;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// Watches a run.
pub struct PocWatch {
    /// One for each worker.
    workloads: Vec<Arc<PocWorkload>>,
    before: u64,
    begun: Instant,
    thresholds_ms: Vec<u64>,
    interval_s: u64,
    next_s: u64,
    last: ([u64; 4], u64),
    log: Option<File>,
    faithful_csv: bool,
}

impl PocWatch {
    /// Opens the log file, if there is to be one.
    pub fn log(args: &PocArgs) -> Result<Option<File>, Failure> {
        let Some(path) = &args.logfile else { return Ok(None) };
        let failed = |e| Failure::usage(format!("--logfile {}: {e}", path.display()));
        let mut file = files::open_with(path, File::options().create(true).append(true)).map_err(failed)?;
        let empty = file.metadata().is_ok_and(|m| m.len() == 0);
        if empty && !args.faithful_csv {
            file.write_all(csv_head(&args.slowthreshold).as_bytes()).map_err(failed)?;
        }
        Ok(Some(file))
    }

    /// Begins with what the collections held before.
    pub fn new(args: &PocArgs, workloads: Vec<Arc<PocWorkload>>, before: u64, log: Option<File>) -> Self {
        PocWatch {
            workloads,
            before,
            begun: Instant::now(),
            thresholds_ms: args.slowthreshold.clone(),
            interval_s: args.interval,
            next_s: args.interval,
            last: ([0; 4], 0),
            log,
            faithful_csv: args.faithful_csv,
        }
    }

    fn tick(&mut self) -> PocTick {
        let elapsed_ms = self.begun.elapsed().as_millis() as u64;
        let add = |sum: &mut [u64; 4], own: [u64; 4]| sum.iter_mut().zip(own).for_each(|(all, n)| *all += n);
        let (mut counts, mut slow) = ([0; 4], vec![[0; 4]; self.thresholds_ms.len()]);
        for workload in &self.workloads {
            // Slow ones first: what is slow has been counted.
            slow.iter_mut()
                .zip(workload.acknowledged_counts().count_slow())
                .for_each(|(sum, own)| add(sum, own));
            add(&mut counts, workload.acknowledged_counts().count_all());
        }
        let mut since = counts;
        since.iter_mut().zip(self.last.0).for_each(|(now, before)| *now -= before.min(*now));
        let now = jiff::Zoned::now();
        let tick = PocTick {
            seconds: elapsed_ms / 1000,
            clock: (now.strftime("%H:%M:%S").to_string(), now.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
            counts,
            last: (since, elapsed_ms - self.last.1),
            before: self.before,
            slow: [0, 1, 2, 3].map(|at| slow.iter().map(|slow| (slow[at], counts[at])).collect()),
        };
        self.last = (counts, elapsed_ms);
        tick
    }

    /// The summary.
    pub fn finish(&mut self) {
        let tick = self.tick();
        terminal::out(&summary(&tick));
    }
}

impl Observer for PocWatch {
    fn begin(&mut self, _phase: &str, _job: &Job) {
        self.begun = Instant::now();
    }

    fn second(&mut self, _progress: &PhaseProgress<'_>) {
        if self.begun.elapsed().as_secs() < self.next_s {
            return;
        }
        self.next_s = (self.begun.elapsed().as_secs() / self.interval_s + 1) * self.interval_s;
        let tick = self.tick();
        terminal::out(&interval(&tick, &self.thresholds_ms));
        let line = if self.faithful_csv { original_csv(&tick) } else { csv(&tick) };
        if let Some(Err(error)) = self.log.as_mut().map(|file| file.write_all(line.as_bytes())) {
            terminal::warn(&format!("the log file is given up: {error}"));
            self.log = None;
        }
    }

    fn end(&mut self, _phase: &Phase) {}
}
