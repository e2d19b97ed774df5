//! The console, the log file and the table: every line goes where the original writes it.

use crate::report::console::{ReportedStage, Reporter, Tick};
use dyno_engine::Job;
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_record::Totals;
use dyno_rundir::files;
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchLoad, TRANSACTION};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Watches one phase.
pub struct PhaseLog {
    reporter: Reporter,
    stage: ReportedStage,
    /// Metric of a batch or a transaction.
    metric: usize,
    load: Option<Arc<SysbenchLoad>>,
    begun: Instant,
    every_s: Option<u64>,
    next_s: u64,
    every_documents: Option<u64>,
    next_documents: u64,
    text: File,
    table: File,
    aside: bool,
}

/// Settings that a log needs.
pub struct LogLayout<'a> {
    /// Makes the lines.
    pub reporter: Reporter,
    /// Loading or transactions.
    pub stage: ReportedStage,
    /// Path of the log file; the table is called the same with `.tsv` behind it.
    pub path: &'a Path,
    /// True if the console's lines go to stderr.
    pub aside: bool,
    /// Seconds between two lines.
    pub every_s: Option<u64>,
    /// Documents between two lines of a load.
    pub every_documents: Option<u64>,
}

impl PhaseLog {
    /// Opens both files; old ones of the same name are lost, as in the original.
    pub fn new(
        layout: LogLayout<'_>,
        metrics: &[String],
        load: Option<Arc<SysbenchLoad>>,
    ) -> Result<Self, Failure> {
        let create = |path: &Path| {
            files::create_file(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
        };
        let table = layout.path.with_extension("txt.tsv");
        let mut log = PhaseLog {
            metric: metrics.iter().position(|m| m == TRANSACTION).unwrap_or(0),
            stage: layout.stage,
            load,
            begun: Instant::now(),
            every_s: layout.every_s,
            next_s: layout.every_s.unwrap_or(0),
            every_documents: layout.every_documents,
            next_documents: layout.every_documents.unwrap_or(0),
            text: create(layout.path)?,
            table: create(&table)?,
            reporter: layout.reporter,
            aside: layout.aside,
        };
        let header = log.reporter.table_header();
        log.write_table(header);
        Ok(log)
    }

    /// Prints text and keeps it in the log file.
    pub fn say(&mut self, text: &str) {
        match self.aside {
            true => terminal::note(text.trim_end()),
            false => terminal::out(text),
        }
        if let Err(error) = self.text.write_all(text.as_bytes()) {
            terminal::warn(&format!("the log file is incomplete: {error}"));
        }
    }

    fn write_table(&mut self, row: &str) {
        if let Err(error) = self.table.write_all(row.as_bytes()) {
            terminal::warn(&format!("the table is incomplete: {error}"));
        }
    }

    fn tick(&self, totals: &Totals) -> Tick {
        let of = |slot: Option<&dyno_record::MergedSlot>| {
            slot.map_or((0, 0.0), |s| (s.service.count(), s.service.sum_ns() as f64 / 1e6))
        };
        let (latencies, latency_ms) = of(totals.ok_slot(self.metric));
        Tick {
            elapsed_ms: self.begun.elapsed().as_millis() as u64,
            done: self.load.as_ref().map_or(latencies, |load| load.acknowledged_documents()),
            failed: of(totals.failed_slot(self.metric)).0,
            latency_ms,
            latencies,
        }
    }

    /// The phase has ended; a load tells its total once more.
    pub fn finish(&mut self, totals: &Totals) {
        if self.stage == ReportedStage::Load {
            let (text, row) = self.reporter.last_line(&self.tick(totals));
            self.say(&text);
            self.write_table(&row);
        }
    }
}

impl Observer for PhaseLog {
    fn begin(&mut self, _phase: &str, _job: &Job) {
        self.begun = Instant::now();
    }

    fn second(&mut self, progress: &PhaseProgress<'_>) {
        let tick = self.tick(progress.so_far);
        let by_time = self.every_s.is_some_and(|_| tick.elapsed_ms / 1000 >= self.next_s);
        let by_count = self.every_documents.is_some_and(|_| tick.done >= self.next_documents);
        if let (true, Some(every)) = (by_time, self.every_s) {
            self.next_s = (tick.elapsed_ms / 1000 / every + 1) * every;
        }
        if let (true, Some(every)) = (by_count, self.every_documents) {
            self.next_documents = (tick.done / every + 1) * every;
        }
        if by_time || by_count {
            let (text, row) = self.reporter.line(&tick);
            self.say(&text);
            self.write_table(&row);
        }
    }

    fn end(&mut self, _phase: &Phase) {}
}

/// Metrics of a workload, for [`PhaseLog::new`].
pub fn metrics(workload: &dyn Workload) -> Vec<String> {
    workload.metrics().to_vec()
}
