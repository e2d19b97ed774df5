//! Servers that outlive the command: started, loaded where that is asked for, and left.

use crate::context::{ExperimentContext, Watcher};
use crate::directory::{Directory, DirectoryError};
use crate::experiment_error::ExperimentError;
use crate::experiment_run::ExperimentRun;
use crate::journal::{Entry, RunRecord, RunStatus};
use crate::persistent_servers::PersistentServers;
use crate::pods::in_pods;
use crate::point::SearchPoint;
use crate::provisioned_target::{ProvisionedTarget, SharedServers};
use crate::random::secured;
use crate::run_context::RunContext;
use crate::volumes;
use crate::volumes::Volume;
use dyno_config::experiment::{Experiment, ExperimentPlan};
use dyno_hosts::servers::server::fault_preparation::FaultPreparation;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use std::path::Path;

/// Outcome of starting servers that outlive the command.
#[derive(Debug)]
pub struct LeftServers {
    /// They stand, and this is what they are.
    pub persistent: Option<PersistentServers>,
    /// Record of the load, if there was one.
    pub record: Option<RunRecord>,
}

/// Starts the servers of a plan's only cell, loads them where that is asked for, and leaves them.
pub fn leave(
    plan: &ExperimentPlan,
    directory: &mut Directory,
    context: &ExperimentContext<'_>,
    load: bool,
    watcher: &mut dyn Watcher,
) -> Result<LeftServers, DirectoryError> {
    let [cell] = plan.cells.as_slice() else {
        return Err(DirectoryError::Refused("servers of several cells cannot be left".into()));
    };
    if cell.spec.server.is_none() || !cell.spec.ssh.is_nothing() {
        let message = "only servers of this host and of Kubernetes can be left";
        return Err(DirectoryError::Refused(message.into()));
    }
    let point = SearchPoint::plain(1);
    let dir = directory.run_directory(cell.number, 1, "load");
    let shown = dir.strip_prefix(directory.path()).unwrap_or(&dir).display().to_string();
    let (experiment_dir, machine) = (directory.path().to_owned(), Machine::default());
    if load {
        directory.note(Entry::Run { cell: cell.number, repetition: 1, point: String::new(), dir: shown })?;
        watcher.run_begins(cell, &point, 0, 1);
    }
    let one = ExperimentRun {
        cell,
        point: &point,
        dir,
        environment: context.environment,
        control: context.control.clone(),
        read_work: context.read_work,
        program: context.program,
        experiment_dir: &experiment_dir,
        machine: &machine,
    };
    let (record, summary) = one.concluded(stand(&one, load, watcher).map(|summary| (summary, None)));
    let failed = record.status != RunStatus::Complete;
    // A load alone has nothing that a verdict could be about.
    let cause = if failed { record.cause.clone() } else { String::new() };
    let record = RunRecord { cause, trust: String::new(), ..record };
    // Data of a volume need no load, and so there is no run.
    if load && (failed || summary.is_some()) {
        directory.note(Entry::Ended(record.clone()))?;
        watcher.run_ended(cell, &record, summary.as_ref());
    }
    if failed && !load {
        return Err(DirectoryError::Refused(record.cause));
    }
    let status = if failed { "interrupted" } else { "standing" };
    directory.note(Entry::End { status: status.into() })?;
    let persistent = PersistentServers::of(&experiment_dir)?;
    Ok(LeftServers { persistent, record: Some(record).filter(|_| failed || summary.is_some()) })
}

fn stand(
    one: &ExperimentRun<'_>,
    load: bool,
    watcher: &mut dyn Watcher,
) -> Result<Option<dyno_rundir::schema::Summary>, ExperimentError> {
    let (spec, shown) = (&one.cell.spec, one.cell.masked_tree().map_err(ExperimentError::other)?);
    let logs = one.dir.with_extension("server");
    std::fs::create_dir_all(&logs).map_err(|e| LocalError::failed_step(logs.display(), e))?;
    let target = provision(spec, one, &logs)?;
    let mut context = RunContext::new(one, target, logs.join("data"));
    let made = match load {
        true => context.load_only(spec, &shown, &logs, watcher),
        false => Ok(None),
    };
    match made {
        Ok(summary) if !one.control.is_stopping() => {
            one.put_away(&logs);
            context.leave(spec).map(|()| summary)
        }
        made => {
            let ended = context.end(spec, &mut SharedServers::default(), &logs);
            one.put_away(&logs);
            ended?;
            made.and(Err(ExperimentError::Interrupted))
        }
    }
}

/// Servers that may outlive dyno.
fn provision(
    spec: &Experiment,
    one: &ExperimentRun<'_>,
    logs: &Path,
) -> Result<ProvisionedTarget, ExperimentError> {
    if let Some(asked) = &spec.kubernetes {
        return in_pods(spec, asked, logs, (one.experiment_dir, true), &one.control);
    }
    let Some(server) = &spec.server else {
        return Err(ExperimentError::other("server: nothing is described"));
    };
    let work_dir = one.experiment_dir.join("standing");
    std::fs::create_dir_all(&work_dir).map_err(|e| LocalError::failed_step(work_dir.display(), e))?;
    let mut volume = Volume::here(spec, server, one.experiment_dir, one.machine)?;
    let own = secured(server)?;
    let preparation = FaultPreparation::default();
    let started = volumes::start(
        &own,
        (&preparation, true, false),
        &work_dir,
        (one.machine, &one.control),
        &mut volume,
    )
    .map_err(ExperimentError::unreachable)?;
    Ok(ProvisionedTarget::of_server(server, own, started, volume))
}
