//! The reports while the load runs, and the log file.

use super::PocArgs;
use crate::exit::Failure;
use crate::terminal;
use dyno_engine::Job;
use dyno_record::Totals;
use dyno_report::pocdriver::{Tick, csv, csv_head, interval, original_csv, summary};
use dyno_rig::{Observer, Progress};
use dyno_rundir::schema::Phase;
use dyno_workload::pocdriver::PocWorkload;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// Metrics behind each operation of the reports, by their numbers.
const METRICS: [&[usize]; 4] = [&[0], &[1], &[3, 4, 5], &[2]];

/// Watches a run.
pub struct Watch {
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

impl Watch {
    /// Opens the log file, if there is to be one.
    pub fn new(args: &PocArgs, workloads: Vec<Arc<PocWorkload>>, before: u64) -> Result<Self, Failure> {
        let log = match &args.logfile {
            None => None,
            Some(path) => {
                let opened = File::options().create(true).append(true).open(path);
                let mut file =
                    opened.map_err(|e| Failure::Usage(format!("--logfile {}: {e}", path.display())))?;
                let empty = file.metadata().is_ok_and(|m| m.len() == 0);
                if empty && !args.faithful_csv {
                    let written = file.write_all(csv_head(&args.slowthreshold).as_bytes());
                    written.map_err(|e| Failure::Usage(format!("--logfile {}: {e}", path.display())))?;
                }
                Some(file)
            }
        };
        Ok(Watch {
            workloads,
            before,
            begun: Instant::now(),
            thresholds_ms: args.slowthreshold.clone(),
            interval_s: args.interval,
            next_s: args.interval,
            last: ([0; 4], 0),
            log,
            faithful_csv: args.faithful_csv,
        })
    }

    fn tick(&mut self, totals: &Totals) -> Tick {
        let elapsed_ms = self.begun.elapsed().as_millis() as u64;
        let mut counts = [0; 4];
        for workload in &self.workloads {
            counts.iter_mut().zip(workload.counted().all()).for_each(|(all, own)| *all += own);
        }
        let mut since = counts;
        since.iter_mut().zip(self.last.0).for_each(|(now, before)| *now -= before.min(*now));
        let now = jiff::Zoned::now();
        let tick = Tick {
            seconds: elapsed_ms / 1000,
            clock: (now.strftime("%H:%M:%S").to_string(), now.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
            counts,
            last: (since, elapsed_ms - self.last.1),
            before: self.before,
            slow: METRICS
                .map(|metrics| self.thresholds_ms.iter().map(|ms| slow(totals, metrics, *ms)).collect()),
        };
        self.last = (counts, elapsed_ms);
        tick
    }

    /// The summary.
    pub fn finish(&mut self, totals: &Totals) {
        let tick = self.tick(totals);
        terminal::out(&summary(&tick));
    }
}

/// Commands of these metrics that took longer than a threshold, and all of them.
fn slow(totals: &Totals, metrics: &[usize], threshold_ms: u64) -> (u64, u64) {
    let (mut slow, mut all) = (0, 0);
    for slot in metrics.iter().filter_map(|metric| totals.ok_slot(*metric)) {
        let limit = slot.service.scale().units(threshold_ms * 1_000_000);
        all += slot.service.count();
        let above = slot.service.iter().filter(|(bucket, _)| dyno_record::bucket_low(*bucket) > limit);
        slow += above.map(|(_, count)| count).sum::<u64>();
    }
    (slow, all)
}

impl Observer for Watch {
    fn begin(&mut self, _phase: &str, _job: &Job) {
        self.begun = Instant::now();
    }

    fn second(&mut self, progress: &Progress<'_>) {
        if self.begun.elapsed().as_secs() < self.next_s {
            return;
        }
        self.next_s = (self.begun.elapsed().as_secs() / self.interval_s + 1) * self.interval_s;
        let tick = self.tick(progress.so_far);
        terminal::out(&interval(&tick, &self.thresholds_ms));
        let line = if self.faithful_csv { original_csv(&tick) } else { csv(&tick) };
        if let Some(Err(error)) = self.log.as_mut().map(|file| file.write_all(line.as_bytes())) {
            terminal::warn(&format!("the log file is given up: {error}"));
            self.log = None;
        }
    }

    fn end(&mut self, _phase: &Phase) {}
}
