//! Run directories that were made up, in memory but for the files they are read from.

use dyno_record::{Buckets, MergedSlot, Scale, Totals};
use dyno_rundir::schema::Phase;
use dyno_rundir::{RecordedPhase, RunDir};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

static MADE: AtomicUsize = AtomicUsize::new(0);

/// Special parts of a run; each is JSON without its outer braces.
#[derive(Clone, Copy, Default)]
pub(crate) struct SyntheticRunParts<'a> {
    pub database: &'a str,
    pub facts: &'a str,
    pub settings: &'a str,
    pub command: &'a str,
    pub cores: &'a str,
    pub system: &'a str,
    pub phase: &'a str,
    pub client: &'a str,
    pub monitor: &'a str,
    pub metrics: &'a str,
    pub intervals: &'a str,
}

/// A run whose directory goes when it does.
pub(crate) struct SyntheticRun {
    pub run: RunDir,
    folder: PathBuf,
}

impl Drop for SyntheticRun {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl SyntheticRun {
    /// A run of ten seconds from the beginning of Unix time on, at 1,000 operations a second.
    pub fn new(given: SyntheticRunParts<'_>) -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dyno-made-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        let SyntheticRunParts { database, facts, settings, command, cores, system, .. } = given;
        let about = format!(
            "\"version\": 1, \"dyno\": \"0\", \"started\": \"1970-01-01T00:00:00Z\", \"status\": \"complete\", \
             \"target\": \"t\", \"database\": \"{database}\""
        );
        let run = format!(
            "{{{about}, \"command\": [{command}], \"facts\": {{{facts}}}, \"settings\": [{settings}], \
             \"metrics\": {{\"measure\": [\"READ\"]}}, \"unit_ns\": 64}}"
        );
        write("run.json", run);
        let environment = format!(
            "{{\"host\": \"h\", \"kernel\": \"k\", \"cpu\": \"c\", \"cores\": [{cores}], \"tuning\": {{}}, \
             \"system\": {{\"hash\": \"\", \"volatile\": {{}}, \"facts\": {{{system}}}}}}}"
        );
        write("environment.json", environment);
        let SyntheticRunParts { phase, client, monitor, metrics, intervals, .. } = given;
        let phase = format!(
            "{{\"name\": \"measure\", \"seconds\": 10.0, \"arrivals\": 10000, \"outcomes\": {{}}, \"throughput\": 1000.0, \
             \"metrics\": [{metrics}], \"late_replies\": 0, \"reconnects\": 0, \"redirects\": 0, \"backlog\": 0, \
             \"drops\": {{}}, \"errors\": {{}}, \"client\": {{\"pinned\": true, \"steal_share\": 0.0, {client}}}, \
             \"monitor\": {{{monitor}}}{phase}}}"
        );
        let summary = format!(
            "{{{about}, \"title\": \"\", \"verdict\": {{\"trust\": \"valid\", \"reasons\": [], \"checks\": []}}, \
             \"thresholds\": [], \"phases\": [{phase}]}}"
        );
        write("summary.json", summary);
        let event = |second: u8, event: &str| {
            format!(
                "{{\"at\": \"1970-01-01T00:00:{second:02}Z\", \"event\": \"{event}\", \"text\": \"measure\"}}\n"
            )
        };
        write("events.jsonl", event(0, "begin") + &event(10, "end"));
        write("intervals.jsonl", intervals.to_owned());
        let (mut run, _) = RunDir::salvage_run(&folder).unwrap();
        assert!(run.summary.is_some() && !run.environment.host.is_empty());
        if run.phases.is_empty() {
            let totals = Totals::new(1, Scale::Ns64);
            run.phases.push(RecordedPhase { name: "measure".into(), seconds: 10, totals });
        }
        SyntheticRun { run, folder }
    }

    pub fn measured_phase(&self) -> &Phase {
        self.run.summary.as_ref().unwrap().measured_phase().unwrap()
    }

    /// With these service times of successes of a metric, and of its failures.
    pub fn with_service_times(mut self, ok: &[u64], failed: &[u64]) -> Self {
        let slot = |times: &[u64]| {
            let mut all = Buckets::new(Scale::Ns64);
            times.iter().for_each(|ns| all.record(*ns));
            Some(MergedSlot { service: all.clone(), response: all })
        };
        self.run.phases[0].totals.slots = vec![slot(ok), slot(failed)];
        self
    }
}

/// Intervals of so many seconds with so many operations each.
pub(crate) fn format_interval_lines(seconds: &[u64], each_s: usize) -> String {
    let line = |(at, ok): (usize, &u64)| {
        let (second, length_ms) = (at * each_s, each_s * 1_000);
        format!(
            "{{\"phase\": \"measure\", \"second\": {second}, \"length_ms\": {length_ms}, \"arrivals\": {ok}, \
             \"ended\": {{\"ok\": {ok}}}, \"outcomes\": {{}}, \"exact\": {{}}, \"carried\": [0, 0], \
             \"links\": [0, 0, 0], \"backlog\": 0, \"busy_ns\": 0, \"drops\": []}}\n"
        )
    };
    seconds.iter().enumerate().map(line).collect()
}
