//! The tests of the summary. One that cannot be made says why.

use crate::markdown::SummaryDocument;
use crate::markdown::entry::{Component, Entry, PhaseFigures};
use dyno_rundir::schema::{Status, Trust};
use dyno_types::units::Rate;

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Passed,
    Failed,
    Skipped,
}

impl Ended {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Ended::Passed => "passed",
            Ended::Failed => "failed",
            Ended::Skipped => "skipped",
        }
    }
}

/// A test.
pub(super) struct SummaryTest {
    pub result: Ended,
    pub text: String,
}

impl SummaryTest {
    pub(super) fn has_failed(&self) -> bool {
        self.result == Ended::Failed
    }
}

pub(super) type ComponentPicker = fn(&Entry) -> Option<&Component>;

/// Of a shorter phase, seconds, a CPU time of 0 says nothing.
const SHORT_S: f64 = 1.0;

/// A target counts as reached from here on.
const REACHED: f64 = 0.99;

/// So late, seconds, a target is not missed: one slow reply delays the end of a short phase as much.
const LATE_S: f64 = 0.1;

fn test(passed: bool, good: &str, bad: String) -> SummaryTest {
    match passed {
        true => SummaryTest { result: Ended::Passed, text: good.to_owned() },
        false => SummaryTest { result: Ended::Failed, text: bad },
    }
}

fn skipped(what: &str, why: &str) -> SummaryTest {
    SummaryTest { result: Ended::Skipped, text: format!("{what} ({why})") }
}

impl SummaryDocument {
    /// Returns bexhoma's word for the servers: of a cluster they are its workers.
    pub(super) fn server_label(&self) -> &'static str {
        let cluster = self.entries.first().is_some_and(|entry| entry.cluster);
        if cluster { "component worker" } else { "SUT deployment" }
    }

    /// Returns the watched components, by the titles of the summary.
    pub(super) fn watched_components(&self) -> [(String, ComponentPicker); 4] {
        let servers = self.server_label();
        [
            (format!("Loading phase: {servers}"), |entry| Some(&entry.load.as_ref()?.server)),
            ("Loading phase: component loader".into(), |entry| Some(&entry.load.as_ref()?.client)),
            (format!("Execution phase: {servers}"), |entry| Some(&entry.measure.as_ref()?.server)),
            ("Execution phase: component benchmarker".into(), |entry| Some(&entry.measure.as_ref()?.client)),
        ]
    }

    pub(super) fn run_tests(&self) -> Vec<SummaryTest> {
        let mut all = vec![self.restarts()];
        all.extend(self.watched_components().iter().map(|(title, of)| self.component(title, *of)));
        let of = |pick: fn(&Entry) -> Option<&PhaseFigures>| -> Vec<(String, f64)> {
            let found = self.entries.iter().filter_map(|e| Some((e.name(), pick(e)?.phase.throughput)));
            found.collect()
        };
        let (loads, measures) = (of(|e| e.load.as_ref()), of(|e| e.measure.as_ref()));
        let what = "[OVERALL].Throughput(ops/sec) contains no 0 or NaN";
        all.push(match (loads.is_empty(), self.ended_badly.is_empty()) {
            (true, true) => skipped(&format!("Loading Phase: {what}"), "nothing was loaded"),
            (true, false) => SummaryTest {
                result: Ended::Failed,
                text: "Loading Phase: no load of a run that failed was recorded".into(),
            },
            (false, _) => throughputs("Loading Phase", &loads),
        });
        if self.standing {
            all.push(self.rows());
            all.push(skipped("Execution Phase", "servers were left for later runs"));
            return all;
        }
        all.push(match measures.is_empty() {
            true => {
                SummaryTest { result: Ended::Failed, text: "Execution Phase: nothing was recorded".into() }
            }
            false => throughputs("Execution Phase", &measures),
        });
        all.push(self.as_planned());
        all.push(self.no_failures());
        all.push(self.rows());
        all.push(self.targets());
        all.push(self.verdicts());
        all
    }

    /// Whatever a run that failed has left is no result.
    fn verdicts(&self) -> SummaryTest {
        let what = "Every run has a verdict that is not invalid";
        let failed = |name: &String| self.ended_badly.iter().any(|(known, _)| known == name);
        let invalid = self.entries.iter().filter(|e| e.trust == Trust::Invalid).map(Entry::name);
        let how = |why: &String| why.split(':').next().unwrap_or_default().to_owned();
        let bad = self.ended_badly.iter().map(|(name, why)| format!("{name} ({})", how(why)));
        let bad: Vec<String> =
            bad.chain(invalid.filter(|name| !failed(name))).chain(self.missing.clone()).collect();
        match (bad.is_empty(), self.entries.is_empty()) {
            (true, true) => SummaryTest { result: Ended::Failed, text: format!("{what}: no run has ended") },
            (passed, _) => test(passed, what, format!("{what}: {}", bad.join(", "))),
        }
    }

    fn restarts(&self) -> SummaryTest {
        let what = "No SUT process restarts";
        let known: Vec<(&Entry, bool)> =
            self.entries.iter().filter_map(|e| Some((e, e.restarted?))).collect();
        let again: Vec<String> = known.iter().filter(|(_, again)| *again).map(|(e, _)| e.name()).collect();
        match (again.is_empty(), known.len() < self.entries.len() || known.is_empty()) {
            (false, _) => {
                test(false, what, format!("SUT process ended or was replaced: {}", again.join(", ")))
            }
            (true, true) => skipped(what, "not every server's process was watched"),
            (true, false) => test(true, what, String::new()),
        }
    }

    fn component(&self, title: &str, of: ComponentPicker) -> SummaryTest {
        let what = format!("{title} contains no 0 or NaN in CPU [CPUs]");
        let seen: Vec<(&Entry, &Component)> = self.entries.iter().filter_map(|e| Some((e, of(e)?))).collect();
        if seen.is_empty() {
            return skipped(&what, "there was no such phase");
        }
        if seen.iter().all(|(_, one)| **one == Component::default()) {
            return skipped(&what, "it was not watched");
        }
        let nothing = |one: &Component| one.cpu_s.is_none_or(|s| s <= 0.0);
        let phase = |e: &Entry| {
            let figures = if title.starts_with("Loading") { &e.load } else { &e.measure };
            figures.as_ref().map_or(0.0, |figures| figures.phase.seconds)
        };
        // The kernel counts CPU time in ticks, and monitors look once a second.
        let told: Vec<&(&Entry, &Component)> =
            seen.iter().filter(|(e, one)| !nothing(one) || phase(e) >= SHORT_S).collect();
        if told.is_empty() {
            return skipped(&what, "the phase was shorter than a second: its CPU time cannot be told from 0");
        }
        let bad: Vec<String> = told.iter().filter(|(_, one)| nothing(one)).map(|(e, _)| e.name()).collect();
        test(bad.is_empty(), &what, format!("{title} contains 0 or NaN in CPU [CPUs]: {}", bad.join(", ")))
    }

    fn as_planned(&self) -> SummaryTest {
        let what = "Workflow as planned";
        let planned = self.planned.unwrap_or(1);
        let complete =
            self.entries.iter().filter(|e| e.status == Status::Complete && e.measure.is_some()).count();
        // A search makes as many runs as it needs.
        let searched = self.searches || self.entries.iter().any(|entry| !entry.point.is_empty());
        if searched && self.missing.is_empty() && self.ended_badly.is_empty() {
            return skipped(what, "a search plans its runs as it goes");
        }
        let made: Vec<String> =
            self.entries.iter().filter(|e| e.status == Status::Complete).map(Entry::workflow_line).collect();
        let lines = self.about.iter().flat_map(|about| &about.planned);
        let other: Vec<String> = lines.filter(|line| !made.contains(line)).cloned().collect();
        let other =
            if other.is_empty() { String::new() } else { format!(", not made: {}", other.join(", ")) };
        test(
            complete == planned && other.is_empty(),
            what,
            format!("Workflow not as planned: {complete} of {planned} runs are complete{other}"),
        )
    }

    fn no_failures(&self) -> SummaryTest {
        let found: Vec<&PhaseFigures> = self.entries.iter().filter_map(|e| e.measure.as_ref()).collect();
        if found.is_empty() && !self.ended_badly.is_empty() {
            return SummaryTest {
                result: Ended::Failed,
                text: "Execution Phase: contains FAILED column: nothing of a run that failed was recorded"
                    .into(),
            };
        }
        if found.is_empty() {
            return skipped("Execution Phase: contains no FAILED column", "nothing was recorded");
        }
        let failed: u64 = found.iter().map(|one| one.exception_count()).sum();
        test(
            failed == 0,
            "Execution Phase: contains no FAILED column",
            format!("Execution Phase: contains FAILED column: {failed} operations did not succeed"),
        )
    }

    fn rows(&self) -> SummaryTest {
        let what = "Loading Phase: as many records as planned";
        let loaded: Vec<(String, u64, f64)> = self
            .entries
            .iter()
            .filter_map(|e| {
                Some((
                    e.name(),
                    e.load.as_ref()?.phase.outcomes.get("ok").copied().unwrap_or(0),
                    e.record_count()?,
                ))
            })
            .collect();
        if loaded.is_empty() {
            return skipped(what, "nothing was loaded, or the number is not known");
        }
        let bad: Vec<String> = loaded
            .iter()
            .filter(|(_, ok, records)| *ok as f64 != *records)
            .map(|(name, ok, records)| format!("{name}: {ok} of {records:.0}"))
            .collect();
        test(bad.is_empty(), what, format!("Loading Phase: other than planned: {}", bad.join(", ")))
    }

    fn targets(&self) -> SummaryTest {
        let what = "Execution Phase: target reached to 1 %";
        let open: Vec<(String, f64, f64, f64)> = self
            .entries
            .iter()
            .filter_map(|e| {
                let phase = &e.measure.as_ref()?.phase;
                let offered = phase.offered?;
                let late_s = phase.seconds * (1.0 - phase.throughput / offered);
                Some((e.name(), phase.throughput, offered, late_s))
            })
            .collect();
        if open.is_empty() {
            let nothing = self.entries.iter().all(|e| e.measure.is_none());
            return skipped(
                what,
                if nothing { "nothing was measured" } else { "closed loop: there is no target" },
            );
        }
        let missed = open
            .iter()
            .filter(|(_, reached, offered, late_s)| *reached < offered * REACHED && *late_s > LATE_S);
        let missed: Vec<String> = missed
            .map(|(name, reached, offered, _)| format!("{name}: {} of {}/s", Rate(*reached), Rate(*offered)))
            .collect();
        test(missed.is_empty(), what, format!("Execution Phase: target missed: {}", missed.join(", ")))
    }
}

fn throughputs(phase: &str, all: &[(String, f64)]) -> SummaryTest {
    let bad: Vec<&str> =
        all.iter().filter(|(_, x)| !x.is_finite() || *x <= 0.0).map(|(name, _)| name.as_str()).collect();
    test(
        bad.is_empty(),
        &format!("{phase}: [OVERALL].Throughput(ops/sec) contains no 0 or NaN"),
        format!("{phase}: [OVERALL].Throughput(ops/sec) contains 0 or NaN: {}", bad.join(", ")),
    )
}
