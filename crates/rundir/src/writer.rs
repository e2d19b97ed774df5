//! Writes a run directory as the run goes, so that a killed run can still be reported.

use crate::files;
use crate::hlog;
use crate::intervals::IntervalLine;
use crate::log;
use crate::schema::{Environment, Pair, Planned, Run, Status, Summary};
use crate::series;
use dyno_record::{Scale, Totals};
use dyno_types::secret::conceal_json;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The histograms of whole phases, so that a long run need not be added up to be read.
pub(crate) const TOTALS: &str = "totals.hlog";

/// Name of the file with the part of each worker in each phase.
pub(crate) const WORKERS: &str = "workers.json";

/// An open run directory. A failing write (a full disk) is remembered and reported at the end; it never stops the
/// measurement.
#[derive(Debug)]
pub struct RunWriter {
    path: PathBuf,
    run: Run,
    hlog: File,
    series: File,
    intervals: File,
    events: File,
    /// Everything of each phase so far, in their order.
    sums: Vec<(String, Totals)>,
    /// Part of each worker.
    workers: Vec<Pair>,
    failure: Option<String>,
}

fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path);
    file.map_err(|e| io::Error::new(e.kind(), format!("{}: {}", path.display(), files::name_limit(e))))
}

/// An error where a run directory cannot be made because something is there: asked before anything else is done.
pub fn must_be_new(path: &Path) -> io::Result<()> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    if path.exists() && std::fs::read_dir(path).map_err(named)?.next().is_some() {
        let text = format!("{}: not empty; a run directory must be new", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    Ok(())
}

/// A file that was written beside its place.
struct Written {
    file: File,
    part: PathBuf,
    place: PathBuf,
}

impl Written {
    fn take_place(&self) -> io::Result<()> {
        std::fs::rename(&self.part, &self.place)
    }
}

/// Facts of an interval beside its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalFacts {
    /// Share of the processors' time that was stolen from this host, percent, where it is known.
    pub steal_pct: Option<f64>,
    /// Arrivals that the rate asks for in it, where the rate changes on the way.
    pub due: Option<f64>,
}

impl RunWriter {
    /// Creates the directory (mode 0700; it must not exist, or be empty) and writes what is known at the start.
    pub fn create_run(path: &Path, run: Run, environment: &Environment, scale: Scale) -> io::Result<Self> {
        let writer = RunWriter::unlogged(path, run, environment, scale)?;
        log::enter(path)?;
        Ok(writer)
    }

    /// Does the same without a log: another program made the run.
    pub(crate) fn unlogged(
        path: &Path,
        run: Run,
        environment: &Environment,
        scale: Scale,
    ) -> io::Result<Self> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        must_be_new(path)?;
        if !path.exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(named)?;
        }
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(named)?;
        let mut writer = RunWriter {
            hlog: create(&path.join("latency.hlog"))?,
            series: create(&path.join("series.csv"))?,
            intervals: create(&path.join("intervals.jsonl"))?,
            events: create(&path.join("events.jsonl"))?,
            path: path.to_owned(),
            run,
            sums: Vec::new(),
            workers: Vec::new(),
            failure: None,
        };
        // Held until this process ends, however it does: readers tell a run under way from one that was killed.
        let _ = writer.events.try_lock();
        for (name, text) in [
            ("run.json", serde_json::to_string_pretty(&writer.run)?),
            ("environment.json", serde_json::to_string_pretty(environment)?),
        ] {
            // Not waited for until it is on the disk: there is nothing to lose yet, and where the host writes back gigabytes, as
            // behind a compilation, that takes minutes.
            writer.put(name, &text).and_then(|put| put.take_place()).map_err(files::name_limit)?;
        }
        writer.hlog.write_all(hlog::log_header(SystemTime::now(), scale).as_bytes())?;
        writer.series.write_all(series::HEADER.as_bytes())?;
        Ok(writer)
    }

    /// Where it is.
    pub fn run_path(&self) -> &Path {
        &self.path
    }

    /// The first write that failed, in words.
    pub fn first_failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn note(&mut self, result: io::Result<()>) {
        if let (Err(error), None) = (result, &self.failure) {
            self.failure = Some(format!("{}: {}", self.path.display(), files::name_limit(error)));
        }
    }

    /// Writes a file beside its place and, once it is on the disk, moves it there, so that it is whole or not there.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let written = self.put(name, text)?;
        written.file.sync_data()?;
        written.take_place()
    }

    /// Writes a file beside its place.
    fn put(&self, name: &str, text: &str) -> io::Result<Written> {
        let part = self.path.join(format!(".{name}.part"));
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&part)?;
        let shown = if name.ends_with(".json") { conceal_json(text) } else { text.into() };
        file.write_all(shown.as_bytes())?;
        file.write_all(b"\n")?;
        Ok(Written { file, part, place: self.path.join(name) })
    }

    /// Notes something that happens now, with the wall clock's time.
    pub fn write_event(&mut self, kind: &str, text: &str) {
        self.event_at(SystemTime::now(), kind, text);
    }

    /// Notes something that happened at a time, to the nanosecond.
    pub fn event_at(&mut self, at: SystemTime, kind: &str, text: &str) {
        // Only times that no calendar has are refused.
        let at = jiff::Timestamp::try_from(at).unwrap_or_default().to_string();
        let line = serde_json::json!({ "at": at, "event": kind, "text": text });
        let result = writeln!(self.events, "{}", conceal_json(&line.to_string()));
        self.note(result);
    }

    /// Writes one interval of a phase: histogram log, series and counters. `start` counts from the phase's epoch.
    pub fn write_interval(
        &mut self,
        phase: &str,
        start: Duration,
        length_s: f64,
        totals: &Totals,
        beside: IntervalFacts,
    ) {
        let metrics = self.run.metrics.get(phase).cloned().unwrap_or_default();
        let log = hlog::interval_lines(phase, &metrics, start.as_secs_f64(), length_s, totals);
        let result = self.hlog.write_all(log.as_bytes());
        self.note(result);
        let rows = series::interval_rows(start, phase, &metrics, totals, beside.steal_pct);
        let result = self.series.write_all(rows.as_bytes());
        self.note(result);
        let line =
            IntervalLine { due: beside.due, ..IntervalLine::from_interval(phase, start, &metrics, totals) };
        let result = serde_json::to_string(&line)
            .map_err(io::Error::from)
            .and_then(|text| self.intervals.write_all(format!("{text}\n").as_bytes()));
        self.note(result);
        match self.sums.iter_mut().find(|(name, _)| name == phase) {
            Some((_, sum)) => sum.merge(totals),
            None => {
                let mut sum = Totals::new(totals.outcomes.len(), totals.slot_scale());
                sum.merge(totals);
                self.sums.push((phase.to_owned(), sum));
            }
        }
    }

    /// Names the metrics of a phase, and of its warm-up where it has one, and says what is planned; must come before its first
    /// interval.
    pub fn name_metrics(&mut self, phase: &str, metrics: &[String], plan: Planned, warmup: bool) {
        self.update_run(|run| {
            for name in [Some(phase), warmup.then_some("warmup")].into_iter().flatten() {
                run.metrics.insert(name.to_owned(), metrics.to_vec());
            }
            run.plans.insert(phase.to_owned(), plan);
        });
    }

    /// Takes over what became known after the start.
    pub fn update_run(&mut self, change: impl FnOnce(&mut Run)) {
        change(&mut self.run);
        let result = serde_json::to_string_pretty(&self.run)
            .map_err(io::Error::from)
            .and_then(|text| self.replace("run.json", &text));
        self.note(result);
    }

    /// Adds what each worker did in a phase.
    pub fn write_workers(&mut self, workers: &[Pair]) {
        for worker in workers {
            match self.workers.iter_mut().find(|known| known.number == worker.number) {
                Some(known) => known.phases.extend_from_slice(&worker.phases),
                None => self.workers.push(worker.clone()),
            }
        }
        if !self.workers.is_empty() {
            let result = serde_json::to_string(&self.workers)
                .map_err(io::Error::from)
                .and_then(|text| self.replace(WORKERS, &text));
            self.note(result);
        }
    }

    /// Writes the summary and how far the run came.
    pub fn finish(&mut self, summary: &Summary, status: Status) {
        let scale = self.sums.first().map_or(Scale::Ns64, |(_, sum)| sum.slot_scale());
        let mut text = hlog::log_header(SystemTime::now(), scale);
        for (phase, sum) in &self.sums {
            let metrics = self.run.metrics.get(phase).map_or(&[][..], Vec::as_slice);
            text.push_str(&hlog::interval_lines(phase, metrics, 0.0, 0.0, sum));
        }
        let result = self.replace(TOTALS, text.trim_end());
        self.note(result);
        let result = serde_json::to_string_pretty(summary)
            .map_err(io::Error::from)
            .and_then(|text| self.replace("summary.json", &text));
        self.note(result);
        self.update_run(|run| run.status = status);
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
