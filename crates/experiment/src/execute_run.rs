//! The making of one run: target, workers, phases, summary, and its line in the journal.

use crate::dataset_cache;
use crate::experiment_error::ExperimentError;
use crate::experiment_run::ExperimentRun;
use crate::hooks;
use crate::journal::{RunRecord, RunStatus, WindowEstimate};
use crate::provision;
use crate::provisioned_target::SharedServers;
use crate::rate_search;
use crate::run_context::RunContext;
use dyno_config::experiment::{Experiment, Strategy, When};
use dyno_config::tree::Node;
use dyno_localhost::error::LocalError;
use dyno_rundir::log::NOTICE;
use dyno_rundir::schema::Threshold;
use dyno_rundir::schema::{Status, Summary};
use dyno_session::session::Observer;
use dyno_types::system_error::without_numbers;
use std::path::Path;

impl ExperimentRun<'_> {
    /// Makes the run; what came of it, for the journal.
    pub fn make(
        &self,
        shared: &mut SharedServers,
        observer: &mut dyn Observer,
    ) -> (RunRecord, Option<Summary>) {
        self.concluded(self.attempt(shared, observer).map(|(summary, window)| (Some(summary), window)))
    }

    /// The record of what came of it.
    pub fn concluded(
        &self,
        made: Result<(Option<Summary>, Option<WindowEstimate>), ExperimentError>,
    ) -> (RunRecord, Option<Summary>) {
        let mut record = RunRecord {
            cell: self.cell.number,
            repetition: self.point.repetition,
            point: self.point.label.clone(),
            value: self.point.value,
            dir: self.dir.strip_prefix(self.experiment_dir).unwrap_or(&self.dir).display().to_string(),
            status: RunStatus::Complete,
            unreachable: false,
            out_of_reach: false,
            not_started: false,
            cause: String::new(),
            trust: String::new(),
            throughput: None,
            offered: None,
            passed: true,
            too_close: false,
            margin: None,
            overloaded: false,
            spoiled: false,
            window: None,
            objective: None,
        };
        match made {
            Ok((None, _)) => (record, None),
            Ok((Some(summary), window)) => {
                let measured = summary.measured_phase();
                record.throughput =
                    window.map(|found| found.figure).or(measured.map(|phase| phase.throughput));
                record.window = window;
                record.offered = measured.and_then(|phase| phase.offered);
                record.overloaded = summary.verdict.speaks_against("overload");
                record.spoiled = rate_search::is_spoiled(&summary.verdict);
                // A tuning's objective is no threshold: it only says what was measured.
                let objective = self.objective();
                let bound = summary.thresholds.iter().filter(|t| Some(&t.expression) != objective.as_ref());
                let bound: Vec<&Threshold> = bound.collect();
                record.passed = !bound.iter().any(|t| summary.misses_threshold(t));
                record.too_close = bound.iter().any(|t| t.too_close);
                record.margin = bound.iter().filter_map(|t| t.margin).reduce(f64::min);
                let measured_by = |text: &String| summary.thresholds.iter().find(|t| t.expression == *text);
                record.objective = objective.as_ref().and_then(measured_by).and_then(|t| t.measured);
                record.trust = summary.verdict.trust.name().into();
                record.cause = summary.verdict.worst_reason().map_or(String::new(), |r| r.text.clone());
                if summary.status == Status::Interrupted {
                    record.status = RunStatus::Interrupted;
                }
                (record, Some(summary))
            }
            Err(ExperimentError::Interrupted) => {
                record.status = RunStatus::Interrupted;
                (record, None)
            }
            Err(failed) => {
                let unreachable = matches!(failed, ExperimentError::Unreachable(_));
                let not_started = matches!(failed, ExperimentError::Server(_));
                let record =
                    RunRecord { unreachable, not_started, out_of_reach: failed.is_out_of_reach(), ..record };
                (self.failed(record, failed.to_string()), None)
            }
        }
    }

    /// The record of a run that failed; one that failed because it was to end is interrupted.
    fn failed(&self, record: RunRecord, message: String) -> RunRecord {
        let status = if self.control.is_stopping() { RunStatus::Interrupted } else { RunStatus::Failed };
        RunRecord { status, passed: false, cause: without_numbers(&message).into_owned(), ..record }
    }

    fn attempt(
        &self,
        shared: &mut SharedServers,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<WindowEstimate>), ExperimentError> {
        let (spec, tree) = self.spec()?;
        let variables = self.hook_variables();
        let hooks = spec.hooks.clone();
        // Commands print into the folder beside the run directory, which must be empty until it is made.
        let logs = self.dir.with_extension("server");
        std::fs::create_dir_all(&logs).map_err(|e| LocalError::failed_step(logs.display(), e))?;
        hooks::run("before_run", &hooks.before_run, &hooks.timeout, &logs, &variables, &self.control)?;
        let made = self.with_target(spec, &tree, &logs, shared, observer);
        let after =
            hooks::run("after_run", &hooks.after_run, &hooks.timeout, &logs, &variables, &self.control);
        self.put_away(&logs);
        // Words of what failed name files where they are now.
        let (was, is) = (logs.display().to_string(), self.dir.join("server").display().to_string());
        let moved = !logs.is_dir();
        let found = |failed: ExperimentError| match failed {
            // How long it is waited for depends on what it is.
            failed if failed.is_out_of_reach() => failed,
            ExperimentError::Other(why) if moved => {
                ExperimentError::other(why.to_string().replace(&was, &is))
            }
            other => other,
        };
        let made = made.map_err(found)?;
        after.map_err(|error| found(error.into()))?;
        Ok(made)
    }

    /// Moves what server, workers and commands have printed into the run directory; empty files say nothing.
    pub(super) fn put_away(&self, logs: &Path) {
        let Ok(entries) = std::fs::read_dir(logs) else { return };
        for entry in entries.flatten() {
            if entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        // Goes only if it is empty; else it becomes a folder of the run, or stays where there is none.
        let _ = std::fs::remove_dir(logs);
        if self.dir.is_dir() && logs.is_dir() {
            let _ = std::fs::rename(logs, self.dir.join("server"));
        }
    }

    /// The cell's experiment with the point put in.
    fn spec(&self) -> Result<(Experiment, Node), ExperimentError> {
        let (spec, tree) = self.cell.at_point(&self.point.sets).map_err(ExperimentError::other)?;
        Ok((Experiment { repetition: Some(self.point.draw), ..spec }, tree))
    }

    /// Objective of a tuning, as a condition.
    fn objective(&self) -> Option<String> {
        match &self.cell.spec.strategy {
            Some(Strategy::Tune(tune)) => Some(tune.objective_condition()),
            _ => None,
        }
    }

    fn with_target(
        &self,
        mut spec: Experiment,
        tree: &Node,
        logs: &Path,
        shared: &mut SharedServers,
        observer: &mut dyn Observer,
    ) -> Result<(Summary, Option<WindowEstimate>), ExperimentError> {
        let means = (self.machine, &self.control, self.program);
        let target =
            provision::provision(&spec, logs, self.experiment_dir, shared, means).map_err(|failed| {
                match failed {
                    ExperimentError::Other(why) => ExperimentError::Server(why),
                    other => other,
                }
            })?;
        if target.is_filled()? && spec.phases.load.when == When::Always {
            // They are counted; some of them are looked for, too.
            spec.phases.load.when = When::Missing;
        }
        let data = logs.join("data");
        let copied = match dataset_cache::is_wanted(&spec)
            .then(|| dataset_cache::find(&spec, self.experiment_dir))
            .flatten()
        {
            Some(copy) => {
                spec.phases.load.when = When::Never;
                // The folder is there, and empty.
                let emptied =
                    std::fs::remove_dir(&data).map_err(|e| LocalError::failed_step(data.display(), e));
                emptied
                    .and_then(|()| dataset_cache::copy(&copy, &data, &self.control))
                    .and_then(|()| dataset_cache::drop_page_cache(&data))
            }
            None => Ok(()),
        };
        let mut context = RunContext::new(self, target, data.clone());
        let made = copied
            .map_err(ExperimentError::from)
            .and_then(|()| context.load_and_measure(&spec, tree, logs, observer));
        let ended = context.end(&spec, shared, logs);
        // The data that an embedded store has written are as large as the data set.
        let _ = std::fs::remove_dir_all(data);
        let made = made?;
        match ended {
            // What was measured is whole, and what is left is removed once it can be reached.
            Err(error) if error.is_out_of_reach() => {
                tracing::warn!(target: NOTICE, "{error}: it stays for now")
            }
            ended => ended?,
        }
        Ok(made)
    }
}
