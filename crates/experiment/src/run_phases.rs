//! The steps of a run: what is recorded, load, pause, measurement.

use crate::experiment_error::ExperimentError;
use crate::experiment_run::ExperimentRun;
use crate::faults;
use crate::faults::FaultReach;
use crate::hooks;
use crate::series::SuccessSeries;
use crate::traces::Traces;
use dyno_analysis::Condition;
use dyno_config::experiment::recorded::recorded_values;
use dyno_config::experiment::traces::TracedPhase;
use dyno_config::experiment::{Experiment, Strategy};
use dyno_config::tree::Node;
use dyno_engine::{End, Job};
use dyno_hosts::remote::worker::pool::WorkerPool;
use dyno_localhost::error::LocalError;
use dyno_record::Scale;
use dyno_rundir::schema::Setting;
use dyno_session::conductor::{Conductor, RunDirectory};
use dyno_session::in_process_workers;
use dyno_session::session::{EndedPhase, Observer, RunSession, SessionPlan};
use dyno_session::work::Work;
use dyno_types::secret::mask_value;
use dyno_types::{Outcome, RefusalCode, Refused};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Keys of an experiment whose defaults shape a run; the others say which runs there are, or what is done around them.
const SHAPING: [&str; 6] = ["client.", "monitors.", "phases.", "seed", "server.", "workload."];

/// Values that the file leaves open, as settings of a run: with them two runs can be compared whatever was said of either.
fn defaults(said: &Node, spec: &Experiment) -> Result<Vec<Setting>, ExperimentError> {
    let all = recorded_values(said, spec).map_err(|e| ExperimentError::other(e.to_string()))?;
    let shapes = |key: &str| SHAPING.iter().any(|prefix| key.starts_with(prefix));
    let is_empty = |value: &str| matches!(value, "" | "[]" | "{}");
    let chosen =
        all.into_iter().filter(|one| one.source.is_none() && shapes(&one.key) && !is_empty(&one.value));
    Ok(chosen.map(|one| Setting { key: one.key, value: one.value, source: "default".into() }).collect())
}

impl ExperimentRun<'_> {
    pub(super) fn session_plan(
        &self,
        spec: &Experiment,
        work: &dyn Work,
        pool: &WorkerPool,
    ) -> Result<SessionPlan, ExperimentError> {
        let measured = work.measure()?;
        let conditions = conditions(spec, measured.workload.metrics())?;
        Ok(SessionPlan {
            title: format!("{}, {}", work.name(), self.cell.levels_label()),
            target: pool.shown.join(" "),
            started: jiff::Timestamp::now().to_string(),
            conditions,
            strict: spec.strict,
            asked: Vec::new(),
        })
    }

    /// Makes the run directory `dir`, with the settings of the cell and of the work.
    pub(super) fn begin<'p>(
        &self,
        dir: &Path,
        shown: &Node,
        work: &dyn Work,
        pool: &'p WorkerPool,
        facts: BTreeMap<String, String>,
        plan: SessionPlan,
    ) -> Result<Conductor<'p>, ExperimentError> {
        let setting = |key: &str, value: &str, source: String| Setting {
            value: mask_value(key, value),
            key: key.to_owned(),
            source,
        };
        let mut settings = vec![setting("cell", &self.cell.levels_label(), "derived".into())];
        settings.push(setting("repetition", &self.point.repetition.to_string(), "derived".into()));
        let leaves = shown.list_leaves();
        settings.extend(leaves.iter().map(|(key, value, origin)| Setting {
            key: key.clone(),
            value: value.clone(),
            source: origin.to_string(),
        }));
        settings.extend(defaults(shown, &self.cell.spec)?);
        let own = work.settings();
        settings.extend(own.iter().map(|(key, s)| setting(key, &s.value, s.source.to_string())));
        let directory = RunDirectory { path: dir, settings, facts, scale: Scale::Ns64 };
        let begun =
            Conductor::begin(plan, Some(directory), pool, self.environment.clone(), self.control.clone());
        Ok(begun.map_err(|e| LocalError::failed_step("cannot write the run directory", e))?)
    }

    /// The load phase, if there is something to load.
    pub(super) fn load(
        &self,
        spec: &Experiment,
        work: &dyn Work,
        pairs: usize,
        session: &mut RunSession<'_>,
        logs: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Option<EndedPhase>, ExperimentError> {
        let Some(job) = work.load()? else { return Ok(None) };
        let hooks = &spec.hooks;
        hooks::run(
            "before_load",
            &hooks.before_load,
            &hooks.timeout,
            logs,
            &self.hook_variables(),
            &self.control,
        )?;
        let job = whole(job, pairs)?;
        let traces = Traces::expect(&spec.traces, &[TracedPhase::Load], &self.hook_variables(), session)?;
        let ended = session.run_workers("load", &[job], observer);
        traces.end(session);
        let ended = ended?;
        let lost = session.lost_workers();
        if !lost.is_empty() {
            return Err(ExperimentError::other(format!("the load was cut short: {}", lost.join("; "))));
        }
        let failed = ended.totals.count_failed();
        if failed > 0 && !self.control.is_stopping() {
            return Err(ExperimentError::other(describe_failed_load(failed, &ended.finished.errors)));
        }
        hooks::run(
            "after_load",
            &hooks.after_load,
            &hooks.timeout,
            logs,
            &self.hook_variables(),
            &self.control,
        )?;
        Ok(Some(ended))
    }

    /// Pause, warm-up and measurement.
    pub(super) fn measured(
        &self,
        spec: &Experiment,
        work: &dyn Work,
        pairs: usize,
        session: &mut RunSession<'_>,
        reach: FaultReach<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(EndedPhase, SuccessSeries), ExperimentError> {
        let logs = &reach.logs.clone();
        if let Some(pause) = &spec.phases.pause {
            self.pause(Duration::from_nanos(pause.0));
        }
        if self.control.is_stopping() {
            return Err(ExperimentError::Interrupted);
        }
        let hooks = &spec.hooks;
        hooks::run(
            "before_measure",
            &hooks.before_measure,
            &hooks.timeout,
            logs,
            &self.hook_variables(),
            &self.control,
        )?;
        let job = whole(work.measure()?, pairs)?;
        let mut series = SuccessSeries::default();
        let mut watched = series.watch(observer);
        let phases = [TracedPhase::Warmup, TracedPhase::Measure];
        let traces = Traces::expect(&spec.traces, &phases, &self.hook_variables(), session)?;
        let clock = traces.clock();
        if !spec.faults.is_empty() {
            session.expect_faults();
        }
        let (ended, done) = faults::run_with_faults(self, spec, reach, &clock, || {
            session.run_workers("measure", &[job], &mut watched)
        })?;
        traces.end(session);
        let done = done.note(session);
        let ended = ended?;
        done?;
        hooks::run(
            "after_measure",
            &hooks.after_measure,
            &hooks.timeout,
            logs,
            &self.hook_variables(),
            &self.control,
        )?;
        Ok((ended, series))
    }

    /// Waits, but not longer than the user wants.
    fn pause(&self, length: Duration) {
        let end = std::time::Instant::now() + length;
        while !self.control.is_stopping() {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// What a load whose inserts failed says: the error that keys which are there already met with, or else the first by the name
/// of its outcome. The outcome decides, because each driver knows its server's codes.
fn describe_failed_load(failed: u64, errors: &[(Outcome, String)]) -> String {
    let duplicate = errors.iter().find(|(outcome, _)| *outcome == Outcome::Duplicate);
    let first = duplicate.or_else(|| errors.iter().min_by_key(|(outcome, _)| outcome.name()));
    let error = first.map_or("", |(_, error)| error);
    let hint = match duplicate {
        Some(_) => "; the target holds records of this load already: drop them first, and it loads anew",
        None => "",
    };
    format!("{failed} inserts of the load failed: {error}{hint}")
}

/// The job of all pairs together, as reports see it.
fn whole(job: Job, pairs: usize) -> Result<Job, ExperimentError> {
    let operations = job.end.operations.map(|n| n * pairs as u64);
    let end = End { operations, ..job.end };
    let all = vec![Job { end, ..job }; pairs];
    in_process_workers::join_jobs(&all).ok_or_else(|| ExperimentError::other("a run without targets"))
}

/// Thresholds of the experiment and objectives of its search, checked against the workload's operations.
pub(super) fn conditions(spec: &Experiment, metrics: &[String]) -> Result<Vec<Condition>, Refused> {
    let of =
        |key: &'static str, all: &[String]| all.iter().map(|text| (key, text.clone())).collect::<Vec<_>>();
    let mut all = of("require", &spec.require);
    match &spec.strategy {
        Some(Strategy::HighestRate(search)) => {
            all.extend(of("strategy.highest_rate.objectives", &search.objectives));
        }
        Some(Strategy::Tune(tune)) => {
            all.extend(of("strategy.tune.constraints", &tune.constraints));
            all.extend(of("strategy.tune.objective", &[tune.objective_condition()]));
        }
        _ => {}
    }
    let read = |(key, text): &(&str, String)| {
        Condition::parse_for_metrics(text, metrics)
            .map_err(|e| Refused::new(RefusalCode::BadValue, *key, format!("{key}: {e}")))
    };
    all.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_are_there_already_advise_to_drop_them() {
        let hint = "; the target holds records of this load already: drop them first, and it loads anew";
        let timed_out = (Outcome::TimedOut, "no reply within 10 s".to_owned());
        let duplicate = (Outcome::Duplicate, "UNIQUE constraint failed: usertable.ycsb_key".to_owned());
        let described = describe_failed_load(7, &[timed_out.clone(), duplicate.clone()]);
        assert_eq!(described, format!("7 inserts of the load failed: {}{hint}", duplicate.1));
        // A text that speaks of the code without being of it.
        let server = (Outcome::ServerError, "11000: of another kind".to_owned());
        let described = describe_failed_load(2, &[timed_out, server]);
        assert_eq!(described, "2 inserts of the load failed: 11000: of another kind");
        assert_eq!(describe_failed_load(1, &[]), "1 inserts of the load failed: ");
    }
}
